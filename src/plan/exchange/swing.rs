//! Swing allgather, reduce-scatter (its rounds backwards) and allreduce: the exchanges of recursive
//! doubling, between ranks that are nearer to each other.
//!
//! - Source: De Sensi, Bonato, Saam, Hoefler, "Swing: Short-cutting Rings for Higher Bandwidth
//!   Allreduce" (2024); the butterflies of De Sensi et al., "Bine Trees" (2025).
//! - Symbols: `p` ranks, `m` elements in all blocks together, `b = m/p` if they are equal,
//!   `n = 2^d` the largest power of two up to `p`.
//! - Rounds, bidirectional: `d`, two more for `p != n`; allreduce `2d`, two more.
//! - Time for equal blocks and `p = n`: `d alpha + (p-1) beta b` bidirectional, `2d alpha + 2(p-1)
//!   beta b` unidirectional; the reduce-scatter `(p-1) gamma b` more; the allreduce both. That of
//!   exchanging whole vectors is the time of [recursive doubling](super::doubling_allreduce). It
//!   differs where distances differ.
//! - Volume: `(p-1) m`; allreduce `2(n-1) m + 2(p-n) m`. Whole vectors: `d n m + 2(p-n) m`.
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
use crate::machine::numbers::id;
use crate::plan::prelude::*;

pub(in crate::plan) const ALLGATHER: Row = Row {
    transfers: row::parts_of_halves,
    source: "De Sensi et al. 2024 (Swing)",
    rounds: "floor(log2 p), if p is not a power of two 2 more (bi); about twice that (uni)",
    ..row::planned_by("swing", Kind::Allgather, Planner::Streamed(programs)).with_formula(time)
};

pub(in crate::plan) const REDUCE_SCATTER: Row = Row {
    volume: "(n-1) m + (p-n)(1+1/p) m, n = 2^floor(log2 p)",
    ..ALLGATHER.also(Kind::ReduceScatter)
};

pub(in crate::plan) const ALLREDUCE: Row = Row {
    transfers: row::logarithmic_twice,
    rounds: "2 floor(log2 p), if p is not a power of two 2 more (bi); about twice that (uni)",
    volume: "2(p-1) m",
    planner: Planner::Direct(allreduce),
    ..ALLGATHER.also(Kind::Allreduce)
};

pub(in crate::plan) const WHOLE_ALLREDUCE: Row = Row {
    name: "swing-doubling",
    commutative_only: true,
    ranks_agree: |p, _| p <= 7,
    source: ALLGATHER.source,
    planner: Planner::Direct(whole_allreduce),
    ..doubling_allreduce::ALLREDUCE
};

fn programs(request: &Request) -> Result<Box<dyn DynScheduleSource>> {
    let longest = |blocks: &[Span]| Swing::new(blocks.to_vec()).longest();
    compose::programs(request, Swing::new, longest)
}

pub(crate) fn allreduce(request: &Request) -> Result<Schedule> {
    let d = request.ranks.ilog2();
    compose::plan(request, |_| {
        let blocks = blocks_in_order(request.ranks, request.elements());
        exchanges(&blocks, partner, (0..d).rev()).into_iter()
    })
}

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

/// The rounds of the allgather, generated on demand: the first and the last one, of ranks that are
/// no members, and the exchanges between them.
#[derive(Debug)]
struct Swing {
    blocks: Vec<Span>,
    members: Vec<usize>,
    /// Number of members that have a second rank.
    pairs: usize,
}

impl Swing {
    fn new(blocks: Vec<Span>) -> Swing {
        Swing {
            members: members_of(blocks.len(), 0),
            pairs: folded(blocks.len()),
            blocks,
        }
    }

    /// The number of the exchange that is round `k`, from far to near.
    fn exchange(&self, k: usize) -> Option<u32> {
        (self.members.len().ilog2())
            .checked_sub(id(k))
            .filter(|_| k > 0)
    }

    /// Whether `rank` is the second one of a pair; `None` if it is in none.
    fn second(&self, rank: usize) -> Option<bool> {
        (rank < 2 * self.pairs).then_some(!rank.is_multiple_of(2))
    }

    /// The blocks that member `j` has from the start, or from its second rank.
    fn own(&self, j: usize) -> &[Span] {
        let rank = self.members[j];
        &self.blocks[rank..][..if j < self.pairs { 2 } else { 1 }]
    }

    /// The members whose blocks member `j` has before exchange `s`.
    fn known(&self, j: usize, s: u32) -> Vec<usize> {
        let n = self.members.len();
        let mut known = vec![j];
        for s in s + 1..n.ilog2() {
            for i in 0..known.len() {
                known.push(partner(known[i], s, n));
            }
        }
        known
    }

    /// What member `j` sends in exchange `s`.
    fn held(&self, j: usize, s: u32) -> Spans {
        let known = self.known(j, s).into_iter();
        joined(known.flat_map(|j| self.own(j).iter().copied()))
    }

    /// The message of round `k` between `rank` and the one that it returns: what `rank` sends, or
    /// what it receives.
    fn message(&self, k: usize, rank: usize, sends: bool) -> Option<(usize, Spans)> {
        let (peer, spans) = if let Some(s) = self.exchange(k) {
            let j = member_of(rank, self.pairs)?;
            let peer = partner(j, s, self.members.len());
            let spans = self.held(if sends { j } else { peer }, s);
            (self.members[peer], spans)
        } else {
            let second = self.second(rank)?;
            let into = k == 0;
            if (second == sends) != into {
                return None;
            }
            let [first, second] = [rank & !1, rank | 1];
            let block = self.blocks[second];
            let end = self.blocks.iter().map(|b| b.end()).max().unwrap_or(0);
            let others = [Span::from(0..block.offset), Span::from(block.end()..end)];
            let spans = if into {
                joined([block].into_iter())
            } else {
                joined(others.into_iter())
            };
            (first + second - rank, spans)
        };
        (!spans.is_empty()).then_some((peer, spans))
    }

    fn longest(&self) -> usize {
        let len = |j| self.own(j).iter().map(|b| b.len).sum::<usize>();
        let of_member = |j| self.known(j, 0).into_iter().map(len).sum();
        let members = 0..self.members.len();
        let all = members.filter(|_| self.members.len() > 1).map(of_member);
        all.max().unwrap_or(0)
    }
}

impl Rounds for Swing {
    fn count(&self) -> usize {
        self.members.len().ilog2() as usize + 2
    }

    fn sent(&self, k: usize, rank: usize) -> Option<(usize, Spans)> {
        self.message(k, rank, true)
    }

    fn received(&self, k: usize, rank: usize) -> Option<(usize, Spans)> {
        self.message(k, rank, false)
    }

    fn is_one_way(&self, k: usize) -> bool {
        self.exchange(k).is_none()
    }

    fn is_uniform(&self, _ports: Ports) -> bool {
        self.pairs == 0 && are_equal(&self.blocks)
    }
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

pub(crate) fn time(request: &Request) -> Option<f64> {
    let (p, b) = (request.ranks, equal_block(request)?);
    let round = |k| {
        let messages = time_of_round(request, b << k);
        there_and_back(request, messages, time_of_combining(request, b << k))
    };
    p.is_power_of_two().then(|| (0..p.ilog2()).map(round).sum())
}
