//! Sparbit allgather: Bruck's rounds with the distances from far to near, so that the largest
//! messages go to near ranks.
//!
//! - Source: Loch, Koslovski, "Sparbit: a new logarithmic-cost and data locality-aware MPI
//!   Allgather algorithm" (2021); Open MPI.
//! - Ports: uni- or bidirectional.
//! - Symbols: `p` ranks, `m` elements in all blocks together, `b = m/p` if they are equal,
//!   `q = ceil(log2 p)`.
//! - Rounds: `q` (bidirectional).
//! - Time for equal blocks: `q alpha + (p-1) beta b`, twice that on unidirectional ranks if `p` is
//!   a power of two: that of [Bruck](super::bruck). It differs where distances differ.
//! - Volume: `(p-1) m`.
//! - Restrictions: none.
//! - Scratch: none. Blocks arrive at their final position; nothing is moved locally.
//! - Spans: a message has up to `p/2` of them.
//!
//! In the rounds with `d = 2^(q-1), .., 2, 1` rank `r` holds `c` blocks, every `2d`-th one from its
//! own downwards. It sends them to `r + d`, which then has every `d`-th. If `p` is no multiple of
//! the distances, the last of these blocks would arrive twice: it is left out in the rounds whose
//! bit is set in the complement of `p / t`, with bit 0, times `t`, where `t` is the largest power
//! of two that divides `p`.
//!
//! Example, `p = 4`: 0→2, 1→3, 2→0, 3→1 (own block); 0→1, 1→2, 2→3, 3→0 (own block and the opposite
//! one).

use super::bruck;
use crate::error::Result;
use crate::plan::Request;
use crate::plan::build::compose::Blocks;
use crate::plan::build::rounds::{
    Rounds, doublings, equal_size, receive_first_flags, time_of_round,
};
use crate::plan::build::stream::{DynScheduleSource, Stream};
use crate::plan::registry::row;
use crate::plan::registry::{Algorithm, ClosedForm, Planner};
use crate::schedule::collective::Kind;
use crate::schedule::{Schedule, Span, Spans};

pub(in crate::plan) const ALLGATHER: Algorithm = Algorithm {
    transfers: row::parts_of_halves,
    source: "Loch, Koslovski 2021; Open MPI",
    rounds: "ceil(log2 p) (bi), 2 ceil(log2 p) (uni; p not a power of two: more)",
    volume: "(p-1) m",
    planner: Planner::Streamed(programs),
    closed_form: ClosedForm::Of(time),
    ..row::new("sparbit", Kind::Allgather, plan)
};

/// Plans the allgather.
pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    programs(request)?.materialize()
}

/// Plans the allgather; steps are generated on demand.
pub(super) fn programs(request: &Request) -> Result<Box<dyn DynScheduleSource>> {
    let rounds = |blocks| Sparbit::new(blocks, request.ports.is_bidirectional());
    Ok(Box::new(Stream(Blocks::allgather(request, rounds)?)))
}

#[derive(Debug)]
struct Sparbit {
    blocks: Vec<Span>,
    /// By round: the distance, and the number of blocks in each message.
    shares: Vec<(usize, usize)>,
    /// On unidirectional ports, by round and rank: whether the rank receives first.
    receives_first: Vec<Vec<bool>>,
}

impl Sparbit {
    fn new(blocks: Vec<Span>, bidirectional: bool) -> Sparbit {
        let p = blocks.len();
        let mut sparbit = Sparbit {
            shares: shares(p),
            blocks,
            receives_first: Vec::new(),
        };
        if !bidirectional {
            let flags = |k| {
                let to = |r| Some((r, sparbit.sent(k, r)?.0));
                receive_first_flags(p, (0..p).filter_map(to))
            };
            sparbit.receives_first = (0..sparbit.count()).map(flags).collect();
        }
        sparbit
    }

    /// What `from` sends in round `k`.
    fn content(&self, k: usize, from: usize) -> Option<Spans> {
        let (p, (distance, count)) = (self.blocks.len(), self.shares[k]);
        // The blocks lie within less than two times all ranks.
        let sent = (0..count).map(|j| self.blocks[(from + 2 * p - 2 * j * distance) % p]);
        let spans: Spans = sent.filter(|span| span.len > 0).collect();
        (!spans.is_empty()).then_some(spans)
    }
}

impl Rounds for Sparbit {
    fn count(&self) -> usize {
        self.shares.len()
    }

    fn sent(&self, k: usize, rank: usize) -> Option<(usize, Spans)> {
        let to = (rank + self.shares[k].0) % self.blocks.len();
        Some((to, self.content(k, rank)?))
    }

    fn received(&self, k: usize, rank: usize) -> Option<(usize, Spans)> {
        let p = self.blocks.len();
        let from = (rank + p - self.shares[k].0) % p;
        Some((from, self.content(k, from)?))
    }

    fn receives_first(&self, k: usize, rank: usize, _backwards: bool) -> bool {
        self.receives_first[k][rank]
    }
}

/// The distance of each round, and the number of blocks in each message.
fn shares(p: usize) -> Vec<(usize, usize)> {
    let odd_part = p >> p.trailing_zeros();
    let left_out = (!odd_part | 1) << p.trailing_zeros();
    let mut held = 1;
    let share = |k| {
        let distance = 1usize << k;
        let sent = held - usize::from(distance & left_out != 0);
        held += sent;
        (distance, sent)
    };
    (0..doublings(p)).rev().map(share).collect()
}

/// Time of the schedule for equal blocks and, on unidirectional ranks, a power of two of ranks;
/// `None` otherwise.
pub(crate) fn time(request: &Request) -> Option<f64> {
    let b = equal_size(request, &request.block_spans())?;
    let p = request.ranks;
    let shares = shares(p).into_iter();
    let is_even = |&(distance, _): &(usize, usize)| bruck::cycle(p, distance).is_multiple_of(2);
    if !request.ports.is_bidirectional() && !shares.clone().all(|s| is_even(&s)) {
        return None;
    }
    Some(
        shares
            .map(|(_, count)| time_of_round(request, count * b))
            .sum(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::build::rounds::{assert_consistent, block_sizes};
    use crate::plan::consecutive;

    #[test]
    fn both_ends_agree_about_every_message() {
        for p in 1..=17 {
            for sizes in block_sizes(p) {
                let rounds = Sparbit::new(consecutive(&sizes), false);
                assert_consistent(&rounds, p, false, &format!("{sizes:?}"));
            }
        }
    }

    #[test]
    fn every_block_is_sent_once_to_every_rank() {
        for p in 1..2000 {
            assert_eq!(1 + shares(p).iter().map(|s| s.1).sum::<usize>(), p);
            let far = shares(p)
                .iter()
                .map(|(d, n)| 2 * d * n.saturating_sub(1))
                .max();
            assert!(far.unwrap_or(0) <= 2 * p, "p={p}");
        }
    }
}
