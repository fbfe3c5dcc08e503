//! Robust fits of measured times as a function of size: one line, or several that join.
//!
//! Sizes span seven orders of magnitude and times five, so residuals are relative: the error in
//! percent counts. Measurements that were disturbed by other load must not bend the line, so the
//! fit is re-weighted until points far off have no influence.
//!
//! # Method
//!
//! A curve is a polyline, given by its values at knots. It is fitted by least squares in
//! `(predicted - time) / time`, iteratively: first with weights `1 / |r|` (least absolute
//! residuals), then with Tukey's bisquare, whose scale is the median absolute residual.
//!
//! A line has no inner knot. A knot is added at the measured size where it reduces the residuals
//! most, but only while the residuals are large enough to matter and the knot reduces them by a
//! fair share. Values that would fall with the size are levelled.

use oneport::internal::numbers::truncated;
use oneport::machine::Piece;

/// Maximum number of knots inside the range of sizes: at most five pieces.
const MAX_KNOTS: usize = 4;
/// Root mean square of the relative residuals below which no further piece is added.
const GOOD_ENOUGH: f64 = 0.03;
/// An additional piece must reduce the loss to at most this share.
const MAX_REMAINING: f64 = 0.85;
/// Larger residuals are disturbances; they all count the same.
const OUTLIER: f64 = 0.3;
/// Minimum distance between knots, in points.
const MIN_DISTANCE: usize = 2;

/// Largest relative error of a point that causes no warning, and that a profile may have.
pub(crate) const FAR_OFF: f64 = 0.5;

/// A measured time, in any unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Size.
    pub bytes: u64,
    /// Time to be predicted.
    pub time: f64,
    /// Reference of relative residuals: the time itself, or a longer time that contains it.
    pub scale: f64,
}

impl Measured {
    /// A point whose residuals are relative to its own time.
    pub fn new(bytes: u64, time: f64) -> Self {
        Measured {
            bytes,
            time,
            scale: time,
        }
    }

    fn size(&self) -> f64 {
        self.bytes as f64
    }
}

/// A fitted curve: linear between knots; beyond the last knot it continues the last piece.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Sizes, from 0 to the largest measured one.
    knots: Vec<u64>,
    /// Times at the knots.
    values: Vec<f64>,
}

/// Distance between a curve and the measured points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FitError {
    /// Median of the absolute relative residuals.
    pub median: f64,
    /// The largest of them.
    pub worst: f64,
}

/// The time of size 0 on a fitted curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtZero {
    /// It is fitted.
    Fitted,
    /// It is 0.
    Nothing,
}

/// Fits the line `alpha + beta * n`, or `beta * n` through zero. Returns `None` for fewer than
/// two sizes. Takes time linear in the number of points for each of a fixed number of iterations.
///
/// ```
/// use oneport_measure::fit::{AtZero, Measured, line};
/// let point = |k: u32| Measured::new(1 << k, 100.0 + 0.5 * f64::from(1 << k));
/// let points: Vec<_> = (0..20).map(point).collect();
/// let (alpha, beta) = line(&points, AtZero::Fitted).unwrap().first_line();
/// assert!((alpha - 100.0).abs() < 1e-6 && (beta - 0.5).abs() < 1e-9);
/// ```
pub fn line(points: &[Measured], at_zero: AtZero) -> Option<Curve> {
    let points = usable(points)?;
    let last = points.last()?.bytes;
    robust_fit(&points, &[0, last], at_zero)
}

/// Fits a line, and adds pieces as long as they improve the fit enough. Returns `None` for fewer
/// than two sizes. Each piece takes a few fits for every size: quadratic in the number of points.
pub fn curve(points: &[Measured], at_zero: AtZero) -> Option<Curve> {
    let points = usable(points)?;
    let last = points.last()?.bytes;
    let monotone = |knots: &[u64]| Some(robust_fit(&points, knots, at_zero)?.levelled());
    let mut best = monotone(&[0, last])?;
    let mut loss = best.loss(&points);
    // A bend may need two knots, neither of which alone improves the fit enough.
    let mut tried = best.clone();
    let mut added = 0;
    while added < 2 && tried.knots.len() < MAX_KNOTS + 2 && loss > GOOD_ENOUGH {
        let knots = tried.knots.clone();
        let mut better = add_best_knot(&points, &knots, &monotone);
        if let Some((_, found)) = &better {
            // The earlier knots may now have a better position.
            let mut knots = found.knots.clone();
            for i in 1..knots.len() - 1 {
                let others: Vec<u64> = [&knots[..i], &knots[i + 1..]].concat();
                if let Some(moved) = add_best_knot(&points, &others, &monotone)
                    && better.as_ref().is_some_and(|b| moved.0 < b.0)
                {
                    knots.clone_from(&moved.1.knots);
                    better = Some(moved);
                }
            }
        }
        let Some((new_loss, found)) = better else {
            break;
        };
        added += 1;
        tried = found;
        if new_loss < MAX_REMAINING.powi(added) * loss {
            (loss, best, added) = (new_loss, tried.clone(), 0);
        }
    }
    Some(best)
}

impl Curve {
    /// Returns the time of `bytes` bytes, in the unit of the points.
    pub fn at(&self, bytes: u64) -> f64 {
        let i = self.piece(bytes);
        let (alpha, beta) = self.line_of(i);
        let n = bytes as f64;
        alpha + beta * n
    }

    /// Returns the time at size 0 and the time per byte, both of the first piece.
    pub fn first_line(&self) -> (f64, f64) {
        self.line_of(0)
    }

    /// Number of pieces.
    pub fn count(&self) -> usize {
        self.knots.len() - 1
    }

    /// Returns the pieces in the form of the cost model.
    pub fn pieces(&self) -> Vec<Piece> {
        (0..self.count())
            .map(|i| {
                let (alpha, beta) = self.line_of(i);
                Piece {
                    from: self.knots[i],
                    alpha,
                    beta,
                }
            })
            .collect()
    }

    /// Returns the distance from `points`.
    pub fn error(&self, points: &[Measured]) -> FitError {
        let mut residuals: Vec<f64> = points.iter().map(|p| self.residual(p).abs()).collect();
        FitError {
            median: median(&mut residuals),
            worst: residuals.last().copied().unwrap_or(0.0),
        }
    }

    fn residual(&self, point: &Measured) -> f64 {
        (self.at(point.bytes) - point.time) / point.scale
    }

    /// Root mean square of the residuals.
    fn loss(&self, points: &[Measured]) -> f64 {
        let count = points.len() as f64;
        let squares = points
            .iter()
            .map(|p| self.residual(p).abs().min(OUTLIER).powi(2));
        (squares.sum::<f64>() / count).sqrt()
    }

    fn piece(&self, bytes: u64) -> usize {
        let after = self.knots.partition_point(|&k| k <= bytes);
        after.saturating_sub(1).min(self.count() - 1)
    }

    fn line_of(&self, i: usize) -> (f64, f64) {
        let (from, to) = (self.knots[i] as f64, self.knots[i + 1] as f64);
        let beta = (self.values[i + 1] - self.values[i]) / (to - from);
        (self.values[i] - beta * from, beta)
    }

    /// Makes the values nonnegative and nondecreasing.
    fn levelled(mut self) -> Curve {
        // Falling values are pooled: each run of them gets its mean.
        let mut runs: Vec<(f64, usize)> = Vec::new();
        for &value in &self.values {
            runs.push((value.max(0.0), 1));
            while let [.., (before, m), (after, n)] = runs[..]
                && before > after
            {
                runs.truncate(runs.len() - 2);
                let (m_f, n_f) = (m as f64, n as f64);
                runs.push(((before * m_f + after * n_f) / (m_f + n_f), m + n));
            }
        }
        let repeated = |(value, n)| std::iter::repeat_n(value, n);
        self.values = runs.into_iter().flat_map(repeated).collect();
        self
    }
}

/// Returns the median and sorts `values`; 0 if they are empty.
pub fn median(values: &mut [f64]) -> f64 {
    quantile(values, 0.5)
}

/// Returns quantile `q` of `values`, interpolated linearly, and sorts them; 0 if they are empty.
pub fn quantile(values: &mut [f64], q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else {
        return 0.0;
    };
    let at = q * last as f64;
    let (low, part) = (truncated(at), at.fract());
    let (a, b) = (values[low], values[(low + 1).min(last)]);
    a + (b - a) * part
}

/// Returns the valid points in order of size, if they have at least two different sizes.
fn usable(points: &[Measured]) -> Option<Vec<Measured>> {
    let is_valid = |p: &&Measured| p.time.is_finite() && p.scale.is_finite() && p.scale > 0.0;
    let mut points: Vec<Measured> = points.iter().filter(is_valid).copied().collect();
    points.sort_by_key(|p| p.bytes);
    let several = points.first()?.bytes < points.last()?.bytes;
    several.then_some(points)
}

/// Adds to `knots` the knot that reduces the loss most. Returns that loss and the curve.
fn add_best_knot(
    points: &[Measured],
    knots: &[u64],
    fit: &impl Fn(&[u64]) -> Option<Curve>,
) -> Option<(f64, Curve)> {
    let mut sizes: Vec<u64> = points.iter().map(|p| p.bytes).collect();
    sizes.dedup();
    let place = |bytes: u64| sizes.partition_point(|&s| s < bytes);
    // The last piece may be as short as one distance: where memory takes over from the caches, only
    // the largest sizes show it.
    let last = sizes.len() - 1;
    let distance = |k: usize| if k == last { 1 } else { MIN_DISTANCE };
    let free = |i: usize| {
        let mut others = knots.iter().map(|&k| place(k));
        others.all(|k| k.abs_diff(i) >= distance(k))
    };
    (0..sizes.len())
        .filter(|&i| sizes[i] > 0 && free(i))
        .filter_map(|i| {
            let mut knots = knots.to_vec();
            knots.push(sizes[i]);
            knots.sort_unstable();
            let curve = fit(&knots)?;
            Some((curve.loss(points), curve))
        })
        .min_by(|a, b| a.0.total_cmp(&b.0))
}

/// Fits a curve with these knots by re-weighted least squares.
fn robust_fit(points: &[Measured], knots: &[u64], at_zero: AtZero) -> Option<Curve> {
    const ROUNDS: usize = 12;
    /// Residual at which the weight of Tukey's bisquare becomes zero, as a multiple of the median
    /// absolute residual.
    const CUT: f64 = 4.685 * 1.4826;
    let mut weights = vec![1.0; points.len()];
    let mut curve = least_squares(points, &weights, knots, at_zero)?;
    for round in 0..ROUNDS {
        let residuals: Vec<f64> = points.iter().map(|p| curve.residual(p).abs()).collect();
        let spread = median(&mut residuals.clone()).max(1e-9);
        for (w, r) in weights.iter_mut().zip(&residuals) {
            *w = if round < ROUNDS / 2 {
                1.0 / r.max(spread / 10.0)
            } else {
                let u = r / (CUT * spread);
                (1.0 - u * u).max(0.0).powi(2)
            };
        }
        // If too few points have weight, the previous curve stays.
        let Some(next) = least_squares(points, &weights, knots, at_zero) else {
            break;
        };
        curve = next;
    }
    Some(curve)
}

/// Computes the values at the knots by weighted least squares.
fn least_squares(
    points: &[Measured],
    weights: &[f64],
    knots: &[u64],
    at_zero: AtZero,
) -> Option<Curve> {
    let skipped = usize::from(at_zero == AtZero::Nothing);
    let n = knots.len() - skipped;
    // Normal equations; the last column is the right-hand side.
    let mut rows = vec![vec![0.0; n + 1]; n];
    for (point, weight) in points.iter().zip(weights) {
        let weight = weight / (point.scale * point.scale);
        let below = knots.partition_point(|&k| k <= point.bytes);
        let i = below.saturating_sub(1).min(knots.len() - 2);
        let (from, to) = (knots[i] as f64, knots[i + 1] as f64);
        let right = (point.size() - from) / (to - from);
        // The two knots around the point.
        let parts = [(i, 1.0 - right), (i + 1, right)];
        for (a, share) in parts {
            let Some(a) = a.checked_sub(skipped) else {
                continue;
            };
            for (b, other) in parts {
                if let Some(b) = b.checked_sub(skipped) {
                    rows[a][b] += weight * share * other;
                }
            }
            rows[a][n] += weight * share * point.time;
        }
    }
    let mut values = solve_system(rows)?;
    if at_zero == AtZero::Nothing {
        values.insert(0, 0.0);
    }
    Some(Curve {
        knots: knots.to_vec(),
        values,
    })
}

/// Solves a symmetric positive definite system; `None` if it is singular.
fn solve_system(mut rows: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let n = rows.len();
    let diagonal: Vec<f64> = (0..n).map(|i| rows[i][i]).collect();
    for i in 0..n {
        // If the row depends on those above, the remaining diagonal element is a rounding error.
        let pivot = rows[i][i];
        if !(pivot.is_finite() && pivot > 1e-13 * diagonal[i]) {
            return None;
        }
        let (above, below) = rows.split_at_mut(i + 1);
        for row in below {
            let factor = row[i] / pivot;
            for (x, b) in row.iter_mut().zip(&above[i]) {
                *x -= factor * b;
            }
        }
    }
    let mut values = vec![0.0; n];
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|j| rows[i][j] * values[j]).sum();
        values[i] = (rows[i][n] - known) / rows[i][i];
    }
    values.iter().all(|v| v.is_finite()).then_some(values)
}
