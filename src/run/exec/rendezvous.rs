//! The executor of one rank's program where every transfer is a rendezvous: it advances every port
//! list as far as possible, over and over.
//!
//! It follows the [rules of time](crate::rules) by the same analysis
//! ([`LocalOrder`](crate::rules::LocalOrder)) as the simulator's precedence graph, and computes the
//! same sums in the same order, so the model times agree to the last bit.
//!
//! A step that does not start or end waits for one of these:
//!
//! 1. an earlier event of its rank has no time yet (`may_start`: `Obstacle::Event`, of
//!    [`EventTimes`], where nothing is before the arrival of the rank);
//! 2. a shared port is granted to another transfer (`may_start`: `Obstacle::Grant`, of [`Grants`]);
//! 3. on a paced clock, its model time has not come (`may_start`: `Obstacle::Clock`);
//! 4. its transfer is open and the partner has not come ([`Sent::Waiting`], [`Received::Nothing`]);
//! 5. its message is combined, and a list that it follows has not come as far (`Phase::Combined`).
//!
//! Where all lists wait for the clock, the loop in `among_ranks.rs` sleeps until then; else it
//! spins and parks until a partner wakes it, or until then. A held port is not waited for: a
//! program that opens one twice is wrong (`HeldPorts`).

mod among_ranks;

use std::time::Instant;

use super::carrier::{Carrier, HalfTransfer};
use super::event_times::EventTimes;
use super::executor::Peers;
use super::held_ports::HeldPorts;
use super::program::{Grants, Program, RankProgram};
use super::recorder::Stopwatch;
use crate::error::Error;
use crate::machine;
use crate::rules::{Event, max_time};
use crate::run::context::RunContext;
use crate::run::failure::{Failure, TransferAt, port_busy};
use crate::run::transfer::{Due, RankMemory, Received, RecvOp, Sent, Slots, Wire};
use crate::run::wait::nanoseconds;
use crate::schedule::{Spans, Step};

/// The executor of one rank, reused in all repetitions of a run.
#[derive(Debug)]
pub(crate) struct RendezvousExecutor<'r> {
    rank: usize,
    program: &'r RankProgram<'r>,
    wires: &'r [Wire],
    grants: &'r Grants,
    slots: &'r Slots,
    context: &'r RunContext<'r>,
    times: EventTimes,
    lists: Vec<ListState>,
    next_local: usize,
    ports: HeldPorts<'r>,
    finished: usize,
    /// The step being performed, for errors.
    at: usize,
    /// Model time 0 of a paced clock.
    start: Instant,
    /// When each step takes place, if that is recorded.
    stopwatch: Option<Stopwatch>,
}

#[derive(Debug, Clone, Copy, Default)]
struct ListState {
    next: usize,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum Phase {
    /// The next step has not started.
    #[default]
    Idle,
    /// Its transfer is open. For a receive, this is the model time from which it may start.
    Open(f64),
    /// Its message is combined, but the model time of that is not known yet: earlier steps on other
    /// ports have not finished.
    Combined,
}

/// Why a step does not start yet.
enum Obstacle {
    /// An earlier event of its rank has no time yet.
    Event,
    /// A shared port is granted to another transfer.
    Grant,
    /// On a paced clock: this model time has not come.
    Clock(f64),
}

/// The result of polling all lists of a rank once.
#[derive(Default)]
struct Poll {
    progressed: bool,
    /// The earliest model time at which a step may start that waits for nothing but the clock.
    gate: Option<f64>,
    /// Whether a step waits for a grant of a shared port.
    awaits_grant: bool,
}

impl Poll {
    /// A step waits.
    fn add(&mut self, obstacle: Obstacle) {
        match obstacle {
            Obstacle::Event => {}
            Obstacle::Grant => self.awaits_grant = true,
            Obstacle::Clock(time) => self.gate = Some(self.gate.map_or(time, |g| g.min(time))),
        }
    }
}

impl<'r> RendezvousExecutor<'r> {
    pub(crate) fn new(
        rank: usize,
        program: &'r Program<'r>,
        context: &'r RunContext<'r>,
        stopwatch: Option<Stopwatch>,
    ) -> Self {
        let (wires, grants, slots) = (&program.wires, &program.grants, &program.slots);
        let program = &program.ranks[rank];
        RendezvousExecutor {
            rank,
            program,
            wires,
            grants,
            slots,
            context,
            times: EventTimes::new(program.steps.len(), context.cost.arrival(rank)),
            lists: vec![ListState::default(); program.lists.len()],
            next_local: 0,
            ports: HeldPorts::new(context.enforced),
            finished: 0,
            at: 0,
            start: Instant::now(),
            stopwatch,
        }
    }

    /// Start and end of each step in the last repetition, in nanoseconds since the epoch, if that
    /// is recorded.
    pub(crate) fn recorded(self) -> Vec<(u64, u64)> {
        self.stopwatch.map_or_else(Vec::new, Stopwatch::times)
    }

    /// Goes back to the start of the program.
    pub(crate) fn begin(&mut self) {
        self.times.clear();
        self.lists.fill(ListState::default());
        self.ports.clear();
        self.grants.clear(self.rank, self.program.steps.len());
        (self.next_local, self.finished) = (0, 0);
    }

    /// The model time at which the last step finished so far ended.
    pub(crate) fn finish(&self) -> f64 {
        self.times.last()
    }

    /// Whether polling an open transfer would make progress.
    #[inline]
    fn has_progress(&self, memory: &RankMemory<'_, 'r>) -> bool {
        let mut lists = self.lists.iter().zip(&self.program.lists).enumerate();
        lists.any(|(list, (l, steps))| {
            let Some(&i) = steps.get(l.next) else {
                return false;
            };
            if !matches!(l.phase, Phase::Open(_)) {
                return false;
            }
            match &self.program.steps[i as usize] {
                Step::Recv { from, .. } | Step::RecvCombine { from, .. } => {
                    self.wire(i as usize).lane(*from, self.rank).is_offered()
                }
                _ => memory.send_has_progress(list),
            }
        })
    }

    fn progress(
        &mut self,
        carrier: &mut impl Carrier<'r>,
        peers: &impl Peers,
    ) -> Result<Poll, Failure> {
        let mut poll = Poll::default();
        for list in 0..self.lists.len() {
            while self.advance(list, carrier, peers, &mut poll)? {
                poll.progressed = true;
            }
        }
        while self.advance_local(carrier, &mut poll) {
            poll.progressed = true;
        }
        Ok(poll)
    }

    /// Advances list `list` by one phase; false if it has to wait.
    fn advance(
        &mut self,
        list: usize,
        carrier: &mut impl Carrier<'r>,
        peers: &impl Peers,
        poll: &mut Poll,
    ) -> Result<bool, Failure> {
        let ListState { next, phase } = self.lists[list];
        let Some(&index) = self.program.lists[list].get(next) else {
            return Ok(false);
        };
        let i = index as usize;
        let step = &self.program.steps[i];
        self.at = i;
        match (phase, step) {
            (Phase::Idle, _) => {
                match self.may_start(i) {
                    Ok(ready) => self.open(list, i, step, ready, carrier, peers)?,
                    Err(obstacle) => {
                        poll.add(obstacle);
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Phase::Open(_), Step::Send { to, spans, .. }) => {
                let transfer = self.transfer(list, i, *to, spans);
                self.send(transfer, step, carrier, peers)
            }
            (Phase::Open(ready), Step::Recv { from, spans, .. }) => {
                let transfer = self.transfer(list, i, *from, spans);
                self.receive(transfer, step, RecvOp::Copy, ready, carrier, peers)
            }
            (
                Phase::Open(ready),
                Step::RecvCombine {
                    from, spans, order, ..
                },
            ) => {
                let transfer = self.transfer(list, i, *from, spans);
                let op = RecvOp::Reduce(self.context.combiner, *order);
                self.receive(transfer, step, op, ready, carrier, peers)
            }
            (Phase::Combined, _) => Ok(self.end_combination(list, i, step)),
            (Phase::Open(_), Step::Copy { .. } | Step::Combine { .. }) => {
                unreachable!("port lists hold transfers")
            }
        }
    }

    /// Opens the transfer of step `i`, which may start at model time `ready`.
    fn open(
        &mut self,
        list: usize,
        i: usize,
        step: &'r Step,
        ready: f64,
        carrier: &mut impl Carrier<'r>,
        peers: &impl Peers,
    ) -> Result<(), Failure> {
        if !self.ports.hold(step) {
            return Err(port_busy(self.rank, step.port().unwrap_or(0), i).into());
        }
        self.record_start(i);
        match step {
            Step::Send { to, spans, .. } => {
                let transfer = self.transfer(list, i, *to, spans);
                if let Some(slot) = self.program.slot.get(i).copied().flatten() {
                    carrier.send(transfer, ready, Some((self.slots, slot)));
                    peers.wake(*to);
                    let cost = (self.context.cost).transfer_cost(self.rank, *to, self.bytes(step));
                    let [end, _] = cost.ends(ready, ready);
                    self.transferred(list, i, step, end, peers);
                    return Ok(());
                }
                carrier.open_send(transfer, ready);
                peers.wake(*to);
            }
            Step::Recv { from, spans, .. } | Step::RecvCombine { from, spans, .. } => {
                carrier.open_receive(self.transfer(list, i, *from, spans));
            }
            Step::Copy { .. } | Step::Combine { .. } => {}
        }
        self.lists[list].phase = Phase::Open(ready);
        Ok(())
    }

    /// Polls the open send of `step`; true if it has ended.
    fn send(
        &mut self,
        transfer: HalfTransfer<'r>,
        step: &Step,
        carrier: &mut impl Carrier<'r>,
        peers: &impl Peers,
    ) -> Result<bool, Failure> {
        match carrier.poll_send(transfer, self.context.combiner) {
            Sent::Done(end) => {
                self.transferred(transfer.list, transfer.step, step, end, peers);
                Ok(true)
            }
            // The receiver reports what was wrong with the message.
            Sent::Refused => Err(Failure::Aborted),
            Sent::Waiting | Sent::Shared => Ok(false),
        }
    }

    /// Polls the open receive of `step`, which may start at model time `ready`; true if it has
    /// ended.
    fn receive(
        &mut self,
        transfer: HalfTransfer<'r>,
        step: &Step,
        op: RecvOp<'_>,
        ready: f64,
        carrier: &mut impl Carrier<'r>,
        peers: &impl Peers,
    ) -> Result<bool, Failure> {
        let (context, from) = (self.context, transfer.peer);
        let cost = (context.cost).transfer_cost(from, self.rank, self.bytes(step));
        match carrier.receive(transfer, op, Due { ready, cost }) {
            // The sender reports its panic.
            Received::Poisoned => Err(Failure::Aborted),
            Received::Nothing => Ok(false),
            Received::Done(end) => {
                peers.wake(from);
                self.transferred(transfer.list, transfer.step, step, end, peers);
                Ok(true)
            }
            Received::Length(found) => Err(TransferAt::of(self.rank, transfer.step, step)
                .wrong_length(step.len(), found)
                .into()),
        }
    }

    /// The transfer of step `i` ended at model time `end`.
    fn transferred(&mut self, list: usize, i: usize, step: &Step, end: f64, peers: &impl Peers) {
        self.record_end(i, end);
        self.times.set(Event::transferred(i), end);
        self.grants
            .ended(self.rank, i, end, |rank| peers.wake(rank));
        self.ports.release(step);
        if !step.computes() {
            self.finish_step(list);
        } else if self.context.cost.overlaps() {
            // The port is free at once; only steps that touch the span wait for the combination.
            let combined = end + self.context.cost.combine(self.rank, self.bytes(step));
            self.times.set(Event::computed(i), combined);
            self.finish_step(list);
        } else {
            self.lists[list].phase = Phase::Combined;
        }
    }

    /// Ends step `i`, whose message has been combined; false if the model time of that is not known
    /// yet.
    fn end_combination(&mut self, list: usize, i: usize, step: &Step) -> bool {
        let transferred = self.times.of(Event::transferred(i));
        let Some(peers) = self.times.all(self.program.order.before_compute(i)) else {
            return false;
        };
        let start = max_time(transferred, peers);
        let end = start + self.context.cost.combine(self.rank, self.bytes(step));
        if self.context.paced {
            self.record_end(i, end);
        }
        self.times.set(Event::computed(i), end);
        self.finish_step(list);
        true
    }

    #[inline]
    fn record_start(&mut self, i: usize) {
        if let Some(stopwatch) = &mut self.stopwatch {
            stopwatch.starts(i);
        }
    }

    /// Step `i` ended at model time `end`.
    #[inline]
    fn record_end(&mut self, i: usize, end: f64) {
        if let Some(stopwatch) = &mut self.stopwatch {
            let held = (self.context.paced).then(|| self.start + nanoseconds(end));
            stopwatch.ends(i, held);
        }
    }

    fn finish_step(&mut self, list: usize) {
        self.lists[list].next += 1;
        self.lists[list].phase = Phase::Idle;
        self.finished += 1;
    }

    /// Performs the next local step; false if it has to wait or there is none.
    fn advance_local(&mut self, carrier: &mut impl Carrier<'r>, poll: &mut Poll) -> bool {
        let remaining = &self.program.local[self.next_local..];
        // With overlap, a local step need not wait for earlier local steps, so all remaining ones
        // are tried; without, they are performed in order.
        let window = if self.context.cost.overlaps() {
            remaining.len()
        } else {
            remaining.len().min(1)
        };
        for &i in &remaining[..window] {
            let i = i as usize;
            if self.times.has(Event::computed(i)) {
                continue;
            }
            match self.may_start(i) {
                Ok(ready) => {
                    self.perform_local(i, ready, carrier);
                    return true;
                }
                Err(obstacle) => poll.add(obstacle),
            }
        }
        false
    }

    /// Performs local step `i`, which may start at model time `ready`.
    fn perform_local(&mut self, i: usize, ready: f64, carrier: &mut impl Carrier<'r>) {
        self.at = i;
        let step = &self.program.steps[i];
        let cost = self.context.cost;
        self.record_start(i);
        let time = match step {
            Step::Copy { src, dst } => {
                carrier.local(dst, src, RecvOp::Copy);
                cost.copy(self.rank, self.bytes(step))
            }
            Step::Combine { src, dst, order } => {
                carrier.local(dst, src, RecvOp::Reduce(self.context.combiner, *order));
                cost.combine_local(self.rank, self.bytes(step))
            }
            _ => unreachable!("transfers are in port lists"),
        };
        self.record_end(i, ready + time);
        self.times.set(Event::computed(i), ready + time);
        self.finished += 1;
        let remaining = &self.program.local[self.next_local..];
        let performed = |&&i: &&u32| self.times.has(Event::computed(i as usize));
        self.next_local += remaining.iter().take_while(performed).count();
    }

    /// The model time from which step `i` may start, or why it does not start yet.
    fn may_start(&self, i: usize) -> Result<f64, Obstacle> {
        let ready = self.times.all(self.program.order.before_start(i));
        let ready = ready.ok_or(Obstacle::Event)?;
        let ready = self.grants.delayed(self.rank, i, ready);
        let ready = ready.ok_or(Obstacle::Grant)?;
        if self.context.paced && Instant::now() < self.start + nanoseconds(ready) {
            return Err(Obstacle::Clock(ready));
        }
        Ok(ready)
    }

    /// The error of step `i`, a send to `peer`, which sends to this rank at the same time: the
    /// receive that follows needs the same port.
    fn head_on(&self, i: usize, step: &Step, peer: usize) -> Error {
        let mut later = self.program.steps[i..].iter();
        let receive = later.position(|s| !s.is_send() && s.peer() == Some(peer));
        let port = step.port().unwrap_or(0);
        port_busy(self.rank, port, receive.map_or(i, |n| i + n))
    }

    #[inline]
    fn transfer(
        &self,
        list: usize,
        step: usize,
        peer: usize,
        spans: &'r Spans,
    ) -> HalfTransfer<'r> {
        HalfTransfer {
            step,
            list,
            peer,
            wire: self.wire(step),
            spans,
        }
    }

    fn bytes(&self, step: &Step) -> u64 {
        machine::bytes(step.len(), self.context.element_bytes)
    }

    fn wire(&self, i: usize) -> &'r Wire {
        &self.wires[self.program.wire[i] as usize]
    }

    /// Open transfers: list and step of each.
    fn open_steps(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.lists.iter().enumerate().filter_map(|(list, l)| {
            let i = *self.program.lists[list].get(l.next)? as usize;
            matches!(l.phase, Phase::Open(_)).then_some((list, i))
        })
    }
}
