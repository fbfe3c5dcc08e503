//! Generates the columns that matter, by an interior-point method: clarabel solves the program with
//! the known columns, and its prices generate more.
//!
//! Every round solves a program from scratch, which is fast while there are few rows and columns.
//! If there are too many, or if the solver gives up, the columns so far are a good start for the
//! simplex method.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{
    DefaultSettings, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus, SupportedConeT,
};

use super::super::fraction::{Fraction, to_finite};
use super::Column;
use super::float::Scaled;

/// Limits of the rounds of pricing, and of the rows and columns of a program, beyond which this
/// method does not pay.
const MAX_ROUNDS: usize = 100;
const MAX_ROWS: usize = 1000;
const MAX_COLUMNS: usize = 4000;
/// The relative amount by which the gain of a column must exceed its cost.
const TINY: f64 = 1e-7;

/// Adds columns from `more`, which receives prices of the rows, until none gains more than it
/// costs.
pub(super) fn generate<T: Clone>(
    bounds: &[Fraction],
    columns: &mut Vec<Column<T>>,
    mut more: impl FnMut(&[f64]) -> Vec<Column<T>>,
) {
    if bounds.len() > MAX_ROWS {
        return;
    }
    let bounds: Vec<f64> = bounds.iter().map(to_finite).collect();
    let scale = |c: &Column<T>| Scaled::new(&c.entries, to_finite(&c.gain));
    let mut scaled: Vec<Scaled> = columns.iter().map(scale).collect();
    for _ in 0..MAX_ROUNDS {
        if scaled.len() > MAX_COLUMNS {
            return;
        }
        let Some(prices) = prices(&bounds, &scaled) else {
            return;
        };
        let most = scaled.iter().map(|c| c.gain.abs()).fold(0.0, f64::max);
        let mut any = false;
        for column in more(&prices) {
            let new = scale(&column);
            let cost: f64 = new.entries.iter().map(|(r, a)| a * prices[*r]).sum();
            if new.gain - cost > TINY * most.max(new.gain.abs()) && !scaled.contains(&new) {
                scaled.push(new);
                columns.push(column);
                any = true;
            }
        }
        if !any {
            return;
        }
    }
}

/// Returns the best prices of the rows for these columns; `None` if the solver does not find them.
fn prices(bounds: &[f64], columns: &[Scaled]) -> Option<Vec<f64>> {
    let (rows, n) = (bounds.len(), columns.len());
    // `minimise -gains * x` under `columns * x + s = bounds` and `-x + s = 0`, `s >= 0`.
    let (mut starts, mut places, mut values) = (vec![0], Vec::new(), Vec::new());
    for (j, column) in columns.iter().enumerate() {
        for &(row, a) in &column.entries {
            places.push(row);
            values.push(a);
        }
        places.push(rows + j);
        values.push(-1.0);
        starts.push(places.len());
    }
    let matrix = CscMatrix::new(rows + n, n, starts, places, values);
    let none = CscMatrix::zeros((n, n));
    let gains: Vec<f64> = columns.iter().map(|c| -c.gain).collect();
    let right: Vec<f64> = bounds.iter().copied().chain(vec![0.0; n]).collect();
    let cones: [SupportedConeT<f64>; 1] = [NonnegativeConeT(rows + n)];
    let settings = DefaultSettings {
        verbose: false,
        ..DefaultSettings::default()
    };
    let mut solver = DefaultSolver::new(&none, &gains, &matrix, &right, &cones, settings).ok()?;
    solver.solve();
    let solution = solver.solution;
    let solved = matches!(
        solution.status,
        SolverStatus::Solved | SolverStatus::AlmostSolved
    );
    let prices = solution.z.get(..rows).filter(|_| solved)?;
    Some(prices.iter().map(|z| z.max(0.0)).collect())
}
