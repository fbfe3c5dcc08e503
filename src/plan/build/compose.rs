//! Builds collectives from the rounds of an allgather: the allgather itself, a reduce-scatter (the
//! rounds backwards), and an allreduce (backwards, then forwards).

use super::buffers::over_blocks;
use super::rounds::{self, Arrival, Exchange, Message, Rounds};
use crate::error::Result;
use crate::plan::Request;
use crate::plan::build::stream::{Consecutive, StepAt, streamed};
use crate::schedule::collective::{Collective, Kind};
use crate::schedule::{DynScheduleSource, Layout, Schedule, Span, Step};

/// Plans the request's allgather in these rounds, the reduce-scatter that runs them backwards, or
/// the allreduce that does one after the other. Block sizes of an allreduce differ by at most one
/// element.
pub(crate) fn plan<R>(request: &Request, rounds: impl Fn(Vec<Span>) -> R) -> Result<Schedule>
where
    R: DoubleEndedIterator<Item = Vec<Message>>,
{
    let kind = request.kind;
    let (collective, blocks) = (kind.with_root(0), request.block_spans());
    let elements = blocks.last().map_or(0, |b| b.end());
    let scratch = match kind {
        Kind::Allgather => 0,
        _ => rounds::scratch_of(request, rounds(blocks.clone())),
    };
    let mut b = over_blocks(request, collective, &blocks, scratch);
    if kind != Kind::Allgather {
        rounds::backwards(&mut b, request, rounds(blocks.clone()), elements);
    }
    if kind != Kind::ReduceScatter {
        rounds::forwards(&mut b, request, rounds(blocks));
    }
    b.build()
}

/// As [`plan`]; steps are generated on demand. `longest` gives the number of elements of the
/// longest message.
pub(crate) fn programs<R: Rounds + 'static>(
    request: &Request,
    rounds: impl Fn(Vec<Span>) -> R,
    longest: impl Fn(&[Span]) -> usize,
) -> Result<Box<dyn DynScheduleSource>> {
    let (collective, blocks) = (request.kind.with_root(0), request.block_spans());
    let there = || Blocks::forwards(request, collective.clone(), &rounds, blocks.clone());
    let back = || {
        let scratch = scratch_after(request, &blocks, &longest);
        Blocks::backwards(
            request,
            collective.clone(),
            &rounds,
            blocks.clone(),
            scratch,
        )
    };
    Ok(match request.kind {
        Kind::Allgather => streamed(request, collective.clone(), there()),
        Kind::ReduceScatter => streamed(request, collective.clone(), back()),
        _ => {
            let (first, second) = (back(), there());
            streamed(request, collective.clone(), Consecutive { first, second })
        }
    })
}

/// The `collective` that runs `first` and then `second` over the same buffers: the input is that of
/// the first, the output that of the second.
pub(in crate::plan) fn in_sequence(
    collective: Collective,
    first: Schedule,
    second: Schedule,
) -> Result<Schedule> {
    let mut b = Schedule::builder(first.ranks(), first.ports(), collective);
    for (r, (first, second)) in first.layout().iter().zip(second.layout()).enumerate() {
        let len = first.len.max(second.len);
        b.layout(r, len, first.input.clone(), second.output.clone());
    }
    for schedule in [first, second] {
        for (r, program) in schedule.into_programs().into_iter().enumerate() {
            for step in program {
                b.step(r, step);
            }
        }
    }
    b.build()
}

/// Rounds as a schedule whose steps are generated on demand. A rank's buffer holds all blocks one
/// after another.
#[derive(Debug)]
pub(in crate::plan) struct Blocks<R> {
    exchange: Exchange<R>,
    collective: Collective,
    blocks: Vec<Span>,
    elements: usize,
    scratch: usize,
}

impl<R: Rounds> Blocks<R> {
    /// The rounds in order; every message is stored.
    pub(in crate::plan) fn forwards(
        request: &Request,
        collective: Collective,
        rounds: impl Fn(Vec<Span>) -> R,
        blocks: Vec<Span>,
    ) -> Self {
        Blocks {
            exchange: Exchange::forwards(rounds(blocks.clone()), request.ports),
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

/// Number of scratch elements. Only unidirectional ranks need them, and no broadcast: see
/// [`rounds::needs_scratch`].
pub(in crate::plan) fn scratch_after(
    request: &Request,
    blocks: &[Span],
    longest: impl Fn(&[Span]) -> usize,
) -> Option<usize> {
    let needed = request.kind.reduces() && !request.ports.can_relay();
    needed.then(|| longest(blocks))
}

impl<R: Rounds> StepAt for Blocks<R> {
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
