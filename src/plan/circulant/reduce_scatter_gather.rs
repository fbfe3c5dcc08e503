//! Circulant reduction: a circulant reduce-scatter, then a gather to the root along the same skips.
//!
//! - Source: Träff's circulant reduce-scatter and allgather, the latter towards one rank only.
//! - Symbols: `p` ranks, `m` elements in `p` blocks as equal as possible, `L = ceil(log2 p)`, skips
//!   as in [`schedule`](super::schedule).
//! - Rounds: `2L`.
//! - Time, when `p` divides `m`: `2L alpha + 2 (p-1)/p beta m + (p-1)/p gamma m`.
//! - Restrictions: the operator must commute. Any number of ranks: none is set aside to reach a
//!   power of two. Of the request's segments only the sum of their sizes counts.
//!
//! Ranks and blocks are numbered from the root; indices are modulo `p`. No data is moved locally:
//! blocks stay at their places in the vector.
//!
//! The reduce-scatter goes through the skips from the greatest to 1. Let `s'` be the current skip
//! and `s` the next greater one. Rank `r` sends its partial blocks `r + s' .. r + s` to `r + s'`
//! and combines the message from `r - s'` into its blocks `r .. r + s - s'`. At the end rank `r`
//! holds block `r`.
//!
//! The gather goes through the skips from 1 to the greatest. In round `k` the root needs the blocks
//! `skip[k] .. skip[k+1]` of rank `skip[k]`, so rank `skip[k]` needs them before round `k`, and so
//! on.
//!
//! Example, `p = 3`, skips 2, 1:
//! - reduce-scatter, skip 2: 0→2 block 2, 1→0 block 0, 2→1 block 1;
//! - reduce-scatter, skip 1: 0→1 block 1, 1→2 block 2, 2→0 block 0;
//! - gather: 1→0 block 1, then 2→0 block 2.

use super::schedule::Circulant;
use crate::machine::Linear;
use crate::plan::prelude::*;

pub(in crate::plan) const REDUCE: Row = Row {
    ports: PortModels::Bi,
    commutative_only: true,
    source: "Träff, circulant reduce-scatter and gather",
    rounds: "2 ceil(log2 p)",
    volume: "(p-1) m + at most ceil(log2 p)/2 m",
    ..row::new("circulant-rsg", Kind::Reduce, plan).with_formula(time)
};

pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    let (p, root) = (request.ranks, request.root);
    let (mut b, vector) = over_vector(request, Collective::Reduce { root }, 0);
    let blocks = VectorBlocks {
        graph: Circulant::new(p),
        blocks: consecutive(&evenly(vector.len, p)),
        root,
    };
    blocks.reduce_scatter(&mut b);
    rounds::forwards(&mut b, request, blocks.gather().into_iter());
    b.build()
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    let (p, m) = (request.ranks, request.elements());
    if m % p != 0 {
        return None;
    }
    if m == 0 {
        return Some(0.0);
    }
    let moved = crate::machine::bytes(m / p * (p - 1), request.element_bytes);
    let (rounds, moved) = (Circulant::new(p).rounds() as f64, moved as f64);
    let cost = &request.cost;
    let Linear {
        alpha, beta, gamma, ..
    } = cost.linear()?;
    Some(2.0 * rounds * alpha + 2.0 * beta * moved + gamma * moved)
}

struct VectorBlocks {
    graph: Circulant,
    blocks: Vec<Span>,
    root: usize,
}

impl VectorBlocks {
    fn rank(&self, v: usize) -> usize {
        (v + self.root) % self.graph.ranks()
    }

    fn reduce_scatter(&self, b: &mut Builder) {
        let p = self.graph.ranks();
        for pair in self.graph.skips().windows(2).rev() {
            let (to, from) = (pair[0], p - pair[0]);
            let count = pair[1] - pair[0];
            for v in 0..p {
                let (theirs, mine) = (
                    cyclic(&self.blocks, v + to, count),
                    cyclic(&self.blocks, v, count),
                );
                if !theirs.is_empty() {
                    b.step(self.rank(v), Step::send(self.rank(v + to), theirs));
                }
                if !mine.is_empty() {
                    let combine = Step::recv_combine(self.rank(v + from), mine, Order::MineFirst);
                    b.step(self.rank(v), combine);
                }
            }
        }
    }

    /// In each round number `v` sends blocks from `v` on.
    fn gather(&self) -> Vec<Vec<Message>> {
        let skips = self.graph.skips();
        let mut rounds = vec![Vec::new(); self.graph.rounds()];
        // Ranks and the number of blocks each must hold, its own and the following ones, before the
        // rounds visited so far. The loop visits the rounds from the last to the first.
        let mut needed = vec![(0, self.graph.ranks())];
        for (k, round) in rounds.iter_mut().enumerate().rev() {
            for i in 0..needed.len() {
                let (v, count) = &mut needed[i];
                if *count > skips[k] {
                    let (from, rest) = (*v + skips[k], *count - skips[k]);
                    let blocks = cyclic(&self.blocks, from, rest);
                    round.push(Message::new(self.rank(from), self.rank(*v), blocks));
                    *count = skips[k];
                    needed.push((from, rest));
                }
            }
        }
        rounds
    }
}
