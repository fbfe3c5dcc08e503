//! Scenarios for the guards of a rank's memory, which prevent access to it while a partner may read
//! or write it.
//!
//! Two ranks call [`RankMemory`]; everything below these calls, except for copying bytes, is the
//! crate's own code. If a guard permits an access, the access takes place, and loom checks that
//! nobody else accesses the same memory. If a guard refuses a local write, the write is repeated at
//! a time when the guard must permit it.

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Once;

use oneport::{Order, Span};

use super::elements::{Buffer as Elements, Combiner};
use super::in_flight::SendSpans;
use super::memory::{Copying, RankMemory};
use super::packed::RecvOp;
use super::protocol::{Sent, Wire};
use super::receive::{Due, Received};
use super::scenarios::{two_ranks, until};
use super::slots::Slots;
use crate::buffers::{Buffer, Operator, OperatorFailed, begin, check, read};
use crate::machine::TransferCost;

/// A message of four elements in one span. It does not fit into a lane.
const ONE_SPAN: &[Span] = &[Span::new(0, 4)];
/// A message of four elements in two spans, with another element between them.
const TWO_SPANS: &[Span] = &[Span::new(0, 1), Span::new(2, 3)];
/// An element of both messages.
const ELEMENT_3: &[Span] = &[Span::new(3, 1)];

/// Elements of a piece of a shared message.
const PIECE: usize = (16 << 10) / size_of::<u64>();

const DUE: Due = Due {
    ready: 0.0,
    cost: TransferCost::rendezvous(1.0),
};

fn memory<'b, 'r>(rank: usize, buffer: &'b Buffer) -> RankMemory<'b, 'r> {
    let copying = Copying {
        shared: true,
        streams_from: usize::MAX,
    };
    RankMemory::new(rank, Elements::of(buffer.elements()), 1, copying)
}

/// Begins an execution with two buffers of `len` elements, checked in blocks of `block` elements.
/// The first contains 100, 101 and so on, the second contains ones.
fn buffers(len: usize, block: usize) -> [Rc<Buffer>; 2] {
    begin();
    [
        Buffer::new(len, block, |i| 100 + i as u64),
        Buffer::new(len, block, |_| 1),
    ]
}

fn sum() -> Operator<u64> {
    Operator::new(|a, b| a + b)
}

/// Calls `f`. Returns whether a guard refused an access.
fn is_refused(f: impl FnOnce()) -> bool {
    const REFUSAL: &str = "a span being sent";
    static SILENCED: Once = Once::new();
    // Refusals are expected, so the panic hook does not print them.
    SILENCED.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if panic.payload_as_str() != Some(REFUSAL) {
                print(panic);
            }
        }));
    });
    let Err(panic) = catch_unwind(AssertUnwindSafe(f)) else {
        return false;
    };
    if panic.downcast_ref() != Some(&REFUSAL) {
        resume_unwind(panic);
    }
    true
}

/// The result of `f`, or `None` if its operator panics.
fn unless_panicked<R>(f: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(f))
        .map_err(|panic| {
            if !panic.is::<OperatorFailed>() {
                resume_unwind(panic);
            }
        })
        .ok()
}

/// Waits for a message and receives it.
fn receive(
    memory: &mut RankMemory<'_, '_>,
    wire: &Wire,
    from: usize,
    spans: &[Span],
    op: RecvOp<'_>,
) -> Received {
    until(|| {
        let received = memory.receive(wire, from, spans, op, DUE);
        (received != Received::Nothing).then_some(received)
    })
}

/// Waits for the end of an open send.
fn finish_send(memory: &RankMemory<'_, '_>, operator: &Operator<u64>) -> Sent {
    until(|| {
        Some(memory.poll_send(0, Combiner::of(operator))).filter(|sent| *sent != Sent::Waiting)
    })
}

pub(crate) fn in_flight_then_written() {
    written_while_in_flight(ONE_SPAN, [100, 101, 102, 103]);
}

pub(crate) fn two_spans_in_flight_then_written() {
    written_while_in_flight(TWO_SPANS, [100, 102, 103, 104]);
}

/// The sender writes an element of a message in flight. The write is refused until the message has
/// been received. Other memory can be written at any time.
fn written_while_in_flight(spans: &'static [Span], values: [u64; 4]) {
    let [mine, theirs] = buffers(8, 1);
    two_ranks(
        move |wire| {
            let mut memory = memory(0, &mine);
            let lane = wire.lane(0, 1);
            memory.send_spans(wire, 1, spans, 0);
            memory.local(&[Span::new(6, 1)], &[Span::new(7, 1)], RecvOp::Copy);
            let mut write = || memory.local(ELEMENT_3, &[Span::new(7, 1)], RecvOp::Copy);
            let refused = is_refused(&mut write);
            until(|| lane.is_settled().then_some(()));
            if refused {
                write();
            }
            assert_eq!(read(memory.data::<u64>())[3], 107);
        },
        move |wire| {
            let mut memory = memory(1, &theirs);
            let received = receive(&mut memory, wire, 0, ONE_SPAN, RecvOp::Copy);
            assert_eq!(received, Received::Done(1.0));
            assert_eq!(read(memory.data::<u64>())[..4], values);
        },
    );
}

/// A rank receives a short message into an element of a message in flight. The receive is refused
/// until the message in flight has been received.
pub(crate) fn in_flight_then_received_into() {
    let [mine, theirs] = buffers(8, 1);
    two_ranks(
        move |wire| {
            let mut memory = memory(0, &mine);
            memory.send_spans(wire, 1, ONE_SPAN, 0);
            let mut done = Received::Nothing;
            if !is_refused(|| done = receive(&mut memory, wire, 1, ELEMENT_3, RecvOp::Copy)) {
                assert_eq!(done, Received::Done(1.0));
                assert_eq!(read(memory.data::<u64>())[3], 1);
            }
            until(|| wire.lane(0, 1).is_settled().then_some(()));
        },
        move |wire| {
            let mut memory = memory(1, &theirs);
            memory.open_send(0, wire, 0, SendSpans::One(Span::new(7, 1)), 0.0);
            let received = receive(&mut memory, wire, 0, ONE_SPAN, RecvOp::Copy);
            assert_eq!(received, Received::Done(1.0));
            assert_eq!(read(memory.data::<u64>())[..4], [100, 101, 102, 103]);
            finish_send(&memory, &sum());
        },
    );
}

/// The sender writes an element of an open send. The write is refused until the sender has seen
/// that the send is done.
pub(crate) fn open_send_then_written() {
    let [mine, theirs] = buffers(8, 1);
    two_ranks(
        move |wire| {
            let mut memory = memory(0, &mine);
            memory.open_send(0, wire, 1, SendSpans::Many(TWO_SPANS), 0.0);
            let write = |memory: &mut RankMemory<'_, '_>| {
                memory.local(ELEMENT_3, &[Span::new(7, 1)], RecvOp::Copy);
            };
            let refused = is_refused(|| write(&mut memory));
            assert_eq!(finish_send(&memory, &sum()), Sent::Done(1.0));
            if refused {
                write(&mut memory);
            }
        },
        move |wire| {
            let mut memory = memory(1, &theirs);
            let received = receive(&mut memory, wire, 0, ONE_SPAN, RecvOp::Copy);
            assert_eq!(received, Received::Done(1.0));
            assert_eq!(read(memory.data::<u64>())[..4], [100, 102, 103, 104]);
        },
    );
}

/// Two messages are copied to the slot of a lane, one after another. The sender writes the memory
/// that they were copied from without waiting.
pub(crate) fn posted_twice() {
    let [mine, theirs] = buffers(8, 1);
    let slots = Rc::new(Slots::new(Slots::lines(32)));
    let (room, bytes) = slots.room(0);
    check(room, bytes, 8);
    let kept = slots.clone();
    two_ranks(
        move |wire| {
            let mut memory = memory(0, &mine);
            let lane = wire.lane(0, 1);
            for _ in 0..2 {
                until(|| lane.is_free().then_some(()));
                memory.post(lane, ONE_SPAN, (&slots, 0), 0.0);
                memory.local(ONE_SPAN, &[Span::new(4, 4)], RecvOp::Copy);
            }
        },
        move |wire| {
            // The receiver reads the slots, so it keeps them alive.
            let _kept = kept;
            let mut memory = memory(1, &theirs);
            for values in [[100, 101, 102, 103], [104, 105, 106, 107]] {
                let received = receive(&mut memory, wire, 0, ONE_SPAN, RecvOp::Copy);
                assert_eq!(received, Received::Done(1.0));
                assert_eq!(read(memory.data::<u64>())[..4], values);
            }
        },
    );
}

/// What a sender has pending when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pending {
    /// A message in flight.
    InFlight,
    /// An open send.
    OpenSend,
    /// An open send of a long message, which the receiver asks the sender to help copy.
    SharedSend,
    /// A message in flight, and the sender's `RankMemory` is not dropped (a fault).
    InFlightNotDropped,
}

/// A sender drops its `RankMemory` with something pending, and its owner then writes the buffer.
/// The receiver may or may not take the message.
pub(crate) fn memory_dropped(pending: Pending) {
    let len = if pending == Pending::SharedSend {
        2 * PIECE
    } else {
        4
    };
    let [mine, theirs] = buffers(len, len / 2);
    two_ranks(
        move |wire| {
            let mut memory = ManuallyDrop::new(memory(0, &mine));
            match pending {
                Pending::InFlight | Pending::InFlightNotDropped => {
                    memory.send_spans(wire, 1, ONE_SPAN, 0)
                }
                Pending::OpenSend | Pending::SharedSend => {
                    memory.open_send(0, wire, 1, SendSpans::One(Span::new(0, len)), 0.0);
                }
            }
            if pending != Pending::InFlightNotDropped {
                drop(ManuallyDrop::into_inner(memory));
            }
            mine.write();
        },
        move |wire| {
            let mut memory = memory(1, &theirs);
            let spans = [Span::new(0, len)];
            match memory.receive(wire, 0, &spans, RecvOp::Copy, DUE) {
                Received::Nothing => {}
                received => {
                    assert_eq!(received, Received::Done(1.0));
                    assert!(
                        read(memory.data::<u64>())
                            .iter()
                            .copied()
                            .eq((100..).take(len))
                    );
                }
            }
        },
    );
}

/// The receiver refuses a message of another length. The sender can then write its spans.
pub(crate) fn another_length() {
    let [mine, theirs] = buffers(8, 1);
    two_ranks(
        move |wire| {
            let mut memory = memory(0, &mine);
            let lane = wire.lane(0, 1);
            memory.send_spans(wire, 1, TWO_SPANS, 0);
            until(|| lane.is_settled().then_some(()));
            memory.local(ELEMENT_3, &[Span::new(7, 1)], RecvOp::Copy);
        },
        move |wire| {
            let mut memory = memory(1, &theirs);
            let received = receive(&mut memory, wire, 0, &[Span::new(0, 3)], RecvOp::Copy);
            assert_eq!(received, Received::Length(4));
        },
    );
}

/// Both partners copy messages of `pieces` pieces. If `combined`, the messages are combined instead
/// of copied, and go from the higher rank to the lower one.
pub(crate) fn shared(pieces: usize, messages: u64, combined: bool) {
    let len = pieces * PIECE;
    let [mine, theirs] = buffers(len, PIECE);
    let (me, you) = if combined { (1, 0) } else { (0, 1) };
    let sender = move |wire: &Wire| {
        let memory = memory(me, &mine);
        for _ in 0..messages {
            memory.open_send(0, wire, you, SendSpans::One(Span::new(0, len)), 0.0);
            assert_eq!(finish_send(&memory, &sum()), Sent::Done(1.0));
            mine.write();
        }
    };
    let receiver = move |wire: &Wire| {
        let mut memory = memory(you, &theirs);
        let sum = sum();
        let (before, times, op) = if combined {
            (1, 1, RecvOp::Reduce(Combiner::of(&sum), Order::MineFirst))
        } else {
            (0, 0, RecvOp::Copy)
        };
        for n in 0..messages {
            let received = receive(&mut memory, wire, me, &[Span::new(0, len)], op);
            assert_eq!(received, Received::Done(1.0));
            let expected = (100..).map(|sent| before + sent * (1 + n * times));
            assert!(
                read(memory.data::<u64>())
                    .iter()
                    .copied()
                    .eq(expected.take(len))
            );
            theirs.write();
        }
    };
    if combined {
        two_ranks(receiver, sender);
    } else {
        two_ranks(sender, receiver);
    }
}

/// A sender does not wait for the receiver of its long message, and helps it if it sees in time
/// that it is asked to.
pub(crate) fn shared_in_flight(pieces: usize) {
    let len = pieces * PIECE;
    let [mine, theirs] = buffers(len, PIECE);
    two_ranks(
        move |wire| {
            let mut memory = memory(0, &mine);
            let spans: &[Span] = Box::leak(Box::new([Span::new(0, len)]));
            memory.send_spans(wire, 1, spans, 7);
            if let Some(step) = memory.asked() {
                assert_eq!(step, 7);
                memory.help_with(step, Combiner::of(&sum()));
            }
            until(|| (!memory.may_be_asked()).then_some(()));
            mine.write();
        },
        move |wire| {
            let mut memory = memory(1, &theirs);
            let spans = [Span::new(0, len)];
            let received = receive(&mut memory, wire, 0, &spans, RecvOp::Copy);
            assert_eq!(received, Received::Done(1.0));
            let values = read(memory.data::<u64>()).iter().copied();
            assert!(values.eq((100..).take(len)));
            theirs.write();
        },
    );
}

/// The second half of a long message overwrites part of the first half. The receiver copies it
/// alone, since both partners together would write the same memory at the same time.
pub(crate) fn shared_with_overlap() {
    let [mine, theirs] = buffers(4 * PIECE, PIECE);
    two_ranks(
        move |wire| {
            let memory = memory(0, &mine);
            memory.open_send(0, wire, 1, SendSpans::One(Span::new(0, 4 * PIECE)), 0.0);
            assert_eq!(finish_send(&memory, &sum()), Sent::Done(1.0));
            mine.write();
        },
        move |wire| {
            let mut memory = memory(1, &theirs);
            let spans = [Span::new(0, 2 * PIECE), Span::new(PIECE, 2 * PIECE)];
            let received = receive(&mut memory, wire, 0, &spans, RecvOp::Copy);
            assert_eq!(received, Received::Done(1.0));
            let last = 100 + 2 * PIECE as u64;
            assert_eq!(
                read(memory.data::<u64>())[PIECE],
                last,
                "overlapping spans are copied in order"
            );
        },
    );
}

/// The sender's operator panics in the pieces that it combines. The receiver gets
/// [`Received::Poisoned`], unless it has combined all pieces itself.
pub(crate) fn sender_panics(pieces: usize) {
    let len = pieces * PIECE;
    let [mine, theirs] = buffers(len, PIECE);
    two_ranks(
        move |wire| {
            let memory = memory(0, &mine);
            memory.open_send(0, wire, 1, SendSpans::One(Span::new(0, len)), 0.0);
            unless_panicked(|| finish_send(&memory, &Operator::panicking()));
            drop(memory);
            mine.write();
        },
        move |wire| {
            let mut memory = memory(1, &theirs);
            let sum = sum();
            let op = RecvOp::Reduce(Combiner::of(&sum), Order::TheirsFirst);
            let spans = [Span::new(0, len)];
            if receive(&mut memory, wire, 0, &spans, op) != Received::Poisoned {
                let values = read(memory.data::<u64>()).iter().copied();
                assert!(
                    values.eq((101..).take(len)),
                    "every element is combined exactly once"
                );
            }
            theirs.write();
        },
    );
}

/// The receiver's operator panics in the pieces that it combines. Afterwards each side can write
/// its own buffer.
pub(crate) fn receiver_panics(pieces: usize) {
    let len = pieces * PIECE;
    let [mine, theirs] = buffers(len, PIECE);
    two_ranks(
        move |wire| {
            let memory = memory(0, &mine);
            memory.open_send(0, wire, 1, SendSpans::One(Span::new(0, len)), 0.0);
            finish_send(&memory, &sum());
            mine.write();
        },
        move |wire| {
            let mut memory = memory(1, &theirs);
            let panics = Operator::<u64>::panicking();
            let op = RecvOp::Reduce(Combiner::of(&panics), Order::MineFirst);
            let spans = [Span::new(0, len)];
            unless_panicked(|| receive(&mut memory, wire, 0, &spans, op));
            theirs.write();
        },
    );
}
