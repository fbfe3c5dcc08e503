//! The messages of virtual cores: when each is offered and taken, and how long that takes.

use std::collections::HashSet;

use super::copy_costs::{CopyCosts, CopyMode};
use oneport::internal::{MIN_LONG_BYTES, VirtualCarrier, VirtualRun};
use oneport::schedule::Span;

/// The messages of a run. What an executor does with them takes the time of the core that polls it.
pub(super) struct VirtualMessages<'a> {
    run: &'a VirtualRun<'a>,
    copy_costs: &'a CopyCosts<'a>,
    pub(super) rank: usize,
    /// The time of its core.
    pub(super) now: f64,
    lanes: Vec<VirtualLane>,
    /// By rank: the time until which it copies or combines, for itself or for a receiver.
    pub(super) busy: Vec<f64>,
    /// By rank: the times from which it sees the messages that it has not taken.
    waiting: Vec<Vec<f64>>,
    /// The data that each core has taken: core, sender and first span.
    cached: HashSet<(usize, usize, Span)>,
}

/// One direction between two ranks.
#[derive(Clone)]
struct VirtualLane {
    /// The time when its receiver sees its message; infinite if there is none.
    offered: f64,
    /// The time when its last message has been taken.
    taken: f64,
    /// The sender's step.
    step: usize,
}

impl<'a> VirtualMessages<'a> {
    pub(super) fn new(run: &'a VirtualRun<'_>, copy_costs: &'a CopyCosts<'a>) -> Self {
        let empty = VirtualLane {
            offered: f64::INFINITY,
            taken: 0.0,
            step: 0,
        };
        VirtualMessages {
            run,
            copy_costs,
            rank: 0,
            now: 0.0,
            lanes: vec![empty; run.lanes()],
            busy: vec![0.0; run.ranks()],
            waiting: vec![Vec::new(); run.ranks()],
            cached: HashSet::new(),
        }
    }

    /// The lane of the message of the rank's step.
    fn lane(&self, step: usize, peer: usize) -> usize {
        self.run.lane(self.rank, step, peer)
    }

    /// Whether a message on `lane`, which the rank receives, and one that it has sent to the same
    /// partner were on their way at once.
    fn crosses(&self, lane: usize, offered: f64) -> bool {
        let back = &self.lanes[lane ^ 1];
        back.offered.is_finite() || back.taken > offered
    }

    /// Whether `rank` has nothing else to do now than to help.
    fn is_idle(&self, rank: usize) -> bool {
        let now = self.now;
        self.busy[rank] <= now && self.waiting[rank].iter().all(|&seen| seen > now)
    }

    /// The rank is busy for this time.
    fn work(&mut self, time: f64) {
        self.now += time;
        self.busy[self.rank] = self.now;
    }

    /// Offers the message of a step, which its receiver sees after `handover`.
    fn offer_after(&mut self, handover: f64, step: usize, peer: usize) {
        let seen = self.now + handover;
        self.waiting[peer].push(seen);
        let lane = self.lane(step, peer);
        (self.lanes[lane].offered, self.lanes[lane].step) = (seen, step);
    }
}

impl VirtualCarrier for VirtualMessages<'_> {
    fn offer(&mut self, step: usize, peer: usize) {
        self.offer_after(0.0, step, peer);
    }

    fn send(&mut self, step: usize, peer: usize, copied: bool) {
        self.work(self.copy_costs.put(self.rank, step, copied));
        self.offer_after(self.copy_costs.handover(self.rank, peer), step, peer);
    }

    fn is_free(&mut self, step: usize, peer: usize) -> bool {
        let lane = &self.lanes[self.lane(step, peer)];
        lane.offered.is_infinite() && lane.taken <= self.now
    }

    fn take(&mut self, step: usize, from: usize) -> bool {
        let (rank, now, lane) = (self.rank, self.now, self.lane(step, from));
        let VirtualLane {
            offered,
            step: sent_in,
            ..
        } = self.lanes[lane];
        if offered > now {
            return false;
        }
        // An idle sender helps to copy a long message.
        let long = self.copy_costs.step_bytes(rank, step) >= MIN_LONG_BYTES;
        let helped = self.run.both_copy() && long && self.is_idle(from);
        let sent = self.copy_costs.step(from, sent_in).reads();
        let data = sent.first().copied().unwrap_or(Span::new(0, 0));
        let core = self.copy_costs.core(rank);
        let how = if helped {
            CopyMode::Shared
        } else if !self.run.runs_ahead() {
            CopyMode::Receiver
        } else if self.cached.insert((core, from, data)) {
            CopyMode::Ahead
        } else {
            CopyMode::Cached
        };
        // If it crosses one in the other direction, the line that both are on moves once more:
        // before the message is copied, or meanwhile if it has come long ago.
        let line = if how == CopyMode::Ahead && self.crosses(lane, offered) {
            self.copy_costs.handover(from, rank) / 2.0
        } else {
            0.0
        };
        let late = (offered + line - now).max(0.0);
        let line = if late > 0.0 { 0.0 } else { line };
        let time = self
            .copy_costs
            .take((from, sent_in), (rank, step), how, line);
        self.work(late + time);
        let now = self.now;
        if helped {
            self.busy[from] = now;
        }
        let taken = self.waiting[rank].iter().position(|&seen| seen == offered);
        taken.map(|at| self.waiting[rank].swap_remove(at));
        (self.lanes[lane].offered, self.lanes[lane].taken) = (f64::INFINITY, now);
        true
    }

    fn local(&mut self, elements: usize, combines: bool) {
        self.work(self.copy_costs.local(self.rank, elements, combines));
    }
}
