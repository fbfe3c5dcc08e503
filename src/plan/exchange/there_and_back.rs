//! What the rounds of an allgather make: itself; run backwards, a reduce-scatter; backwards and forwards, an allreduce.

use super::rounds::{self, Message};
use crate::collective::Collective;
use crate::error::Result;
use crate::plan::{Request, consecutive, evenly};
use crate::schedule::{Builder, Schedule, Span};

/// An allgather whose steps are still to be said: every rank has its block where it stands in the whole.
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
/// When the request's parts do not fit together.
pub(crate) fn allgather<R>(request: &Request, rounds: impl Fn(Vec<Span>) -> R) -> Result<Schedule>
where
    R: DoubleEndedIterator<Item = Vec<Message>>,
{
    request.validate()?;
    let blocks = request.concatenated();
    let mut b = allgather_builder(request, &blocks);
    rounds::forwards(&mut b, request, rounds(blocks));
    b.build()
}

/// The reduce-scatter by these rounds backwards.
///
/// # Errors
/// When the request's parts do not fit together.
pub(crate) fn reduce_scatter<R>(
    request: &Request,
    rounds: impl Fn(Vec<Span>) -> R,
) -> Result<Schedule>
where
    R: DoubleEndedIterator<Item = Vec<Message>>,
{
    request.validate()?;
    let blocks = request.scattered();
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
/// When the request's parts do not fit together.
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
