//! Searches for segments of unequal sizes (Lowery & Langou, section VIII).

use std::collections::{HashSet, VecDeque};

use super::Method;
use super::equal::Best;
use crate::budget::search::ALL_COMPOSITIONS;
use crate::error::Result;
use crate::plan::choose::with_best_segments;
use crate::plan::registry::Algorithm;
use crate::plan::space::{Time, Variant, is_better};
use crate::plan::{Request, Segments};

/// The best segment sizes found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct BestSizes {
    /// Elements of each segment, in order.
    pub sizes: Vec<usize>,
    /// Time with these segments.
    pub time: f64,
    /// How they were found: [`Method::Exhaustive`] means that all compositions of the vector were
    /// tried, [`Method::LimitedSearch`] that there were fewer trials than moves that may be better,
    /// or that the search for equal ones was limited.
    pub method: Method,
}

/// Iterates over all compositions of `elements`: the ways to write it as an ordered sum of positive
/// sizes. There are `2^(elements - 1)` of them; for 0 elements there is one, the empty one.
///
/// # Panics
/// When `elements` is more than 63.
pub fn compositions(elements: usize) -> impl Iterator<Item = Vec<usize>> {
    assert!(elements < 64, "2^{elements} compositions");
    // Bit i says whether a segment ends after element i.
    (0..1u64 << elements.saturating_sub(1)).map(move |ends| {
        let mut sizes = Vec::new();
        let mut size = 0;
        for i in 0..elements {
            size += 1;
            if i + 1 == elements || ends >> i & 1 == 1 {
                sizes.push(size);
                size = 0;
            }
        }
        sizes
    })
}

/// Searches for segment sizes of an algorithm, unequal ones allowed, by about `trials` evaluations
/// at most, each as [`Algorithm::time`], for the root and the use of the ports that are best for
/// equal ones. The result is never worse than the best equal sizes. Errors are those of
/// [`Algorithm::plan`].
///
/// ```
/// use oneport::plan::{registry, segments::best_unequal};
/// use oneport::{CostModel, Kind, Ports, Request};
/// let cost = CostModel::new(0.0, 1.0).gamma(1.0);
/// let request = Request::reduce(12, 10).ports(Ports::UNI).cost(cost);
/// let best = best_unequal(&registry::find(Kind::Reduce, "uni-greedy")?, &request, 1000)?;
/// assert_eq!(best.time, 41.0); // 44 with ten segments of 1 element
/// # Ok::<(), oneport::Error>(())
/// ```
pub fn best_unequal(algorithm: &Algorithm, request: &Request, trials: usize) -> Result<BestSizes> {
    let equal = with_best_segments(algorithm, request)?;
    match equal.segments_found {
        None | Some(Method::Whole) => Ok(BestSizes {
            sizes: equal.request.segments.sizes().to_vec(),
            time: equal.time,
            method: Method::Whole,
        }),
        Some(method) => equal.best_unequal_near(method, trials, usize::MAX),
    }
}

impl Variant {
    /// As [`best_segments`](Self::best_segments), but also of unequal sizes, if there is time for
    /// that.
    pub(in crate::plan) fn best_unequal_segments(&self, max_transfers: usize) -> Result<Best> {
        let equal = self.best_segments(max_transfers)?;
        if equal.method == Method::Whole {
            return Ok(equal);
        }
        let variant = self.with_segments(equal.segments.clone());
        let trials = variant.trials_of_unequal();
        if trials == 0 {
            let method = Method::LimitedSearch;
            return Ok(Best { method, ..equal });
        }
        let found = variant.best_unequal_near(equal.method, trials, max_transfers)?;
        Ok(Best {
            segments: Segments::of_sizes(found.sizes)?,
            time: Time::Exact(found.time),
            method: found.method,
        })
    }

    /// As [`best_unequal`], of this variant, whose segments are the best equal ones, found by this
    /// method, for a memory that holds schedules of at most `max_transfers` transfers.
    fn best_unequal_near(
        &self,
        equal: Method,
        trials: usize,
        max_transfers: usize,
    ) -> Result<BestSizes> {
        let sizes = self.request.segments.sizes();
        let mut variant = self.clone();
        variant.request = self.algorithm.effective(&self.request).into_owned();
        let max_count = self.max_segments(max_transfers);
        let (mut leaves_out, mut failed) = (false, None);
        let found = best_sizes(sizes, trials, |sizes| {
            if sizes.len() > max_count {
                leaves_out = true;
                return f64::INFINITY;
            }
            let time = Segments::of_sizes(sizes.to_vec()).and_then(|segments| {
                variant.request.segments = segments;
                variant.time_or_infinity()
            });
            time.unwrap_or_else(|e| {
                failed = Some(e);
                f64::INFINITY
            })
        });
        if let Some(error) = failed {
            return Err(error);
        }
        // What the search for equal ones left out may be better than what was found from there.
        let from_limited = equal == Method::LimitedSearch && found.method == Method::Search;
        let method = if leaves_out || from_limited {
            Method::LimitedSearch
        } else {
            found.method
        };
        Ok(BestSizes { method, ..found })
    }
}

/// Searches for segment sizes of a vector under any function `time`. The result is never worse than
/// `start`.
///
/// If the vector has at most 16 elements and `trials` is large enough, all compositions are tried.
/// Otherwise the search starts from the best of `start` and some balanced and ramped splits into
/// about as many segments. It then applies moves to the best sizes and to sizes of the same time:
/// shift elements from one segment to another, merge neighbours, split a segment. It stops when no
/// move improves the time or after `trials` evaluations, and that of `start`. Memory: all sizes
/// that were evaluated.
pub fn best_sizes(start: &[usize], trials: usize, time: impl FnMut(&[usize]) -> f64) -> BestSizes {
    let mut search = SizeSearch::new(start, time);
    let elements: usize = start.iter().sum();
    if elements <= ALL_COMPOSITIONS && 1 << elements.saturating_sub(1) <= trials {
        for sizes in compositions(elements) {
            search.consider(sizes);
        }
        return search.found(Method::Exhaustive);
    }
    for sizes in starts(elements, start.len()).into_iter().take(trials) {
        search.consider(sizes);
    }
    while let Some(base) = search.frontier.pop_front() {
        if !search.try_moves(&base, trials) {
            return search.found(Method::LimitedSearch);
        }
    }
    search.found(Method::Search)
}

/// Returns the start points for segment counts within 2 of `count`: balanced ones with the larger
/// segments first or last, and ramped splits whose last segment is smaller.
fn starts(elements: usize, count: usize) -> Vec<Vec<usize>> {
    let mut starts = Vec::new();
    for count in count.saturating_sub(2).max(1)..=(count + 2).min(elements) {
        let (size, larger) = (elements / count, elements % count);
        let balanced: Vec<_> = (0..count).map(|i| size + usize::from(i < larger)).collect();
        starts.push(balanced.iter().rev().copied().collect());
        for part in [2, 4] {
            // The last segment gives part of itself to all others; a single segment keeps it.
            let mut ramp = balanced.clone();
            let given = ramp[count - 1] / part;
            ramp[count - 1] -= given;
            let receivers = count.saturating_sub(1).max(1);
            for (i, size) in ramp.iter_mut().enumerate().take(receivers) {
                *size += given / receivers + usize::from(i < given % receivers);
            }
            starts.push(ramp);
        }
        starts.push(balanced);
    }
    starts
}

struct SizeSearch<F> {
    time: F,
    best: Vec<usize>,
    best_time: f64,
    /// Sizes with the best time from which no move has been tried.
    frontier: VecDeque<Vec<usize>>,
    tried: HashSet<Vec<usize>>,
}

impl<F: FnMut(&[usize]) -> f64> SizeSearch<F> {
    fn new(start: &[usize], mut time: F) -> Self {
        let best_time = time(start);
        SizeSearch {
            time,
            best: start.to_vec(),
            best_time,
            frontier: VecDeque::from([start.to_vec()]),
            tried: HashSet::from([start.to_vec()]),
        }
    }

    fn found(self, method: Method) -> BestSizes {
        BestSizes {
            sizes: self.best,
            time: self.best_time,
            method,
        }
    }

    /// Evaluates `sizes` and keeps them if they are the best so far by more than rounding errors.
    ///
    /// Returns whether they are.
    fn consider(&mut self, sizes: Vec<usize>) -> bool {
        if sizes.is_empty() || self.tried.contains(&sizes) {
            return false;
        }
        let time = (self.time)(&sizes);
        self.tried.insert(sizes.clone());
        let better = is_better(time, self.best_time);
        if better {
            self.best_time = time;
            self.best.clone_from(&sizes);
            self.frontier.clear();
        }
        if !is_better(self.best_time, time) {
            self.frontier.push_back(sizes);
        }
        better
    }

    /// Tries the moves from `base` until one improves the best time. Returns whether `trials` were
    /// enough for that.
    fn try_moves(&mut self, base: &[usize], trials: usize) -> bool {
        for sizes in moves(base) {
            if self.tried.len() >= trials {
                return false;
            }
            if self.consider(sizes) {
                return true;
            }
        }
        true
    }
}

/// Iterates over the neighbours of `sizes`. The first and last segments influence the time most, so
/// their moves come first.
fn moves(sizes: &[usize]) -> impl Iterator<Item = Vec<usize>> + '_ {
    let count = sizes.len();
    let mut positions: Vec<usize> = (0..count).collect();
    positions.sort_by_key(|&i| i.min(count - 1 - i));
    // A segment exchanges elements with its neighbours and with its mirror image; the first and
    // last segments also do so with one another.
    const ENDS: usize = 6;
    let partners = move |i: usize| {
        let end = i < ENDS || i + ENDS >= count;
        let ends = (0..ENDS.min(count)).chain(count.saturating_sub(ENDS).max(ENDS)..count);
        let near = i.saturating_sub(2)..(i + 3).min(count);
        let others = near.chain([count - 1 - i]).chain(ends.filter(move |_| end));
        others.filter(move |&j| j != i).map(move |j| (i, j))
    };
    let pairs = positions.into_iter().flat_map(partners);
    let merged = (1..count).map(|i| {
        let mut new = sizes.to_vec();
        new[i - 1] += new.remove(i);
        new
    });
    let split = (0..count).filter(|&i| sizes[i] > 1).flat_map(|i| {
        let larger = sizes[i].div_ceil(2);
        [larger, sizes[i] - larger, 1, sizes[i] - 1].map(|first| {
            let mut new = sizes.to_vec();
            new[i] = first;
            new.insert(i + 1, sizes[i] - first);
            new
        })
    });
    let shifted = pairs.flat_map(move |(from, to)| {
        let amounts = std::iter::successors(Some(1usize), |a| a.checked_mul(4));
        amounts
            .take_while(move |&a| a <= sizes[from] / 2 || a == sizes[from])
            .map(move |a| {
                let mut new = sizes.to_vec();
                new[from] -= a;
                new[to] += a;
                new.retain(|&s| s > 0);
                new
            })
    });
    shifted.chain(split).chain(merged)
}
