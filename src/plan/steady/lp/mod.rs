//! Linear programs with columns made on demand, solved exactly.
//!
//! `maximise gains * x` under `columns * x <= bounds`, `x >= 0`, with bounds that are not negative
//! (so that `x = 0` is where to start). Columns come from a [`Pricing`], which is asked, at given
//! prices of the rows, for columns that gain more than they cost.
//!
//! 1. An interior-point solver, clarabel, finds the columns that matter ([`interior`]): its prices
//!    lie in the middle of those that are possible, so that few rounds of pricing are needed.
//! 2. It knows no basis. A revised simplex method in floating-point numbers finds one among these
//!    columns ([`float`]), and asks for more where some are missing.
//! 3. The basis is solved in exact numbers, for the values and for the prices ([`exact`]), and both
//!    are checked exactly: values not negative, and no column, of those known or of those that the
//!    pricing can make, gains more than it costs.
//! 4. If a column does, what is left to gain may be too little for floating-point numbers to see
//!    beside the gains: costs of 1 and of 10^6 on one platform are enough for that. So the second
//!    part goes on from the exact basis, its gains reduced by the exact prices, and has all its
//!    digits for what is left (the idea of iterative refinement: Gleixner, Steffy and Wolter 2016).
//!    Where that leads no further, exact simplex steps do.
//!
//! So rounding errors cost time at most; the outcome does not depend on them. If the second part
//! gets lost, the exact steps begin where it began.
//!
//! A basis is what the third part stands on, and the kept solvers in pure Rust have none: they give
//! no prices, or follow the interior; hence the second part. (An interior solution does not name a
//! basis where optima are many, as they are here: it lies in the middle of all of them, with more
//! routes and slots above 0 than there are rows, and with prices above 0 on more rows than are
//! needed. To come from there to a corner means to push one variable after the other to a bound,
//! and each push exchanges columns of a basis: that is the simplex method again, and in exact
//! numbers, where every exchange needs the basis to be solved anew, far slower than in
//! floating-point ones.) It would do without the first, but the interior's prices find other
//! columns: on one random platform of 100 nodes and 500 links (`random:100:500`, bidirectional) 2
//! trees and 41 matchings with a period of 16, where the second part alone found 31 and 327, and a
//! period to be rounded. `cargo bench --bench steady` takes 1.4 s of processor time with it.

mod exact;
mod float;
mod interior;

use dashu_int::{IBig, UBig};

use super::fraction::{Fraction, over_common, sum, to_finite, whole};
use crate::error::{Error, Result};
use exact::Basis;
use float::Simplex;

/// A column: what one unit of it gains and takes of each row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column<T> {
    pub(super) gain: Fraction,
    /// By row, in order, none of them zero.
    pub(super) entries: Vec<(usize, Fraction)>,
    /// What it stands for.
    pub(super) label: T,
}

impl<T> Column<T> {
    /// What it gains beyond its cost at these prices.
    fn excess(&self, prices: &[Fraction]) -> Fraction {
        let cost = self.entries.iter().map(|(r, a)| (a, &prices[*r]));
        let cost = cost.filter(|(_, p)| !p.is_zero()).map(|(a, p)| a * p);
        &self.gain - sum(cost)
    }

    /// Whether both gain and take the same.
    fn is_like(&self, other: &Column<T>) -> bool {
        self.gain == other.gain && self.entries == other.entries
    }
}

/// Makes columns.
pub(super) trait Pricing<T> {
    /// Columns that gain more than they cost at these prices of the rows, the better ones first;
    /// such as do not are ignored.
    fn improve(&mut self, prices: &[f64]) -> Vec<Column<T>>;

    /// The same exactly, the prices being `prices / denominator`. If there is any such column, one
    /// is given.
    fn improve_exactly(&mut self, prices: &[IBig], denominator: &UBig) -> Vec<Column<T>>;
}

/// No columns but those given.
#[cfg(test)]
#[derive(Debug)]
pub(super) struct NoPricing;

#[cfg(test)]
impl<T> Pricing<T> for NoPricing {
    fn improve(&mut self, _: &[f64]) -> Vec<Column<T>> {
        Vec::new()
    }
    fn improve_exactly(&mut self, _: &[IBig], _: &UBig) -> Vec<Column<T>> {
        Vec::new()
    }
}

/// An optimum, proved.
#[derive(Debug, Clone)]
pub(super) struct Optimum<T> {
    /// What is gained.
    pub(super) value: Fraction,
    /// The columns used and how much of each (more than 0).
    pub(super) used: Vec<(T, Fraction)>,
    /// Prices of the rows (not negative): `prices * bounds = value`, and no column gains more than
    /// it costs.
    pub(super) prices: Vec<Fraction>,
}

/// Exact steps in a row that gain nothing, after which variables enter in their order (Bland 1977),
/// so that no basis comes again.
const MAX_STALLED: usize = 50;
/// How often in a row the floating-point method may lead to another basis that gains no more.
const MAX_IDLE: usize = 10;
/// Exact steps after it has led nowhere, until it is tried again.
const PAUSE: usize = 20;

/// Solves the program.
///
/// # Errors
/// When gains are unbounded.
pub(super) fn maximise<T: Clone>(
    bounds: &[Fraction],
    columns: Vec<Column<T>>,
    pricing: &mut impl Pricing<T>,
) -> Result<Optimum<T>> {
    let slacks: Vec<usize> = (0..bounds.len()).collect();
    maximise_from(bounds, columns, &slacks, pricing)
}

/// As [`maximise`], with bounds of any sign, from a basis of columns whose values are not negative
/// (numbered as in the outcome of the method: slacks first).
pub(super) fn maximise_from<T: Clone>(
    bounds: &[Fraction],
    columns: Vec<Column<T>>,
    basis: &[usize],
    pricing: &mut impl Pricing<T>,
) -> Result<Optimum<T>> {
    let mut columns = columns;
    interior::generate(bounds, &mut columns, |prices| pricing.improve(prices));
    let mut simplex = Simplex::new(bounds.iter().map(to_finite).collect());
    for column in &columns {
        simplex.add(&column.entries, to_finite(&column.gain));
    }
    simplex.start(basis);
    let mut program = Program {
        bounds,
        columns,
        simplex,
    };
    program.search(pricing);
    let corner = match program.near()? {
        Some(corner) => corner,
        None => program.regular(basis.to_vec())?,
    };
    program.optimum(corner, pricing)
}

/// A program with the columns known so far. Variables are numbered: first a slack for each row,
/// then the columns.
struct Program<'a, T> {
    bounds: &'a [Fraction],
    columns: Vec<Column<T>>,
    /// The same in floating-point numbers.
    simplex: Simplex,
}

/// A basis, solved in exact numbers.
struct Corner {
    basis: Vec<usize>,
    solver: Basis,
    values: Vec<Fraction>,
    prices: Vec<Fraction>,
    /// What is gained.
    value: Fraction,
}

impl<T: Clone> Program<'_, T> {
    /// The method in floating-point numbers.
    fn search(&mut self, pricing: &mut impl Pricing<T>) {
        let columns = &mut self.columns;
        self.simplex.solve(|simplex| {
            let prices: Vec<f64> = simplex.prices().iter().map(|p| p.max(0.0)).collect();
            for column in pricing.improve(&prices) {
                add(columns, simplex, column, &prices, |c| to_finite(&c.gain));
            }
        });
    }

    /// The method in floating-point numbers once more, from an exact basis, with gains reduced by
    /// its exact prices: what is left to gain may be tiny beside the gains themselves, and is
    /// seen only so.
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
                let all = Fraction::try_from(*p).unwrap_or_default() + exact;
                all.max(Fraction::ZERO)
            });
            let (scaled, denominator) = over_common(&all.collect::<Vec<_>>());
            for column in pricing.improve_exactly(&scaled, &denominator) {
                add(columns, simplex, column, &prices, reduced);
            }
        });
    }

    /// A basis whose values are not negative, a few dual steps from the floating-point method's at
    /// most; none if that leads nowhere.
    fn near(&self) -> Result<Option<Corner>> {
        let mut basis = self.simplex.basis().to_vec();
        for _ in 0..=self.bounds.len() {
            let Some(corner) = self.corner(basis)? else {
                return Ok(None);
            };
            let Some(out) = max_negative(&corner.values) else {
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

    /// Exchanges columns of a basis, whose values are not negative, for better ones until it is
    /// optimal.
    ///
    /// That comes to an end: between two bases that gain more than all before there are only so
    /// many that the floating-point method leads to, and else exact steps, whose rule lets none
    /// come twice.
    fn optimum(&mut self, mut corner: Corner, pricing: &mut impl Pricing<T>) -> Result<Optimum<T>> {
        let rows = self.bounds.len();
        // In a row: exact steps, and floating-point searches, that gained nothing.
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

    /// A basis that is not singular, solved.
    fn regular(&self, basis: Vec<usize>) -> Result<Corner> {
        let corner = self.corner(basis)?;
        corner.ok_or_else(|| Error::system("the linear program's basis is singular"))
    }

    /// The basis, solved; none if it is singular.
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

    /// A variable that gains more than it costs: a slack, a known column, or a new one; the first
    /// one of the known ones, or the one that gains most.
    fn entering(
        &mut self,
        prices: &[Fraction],
        first: bool,
        pricing: &mut impl Pricing<T>,
    ) -> Option<usize> {
        let negative = |p: &Fraction| *p < Fraction::ZERO;
        let slack = match first {
            true => prices.iter().position(negative),
            false => max_negative(prices),
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

    /// The variable that takes the place of the negative one at `out`, so that no column comes to
    /// gain more than it costs; none if there is none among the known ones.
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
            if best.as_ref().is_none_or(|(least, _)| ratio < *least) {
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

/// Adds a column, unless it does not gain or is known: it would only make every step longer.
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

/// Where the most negative number is, if there is any.
fn max_negative(values: &[Fraction]) -> Option<usize> {
    let negative = values.iter().enumerate();
    let negative = negative.filter(|(_, v)| **v < Fraction::ZERO);
    negative.min_by(|a, b| a.1.cmp(b.1)).map(|(i, _)| i)
}

#[cfg(test)]
mod tests;
