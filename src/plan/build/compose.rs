//! Builds collectives from the rounds of an allgather: the allgather itself, a reduce-scatter (the
//! rounds backwards), and an allreduce (backwards, then forwards).

use super::rounds::{self, Arrival, Exchange, Message, Rounds};
use crate::error::Result;
use crate::machine::Ports;
use crate::plan::build::stream::{Consecutive, DynScheduleSource, StepAt, Stream};
use crate::plan::{Request, consecutive, evenly};
use crate::schedule::collective::{Collective, Kind};
use crate::schedule::{Builder, Layout, Schedule, Span, Step};

/// Plans the request's allgather in these rounds, the reduce-scatter that runs them backwards, or
/// the allreduce that does one after the other. Block sizes of an allreduce differ by at most one
/// element.
///
/// # Errors
/// As [`Request::validate`] and [`Schedule::new`].
pub(crate) fn plan<R>(request: &Request, rounds: impl Fn(Vec<Span>) -> R) -> Result<Schedule>
where
    R: DoubleEndedIterator<Item = Vec<Message>>,
{
    match request.kind {
        Kind::Allgather => allgather(request, rounds),
        Kind::ReduceScatter => reduce_scatter(request, rounds),
        _ => allreduce(request, rounds),
    }
}

/// As [`plan`]; steps are generated on demand. `longest` gives the number of elements of the
/// longest message.
pub(crate) fn programs<R: Rounds + 'static>(
    request: &Request,
    rounds: impl Fn(Vec<Span>) -> R,
    longest: impl Fn(&[Span]) -> usize,
) -> Result<Box<dyn DynScheduleSource>> {
    Ok(match request.kind {
        Kind::Allgather => Box::new(Stream(Blocks::allgather(request, rounds)?)),
        Kind::ReduceScatter => Box::new(Stream(Blocks::reduce_scatter(request, rounds, longest)?)),
        _ => Box::new(Stream(allreduce_by(request, rounds, longest)?)),
    })
}

/// A builder for an allgather, without its steps: every rank has its block at its position in the
/// whole vector.
pub(crate) fn allgather_builder(request: &Request, blocks: &[Span]) -> Builder {
    let whole = Span::from(0..blocks.last().map_or(0, |b| b.end()));
    let mut b = Schedule::builder(request.ranks, request.ports, Collective::Allgather);
    for (r, &block) in blocks.iter().enumerate() {
        b.layout(r, whole.len, [block], [whole]);
    }
    b
}

/// Plans the allgather in these rounds over the request's blocks.
///
/// # Errors
/// As [`Request::validate`] and [`Schedule::new`].
pub(crate) fn allgather<R>(request: &Request, rounds: impl Fn(Vec<Span>) -> R) -> Result<Schedule>
where
    R: DoubleEndedIterator<Item = Vec<Message>>,
{
    request.validate()?;
    let blocks = request.block_spans();
    let mut b = allgather_builder(request, &blocks);
    rounds::forwards(&mut b, request, rounds(blocks));
    b.build()
}

/// Plans the reduce-scatter that runs these rounds backwards.
pub(crate) fn reduce_scatter<R>(
    request: &Request,
    rounds: impl Fn(Vec<Span>) -> R,
) -> Result<Schedule>
where
    R: DoubleEndedIterator<Item = Vec<Message>>,
{
    request.validate()?;
    let blocks = request.reduce_scatter_spans();
    let vector = Span::from(0..blocks.last().map_or(0, |b| b.end()));
    let scratch = rounds::scratch_of(request, rounds(blocks.clone()));
    let mut b = Schedule::builder(request.ranks, request.ports, Collective::ReduceScatter);
    for (r, &block) in blocks.iter().enumerate() {
        b.layout(r, vector.len + scratch, [vector], [block]);
    }
    rounds::backwards(&mut b, request, rounds(blocks), vector.len);
    b.build()
}

/// Plans the allreduce that runs these rounds backwards, then forwards.
pub(crate) fn allreduce<R>(request: &Request, rounds: impl Fn(Vec<Span>) -> R) -> Result<Schedule>
where
    R: DoubleEndedIterator<Item = Vec<Message>>,
{
    request.validate()?;
    let vector = Span::new(0, request.elements());
    let blocks = consecutive(&evenly(vector.len, request.ranks));
    let scratch = rounds::scratch_of(request, rounds(blocks.clone()));
    let mut b = Schedule::builder(request.ranks, request.ports, Collective::Allreduce);
    for r in 0..request.ranks {
        b.layout(r, vector.len + scratch, [vector], [vector]);
    }
    rounds::backwards(&mut b, request, rounds(blocks.clone()), vector.len);
    rounds::forwards(&mut b, request, rounds(blocks));
    b.build()
}

/// Rounds as a schedule whose steps are generated on demand. A rank's buffer holds all blocks one
/// after another.
#[derive(Debug)]
pub(in crate::plan) struct Blocks<R> {
    exchange: Exchange<R>,
    collective: Collective,
    /// By rank: its block.
    blocks: Vec<Span>,
    /// Number of elements of all blocks together.
    elements: usize,
    /// Number of scratch elements after the blocks.
    scratch: usize,
}

impl<R: Rounds> Blocks<R> {
    /// The allgather in these rounds over the request's blocks.
    pub(in crate::plan) fn allgather(
        request: &Request,
        rounds: impl Fn(Vec<Span>) -> R,
    ) -> Result<Self> {
        request.validate()?;
        let blocks = request.block_spans();
        Ok(Self::forwards(
            request,
            Collective::Allgather,
            rounds,
            blocks,
        ))
    }

    /// The reduce-scatter that runs these rounds backwards. `longest` gives the number of elements
    /// of the longest message.
    pub(in crate::plan) fn reduce_scatter(
        request: &Request,
        rounds: impl Fn(Vec<Span>) -> R,
        longest: impl Fn(&[Span]) -> usize,
    ) -> Result<Self> {
        request.validate()?;
        let (collective, blocks) = (Collective::ReduceScatter, request.reduce_scatter_spans());
        let scratch = scratch_after(request, &blocks, longest);
        Ok(Self::backwards(
            request, collective, rounds, blocks, scratch,
        ))
    }

    /// The rounds in order; every message is stored.
    pub(in crate::plan) fn forwards(
        request: &Request,
        collective: Collective,
        rounds: impl Fn(Vec<Span>) -> R,
        blocks: Vec<Span>,
    ) -> Self {
        Blocks {
            exchange: Exchange {
                rounds: rounds(blocks.clone()),
                backwards: false,
                arrival: Arrival::Stored,
                ports: request.ports,
            },
            collective,
            elements: blocks.last().map_or(0, |b| b.end()),
            blocks,
            scratch: 0,
        }
    }

    /// The rounds from the last to the first. Every message goes in the opposite direction and is
    /// combined: directly on arrival or, if there is scratch, from there.
    pub(in crate::plan) fn backwards(
        request: &Request,
        collective: Collective,
        rounds: impl Fn(Vec<Span>) -> R,
        blocks: Vec<Span>,
        scratch: Option<usize>,
    ) -> Self {
        let mut all = Self::forwards(request, collective, rounds, blocks);
        all.exchange.backwards = true;
        all.exchange.arrival = match scratch {
            None => Arrival::Combined,
            Some(_) => Arrival::CombinedAfter(all.elements),
        };
        all.scratch = scratch.unwrap_or(0);
        all
    }
}

/// The allreduce that runs these rounds backwards, then forwards. Block sizes differ by at most one
/// element.
pub(in crate::plan) fn allreduce_by<R: Rounds>(
    request: &Request,
    rounds: impl Fn(Vec<Span>) -> R,
    longest: impl Fn(&[Span]) -> usize,
) -> Result<Consecutive<Blocks<R>, Blocks<R>>> {
    request.validate()?;
    let blocks = consecutive(&evenly(request.elements(), request.ranks));
    let scratch = scratch_after(request, &blocks, longest);
    let collective = Collective::Allreduce;
    Ok(Consecutive {
        first: Blocks::backwards(
            request,
            collective.clone(),
            &rounds,
            blocks.clone(),
            scratch,
        ),
        second: Blocks::forwards(request, collective.clone(), &rounds, blocks),
        collective,
    })
}

/// Number of scratch elements. Only unidirectional ranks need them: see [`rounds::backwards`].
pub(in crate::plan) fn scratch_after(
    request: &Request,
    blocks: &[Span],
    longest: impl Fn(&[Span]) -> usize,
) -> Option<usize> {
    (!request.ports.is_bidirectional()).then(|| longest(blocks))
}

impl<R: Rounds> StepAt for Blocks<R> {
    fn ranks(&self) -> usize {
        self.blocks.len()
    }

    fn ports(&self) -> Ports {
        self.exchange.ports
    }

    fn collective(&self) -> Collective {
        self.collective.clone()
    }

    fn layout_of(&self, rank: usize) -> Layout {
        let whole = Span::new(0, self.elements);
        let len = self.elements + self.scratch;
        self.collective.layout(rank, len, whole, self.blocks[rank])
    }

    fn is_uniform(&self) -> bool {
        self.exchange.is_uniform()
    }

    fn slots(&self, _rank: usize) -> usize {
        self.exchange.slots()
    }

    #[inline]
    fn step_at(&self, rank: usize, slot: usize) -> Option<Step> {
        self.exchange.step_at(rank, slot)
    }
}
