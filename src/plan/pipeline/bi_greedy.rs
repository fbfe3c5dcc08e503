//! Bi-greedy reduction: every round pairs the free ports, for the first unfinished segment first.
//!
//! - Source: Lowery & Langou, section VI-B, Algorithm 2.
//! - Symbols: `p` ranks, `q` segments of `s` elements, `tc = alpha + beta s`, `tp = gamma s`,
//!   `L = ceil(log2 p)`.
//! - Rounds: `L + q - 1`, which is optimal. Time: `(L + q - 1)(tc + tp)`.
//! - Best `s`: `sqrt(m alpha / ((L - 1)(beta + gamma)))`.
//! - Restrictions: the operator must commute, because any two ranks that still hold a segment may
//!   be paired. Any root, by rotation.
//! - Cost of planning: a round visits all holders of the segments that it serves. That is 2 to 3
//!   `p q` visits in all, as counted for `p <= 500`, `q <= 256`.
//!
//! The number of rounds is the paper's conjecture. It was verified for this plan for
//! `p <= 700, q <= 24`, for `p <= 160, q <= 150` and for samples up to `p = 4097`, `q = 2000`.
//!
//! With segments of equal size every transfer of the paper's discrete loop starts at a multiple of
//! `tc + tp`, so the plan is made in rounds: in each, a rank sends at most once and receives at
//! most once. Segments are served in order, starting with the first unfinished one. Among the ranks
//! that still hold the segment, those with only one free port must use that port. Those with both
//! ports free are divided so that senders and receivers balance: low ranks receive, high ranks
//! send. The root only receives. A smaller last segment is planned in the same rounds.
//!
//! Example, `p = 4`, `q = 2`. Round 0: 2→0, 3→1 segment 0, 1→2 segment 1. Round 1: 1→0 segment 0,
//! 3→2 segment 1. Round 2: 2→0 segment 1.

use std::collections::VecDeque;

use crate::plan::prelude::*;

pub(in crate::plan) const REDUCE: Row = Row {
    ports: PortModels::Bi,
    commutative_only: true,
    source: "Lowery & Langou, Algorithm 2",
    rounds: "ceil(log2 p)+q-1",
    formula: ClosedForm::Of(time),
    best_segment: BestSegment::Formula(|x| x.optimum(1.0, (x.l - 1.0) * (x.beta + x.gamma))),
    published: Some(|x| Some(x.rounds(TABLE_III, x.l - 1.0, 1.0))),
    ..row::planned_by("bi-greedy", Kind::Reduce, Planner::Reduction(reduction)).segmented()
};

pub(in crate::plan) fn reduction(request: &Request) -> Reduction {
    Reduction::new(request, rounds(request.ranks, request.segments.count()))
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    let (q, s) = request.equal_segments()?;
    if request.ranks < 2 {
        return Some(0.0);
    }
    let latency = f64::from(request.ranks.next_power_of_two().trailing_zeros());
    let rounds = latency + (q - 1) as f64;
    Some(rounds * (request.transfer_time(s) + request.combine_time(s)))
}

/// The transfers towards rank 0, round by round.
pub(crate) fn rounds(p: usize, segments: usize) -> impl Iterator<Item = Vec<Transfer>> {
    // The ranks that still hold each segment, from the first unfinished segment up to the last one
    // that was transferred at all.
    let mut holders: VecDeque<Vec<usize>> = VecDeque::new();
    let mut first = 0;
    std::iter::from_fn(move || {
        if p < 2 || first == segments {
            return None;
        }
        let mut ports = FreePorts::new(p);
        let mut round = Vec::new();
        for segment in first..segments {
            if holders.len() == segment - first {
                holders.push_back((0..p).collect());
            }
            let holders = &mut holders[segment - first];
            let pairs = ports.pairs(holders);
            for &(from, to) in &pairs {
                ports.take(from, to);
                round.push(Transfer::new(segment, from, to));
            }
            let mut senders = pairs.iter().map(|pair| pair.0).peekable();
            holders.retain(|&r| senders.next_if_eq(&r).is_none());
            if ports.exhausted() {
                break;
            }
        }
        while holders.pop_front_if(|h| h.len() == 1).is_some() {
            first += 1;
        }
        Some(round)
    })
}

/// The ports that are still free in one round.
struct FreePorts {
    out: Vec<bool>,
    into: Vec<bool>,
    /// Number of free ports out and of free ports in.
    left: (usize, usize),
}

impl FreePorts {
    fn new(p: usize) -> FreePorts {
        let mut out = vec![true; p];
        out[0] = false;
        FreePorts {
            out,
            into: vec![true; p],
            left: (p - 1, p),
        }
    }

    fn take(&mut self, from: usize, to: usize) {
        self.out[from] = false;
        self.into[to] = false;
        self.left.0 -= 1;
        self.left.1 -= 1;
    }

    fn exhausted(&self) -> bool {
        self.left.0 == 0 || self.left.1 == 0
    }

    /// The largest number of (sender, receiver) pairs that the free ports of `holders` allow. Both
    /// `holders` and the senders of the result are in ascending order.
    fn pairs(&self, holders: &[usize]) -> Vec<(usize, usize)> {
        let (mut senders, mut receivers, mut both) = (Vec::new(), Vec::new(), Vec::new());
        for &r in holders {
            match (self.out[r], self.into[r]) {
                (true, true) => both.push(r),
                (true, false) => senders.push(r),
                (false, true) => receivers.push(r),
                (false, false) => {}
            }
        }
        // First balance the two sides, then divide the rest equally.
        let difference = senders.len().abs_diff(receivers.len()).min(both.len());
        let half = (both.len() - difference) / 2;
        let (send, receive) = if senders.len() < receivers.len() {
            (half + difference, half)
        } else {
            (half, half + difference)
        };
        receivers.extend(&both[..receive]);
        senders.extend(&both[both.len() - send..]);
        senders.sort_unstable();
        receivers.sort_unstable();
        senders.into_iter().zip(receivers).collect()
    }
}
