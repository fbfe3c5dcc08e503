//! A rank's buffer, and all operations that read or write it while transfers are open.

use std::cell::Cell;
use std::marker::PhantomData;

use smallvec::{SmallVec, smallvec};

use super::copy::{copy_short, fetch};
use super::packed::{Packed, RecvOp, any_overlap, self_overlap};
use super::protocol::{INLINE_BYTES, Lane, Parcel, Payload, Sent, Target, Wire};
use super::shared::{Claimed, Division, Shared};
use super::slots::Slots;
use super::sync::yield_now;
use crate::rules::max_time;
use crate::run::element::Element;
use crate::run::operator::Operator;
use crate::schedule::{Span, total_len};

/// One rank's buffer and its open sends.
///
/// While a send is open, its receiver may read the sent spans at any time, so nothing here writes
/// them before the send is done. All operations that write the buffer take `&mut self`. Sending
/// takes `&self`, so a program may read its buffer while it sends.
#[derive(Debug)]
pub(crate) struct RankMemory<'b, 'r, T: Element> {
    rank: usize,
    base: *mut T,
    len: usize,
    open: SmallVec<[Cell<Option<OpenSend<'r>>>; 2]>,
    /// The last message of each lane that lends memory and whose sender did not wait.
    in_flight: Vec<InFlight<'r>>,
    /// Where the first span of these messages starts, and the last one ends.
    in_flight_range: (usize, usize),
    /// Length in bytes from which on messages are copied with streaming stores.
    streams_from: usize,
    borrowed: PhantomData<&'b mut [T]>,
}

#[derive(Debug, Clone, Copy)]
struct OpenSend<'r> {
    wire: &'r Wire,
    to: usize,
    spans: SendSpans<'r>,
}

/// A message that lends memory and whose sender did not wait.
#[derive(Debug)]
struct InFlight<'r> {
    lane: &'r Lane,
    spans: &'r [Span],
}

/// The spans of an open send: one by value, or several by a reference that outlives the run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SendSpans<'r> {
    /// One span.
    One(Span),
    /// Several.
    Many(&'r [Span]),
}

impl SendSpans<'_> {
    #[inline]
    fn as_slice(&self) -> &[Span] {
        match self {
            SendSpans::One(span) => std::slice::from_ref(span),
            SendSpans::Many(spans) => spans,
        }
    }
}

/// The receiver's part of a transfer's model time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    /// Model time at which the receiver may start.
    pub(crate) ready: f64,
    /// Model time that the transfer takes.
    pub(crate) takes: f64,
}

impl Due {
    /// Model time at which the transfer ends, if the sender may start at `theirs`.
    #[inline]
    pub(crate) fn end(self, theirs: f64) -> f64 {
        max_time(self.ready, theirs) + self.takes
    }
}

/// The result of an attempt to receive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Received {
    /// No message is offered.
    Nothing,
    /// Received; the model time at which the transfer ended.
    Done(f64),
    /// The message had another length (in elements), and was refused.
    Length(usize),
    /// Refused, because the operator panicked on the sender while it helped to combine the message.
    Poisoned,
}

impl<'b, 'r, T: Element> RankMemory<'b, 'r, T> {
    /// The memory of `rank`, with at most one open send for each of `lists` port lists. Messages of
    /// at least `streams_from` bytes are copied with streaming stores; the value must be the same
    /// for all ranks of a run.
    pub(crate) fn new(rank: usize, buffer: &'b mut [T], lists: usize, streams_from: usize) -> Self {
        RankMemory {
            rank,
            base: buffer.as_mut_ptr(),
            len: buffer.len(),
            open: smallvec![Cell::new(None); lists],
            in_flight: Vec::new(),
            in_flight_range: (usize::MAX, 0),
            streams_from,
            borrowed: PhantomData,
        }
    }

    /// Opens a send on port list `list`. `clock` is the model time at which this rank may start it.
    ///
    /// # Panics
    /// When the list has an open send, or a span leaves the buffer.
    #[inline]
    pub(crate) fn open_send(
        &self,
        list: usize,
        wire: &'r Wire,
        to: usize,
        spans: SendSpans<'r>,
        clock: f64,
    ) {
        assert!(self.open[list].get().is_none(), "one open send a port");
        let parcel = self.parcel(&spans, clock);
        self.open[list].set(Some(OpenSend { wire, to, spans }));
        wire.lane(self.rank, to).offer(parcel);
    }

    /// Offers a message and does not wait for its receiver. If the message lends memory, its spans
    /// cannot be written until it has been received. The lane must be [free](Lane::is_free).
    ///
    /// # Panics
    /// When a span leaves the buffer.
    #[inline]
    pub(crate) fn send_spans(&mut self, lane: &'r Lane, spans: &'r [Span]) {
        let parcel = match spans {
            [span] => self.parcel(&SendSpans::One(*span), 0.0),
            spans => self.parcel(&SendSpans::Many(spans), 0.0),
        };
        self.forget_in_flight(lane);
        if parcel.borrowed {
            self.in_flight.push(InFlight { lane, spans });
            let (start, end) = &mut self.in_flight_range;
            for span in spans {
                (*start, *end) = ((*start).min(span.offset), (*end).max(span.end()));
            }
        }
        lane.offer(parcel);
    }

    /// Forgets the lane's last message, which has been received.
    #[inline]
    fn forget_in_flight(&mut self, lane: &Lane) {
        if let Some(at) = self
            .in_flight
            .iter()
            .position(|l| std::ptr::eq(l.lane, lane))
        {
            self.in_flight.swap_remove(at);
        }
    }

    /// Whether the receiver of a message in flight may be reading one of `spans`.
    #[inline]
    fn is_in_flight(&self, spans: &[Span]) -> bool {
        let (start, end) = self.in_flight_range;
        let near = |s: &Span| s.offset < end && s.end() > start;
        spans.iter().any(near) && self.overlaps_in_flight(spans)
    }

    #[inline(never)]
    fn overlaps_in_flight(&self, spans: &[Span]) -> bool {
        let touched = |l: &InFlight<'_>| any_overlap(l.spans, spans) && !l.lane.is_settled();
        self.in_flight.iter().any(touched)
    }

    #[inline]
    fn parcel(&self, spans: &SendSpans<'_>, clock: f64) -> Parcel {
        let span = match spans {
            SendSpans::One(span) => *span,
            SendSpans::Many(spans) => return self.parcel_of_many(spans, clock),
        };
        self.check_bounds(span);
        let bytes = span.len * size_of::<T>();
        let mut parcel = Parcel {
            clock,
            borrowed: bytes > INLINE_BYTES,
            length: 0,
            payload: Payload::EMPTY,
        };
        // SAFETY: the span is in bounds.
        let start = unsafe { self.base.add(span.offset) };
        if parcel.borrowed {
            parcel.payload = Payload::elements(start, span.len);
        } else {
            parcel.length = short_length(span.len);
            // SAFETY: a payload has room for a message that is not lent. The span is in bounds, and
            // only this rank's thread could write it, which does not meanwhile.
            unsafe { copy_short(parcel.payload.bytes(), start.cast(), bytes) };
        }
        parcel
    }

    /// Copies a message into its lane, or into the lane's slot, and does not wait for the receiver.
    /// The lane must be [free](Lane::is_free).
    ///
    /// # Panics
    /// When a span leaves the buffer, or the message is longer than the slot.
    #[inline]
    pub(crate) fn post(&mut self, lane: &Lane, spans: &[Span], slots: &Slots, slot: u32) {
        self.forget_in_flight(lane);
        spans.iter().for_each(|s| self.check_bounds(*s));
        let elements = total_len(spans);
        let bytes = elements * size_of::<T>();
        let mut parcel = Parcel {
            clock: 0.0,
            borrowed: bytes > INLINE_BYTES,
            length: 0,
            payload: Payload::EMPTY,
        };
        let base = if parcel.borrowed {
            let (start, room) = slots.room(slot);
            assert!(bytes <= room, "a slot for the longest message of its lane");
            parcel.payload = Payload::elements(start, elements);
            start
        } else {
            parcel.length = short_length(elements);
            parcel.payload.bytes()
        };
        if let ([span], false) = (spans, parcel.borrowed) {
            // SAFETY: the span is in bounds.
            let start = unsafe { self.base.add(span.offset) };
            // SAFETY: a payload has room for a message that is not lent. Only this rank's thread
            // could write the span, and it does not meanwhile.
            unsafe { copy_short(base, start.cast(), bytes) };
        } else {
            let message = Packed {
                base: base.cast::<T>(),
                spans: &[Span::new(0, elements)],
            };
            // SAFETY: the payload or the slot has room for the message, is aligned for every
            // element type, and belongs to the sender while the lane is free. The spans are in
            // bounds, and only this rank's thread could write them, which does not meanwhile.
            unsafe { Packed::copy(&message, &self.packed(spans), 0..elements, false) };
        }
        lane.offer(parcel);
    }

    fn parcel_of_many(&self, spans: &[Span], clock: f64) -> Parcel {
        spans.iter().for_each(|s| self.check_bounds(*s));
        let elements = total_len(spans);
        let mut parcel = Parcel {
            clock,
            borrowed: elements * size_of::<T>() > INLINE_BYTES,
            length: 0,
            payload: Payload::EMPTY,
        };
        if parcel.borrowed {
            parcel.length = u32::try_from(spans.len()).expect("fewer than 2^32 spans");
            parcel.payload = Payload::spans(self.base, spans.as_ptr());
        } else {
            parcel.length = short_length(elements);
            let message = Packed {
                base: parcel.payload.bytes().cast::<T>(),
                spans: &[Span::new(0, elements)],
            };
            // SAFETY: a payload has room for a message that is not lent, and is aligned for every
            // element type. The spans are in bounds, and only this rank's thread could write them,
            // which does not meanwhile.
            unsafe { Packed::copy(&message, &self.packed(spans), 0..elements, false) };
        }
        parcel
    }

    /// The state of the open send of `list`. Copies pieces of the message if the receiver asks for
    /// it. `Done` and `Refused` close the send.
    #[inline]
    pub(crate) fn poll_send(&self, list: usize, operator: &Operator<T>) -> Sent {
        let Some(open) = self.open[list].get() else {
            return Sent::Refused;
        };
        let sent = open.wire.lane(self.rank, open.to).sent();
        match sent {
            Sent::Shared => {
                self.help(open, operator);
                Sent::Waiting
            }
            Sent::Done(_) | Sent::Refused => {
                self.open[list].set(None);
                sent
            }
            Sent::Waiting => sent,
        }
    }

    /// Whether [`RankMemory::poll_send`] would make progress.
    #[inline]
    pub(crate) fn send_has_progress(&self, list: usize) -> bool {
        self.open[list]
            .get()
            .is_some_and(|open| open.wire.lane(self.rank, open.to).has_answer())
    }

    /// The list of an open send that shares an element with `spans`.
    #[inline]
    pub(crate) fn conflict(&self, spans: &[Span]) -> Option<usize> {
        self.open.iter().position(|o| {
            o.get()
                .is_some_and(|o| any_overlap(o.spans.as_slice(), spans))
        })
    }

    /// Receives the message offered by `from`, if there is one. With `share`, both partners copy a
    /// long message.
    ///
    /// # Panics
    /// When a span leaves the buffer or is being sent.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        wire: &Wire,
        from: usize,
        spans: &[Span],
        op: RecvOp<'_, T>,
        share: bool,
        due: Due,
    ) -> Received {
        let lane = wire.lane(from, self.rank);
        let taken = lane.take(|address| {
            if let [span] = spans {
                fetch(address, span.len.saturating_mul(size_of::<T>()));
            }
        });
        let Some(mut parcel) = taken else {
            return Received::Nothing;
        };
        if !parcel.borrowed
            && let ([span], RecvOp::Copy) = (spans, op)
            && span.len == parcel.length as usize
            && span.end() <= self.len
            && self.conflict(spans).is_none()
            && !self.is_in_flight(spans)
        {
            // SAFETY: the span is in bounds.
            let to = unsafe { self.base.add(span.offset) };
            // SAFETY: the payload holds a message of that many bytes. The span is not being sent,
            // so only this rank's thread touches it.
            unsafe {
                copy_short(to.cast(), parcel.payload.bytes(), span.len * size_of::<T>());
            }
            let end = due.end(parcel.clock);
            lane.finish(end);
            return Received::Done(end);
        }
        self.take_in(wire, from, parcel, spans, op, share, due)
    }

    /// Receives a message that was taken from its lane.
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "the receive's, and the parcel")]
    fn take_in(
        &mut self,
        wire: &Wire,
        from: usize,
        mut parcel: Parcel,
        spans: &[Span],
        op: RecvOp<'_, T>,
        share: bool,
        due: Due,
    ) -> Received {
        let lane = wire.lane(from, self.rank);
        let refusal = Refusal(lane);
        spans.iter().for_each(|s| self.check_bounds(*s));
        let sent = self.conflict(spans).is_some() || self.is_in_flight(spans);
        assert!(!sent, "a span being sent");
        let expected = total_len(spans);
        let inline_span;
        let (base, from_spans): (*mut T, &[Span]) = if !parcel.borrowed {
            inline_span = Span::new(0, parcel.length as usize);
            (
                parcel.payload.bytes().cast(),
                std::slice::from_ref(&inline_span),
            )
        } else if parcel.length == 0 {
            inline_span = Span::new(0, parcel.payload.element_count());
            (parcel.payload.start(), std::slice::from_ref(&inline_span))
        } else {
            // SAFETY: the sender lends its spans and its buffer until the lane is finished or
            // refused.
            let spans = unsafe {
                std::slice::from_raw_parts(parcel.payload.first_span(), parcel.length as usize)
            };
            (parcel.payload.start(), spans)
        };
        let message = Packed {
            base,
            spans: from_spans,
        };
        let found = total_len(from_spans);
        if found != expected {
            drop(refusal);
            return Received::Length(found);
        }
        let mine = self.packed(spans);
        let division = Division::of::<T>(expected, self.streams_from);
        // Where spans overlap, two pieces may be the same memory, so the receiver alone copies them
        // one after another.
        if parcel.borrowed && share && division.pieces > 1 && !self_overlap(spans) {
            let shared = Shared {
                mine,
                message,
                op,
                division,
                backwards: self.rank > from,
            };
            if !self.receive_shared(wire, from, &shared) {
                drop(refusal);
                return Received::Poisoned;
            }
        } else {
            // SAFETY: the message is lent for reading until `finish`. The spans are in bounds and
            // not being sent, and only this rank's thread writes them.
            unsafe { op.apply(&mine, &message, 0..expected, division.stream) };
        }
        std::mem::forget(refusal);
        let end = due.end(parcel.clock);
        lane.finish(end);
        Received::Done(end)
    }

    /// Receives a message together with its sender. This rank's spans must be disjoint. False if
    /// the sender failed.
    fn receive_shared(&self, wire: &Wire, from: usize, shared: &Shared<'_, T>) -> bool {
        let pieces = wire.pieces(from, self.rank);
        pieces.open(Target {
            base: shared.mine.base.cast(),
            spans: shared.mine.spans,
            combine: match shared.op {
                RecvOp::Copy => None,
                RecvOp::Reduce(_, order) => Some(order),
            },
            pieces: shared.division.pieces,
        });
        wire.lane(from, self.rank).share();
        // SAFETY: the message is lent for reading until `finish`. The spans are in bounds, disjoint
        // and not being sent. Besides this rank's thread only the sender writes them, and only in
        // pieces that it has claimed.
        unsafe { shared.receive(pieces) }
    }

    /// Sender: copies pieces of a message into the receiver's memory.
    #[cold]
    fn help(&self, open: OpenSend<'r>, operator: &Operator<T>) {
        let pieces = open.wire.pieces(self.rank, open.to);
        let target = pieces.target();
        let op = match target.combine {
            None => RecvOp::Copy,
            Some(order) => RecvOp::Reduce(operator, order),
        };
        let spans = open.spans.as_slice();
        let division = Division::of::<T>(total_len(spans), self.streams_from);
        let mut own = 0;
        while let Some(claimed) = Claimed::more(pieces, division, own) {
            let first = own;
            own += claimed.count;
            // SAFETY: the receiver waits for every claimed piece before it finishes, so its spans
            // still exist.
            let their_spans = unsafe { &*target.spans };
            let shared = Shared {
                mine: Packed {
                    base: target.base.cast(),
                    spans: their_spans,
                },
                message: self.packed(spans),
                op,
                division,
                backwards: self.rank > open.to,
            };
            // SAFETY: for the same reason the receiver's memory still exists. Nobody else touches
            // these pieces of it, because the receiver's spans are disjoint. The message is this
            // rank's own memory, which is lent and not written while the send is open.
            unsafe { shared.copy(first, claimed.count) };
            claimed.copied();
        }
    }

    /// Copies or combines `src` into `dst`, both in this rank's buffer.
    ///
    /// # Panics
    /// When a span leaves the buffer, `dst` is being sent or overlaps `src`, or the lengths differ.
    pub(crate) fn local(&mut self, dst: &[Span], src: &[Span], op: RecvOp<'_, T>) {
        dst.iter().chain(src).for_each(|s| self.check_bounds(*s));
        let sent = self.conflict(dst).is_some() || self.is_in_flight(dst);
        assert!(!sent, "a span being sent");
        assert!(!any_overlap(dst, src), "source and destination overlap");
        let elements = total_len(dst);
        assert_eq!(elements, total_len(src), "source and destination differ");
        let stream = Division::of::<T>(elements, self.streams_from).stream;
        // SAFETY: both are in bounds and disjoint. Only this rank's thread writes them; receivers
        // of open sends only read.
        unsafe { op.apply(&self.packed(dst), &self.packed(src), 0..elements, stream) };
    }

    /// The whole buffer, for reading and writing.
    ///
    /// # Panics
    /// When a send is open: its receiver may be reading.
    pub(crate) fn data_mut(&mut self) -> &mut [T] {
        assert!(
            self.open.iter().all(|o| o.get().is_none()) && self.in_flight.is_empty(),
            "a send is open"
        );
        // SAFETY: no send is open, so no other thread reads or writes this buffer. While the borrow
        // of `self` lasts, none can be opened.
        unsafe { std::slice::from_raw_parts_mut(self.base, self.len) }
    }

    /// The whole buffer, for reading.
    #[inline]
    pub(crate) fn data(&self) -> &[T] {
        // SAFETY: receivers of open sends only read the buffer, and nobody writes it while the
        // borrow of `self` lasts: partners write it only during `receive`, which takes `&mut self`.
        unsafe { std::slice::from_raw_parts(self.base, self.len) }
    }

    /// Number of elements of the buffer.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn packed<'s>(&self, spans: &'s [Span]) -> Packed<'s, T> {
        Packed {
            base: self.base,
            spans,
        }
    }

    #[inline]
    fn check_bounds(&self, span: Span) {
        if span.end() > self.len {
            out_of_bounds(span, self.len);
        }
    }
}

impl<T: Element> Drop for RankMemory<'_, '_, T> {
    fn drop(&mut self) {
        // A rank that failed leaves its open sends behind, and messages in flight may not have been
        // received yet. The buffer goes back to its owner now, so these offers are retracted; where
        // the receiver has taken the message already, this waits for it. Receivers finish without
        // this rank's help.
        let open = self.open.iter().filter_map(Cell::take);
        let open = open.map(|send| send.wire.lane(self.rank, send.to));
        let in_flight = self.in_flight.drain(..).map(|message| message.lane);
        for lane in open.chain(in_flight) {
            while !lane.is_settled() && !lane.retract() {
                yield_now();
            }
        }
    }
}

/// Refuses the message on drop: a receiver that panics must not leave its sender waiting.
struct Refusal<'w>(&'w Lane);

impl Drop for Refusal<'_> {
    fn drop(&mut self) {
        self.0.refuse();
    }
}

#[cold]
#[inline(never)]
fn out_of_bounds(span: Span, len: usize) -> ! {
    panic!(
        "span [{}, {}] leaves the buffer of {len} elements",
        span.offset, span.len
    );
}

#[inline]
fn short_length(elements: usize) -> u32 {
    u32::try_from(elements).expect("at most 16")
}
