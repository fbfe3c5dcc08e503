//! The best segments for uni-greedy, of one size or of sizes that differ by one, by its evaluator.

use super::States;
use crate::budget::uni_greedy::{ALL_COUNTS, ALL_SIZES, REFINED_SIZES};
use crate::plan::prelude::*;
use crate::plan::segments::{Split, equal_size};

/// Finds the best segments for a request whose costs are the same for all ranks. No schedule is
/// stored for that.
pub(super) fn best(variant: &Variant, max_transfers: usize) -> Result<Option<Best>> {
    if !variant.request.closed_forms_hold() {
        return Ok(None);
    }
    let request = variant.algorithm.effective(&variant.request);
    let costs = |s| (request.transfer_time(s), request.combine_time(s));
    let max_count = variant.max_segments(max_transfers);
    best_uni_greedy(request.ranks, request.elements(), max_count, costs).map(Some)
}

/// Finds the best segments of uni-greedy for a vector of `elements` elements, at most `max_count`.
/// `costs` maps the number of elements of a segment to `(tc, tp)`: the times to transfer and to
/// combine it, in any unit.
///
/// Exact for all sizes up to 2^17 elements: they are sorted by a lower bound of their times and
/// evaluated by [`States`] until the bound exceeds the best time found. For longer vectors it
/// considers a geometric grid of sizes, then a finer grid around the best of them: fewer than 4000
/// sizes. Balanced splits follow: all numbers up to 2^10 elements, beyond those near the best one.
pub fn best_uni_greedy(
    ranks: usize,
    elements: usize,
    max_count: usize,
    costs: impl Fn(usize) -> (f64, f64),
) -> Result<Best> {
    let mut search = UniGreedy::of_sizes(ranks, elements, max_count, costs);
    let counts = if elements <= ALL_COUNTS {
        1..elements + 1
    } else {
        search.counts()
    };
    let method = if search.leaves_out() {
        Method::LimitedSearch
    } else if elements <= ALL_SIZES {
        Method::Exhaustive
    } else {
        Method::Search
    };
    let first = search.best;
    let counts = counts.take_while(|&count| count <= max_count);
    let splits = counts.map(|count| Split::of_count(elements, count));
    search.try_all(splits.filter(|split| split.is_balanced(elements)));
    let (time, split) = if is_better(search.best.0, first.0) {
        search.best
    } else {
        first
    };
    Ok(Best {
        segments: split.segments(elements)?,
        time: Time::Exact(time),
        method,
    })
}

/// The best time of all segments of one size, the last one possibly smaller: see
/// [`best_uni_greedy`].
pub(in crate::plan::pipeline) fn best_size(
    ranks: usize,
    elements: usize,
    max_count: usize,
    costs: impl Fn(usize) -> (f64, f64),
) -> (f64, Split) {
    UniGreedy::of_sizes(ranks, elements, max_count, costs).best
}

/// The search for the best segments of uni-greedy, and the best ones so far.
struct UniGreedy<F> {
    ranks: usize,
    elements: usize,
    /// The smallest size: that of the most segments.
    min_size: usize,
    costs: F,
    states: States,
    /// Idle time per rank while the tree of the last segment closes, in units of the last segment's
    /// `tc + tp`.
    idle: f64,
    /// The best time and its segments.
    best: (f64, Split),
}

impl<F: Fn(usize) -> (f64, f64)> UniGreedy<F> {
    fn new(ranks: usize, elements: usize, max_count: usize, costs: F) -> Self {
        let idle = (1..usize::BITS)
            .map_while(|j| ranks.checked_sub(1 << j))
            .fold(0.0, |sum, idle| sum + idle as f64);
        UniGreedy {
            ranks,
            elements,
            min_size: elements.div_ceil(max_count).max(1),
            costs,
            states: States::new(ranks),
            idle: idle / ranks.max(1) as f64,
            best: (f64::INFINITY, Split::of_count(elements, 1)),
        }
    }

    /// After the search over sizes.
    fn of_sizes(ranks: usize, elements: usize, max_count: usize, costs: F) -> Self {
        let mut search = UniGreedy::new(ranks, elements, max_count, costs);
        let min_size = search.min_size;
        let of_size = |size: usize| Split::of_size(elements, size.max(min_size));
        if elements <= ALL_SIZES {
            search.try_all((min_size..=elements.max(1)).map(of_size));
            return search;
        }
        let next = |&s: &usize| s.checked_add((s / 64).max(1)).filter(|&s| s <= elements);
        let grid = std::iter::successors(Some(min_size), next).chain([elements]);
        search.try_all(grid.map(of_size));
        let around = search.best.1.size;
        let (low, high) = (around - around / 32, (around + around / 32).min(elements));
        let step = ((high - low) / REFINED_SIZES).max(1);
        search.try_all((low..=high).step_by(step).map(of_size));
        let counts = search.counts();
        search.try_all(counts.map(|count| of_size(equal_size(elements, count))));
        search
    }

    /// Whether segments that are too small may be better. Bounds are convex in the number of
    /// segments: those of still smaller ones are larger if the first one's is.
    fn leaves_out(&self) -> bool {
        let smaller = Split::of_size(self.elements, (self.min_size - 1).max(1));
        self.min_size > 1 && self.bound(smaller) < self.best.0
    }

    /// Numbers of segments near the best one.
    fn counts(&self) -> std::ops::Range<usize> {
        let count = self.best.1.count;
        count.saturating_sub(32).max(1)..count + 32
    }

    /// Evaluates the splits that the lower bound does not rule out, the smallest bound first.
    fn try_all(&mut self, splits: impl IntoIterator<Item = Split>) {
        let splits = splits.into_iter().map(|split| (self.bound(split), split));
        let mut splits: Vec<(f64, Split)> = splits.collect();
        splits.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(b.1.size.cmp(&a.1.size)));
        for (bound, split) in splits {
            // The margin covers the rounding of the bound.
            if bound > self.best.0 * (1.0 + 1e-9) {
                return;
            }
            let time = self.time(split);
            if (time, split) < self.best {
                self.best = (time, split);
            }
        }
    }

    fn time(&mut self, split: Split) -> f64 {
        self.states.reset(self.ranks);
        for (size, count) in split.groups(self.elements) {
            let (tc, tp) = (self.costs)(size);
            self.states.reduce(tc, tp, count);
        }
        self.states.time()
    }

    /// Returns a lower bound of the time of uni-greedy.
    ///
    /// - Work: each of the `p - 1` transfers of a segment keeps two ranks busy for `tc` and one of
    ///   them for another `tp`.
    /// - Idle time: a rank is idle after it has sent its last segment. Read backwards from the end,
    ///   the number of ranks that still have to send at most doubles every `tc + tp` of the last
    ///   segment, so `p - 2^j` ranks are idle during the `j`-th such interval.
    /// - Latency: the first segment alone takes `ceil(log2 p)` steps.
    fn bound(&self, split: Split) -> f64 {
        if self.ranks < 2 {
            return 0.0;
        }
        let (mut work, mut last) = (0.0, 0.0);
        for (size, count) in split.groups(self.elements) {
            if count > 0 {
                let (tc, tp) = (self.costs)(size);
                work += count as f64 * (2.0 * tc + tp);
                last = tc + tp;
            }
        }
        let (tc, tp) = (self.costs)(split.size);
        let p = self.ranks as f64;
        let steps = f64::from(usize::BITS - (self.ranks - 1).leading_zeros());
        (work * (p - 1.0) / p + self.idle * last).max(steps * (tc + tp))
    }
}
