//! Which algorithm for a request: the one with the least model time, each with the segments that are best for it.

use super::registry::{self, Algorithm};
use super::{Request, Segments, segmentation};
use crate::collective::Kind;
use crate::error::{Error, Result};

/// An algorithm for a request.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// The request, with its best segments where it segments.
    pub request: Request,
    /// Its model time.
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
    let mut best: Option<Choice> = None;
    let mut refused = Vec::new();
    for algorithm in registry::of(kind) {
        match with_best_segments(algorithm, request) {
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
