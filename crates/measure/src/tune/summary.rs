//! Statistics of repeated measurements, and the test whether two times differ.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use oneport::internal::median_tail;

/// Statistics of the repetitions of one measurement, in nanoseconds.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, schemars::JsonSchema, Serialize, Deserialize,
)]
pub struct Summary {
    /// Number of repetitions.
    pub repetitions: usize,
    /// Minimum.
    pub min: u64,
    /// Median.
    #[serde(rename = "wall")]
    pub median: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Maximum.
    pub max: u64,
    /// Lower end of the median's confidence interval.
    pub low: u64,
    /// Upper end of the median's confidence interval.
    pub high: u64,
}

/// With fewer repetitions no interval of the sample contains the median with 95% confidence.
pub(crate) const MIN_FOR_CONFIDENCE: usize = 6;

/// Repetitions from which on the 99th percentile says something.
pub const MIN_FOR_P99: usize = 100;

impl Summary {
    /// The 99th percentile, if there are enough repetitions for one.
    pub fn shown_p99(&self) -> Option<u64> {
        (self.repetitions >= MIN_FOR_P99).then_some(self.p99)
    }

    /// Summarises repetitions, in nanoseconds; `None` if there are none. Sorts them.
    ///
    /// The confidence interval is distribution-free. The median lies between the `k`-th smallest
    /// and the `k`-th largest of `n` repetitions unless fewer than `k` of them fall on one side of
    /// it; that probability is the one of tossing `n` coins. With fewer than six repetitions even
    /// the whole range is not 95% certain; it is used as the interval nevertheless.
    ///
    /// ```
    /// use oneport_measure::tune::Summary;
    /// let s = Summary::of(&[5, 1, 9, 3, 7, 2, 8, 4, 6]).unwrap();
    /// assert_eq!((s.min, s.low, s.median, s.high, s.max), (1, 2, 5, 8, 9));
    /// ```
    pub fn of(samples: &[u64]) -> Option<Summary> {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable();
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let n = sorted.len();
        let k = median_tail(n);
        Some(Summary {
            repetitions: n,
            min,
            median: sorted[(n - 1) / 2].midpoint(sorted[n / 2]),
            p99: sorted[(n * 99).div_ceil(100) - 1],
            max,
            low: sorted[k],
            high: sorted[n - 1 - k],
        })
    }

    /// Whether the repetitions establish which of two times is smaller. Their confidence intervals
    /// are disjoint, or so close together that the medians differ by at most `tolerance` (0.02
    /// means 2%) in either direction.
    pub fn settled(&self, other: &Summary, tolerance: f64) -> bool {
        let confident = |s: &Summary| s.repetitions >= MIN_FOR_CONFIDENCE;
        if !confident(self) || !confident(other) {
            return false;
        }
        self.clearly(other) != Ordering::Equal || {
            let (low, high) = (
                self.low.min(other.low) as f64,
                self.high.max(other.high) as f64,
            );
            high <= low * (1.0 + tolerance) + 1.0
        }
    }

    /// Returns less or greater if the confidence intervals are disjoint, otherwise equal.
    pub fn clearly(&self, other: &Summary) -> Ordering {
        if self.high < other.low {
            Ordering::Less
        } else if self.low > other.high {
            Ordering::Greater
        } else {
            Ordering::Equal
        }
    }
}
