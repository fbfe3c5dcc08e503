//! The wall-clock times of a run's repetitions.

use std::ops::RangeInclusive;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::error::{Error, Result};
use crate::machine::numbers::{index, truncated};

/// Wall-clock times of the timed repetitions of a run, in nanoseconds.
///
/// Where every rank has a core, a time is that of the slowest rank. In oversubscribed, multiplexed
/// and paced runs, and among MPI processes of one host, it lasts from the first start to the last
/// end. Times are kept to three decimal digits; [`WallTimes::total`] is exact.
///
/// Memory and the time of each function depend on the range of the times, not on their number. If
/// there are no times, all results are 0.
#[derive(Debug, Clone)]
pub struct WallTimes {
    histogram: Histogram<u64>,
    total_ns: u64,
}

impl WallTimes {
    pub(crate) fn new() -> Result<WallTimes> {
        let histogram = Histogram::new(3).map_err(|e| Error::system(e.to_string()))?;
        Ok(WallTimes {
            histogram,
            total_ns: 0,
        })
    }

    pub(crate) fn record(&mut self, ns: u64) -> Result<()> {
        self.total_ns = self.total_ns.saturating_add(ns);
        let recorded = self.histogram.record(ns);
        recorded.map_err(|e| Error::system(e.to_string()))
    }

    /// Adds the times of `other`.
    ///
    /// # Errors
    /// [`ErrorKind::System`](crate::ErrorKind::System) for lack of memory.
    pub fn add(&mut self, other: &WallTimes) -> Result<()> {
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        let added = self.histogram.add(&other.histogram);
        added.map_err(|e| Error::system(e.to_string()))
    }

    /// Number of times.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The shortest time.
    pub fn min_ns(&self) -> u64 {
        self.histogram.min()
    }

    /// The longest time.
    pub fn max_ns(&self) -> u64 {
        self.histogram.max()
    }

    /// The median: [`quantile_ns`](WallTimes::quantile_ns) of 0.5.
    pub fn median_ns(&self) -> u64 {
        self.quantile_ns(0.5)
    }

    /// The time that the share `quantile` of all does not exceed: 0.99 gives the 99th percentile.
    /// From 0, the shortest, to 1, the longest; larger values count as 1.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        self.histogram.value_at_quantile(quantile)
    }

    /// An interval that contains the median of the distribution with 95% confidence, whatever the
    /// distribution, if repetitions are independent (the sign test). With fewer than six times it
    /// is their whole range, which is less certain.
    pub fn interval_ns(&self) -> RangeInclusive<u64> {
        let n = self.count();
        if n == 0 {
            return 0..=0;
        }
        let cut = median_tail(index(n)) as u64;
        let kth_smallest = |k: u64| self.quantile_ns((k as f64 - 0.5) / n as f64);
        kth_smallest(1 + cut)..=kth_smallest(n - cut)
    }

    /// The sum of all times, exact to the nanosecond.
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.total_ns)
    }

    /// The different times in nanoseconds, ascending, and how often each was measured.
    pub fn distribution(&self) -> impl Iterator<Item = (u64, u64)> {
        let values = self.histogram.iter_recorded();
        values.map(|value| (value.value_iterated_to(), value.count_at_value()))
    }
}

/// The histogram of the times.
pub fn histogram(wall: &WallTimes) -> &Histogram<u64> {
    &wall.histogram
}

/// Returns how many of `n` repetitions may be cut off at each end so that the remaining range still
/// contains the median with 95% confidence.
///
/// The median lies between the `k`-th smallest and the `k`-th largest of `n` repetitions unless
/// fewer than `k` of them fall on one side of it; that probability is the one of tossing `n` coins.
pub fn median_tail(n: usize) -> usize {
    if n > 300 {
        // Normal approximation of the binomial distribution.
        let half = n as f64 / 2.0;
        let k = half - 0.98 * (2.0 * half).sqrt();
        return truncated(k).saturating_sub(1);
    }
    // P(at most k of n coins show heads), both tails.
    let mut term = 0.5f64.powi(i32::try_from(n).expect("at most 300"));
    let (mut sum, mut k) = (term, 0);
    loop {
        let factor = (n - k) as f64 / (k + 1) as f64;
        term *= factor;
        sum += term;
        if 2.0 * sum > 0.05 || 2 * (k + 1) >= n {
            return k;
        }
        k += 1;
    }
}
