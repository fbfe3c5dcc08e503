//! What guards the ranks' memory while others may read or write it: two ranks, with all of the
//! crate's code between their calls and the copying of bytes.
//!
//! Whatever a guard lets through is done, and loom checks that nobody else is at it; what it
//! refuses is done once the guard must let it through.

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Once;

use oneport::{Order, Span};

use super::memory::{Due, RankMemory, Received, SendSpans};
use super::packed::RecvOp;
use super::protocol::{Sent, Wire};
use super::scenarios::{two_ranks, until};
use super::slots::Slots;
use crate::buffers::{Buffer, Operator, OperatorFailed, begin, check, read};

/// More than travels inside a lane.
const FOUR: &[Span] = &[Span::new(0, 4)];
/// The same in pieces, one of them within the others' reach.
const FOUR_IN_PIECES: &[Span] = &[Span::new(0, 1), Span::new(2, 3)];
/// An element of both.
const THIRD: &[Span] = &[Span::new(3, 1)];

/// Elements of a piece of a shared message.
const PIECE: usize = (16 << 10) / size_of::<u64>();

const DUE: Due = Due {
    ready: 0.0,
    takes: 1.0,
};

fn memory<'b, 'r>(rank: usize, buffer: &'b Buffer) -> RankMemory<'b, 'r, u64> {
    RankMemory::new(rank, buffer.send_spans(), 1, usize::MAX)
}

/// Two buffers of `len` elements: one with 100, 101 and so on, and one with ones.
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

/// Whether a guard refuses it.
fn is_refused(f: impl FnOnce()) -> bool {
    const REFUSAL: &str = "a span being sent";
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if panic.payload_as_str() != Some(REFUSAL) {
                report(panic);
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

/// What it returns, unless its operator panics.
fn unless_panicked<R>(f: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(f))
        .map_err(|panic| {
            if !panic.is::<OperatorFailed>() {
                resume_unwind(panic);
            }
        })
        .ok()
}

/// Receives a message that comes.
fn received(
    memory: &mut RankMemory<'_, '_, u64>,
    wire: &Wire,
    from: usize,
    spans: &[Span],
    op: RecvOp<'_, u64>,
) -> Received {
    until(|| {
        let received = memory.receive(wire, from, spans, op, true, DUE);
        (received != Received::Nothing).then_some(received)
    })
}

/// Waits for the end of an open send.
fn sent(memory: &RankMemory<'_, '_, u64>, operator: &Operator<u64>) -> Sent {
    until(|| Some(memory.poll_send(0, operator)).filter(|sent| *sent != Sent::Waiting))
}

pub(crate) fn lent_then_written() {
    written_while_lent(FOUR, [100, 101, 102, 103]);
}

pub(crate) fn lent_in_pieces_then_written() {
    written_while_lent(FOUR_IN_PIECES, [100, 102, 103, 104]);
}

/// What is lent is written once it has been taken, or was not yet, and is refused; other memory is
/// written at once.
fn written_while_lent(spans: &'static [Span], values: [u64; 4]) {
    let [mine, theirs] = buffers(8, 1);
    two_ranks(
        move |wire| {
            let mut memory = memory(0, &mine);
            let lane = wire.lane(0, 1);
            memory.send_spans(lane, spans);
            memory.local(&[Span::new(6, 1)], &[Span::new(7, 1)], RecvOp::Copy);
            let mut write = || memory.local(THIRD, &[Span::new(7, 1)], RecvOp::Copy);
            let refused = is_refused(&mut write);
            until(|| lane.is_settled().then_some(()));
            if refused {
                write();
            }
            assert_eq!(read(memory.data())[3], 107);
        },
        move |wire| {
            let mut memory = memory(1, &theirs);
            let received = received(&mut memory, wire, 0, FOUR, RecvOp::Copy);
            assert_eq!(received, Received::Done(1.0));
            assert_eq!(read(memory.data())[..4], values);
        },
    );
}

/// A short message arrives for memory that is lent: it is taken in once that has been taken, and
/// refused before.
pub(crate) fn lent_then_received_into() {
    let [mine, theirs] = buffers(8, 1);
    two_ranks(
        move |wire| {
            let mut memory = memory(0, &mine);
            memory.send_spans(wire.lane(0, 1), FOUR);
            let mut done = Received::Nothing;
            if !is_refused(|| done = received(&mut memory, wire, 1, THIRD, RecvOp::Copy)) {
                assert_eq!(done, Received::Done(1.0));
                assert_eq!(read(memory.data())[3], 1);
            }
            until(|| wire.lane(0, 1).is_settled().then_some(()));
        },
        move |wire| {
            let mut memory = memory(1, &theirs);
            memory.open_send(0, wire, 0, SendSpans::One(Span::new(7, 1)), 0.0);
            let received = received(&mut memory, wire, 0, FOUR, RecvOp::Copy);
            assert_eq!(received, Received::Done(1.0));
            assert_eq!(read(memory.data())[..4], [100, 101, 102, 103]);
            sent(&memory, &sum());
        },
    );
}

/// What is being sent is written once the sender has seen the end.
pub(crate) fn sent_then_written() {
    let [mine, theirs] = buffers(8, 1);
    two_ranks(
        move |wire| {
            let mut memory = memory(0, &mine);
            memory.open_send(0, wire, 1, SendSpans::Many(FOUR_IN_PIECES), 0.0);
            let write = |memory: &mut RankMemory<'_, '_, u64>| {
                memory.local(THIRD, &[Span::new(7, 1)], RecvOp::Copy);
            };
            let refused = is_refused(|| write(&mut memory));
            assert_eq!(sent(&memory, &sum()), Sent::Done(1.0));
            if refused {
                write(&mut memory);
            }
        },
        move |wire| {
            let mut memory = memory(1, &theirs);
            let received = received(&mut memory, wire, 0, FOUR, RecvOp::Copy);
            assert_eq!(received, Received::Done(1.0));
            assert_eq!(read(memory.data())[..4], [100, 102, 103, 104]);
        },
    );
}

/// Two messages in the slot of a lane: what they were copied from is written at once.
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
                memory.post(lane, FOUR, &slots, 0);
                memory.local(FOUR, &[Span::new(4, 4)], RecvOp::Copy);
            }
        },
        move |wire| {
            let _kept = kept;
            let mut memory = memory(1, &theirs);
            for values in [[100, 101, 102, 103], [104, 105, 106, 107]] {
                let received = received(&mut memory, wire, 0, FOUR, RecvOp::Copy);
                assert_eq!(received, Received::Done(1.0));
                assert_eq!(read(memory.data())[..4], values);
            }
        },
    );
}

/// How a sender leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InFlight {
    /// It has lent a message.
    SendSpans,
    /// It has an open send.
    Sent,
    /// It has an open send that it is invited to help with.
    Shared,
    /// Without its memory's having been dropped, which it must be.
    Forgotten,
}

/// Its owner gets a buffer back of which something is lent or being sent, whether or not somebody
/// takes it.
pub(crate) fn left(how: InFlight) {
    let len = if how == InFlight::Shared {
        2 * PIECE
    } else {
        4
    };
    let [mine, theirs] = buffers(len, len / 2);
    two_ranks(
        move |wire| {
            let mut memory = ManuallyDrop::new(memory(0, &mine));
            match how {
                InFlight::SendSpans | InFlight::Forgotten => {
                    memory.send_spans(wire.lane(0, 1), FOUR)
                }
                InFlight::Sent | InFlight::Shared => {
                    memory.open_send(0, wire, 1, SendSpans::One(Span::new(0, len)), 0.0);
                }
            }
            if how != InFlight::Forgotten {
                drop(ManuallyDrop::into_inner(memory));
            }
            mine.write();
        },
        move |wire| {
            let mut memory = memory(1, &theirs);
            let spans = [Span::new(0, len)];
            match memory.receive(wire, 0, &spans, RecvOp::Copy, true, DUE) {
                Received::Nothing => {}
                received => {
                    assert_eq!(received, Received::Done(1.0));
                    assert!(read(memory.data()).iter().copied().eq((100..).take(len)));
                }
            }
        },
    );
}

/// A message that its receiver refuses is its sender's again.
pub(crate) fn another_length() {
    let [mine, theirs] = buffers(8, 1);
    two_ranks(
        move |wire| {
            let mut memory = memory(0, &mine);
            let lane = wire.lane(0, 1);
            memory.send_spans(lane, FOUR_IN_PIECES);
            until(|| lane.is_settled().then_some(()));
            memory.local(THIRD, &[Span::new(7, 1)], RecvOp::Copy);
        },
        move |wire| {
            let mut memory = memory(1, &theirs);
            let received = received(&mut memory, wire, 0, &[Span::new(0, 3)], RecvOp::Copy);
            assert_eq!(received, Received::Length(4));
        },
    );
}

/// Messages of some pieces, copied by both partners; combined, and from the higher rank to the
/// lower, where it says so.
pub(crate) fn shared(pieces: usize, messages: u64, combined: bool) {
    let len = pieces * PIECE;
    let [mine, theirs] = buffers(len, PIECE);
    let (me, you) = if combined { (1, 0) } else { (0, 1) };
    let send = move |wire: &Wire| {
        let memory = memory(me, &mine);
        for _ in 0..messages {
            memory.open_send(0, wire, you, SendSpans::One(Span::new(0, len)), 0.0);
            assert_eq!(sent(&memory, &sum()), Sent::Done(1.0));
            mine.write();
        }
    };
    let receive = move |wire: &Wire| {
        let mut memory = memory(you, &theirs);
        let sum = sum();
        let (before, times, op) = match combined {
            true => (1, 1, RecvOp::Reduce(&sum, Order::MineFirst)),
            false => (0, 0, RecvOp::Copy),
        };
        for n in 0..messages {
            let received = received(&mut memory, wire, me, &[Span::new(0, len)], op);
            assert_eq!(received, Received::Done(1.0));
            let expected = (100..).map(|sent| before + sent * (1 + n * times));
            assert!(read(memory.data()).iter().copied().eq(expected.take(len)));
            theirs.write();
        }
    };
    if combined {
        two_ranks(receive, send);
    } else {
        two_ranks(send, receive);
    }
}

/// A long message whose second half goes where part of the first went: it is not left to both, who
/// would be at the same memory at once.
pub(crate) fn shared_with_overlap() {
    let [mine, theirs] = buffers(4 * PIECE, PIECE);
    two_ranks(
        move |wire| {
            let memory = memory(0, &mine);
            memory.open_send(0, wire, 1, SendSpans::One(Span::new(0, 4 * PIECE)), 0.0);
            assert_eq!(sent(&memory, &sum()), Sent::Done(1.0));
            mine.write();
        },
        move |wire| {
            let mut memory = memory(1, &theirs);
            let spans = [Span::new(0, 2 * PIECE), Span::new(PIECE, 2 * PIECE)];
            let received = received(&mut memory, wire, 0, &spans, RecvOp::Copy);
            assert_eq!(received, Received::Done(1.0));
            let last = 100 + 2 * PIECE as u64;
            assert_eq!(read(memory.data())[PIECE], last, "one after another");
        },
    );
}

/// The sender's operator panics in the pieces that it combines: the receiver knows, unless it has
/// combined all of them itself.
pub(crate) fn sender_panics(pieces: usize) {
    let len = pieces * PIECE;
    let [mine, theirs] = buffers(len, PIECE);
    two_ranks(
        move |wire| {
            let memory = memory(0, &mine);
            memory.open_send(0, wire, 1, SendSpans::One(Span::new(0, len)), 0.0);
            unless_panicked(|| sent(&memory, &Operator::that_panics()));
            drop(memory);
            mine.write();
        },
        move |wire| {
            let mut memory = memory(1, &theirs);
            let sum = sum();
            let op = RecvOp::Reduce(&sum, Order::TheirsFirst);
            let spans = [Span::new(0, len)];
            if received(&mut memory, wire, 0, &spans, op) != Received::Poisoned {
                let values = read(memory.data()).iter().copied();
                assert!(
                    values.eq((101..).take(len)),
                    "every element is combined exactly once"
                );
            }
            theirs.write();
        },
    );
}

/// The receiver's operator panics in the pieces that it combines: it has its memory for itself
/// afterwards, and the sender has its own.
pub(crate) fn receiver_panics(pieces: usize) {
    let len = pieces * PIECE;
    let [mine, theirs] = buffers(len, PIECE);
    two_ranks(
        move |wire| {
            let memory = memory(0, &mine);
            memory.open_send(0, wire, 1, SendSpans::One(Span::new(0, len)), 0.0);
            sent(&memory, &sum());
            mine.write();
        },
        move |wire| {
            let mut memory = memory(1, &theirs);
            let panics = Operator::that_panics();
            let op = RecvOp::Reduce(&panics, Order::MineFirst);
            let spans = [Span::new(0, len)];
            unless_panicked(|| received(&mut memory, wire, 0, &spans, op));
            theirs.write();
        },
    );
}
