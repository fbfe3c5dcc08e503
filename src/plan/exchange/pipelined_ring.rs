//! Pipelined ring allgather of blocks of different sizes: pieces of about one size follow each
//! other around the ring, so that a large block does not hold up the ranks after it.
//!
//! - Source: Träff, Ripke, Siebert, Balaji, Thakur, Gropp, "A pipelined algorithm for large,
//!   irregular all-gather problems", 2010.
//! - Symbols: `p` ranks, `m` elements in all blocks together, `q` segments of the largest block, of
//!   `s` elements each; a block of `m_r` elements has `ceil(m_r / s)` pieces.
//! - Time: at least `ceil((m - m_r) / s) alpha + beta (m - m_r)` for the rank after `r`, and about
//!   `p - 2` rounds more where the last pieces come from far away: `(p + q - 2)(alpha + beta s)` if
//!   one rank has all data, as of a chain.
//! - Cost of planning: `O(p n)` for `n` pieces.
//!
//! A rank sends its own pieces to the next one, then what it receives from the rank before it, in
//! the order of arrival: the blocks of ranks `r-1, r-2, ...`. Pieces arrive at their final
//! position. Its list has one receive and one send in turn, as they take place, so that a
//! simulation looks at few steps at a time.
//!
//! Example, `p = 3`, blocks of 2, 0, 0 elements, two segments: 0→1 the first element; 0→1 the
//! second and 1→2 the first; 1→2 the second.

use crate::plan::prelude::*;

pub(in crate::plan) const ALLGATHER: Row = Row {
    ports: PortModels::Bi,
    segmented: true,
    transfers: |p, q| row::for_each_pair(p, q).saturating_mul(q),
    min_rounds: |p, _| p.saturating_sub(1),
    best_segment: BestSegment::Own(best_segment),
    source: "Träff, Ripke, Siebert, Balaji, Thakur, Gropp 2010",
    rounds: "(p-1) q for equal blocks, p+q-2 if one rank has all data",
    ..row::new("pipelined-ring", Kind::Allgather, plan).with_formula(time)
};

fn plan(request: &Request) -> Result<Schedule> {
    let p = request.ranks;
    let blocks = request.block_spans();
    let mut b = over_blocks(request, Collective::Allgather, &blocks, 0);
    let largest = blocks.iter().map(|block| block.len).max().unwrap_or(0);
    let size = largest.div_ceil(request.segments.count()).max(1);
    let pieces = |block: Span| {
        let starts = (0..block.len).step_by(size);
        starts.map(move |at| Span::new(block.offset + at, size.min(block.len - at)))
    };
    for r in 0..p {
        let (next, before) = ((r + 1) % p, (r + p - 1) % p);
        let from = |back: usize| pieces(blocks[(r + p - back) % p]);
        // The block of the next rank comes last, and is not sent.
        let mut sent = (0..p - 1).flat_map(from);
        let mut received = (1..p).flat_map(from);
        loop {
            let (arriving, leaving) = (received.next(), sent.next());
            if arriving.is_none() && leaving.is_none() {
                break;
            }
            let arriving = arriving.map(|piece| Step::recv(before, piece));
            let leaving = leaving.map(|piece| Step::send(next, piece));
            for step in arriving.into_iter().chain(leaving) {
                b.step(r, step);
            }
        }
    }
    b.build()
}

/// The time for equal blocks in equal pieces, which is that of a ring of so many more blocks.
fn time(request: &Request) -> Option<f64> {
    let (block, q) = (equal_block(request)?, request.segments.count());
    let rounds = request.ranks.saturating_sub(1) * q;
    let is_equal = block.is_multiple_of(q);
    is_equal.then(|| rounds as f64 * request.transfer_time(block / q))
}

/// Equal blocks are best left whole where costs are linear: their pieces would only add start-up
/// times.
fn best_segment(variant: &Variant, _: usize) -> Result<Option<Best>> {
    let linear = variant.request.cost.linear();
    let block = linear.and_then(|_| equal_block(&variant.request));
    block.map(|_| variant.best_whole()).transpose()
}
