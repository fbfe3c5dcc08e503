//! Receives into a rank's buffer, from the sender's memory or from the lane itself.

use super::copy::{copy_short, fetch};
use super::memory::RankMemory;
use super::packed::{Packed, RecvOp, self_overlap};
use super::protocol::{Lane, Parcel, Target, Wire};
use super::shared::{Division, Shared};
use crate::machine::TransferCost;
use crate::schedule::{Span, total_len};

/// The receiver's part of a transfer's model time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    /// Model time at which the receiver may start.
    pub(crate) ready: f64,
    /// What the transfer takes in the model.
    pub(crate) cost: TransferCost,
}

impl Due {
    /// Model times at which the transfer ends at the sender, which may start at `theirs`, and here.
    #[inline]
    pub(crate) fn ends(self, theirs: f64) -> [f64; 2] {
        self.cost.ends(theirs, self.ready)
    }
}

/// The result of an attempt to receive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Received {
    /// No message is offered.
    Nothing,
    /// Received; the model time at which the transfer ended here.
    Done(f64),
    /// The message had another length (in elements), and was refused.
    Length(usize),
    /// Refused, because the operator panicked on the sender while it helped to combine the message.
    Poisoned,
}

impl RankMemory<'_, '_> {
    /// Receives the message offered by `from`, if there is one.
    ///
    /// # Panics
    /// When a span leaves the buffer or is being sent.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        wire: &Wire,
        from: usize,
        spans: &[Span],
        op: RecvOp<'_>,
        due: Due,
    ) -> Received {
        let lane = wire.lane(from, self.rank);
        let taken = lane.take(|address| {
            if let [span] = spans {
                fetch(address, span.len.saturating_mul(self.elements.bytes));
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
            && !self.in_flight.overlaps(spans)
        {
            // SAFETY: the span is in bounds.
            let to = unsafe { self.base.add(span.offset * self.elements.bytes) };
            // SAFETY: the payload holds a message of that many bytes. The span is not being sent,
            // so only this rank's thread touches it.
            unsafe {
                copy_short(to, parcel.payload.bytes(), span.len * self.elements.bytes);
            }
            let [sent, end] = due.ends(parcel.clock);
            lane.finish(sent);
            return Received::Done(end);
        }
        self.receive_taken(wire, from, parcel, spans, op, due)
    }

    /// Receives a message that was taken from its lane.
    #[inline(never)]
    fn receive_taken(
        &mut self,
        wire: &Wire,
        from: usize,
        mut parcel: Parcel,
        spans: &[Span],
        op: RecvOp<'_>,
        due: Due,
    ) -> Received {
        let lane = wire.lane(from, self.rank);
        let refusal = RefuseOnDrop(lane);
        spans.iter().for_each(|s| self.check_bounds(*s));
        let sent = self.conflict(spans).is_some() || self.in_flight.overlaps(spans);
        assert!(!sent, "a span being sent");
        let expected = total_len(spans);
        let (borrowed, clock) = (parcel.borrowed, parcel.clock);
        let mut one_span = Span::new(0, 0);
        // SAFETY: the parcel was taken from the lane. The message is no longer used when `finish`
        // or the drop of `refusal` hands the lane back.
        let message = unsafe { message_of(&mut parcel, &mut one_span) };
        let found = total_len(message.spans);
        if found != expected {
            drop(refusal);
            return Received::Length(found);
        }
        let mine = self.packed(spans);
        let division = Division::of(self.elements, expected, self.copying.streams_from);
        // Where spans overlap, two pieces may be the same memory, so the receiver alone copies them
        // one after another.
        if borrowed && self.copying.shared && division.pieces > 1 && !self_overlap(spans) {
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
            // SAFETY: the message may be read until `finish`. The spans are in bounds and
            // not being sent, and only this rank's thread writes them.
            unsafe { op.apply(&mine, &message, self.elements, 0..expected, division.stream) };
        }
        std::mem::forget(refusal);
        let [sent, end] = due.ends(clock);
        lane.finish(sent);
        Received::Done(end)
    }

    /// Receives a message together with its sender. This rank's spans must be disjoint. False if
    /// the sender failed.
    fn receive_shared(&self, wire: &Wire, from: usize, shared: &Shared<'_>) -> bool {
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
        // SAFETY: the message may be read until `finish`. The spans are in bounds, disjoint
        // and not being sent. Besides this rank's thread only the sender writes them, and only in
        // pieces that it has claimed.
        unsafe { shared.receive(pieces) }
    }
}

/// The message of `parcel`: in the parcel itself, or in the sender's memory. `one_span` is
/// room for the span of a contiguous message.
///
/// # Safety
/// The parcel was taken from its lane, and the lane is neither finished nor refused while the
/// message is used.
#[inline]
unsafe fn message_of<'p>(parcel: &'p mut Parcel, one_span: &'p mut Span) -> Packed<'p> {
    let length = parcel.length as usize;
    if parcel.borrowed && length > 0 {
        // SAFETY: the sender neither writes nor frees its spans and buffer until the lane is
        // finished or refused, which the caller guarantees not to happen while the message is used.
        let spans = unsafe { std::slice::from_raw_parts(parcel.payload.first_span(), length) };
        let base = parcel.payload.start();
        return Packed { base, spans };
    }
    let (base, elements) = if parcel.borrowed {
        (parcel.payload.start(), parcel.payload.element_count())
    } else {
        (parcel.payload.bytes(), length)
    };
    *one_span = Span::new(0, elements);
    Packed {
        base,
        spans: std::slice::from_ref(one_span),
    }
}

/// Refuses the message on drop: a receiver that panics must not leave its sender waiting.
struct RefuseOnDrop<'w>(&'w Lane);

impl Drop for RefuseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.refuse();
    }
}
