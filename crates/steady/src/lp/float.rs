//! The revised simplex method in floating-point numbers.
//!
//! - Scaling: columns are scaled to a largest entry of 1.
//! - Degeneracy: many bounds are zero, and the method would make steps without a gain. So bounds
//!   are enlarged slightly by random amounts. At the end the true bounds return, with dual steps
//!   where values become negative.
//! - Zero test: a sum counts as zero if it is tiny beside its terms, as the remainder may be a
//!   rounding error. This does not depend on the units of rows and columns, so their magnitudes may
//!   be very different.
//! - Failures: none. Where rounding errors leave no way to continue, the search ends with the
//!   current basis, and the exact method does the rest.

use super::super::fraction::{Fraction, to_finite};
use super::inverse::inverted;

/// A sum counts as zero below this fraction of its terms.
const TINY: f64 = 1e-9;
/// Smallest pivot of a step, as a fraction of the terms of its sum.
const MIN_PIVOT: f64 = 1e-6;
/// Relative enlargements of the bounds, one after the other.
const SHIFTS: [f64; 3] = [1e-2, 1e-4, 1e-6];
/// Limit of the steps between two requests for new columns.
const MAX_STEPS_BETWEEN_REQUESTS: usize = 25;
/// Number of steps after which the inverse is recomputed.
const REFRESH_STEPS: usize = 120;

#[derive(Default)]
pub(super) struct Simplex {
    rows: usize,
    /// A basis whose values are known. At first these are all slacks, and the values are the
    /// bounds.
    origin: Vec<usize>,
    known: Vec<f64>,
    noise: Vec<f64>,
    /// Enlargements of the known values, one after the other.
    shifts: &'static [f64],
    /// The enlarged known values.
    shifted: Vec<f64>,
    slack_gains: Vec<f64>,
    columns: Vec<Scaled>,
    /// The variable of each row.
    basis: Vec<usize>,
    basic: Vec<bool>,
    /// The last basis whose inverse was recomputed.
    last_refreshed: Vec<usize>,
    /// Variables without a usable pivot, until the inverse is recomputed.
    barred: Vec<usize>,
    /// The inverse of the basis, by rows.
    inverse: Vec<f64>,
    values: Vec<f64>,
    /// Magnitudes of the terms of the values.
    value_sizes: Vec<f64>,
    prices: Vec<f64>,
    /// Magnitudes of the terms of the prices.
    price_sizes: Vec<f64>,
    steps: usize,
}

/// A column, scaled to a largest entry of 1.
#[derive(PartialEq)]
pub(super) struct Scaled {
    /// The factor that entries and gain were multiplied by.
    scale: f64,
    pub(super) gain: f64,
    pub(super) entries: Vec<(usize, f64)>,
}

impl Scaled {
    pub(super) fn new(entries: &[(usize, Fraction)], gain: f64) -> Scaled {
        let entries = entries.iter().map(|(row, a)| (*row, to_finite(a)));
        let entries: Vec<(usize, f64)> = entries.collect();
        let most = entries.iter().fold(0.0f64, |m, (_, a)| m.max(a.abs()));
        let scale = if most > 0.0 { 1.0 / most } else { 1.0 };
        Scaled {
            scale,
            gain: gain * scale,
            entries: entries.into_iter().map(|(r, a)| (r, a * scale)).collect(),
        }
    }
}

impl Simplex {
    pub(super) fn new(bounds: Vec<f64>) -> Simplex {
        let rows = bounds.len();
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let noise: Vec<f64> = (0..rows).map(|_| 1.0 + random.next()).collect();
        // What is missing here is computed when the search starts.
        Simplex {
            rows,
            origin: (0..rows).collect(),
            shifts: &SHIFTS,
            known: bounds,
            noise,
            slack_gains: vec![0.0; rows],
            basis: (0..rows).collect(),
            basic: vec![true; rows],
            last_refreshed: (0..rows).collect(),
            values: vec![0.0; rows],
            value_sizes: vec![0.0; rows],
            prices: vec![0.0; rows],
            price_sizes: vec![0.0; rows],
            ..Simplex::default()
        }
    }

    /// Starts from these variables, one for each row.
    pub(super) fn start(&mut self, basis: &[usize]) {
        self.last_refreshed = basis.to_vec();
        self.roll_back();
    }

    /// Starts from a basis with known values, and with other gains, by variable.
    pub(super) fn restart(&mut self, basis: &[usize], values: Vec<f64>, gains: &[f64]) {
        let (slacks, columns) = gains.split_at(self.rows);
        self.slack_gains = slacks.to_vec();
        for (column, gain) in self.columns.iter_mut().zip(columns) {
            column.gain = gain * column.scale;
        }
        self.origin = basis.to_vec();
        self.shifts = &SHIFTS[SHIFTS.len() - 1..];
        self.known = values;
        // The columns of the basis are scaled, so the values are too.
        for (&v, x) in basis.iter().zip(&mut self.known) {
            if let Some(c) = v.checked_sub(self.rows) {
                *x /= self.columns[c].scale;
            }
        }
        self.start(basis);
    }

    /// Returns to the last basis whose inverse was recomputed.
    fn roll_back(&mut self) {
        self.basis = self.last_refreshed.clone();
        self.basic.fill(false);
        for &v in &self.basis {
            self.basic[v] = true;
        }
    }

    pub(super) fn basis(&self) -> &[usize] {
        &self.basis
    }

    pub(super) fn prices(&self) -> &[f64] {
        &self.prices
    }

    pub(super) fn add(&mut self, entries: &[(usize, Fraction)], gain: f64) {
        self.columns.push(Scaled::new(entries, gain));
        self.basic.push(false);
    }

    /// Solves the program, as far as rounding errors allow. `more` adds columns that gain more than
    /// they cost.
    pub(super) fn solve(&mut self, mut more: impl FnMut(&mut Simplex)) {
        if self.search(&mut more).is_none() {
            self.roll_back();
        }
    }

    /// Runs the search; `None` if it reaches a basis that cannot be inverted.
    fn search(&mut self, more: &mut impl FnMut(&mut Simplex)) -> Option<()> {
        for &shift in self.shifts {
            self.enlarge(shift)?;
            self.optimise(more)?;
        }
        for _ in 0..10 {
            self.enlarge(0.0)?;
            if !self.request(more) {
                break;
            }
            self.enlarge(SHIFTS[SHIFTS.len() - 1])?;
            self.optimise(more)?;
        }
        Some(())
    }

    /// Enlarges the known values by `shift`, and finds a basis without negative values for them.
    fn enlarge(&mut self, shift: f64) -> Option<()> {
        let most = self.known.iter().fold(0.0f64, |m, b| m.max(b.abs()));
        let scale = |b: f64| if b == 0.0 { most } else { b.abs() };
        let known = self.known.iter().zip(&self.noise);
        self.shifted = known.map(|(&b, n)| b + shift * n * scale(b)).collect();
        self.refresh()?;
        self.restore()
    }

    /// Returns whether one of the columns that are added gains more than it costs.
    fn request(&mut self, more: &mut impl FnMut(&mut Simplex)) -> bool {
        let known = self.columns.len();
        more(self);
        self.entering(known).is_some()
    }

    /// Makes primal steps until no column gains more than it costs.
    fn optimise(&mut self, more: &mut impl FnMut(&mut Simplex)) -> Option<()> {
        let max_steps = 200 * (self.rows + 100);
        let mut requested = 0;
        for step in 0..max_steps {
            if step - requested >= MAX_STEPS_BETWEEN_REQUESTS {
                requested = step;
                self.request(more);
            }
            if let Some((variable, excess)) = self.entering(0) {
                self.enter(variable, excess)?;
                continue;
            }
            requested = step;
            if !self.request(more) {
                break;
            }
        }
        Some(())
    }

    /// Returns the variable of the largest gain beyond its cost, among the slacks and the columns
    /// from `first` on.
    fn entering(&self, first: usize) -> Option<(usize, f64)> {
        let slacks = (0..self.rows).filter(|v| !self.basic[*v]);
        let columns =
            (self.rows + first..self.rows + self.columns.len()).filter(|v| !self.basic[*v]);
        let mut best: Option<(usize, f64)> = None;
        for v in slacks.chain(columns) {
            let (excess, size) = self.excess(v);
            if excess > TINY * size
                && best.is_none_or(|(_, most)| excess > most)
                && !self.barred.contains(&v)
            {
                best = Some((v, excess));
            }
        }
        best
    }

    /// Returns the gain of a unit of the variable beyond its cost, and the magnitude of the terms.
    fn excess(&self, variable: usize) -> (f64, f64) {
        let Some(c) = variable.checked_sub(self.rows) else {
            let (gain, price) = (self.slack_gains[variable], self.prices[variable]);
            return (gain - price, gain.abs() + self.price_sizes[variable]);
        };
        let column = &self.columns[c];
        let (mut cost, mut size) = (0.0, column.gain.abs());
        for (r, a) in &column.entries {
            cost += a * self.prices[*r];
            size += a.abs() * self.price_sizes[*r];
        }
        (column.gain - cost, size)
    }

    /// Returns the product of a row with the variable's column, and the magnitude of its terms.
    fn along(&self, row: &[f64], variable: usize) -> (f64, f64) {
        match variable.checked_sub(self.rows) {
            None => (row[variable], row[variable].abs()),
            Some(c) => self.columns[c]
                .entries
                .iter()
                .fold((0.0, 0.0), |(sum, size), (r, a)| {
                    (sum + a * row[*r], size + (a * row[*r]).abs())
                }),
        }
    }

    /// Returns the inverse times the variable's column, and the magnitude of the terms.
    fn direction(&self, variable: usize) -> Vec<(f64, f64)> {
        let rows = (0..self.rows).map(|i| &self.inverse[i * self.rows..(i + 1) * self.rows]);
        rows.map(|row| self.along(row, variable)).collect()
    }

    fn enter(&mut self, variable: usize, excess: f64) -> Option<()> {
        let direction = self.direction(variable);
        // Of the rows that would leave almost first, the one with the largest pivot leaves (Harris
        // 1973).
        let rows = direction.iter().enumerate();
        let rows = rows.filter(|(_, (d, size))| *d > MIN_PIVOT * size);
        let ratio = |i: usize, d: f64, slack: f64| {
            (self.values[i].max(0.0) + slack * self.value_sizes[i]) / d
        };
        let min_ratio = rows
            .clone()
            .fold(f64::INFINITY, |m, (i, (d, _))| m.min(ratio(i, *d, TINY)));
        let best = rows
            .filter(|(i, (d, _))| ratio(*i, *d, 0.0) <= min_ratio)
            .max_by(|a, b| a.1.0.total_cmp(&b.1.0));
        let Some((out, _)) = best else {
            self.barred.push(variable);
            return Some(());
        };
        self.exchange(out, variable, &direction, excess)
    }

    fn exchange(
        &mut self,
        out: usize,
        variable: usize,
        direction: &[(f64, f64)],
        excess: f64,
    ) -> Option<()> {
        let rows = self.rows;
        let (pivot, _) = direction[out];
        let step = self.values[out] / pivot;
        let step_size = self.value_sizes[out] / pivot.abs();
        let mut row = self.inverse[out * rows..(out + 1) * rows].to_vec();
        let prices = self.prices.iter_mut().zip(&mut self.price_sizes);
        for ((price, size), r) in prices.zip(&row) {
            *price += excess / pivot * r;
            *size = size.max(price.abs());
        }
        for r in &mut row {
            *r /= pivot;
        }
        for (i, &(d, _)) in direction.iter().enumerate() {
            if i == out || d == 0.0 {
                continue;
            }
            self.values[i] -= step * d;
            self.value_sizes[i] = self.value_sizes[i].max(self.values[i].abs());
            let target = &mut self.inverse[i * rows..(i + 1) * rows];
            for (t, r) in target.iter_mut().zip(&row) {
                *t -= d * r;
            }
        }
        self.inverse[out * rows..(out + 1) * rows].copy_from_slice(&row);
        self.values[out] = step;
        self.value_sizes[out] = step_size;
        self.basic[self.basis[out]] = false;
        self.basic[variable] = true;
        self.basis[out] = variable;
        self.steps += 1;
        if self.steps.is_multiple_of(REFRESH_STEPS) {
            self.refresh()?;
        }
        Some(())
    }

    /// Recomputes inverse, values and prices; `None` if the basis has no inverse.
    fn refresh(&mut self) -> Option<()> {
        self.inverse = self.inverted_basis()?;
        self.last_refreshed.clone_from(&self.basis);
        self.barred.clear();
        self.refresh_values();
        self.refresh_prices();
        Some(())
    }

    fn inverted_basis(&self) -> Option<Vec<f64>> {
        let n = self.rows;
        let mut matrix = vec![0.0; n * n];
        for (place, &v) in self.basis.iter().enumerate() {
            match v.checked_sub(n) {
                None => matrix[v * n + place] = 1.0,
                Some(c) => {
                    for &(r, a) in &self.columns[c].entries {
                        matrix[r * n + place] = a;
                    }
                }
            }
        }
        inverted(n, matrix)
    }

    /// Recomputes the values of the basis from the enlarged known values.
    fn refresh_values(&mut self) {
        self.values.fill(0.0);
        self.value_sizes.fill(0.0);
        let mut place = vec![None; self.rows + self.columns.len()];
        for (i, &v) in self.basis.iter().enumerate() {
            place[v] = Some(i);
        }
        // A variable of the origin that is still in the basis keeps its value. The value of one
        // that has left is expressed in the variables of the current basis.
        for i in (0..self.rows).filter(|&i| self.shifted[i] != 0.0) {
            let value = self.shifted[i];
            if let Some(at) = place[self.origin[i]] {
                self.values[at] += value;
                self.value_sizes[at] += value.abs();
                continue;
            }
            for (at, (d, size)) in self.direction(self.origin[i]).into_iter().enumerate() {
                self.values[at] += value * d;
                self.value_sizes[at] += (value * size).abs();
            }
        }
    }

    /// Recomputes the prices of the rows from the gains of the basis.
    fn refresh_prices(&mut self) {
        let n = self.rows;
        self.prices.fill(0.0);
        self.price_sizes.fill(0.0);
        for (place, &v) in self.basis.iter().enumerate() {
            let gain = match v.checked_sub(n) {
                None => self.slack_gains[v],
                Some(c) => self.columns[c].gain,
            };
            if gain == 0.0 {
                continue;
            }
            let row = &self.inverse[place * n..(place + 1) * n];
            let prices = self.prices.iter_mut().zip(&mut self.price_sizes);
            for ((price, size), r) in prices.zip(row) {
                *price += gain * r;
                *size += (gain * r).abs();
            }
        }
    }

    /// Makes dual steps until no value is negative, as far as possible.
    fn restore(&mut self) -> Option<()> {
        for _ in 0..20 * (self.rows + 10) {
            let is_negative = |i: &usize| self.values[*i] < -TINY * self.value_sizes[*i];
            let negative = (0..self.rows).filter(is_negative);
            let Some(out) = negative.min_by(|&a, &b| self.values[a].total_cmp(&self.values[b]))
            else {
                break;
            };
            let row = &self.inverse[out * self.rows..(out + 1) * self.rows];
            // By candidate: its cost minus its gain, the tolerance of that, the change of the
            // value, the variable and its excess.
            let mut candidates: Vec<(f64, f64, f64, usize, f64)> = Vec::new();
            for v in (0..self.rows + self.columns.len()).filter(|&v| !self.basic[v]) {
                let (change, size) = self.along(row, v);
                if change < -MIN_PIVOT * size {
                    let (excess, terms) = self.excess(v);
                    candidates.push(((-excess).max(0.0), TINY * terms, -change, v, excess));
                }
            }
            let min_ratio = (candidates.iter())
                .fold(f64::INFINITY, |m, (short, slack, change, ..)| {
                    m.min((short + slack) / change)
                });
            let best = (candidates.into_iter())
                .filter(|(short, _, change, ..)| short / change <= min_ratio)
                .max_by(|a, b| a.2.total_cmp(&b.2));
            // Without an entering column the exact steps have to finish.
            let Some((_, _, _, variable, excess)) = best else {
                break;
            };
            let direction = self.direction(variable);
            let (pivot, size) = direction[out];
            if pivot.abs() <= MIN_PIVOT * size {
                break;
            }
            self.exchange(out, variable, &direction, excess)?;
        }
        Some(())
    }
}

/// Random numbers between 0 and 1, the same in every run (xorshift64, Marsaglia 2003). They decide
/// which of many optima the search ends in, so another generator would change trees and periods.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}
