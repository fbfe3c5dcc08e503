//! The choice of an algorithm for a native run, by the estimate of its wall-clock time.

use super::{CoreModel, estimate_best};
use oneport::error::{Error, Result};
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
/// assert_eq!(choose_native(&request, &core_model)?.algorithm.name, "linear");
/// # Ok::<(), oneport::Error>(())
/// ```
///
/// # Errors
/// As [`choose()`](oneport::plan::choose::choose); also when there are no cores.
pub fn choose_native(request: &Request, core_model: &CoreModel) -> Result<Choice> {
    let kind = request.kind();
    choose_native_among(registry::of(kind), request, core_model)?
        .best()
        .map_err(|refusals| none_applies(Some(kind), &refusals))
}

/// As [`choose_native`], among the given algorithms: the choice comes first in the ranking. Of
/// several within 2% of the fastest, the one with the smallest volume is chosen.
///
/// # Errors
/// When one of several equally fast algorithms cannot be planned.
pub fn choose_native_among(
    candidates: impl IntoIterator<Item = &'static Algorithm>,
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
    algorithm: &'static Algorithm,
    request: &Request,
    core_model: &CoreModel,
) -> Result<Choice, Refusal> {
    algorithm.accepts(request)?;
    if !algorithm.segmented {
        return estimate_as_requested(algorithm, request, core_model);
    }
    let max_count = with_best_segments(algorithm, request)?
        .request
        .get_segments()
        .count();
    let mut best: Option<Choice> = None;
    let mut count = 1;
    while count <= max_count {
        let size = request.elements().div_ceil(count).max(1);
        let segments = Segments::of_size(request.elements(), size)
            .map_err(|error| algorithm.refusal(request, Reason::Planner(error)))?;
        let request = request.clone().segments(segments);
        let choice = estimate_as_requested(algorithm, &request, core_model)?;
        if best.as_ref().is_none_or(|b| choice.time < b.time) {
            best = Some(choice);
        }
        count *= 2;
    }
    best.ok_or_else(|| algorithm.refusal(request, Reason::NoFiniteTime))
}

/// Estimates `algorithm` for `request` in a native run, with the request's own segments.
///
/// # Errors
/// As [`estimate_native`].
fn estimate_as_requested(
    algorithm: &'static Algorithm,
    request: &Request,
    core_model: &CoreModel,
) -> Result<Choice, Refusal> {
    let failed = |error| algorithm.refusal(request, Reason::Planner(error));
    if core_model.cores == 0 {
        return Err(failed(Error::usage("an estimate needs at least one core")));
    }
    algorithm.accepts(request)?;
    let schedule = algorithm.plan(request).map_err(failed)?;
    let time = estimate_best(&schedule, request.get_cost(), core_model).map_err(failed)?;
    finite(algorithm, request.clone(), time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oneport::machine::CostModel;
    use oneport::run::Tuning;
    use oneport::schedule::collective::Kind;

    fn core_model(cores: usize) -> CoreModel {
        CoreModel {
            cores,
            overhead: 10.0,
            switch: 1000.0,
            eager: 100,
            copied: 100,
            multiplexed: false,
            tuning: Tuning::default(),
        }
    }

    fn request(kind: Kind, ranks: usize, elements: usize) -> Request {
        Request::new(kind, ranks, elements).cost(CostModel::new(10.0, 1.0).gamma_copy(1.0))
    }

    #[test]
    fn a_rendezvous_needs_polls_of_both_partners() {
        let linear = registry::find(Kind::Scatter, "linear").unwrap();
        let time = |bytes| {
            estimate_native(linear, &request(Kind::Scatter, 4, bytes), &core_model(1))
                .unwrap()
                .time
        };
        // Three messages are offered, the root's own block is copied, and three messages are taken.
        // In between, the core switches to every other rank once, or twice to those that run before
        // the root.
        let work = 3.0 * 10.0 + 3.0 * (10.0 + 100.0) + 100.0;
        let polls = (time(100) - work) / 1000.0;
        assert!((3.0..=6.0).contains(&polls), "{polls} polls");
        // With rendezvous, each message needs a poll of its receiver and then one of the root: one
        // round. The first poll may come late.
        let work = 3.0 * (10.0 + 101.0) + 101.0;
        let polls = (time(101) - work) / 1000.0;
        assert!((6.0..=15.0).contains(&polls), "{polls} polls");
    }

    #[test]
    fn a_core_runs_one_rank_at_a_time() {
        let binomial = registry::find(Kind::Broadcast, "binomial").unwrap();
        let time = |cores| {
            estimate_native(
                binomial,
                &request(Kind::Broadcast, 16, 50),
                &core_model(cores),
            )
            .unwrap()
            .time
        };
        // 15 messages are offered and taken, and each rank is polled once.
        assert!(time(1) >= 15.0 * (10.0 + 60.0 + 1000.0));
        assert!(time(1) > time(2) && time(2) > time(16));
        // With a core per rank, no rank waits for another one's poll; the cores start up to one
        // poll apart. The last of four levels finishes after the messages of the root or of its
        // children.
        assert!((4.0 * 60.0..2000.0).contains(&time(16)), "{}", time(16));
        let none = estimate_native(binomial, &request(Kind::Broadcast, 16, 50), &core_model(0))
            .unwrap_err();
        assert_eq!(Error::from(none).exit_code(), 2);
    }

    #[test]
    fn algorithms_with_too_many_polls_are_not_chosen() {
        let chain = registry::find(Kind::Broadcast, "chain").unwrap();
        let long = request(Kind::Broadcast, 3000, 1);
        assert!(estimate_native(chain, &long, &core_model(1)).is_err());
        let choice = choose_native(&long, &core_model(1)).unwrap();
        assert_eq!(choice.algorithm.name, "linear");
    }

    #[test]
    fn every_collective_has_a_choice() {
        for kind in Kind::ALL
            .into_iter()
            .filter(|&kind| registry::of(kind).next().is_some())
        {
            for elements in [0, 1, 1000] {
                let choice = choose_native(&request(kind, 6, elements), &core_model(2)).unwrap();
                assert_eq!(choice.algorithm.collective, kind);
                choice.algorithm.plan(&choice.request).unwrap();
            }
        }
    }
}
