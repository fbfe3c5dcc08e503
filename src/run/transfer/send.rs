//! Sends out of a rank's buffer: lending or copying a message, and helping its receiver.

use super::copy::copy_short;
use super::elements::Combiner;
use super::in_flight::{LaneMessage, SendSpans, UnansweredSend};
use super::memory::RankMemory;
use super::packed::{Packed, RecvOp};
use super::protocol::{Lane, Parcel, Payload, Sent, Wire};
use super::shared::{Claimed, Division, Shared};
use super::slots::Slots;
use crate::run::tuning::MIN_LONG_BYTES;
use crate::schedule::{Span, total_len};

impl<'r> RankMemory<'_, 'r> {
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
        self.open[list].set(Some(UnansweredSend { wire, to, spans }));
        wire.lane(self.rank, to).offer(parcel);
    }

    /// As [`RankMemory::open_send`] on list 0, for spans that need not exist any longer.
    ///
    /// # Panics
    /// As [`RankMemory::open_send`].
    #[inline]
    pub(crate) fn lend(&self, wire: &'r Wire, to: usize, spans: &[Span], clock: f64) {
        let spans = match spans {
            [one] => SendSpans::One(*one),
            many => SendSpans::Many(self.keep(many)),
        };
        self.open_send(0, wire, to, spans, clock);
    }

    /// A copy of `spans` that lasts until the next one is made.
    fn keep(&self, spans: &[Span]) -> &'r [Span] {
        assert!(self.open[0].get().is_none(), "one open send a port");
        let kept = spans.to_vec();
        let (start, len) = (kept.as_ptr(), kept.len());
        self.lent.replace(kept);
        // SAFETY: the elements of the vector stay where they are while it is moved, and nobody
        // writes them. They are read for the open send of list 0 only. They are replaced only when
        // none is open, as just checked, and dropped with this memory after its own drop, which
        // retracts an open send or waits for its receiver.
        unsafe { std::slice::from_raw_parts(start, len) }
    }

    /// Offers the message of step `step` and does not wait for its receiver. If the message refers
    /// to memory, its spans cannot be written until it has been received. The lane must be
    /// [free](Lane::is_free).
    ///
    /// # Panics
    /// When a span leaves the buffer.
    #[inline]
    pub(crate) fn send_spans(&mut self, wire: &'r Wire, to: usize, spans: &'r [Span], step: usize) {
        let lane = wire.lane(self.rank, to);
        let spans = match spans {
            [span] => SendSpans::One(*span),
            spans => SendSpans::Many(spans),
        };
        let parcel = self.parcel(&spans, 0.0);
        self.in_flight.forget(lane);
        if parcel.borrowed {
            let send = UnansweredSend { wire, to, spans };
            let bytes = total_len(spans.as_slice()) * self.elements.bytes;
            self.in_flight.add(LaneMessage {
                lane,
                send,
                step,
                long: bytes as u64 >= MIN_LONG_BYTES,
            });
        }
        lane.offer(parcel);
    }

    /// The step of a message in flight whose receiver asks for help: [`RankMemory::help_with`].
    #[inline]
    pub(crate) fn asked(&self) -> Option<usize> {
        let asks = |m: &&LaneMessage<'r>| {
            m.lane.sent() == Sent::Shared && !m.send.wire.pieces(self.rank, m.send.to).all_claimed()
        };
        self.in_flight.long().find(asks).map(|m| m.step)
    }

    /// Whether the receiver of a long message in flight may still ask for help.
    #[inline]
    pub(crate) fn may_be_asked(&self) -> bool {
        self.in_flight.long().any(|m| !m.lane.is_settled())
    }

    /// Copies pieces of the message of step `step`, which [`RankMemory::asked`] has named.
    pub(crate) fn help_with(&self, step: usize, combiner: Combiner<'_>) {
        if let Some(message) = self.in_flight.long().find(|m| m.step == step) {
            self.help(message.send, combiner);
        }
    }

    #[inline]
    fn parcel(&self, spans: &SendSpans<'_>, clock: f64) -> Parcel {
        let span = match spans {
            SendSpans::One(span) => *span,
            SendSpans::Many(spans) => return self.parcel_of_many(spans, clock),
        };
        self.check_bounds(span);
        let bytes = span.len * self.elements.bytes;
        let mut parcel = Parcel {
            clock,
            borrowed: bytes > self.elements.max_inline_bytes,
            length: 0,
            payload: Payload::EMPTY,
        };
        // SAFETY: the span is in bounds.
        let start = unsafe { self.base.add(span.offset * self.elements.bytes) };
        if parcel.borrowed {
            parcel.payload = Payload::elements(start, span.len);
        } else {
            parcel.length = short_length(span.len);
            // SAFETY: a payload has room for a message that is stored in it. The span is in bounds,
            // and only this rank's thread could write it, which does not meanwhile.
            unsafe { copy_short(parcel.payload.bytes(), start, bytes) };
        }
        parcel
    }

    /// Copies a message into its lane, or into the lane's slot, and does not wait for the receiver.
    /// The lane must be [free](Lane::is_free).
    ///
    /// # Panics
    /// When a span leaves the buffer, or the message is longer than the slot.
    #[inline]
    pub(crate) fn post(
        &mut self,
        lane: &Lane,
        spans: &[Span],
        (slots, slot): (&Slots, u32),
        clock: f64,
    ) {
        self.in_flight.forget(lane);
        spans.iter().for_each(|s| self.check_bounds(*s));
        let elements = total_len(spans);
        let bytes = elements * self.elements.bytes;
        let mut parcel = Parcel {
            clock,
            borrowed: bytes > self.elements.max_inline_bytes,
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
            let start = unsafe { self.base.add(span.offset * self.elements.bytes) };
            // SAFETY: a payload has room for a message that is stored in it. Only this rank's
            // thread could write the span, and it does not meanwhile.
            unsafe { copy_short(base, start, bytes) };
        } else {
            let message = Packed {
                base,
                spans: &[Span::new(0, elements)],
            };
            // SAFETY: the payload or the slot has room for the message, is aligned for every
            // element type, and belongs to the sender while the lane is free. The spans are in
            // bounds, and only this rank's thread could write them, which does not meanwhile.
            unsafe {
                Packed::copy(
                    &message,
                    &self.packed(spans),
                    self.elements,
                    0..elements,
                    false,
                )
            };
        }
        lane.offer(parcel);
    }

    fn parcel_of_many(&self, spans: &[Span], clock: f64) -> Parcel {
        spans.iter().for_each(|s| self.check_bounds(*s));
        let elements = total_len(spans);
        let mut parcel = Parcel {
            clock,
            borrowed: elements * self.elements.bytes > self.elements.max_inline_bytes,
            length: 0,
            payload: Payload::EMPTY,
        };
        if parcel.borrowed {
            parcel.length = u32::try_from(spans.len()).expect("fewer than 2^32 spans");
            parcel.payload = Payload::spans(self.base, spans.as_ptr());
        } else {
            parcel.length = short_length(elements);
            let message = Packed {
                base: parcel.payload.bytes(),
                spans: &[Span::new(0, elements)],
            };
            // SAFETY: a payload has room for a message that is stored in it, and is aligned for
            // every element type. The spans are in bounds, and only this rank's thread could write
            // them, which does not meanwhile.
            unsafe {
                Packed::copy(
                    &message,
                    &self.packed(spans),
                    self.elements,
                    0..elements,
                    false,
                )
            };
        }
        parcel
    }

    /// The state of the open send of `list`. Copies pieces of the message if the receiver asks for
    /// it. `Done` and `Refused` close the send.
    #[inline]
    pub(crate) fn poll_send(&self, list: usize, combiner: Combiner<'_>) -> Sent {
        let Some(open) = self.open[list].get() else {
            return Sent::Refused;
        };
        let sent = open.wire.lane(self.rank, open.to).sent();
        match sent {
            Sent::Shared => {
                self.help(open, combiner);
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

    /// Sender: copies pieces of a message into the receiver's memory.
    #[cold]
    fn help(&self, open: UnansweredSend<'r>, combiner: Combiner<'_>) {
        let pieces = open.wire.pieces(self.rank, open.to);
        let target = pieces.target();
        let op = match target.combine {
            None => RecvOp::Copy,
            Some(order) => RecvOp::Reduce(combiner, order),
        };
        let spans = open.spans.as_slice();
        let division = Division::of(self.elements, total_len(spans), self.copying.streams_from);
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
            // rank's own memory, which is not written while the send is open.
            unsafe { shared.copy(first, claimed.count) };
            claimed.copied();
        }
    }
}

#[inline]
fn short_length(elements: usize) -> u32 {
    u32::try_from(elements).expect("at most 16")
}
