//! Scenarios of two or three ranks, small enough that loom can run all their interleavings.

use std::ptr::without_provenance_mut;
use std::sync::atomic::{AtomicUsize as Count, Ordering::Relaxed};
use std::time::Instant;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use super::barrier::{Arrival, Barrier};
use super::inbox::{Inbox, QueueNode};
use super::lazy::Lazy;
use super::parker::Parker;
use super::protocol::{Lane, Parcel, Payload, Pieces, Sent, Target, Wire};

/// Memory without contents: accesses are only recorded.
struct Memory(UnsafeCell<()>);

impl Memory {
    fn new() -> Self {
        Memory(UnsafeCell::new(()))
    }

    fn blocks(n: usize) -> Vec<Memory> {
        (0..n).map(|_| Memory::new()).collect()
    }

    fn read(&self) {
        self.0.with(|_| ());
    }

    fn write(&self) {
        self.0.with_mut(|_| ());
    }
}

fn parcel(borrowed: bool, n: u32) -> Parcel {
    Parcel {
        clock: f64::from(n),
        borrowed,
        length: n,
        payload: Payload::elements(without_provenance_mut::<u64>(n as usize), 9),
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

    fn help(&self, pieces: &Pieces) {
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

/// Two messages on the same lane with the same [`Pieces`], also if the sender reacts late to the
/// first one.
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

/// Sleeps until `flag` is set, with the steps of a waiting rank.
fn sleep_until_set(parker: &Parker, flag: &AtomicBool) {
    let is_set = || flag.load(Ordering::Acquire);
    while !is_set() {
        parker.prepare();
        if is_set() {
            parker.cancel();
            break;
        }
        parker.sleep(Instant::now(), || false);
    }
}

/// Sets `flag` and wakes the sleeper, with the steps of a rank that hands something over.
fn hand_over(parker: &Parker, flag: &AtomicBool) {
    flag.store(true, Ordering::Release);
    Parker::order();
    parker.unpark();
}

type Flags = Arc<(Parker, [AtomicBool; 2])>;

fn flags() -> Flags {
    Arc::new((
        Parker::default(),
        [AtomicBool::new(false), AtomicBool::new(false)],
    ))
}

pub(crate) fn wake_up() {
    let mine = flags();
    let theirs = mine.clone();
    let waker = thread::spawn(move || hand_over(&theirs.0, &theirs.1[0]));
    sleep_until_set(&mine.0, &mine.1[0]);
    waker.join().unwrap();
}

/// Two handovers, one after another: a late wake-up for the first one does not hide the second one.
pub(crate) fn wake_up_again() {
    let mine = flags();
    let theirs = mine.clone();
    let waker = thread::spawn(move || {
        hand_over(&theirs.0, &theirs.1[0]);
        hand_over(&theirs.0, &theirs.1[1]);
    });
    sleep_until_set(&mine.0, &mine.1[0]);
    sleep_until_set(&mine.0, &mine.1[1]);
    waker.join().unwrap();
}

pub(crate) fn two_wakers() {
    let mine = flags();
    let wakers = [0, 1].map(|n| {
        let theirs = mine.clone();
        thread::spawn(move || hand_over(&theirs.0, &theirs.1[n]))
    });
    sleep_until_set(&mine.0, &mine.1[0]);
    sleep_until_set(&mine.0, &mine.1[1]);
    for waker in wakers {
        waker.join().unwrap();
    }
}

/// The run is aborted and nothing is handed over. The sleeper checks for an abort before and after
/// its announcement, and under the lock.
pub(crate) fn abort() {
    let mine = flags();
    let theirs = mine.clone();
    let waker = thread::spawn(move || hand_over(&theirs.0, &theirs.1[1]));
    let aborted = || mine.1[1].load(Ordering::Relaxed);
    while !aborted() {
        mine.0.prepare();
        if aborted() {
            break;
        }
        mine.0.sleep(Instant::now(), aborted);
    }
    waker.join().unwrap();
}

/// All ranks may read after a barrier what each rank wrote before it, in every round. The ranks are
/// assigned round-robin to `cores` cores.
pub(crate) fn barrier(ranks: usize, cores: usize, rounds: usize) {
    let core_of: Vec<_> = (0..ranks).map(|rank| rank % cores).collect();
    let shared = Arc::new((Barrier::new(&core_of), Memory::blocks(ranks * rounds)));
    let rank = move |me: usize, shared: &(Barrier, Vec<Memory>)| {
        let (barrier, memory) = shared;
        for round in 0..rounds {
            memory[round * ranks + me].write();
            if let Arrival::Waits { generation, .. } = barrier.arrive(me) {
                until(|| barrier.is_open(generation).then_some(()));
            }
            memory[round * ranks..][..ranks]
                .iter()
                .for_each(Memory::read);
        }
    };
    let others: Vec<_> = (1..ranks)
        .map(|me| {
            let shared = shared.clone();
            thread::spawn(move || rank(me, &shared))
        })
        .collect();
    rank(0, &shared);
    for other in others {
        other.join().unwrap();
    }
}

/// As [`barrier`], with one round and ranks that leave after a few polls: several ranks that poll
/// without a limit would have infinitely many interleavings. Exactly one rank opens the barrier,
/// and a rank that sees it open sees what all ranks wrote before. Counters have `fan_in` children.
pub(crate) fn barrier_polled_briefly(ranks: usize, cores: usize, fan_in: usize) {
    const POLLS: usize = 2;
    let core_of: Vec<_> = (0..ranks).map(|rank| rank % cores).collect();
    let barrier = Barrier::with_fan_in(&core_of, fan_in);
    let shared = Arc::new((barrier, Memory::blocks(ranks)));
    let rank = move |me: usize, shared: &(Barrier, Vec<Memory>)| {
        let (barrier, memory) = shared;
        memory[me].write();
        let arrival = barrier.arrive(me);
        let open = match arrival {
            Arrival::Opened => true,
            Arrival::Waits { generation, .. } => (0..POLLS).any(|_| barrier.is_open(generation)),
        };
        if open {
            memory.iter().for_each(Memory::read);
        }
        arrival
    };
    let others: Vec<_> = (1..ranks)
        .map(|me| {
            let shared = shared.clone();
            thread::spawn(move || rank(me, &shared))
        })
        .collect();
    let mut arrivals = vec![rank(0, &shared)];
    arrivals.extend(others.into_iter().map(|other| other.join().unwrap()));
    let opened = arrivals.iter().filter(|a| **a == Arrival::Opened).count();
    assert_eq!(opened, 1);
    for arrival in arrivals {
        if let Arrival::Waits { generation, .. } = arrival {
            assert!(shared.0.is_open(generation));
        }
    }
}

/// Each of `pushers` ranks hands two things over, and is pushed to the owner's queue after each.
/// The owner polls only queued ranks, and sees both things of every rank in the end. If it missed
/// one, it would wait forever, which loom reports.
pub(crate) fn queued(pushers: usize) {
    struct Shared {
        inbox: Inbox,
        nodes: Vec<QueueNode>,
        /// Two for each rank: memory, and whether it is handed over.
        handovers: Vec<(Memory, AtomicBool)>,
    }
    let shared = Arc::new(Shared {
        inbox: Inbox::new(),
        nodes: (0..pushers).map(|_| QueueNode::new()).collect(),
        handovers: (0..2 * pushers)
            .map(|_| (Memory::new(), AtomicBool::new(false)))
            .collect(),
    });
    let others: Vec<_> = (0..pushers)
        .map(|me| {
            let s = shared.clone();
            thread::spawn(move || {
                for (memory, ready) in &s.handovers[2 * me..2 * me + 2] {
                    memory.write();
                    ready.store(true, Ordering::Release);
                    s.inbox.push(&s.nodes, me);
                }
            })
        })
        .collect();
    let mut seen = vec![false; 2 * pushers];
    until(|| {
        shared.inbox.take(&shared.nodes, |rank| {
            let own = 2 * rank..2 * rank + 2;
            for ((memory, ready), seen) in shared.handovers[own.clone()].iter().zip(&mut seen[own])
            {
                if ready.load(Ordering::Acquire) {
                    memory.read();
                    *seen = true;
                }
            }
        });
        seen.iter().all(|&s| s).then_some(())
    });
    for other in others {
        other.join().unwrap();
    }
}

/// Two ranks use a lazy value at the same time. Both see the same value, completely made.
pub(crate) fn first_use() {
    let value = Arc::new(Lazy::<Memory>::new());
    let theirs = value.clone();
    let make = || {
        let memory = Memory::new();
        memory.write();
        memory
    };
    let other = thread::spawn(move || {
        let memory = theirs.get(make);
        memory.read();
        std::ptr::from_ref(memory).addr()
    });
    let memory = value.get(make);
    memory.read();
    let mine = std::ptr::from_ref(memory).addr();
    assert_eq!(other.join().unwrap(), mine);
}
