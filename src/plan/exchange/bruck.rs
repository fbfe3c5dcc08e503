//! Bruck's allgather, reduce-scatter (its rounds backwards) and allreduce (one after the other):
//! logarithmic for any number of ranks.
//!
//! - Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all
//!   communications in multiport message-passing systems" (1997).
//! - Ports: uni- or bidirectional.
//! - Symbols: `p` ranks, `m` elements in all blocks together, `b = m/p` if they are equal,
//!   `q = ceil(log2 p)`.
//! - Rounds: `q` (bidirectional), twice as many for the allreduce.
//! - Time for equal blocks: `q alpha + (p-1) beta b`, twice that on unidirectional ranks if `p` is
//!   a power of two. The reduce-scatter takes `(p-1) gamma b` more.
//! - Volume: `(p-1) m`, allreduce `2(p-1) m`.
//! - Restrictions: operators must commute.
//! - Scratch: for the reduce-scatter on unidirectional ranks, the size of the longest message.
//!
//! At the start of round `k` rank `r` has the blocks `r .. r + 2^k`. It sends those that are still
//! missing there to `r - 2^k`, and receives the next ones from `r + 2^k`, all modulo `p`. Blocks
//! stay at their final position in the vector, so a message has at most two spans and nothing is
//! moved locally.
//!
//! Example, `p = 3`: 0→2 block 0, 1→0 block 1, 2→1 block 2; 0→1 block 0, 1→2 block 1, 2→0 block 2.

use crate::error::Result;
use crate::plan::Request;
use crate::plan::build::compose;
use crate::plan::build::rounds::{
    Message, cyclic, doublings, equal_size, time_of_combining, time_of_round,
};
use crate::plan::registry::row;
use crate::plan::registry::{Algorithm, ClosedForm, Planner};
use crate::schedule::collective::Kind;
use crate::schedule::{Schedule, Span};

pub(in crate::plan) const ALLGATHER: Algorithm = Algorithm {
    source: "Bruck, Ho, Kipnis, Upfal, Weathersby 1997",
    rounds: "ceil(log2 p) (bi), 2 ceil(log2 p) (uni; p not a power of two: more)",
    volume: "(p-1) m",
    closed_form: ClosedForm::Of(time),
    ..row::new("bruck", Kind::Allgather, plan)
};

pub(in crate::plan) const ALLREDUCE: Algorithm = Algorithm {
    collective: Kind::Allreduce,
    commutative_only: true,
    transfers: row::logarithmic_twice,
    source: "Bruck et al. 1997, there and back",
    rounds: "2 ceil(log2 p) (bi), 4 ceil(log2 p) (uni; p not a power of two: more)",
    volume: "2(p-1) m",
    planner: Planner::Direct(allreduce),
    closed_form: ClosedForm::Of(allreduce_time),
    ..ALLGATHER
};

pub(in crate::plan) const REDUCE_SCATTER: Algorithm = Algorithm {
    planner: Planner::Direct(reduce_scatter),
    ..row::reduce_scatter(ALLGATHER, reduce_scatter_time)
};

/// Plans the allgather.
pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    compose::allgather(request, |blocks| allgather(0, blocks))
}

/// Plans the reduce-scatter.
pub(crate) fn reduce_scatter(request: &Request) -> Result<Schedule> {
    compose::reduce_scatter(request, |blocks| allgather(0, blocks))
}

/// Plans the allreduce; only the sum of the request's segments matters.
pub(crate) fn allreduce(request: &Request) -> Result<Schedule> {
    compose::allreduce(request, |blocks| allgather(0, blocks))
}

/// The rounds of the allgather if rank `v + first` has number `v`. Number `v` sends blocks from `v`
/// on to lower numbers.
pub(super) fn allgather(
    first: usize,
    blocks: Vec<Span>,
) -> impl DoubleEndedIterator<Item = Vec<Message>> {
    let p = blocks.len();
    let rank = move |v: usize| (v + first) % p;
    (0..doublings(p)).map(move |k| {
        let distance = 1usize << k;
        let count = distance.min(p - distance);
        let message = |v: usize| {
            let to = rank(v + p - distance);
            Message::new(rank(v), to, cyclic(&blocks, v, count))
        };
        (0..p).map(message).collect()
    })
}

/// Time of the allgather for equal blocks and, on unidirectional ranks, a power of two of ranks;
/// `None` otherwise.
pub(crate) fn time(request: &Request) -> Option<f64> {
    let b = equal_size(request, &request.block_spans())?;
    sum_of_rounds(request, |count| time_of_round(request, count * b))
}

/// Time of the reduce-scatter under the same conditions.
pub(crate) fn reduce_scatter_time(request: &Request) -> Option<f64> {
    let b = equal_size(request, &request.reduce_scatter_spans())?;
    sum_of_rounds(request, |count| {
        time_of_round(request, count * b) + time_of_combining(request, count * b)
    })
}

/// Time of the allreduce under the same conditions.
pub(crate) fn allreduce_time(request: &Request) -> Option<f64> {
    let (p, m) = (request.ranks, request.elements());
    if !request.closed_forms_hold() || p == 0 || m % p != 0 {
        return None;
    }
    let b = m / p;
    sum_of_rounds(request, |count| {
        2.0 * time_of_round(request, count * b) + time_of_combining(request, count * b)
    })
}

/// The sum over all rounds of `time(blocks sent in the round)`; `None` if ranks do not run in
/// lock-step.
pub(super) fn sum_of_rounds(request: &Request, time: impl Fn(usize) -> f64) -> Option<f64> {
    let p = request.ranks;
    if !request.ports.is_bidirectional() && !p.is_power_of_two() {
        return None;
    }
    let counts = (0..doublings(p)).map(|k| (1usize << k).min(p - (1 << k)));
    Some(counts.map(time).sum())
}
