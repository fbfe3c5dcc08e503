//! Which algorithm for a request: the one with the least model time, each with the segments that
//! are best for it.
//!
//! The model's time, in which all ranks work at once and a rank sends and receives at once, is not
//! what a native run takes on a few cores: [`choose_native`] counts the work of every core.

use super::registry::{self, Algorithm};
use super::{Request, Segments, segmentation};
use crate::collective::Kind;
use crate::error::{Error, Result};
use crate::schedule::Step;
use crate::simulate::estimate::estimate_best;

pub use crate::simulate::estimate::CoreModel;

/// An algorithm for a request.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// The request, with its best segments where it segments.
    pub request: Request,
    /// Its model time; where ranks take turns, the estimate of [`choose_native`].
    pub time: f64,
}

/// The algorithm of the registry with the least model time for `request`, whose segments count only
/// as the size of the vector.
///
/// ```
/// use oneport::plan::auto;
/// use oneport::{CostModel, Kind, Request};
/// let mut request = Request::new(8, 1);
/// request.cost = CostModel::new(1000.0, 0.1);
/// assert_eq!(auto::choose(Kind::Broadcast, &request)?.time, 3.0 * 1000.1);
/// # Ok::<(), oneport::Error>(())
/// ```
///
/// # Errors
/// When no algorithm can be planned for this, with the reason of each.
pub fn choose(kind: Kind, request: &Request) -> Result<Choice> {
    let mut choices = soonest_first(kind, |algorithm| with_best_segments(algorithm, request))?;
    Ok(choices.swap_remove(0))
}

/// The algorithm whose ranks are done soonest in a native run: an estimate, not the model's time.
///
/// Ranks are dealt to the cores in turn, as a [`Team`](crate::run::Team)'s are (a folded run's in
/// contiguous parts), and each core goes round its ranks. Whoever has its turn goes as far as it
/// can: messages that it copies or takes, its copies and combinations occupy the core; a long
/// message waits for its receiver's turn, and its sender for the next of its own, unless both have
/// a core: then they copy it together. The estimate is the mean over a few orders in which the
/// cores may go round; an algorithm that would need very many turns has none and is not chosen.
///
/// The request's costs say what copying and combining take; segments are tried in powers of two up
/// to the number that is best by the model alone. For each of them, a few dozen turns a step at
/// most.
///
/// ```
/// use oneport::plan::auto::{CoreModel, choose_native};
/// use oneport::{CostModel, Kind, Request};
/// let mut request = Request::new(16, 1);
/// request.cost = CostModel::new(100.0, 0.1).gamma_copy(0.1);
/// let crowd = CoreModel { cores: 2, overhead: 100.0, switch: 1000.0, eager: 8192, copied: 8192, multiplexed: false };
/// // Messages that are not waited for cost the root less than forwarding costs everybody.
/// assert_eq!(choose_native(Kind::Scatter, &request, &crowd)?.algorithm.name, "linear");
/// # Ok::<(), oneport::Error>(())
/// ```
///
/// # Errors
/// As [`choose`], and for no cores.
pub fn choose_native(kind: Kind, request: &Request, core_model: &CoreModel) -> Result<Choice> {
    /// Estimates that differ by less than this factor say nothing: then the one that moves least.
    const CLOSE: f64 = 1.02;
    let mut choices = soonest_first(kind, |algorithm| {
        estimate_native(algorithm, request, core_model)
    })?;
    let close = choices.partition_point(|c| c.time <= CLOSE * choices[0].time);
    choices.truncate(close);
    let mut least = 0;
    if let [_, _, ..] = choices.as_slice() {
        let volume = |choice: &Choice| -> Result<usize> {
            let schedule = choice.algorithm.plan(&choice.request)?;
            let steps = schedule.programs().iter().flatten();
            Ok(steps.filter(|s| s.is_send()).map(Step::len).sum())
        };
        let volumes = choices.iter().map(volume).collect::<Result<Vec<_>>>()?;
        least = (0..volumes.len()).min_by_key(|&i| volumes[i]).unwrap_or(0);
    }
    Ok(choices.swap_remove(least))
}

/// `algorithm` for `request`, with the segments that are best for it where ranks take turns.
///
/// # Errors
/// As [`with_best_segments`], and for no cores.
pub fn estimate_native(
    algorithm: &'static Algorithm,
    request: &Request,
    core_model: &CoreModel,
) -> Result<Choice> {
    algorithm.accepts(request)?;
    let most = match algorithm.segmented {
        true => with_best_segments(algorithm, request)?
            .request
            .segments
            .count(),
        false => 1,
    };
    let mut best: Option<Choice> = None;
    let mut count = 1;
    while count <= most {
        let mut request = request.clone();
        if algorithm.segmented {
            let size = request.elements().div_ceil(count).max(1);
            request.segments = Segments::of_size(request.elements(), size)?;
        }
        let choice = estimate_as_requested(algorithm, &request, core_model)?;
        if best.as_ref().is_none_or(|b| choice.time < b.time) {
            best = Some(choice);
        }
        count *= 2;
    }
    best.ok_or_else(|| Error::usage(format!("{} cannot be timed", algorithm.name)))
}

/// `algorithm` for `request`, with the request's own segments, where ranks take turns.
///
/// # Errors
/// As [`crowded`].
pub fn estimate_as_requested(
    algorithm: &'static Algorithm,
    request: &Request,
    core_model: &CoreModel,
) -> Result<Choice> {
    if core_model.cores == 0 {
        return Err(Error::usage("ranks cannot take turns on 0 cores"));
    }
    algorithm.accepts(request)?;
    let schedule = algorithm.plan(request)?;
    let time = estimate_best(&schedule, &request.cost, request.element_bytes, core_model)?;
    finite(algorithm, request.clone(), time)
}

/// The choices that `of` makes for each algorithm, of which there is one at least.
fn soonest_first(
    kind: Kind,
    of: impl Fn(&'static Algorithm) -> Result<Choice>,
) -> Result<Vec<Choice>> {
    let mut choices = Vec::new();
    let mut refused = Vec::new();
    for algorithm in registry::of(kind) {
        match of(algorithm) {
            Ok(choice) => choices.push(choice),
            Err(error) => refused.push(format!("{}: {error}", algorithm.name)),
        }
    }
    if choices.is_empty() {
        return Err(Error::usage(format!(
            "no algorithm for {} can be planned for this: {}",
            kind.name(),
            if refused.is_empty() {
                "none is registered".into()
            } else {
                refused.join("; ")
            }
        )));
    }
    // Of those that take the same, the first of the registry stays the first.
    choices.sort_by(|a, b| a.time.total_cmp(&b.time));
    Ok(choices)
}

/// `algorithm` for `request`, with the segments that are best for it in the request's cost model.
///
/// # Errors
/// When it does not take the request, or no time in the model is finite.
pub fn with_best_segments(algorithm: &'static Algorithm, request: &Request) -> Result<Choice> {
    algorithm.accepts(request)?;
    if !algorithm.segmented {
        return as_requested(algorithm, request);
    }
    let best = segmentation::best_segment(algorithm, request)?;
    let mut request = request.clone();
    request.segments = Segments::of_size(request.elements(), best.segment)?;
    finite(algorithm, request, best.time)
}

/// `algorithm` for `request`, with the request's own segments.
///
/// # Errors
/// As [`with_best_segments`].
pub fn as_requested(algorithm: &'static Algorithm, request: &Request) -> Result<Choice> {
    algorithm.accepts(request)?;
    let time = segmentation::executed_time(algorithm, request)?;
    finite(algorithm, request.clone(), time)
}

fn finite(algorithm: &'static Algorithm, request: Request, time: f64) -> Result<Choice> {
    if time.is_finite() {
        return Ok(Choice {
            algorithm,
            request,
            time,
        });
    }
    Err(Error::usage(format!(
        "{} {} has no finite time with these costs",
        algorithm.name,
        algorithm.collective.name()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::CostModel;

    fn core_model(cores: usize) -> CoreModel {
        CoreModel {
            cores,
            overhead: 10.0,
            switch: 1000.0,
            eager: 100,
            copied: 100,
            multiplexed: false,
        }
    }

    fn request(ranks: usize, elements: usize) -> Request {
        let mut request = Request::new(ranks, elements);
        request.cost = CostModel::new(10.0, 1.0).gamma_copy(1.0);
        request
    }

    #[test]
    fn messages_that_are_waited_for_cost_their_sender_turns() {
        let linear = registry::find(Kind::Scatter, "linear").unwrap();
        let time = |bytes| {
            estimate_native(linear, &request(4, bytes), &core_model(1))
                .unwrap()
                .time
        };
        // Three messages offered, the root's own block copied, three messages taken; between them
        // the core switches to every other rank once, or twice to those whose turn comes
        // before the root's.
        let work = 3.0 * 10.0 + 3.0 * (10.0 + 100.0) + 100.0;
        let turns = (time(100) - work) / 1000.0;
        assert!((3.0..=6.0).contains(&turns), "{turns} turns");
        // Waited for, each message takes its receiver's turn and then the root's: a round, and the
        // first may begin late.
        let work = 3.0 * (10.0 + 101.0) + 101.0;
        let turns = (time(101) - work) / 1000.0;
        assert!((6.0..=15.0).contains(&turns), "{turns} turns");
    }

    #[test]
    fn a_core_does_one_thing_after_another() {
        let binomial = registry::find(Kind::Broadcast, "binomial").unwrap();
        let time = |cores| {
            estimate_native(binomial, &request(16, 50), &core_model(cores))
                .unwrap()
                .time
        };
        // 15 messages are offered and taken, and each rank has a turn.
        assert!(time(1) >= 15.0 * (10.0 + 60.0 + 1000.0));
        assert!(time(1) > time(2) && time(2) > time(16));
        // On cores of their own, which begin up to a turn apart, nobody takes turns: the last of
        // four levels, after the root's messages or those of its children.
        assert!((4.0 * 60.0..2000.0).contains(&time(16)), "{}", time(16));
        let none = estimate_native(binomial, &request(16, 50), &core_model(0)).unwrap_err();
        assert_eq!(none.exit_code(), 2);
    }

    #[test]
    fn whoever_would_take_too_many_turns_is_not_chosen() {
        let chain = registry::find(Kind::Broadcast, "chain").unwrap();
        let mut long = request(3000, 1);
        long.segments = Segments::whole(1);
        assert!(estimate_native(chain, &long, &core_model(1)).is_err());
        let choice = choose_native(Kind::Broadcast, &long, &core_model(1)).unwrap();
        assert_eq!(choice.algorithm.name, "linear");
    }

    #[test]
    fn something_is_chosen_for_every_collective() {
        for kind in Kind::ALL
            .into_iter()
            .filter(|&kind| registry::of(kind).next().is_some())
        {
            for elements in [0, 1, 1000] {
                let choice = choose_native(kind, &request(6, elements), &core_model(2)).unwrap();
                assert_eq!(choice.algorithm.collective, kind);
                choice.algorithm.plan(&choice.request).unwrap();
            }
        }
    }
}
