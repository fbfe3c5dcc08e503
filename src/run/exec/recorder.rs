//! Recording when an executor performs each step, at no cost when recording is off.

use std::fmt::Debug;
use std::time::Instant;

/// What an executor reports about each step. The executor is compiled once for each recorder, so
/// [`Off`] leaves no trace in the code.
pub(crate) trait Recorder: Debug {
    /// Whether anything is recorded.
    const ON: bool;

    /// For a program of `steps` steps. Times count from `epoch`.
    fn new(steps: usize, epoch: Instant) -> Self;

    /// Step `step` opens its port, or starts to compute.
    fn starts(&mut self, step: usize);

    /// Step `step` ends, but not before `held`: under a paced clock it holds its port until its
    /// model time has come.
    fn ends(&mut self, step: usize, held: Option<Instant>);

    /// Start and end of every step in the last repetition, in nanoseconds since the epoch.
    fn take(&mut self) -> Vec<(u64, u64)>;
}

/// Records nothing.
#[derive(Debug)]
pub(crate) struct Off;

impl Recorder for Off {
    const ON: bool = false;

    fn new(_: usize, _: Instant) -> Self {
        Off
    }

    #[inline]
    fn starts(&mut self, _: usize) {}

    #[inline]
    fn ends(&mut self, _: usize, _: Option<Instant>) {}

    fn take(&mut self) -> Vec<(u64, u64)> {
        Vec::new()
    }
}

/// Records wall-clock times in memory allocated beforehand.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    epoch: Instant,
    times: Vec<(u64, u64)>,
}

impl Stopwatch {
    fn now(&self) -> u64 {
        self.since_epoch(Instant::now())
    }

    fn since_epoch(&self, time: Instant) -> u64 {
        let since = time.saturating_duration_since(self.epoch);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Recorder for Stopwatch {
    const ON: bool = true;

    fn new(steps: usize, epoch: Instant) -> Self {
        Stopwatch {
            epoch,
            times: vec![(0, 0); steps],
        }
    }

    fn starts(&mut self, step: usize) {
        self.times[step].0 = self.now();
    }

    fn ends(&mut self, step: usize, held: Option<Instant>) {
        let held = held.map_or(0, |t| self.since_epoch(t));
        self.times[step].1 = self.now().max(held);
    }

    fn take(&mut self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.times)
    }
}
