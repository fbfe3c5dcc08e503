//! Circulant allgather, its reversal reduce-scatter, and allreduce, which is one after the other:
//! logarithmic for any number of ranks.
//!
//! Source: Träff, "(Poly)logarithmic time construction of round-optimal n-block broadcast
//! schedules", Algorithm 7, and the same backwards. Ports: bidirectional, one-ported. Symbols: `p`
//! ranks, `m` elements in all blocks together, `b = m/p` where they are equal, `L = ceil(log2 p)`,
//! skips as in [`schedule`](super::schedule). Rounds: `L`, optimal; `2L` for the allreduce. Volume:
//! `(p-1) m`, allreduce `2 (p-1) m`. Time for equal blocks: `L alpha + (p-1) beta b`, optimal; the
//! reduce-scatter takes `(p-1) gamma b` more, the allreduce `2L alpha + (p-1)(2 beta + gamma) b`.
//! Restrictions: operators must commute; blocks may have any sizes. The request's segments are
//! ignored but for their sum.
//!
//! In round `k` rank `r` has blocks `r .. r + skip[k]`, sends the first `skip[k+1] - skip[k]` of
//! them to `r - skip[k]`, and receives the next ones from `r + skip[k]`, all modulo `p`. Blocks
//! stay where they stand in the vector, which takes two spans at most; nothing is moved
//! locally. The reduce-scatter goes from the greatest skip to 1: rank `r` keeps `r ..`, sends what
//! lies `skip[k]` ahead, and combines what comes from behind.
//!
//! `p = 3`, skips 1, 2: 0→2 block 0, 1→0 block 1, 2→1 block 2; 0→1 block 0, 1→2 block 1, 2→0 block
//! 2.

use super::reduce;
use super::schedule::Circulant;
use crate::collective::Kind;
use crate::error::Result;
use crate::plan::Request;
use crate::plan::exchange::compose;
use crate::plan::exchange::rounds::{Message, cyclic, equal_size};
use crate::plan::registry::row;
use crate::plan::registry::{Algorithm, ClosedForm, Planner};
use crate::schedule::{Schedule, Span};

pub(in crate::plan) const ALLREDUCE: Algorithm = Algorithm {
    name: "circulant-rsag",
    collective: Kind::Allreduce,
    segmented: false,
    transfers: row::logarithmic_twice,
    source: "Träff, circulant reduce-scatter and allgather",
    rounds: "2 ceil(log2 p)",
    volume: "2(p-1) m",
    planner: Planner::Direct(allreduce),
    closed_form: ClosedForm::Of(allreduce_time),
    ..reduce::REDUCE.for_another_collective()
};

pub(in crate::plan) const ALLGATHER: Algorithm = Algorithm {
    collective: Kind::Allgather,
    commutative_only: false,
    segmented: false,
    transfers: row::logarithmic,
    source: "Träff, circulant allgather",
    rounds: "ceil(log2 p)",
    planner: Planner::Direct(plan),
    closed_form: ClosedForm::Of(time),
    ..reduce::REDUCE.for_another_collective()
};

pub(in crate::plan) const REDUCE_SCATTER: Algorithm =
    row::reduce_scatter(ALLGATHER, reduce_scatter_time);

/// Plans the allgather.
///
/// # Errors
/// When the request's parts do not fit together.
pub fn plan(request: &Request) -> Result<Schedule> {
    compose::allgather(request, exchanges)
}

/// Plans the allreduce.
///
/// # Errors
/// When the request's parts do not fit together.
pub fn allreduce(request: &Request) -> Result<Schedule> {
    compose::allreduce(request, exchanges)
}

/// The rounds of the allgather.
fn exchanges(blocks: Vec<Span>) -> impl DoubleEndedIterator<Item = Vec<Message>> {
    let p = blocks.len();
    let graph = Circulant::new(p);
    (0..graph.rounds()).map(move |k| {
        let (skip, count) = (graph.skips()[k], graph.skips()[k + 1] - graph.skips()[k]);
        let message = |r: usize| Message::new(r, (r + p - skip) % p, cyclic(&blocks, r, count));
        (0..p).map(message).collect()
    })
}

/// The executed time of the allgather, when the blocks are equal.
pub fn time(request: &Request) -> Option<f64> {
    let b = equal_size(request, &request.block_spans())?;
    Some(sum_of_rounds(request, b, |n| request.transfer_time(n)))
}

/// The executed time of the reduce-scatter, when the blocks are equal.
pub fn reduce_scatter_time(request: &Request) -> Option<f64> {
    let b = equal_size(request, &request.reduce_scatter_spans())?;
    Some(sum_of_rounds(request, b, |n| {
        request.transfer_time(n) + request.combine_time(n)
    }))
}

/// The executed time of the allreduce, when `p` divides `m`.
pub fn allreduce_time(request: &Request) -> Option<f64> {
    let (p, m) = (request.ranks, request.elements());
    if !request.closed_forms_hold() || p == 0 || !m.is_multiple_of(p) {
        return None;
    }
    Some(sum_of_rounds(request, m / p, |n| {
        2.0 * request.transfer_time(n) + request.combine_time(n)
    }))
}

/// The time of all rounds, each of which takes `time` of so many elements.
fn sum_of_rounds(request: &Request, block: usize, time: impl Fn(usize) -> f64) -> f64 {
    let graph = Circulant::new(request.ranks);
    let counts = graph.skips().windows(2).map(|pair| pair[1] - pair[0]);
    counts.map(|count| time(count * block)).sum()
}
