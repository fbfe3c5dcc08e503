//! A barrier that only counts arrivals: its users decide how they wait.
//!
//! Ranks that share a core count their arrivals in a counter of their own, whose cache line never
//! leaves that core. Only the last rank of each core increments the counter that all cores share.
//!
//! Where ranks wait by yielding, each core then needs one switch fewer than it has ranks: the last
//! rank of a core need not yield, since all other ranks of its core are waiting too. It spins for a
//! moment instead, and arrives first at the next barrier.

use crossbeam_utils::CachePadded;

use super::sync::{AtomicUsize, Ordering};

/// Counts arrivals. The last rank to arrive opens the barrier, and thereby begins the next
/// generation.
#[derive(Debug)]
pub(crate) struct Barrier {
    groups: Box<[CachePadded<Group>]>,
    /// By rank: its group.
    group_of: Box<[usize]>,
    /// Number of groups whose ranks have all arrived.
    arrived: CachePadded<AtomicUsize>,
    generation: CachePadded<AtomicUsize>,
}

/// The ranks that share a core.
#[derive(Debug)]
struct Group {
    size: usize,
    arrived: AtomicUsize,
}

/// The result of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The last rank of all: the barrier is open.
    Opened,
    /// Not the last.
    Waits {
        /// The generation to ask [`Barrier::is_open`] about.
        generation: usize,
        /// Whether it was the last of its group to arrive.
        last_here: bool,
    },
}

impl Barrier {
    /// A barrier for `group_of.len()` ranks; `group_of` gives each rank's group. Groups are
    /// numbered from 0, and none is empty.
    pub(crate) fn new(group_of: &[usize]) -> Self {
        let groups = group_of.iter().max().map_or(1, |last| last + 1);
        let mut sizes = vec![0; groups];
        for &group in group_of {
            sizes[group] += 1;
        }
        let group = |size| {
            CachePadded::new(Group {
                size,
                arrived: AtomicUsize::new(0),
            })
        };
        Barrier {
            groups: sizes.into_iter().map(group).collect(),
            group_of: group_of.into(),
            arrived: CachePadded::new(AtomicUsize::new(0)),
            generation: CachePadded::new(AtomicUsize::new(0)),
        }
    }

    /// `rank` arrives.
    pub(crate) fn arrive(&self, rank: usize) -> Arrival {
        let generation = self.generation.load(Ordering::Acquire);
        let group = &self.groups[self.group_of[rank]];
        if group.size > 1 {
            if group.arrived.fetch_add(1, Ordering::AcqRel) + 1 < group.size {
                return Arrival::Waits {
                    generation,
                    last_here: false,
                };
            }
            // No rank arrives again before it has seen the next generation.
            group.arrived.store(0, Ordering::Relaxed);
        }
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 < self.groups.len() {
            return Arrival::Waits {
                generation,
                last_here: true,
            };
        }
        self.arrived.store(0, Ordering::Relaxed);
        self.generation
            .store(generation.wrapping_add(1), Ordering::Release);
        Arrival::Opened
    }

    /// The current generation: what [`Barrier::arrive`] returns to a rank that has to wait now.
    #[inline]
    pub(crate) fn generation(&self) -> usize {
        self.generation.load(Ordering::Acquire)
    }

    /// Whether the barrier of generation `awaited` has opened.
    #[inline]
    pub(crate) fn is_open(&self, awaited: usize) -> bool {
        self.generation.load(Ordering::Acquire) != awaited
    }

    /// Forgets the ranks that arrived and gave up, and begins a new generation. Call while no rank
    /// uses the barrier.
    pub(crate) fn reset(&self) {
        self.generation.fetch_add(1, Ordering::Relaxed);
        for group in &self.groups {
            group.arrived.store(0, Ordering::Relaxed);
        }
        self.arrived.store(0, Ordering::Relaxed);
    }
}
