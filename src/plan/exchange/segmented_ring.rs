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
use crate::plan::prelude::*;

pub(in crate::plan) const ALLREDUCE: Row = Row {
    commutative_only: true,
    segmented: true,
    transfers: |p, q| row::for_each_pair(p, q).saturating_mul(q.saturating_add(1)),
    min_rounds: |p, _| 2 * p.saturating_sub(1),
    source: "Open MPI (segmented ring)",
    rounds: "(p-1)(q+1) (bi), 2(p-1)(q+1) (uni; p odd: more)",
    volume: "2(p-1) m",
    closed_form: ClosedForm::Of(time),
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
        self.0.iter().map(Ring::count).sum()
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

/// One segment where parts only add start-up times: costs are linear, blocks are equal, and
/// computation does not overlap communication. With latency, links that differ, blocks of two sizes
/// or other costs of messages parts may gain, which takes too long to find out among many ranks.
fn best_segment(variant: &Variant, _: usize) -> Result<Option<Best>> {
    let (request, row) = (&variant.request, &variant.algorithm);
    if request.cost.overlaps() {
        return Ok(None);
    }
    let are_equal = request.elements().is_multiple_of(request.ranks);
    let is_whole = request.cost.linear().is_some() && are_equal;
    let transfers = (row.transfers)(request.ranks, search::SEGMENTS);
    if !is_whole && search::is_short(request.ranks, transfers) {
        return Ok(None);
    }
    let mut whole = variant.best_whole()?;
    if !is_whole {
        whole.method = Method::LimitedSearch;
    }
    Ok(Some(whole))
}
