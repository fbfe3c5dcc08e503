//! The queues by which the workers of a multiplexed run tell each other which ranks have something
//! to poll for.
//!
//! | pushing worker | owner of the rank |
//! |---|---|
//! | 1. hands something over | 1. takes the whole list |
//! | 2. marks the rank's node as queued | 2. removes the mark of a rank |
//! | 3. unless it was marked: adds the node to the owner's list | 3. polls the rank |
//!
//! Both steps 2 are read-modify-writes of the same mark, so one comes first. If it is the pusher's,
//! the owner's, which acquires it, sees what was handed over. If it is the owner's, the pusher
//! finds no mark and adds the rank to the list again.
//!
//! A rank is on at most one list at a time, so one link per rank is enough. Lists are only ever
//! taken whole, so no rank is mistaken for another (no ABA problem). `tests/model` checks this
//! file.

use crossbeam_utils::CachePadded;

use super::sync::{AtomicBool, AtomicUsize, Ordering};

const NONE: usize = usize::MAX;

/// A list of ranks: any worker adds to it, and its owner takes it.
#[derive(Debug)]
pub(crate) struct Inbox {
    last: CachePadded<AtomicUsize>,
}

/// The entry of a rank in its owner's list. Other workers write it, so each has a line of its own.
#[derive(Debug)]
pub(crate) struct QueueNode(CachePadded<Entry>);

#[derive(Debug)]
struct Entry {
    queued: AtomicBool,
    next: AtomicUsize,
}

impl QueueNode {
    pub(crate) fn new() -> Self {
        QueueNode(CachePadded::new(Entry {
            queued: AtomicBool::new(false),
            next: AtomicUsize::new(NONE),
        }))
    }
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Inbox {
            last: CachePadded::new(AtomicUsize::new(NONE)),
        }
    }

    /// Adds `rank` to the list. False if it was there already, and the owner has not polled it
    /// since. `nodes` are those of all ranks.
    pub(crate) fn push(&self, nodes: &[QueueNode], rank: usize) -> bool {
        if nodes[rank].0.queued.swap(true, Ordering::AcqRel) {
            return false;
        }
        let mut last = self.last.load(Ordering::Relaxed);
        loop {
            nodes[rank].0.next.store(last, Ordering::Relaxed);
            match self
                .last
                .compare_exchange(last, rank, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(now) => last = now,
            }
        }
    }

    /// Whether the list is empty.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.last.load(Ordering::Relaxed) == NONE
    }

    /// Owner: takes the list and calls `each` for every rank in it.
    pub(crate) fn take(&self, nodes: &[QueueNode], mut each: impl FnMut(usize)) {
        let mut rank = self.last.swap(NONE, Ordering::Acquire);
        while rank != NONE {
            // Once the mark is removed, other workers may add the rank to the list again.
            let next = nodes[rank].0.next.load(Ordering::Relaxed);
            nodes[rank].0.queued.swap(false, Ordering::AcqRel);
            each(rank);
            rank = next;
        }
    }
}
