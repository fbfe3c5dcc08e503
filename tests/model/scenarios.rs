//! Scenarios of two or three ranks, small enough that loom can run all their interleavings.

use std::ptr::without_provenance_mut;
use std::sync::atomic::{AtomicUsize as Count, Ordering::Relaxed};

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use super::protocol::{Lane, Parcel, Payload, Sent, SharedPieces, Target, Wire};

/// Memory without contents: accesses are only recorded.
pub(super) struct Memory(UnsafeCell<()>);

impl Memory {
    pub(super) fn new() -> Self {
        Memory(UnsafeCell::new(()))
    }

    pub(super) fn blocks(n: usize) -> Vec<Memory> {
        (0..n).map(|_| Memory::new()).collect()
    }

    pub(super) fn read(&self) {
        self.0.with(|_| ());
    }

    pub(super) fn write(&self) {
        self.0.with_mut(|_| ());
    }
}

fn parcel(borrowed: bool, n: u32) -> Parcel {
    Parcel {
        clock: f64::from(n),
        borrowed,
        length: n,
        payload: Payload::elements(without_provenance_mut(n as usize), 9),
    }
}

/// The destination of a message of `pieces` pieces. It names no memory, since the scenarios only
/// record accesses.
fn target(pieces: usize) -> Target {
    Target {
        base: without_provenance_mut(8),
        spans: &[],
        combine: None,
        pieces,
    }
}

/// Calls `poll`, and yields after each call, until it returns something.
pub(super) fn until<R>(mut poll: impl FnMut() -> Option<R>) -> R {
    loop {
        if let Some(found) = poll() {
            return found;
        }
        thread::yield_now();
    }
}

/// Sender: waits for the end of its transfer.
fn finish_send(lane: &Lane) -> Sent {
    until(|| Some(lane.sent()).filter(|s| matches!(s, Sent::Done(_) | Sent::Refused)))
}

/// Receiver: waits for a message and takes it.
fn take(lane: &Lane) -> Parcel {
    until(|| lane.take(|_| ()))
}

/// Runs rank 0 (`a`) and rank 1 (`b`) concurrently, with a wire between them.
pub(super) fn two_ranks(a: impl FnOnce(&Wire) + 'static, b: impl FnOnce(&Wire) + 'static) {
    let wire = Arc::new(Wire::new());
    let other = wire.clone();
    let rank_1 = thread::spawn(move || b(&other));
    a(&wire);
    rank_1.join().unwrap();
}

pub(crate) fn inline_message() {
    two_ranks(
        |wire| {
            wire.lane(0, 1).offer(parcel(false, 1));
            assert_eq!(finish_send(wire.lane(0, 1)), Sent::Done(5.0));
        },
        |wire| {
            assert_eq!(take(wire.lane(0, 1)), parcel(false, 1));
            wire.lane(0, 1).finish(5.0);
        },
    );
}

pub(crate) fn borrowed_message() {
    let memory = Arc::new(Memory::new());
    let theirs = memory.clone();
    two_ranks(
        move |wire| {
            memory.write();
            wire.lane(0, 1).offer(parcel(true, 1));
            assert_eq!(finish_send(wire.lane(0, 1)), Sent::Done(5.0));
            memory.write();
        },
        move |wire| {
            assert_eq!(take(wire.lane(0, 1)), parcel(true, 1));
            theirs.read();
            wire.lane(0, 1).finish(5.0);
        },
    );
}

/// Two messages in the slot of a lane. The sender checks for the answer to the first one only
/// before it writes the second one.
pub(crate) fn eager_messages() {
    let slot = Arc::new(Memory::new());
    let theirs = slot.clone();
    two_ranks(
        move |wire| {
            let lane = wire.lane(0, 1);
            for n in 1..=2 {
                until(|| lane.is_free().then_some(()));
                slot.write();
                lane.offer(parcel(true, n));
            }
        },
        move |wire| {
            let lane = wire.lane(0, 1);
            for n in 1..=2 {
                assert_eq!(take(lane), parcel(true, n));
                theirs.read();
                lane.finish(0.0);
            }
        },
    );
}

pub(crate) fn reply() {
    two_ranks(
        |wire| {
            wire.lane(0, 1).offer(parcel(false, 1));
            assert_eq!(finish_send(wire.lane(0, 1)), Sent::Done(5.0));
            assert_eq!(take(wire.lane(1, 0)), parcel(false, 2));
            wire.lane(1, 0).finish(6.0);
        },
        |wire| {
            assert_eq!(take(wire.lane(0, 1)), parcel(false, 1));
            wire.lane(0, 1).finish(5.0);
            wire.lane(1, 0).offer(parcel(false, 2));
            assert_eq!(finish_send(wire.lane(1, 0)), Sent::Done(6.0));
        },
    );
}

pub(crate) fn two_messages() {
    let memory = Arc::new(Memory::new());
    let theirs = memory.clone();
    two_ranks(
        move |wire| {
            for n in 1..3 {
                memory.write();
                wire.lane(0, 1).offer(parcel(n == 1, n));
                assert_eq!(finish_send(wire.lane(0, 1)), Sent::Done(f64::from(n) + 4.0));
            }
            memory.write();
        },
        move |wire| {
            for n in 1..3 {
                assert_eq!(take(wire.lane(0, 1)), parcel(n == 1, n));
                theirs.read();
                wire.lane(0, 1).finish(f64::from(n) + 4.0);
            }
        },
    );
}

pub(crate) fn exchange() {
    let memory = Arc::new([Memory::new(), Memory::new()]);
    let rank = |me: usize, memory: Arc<[Memory; 2]>| {
        move |wire: &Wire| {
            let (out, r#in) = (wire.lane(me, 1 - me), wire.lane(1 - me, me));
            memory[me].write();
            out.offer(parcel(true, 1));
            assert_eq!(take(r#in), parcel(true, 1));
            memory[1 - me].read();
            r#in.finish(5.0);
            assert_eq!(finish_send(out), Sent::Done(5.0));
            memory[me].write();
        }
    };
    two_ranks(rank(0, memory.clone()), rank(1, memory));
}

pub(crate) fn retract_inline() {
    retract(false);
}

pub(crate) fn retract_borrowed() {
    retract(true);
}

/// An offer is either retracted, after which the receiver does not read the sender's memory, or
/// received.
fn retract(borrowed: bool) {
    let memory = Arc::new(Memory::new());
    let theirs = memory.clone();
    two_ranks(
        move |wire| {
            memory.write();
            wire.lane(0, 1).offer(parcel(borrowed, 1));
            if !wire.lane(0, 1).retract() {
                assert_eq!(finish_send(wire.lane(0, 1)), Sent::Done(5.0));
            }
            memory.write();
        },
        move |wire| {
            if let Some(message) = wire.lane(0, 1).take(|_| ()) {
                assert_eq!(message, parcel(borrowed, 1));
                if borrowed {
                    theirs.read();
                }
                wire.lane(0, 1).finish(5.0);
            }
        },
    );
}

/// A sender that did not wait for the receiver ends, as in the drop of `RankMemory`: its message is
/// retracted or received.
pub(crate) fn end_in_flight() {
    let memory = Arc::new(Memory::new());
    let theirs = memory.clone();
    two_ranks(
        move |wire| {
            let lane = wire.lane(0, 1);
            memory.write();
            lane.offer(parcel(true, 1));
            until(|| (lane.is_settled() || lane.retract()).then_some(()));
            memory.write();
        },
        move |wire| {
            if wire.lane(0, 1).take(|_| ()).is_some() {
                theirs.read();
                wire.lane(0, 1).finish(5.0);
            }
        },
    );
}

pub(crate) fn refuse_inline() {
    refuse(false);
}

pub(crate) fn refuse_borrowed() {
    refuse(true);
}

fn refuse(borrowed: bool) {
    let memory = Arc::new(Memory::new());
    let theirs = memory.clone();
    two_ranks(
        move |wire| {
            memory.write();
            wire.lane(0, 1).offer(parcel(borrowed, 1));
            assert_eq!(finish_send(wire.lane(0, 1)), Sent::Refused);
            memory.write();
        },
        move |wire| {
            assert_eq!(take(wire.lane(0, 1)).length, 1);
            // The list of spans is in the sender's memory, too, and the receiver must read it to
            // find out that the length does not match.
            if borrowed {
                theirs.read();
            }
            wire.lane(0, 1).refuse();
        },
    );
}

/// Rank 1 sends to rank 0 after it has received from rank 0. If rank 0 sees that offer, it also
/// sees that its own send is done. So it does not mistake the reply for a head-on send, in which
/// both ranks send to each other through their only ports and neither can receive.
pub(crate) fn reply_after_receive() {
    two_ranks(
        |wire| {
            wire.lane(0, 1).offer(parcel(false, 1));
            let replied = wire.lane(1, 0).is_offered();
            let waiting = wire.lane(0, 1).sent() == Sent::Waiting;
            assert!(!(replied && waiting), "a reply looks like a head-on send");
        },
        |wire| {
            if wire.lane(0, 1).take(|_| ()).is_some() {
                wire.lane(0, 1).finish(5.0);
                wire.lane(1, 0).offer(parcel(false, 2));
            }
        },
    );
}

/// A message of several pieces that both partners copy, with the memory of sender and receiver.
struct LongMessage {
    from: Vec<Memory>,
    to: Vec<Memory>,
    /// By piece: how often it was copied.
    copies: Vec<Count>,
    /// Number of pieces in the first claim of each side.
    first_claim: usize,
    /// Whether the sender fails in its pieces.
    poisons: bool,
}

impl LongMessage {
    fn new(pieces: usize) -> Arc<LongMessage> {
        LongMessage::with(pieces, 1, false)
    }

    fn with(pieces: usize, first_claim: usize, poisons: bool) -> Arc<LongMessage> {
        Arc::new(LongMessage {
            first_claim,
            poisons,
            from: Memory::blocks(pieces),
            to: Memory::blocks(pieces),
            copies: (0..pieces).map(|_| Count::new(0)).collect(),
        })
    }

    fn copy(&self, piece: usize) {
        self.from[piece].read();
        self.to[piece].write();
        self.copies[piece].fetch_add(1, Relaxed);
    }

    /// Sender: offers the message, helps to copy it, and writes its memory at the end.
    fn send(&self, wire: &Wire) -> Sent {
        self.from.iter().for_each(Memory::write);
        wire.lane(0, 1).offer(parcel(true, 1));
        let end = until(|| match wire.lane(0, 1).sent() {
            Sent::Shared => {
                self.help(wire.pieces(0, 1));
                None
            }
            Sent::Waiting => None,
            end => Some(end),
        });
        self.from.iter().for_each(Memory::write);
        end
    }

    fn help(&self, pieces: &SharedPieces) {
        let count = self.from.len();
        assert_eq!(pieces.target(), target(count));
        let mut own = 0;
        loop {
            // Several pieces in the first claim, as in `Division::claim`.
            let n = pieces.claim(count, if own == 0 { self.first_claim } else { 1 });
            if n == 0 {
                break;
            }
            if self.poisons {
                // As in the drop of `Claimed` after a panic: neither the claimed pieces nor the
                // remaining ones are copied.
                pieces.finish(n + pieces.claim_rest(count), true);
            } else {
                (own + 1..=own + n).for_each(|n| self.copy(count - n));
                pieces.finish(n, false);
            }
            own += n;
        }
    }

    /// Receiver: copies pieces until it has copied at least `stop_after` of them, then claims the
    /// remaining ones without copying them. Writes its memory at the end. Returns whether the
    /// sender copied all pieces that it claimed.
    fn receive(&self, wire: &Wire, stop_after: usize) -> bool {
        take(wire.lane(0, 1));
        let (pieces, count) = (wire.pieces(0, 1), self.from.len());
        self.to.iter().for_each(Memory::write);
        pieces.open(target(count));
        wire.lane(0, 1).share();
        let mut own = 0;
        while own < stop_after {
            let n = pieces.claim(count, if own == 0 { self.first_claim } else { 1 });
            if n == 0 {
                break;
            }
            (own..own + n).for_each(|n| self.copy(n));
            own += n;
        }
        own += pieces.claim_rest(count);
        let copied = until(|| pieces.finished(count - own));
        self.to.iter().for_each(Memory::write);
        copied
    }

    fn times_copied(&self) -> Vec<usize> {
        self.copies.iter().map(|c| c.load(Relaxed)).collect()
    }
}

/// Every piece is copied exactly once, by one of the two sides. A sender that reacts late finds no
/// piece to claim.
pub(crate) fn share(pieces: usize, first_claim: usize) {
    let mine = LongMessage::with(pieces, first_claim, false);
    let (theirs, message) = (mine.clone(), mine.clone());
    two_ranks(
        move |wire| assert_eq!(mine.send(wire), Sent::Done(5.0)),
        move |wire| {
            assert!(theirs.receive(wire, usize::MAX));
            assert_eq!(theirs.times_copied(), vec![1; pieces]);
            wire.lane(0, 1).finish(5.0);
        },
    );
    assert_eq!(message.times_copied(), vec![1; pieces]);
}

/// Two messages on the same lane with the same [`SharedPieces`], also if the sender reacts late to
/// the first one.
pub(crate) fn share_twice() {
    let mine = [LongMessage::new(1), LongMessage::new(2)];
    let theirs = mine.clone();
    two_ranks(
        move |wire| {
            for message in &mine {
                assert_eq!(message.send(wire), Sent::Done(5.0));
            }
        },
        move |wire| {
            for message in &theirs {
                assert!(message.receive(wire, usize::MAX));
                assert_eq!(message.times_copied(), vec![1; message.from.len()]);
                wire.lane(0, 1).finish(5.0);
            }
        },
    );
}

/// The sender panics in its pieces and continues. The receiver sees that they are poisoned, unless
/// it has copied all pieces itself.
pub(crate) fn poison(pieces: usize, first_claim: usize) {
    let mine = LongMessage::with(pieces, first_claim, true);
    let theirs = mine.clone();
    two_ranks(
        move |wire| assert!(matches!(mine.send(wire), Sent::Done(5.0) | Sent::Refused)),
        move |wire| {
            if theirs.receive(wire, usize::MAX) {
                assert_eq!(theirs.times_copied(), vec![1; pieces]);
                wire.lane(0, 1).finish(5.0);
            } else {
                wire.lane(0, 1).refuse();
            }
        },
    );
}

/// The receiver panics after one piece. It waits for the pieces that the sender has claimed, and
/// then refuses the message.
pub(crate) fn stop_copying(pieces: usize) {
    let mine = LongMessage::new(pieces);
    let theirs = mine.clone();
    two_ranks(
        move |wire| assert_eq!(mine.send(wire), Sent::Refused),
        move |wire| {
            theirs.receive(wire, 1);
            assert!(theirs.times_copied().iter().all(|&n| n <= 1));
            wire.lane(0, 1).refuse();
        },
    );
}
