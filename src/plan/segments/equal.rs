//! Finds the best number of segments of about the same size: all equal but a smaller last one, or
//! sizes that differ by one.

use std::collections::BTreeMap;

use super::Split;
use super::published::SymbolValues;
use crate::budget::search;
use crate::error::Result;
use crate::machine::numbers::truncated;
use crate::plan::choose::{Choice, with_best_segments};
use crate::plan::registry::{Algorithm, BestSegment};
use crate::plan::space::Variant;
use crate::plan::{Request, Segments};

/// The best segments found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Best {
    /// The segments: those of a [size](Segments::of_size), or of a [number](Segments::of_count).
    pub segments: Segments,
    /// Model time with these segments.
    pub time: f64,
    /// Whether `time` is the executed time. Otherwise it is an upper bound: the time of a vector
    /// rounded up to whole segments, for "binary" on a tree rounded up to a full one, or of ports
    /// used in one direction at a time. Such schedules are too long to be simulated during a
    /// search.
    pub executed: bool,
    /// How it was found.
    pub method: Method,
}

/// How segments were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// The whole vector is the only segment: the algorithm does not split it, or nothing is moved.
    Whole,
    /// The closed form's optimum, rounded to the better of its integer neighbours.
    ClosedForm,
    /// All sizes were compared, and all numbers of segments (by uni-greedy of more than 2^10
    /// elements those near the best size).
    Exhaustive,
    /// A search compared some of them.
    Search,
    /// A formula or a search compared some of them, and left out others that exceed its limits:
    /// schedules that take too long to simulate or too much memory, more than 2^22 segments. These
    /// may be better.
    LimitedSearch,
}

/// Finds the best segments of an algorithm for the request's vector, of one
/// [size](Segments::of_size) or of a [number](Segments::of_count). The request's own segments are
/// ignored.
///
/// - Few elements: all sizes and all numbers are compared, if their schedules have at most 2^16
///   transfers together.
/// - Closed form: the better of the integer neighbours of its optimum, and of the sizes that split
///   the vector into the same numbers of even segments.
/// - Uni-greedy: all are evaluated by its own evaluator.
/// - Out-of-order: some are planned. A lower bound of their times selects them, and the best size
///   of uni-greedy is always among them. The time of planning limits the comparison of few
///   elements.
/// - The allgatherv of circulant graphs: its own search. Where costs are linear, the segmented ring
///   without overlap, and the pipelined ring of equal blocks: one segment. Elsewhere, among many
///   ranks, the segmented ring too, as a limited search.
/// - Other algorithms: a search over the number of segments.
///
/// After a closed form or a search, even segments of the same number and of one more and one less
/// are tried, in an eighth of the time, or by 2^16 transfers. More than 2^22 segments are not
/// considered. Other segments replace those found first only where they are better by more than
/// rounding errors. Errors are those of [`Algorithm::plan`].
///
/// # Complexity
/// A closed form takes a few evaluations. A search simulates at most 2^19 transfers at once and
/// `3 * 2^20` in all, beyond one schedule of a single segment; `p` transfers are counted for each
/// segment, of which an allreduce makes twice as many, and what sends a part of each segment from
/// each rank to each, such as a ring, `p` times as many. That holds for each use of the ports and
/// each root that are compared, and an eighth more where ports are used one direction at a time.
///
/// ```
/// use oneport::plan::{registry, segments::best_segment};
/// use oneport::{CostModel, Kind, Request};
/// let request = Request::reduce(10, 800).cost(CostModel::new(100.0, 1.0));
/// let best = best_segment(&registry::find(Kind::Reduce, "chain")?, &request)?;
/// assert_eq!((best.segments.count(), best.time), (8, 16.0 * 200.0));
/// # Ok::<(), oneport::Error>(())
/// ```
pub fn best_segment(algorithm: &Algorithm, request: &Request) -> Result<Best> {
    Ok(Best::of(&with_best_segments(algorithm, request)?))
}

impl Best {
    /// Those of a choice whose segments were searched for.
    pub(super) fn of(choice: &Choice) -> Best {
        Best {
            segments: choice.request.segments.clone(),
            time: choice.time,
            executed: !choice.is_bound,
            method: choice.segments_found.unwrap_or(Method::Whole),
        }
    }
}

impl Variant {
    /// As [`best_segment`], of this variant, for a memory that holds schedules of at most
    /// `max_transfers` transfers: of several segments it simulates none of more. What it finds may
    /// have more where a formula gives the time.
    pub(in crate::plan) fn best_segments(&self, max_transfers: usize) -> Result<Best> {
        self.algorithm.accepts(&self.request)?;
        let mut variant = self.clone();
        variant.request.ports = self.used;
        let best = best_on_used_ports(&variant, max_transfers)?;
        if self.times_as_used() || !best.time.is_finite() {
            Ok(best)
        } else {
            self.improved(best, max_transfers)
        }
    }

    /// The best segments where both directions of a port may be used at once: those that are best
    /// for one direction at a time, unless a short search, of a share of the transfers, finds
    /// better ones.
    fn improved(&self, first: Best, max_transfers: usize) -> Result<Best> {
        let elements = self.request.elements();
        let first = TriedSegments::new(self, max_transfers).timed(first)?;
        if !self.algorithm.segmented || elements <= 1 || self.request.ranks < 2 {
            return Ok(first);
        }
        let mut trial = TriedSegments::new(self, max_transfers);
        trial.max_simulated /= search::SHORT_SHARE;
        trial.search()?;
        let found = trial.best(Method::Search)?;
        let found = trial.improve(found)?;
        if is_better(found.time, first.time) {
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
            time: self.with_segments(segments.clone()).time()?,
            segments,
            executed: true,
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
    let mut trial = TriedSegments::new(variant, max_transfers);
    if !algorithm.segmented || m <= 1 || request.ranks < 2 {
        trial.try_size(m.max(1))?;
        return trial.best(Method::Whole);
    }
    let first = match algorithm.best_segment {
        BestSegment::Search => None,
        BestSegment::Formula(size) => match SymbolValues::of(&algorithm.effective(request)) {
            Some(x) => trial.near(size(&x))?,
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
            trial.search()?;
            trial.best(Method::Search)?
        }
    };
    trial.improve(first)
}

struct TriedSegments {
    /// With the segments that were tried last.
    variant: Variant,
    /// By split: its time, and whether that is the executed time.
    times: BTreeMap<Split, (f64, bool)>,
    simulated: usize,
    max_simulated: usize,
    /// Whether a split was left out because of the limits of simulations, or of memory.
    limited: bool,
    /// Transfers of the longest schedule of several segments that can be stored.
    max_transfers: usize,
}

impl TriedSegments {
    fn new(variant: &Variant, max_transfers: usize) -> Self {
        TriedSegments {
            variant: variant.clone(),
            times: BTreeMap::new(),
            simulated: 0,
            max_simulated: search::MAX_SIMULATED_IN_ALL,
            limited: false,
            max_transfers,
        }
    }

    fn best_split(&self) -> (Split, f64, bool) {
        let elements = self.variant.request.elements();
        let rank = |&(&split, &(time, _)): &(&Split, &(f64, bool))| {
            // Of even sizes and others that take the same time, the others come first.
            (time, split.is_even(elements), split)
        };
        let better = |a, b| if rank(&b) < rank(&a) { b } else { a };
        let best = self.times.iter().reduce(better);
        let (&split, &(time, executed)) = best.expect("some size was tried");
        (split, time, executed)
    }

    fn best(&self, method: Method) -> Result<Best> {
        let (split, time, executed) = self.best_split();
        Ok(Best {
            segments: split.segments(self.variant.request.elements())?,
            time,
            executed,
            method,
        })
    }

    fn try_size(&mut self, size: usize) -> Result<()> {
        let m = self.variant.request.elements();
        let (size, least) = (size.max(1), m.div_ceil(search::MAX_SEGMENTS).max(1));
        self.limited |= size < least;
        self.try_split(Split::of_size(m, size.clamp(least, m.max(1))))
    }

    fn try_split(&mut self, split: Split) -> Result<()> {
        if self.times.contains_key(&split) {
            return Ok(());
        }
        if split.count > search::MAX_SEGMENTS {
            self.limited = true;
            return Ok(());
        }
        self.variant.request.segments = split.segments(self.variant.request.elements())?;
        let transfers = split.count.saturating_mul(self.variant.request.ranks);
        let simulated = self.simulated.saturating_add(transfers);
        let may_simulate = transfers <= search::MAX_SIMULATED && simulated <= self.max_simulated;
        let time = if let Some(time) = self.variant.closed_form() {
            (time, true)
        } else if split.count == 1 || may_simulate && self.variant.transfers() <= self.max_transfers
        {
            self.simulated = simulated;
            (self.variant.time()?, true)
        } else {
            let full = Segments::of_sizes(vec![split.size; split.count])?;
            let mut rounded = self.variant.with_segments(full);
            let ranks = rounded.request.ranks;
            rounded.request.ranks = (rounded.algorithm.covered_ranks)(ranks);
            match rounded.closed_form() {
                Some(time) => (time, false),
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
        let bound = (first.time, false);
        let (time, executed) = self.times.get(&split).copied().unwrap_or(bound);
        Ok(Best {
            time,
            executed,
            ..first
        })
    }

    /// Tries the sizes near the optimum of the closed form. `None` if that does not hold.
    fn near(&mut self, optimum: f64) -> Result<Option<Best>> {
        let m = self.variant.request.elements();
        let [floor, ceil] = [optimum.floor(), optimum.ceil()].map(|size| truncated(size).max(1));
        let count = even_size(m, m.div_ceil(ceil));
        let fewer = even_size(m, m / floor);
        for size in [floor, ceil, count, fewer] {
            self.try_size(size)?;
        }
        if self.is_closed() {
            self.best(Method::ClosedForm).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Tries all splits if there are few, and otherwise even ones into about as many segments as
    /// those found `first`, which may take a share of the search. Returns the best.
    fn improve(&mut self, first: Best) -> Result<Best> {
        let (m, ranks) = (self.variant.request.elements(), self.variant.request.ranks);
        // On average a split has half as many segments as there are elements.
        let work = (self.variant.algorithm.transfers)(ranks, m).saturating_mul(m.div_ceil(2));
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
        Ok(if is_better(self.best_split().1, first.time) {
            self.best(method)?
        } else {
            Best { method, ..first }
        })
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
            if count.saturating_mul(self.variant.request.ranks)
                > search::MAX_SIMULATED.max(self.variant.request.ranks)
            {
                self.limited = true;
                break;
            }
            let time = self.time_of(even_size(m, count))?;
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
                self.time_of(even_size(m, a))?,
                self.time_of(even_size(m, b))?,
            ) {
                (Some(a), Some(b)) if a > b => low += third,
                _ => high -= third,
            }
        }
        for count in low..=high {
            self.try_size(even_size(m, count))?;
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
        let split = Split::of_size(m, even_size(m, count.min(search::MAX_SEGMENTS)));
        Ok(self.variant.with_segments(split.segments(m)?).min_time())
    }

    fn time_of(&mut self, size: usize) -> Result<Option<f64>> {
        self.try_size(size)?;
        let split = Split::of_size(self.variant.request.elements(), size);
        Ok(self.times.get(&split).map(|t| t.0))
    }
}

/// Whether a time is smaller than another one by more than rounding errors.
pub(in crate::plan) fn is_better(time: f64, other: f64) -> bool {
    time < other * (1.0 - ROUNDING)
}

/// The largest time that differs from this one by no more than rounding errors.
pub(in crate::plan) fn with_rounding(time: f64) -> f64 {
    time / (1.0 - ROUNDING)
}

const ROUNDING: f64 = 1e-12;

/// Returns the size that splits `elements` into at most `count` segments, all equal except the
/// last.
pub(in crate::plan) fn even_size(elements: usize, count: usize) -> usize {
    elements.div_ceil(count.max(1)).max(1)
}
