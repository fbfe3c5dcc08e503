//! What workers of a folded run tell each other: which rank has something to look at.
//!
//! | teller | owner |
//! |---|---|
//! | 1. hands something over | 1. takes the whole list |
//! | 2. marks the rank as told of | 2. takes the mark off a rank |
//! | 3. unless it was: puts it on the owner's list | 3. looks at the rank |
//!
//! Both sides of step 2 are read-modify-writes, so one comes first. If it is the teller's, the
//! owner's, which acquires it, sees what was handed over. If it is the owner's, the teller finds no
//! mark and puts the rank on the list again. A rank is on a list once at most, so one link a rank
//! is enough, and lists are only ever taken whole, so no rank is mistaken for another (the ABA
//! problem). `tests/model` checks this file.

use super::sync::{AtomicBool, AtomicUsize, Ordering};

/// No rank.
const NONE: usize = usize::MAX;

/// A list of ranks to which anybody adds and that one takes.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Inbox {
    last: AtomicUsize,
}

/// A rank's place on its owner's list.
#[derive(Debug)]
pub(crate) struct QueueNode {
    queued: AtomicBool,
    next: AtomicUsize,
}

impl QueueNode {
    pub(crate) fn new() -> Self {
        QueueNode {
            queued: AtomicBool::new(false),
            next: AtomicUsize::new(NONE),
        }
    }
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Inbox {
            last: AtomicUsize::new(NONE),
        }
    }

    /// Tells the owner of `rank`; false when it has been told and has not looked since. `slips` are
    /// those of all ranks.
    pub(crate) fn push(&self, nodes: &[QueueNode], rank: usize) -> bool {
        if nodes[rank].queued.swap(true, Ordering::AcqRel) {
            return false;
        }
        let mut last = self.last.load(Ordering::Relaxed);
        loop {
            nodes[rank].next.store(last, Ordering::Relaxed);
            match self
                .last
                .compare_exchange(last, rank, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(now) => last = now,
            }
        }
    }

    /// Whether there is anything to take.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.last.load(Ordering::Relaxed) == NONE
    }

    /// Owner: calls `each` for every rank that it has been told of.
    pub(crate) fn take(&self, nodes: &[QueueNode], mut each: impl FnMut(usize)) {
        let mut rank = self.last.swap(NONE, Ordering::Acquire);
        while rank != NONE {
            // Once the mark is off, others may put it on a list again.
            let next = nodes[rank].next.load(Ordering::Relaxed);
            nodes[rank].queued.swap(false, Ordering::AcqRel);
            each(rank);
            rank = next;
        }
    }
}
