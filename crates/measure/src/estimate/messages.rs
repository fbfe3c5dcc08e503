//! A carrier of virtual cores: when each message is offered and taken, and how long that takes.

use std::collections::HashSet;

use super::copy_costs::{CopyCosts, CopyMode};
use oneport::internal::MIN_LONG_BYTES;
use oneport::internal::VirtualRun;
use oneport::internal::{Carrier, Combiner, Due, HalfTransfer, Received, RecvOp, Sent, Slots};
use oneport::schedule::{Span, total_len};

/// The messages of a run. What an executor does with them takes the time of the core that polls it.
pub(super) struct VirtualMessages<'a> {
    run: &'a VirtualRun<'a>,
    copy_costs: &'a CopyCosts<'a>,
    pub(super) rank: usize,
    /// The time of its core.
    pub(super) now: f64,
    pub(super) progressed: bool,
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
            progressed: false,
            lanes: vec![empty; run.lanes()],
            busy: vec![0.0; run.ranks()],
            waiting: vec![Vec::new(); run.ranks()],
            cached: HashSet::new(),
        }
    }

    fn lane(&mut self, transfer: HalfTransfer<'_>) -> &mut VirtualLane {
        let lane = self.run.lane(self.rank, transfer.step, transfer.peer);
        &mut self.lanes[lane]
    }

    /// Whether the message of `transfer`, which the rank receives, and one that it has sent to the
    /// same partner were on their way at once.
    fn crosses(&self, transfer: HalfTransfer<'_>, offered: f64) -> bool {
        let lane = self.run.lane(self.rank, transfer.step, transfer.peer);
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
        self.progressed = true;
        self.now += time;
        self.busy[self.rank] = self.now;
    }

    /// Offers a message, which its receiver sees after `handover`.
    fn offer(&mut self, transfer: HalfTransfer<'_>, handover: f64) {
        self.progressed = true;
        let seen = self.now + handover;
        self.waiting[transfer.peer].push(seen);
        let lane = self.lane(transfer);
        (lane.offered, lane.step) = (seen, transfer.step);
    }
}

/// Model times mean nothing here: all messages may start at 0.
impl<'r> Carrier<'r> for VirtualMessages<'_> {
    fn open_send(&mut self, transfer: HalfTransfer<'r>, _: f64) {
        self.offer(transfer, 0.0);
    }

    fn poll_send(&mut self, transfer: HalfTransfer<'r>, _: Combiner<'_>) -> Sent {
        if !self.is_free(transfer) {
            return Sent::Waiting;
        }
        self.progressed = true;
        Sent::Done(0.0)
    }

    fn open_receive(&mut self, _: HalfTransfer<'r>) {}

    fn receive(&mut self, transfer: HalfTransfer<'r>, _: RecvOp<'_>, due: Due) -> Received {
        let (rank, from, now) = (self.rank, transfer.peer, self.now);
        let VirtualLane { offered, step, .. } = *self.lane(transfer);
        if offered > now {
            return Received::Nothing;
        }
        // An idle sender helps to copy a long message.
        let long = self.copy_costs.step_bytes(rank, transfer.step) >= MIN_LONG_BYTES;
        let helped = self.run.both_copy() && long && self.is_idle(from);
        let sent = self.copy_costs.step(from, step).reads();
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
        let mine = (rank, transfer.step);
        // If it crosses one in the other direction, the line that both are on moves once more:
        // before the message is copied, or meanwhile if it has come long ago.
        let line = if how == CopyMode::Ahead && self.crosses(transfer, offered) {
            self.copy_costs.handover(from, rank) / 2.0
        } else {
            0.0
        };
        let late = (offered + line - now).max(0.0);
        let line = if late > 0.0 { 0.0 } else { line };
        self.work(late + self.copy_costs.take((from, step), mine, how, line));
        let now = self.now;
        if helped {
            self.busy[from] = now;
        }
        let taken = self.waiting[rank].iter().position(|&seen| seen == offered);
        taken.map(|at| self.waiting[rank].swap_remove(at));
        let lane = self.lane(transfer);
        (lane.offered, lane.taken) = (f64::INFINITY, now);
        Received::Done(due.ends(0.0)[1])
    }

    fn is_free(&mut self, transfer: HalfTransfer<'r>) -> bool {
        let now = self.now;
        let lane = self.lane(transfer);
        lane.offered.is_infinite() && lane.taken <= now
    }

    fn send(&mut self, transfer: HalfTransfer<'r>, _: f64, copy_to: Option<(&Slots, u32)>) {
        let copied = copy_to.is_some();
        self.work(self.copy_costs.put(self.rank, transfer.step, copied));
        let handover = self.copy_costs.handover(self.rank, transfer.peer);
        self.offer(transfer, handover);
    }

    fn local(&mut self, dst: &[Span], _: &[Span], op: RecvOp<'_>) {
        let combines = matches!(op, RecvOp::Reduce(..));
        self.work(self.copy_costs.local(self.rank, total_len(dst), combines));
    }
}
