//! Swing allgather, reduce-scatter (its rounds backwards) and allreduce: the exchanges of recursive
//! doubling, between ranks that are nearer to each other.
//!
//! - Source: De Sensi, Bonato, Saam, Hoefler, "Swing: Short-cutting Rings for Higher Bandwidth
//!   Allreduce" (2024); the butterflies of De Sensi et al., "Bine Trees" (2025).
//! - Ports: uni- or bidirectional.
//! - Symbols: `p` ranks, `m` elements in all blocks together, `b = m/p` if they are equal,
//!   `n = 2^d` the largest power of two up to `p`.
//! - Rounds, bidirectional: `d`, two more for `p != n`; allreduce `2d`, two more.
//! - Time for equal blocks and `p = n`: `d alpha + (p-1) beta b` bidirectional, `2d alpha + 2(p-1)
//!   beta b` unidirectional; the reduce-scatter `(p-1) gamma b` more; the allreduce both. That of
//!   exchanging whole vectors is the time of [recursive doubling](super::doubling_allreduce). It
//!   differs where distances differ.
//! - Volume: `(p-1) m`; allreduce `2(n-1) m + 2(p-n) m`. Whole vectors: `d n m + 2(p-n) m`.
//! - Restrictions: operators must commute.
//! - Scratch: for the reduction on unidirectional ranks, the size of the longest message; for whole
//!   vectors `m`.
//! - Spans: a message has up to `p/2` of them, of the allreduce at most two.
//!
//! In the exchange with number `s` the partner of an even member `r` is `r + rho(s)`, that of an
//! odd one `r - rho(s)`, modulo `n`, with `rho(s) = (1 - (-2)^(s+1))/3`: 1, -1, 3, -5, 11, .. . The
//! allgather goes from far to near, so that the longest messages go to neighbours. For `p != n` the
//! neighbours `2i`, `2i + 1` are one member for the first `p - n` values of `i`: the second one
//! gives its block before the exchanges and gets all others after them. The blocks of the allreduce
//! are in the order of the members' numbers to base -2, read backwards, which makes those of a
//! message neighbours.
//!
//! Example, allgather, `p = 4`: 0↔3, 1↔2 (own block); 0↔1, 2↔3 (two blocks).

use super::doubling_allreduce;
use crate::error::Result;
use crate::plan::build::compose;
use crate::plan::build::cube::{folded, members_of};
use crate::plan::build::rounds::{Message, equal_size, joined, time_of_combining, time_of_round};
use crate::plan::registry::row;
use crate::plan::registry::{Algorithm, ClosedForm, Planner};
use crate::plan::{Request, consecutive, evenly};
use crate::schedule::collective::Kind;
use crate::schedule::{Schedule, Span, Spans};

pub(in crate::plan) const ALLGATHER: Algorithm = Algorithm {
    transfers: row::parts_of_halves,
    source: "De Sensi et al. 2024 (Swing)",
    rounds: "floor(log2 p), if p is not a power of two 2 more (bi); about twice that (uni)",
    volume: "(p-1) m",
    closed_form: ClosedForm::Of(time),
    ..row::new("swing", Kind::Allgather, plan)
};

pub(in crate::plan) const REDUCE_SCATTER: Algorithm = Algorithm {
    volume: "(n-1) m + (p-n)(1+1/p) m, n = 2^floor(log2 p)",
    planner: Planner::Direct(reduce_scatter),
    ..row::reduce_scatter(ALLGATHER, reduce_scatter_time)
};

pub(in crate::plan) const ALLREDUCE: Algorithm = Algorithm {
    collective: Kind::Allreduce,
    commutative_only: true,
    transfers: row::logarithmic_twice,
    rounds: "2 floor(log2 p), if p is not a power of two 2 more (bi); about twice that (uni)",
    volume: "2(p-1) m",
    planner: Planner::Direct(allreduce),
    closed_form: ClosedForm::Of(allreduce_time),
    ..ALLGATHER
};

pub(in crate::plan) const WHOLE_ALLREDUCE: Algorithm = Algorithm {
    name: "swing-doubling",
    commutative_only: true,
    source: ALLGATHER.source,
    planner: Planner::Direct(whole_allreduce),
    ..doubling_allreduce::ALLREDUCE
};

/// Plans the allgather.
pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    compose::allgather(request, |blocks| rounds(&blocks).into_iter())
}

/// Plans the reduce-scatter.
pub(crate) fn reduce_scatter(request: &Request) -> Result<Schedule> {
    compose::reduce_scatter(request, |blocks| rounds(&blocks).into_iter())
}

/// Plans the allreduce; only the sum of the request's segments matters.
pub(crate) fn allreduce(request: &Request) -> Result<Schedule> {
    compose::allreduce(request, |_| {
        rounds(&blocks_in_order(request.ranks, request.elements())).into_iter()
    })
}

/// Plans the allreduce by whole vectors; only the sum of the request's segments matters.
fn whole_allreduce(request: &Request) -> Result<Schedule> {
    doubling_allreduce::plan_by(request, partner)
}

/// The partner of member `j` of `n` in the exchange with number `s`.
fn partner(j: usize, s: u32, n: usize) -> usize {
    // (1 - (-2)^(s+1)) / 3, modulo the powers of two.
    let power = 1usize.wrapping_shl(s + 1);
    let rho = match s % 2 {
        0 => (1 + power) / 3,
        _ => ((power - 1) / 3).wrapping_neg(),
    };
    let moved = if j.is_multiple_of(2) {
        j.wrapping_add(rho)
    } else {
        j.wrapping_sub(rho)
    };
    moved & (n - 1)
}

/// The rounds of the allgather of these blocks, by rank.
fn rounds(blocks: &[Span]) -> Vec<Vec<Message>> {
    let p = blocks.len();
    let members = members_of(p, 0);
    let (n, pairs) = (members.len(), folded(p));
    let into = (0..pairs).map(|i| Message::new(2 * i + 1, 2 * i, blocks[2 * i + 1]));
    let mut rounds = vec![into.collect::<Vec<_>>()];
    // By member: the blocks that it has.
    let of = |(j, &rank): (usize, &usize)| {
        let own = blocks[rank..].iter().take(if j < pairs { 2 } else { 1 });
        joined(own.copied())
    };
    let mut held: Vec<Spans> = members.iter().enumerate().map(of).collect();
    for s in (0..n.ilog2()).rev() {
        let messages = (0..n).map(|j| {
            let to = members[partner(j, s, n)];
            Message::new(members[j], to, held[j].clone())
        });
        rounds.push(messages.collect());
        let both = |j: usize| joined(held[j].iter().chain(&held[partner(j, s, n)]).copied());
        held = (0..n).map(both).collect();
    }
    let end = blocks.iter().map(|block| block.end()).max().unwrap_or(0);
    let out = (0..pairs).map(|i| {
        let own = blocks[2 * i + 1];
        let others = [Span::from(0..own.offset), Span::from(own.end()..end)];
        Message::new(2 * i, 2 * i + 1, joined(others.into_iter()))
    });
    rounds.push(out.collect());
    rounds
}

/// By rank: its block of a vector of `m` elements, in which the blocks that a member has after any
/// number of exchanges are neighbours.
fn blocks_in_order(p: usize, m: usize) -> Vec<Span> {
    let members = members_of(p, 0);
    let n = members.len();
    let parts = consecutive(&evenly(m, n));
    let mut blocks = vec![Span::new(0, 0); p];
    for (j, &rank) in members.iter().enumerate() {
        // The number to base -2.
        const NEGATIVE: usize = usize::MAX / 3 * 2;
        let digits = (NEGATIVE.wrapping_add(j)) ^ NEGATIVE;
        let reversed = digits.reverse_bits().checked_shr(usize::BITS - n.ilog2());
        blocks[rank] = parts[reversed.unwrap_or(0)];
    }
    blocks
}

/// Time of the allgather for equal blocks and a power of two of ranks; `None` otherwise.
pub(crate) fn time(request: &Request) -> Option<f64> {
    let b = equal_size(request, &request.block_spans())?;
    sum_of_rounds(request.ranks, b, |sent| time_of_round(request, sent))
}

/// Time of the reduce-scatter under the same conditions.
pub(crate) fn reduce_scatter_time(request: &Request) -> Option<f64> {
    let b = equal_size(request, &request.reduce_scatter_spans())?;
    sum_of_rounds(request.ranks, b, |sent| {
        time_of_round(request, sent) + time_of_combining(request, sent)
    })
}

/// Time of the allreduce under the same conditions.
pub(crate) fn allreduce_time(request: &Request) -> Option<f64> {
    let (p, m) = (request.ranks, request.elements());
    if !request.closed_forms_hold() || p == 0 || m % p != 0 {
        return None;
    }
    sum_of_rounds(p, m / p, |sent| {
        2.0 * time_of_round(request, sent) + time_of_combining(request, sent)
    })
}

/// The sum over all exchanges of `time(elements that each rank sends)`.
fn sum_of_rounds(p: usize, block: usize, time: impl Fn(usize) -> f64) -> Option<f64> {
    p.is_power_of_two()
        .then(|| (0..p.ilog2()).map(|k| time(block << k)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partners_are_those_of_the_paper() {
        // 1, -1, 3, -5, 11.
        let of_zero: Vec<_> = (0..5).map(|s| partner(0, s, 32)).collect();
        assert_eq!(of_zero, [1, 31, 3, 27, 11]);
        for n in (0..10).map(|d| 1usize << d) {
            for s in 0..n.ilog2() {
                assert!(
                    (0..n).all(|j| partner(partner(j, s, n), s, n) == j && partner(j, s, n) != j)
                );
            }
        }
    }

    #[test]
    fn messages_of_the_allreduce_have_at_most_two_spans() {
        for p in 1..140 {
            let blocks = blocks_in_order(p, 5 * p + 3);
            let longest = rounds(&blocks).into_iter().flatten().map(|m| m.sent.len());
            assert!(longest.max().unwrap_or(0) <= 2, "p={p}");
        }
    }
}
