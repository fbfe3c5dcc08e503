//! A barrier that its users wait at in their own way.
//!
//! Ranks that share a core arrive at a counter of their own, in a cache line that never leaves that
//! core; only the last of each core crosses to the counter of all. With ranks that wait by
//! yielding, each core so needs one switch fewer than it has ranks: its last to arrive
//! need not yield to ranks that cannot go on, it looks a while for the other cores instead, and
//! goes on to be the first at the next barrier.

use super::sync::{AtomicUsize, Ordering};

/// Counts arrivals; whoever arrives last opens it for all, and for the next round.
#[derive(Debug)]
pub(crate) struct Barrier {
    groups: Box<[Line<Group>]>,
    /// By rank: its group.
    group_of: Box<[usize]>,
    /// Groups that have arrived.
    arrived: Line<AtomicUsize>,
    generation: Line<AtomicUsize>,
}

/// The ranks that share a core.
#[derive(Debug)]
struct Group {
    size: usize,
    arrived: AtomicUsize,
}

#[derive(Debug)]
#[repr(align(128))]
struct Line<T>(T);

/// How an arrival went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The last of all: the barrier is open.
    Opened,
    /// Not the last.
    Waits {
        /// What to ask [`Barrier::is_open`] for.
        generation: usize,
        /// Whether it was the last of its group.
        last_here: bool,
    },
}

impl Barrier {
    /// For as many ranks as `group_of` names groups for, each its own; groups are numbered from 0,
    /// none is empty.
    pub(crate) fn new(group_of: &[usize]) -> Self {
        let groups = group_of.iter().max().map_or(1, |last| last + 1);
        let mut sizes = vec![0; groups];
        for &group in group_of {
            sizes[group] += 1;
        }
        let group = |size| {
            Line(Group {
                size,
                arrived: AtomicUsize::new(0),
            })
        };
        Barrier {
            groups: sizes.into_iter().map(group).collect(),
            group_of: group_of.into(),
            arrived: Line(AtomicUsize::new(0)),
            generation: Line(AtomicUsize::new(0)),
        }
    }

    /// `rank` arrives.
    pub(crate) fn arrive(&self, rank: usize) -> Arrival {
        let generation = self.generation.0.load(Ordering::Acquire);
        let group = &self.groups[self.group_of[rank]].0;
        if group.size > 1 {
            if group.arrived.fetch_add(1, Ordering::AcqRel) + 1 < group.size {
                return Arrival::Waits {
                    generation,
                    last_here: false,
                };
            }
            // Nobody arrives again before having seen the next generation.
            group.arrived.store(0, Ordering::Relaxed);
        }
        if self.arrived.0.fetch_add(1, Ordering::AcqRel) + 1 < self.groups.len() {
            return Arrival::Waits {
                generation,
                last_here: true,
            };
        }
        self.arrived.0.store(0, Ordering::Relaxed);
        self.generation
            .0
            .store(generation.wrapping_add(1), Ordering::Release);
        Arrival::Opened
    }

    /// What [`Barrier::arrive`] would return for who waits now.
    #[inline]
    pub(crate) fn generation(&self) -> usize {
        self.generation.0.load(Ordering::Acquire)
    }

    /// Whether the barrier that this was returned for has opened.
    #[inline]
    pub(crate) fn is_open(&self, awaited: usize) -> bool {
        self.generation.0.load(Ordering::Acquire) != awaited
    }

    /// Forgets those who arrived and gave up, and begins a new generation: call while nobody uses
    /// it.
    pub(crate) fn reset(&self) {
        self.generation.0.fetch_add(1, Ordering::Relaxed);
        for group in &self.groups {
            group.0.arrived.store(0, Ordering::Relaxed);
        }
        self.arrived.0.store(0, Ordering::Relaxed);
    }
}
