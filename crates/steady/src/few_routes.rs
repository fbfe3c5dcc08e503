//! Solutions with few routes, so that a period starts few operations: the compact multicasts of
//! Beaumont, Marchal and Robert.
//!
//! To find the best few trees is NP-hard, too: a single one already is. Starting from the best
//! single route, the route that gains most is added, of those of the solution with any number; if
//! none gains anything alone, the one with the highest rate.

use super::problem::{Operation, Solution};
use super::route::Route;
use super::single::best_single;
use super::solve::{Rates, rates_of_routes};
use oneport::error::Result;

impl Solution {
    /// The best rates found for at most `count` routes. It keeps its proof if it loses nothing.
    ///
    /// # Complexity
    /// At most `count` linear programs of `count` columns for each route.
    ///
    /// # Errors
    /// Those of [`best_single`].
    pub fn with_few_routes(&self, count: usize) -> Result<Solution> {
        if self.routes.len() <= count || self.operation == Operation::Scan {
            return Ok(self.clone());
        }
        let demand = self.operation.demand(&self.platform)?;
        let rates = |routes: &[Route]| rates_of_routes(&self.platform, self.ports, &demand, routes);
        let mut chosen = vec![best_single(self)?.route];
        let mut best = rates(&chosen)?;
        let mut left = self.routes.clone();
        left.sort_by(|(_, a), (_, b)| b.cmp(a));
        let mut left: Vec<Route> = left.into_iter().map(|(route, _)| route).collect();
        while chosen.len() < count && !left.is_empty() && best.throughput < self.throughput {
            let mut next: Option<(usize, Rates)> = None;
            for (i, route) in left.iter().enumerate() {
                let tried = rates(&[&chosen[..], std::slice::from_ref(route)].concat())?;
                let most = next
                    .as_ref()
                    .map_or(&best.throughput, |(_, n)| &n.throughput);
                if tried.throughput > *most {
                    next = Some((i, tried));
                }
            }
            // Where only two together gain, the one that all use most comes first.
            let (i, found) = next.unwrap_or((0, best));
            chosen.push(left.remove(i));
            best = found;
        }
        let is_all = best.throughput == self.throughput;
        Ok(Solution {
            throughput: best.throughput,
            routes: best.routes,
            slots: best.slots,
            certificate: self.certificate.clone().filter(|_| is_all),
            is_optimal: self.is_optimal && is_all,
            ..self.clone()
        })
    }
}
