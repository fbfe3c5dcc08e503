//! Chooses the fastest of several algorithms, by a function of the caller that times each of them.
//!
//! [`rank`] sorts candidates with their times. [`with_best_segments`] and [`as_requested`] are the
//! evaluators by model time; `oneport_measure::estimate` estimates a native run on a few cores,
//! where ranks do not work concurrently as they do in the model.
//!
//! Among equal times, the earlier candidate wins: the first in the registry.

use super::refusal::{Reason, Refusal};
use super::registry;
use super::segments;
use crate::plan::prelude::*;

/// An algorithm for a request, with its time.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The request, with its best segments if the algorithm segments.
    pub request: Request,
    /// The time by the evaluator, in its unit.
    pub time: f64,
}

/// What an evaluator returns for a candidate.
#[doc(hidden)]
#[allow(missing_debug_implementations, reason = "has a closure")]
pub enum Offer<'a, T = Choice> {
    /// The candidate with its time.
    Timed(T),
    /// The time is expensive to compute, and at least `min_time`. It is computed after those of all
    /// other candidates, in the order of `min_time`, and only if it may be smaller than the
    /// smallest time so far, or as small and the candidate comes earlier.
    Deferred {
        /// Lower bound of the time.
        min_time: f64,
        /// Computes the time; `None` if it is larger than the limit.
        evaluate: Evaluator<'a, T>,
    },
}

/// Computes the time of a candidate, unless it is larger than a limit.
#[doc(hidden)]
pub type Evaluator<'a, T = Choice> = Box<dyn FnOnce(f64) -> Result<Option<T>, Refusal> + Send + 'a>;

impl<T> From<T> for Offer<'_, T> {
    fn from(timed: T) -> Self {
        Offer::Timed(timed)
    }
}

impl AsRef<Choice> for Choice {
    fn as_ref(&self) -> &Choice {
        self
    }
}

/// The candidates of [`rank`].
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct Ranking<T = Choice> {
    /// Those with a time, fastest first; among equal times, in the order of the candidates.
    pub choices: Vec<T>,
    /// Those that were refused, in the order of the candidates.
    pub refusals: Vec<Refusal>,
}

/// Ranks the candidates by their times: choices, or what has a choice and more that was found with
/// it.
///
/// ```
/// use oneport::plan::choose::{rank, with_best_segments};
/// use oneport::plan::registry;
/// use oneport::{Kind, Request};
/// let request = Request::scan(8, 1000);
/// let candidates = registry::of(Kind::Scan);
/// let ranking = rank(candidates.map(|algorithm| with_best_segments(algorithm, &request)));
/// assert!(ranking.choices.is_sorted_by_key(|choice| choice.time));
/// ```
#[doc(hidden)]
pub fn rank<'a, T: AsRef<Choice>, O: Into<Offer<'a, T>>>(
    candidates: impl IntoIterator<Item = Result<O, Refusal>>,
) -> Ranking<T> {
    let time = |timed: &T| timed.as_ref().time;
    let (mut timed, mut deferred, mut refusals) = (Vec::new(), Vec::new(), Vec::new());
    for (i, offer) in candidates.into_iter().enumerate() {
        match offer.map(Into::into) {
            Ok(Offer::Timed(choice)) => timed.push((i, choice)),
            Ok(Offer::Deferred { min_time, evaluate }) => deferred.push((i, min_time, evaluate)),
            Err(refusal) => refusals.push((i, refusal)),
        }
    }
    let times = timed.iter().map(|(i, choice)| (time(choice), *i));
    let mut best = times.fold((f64::INFINITY, 0), smaller);
    deferred.sort_by(|(_, a, _), (_, b, _)| f64::total_cmp(a, b));
    for (i, min_time, evaluate) in deferred {
        // Rounding errors alone would make a later candidate smaller.
        let may_win = match i < best.1 {
            true => min_time <= best.0,
            false => min_time < best.0 * (1.0 - 1e-12),
        };
        if may_win {
            match evaluate(best.0) {
                Ok(Some(choice)) => {
                    best = smaller(best, (time(&choice), i));
                    timed.push((i, choice));
                }
                Ok(None) => {}
                Err(refusal) => refusals.push((i, refusal)),
            }
        }
    }
    refusals.sort_by_key(|&(i, _)| i);
    timed.sort_by(|(i, a), (j, b)| time(a).total_cmp(&time(b)).then(i.cmp(j)));
    Ranking {
        choices: timed.into_iter().map(|(_, choice)| choice).collect(),
        refusals: refusals.into_iter().map(|(_, refusal)| refusal).collect(),
    }
}

/// The smaller time, of the earlier candidate among equal ones.
fn smaller(a: (f64, usize), b: (f64, usize)) -> (f64, usize) {
    if (b.0, b.1) < (a.0, a.1) { b } else { a }
}

impl<T> Ranking<T> {
    /// The fastest candidate.
    ///
    /// # Errors
    /// All refusals if there is none.
    pub fn best(self) -> Result<T, Vec<Refusal>> {
        self.choices.into_iter().next().ok_or(self.refusals)
    }
}

impl Ranking {
    /// Keeps the candidates whose times are within `factor` of the smallest, and orders them by
    /// `key`; among equal keys, faster candidates stay first. `key` is not computed for a single
    /// one; its errors are returned.
    #[doc(hidden)]
    pub fn settle_ties<K: Ord>(
        &mut self,
        factor: f64,
        key: impl Fn(&Choice) -> Result<K>,
    ) -> Result<()> {
        let least = self.choices.first().map_or(0.0, |choice| choice.time);
        let ties = self.choices.partition_point(|c| c.time <= factor * least);
        self.choices.truncate(ties);
        if ties > 1 {
            let keys: Vec<K> = self.choices.iter().map(key).collect::<Result<_>>()?;
            let mut keyed: Vec<_> = keys.into_iter().zip(self.choices.drain(..)).collect();
            keyed.sort_by(|a, b| a.0.cmp(&b.0));
            self.choices
                .extend(keyed.into_iter().map(|(_, choice)| choice));
        }
        Ok(())
    }
}

/// The error ([`ErrorKind::Usage`](crate::ErrorKind::Usage)) that none of the candidates can be
/// planned, with the reason for each; `kind` is the collective if all its algorithms were
/// candidates.
#[doc(hidden)]
pub fn none_applies(kind: Option<Kind>, refusals: &[Refusal]) -> Error {
    let of = kind.map_or(String::new(), |kind| format!(" for {}", kind.name()));
    let reason = |r: &Refusal| format!("{}: {r}", r.algorithm);
    let reasons: Vec<_> = refusals.iter().map(reason).collect();
    Error::usage(format!(
        "no algorithm{of} can be planned for this: {}",
        if reasons.is_empty() {
            "none is registered".into()
        } else {
            reasons.join("; ")
        }
    ))
}

/// Returns the algorithm of the registry with the minimal model time for `request`. The request's
/// segments only give the size of the vector. Each algorithm of the collective is timed as by
/// [`with_best_segments`], as far as it may be the fastest.
///
/// ```
/// use oneport::plan::choose;
/// use oneport::{CostModel, Request};
/// let request = Request::broadcast(8, 1).cost(CostModel::new(1000.0, 0.1));
/// assert_eq!(choose::choose(&request)?.time, 3.0 * 1000.1);
/// # Ok::<(), oneport::Error>(())
/// ```
///
/// # Errors
/// When no algorithm can be planned for the request; the message contains the reason for each.
pub fn choose(request: &Request) -> Result<Choice> {
    let candidates = registry::candidates(request.kind, &request.cost, request.ranks);
    let offer = |algorithm: &'static Algorithm| {
        if searches(algorithm, request) || !algorithm.takes_long(request) {
            return with_best_segments(algorithm, request).map(Offer::Timed);
        }
        algorithm.accepts(request)?;
        if !algorithm.fills_tables(request)
            && !algorithm.segmented
            && let Some(time) = algorithm.closed_form(request)
        {
            return finite(algorithm, request.clone(), time).map(Offer::Timed);
        }
        Ok(Offer::Deferred {
            min_time: algorithm.min_time(request),
            evaluate: Box::new(move |limit| within(algorithm, request, limit)),
        })
    };
    rank(candidates.map(offer))
        .best()
        .map_err(|refusals| none_applies(Some(request.kind), &refusals))
}

/// Whether the algorithm has a use of several ports, or a root, to search for.
fn searches(algorithm: &Algorithm, request: &Request) -> bool {
    request.ports.k() > 1 || algorithm.searches_root(request)
}

/// As [`with_best_segments`]; `None` if the time turns out to be larger than `limit`.
fn within(algorithm: &Algorithm, request: &Request, limit: f64) -> Result<Option<Choice>, Refusal> {
    if algorithm.segmented || searches(algorithm, request) {
        return with_best_segments(algorithm, request).map(Some);
    }
    let time = algorithm
        .time_within(request, limit)
        .map_err(|error| algorithm.refusal(request, Reason::Planner(error)))?;
    time.map(|time| finite(algorithm, request.clone(), time))
        .transpose()
}

impl Request {
    /// Plans it by the algorithm with this name, one of those of [`registry::of`] its collective.
    /// The [planners](crate::plan) state the shapes of the buffers and the time of planning. Errors
    /// are those of [`registry::find`] and [`Algorithm::plan`].
    pub fn plan(&self, algorithm: &str) -> Result<Schedule> {
        registry::find(self.kind, algorithm)?.plan(self)
    }

    /// Plans it by the algorithm and with the segments of minimal model time under `machine`,
    /// which replaces the request's cost model. The request's segments only give the size of the
    /// vector.
    pub fn plan_best(&self, machine: &CostModel) -> Result<Schedule> {
        let request = self.clone().cost(machine.clone());
        let Choice {
            algorithm, request, ..
        } = choose(&request)?;
        algorithm.plan(&request)
    }
}

/// Times `algorithm` for `request`, in model time, with the segments that are best in the request's
/// cost model: see [`best_segment`](segments::best_segment) for what that takes.
///
/// # Errors
/// When the algorithm does not accept the request, or no time in the model is finite.
pub fn with_best_segments(algorithm: &Algorithm, request: &Request) -> Result<Choice, Refusal> {
    if !algorithm.segmented {
        return as_requested(algorithm, request);
    }
    at_best(algorithm, request, &|request| {
        let failed = |error| algorithm.refusal(request, Reason::Planner(error));
        let best = segments::best_segment(algorithm, request).map_err(failed)?;
        let request = request.clone().segments(best.segments);
        finite(algorithm, request, best.time)
    })
}

/// Times `algorithm` for `request`, in model time, with the request's own segments.
#[doc(hidden)]
pub fn as_requested(algorithm: &Algorithm, request: &Request) -> Result<Choice, Refusal> {
    at_best(algorithm, request, &|request| {
        let time = algorithm.time(request);
        let time = time.map_err(|error| algorithm.refusal(request, Reason::Planner(error)))?;
        finite(algorithm, request.clone(), time)
    })
}

/// Evaluates the request for the best use of its ports and, if its root is free, the best root.
fn at_best(
    algorithm: &Algorithm,
    request: &Request,
    evaluate: &dyn Fn(&Request) -> Result<Choice, Refusal>,
) -> Result<Choice, Refusal> {
    let again = |request| at_best(algorithm, &request, evaluate);
    if let Some(choice) = algorithm.at_best_ports(request, again, |choice| choice.time)? {
        return Ok(choice);
    }
    if let Some(choice) = algorithm.at_best_root(request, true, again, |choice| choice.time)? {
        return Ok(choice);
    }
    algorithm.accepts(request)?;
    evaluate(request)
}

/// The choice, or its refusal if `time` is not finite.
#[doc(hidden)]
pub fn finite(algorithm: &Algorithm, request: Request, time: f64) -> Result<Choice, Refusal> {
    if !time.is_finite() {
        return Err(algorithm.refusal(&request, Reason::NoFiniteTime));
    }
    Ok(Choice {
        algorithm: algorithm.clone(),
        request,
        // An empty sum is -0, which would win a tie.
        time: time + 0.0,
    })
}
