//! Waiting for each other: spin, yield, park; the barrier; who has left; what went wrong first.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::barrier::{Arrival, Barrier};
use super::contention::Contention;
use super::parker::Parker;
use crate::error::Error;

/// What the ranks of a team know of each other outside transfers.
#[derive(Debug)]
pub(crate) struct TeamState {
    seats: Box<[Seat]>,
    /// By rank: the number of its core.
    core_of: Box<[usize]>,
    pub(super) contention: Contention,
    oversubscribed: bool,
    aborted: Line<AtomicBool>,
    /// The first failure, and whether it only follows from another rank's.
    failure: Mutex<Option<(Error, bool)>>,
    barrier: Barrier,
    /// The first rank that has finished the program that it was given in this run.
    departed: Line<AtomicUsize>,
    epoch: Instant,
    /// Until when, in nanoseconds since the epoch, some rank keeps to its pace: so long nobody can
    /// be late.
    paced_until: Line<AtomicU64>,
}

/// One rank's own line: nobody writes it on the transfer path.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Seat {
    parker: Parker,
    /// The last run that this rank has finished.
    left: AtomicU64,
    /// One more than the generation of the barrier that it has arrived at last.
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
    /// This rank has finished its program without coming.
    InFlight(usize),
    /// The deadline passed before this rank came.
    Late(usize),
}

/// Why waiting ended without what was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Another rank failed.
    Aborted,
    /// The deadline passed.
    Deadline,
}

impl TeamState {
    /// Of as many ranks as `core_of` gives cores for, numbered from 0, which can have `cores` cores
    /// at the same time; `ids` are those that the system knows them by.
    pub(crate) fn new(core_of: &[usize], cores: usize, ids: Vec<usize>) -> Self {
        let epoch = Instant::now();
        let in_use = core_of.iter().max().map_or(0, |last| last + 1);
        let mut ranks = vec![0u32; in_use];
        for &core in core_of {
            ranks[core] += 1;
        }
        TeamState {
            seats: core_of.iter().map(|_| Seat::default()).collect(),
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

    /// Whether two ranks take turns on one core.
    pub(crate) fn share_a_core(&self, a: usize, b: usize) -> bool {
        self.core_of[a] == self.core_of[b]
    }

    /// Has `rank` yield, unless it must not.
    fn yields(&self, rank: usize) -> bool {
        let core = self.core_of[rank];
        self.contention.yields(core, &self.seats[rank].yields)
    }

    /// Says that `rank` is about to sleep.
    fn gives(&self, rank: usize) {
        self.contention.gives(self.core_of[rank]);
    }

    /// Wakes `rank` if it sleeps: call after handing it something.
    #[inline]
    pub(crate) fn wake(&self, rank: usize) {
        if self.oversubscribed {
            // Where every rank has its core, sleeping is rare and short, and a missed wake-up costs
            // one nap: not worth a fence a message.
            Parker::order();
        }
        self.seats[rank].parker.unpark();
    }

    fn wake_all(&self) {
        Parker::order();
        for seat in &self.seats {
            seat.parker.unpark();
        }
    }

    /// The first failure ends the run for everybody.
    pub(crate) fn fail(&self, error: Error) {
        self.fail_with(error, false);
    }

    /// As [`TeamState::fail`], by a rank whose partner has failed: what that says goes first, whenever
    /// it comes.
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

    /// The first failure, if there was one; forgets it, and everything that a failed run leaves
    /// behind. Call while nobody is inside a run.
    pub(crate) fn take_failure(&self) -> Option<Error> {
        self.aborted.0.store(false, Ordering::Relaxed);
        self.barrier.reset();
        self.departed.0.store(NOBODY, Ordering::Relaxed);
        self.paced_until.0.store(0, Ordering::Relaxed);
        self.failure.lock().take().map(|(error, _)| error)
    }

    /// As [`sleep_until`], for a rank that keeps to its pace: others do not count this as being
    /// late. Ends early when the run is aborted.
    pub(crate) fn pace(&self, instant: Instant, sharp: bool) {
        /// An aborted run ends this soon.
        const SLICE: Duration = Duration::from_millis(50);
        let mut left = instant.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            let until = instant.saturating_duration_since(self.epoch).as_nanos();
            let until = u64::try_from(until).unwrap_or(u64::MAX);
            if self.paced_until.0.load(Ordering::Relaxed) < until {
                self.paced_until.0.fetch_max(until, Ordering::Relaxed);
            }
        }
        while left > 2 * SLICE && !self.is_aborted() {
            std::thread::sleep(SLICE);
            left = instant.saturating_duration_since(Instant::now());
        }
        if !self.is_aborted() {
            sleep_until(instant, sharp);
        }
    }

    /// The last moment until which some rank keeps to its pace.
    fn paced_until(&self) -> Instant {
        let since = Duration::from_nanos(self.paced_until.0.load(Ordering::Relaxed));
        self.epoch + since
    }

    /// Says that `rank` has finished run `run`.
    pub(crate) fn leave(&self, rank: usize, run: u64) {
        self.seats[rank].left.store(run, Ordering::Release);
    }

    /// Whether `rank` has finished run `run`.
    pub(crate) fn has_left(&self, rank: usize, run: u64) -> bool {
        self.seats[rank].left.load(Ordering::Acquire) >= run
    }

    /// As [`TeamState::leave`], for a rank whose program decides by itself when it meets the others:
    /// whoever waits for it at a barrier waits in vain.
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

    /// Waits until all ranks are here, however long that takes: each of them comes, or has failed,
    /// and that aborts.
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

    /// Waits until all ranks are here, unless one of them cannot come.
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
                // A rank that has arrived does not leave before the barrier opens, unless it fails:
                // then that was known first.
                if self.barrier.is_open(generation) {
                    break;
                }
                return Err(if self.is_aborted() {
                    Missed::Aborted
                } else {
                    Missed::InFlight(departed)
                });
            }
            if stop.is_some() {
                if let Some(late) = self.is_late(generation) {
                    return Err(Missed::Late(late));
                }
                // All are on their way through the door.
                std::thread::yield_now();
            }
        }
        waiter.progressed();
        Ok(())
    }

    /// `rank` arrives at the barrier; the generation to wait for, unless it was the last to arrive.
    fn arrive(&self, rank: usize) -> Option<usize> {
        /// About as long as a few switches between ranks take.
        const A_WHILE: u32 = 300;
        let mark = self.barrier.generation().wrapping_add(1);
        self.seats[rank].arrived.store(mark, Ordering::Relaxed);
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
                    // Nobody on this core can go on, so there is no use in yielding to them.
                    for _ in 0..A_WHILE {
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
    fn is_late(&self, generation: usize) -> Option<usize> {
        let mark = generation.wrapping_add(1);
        self.seats
            .iter()
            .position(|seat| seat.arrived.load(Ordering::Relaxed) != mark)
    }
}

/// One rank's patience: how it waits depends on how long it has waited.
///
/// While ranks do not outnumber cores, the partner is at work on another core: spin. Otherwise it
/// may need this very core: yield at once. When some hundred yields were in vain, park, so that an
/// idle team burns nothing; or at once, where something else keeps the core busy ([`Contention`]).
#[derive(Debug)]
pub(crate) struct Waiter<'c> {
    state: &'c TeamState,
    rank: usize,
    spins: u32,
    yields: u32,
    deadline: Duration,
    polls: u32,
    since: Option<Instant>,
    announced: bool,
}

/// Longest nap: a parked rank looks around this often without being woken.
const NAP_OVERSUBSCRIBED: Duration = Duration::from_millis(100);
const NAP_ALONE: Duration = Duration::from_millis(1);

impl<'c> Waiter<'c> {
    pub(crate) fn new(state: &'c TeamState, rank: usize, deadline: Duration, paced: bool) -> Self {
        let oversubscribed = state.oversubscribed;
        // A yield among p ranks visits a few of them each time: fewer yields suffice where each
        // takes longer.
        let many = u32::try_from(state.seats.len()).unwrap_or(u32::MAX);
        Waiter {
            state,
            rank,
            spins: if oversubscribed || paced { 0 } else { 20_000 },
            yields: if paced {
                4
            } else {
                (30_000 / many.max(1)).clamp(20, 400)
            },
            deadline,
            polls: 0,
            since: None,
            announced: false,
        }
    }

    /// What was waited for has come.
    #[inline]
    pub(crate) fn progressed(&mut self) {
        if self.polls != 0 {
            self.polls = 0;
            self.since = None;
            if self.announced {
                self.announced = false;
                self.state.seats[self.rank].parker.cancel();
            }
        }
    }

    /// Waits a little longer, at most until `until`. Look again after each call.
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

    /// Spins for a moment, if this is a time to spin, until `stirs` says that there is something to
    /// look at.
    #[inline]
    pub(crate) fn spin(&mut self, has_progress: impl Fn() -> bool) {
        const MOMENT: u32 = 64;
        if self.polls < self.spins {
            for _ in 0..MOMENT {
                if has_progress() {
                    break;
                }
                self.polls += 1;
                std::hint::spin_loop();
            }
        }
    }

    /// Whether it is time for a look at rarer causes of waiting, such as a partner that has left.
    #[inline]
    pub(crate) fn long(&self) -> bool {
        self.polls > self.spins && (self.polls.is_multiple_of(16) || self.announced)
    }

    #[cold]
    fn pause_longer(&mut self, until: Option<Instant>) -> Result<(), Stop> {
        if self.state.is_aborted() {
            return Err(Stop::Aborted);
        }
        if self.polls <= self.spins + self.yields && self.state.yields(self.rank) {
            return Ok(());
        }
        let now = Instant::now();
        let since = *self.since.get_or_insert(now);
        // A deadline beyond all time never passes.
        let last = since.checked_add(self.deadline);
        if last.is_some_and(|last| now >= last) {
            let paced_until = self.state.paced_until();
            if paced_until <= since {
                return Err(Stop::Deadline);
            }
            // Peers were held up by their pace, not by a fault: start to count afresh when they go
            // on.
            self.since = Some(paced_until);
            return Ok(());
        }
        let parker = &self.state.seats[self.rank].parker;
        if !self.announced {
            // The caller looks once more before it comes back to sleep.
            self.announced = true;
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
        self.state.gives(self.rank);
        parker.sleep(wake_at, || self.state.is_aborted());
        self.announced = false;
        Ok(())
    }
}

/// Sleeps until `instant`, or not at all. With `sharp`, wakes early and yields the rest of the
/// time.
pub(crate) fn sleep_until(instant: Instant, sharp: bool) {
    const EARLY: Duration = Duration::from_micros(80);
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

/// Asks the kernel to wake this thread on time; it may round wake-ups by 50 us otherwise.
pub(crate) fn ask_for_precise_timers() {
    #[cfg(target_os = "linux")]
    {
        // A refusal only costs precision.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1_000));
    }
}
