//! Which ranks have arrived at the team's barrier.

use crossbeam_utils::CachePadded;

use super::barrier::Barrier;
use super::sync::{AtomicUsize, Ordering};

/// Which ranks have arrived at the team's barrier, and whether one never will.
#[derive(Debug)]
pub(super) struct Arrivals {
    pub(super) barrier: Barrier,
    /// The first rank that has finished its program in this run, or [`NO_RANK`].
    pub(super) departed: CachePadded<AtomicUsize>,
}

pub(super) const NO_RANK: usize = usize::MAX;

impl Arrivals {
    /// `core_of` gives each rank's core, which it may share.
    pub(super) fn new(core_of: &[usize], oversubscribed: bool) -> Self {
        Arrivals {
            barrier: if oversubscribed {
                Barrier::new(core_of)
            } else {
                Barrier::collected(core_of.len())
            },
            departed: CachePadded::new(AtomicUsize::new(NO_RANK)),
        }
    }

    /// Forgets what a failed run leaves behind. Call while no rank is inside a run.
    pub(super) fn reset(&self) {
        self.barrier.reset();
        self.departed.store(NO_RANK, Ordering::Relaxed);
    }
}
