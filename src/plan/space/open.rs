//! [`Space`]: what a request leaves open. An algorithm, then the ports that it uses and the root,
//! then the segments.
//!
//! # Ports
//!
//! A schedule that leaves ports idle is one for all of them, so what fewer ports can do, more can
//! do, too. Unidirectional ports can also be used in pairs: one port of a pair sends and the other
//! receives, as the two of a bidirectional port do. A schedule for `k` bidirectional ports is thus
//! one for `2k` unidirectional ports, and takes the same time: a port list becomes a port of the
//! same number. So algorithms for bidirectional ports are planned for several unidirectional ones,
//! too.
//!
//! The other way round, a schedule for `k` unidirectional ports is one for `k` bidirectional ports,
//! each of which takes the place of one, and takes at most the same time there: what it sends no
//! longer waits for what it receives. So algorithms for unidirectional ports are planned for
//! several bidirectional ones, too. Among ranks with one port of each kind, where closed forms
//! hold, none of them is faster than all that are made for these, so they are planned there only
//! where they are asked for by name.

use std::borrow::Cow;

use super::found::{LeftOut, is_better};
use super::variant::Variant;
use crate::budget::{quick, search};
use crate::error::{Error, Result};
use crate::machine::Ports;
use crate::machine::numbers::index;
use crate::plan::refusal::{Reason, Refusal};
use crate::plan::registry::{self, Algorithm, BestRoot};
use crate::plan::{Request, Segments};

/// The segments of the algorithms that split the vector. Others take the request as it is.
#[derive(Debug, Clone)]
pub enum SegmentChoice {
    /// These.
    Given(Segments),
    /// The best ones of about the same size in the request's cost model.
    Best,
    /// The best ones found, of unequal sizes, too.
    BestUnequal,
}

impl SegmentChoice {
    /// The given ones.
    pub fn known(&self) -> Option<&Segments> {
        match self {
            SegmentChoice::Given(segments) => Some(segments),
            SegmentChoice::Best | SegmentChoice::BestUnequal => None,
        }
    }
}

/// The variants among which a search finds the fastest.
#[derive(Debug, Clone)]
pub struct Space<'a> {
    /// The request, whose vector is whole, or has the given segments. If its root is free, the root
    /// is searched for, too.
    pub request: Cow<'a, Request>,
    /// The algorithms, those first that win a tie.
    pub algorithms: Vec<Algorithm>,
    /// The segments.
    pub segments: SegmentChoice,
    /// Whether times depend on ports that nodes share, too: no planner knows the best root then.
    pub shares_ports: bool,
}

impl<'a> Space<'a> {
    /// The [candidates](registry::candidates) of the registry for a request, with their best
    /// segments.
    pub fn of(request: &'a Request) -> Space<'a> {
        let all = registry::candidates(request.kind, &request.cost, request.ranks);
        Space::among(all, request)
    }

    /// These algorithms for a request, with their best segments.
    pub fn among<'b>(
        algorithms: impl IntoIterator<Item = &'b Algorithm>,
        request: &'a Request,
    ) -> Space<'a> {
        Space {
            request: request.whole(),
            algorithms: algorithms.into_iter().cloned().collect(),
            segments: SegmentChoice::Best,
            shares_ports: false,
        }
    }

    /// Only the algorithms whose schedules of one segment are short enough to be compared as parts
    /// of others (`budget::search::is_short`).
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge): the others alone accept the request.
    pub(in crate::plan) fn of_short(mut self) -> Result<Self> {
        let is_short = |algorithm: &Algorithm| {
            let transfers = algorithm.transfers_for(&self.request);
            let planning = transfers.saturating_mul(index(algorithm.planning_work));
            search::is_short(self.request.ranks, planning)
        };
        let accepts = |algorithm: &&Algorithm| algorithm.accepts(&self.request).is_ok();
        let (short, long): (Vec<_>, Vec<_>) = self.algorithms.into_iter().partition(is_short);
        let any = short.iter().any(|algorithm| accepts(&algorithm));
        if let Some(long) = long.iter().find(accepts).filter(|_| !any) {
            return Err(Error::too_large(format!(
                "the {} of {} ranks by {} is too long to be a part of another schedule",
                self.request.kind.name(),
                self.request.ranks,
                long.name()
            )));
        }
        self.algorithms = short;
        Ok(self)
    }

    /// Whether the best segments of the algorithm are searched for.
    pub(super) fn searches_segments(&self, algorithm: &Algorithm) -> bool {
        algorithm.segmented && self.segments.known().is_none()
    }

    /// The algorithm with the given segments, or the whole vector: it has a lower bound for all its
    /// variants.
    pub(super) fn open_variant(&self, algorithm: &Algorithm) -> Variant {
        let whole = || Segments::whole(self.request.elements());
        let segments = self.segments.known().cloned().unwrap_or_else(whole);
        Variant::of(algorithm, &self.request).with_segments(segments)
    }

    /// Whether evaluating the algorithm may take long, so that it is evaluated after others if a
    /// bound may spare it: a search for its segments may simulate many transfers, or given ones
    /// have many, or large tables are filled.
    pub(super) fn may_take_long(&self, algorithm: &Algorithm) -> bool {
        let open = self.open_variant(algorithm);
        if self.searches_segments(algorithm) {
            let transfers = open.transfers().saturating_mul(index(search::SCHEDULES));
            transfers > quick::MAX_TRANSFERS
        } else {
            open.takes_long()
        }
    }
}

const ONE_AT_LEAST: &str = "there is one variant at least";

/// The variants of an algorithm to compare, at least one, before their segments are chosen.
#[allow(missing_debug_implementations, reason = "may be any iterator")]
pub struct Variants {
    /// Each variant.
    pub each: Box<dyn ExactSizeIterator<Item = Variant>>,
    /// The segments of all of them.
    pub segments: SegmentChoice,
}

impl Variants {
    /// The only one, which need not be timed to be chosen. `None` if there are several.
    pub(super) fn only(&mut self) -> Option<Variant> {
        let is_only = self.each.len() == 1;
        is_only.then(|| self.each.next().expect(ONE_AT_LEAST))
    }
}

impl Space<'_> {
    /// The variants of an algorithm, for each use of the ports, for each root.
    ///
    /// # Errors
    /// The request is refused, or the search for the root would take too long and the planner takes
    /// none.
    pub fn variants(&self, algorithm: &Algorithm) -> Result<Variants, Refusal> {
        let (algorithm, request) = (algorithm.clone(), self.request.clone().into_owned());
        algorithm.accepts(&request)?;
        let searches = if self.shares_ports {
            algorithm.has_free_root(&request)
        } else {
            algorithm.searches_root(&request)
        };
        let ranks = request.ranks;
        let too_long = searches && self.has_too_many_roots(&algorithm);
        if too_long && !algorithm.takes_root(&request) {
            return Err(algorithm.refusal(&request, Reason::FreeRoot { ranks }));
        }
        let (uses, are_all) = algorithm.uses(&request);
        let mut left_out = Vec::from_iter((!are_all).then_some(LeftOut::Ports));
        let searches = searches && !too_long;
        let some_roots = too_long || !searches && algorithm.tries_some_roots(&request);
        left_out.extend(some_roots.then_some(LeftOut::Roots { ranks }));
        let roots = if searches { ranks } else { 1 };
        let each = (0..uses.len() * roots).map(move |i| {
            let mut request = request.clone();
            if request.root_free {
                (request.root, request.root_free) = (i % roots, !searches);
            }
            Variant {
                algorithm: algorithm.clone(),
                request,
                used: uses[i / roots],
                left_out: left_out.clone(),
                segments_found: None,
            }
        });
        Ok(Variants {
            each: Box::new(each),
            segments: self.segments.clone(),
        })
    }

    /// Whether evaluating all roots takes too long. Given segments count as they are. A search for
    /// segments counts as some schedules of some segments, unless nodes share ports: there one is
    /// mostly for all roots. Where the planner takes no root, too many mean that the request is
    /// refused: there a search counts as one schedule of one segment, and so do given segments,
    /// unless they are more than a search simulates.
    fn has_too_many_roots(&self, algorithm: &Algorithm) -> bool {
        let request = &self.request;
        let ranks = request.ranks;
        let takes_root = algorithm.takes_root(request);
        let searches = takes_root && algorithm.segmented && !self.shares_ports;
        let found = |count: usize| count.saturating_mul(ranks) <= search::MAX_SIMULATED;
        let (schedules, count) = match self.segments.known().map(Segments::count) {
            Some(count) if takes_root || !found(count) => (1, count),
            None if searches => (search::SCHEDULES, request.elements().min(search::SEGMENTS)),
            _ => (1, 1),
        };
        let planning_row = algorithm.planning_row(request);
        let mut work = planning_row.work(ranks, count, schedules);
        if takes_root {
            work = work.saturating_mul(search::TABLE_BYTES_OF_STEP);
            // The trees on a heterogeneous platform take that much.
            if request.cost.links().is_some() {
                work = work.saturating_add((ranks as u64).saturating_pow(4));
            }
        }
        let work = work.saturating_add((planning_row.tables)(ranks));
        work.saturating_mul(ranks as u64) > search::MAX_WORK_OF_ROOTS
    }
}

/// Which ports are used.
impl Algorithm {
    /// The uses of the request's ports to compare, the preferred one first, and whether they are
    /// all.
    pub(super) fn uses(&self, request: &Request) -> (Vec<Ports>, bool) {
        let algorithm = self.planning_algorithm(request);
        let (ports, max) = (request.ports, algorithm.max_uses(request));
        let mut uses = vec![algorithm.ports.preferred(ports)];
        if ports.validate().is_err() {
            return (uses, true);
        }
        let fewest = if algorithm.k_ported { 1 } else { ports.k() };
        for k in (fewest..=ports.k()).rev() {
            let all = algorithm.ports.uses(ports.with_k(k));
            for used in all.chain(algorithm.one_way(request, k)) {
                if uses.len() <= max && !uses.contains(&used) {
                    uses.push(used);
                }
            }
        }
        let are_all = uses.len() <= max;
        uses.truncate(max);
        (uses, are_all)
    }

    /// `k` bidirectional ports, each for one direction at a time. An algorithm for both models may
    /// be faster so where links differ, computation overlaps communication, or there are delays.
    /// So may one for this direction alone on a single port: see [`Algorithm::accepts`].
    fn one_way(&self, request: &Request, k: usize) -> Option<Ports> {
        let used = Ports::UNI.with_k(k);
        let may_be_faster = request.ports.can_relay() && !request.closed_forms_hold();
        (may_be_faster && self.ports.has(used)).then_some(used)
    }

    /// How many uses are compared: only one where that takes long. As many with given segments as
    /// where they are searched for, so that no other use is taken with those that a search found.
    /// Roots that are tried only because nodes share ports do not count.
    fn max_uses(&self, request: &Request) -> usize {
        let schedules = if self.segmented { search::SCHEDULES } else { 1 };
        let roots = if self.searches_root(request) {
            request.ranks
        } else {
            1
        };
        let work = self.work(request.ranks, 1, schedules);
        let work = work.saturating_add((self.tables)(request.ranks));
        let work = work.saturating_mul(roots as u64).max(1);
        (search::MAX_WORK_OF_USES / work).clamp(1, search::MAX_USES) as usize
    }
}

/// Which root is taken where the request leaves it open.
impl Algorithm {
    /// Whether the planner takes a root by itself if it is free.
    fn takes_root(&self, request: &Request) -> bool {
        match self.best_root {
            BestRoot::First => request.cost.links().is_none(),
            BestRoot::Own | BestRoot::OwnAmong(_) => true,
            BestRoot::Search => false,
        }
    }

    /// Whether the planner takes a root by itself, and tries only some.
    fn tries_some_roots(&self, request: &Request) -> bool {
        let BestRoot::OwnAmong(most) = self.best_root else {
            return false;
        };
        let differ = request.cost.links().is_some();
        differ && request.ranks > most && self.has_free_root(request)
    }

    /// Whether the best root is found by planning for every root.
    pub(in crate::plan) fn searches_root(&self, request: &Request) -> bool {
        let search = match self.best_root {
            BestRoot::First => !request.closed_forms_hold(),
            BestRoot::Own | BestRoot::OwnAmong(_) => {
                request.cost.overlaps() || !request.cost.is_ideal()
            }
            BestRoot::Search => true,
        };
        self.has_free_root(request) && search
    }

    /// Whether the collective has a root, and the request leaves it open.
    fn has_free_root(&self, request: &Request) -> bool {
        request.root_free && self.collective.has_root()
    }
}

/// The first of the results with the smallest `time`, up to rounding, or the first error if all are
/// errors.
pub(super) fn first_of_least<T, E>(
    results: impl Iterator<Item = Result<T, E>>,
    time: impl Fn(&T) -> f64,
) -> Result<T, E> {
    let better = |best: Result<T, E>, next: Result<T, E>| match (&best, &next) {
        (Err(_), Ok(_)) => next,
        (Ok(least), Ok(other)) if is_better(time(other), time(least)) => next,
        _ => best,
    };
    results.reduce(better).expect(ONE_AT_LEAST)
}
