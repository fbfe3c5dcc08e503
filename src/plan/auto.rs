//! Which algorithm for a request: the one with the least model time, each with the segments that are best for it.
//!
//! Where more ranks than cores take turns, the model's time, in which all ranks work at once, is not what a run takes: there [`choose_crowded`]
//! counts the work of all ranks, too.

use super::registry::{self, Algorithm};
use super::{Request, Segments, segmentation};
use crate::collective::Kind;
use crate::error::{Error, Result};
use crate::simulate::Prepared;

/// An algorithm for a request.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// The request, with its best segments where it segments.
    pub request: Request,
    /// Its model time; where ranks take turns, the estimate of [`choose_crowded`].
    pub time: f64,
}

/// The algorithm of the registry with the least model time for `request`, whose segments count only as the size of the vector.
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
    least(kind, |algorithm| with_best_segments(algorithm, request))
}

/// The algorithm whose ranks are done soonest when they take turns on `cores` cores: by the greater of its model time and the time that its
/// transfers and computations take one after another, divided by `cores`.
///
/// The request's costs should be those between ranks that share a core, such as
/// [`Profile::crowded`](crate::measure::Profile::crowded). Segments cost turns: powers of two of them up to the number that is best by
/// the model alone are tried. Every trial is simulated: `O(log q)` times the steps of the schedule.
///
/// ```
/// use oneport::plan::auto;
/// use oneport::{CostModel, Kind, Request};
/// let mut request = Request::new(16, 4096);
/// request.cost = CostModel::new(10.0, 1.0);
/// // A chain of segments keeps 16 cores busy; two only have more to do.
/// let alone = auto::choose(Kind::Broadcast, &request)?;
/// let crowded = auto::choose_crowded(Kind::Broadcast, &request, 2)?;
/// assert!(crowded.request.segments.count() < alone.request.segments.count());
/// # Ok::<(), oneport::Error>(())
/// ```
///
/// # Errors
/// As [`choose`], and for no cores.
pub fn choose_crowded(kind: Kind, request: &Request, cores: usize) -> Result<Choice> {
    least(kind, |algorithm| crowded(algorithm, request, cores))
}

/// `algorithm` for `request`, with the segments that are best for it where ranks take turns on `cores` cores.
///
/// # Errors
/// As [`with_best_segments`], and for no cores.
pub fn crowded(algorithm: &'static Algorithm, request: &Request, cores: usize) -> Result<Choice> {
    if cores == 0 {
        return Err(Error::usage("ranks cannot take turns on 0 cores"));
    }
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
        let time = time_in_turns(algorithm, &request, cores)?;
        let choice = finite(algorithm, request, time)?;
        if best.as_ref().is_none_or(|b| choice.time < b.time) {
            best = Some(choice);
        }
        // The last is `most` itself.
        count = if 2 * count > most && count < most {
            most
        } else {
            2 * count
        };
    }
    best.ok_or_else(|| Error::usage(format!("{} cannot be timed", algorithm.name)))
}

fn time_in_turns(algorithm: &Algorithm, request: &Request, cores: usize) -> Result<f64> {
    let schedule = algorithm.plan(request)?;
    let prepared = Prepared::new(&schedule, request.cost.overlap)?;
    let simulation = prepared.try_simulate(&request.cost, request.element_bytes)?;
    let works = prepared.nodes().iter();
    let work: f64 = works
        .map(|node| node.time(&request.cost, request.element_bytes))
        .sum();
    #[expect(clippy::cast_precision_loss, reason = "a number of cores")]
    let cores = cores as f64;
    Ok(simulation.time().max(work / cores))
}

/// The choice with the least time of those that `of` makes for each algorithm.
fn least(kind: Kind, of: impl Fn(&'static Algorithm) -> Result<Choice>) -> Result<Choice> {
    let mut best: Option<Choice> = None;
    let mut refused = Vec::new();
    for algorithm in registry::of(kind) {
        match of(algorithm) {
            Ok(choice) => {
                if best.as_ref().is_none_or(|b| choice.time < b.time) {
                    best = Some(choice);
                }
            }
            Err(error) => refused.push(format!("{}: {error}", algorithm.name)),
        }
    }
    best.ok_or_else(|| {
        Error::usage(format!(
            "no algorithm for {} can be planned for this: {}",
            kind.name(),
            if refused.is_empty() {
                "none is registered".into()
            } else {
                refused.join("; ")
            }
        ))
    })
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
