//! A barrier that its users wait at in their own way.

use super::sync::{AtomicUsize, Ordering};

/// Counts arrivals; whoever arrives last opens it for all, and for the next round.
#[derive(Debug, Default)]
pub(crate) struct Barrier {
    arrived: Line<AtomicUsize>,
    generation: Line<AtomicUsize>,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Line<T>(T);

impl Barrier {
    /// One of `ranks` arrives: what it waits for with [`Barrier::is_open`], or nothing when it was the last and has opened the
    /// barrier.
    pub(crate) fn arrive(&self, ranks: usize) -> Option<usize> {
        let generation = self.generation.0.load(Ordering::Acquire);
        if self.arrived.0.fetch_add(1, Ordering::AcqRel) + 1 < ranks {
            return Some(generation);
        }
        // Nobody arrives again before having seen the next generation.
        self.arrived.0.store(0, Ordering::Relaxed);
        self.generation
            .0
            .store(generation.wrapping_add(1), Ordering::Release);
        None
    }

    /// Whether the barrier that this was returned for has opened.
    pub(crate) fn is_open(&self, awaited: usize) -> bool {
        self.generation.0.load(Ordering::Acquire) != awaited
    }

    /// Forgets those who arrived and gave up: call while nobody uses it.
    pub(crate) fn reset(&self) {
        self.arrived.0.store(0, Ordering::Relaxed);
    }
}
