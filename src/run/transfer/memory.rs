//! The ranks' memory, and everything that reads or writes it while transfers are open.

use std::cell::Cell;
use std::marker::PhantomData;

use smallvec::{SmallVec, smallvec};

use super::copy::{copy_short, fetch};
use super::packed::{Packed, RecvOp, any_overlap, self_overlap};
use super::protocol::{INLINE_BYTES, Lane, Parcel, Payload, Sent, Target, Wire};
use super::shared::{Claimed, Division, Shared};
use super::slots::Slots;
use super::sync::yield_now;
use crate::run::element::Element;
use crate::run::operator::Operator;
use crate::schedule::{Span, total_len};
use crate::simulate::max_time;

/// One rank's buffer and its open sends. While a send is open the partner may read its spans at any
/// time, so nothing here writes them before it is done.
///
/// Whatever writes the buffer takes `&mut self`; sending takes `&self`, so that the buffer may be
/// looked at meanwhile.
#[derive(Debug)]
pub(crate) struct RankMemory<'b, 'r, T: Element> {
    rank: usize,
    base: *mut T,
    len: usize,
    open: SmallVec<[Cell<Option<OpenSend<'r>>>; 2]>,
    /// Messages that lend memory and are not waited for, the last of each lane.
    left: Vec<InFlight<'r>>,
    /// Where the first of them starts, and the last of them ends.
    left_between: (usize, usize),
    /// See [`streams_from`](super::streams_from).
    streams_from: usize,
    borrowed: PhantomData<&'b mut [T]>,
}

#[derive(Debug, Clone, Copy)]
struct OpenSend<'r> {
    wire: &'r Wire,
    to: usize,
    spans: SendSpans<'r>,
}

/// A message that its sender has lent and left.
#[derive(Debug)]
struct InFlight<'r> {
    lane: &'r Lane,
    spans: &'r [Span],
}

/// The spans of an open send: one by value, or more by reference to something that outlives the
/// run.
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
    /// When the receiver may start.
    pub(crate) ready: f64,
    /// How long the transfer takes.
    pub(crate) takes: f64,
}

impl Due {
    /// When it ends; the sender may start at `theirs`.
    #[inline]
    pub(crate) fn end(self, theirs: f64) -> f64 {
        max_time(self.ready, theirs) + self.takes
    }
}

/// How a receive went.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Received {
    /// Nothing is offered.
    Nothing,
    /// Taken in; the model time at which the transfer ended.
    Done(f64),
    /// A message of another length, which was refused.
    Length(usize),
    /// Refused, because the operator panicked on the sender, which helped to combine the message.
    Poisoned,
}

impl<'b, 'r, T: Element> RankMemory<'b, 'r, T> {
    /// The memory of `rank`, with one open send a port list at most; messages of `streams_from`
    /// bytes and more go past the caches, for all ranks of a run alike.
    pub(crate) fn new(rank: usize, buffer: &'b mut [T], lists: usize, streams_from: usize) -> Self {
        RankMemory {
            rank,
            base: buffer.as_mut_ptr(),
            len: buffer.len(),
            open: smallvec![Cell::new(None); lists],
            left: Vec::new(),
            left_between: (usize::MAX, 0),
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

    /// Lends a message to its receiver and does not wait for it: its spans cannot be written until
    /// it has been taken. The lane must be [free](Lane::is_free).
    ///
    /// # Panics
    /// When a span leaves the buffer.
    #[inline]
    pub(crate) fn send_spans(&mut self, lane: &'r Lane, spans: &'r [Span]) {
        let parcel = match spans {
            [span] => self.parcel(&SendSpans::One(*span), 0.0),
            spans => self.parcel(&SendSpans::Many(spans), 0.0),
        };
        self.settled(lane);
        if parcel.borrowed {
            self.left.push(InFlight { lane, spans });
            let (start, end) = &mut self.left_between;
            for span in spans {
                (*start, *end) = ((*start).min(span.offset), (*end).max(span.end()));
            }
        }
        lane.offer(parcel);
    }

    /// The lane's last message has been taken.
    #[inline]
    fn settled(&mut self, lane: &Lane) {
        if let Some(at) = self.left.iter().position(|l| std::ptr::eq(l.lane, lane)) {
            self.left.swap_remove(at);
        }
    }

    /// Whether one of `spans` may be being read by whom it was lent to.
    #[inline]
    fn is_in_flight(&self, spans: &[Span]) -> bool {
        let (start, end) = self.left_between;
        let near = |s: &Span| s.offset < end && s.end() > start;
        spans.iter().any(near) && self.is_among_in_flight(spans)
    }

    #[inline(never)]
    fn is_among_in_flight(&self, spans: &[Span]) -> bool {
        let touched = |l: &InFlight<'_>| any_overlap(l.spans, spans) && !l.lane.is_settled();
        self.left.iter().any(touched)
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
            // SAFETY: a payload has room for a message that is not lent; the span is in bounds, and
            // this rank's thread writes nothing meanwhile.
            unsafe { copy_short(parcel.payload.bytes(), start.cast(), bytes) };
        }
        parcel
    }

    /// Puts a message down in its lane, or in its slot there, and does not wait for the receiver.
    /// The lane must be [free](Lane::is_free).
    ///
    /// # Panics
    /// When a span leaves the buffer, or the message its slot.
    #[inline]
    pub(crate) fn post(&mut self, lane: &Lane, spans: &[Span], slots: &Slots, slot: u32) {
        self.settled(lane);
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
            // SAFETY: a payload has room for a message that is not lent; this rank's thread writes
            // nothing meanwhile.
            unsafe { copy_short(base, start.cast(), bytes) };
        } else {
            let message = Packed {
                base: base.cast::<T>(),
                spans: &[Span::new(0, elements)],
            };
            // SAFETY: there is room for the message, aligned for every element type, which belongs
            // to the sender while the lane is free; the spans are in bounds, and this
            // rank's thread writes nothing meanwhile.
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
            // SAFETY: a payload has room for a message that is not lent, aligned for every element
            // type; the spans are in bounds, and this rank's thread writes nothing
            // meanwhile.
            unsafe { Packed::copy(&message, &self.packed(spans), 0..elements, false) };
        }
        parcel
    }

    /// How the open send of `list` stands; helps to copy when the receiver invites this rank.
    /// `Done` and `Refused` close it.
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

    /// Whether [`RankMemory::poll_send`] has anything to say or to do.
    #[inline]
    pub(crate) fn send_has_progress(&self, list: usize) -> bool {
        self.open[list]
            .get()
            .is_some_and(|open| open.wire.lane(self.rank, open.to).has_answer())
    }

    /// The list of an open send whose spans `spans` touch.
    #[inline]
    pub(crate) fn conflict(&self, spans: &[Span]) -> Option<usize> {
        self.open.iter().position(|o| {
            o.get()
                .is_some_and(|o| any_overlap(o.spans.as_slice(), spans))
        })
    }

    /// Takes in the message offered by `from`, if there is one. With `share`, long messages are
    /// copied by both partners.
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
            // SAFETY: the payload holds a message of that many bytes; the span is not being sent,
            // and only this rank's thread writes it.
            unsafe {
                copy_short(to.cast(), parcel.payload.bytes(), span.len * size_of::<T>());
            }
            let end = due.end(parcel.clock);
            lane.finish(end);
            return Received::Done(end);
        }
        self.take_in(wire, from, parcel, spans, op, share, due)
    }

    /// Takes in a message that was taken.
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
        // Where spans overlap, two pieces may be the same memory: one side alone copies them, one
        // after another.
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
            // SAFETY: the message is lent for reading until `finish`; the spans are in bounds, not
            // being sent, and only this rank's thread writes them.
            unsafe { op.apply(&mine, &message, 0..expected, division.stream) };
        }
        std::mem::forget(refusal);
        let end = due.end(parcel.clock);
        lane.finish(end);
        Received::Done(end)
    }

    /// Invites the sender to copy a message of which this rank's spans are disjoint, and copies it
    /// with it. False when the sender failed.
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
        // SAFETY: as in `take_in`; the sender writes only pieces that it has claimed.
        unsafe { shared.receive(pieces) }
    }

    /// Copies pieces of a message into the receiver's memory.
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
            // are there.
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
            // SAFETY: its memory is there too, and nobody else touches these pieces of it, because
            // the receiver's spans are disjoint; the message is this rank's own memory,
            // lent and unwritten while open.
            unsafe { shared.copy(first, claimed.count) };
            claimed.copied();
        }
    }

    /// `dst = src`, both in this rank's buffer.
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
        // SAFETY: both are in bounds, disjoint, and only this rank's thread writes them; open sends
        // only read.
        unsafe { op.apply(&self.packed(dst), &self.packed(src), 0..elements, stream) };
    }

    /// The whole buffer.
    ///
    /// # Panics
    /// When a send is open: its receiver may be reading.
    pub(crate) fn data_mut(&mut self) -> &mut [T] {
        assert!(
            self.open.iter().all(|o| o.get().is_none()) && self.left.is_empty(),
            "a send is open"
        );
        // SAFETY: no send is open, so no other thread reads or writes this buffer; the borrow of
        // `self` keeps it so.
        unsafe { std::slice::from_raw_parts_mut(self.base, self.len) }
    }

    /// The whole buffer, for reading.
    #[inline]
    pub(crate) fn data(&self) -> &[T] {
        // SAFETY: open sends only read it, and nobody writes anything while the borrow of `self`
        // lasts: partners write it only during `receive`, which takes `&mut self`.
        unsafe { std::slice::from_raw_parts(self.base, self.len) }
    }

    /// Elements of the buffer.
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
        // Open sends are left behind by a rank that failed; what it lent and left may not have been
        // taken, or not yet. The buffer goes back to its owner now, so they are taken back,
        // or, where the receiver has begun, waited for; receivers finish without this rank's help.
        let open = self.open.iter().filter_map(Cell::take);
        let open = open.map(|send| send.wire.lane(self.rank, send.to));
        let left = self.left.drain(..).map(|message| message.lane);
        for lane in open.chain(left) {
            while !lane.is_settled() && !lane.retract() {
                yield_now();
            }
        }
    }
}

/// Refuses the message when dropped: a receiver that panics must not leave the sender waiting.
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
