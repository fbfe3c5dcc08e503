//! The best size of equal segments for uni-greedy, by its evaluator.

use super::States;
use crate::error::Result;
use crate::plan::Request;
use crate::plan::registry::Algorithm;
use crate::plan::segments::{Best, Method, even_size};

/// Finds the best segment size for a request whose costs are the same for all ranks.
pub(super) fn best(algorithm: &Algorithm, request: &Request) -> Result<Option<Best>> {
    if !request.closed_forms_hold() {
        return Ok(None);
    }
    let request = algorithm.effective(request);
    let costs = |s| (request.transfer_time(s), request.combine_time(s));
    Ok(Some(best_uni_greedy(
        request.ranks,
        request.elements(),
        costs,
    )))
}

/// Finds the best segment size of uni-greedy for a vector of `elements` elements. `costs` maps the
/// number of elements of a segment to `(tc, tp)`: the times to transfer and to combine it, in any
/// unit.
///
/// Exact up to 2^17 elements: all sizes are sorted by a lower bound of their times and evaluated by
/// [`States`] until the bound exceeds the best time found. For longer vectors it considers a
/// geometric grid of sizes, then a finer grid around the best of them: fewer than 4000 sizes.
pub fn best_uni_greedy(ranks: usize, elements: usize, costs: impl Fn(usize) -> (f64, f64)) -> Best {
    const MAX_EXHAUSTIVE: usize = 1 << 17;
    const REFINED_SIZES: usize = 1 << 9;
    let mut sizes = UniGreedy::new(ranks, elements, costs);
    if elements <= MAX_EXHAUSTIVE {
        sizes.try_all(1..=elements.max(1));
        return sizes.best(Method::Exhaustive);
    }
    let next = |&s: &usize| s.checked_add((s / 64).max(1)).filter(|&s| s <= elements);
    sizes.try_all(std::iter::successors(Some(1), next).chain([elements]));
    let around = sizes.best.1;
    let (low, high) = (around - around / 32, (around + around / 32).min(elements));
    sizes.try_all((low..=high).step_by(((high - low) / REFINED_SIZES).max(1)));
    let count = elements.div_ceil(sizes.best.1);
    sizes.try_all((count.saturating_sub(32).max(1)..count + 32).map(|q| even_size(elements, q)));
    sizes.best(Method::Search)
}

/// The search for the best segment size of uni-greedy, and the best size so far.
struct UniGreedy<F> {
    ranks: usize,
    elements: usize,
    costs: F,
    states: States,
    /// Idle time per rank while the tree of the last segment closes, in units of the last segment's
    /// `tc + tp`.
    idle: f64,
    /// The best time and its size.
    best: (f64, usize),
}

impl<F: Fn(usize) -> (f64, f64)> UniGreedy<F> {
    fn new(ranks: usize, elements: usize, costs: F) -> Self {
        let idle = (1..usize::BITS)
            .map_while(|j| ranks.checked_sub(1 << j))
            .fold(0.0, |sum, idle| sum + idle as f64);
        UniGreedy {
            ranks,
            elements,
            costs,
            states: States::new(ranks),
            idle: idle / ranks.max(1) as f64,
            best: (f64::INFINITY, elements.max(1)),
        }
    }

    /// Evaluates the sizes that the lower bound does not rule out, the smallest bound first.
    fn try_all(&mut self, sizes: impl IntoIterator<Item = usize>) {
        let mut sizes: Vec<(f64, usize)> = sizes.into_iter().map(|s| (self.bound(s), s)).collect();
        sizes.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        for (bound, size) in sizes {
            // The margin covers the rounding of the bound.
            if bound > self.best.0 * (1.0 + 1e-9) {
                return;
            }
            let time = self.time(size);
            let rank = |time: f64, size| (time, self.elements.div_ceil(size), size);
            if rank(time, size) < rank(self.best.0, self.best.1) {
                self.best = (time, size);
            }
        }
    }

    fn best(&self, method: Method) -> Best {
        Best {
            segment: self.best.1,
            time: self.best.0,
            executed: true,
            method,
        }
    }

    /// Returns the number of full segments and the size of the smaller last one (0 if there is
    /// none).
    fn split(&self, size: usize) -> (usize, usize) {
        (self.elements / size, self.elements % size)
    }

    fn time(&mut self, size: usize) -> f64 {
        let (full, rest) = self.split(size);
        self.states.reset(self.ranks);
        for (size, count) in [(size, full), (rest, usize::from(rest > 0))] {
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
    fn bound(&self, size: usize) -> f64 {
        if self.ranks < 2 {
            return 0.0;
        }
        let (full, rest) = self.split(size);
        let (tc, tp) = (self.costs)(size);
        let busy = |tc: f64, tp: f64| 2.0 * tc + tp;
        let mut work = full as f64 * busy(tc, tp);
        let mut last = tc + tp;
        if rest > 0 {
            let (tc, tp) = (self.costs)(rest);
            work += busy(tc, tp);
            last = tc + tp;
        }
        let p = self.ranks as f64;
        let steps = f64::from(usize::BITS - (self.ranks - 1).leading_zeros());
        (work * (p - 1.0) / p + self.idle * last).max(steps * (tc + tp))
    }
}

#[cfg(test)]
mod tests {
    use super::super::makespan;
    use super::*;

    #[test]
    fn long_vectors_are_searched() {
        let m = 10_000_000;
        let costs = |s: usize| (1000.0 + s as f64, 0.0);
        let found = best_uni_greedy(64, m, costs);
        assert_eq!(found.method, Method::Search);
        let time = |s: usize| {
            let rest = (m % s > 0).then(|| costs(m % s));
            makespan(64, std::iter::repeat_n(costs(s), m / s).chain(rest))
        };
        assert_eq!(time(found.segment), found.time);
        for s in (1..60).map(|i| 200 * i) {
            assert!(
                found.time <= time(s) * 1.0001,
                "{found:?}, {s}: {}",
                time(s)
            );
        }
    }
}
