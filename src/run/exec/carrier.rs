//! What carries a rank's messages. Executors follow the rules of time; carriers move the bytes.

use crate::run::transfer::{
    Combiner, Due, Lane, RankMemory, Received, RecvOp, SendSpans, Sent, Slots, Wire,
};
use crate::schedule::{Span, Spans};

/// One half of a transfer, as its rank sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HalfTransfer<'r> {
    /// The rank's step.
    pub(crate) step: usize,
    /// The step's port list.
    pub(crate) list: usize,
    /// The rank at the other end.
    pub(crate) peer: usize,
    /// The wire between the two, if the ranks share memory.
    pub(crate) wire: &'r Wire,
    /// The message, or where it goes.
    pub(crate) spans: &'r Spans,
}

/// One rank's buffer, and its transfers with other ranks.
///
/// A transfer is either a *rendezvous*, opened by both partners ([`Carrier::open_send`],
/// [`Carrier::open_receive`]) and polled until it ends, or *eager*: [`Carrier::send`] does not wait
/// for the receiver. Nothing of the buffer that an open transfer reads or writes is touched
/// meanwhile, provided that the caller starts steps in the order that the rules of time demand.
pub(crate) trait Carrier<'r> {
    /// Whether messages travel by [`HalfTransfer::wire`].
    const HAS_WIRES: bool = true;

    /// Opens a send. `ready` is the model time from which it may start.
    fn open_send(&mut self, transfer: HalfTransfer<'r>, ready: f64);

    /// The state of the open send of `transfer`.
    fn poll_send(&mut self, transfer: HalfTransfer<'r>, combiner: Combiner<'_>) -> Sent;

    /// Opens a receive, which [`Carrier::receive`] ends.
    fn open_receive(&mut self, transfer: HalfTransfer<'r>);

    /// Receives the message of `transfer`, if it has come.
    fn receive(&mut self, transfer: HalfTransfer<'r>, op: RecvOp<'_>, due: Due) -> Received;

    /// Whether nothing is left of earlier eager messages that would keep that of `transfer` from
    /// being sent; or, if it has been sent, whether it may be overwritten.
    fn is_free(&mut self, transfer: HalfTransfer<'r>) -> bool;

    /// Sends a message and does not wait for its receiver; [`Carrier::is_free`] must hold. `start`
    /// is the model time at which it does, if that is known. With `copy_to`, the message may be
    /// overwritten at once: it is copied to this slot.
    fn send(&mut self, transfer: HalfTransfer<'r>, start: f64, copy_to: Option<(&Slots, u32)>);

    /// Copies or combines `src` into `dst`, both in this rank's buffer.
    fn local(&mut self, dst: &[Span], src: &[Span], op: RecvOp<'_>);
}

/// Ranks that share memory.
impl<'r> Carrier<'r> for RankMemory<'_, 'r> {
    #[inline]
    fn open_send(&mut self, transfer: HalfTransfer<'r>, ready: f64) {
        let HalfTransfer {
            list, wire, peer, ..
        } = transfer;
        let borrowed = match &transfer.spans[..] {
            [one] => SendSpans::One(*one),
            many => SendSpans::Many(many),
        };
        RankMemory::open_send(self, list, wire, peer, borrowed, ready);
    }

    #[inline]
    fn poll_send(&mut self, transfer: HalfTransfer<'r>, combiner: Combiner<'_>) -> Sent {
        RankMemory::poll_send(self, transfer.list, combiner)
    }

    #[inline]
    fn open_receive(&mut self, _: HalfTransfer<'r>) {}

    #[inline]
    fn receive(&mut self, transfer: HalfTransfer<'r>, op: RecvOp<'_>, due: Due) -> Received {
        let HalfTransfer {
            wire, peer, spans, ..
        } = transfer;
        RankMemory::receive(self, wire, peer, spans, op, due)
    }

    #[inline]
    fn is_free(&mut self, transfer: HalfTransfer<'r>) -> bool {
        self.lane_to(transfer).is_free()
    }

    #[inline]
    fn send(&mut self, transfer: HalfTransfer<'r>, start: f64, copy_to: Option<(&Slots, u32)>) {
        let HalfTransfer {
            step,
            wire,
            peer,
            spans,
            ..
        } = transfer;
        match copy_to {
            Some(slot) => self.post(self.lane_to(transfer), spans, slot, start),
            None => self.send_spans(wire, peer, spans, step),
        }
    }

    #[inline]
    fn local(&mut self, dst: &[Span], src: &[Span], op: RecvOp<'_>) {
        RankMemory::local(self, dst, src, op);
    }
}

impl<'r> RankMemory<'_, 'r> {
    /// The lane on which the message of `transfer` leaves this rank.
    #[inline]
    fn lane_to(&self, transfer: HalfTransfer<'r>) -> &'r Lane {
        transfer.wire.lane(self.rank(), transfer.peer)
    }
}
