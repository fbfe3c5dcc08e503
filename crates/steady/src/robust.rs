//! Computes the throughput that a schedule still guarantees when costs drift.
//!
//! Model: the cost of every edge may take any value between its nominal cost `c` and `c (1 + d)`,
//! independently of other edges; `d` is the drift of the edge. A schedule keeps its routes, its
//! slots and their order, and a slot lasts until its slowest transfer ends. Under the worst costs,
//! all at their upper ends, slot `m` lasts `1 + max of d over its edges` times as long. A schedule
//! with rates `x` and slots `y` therefore guarantees
//!
//! ```text
//! sum of x / sum over m of y_m (1 + max of d over the edges of m)
//! ```
//!
//! The best guaranteed throughput of any schedule is the optimal throughput of the platform with
//! all costs at their upper ends. No schedule does better under these costs. The optimal schedule
//! for them does as well under all other costs, since shorter transfers end no later. The optimum
//! is the same linear program with other costs. Where all drifts are equal, the nominal schedule is
//! as good.

use super::fraction::{Fraction, sum, whole};
use super::problem::{Solution, solve};
use super::solve::SolveMethod;
use oneport::error::{Error, Result};

/// Guarantees under costs that drift independently of one another, each up to its edge's drift.
#[derive(Debug, Clone)]
pub struct Robustness {
    /// The throughput that the given solution guarantees, in operations per time unit.
    pub guaranteed: Fraction,
    /// The largest guaranteed throughput of any schedule.
    pub best_guaranteed: Fraction,
    /// The solution that guarantees `best_guaranteed`; its costs are the upper ends.
    pub best: Solution,
}

impl Solution {
    /// Computes the throughput that this solution guarantees when costs drift, and the best
    /// guarantee of any schedule, which takes one [`solve`]. `drift` is the drift of edges without
    /// their own, relative to their cost.
    ///
    /// # Errors
    /// When the drift is negative, and those of [`solve`].
    pub fn robustness(&self, drift: &Fraction) -> Result<Robustness> {
        if *drift < Fraction::ZERO {
            return Err(Error::usage("a drift cannot be negative"));
        }
        let platform = &self.platform;
        let edges = platform.edges();
        // Only edges drift; the cost of combining is fixed.
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
        let upper = upper.turned_if(self.is_reversed());
        let best = solve(&upper, self.operation, self.ports, SolveMethod::Ports)?;
        Ok(Robustness {
            guaranteed,
            best_guaranteed: best.throughput.clone(),
            best,
        })
    }
}
