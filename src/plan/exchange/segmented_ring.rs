//! Segmented ring allreduce: the reduce-scatter of the [ring] over parts of each
//! block, so that a part is combined while the next one travels; then the ring's allgather.
//!
//! - Symbols: `p` ranks, `m` elements in `p` blocks of `q` parts, `b = m/p` and `s = b/q` if they
//!   are equal.
//! - Time for equal parts, without overlap: `(p-1)(q alpha + beta b + gamma b + alpha + beta b)`,
//!   twice the messages on unidirectional ranks with even `p`. With linear costs several parts are
//!   worth their start-up times only where computation overlaps communication.
//! - Scratch: one part on unidirectional ranks.
//!
//! Example, `p = 2`, two parts: 0→1 part 0 of block 1, 1→0 part 0 of block 0; the same with parts
//! 1; 0→1 block 0, 1→0 block 1.

use super::ring::{self, Ring};
use crate::budget::search;
use crate::machine::Linear;
use crate::plan::prelude::*;

pub(in crate::plan) const ALLREDUCE: Row = Row {
    commutative_only: true,
    segmented: true,
    transfers: |p, q| row::for_each_pair(p, q).saturating_mul(q.saturating_add(1)),
    min_rounds: |p, _| 2 * p.saturating_sub(1),
    source: "Open MPI (segmented ring)",
    rounds: "(p-1)(q+1) (bi), 2(p-1)(q+1) (uni; p odd: more)",
    volume: "2(p-1) m",
    formula: ClosedForm::Of(time),
    best_segment: BestSegment::Own(best_segment),
    ..row::planned_by(
        "segmented-ring",
        Kind::Allreduce,
        Planner::Streamed(programs),
    )
};

pub(super) fn programs(request: &Request) -> Result<Box<dyn DynScheduleSource>> {
    let blocks = request.block_spans();
    let parts = |blocks: Vec<Span>| RingParts::new(&blocks, request.segments.count());
    let longest =
        |blocks: &[Span]| ring::longest(&RingParts::of(blocks, request.segments.count(), 0));
    let scratch = scratch_after(request, &blocks, longest);
    let collective = Collective::Allreduce;
    let first = Blocks::backwards(request, collective.clone(), parts, blocks.clone(), scratch);
    let second = Blocks::forwards(request, collective.clone(), Ring::new, blocks);
    Ok(streamed(request, collective, Consecutive { first, second }))
}

/// The rounds of the ring, each as often as there are parts.
#[derive(Debug)]
struct RingParts(Vec<Ring>);

impl RingParts {
    fn new(blocks: &[Span], count: usize) -> RingParts {
        RingParts(
            (0..count)
                .map(|part| Ring::new(Self::of(blocks, count, part)))
                .collect(),
        )
    }

    /// The parts of all blocks with this number. The first parts are the largest.
    fn of(blocks: &[Span], count: usize, part: usize) -> Vec<Span> {
        let of_block = |block: &Span| {
            let (small, larger) = (block.len / count, block.len % count);
            let start = |part: usize| block.offset + part * small + part.min(larger);
            Span::from(start(part)..start(part + 1))
        };
        blocks.iter().map(of_block).collect()
    }
}

impl Rounds for RingParts {
    fn count(&self) -> usize {
        // It is asked for each step, and all parts have as many rounds.
        self.0.len() * self.0[0].count()
    }

    fn sent(&self, k: usize, rank: usize) -> Option<(usize, Spans)> {
        self.0[k % self.0.len()].sent(k / self.0.len(), rank)
    }

    fn received(&self, k: usize, rank: usize) -> Option<(usize, Spans)> {
        self.0[k % self.0.len()].received(k / self.0.len(), rank)
    }

    fn is_uniform(&self, ports: Ports) -> bool {
        self.0.iter().all(|ring| ring.is_uniform(ports))
    }

    fn receives_first(&self, k: usize, rank: usize, backwards: bool) -> bool {
        self.0[k % self.0.len()].receives_first(k / self.0.len(), rank, backwards)
    }
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    let (p, m, q) = (request.ranks, request.elements(), request.segments.count());
    if m % (p * q) != 0 {
        return None;
    }
    let (block, part) = (m / p, m / p / q);
    let parts = time_of_round(request, part) + time_of_combining(request, part);
    Some(ring::rounds_of(request)? * (q as f64 * parts + time_of_round(request, block)))
}

/// One segment where parts only add start-up times: costs are linear, computation does not overlap
/// communication, and blocks are equal, or their parts add more than ranks wait for larger blocks.
/// Elsewhere parts may gain, which takes too long to find out among many ranks.
fn best_segment(variant: &Variant, _: usize) -> Result<Option<Best>> {
    let (request, row) = (&variant.request, &variant.algorithm);
    if request.cost.overlaps() {
        return Ok(None);
    }
    let line = request.cost.linear();
    let transfers = (row.transfers)(request.ranks, search::SEGMENTS);
    let is_short = search::is_short(request.ranks, transfers);
    if line.is_none() && is_short {
        return Ok(None);
    }
    let mut whole = variant.best_whole()?;
    let are_equal = request.elements().is_multiple_of(request.ranks);
    let may_gain = |line| is_better(min_time_of_parts(request, line), whole.time.value());
    let is_best = line.is_some_and(|line| are_equal || !may_gain(line));
    if !is_best {
        if is_short {
            return Ok(None);
        }
        whole.method = Method::LimitedSearch;
    }
    Ok(Some(whole))
}

/// A lower bound of the time with two parts or more: how long a rank receives and combines on
/// average, and sends if it cannot do both at once.
fn min_time_of_parts(request: &Request, line: Linear) -> f64 {
    let p = request.ranks as f64;
    let blocks = request.block_spans().into_iter().map(|block| block.len);
    // Of each block: two parts, if it has as many elements, then the whole.
    let messages: usize = blocks.map(|len| len.min(2) + len.min(1)).sum();
    let bytes = request.elements() as f64 * request.element_bytes as f64;
    let received = messages as f64 * line.alpha + 2.0 * bytes * line.beta;
    let busy = request.by_ports(2.0, 1.0) * received + request.combine_time(request.elements());
    busy * (p - 1.0) / p / request.ports.k() as f64
}
