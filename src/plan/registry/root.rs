//! Free roots: which root an algorithm takes when the request leaves it open.

use std::borrow::Cow;

use super::Algorithm;
use crate::error::Result;
use crate::plan::refusal::{Reason, Refusal};
use crate::plan::{Request, segments};
use crate::schedule::collective::Kind;

/// How an algorithm finds a root that no other is better than, for a request with a free root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plan) enum BestRoot {
    /// Root 0 is one, where all links cost the same. Elsewhere as `Search`.
    First,
    /// The planner chooses it.
    Own,
    /// By planning for every root.
    Search,
}

/// Limit for the steps, and the bytes of tables, of all schedules that a search for the best root
/// plans: a few seconds.
const MAX_SEARCH: u64 = 1 << 30;

impl Algorithm {
    /// Evaluates the request for every root and returns the first of the results with the smallest
    /// `time`; roots that are refused are left out. `None` if there is nothing to search: the root
    /// is given, or the planner takes one that no other is better than.
    ///
    /// Takes the time of `p` evaluations for `p` ranks.
    ///
    /// # Errors
    /// When the search would take too long, or the refusal of the first root if all are refused.
    pub fn at_best_root<T>(
        &self,
        request: &Request,
        evaluate: impl Fn(Request) -> Result<T, Refusal>,
        time: impl Fn(&T) -> f64,
    ) -> Result<Option<T>, Refusal> {
        if !self.searches_root(request) {
            return Ok(None);
        }
        self.accepts(request)?;
        let (ranks, segments) = (request.ranks, request.segments.count());
        let steps = ((self.transfers)(ranks, segments) as u64).saturating_mul(2);
        let work = steps.saturating_mul(self.planning_work);
        let work = work.saturating_add((self.tables)(ranks));
        if work.saturating_mul(ranks as u64) > MAX_SEARCH {
            return Err(self.refusal(request, Reason::FreeRoot { ranks }));
        }
        let at = |root| {
            let mut fixed = request.clone();
            (fixed.root, fixed.root_free) = (root, false);
            evaluate(fixed)
        };
        let mut best = at(0);
        for next in (1..ranks).map(at) {
            let better = match (&best, &next) {
                (Ok(best), Ok(next)) => time(next) < time(best),
                (Err(_), Ok(_)) => true,
                (_, Err(_)) => false,
            };
            if better {
                best = next;
            }
        }
        best.map(Some)
    }

    /// Whether the best root is found by planning for every root.
    pub(in crate::plan) fn searches_root(&self, request: &Request) -> bool {
        let rooted = matches!(
            self.collective,
            Kind::Broadcast | Kind::Reduce | Kind::Gather | Kind::Scatter
        );
        let search = match self.best_root {
            BestRoot::First => request.cost.links().is_some(),
            BestRoot::Own => false,
            BestRoot::Search => true,
        };
        request.root_free && rooted && search
    }

    /// The request with the best root, or with root 0 where the planner takes that or chooses.
    pub(super) fn with_best_root<'r>(&self, request: &'r Request) -> Result<Cow<'r, Request>> {
        let timed = |request: Request| {
            let time = segments::executed_time(self, &request)
                .map_err(|error| self.refusal(&request, Reason::Planner(error)))?;
            Ok((time, request))
        };
        let best = self.at_best_root(request, timed, |(time, _)| *time)?;
        let first = || {
            let mut first = request.clone();
            first.root = 0;
            first
        };
        Ok(match best {
            Some((_, fixed)) => Cow::Owned(fixed),
            None if request.root_free && request.root > 0 => Cow::Owned(first()),
            None => Cow::Borrowed(request),
        })
    }
}
