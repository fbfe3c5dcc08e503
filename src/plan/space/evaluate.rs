//! [`Evaluator`]: what a search minimizes. [`Model`] is the time in the request's cost model; so is
//! `TaskEvaluator` of the commands, within their memory and on ports that nodes share. A native run
//! has an estimate of its own, in `oneport_measure::estimate`.

use std::ops::Deref;

use super::found::{LeftOut, Method, Time};
use super::open::{SegmentChoice, Space, Variants};
use super::variant::Variant;
use crate::plan::refusal::{Reason, Refusal};
use crate::plan::registry::Algorithm;

/// A [`Settled`] variant whose time is known.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The variant: algorithm, ports, root and segments.
    pub variant: Variant,
    /// The time by the evaluator, in its unit.
    pub time: f64,
    /// Whether `time` is an upper bound ([`Time::AtMost`]): then [`LeftOut::Time`] is in the
    /// variant's list.
    pub is_upper_bound: bool,
}

impl Choice {
    /// A variant whose time is known.
    pub(super) fn of(settled: Settled) -> Option<Choice> {
        let time = settled.time?;
        Some(Choice {
            variant: settled.variant,
            time: time.value(),
            is_upper_bound: time.is_upper_bound(),
        })
    }
}

impl Deref for Choice {
    type Target = Variant;

    fn deref(&self) -> &Variant {
        &self.variant
    }
}

/// A [`Variant`] whose segments are chosen.
#[derive(Debug, Clone)]
pub struct Settled {
    /// The variant, with its segments.
    pub variant: Variant,
    /// `None` if it is not known yet, also where only a time that does not count is, such as one
    /// without the ports that nodes share, or if it turned out to be larger than a limit of the
    /// caller.
    pub time: Option<Time>,
}

impl Settled {
    /// With the time that an evaluator found.
    pub fn new(variant: Variant, time: Option<f64>) -> Settled {
        Settled {
            variant,
            time: time.map(Time::Exact),
        }
    }

    /// The time or an upper bound; infinite if neither is known.
    pub(super) fn known_time(&self) -> f64 {
        self.time.map_or(f64::INFINITY, Time::value)
    }
}

/// An algorithm in a search.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each algorithm")]
pub enum Offer {
    /// Its time is known.
    Timed(Settled),
    /// Its time takes long to compute, and is at least this. It is computed after those of all
    /// others, in the order of these bounds, and only if it may be smaller than the smallest time
    /// so far, or as small and the algorithm comes earlier.
    PutOff(f64),
}

/// What a search minimizes.
pub trait Evaluator: Sync {
    /// The variants of an algorithm of a space to compare: all, unless some are known to be enough.
    fn variants(&self, algorithm: &Algorithm, space: &Space<'_>) -> Result<Variants, Refusal> {
        space.variants(algorithm)
    }

    /// The variant with those of the `segments` to compare it with.
    fn settle(&self, variant: Variant, segments: &SegmentChoice) -> Result<Settled, Refusal>;

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
    fn settle(&self, variant: Variant, segments: &SegmentChoice) -> Result<Settled, Refusal> {
        let mut settled = segments.settle(variant, usize::MAX)?;
        if settled.time.is_some_and(Time::is_upper_bound) {
            if settled.variant.is_too_long_to_time() {
                settled.variant.left_out.push(LeftOut::Time);
            } else {
                settled.time = None;
            }
        }
        Ok(settled)
    }

    fn time(&self, variant: &Variant, limit: f64) -> Result<Option<f64>, Refusal> {
        let time = variant.time_or_infinity_within(limit);
        time.map_err(|error| variant.refusal(Reason::Planner(error)))
    }

    fn min_time(&self, variant: &Variant) -> f64 {
        variant.min_time()
    }
}

impl SegmentChoice {
    /// The variant with these segments, for a memory that holds schedules of at most
    /// `max_transfers` transfers while they are searched for, and the time that the search has
    /// found.
    pub fn settle(&self, mut variant: Variant, max_transfers: usize) -> Result<Settled, Refusal> {
        if !variant.algorithm.segmented {
            return Ok(Settled::new(variant, None));
        }
        let found = match self {
            SegmentChoice::Given(segments) => {
                variant.request.segments = segments.clone();
                return Ok(Settled::new(variant, None));
            }
            SegmentChoice::Best => variant.best_segments(max_transfers),
            SegmentChoice::BestUnequal => variant.best_unequal_segments(max_transfers),
        };
        let best = found.map_err(|error| variant.refusal(Reason::Planner(error)))?;
        variant.request.segments = best.segments;
        variant.segments_found = Some(best.method);
        if best.method == Method::LimitedSearch {
            variant.left_out.push(LeftOut::Segments);
        }
        let time = Some(best.time);
        Ok(Settled { variant, time })
    }
}
