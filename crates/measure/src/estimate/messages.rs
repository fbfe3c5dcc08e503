//! A carrier of virtual cores: when each message is offered and taken, and how long that takes.

use std::collections::HashSet;

use super::copy_costs::{CopyCosts, CopyMode};
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
    /// By rank: the time until which it copies or combines.
    busy: Vec<f64>,
    /// The data that each core has taken: core, sender and first span.
    cached: HashSet<(usize, usize, Span)>,
}

/// One direction between two ranks.
#[derive(Clone)]
struct VirtualLane {
    /// The time when its message is ready; infinite if there is none.
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
            cached: HashSet::new(),
        }
    }

    fn lane(&mut self, transfer: HalfTransfer<'_>) -> &mut VirtualLane {
        let lane = self.run.lane(self.rank, transfer.step, transfer.peer);
        &mut self.lanes[lane]
    }

    /// The rank is busy for this time.
    fn work(&mut self, time: f64) {
        self.progressed = true;
        self.now += time;
        self.busy[self.rank] = self.now;
    }

    fn offer(&mut self, transfer: HalfTransfer<'_>) {
        self.progressed = true;
        let now = self.now;
        let lane = self.lane(transfer);
        (lane.offered, lane.step) = (now, transfer.step);
    }
}

/// Model times mean nothing here: all messages may start at 0.
impl<'r> Carrier<'r> for VirtualMessages<'_> {
    fn open_send(&mut self, transfer: HalfTransfer<'r>, _: f64) {
        self.offer(transfer);
    }

    fn poll_send(&mut self, transfer: HalfTransfer<'r>, _: Combiner<'_>) -> Sent {
        if !self.is_free(transfer) {
            return Sent::Waiting;
        }
        self.progressed = true;
        Sent::Done(0.0)
    }

    fn open_receive(&mut self, _: HalfTransfer<'r>) {}

    fn receive(
        &mut self,
        transfer: HalfTransfer<'r>,
        _: RecvOp<'_>,
        share: bool,
        due: Due,
    ) -> Received {
        let (rank, from, now) = (self.rank, transfer.peer, self.now);
        let VirtualLane { offered, step, .. } = *self.lane(transfer);
        if offered > now {
            return Received::Nothing;
        }
        // An idle sender helps to copy.
        let helped = share && self.busy[from] <= now;
        let sent = self.copy_costs.step(from, step).reads();
        let data = sent.first().copied().unwrap_or(Span::new(0, 0));
        let core = self.copy_costs.core(rank);
        let how = if helped {
            CopyMode::Shared
        } else if self.run.runs_ahead() && !self.cached.insert((core, from, data)) {
            CopyMode::Cached
        } else {
            CopyMode::Receiver
        };
        let mine = (rank, transfer.step);
        self.work(self.copy_costs.take((from, step), mine, how));
        let now = self.now;
        if helped {
            self.busy[from] = now;
        }
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
        self.offer(transfer);
    }

    fn local(&mut self, dst: &[Span], _: &[Span], op: RecvOp<'_>) {
        let combines = matches!(op, RecvOp::Reduce(..));
        self.work(self.copy_costs.local(self.rank, total_len(dst), combines));
    }
}
