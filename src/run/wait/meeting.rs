//! How the ranks of a team meet at its barrier, at which some may never arrive: see "Barrier" in
//! the parent module.

use std::time::Duration;

use super::arrivals::NO_RANK;
use super::barrier::Passage;
use super::state::TeamState;
use super::sync::Ordering;
use super::waiter::{Stop, Waiter};
use crate::run::tuning::BARRIER_SPINS;

/// Why a barrier did not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missed {
    /// A rank failed.
    Aborted,
    /// This rank has finished its program without arriving.
    Left(usize),
    /// The deadline passed before this rank arrived.
    Late(usize),
}

/// The barrier that a rank waits for.
#[derive(Debug, Clone, Copy)]
struct Awaited {
    generation: usize,
    /// This rank, if it opens the barrier.
    opener: Option<usize>,
}

impl TeamState {
    /// As [`TeamState::leave`], for a rank program that calls barriers by itself: ranks that wait
    /// for it at a barrier learn that it will not come.
    pub(crate) fn depart(&self, rank: usize, run: u64) {
        self.leave(rank, run);
        let first = self.arrivals.departed.load(Ordering::Relaxed) == NO_RANK
            && self
                .arrivals
                .departed
                .compare_exchange(NO_RANK, rank, Ordering::Release, Ordering::Relaxed)
                .is_ok();
        if first {
            self.wake_all();
        }
    }

    /// Waits until all ranks are here, without a deadline: every rank arrives or fails, and a
    /// failure aborts the run.
    pub(crate) fn meet(&self, rank: usize) -> Result<(), Stop> {
        let mut waiter = Waiter::new(self, rank, Duration::MAX, false);
        let Some(awaited) = self.arrive(rank) else {
            return Ok(());
        };
        while !self.is_open(awaited) {
            waiter.pause(None)?;
        }
        waiter.progressed();
        Ok(())
    }

    /// Waits until all ranks are here, or one of them cannot come any more.
    pub(crate) fn barrier(&self, waiter: &mut Waiter<'_>) -> Result<(), Missed> {
        let me = waiter.rank;
        let Some(awaited) = self.arrive(me) else {
            return Ok(());
        };
        waiter.progressed();
        while !self.is_open(awaited) {
            let stop = waiter.pause(None).err();
            if stop == Some(Stop::Aborted) {
                return Err(Missed::Aborted);
            }
            if stop.is_none() && !waiter.long() {
                continue;
            }
            let departed = self.arrivals.departed.load(Ordering::Acquire);
            if departed != NO_RANK {
                // If the departed rank had arrived here, the barrier would be open by now, or the
                // run aborted: see "Barrier" in the parent module.
                if self.is_open(awaited) {
                    break;
                }
                return Err(if self.is_aborted() {
                    Missed::Aborted
                } else {
                    Missed::Left(departed)
                });
            }
            if stop.is_some() {
                if let Some(late) = self.missing_rank(awaited.generation) {
                    return Err(Missed::Late(late));
                }
                // All ranks have arrived, so the barrier is about to open.
                std::thread::yield_now();
            }
        }
        waiter.progressed();
        Ok(())
    }

    /// Arrives at the barrier as `rank`. Returns what it has to wait for, or `None` if the barrier
    /// is open.
    fn arrive(&self, rank: usize) -> Option<Awaited> {
        let generation = self.arrivals.barrier.generation();
        if self.arrivals.barrier.collector(generation).is_none() {
            let mark = generation.wrapping_add(1);
            let arrived = &self.rank_states[rank].own.arrived;
            arrived.store(mark, Ordering::Relaxed);
        }
        match self.arrivals.barrier.arrive(rank) {
            Passage::Opened => {
                self.wake_others(rank);
                None
            }
            Passage::Waits {
                generation,
                last_here,
            } => {
                let collector = self.arrivals.barrier.collector(generation);
                if let Some(other) = collector.filter(|&collector| collector != rank) {
                    self.wake(other);
                }
                if last_here {
                    // All ranks of this core have arrived, so yielding to them is useless.
                    for _ in 0..BARRIER_SPINS {
                        if self.arrivals.barrier.is_open(generation) {
                            return None;
                        }
                        std::hint::spin_loop();
                    }
                }
                Some(Awaited {
                    generation,
                    opener: collector.filter(|&collector| collector == rank),
                })
            }
        }
    }

    /// Whether the barrier is open. The collector opens it if all have arrived.
    fn is_open(&self, Awaited { generation, opener }: Awaited) -> bool {
        if let Some(rank) = opener
            && self.arrivals.barrier.collect(generation)
        {
            self.wake_others(rank);
        }
        self.arrivals.barrier.is_open(generation)
    }

    /// The first rank that has not arrived at the barrier of `generation`.
    fn missing_rank(&self, generation: usize) -> Option<usize> {
        if self.arrivals.barrier.collector(generation).is_some() {
            return self.arrivals.barrier.missing_rank(generation);
        }
        let mark = generation.wrapping_add(1);
        self.rank_states
            .iter()
            .position(|rank| rank.own.arrived.load(Ordering::Relaxed) != mark)
    }
}
