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

/// No rank.
pub(super) const NO_RANK: usize = usize::MAX;

impl Arrivals {
    /// `core_of` gives each rank's core.
    pub(super) fn new(core_of: &[usize]) -> Self {
        Arrivals {
            barrier: Barrier::new(core_of),
            departed: CachePadded::new(AtomicUsize::new(NO_RANK)),
        }
    }

    /// Forgets what a failed run leaves behind. Call while no rank is inside a run.
    pub(super) fn reset(&self) {
        self.barrier.reset();
        self.departed.store(NO_RANK, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::wait::barrier::Arrival;

    #[test]
    fn the_last_of_any_number_of_ranks_opens_the_barrier() {
        for (ranks, cores) in [
            (1, 1),
            (2, 2),
            (8, 8),
            (9, 9),
            (65, 65),
            (256, 256),
            (200, 67),
        ] {
            let core_of: Vec<_> = (0..ranks).map(|rank| rank % cores).collect();
            let barrier = Barrier::new(&core_of);
            for round in 0..3 {
                let mut arrived = vec![0; cores];
                // Each round in another order.
                for i in 0..ranks {
                    let rank = (i * 7 + round) % ranks;
                    let generation = barrier.generation();
                    arrived[core_of[rank]] += 1;
                    let all = core_of
                        .iter()
                        .filter(|&&core| core == core_of[rank])
                        .count();
                    let last_here = arrived[core_of[rank]] == all;
                    let expected = match i + 1 == ranks {
                        true => Arrival::Opened,
                        false => Arrival::Waits {
                            generation,
                            last_here,
                        },
                    };
                    assert_eq!(barrier.arrive(rank), expected, "{ranks} on {cores}");
                    assert_eq!(barrier.is_open(generation), i + 1 == ranks);
                }
            }
        }
    }
}
