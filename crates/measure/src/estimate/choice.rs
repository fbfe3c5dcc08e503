//! The choice of an algorithm for a native run, by the estimate of its wall-clock time.

use super::{CoreModel, estimate_best};
use oneport::error::{Error, Result};
use oneport::internal::budget::quick::MAX_ESTIMATED_RANKS;
use oneport::plan::Request;
use oneport::plan::choose::{Choice, with_best_segments};
use oneport::plan::refusal::{Reason, Refusal};
use oneport::plan::registry::Algorithm;
use oneport::plan::segments::Method;
use oneport::plan::space::{
    Evaluator, Ranking, SegmentChoice, Settled, Space, Variant, Variants, best_first,
};
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
    let candidates = &Space::of(request).algorithms;
    let ranking = choose_native_among(candidates, request, core_model)?;
    ranking.fastest(Some(request.get_collective()))
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
    let mut ranking = best_first(&Space::among(candidates, request), core_model);
    let least = ranking.choices.first().map_or(0.0, |choice| choice.time);
    let mut ties = Vec::new();
    for choice in ranking.choices {
        if choice.time <= TIE_FACTOR * least {
            let schedule = choice.plan()?;
            let sends = schedule.programs().iter().flatten().filter(|s| s.is_send());
            ties.push((sends.map(Step::len).sum::<usize>(), choice));
        }
    }
    ties.sort_by_key(|(volume, _)| *volume);
    ranking.choices = ties.into_iter().map(|(_, choice)| choice).collect();
    Ok(ranking)
}

/// The time of a native run by estimate. Ports and root are those that are best in the model; its
/// spaces have the best segments alone, which it looks for itself.
impl Evaluator for CoreModel {
    fn variants(&self, algorithm: &Algorithm, space: &Space<'_>) -> Result<Variants, Refusal> {
        if self.cores == 0 {
            let error = Error::usage("an estimate needs at least one core");
            return Err(algorithm.refusal(&space.request, Reason::Planner(error)));
        }
        let in_model = with_best_segments(algorithm, &space.request)?;
        Ok(Variants {
            each: Box::new(std::iter::once(in_model.variant)),
            segments: SegmentChoice::Best,
        })
    }

    /// The numbers of segments that are compared are powers of two up to the best in the model.
    fn settle(&self, variant: Variant, _: &SegmentChoice) -> Result<Settled, Refusal> {
        if !variant.algorithm.segmented {
            return Ok(Settled::new(variant, None));
        }
        let elements = variant.request.elements();
        let max_count = variant.request.get_segments().count();
        let mut best: Option<(Variant, Option<f64>)> = None;
        let mut count = 1;
        while count <= max_count {
            let mut variant = variant.clone();
            variant.request = (variant.request).segment_elems(elements.div_ceil(count).max(1));
            variant.segments_found = Some(Method::Search);
            let time = self.time(&variant, f64::INFINITY)?;
            if best.as_ref().is_none_or(|best| time < best.1) {
                best = Some((variant, time));
            }
            count *= 2;
        }
        let (variant, time) = best.unwrap_or((variant, None));
        Ok(Settled::new(variant, time))
    }

    fn time(&self, variant: &Variant, _: f64) -> Result<Option<f64>, Refusal> {
        let cost = variant.request.get_cost();
        let time = variant
            .plan()
            .and_then(|schedule| estimate_best(&schedule, cost, self));
        time.map(Some)
            .map_err(|error| variant.refusal(Reason::Planner(error)))
    }
}
