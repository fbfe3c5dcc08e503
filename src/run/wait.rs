//! Waiting for each other: spin, yield, park; the barrier; who has left; what went wrong first.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::error::Error;

/// What the ranks of a team know of each other outside transfers.
#[derive(Debug)]
pub(crate) struct Crowd {
    ranks: Box<[Seat]>,
    oversubscribed: bool,
    aborted: Line<AtomicBool>,
    failure: Mutex<Option<Error>>,
    arrived: Line<AtomicUsize>,
    generation: Line<AtomicUsize>,
}

/// One rank's own line: nobody writes it on the transfer path.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Seat {
    parked: AtomicBool,
    /// The last run that this rank has finished.
    left: AtomicU64,
    lock: Mutex<()>,
    bell: Condvar,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Line<T>(T);

/// Why waiting ended without what was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Another rank failed.
    Aborted,
    /// The deadline passed.
    Deadline,
}

impl Crowd {
    pub(crate) fn new(ranks: usize, oversubscribed: bool) -> Self {
        Crowd {
            ranks: (0..ranks).map(|_| Seat::default()).collect(),
            oversubscribed,
            aborted: Line::default(),
            failure: Mutex::new(None),
            arrived: Line::default(),
            generation: Line::default(),
        }
    }

    pub(crate) fn oversubscribed(&self) -> bool {
        self.oversubscribed
    }

    /// Wakes `rank` if it is parked: call after handing it something.
    #[inline]
    pub(crate) fn wake(&self, rank: usize) {
        let seat = &self.ranks[rank];
        if self.oversubscribed {
            // Orders what was handed over before the look at `parked`; the parking side has the fence's twin. Where every rank has
            // its core, parking is rare and short, and a missed wake-up costs one nap: not worth a fence a message.
            fence(Ordering::SeqCst);
        }
        if seat.parked.load(Ordering::Relaxed) {
            let _guard = seat.lock.lock();
            seat.parked.store(false, Ordering::Relaxed);
            seat.bell.notify_one();
        }
    }

    /// The first failure ends the run for everybody.
    pub(crate) fn fail(&self, error: Error) {
        self.failure.lock().get_or_insert(error);
        self.aborted.0.store(true, Ordering::SeqCst);
        for rank in 0..self.ranks.len() {
            self.wake(rank);
        }
    }

    #[inline]
    pub(crate) fn is_aborted(&self) -> bool {
        self.aborted.0.load(Ordering::Relaxed)
    }

    /// The first failure, if there was one; forgets it, and everything that a failed run leaves behind.
    pub(crate) fn take_failure(&self) -> Option<Error> {
        self.aborted.0.store(false, Ordering::SeqCst);
        self.arrived.0.store(0, Ordering::SeqCst);
        self.failure.lock().take()
    }

    /// Says that `rank` has finished run `run`, and wakes `waiting`, who may be waiting for it in vain.
    pub(crate) fn leave(&self, rank: usize, run: u64) {
        self.ranks[rank].left.store(run, Ordering::Release);
    }

    /// Whether `rank` has finished run `run`.
    pub(crate) fn has_left(&self, rank: usize, run: u64) -> bool {
        self.ranks[rank].left.load(Ordering::Acquire) >= run
    }

    /// Waits until all ranks are here.
    pub(crate) fn barrier(&self, waiter: &mut Waiter<'_>) -> Result<(), Stop> {
        let generation = self.generation.0.load(Ordering::Acquire);
        if self.arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == self.ranks.len() {
            self.arrived.0.store(0, Ordering::Relaxed);
            self.generation
                .0
                .store(generation.wrapping_add(1), Ordering::Release);
            fence(Ordering::SeqCst);
            for (rank, seat) in self.ranks.iter().enumerate() {
                if seat.parked.load(Ordering::Relaxed) {
                    self.wake(rank);
                }
            }
            return Ok(());
        }
        waiter.moved();
        while self.generation.0.load(Ordering::Acquire) == generation {
            waiter.pause(None)?;
        }
        waiter.moved();
        Ok(())
    }
}

/// One rank's patience: how it waits depends on how long it has waited.
///
/// While ranks do not outnumber cores, the partner is at work on another core: spin. Otherwise it may need this very
/// core: yield at once. When some hundred yields were in vain, park, so that an idle team burns nothing.
#[derive(Debug)]
pub(crate) struct Waiter<'c> {
    crowd: &'c Crowd,
    rank: usize,
    spins: u32,
    yields: u32,
    deadline: Duration,
    polls: u32,
    since: Option<Instant>,
    announced: bool,
}

/// Longest nap: a parked rank looks around this often without being woken.
const NAP_CROWDED: Duration = Duration::from_millis(100);
const NAP_ALONE: Duration = Duration::from_millis(1);

impl<'c> Waiter<'c> {
    pub(crate) fn new(crowd: &'c Crowd, rank: usize, deadline: Duration, paced: bool) -> Self {
        let crowded = crowd.oversubscribed;
        // A yield among p ranks visits a few of them each time: fewer yields suffice where each takes longer.
        let many = u32::try_from(crowd.ranks.len()).unwrap_or(u32::MAX);
        Waiter {
            crowd,
            rank,
            spins: if crowded || paced { 0 } else { 20_000 },
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
    pub(crate) fn moved(&mut self) {
        if self.polls != 0 {
            self.polls = 0;
            self.since = None;
            if self.announced {
                self.announced = false;
                self.crowd.ranks[self.rank]
                    .parked
                    .store(false, Ordering::Relaxed);
            }
        }
    }

    /// Waits a little longer, at most until `until`. Look again after each call.
    #[inline]
    pub(crate) fn pause(&mut self, until: Option<Instant>) -> Result<(), Stop> {
        self.polls += 1;
        if self.polls <= self.spins {
            std::hint::spin_loop();
            if self.polls.is_multiple_of(64) && self.crowd.is_aborted() {
                return Err(Stop::Aborted);
            }
            return Ok(());
        }
        self.pause_longer(until)
    }

    /// Whether it is time for a look at rarer causes of waiting, such as a partner that has left.
    pub(crate) fn long(&self) -> bool {
        self.polls > self.spins && (self.polls.is_multiple_of(16) || self.announced)
    }

    #[cold]
    fn pause_longer(&mut self, until: Option<Instant>) -> Result<(), Stop> {
        if self.crowd.is_aborted() {
            return Err(Stop::Aborted);
        }
        if self.polls <= self.spins + self.yields {
            std::thread::yield_now();
            return Ok(());
        }
        let now = Instant::now();
        let since = *self.since.get_or_insert(now);
        let last = since + self.deadline;
        if now >= last {
            return Err(Stop::Deadline);
        }
        let seat = &self.crowd.ranks[self.rank];
        if !self.announced {
            // First say so, then look once more (the caller does), then sleep: whoever hands something over either is seen by
            // that look or sees the announcement.
            self.announced = true;
            seat.parked.store(true, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            return Ok(());
        }
        let nap = if self.crowd.oversubscribed {
            NAP_CROWDED
        } else {
            NAP_ALONE
        };
        let wake_at = last.min(now + nap).min(until.unwrap_or(last));
        let mut guard = seat.lock.lock();
        while seat.parked.load(Ordering::Relaxed) && !self.crowd.is_aborted() {
            if seat.bell.wait_until(&mut guard, wake_at).timed_out() {
                break;
            }
        }
        seat.parked.store(false, Ordering::Relaxed);
        drop(guard);
        self.announced = false;
        Ok(())
    }
}

/// Sleeps until `instant`, or not at all. With `sharp`, wakes early and yields the rest of the time.
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
