//! What repetitions say about a time, and when they tell two times apart.

use std::cmp::Ordering;

use serde::Serialize;

/// The repetitions of one measurement, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Summary {
    /// How many there are.
    pub repetitions: usize,
    /// The least.
    pub min: u64,
    /// The median.
    #[serde(rename = "wall")]
    pub median: u64,
    /// What 99 of 100 do not exceed.
    pub p99: u64,
    /// The greatest.
    pub max: u64,
    /// Lower end of the median's confidence interval.
    pub low: u64,
    /// Upper end of the median's confidence interval.
    pub high: u64,
}

/// Repetitions below which no interval of the sample holds the median with 95% confidence.
pub(super) const MIN_FOR_CONFIDENCE: usize = 6;

impl Summary {
    /// Summarises repetitions; `None` when there is none.
    ///
    /// The confidence interval is the distribution-free one: the median lies between the `k`-th
    /// smallest and the `k`-th greatest of `n` repetitions unless fewer than `k` fall on one
    /// side of it, which is a matter of tossing `n` coins. With fewer than six repetitions not
    /// even the whole range is 95% sure; it then stands for the interval.
    ///
    /// ```
    /// use oneport::measure::tune::Summary;
    /// let s = Summary::of(&[5, 1, 9, 3, 7, 2, 8, 4, 6]).unwrap();
    /// assert_eq!((s.min, s.low, s.median, s.high, s.max), (1, 2, 5, 8, 9));
    /// ```
    pub fn of(samples: &[u64]) -> Option<Summary> {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable();
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let n = sorted.len();
        let k = tail(n);
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

    /// Whether the repetitions settle which of two is faster: their confidence intervals are
    /// disjoint, or so close together that the medians differ by no more than `tolerance` (0.02
    /// for 2%) whichever is less.
    pub fn settled(&self, other: &Summary, tolerance: f64) -> bool {
        let confident = |s: &Summary| s.repetitions >= MIN_FOR_CONFIDENCE;
        if !confident(self) || !confident(other) {
            return false;
        }
        self.clearly(other) != Ordering::Equal || {
            #[expect(clippy::cast_precision_loss, reason = "a comparison with a tolerance")]
            let (low, high) = (
                self.low.min(other.low) as f64,
                self.high.max(other.high) as f64,
            );
            high <= low * (1.0 + tolerance) + 1.0
        }
    }

    /// Less or greater where the confidence intervals are disjoint.
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

/// How many repetitions may be cut off at each end so that the median stays inside with 95%
/// confidence.
fn tail(n: usize) -> usize {
    if n > 300 {
        // The normal approximation of the binomial distribution.
        #[expect(clippy::cast_precision_loss, reason = "a count of repetitions")]
        let half = n as f64 / 2.0;
        let k = half - 0.98 * (2.0 * half).sqrt();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and n/2"
        )]
        return (k.floor() as usize).saturating_sub(1);
    }
    // P(fewer than k+1 of n coins show heads), both tails.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        reason = "n is at most 300"
    )]
    let mut term = 0.5f64.powi(n as i32);
    let (mut sum, mut k) = (term, 0);
    loop {
        #[expect(clippy::cast_precision_loss, reason = "a count of repetitions")]
        let factor = (n - k) as f64 / (k + 1) as f64;
        term *= factor;
        sum += term;
        if 2.0 * sum > 0.05 || 2 * (k + 1) >= n {
            return k;
        }
        k += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_sign_test() {
        // Tables of the sign test: the greatest k cut off at each end for a two-sided 5%.
        for (n, k) in [
            (1, 0),
            (6, 0),
            (8, 0),
            (9, 1),
            (11, 1),
            (12, 2),
            (20, 5),
            (25, 7),
            (50, 17),
            (100, 39),
        ] {
            assert_eq!(tail(n), k, "{n}");
        }
        // The approximation joins on.
        assert!(
            tail(301).abs_diff(tail(300)) <= 2,
            "{} {}",
            tail(300),
            tail(301)
        );
    }

    #[test]
    fn settled_when_apart_or_together() {
        let of = |start: u64, width: u64| {
            let samples: Vec<u64> = (0..20).map(|i| start + i * width).collect();
            Summary::of(&samples).unwrap()
        };
        assert!(of(1000, 1).settled(&of(1100, 1), 0.0));
        assert_eq!(of(1000, 1).clearly(&of(1100, 1)), Ordering::Less);
        assert!(of(1000, 1).settled(&of(1001, 1), 0.02));
        assert!(!of(1000, 1).settled(&of(1001, 1), 0.0));
        assert!(!of(1000, 10).settled(&of(1050, 10), 0.02));
        let few = Summary::of(&[1, 2, 3]).unwrap();
        assert!(!few.settled(&of(1000, 1), 1.0));
        assert_eq!(Summary::of(&[]), None);
        assert!(of(0, 0).settled(&of(0, 0), 0.0));
    }
}
