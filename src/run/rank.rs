//! The state of one rank in a scope besides its buffer: its port, its model clock, and a record of
//! its steps.
//!
//! Operations that write the buffer take it as `&mut`, sending takes it as `&`, so a program may
//! read its buffer while it sends.

use std::fmt;
use std::time::Instant;

use super::clock::{IN, OUT, OnlineClock};
use super::failure::{Failure, TransferAt, panicked, port_busy};
use super::transfer::{Due, RankMemory, Received, RecvOp, SendSpans, Sent, Wire};
use super::tuning::CACHED_PARTNERS;
use super::wait::{Missed, Stop, Waiter, nanoseconds};
use super::wires::ScopeContext;
use crate::error::{Error, ErrorKind, Result};
use crate::machine::{Ports, TransferCost};
use crate::schedule::{Order, Span, Step};

/// The buffer of one rank of a scope.
pub(super) type ScopeBuffer<'t> = RankMemory<'t, 't>;

/// What all parts of an endpoint share.
#[derive(Debug)]
pub(super) struct Rank<'t> {
    pub(super) rank: usize,
    pub(super) context: &'t ScopeContext<'t>,
    waiter: Waiter<'t>,
    pub(super) clock: OnlineClock,
    open: Option<Open>,
    /// A cache of wires to recent partners, indexed by the partner's rank modulo their number.
    partners: [Option<(usize, &'t Wire)>; CACHED_PARTNERS],
    start: Instant,
    failed: bool,
    /// Whether it failed because another rank did.
    pub(super) follows: bool,
    pub(super) steps: usize,
    /// The step whose data an operation moves or combines, while it does.
    moving: Option<usize>,
    pub(super) record: Option<Vec<Step>>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    to: usize,
    span: Span,
    step: usize,
    /// Whether an [`OpenSend`](super::OpenSend) represents it.
    guarded: bool,
}

impl<'t> Rank<'t> {
    pub(super) fn new(rank: usize, context: &'t ScopeContext<'t>, start: Instant) -> Self {
        Rank {
            rank,
            context,
            waiter: context.run.waiter(context.state, rank),
            clock: OnlineClock::new(
                context.run.ports,
                context.run.cost.overlaps(),
                context.run.cost.arrival(rank),
            ),
            open: None,
            partners: [None; CACHED_PARTNERS],
            start,
            failed: false,
            follows: false,
            steps: 0,
            moving: None,
            record: context.record.then(Vec::new),
        }
    }

    /// The step that a panic was in: the one whose data were being combined, or else the next one.
    pub(super) fn step_in_progress(&self) -> usize {
        self.moving.unwrap_or(self.steps)
    }

    /// Ends the program. Returns the model time at which the rank finished, and its recorded steps.
    pub(super) fn finish(&mut self, memory: &ScopeBuffer<'t>) -> Result<(f64, Option<Vec<Step>>)> {
        self.usable(None)?;
        self.close_send(memory)?;
        if self.context.run.paced {
            let end = self.start + nanoseconds(self.clock.finish);
            self.context.state.pace(self.rank, end, true);
        }
        Ok((self.clock.finish, self.record.take()))
    }

    /// Fails after an earlier failure, or while an [`OpenSend`](super::OpenSend) that was forgotten
    /// holds the port that list `list` needs.
    #[inline]
    pub(super) fn usable(&self, list: Option<usize>) -> Result<()> {
        if self.failed || self.open.is_some_and(|open| open.guarded) {
            self.refuse(list)
        } else {
            Ok(())
        }
    }

    #[cold]
    fn refuse(&self, list: Option<usize>) -> Result<()> {
        if self.failed {
            return Err(Error::wrong(format!(
                "rank {}: an earlier operation of this endpoint failed",
                self.rank
            )));
        }
        let wanted = list.map(|l| self.clock.list(l));
        match self.open {
            Some(open) if open.guarded && wanted == Some(self.clock.list(OUT)) => {
                Err(port_busy(self.rank, 0, self.steps))
            }
            _ => Ok(()),
        }
    }

    /// The wire to `peer`, which must be another rank.
    #[inline]
    fn wire(&mut self, peer: usize) -> Result<&'t Wire> {
        match self.partners[peer % CACHED_PARTNERS] {
            Some((known, wire)) if known == peer => Ok(wire),
            _ => self.new_partner(peer),
        }
    }

    #[cold]
    fn new_partner(&mut self, peer: usize) -> Result<&'t Wire> {
        let ranks = self.context.wires.ranks();
        if peer >= ranks || peer == self.rank {
            return Err(self.misuse(format_args!("peer {peer} is not another of {ranks} ranks")));
        }
        let wire = self.context.wires.wire(self.rank, peer);
        self.partners[peer % CACHED_PARTNERS] = Some((peer, wire));
        Ok(wire)
    }

    #[inline]
    fn within(&self, memory: &ScopeBuffer<'t>, span: Span) -> Result<()> {
        let len = memory.len();
        match span.offset.checked_add(span.len) {
            Some(end) if end <= len => Ok(()),
            _ => Err(self.outside(span, len)),
        }
    }

    #[cold]
    fn outside(&self, span: Span, len: usize) -> Error {
        self.misuse(format_args!("{}", span.outside(len)))
    }

    /// The error of an operation that was refused before it became step [`Rank::steps`].
    #[cold]
    fn misuse(&self, why: fmt::Arguments<'_>) -> Error {
        Error::usage(format!("rank {}, step {}: {why}", self.rank, self.steps))
    }

    #[inline]
    fn bytes(&self, span: Span) -> u64 {
        span.len as u64 * self.context.run.element_bytes
    }

    #[inline]
    fn linked(&self, from: usize, to: usize, span: Span) -> Result<()> {
        if self.context.line.is_some() || span.len == 0 || self.context.run.cost.linked(from, to) {
            return Ok(());
        }
        Err(ErrorKind::NoLink { from, to }.into())
    }

    #[inline]
    fn step(&mut self, step: impl FnOnce() -> Step) -> usize {
        if let Some(record) = &mut self.record {
            record.push(step());
        }
        self.steps += 1;
        self.steps - 1
    }

    #[inline]
    pub(super) fn open_send(
        &mut self,
        memory: &ScopeBuffer<'t>,
        to: usize,
        span: Span,
        guarded: bool,
    ) -> Result<()> {
        self.usable(Some(OUT))?;
        let wire = self.wire(to)?;
        self.within(memory, span)?;
        self.linked(self.rank, to, span)?;
        self.close_send(memory)?;
        let ready = self.clock.start(OUT, &[span], &[]);
        self.gate(ready);
        let step = self.step(|| Step::send(to, span));
        memory.open_send(0, wire, to, SendSpans::One(span), ready);
        self.open = Some(Open {
            to,
            span,
            step,
            guarded,
        });
        self.context.state.wake(to);
        Ok(())
    }

    /// Waits for the open send, if there is one.
    #[inline]
    pub(super) fn close_send(&mut self, memory: &ScopeBuffer<'t>) -> Result<()> {
        while let Some(open) = self.open {
            if self.poll_send(memory)? {
                break;
            }
            self.wait(open.to, open.step, "send")?;
            self.waiter.spin(|| memory.send_has_progress(0));
        }
        Ok(())
    }

    pub(super) fn close_and_hold(&mut self, memory: &ScopeBuffer<'t>) -> Result<()> {
        self.close_send(memory)?;
        self.hold(self.clock.free(OUT));
        Ok(())
    }

    /// Polls the open send, if there is one; true if it has ended.
    #[inline]
    fn poll_send(&mut self, memory: &ScopeBuffer<'t>) -> Result<bool> {
        let Some(open) = self.open else {
            return Ok(false);
        };
        // A sender may help to combine its message.
        self.moving = Some(open.step);
        let sent = memory.poll_send(0, self.context.run.combiner);
        self.moving = None;
        match sent {
            Sent::Waiting | Sent::Shared => Ok(false),
            Sent::Done(end) => {
                self.open = None;
                self.waiter.progressed();
                self.clock.transferred(OUT, &[open.span], &[], end);
                Ok(true)
            }
            Sent::Refused => {
                self.open = None;
                (self.failed, self.follows) = (true, true);
                Err(Error::wrong(format!(
                    "rank {}, step {}: rank {} refused the message",
                    self.rank, open.step, open.to
                )))
            }
        }
    }

    #[inline]
    pub(super) fn recv(
        &mut self,
        memory: &mut ScopeBuffer<'t>,
        from: usize,
        span: Span,
        combine: Option<Order>,
    ) -> Result<()> {
        self.usable(Some(IN))?;
        let wire = self.wire(from)?;
        self.within(memory, span)?;
        self.linked(from, self.rank, span)?;
        let s = &self.context.run;
        if self.open.is_some()
            && (!s.ports.is_bidirectional() || memory.conflict(&[span]).is_some())
        {
            // The send holds the same port, or the span to be written is being sent.
            self.close_send(memory)?;
        }
        let ready = self.clock.start(IN, &[], &[span]);
        self.gate(ready);
        let bytes = self.bytes(span);
        let cost = match &self.context.line {
            Some(line) => TransferCost::rendezvous(line.transfer(bytes)),
            None => s.cost.transfer_cost(from, self.rank, bytes),
        };
        let due = Due { ready, cost };
        let end = self.await_message(memory, wire, from, span, combine, due)?;
        self.waiter.progressed();
        self.context.state.wake(from);
        let done = if combine.is_some() {
            if !s.cost.overlaps() {
                // The combination waits for the open send, and all later steps wait for the
                // combination.
                self.close_send(memory)?;
            }
            let time = s.cost.combine(self.rank, bytes);
            self.clock.combined(&[span], end, time)
        } else {
            self.clock.transferred(IN, &[], &[span], end);
            end
        };
        self.hold(done);
        Ok(())
    }

    /// Waits for the message of `from` and stores it in `span`. Returns the model time at which the
    /// transfer ends.
    #[inline]
    fn await_message(
        &mut self,
        memory: &mut ScopeBuffer<'t>,
        wire: &'t Wire,
        from: usize,
        span: Span,
        combine: Option<Order>,
        due: Due,
    ) -> Result<f64> {
        let run = &self.context.run;
        let (op, what) = match combine {
            None => (RecvOp::Copy, "recv"),
            Some(order) => (RecvOp::Reduce(run.combiner, order), "recv_combine"),
        };
        let step = self.step(|| match combine {
            None => Step::recv(from, span),
            Some(order) => Step::recv_combine(from, span, order),
        });
        loop {
            self.moving = Some(step);
            let received = memory.receive(wire, from, &[span], op, run.copying.shared, due);
            self.moving = None;
            match received {
                Received::Done(end) => return Ok(end),
                Received::Nothing => {
                    self.poll_send(memory)?;
                    self.wait(from, step, what)?;
                    let lane = wire.lane(from, self.rank);
                    self.waiter
                        .spin(|| lane.is_offered() || memory.send_has_progress(0));
                }
                refused => return Err(self.cannot_receive(refused, step, from, span)),
            }
        }
    }

    #[cold]
    fn cannot_receive(&mut self, why: Received, step: usize, peer: usize, span: Span) -> Error {
        self.failed = true;
        match why {
            Received::Length(found) => self.at(step, peer).wrong_length(span.len, found),
            _ => {
                let message = format!(
                    "the operator panicked on rank {peer}, which helped to combine its message"
                );
                panicked(self.rank, step, message)
            }
        }
    }

    pub(super) fn local(
        &mut self,
        memory: &mut ScopeBuffer<'t>,
        src: Span,
        dst: Span,
        combine: Option<Order>,
    ) -> Result<()> {
        self.usable(None)?;
        self.within(memory, src)?;
        self.within(memory, dst)?;
        if src.len != dst.len || src.overlaps(dst) {
            return Err(self.misuse(format_args!(
                "source [{}, {}] and destination [{}, {}] overlap or differ in length",
                src.offset, src.len, dst.offset, dst.len
            )));
        }
        let s = &self.context.run;
        if !s.cost.overlaps() || memory.conflict(&[dst]).is_some() {
            self.close_send(memory)?;
        }
        let bytes = self.bytes(src);
        let (op, time) = match combine {
            None => (RecvOp::Copy, s.cost.copy(self.rank, bytes)),
            Some(order) => (
                RecvOp::Reduce(s.combiner, order),
                s.cost.combine_local(self.rank, bytes),
            ),
        };
        let step = self.step(|| match combine {
            None => Step::copy(src, dst),
            Some(order) => Step::combine(src, dst, order),
        });
        self.moving = Some(step);
        memory.local(&[dst], &[src], op);
        self.moving = None;
        let done = self.clock.local(&[src], &[dst], time);
        self.hold(done);
        Ok(())
    }

    pub(super) fn barrier(&mut self, memory: &ScopeBuffer<'t>) -> Result<()> {
        self.usable(None)?;
        self.close_send(memory)?;
        let step = self.steps;
        match self.context.state.barrier(&mut self.waiter) {
            Ok(()) => Ok(()),
            Err(Missed::Aborted) => Err(self.stopped(Stop::Aborted, self.rank, step, "barrier")),
            Err(Missed::Late(peer)) => Err(self.stopped(Stop::Deadline, peer, step, "barrier")),
            Err(Missed::Left(peer)) => Err(self.left(peer, step)),
        }
    }

    /// The transfer of step `step`, for errors.
    fn at(&self, step: usize, peer: usize) -> TransferAt {
        TransferAt {
            rank: self.rank,
            step,
            peer,
            port: 0,
        }
    }

    /// The error when `peer` has finished its program while this rank still waits for it.
    #[cold]
    fn left(&mut self, peer: usize, step: usize) -> Error {
        self.failed = true;
        self.at(step, peer).partner_left()
    }

    /// Waits a little for `peer`.
    #[inline]
    fn wait(&mut self, peer: usize, step: usize, what: &'static str) -> Result<()> {
        if let Err(stop) = self.waiter.pause(None) {
            return Err(self.stopped(stop, peer, step, what));
        }
        if self.waiter.long() {
            self.check_partner(peer, step, what)
        } else {
            Ok(())
        }
    }

    /// Fails if `peer` can never come.
    #[cold]
    fn check_partner(&mut self, peer: usize, step: usize, what: &'static str) -> Result<()> {
        let s = &self.context.run;
        let wire = self.context.wires.wire(self.rank, peer);
        let sends = what == "send";
        // A rank that sees that the partner has left, or has offered a message, also sees what the
        // partner did before that. So both conditions are evaluated only afterwards.
        let waiting = || matches!(wire.lane(self.rank, peer).sent(), Sent::Waiting);
        let offered = || wire.lane(peer, self.rank).is_offered();
        if self.context.state.has_left(peer, self.context.number) {
            let nothing = if sends { waiting() } else { !offered() };
            if nothing {
                return Err(self.left(peer, step));
            }
        }
        if sends && s.ports == Ports::UNI && offered() && waiting() {
            // Both partners send to each other through their only ports.
            self.failed = true;
            return Err(port_busy(self.rank, 0, step + 1));
        }
        Ok(())
    }

    #[cold]
    fn stopped(&mut self, stop: Stop, peer: usize, step: usize, what: &'static str) -> Error {
        self.failed = true;
        let waits = self.at(step, peer);
        match self.waiter.failure(stop, || waits.timeout(what)) {
            Failure::Own(error) => error,
            Failure::Aborted => {
                self.follows = true;
                Error::wrong(format!("rank {}: another rank failed", self.rank))
            }
        }
    }

    /// Under a paced clock, waits until model time `ready` before a step starts.
    #[inline]
    fn gate(&self, ready: f64) {
        if self.context.run.paced {
            let ready = self.start + nanoseconds(ready);
            self.context.state.pace(self.rank, ready, false);
        }
    }

    /// Under a paced clock, waits until model time `end` before a step ends.
    #[inline]
    fn hold(&self, end: f64) {
        self.gate(end);
    }
}
