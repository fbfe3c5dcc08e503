//! Sleeping until a time of the model clock.

use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use super::sync::{AtomicU64, Ordering};
#[cfg(target_os = "linux")]
use crate::run::tuning::TIMER_SLACK_NS;
use crate::run::tuning::{EARLY, PACE_SLICE};

/// Until when ranks of a team sleep to keep their pace.
#[derive(Debug)]
pub(super) struct Pace {
    epoch: Instant,
    /// By rank: the latest time until which it sleeps, in nanoseconds since the epoch. Until the
    /// last of these times no rank is late. Ranks sleep before most messages, so each has a line
    /// of its own.
    until: Box<[CachePadded<AtomicU64>]>,
}

impl Pace {
    pub(super) fn new(ranks: usize, epoch: Instant) -> Self {
        Pace {
            epoch,
            until: (0..ranks).map(|_| CachePadded::default()).collect(),
        }
    }

    /// As [`sleep_until`], for `rank`, which keeps its pace: other ranks do not count it as late
    /// meanwhile. Ends early when `is_over` says that the run is aborted.
    pub(super) fn sleep(
        &self,
        rank: usize,
        instant: Instant,
        precision: Precision,
        is_over: impl Fn() -> bool,
    ) {
        let mut left = instant.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            let until = instant.saturating_duration_since(self.epoch).as_nanos();
            let until = u64::try_from(until).unwrap_or(u64::MAX);
            let own = &self.until[rank];
            if own.load(Ordering::Relaxed) < until {
                own.store(until, Ordering::Relaxed);
            }
        }
        while left > 2 * PACE_SLICE && !is_over() {
            std::thread::sleep(PACE_SLICE);
            left = instant.saturating_duration_since(Instant::now());
        }
        if !is_over() {
            sleep_until(instant, precision);
        }
    }

    /// The latest time until which a rank sleeps to keep its pace. Linear in the number of ranks.
    pub(super) fn until(&self) -> Instant {
        let all = self.until.iter().map(|own| own.load(Ordering::Relaxed));
        self.epoch + Duration::from_nanos(all.max().unwrap_or(0))
    }

    /// Forgets these times. Call while no rank is inside a run.
    pub(super) fn reset(&self) {
        for own in &self.until {
            own.store(0, Ordering::Relaxed);
        }
    }
}

/// How exactly a sleep ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precision {
    /// When the kernel wakes the thread.
    Sleep,
    /// On time: the thread wakes up early and yields for the rest.
    Sharp,
}

/// Sleeps until `instant`; returns at once if it has passed.
pub(crate) fn sleep_until(instant: Instant, precision: Precision) {
    let margin = match precision {
        Precision::Sleep => Duration::ZERO,
        Precision::Sharp => EARLY,
    };
    let left = instant.saturating_duration_since(Instant::now());
    if let Some(nap) = left.checked_sub(margin)
        && !nap.is_zero()
    {
        std::thread::sleep(nap);
    }
    while precision == Precision::Sharp && Instant::now() < instant {
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
        // Linux names a thread by its number here, as it does a process. If the kernel refuses,
        // only precision is lost.
        let _ = std::fs::read_link("/proc/thread-self").and_then(|thread| {
            let number = thread.file_name().unwrap_or_default();
            let file = std::path::Path::new("/proc").join(number);
            std::fs::write(file.join("timerslack_ns"), TIMER_SLACK_NS.to_string())
        });
    }
}
