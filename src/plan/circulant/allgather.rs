//! Circulant allgather, reduce-scatter (the same reversed) and allreduce (one after the other), in
//! logarithmically many rounds for any number of ranks.
//!
//! - Source: Träff, "(Poly)logarithmic time construction of round-optimal n-block broadcast
//!   schedules", Algorithm 7, forwards and backwards.
//! - Symbols: `p` ranks, `m` elements in all blocks together, `b = m/p` when the blocks are equal,
//!   `L = ceil(log2 p)`, skips as in [`schedule`](super::schedule).
//! - Rounds: `L`, optimal; allreduce `2L`.
//! - Time for equal blocks: allgather `L alpha + (p-1) beta b`, optimal; reduce-scatter
//!   `(p-1) gamma b` more; allreduce `2L alpha + (p-1)(2 beta + gamma) b`.
//!
//! Before round `k` of the allgather rank `r` holds blocks `r .. r + skip[k]`, modulo `p`. It sends
//! the first `skip[k+1] - skip[k]` of them to `r - skip[k]` and receives as many following blocks
//! from `r + skip[k]`. Blocks stay at their places in the vector, so a message has at most two
//! spans and no data is moved locally.
//!
//! The reduce-scatter goes through the skips from the greatest to 1: rank `r` keeps the blocks from
//! `r` on, sends those from `r + skip[k]` on, and combines the blocks it receives from
//! `r - skip[k]`.
//!
//! Example, `p = 3`, skips 1, 2:
//! - round 0: 0→2 block 0, 1→0 block 1, 2→1 block 2;
//! - round 1: 0→1 block 0, 1→2 block 1, 2→0 block 2.

use super::n_blocks;
use super::schedule::Circulant;
use crate::plan::prelude::*;

pub(in crate::plan) const ALLREDUCE: Row = Row {
    name: "circulant-rsag",
    schedule_table: None,
    collective: Kind::Allreduce,
    segmented: false,
    transfers: row::logarithmic_twice,
    source: "Träff, circulant reduce-scatter and allgather",
    rounds: "2 ceil(log2 p)",
    volume: "2(p-1) m",
    planner: Planner::Direct(allreduce),
    formula: ClosedForm::Of(time),
    ..n_blocks::REDUCE.for_another_collective()
};

pub(in crate::plan) const ALLGATHER: Row = Row {
    schedule_table: None,
    collective: Kind::Allgather,
    commutative_only: false,
    segmented: false,
    transfers: row::logarithmic,
    source: "Träff, circulant allgather",
    rounds: "ceil(log2 p)",
    planner: Planner::Direct(plan),
    formula: ClosedForm::Of(time),
    ..n_blocks::REDUCE.for_another_collective()
};

pub(in crate::plan) const REDUCE_SCATTER: Row = row::reduce_scatter(ALLGATHER, time);

pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    compose::plan(&request.clone().collective(Kind::Allgather), exchanges)
}

pub(crate) fn allreduce(request: &Request) -> Result<Schedule> {
    compose::plan(request, exchanges)
}

fn exchanges(blocks: Vec<Span>) -> impl DoubleEndedIterator<Item = Vec<Message>> {
    let rounds = BlockRounds::new(blocks);
    (0..rounds.count()).map(move |k| {
        let message = |r: usize| {
            let (to, spans) = rounds.sent(k, r);
            Message::new(r, to, spans)
        };
        (0..rounds.blocks.len()).map(message).collect()
    })
}

/// The rounds of the allgather, for any rank.
#[derive(Debug)]
pub(crate) struct BlockRounds {
    graph: Circulant,
    blocks: Vec<Span>,
}

impl BlockRounds {
    /// For one block a rank, in rank order.
    pub(crate) fn new(blocks: Vec<Span>) -> BlockRounds {
        BlockRounds {
            graph: Circulant::new(blocks.len()),
            blocks,
        }
    }

    /// Number of rounds.
    pub(crate) fn count(&self) -> usize {
        self.graph.rounds()
    }

    /// The destination and the spans of what `rank` sends in round `k`.
    fn sent(&self, k: usize, rank: usize) -> (usize, Spans) {
        let (p, skips) = (self.blocks.len(), self.graph.skips());
        let blocks = cyclic(&self.blocks, rank, skips[k + 1] - skips[k]);
        ((rank + p - skips[k]) % p, blocks)
    }

    /// The steps of `rank` on bidirectional ports.
    pub(crate) fn steps_of(&self, rank: usize) -> impl Iterator<Item = Step> {
        (0..self.count()).flat_map(move |k| {
            let (to, sent) = self.sent(k, rank);
            let from = (rank + self.graph.skips()[k]) % self.blocks.len();
            let (_, received) = self.sent(k, from);
            let send = (!sent.is_empty()).then(|| Step::send(to, sent));
            let recv = (!received.is_empty()).then(|| Step::recv(from, received));
            send.into_iter().chain(recv)
        })
    }
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    let b = equal_block(request)?;
    let graph = Circulant::new(request.ranks);
    let counts = graph.skips().windows(2).map(|pair| pair[1] - pair[0]);
    let round = |n| there_and_back(request, request.transfer_time(n), request.combine_time(n));
    Some(counts.map(|count| round(count * b)).sum())
}
