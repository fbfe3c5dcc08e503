//! Linear programs with columns made on demand, solved exactly.
//!
//! `maximise gains * x` under `columns * x <= bounds`, `x >= 0`, with bounds that are not negative (so that `x = 0` is where to
//! start). Columns come from a [`Pricing`], which is asked, at given prices of the rows, for columns that gain more than they cost.
//!
//! 1. An interior-point solver, clarabel, finds the columns that matter ([`interior`]): its prices lie in the middle of those that are possible,
//!    so that few rounds of pricing are needed.
//! 2. It knows no basis. A revised simplex method in floating-point numbers finds one among these columns ([`float`]), and asks for more
//!    where some are missing.
//! 3. The basis is solved in exact numbers, for the values and for the prices ([`exact`]), and both are checked exactly: values not
//!    negative, and no column, of those known or of those that the pricing can make, gains more than it costs. If something is
//!    wrong, exact simplex steps go on from there.
//!
//! So rounding errors cost time at most; the outcome does not depend on them.
//!
//! A basis is what the third part stands on, and the kept solvers in pure Rust have none: they give no prices, or follow the interior;
//! hence the second part. (An interior solution does not name a basis where optima are many, as they are here: it lies in the middle of all of
//! them, with more routes and slots above 0 than there are rows, and with prices above 0 on more rows than are needed. To come from there to a
//! corner means to push one variable after the other to a bound, and each push exchanges columns of a basis: that is the simplex
//! method again, and in exact numbers, where every exchange needs the basis to be solved anew, far slower than in floating-point ones.) It would do without the first,
//! but the interior's prices find other columns: on one random platform of 100 nodes and 500 links (`random:100:500`, bidirectional) 2 trees and 41
//! matchings with a period of 16, where the second part alone found 31 and 327, and a period to be rounded. `cargo bench --bench steady`
//! takes 1.4 s of processor time with it.

mod exact;
mod float;
mod interior;

use dashu_int::{IBig, UBig};

use super::fraction::{Fraction, over_common, sum, to_f64, whole};
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
    pub(super) what: T,
}

impl<T> Column<T> {
    /// Whether both gain and take the same.
    fn is_like(&self, other: &Column<T>) -> bool {
        self.gain == other.gain && self.entries == other.entries
    }
}

/// Makes columns.
pub(super) trait Pricing<T> {
    /// Columns that gain more than they cost at these prices of the rows, the better ones first; such as do not are ignored.
    fn improve(&mut self, prices: &[f64]) -> Vec<Column<T>>;

    /// The same exactly, the prices being `prices / denominator`. If there is any such column, one is given.
    fn improve_exactly(&mut self, prices: &[IBig], denominator: &UBig) -> Vec<Column<T>>;
}

/// No columns but those given.
#[cfg(test)]
#[derive(Debug)]
pub(super) struct Closed;

#[cfg(test)]
impl<T> Pricing<T> for Closed {
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
    /// Prices of the rows (not negative): `prices * bounds = value`, and no column gains more than it costs.
    pub(super) prices: Vec<Fraction>,
}

/// Exact steps after which something must be wrong with the program.
const MOST_EXACT_STEPS: usize = 10_000;

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

/// As [`maximise`], with bounds of any sign, from a basis of columns whose values are not negative (numbered as in the outcome of
/// the method: slacks first).
pub(super) fn maximise_from<T: Clone>(
    bounds: &[Fraction],
    columns: Vec<Column<T>>,
    basis: &[usize],
    pricing: &mut impl Pricing<T>,
) -> Result<Optimum<T>> {
    let mut columns = columns;
    interior::generate(bounds, &mut columns, |prices| pricing.improve(prices));
    let mut simplex = Simplex::new(bounds.iter().map(to_f64).collect());
    for column in &columns {
        simplex.add(column);
    }
    simplex.start(basis);
    simplex.solve(|prices| {
        let mut new = pricing.improve(prices);
        // What does not gain, or is known, would only make every step longer.
        new.retain(|column| {
            let cost = column.entries.iter().map(|(r, a)| to_f64(a) * prices[*r]);
            cost.sum::<f64>() < to_f64(&column.gain) && !columns.iter().any(|c| c.is_like(column))
        });
        columns.extend(new.iter().cloned());
        new
    })?;
    let mut program = Program { bounds, columns };
    let mut basis = simplex.basis().to_vec();
    for _ in 0..MOST_EXACT_STEPS {
        match program.step(&mut basis, pricing)? {
            None => {}
            Some(optimum) => return Ok(optimum),
        }
    }
    Err(Error::system("the linear program did not come to an end"))
}

/// A program with the columns known so far. Variables are numbered: first a slack for each row, then the columns.
struct Program<'a, T> {
    bounds: &'a [Fraction],
    columns: Vec<Column<T>>,
}

impl<T: Clone> Program<'_, T> {
    /// Proves the basis to be optimal, or exchanges one of its columns for a better one.
    fn step(
        &mut self,
        basis: &mut [usize],
        pricing: &mut impl Pricing<T>,
    ) -> Result<Option<Optimum<T>>> {
        let rows = self.bounds.len();
        let solver = Basis::new(rows, &self.basic_entries(basis))
            .ok_or_else(|| Error::system("the linear program's basis is singular"))?;
        let bounds: Vec<(usize, Fraction)> = self.bounds.iter().cloned().enumerate().collect();
        let values = solver.values(&bounds)?;
        let gains: Vec<Fraction> = basis.iter().map(|&v| self.gain(v)).collect();
        let prices = solver.prices(&gains)?;
        if let Some(out) = most_negative(&values) {
            let entering = self.dual_step(&solver, out, basis, &prices)?;
            basis[out] = entering;
            return Ok(None);
        }
        let entering = match most_negative(&prices) {
            Some(slack) => Some(slack),
            None => self.entering(&prices, pricing),
        };
        let Some(entering) = entering else {
            let used = basis.iter().zip(&values);
            let used = used.filter(|(v, x)| **v >= rows && !x.is_zero());
            return Ok(Some(Optimum {
                value: sum(prices.iter().zip(self.bounds).map(|(p, b)| p * b)),
                used: used
                    .map(|(v, x)| (self.columns[v - rows].what.clone(), x.clone()))
                    .collect(),
                prices,
            }));
        };
        let direction = solver.values(&self.entries(entering))?;
        let leaving = (0..rows)
            .filter(|&i| direction[i] > Fraction::ZERO)
            .map(|i| (&values[i] / &direction[i], basis[i], i))
            .min();
        let Some((_, _, out)) = leaving else {
            return Err(Error::system("the linear program is unbounded"));
        };
        basis[out] = entering;
        Ok(None)
    }

    /// A column that gains more than it costs: a known one, or a new one.
    fn entering(&mut self, prices: &[Fraction], pricing: &mut impl Pricing<T>) -> Option<usize> {
        let best = |columns: &[Column<T>]| {
            let excess = |c: &Column<T>| {
                let cost = sum(c.entries.iter().map(|(r, a)| a * &prices[*r]));
                &c.gain - cost
            };
            let all = columns.iter().enumerate().map(|(i, c)| (excess(c), i));
            all.filter(|(e, _)| *e > Fraction::ZERO).max()
        };
        let rows = self.bounds.len();
        if let Some((_, known)) = best(&self.columns) {
            return Some(rows + known);
        }
        let (scaled, denominator) = over_common(prices);
        let new = pricing.improve_exactly(&scaled, &denominator);
        let (_, i) = best(&new)?;
        self.columns.push(new[i].clone());
        Some(rows + self.columns.len() - 1)
    }

    /// The variable that takes the place of the negative one at `out`, so that no column comes to gain more than it costs.
    fn dual_step(
        &self,
        solver: &Basis,
        out: usize,
        basis: &[usize],
        prices: &[Fraction],
    ) -> Result<usize> {
        let rows = self.bounds.len();
        let mut unit = vec![Fraction::ZERO; rows];
        unit[out] = Fraction::ONE;
        let row = solver.prices(&unit)?;
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
        best.map(|(_, v)| v)
            .ok_or_else(|| Error::system("the linear program has no solution"))
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

    fn basic_entries(&self, basis: &[usize]) -> Vec<Vec<(usize, Fraction)>> {
        basis.iter().map(|&v| self.entries(v)).collect()
    }
}

/// Where the most negative number is, if there is any.
fn most_negative(values: &[Fraction]) -> Option<usize> {
    let negative = values.iter().enumerate();
    let negative = negative.filter(|(_, v)| **v < Fraction::ZERO);
    negative.min_by(|a, b| a.1.cmp(b.1)).map(|(i, _)| i)
}

#[cfg(test)]
mod tests;
