//! Solves linear programs exactly, with columns that are generated on demand.
//!
//! The program is `maximise gains * x` under `columns * x <= bounds`, `x >= 0`. Columns come from a
//! [`Pricing`], which receives prices of the rows and returns columns that gain more than they
//! cost.
//!
//! 1. An interior-point solver, clarabel, finds the columns that matter ([`interior`]). Its prices
//!    lie in the middle of the possible ones, so few rounds of pricing are needed.
//! 2. It has no basis. A revised simplex method in floating-point numbers finds one among these
//!    columns ([`float`]), and generates more columns where some are missing.
//! 3. The basis is solved in exact numbers, for the values and for the prices ([`exact`]). Both are
//!    checked exactly: no value is negative, and no column gains more than it costs, neither a
//!    known one nor one that the pricing can generate.
//! 4. If a column does, the remaining gain may be too small beside the gains for floating-point
//!    numbers: costs of 1 and of 10^6 on one platform are enough for that. So part 2 continues from
//!    the exact basis with gains reduced by the exact prices, and has all its digits for the
//!    remaining gain (the idea of iterative refinement: Gleixner, Steffy and Wolter 2016). Where
//!    that leads no further, exact simplex steps do.
//!
//! Rounding errors therefore cost time at most; the result does not depend on them. If part 2
//! fails, the exact steps start where it started.
//!
//! # Why both an interior-point and a simplex method
//!
//! Part 3 needs a basis, and the maintained solvers in pure Rust have none: they return no prices,
//! or use interior points. Hence part 2. An interior solution does not name a basis where there are
//! many optima, as here. It lies in the middle of all of them, with more routes and slots above 0
//! than rows, and with prices above 0 on more rows than necessary. To get from there to a corner,
//! one variable after the other is pushed to a bound, and each push exchanges columns of a basis.
//! That is the simplex method again. In exact numbers, where every exchange solves the basis anew,
//! it is far slower than in floating-point numbers.
//!
//! Part 2 would suffice without part 1, but the interior prices find other columns. On one random
//! platform of 100 nodes and 500 links (`random:100:500`, bidirectional) the result is 2 trees and
//! 41 matchings with a period of 16; part 2 alone finds 31 and 327, and a period that has to be
//! rounded. `cargo bench -p oneport-steady` takes 1.4 s of processor time with part 1.

mod exact;
mod float;
mod interior;
mod inverse;

use dashu_int::{IBig, UBig};

use super::fraction::{Fraction, over_common, sum, to_finite, whole};
use exact::Basis;
use float::Simplex;
use oneport::error::{Error, Result};

/// A column: the gain of one unit of it, and its use of each row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column<T> {
    pub(super) gain: Fraction,
    /// By row, sorted, without zeros.
    pub(super) entries: Vec<(usize, Fraction)>,
    /// The activity or object that the column stands for.
    pub(super) label: T,
}

impl<T> Column<T> {
    pub(super) fn new(gain: Fraction, mut entries: Vec<(usize, Fraction)>, label: T) -> Column<T> {
        entries.sort_unstable_by_key(|(row, _)| *row);
        Column {
            gain,
            entries,
            label,
        }
    }

    /// Returns the gain minus the cost at these prices.
    fn excess(&self, prices: &[Fraction]) -> Fraction {
        let cost = self.entries.iter().map(|(r, a)| (a, &prices[*r]));
        let cost = cost.filter(|(_, p)| !p.is_zero()).map(|(a, p)| a * p);
        &self.gain - sum(cost)
    }

    fn is_like(&self, other: &Column<T>) -> bool {
        self.gain == other.gain && self.entries == other.entries
    }
}

/// Generates columns on demand.
pub(super) trait Pricing<T> {
    /// Returns columns that gain more than they cost at these prices of the rows, the better ones
    /// first. Others are ignored.
    fn improve(&mut self, prices: &[f64]) -> Vec<Column<T>>;

    /// Does the same exactly, with the prices `prices / denominator`. If there is any such column,
    /// it returns at least one.
    fn improve_exactly(&mut self, prices: &[IBig], denominator: &UBig) -> Vec<Column<T>>;
}

/// A proved optimum.
#[derive(Debug, Clone)]
pub(super) struct Optimum<T> {
    /// The total gain.
    pub(super) value: Fraction,
    /// The columns used and the amount of each (more than 0).
    pub(super) used: Vec<(T, Fraction)>,
    /// Prices of the rows (not negative). They satisfy `prices * bounds = value`, and no column
    /// gains more than it costs.
    pub(super) prices: Vec<Fraction>,
}

/// After this many exact steps in a row without a gain, variables enter in the order of their
/// numbers (Bland 1977), so that no basis occurs twice.
const MAX_STALLED: usize = 50;
/// Limit of the bases in a row that the floating-point method reaches without a gain.
const MAX_IDLE: usize = 10;
/// Exact steps after a failure of the floating-point method until it is tried again.
const PAUSE: usize = 20;

/// Solves the program, from the slacks or, where some of them would be negative, from the columns,
/// of which there is then one for each row. Refuses unbounded gains.
pub(super) fn maximise<T: Clone>(
    bounds: &[Fraction],
    mut columns: Vec<Column<T>>,
    pricing: &mut impl Pricing<T>,
) -> Result<Optimum<T>> {
    let rows = bounds.len();
    let basis: Vec<usize> = if bounds.iter().any(|b| *b < Fraction::ZERO) {
        (rows..2 * rows).collect()
    } else {
        (0..rows).collect()
    };
    interior::generate(bounds, &mut columns, |prices| pricing.improve(prices));
    let mut simplex = Simplex::new(bounds.iter().map(to_finite).collect());
    for column in &columns {
        simplex.add(&column.entries, to_finite(&column.gain));
    }
    simplex.start(&basis);
    let mut program = LinearProgram {
        bounds,
        columns,
        simplex,
    };
    program.search(pricing);
    let corner = match program.near()? {
        Some(corner) => corner,
        None => program.regular(basis)?,
    };
    program.optimum(corner, pricing)
}

/// A program with the columns known so far. Variables are numbered: first a slack for each row,
/// then the columns.
struct LinearProgram<'a, T> {
    bounds: &'a [Fraction],
    columns: Vec<Column<T>>,
    /// The same program in floating-point numbers.
    simplex: Simplex,
}

/// A basis and its exact solution.
struct Corner {
    basis: Vec<usize>,
    solver: Basis,
    values: Vec<Fraction>,
    prices: Vec<Fraction>,
    /// The total gain.
    value: Fraction,
}

impl<T: Clone> LinearProgram<'_, T> {
    /// Runs the simplex method in floating-point numbers.
    fn search(&mut self, pricing: &mut impl Pricing<T>) {
        let columns = &mut self.columns;
        self.simplex.solve(|simplex| {
            let prices: Vec<f64> = simplex.prices().iter().map(|p| p.max(0.0)).collect();
            for column in pricing.improve(&prices) {
                add(columns, simplex, column, &prices, |c| to_finite(&c.gain));
            }
        });
    }

    /// Runs the simplex method in floating-point numbers again, from an exact basis, with gains
    /// reduced by its exact prices. The remaining gain may be tiny beside the gains themselves;
    /// only the reduction makes it visible.
    fn search_from(&mut self, corner: &Corner, pricing: &mut impl Pricing<T>) {
        let mut gains: Vec<f64> = corner.prices.iter().map(|p| -to_finite(p)).collect();
        let reduced = |c: &Column<T>| to_finite(&c.excess(&corner.prices));
        gains.extend(self.columns.iter().map(reduced));
        let values = corner.values.iter().map(to_finite).collect();
        self.simplex.restart(&corner.basis, values, &gains);
        let columns = &mut self.columns;
        self.simplex.solve(|simplex| {
            let prices = simplex.prices().to_vec();
            let all = prices.iter().zip(&corner.prices).map(|(p, exact)| {
                let all = Fraction::of_float(*p) + exact;
                all.max(Fraction::ZERO)
            });
            let (scaled, denominator) = over_common(&all.collect::<Vec<_>>());
            for column in pricing.improve_exactly(&scaled, &denominator) {
                add(columns, simplex, column, &prices, reduced);
            }
        });
    }

    /// Returns a basis without negative values, at most a few dual steps from that of the
    /// floating-point method; `None` if there is none.
    fn near(&self) -> Result<Option<Corner>> {
        let mut basis = self.simplex.basis().to_vec();
        for _ in 0..=self.bounds.len() {
            let Some(corner) = self.corner(basis)? else {
                return Ok(None);
            };
            let Some(out) = most_negative(&corner.values) else {
                return Ok(Some(corner));
            };
            let Some(entering) = self.dual_step(&corner, out)? else {
                return Ok(None);
            };
            basis = corner.basis;
            basis[out] = entering;
        }
        Ok(None)
    }

    /// Exchanges columns of a basis whose values are not negative for better ones until it is
    /// optimal.
    ///
    /// It terminates: between two improvements of the gain, the floating-point method leads to a
    /// limited number of bases. All other steps are exact, and their rule lets no basis occur
    /// twice.
    fn optimum(&mut self, mut corner: Corner, pricing: &mut impl Pricing<T>) -> Result<Optimum<T>> {
        let rows = self.bounds.len();
        // Counts in a row: exact steps, and floating-point searches, without a gain.
        let (mut stalled, mut idle) = (0, 0);
        let mut pause = 0;
        while let Some(entering) = self.entering(&corner.prices, stalled > MAX_STALLED, pricing) {
            if pause == 0 {
                self.search_from(&corner, pricing);
                let better = |c: &Corner| {
                    c.value > corner.value || c.value == corner.value && idle < MAX_IDLE
                };
                if let Some(found) = self.near()?.filter(better) {
                    idle = if found.value > corner.value {
                        0
                    } else {
                        idle + 1
                    };
                    stalled = 0;
                    corner = found;
                    continue;
                }
                pause = PAUSE;
            }
            pause -= 1;
            let direction = corner.solver.values(&self.entries(entering))?;
            let leaving = (0..rows)
                .filter(|&i| direction[i] > Fraction::ZERO)
                .map(|i| (&corner.values[i] / &direction[i], corner.basis[i], i))
                .min();
            let Some((step, _, out)) = leaving else {
                return Err(Error::system("the linear program is unbounded"));
            };
            if step.is_zero() {
                stalled += 1;
            } else {
                (stalled, idle) = (0, 0);
            }
            let mut basis = corner.basis;
            basis[out] = entering;
            corner = self.regular(basis)?;
        }
        let used = corner.basis.iter().zip(&corner.values);
        let used = used.filter(|(v, x)| **v >= rows && !x.is_zero());
        Ok(Optimum {
            used: used
                .map(|(v, x)| (self.columns[v - rows].label.clone(), x.clone()))
                .collect(),
            value: corner.value,
            prices: corner.prices,
        })
    }

    fn regular(&self, basis: Vec<usize>) -> Result<Corner> {
        let corner = self.corner(basis)?;
        corner.ok_or_else(|| Error::system("the linear program's basis is singular"))
    }

    /// Solves the basis; `None` if it is singular.
    fn corner(&self, basis: Vec<usize>) -> Result<Option<Corner>> {
        let entries: Vec<_> = basis.iter().map(|&v| self.entries(v)).collect();
        let Some(solver) = Basis::new(self.bounds.len(), &entries) else {
            return Ok(None);
        };
        let bounds: Vec<(usize, Fraction)> = self.bounds.iter().cloned().enumerate().collect();
        let gains: Vec<Fraction> = basis.iter().map(|&v| self.gain(v)).collect();
        let prices = solver.prices(&gains)?;
        Ok(Some(Corner {
            values: solver.values(&bounds)?,
            value: sum(prices.iter().zip(self.bounds).map(|(p, b)| p * b)),
            basis,
            solver,
            prices,
        }))
    }

    /// Returns a variable that gains more than it costs: a slack, a known column or a new one. With
    /// `first` it is the first of the known ones, otherwise the one that gains most.
    fn entering(
        &mut self,
        prices: &[Fraction],
        first: bool,
        pricing: &mut impl Pricing<T>,
    ) -> Option<usize> {
        let negative = |p: &Fraction| *p < Fraction::ZERO;
        let slack = if first {
            prices.iter().position(negative)
        } else {
            most_negative(prices)
        };
        if slack.is_some() {
            return slack;
        }
        let best = |columns: &[Column<T>]| {
            let all = columns.iter().enumerate();
            let all = all.map(|(i, c)| (c.excess(prices), i));
            let mut better = all.filter(|(e, _)| *e > Fraction::ZERO);
            if first { better.next() } else { better.max() }
        };
        let rows = self.bounds.len();
        if let Some((_, known)) = best(&self.columns) {
            return Some(rows + known);
        }
        let (scaled, denominator) = over_common(prices);
        let new = pricing.improve_exactly(&scaled, &denominator);
        let (_, i) = best(&new)?;
        self.columns.push(new[i].clone());
        self.simplex.add(&new[i].entries, to_finite(&new[i].gain));
        Some(rows + self.columns.len() - 1)
    }

    /// Returns the known variable that replaces the negative one at `out`, chosen so that no column
    /// gains more than it costs; `None` if there is none.
    fn dual_step(&self, corner: &Corner, out: usize) -> Result<Option<usize>> {
        let Corner { basis, prices, .. } = corner;
        let rows = self.bounds.len();
        let mut unit = vec![Fraction::ZERO; rows];
        unit[out] = Fraction::ONE;
        let row = corner.solver.prices(&unit)?;
        let mut best: Option<(Fraction, usize)> = None;
        for v in 0..rows + self.columns.len() {
            let along = |by: &[Fraction]| -> Fraction {
                let entries = self.entries(v);
                sum(entries.iter().map(|(r, a)| a * &by[*r]))
            };
            if basis.contains(&v) {
                continue;
            }
            let change = along(&row);
            if change >= Fraction::ZERO {
                continue;
            }
            let short = (along(prices) - self.gain(v)).max(Fraction::ZERO);
            let ratio = short / -change;
            if best.as_ref().is_none_or(|(min, _)| ratio < *min) {
                best = Some((ratio, v));
            }
        }
        Ok(best.map(|(_, v)| v))
    }

    fn gain(&self, variable: usize) -> Fraction {
        match variable.checked_sub(self.bounds.len()) {
            None => Fraction::ZERO,
            Some(c) => self.columns[c].gain.clone(),
        }
    }

    fn entries(&self, variable: usize) -> Vec<(usize, Fraction)> {
        match variable.checked_sub(self.bounds.len()) {
            None => vec![(variable, whole(1))],
            Some(c) => self.columns[c].entries.clone(),
        }
    }
}

/// Adds a column, unless it does not gain or is known: it would only slow down every step.
fn add<T: Clone>(
    columns: &mut Vec<Column<T>>,
    simplex: &mut Simplex,
    column: Column<T>,
    prices: &[f64],
    gain: impl Fn(&Column<T>) -> f64,
) {
    let gain = gain(&column);
    let cost = column.entries.iter();
    let cost: f64 = cost.map(|(r, a)| to_finite(a) * prices[*r]).sum();
    if cost < gain && !columns.iter().any(|c| c.is_like(&column)) {
        simplex.add(&column.entries, gain);
        columns.push(column);
    }
}

fn most_negative(values: &[Fraction]) -> Option<usize> {
    let negative = values.iter().enumerate();
    let negative = negative.filter(|(_, v)| **v < Fraction::ZERO);
    negative.min_by(|a, b| a.1.cmp(b.1)).map(|(i, _)| i)
}
