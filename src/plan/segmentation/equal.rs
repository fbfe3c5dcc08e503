//! The best size of equal segments, of which the last may be smaller.

use std::collections::BTreeMap;

use super::planned::best_out_of_order;
use super::published::Symbols;
use crate::collective::Kind;
use crate::error::{Error, Result};
use crate::plan::pipeline::uni_greedy::States;
use crate::plan::registry::Algorithm;
use crate::plan::{Request, Segments};
use crate::simulate;

/// The best segment size found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Best {
    /// Elements of a segment, at least 1.
    pub segment: usize,
    /// Time with segments of that size.
    pub time: f64,
    /// Whether `time` is as executed; otherwise it is an upper bound, that of a vector rounded up
    /// to whole segments and a binary tree rounded up to a full one (such schedules are too
    /// long to be simulated here).
    pub executed: bool,
    /// How it was found.
    pub method: Method,
}

/// How a segmentation was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// There is only one: the algorithm does not split the vector, or nothing is moved.
    Whole,
    /// The closed form's optimum, rounded to the better of its integer neighbours.
    ClosedForm,
    /// The best of all.
    Exhaustive,
    /// The best of those that a search tried.
    Search,
}

impl Method {
    /// `"whole"`, `"closed form"`, `"exhaustive"` or `"search"`.
    pub fn name(self) -> &'static str {
        match self {
            Method::Whole => "whole",
            Method::ClosedForm => "closed form",
            Method::Exhaustive => "exhaustive",
            Method::Search => "search",
        }
    }
}

/// Finds the best segment size of an algorithm for the request's vector; the request's own segments
/// do not matter.
///
/// Where the time has a closed form, the size is the better of its optimum's integer neighbours
/// (and of those that split the vector into as many even segments); uni-greedy is evaluated for all
/// sizes; out-of-order is planned for some, chosen by a lower bound of their times, uni-greedy's
/// best among them; others are searched by number of segments. Sizes that make more than 2^22
/// segments are not considered.
///
/// # Errors
/// As [`Algorithm::plan`].
///
/// ```
/// use oneport::plan::{registry, segmentation::best_segment};
/// use oneport::{CostModel, Kind, Request};
/// let mut request = Request::new(10, 800);
/// request.cost = CostModel::new(100.0, 1.0);
/// let best = best_segment(registry::find(Kind::Reduce, "chain")?, &request)?;
/// assert_eq!((best.segment, best.time), (100, 16.0 * 200.0));
/// # Ok::<(), oneport::Error>(())
/// ```
pub fn best_segment(algorithm: &Algorithm, request: &Request) -> Result<Best> {
    best_segment_within(algorithm, request, usize::MAX)
}

/// As [`best_segment`], where no schedule of more than `most_transfers` transfers can be stored.
///
/// # Errors
/// As [`best_segment`], and when the search comes to a longer one.
pub fn best_segment_within(
    algorithm: &Algorithm,
    request: &Request,
    max_transfers: usize,
) -> Result<Best> {
    algorithm.accepts(request)?;
    let m = request.elements();
    let mut trial = Trial::new(algorithm, request, max_transfers);
    if !algorithm.segmented || m <= 1 || request.ranks < 2 {
        trial.try_size(m.max(1))?;
        return Ok(trial.best(Method::Whole));
    }
    if is_uni_greedy(algorithm, request) {
        let request = free_of_computation(algorithm, request);
        return Ok(best_uni_greedy(request.ranks, m, |s| {
            (request.transfer_time(s), request.combine_time(s))
        }));
    }
    if is_out_of_order(algorithm, request)
        && let Some(best) = best_out_of_order(algorithm, request)?
    {
        return Ok(best);
    }
    let optimum = closed_optimum(algorithm, request);
    if let Some(s) = optimum {
        let count = even_size(m, m.div_ceil(s.ceil()));
        for size in [s.floor(), s.ceil(), count, even_size(m, m / s.floor())] {
            trial.try_size(size)?;
        }
        if trial.is_closed() {
            return Ok(trial.best(Method::ClosedForm));
        }
    }
    trial.search()?;
    Ok(trial.best(Method::Search))
}

/// The time that the rules give to `request`: by its closed form or evaluator where that covers the
/// request, by simulation otherwise.
///
/// # Errors
/// As [`Algorithm::plan`].
pub fn executed_time(algorithm: &Algorithm, request: &Request) -> Result<f64> {
    algorithm.accepts(request)?;
    if let Some(time) = closed_time(algorithm, request) {
        return Ok(time);
    }
    // A missing link is no error here, but an infinite time.
    if algorithm.bytes_a_transfer().is_some()
        && let Ok(timed) = algorithm.timed(request)
    {
        return Ok(timed.time);
    }
    let schedule = algorithm.plan(request)?;
    Ok(simulate::timed(&schedule, &request.cost, request.element_bytes)?.time)
}

/// The best segment size of uni-greedy, `costs` giving `(tc, tp)` of a segment.
///
/// Exact up to 2^17 elements: sizes are evaluated in the order of a lower bound of their times,
/// until the bound exceeds the best time found. Longer vectors are searched on a geometric grid of
/// sizes that is refined where it is best.
pub fn best_uni_greedy(ranks: usize, elements: usize, costs: impl Fn(usize) -> (f64, f64)) -> Best {
    const ALL: usize = 1 << 17;
    const FINE: usize = 1 << 9;
    let mut sizes = UniGreedy::new(ranks, elements, costs);
    if elements <= ALL {
        sizes.try_all(1..=elements.max(1));
        return sizes.best(Method::Exhaustive);
    }
    let next = |&s: &usize| s.checked_add((s / 64).max(1)).filter(|&s| s <= elements);
    sizes.try_all(std::iter::successors(Some(1), next).chain([elements]));
    let around = sizes.best.1;
    let (low, high) = (around - around / 32, (around + around / 32).min(elements));
    sizes.try_all((low..=high).step_by(((high - low) / FINE).max(1)));
    let count = elements.div_ceil(sizes.best.1);
    sizes.try_all((count.saturating_sub(32).max(1)..count + 32).map(|q| even_size(elements, q)));
    sizes.best(Method::Search)
}

/// Sizes of uni-greedy's segments that have been tried.
struct UniGreedy<F> {
    ranks: usize,
    elements: usize,
    costs: F,
    states: States,
    /// Idle time of all ranks while the last segment's tree closes, in units of its `tc + tp`, a
    /// rank.
    idle: f64,
    /// Time and size.
    best: (f64, usize),
}

impl<F: Fn(usize) -> (f64, f64)> UniGreedy<F> {
    fn new(ranks: usize, elements: usize, costs: F) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
        let idle = (1..usize::BITS)
            .map_while(|j| ranks.checked_sub(1 << j))
            .fold(0.0, |sum, idle| sum + idle as f64);
        UniGreedy {
            ranks,
            elements,
            costs,
            states: States::new(ranks),
            #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
            idle: idle / ranks.max(1) as f64,
            best: (f64::INFINITY, elements.max(1)),
        }
    }

    /// Tries those that their lower bound does not rule out, the most promising first.
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

    /// Number of full segments and size of the last, smaller one (0 if there is none).
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

    /// What uni-greedy takes at least.
    ///
    /// Each of the `p - 1` transfers of a segment keeps two ranks busy for `tc` and one for `tp`
    /// more. A rank that has sent its last segment is idle from then on; read backwards from
    /// the end, the ranks still to send at most double every `tc + tp` of the last segment, so
    /// `p - 2^j` are idle during the `j`-th such interval. And the first segment alone takes
    /// `ceil(log2 p)` steps.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
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

/// Segment sizes of one algorithm that have been tried.
struct Trial<'a> {
    algorithm: &'a Algorithm,
    request: Request,
    /// Time by size, and whether it is as executed.
    times: BTreeMap<usize, (f64, bool)>,
    /// Transfers simulated so far.
    simulated: usize,
    /// Transfers of the longest schedule that can be stored.
    max_transfers: usize,
}

impl<'a> Trial<'a> {
    /// Transfers of one simulation, and of all together, that a search may cost.
    const ONE: usize = 1 << 19;
    const ALL: usize = 1 << 21;
    /// Segments that a vector is split into at most.
    const SEGMENTS: usize = 1 << 22;

    fn new(algorithm: &'a Algorithm, request: &Request, max_transfers: usize) -> Self {
        Trial {
            algorithm,
            request: request.clone(),
            times: BTreeMap::new(),
            simulated: 0,
            max_transfers,
        }
    }

    fn best(&self, method: Method) -> Best {
        let rank = |&(&size, &(time, _)): &(&usize, &(f64, bool))| (time, self.count(size), size);
        let best = self
            .times
            .iter()
            .reduce(|a, b| if rank(&b) < rank(&a) { b } else { a });
        let (&segment, &(time, executed)) = best.expect("some size was tried");
        Best {
            segment,
            time,
            executed,
            method,
        }
    }

    fn count(&self, size: usize) -> usize {
        self.request.elements().div_ceil(size).max(1)
    }

    fn try_size(&mut self, size: usize) -> Result<()> {
        let m = self.request.elements();
        let size = size.clamp(m.div_ceil(Self::SEGMENTS).max(1), m.max(1));
        if self.times.contains_key(&size) {
            return Ok(());
        }
        self.request.segments = Segments::of_size(m, size)?;
        let transfers = self.count(size).saturating_mul(self.request.ranks);
        let time = if let Some(time) = closed_time(self.algorithm, &self.request) {
            (time, true)
        } else if self.count(size) == 1 || transfers <= Self::ONE {
            if transfers > self.max_transfers {
                return Err(Error::usage(format!(
                    "looking for the best segments of {} takes schedules of {transfers} transfers, more than the {} that fit into memory: \
                     say how large segments are to be",
                    self.algorithm.name, self.max_transfers
                )));
            }
            self.simulated = self.simulated.saturating_add(transfers);
            (executed_time(self.algorithm, &self.request)?, true)
        } else {
            let mut rounded = self.request.clone();
            rounded.segments = Segments::of_sizes(vec![size; self.count(size)])?;
            if self.algorithm.name == "binary" {
                rounded.ranks = (rounded.ranks + 1).next_power_of_two() - 1;
            }
            match closed_time(self.algorithm, &rounded) {
                Some(time) => (time, false),
                None => return Ok(()),
            }
        };
        self.times.insert(size, time);
        Ok(())
    }

    /// Whether the algorithm has a closed form under these costs, for as many full segments as
    /// there are in the best size tried.
    fn is_closed(&self) -> bool {
        if self.times.is_empty() || !self.request.closed_forms_hold() {
            return false;
        }
        let size = self.best(Method::ClosedForm).segment;
        let full = vec![size; self.request.elements() / size];
        Segments::of_sizes(full).is_ok_and(|segments| {
            let full = Request {
                segments,
                ..self.request.clone()
            };
            self.algorithm
                .time
                .is_some_and(|time| time(&full).is_some())
        })
    }

    /// Powers of two of segments, then a ternary search around the best of them, then its
    /// neighbours.
    fn search(&mut self) -> Result<()> {
        let m = self.request.elements();
        let (mut count, mut least, mut worse) = (1, f64::INFINITY, 0);
        // Start-up times only grow with more segments: after some doublings in vain there is
        // nothing more to find.
        while count <= m
            && count.saturating_mul(self.request.ranks) <= Self::ONE.max(self.request.ranks)
            && worse < 3
        {
            let time = self.time_of(even_size(m, count))?;
            let time = time.unwrap_or(f64::INFINITY);
            worse = if time < least { 0 } else { worse + 1 };
            least = least.min(time);
            count *= 2;
        }
        let best = self.count(self.best(Method::Search).segment);
        let (mut low, mut high) = ((best / 2).max(1), (2 * best).min(m));
        while high - low > 4 && self.simulated <= Self::ALL {
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
            if self.simulated <= Self::ALL {
                self.try_size(even_size(m, count))?;
            }
        }
        let best = self.best(Method::Search).segment;
        for size in [best - 1, best + 1] {
            if self.simulated <= Self::ALL {
                self.try_size(size)?;
            }
        }
        Ok(())
    }

    fn time_of(&mut self, size: usize) -> Result<Option<f64>> {
        self.try_size(size)?;
        Ok(self.times.get(&size).map(|t| t.0))
    }
}

/// The size that splits `elements` into at most `count` segments as even as possible but for the
/// last.
pub(super) fn even_size(elements: usize, count: usize) -> usize {
    elements.div_ceil(count.max(1)).max(1)
}

/// Whether the registered uni-greedy evaluator covers the request.
pub(super) fn is_uni_greedy(algorithm: &Algorithm, request: &Request) -> bool {
    algorithm.name == "uni-greedy"
        && is_rooted(algorithm)
        && !request.ports.is_bidirectional()
        && request.closed_forms_hold()
}

/// Reductions and broadcasts share names and times; an allreduce over one of them takes longer.
fn is_rooted(algorithm: &Algorithm) -> bool {
    matches!(algorithm.collective, Kind::Reduce | Kind::Broadcast)
}

/// Whether the registered planner that works out of order covers the request.
fn is_out_of_order(algorithm: &Algorithm, request: &Request) -> bool {
    algorithm.name == "out-of-order" && is_rooted(algorithm) && !request.ports.is_bidirectional()
}

/// The request, without computation where the collective has none.
pub(super) fn free_of_computation(algorithm: &Algorithm, request: &Request) -> Request {
    let mut request = request.clone();
    if !algorithm.collective.reduces() {
        request.cost = request.cost.gamma(0.0);
    }
    request
}

/// The registered closed form, where it describes what is executed: then [`executed_time`] need not
/// simulate anything.
pub fn closed_time(algorithm: &Algorithm, request: &Request) -> Option<f64> {
    let forwarded = request.keep_order && request.root != 0;
    if forwarded || !request.closed_forms_hold() {
        return None;
    }
    algorithm.time?(&free_of_computation(algorithm, request))
}

/// Where the closed form of the executed time is least, as a real number between two integers of
/// `1..=m`.
///
/// A time `(f + c m / s) alpha + (f b + g) s + ..` is least at `s = sqrt(c m alpha / slope)`,
/// `slope` being what `s` is multiplied by.
fn closed_optimum(algorithm: &Algorithm, request: &Request) -> Option<Size> {
    let Symbols {
        p,
        m,
        l,
        n,
        alpha,
        beta,
        gamma,
        ..
    } = Symbols::any(algorithm.collective, request)?;
    let unit = beta + gamma;
    let (starts, slope) = match (algorithm.name, request.ports.is_bidirectional()) {
        // (p + q - 2)(tc + tp)
        ("chain", true) => (1.0, (p - 2.0) * unit),
        // 2 (N + q - 2)(tc + tp)
        ("binary", true) => (1.0, (n - 2.0) * unit),
        // (L + q - 1)(tc + tp)
        ("bi-greedy" | "circulant", true) => (1.0, (l - 1.0) * unit),
        // (p - 1)(tc + tp) + (q - 1)(2 tc + tp)
        ("chain", false) => (2.0, (p - 1.0) * unit - 2.0 * beta - gamma),
        // 2 (N - 1)(tc + tp) + (q - 1)(3 tc + 2 tp)
        ("binary", false) => (3.0, 2.0 * (n - 1.0) * unit - 3.0 * beta - 2.0 * gamma),
        _ => return None,
    };
    let best = if slope > 0.0 {
        (starts * m * alpha / slope).sqrt()
    } else {
        m
    };
    Some(Size(best.clamp(1.0, m)))
}

/// A segment size that is not a whole number.
#[derive(Debug, Clone, Copy)]
struct Size(f64);

impl Size {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to 1..=m"
    )]
    fn floor(self) -> usize {
        (self.0.floor() as usize).max(1)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to 1..=m"
    )]
    fn ceil(self) -> usize {
        (self.0.ceil() as usize).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::pipeline::uni_greedy;
    use crate::plan::registry;
    use crate::{CostModel, Kind, Ports};

    fn request(p: usize, m: usize, ports: Ports) -> Request {
        let mut r = Request::new(p, m);
        r.ports = ports;
        r.cost = CostModel::new(10.0, 1.0).gamma(1.0);
        r
    }

    #[test]
    fn uni_greedy_is_the_best_of_all_sizes() {
        for p in [2, 3, 6, 15, 16, 100] {
            for m in [1, 7, 64, 200] {
                let r = request(p, m, Ports::UNI);
                let found =
                    best_segment(registry::find(Kind::Reduce, "uni-greedy").unwrap(), &r).unwrap();
                let time = |s| {
                    let segments = Segments::of_size(m, s).unwrap();
                    uni_greedy::time(&Request {
                        segments,
                        ..r.clone()
                    })
                    .unwrap()
                };
                let best = (1..=m).map(time).fold(f64::INFINITY, f64::min);
                assert_eq!(found.time, best, "p={p} m={m}");
                assert_eq!(time(found.segment), best);
            }
        }
        let r = request(64, 65536, Ports::UNI);
        let found = best_segment(registry::find(Kind::Reduce, "uni-greedy").unwrap(), &r).unwrap();
        assert_eq!((found.segment, found.time), (111, 221_011.0));
        assert_eq!(found.method, Method::Exhaustive);
    }

    #[test]
    fn long_vectors_are_searched() {
        let m = 10_000_000;
        let costs = |s: usize| (1000.0 + s as f64, 0.0);
        let found = best_uni_greedy(64, m, costs);
        assert_eq!(found.method, Method::Search);
        let time = |s: usize| {
            let rest = (m % s > 0).then(|| costs(m % s));
            uni_greedy::makespan(64, std::iter::repeat_n(costs(s), m / s).chain(rest))
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

    #[test]
    fn closed_forms_are_the_better_neighbour_as_executed() {
        for ports in [Ports::UNI, Ports::BI] {
            for algorithm in registry::all()
                .iter()
                .filter(|a| a.segmented && a.ports.allow(ports))
            {
                for p in [1, 2, 3, 4, 7, 15, 20] {
                    for m in [0, 1, 2, 30, 100] {
                        let r = request(p, m, ports);
                        let found = best_segment(algorithm, &r).unwrap();
                        assert!(found.executed && (1..=m.max(1)).contains(&found.segment));
                        let segments = Segments::of_size(m, found.segment).unwrap();
                        let r = Request { segments, ..r };
                        assert_eq!(executed_time(algorithm, &r).unwrap(), found.time);
                        for s in [1, m.div_ceil(2), m].map(|s| s.max(1)) {
                            let segments = Segments::of_size(m, s).unwrap();
                            let time = executed_time(
                                algorithm,
                                &Request {
                                    segments,
                                    ..r.clone()
                                },
                            )
                            .unwrap();
                            assert!(
                                found.time <= time,
                                "{} {ports:?} p={p} m={m} s={s}: {found:?}, {time}",
                                algorithm.name
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn whole_vectors_and_overlap() {
        let binomial = registry::find(Kind::Reduce, "binomial").unwrap();
        let best = best_segment(binomial, &request(8, 100, Ports::BI)).unwrap();
        assert_eq!((best.segment, best.method), (100, Method::Whole));
        let mut r = request(8, 100, Ports::BI);
        r.cost.overlap = true;
        let chain = registry::find(Kind::Reduce, "chain").unwrap();
        assert_eq!(best_segment(chain, &r).unwrap().method, Method::Search);
    }
}
