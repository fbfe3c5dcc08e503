//! Ring allgather, reduce-scatter (its rounds backwards) and allreduce (one after the other).
//!
//! - Symbols: `p` ranks, `m` elements in all blocks together, `b = m/p` if they are equal.
//! - Rounds: `p-1` (bidirectional), twice as many for the allreduce. On unidirectional ranks those
//!   at even positions send first: `2(p-1)` for even `p`.
//! - Time for equal blocks: `(p-1)(alpha + beta b)`, twice that on unidirectional ranks with even
//!   `p`. The reduce-scatter takes `(p-1) gamma b` more, and the allreduce takes `(p-1) gamma b`
//!   more than two allgathers.
//! - Scratch: for the reduce-scatter on unidirectional ranks, one block.
//!
//! In round `k` rank `r` sends block `r-k` to `r+1` and receives block `r-k-1` from `r-1`, all
//! modulo `p`. Blocks arrive at their final position; nothing is moved locally. Empty blocks are
//! not sent. The reduce-scatter runs the rounds backwards and leaves block `r` at rank `r`. On
//! unidirectional ports a rank that receives first combines after sending, so that no rank waits
//! for a combination.
//!
//! Example, `p = 3`: 0→1 block 0, 1→2 block 1, 2→0 block 2; then 0→1 block 2, 1→2 block 0, 2→0
//! block 1.

use crate::plan::prelude::*;

pub(in crate::plan) const ALLGATHER: Row = Row {
    transfers: row::for_each_pair,
    source: "folklore",
    rounds: "p-1 (bi), 2(p-1) (uni, p even)",
    ..row::planned_by("ring", Kind::Allgather, Planner::Streamed(programs)).with_formula(time)
};

pub(in crate::plan) const ALLREDUCE: Row = Row {
    transfers: row::for_each_pair_twice,
    rounds: "2(p-1) (bi), 4(p-1) (uni; p odd: more)",
    volume: "2(p-1) m",
    ..ALLGATHER.also(Kind::Allreduce)
};

pub(in crate::plan) const REDUCE_SCATTER: Row = ALLGATHER.also(Kind::ReduceScatter);

pub(super) fn programs(request: &Request) -> Result<Box<dyn DynScheduleSource>> {
    compose::programs(request, Ring::new, longest)
}

pub(super) fn longest(blocks: &[Span]) -> usize {
    match blocks {
        [] | [_] => 0,
        several => several.iter().map(|b| b.len).max().unwrap_or(0),
    }
}

/// The rounds of the ring. Position `v` is rank `v + first`, and its block `v` travels around the
/// ring.
#[derive(Debug)]
pub(super) struct Ring {
    first: usize,
    blocks: Vec<Span>,
    /// By block, if some block is empty: whether the number of consecutive non-empty blocks
    /// directly before it, and directly after it, is odd.
    odd: Option<Vec<[bool; 2]>>,
}

impl Ring {
    pub(super) fn new(blocks: Vec<Span>) -> Ring {
        Ring::from(0, blocks)
    }

    /// A ring with position 0 at rank `first`.
    pub(super) fn from(first: usize, blocks: Vec<Span>) -> Ring {
        let p = blocks.len();
        let empty = blocks.iter().position(|b| b.len == 0);
        let odd = empty.map(|empty| {
            let mut odd = vec![[false; 2]; p];
            // Count in both directions, starting at an empty block, once around.
            for (side, step) in [(0, 1), (1, p - 1)] {
                let mut at = empty;
                for _ in 0..p {
                    let next = (at + step) % p;
                    odd[next][side] = blocks[at].len > 0 && !odd[at][side];
                    at = next;
                }
            }
            odd
        });
        Ring { first, blocks, odd }
    }

    #[inline]
    fn position(&self, rank: usize) -> usize {
        self.modulo(rank + self.blocks.len() - self.first)
    }

    #[inline]
    fn modulo(&self, n: usize) -> usize {
        let p = self.blocks.len();
        if n >= p { n - p } else { n }
    }

    /// The block that position `v` sends in round `k`.
    #[inline]
    fn block(&self, k: usize, v: usize) -> usize {
        self.modulo(v + self.blocks.len() - k)
    }

    #[inline]
    fn message(&self, peer: usize, block: usize) -> Option<(usize, Spans)> {
        let span = self.blocks[block];
        (span.len > 0).then(|| (peer, span.into()))
    }
}

impl Rounds for Ring {
    fn count(&self) -> usize {
        self.blocks.len() - 1
    }

    #[inline]
    fn sent(&self, k: usize, rank: usize) -> Option<(usize, Spans)> {
        self.message(self.modulo(rank + 1), self.block(k, self.position(rank)))
    }

    #[inline]
    fn received(&self, k: usize, rank: usize) -> Option<(usize, Spans)> {
        let before = self.modulo(rank + self.blocks.len() - 1);
        self.message(before, self.block(k, self.position(before)))
    }

    fn is_uniform(&self, ports: Ports) -> bool {
        let even = self.blocks.len().is_multiple_of(2);
        are_equal(&self.blocks) && (even || ports.can_relay())
    }

    #[inline]
    fn receives_first(&self, k: usize, rank: usize, backwards: bool) -> bool {
        let (p, v) = (self.blocks.len(), self.position(rank));
        match &self.odd {
            // All ranks form one cycle. Its order starts at rank 0.
            None if backwards => (p - rank) % p % 2 == 1,
            None => rank % 2 == 1,
            // The ranks form paths. Each starts at a rank that receives nothing, because that block
            // is empty.
            Some(odd) if backwards => odd[self.block(k, self.modulo(v + p - 1))][1],
            Some(odd) => odd[self.block(k, v)][0],
        }
    }
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    let size = equal_block(request)?;
    let (messages, combined) = (
        time_of_round(request, size),
        time_of_combining(request, size),
    );
    Some(rounds_of(request)? * there_and_back(request, messages, combined))
}

/// `p - 1`; `None` if the rounds do not all take the same time.
pub(super) fn rounds_of(request: &Request) -> Option<f64> {
    let p = request.ranks;
    if p > 1 && !p.is_multiple_of(2) && !request.ports.can_relay() {
        return None;
    }
    let rounds = p.checked_sub(1)? as f64;
    Some(rounds)
}
