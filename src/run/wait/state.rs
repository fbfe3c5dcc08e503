//! What the ranks of a team know of each other outside transfers.

use std::time::Instant;

use crossbeam_utils::CachePadded;

use super::abort::Abort;
use super::arrivals::Arrivals;
use super::contention::Contention;
use super::pace::{Pace, Precision};
use super::parker::Parker;
use super::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::error::Error;

/// What the ranks of a team know of each other outside transfers.
#[derive(Debug)]
pub(crate) struct TeamState {
    pub(super) rank_states: Box<[CachePadded<RankState>]>,
    /// By rank: the number of its core.
    core_of: Box<[usize]>,
    pub(crate) contention: Contention,
    pub(super) oversubscribed: bool,
    abort: Abort,
    pub(super) arrivals: Arrivals,
    pub(super) pace: Pace,
}

/// The state of one rank.
#[derive(Debug, Default)]
pub(super) struct RankState {
    /// Whoever has a message for this rank reads it, so it is on a line that is written only if the
    /// rank sleeps.
    pub(super) parker: Parker,
    pub(super) own: CachePadded<OwnState>,
}

/// What a rank writes often, and others read only where they have waited for long.
#[derive(Debug, Default)]
pub(super) struct OwnState {
    /// The last run that this rank has finished.
    left: AtomicU64,
    /// One more than the generation of the last barrier at which it was counted.
    pub(super) arrived: AtomicUsize,
    /// How often it has yielded: no other rank reads it.
    yields: CachePadded<AtomicU32>,
}

impl TeamState {
    /// State of a team of `core_of.len()` ranks. `core_of` gives each rank's core, numbered from 0;
    /// `cores` is the number of cores that they can have at the same time; `ids` are the system's
    /// numbers of the cores.
    pub(crate) fn new(core_of: &[usize], cores: usize, ids: Vec<usize>) -> Self {
        let epoch = Instant::now();
        let in_use = core_of.iter().max().map_or(0, |last| last + 1);
        let mut ranks = vec![0u32; in_use];
        for &core in core_of {
            ranks[core] += 1;
        }
        TeamState {
            rank_states: core_of.iter().map(|_| CachePadded::default()).collect(),
            core_of: core_of.into(),
            contention: Contention::new(ranks.into_iter(), ids, epoch),
            oversubscribed: core_of.len() > cores,
            abort: Abort::default(),
            arrivals: Arrivals::new(core_of, core_of.len() > cores),
            pace: Pace::new(core_of.len(), epoch),
        }
    }

    /// Whether two ranks share a core.
    pub(crate) fn share_a_core(&self, a: usize, b: usize) -> bool {
        self.core_of[a] == self.core_of[b]
    }

    /// Yields the core of `rank`. False, without yielding, if the rank must block instead: see
    /// [`Contention`].
    pub(super) fn try_yield(&self, rank: usize) -> bool {
        let core = self.core_of[rank];
        self.contention
            .try_yield(core, &self.rank_states[rank].own.yields)
    }

    /// Notes that `rank` is about to sleep.
    pub(super) fn before_sleep(&self, rank: usize) {
        self.contention.before_block(self.core_of[rank]);
    }

    /// Wakes `rank` if it sleeps. Call after handing something over to it.
    #[inline]
    pub(crate) fn wake(&self, rank: usize) {
        if self.oversubscribed {
            // Without the fence a wake-up may be missed: see "Sleep" in the parent module.
            Parker::order();
        }
        self.rank_states[rank].parker.unpark();
    }

    /// As [`TeamState::wake`], all but `rank`.
    pub(super) fn wake_others(&self, rank: usize) {
        if self.oversubscribed {
            Parker::order();
        }
        for (other, state) in self.rank_states.iter().enumerate() {
            if other != rank {
                state.parker.unpark();
            }
        }
    }

    pub(super) fn wake_all(&self) {
        Parker::order();
        for rank in &self.rank_states {
            rank.parker.unpark();
        }
    }

    /// Records a failure and ends the run for all ranks. The first failure is the run's error.
    pub(crate) fn fail(&self, error: Error) {
        self.abort.fail(error, false);
        self.wake_all();
    }

    /// As [`TeamState::fail`], for an error that is only a consequence of another rank's failure.
    /// That rank's own error takes precedence, even if it comes later.
    pub(crate) fn fail_after(&self, error: Error) {
        self.abort.fail(error, true);
        self.wake_all();
    }

    /// Notes what a rank waited for when another one's failure ended the run.
    pub(super) fn waited(&self, error: Error) {
        self.abort.waited(error);
    }

    #[inline]
    pub(crate) fn is_aborted(&self) -> bool {
        self.abort.is_aborted()
    }

    /// Returns the run's failure, if there was one, and resets everything that a failed run leaves
    /// behind. Call while no rank is inside a run.
    pub(crate) fn take_failure(&self) -> Option<Error> {
        self.arrivals.reset();
        self.pace.reset();
        self.abort.take()
    }

    /// As [`sleep_until`](super::sleep_until), for `rank`, which keeps its pace: other ranks do not
    /// count it as late meanwhile. Ends early when the run is aborted.
    pub(crate) fn pace(&self, rank: usize, instant: Instant, precision: Precision) {
        self.pace
            .sleep(rank, instant, precision, || self.is_aborted());
    }

    /// Records that `rank` has finished run `run`.
    pub(crate) fn leave(&self, rank: usize, run: u64) {
        self.rank_states[rank]
            .own
            .left
            .store(run, Ordering::Release);
    }

    /// Whether `rank` has finished run `run`.
    pub(crate) fn has_left(&self, rank: usize, run: u64) -> bool {
        self.rank_states[rank].own.left.load(Ordering::Acquire) >= run
    }
}
