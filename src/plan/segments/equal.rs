//! Finds the best size of equal segments; the last segment may be smaller.

use std::collections::BTreeMap;

use super::published::Symbols;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::registry::{Algorithm, BestSegment};
use crate::plan::{Request, Segments};

/// The best segment size found.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Best {
    /// Elements of a segment, at least 1.
    pub segment: usize,
    /// Model time with segments of that size.
    pub time: f64,
    /// Whether `time` is the executed time. Otherwise it is an upper bound: the time of a vector
    /// rounded up to whole segments, for "binary" on a tree rounded up to a full one. Such
    /// schedules are too long to be simulated during a search.
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
    /// All sizes were compared.
    Exhaustive,
    /// A search compared some sizes.
    Search,
    /// A search compared some sizes, and left out others because simulating their schedules exceeds
    /// its limits. These may be better.
    LimitedSearch,
}

impl Method {
    /// Returns `"whole"`, `"closed form"`, `"exhaustive"`, `"search"` or `"limited search"`.
    pub fn name(self) -> &'static str {
        match self {
            Method::Whole => "whole",
            Method::ClosedForm => "closed form",
            Method::Exhaustive => "exhaustive",
            Method::Search => "search",
            Method::LimitedSearch => "limited search",
        }
    }
}

/// Finds the best segment size of an algorithm for the request's vector. The request's own segments
/// are ignored.
///
/// - Closed form: the better of the integer neighbours of its optimum, and of the sizes that split
///   the vector into the same numbers of even segments.
/// - Uni-greedy: all sizes are evaluated by its own
///   [evaluator](crate::plan::pipeline::uni_greedy::best_uni_greedy).
/// - Out-of-order: some sizes are planned. A lower bound of their times selects them, and the best
///   size of uni-greedy is always among them.
/// - Other algorithms: a search over the number of segments.
///
/// Sizes that make more than 2^22 segments are not considered.
///
/// # Complexity
/// A closed form takes a few evaluations. A search simulates at most 2^19 transfers at once and
/// `3 * 2^20` in all, beyond one schedule of a single segment; `p` transfers are counted for each
/// segment, of which an allreduce makes twice as many.
///
/// # Errors
/// As [`Algorithm::plan`].
///
/// ```
/// use oneport::plan::{registry, segments::best_segment};
/// use oneport::{CostModel, Kind, Request};
/// let request = Request::reduce(10, 800).cost(CostModel::new(100.0, 1.0));
/// let best = best_segment(registry::find(Kind::Reduce, "chain")?, &request)?;
/// assert_eq!((best.segment, best.time), (100, 16.0 * 200.0));
/// # Ok::<(), oneport::Error>(())
/// ```
pub fn best_segment(algorithm: &Algorithm, request: &Request) -> Result<Best> {
    best_segment_within(algorithm, request, usize::MAX)
}

/// Like [`best_segment`], for a memory that holds schedules of at most `max_transfers` transfers.
///
/// # Errors
/// Those of [`best_segment`], and when the search needs a schedule of more transfers.
pub fn best_segment_within(
    algorithm: &Algorithm,
    request: &Request,
    max_transfers: usize,
) -> Result<Best> {
    algorithm.accepts(request)?;
    let pairs = algorithm.in_pairs(request);
    let request = pairs.as_ref().unwrap_or(request);
    let m = request.elements();
    let mut trial = Trial::new(algorithm, request, max_transfers);
    if !algorithm.segmented || m <= 1 || request.ranks < 2 {
        trial.try_size(m.max(1))?;
        return Ok(trial.best(Method::Whole));
    }
    let optimum = match algorithm.best_segment {
        BestSegment::Search => None,
        BestSegment::Formula(size) => Symbols::of(&algorithm.effective(request)).map(|x| size(&x)),
        BestSegment::Own(best) => {
            if let Some(best) = best(algorithm, request)? {
                return Ok(best);
            }
            None
        }
    };
    if let Some(s) = optimum.map(Size) {
        let count = even_size(m, m.div_ceil(s.ceil()));
        for size in [s.floor(), s.ceil(), count, even_size(m, m / s.floor())] {
            trial.try_size(size)?;
        }
        if trial.is_closed() {
            return Ok(trial.best(Method::ClosedForm));
        }
    }
    trial.search()?;
    Ok(trial.best(match trial.limited {
        true => Method::LimitedSearch,
        false => Method::Search,
    }))
}

/// Returns the model time of `request`: by its closed form or evaluator where there is one for this
/// request, by simulation otherwise, in time linear in the number of steps. It is infinite if a
/// message has no link.
///
/// # Errors
/// As [`Algorithm::plan`].
pub fn executed_time(algorithm: &Algorithm, request: &Request) -> Result<f64> {
    algorithm.accepts(request)?;
    if let Some(time) = closed_time(algorithm, request) {
        return Ok(time);
    }
    let planned = algorithm.planned(request)?;
    match planned.timed(&request.cost, request.element_bytes, |_| ()) {
        Ok(timed) => Ok(timed.time),
        Err(error) if matches!(error.kind(), ErrorKind::NoLink { .. }) => Ok(f64::INFINITY),
        Err(error) => Err(error),
    }
}

/// Segment sizes of one algorithm that have been tried.
struct Trial<'a> {
    algorithm: &'a Algorithm,
    request: Request,
    /// By size: its time, and whether that is the executed time.
    times: BTreeMap<usize, (f64, bool)>,
    /// Transfers simulated so far.
    simulated: usize,
    /// Whether a size was left out because of the limits of simulations.
    limited: bool,
    /// Transfers of the longest schedule that can be stored.
    max_transfers: usize,
}

impl<'a> Trial<'a> {
    /// Limit of the transfers of one simulation.
    const MAX_SIMULATION: usize = 1 << 19;
    /// Limit of the transfers of all simulations of a search.
    const MAX_TOTAL: usize = 3 << 20;
    /// Limit of the number of segments of a vector.
    const MAX_SEGMENTS: usize = 1 << 22;

    fn new(algorithm: &'a Algorithm, request: &Request, max_transfers: usize) -> Self {
        Trial {
            algorithm,
            request: request.clone(),
            times: BTreeMap::new(),
            simulated: 0,
            limited: false,
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
        let size = size.clamp(m.div_ceil(Self::MAX_SEGMENTS).max(1), m.max(1));
        if self.times.contains_key(&size) {
            return Ok(());
        }
        self.request.segments = Segments::of_size(m, size)?;
        let transfers = self.count(size).saturating_mul(self.request.ranks);
        let simulated = self.simulated.saturating_add(transfers);
        let is_short = transfers <= Self::MAX_SIMULATION && simulated <= Self::MAX_TOTAL;
        let time = if let Some(time) = closed_time(self.algorithm, &self.request) {
            (time, true)
        } else if self.count(size) == 1 || is_short {
            if transfers > self.max_transfers {
                return Err(Error::usage(format!(
                    "the search for the best segment size of {} needs schedules of {transfers} transfers, more than the {} that fit into memory: \
                     give a segment size instead",
                    self.algorithm.name, self.max_transfers
                )));
            }
            self.simulated = simulated;
            (executed_time(self.algorithm, &self.request)?, true)
        } else {
            let mut rounded = self.request.clone();
            rounded.segments = Segments::of_sizes(vec![size; self.count(size)])?;
            rounded.ranks = (self.algorithm.covered_ranks)(rounded.ranks);
            match closed_time(self.algorithm, &rounded) {
                Some(time) => (time, false),
                None => {
                    self.limited = true;
                    return Ok(());
                }
            }
        };
        self.times.insert(size, time);
        Ok(())
    }

    /// Whether the algorithm has a closed form under these costs for the full segments of the best
    /// size tried.
    fn is_closed(&self) -> bool {
        if self.times.is_empty() || !self.request.closed_forms_hold() {
            return false;
        }
        let size = self.best(Method::ClosedForm).segment;
        let full = vec![size; self.request.elements() / size];
        Segments::of_sizes(full).is_ok_and(|segments| {
            let full = self.request.clone().segments(segments);
            self.algorithm.closed_form(&full).is_some()
        })
    }

    /// Tries powers of two as numbers of segments, then searches ternarily around the best of them,
    /// then tries the neighbours of the result.
    fn search(&mut self) -> Result<()> {
        let m = self.request.elements();
        let (mut count, mut min_time, mut worse) = (1, f64::INFINITY, 0);
        // More segments only add start-up times: after three doublings without a gain, further ones
        // cannot gain.
        while count <= m
            && count.saturating_mul(self.request.ranks)
                <= Self::MAX_SIMULATION.max(self.request.ranks)
            && worse < 3
        {
            let time = self.time_of(even_size(m, count))?;
            let time = time.unwrap_or(f64::INFINITY);
            worse = if time < min_time { 0 } else { worse + 1 };
            min_time = min_time.min(time);
            count *= 2;
        }
        let best = self.count(self.best(Method::Search).segment);
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
        let best = self.best(Method::Search).segment;
        for size in [best - 1, best + 1] {
            self.try_size(size)?;
        }
        Ok(())
    }

    fn time_of(&mut self, size: usize) -> Result<Option<f64>> {
        self.try_size(size)?;
        Ok(self.times.get(&size).map(|t| t.0))
    }
}

/// Returns the size that splits `elements` into at most `count` segments, all equal except the
/// last.
pub(in crate::plan) fn even_size(elements: usize, count: usize) -> usize {
    elements.div_ceil(count.max(1)).max(1)
}

/// The model time of `request` by the registered closed form, where that describes what is
/// executed: then [`executed_time`] need not simulate anything. `None` where links differ,
/// computation overlaps communication, or the result is forwarded to the root.
pub fn closed_time(algorithm: &Algorithm, request: &Request) -> Option<f64> {
    let forwarded = request.keep_order && request.root != 0;
    if forwarded || !request.closed_forms_hold() {
        return None;
    }
    algorithm.closed_form(request)
}

/// A segment size that need not be an integer.
#[derive(Debug, Clone, Copy)]
struct Size(f64);

impl Size {
    fn floor(self) -> usize {
        (self.0.floor() as usize).max(1)
    }

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
        Request::reduce(p, m)
            .ports(ports)
            .cost(CostModel::new(10.0, 1.0).gamma(1.0))
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
                    uni_greedy::time(&r.clone().segments(segments)).unwrap()
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
    fn closed_forms_are_the_better_neighbour_as_executed() {
        for ports in [Ports::UNI, Ports::BI] {
            for algorithm in registry::all()
                .iter()
                .filter(|a| a.segmented && a.ports.allow(ports))
            {
                for p in [1, 2, 3, 4, 7, 15, 20] {
                    for m in [0, 1, 2, 30, 100] {
                        let r = request(p, m, ports).collective(algorithm.collective);
                        let found = best_segment(algorithm, &r).unwrap();
                        assert!(found.executed && (1..=m.max(1)).contains(&found.segment));
                        let segments = Segments::of_size(m, found.segment).unwrap();
                        let r = r.segments(segments);
                        assert_eq!(executed_time(algorithm, &r).unwrap(), found.time);
                        for s in [1, m.div_ceil(2), m].map(|s| s.max(1)) {
                            let segments = Segments::of_size(m, s).unwrap();
                            let time =
                                executed_time(algorithm, &r.clone().segments(segments)).unwrap();
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

    /// Segments of few elements are best where start-up times are almost free.
    #[test]
    fn searches_keep_within_their_limits_and_say_so() {
        for (kind, name) in [
            (Kind::Broadcast, "two-tree"),
            (Kind::Reduce, "two-tree"),
            (Kind::Broadcast, "binary"),
        ] {
            let algorithm = registry::find(kind, name).unwrap();
            for (m, alpha, limited) in [(720_720, 1e-4, true), (720, 10.0, false)] {
                let request = Request::new(kind, 5, m).cost(CostModel::new(alpha, 1.0));
                let mut trial = Trial::new(algorithm, &request, usize::MAX);
                trial.search().unwrap();
                assert!(trial.simulated <= Trial::MAX_TOTAL, "{}", trial.simulated);
                let found = best_segment(algorithm, &request).unwrap();
                // The closed form of "binary" bounds the times of all sizes.
                let limited = limited && name != "binary";
                assert_eq!(found.method == Method::LimitedSearch, limited, "{name} {m}");
            }
        }
    }

    #[test]
    fn whole_vectors_and_overlap() {
        let binomial = registry::find(Kind::Reduce, "binomial").unwrap();
        let best = best_segment(binomial, &request(8, 100, Ports::BI)).unwrap();
        assert_eq!((best.segment, best.method), (100, Method::Whole));
        let mut r = request(8, 100, Ports::BI);
        r.cost = r.cost.overlap(true);
        let chain = registry::find(Kind::Reduce, "chain").unwrap();
        assert_eq!(best_segment(chain, &r).unwrap().method, Method::Search);
    }
}
