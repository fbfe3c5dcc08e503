//! What the rounds of an allgather make: itself; run backwards, a reduce-scatter; backwards and
//! forwards, an allreduce.

use super::rounds::{self, Arrival, Exchange, Message, Rounds};
use crate::collective::Collective;
use crate::cost::Ports;
use crate::error::Result;
use crate::plan::stream::{StepAt, Then};
use crate::plan::{Request, consecutive, evenly};
use crate::schedule::{Builder, Layout, Schedule, Span, Step};

/// An allgather whose steps are still to be said: every rank has its block where it stands in the
/// whole.
pub(crate) fn allgather_builder(request: &Request, blocks: &[Span]) -> Builder {
    let whole = Span::from(0..blocks.last().map_or(0, |b| b.end()));
    let mut b = Schedule::builder(request.ranks, request.ports, Collective::Allgather);
    for (r, &block) in blocks.iter().enumerate() {
        b.layout(r, whole.len, [block], [whole]);
    }
    b
}

/// The allgather in these rounds of the request's blocks.
///
/// # Errors
/// When the request is inconsistent.
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

/// The reduce-scatter by these rounds backwards.
///
/// # Errors
/// When the request is inconsistent.
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

/// The allreduce by these rounds backwards, then forwards, with blocks of almost the same size.
///
/// # Errors
/// When the request is inconsistent.
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

/// Rounds whose steps need not be stored, in buffers that hold all blocks one after another.
#[derive(Debug)]
pub(super) struct Blocks<R> {
    exchange: Exchange<R>,
    collective: Collective,
    /// Of all ranks.
    blocks: Vec<Span>,
    /// Elements of all blocks.
    elements: usize,
    /// Elements of scratch after them.
    scratch: usize,
}

impl<R: Rounds> Blocks<R> {
    /// The allgather in these rounds of the request's blocks.
    pub(super) fn allgather(request: &Request, rounds: impl Fn(Vec<Span>) -> R) -> Result<Self> {
        request.validate()?;
        let blocks = request.block_spans();
        Ok(Self::forwards(
            request,
            Collective::Allgather,
            rounds,
            blocks,
        ))
    }

    /// The reduce-scatter by these rounds backwards. `longest` is how many elements the longest
    /// message has.
    pub(super) fn reduce_scatter(
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

    /// The rounds as they come, every message stored.
    pub(super) fn forwards(
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

    /// The rounds from the last to the first, every message going back and being combined: in
    /// passing, or where there is scratch, from there.
    pub(super) fn backwards(
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

/// The allreduce by these rounds backwards, then forwards, with blocks of almost the same size.
pub(super) fn allreduce_by<R: Rounds>(
    request: &Request,
    rounds: impl Fn(Vec<Span>) -> R,
    longest: impl Fn(&[Span]) -> usize,
) -> Result<Then<Blocks<R>, Blocks<R>>> {
    request.validate()?;
    let blocks = consecutive(&evenly(request.elements(), request.ranks));
    let scratch = scratch_after(request, &blocks, longest);
    let collective = Collective::Allreduce;
    Ok(Then {
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

/// Elements of scratch, which only ranks with one port need: see [`rounds::backwards`].
pub(super) fn scratch_after(
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
        let (input, output) = match self.collective {
            Collective::Allgather => (self.blocks[rank], Some(whole)),
            Collective::ReduceScatter => (whole, Some(self.blocks[rank])),
            Collective::Reduce { root } => (whole, (rank == root).then_some(whole)),
            _ => (whole, Some(whole)),
        };
        Layout {
            len: self.elements + self.scratch,
            input: input.into(),
            output: output.into_iter().collect(),
        }
    }

    fn places(&self, _rank: usize) -> usize {
        self.exchange.places()
    }

    #[inline]
    fn step_at(&self, rank: usize, place: usize) -> Option<Step> {
        self.exchange.step_at(rank, place)
    }
}
