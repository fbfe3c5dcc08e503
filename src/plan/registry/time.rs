//! The model time of a request: by a closed form where that holds, else by a simulation; and a
//! lower bound of it, for the choice.

use super::{Algorithm, ClosedForm, find};
use crate::budget::{quick, search};
use crate::error::{ErrorKind, Result};
use crate::plan::Request;
use crate::plan::segments::ceil_log2;
use crate::schedule::collective::Kind;

impl Request {
    /// Model time of the algorithm with this name: [`find`], then [`Algorithm::time`].
    ///
    /// ```
    /// use oneport::{CostModel, Request};
    /// let request = Request::broadcast(8, 1).cost(CostModel::new(1000.0, 0.1));
    /// assert_eq!(request.time("binomial")?, 3.0 * 1000.1);
    /// # Ok::<(), oneport::Error>(())
    /// ```
    pub fn time(&self, algorithm: &str) -> Result<f64> {
        find(self.kind, algorithm)?.time(self)
    }
}

impl Algorithm {
    /// Model time of `request`: by the closed form where there is one for this request, by
    /// simulation otherwise, in time linear in the number of steps. It is infinite if a message has
    /// no link.
    pub fn time(&self, request: &Request) -> Result<f64> {
        let time = self.time_within(request, f64::INFINITY)?;
        Ok(time.expect("no time is larger than infinity"))
    }

    /// As [`time`](Self::time); `None` if a simulation shows that the time is larger than `limit`,
    /// which takes only as long as simulating that much.
    #[doc(hidden)]
    pub fn time_within(&self, request: &Request, limit: f64) -> Result<Option<f64>> {
        self.accepts(request)?;
        if let Some(time) = self.closed_form(request) {
            return Ok(Some(time));
        }
        let timed = |request: Request| self.time(&request);
        if let Some(time) = self.at_best_ports(request, timed, |&time| time)? {
            return Ok(Some(time));
        }
        let planned = self.planned(request)?;
        match planned.timed_within(&request.cost, limit, &mut |_| ()) {
            Ok(timed) => Ok(timed.map(|timed| timed.time)),
            Err(error) if matches!(error.kind(), ErrorKind::NoLink { .. }) => {
                Ok(Some(f64::INFINITY))
            }
            Err(error) => Err(error),
        }
    }

    /// Whether it has a closed form of its time, for some requests at least.
    #[doc(hidden)]
    pub fn has_closed_form(&self) -> bool {
        !matches!(self.closed_form, ClosedForm::None)
    }

    /// The closed form of its time as executed. `None` where none holds:
    /// - the costs are not those that it is stated for,
    /// - links differ, or computation overlaps communication,
    /// - the root is to be searched for,
    /// - it is for unidirectional ports, and the request has bidirectional ones,
    /// - rank 0 forwards the result to the root.
    pub fn closed_form(&self, request: &Request) -> Option<f64> {
        let is_forwarded =
            self.collective == Kind::Reduce && request.keep_order && request.root != 0;
        let holds = request.ranks > 0 && request.closed_forms_hold();
        if is_forwarded || !holds || self.searches_root(request) {
            return None;
        }
        if let Some(least) = self.closed_form_of_uses(request) {
            return least;
        }
        if self.leaves_directions_idle(request) {
            return None;
        }
        if let Some(used) = self.on_used_ports(request) {
            return self.closed_form(&used);
        }
        if let Some(same) = (self.same_as)(request) {
            return Algorithm::of(same).closed_form(request);
        }
        match self.closed_form {
            ClosedForm::None => None,
            ClosedForm::Of(time) => time(&self.effective(request)),
            ClosedForm::ReduceThenBroadcast(time) => {
                let request = request.clone().root(0);
                Some(time(&request)? + time(&request.without_computation())?)
            }
        }
    }

    /// Whether timing it for `request`, with its best segments, may simulate many transfers in
    /// vain: a lower bound, or a part of the simulation, can show that it is not the fastest. Not
    /// where it searches for the best root.
    #[doc(hidden)]
    pub fn takes_long(&self, request: &Request) -> bool {
        let transfers = (self.transfers)(request.ranks, 1);
        if self.searches_root(request) {
            return false;
        }
        match self.segmented {
            false => transfers > quick::MAX_TRANSFERS || self.fills_tables(request),
            true => {
                transfers.saturating_mul(search::SCHEDULES as usize) > quick::MAX_TRANSFERS
                    && self.min_time(request) > 0.0
            }
        }
    }

    /// Whether planning, and with it the closed form, fills large tables.
    #[doc(hidden)]
    pub fn fills_tables(&self, request: &Request) -> bool {
        (self.tables)(request.ranks) > quick::MAX_TABLE_BYTES
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
    #[doc(hidden)]
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
