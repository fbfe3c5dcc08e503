//! The executor of one rank's program where every transfer is a rendezvous: it advances every port
//! list as far as possible, over and over.
//!
//! It follows the [rules of time](crate::rules) by the same analysis
//! ([`LocalOrder`](crate::rules::LocalOrder)) as the simulator's precedence graph, and computes the
//! same sums in the same order, so the model times agree to the last bit.

use std::time::Instant;

use super::event_times::EventTimes;
use super::executor::{Peers, RankExecutor};
use super::held_ports::HeldPorts;
use super::program::{Program, RankProgram};
use super::recorder::Recorder;
use crate::error::Error;
use crate::machine::{self, Ports};
use crate::rules::{Event, max_time};
use crate::run::context::RunContext;
use crate::run::element::Element;
use crate::run::failure::{Failure, TransferAt, port_busy};
use crate::run::transfer::{Due, RankMemory, Received, RecvOp, SendSpans, Sent, Wire};
use crate::run::wait::{Stop, nanoseconds};
use crate::schedule::Step;

/// The executor of one rank, reused in all repetitions of a run.
#[derive(Debug)]
pub(crate) struct RendezvousExecutor<'r, T: Element, R> {
    rank: usize,
    program: &'r RankProgram<'r>,
    wires: &'r [Wire],
    context: &'r RunContext<'r, T>,
    times: EventTimes,
    lists: Vec<List>,
    next_local: usize,
    ports: HeldPorts,
    finished: usize,
    /// The step being performed, for errors.
    at: usize,
    /// Model time 0 of a paced clock.
    start: Instant,
    recorder: R,
}

#[derive(Debug, Clone, Copy, Default)]
struct List {
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

/// The result of polling all lists of a rank once.
#[derive(Default)]
struct Poll {
    progressed: bool,
    /// The earliest model time at which a step may start that waits for nothing but the pace.
    gate: Option<f64>,
}

impl<'r, T: Element, R: Recorder> RendezvousExecutor<'r, T, R> {
    pub(crate) fn new(
        rank: usize,
        program: &'r Program<'r>,
        context: &'r RunContext<'r, T>,
        recorder: R,
    ) -> Self {
        let wires = &program.wires;
        let program = &program.ranks[rank];
        RendezvousExecutor {
            rank,
            program,
            wires,
            context,
            times: EventTimes::new(program.steps.len()),
            lists: vec![List::default(); program.lists.len()],
            next_local: 0,
            ports: HeldPorts::new(context.enforced),
            finished: 0,
            at: 0,
            start: Instant::now(),
            recorder,
        }
    }

    /// The recorder that was given to [`RendezvousExecutor::new`].
    pub(crate) fn recorder(&mut self) -> &mut R {
        &mut self.recorder
    }

    /// Goes back to the start of the program.
    pub(crate) fn begin(&mut self) {
        self.times.clear();
        self.lists.fill(List::default());
        self.ports.clear();
        (self.next_local, self.finished) = (0, 0);
    }

    /// The model time at which the last step finished so far ended.
    pub(crate) fn finish(&self) -> f64 {
        self.times.last()
    }

    /// Whether polling an open transfer would make progress.
    #[inline]
    fn has_progress(&self, memory: &RankMemory<'_, 'r, T>) -> bool {
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

    /// Advances every list as far as possible.
    fn progress(
        &mut self,
        memory: &mut RankMemory<'_, 'r, T>,
        peers: &impl Peers,
    ) -> Result<Poll, Failure> {
        let mut poll = Poll::default();
        for list in 0..self.lists.len() {
            while self.advance(list, memory, peers, &mut poll)? {
                poll.progressed = true;
            }
        }
        while self.advance_local(memory, &mut poll) {
            poll.progressed = true;
        }
        Ok(poll)
    }

    /// Advances list `list` by one phase; false if it has to wait.
    fn advance(
        &mut self,
        list: usize,
        memory: &mut RankMemory<'_, 'r, T>,
        peers: &impl Peers,
        poll: &mut Poll,
    ) -> Result<bool, Failure> {
        let List { next, phase } = self.lists[list];
        let Some(&index) = self.program.lists[list].get(next) else {
            return Ok(false);
        };
        let i = index as usize;
        let step = &self.program.steps[i];
        self.at = i;
        match (phase, step) {
            (Phase::Idle, _) => {
                let Some(ready) = self.may_start(i, poll) else {
                    return Ok(false);
                };
                self.open(list, i, step, ready, memory, peers)?;
                Ok(true)
            }
            (Phase::Open(_), Step::Send { .. }) => self.send(list, i, step, memory),
            (Phase::Open(ready), _) => self.receive(list, i, step, ready, memory, peers),
            (Phase::Combined, _) => Ok(self.end_combination(list, i, step)),
        }
    }

    /// Opens the transfer of step `i`, which may start at model time `ready`.
    fn open(
        &mut self,
        list: usize,
        i: usize,
        step: &'r Step,
        ready: f64,
        memory: &RankMemory<'_, 'r, T>,
        peers: &impl Peers,
    ) -> Result<(), Failure> {
        if !self.ports.hold(step) {
            return Err(port_busy(self.rank, step.port().unwrap_or(0), i).into());
        }
        self.recorder.starts(i);
        if let Step::Send { to, spans, .. } = step {
            let borrowed = match spans.as_slice() {
                [one] => SendSpans::One(*one),
                many => SendSpans::Many(many),
            };
            memory.open_send(list, self.wire(i), *to, borrowed, ready);
            peers.wake(*to);
        }
        self.lists[list].phase = Phase::Open(ready);
        Ok(())
    }

    /// Polls the open send of step `i`; true if it has ended.
    fn send(
        &mut self,
        list: usize,
        i: usize,
        step: &Step,
        memory: &RankMemory<'_, 'r, T>,
    ) -> Result<bool, Failure> {
        match memory.poll_send(list, self.context.operator) {
            Sent::Done(end) => {
                self.transferred(list, i, step, end);
                Ok(true)
            }
            // The receiver reports what was wrong with the message.
            Sent::Refused => Err(Failure::Aborted),
            Sent::Waiting | Sent::Shared => Ok(false),
        }
    }

    /// Polls the open receive of step `i`; true if it has ended.
    fn receive(
        &mut self,
        list: usize,
        i: usize,
        step: &Step,
        ready: f64,
        memory: &mut RankMemory<'_, 'r, T>,
        peers: &impl Peers,
    ) -> Result<bool, Failure> {
        let s = self.context;
        let (from, spans, op) = match step {
            Step::Recv { from, spans, .. } => (*from, spans, RecvOp::Copy),
            Step::RecvCombine {
                from, spans, order, ..
            } => (*from, spans, RecvOp::Reduce(s.operator, *order)),
            _ => return Ok(false),
        };
        let takes = s.cost.transfer(from, self.rank, bytes::<T>(step));
        let due = Due { ready, takes };
        match memory.receive(self.wire(i), from, spans, op, s.share_copies, due) {
            // The sender reports its panic.
            Received::Poisoned => Err(Failure::Aborted),
            Received::Nothing => Ok(false),
            Received::Done(end) => {
                peers.wake(from);
                self.transferred(list, i, step, end);
                Ok(true)
            }
            Received::Length(found) => Err(TransferAt::of(self.rank, i, step)
                .wrong_length(step.len(), found)
                .into()),
        }
    }

    /// The transfer of step `i` ended at model time `end`.
    fn transferred(&mut self, list: usize, i: usize, step: &Step, end: f64) {
        self.record_end(i, end);
        self.times.set(Event::transferred(i), end);
        self.ports.release(step);
        if !step.computes() {
            self.finish_step(list);
        } else if self.context.cost.overlap {
            // The port is free at once; only steps that touch the span wait for the combination.
            let combined = end + self.context.cost.combine(self.rank, bytes::<T>(step));
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
        let end = start + self.context.cost.combine(self.rank, bytes::<T>(step));
        if self.context.paced {
            self.record_end(i, end);
        }
        self.times.set(Event::computed(i), end);
        self.finish_step(list);
        true
    }

    /// Step `i` ended at model time `end`.
    fn record_end(&mut self, i: usize, end: f64) {
        if R::ON {
            let held = (self.context.paced).then(|| self.start + nanoseconds(end));
            self.recorder.ends(i, held);
        }
    }

    fn finish_step(&mut self, list: usize) {
        self.lists[list].next += 1;
        self.lists[list].phase = Phase::Idle;
        self.finished += 1;
    }

    /// Performs the next local step; false if it has to wait or there is none.
    fn advance_local(&mut self, memory: &mut RankMemory<'_, 'r, T>, poll: &mut Poll) -> bool {
        let remaining = &self.program.local[self.next_local..];
        // With overlap, a local step need not wait for earlier local steps, so all remaining ones
        // are tried; without, they are performed in order.
        let window = if self.context.cost.overlap {
            remaining.len()
        } else {
            remaining.len().min(1)
        };
        for &i in &remaining[..window] {
            let i = i as usize;
            if self.times.has(Event::computed(i)) {
                continue;
            }
            if let Some(ready) = self.may_start(i, poll) {
                self.perform_local(i, ready, memory);
                return true;
            }
        }
        false
    }

    /// Performs local step `i`, which may start at model time `ready`.
    fn perform_local(&mut self, i: usize, ready: f64, memory: &mut RankMemory<'_, 'r, T>) {
        self.at = i;
        let step = &self.program.steps[i];
        let cost = self.context.cost;
        self.recorder.starts(i);
        let time = match step {
            Step::Copy { src, dst } => {
                memory.local(dst, src, RecvOp::Copy);
                cost.copy(self.rank, bytes::<T>(step))
            }
            Step::Combine { src, dst, order } => {
                memory.local(dst, src, RecvOp::Reduce(self.context.operator, *order));
                cost.combine_local(self.rank, bytes::<T>(step))
            }
            _ => 0.0,
        };
        self.record_end(i, ready + time);
        self.times.set(Event::computed(i), ready + time);
        self.finished += 1;
        let remaining = &self.program.local[self.next_local..];
        let performed = |&&i: &&u32| self.times.has(Event::computed(i as usize));
        self.next_local += remaining.iter().take_while(performed).count();
    }

    /// The model time from which step `i` may start, if all that it waits for has happened and,
    /// under a paced clock, that time has come.
    fn may_start(&self, i: usize, poll: &mut Poll) -> Option<f64> {
        let ready = self.times.all(self.program.order.before_start(i))?;
        if self.context.paced && Instant::now() < self.start + nanoseconds(ready) {
            poll.gate = Some(poll.gate.map_or(ready, |g| g.min(ready)));
            return None;
        }
        Some(ready)
    }

    /// The error of step `i`, a send to `peer`, which sends to this rank at the same time: the
    /// receive that follows needs the same port.
    fn head_on(&self, i: usize, step: &Step, peer: usize) -> Error {
        let mut later = self.program.steps[i..].iter();
        let receive = later.position(|s| !s.is_send() && s.peer() == Some(peer));
        let port = step.port().unwrap_or(0);
        port_busy(self.rank, port, receive.map_or(i, |n| i + n))
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

impl<'r, T: Element, R: Recorder> RankExecutor<'r, T> for RendezvousExecutor<'r, T, R> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn run(
        &mut self,
        memory: &mut RankMemory<'_, 'r, T>,
        start: Instant,
        run: u64,
    ) -> Result<(), Failure> {
        self.start = start;
        let s = self.context;
        let mut waiter = s.waiter(self.rank);
        while !self.is_done() {
            let poll = self.progress(memory, s.state)?;
            if poll.progressed {
                waiter.progressed();
                continue;
            }
            let until = poll.gate.map(|t| start + nanoseconds(t));
            if let Some(until) = until
                && self.lists.iter().all(|l| l.phase == Phase::Idle)
            {
                s.state.pace(until, false);
                if s.state.is_aborted() {
                    return Err(Failure::Aborted);
                }
                waiter.progressed();
                continue;
            }
            waiter.pause(until).map_err(|stop| match stop {
                Stop::Aborted => Failure::Aborted,
                Stop::Deadline => Failure::Own(self.timeout_error()),
            })?;
            waiter.spin(|| self.has_progress(memory));
            if waiter.long() && self.check_partners(memory, s.state, run)? {
                waiter.progressed();
            }
        }
        if s.paced {
            s.state.pace(start + nanoseconds(self.times.last()), true);
        }
        s.state.leave(self.rank, run);
        Ok(())
    }

    fn poll(
        &mut self,
        memory: &mut RankMemory<'_, 'r, T>,
        peers: &impl Peers,
    ) -> Result<(), Failure> {
        while self.progress(memory, peers)?.progressed {}
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.finished == self.program.steps.len()
    }

    fn step(&self) -> usize {
        self.at
    }

    fn wants_help(&self, memory: &RankMemory<'_, 'r, T>) -> bool {
        (0..self.lists.len()).any(|list| memory.send_has_progress(list))
    }

    fn check_partners(
        &mut self,
        memory: &mut RankMemory<'_, 'r, T>,
        peers: &impl Peers,
        run: u64,
    ) -> Result<bool, Failure> {
        let open: Vec<_> = self.open_steps().collect();
        for (list, i) in open {
            let step = &self.program.steps[i];
            let Some(peer) = step.peer() else { continue };
            let left = peers.has_left(peer, run);
            // Both partners send to each other through their only ports, so neither can receive.
            let head_on = self.context.ports == Ports::UNI
                && step.is_send()
                && self.wire(i).lane(peer, self.rank).is_offered();
            if !left && !head_on {
                continue;
            }
            // The partner may have ended this transfer before it left, or before it offered its own
            // message. Having seen the latter, this rank also sees the former, so it polls once
            // more.
            let mut poll = Poll::default();
            if self.advance(list, memory, peers, &mut poll)? {
                return Ok(true);
            }
            return Err(if left {
                TransferAt::of(self.rank, i, step).partner_left().into()
            } else {
                self.head_on(i, step, peer).into()
            });
        }
        Ok(false)
    }

    fn timeout_error(&self) -> Error {
        let (_, i) = self.open_steps().next().unwrap_or((0, self.at));
        let step = &self.program.steps[i];
        TransferAt::of(self.rank, i, step).timeout(step.name())
    }
}

fn bytes<T>(step: &Step) -> u64 {
    machine::bytes(step.len(), size_of::<T>() as u64)
}
