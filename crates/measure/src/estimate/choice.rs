//! The choice of an algorithm for a native run, by the estimate of its wall-clock time.

use super::{CoreModel, estimate_best};
use oneport::error::{Error, Result};
use oneport::internal::budget::quick::MAX_ESTIMATED_RANKS;
use oneport::plan::choose::{Choice, Ranking, finite, none_applies, rank, with_best_segments};
use oneport::plan::refusal::{Reason, Refusal};
use oneport::plan::registry::{self, Algorithm};
use oneport::plan::{Request, Segments};
use oneport::schedule::Step;

/// Returns the algorithm that finishes first in a native run, by an estimate that differs from
/// model time.
///
/// Ranks are assigned to the cores round-robin, as the ranks of a [`Team`](oneport::run::Team) are
/// (in contiguous ranges if multiplexed), and each core polls its ranks cyclically. A polled rank
/// progresses as far as it can; the messages that it copies or takes, its copies and its
/// combinations occupy the core. A long message waits until its receiver is polled, and its sender
/// until it is polled again, unless both have a core of their own: then they copy the message
/// together. The estimate is the mean over a few orders in which the cores may poll. An algorithm
/// that would need very many polls gets no estimate and is not chosen.
///
/// The request's costs give the times of copying and combining. The numbers of segments tried are
/// powers of two up to the number that is best in the model. Each trial takes at most a few dozen
/// polls per step.
///
/// ```
/// use oneport_measure::estimate::{CoreModel, choose_native};
/// use oneport::run::Tuning;
/// use oneport::{CostModel, Request};
/// let request = Request::scatter(16, 1).cost(CostModel::new(100.0, 0.1).gamma_copy(0.1));
/// let core_model = CoreModel {
///     cores: 2,
///     overhead: 100.0,
///     switch: 1000.0,
///     eager: 8192,
///     copied: 8192,
///     multiplexed: false,
///     tuning: Tuning::default(),
/// };
/// // Messages whose sender does not wait cost the root less than forwarding costs all ranks.
/// assert_eq!(choose_native(&request, &core_model)?.algorithm.name(), "linear");
/// # Ok::<(), oneport::Error>(())
/// ```
///
/// # Errors
/// As [`choose()`](oneport::plan::choose::choose); also when there are no cores.
pub fn choose_native(request: &Request, core_model: &CoreModel) -> Result<Choice> {
    let kind = request.get_collective();
    let candidates = registry::of(kind).filter(|a| a.is_made_for(request.get_cost()));
    choose_native_among(candidates, request, core_model)?
        .best()
        .map_err(|refusals| none_applies(Some(kind), &refusals))
}

/// Whether an estimate for this request is quick and means something: all ranks start together.
pub fn is_for(request: &Request) -> bool {
    request.ranks() <= MAX_ESTIMATED_RANKS && request.get_cost().last_arrival() == 0.0
}

/// As [`choose_native`], among the given algorithms: the choice comes first in the ranking. Of
/// several within 2% of the fastest, the one with the smallest volume is chosen.
///
/// # Errors
/// When one of several equally fast algorithms cannot be planned.
pub fn choose_native_among<'a>(
    candidates: impl IntoIterator<Item = &'a Algorithm>,
    request: &Request,
    core_model: &CoreModel,
) -> Result<Ranking> {
    /// Estimates within this factor are considered equal; the algorithm with the smallest volume is
    /// then chosen.
    const TIE_FACTOR: f64 = 1.02;
    let estimated = |algorithm| estimate_native(algorithm, request, core_model);
    let mut ranking = rank(candidates.into_iter().map(estimated));
    ranking.settle_ties(TIE_FACTOR, |choice| {
        let schedule = choice.algorithm.plan(&choice.request)?;
        let steps = schedule.programs().iter().flatten();
        Ok(steps.filter(|s| s.is_send()).map(Step::len).sum::<usize>())
    })?;
    Ok(ranking)
}

/// Estimates `algorithm` for `request`, with the segments that are best in a native run. It plans
/// and estimates as many schedules as the best number of segments in the model has binary digits.
///
/// # Errors
/// As [`with_best_segments`]; also when there are no cores.
pub fn estimate_native(
    algorithm: &Algorithm,
    request: &Request,
    core_model: &CoreModel,
) -> Result<Choice, Refusal> {
    algorithm.accepts(request)?;
    let failed = |error| algorithm.refusal(request, Reason::Planner(error));
    if core_model.cores == 0 {
        return Err(failed(Error::usage("an estimate needs at least one core")));
    }
    let estimated = |request: Request| {
        let schedule = algorithm.plan(&request).map_err(failed)?;
        let time = estimate_best(&schedule, request.get_cost(), core_model).map_err(failed)?;
        finite(algorithm, request, time)
    };
    if !algorithm.segmented {
        return estimated(request.clone());
    }
    let in_model = with_best_segments(algorithm, request)?;
    let max_count = in_model.request.get_segments().count();
    let mut best: Option<Choice> = None;
    let mut count = 1;
    while count <= max_count {
        let size = request.elements().div_ceil(count).max(1);
        let segments = Segments::of_size(request.elements(), size).map_err(failed)?;
        let choice = estimated(request.clone().segments(segments))?;
        if best.as_ref().is_none_or(|b| choice.time < b.time) {
            best = Some(choice);
        }
        count *= 2;
    }
    best.ok_or_else(|| algorithm.refusal(request, Reason::NoFiniteTime))
}
