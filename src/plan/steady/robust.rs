//! What a schedule still guarantees when costs drift.
//!
//! Model: every edge's cost may be anything between its nominal cost `c` and `c (1 + d)`, each edge
//! on its own; `d` is the edge's drift. A schedule keeps its routes, its slots and their order; a
//! slot lasts until the slowest of its transfers has ended. Under the worst costs, all at their
//! upper ends, slot `m` is `1 + max of d over its edges` times as long, so that a schedule with
//! rates `x` and slots `y` guarantees
//!
//! ```text
//! sum of x / sum over m of y_m (1 + max of d over the edges of m)
//! ```
//!
//! The best guaranteed throughput of any schedule is the optimal throughput of the platform with
//! all costs at their upper ends: none can do better there, and the optimal schedule for it does as
//! well everywhere else, since shorter transfers end no later. That is the same linear program with
//! other costs. Where all drifts are equal the nominal schedule is as good.

use super::fraction::{Fraction, sum, whole};
use super::problem::{Solution, solve};
use super::solve::Method;
use crate::error::{Error, Result};

/// Guarantees under drifting costs; see the model in the source file's header: costs vary on their
/// own, up to their drift.
#[derive(Debug, Clone)]
pub struct Robustness {
    /// Throughput that the given solution guarantees.
    pub guaranteed: Fraction,
    /// The largest guaranteed throughput of any schedule.
    pub best_guaranteed: Fraction,
    /// The solution that guarantees it: its costs are the upper ends.
    pub best: Solution,
}

impl Solution {
    /// What this solution guarantees when costs drift, and the best that any does. Edges without a
    /// drift of their own have `drift`.
    ///
    /// # Errors
    /// When the drift is negative.
    pub fn robustness(&self, drift: &Fraction) -> Result<Robustness> {
        if *drift < Fraction::ZERO {
            return Err(Error::usage("a drift cannot be negative"));
        }
        let platform = &self.platform;
        let edges = platform.edges();
        // Combining does not drift.
        let none = Fraction::ZERO;
        let of = |e: usize| match edges.get(e) {
            Some(edge) => edge.drift.as_ref().unwrap_or(drift),
            None => &none,
        };
        let lengths = self.slots.iter().map(|slot| {
            let most = slot.edges.iter().map(|&e| of(e)).max();
            &slot.share * (whole(1) + most.unwrap_or(&Fraction::ZERO))
        });
        let guaranteed = &self.throughput / sum(lengths);
        let upper = platform.with_costs(|e, edge| &edge.cost * (whole(1) + of(e)))?;
        let upper = if self.is_reversed() {
            upper.reversed()
        } else {
            upper
        };
        let best = solve(&upper, self.operation, self.ports, Method::Ports)?;
        Ok(Robustness {
            guaranteed,
            best_guaranteed: best.throughput.clone(),
            best,
        })
    }
}
