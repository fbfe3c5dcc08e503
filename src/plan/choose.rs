//! Chooses the algorithm for a request: the one with the minimal model time, each with its best
//! segments.
//!
//! In the model all ranks work concurrently, and a rank can send and receive at the same time. A
//! native run on a few cores takes a different time;
//! [`choose_native`](crate::measure::estimate::choose_native) takes the work of every core into
//! account.

use super::registry::{self, Algorithm};
use super::{Request, Segments, segments};
use crate::error::{Error, Result};
use crate::schedule::collective::Kind;

/// An algorithm for a request, with its time.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// The request, with its best segments if the algorithm segments.
    pub request: Request,
    /// The model time, or the estimate of a native run.
    pub time: f64,
}

/// Returns the algorithm of the registry with the minimal model time for `request`. The request's
/// segments only give the size of the vector.
///
/// ```
/// use oneport::plan::choose;
/// use oneport::{CostModel, Kind, Request};
/// let mut request = Request::new(8, 1);
/// request.cost = CostModel::new(1000.0, 0.1);
/// assert_eq!(choose::choose(Kind::Broadcast, &request)?.time, 3.0 * 1000.1);
/// # Ok::<(), oneport::Error>(())
/// ```
///
/// # Errors
/// When no algorithm can be planned for the request; the message contains the reason for each.
pub fn choose(kind: Kind, request: &Request) -> Result<Choice> {
    let mut choices = fastest_first(kind, |algorithm| with_best_segments(algorithm, request))?;
    Ok(choices.swap_remove(0))
}

/// The choices that `of` returns for each algorithm, fastest first; at least one.
pub(crate) fn fastest_first(
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
    // The sort is stable: among equal times, the first algorithm of the registry stays first.
    choices.sort_by(|a, b| a.time.total_cmp(&b.time));
    Ok(choices)
}

/// Times `algorithm` for `request`, with the segments that are best in the request's cost model.
///
/// # Errors
/// When the algorithm does not accept the request, or no time in the model is finite.
pub fn with_best_segments(algorithm: &'static Algorithm, request: &Request) -> Result<Choice> {
    algorithm.accepts(request)?;
    if !algorithm.segmented {
        return as_requested(algorithm, request);
    }
    let best = segments::best_segment(algorithm, request)?;
    let mut request = request.clone();
    request.segments = Segments::of_size(request.elements(), best.segment)?;
    finite(algorithm, request, best.time)
}

/// Times `algorithm` for `request`, with the request's own segments.
///
/// # Errors
/// As [`with_best_segments`].
pub fn as_requested(algorithm: &'static Algorithm, request: &Request) -> Result<Choice> {
    algorithm.accepts(request)?;
    let time = segments::executed_time(algorithm, request)?;
    finite(algorithm, request.clone(), time)
}

pub(crate) fn finite(algorithm: &'static Algorithm, request: Request, time: f64) -> Result<Choice> {
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
