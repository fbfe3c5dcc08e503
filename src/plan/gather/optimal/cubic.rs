//! The published dynamic program: every option of every range, in `O(p^3)`.
//!
//! It is correct for any costs that are the same on all links, and is the reference for the faster
//! one.

use super::table::RangeTimes;
use crate::plan::gather::GatherProblem;

pub(super) fn fill(problem: &GatherProblem, root: Option<usize>) -> RangeTimes<'_> {
    let mut table = RangeTimes::new(problem, root);
    for j in 1..problem.ranks() {
        for i in (0..j).rev() {
            let mut best = f64::INFINITY;
            table.options(i, j, |time, _| best = best.min(time));
            table.set(i, j, best);
        }
    }
    table
}
