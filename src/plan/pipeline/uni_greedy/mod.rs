//! Uni-greedy reduction: the fastest unidirectional reduction among all in which every rank reduces
//! the segments in order.
//!
//! - Source: Lowery & Langou, algorithm 1, theorem 5.
//! - Symbols: `p` ranks, `q` segments, the `i`-th of `s_i` elements, `tc = alpha + beta s_i`,
//!   `tp = gamma s_i`.
//! - Rounds and time: no formula ([`makespan`] evaluates the time).
//!
//! The state of a rank is the time at which it finished its last task. While more than one rank
//! still holds a segment, the two holders with the smallest states are paired. Their transfer
//! starts at the larger of the two states, `t`. One of them sends (never the root) and is free at
//! `t + tc`; the other receives and is free at `t + tc + tp`. Ties do not change the makespan. Here
//! the smaller rank of a pair receives, and of equal states the one that entered the queues first
//! is taken first, so that all ranks can compute the same schedule.
//!
//! No heap is needed. Within a segment `t` never decreases, so receivers return in sorted order. So
//! do senders, whose states are those of the next segment. Two queues give constant time for each
//! transfer.
//!
//! Example, `p = 3`, two segments, `tc = 2`, `tp = 1` (makespan 11):
//!
//! | segment | transfer | starts | sender free | receiver free |
//! |---|---|---|---|---|
//! | 0 | 1→0 | 0 | 2 | 3 |
//! | 0 | 2→0 | 3 | 5 | 6 |
//! | 1 | 2→1 | 5 | 7 | 8 |
//! | 1 | 1→0 | 8 | 10 | 11 |

mod best_segment;
mod states;

use crate::plan::prelude::*;

pub(super) use best_segment::best_size;
pub use best_segment::best_uni_greedy;
pub use states::{States, makespan};

pub(in crate::plan) const REDUCE: Row = Row {
    ports: PortModels::Uni,
    commutative_only: true,
    source: "Lowery & Langou, algorithm 1",
    rounds: "no formula; the fewest of all that reduce segments in order",
    formula: ClosedForm::Of(time),
    best_segment: BestSegment::Own(best_segment::best),
    ..row::planned_by("uni-greedy", Kind::Reduce, Planner::Reduction(reduction)).segmented()
};

pub(in crate::plan) const ALLREDUCE: Row = row::allreduce(REDUCE, "twice those of the reduction");

pub(in crate::plan) fn reduction(request: &Request) -> Reduction {
    // The registry admits only commuting operators here, so ranks may be rotated to any root. For a
    // reversed broadcast operand order has no meaning.
    let request = request.clone().keep_order(false);
    Reduction::new(&request, transfers(&request).map(|t| [t]))
}

/// Time of the schedule by [`makespan`], in the unit of the request's costs; `None` where
/// closed forms do not hold.
pub fn time(request: &Request) -> Option<f64> {
    request
        .closed_forms_hold()
        .then(|| makespan(request.ranks, costs(request)))
}

/// All `q (p - 1)` transfers of the reduction, in the order of their starts within each segment.
///
/// A rank can reduce without a stored schedule: every rank computes the same sequence and carries
/// out the transfers that name it. Each transfer takes constant time; `O(p + q)` memory.
pub fn transfers(request: &Request) -> impl Iterator<Item = Transfer> + use<> {
    let mut greedy = Greedy::new(request.ranks);
    let mut costs = costs(request).collect::<Vec<_>>().into_iter();
    std::iter::from_fn(move || {
        loop {
            if let Some(transfer) = greedy.next() {
                return Some(transfer);
            }
            let (transfer_time, combine_time) = costs.next()?;
            greedy.next_segment(transfer_time, combine_time);
        }
    })
}

/// `(tc, tp)` of every segment. Empty for a single rank, which has no link to take costs from.
pub(super) fn costs(request: &Request) -> impl Iterator<Item = (f64, f64)> {
    let sizes = request.segments.sizes();
    let sizes = if request.ranks < 2 { &[] } else { sizes };
    sizes
        .iter()
        .map(|&s| (request.transfer_time(s), request.combine_time(s)))
}

/// Computes the greedy schedule step by step: an iterator over the transfers of the current
/// segment. Each transfer takes constant time; `O(p)` memory.
#[derive(Debug, Clone)]
pub struct Greedy {
    /// Holders that have not taken part in the current segment, sorted. Entries before
    /// `first_waiting` have been consumed.
    waiting: Vec<FreeRank>,
    first_waiting: usize,
    /// Holders that have received, sorted. Entries before `first_combined` have been consumed.
    combined: Vec<FreeRank>,
    first_combined: usize,
    /// Ranks that have finished the current segment, sorted.
    done: Vec<FreeRank>,
    segments: usize,
    transfer_time: f64,
    combine_time: f64,
    time: f64,
}

/// A rank and the time from which it is free.
#[derive(Debug, Clone, Copy)]
struct FreeRank {
    free: f64,
    rank: usize,
}

impl Greedy {
    /// Starts before the first segment with `ranks` free ranks. Rank 0 is the root.
    pub fn new(ranks: usize) -> Greedy {
        Greedy {
            waiting: Vec::with_capacity(ranks),
            first_waiting: 0,
            combined: Vec::with_capacity(ranks),
            first_combined: 0,
            done: (0..ranks)
                .map(|rank| FreeRank { free: 0.0, rank })
                .collect(),
            segments: 0,
            transfer_time: 0.0,
            combine_time: 0.0,
            time: 0.0,
        }
    }

    /// Completes the current segment, yielded or not, and moves on to the next one, whose messages
    /// take `transfer_time` and whose combinations take `combine_time`.
    pub fn next_segment(&mut self, transfer_time: f64, combine_time: f64) {
        while self.next().is_some() {}
        std::mem::swap(&mut self.waiting, &mut self.done);
        self.done.clear();
        self.combined.clear();
        (self.first_waiting, self.first_combined) = (0, 0);
        (self.transfer_time, self.combine_time) = (transfer_time, combine_time);
        self.segments += 1;
    }

    /// The time at which the transfers yielded so far, and their combinations, have finished.
    pub fn time(&self) -> f64 {
        self.time
    }

    /// Removes the holder with the smallest state from the queues.
    fn pop_smallest(&mut self) -> Option<FreeRank> {
        let waiting = self.waiting.get(self.first_waiting).copied();
        let combined = self.combined.get(self.first_combined).copied();
        if waiting.is_some_and(|w| combined.is_none_or(|c| w.free <= c.free)) {
            self.first_waiting += 1;
            waiting
        } else {
            self.first_combined += usize::from(combined.is_some());
            combined
        }
    }
}

impl Iterator for Greedy {
    type Item = Transfer;

    fn next(&mut self) -> Option<Transfer> {
        let a = self.pop_smallest()?;
        let Some(b) = self.pop_smallest() else {
            self.done.push(a); // only the root is left: the segment is reduced
            return None;
        };
        let sent = b.free + self.transfer_time;
        let combined = sent + self.combine_time;
        let (from, to) = (a.rank.max(b.rank), a.rank.min(b.rank));
        self.done.push(FreeRank {
            free: sent,
            rank: from,
        });
        self.combined.push(FreeRank {
            free: combined,
            rank: to,
        });
        self.time = self.time.max(combined);
        Some(Transfer::new(self.segments - 1, from, to))
    }
}
