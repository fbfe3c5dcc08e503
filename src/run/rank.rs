//! What one rank of a scope works with: its buffer, its ports, its model clock, and a record of what it did.

use std::time::Instant;

use super::clock::{IN, OUT, OnlineClock};
use super::element::Element;
use super::executor::nanoseconds;
use super::scope::ScopeSetting;
use super::transfer::{Intake, Lent, RankMemory, Received, Sent};
use super::wait::{Stop, Waiter};
use crate::cost::Ports;
use crate::error::{Error, ErrorKind, Result};
use crate::schedule::{Order, Span, Step};
use crate::simulate::later;

/// What all of an endpoint's parts work on.
#[derive(Debug)]
pub(super) struct Rank<'t, T: Element> {
    pub(super) rank: usize,
    pub(super) setting: &'t ScopeSetting<'t, T>,
    pub(super) memory: RankMemory<'t, 't, T>,
    waiter: Waiter<'t>,
    pub(super) clock: OnlineClock,
    open: Option<Open>,
    start: Instant,
    failed: bool,
    pub(super) steps: usize,
    pub(super) record: Option<Vec<Step>>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    to: usize,
    span: Span,
    step: usize,
    /// Whether an [`OpenSend`] stands for it.
    guarded: bool,
}

impl<'t, T: Element> Rank<'t, T> {
    pub(super) fn new(
        rank: usize,
        buffer: &'t mut [T],
        setting: &'t ScopeSetting<'t, T>,
        start: Instant,
    ) -> Self {
        Rank {
            rank,
            setting,
            memory: RankMemory::new(rank, buffer, 1),
            waiter: Waiter::new(setting.crowd, rank, setting.deadline, setting.paced),
            clock: OnlineClock::new(setting.ports, setting.cost.overlap),
            open: None,
            start,
            failed: false,
            steps: 0,
            record: setting.record.then(Vec::new),
        }
    }

    /// Ends the program: the model time at which the rank finished, and what it did.
    pub(super) fn finish(mut self) -> Result<(f64, Option<Vec<Step>>)> {
        self.usable(None)?;
        self.close_send()?;
        if self.setting.paced {
            let end = self.start + nanoseconds(self.clock.finish);
            self.setting.crowd.pace(end, true);
        }
        Ok((self.clock.finish, self.record.take()))
    }

    /// Refuses to work after a failure, or while a forgotten send holds the port of list `list`.
    pub(super) fn usable(&self, list: Option<usize>) -> Result<()> {
        if self.failed {
            return Err(Error::wrong(format!(
                "rank {}: an earlier operation of this endpoint failed",
                self.rank
            )));
        }
        let wanted = list.map(|l| self.clock.list(l));
        match self.open {
            Some(open) if open.guarded && wanted == Some(self.clock.list(OUT)) => {
                Err(ErrorKind::PortBusy {
                    rank: self.rank,
                    port: 0,
                    step: self.steps,
                }
                .into())
            }
            _ => Ok(()),
        }
    }

    fn check(&self, peer: Option<usize>, spans: &[Span]) -> Result<()> {
        let ranks = self.setting.wires.ranks();
        if let Some(peer) = peer
            && (peer >= ranks || peer == self.rank)
        {
            return Err(Error::usage(format!(
                "rank {}: peer {peer} is not another of {ranks} ranks",
                self.rank
            )));
        }
        let len = self.memory.data().len();
        if let Some(s) = spans
            .iter()
            .find(|s| s.offset.checked_add(s.len).is_none_or(|end| end > len))
        {
            return Err(Error::usage(format!(
                "rank {}: span [{}, {}] leaves the buffer of {len} elements",
                self.rank, s.offset, s.len
            )));
        }
        Ok(())
    }

    pub(super) fn linked(&self, from: usize, to: usize, span: Span) -> Result<()> {
        if span.len == 0 || self.setting.cost.linked(from, to) {
            return Ok(());
        }
        Err(Error::usage(format!(
            "rank {}: the costs have no link from rank {from} to rank {to}",
            self.rank
        )))
    }

    fn step(&mut self, step: impl FnOnce() -> Step) -> usize {
        if let Some(record) = &mut self.record {
            record.push(step());
        }
        self.steps += 1;
        self.steps - 1
    }

    pub(super) fn open_send(&mut self, to: usize, span: Span, guarded: bool) -> Result<()> {
        self.usable(Some(OUT))?;
        self.check(Some(to), &[span])?;
        self.linked(self.rank, to, span)?;
        self.close_send()?;
        let ready = self.clock.start(OUT, &[span], &[]);
        self.gate(ready);
        let step = self.step(|| Step::send(to, span));
        let wire = self.setting.wires.wire(self.rank, to);
        self.memory.open_send(0, wire, to, Lent::One(span), ready);
        self.open = Some(Open {
            to,
            span,
            step,
            guarded,
        });
        self.setting.crowd.wake(to);
        Ok(())
    }

    /// Waits for the open send, if there is one.
    pub(super) fn close_send(&mut self) -> Result<()> {
        while let Some(open) = self.open {
            if self.poll_send()? {
                break;
            }
            self.wait(open.to, open.step, "send")?;
        }
        Ok(())
    }

    pub(super) fn close_and_hold(&mut self) -> Result<()> {
        self.close_send()?;
        self.hold(self.clock.lists[self.clock.list(OUT)]);
        Ok(())
    }

    /// Looks after the open send, if there is one; true when it has ended.
    fn poll_send(&mut self) -> Result<bool> {
        let Some(open) = self.open else {
            return Ok(false);
        };
        match self.memory.poll_send(0, self.setting.operator) {
            Sent::Waiting | Sent::Shared => Ok(false),
            Sent::Done(end) => {
                self.open = None;
                self.waiter.moved();
                self.clock.transferred(OUT, end);
                self.clock.touched(open.span, false, end);
                Ok(true)
            }
            Sent::Refused => {
                self.open = None;
                self.failed = true;
                Err(Error::wrong(format!(
                    "rank {}, step {}: rank {} refused the message",
                    self.rank, open.step, open.to
                )))
            }
        }
    }

    pub(super) fn recv(&mut self, from: usize, span: Span, combine: Option<Order>) -> Result<()> {
        self.usable(Some(IN))?;
        self.check(Some(from), &[span])?;
        self.linked(from, self.rank, span)?;
        if !self.setting.ports.is_bidirectional() || self.memory.conflict(&[span]).is_some() {
            // The same port, or a span that is being sent.
            self.close_send()?;
        }
        let ready = self.clock.start(IN, &[], &[span]);
        self.gate(ready);
        let step = self.step(|| match combine {
            None => Step::recv(from, span),
            Some(order) => Step::recv_combine(from, span, order),
        });
        let s = self.setting;
        let wire = s.wires.wire(self.rank, from);
        let intake = combine.map_or(Intake::Store, |order| Intake::Combine(s.operator, order));
        let bytes = span.len as u64 * size_of::<T>() as u64;
        let message = s.cost.transfer(from, self.rank, bytes);
        let end = loop {
            let end = |theirs: f64| later(ready, theirs) + message;
            match self
                .memory
                .receive(wire, from, &[span], intake, s.share_copies, end)
            {
                Received::Done(end) => break end,
                Received::Nothing => {
                    self.poll_send()?;
                    self.wait(
                        from,
                        step,
                        if combine.is_some() {
                            "recv_combine"
                        } else {
                            "recv"
                        },
                    )?;
                }
                Received::Length(found) => {
                    self.failed = true;
                    return Err(ErrorKind::Length {
                        rank: self.rank,
                        step,
                        peer: from,
                        port: 0,
                        expected: span.len,
                        found,
                    }
                    .into());
                }
            }
        };
        self.waiter.moved();
        s.crowd.wake(from);
        self.clock.transferred(IN, end);
        let mut done = end;
        if combine.is_some() {
            let time = s.cost.combine(self.rank, bytes);
            if s.cost.overlap {
                done = end + time;
            } else {
                // The combination waits for the send that is open, and everything later waits for the combination.
                self.close_send()?;
                done = self.clock.compute(time);
            }
        }
        self.clock.touched(span, true, done);
        self.hold(done);
        Ok(())
    }

    pub(super) fn local(&mut self, src: Span, dst: Span, combine: Option<Order>) -> Result<()> {
        self.usable(None)?;
        self.check(None, &[src, dst])?;
        if src.len != dst.len || src.overlaps(dst) {
            return Err(Error::usage(format!(
                "rank {}: source [{}, {}] and destination [{}, {}] overlap or differ in length",
                self.rank, src.offset, src.len, dst.offset, dst.len
            )));
        }
        let s = self.setting;
        if !s.cost.overlap || self.memory.conflict(&[dst]).is_some() {
            self.close_send()?;
        }
        let bytes = src.len as u64 * size_of::<T>() as u64;
        let (intake, time) = match combine {
            None => (Intake::Store, s.cost.copy(self.rank, bytes)),
            Some(order) => (
                Intake::Combine(s.operator, order),
                s.cost.combine(self.rank, bytes),
            ),
        };
        self.step(|| match combine {
            None => Step::copy(src, dst),
            Some(order) => Step::combine(src, dst, order),
        });
        self.memory.local(&[dst], &[src], intake);
        let done = if s.cost.overlap {
            self.clock.data_ready(&[src], &[dst]) + time
        } else {
            self.clock.compute(time)
        };
        self.clock.touched(src, false, done);
        self.clock.touched(dst, true, done);
        self.hold(done);
        Ok(())
    }

    pub(super) fn barrier(&mut self) -> Result<()> {
        self.usable(None)?;
        self.close_send()?;
        let result = self.setting.crowd.barrier(&mut self.waiter);
        let last = self.steps;
        result.map_err(|stop| self.stopped(stop, self.rank, last, "barrier"))
    }

    /// Waits a little for `peer`.
    fn wait(&mut self, peer: usize, step: usize, what: &'static str) -> Result<()> {
        if let Err(stop) = self.waiter.pause(None) {
            return Err(self.stopped(stop, peer, step, what));
        }
        if !self.waiter.long() {
            return Ok(());
        }
        let s = self.setting;
        let wire = s.wires.wire(self.rank, peer);
        let sends = what == "send";
        // What the partner did before it left, or before it sent something itself, is seen after that was.
        let waiting = || matches!(wire.lane(self.rank, peer).sent(), Sent::Waiting);
        let offered = || wire.lane(peer, self.rank).is_offered();
        if s.crowd.has_left(peer, s.run) {
            let nothing = if sends { waiting() } else { !offered() };
            if nothing {
                self.failed = true;
                return Err(ErrorKind::PartnerLeft {
                    rank: self.rank,
                    step,
                    peer,
                    port: 0,
                }
                .into());
            }
        }
        if sends && s.ports == Ports::UNI && offered() && waiting() {
            // Both send to each other through their only ports.
            self.failed = true;
            return Err(ErrorKind::PortBusy {
                rank: self.rank,
                port: 0,
                step: step + 1,
            }
            .into());
        }
        Ok(())
    }

    fn stopped(&mut self, stop: Stop, peer: usize, step: usize, what: &'static str) -> Error {
        self.failed = true;
        match stop {
            Stop::Deadline => ErrorKind::Deadline {
                rank: self.rank,
                step,
                peer,
                port: 0,
                what,
            }
            .into(),
            Stop::Aborted => Error::wrong(format!("rank {}: another rank failed", self.rank)),
        }
    }

    /// Under a paced clock nothing starts before its model time.
    fn gate(&self, ready: f64) {
        if self.setting.paced {
            let ready = self.start + nanoseconds(ready);
            self.setting.crowd.pace(ready, false);
        }
    }

    /// Under a paced clock nothing ends before its model time.
    fn hold(&self, end: f64) {
        self.gate(end);
    }
}
