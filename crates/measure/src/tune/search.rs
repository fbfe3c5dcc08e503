//! Search for the best segment size of one algorithm at one vector size.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::summary::Summary;
use super::{BASE_REPETITIONS, Sweep, Trial};
use oneport::error::{Error, Result};
use oneport::internal::budget::search::MAX_STEPS_MEASURED;
use oneport::internal::numbers::truncated;
use oneport::plan::choose::with_best_segments;
use oneport::plan::registry::Algorithm;
use oneport::plan::{Request, Segments};

/// If the best size differs from the last size tried by this factor, and all sizes between are
/// worse, the best size is not at an edge of the range.
const EDGE_RATIO: f64 = 4.0;

/// Segment sizes tried, in elements, and their times.
#[derive(Debug)]
pub(super) struct Search {
    pub(super) algorithm: Algorithm,
    /// The request with the vector in one segment.
    pub(super) whole: Request,
    pub(super) bytes: u64,
    /// Whether all powers of two are tried as sizes, and no others.
    powers: bool,
    tried: BTreeMap<usize, Candidate>,
    /// Rows of an earlier sweep, by segment size.
    known: BTreeMap<usize, Trial>,
}

#[derive(Debug)]
struct Candidate {
    request: Request,
    model_time: f64,
    samples: Vec<u64>,
    summary: Option<Summary>,
    /// Whether it comes from an earlier sweep and gets no more repetitions.
    known: bool,
    /// Whether it is being measured for the first time. It counts once it has
    /// [`BASE_REPETITIONS`].
    fresh: bool,
}

impl Search {
    pub(super) fn new(
        algorithm: &Algorithm,
        sweep: &Sweep,
        bytes: u64,
        known: &[Trial],
    ) -> Result<Search> {
        let request = &sweep.request;
        let size = request.get_element_bytes();
        if size == 0 || !bytes.is_multiple_of(size) {
            return Err(Error::usage(format!(
                "a vector of {bytes} bytes is not a whole number of elements of {size} bytes"
            )));
        }
        let elements = usize::try_from(bytes / size)
            .map_err(|_| Error::usage(format!("a vector of {bytes} bytes is too large")))?;
        let whole = request.clone().segments(Segments::whole(elements));
        algorithm.accepts(&whole)?;
        let mine = |row: &&Trial| row.bytes == bytes && row.algorithm == algorithm.name();
        let elements_of = |row: &Trial| usize::try_from(row.segment / size).unwrap_or(elements);
        let known = known.iter().filter(mine);
        let known: BTreeMap<_, _> = known.map(|row| (elements_of(row), row.clone())).collect();
        let mut search = Search {
            algorithm: algorithm.clone(),
            whole,
            bytes,
            powers: sweep.powers && algorithm.segmented,
            tried: BTreeMap::new(),
            known,
        };
        for segment in search.known.keys().copied().collect::<Vec<_>>() {
            search.enter(segment)?;
        }
        Ok(search)
    }

    pub(super) fn request(&self, segment: usize) -> &Request {
        &self.tried[&segment].request
    }

    pub(super) fn samples(&self, segment: usize) -> &[u64] {
        &self.tried[&segment].samples
    }

    pub(super) fn summary(&self, segment: usize) -> Option<Summary> {
        self.tried.get(&segment).and_then(|c| c.summary)
    }

    /// Segment sizes whose times count.
    pub(super) fn segments(&self) -> impl Iterator<Item = usize> {
        self.times().map(|(segment, _)| segment)
    }

    pub(super) fn measured(&self) -> usize {
        self.times().count()
    }

    fn times(&self) -> impl Iterator<Item = (usize, Summary)> {
        let counts = |c: &Candidate| !c.fresh || c.samples.len() >= BASE_REPETITIONS;
        let tried = self.tried.iter().filter(move |(_, c)| counts(c));
        tried.filter_map(|(&segment, c)| Some((segment, c.summary?)))
    }

    /// Returns the segment size with the smallest median so far.
    pub(super) fn leader(&self) -> Option<usize> {
        let best = self.times().min_by_key(|(_, s)| s.median);
        best.map(|(segment, _)| segment)
    }

    /// Whether a segment size may get more repetitions.
    pub(super) fn is_open(&self, segment: usize, max: usize) -> bool {
        let open = |c: &Candidate| !c.known && c.samples.len() < max;
        self.tried.get(&segment).is_some_and(open)
    }

    /// Adds a segment size to try. A size known from an earlier sweep already has its time.
    pub(super) fn enter(&mut self, segment: usize) -> Result<()> {
        if self.tried.contains_key(&segment) {
            return Ok(());
        }
        let segments = Segments::of_size(self.elements(), segment.max(1))?;
        let request = self.whole.clone().segments(segments);
        let (model_time, summary) = match self.known.get(&segment) {
            Some(row) => (row.model_time, Some(row.wall)),
            None => (self.algorithm.time(&request)?, None),
        };
        let candidate = Candidate {
            request,
            model_time,
            samples: Vec::new(),
            summary,
            known: summary.is_some(),
            fresh: summary.is_none(),
        };
        self.tried.insert(segment, candidate);
        Ok(())
    }

    pub(super) fn add(&mut self, segment: usize, times: &[u64]) {
        if let Some(candidate) = self.tried.get_mut(&segment) {
            candidate.samples.extend_from_slice(times);
            candidate.summary = Summary::of(&candidate.samples);
        }
    }

    /// Makes a segment size count even with few repetitions.
    pub(super) fn complete(&mut self, segment: usize) {
        if let Some(candidate) = self.tried.get_mut(&segment) {
            candidate.fresh = false;
        }
    }

    /// Returns the segment size to try next, or `None` if the best is known precisely enough.
    pub(super) fn next(&self) -> Result<Option<usize>> {
        if self.powers {
            return Ok(self.next_power());
        }
        let Some(leader) = self.leader() else {
            return self.start().map(Some);
        };
        if !self.algorithm.segmented {
            return Ok(None);
        }
        let sides = [Side::Less, Side::Greater];
        let open = sides.into_iter().find(|&side| !self.closed(leader, side));
        if let Some(side) = open {
            return Ok(self.further(side));
        }
        for ratio in [2f64.sqrt(), 2f64.sqrt().sqrt()] {
            if let Some(size) = sides
                .into_iter()
                .find_map(|side| self.between(leader, side, ratio))
            {
                return Ok(Some(size));
            }
        }
        Ok(None)
    }

    /// The smallest power of two that has not been tried, up to the whole vector.
    fn next_power(&self) -> Option<usize> {
        let whole = self.elements().max(1);
        let next = |&size: &usize| (size < whole).then(|| size.saturating_mul(2).min(whole));
        let mut sizes = std::iter::successors(Some(1), next);
        sizes
            .find(|size| self.count(*size) <= self.max_segments() && !self.tried.contains_key(size))
    }

    fn elements(&self) -> usize {
        self.whole.elements()
    }

    fn count(&self, segment: usize) -> usize {
        self.elements().div_ceil(segment.max(1)).max(1)
    }

    fn max_segments(&self) -> usize {
        let steps = self.whole.ranks().saturating_mul(2).max(1);
        (MAX_STEPS_MEASURED / steps).clamp(1, self.elements().max(1))
    }

    /// The segment size that splits the vector into `count` segments as evenly as possible.
    fn even(&self, count: usize) -> usize {
        self.elements()
            .div_ceil(count.clamp(1, self.max_segments()))
            .max(1)
    }

    /// The optimal segment size in the model.
    fn start(&self) -> Result<usize> {
        if !self.algorithm.segmented {
            return Ok(self.elements().max(1));
        }
        // That of an empty vector is 0.
        let best = with_best_segments(&self.algorithm, &self.whole)?;
        let best = best.request.get_segments().sizes()[0].max(1);
        Ok(if self.count(best) > self.max_segments() {
            self.even(self.max_segments())
        } else {
            best
        })
    }

    /// Twice or half of the outermost segment size; `None` at the end of the range.
    fn further(&self, side: Side) -> Option<usize> {
        let outermost = match side {
            Side::Greater => self.segments().max(),
            _ => self.segments().min(),
        };
        let count = self.count(outermost?);
        let next = self.even(match side {
            Side::Greater => count.div_ceil(2),
            _ => count.saturating_mul(2),
        });
        (self.count(next) != count).then_some(next)
    }

    /// Whether the best size is not at the edge on this side: a size there is clearly worse, two
    /// doublings did not improve it, or no size is left.
    fn closed(&self, leader: usize, side: Side) -> bool {
        let best = self.summary(leader).unwrap_or_default();
        let beyond = |&(s, _): &(usize, Summary)| s.cmp(&leader) == side;
        let worse = |(s, summary): (usize, Summary)| {
            // Close to the best size, a clear difference may be due to an even and an uneven split.
            distance(s, leader) >= 1.5 && best.clearly(&summary) == Ordering::Less
                || distance(s, leader) >= EDGE_RATIO
        };
        self.times().filter(beyond).any(worse) || self.further(side).is_none()
    }

    /// The size at `ratio` from the leader, unless one at most as far on that side has been tried.
    fn between(&self, leader: usize, side: Side, ratio: f64) -> Option<usize> {
        let count = self.count(leader);
        let factor = if side == Side::Greater {
            1.0 / ratio
        } else {
            ratio
        };
        let next = self.even(truncated((count as f64 * factor).round()));
        let tried = |s: usize| s.cmp(&leader) == side && s.cmp(&next) != side;
        let new = self.count(next) != count && !self.segments().any(tried);
        new.then_some(next)
    }
}

/// A side of a segment size: smaller or larger ones.
type Side = Ordering;

fn distance(a: usize, b: usize) -> f64 {
    let ratio = a.max(1) as f64 / b.max(1) as f64;
    ratio.max(1.0 / ratio)
}

/// Returns all rows, by size, algorithm and segment size.
pub(super) fn rows(board: &[Search], tolerance: f64) -> Vec<Trial> {
    let mut rows = Vec::new();
    for search in board {
        let leader = search.leader();
        for (segment, wall) in search.times() {
            rows.push(Trial {
                bytes: search.bytes,
                algorithm: search.algorithm.to_string(),
                segment: segment as u64 * search.whole.get_element_bytes(),
                segments: search.count(segment),
                wall,
                model_time: search.tried[&segment].model_time,
                best: false,
                best_segment: leader == Some(segment),
                settled: false,
            });
        }
    }
    for same_size in rows.chunk_by_mut(|a, b| a.bytes == b.bytes) {
        let Some(best) = (0..same_size.len()).min_by_key(|&i| same_size[i].wall.median) else {
            continue;
        };
        let (wall, algorithm) = (same_size[best].wall, same_size[best].algorithm.clone());
        // Nothing is settled before every algorithm has been measured.
        let mut of_size = board
            .iter()
            .filter(|search| search.bytes == same_size[best].bytes);
        let mut all = of_size.all(|search| search.leader().is_some());
        for (i, row) in same_size.iter_mut().enumerate() {
            row.settled = i == best || row.wall.settled(&wall, tolerance);
            // A slower segment size of another algorithm need not be distinguished from the best
            // row.
            all &= row.settled || !(row.best_segment || row.algorithm == algorithm);
        }
        same_size[best].best = true;
        same_size[best].settled = all;
    }
    rows
}
