//! Circulant allgather of `n` parts of each block, and its reversal reduce-scatter: for blocks of very different sizes.
//!
//! Source: Träff, "(Poly)logarithmic time construction of round-optimal n-block broadcast schedules", Algorithm 9 (which also needs Algorithm
//! 6's shift by the rounds left out) and Theorem 3, and the same backwards. Ports: bidirectional, one-ported.
//! Symbols: `p` ranks, `m` elements in all blocks together, `L = ceil(log2 p)`, `q` the number of segments (the paper's `n`): each block is cut
//! into `q` parts, the first ones larger by one element where they cannot be equal.
//! Rounds: `L + q - 1`. Volume: `(p-1) m`. Time when all parts are equal: `(L + q - 1) alpha + (p-1)/p beta m`, the reduce-scatter
//! `(p-1)/p gamma m` more; in any case at most `(L + q - 1)(alpha + beta m / q)` or so (Theorem 3). One huge block is best cut into
//! many parts, equal ones into one. Restrictions: the reduce-scatter's operator must commute.
//!
//! Every rank is the root of a broadcast of its own block, all of them along the same edges at the same time: for root `j`, rank `r` uses
//! the schedules of rank `(r - j) mod p`. A message carries one part for each root, except for the root that it goes to, and for those
//! whose part is empty or yet to come; parts that stand one after another in the vector are one span. A rank needs the schedules of all ranks, which it
//! can compute itself in `O(p log p)`, or gather from the others with a small allgather.
//!
//! `p = 3`, `q = 1`, skips 1, 2: 0→1 block 0, 1→2 block 1, 2→0 block 2; 0→2 block 0, 1→0 block 1, 2→1 block 2.

use super::phases::Phases;
use super::schedule::Circulant;
use super::tables::Tables;
use crate::error::Result;
use crate::plan::exchange::there_and_back::allgather_builder;
use crate::plan::{Request, evenly};
use crate::schedule::{Schedule, Span, Spans, Step};

/// Plans the allgather.
///
/// # Errors
/// When the request's parts do not fit together.
pub fn plan(request: &Request) -> Result<Schedule> {
    request.validate()?;
    let p = request.ranks;
    let blocks = request.concatenated();
    let mut b = allgather_builder(request, &blocks);
    let all = Roots::new(p, &blocks, request.segments.count());
    for i in 0..all.phases.rounds() {
        let k = all.phases.round(i).k;
        let skip = all.graph.skips()[k];
        for r in 0..p {
            let sent = all.message(i, (r + skip) % p);
            if !sent.is_empty() {
                b.step(r, Step::send((r + skip) % p, sent));
            }
            let received = all.message(i, r);
            if !received.is_empty() {
                b.step(r, Step::recv((r + p - skip) % p, received));
            }
        }
    }
    b.build()
}

/// The broadcasts from all roots.
struct Roots {
    graph: Circulant,
    phases: Phases,
    recv: Vec<i8>,
    /// Parts of each root's block.
    parts: usize,
    /// Where they stand: `spans[root * parts + part]`.
    spans: Vec<Span>,
}

impl Roots {
    fn new(p: usize, blocks: &[Span], parts: usize) -> Roots {
        let graph = Circulant::new(p);
        let mut spans = Vec::with_capacity(p * parts);
        for block in blocks {
            let mut offset = block.offset;
            for len in evenly(block.len, parts) {
                spans.push(Span::new(offset, len));
                offset += len;
            }
        }
        Roots {
            phases: Phases::new(graph.rounds(), parts),
            recv: Tables::new(&graph).recv,
            graph,
            parts,
            spans,
        }
    }

    /// What arrives at rank `to` in round `i`. The sender knows it, too: it sends what the receiver's schedules say.
    fn message(&self, i: usize, to: usize) -> Spans {
        let (p, q) = (self.graph.ranks(), self.graph.rounds());
        let round = self.phases.round(i);
        let mut message = Spans::new();
        for root in 0..p {
            // Counted from the root; the root itself receives nothing.
            let me = if to < root { to + p - root } else { to - root };
            if me == 0 {
                continue;
            }
            let Some(part) = round.block(self.recv[me * q + round.k]) else {
                continue;
            };
            let span = self.spans[root * self.parts + part];
            if span.len == 0 {
                continue;
            }
            match message.last_mut() {
                Some(last) if last.end() == span.offset => last.len += span.len,
                _ => message.push(span),
            }
        }
        message
    }
}

/// The executed time of the allgather, when all parts of all blocks are equal.
pub fn time(request: &Request) -> Option<f64> {
    sum_of_rounds(request, &request.concatenated(), |n| request.t_comm(n))
}

/// The executed time of the reduce-scatter, when all parts of all blocks are equal.
pub fn reduce_scatter_time(request: &Request) -> Option<f64> {
    sum_of_rounds(request, &request.scattered(), |n| {
        request.t_comm(n) + request.t_comp(n)
    })
}

/// The time of all rounds, each of which takes `time` of so many elements: in every round all ranks receive equally many parts.
fn sum_of_rounds(request: &Request, blocks: &[Span], time: impl Fn(usize) -> f64) -> Option<f64> {
    let parts = request.segments.count();
    let block = blocks.first()?.len;
    let equal = blocks.iter().all(|b| b.len == block) && block.is_multiple_of(parts);
    if !equal || !request.closed_forms_hold() {
        return None;
    }
    let graph = Circulant::new(request.ranks);
    let (p, q) = (graph.ranks(), graph.rounds());
    let phases = Phases::new(q, parts);
    let linear = request.cost.is_linear();
    // Under linear costs only the sum of all counts matters, which is (p - 1) parts.
    let recv = if linear {
        Vec::new()
    } else {
        Tables::new(&graph).recv
    };
    let part = block / parts;
    let mut sum = 0.0;
    for i in 0..phases.rounds() {
        let count = if linear {
            1
        } else {
            let round = phases.round(i);
            let brings = |me: &usize| round.block(recv[me * q + round.k]).is_some();
            (1..p).filter(brings).count()
        };
        sum += time(count * part);
    }
    if linear {
        // One part of each round has been counted; the others cost no start-up.
        let rest = (p - 1) * parts - phases.rounds();
        sum += time((rest + 1) * part) - time(part);
    }
    Some(sum)
}
