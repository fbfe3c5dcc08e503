//! Pairwise alltoall: every block goes directly from its source to its destination.
//!
//! - Source: folklore. On unidirectional ports, a 1-factorisation of the complete graph (Lucas
//!   1883).
//! - Symbols: `p` ranks, blocks of `b` elements.
//! - Rounds for one port: bidirectional `p-1`; unidirectional `2(p-1)` for even `p` and `2p` for
//!   odd `p`. With `k` ports, messages with `k` of the `p-1` (or `p`) partners are in flight at a
//!   time; equal blocks that remain for only some of the ports are split into parts if that takes
//!   less time.
//! - Time for equal blocks: the number of rounds times `alpha + beta b`, less with parts.
//!
//! Bidirectional: in round `k` rank `r` sends to `r + k` and receives from `r - k`, modulo `p`.
//! Unidirectional: in round `k` the ranks `r`, `s` with `r + s = k` modulo `n` exchange their
//! blocks. Here `n` is `p` for odd `p` and `p - 1` for even `p`; in the even case the last rank
//! exchanges with the one that would be its own partner.
//!
//! Example, `p = 3`: 0→1, 1→2, 2→0; 0→2, 1→0, 2→1. `p = 4`, unidirectional: 0↔3, 1↔2; 0↔1, 2↔3;
//! 0↔2, 1↔3.

use crate::plan::prelude::*;

pub(in crate::plan) const ALLTOALL: Row = Row {
    k_ported: true,
    transfers: row::for_each_pair,
    source: "folklore; on one port, a 1-factorisation (Lucas 1883)",
    rounds: "p-1 (bi), 2(p-1) (uni; p odd: 2p); on k ports ceil((p-1)/k), twice that (p odd: 2 ceil(p/k))",
    ..row::planned_by("pairwise", Kind::Alltoall, Planner::Streamed(programs)).with_formula(time)
};

pub(super) fn programs(request: &Request) -> Result<Box<dyn DynScheduleSource>> {
    let pairs = Pairs {
        partners: Partners::new(request),
        blocks: BlockPairs::new(request)?,
    };
    let size = BlockPairs::equal_size(request);
    Ok(alltoall(request, InFlight::new(request, pairs, size)))
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    time_of_exchange(request, BlockPairs::equal_size(request)?)
}

/// Time to exchange messages of `elements` elements between all ranks, if those in flight together
/// are of one size.
pub(super) fn time_of_exchange(request: &Request, elements: usize) -> Option<f64> {
    let time = in_flight::time(request, Partners::new(request).rounds, elements)?;
    Some(request.by_ports(2.0, 1.0) * time)
}

/// This algorithm if all blocks are equal: others for different blocks have its schedule then.
pub(super) fn of_equal_blocks(request: &Request) -> Option<&'static Row> {
    BlockPairs::equal_size(request).map(|_| &ALLTOALL)
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Partners {
    ranks: usize,
    pub(super) rounds: usize,
    /// The modulus of the sums `r + s`: an odd number on unidirectional ports.
    modulus: usize,
    relays: bool,
}

impl Partners {
    pub(super) fn new(request: &Request) -> Partners {
        let p = request.ranks;
        let relays = request.ports.can_relay();
        let modulus = if p.is_multiple_of(2) && !relays {
            p - 1
        } else {
            p
        };
        Partners {
            ranks: p,
            rounds: match p {
                1 => 0,
                _ if relays => p - 1,
                _ => modulus,
            },
            modulus,
            relays,
        }
    }

    /// The ranks that `rank` sends to and receives from in round `k`: `rank` itself if there is
    /// none.
    #[inline]
    pub(super) fn of(&self, k: usize, rank: usize) -> [usize; 2] {
        let (p, n) = (self.ranks, self.modulus);
        let modulo = |sum: usize, n: usize| if sum >= n { sum - n } else { sum };
        if self.relays {
            return [modulo(rank + k + 1, p), modulo(rank + p - k - 1, p)];
        }
        // One rank would be its own partner. It exchanges with the last rank, which has no part in
        // the sums, or with none.
        let alone = if k.is_multiple_of(2) {
            k / 2
        } else {
            (k + n) / 2
        };
        let partner = match rank {
            _ if n < p && rank == n => alone,
            _ if n < p && rank == alone => n,
            _ => modulo(k + n - rank, n),
        };
        [partner; 2]
    }
}

#[derive(Debug)]
struct Pairs {
    partners: Partners,
    blocks: BlockPairs,
}

impl AlltoallRounds for InFlight<Pairs> {
    #[inline]
    fn blocks(&self) -> &BlockPairs {
        &self.rounds.blocks
    }
}

impl Rounds for Pairs {
    fn count(&self) -> usize {
        self.partners.rounds
    }

    #[inline]
    fn sent(&self, k: usize, rank: usize) -> Option<(usize, Spans)> {
        let [to, _] = self.partners.of(k, rank);
        let span = self.blocks.input(rank, to);
        (to != rank && span.len > 0).then(|| (to, span.into()))
    }

    #[inline]
    fn received(&self, k: usize, rank: usize) -> Option<(usize, Spans)> {
        let [_, from] = self.partners.of(k, rank);
        let span = self.blocks.output(rank, from);
        (from != rank && span.len > 0).then(|| (from, span.into()))
    }

    fn is_uniform(&self, ports: Ports) -> bool {
        let even = self.partners.ranks.is_multiple_of(2);
        self.blocks.are_equal() && (even || ports.can_relay())
    }
}
