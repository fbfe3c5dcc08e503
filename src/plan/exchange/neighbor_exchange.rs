//! Neighbour exchange allgather: ranks exchange blocks with their two neighbours in turn, in half
//! the rounds of a ring.
//!
//! - Source: Chen, Zhang, Zhang, Yuan, "Performance evaluation of allgather algorithms on
//!   terascale Linux cluster with Fast Ethernet" (2005); Open MPI.
//! - Symbols: `p` ranks, `m` elements in all blocks together, `b = m/p` if they are equal.
//! - Rounds for even `p`: `p/2` (bidirectional). For odd `p` it is the [ring].
//! - Time for equal blocks and even `p`: `p/2 alpha + (p-1) beta b`, twice that unidirectional.
//!
//! In round 0 ranks `2i` and `2i + 1`, pair `i`, exchange their blocks. In odd rounds rank `2i`
//! exchanges with `2i - 1`, in even rounds with `2i + 1`, modulo `p`. Each time a rank passes on
//! the two blocks of the pair that it has received last, or its own pair in round 1. All messages
//! go to direct neighbours, which matters where distances differ.
//!
//! Example, `p = 4`: 0↔1, 2↔3 (one block); 1↔2, 3↔0 (two blocks).

use super::ring;
use crate::plan::prelude::*;

pub(in crate::plan) const ALLGATHER: Row = Row {
    transfers: row::for_each_pair,
    source: "Chen, Zhang, Zhang, Yuan 2005; Open MPI",
    rounds: "p/2 (bi), p (uni); p odd: those of the ring",
    formula: ClosedForm::Of(time),
    ..row::planned_by(
        "neighbor-exchange",
        Kind::Allgather,
        Planner::Streamed(programs),
    )
};

pub(super) fn programs(request: &Request) -> Result<Box<dyn DynScheduleSource>> {
    if !request.ranks.is_multiple_of(2) {
        return ring::programs(request);
    }
    compose::programs(request, |blocks| Neighbors { blocks }, |_| 0)
}

/// The rounds for an even number of ranks.
#[derive(Debug)]
struct Neighbors {
    blocks: Vec<Span>,
}

impl Neighbors {
    /// Whether `rank` exchanges with the next higher rank in round `k`; otherwise it does with the
    /// next lower one.
    fn goes_up(k: usize, rank: usize) -> bool {
        rank % 2 == k % 2
    }

    fn partner(&self, k: usize, rank: usize) -> usize {
        let p = self.blocks.len();
        (rank + if Self::goes_up(k, rank) { 1 } else { p - 1 }) % p
    }

    /// What `rank` receives in round `k`. The pairs are ever farther away, on both sides in turn.
    fn content(&self, k: usize, rank: usize) -> Option<Spans> {
        let pairs = self.blocks.len() / 2;
        let distance = k.div_ceil(2);
        let span = if k == 0 {
            self.blocks[self.partner(k, rank)]
        } else {
            let up = Self::goes_up(k, rank);
            let pair = rank / 2 + if up { distance } else { pairs - distance };
            let first = 2 * (pair % pairs);
            Span::from(self.blocks[first].offset..self.blocks[first + 1].end())
        };
        (span.len > 0).then(|| span.into())
    }
}

impl Rounds for Neighbors {
    fn count(&self) -> usize {
        self.blocks.len() / 2
    }

    fn sent(&self, k: usize, rank: usize) -> Option<(usize, Spans)> {
        let partner = self.partner(k, rank);
        Some((partner, self.content(k, partner)?))
    }

    fn received(&self, k: usize, rank: usize) -> Option<(usize, Spans)> {
        Some((self.partner(k, rank), self.content(k, rank)?))
    }

    fn is_uniform(&self, _ports: Ports) -> bool {
        are_equal(&self.blocks)
    }
}

/// Time of the schedule for equal blocks; for odd `p` that of the ring.
pub(crate) fn time(request: &Request) -> Option<f64> {
    let b = equal_size(request, &request.block_spans())?;
    if !request.ranks.is_multiple_of(2) {
        return ring::time(request);
    }
    let others = (request.ranks / 2 - 1) as f64;
    Some(time_of_round(request, b) + others * time_of_round(request, 2 * b))
}
