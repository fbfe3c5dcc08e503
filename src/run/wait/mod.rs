//! What the ranks of a team share besides transfers: waiting, the barrier, failures, and which
//! ranks have left.
//!
//! A rank waits in three stages ([`Waiter`]): it spins, then yields its core, then sleeps
//! ([`Parker`]). Four small protocols make sure that it neither misses what it waits for nor waits
//! for something that cannot come.
//!
//! # Sleep
//!
//! | waiting rank | rank that it waits for |
//! |---|---|
//! | 1. polls in vain, spins, yields | 1. hands something over |
//! | 2. announces that it will sleep (`prepare`), fence | 2. `wake`: fence |
//! | 3. polls once more | 3. `wake`: looks for the announcement |
//! | 4. sleeps, or after progress does not (`cancel`) | 4. if there is one: `unpark` |
//!
//! `parker` proves that no wake-up is lost. [`Waiter::pause`] does step 2 in one call and step 4 in
//! the next, so that its caller's loop does step 3. A sleep lasts at most `NAP_OVERSUBSCRIBED` or
//! `NAP_ALONE`. Where every rank has a core, `wake` omits the fence: sleeps are rare and short
//! there, and a missed wake-up costs one nap of 1 ms, which is cheaper than a fence in every
//! message.
//!
//! # Leaving
//!
//! | leaving rank | partner that waits for it |
//! |---|---|
//! | 1. finishes its last step | 1. polls its transfer in vain |
//! | 2. `leave`: stores the number of the run (release) | 2. `has_left`: loads it (acquire) |
//! | | 3. if the rank has left: polls once more |
//!
//! A partner that sees that the rank has left also sees everything that the rank did before. So if
//! its second poll finds nothing either, the transfer will never take place.
//!
//! # Barrier
//!
//! | departing rank (`depart`) | rank at a barrier (`barrier`) |
//! |---|---|
//! | 1. sees that its last barrier is open | 1. finds its barrier closed |
//! | 2. if it has failed: sets `aborted` | 2. loads `departed` (acquire) |
//! | 3. stores itself in `departed` (release) | 3. if set: looks at barrier and `aborted` again |
//!
//! A rank that arrived at the waiting rank's barrier departs only after that barrier has opened,
//! unless it fails. In the first case step 3 finds the barrier open, in the second `aborted` set.
//! If neither is so, the departed rank never arrived, and the barrier will never open.
//!
//! # Deadline
//!
//! | rank that keeps its pace (`pace`) | rank whose deadline has passed |
//! |---|---|
//! | 1. raises `paced_until` to its wake-up time | 1. loads `paced_until` |
//! | 2. sleeps until then | 2. if later than the start of its wait: counts from there |
//!
//! Otherwise ranks that keep the pace of the model clock would count as late.

mod barrier;
mod contention;
mod inbox;
mod load;
mod parker;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::sync;
#[cfg(target_os = "linux")]
use super::tuning::TIMER_SLACK_NS;
use super::tuning::{
    BARRIER_SPINS, EARLY, NAP_ALONE, NAP_OVERSUBSCRIBED, PACE_SLICE, PACED_YIELDS, POLLS_PER_CHECK,
    SPINS, SPINS_PER_POLL, yields,
};
use crate::error::Error;
use barrier::{Arrival, Barrier};
use contention::Contention;
pub(crate) use inbox::{Inbox, QueueNode};
use parker::Parker;

/// What the ranks of a team know of each other outside transfers.
#[derive(Debug)]
pub(crate) struct TeamState {
    rank_states: Box<[RankState]>,
    /// By rank: the number of its core.
    core_of: Box<[usize]>,
    pub(crate) contention: Contention,
    oversubscribed: bool,
    aborted: Line<AtomicBool>,
    /// The first failure, and whether it is only a consequence of another rank's failure.
    failure: Mutex<Option<(Error, bool)>>,
    barrier: Barrier,
    /// The first rank that has finished its program in this run, or [`NOBODY`].
    departed: Line<AtomicUsize>,
    epoch: Instant,
    /// The latest time until which a rank sleeps to keep its pace, in nanoseconds since the epoch.
    /// Until then no rank is late.
    paced_until: Line<AtomicU64>,
}

/// The state of one rank, in a cache line of its own. Nobody writes it while messages are
/// transferred.
#[derive(Debug, Default)]
#[repr(align(128))]
struct RankState {
    parker: Parker,
    /// The last run that this rank has finished.
    left: AtomicU64,
    /// One more than the generation of the last barrier at which it has arrived.
    arrived: AtomicUsize,
    /// How often it has yielded.
    yields: AtomicU32,
}

/// No rank.
const NOBODY: usize = usize::MAX;

#[derive(Debug, Default)]
#[repr(align(128))]
struct Line<T>(T);

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

/// Why a wait ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Another rank failed.
    Aborted,
    /// The deadline passed.
    Deadline,
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
            rank_states: core_of.iter().map(|_| RankState::default()).collect(),
            core_of: core_of.into(),
            contention: Contention::new(ranks.into_iter(), ids, epoch),
            oversubscribed: core_of.len() > cores,
            aborted: Line::default(),
            failure: Mutex::new(None),
            barrier: Barrier::new(core_of),
            departed: Line(AtomicUsize::new(NOBODY)),
            epoch,
            paced_until: Line::default(),
        }
    }

    /// Whether two ranks share a core.
    pub(crate) fn share_a_core(&self, a: usize, b: usize) -> bool {
        self.core_of[a] == self.core_of[b]
    }

    /// Yields the core of `rank`. False, without yielding, if the rank must block instead: see
    /// [`Contention`].
    fn try_yield(&self, rank: usize) -> bool {
        let core = self.core_of[rank];
        self.contention
            .try_yield(core, &self.rank_states[rank].yields)
    }

    /// Notes that `rank` is about to sleep.
    fn before_sleep(&self, rank: usize) {
        self.contention.before_block(self.core_of[rank]);
    }

    /// Wakes `rank` if it sleeps. Call after handing something over to it.
    #[inline]
    pub(crate) fn wake(&self, rank: usize) {
        if self.oversubscribed {
            // Without the fence a wake-up may be missed: see "Sleep" above.
            Parker::order();
        }
        self.rank_states[rank].parker.unpark();
    }

    fn wake_all(&self) {
        Parker::order();
        for rank in &self.rank_states {
            rank.parker.unpark();
        }
    }

    /// Records a failure and ends the run for all ranks. The first failure is the run's error.
    pub(crate) fn fail(&self, error: Error) {
        self.fail_with(error, false);
    }

    /// As [`TeamState::fail`], for an error that is only a consequence of another rank's failure.
    /// That rank's own error takes precedence, even if it comes later.
    pub(crate) fn fail_after(&self, error: Error) {
        self.fail_with(error, true);
    }

    fn fail_with(&self, error: Error, follows: bool) {
        let mut failure = self.failure.lock();
        if failure.as_ref().is_none_or(|known| known.1 && !follows) {
            *failure = Some((error, follows));
        }
        drop(failure);
        self.aborted.0.store(true, Ordering::Release);
        self.wake_all();
    }

    #[inline]
    pub(crate) fn is_aborted(&self) -> bool {
        self.aborted.0.load(Ordering::Relaxed)
    }

    /// Returns the run's failure, if there was one, and resets everything that a failed run leaves
    /// behind. Call while no rank is inside a run.
    pub(crate) fn take_failure(&self) -> Option<Error> {
        self.aborted.0.store(false, Ordering::Relaxed);
        self.barrier.reset();
        self.departed.0.store(NOBODY, Ordering::Relaxed);
        self.paced_until.0.store(0, Ordering::Relaxed);
        self.failure.lock().take().map(|(error, _)| error)
    }

    /// As [`sleep_until`], for a rank that keeps its pace: other ranks do not count it as late
    /// meanwhile. Ends early when the run is aborted.
    pub(crate) fn pace(&self, instant: Instant, sharp: bool) {
        let mut left = instant.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            let until = instant.saturating_duration_since(self.epoch).as_nanos();
            let until = u64::try_from(until).unwrap_or(u64::MAX);
            if self.paced_until.0.load(Ordering::Relaxed) < until {
                self.paced_until.0.fetch_max(until, Ordering::Relaxed);
            }
        }
        while left > 2 * PACE_SLICE && !self.is_aborted() {
            std::thread::sleep(PACE_SLICE);
            left = instant.saturating_duration_since(Instant::now());
        }
        if !self.is_aborted() {
            sleep_until(instant, sharp);
        }
    }

    /// The latest time until which a rank sleeps to keep its pace.
    fn paced_until(&self) -> Instant {
        let since = Duration::from_nanos(self.paced_until.0.load(Ordering::Relaxed));
        self.epoch + since
    }

    /// Records that `rank` has finished run `run`.
    pub(crate) fn leave(&self, rank: usize, run: u64) {
        self.rank_states[rank].left.store(run, Ordering::Release);
    }

    /// Whether `rank` has finished run `run`.
    pub(crate) fn has_left(&self, rank: usize, run: u64) -> bool {
        self.rank_states[rank].left.load(Ordering::Acquire) >= run
    }

    /// As [`TeamState::leave`], for a rank program that calls barriers by itself: ranks that wait
    /// for it at a barrier learn that it will not come.
    pub(crate) fn depart(&self, rank: usize, run: u64) {
        self.leave(rank, run);
        let first = self.departed.0.load(Ordering::Relaxed) == NOBODY
            && self
                .departed
                .0
                .compare_exchange(NOBODY, rank, Ordering::Release, Ordering::Relaxed)
                .is_ok();
        if first {
            self.wake_all();
        }
    }

    /// Waits until all ranks are here, without a deadline: every rank arrives or fails, and a
    /// failure aborts the run.
    pub(crate) fn meet(&self, rank: usize) -> Result<(), Stop> {
        let mut waiter = Waiter::new(self, rank, Duration::MAX, false);
        let Some(generation) = self.arrive(rank) else {
            return Ok(());
        };
        while !self.barrier.is_open(generation) {
            waiter.pause(None)?;
        }
        waiter.progressed();
        Ok(())
    }

    /// Waits until all ranks are here, or one of them cannot come any more.
    pub(crate) fn barrier(&self, waiter: &mut Waiter<'_>) -> Result<(), Missed> {
        let me = waiter.rank;
        let Some(generation) = self.arrive(me) else {
            return Ok(());
        };
        waiter.progressed();
        while !self.barrier.is_open(generation) {
            let stop = waiter.pause(None).err();
            if stop == Some(Stop::Aborted) {
                return Err(Missed::Aborted);
            }
            if stop.is_none() && !waiter.long() {
                continue;
            }
            let departed = self.departed.0.load(Ordering::Acquire);
            if departed != NOBODY {
                // If the departed rank had arrived here, the barrier would be open by now, or the
                // run aborted: see "Barrier" above.
                if self.barrier.is_open(generation) {
                    break;
                }
                return Err(if self.is_aborted() {
                    Missed::Aborted
                } else {
                    Missed::Left(departed)
                });
            }
            if stop.is_some() {
                if let Some(late) = self.missing_rank(generation) {
                    return Err(Missed::Late(late));
                }
                // All ranks have arrived, so the barrier is about to open.
                std::thread::yield_now();
            }
        }
        waiter.progressed();
        Ok(())
    }

    /// Arrives at the barrier as `rank`. Returns the generation to wait for, or `None` if the
    /// barrier is open.
    fn arrive(&self, rank: usize) -> Option<usize> {
        let mark = self.barrier.generation().wrapping_add(1);
        self.rank_states[rank]
            .arrived
            .store(mark, Ordering::Relaxed);
        match self.barrier.arrive(rank) {
            Arrival::Opened => {
                self.wake_all();
                None
            }
            Arrival::Waits {
                generation,
                last_here,
            } => {
                if last_here {
                    // All ranks of this core have arrived, so yielding to them would be in vain.
                    for _ in 0..BARRIER_SPINS {
                        if self.barrier.is_open(generation) {
                            return None;
                        }
                        std::hint::spin_loop();
                    }
                }
                Some(generation)
            }
        }
    }

    /// The first rank that has not arrived at the barrier of `generation`.
    fn missing_rank(&self, generation: usize) -> Option<usize> {
        let mark = generation.wrapping_add(1);
        self.rank_states
            .iter()
            .position(|rank| rank.arrived.load(Ordering::Relaxed) != mark)
    }
}

/// How one rank waits: the longer it has waited, the more of its core it gives up.
///
/// 1. Spin, if ranks do not outnumber cores: the partner is running on another core.
/// 2. Yield, at once if ranks outnumber cores: the partner may need this core.
/// 3. Sleep, after some hundred yields in vain, so that an idle team does not load the machine; or
///    at once where another process keeps the core busy ([`Contention`]).
#[derive(Debug)]
pub(crate) struct Waiter<'c> {
    state: &'c TeamState,
    rank: usize,
    spins: u32,
    yields: u32,
    deadline: Duration,
    polls: u32,
    since: Option<Instant>,
    prepared: bool,
}

impl<'c> Waiter<'c> {
    pub(crate) fn new(state: &'c TeamState, rank: usize, deadline: Duration, paced: bool) -> Self {
        let oversubscribed = state.oversubscribed;
        Waiter {
            state,
            rank,
            spins: if oversubscribed || paced { 0 } else { SPINS },
            yields: if paced {
                PACED_YIELDS
            } else {
                yields(state.rank_states.len())
            },
            deadline,
            polls: 0,
            since: None,
            prepared: false,
        }
    }

    /// To be called after progress: the next wait starts from the beginning.
    #[inline]
    pub(crate) fn progressed(&mut self) {
        if self.polls != 0 {
            self.polls = 0;
            self.since = None;
            if self.prepared {
                self.prepared = false;
                self.state.rank_states[self.rank].parker.cancel();
            }
        }
    }

    /// Waits a little, at most until `until`. The caller polls again after each call.
    #[inline]
    pub(crate) fn pause(&mut self, until: Option<Instant>) -> Result<(), Stop> {
        self.polls += 1;
        if self.polls <= self.spins {
            std::hint::spin_loop();
            return if self.state.is_aborted() {
                Err(Stop::Aborted)
            } else {
                Ok(())
            };
        }
        self.pause_longer(until)
    }

    /// Spins briefly, if this is the stage for it, until `has_progress` says that polling would
    /// make progress.
    #[inline]
    pub(crate) fn spin(&mut self, has_progress: impl Fn() -> bool) {
        if self.polls < self.spins {
            for _ in 0..SPINS_PER_POLL {
                if has_progress() {
                    break;
                }
                self.polls += 1;
                std::hint::spin_loop();
            }
        }
    }

    /// Whether it is time to check for rarer causes of waiting, such as a partner that has left.
    #[inline]
    pub(crate) fn long(&self) -> bool {
        self.polls > self.spins && (self.polls.is_multiple_of(POLLS_PER_CHECK) || self.prepared)
    }

    #[cold]
    fn pause_longer(&mut self, until: Option<Instant>) -> Result<(), Stop> {
        if self.state.is_aborted() {
            return Err(Stop::Aborted);
        }
        if self.polls <= self.spins + self.yields && self.state.try_yield(self.rank) {
            return Ok(());
        }
        let now = Instant::now();
        let since = *self.since.get_or_insert(now);
        // `None` is a deadline beyond the range of `Instant`, which never passes.
        let last = since.checked_add(self.deadline);
        if last.is_some_and(|last| now >= last) {
            let paced_until = self.state.paced_until();
            if paced_until <= since {
                return Err(Stop::Deadline);
            }
            // Other ranks slept to keep their pace: count the deadline anew from the end of their
            // sleep.
            self.since = Some(paced_until);
            return Ok(());
        }
        let parker = &self.state.rank_states[self.rank].parker;
        if !self.prepared {
            // The caller polls once more before the next call sleeps.
            self.prepared = true;
            parker.prepare();
            return Ok(());
        }
        let nap = if self.state.oversubscribed {
            NAP_OVERSUBSCRIBED
        } else {
            NAP_ALONE
        };
        let wake_at = [last, until]
            .into_iter()
            .flatten()
            .fold(now + nap, Instant::min);
        self.state.before_sleep(self.rank);
        parker.sleep(wake_at, || self.state.is_aborted());
        self.prepared = false;
        Ok(())
    }
}

/// Sleeps until `instant`; returns at once if it has passed. With `sharp`, wakes up early and
/// yields for the rest of the time.
pub(crate) fn sleep_until(instant: Instant, sharp: bool) {
    let margin = if sharp { EARLY } else { Duration::ZERO };
    let left = instant.saturating_duration_since(Instant::now());
    if let Some(nap) = left.checked_sub(margin)
        && !nap.is_zero()
    {
        std::thread::sleep(nap);
    }
    while sharp && Instant::now() < instant {
        std::thread::yield_now();
    }
}

/// Converts a model time in nanoseconds into a duration.
pub(crate) fn nanoseconds(time: f64) -> Duration {
    Duration::try_from_secs_f64(time * 1e-9).unwrap_or(Duration::MAX / 4)
}

/// Asks the kernel to wake this thread on time. By default it may delay wake-ups by 50 us.
pub(crate) fn ask_for_precise_timers() {
    #[cfg(target_os = "linux")]
    {
        // If the kernel refuses, only precision is lost.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(TIMER_SLACK_NS));
    }
}
