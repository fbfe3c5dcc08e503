//! How long timing an algorithm takes, and a lower bound of the time that comes out.

use super::Algorithm;
use crate::plan::Request;

/// Schedules of fewer transfers are timed quickly.
const MAX_CHEAP_TRANSFERS: usize = 1 << 14;
/// A search for the best segments times about this many schedules.
const SEARCHED: usize = 16;

impl Algorithm {
    /// Whether timing it for `request`, with its best segments, may simulate many transfers in
    /// vain: a lower bound, or a part of the simulation, can show that it is not the fastest. Not
    /// where it searches for the best root.
    pub fn takes_long(&self, request: &Request) -> bool {
        let transfers = (self.transfers)(request.ranks, 1);
        if self.searches_root(request) {
            return false;
        }
        match self.segmented {
            false => transfers > MAX_CHEAP_TRANSFERS,
            true => {
                transfers.saturating_mul(SEARCHED) > MAX_CHEAP_TRANSFERS
                    && self.min_time(request) > 0.0
            }
        }
    }

    /// A lower bound of the model time for `request`, with the request's segments or any others; 0
    /// where none is known.
    ///
    /// ```
    /// use oneport::plan::registry;
    /// use oneport::{CostModel, Kind, Request};
    /// let request = Request::broadcast(9, 100).cost(CostModel::new(10.0, 1.0));
    /// // On one port a chain of 8 messages of at least one element.
    /// let bound = registry::find(Kind::Broadcast, "multi-tree")?.min_time(&request);
    /// assert!(bound <= 8.0 * 11.0 && bound > 87.9);
    /// # Ok::<(), oneport::Error>(())
    /// ```
    pub fn min_time(&self, request: &Request) -> f64 {
        let Some(line) = request.cost.linear() else {
            return 0.0;
        };
        if request.ranks < 2 || request.elements() == 0 {
            return 0.0;
        }
        let rounds = (self.min_rounds)(request.ranks, request.ports.k());
        let message = line.alpha + line.beta * request.element_bytes as f64;
        // The factor covers rounding errors of the sum.
        rounds as f64 * message * (1.0 - 1e-6)
    }
}
