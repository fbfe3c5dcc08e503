//! The revised simplex method in floating-point numbers.
//!
//! Columns are scaled to a greatest entry of 1, and gains to at most 1. The bounds are enlarged a little, by random amounts: many
//! are zero, and without that the method would walk on the spot. At the end the true bounds come back, with dual steps where
//! values become negative.

use super::super::fraction::to_f64;
use super::Column;
use crate::error::{Error, Result};

/// What counts as zero.
const TINY: f64 = 1e-9;
/// Smaller pivots are not taken.
const PIVOT: f64 = 1e-6;
/// How much bounds are enlarged, at first and later.
const SHIFTS: [f64; 3] = [1e-2, 1e-4, 1e-6];
/// Steps after which new columns are asked for, at the latest.
const PATIENCE: usize = 25;
/// Steps after which the inverse is computed anew.
const FRESH: usize = 120;

pub(super) struct Simplex {
    rows: usize,
    bounds: Vec<f64>,
    noise: Vec<f64>,
    /// The bounds in use.
    shifted: Vec<f64>,
    columns: Vec<Scaled>,
    /// The variable of each row.
    basis: Vec<usize>,
    basic: Vec<bool>,
    /// Inverse of the basis, by rows.
    inverse: Vec<f64>,
    values: Vec<f64>,
    prices: Vec<f64>,
    steps: usize,
}

struct Scaled {
    gain: f64,
    entries: Vec<(usize, f64)>,
}

impl Simplex {
    pub(super) fn new(bounds: Vec<f64>) -> Simplex {
        let rows = bounds.len();
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let noise: Vec<f64> = (0..rows).map(|_| 1.0 + random.next()).collect();
        let mut inverse = vec![0.0; rows * rows];
        for i in 0..rows {
            inverse[i * rows + i] = 1.0;
        }
        Simplex {
            rows,
            values: bounds.clone(),
            shifted: bounds.clone(),
            bounds,
            noise,
            columns: Vec::new(),
            basis: (0..rows).collect(),
            basic: vec![true; rows],
            inverse,
            prices: vec![0.0; rows],
            steps: 0,
        }
    }

    /// Starts from these variables, one for each row.
    pub(super) fn start(&mut self, basis: &[usize]) {
        self.basis = basis.to_vec();
        self.basic.fill(false);
        for &v in basis {
            self.basic[v] = true;
        }
    }

    pub(super) fn basis(&self) -> &[usize] {
        &self.basis
    }

    /// Adds a column.
    pub(super) fn add<T>(&mut self, column: &Column<T>) {
        let entries: Vec<(usize, f64)> = (column.entries.iter())
            .map(|(row, a)| (*row, to_f64(a)))
            .collect();
        let most = entries.iter().fold(0.0f64, |m, (_, a)| m.max(a.abs()));
        let scale = if most > 0.0 { 1.0 / most } else { 1.0 };
        self.columns.push(Scaled {
            gain: to_f64(&column.gain) * scale,
            entries: entries.into_iter().map(|(r, a)| (r, a * scale)).collect(),
        });
        self.basic.push(false);
    }

    /// Solves the program, with columns from `more` at prices of the rows.
    pub(super) fn solve<T>(
        &mut self,
        mut more: impl FnMut(&[f64]) -> Vec<Column<T>>,
    ) -> Result<()> {
        for shift in SHIFTS {
            self.enlarge(shift)?;
            self.optimise(&mut more)?;
        }
        for _ in 0..10 {
            self.enlarge(0.0)?;
            if !self.ask(&mut more) {
                break;
            }
            self.enlarge(SHIFTS[SHIFTS.len() - 1])?;
            self.optimise(&mut more)?;
        }
        Ok(())
    }

    /// Takes the bounds enlarged by `shift`, and a basis without negative values for them.
    fn enlarge(&mut self, shift: f64) -> Result<()> {
        let most = self.bounds.iter().fold(0.0f64, |m, b| m.max(b.abs()));
        let scale = |b: f64| if b == 0.0 { most } else { b.abs() };
        let bounds = self.bounds.iter().zip(&self.noise);
        self.shifted = bounds.map(|(&b, n)| b + shift * n * scale(b)).collect();
        self.refresh()?;
        self.restore()?;
        Ok(())
    }

    /// Asks for more columns; whether one gains more than it costs.
    fn ask<T>(&mut self, more: &mut impl FnMut(&[f64]) -> Vec<Column<T>>) -> bool {
        let prices: Vec<f64> = self.prices.iter().map(|p| p.max(0.0)).collect();
        let known = self.columns.len();
        for column in more(&prices) {
            self.add(&column);
        }
        self.entering(known).is_some()
    }

    /// Primal steps until no column gains more than it costs.
    fn optimise<T>(&mut self, more: &mut impl FnMut(&[f64]) -> Vec<Column<T>>) -> Result<()> {
        let most_steps = 2000 * (self.rows + 100);
        let mut asked = 0;
        for step in 0..most_steps {
            if step - asked >= PATIENCE {
                asked = step;
                self.ask(more);
            }
            if let Some((variable, excess)) = self.entering(0) {
                self.enter(variable, excess)?;
                continue;
            }
            asked = step;
            if !self.ask(more) {
                return Ok(());
            }
        }
        // What is left to do is done exactly.
        Ok(())
    }

    fn scale_of_gains(&self) -> f64 {
        let gains = self.columns.iter().map(|c| c.gain);
        gains.fold(0.0, f64::max).max(f64::MIN_POSITIVE)
    }

    /// The variable that gains most beyond its cost, of the slacks and the columns from `first` on.
    fn entering(&self, first: usize) -> Option<(usize, f64)> {
        let mut best = (None, TINY * self.scale_of_gains());
        for row in 0..self.rows {
            if !self.basic[row] && -self.prices[row] > best.1 {
                best = (Some(row), -self.prices[row]);
            }
        }
        for (i, column) in self.columns.iter().enumerate().skip(first) {
            let v = self.rows + i;
            if self.basic[v] {
                continue;
            }
            let cost: f64 = (column.entries.iter())
                .map(|(r, a)| a * self.prices[*r])
                .sum();
            if column.gain - cost > best.1 {
                best = (Some(v), column.gain - cost);
            }
        }
        best.0.map(|v| (v, best.1))
    }

    fn entries(&self, variable: usize) -> &[(usize, f64)] {
        match variable.checked_sub(self.rows) {
            None => &[],
            Some(c) => &self.columns[c].entries,
        }
    }

    /// The inverse times the variable's column.
    fn direction(&self, variable: usize) -> Vec<f64> {
        let rows = self.rows;
        if variable < rows {
            return (0..rows)
                .map(|i| self.inverse[i * rows + variable])
                .collect();
        }
        let entries = self.entries(variable);
        let row = |i: usize| {
            let row = &self.inverse[i * rows..(i + 1) * rows];
            entries.iter().map(|(r, a)| a * row[*r]).sum()
        };
        (0..rows).map(row).collect()
    }

    fn enter(&mut self, variable: usize, excess: f64) -> Result<()> {
        let direction = self.direction(variable);
        // Of the rows that would leave almost first, the one with the largest pivot (Harris 1973).
        let rows = direction.iter().enumerate().filter(|(_, d)| **d > PIVOT);
        let ratio = |i: usize, d: f64, slack: f64| (self.values[i].max(0.0) + slack) / d;
        let least = rows
            .clone()
            .fold(f64::INFINITY, |m, (i, &d)| m.min(ratio(i, d, TINY)));
        let best = rows
            .filter(|&(i, &d)| ratio(i, d, 0.0) <= least)
            .max_by(|a, b| a.1.total_cmp(b.1));
        let Some((out, _)) = best else {
            return Err(Error::system("the linear program is unbounded"));
        };
        self.exchange(out, variable, &direction, excess)
    }

    /// Puts `variable` into the place of the one at `out`.
    fn exchange(
        &mut self,
        out: usize,
        variable: usize,
        direction: &[f64],
        excess: f64,
    ) -> Result<()> {
        let rows = self.rows;
        let pivot = direction[out];
        let step = self.values[out] / pivot;
        let mut row = self.inverse[out * rows..(out + 1) * rows].to_vec();
        for (price, r) in self.prices.iter_mut().zip(&row) {
            *price += excess / pivot * r;
        }
        for r in &mut row {
            *r /= pivot;
        }
        for (i, &d) in direction.iter().enumerate() {
            if i == out || d == 0.0 {
                continue;
            }
            self.values[i] -= step * d;
            let target = &mut self.inverse[i * rows..(i + 1) * rows];
            for (t, r) in target.iter_mut().zip(&row) {
                *t -= d * r;
            }
        }
        self.inverse[out * rows..(out + 1) * rows].copy_from_slice(&row);
        self.values[out] = step;
        self.basic[self.basis[out]] = false;
        self.basic[variable] = true;
        self.basis[out] = variable;
        self.steps += 1;
        if self.steps.is_multiple_of(FRESH) {
            self.refresh()?;
        }
        Ok(())
    }

    /// Computes inverse, values and prices anew.
    fn refresh(&mut self) -> Result<()> {
        let n = self.rows;
        // Gauss-Jordan on [basis | identity]; both by rows.
        let mut matrix = vec![0.0; n * n];
        for (place, &v) in self.basis.iter().enumerate() {
            if v < n {
                matrix[v * n + place] = 1.0;
            }
            for &(r, a) in self.entries(v) {
                matrix[r * n + place] = a;
            }
        }
        let mut inverse = vec![0.0; n * n];
        for i in 0..n {
            inverse[i * n + i] = 1.0;
        }
        for k in 0..n {
            let largest =
                (k..n).max_by(|&a, &b| matrix[a * n + k].abs().total_cmp(&matrix[b * n + k].abs()));
            let at = largest.unwrap_or(k);
            let pivot = matrix[at * n + k];
            if pivot.abs() < 1e-12 {
                return Err(Error::system("the linear program's basis is singular"));
            }
            if at != k {
                for j in 0..n {
                    matrix.swap(at * n + j, k * n + j);
                    inverse.swap(at * n + j, k * n + j);
                }
            }
            for j in k..n {
                matrix[k * n + j] /= pivot;
            }
            for j in 0..n {
                inverse[k * n + j] /= pivot;
            }
            let matrix_row = matrix[k * n..(k + 1) * n].to_vec();
            let inverse_row = inverse[k * n..(k + 1) * n].to_vec();
            for i in 0..n {
                let factor = matrix[i * n + k];
                if i == k || factor == 0.0 {
                    continue;
                }
                for j in k..n {
                    matrix[i * n + j] -= factor * matrix_row[j];
                }
                let target = &mut inverse[i * n..(i + 1) * n];
                for (t, r) in target.iter_mut().zip(&inverse_row) {
                    *t -= factor * r;
                }
            }
        }
        self.inverse = inverse;
        self.values = (0..n)
            .map(|i| {
                let row = &self.inverse[i * n..(i + 1) * n];
                row.iter().zip(&self.shifted).map(|(a, b)| a * b).sum()
            })
            .collect();
        self.prices = vec![0.0; n];
        for (place, &v) in self.basis.iter().enumerate() {
            let Some(c) = v.checked_sub(n) else { continue };
            let gain = self.columns[c].gain;
            let row = &self.inverse[place * n..(place + 1) * n];
            for (price, r) in self.prices.iter_mut().zip(row) {
                *price += gain * r;
            }
        }
        Ok(())
    }

    /// Dual steps until no value is negative; whether there were any.
    fn restore(&mut self) -> Result<bool> {
        let mut any = false;
        for _ in 0..20 * (self.rows + 10) {
            let negative =
                (0..self.rows).min_by(|&a, &b| self.values[a].total_cmp(&self.values[b]));
            let Some(out) = negative.filter(|&i| self.values[i] < -TINY) else {
                break;
            };
            let row = self.inverse[out * self.rows..(out + 1) * self.rows].to_vec();
            let mut candidates: Vec<(f64, f64, usize, f64)> = Vec::new();
            for v in 0..self.rows + self.columns.len() {
                if self.basic[v] {
                    continue;
                }
                let (change, excess) = match v.checked_sub(self.rows) {
                    None => (row[v], -self.prices[v]),
                    Some(c) => {
                        let column = &self.columns[c];
                        let along = |by: &[f64]| -> f64 {
                            column.entries.iter().map(|(r, a)| a * by[*r]).sum()
                        };
                        (along(&row), column.gain - along(&self.prices))
                    }
                };
                if change < -PIVOT {
                    candidates.push(((-excess).max(0.0), -change, v, excess));
                }
            }
            let slack = TINY * self.scale_of_gains();
            let least = (candidates.iter()).fold(f64::INFINITY, |m, (short, change, ..)| {
                m.min((short + slack) / change)
            });
            let best = (candidates.into_iter())
                .filter(|(short, change, ..)| short / change <= least)
                .max_by(|a, b| a.1.total_cmp(&b.1));
            // Without an entering column the exact steps have the last word.
            let Some((_, _, variable, excess)) = best else {
                break;
            };
            let direction = self.direction(variable);
            if direction[out].abs() < PIVOT {
                break;
            }
            self.exchange(out, variable, &direction, excess)?;
            any = true;
        }
        Ok(any)
    }
}

/// Numbers between 0 and 1, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}
