//! Scenarios of ranks that wait for each other: the parker, the barrier, the inbox and lazily made
//! values.

use std::time::Instant;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use super::barrier::{Barrier, Passage};
use super::inbox::{Inbox, QueueNode};
use super::lazy::Lazy;
use super::parker::Parker;
use super::scenarios::{Memory, until};

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
            if let Passage::Waits { generation, .. } = barrier.arrive(me) {
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
            Passage::Opened => true,
            Passage::Waits { generation, .. } => (0..POLLS).any(|_| barrier.is_open(generation)),
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
    let opened = arrivals.iter().filter(|a| **a == Passage::Opened).count();
    assert_eq!(opened, 1);
    for arrival in arrivals {
        if let Passage::Waits { generation, .. } = arrival {
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
