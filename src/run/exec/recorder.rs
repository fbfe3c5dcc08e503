//! Recording when an executor performs each step.

use std::time::Instant;

/// Records wall-clock times in memory allocated beforehand.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    epoch: Instant,
    times: Vec<(u64, u64)>,
}

impl Stopwatch {
    /// For a program of `steps` steps. Times count from `epoch`.
    pub(super) fn new(steps: usize, epoch: Instant) -> Self {
        Stopwatch {
            epoch,
            times: vec![(0, 0); steps],
        }
    }
    pub(super) fn starts(&mut self, step: usize) {
        self.times[step].0 = since(self.epoch, Instant::now());
    }

    /// Step `step` ends, but not before `held`: under a paced clock it holds its port until its
    /// model time has come.
    pub(super) fn ends(&mut self, step: usize, held: Option<Instant>) {
        let held = held.map_or(0, |t| since(self.epoch, t));
        self.times[step].1 = since(self.epoch, Instant::now()).max(held);
    }

    /// Start and end of every step in the last repetition, in nanoseconds since the epoch.
    pub(super) fn times(self) -> Vec<(u64, u64)> {
        self.times
    }
}

/// Nanoseconds from `epoch` to `time`.
pub(super) fn since(epoch: Instant, time: Instant) -> u64 {
    let since = time.saturating_duration_since(epoch);
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
