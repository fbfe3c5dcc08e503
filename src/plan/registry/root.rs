//! Free roots: which root an algorithm takes when the request leaves it open.

use std::borrow::Cow;

use super::Algorithm;
use super::ports::first_best;
use crate::budget::search;
use crate::error::Result;
use crate::plan::Request;
use crate::plan::refusal::{Reason, Refusal};

/// How an algorithm finds a root that no other is better than, for a request with a free root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plan) enum BestRoot {
    /// Root 0 is one, where all links cost the same, computation overlaps nothing, all ranks arrive
    /// together, and messages have no latency and wait for their receivers. Elsewhere as `Search`;
    /// where all links cost the same, root 0 where that would take too long.
    First,
    /// The planner chooses it. Where computation overlaps communication, ranks arrive late, or
    /// messages have latency or do not wait, which planners do not count on, as `Search`, or the
    /// planner's choice where that would take too long.
    Own,
    /// By planning for every root.
    Search,
}

impl Algorithm {
    /// Evaluates the request for every root and returns the first of the results with the smallest
    /// `time`; roots that are refused are left out. `None` if there is nothing to search: the root
    /// is given, or the planner takes one: no other is better, or the search would take too long
    /// ([`may_miss_best_root`](Self::may_miss_best_root)).
    ///
    /// `by_request` says that times depend on the request alone, in its segments, and not on ports
    /// that nodes share, too. With these no planner knows a root that no other is better than.
    ///
    /// Takes the time of `p` evaluations for `p` ranks.
    ///
    /// # Errors
    /// When the search would take too long and the planner takes no root, or the refusal of the
    /// first root if all are refused.
    #[doc(hidden)]
    pub fn at_best_root<T>(
        &self,
        request: &Request,
        by_request: bool,
        evaluate: impl Fn(Request) -> Result<T, Refusal>,
        time: impl Fn(&T) -> f64,
    ) -> Result<Option<T>, Refusal> {
        if !self.has_choice_of_roots(request, by_request) {
            return Ok(None);
        }
        self.accepts(request)?;
        let ranks = request.ranks;
        if self.takes_too_long(request, by_request) {
            return match self.takes_root(request) {
                true => Ok(None),
                false => Err(self.refusal(request, Reason::FreeRoot { ranks })),
            };
        }
        let at = |root| {
            let mut fixed = request.clone();
            (fixed.root, fixed.root_free) = (root, false);
            evaluate(fixed)
        };
        first_best((0..ranks).map(at), time).transpose()
    }

    /// Whether another root may be better than the one that the planner takes for a free root,
    /// because evaluating all would take too long. `by_request` as for
    /// [`at_best_root`](Self::at_best_root).
    #[doc(hidden)]
    pub fn may_miss_best_root(&self, request: &Request, by_request: bool) -> bool {
        self.has_choice_of_roots(request, by_request) && self.takes_too_long(request, by_request)
    }

    fn has_choice_of_roots(&self, request: &Request, by_request: bool) -> bool {
        match by_request {
            true => self.searches_root(request),
            false => self.has_free_root(request),
        }
    }

    /// Whether evaluating all roots takes too long: a second or two where the planner takes a root.
    fn takes_too_long(&self, request: &Request, by_request: bool) -> bool {
        let (ranks, segments) = (request.ranks, request.segments.count());
        let takes_root = self.takes_root(request);
        let (schedules, segments) = match takes_root && by_request && self.segmented {
            true if segments == 1 => (search::SCHEDULES, request.elements().min(search::SEGMENTS)),
            _ => (1, segments),
        };
        let steps = ((self.transfers)(ranks, segments) as u64).saturating_mul(2 * schedules);
        let mut work = steps.saturating_mul(self.planning_work);
        if takes_root {
            work = work.saturating_mul(search::TABLE_BYTES_OF_STEP);
            // The trees on a heterogeneous platform take that much.
            if request.cost.links().is_some() {
                work = work.saturating_add((ranks as u64).saturating_pow(4));
            }
        }
        let work = work.saturating_add((self.tables)(ranks));
        work.saturating_mul(ranks as u64) > search::MAX_WORK_OF_ROOTS
    }

    /// Whether the planner takes a root by itself if it is free.
    fn takes_root(&self, request: &Request) -> bool {
        match self.best_root {
            BestRoot::First => request.cost.links().is_none(),
            BestRoot::Own => true,
            BestRoot::Search => false,
        }
    }

    /// Whether the best root is found by planning for every root.
    pub(in crate::plan) fn searches_root(&self, request: &Request) -> bool {
        let search = match self.best_root {
            BestRoot::First => !request.closed_forms_hold(),
            BestRoot::Own => request.cost.overlaps() || !request.cost.is_ideal(),
            BestRoot::Search => true,
        };
        self.has_free_root(request) && search
    }

    /// Whether the collective has a root, and the request leaves it open.
    fn has_free_root(&self, request: &Request) -> bool {
        request.root_free && self.collective.with_root(0).root().is_some()
    }

    /// The request with the best root, or with root 0 where the planner takes that or chooses.
    pub(super) fn with_best_root<'r>(&self, request: &'r Request) -> Result<Cow<'r, Request>> {
        let timed = |request: Request| {
            let time = self
                .time(&request)
                .map_err(|error| self.refusal(&request, Reason::Planner(error)))?;
            Ok((time, request))
        };
        let best = self.at_best_root(request, true, timed, |(time, _)| *time)?;
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
