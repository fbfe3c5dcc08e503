//! Endpoints: rank programs written by hand, with the port model in their types.
//!
//! An endpoint works on its rank's buffer by spans, like a schedule's steps, so what it did can be recorded and checked,
//! drawn and simulated like any schedule; see [`Team::scope`].
//!
//! A unidirectional endpoint has one port: everything that uses it takes `&mut self`, so while a transfer is open nothing else can be.
//!
//! ```compile_fail,E0499
//! # use oneport::run::{Endpoint, Unidirectional};
//! fn two_at_once(e: &mut Endpoint<f32, Unidirectional>) -> oneport::Result<()> {
//!     let open = e.open_send(1, 0..4)?;
//!     e.recv(1, 4..8)?; // the port is open: does not compile
//!     open.wait()
//! }
//! ```
//!
//! A bidirectional endpoint splits into one port out and one port in, which may both be open, but neither twice.
//!
//! ```
//! # use oneport::run::{Endpoint, Bidirectional};
//! fn exchange(e: &mut Endpoint<f32, Bidirectional>) -> oneport::Result<()> {
//!     let (mut out, mut r#in) = e.split();
//!     let open = out.open_send(1, 0..4)?;
//!     r#in.recv(1, 4..8)?;
//!     open.wait()
//! }
//! ```
//!
//! ```compile_fail,E0499
//! # use oneport::run::{Endpoint, Bidirectional};
//! fn twice(e: &mut Endpoint<f32, Bidirectional>) -> oneport::Result<()> {
//!     let (mut out, _in) = e.split();
//!     let first = out.open_send(1, 0..4)?;
//!     let second = out.open_send(2, 4..8)?; // the port out is open: does not compile
//!     first.wait()?;
//!     second.wait()
//! }
//! ```
//!
//! A unidirectional endpoint cannot exchange, nor be split:
//!
//! ```compile_fail,E0599
//! # use oneport::run::{Endpoint, Unidirectional};
//! fn exchange(e: &mut Endpoint<f32, Unidirectional>) -> oneport::Result<()> {
//!     e.exchange(1, 0..4, 1, 4..8)
//! }
//! ```

use std::cell::{Ref, RefCell};
use std::marker::PhantomData;
use std::time::Instant;

use super::element::Element;
use super::executor::nanoseconds;
use super::operator::Operator;
use super::scope::ScopeSetting;
use super::transfer::{Intake, Lent, RankMemory, Received, Sent};
use super::wait::{Stop, Waiter};
use crate::cost::Ports;
use crate::error::{Error, ErrorKind, Result};
use crate::schedule::{Order, Span, Step};
use crate::simulate::later;

/// A port model, as a type.
pub trait PortModel: sealed::Sealed + Send + Sync + 'static {
    /// The same as a value.
    const PORTS: Ports;
}

/// One port for both directions.
#[derive(Debug, Clone, Copy)]
pub struct Unidirectional;

/// One port out and one port in.
#[derive(Debug, Clone, Copy)]
pub struct Bidirectional;

impl PortModel for Unidirectional {
    const PORTS: Ports = Ports::UNI;
}

impl PortModel for Bidirectional {
    const PORTS: Ports = Ports::BI;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Unidirectional {}
    impl Sealed for super::Bidirectional {}
}

/// One rank's ends of all its channels, and its buffer.
///
/// All operations are synchronous: a send ends when the partner has the message. A unidirectional [`send`](Endpoint::send) returns then; a
/// bidirectional one returns as soon as the port is open, and whatever needs the port or writes the span waits (rules 1 and 2 of
/// [`crate::schedule`]), so a program that sends before it receives may exchange. Its model clock follows the same rules.
///
/// # Errors
/// Every operation returns [`ErrorKind::Usage`] for a peer or a span that does not exist, [`ErrorKind::PortBusy`] when a port is still held by
/// an [`OpenSend`] that was forgotten, and [`ErrorKind::Deadline`], [`ErrorKind::PartnerLeft`] or [`ErrorKind::Length`] when the
/// transfer cannot complete. After one of the latter the endpoint only returns errors.
#[derive(Debug)]
pub struct Endpoint<'t, T: Element, P: PortModel = Bidirectional> {
    inner: RefCell<Inner<'t, T>>,
    ports: PhantomData<P>,
}

/// The port out of a bidirectional endpoint.
#[derive(Debug)]
pub struct SendPort<'e, 't, T: Element> {
    inner: &'e RefCell<Inner<'t, T>>,
}

/// The port in of a bidirectional endpoint.
#[derive(Debug)]
pub struct RecvPort<'e, 't, T: Element> {
    inner: &'e RefCell<Inner<'t, T>>,
}

/// A send under way; it holds its port until it has been waited for (dropping it waits too).
#[must_use = "dropping an open send waits for it"]
#[derive(Debug)]
pub struct OpenSend<'p, 't, T: Element> {
    inner: &'p RefCell<Inner<'t, T>>,
}

impl<'t, T: Element, P: PortModel> Endpoint<'t, T, P> {
    pub(super) fn new(inner: Inner<'t, T>) -> Self {
        Endpoint {
            inner: RefCell::new(inner),
            ports: PhantomData,
        }
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.inner.borrow().rank
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.inner.borrow().setting.wires.ranks()
    }

    /// The rank's buffer.
    pub fn data(&mut self) -> &[T] {
        self.inner.get_mut().memory.data()
    }

    /// The rank's buffer, for writing; waits for an open send first.
    ///
    /// # Errors
    /// When that send fails.
    pub fn data_mut(&mut self) -> Result<&mut [T]> {
        let inner = self.inner.get_mut();
        inner.usable(None)?;
        inner.close_send()?;
        Ok(inner.memory.data_mut())
    }

    /// Sends `span` to rank `to`.
    ///
    /// # Errors
    /// As described at [`Endpoint`], here and in the other operations.
    pub fn send(&mut self, to: usize, span: impl Into<Span>) -> Result<()> {
        let inner = self.inner.get_mut();
        inner.open_send(to, span.into(), false)?;
        if P::PORTS.is_bidirectional() {
            Ok(())
        } else {
            inner.close_and_hold()
        }
    }

    /// Opens a send of `span` to rank `to`; the port is free again when it has been waited for. A bidirectional endpoint is
    /// [split](Endpoint::split) to receive meanwhile.
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn open_send(&mut self, to: usize, span: impl Into<Span>) -> Result<OpenSend<'_, 't, T>> {
        self.inner.get_mut().open_send(to, span.into(), true)?;
        Ok(OpenSend { inner: &self.inner })
    }

    /// Receives from rank `from` into `span`.
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn recv(&mut self, from: usize, span: impl Into<Span>) -> Result<()> {
        self.inner.get_mut().recv(from, span.into(), None)
    }

    /// Receives from rank `from` and combines into `span`, with the scope's operator.
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn recv_combine(&mut self, from: usize, span: impl Into<Span>, order: Order) -> Result<()> {
        self.inner.get_mut().recv(from, span.into(), Some(order))
    }

    /// Copies `src` to `dst`.
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn copy(&mut self, src: impl Into<Span>, dst: impl Into<Span>) -> Result<()> {
        self.inner.get_mut().local(src.into(), dst.into(), None)
    }

    /// Combines `src` into `dst`, with the scope's operator.
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn combine(
        &mut self,
        src: impl Into<Span>,
        dst: impl Into<Span>,
        order: Order,
    ) -> Result<()> {
        self.inner
            .get_mut()
            .local(src.into(), dst.into(), Some(order))
    }

    /// Waits for all ranks. Not a step: it takes no model time and is not recorded.
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn barrier(&mut self) -> Result<()> {
        self.inner.get_mut().barrier()
    }

    /// The model time at which everything that this rank has done is finished.
    pub fn model_time(&mut self) -> Result<f64> {
        let inner = self.inner.get_mut();
        inner.usable(None)?;
        inner.close_send()?;
        Ok(inner.clock.finish)
    }

    /// What it combines with.
    pub(super) fn operator(&self) -> &'t Operator<T> {
        self.inner.borrow().setting.operator
    }

    pub(super) fn into_inner(self) -> Inner<'t, T> {
        self.inner.into_inner()
    }

    pub(super) fn steps(&self) -> usize {
        self.inner.borrow().steps
    }
}

impl<'t, T: Element> Endpoint<'t, T, Bidirectional> {
    /// Sends `outgoing` to rank `to` while receiving from rank `from` into `incoming`.
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn exchange(
        &mut self,
        to: usize,
        outgoing: impl Into<Span>,
        from: usize,
        incoming: impl Into<Span>,
    ) -> Result<()> {
        let inner = self.inner.get_mut();
        inner.open_send(to, outgoing.into(), false)?;
        inner.recv(from, incoming.into(), None)?;
        inner.close_and_hold()
    }

    /// The two ports, to be open side by side.
    pub fn split(&mut self) -> (SendPort<'_, 't, T>, RecvPort<'_, 't, T>) {
        let inner = &self.inner;
        (SendPort { inner }, RecvPort { inner })
    }
}

impl<'t, T: Element> SendPort<'_, 't, T> {
    /// As [`Endpoint::open_send`].
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn open_send(&mut self, to: usize, span: impl Into<Span>) -> Result<OpenSend<'_, 't, T>> {
        self.inner.borrow_mut().open_send(to, span.into(), true)?;
        Ok(OpenSend { inner: self.inner })
    }
}

impl<T: Element> RecvPort<'_, '_, T> {
    /// As [`Endpoint::recv`].
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn recv(&mut self, from: usize, span: impl Into<Span>) -> Result<()> {
        self.inner.borrow_mut().recv(from, span.into(), None)
    }

    /// As [`Endpoint::recv_combine`].
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn recv_combine(&mut self, from: usize, span: impl Into<Span>, order: Order) -> Result<()> {
        self.inner.borrow_mut().recv(from, span.into(), Some(order))
    }

    /// The rank's buffer.
    pub fn data(&self) -> Ref<'_, [T]> {
        Ref::map(self.inner.borrow(), |i| i.memory.data())
    }
}

impl<T: Element> OpenSend<'_, '_, T> {
    /// Waits until the partner has the message.
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn wait(self) -> Result<()> {
        let result = self.inner.borrow_mut().close_and_hold();
        std::mem::forget(self);
        result
    }
}

impl<T: Element> Drop for OpenSend<'_, '_, T> {
    fn drop(&mut self) {
        // A rank that panics takes its offer back instead of waiting.
        if !std::thread::panicking()
            && let Ok(mut inner) = self.inner.try_borrow_mut()
        {
            // A failure is kept, and returned by the next operation.
            let _ = inner.close_and_hold();
        }
    }
}

/// What all of an endpoint's parts work on.
#[derive(Debug)]
pub(super) struct Inner<'t, T: Element> {
    rank: usize,
    setting: &'t ScopeSetting<'t, T>,
    memory: RankMemory<'t, 't, T>,
    waiter: Waiter<'t>,
    clock: OnlineClock,
    open: Option<Open>,
    start: Instant,
    failed: bool,
    steps: usize,
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

const OUT: usize = 0;
const IN: usize = 1;

impl<'t, T: Element> Inner<'t, T> {
    pub(super) fn new(
        rank: usize,
        buffer: &'t mut [T],
        setting: &'t ScopeSetting<'t, T>,
        start: Instant,
    ) -> Self {
        Inner {
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
    fn usable(&self, list: Option<usize>) -> Result<()> {
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

    fn linked(&self, from: usize, to: usize, span: Span) -> Result<()> {
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

    fn open_send(&mut self, to: usize, span: Span, guarded: bool) -> Result<()> {
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
    fn close_send(&mut self) -> Result<()> {
        while let Some(open) = self.open {
            if self.poll_send()? {
                break;
            }
            self.wait(open.to, open.step, "send")?;
        }
        Ok(())
    }

    fn close_and_hold(&mut self) -> Result<()> {
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

    fn recv(&mut self, from: usize, span: Span, combine: Option<Order>) -> Result<()> {
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

    fn local(&mut self, src: Span, dst: Span, combine: Option<Order>) -> Result<()> {
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

    fn barrier(&mut self) -> Result<()> {
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

/// The model clock of a program that is not known in advance: the rules of time, evaluated as steps come.
#[derive(Debug)]
struct OnlineClock {
    bidirectional: bool,
    overlap: bool,
    /// When each port list is free.
    lists: [f64; 2],
    /// When the last computation ended that everything waits for.
    floor: f64,
    /// What earlier steps did to which span, until when; only what can still delay something.
    touches: Vec<(Span, bool, f64)>,
    finish: f64,
}

impl OnlineClock {
    fn new(ports: Ports, overlap: bool) -> Self {
        OnlineClock {
            bidirectional: ports.is_bidirectional(),
            overlap,
            lists: [0.0; 2],
            floor: 0.0,
            touches: Vec::new(),
            finish: 0.0,
        }
    }

    fn list(&self, direction: usize) -> usize {
        if self.bidirectional { direction } else { OUT }
    }

    /// When a transfer may start.
    fn start(&self, direction: usize, reads: &[Span], writes: &[Span]) -> f64 {
        later(
            self.lists[self.list(direction)],
            self.data_ready(reads, writes),
        )
    }

    fn data_ready(&self, reads: &[Span], writes: &[Span]) -> f64 {
        self.touches
            .iter()
            .filter(|(span, written, _)| {
                writes.iter().any(|w| w.overlaps(*span))
                    || (*written && reads.iter().any(|r| r.overlaps(*span)))
            })
            .fold(self.floor, |t, &(_, _, end)| later(t, end))
    }

    fn transferred(&mut self, direction: usize, end: f64) {
        let list = self.list(direction);
        self.lists[list] = end;
        self.finish = later(self.finish, end);
    }

    /// A computation that waits for everything and that everything waits for; when it ends.
    fn compute(&mut self, time: f64) -> f64 {
        let start = self.lists.iter().copied().fold(self.floor, later);
        self.floor = start + time;
        self.lists = [self.floor; 2];
        self.touches.clear();
        self.finish = later(self.finish, self.floor);
        self.floor
    }

    fn touched(&mut self, span: Span, written: bool, end: f64) {
        self.finish = later(self.finish, end);
        // What ended before every port is free delays no transfer; with overlap it may still delay a computation.
        let free = if self.bidirectional {
            self.lists[OUT].min(self.lists[IN])
        } else {
            self.lists[OUT]
        };
        if !self.overlap {
            self.touches.retain(|t| t.2 > free);
        }
        self.touches.push((span, written, end));
    }
}
