//! What two or three ranks do, small enough for every interleaving of it.

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

/// Memory that accesses are only recorded of.
struct Memory(UnsafeCell<()>);

impl Memory {
    fn new() -> Self {
        Memory(UnsafeCell::new(()))
    }

    fn several(n: usize) -> Vec<Memory> {
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

/// Where `pieces` pieces go that are only recorded.
fn target(pieces: usize) -> Target {
    Target {
        base: without_provenance_mut(8),
        spans: &[],
        combine: None,
        pieces,
    }
}

pub(super) fn until<R>(mut poll: impl FnMut() -> Option<R>) -> R {
    loop {
        if let Some(found) = poll() {
            return found;
        }
        thread::yield_now();
    }
}

/// Sender: waits for the end of its transfer.
fn sent(lane: &Lane) -> Sent {
    until(|| Some(lane.sent()).filter(|s| matches!(s, Sent::Done(_) | Sent::Refused)))
}

/// Receiver: waits for a message.
fn taken(lane: &Lane) -> Parcel {
    until(|| lane.take(|_| ()))
}

/// Runs `a` and `b` at once, on a wire between ranks 0 and 1.
pub(super) fn two_ranks(a: impl FnOnce(&Wire) + 'static, b: impl FnOnce(&Wire) + 'static) {
    let wire = Arc::new(Wire::new());
    let other = wire.clone();
    let receiver = thread::spawn(move || b(&other));
    a(&wire);
    receiver.join().unwrap();
}

pub(crate) fn inline_message() {
    two_ranks(
        |wire| {
            wire.lane(0, 1).offer(parcel(false, 1));
            assert_eq!(sent(wire.lane(0, 1)), Sent::Done(5.0));
        },
        |wire| {
            assert_eq!(taken(wire.lane(0, 1)), parcel(false, 1));
            wire.lane(0, 1).finish(5.0);
        },
    );
}

pub(crate) fn borrowed_message() {
    let lent = Arc::new(Memory::new());
    let theirs = lent.clone();
    two_ranks(
        move |wire| {
            lent.write();
            wire.lane(0, 1).offer(parcel(true, 1));
            assert_eq!(sent(wire.lane(0, 1)), Sent::Done(5.0));
            lent.write();
        },
        move |wire| {
            assert_eq!(taken(wire.lane(0, 1)), parcel(true, 1));
            theirs.read();
            wire.lane(0, 1).finish(5.0);
        },
    );
}

/// Messages in a slot of the lane, whose sender looks for the answer only before the next one.
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
                assert_eq!(taken(lane), parcel(true, n));
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
            assert_eq!(sent(wire.lane(0, 1)), Sent::Done(5.0));
            assert_eq!(taken(wire.lane(1, 0)), parcel(false, 2));
            wire.lane(1, 0).finish(6.0);
        },
        |wire| {
            assert_eq!(taken(wire.lane(0, 1)), parcel(false, 1));
            wire.lane(0, 1).finish(5.0);
            wire.lane(1, 0).offer(parcel(false, 2));
            assert_eq!(sent(wire.lane(1, 0)), Sent::Done(6.0));
        },
    );
}

pub(crate) fn two_messages() {
    let lent = Arc::new(Memory::new());
    let theirs = lent.clone();
    two_ranks(
        move |wire| {
            for n in 1..3 {
                lent.write();
                wire.lane(0, 1).offer(parcel(n == 1, n));
                assert_eq!(sent(wire.lane(0, 1)), Sent::Done(f64::from(n) + 4.0));
            }
            lent.write();
        },
        move |wire| {
            for n in 1..3 {
                assert_eq!(taken(wire.lane(0, 1)), parcel(n == 1, n));
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
            assert_eq!(taken(r#in), parcel(true, 1));
            memory[1 - me].read();
            r#in.finish(5.0);
            assert_eq!(sent(out), Sent::Done(5.0));
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

/// An offer is either taken back, and what it lent is not read any more, or it is received.
fn retract(borrowed: bool) {
    let lent = Arc::new(Memory::new());
    let theirs = lent.clone();
    two_ranks(
        move |wire| {
            lent.write();
            wire.lane(0, 1).offer(parcel(borrowed, 1));
            if !wire.lane(0, 1).retract() {
                assert_eq!(sent(wire.lane(0, 1)), Sent::Done(5.0));
            }
            lent.write();
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

/// A message whose sender did not stay and whose memory ends: it is taken back, or received.
pub(crate) fn left_behind() {
    let lent = Arc::new(Memory::new());
    let theirs = lent.clone();
    two_ranks(
        move |wire| {
            let lane = wire.lane(0, 1);
            lent.write();
            lane.offer(parcel(true, 1));
            until(|| (lane.is_settled() || lane.retract()).then_some(()));
            lent.write();
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
    let lent = Arc::new(Memory::new());
    let theirs = lent.clone();
    two_ranks(
        move |wire| {
            lent.write();
            wire.lane(0, 1).offer(parcel(borrowed, 1));
            assert_eq!(sent(wire.lane(0, 1)), Sent::Refused);
            lent.write();
        },
        move |wire| {
            assert_eq!(taken(wire.lane(0, 1)).length, 1);
            // A list of spans is lent memory too: that they do not fit shows only after reading
            // them.
            if borrowed {
                theirs.read();
            }
            wire.lane(0, 1).refuse();
        },
    );
}

/// Rank 1 sends to rank 0 after it has received from rank 0. Whenever rank 0 sees that offer, it
/// sees that its own send is done.
pub(crate) fn answered() {
    two_ranks(
        |wire| {
            wire.lane(0, 1).offer(parcel(false, 1));
            let answered = wire.lane(1, 0).is_offered();
            let waiting = wire.lane(0, 1).sent() == Sent::Waiting;
            assert!(!(answered && waiting), "an answer taken for a head-on send");
        },
        |wire| {
            if wire.lane(0, 1).take(|_| ()).is_some() {
                wire.lane(0, 1).finish(5.0);
                wire.lane(1, 0).offer(parcel(false, 2));
            }
        },
    );
}

/// A message of some pieces, in its sender's memory and in its receiver's.
struct Long {
    from: Vec<Memory>,
    to: Vec<Memory>,
    copies: Vec<Count>,
    /// Pieces that each side claims at first.
    first: usize,
    /// Whether the sender fails in its pieces.
    spoils: bool,
}

impl Long {
    fn new(pieces: usize) -> Arc<Long> {
        Long::with(pieces, 1, false)
    }

    fn with(pieces: usize, first: usize, spoils: bool) -> Arc<Long> {
        Arc::new(Long {
            first,
            spoils,
            from: Memory::several(pieces),
            to: Memory::several(pieces),
            copies: (0..pieces).map(|_| Count::new(0)).collect(),
        })
    }

    fn copy(&self, piece: usize) {
        self.from[piece].read();
        self.to[piece].write();
        self.copies[piece].fetch_add(1, Relaxed);
    }

    /// Sender: offers it, helps to copy it, and has its memory back at the end.
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
            // Several at once at first, as in the crate.
            let n = pieces.claim(count, if own == 0 { self.first } else { 1 });
            if n == 0 {
                break;
            }
            if self.spoils {
                // It panics: what it has claimed, and what is left, is not copied.
                pieces.finish(n + pieces.claim_rest(count), true);
            } else {
                (own + 1..=own + n).for_each(|n| self.copy(count - n));
                pieces.finish(n, false);
            }
            own += n;
        }
    }

    /// Receiver: copies pieces until `most` are copied, and gives up the rest. Has its memory for
    /// itself at the end. Whether the sender copied what it claimed.
    fn receive(&self, wire: &Wire, most: usize) -> bool {
        taken(wire.lane(0, 1));
        let (pieces, count) = (wire.pieces(0, 1), self.from.len());
        self.to.iter().for_each(Memory::write);
        pieces.open(target(count));
        wire.lane(0, 1).share();
        let mut own = 0;
        while own < most {
            let n = pieces.claim(count, if own == 0 { self.first } else { 1 });
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

/// Every piece is copied exactly once, by either side; a sender that comes late finds nothing to
/// do.
pub(crate) fn share(pieces: usize, first: usize) {
    let mine = Long::with(pieces, first, false);
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

/// The same lane and its pieces are used again, also by a sender that came late to the first
/// message.
pub(crate) fn share_twice() {
    let mine = [Long::new(1), Long::new(2)];
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

/// The sender panics in its pieces, and goes on: the receiver knows unless it has copied all of
/// them itself.
pub(crate) fn spoil(pieces: usize, first: usize) {
    let mine = Long::with(pieces, first, true);
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

/// The receiver panics after one piece: it waits for the pieces that the sender has begun, and
/// refuses.
pub(crate) fn give_up(pieces: usize) {
    let mine = Long::new(pieces);
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

/// Waits for `flag` as a rank does.
fn sleep_for(parker: &Parker, flag: &AtomicBool) {
    let here = || flag.load(Ordering::Acquire);
    while !here() {
        parker.prepare();
        if here() {
            parker.cancel();
            break;
        }
        parker.sleep(Instant::now(), || false);
    }
}

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
    sleep_for(&mine.0, &mine.1[0]);
    waker.join().unwrap();
}

/// Two things one after another: a bell that rang for the first, late, does not drown the second.
pub(crate) fn wake_up_again() {
    let mine = flags();
    let theirs = mine.clone();
    let waker = thread::spawn(move || {
        hand_over(&theirs.0, &theirs.1[0]);
        hand_over(&theirs.0, &theirs.1[1]);
    });
    sleep_for(&mine.0, &mine.1[0]);
    sleep_for(&mine.0, &mine.1[1]);
    waker.join().unwrap();
}

pub(crate) fn two_wakers() {
    let mine = flags();
    let wakers = [0, 1].map(|n| {
        let theirs = mine.clone();
        thread::spawn(move || hand_over(&theirs.0, &theirs.1[n]))
    });
    sleep_for(&mine.0, &mine.1[0]);
    sleep_for(&mine.0, &mine.1[1]);
    for waker in wakers {
        waker.join().unwrap();
    }
}

/// Nothing is ever handed over, but the run is aborted: the sleeper looks before it announces
/// itself and under the lock.
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

/// What a rank wrote before a barrier, all may read after it, round after round; ranks share
/// `cores` cores.
pub(crate) fn barrier(ranks: usize, cores: usize, rounds: usize) {
    let core_of: Vec<_> = (0..ranks).map(|rank| rank % cores).collect();
    let shared = Arc::new((Barrier::new(&core_of), Memory::several(ranks * rounds)));
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

/// As [`barrier`], once, by ranks that look a few times and then leave: many that wait at once
/// would take turns for ever. Whoever sees it open sees what everybody wrote before; one rank opens
/// it.
pub(crate) fn glances_at_a_barrier(ranks: usize, cores: usize) {
    const GLANCES: usize = 2;
    let core_of: Vec<_> = (0..ranks).map(|rank| rank % cores).collect();
    let shared = Arc::new((Barrier::new(&core_of), Memory::several(ranks)));
    let rank = move |me: usize, shared: &(Barrier, Vec<Memory>)| {
        let (barrier, memory) = shared;
        memory[me].write();
        let arrival = barrier.arrive(me);
        let open = match arrival {
            Arrival::Opened => true,
            Arrival::Waits { generation, .. } => (0..GLANCES).any(|_| barrier.is_open(generation)),
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

/// Each of some tellers hands two things over and tells of each: the owner, which only looks at
/// ranks that it is told of, sees everything in the end. What is missed would have it wait for
/// ever, which loom reports.
pub(crate) fn queued(tellers: usize) {
    struct Shared {
        inbox: Inbox,
        nodes: Vec<QueueNode>,
        handed: Vec<(Memory, AtomicBool)>,
    }
    let shared = Arc::new(Shared {
        inbox: Inbox::new(),
        nodes: (0..tellers).map(|_| QueueNode::new()).collect(),
        handed: (0..2 * tellers)
            .map(|_| (Memory::new(), AtomicBool::new(false)))
            .collect(),
    });
    let others: Vec<_> = (0..tellers)
        .map(|me| {
            let s = shared.clone();
            thread::spawn(move || {
                for (memory, here) in &s.handed[2 * me..2 * me + 2] {
                    memory.write();
                    here.store(true, Ordering::Release);
                    s.inbox.push(&s.nodes, me);
                }
            })
        })
        .collect();
    let mut seen = vec![false; 2 * tellers];
    until(|| {
        shared.inbox.take(&shared.nodes, |rank| {
            let own = 2 * rank..2 * rank + 2;
            for ((memory, here), seen) in shared.handed[own.clone()].iter().zip(&mut seen[own]) {
                if here.load(Ordering::Acquire) {
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

/// Whoever needs it first makes it; all see the same one, made.
pub(crate) fn first_needed() {
    let value = Arc::new(Lazy::<Memory>::new());
    let theirs = value.clone();
    let made = || {
        let memory = Memory::new();
        memory.write();
        memory
    };
    let other = thread::spawn(move || {
        let memory = theirs.get(made);
        memory.read();
        std::ptr::from_ref(memory).addr()
    });
    let memory = value.get(made);
    memory.read();
    let mine = std::ptr::from_ref(memory).addr();
    assert_eq!(other.join().unwrap(), mine);
}
