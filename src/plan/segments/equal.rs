//! Finds the best number of segments of about the same size: all equal but a smaller last one, or
//! sizes that differ by one.

use std::collections::BTreeMap;

use super::published::SymbolValues;
use super::{Method, Split};
use crate::budget::search;
use crate::error::Result;
use crate::machine::numbers::truncated;
use crate::plan::Segments;
use crate::plan::registry::BestSegment;
use crate::plan::space::{Time, Variant, is_better};

/// The best segments found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Best {
    /// The segments: those of a [size](Segments::of_size), or of a [number](Segments::of_count).
    pub segments: Segments,
    /// Model time with these segments.
    pub time: Time,
    /// How they were found.
    pub method: Method,
}

impl Variant {
    /// The best segments of this variant of an algorithm that splits the vector (see
    /// [`with_best_segments`]), for a memory that holds schedules of at most `max_transfers`
    /// transfers: none of several segments has more.
    ///
    /// [`with_best_segments`]: crate::plan::choose::with_best_segments
    pub(in crate::plan) fn best_segments(&self, max_transfers: usize) -> Result<Best> {
        self.algorithm.accepts(&self.request)?;
        let mut variant = self.clone();
        variant.request.ports = self.used;
        let best = best_on_used_ports(&variant, max_transfers)?;
        if self.times_as_used() || !best.time.value().is_finite() {
            Ok(best)
        } else {
            self.best_both_ways(best, max_transfers)
        }
    }

    /// The best segments where both directions of a port may be used at once: those that are best
    /// for one direction at a time, unless a short search, of a share of the transfers, finds
    /// better ones.
    fn best_both_ways(&self, first: Best, max_transfers: usize) -> Result<Best> {
        let elements = self.request.elements();
        let first = TriedSegments::new(self, max_transfers).timed(first)?;
        if elements <= 1 || self.request.ranks < 2 {
            return Ok(first);
        }
        let mut tried = TriedSegments::new(self, max_transfers);
        tried.max_simulated /= search::SHORT_SHARE;
        tried.search()?;
        let found = tried.best(Method::Search)?;
        let found = tried.refine(found)?;
        if is_better(found.time.value(), first.time.value()) {
            return Ok(found);
        }
        let method = match found.method {
            Method::LimitedSearch => Method::LimitedSearch,
            _ => first.method,
        };
        Ok(Best { method, ..first })
    }

    /// The whole vector in one segment, as the best.
    pub(in crate::plan) fn best_whole(&self) -> Result<Best> {
        let segments = Segments::whole(self.request.elements());
        Ok(Best {
            time: Time::Exact(self.with_segments(segments.clone()).time_or_infinity()?),
            segments,
            method: Method::Whole,
        })
    }

    /// The same with other segments.
    pub(in crate::plan) fn with_segments(&self, segments: Segments) -> Variant {
        let mut variant = self.clone();
        variant.request.segments = segments;
        variant
    }
}

/// The best segments of a variant that uses all ports of its request.
fn best_on_used_ports(variant: &Variant, max_transfers: usize) -> Result<Best> {
    let (algorithm, request) = (&variant.algorithm, &variant.request);
    let m = request.elements();
    let mut tried = TriedSegments::new(variant, max_transfers);
    if m <= 1 || request.ranks < 2 {
        tried.try_size(m.max(1))?;
        return tried.best(Method::Whole);
    }
    let first = match algorithm.best_segment {
        BestSegment::Search => None,
        BestSegment::Formula(size) => match SymbolValues::of(&algorithm.effective(request)) {
            Some(x) => tried.near(size(&x))?,
            None => None,
        },
        BestSegment::Own(best) => match best(variant, max_transfers)? {
            Some(best) => return Ok(best),
            None => None,
        },
    };
    let first = match first {
        Some(best) => best,
        None => {
            tried.search()?;
            tried.best(Method::Search)?
        }
    };
    tried.refine(first)
}

struct TriedSegments {
    /// With the segments that were tried last.
    variant: Variant,
    times: BTreeMap<Split, Time>,
    simulated: usize,
    max_simulated: usize,
    /// Whether a split was left out because of the limits of simulations, or of memory.
    limited: bool,
    /// Segments of the longest schedule that can be planned and stored.
    max_count: usize,
}

impl TriedSegments {
    fn new(variant: &Variant, max_transfers: usize) -> Self {
        TriedSegments {
            variant: variant.clone(),
            times: BTreeMap::new(),
            simulated: 0,
            max_simulated: search::MAX_SIMULATED_IN_ALL,
            limited: false,
            max_count: variant.max_segments(max_transfers),
        }
    }

    fn best_split(&self) -> (Split, Time) {
        let elements = self.variant.request.elements();
        let rank = |&(&split, time): &(&Split, &Time)| {
            // Of balanced splits and others that take the same time, the others come first.
            (time.value(), split.is_balanced(elements), split)
        };
        let better = |a, b| if rank(&b) < rank(&a) { b } else { a };
        let best = self.times.iter().reduce(better);
        let (&split, &time) = best.expect("some size was tried");
        (split, time)
    }

    fn best(&self, method: Method) -> Result<Best> {
        let (split, time) = self.best_split();
        Ok(Best {
            segments: split.segments(self.variant.request.elements())?,
            time,
            method,
        })
    }

    fn try_size(&mut self, size: usize) -> Result<()> {
        let m = self.variant.request.elements();
        let (size, least) = (size.max(1), m.div_ceil(self.max_count).max(1));
        self.limited |= size < least;
        self.try_split(Split::of_size(m, size.clamp(least, m.max(1))))
    }

    fn try_split(&mut self, split: Split) -> Result<()> {
        if self.times.contains_key(&split) {
            return Ok(());
        }
        if split.count > self.max_count {
            self.limited = true;
            return Ok(());
        }
        self.variant.request.segments = split.segments(self.variant.request.elements())?;
        let transfers = split.count.saturating_mul(self.variant.request.ranks);
        let simulated = self.simulated.saturating_add(transfers);
        let may_simulate = transfers <= search::MAX_SIMULATED && simulated <= self.max_simulated;
        let time = if let Some(time) = self.variant.closed_form() {
            Time::Exact(time)
        } else if split.count == 1 || may_simulate {
            self.simulated = simulated;
            Time::Exact(self.variant.time_or_infinity()?)
        } else {
            let full = Segments::of_sizes(vec![split.size; split.count])?;
            let mut rounded = self.variant.with_segments(full);
            let ranks = rounded.request.ranks;
            rounded.request.ranks = (rounded.algorithm.covered_ranks)(ranks);
            match rounded.closed_form() {
                Some(time) => Time::AtMost(time),
                None => {
                    self.limited = true;
                    return Ok(());
                }
            }
        };
        self.times.insert(split, time);
        Ok(())
    }

    /// The same segments, with their time on the ports of the variant. Where that takes too long to
    /// simulate, their time for one direction at a time remains, an upper bound.
    fn timed(mut self, first: Best) -> Result<Best> {
        let split = Split::of(&first.segments);
        self.try_split(split)?;
        let bound = Time::AtMost(first.time.value());
        let time = self.times.get(&split).copied().unwrap_or(bound);
        Ok(Best { time, ..first })
    }

    /// Tries the sizes near the optimum of the closed form. `None` if that does not hold.
    fn near(&mut self, optimum: f64) -> Result<Option<Best>> {
        let m = self.variant.request.elements();
        let [floor, ceil] = [optimum.floor(), optimum.ceil()].map(|size| truncated(size).max(1));
        let count = equal_size(m, m.div_ceil(ceil));
        let fewer = equal_size(m, m / floor);
        for size in [floor, ceil, count, fewer] {
            self.try_size(size)?;
        }
        if self.is_closed() {
            self.best(Method::ClosedForm).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Tries all splits if there are few, and otherwise balanced ones into about as many segments
    /// as those found `first`, which may take a share of the search. Returns the best.
    fn refine(&mut self, first: Best) -> Result<Best> {
        let (m, ranks) = (self.variant.request.elements(), self.variant.request.ranks);
        let planning_row = self.variant.algorithm.planning_row(&self.variant.request);
        // On average a split has half as many segments as there are elements.
        let work = (planning_row.transfers)(ranks, m).saturating_mul(m.div_ceil(2));
        let mut method = first.method;
        let splits: Vec<_> = if work <= search::MAX_EXHAUSTIVE {
            method = Method::Exhaustive;
            // All of them are tried now, of which some may have been left out before.
            self.limited = false;
            Split::all(m).collect()
        } else {
            let share = (self.simulated / search::SHORT_SHARE).max(search::MAX_EXHAUSTIVE);
            self.max_simulated = self.max_simulated.min(self.simulated + share);
            let count = first.segments.count();
            let counts = count.saturating_sub(1).max(1)..=(count + 1).min(m);
            counts.map(|count| Split::of_count(m, count)).collect()
        };
        for split in splits {
            self.try_split(split)?;
        }
        if self.limited {
            method = Method::LimitedSearch;
        }
        Ok(
            if is_better(self.best_split().1.value(), first.time.value()) {
                self.best(method)?
            } else {
                Best { method, ..first }
            },
        )
    }

    /// Whether the algorithm has a closed form under these costs for the full segments of the best
    /// size tried.
    fn is_closed(&self) -> bool {
        if self.times.is_empty() {
            return false;
        }
        let size = self.best_split().0.size;
        let full = vec![size; self.variant.request.elements() / size];
        Segments::of_sizes(full).is_ok_and(|segments| {
            let full = self.variant.with_segments(segments);
            full.closed_form().is_some()
        })
    }

    /// Tries powers of two as numbers of segments, then searches ternarily around the best of them,
    /// then tries the neighbours of the result.
    fn search(&mut self) -> Result<()> {
        let m = self.variant.request.elements();
        let (mut count, mut least, mut worse) = (1, f64::INFINITY, 0);
        // More segments mostly add start-up times: after some doublings without a gain further
        // ones are not expected to gain, and from a lower bound on that is no gain they cannot.
        while count <= m && worse < search::MAX_WORSE && self.min_time(count)? < least {
            let time = self.time_of(equal_size(m, count))?;
            let time = time.unwrap_or(f64::INFINITY);
            worse = if time < least { 0 } else { worse + 1 };
            least = least.min(time);
            count *= 2;
        }
        let best = self.best_split().0.count;
        let (mut low, mut high) = ((best / 2).max(1), (2 * best).min(m));
        while high - low > 4 {
            let third = (high - low) / 3;
            let (a, b) = (low + third, high - third);
            match (
                self.time_of(equal_size(m, a))?,
                self.time_of(equal_size(m, b))?,
            ) {
                (Some(a), Some(b)) if a > b => low += third,
                _ => high -= third,
            }
        }
        for count in low..=high {
            self.try_size(equal_size(m, count))?;
        }
        let best = self.best_split().0.size;
        for size in [best - 1, best + 1] {
            self.try_size(size)?;
        }
        Ok(())
    }

    /// A lower bound of the times with at least so many segments.
    fn min_time(&self, count: usize) -> Result<f64> {
        let m = self.variant.request.elements();
        let split = Split::of_size(m, equal_size(m, count.min(self.max_count)));
        Ok(self.variant.with_segments(split.segments(m)?).min_time())
    }

    fn time_of(&mut self, size: usize) -> Result<Option<f64>> {
        self.try_size(size)?;
        let split = Split::of_size(self.variant.request.elements(), size);
        Ok(self.times.get(&split).map(|time| time.value()))
    }
}

/// Returns the size that splits `elements` into at most `count` segments, all equal except the
/// last.
pub(in crate::plan) fn equal_size(elements: usize, count: usize) -> usize {
    elements.div_ceil(count.max(1)).max(1)
}
