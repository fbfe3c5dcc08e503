//! Linear allgather through rank 0, and the reduce-scatter that is its rounds backwards.
//!
//! - Symbols: `p` ranks, `m` elements in all blocks together, `b = m/p` if they are equal.
//! - Rounds: `2(p-1)`. The allgather of two bidirectional ranks is one round.
//! - Time for equal blocks: `(p-1)(alpha + beta b) + (p-1)(alpha + beta (m-b))`. The reduce-scatter
//!   takes `(p-1) gamma (m-b) + gamma b` more.
//! - Volume: `p m - m_0` for blocks `m_i`: each block goes to rank 0 once, and all others go to
//!   every rank.
//! - Cost of planning: `O(p)`.
//!
//! It is slow if every rank has its own core. If many ranks share few cores it has an advantage:
//! every rank waits only once.
//!
//! Example, `p = 3`: 1→0 block 1; 2→0 block 2; 0→1 blocks 0 and 2; 0→2 blocks 0 and 1.

use crate::plan::prelude::*;

pub(in crate::plan) const ALLGATHER: Row = Row {
    transfers: |p, _| p.saturating_mul(2),
    source: "folklore",
    rounds: "2(p-1)",
    volume: "p m - m_0",
    ..row::new("linear", Kind::Allgather, plan).with_formula(time)
};

pub(in crate::plan) const REDUCE_SCATTER: Row = ALLGATHER
    .also(Kind::ReduceScatter)
    .with_formula(reduce_scatter_time);

pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    compose::plan(request, rounds)
}

fn rounds(blocks: Vec<Span>) -> impl DoubleEndedIterator<Item = Vec<Message>> {
    let p = blocks.len();
    let (up, end) = (blocks.clone(), blocks.last().map_or(0, |b| b.end()));
    let up = (1..p).map(move |r| vec![Message::new(r, 0, up[r])]);
    let down = (1..p).map(move |r| {
        let before = Span::from(0..blocks[r].offset);
        let after = Span::from(blocks[r].end()..end);
        let others: Spans = [before, after].into_iter().filter(|s| s.len > 0).collect();
        vec![Message::new(0, r, others)]
    });
    up.chain(down)
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    let b = equal_size(request, &request.block_spans())?;
    if request.ranks == 2 && request.ports.can_relay() {
        // The two ranks exchange their blocks at the same time.
        return Some(request.transfer_time(b));
    }
    let (rounds, rest) = of_blocks(request, b);
    Some(rounds * request.transfer_time(b) + rounds * request.transfer_time(rest))
}

pub(crate) fn reduce_scatter_time(request: &Request) -> Option<f64> {
    let b = equal_size(request, &request.block_spans())?;
    let (rounds, rest) = of_blocks(request, b);
    let up = rounds * (request.transfer_time(rest) + request.combine_time(rest));
    let last = if rounds > 0.0 {
        request.combine_time(b)
    } else {
        0.0
    };
    Some(up + rounds * request.transfer_time(b) + last)
}

/// `p - 1`, and the number of elements in that many blocks.
fn of_blocks(request: &Request, b: usize) -> (f64, usize) {
    let others = request.ranks.saturating_sub(1);
    (others as f64, others * b)
}
