//! How long timing an algorithm takes, and a lower bound of the time that comes out.

use super::Algorithm;
use crate::plan::Request;
use crate::plan::segments::ceil_log2;
use crate::schedule::collective::Kind;

/// Schedules of fewer transfers are timed quickly.
const MAX_CHEAP_TRANSFERS: usize = 1 << 14;
/// A search for the best segments times about this many schedules.
const SEARCHED: usize = 16;
/// Planning that fills fewer bytes of tables is quick.
const MAX_CHEAP_TABLE_BYTES: u64 = 1 << 26;

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
            false => transfers > MAX_CHEAP_TRANSFERS || self.fills_tables(request),
            true => {
                transfers.saturating_mul(SEARCHED) > MAX_CHEAP_TRANSFERS
                    && self.min_time(request) > 0.0
            }
        }
    }

    /// Whether planning, and with it the closed form, fills large tables.
    pub fn fills_tables(&self, request: &Request) -> bool {
        (self.tables)(request.ranks) > MAX_CHEAP_TABLE_BYTES
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
        let by_rounds = rounds as f64 * message * (1.0 - 1e-6);
        by_rounds.max(self.min_time_of_tree(request))
    }

    /// A lower bound for the trees that gather and scatter equal blocks: `ceil(log2 p) alpha +
    /// (p-1) beta b`. By induction: of a tree's last subtree and the others, the larger part has at
    /// least half of the ranks, and then the last message follows. 0 for other algorithms.
    fn min_time_of_tree(&self, request: &Request) -> f64 {
        let (p, sizes) = (request.ranks, request.block_sizes());
        let is_tree = matches!(self.collective, Kind::Gather | Kind::Scatter);
        match (request.cost.linear(), sizes.first()) {
            (Some(line), Some(&size))
                if is_tree
                    && size > 0
                    && request.ports.k() == 1
                    && sizes.iter().all(|&s| s == size) =>
            {
                let bytes = size as f64 * request.element_bytes as f64;
                f64::from(ceil_log2(p)) * line.alpha + (p - 1) as f64 * bytes * line.beta
            }
            _ => 0.0,
        }
    }
}
