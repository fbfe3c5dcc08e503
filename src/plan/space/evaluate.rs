//! [`Evaluator`]: what a search minimizes. [`Model`] is the time in the request's cost model; a
//! native run has an estimate of its own, in `oneport_measure::estimate`.

use std::ops::Deref;

use super::space::{SegmentChoice, Space, TimesOf, variants};
use super::variant::{LeftOut, Variant};
use crate::plan::Segments;
use crate::plan::refusal::{Reason, Refusal};
use crate::plan::registry::Algorithm;
use crate::plan::segments::{Best, Method};

/// A [`Variant`] with its time.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The variant: algorithm, ports, root and segments.
    pub variant: Variant,
    /// The time by the evaluator, in its unit.
    pub time: f64,
    /// Whether `time` is an upper bound: then [`LeftOut::Time`] is in the variant's list.
    pub is_bound: bool,
}

impl Choice {
    /// A variant whose time is known.
    pub(super) fn of((variant, known): Settled) -> Option<Choice> {
        Some(Choice {
            variant,
            time: known.value()?,
            is_bound: matches!(known, Known::AtMost(_)),
        })
    }
}

impl Deref for Choice {
    type Target = Variant;

    fn deref(&self) -> &Variant {
        &self.variant
    }
}

/// What is known of the time of a variant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Known {
    /// Nothing: it was not needed yet, or turned out to be larger than a limit of the caller.
    Nothing,
    /// The time.
    Time(f64),
    /// An upper bound: the schedule takes too long to simulate.
    AtMost(f64),
}

impl Known {
    /// The time, or the upper bound of it.
    pub fn value(self) -> Option<f64> {
        match self {
            Known::Nothing => None,
            // An empty sum is -0, which would win a tie.
            Known::Time(time) | Known::AtMost(time) => Some(time + 0.0),
        }
    }
}

impl From<Option<f64>> for Known {
    fn from(time: Option<f64>) -> Known {
        time.map_or(Known::Nothing, Known::Time)
    }
}

/// A variant with its segments, and what is known of its time.
pub type Settled = (Variant, Known);

/// An algorithm in a search.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each algorithm")]
pub enum Offer {
    /// Its time is known.
    Timed(Settled),
    /// Its time takes long to compute, and is at least this. It is computed after those of all
    /// others, in the order of these bounds, and only if it may be smaller than the smallest time
    /// so far, or as small and the algorithm comes earlier.
    Deferred(f64),
}

/// Variants to compare.
pub type Variants<'a> = Box<dyn ExactSizeIterator<Item = Variant> + 'a>;

/// What a search minimizes.
pub trait Evaluator: Sync {
    /// The variants of an algorithm of a space to compare, apart from their segments.
    fn variants<'a>(
        &'a self,
        algorithm: &'a Algorithm,
        space: &'a Space<'_>,
    ) -> Result<Variants<'a>, Refusal> {
        let request = space.request.clone().into_owned();
        let all = variants(algorithm, request, &space.segments, TimesOf::Request)?;
        Ok(Box::new(all))
    }

    /// The variant with the segments to compare it with.
    fn settle(&self, variant: Variant, segments: &SegmentChoice) -> Result<Settled, Refusal> {
        let (mut variant, best) = segments.choose_for(variant, usize::MAX)?;
        let known = match best {
            None => Known::Nothing,
            Some(best) if best.executed => Known::Time(best.time),
            Some(_) if !variant.is_too_long_to_time() => Known::Nothing,
            Some(best) => {
                variant.left_out.push(LeftOut::Time);
                Known::AtMost(best.time)
            }
        };
        Ok((variant, known))
    }

    /// The time of a variant; `None` if it is larger than `limit`, where that is quicker to find
    /// out.
    fn time(&self, variant: &Variant, limit: f64) -> Result<Option<f64>, Refusal>;

    /// A lower bound of the time of a variant, and of the same algorithm on other ports, for other
    /// roots and with more segments; 0 where none is known.
    fn min_time(&self, _: &Variant) -> f64 {
        0.0
    }

    /// Applies `offer` to all algorithms of the space, in order. One that works on several at a
    /// time gives each an evaluator that has its share of the memory.
    fn each(
        &self,
        space: &Space<'_>,
        offer: &(dyn Fn(&Algorithm, &Self) -> Result<Offer, Refusal> + Sync),
    ) -> Vec<Result<Offer, Refusal>> {
        let algorithms = space.algorithms.iter();
        algorithms.map(|algorithm| offer(algorithm, self)).collect()
    }
}

/// The time in the request's cost model.
#[derive(Debug, Clone, Copy)]
pub struct Model;

impl Evaluator for Model {
    fn time(&self, variant: &Variant, limit: f64) -> Result<Option<f64>, Refusal> {
        let time = variant.time_within(limit);
        time.map_err(|error| variant.refusal(Reason::Planner(error)))
    }

    fn min_time(&self, variant: &Variant) -> f64 {
        variant.min_time()
    }
}

impl SegmentChoice {
    /// The variant with these segments, for a memory that holds schedules of at most
    /// `max_transfers` transfers while they are searched for, and what the search has found, if it
    /// has its time.
    pub fn choose_for(
        &self,
        mut variant: Variant,
        max_transfers: usize,
    ) -> Result<(Variant, Option<Best>), Refusal> {
        if !variant.algorithm.segmented {
            return Ok((variant, None));
        }
        if let SegmentChoice::Given(segments) = self {
            variant.request.segments = segments.clone();
            return Ok((variant, None));
        }
        let of_planner = |error| variant.refusal(Reason::Planner(error));
        let best = variant.best_segments(max_transfers).map_err(of_planner)?;
        let equal = variant.with_segments(best.segments.clone());
        let unequal = matches!(self, SegmentChoice::BestUnequal) && best.method != Method::Whole;
        let trials = equal.trials_of_unequal(max_transfers);
        let (mut variant, best) = if unequal && trials > 0 {
            let found = variant.best_unequal(&best, trials).map_err(of_planner)?;
            let best = Best {
                segments: Segments::of_sizes(found.sizes).map_err(of_planner)?,
                time: found.time,
                executed: true,
                method: found.method,
            };
            (variant.with_segments(best.segments.clone()), best)
        } else {
            let method = if unequal {
                Method::LimitedSearch
            } else {
                best.method
            };
            (equal, Best { method, ..best })
        };
        variant.segments_found = Some(best.method);
        if best.method == Method::LimitedSearch {
            variant.left_out.push(LeftOut::Segments);
        }
        Ok((variant, Some(best)))
    }
}
