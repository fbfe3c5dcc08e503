//! Bruck's allgather, reduce-scatter (its rounds backwards) and allreduce (one after the other):
//! logarithmic for any number of ranks.
//!
//! Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all
//! communications in multiport message-passing systems" (1997). Ports: both. Symbols: `p` ranks,
//! `m` elements in all blocks together, `b = m/p` where they are equal, `q = ceil(log2 p)`. Rounds:
//! `q` (bidirectional), twice as many for allreduce. Volume: `(p-1) m`, allreduce `2(p-1) m`.
//! Time for equal blocks: `q alpha + (p-1) beta b`, twice that on unidirectional ranks where `p` is
//! a power of two; the reduce-scatter takes `(p-1) gamma b` more. Restrictions: operators must
//! commute. Scratch: on unidirectional ranks, the longest message to reduce-scatter.
//!
//! In round `k` rank `r` has blocks `r .. r + 2^k`, sends as many of them as are still missing to
//! `r - 2^k`, and receives the next ones from `r + 2^k`, all modulo `p`. Blocks stay where they
//! stand in the vector, which takes two spans at most; nothing is moved locally.
//!
//! `p = 3`: 0→2 block 0, 1→0 block 1, 2→1 block 2; 0→1 block 0, 1→2 block 1, 2→0 block 2.

use super::compose;
use super::rounds::{Message, cyclic, doublings, equal_size, time_of_combining, time_of_round};
use crate::collective::Kind;
use crate::error::Result;
use crate::plan::Request;
use crate::plan::registry::row;
use crate::plan::registry::{Algorithm, ClosedForm, Planner};
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
///
/// # Errors
/// When the request is inconsistent.
pub fn plan(request: &Request) -> Result<Schedule> {
    compose::allgather(request, |blocks| allgather(0, blocks))
}

/// Plans the reduce-scatter.
///
/// # Errors
/// When the request is inconsistent.
pub fn reduce_scatter(request: &Request) -> Result<Schedule> {
    compose::reduce_scatter(request, |blocks| allgather(0, blocks))
}

/// Plans the allreduce; only the sum of the request's segments matters.
///
/// # Errors
/// When the request is inconsistent.
pub fn allreduce(request: &Request) -> Result<Schedule> {
    compose::allreduce(request, |blocks| allgather(0, blocks))
}

/// The rounds in which number `v`, which is rank `v + first`, sends blocks from `v` on to lower
/// numbers.
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

/// The executed time of the allgather for equal blocks and, on unidirectional ranks, a power of two
/// of them.
pub fn time(request: &Request) -> Option<f64> {
    let b = equal_size(request, &request.block_spans())?;
    sum_of_rounds(request, |count| time_of_round(request, count * b))
}

/// The executed time of the reduce-scatter, likewise.
pub fn reduce_scatter_time(request: &Request) -> Option<f64> {
    let b = equal_size(request, &request.reduce_scatter_spans())?;
    sum_of_rounds(request, |count| {
        time_of_round(request, count * b) + time_of_combining(request, count * b)
    })
}

/// The executed time of the allreduce, likewise.
pub fn allreduce_time(request: &Request) -> Option<f64> {
    let (p, m) = (request.ranks, request.elements());
    if !request.closed_forms_hold() || p == 0 || m % p != 0 {
        return None;
    }
    let b = m / p;
    sum_of_rounds(request, |count| {
        2.0 * time_of_round(request, count * b) + time_of_combining(request, count * b)
    })
}

/// The sum over all rounds of what `time` says about their numbers of blocks, where all ranks are
/// in step.
pub(super) fn sum_of_rounds(request: &Request, time: impl Fn(usize) -> f64) -> Option<f64> {
    let p = request.ranks;
    if !request.ports.is_bidirectional() && !p.is_power_of_two() {
        return None;
    }
    let counts = (0..doublings(p)).map(|k| (1usize << k).min(p - (1 << k)));
    Some(counts.map(time).sum())
}
