//! The state of one rank in a scope besides its buffer: its port, its model clock, and a record of
//! its steps.
//!
//! Operations that write the buffer take it as `&mut`, sending takes it as `&`, so a program may
//! read its buffer while it sends.

use std::borrow::Cow;
use std::fmt;
use std::time::Instant;

use super::clock::OnlineClock;
use super::context::RunContext;
use super::failure::{Failure, TransferAt, panicked, port_busy};
use super::link::{AnyLink, Link, ScopeBuffer, Waits, call};
use super::transfer::{Due, Received, RecvOp, Sent, any_overlap};
use super::wait::{Precision, nanoseconds};
use crate::error::{Error, ErrorKind, Result};
use crate::machine::{self, Linear, TransferCost};
use crate::rules::online::sort_if_long;
use crate::schedule::{Order, Span, Spans, Step, total_len};

/// What all ranks of a scope have in common.
#[derive(Debug)]
pub(crate) struct ScopeContext<'t> {
    pub(crate) run: RunContext<'t>,
    /// The cost model as one line, if it is homogeneous.
    line: Option<Linear>,
    ranks: usize,
    record: bool,
}

impl<'t> ScopeContext<'t> {
    /// For `ranks` ranks, whose steps are recorded if `record`.
    pub(crate) fn new(run: RunContext<'t>, ranks: usize, record: bool) -> Self {
        let line = run.cost.linear();
        ScopeContext {
            run,
            line,
            ranks,
            record,
        }
    }
}

/// What all parts of an endpoint share.
#[derive(Debug)]
pub(super) struct Rank<'t> {
    pub(super) rank: usize,
    context: &'t ScopeContext<'t>,
    link: AnyLink<'t>,
    pub(super) clock: OnlineClock,
    open: Option<Open>,
    start: Instant,
    failed: bool,
    /// Whether it failed because another rank did.
    pub(super) follows: bool,
    steps: usize,
    /// The step whose data an operation moves or combines, while it does.
    moving: Option<usize>,
    record: Option<Vec<Step>>,
}

#[derive(Debug)]
struct Open {
    to: usize,
    spans: Spans,
    step: usize,
    end: SendEnd,
}

/// What waits for the end of an open send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendEnd {
    /// Whatever the program does next with the port.
    Next,
    /// The [`OpenSend`](super::OpenSend) that represents it.
    Handle,
}

impl Open {
    fn has_handle(&self) -> bool {
        self.end == SendEnd::Handle
    }
}

impl<'t> Rank<'t> {
    pub(super) fn new(
        rank: usize,
        context: &'t ScopeContext<'t>,
        link: AnyLink<'t>,
        start: Instant,
    ) -> Self {
        let cost = context.run.cost;
        Rank {
            rank,
            context,
            link,
            clock: OnlineClock::new(context.run.ports, cost.overlaps(), cost.arrival(rank)),
            open: None,
            start,
            failed: false,
            follows: false,
            steps: 0,
            moving: None,
            record: context.record.then(Vec::new),
        }
    }

    pub(super) fn ranks(&self) -> usize {
        self.context.ranks
    }

    /// The step that a panic was in: the one whose data were being combined, or else the next one.
    pub(super) fn step_in_progress(&self) -> usize {
        self.moving.unwrap_or(self.steps)
    }

    /// Ends the program. Returns the model time at which the rank finished, and its recorded steps.
    pub(super) fn finish(&mut self, memory: &ScopeBuffer<'t>) -> Result<(f64, Option<Vec<Step>>)> {
        self.usable(None)?;
        self.close_send(memory)?;
        let settled = call!(self.link, link => link.settle());
        settled.map_err(|failure| self.stopped(failure))?;
        if self.context.run.paced {
            let end = self.start + nanoseconds(self.clock.finish);
            call!(self.link, link => link.pace(end, Precision::Sharp));
        }
        Ok((self.clock.finish, self.record.take()))
    }

    /// Fails after an earlier failure, or while an [`OpenSend`](super::OpenSend) that was forgotten
    /// holds the port that a send (`sends`) or a receive needs.
    #[inline]
    pub(super) fn usable(&self, sends: Option<bool>) -> Result<()> {
        if self.failed || self.open.as_ref().is_some_and(Open::has_handle) {
            self.refuse(sends)
        } else {
            Ok(())
        }
    }

    #[cold]
    fn refuse(&self, sends: Option<bool>) -> Result<()> {
        if self.failed {
            return Err(Error::wrong(format!(
                "rank {}: an earlier operation of this endpoint failed",
                self.rank
            )));
        }
        let list = |sends| self.context.run.ports.list(sends, 0);
        match &self.open {
            Some(open) if open.has_handle() && sends.map(list) == Some(list(true)) => {
                Err(port_busy(self.rank, 0, self.steps))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a message between this rank and `peer`, of which its own part are `spans`: `peer` is
    /// another rank, and the spans are within the buffer.
    #[inline]
    fn accept(&self, memory: &ScopeBuffer<'t>, peer: usize, spans: &Spans) -> Result<()> {
        let ranks = self.context.ranks;
        if peer >= ranks || peer == self.rank {
            return Err(self.misuse(format_args!("peer {peer} is not another of {ranks} ranks")));
        }
        self.within(memory, spans)
    }

    #[inline]
    fn within(&self, memory: &ScopeBuffer<'t>, spans: &Spans) -> Result<()> {
        let len = memory.len();
        let inside = |span: &&Span| {
            let end = span.offset.checked_add(span.len);
            end.is_some_and(|end| end <= len)
        };
        match spans.iter().find(|span| !inside(span)) {
            None => Ok(()),
            Some(span) => Err(self.misuse(format_args!("{}", span.outside(len)))),
        }
    }

    /// The error of an operation that was refused before it became step [`Rank::steps`].
    #[cold]
    fn misuse(&self, why: fmt::Arguments<'_>) -> Error {
        Error::usage(format!("rank {}, step {}: {why}", self.rank, self.steps))
    }

    #[inline]
    fn bytes(&self, spans: &Spans) -> u64 {
        machine::bytes(total_len(spans), self.context.run.element_bytes)
    }

    #[inline]
    fn linked(&self, from: usize, to: usize, spans: &Spans) -> Result<()> {
        let linked = || total_len(spans) == 0 || self.context.run.cost.linked(from, to);
        if self.context.line.is_some() || linked() {
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
        spans: Spans,
        end: SendEnd,
    ) -> Result<()> {
        self.usable(Some(true))?;
        self.accept(memory, to, &spans)?;
        self.linked(self.rank, to, &spans)?;
        self.close_send(memory)?;
        let ready = self.clock.start(true, &accessed(&spans), &[]);
        self.gate(ready);
        call!(self.link, link => link.open_send(memory, to, &spans, ready))?;
        let step = self.step(|| Step::send(to, spans.clone()));
        self.open = Some(Open {
            to,
            spans,
            step,
            end,
        });
        Ok(())
    }

    /// Waits for the open send, if there is one.
    #[inline]
    pub(super) fn close_send(&mut self, memory: &ScopeBuffer<'t>) -> Result<()> {
        while let Some(open) = &self.open {
            let (to, step) = (open.to, open.step);
            if self.poll_send(memory)? {
                break;
            }
            self.wait(memory, to, step, "send")?;
        }
        Ok(())
    }

    pub(super) fn close_and_hold(&mut self, memory: &ScopeBuffer<'t>) -> Result<()> {
        self.close_send(memory)?;
        self.gate(self.clock.free(true));
        Ok(())
    }

    /// Polls the open send, if there is one; true if it has ended.
    #[inline]
    fn poll_send(&mut self, memory: &ScopeBuffer<'t>) -> Result<bool> {
        let Some(open) = &self.open else {
            return Ok(false);
        };
        // A sender may help to combine its message.
        self.moving = Some(open.step);
        let sent = call!(self.link, link => link.poll_send(memory, self.context.run.combiner));
        self.moving = None;
        if matches!(sent, Sent::Waiting | Sent::Shared) {
            return Ok(false);
        }
        let Some(Open {
            to, spans, step, ..
        }) = self.open.take()
        else {
            return Ok(false);
        };
        if let Sent::Done(end) = sent {
            call!(self.link, link => link.progressed());
            self.clock.transferred(true, &accessed(&spans), &[], end);
            return Ok(true);
        }
        (self.failed, self.follows) = (true, true);
        Err(Error::wrong(format!(
            "rank {}, step {step}: rank {to} refused the message",
            self.rank
        )))
    }

    /// Whether the open send, if there is one, reads an element of `spans`.
    #[inline]
    fn is_sending(&self, spans: &Spans) -> bool {
        let open = self.open.as_ref();
        open.is_some_and(|open| any_overlap(&open.spans, spans))
    }

    #[inline]
    pub(super) fn recv(
        &mut self,
        memory: &mut ScopeBuffer<'t>,
        from: usize,
        spans: Spans,
        combine: Option<Order>,
    ) -> Result<()> {
        self.usable(Some(false))?;
        self.accept(memory, from, &spans)?;
        self.linked(from, self.rank, &spans)?;
        let s = &self.context.run;
        if self.open.is_some() && (!s.ports.can_relay() || self.is_sending(&spans)) {
            // The send holds the same port, or what is to be written is being sent.
            self.close_send(memory)?;
        }
        let ready = self.clock.start(false, &[], &accessed(&spans));
        self.gate(ready);
        let bytes = self.bytes(&spans);
        let cost = match &self.context.line {
            Some(line) => TransferCost::rendezvous(line.transfer(bytes)),
            None => s.cost.transfer_cost(from, self.rank, bytes),
        };
        let due = Due { ready, cost };
        let end = self.await_message(memory, from, &spans, combine, due)?;
        call!(self.link, link => link.progressed());
        let done = if combine.is_some() {
            if !s.cost.overlaps() {
                // The combination waits for the open send, and all later steps wait for the
                // combination.
                self.close_send(memory)?;
            }
            let time = s.cost.combine(self.rank, bytes);
            self.clock.combined(&accessed(&spans), end, time)
        } else {
            self.clock.transferred(false, &[], &accessed(&spans), end);
            end
        };
        self.gate(done);
        Ok(())
    }

    /// Waits for the message of `from` and stores it in `spans`. Returns the model time at which
    /// the transfer ends.
    #[inline]
    fn await_message(
        &mut self,
        memory: &mut ScopeBuffer<'t>,
        from: usize,
        spans: &Spans,
        combine: Option<Order>,
        due: Due,
    ) -> Result<f64> {
        let (op, what) = match combine {
            None => (RecvOp::Copy, "recv"),
            Some(order) => (
                RecvOp::Reduce(self.context.run.combiner, order),
                "recv_combine",
            ),
        };
        let step = self.step(|| match combine {
            None => Step::recv(from, spans.clone()),
            Some(order) => Step::recv_combine(from, spans.clone(), order),
        });
        loop {
            self.moving = Some(step);
            let received = call!(self.link, link => link.receive(memory, from, spans, op, due));
            self.moving = None;
            match received {
                Received::Done(end) => return Ok(end),
                Received::Nothing => {
                    self.poll_send(memory)?;
                    self.wait(memory, from, step, what)?;
                }
                refused => {
                    return Err(self.cannot_receive(refused, step, from, total_len(spans)));
                }
            }
        }
    }

    #[cold]
    fn cannot_receive(
        &mut self,
        why: Received,
        step: usize,
        peer: usize,
        expected: usize,
    ) -> Error {
        self.failed = true;
        match why {
            Received::Length(found) => self.at(step, peer).wrong_length(expected, found),
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
        src: Spans,
        dst: Spans,
        combine: Option<Order>,
    ) -> Result<()> {
        self.usable(None)?;
        self.within(memory, &src)?;
        self.within(memory, &dst)?;
        if total_len(&src) != total_len(&dst) || any_overlap(&src, &dst) {
            return Err(self.misuse(format_args!(
                "source {} and destination {} overlap or differ in length",
                shown(&src),
                shown(&dst)
            )));
        }
        let s = &self.context.run;
        if !s.cost.overlaps() || self.is_sending(&dst) {
            self.close_send(memory)?;
        }
        let bytes = self.bytes(&src);
        let (op, time) = match combine {
            None => (RecvOp::Copy, s.cost.copy(self.rank, bytes)),
            Some(order) => (
                RecvOp::Reduce(s.combiner, order),
                s.cost.combine_local(self.rank, bytes),
            ),
        };
        let step = self.step(|| match combine {
            None => Step::copy(src.clone(), dst.clone()),
            Some(order) => Step::combine(src.clone(), dst.clone(), order),
        });
        self.moving = Some(step);
        memory.local(&dst, &src, op);
        self.moving = None;
        let done = (self.clock).local(&accessed(&src), &accessed(&dst), time);
        self.gate(done);
        Ok(())
    }

    pub(super) fn barrier(&mut self, memory: &ScopeBuffer<'t>) -> Result<()> {
        self.usable(None)?;
        self.close_send(memory)?;
        let at = self.at(self.steps, self.rank);
        let met = call!(self.link, link => link.barrier(at));
        met.map_err(|failure| self.stopped(failure))
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

    /// Waits a little for `peer`.
    #[inline]
    fn wait(
        &mut self,
        memory: &ScopeBuffer<'t>,
        peer: usize,
        step: usize,
        what: &'static str,
    ) -> Result<()> {
        let waits = Waits {
            at: self.at(step, peer),
            what,
            holds_port: what == "send" && !self.context.run.ports.can_relay(),
        };
        let waited = call!(self.link, link => link.wait(memory, waits));
        waited.map_err(|failure| self.stopped(failure))
    }

    #[cold]
    fn stopped(&mut self, failure: Failure) -> Error {
        self.failed = true;
        match failure {
            Failure::Own(error) => error,
            Failure::Aborted => {
                self.follows = true;
                Error::wrong(format!("rank {}: another rank failed", self.rank))
            }
        }
    }

    /// Under a paced clock, waits until this model time, before a step starts or ends.
    #[inline]
    fn gate(&mut self, time: f64) {
        if self.context.run.paced {
            let instant = self.start + nanoseconds(time);
            call!(self.link, link => link.pace(instant, Precision::Sleep));
        }
    }
}

/// The spans as the clock wants them: long lists are sorted.
#[inline]
fn accessed(spans: &Spans) -> Cow<'_, [Span]> {
    match &spans[..] {
        [one] => Cow::Borrowed(std::slice::from_ref(one)),
        many => {
            let mut sorted = many.to_vec();
            sort_if_long(&mut sorted);
            Cow::Owned(sorted)
        }
    }
}

fn shown(spans: &Spans) -> String {
    let one = |span: &Span| format!("[{}, {}]", span.offset, span.len);
    spans.iter().map(one).collect::<Vec<_>>().join(" ")
}
