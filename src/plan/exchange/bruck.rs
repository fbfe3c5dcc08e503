//! Bruck's allgather, reduce-scatter (its rounds backwards) and allreduce (one after the other):
//! logarithmic for any number of ranks.
//!
//! - Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all
//!   communications in multiport message-passing systems" (1997).
//! - Symbols: `p` ranks, `m` elements in all blocks together, `b = m/p` if they are equal,
//!   `q = ceil(log_(k+1) p)`.
//! - Time for equal blocks: `q alpha + (p-1) beta b` for one port, twice that on unidirectional
//!   ranks if `p` is a power of two. The reduce-scatter takes `(p-1) gamma b` more. For `k` ports
//!   and `p` a power of `k+1`: `q alpha + (p-1)/k beta b`; for other `p` the blocks of the last
//!   round are shared evenly, too.
//! - Scratch: for the reduce-scatter on unidirectional ranks, the size of the longest message; with
//!   several ports, of all messages that a rank receives in a round.
//!
//! At the start of a round rank `r` has the blocks `r .. r + c`, for `c = 1, k+1, (k+1)^2, ..`. It
//! receives the next `c` through each port, or an even share if fewer are missing, from the rank
//! whose own block is the first of them, all modulo `p`. Blocks stay at their final position in the
//! vector, so a message has at most two spans and nothing is moved locally.
//!
//! Example, `p = 3`: 0→2 block 0, 1→0 block 1, 2→1 block 2; 0→1 block 0, 1→2 block 1, 2→0 block 2.

use crate::plan::prelude::*;

pub(in crate::plan) const ALLGATHER: Row = Row {
    k_ported: true,
    source: "Bruck, Ho, Kipnis, Upfal, Weathersby 1997",
    rounds: "ceil(log_{k+1} p) on k ports (bi), up to 3 times that (uni)",
    ..row::new("bruck", Kind::Allgather, plan).with_formula(time)
};

pub(in crate::plan) const ALLREDUCE: Row = Row {
    transfers: row::logarithmic_twice,
    source: "Bruck et al. 1997, there and back",
    rounds: "2 ceil(log_{k+1} p) on k ports (bi), up to 3 times that (uni)",
    volume: "2(p-1) m",
    ..ALLGATHER.also(Kind::Allreduce)
};

pub(in crate::plan) const REDUCE_SCATTER: Row = ALLGATHER.also(Kind::ReduceScatter);

pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    compose::plan(request, |blocks| allgather(request, 0, blocks))
}

/// The rounds of the allgather if rank `v + first` has number `v`. Number `v` sends blocks from `v`
/// on to lower numbers.
pub(super) fn allgather(
    request: &Request,
    first: usize,
    blocks: Vec<Span>,
) -> impl DoubleEndedIterator<Item = Vec<Message>> + use<> {
    let p = blocks.len();
    let rank = move |v: usize| (v + first) % p;
    let shares = shares(p, request.ports.k());
    shares.into_iter().map(move |round| {
        let messages = round.iter().enumerate().flat_map(|(port, share)| {
            let message = |v: usize| {
                let to = rank(v + p - share.distance);
                Message::new(rank(v), to, cyclic(&blocks, v, share.count)).on_port(port)
            };
            (0..p).map(message).collect::<Vec<_>>()
        });
        messages.collect()
    })
}

/// What each rank receives through a port in a round.
struct PortShare {
    distance: usize,
    /// Number of blocks: those from the source's own on.
    count: usize,
}

/// The shares of all rounds, by round and port, for `k` ports.
fn shares(p: usize, k: usize) -> Vec<Vec<PortShare>> {
    let mut rounds = Vec::new();
    let mut known = 1;
    while known < p {
        let mut distance = known;
        let next = known.saturating_mul(k).min(p - known);
        let counts = evenly(next, k.min(next)).into_iter();
        let share = |count| {
            distance += count;
            PortShare {
                distance: distance - count,
                count,
            }
        };
        rounds.push(counts.map(share).collect());
        known += next;
    }
    rounds
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    sum_of_rounds(request, equal_block(request)?, |shares| {
        let messages = time_of_round(request, shares[0]);
        there_and_back(request, messages, time_of_combining_all(request, shares))
    })
}

/// The sum over all rounds of `time(elements of a rank's messages, the largest first)`, for equal
/// blocks; `None` if ranks do not run in lock-step.
pub(super) fn sum_of_rounds(
    request: &Request,
    block: usize,
    time: impl Fn(&[usize]) -> f64,
) -> Option<f64> {
    let rounds = shares(request.ranks, request.ports.k());
    let is_even = |share: &PortShare| cycle(request.ranks, share.distance).is_multiple_of(2);
    if !request.ports.can_relay() && !rounds.iter().flatten().all(is_even) {
        return None;
    }
    let time = |round: Vec<PortShare>| {
        let elements: Vec<usize> = round.iter().map(|share| share.count * block).collect();
        time(&elements)
    };
    Some(rounds.into_iter().map(time).sum())
}

/// Number of ranks along a cycle of messages over this distance.
pub(super) fn cycle(p: usize, distance: usize) -> usize {
    let (mut a, mut b) = (p, distance);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    p / a
}
