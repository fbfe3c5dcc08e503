//! Tuning: finds the fastest algorithm and segment size for each vector size.
//!
//! [`tune`] measures through the trait [`Measure`], so the times can come from threads or processes
//! ([`Live`]) or from anything else. For every vector size and algorithm:
//!
//! 1. It starts from the segment size that is best in the model.
//! 2. It brackets the measured optimum by factors of two, and widens the range as long as the best
//!    segment size is at an edge.
//! 3. It narrows the range down to a factor of `2^(1/4)`, where the time of a pipeline differs from
//!    its minimum by a few tenths of a percent.
//!
//! Repetitions are added where they are needed: to times that cannot be distinguished yet, until
//! all can be distinguished or differ by less than the tolerance, or the time budget is spent.
//! Every vector size has its share of the budget; time left over goes to the others.
//!
//! The results go to a CSV file ([`csv`]), from which an interrupted sweep
//! continues, to a file of selection [`rules`], and to an HTML [`page`].

pub mod csv;
mod live;
pub mod page;
mod results;
pub mod rules;
mod search;
mod summary;
mod verify;

use std::ops::ControlFlow;
use std::time::Duration;

pub use live::Live;
pub use results::{LibraryRow, LibraryState, Trial, TuningResult};
pub(crate) use summary::MIN_FOR_CONFIDENCE;
pub use summary::{MIN_FOR_P99, Summary};
pub use verify::{Change, VerifiedRow, verify};

use crate::interleave::{self, Batches, interleaved};
use oneport::error::{Error, Result};
use oneport::plan::Request;
use oneport::plan::registry::Algorithm;
use oneport::run::Processes;
use search::Search;

/// The vector sizes and algorithms to tune.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// Ranks, root, ports, operand order, costs and element size of all requests. The sweep sets
    /// the vector itself.
    pub request: Request,
    /// The algorithms, all for one collective.
    pub algorithms: Vec<Algorithm>,
    /// Sizes of the vector in bytes, each a whole number of elements.
    pub bytes: Vec<u64>,
    /// Time budget. Every algorithm is measured at least once at every size, even if that takes
    /// longer.
    pub budget: Duration,
    /// Relative difference between two times that does not matter, such as 0.02.
    pub tolerance: f64,
    /// Whether all powers of two are tried as sizes of segments, in elements, and the whole vector,
    /// instead of sizes around the best.
    pub powers: bool,
}

/// Source of measured times.
pub trait Measure {
    /// Performs `request` with `algorithm` and returns the time of each of `repetitions`
    /// repetitions in nanoseconds, or why it cannot be planned or performed.
    fn measure(
        &mut self,
        algorithm: &Algorithm,
        request: &Request,
        repetitions: usize,
    ) -> Result<Vec<u64>>;

    /// Time since some fixed instant, on the clock of the budget.
    fn now(&self) -> Duration;

    /// Performs the collective of `request` by the library's own function, if there is a library in
    /// this state. `algorithm` accepts the request.
    fn measure_library(
        &mut self,
        _algorithm: &Algorithm,
        _request: &Request,
        _repetitions: usize,
        _state: LibraryState,
    ) -> Result<Option<interleave::MeasuredRun>> {
        Ok(None)
    }

    /// The largest part of the cores' time that others had in a measurement, in percent, if it is
    /// known and large enough for a warning.
    fn percent_by_others(&self) -> Option<u64> {
        None
    }

    /// The processes, if ranks are processes.
    fn processes(&self) -> Option<Processes> {
        None
    }
}

/// Progress of a sweep.
#[derive(Debug)]
pub struct Progress<'a> {
    /// Number of combinations of size and algorithm whose search has ended.
    pub done: usize,
    /// Number of combinations of size and algorithm.
    pub points: usize,
    /// Size being measured.
    pub bytes: u64,
    /// Algorithm being measured.
    pub algorithm: &'a Algorithm,
    /// Segment size being measured, in bytes.
    pub segment: u64,
    /// Number of rows so far.
    pub measured: usize,
    /// Time spent.
    pub spent: Duration,
    /// Time budget.
    pub budget: Duration,
    board: &'a [Search],
    library: &'a [LibraryRow],
    tolerance: f64,
}

impl Progress<'_> {
    /// Returns the rows so far, those of the library's own function after the rows of each size.
    pub fn rows(&self) -> Vec<Trial> {
        results::with_library(&search::rows(self.board, self.tolerance), self.library)
    }
}

/// Measures a sweep.
///
/// `known` holds the rows of an earlier sweep, also those of the library's own function. They are
/// kept and not measured again.
/// `observe` is called between repetitions; if it breaks, the rows measured so far are returned. It
/// takes about the sweep's budget, and longer only for the first measurements.
///
/// # Errors
/// If the sweep is empty, a size is not a whole number of elements, or a measurement fails.
pub fn tune(
    sweep: &Sweep,
    known: &[Trial],
    measure: &mut dyn Measure,
    observe: &mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
) -> Result<TuningResult> {
    let mut run = RunningSweep::new(sweep, known, measure, observe)?;
    // The second round spends the budget that the first leaves over on unsettled rows.
    for round in 0..2 {
        for size in 0..sweep.bytes.len() {
            if !run.interrupted {
                run.tune_size(size, round == 0)?;
            }
        }
    }
    let rows = search::rows(&run.board, sweep.tolerance);
    Ok(TuningResult {
        interrupted: run.interrupted,
        budget_spent: run.spent() >= sweep.budget && rows.iter().any(|r| r.best && !r.settled),
        elapsed: run.spent(),
        tree: None,
        processes: run.measure.processes(),
        percent_by_others: run.measure.percent_by_others(),
        library: run.library,
        rows,
    })
}

/// Repetitions of every combination, if time allows.
const BASE_REPETITIONS: usize = 7;
/// Repetitions of every combination even if the time is up.
const MIN_REPETITIONS: usize = 3;
const MAX_REPETITIONS: usize = 5000;
/// Short measurements are repeated for at least this long, in nanoseconds.
const BASE_TIME_NS: u64 = 5_000_000;
/// Approximate time between two checks of the clock and the observer, in nanoseconds.
const CHECK_INTERVAL_NS: u64 = 200_000_000;
/// Share of a size's time for the searches; the rest serves to distinguish the algorithms.
const SEARCH_SHARE: f64 = 0.8;

/// Returns point and segment size of the candidates that must be distinguished at one vector size:
/// the best of each algorithm, and all segment sizes of the best algorithm. `first` is the number
/// of the first point.
fn contenders(points: &[Search], first: usize) -> Vec<(usize, usize)> {
    let leader = |search: &Search| {
        let segment = search.leader()?;
        Some((search.summary(segment)?.median, segment))
    };
    let leaders: Vec<_> = points.iter().map(leader).collect();
    let best = leaders.iter().flatten().min().copied();
    let mut all = Vec::new();
    for (i, search) in points.iter().enumerate() {
        if leaders[i] == best {
            all.extend(search.segments().map(|segment| (first + i, segment)));
        } else if let Some((_, segment)) = leaders[i] {
            all.push((first + i, segment));
        }
    }
    all
}

struct RunningSweep<'a> {
    sweep: &'a Sweep,
    measure: &'a mut dyn Measure,
    observe: &'a mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
    /// One search for each size and algorithm, in this order.
    board: Vec<Search>,
    library: Vec<LibraryRow>,
    done: usize,
    started: Duration,
    interrupted: bool,
}

impl<'a> RunningSweep<'a> {
    fn new(
        sweep: &'a Sweep,
        known: &[Trial],
        measure: &'a mut dyn Measure,
        observe: &'a mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
    ) -> Result<Self> {
        if sweep.algorithms.is_empty() || sweep.bytes.is_empty() {
            return Err(Error::usage(
                "nothing to tune: there is no algorithm or no size",
            ));
        }
        let started = measure.now();
        let mut board = Vec::new();
        for &bytes in &sweep.bytes {
            for algorithm in &sweep.algorithms {
                board.push(Search::new(algorithm, sweep, bytes, known)?);
            }
        }
        Ok(RunningSweep {
            sweep,
            measure,
            observe,
            board,
            library: LibraryRow::all_of(known, &sweep.bytes),
            done: 0,
            started,
            interrupted: false,
        })
    }

    fn spent(&self) -> Duration {
        self.measure.now().saturating_sub(self.started)
    }

    /// Returns the instant after the share `part` of the time from now to `end`.
    fn part(&self, end: Duration, part: f64) -> Duration {
        let now = self.spent();
        now + end.saturating_sub(now).mul_f64(part)
    }

    fn tune_size(&mut self, size: usize, first: bool) -> Result<()> {
        let algorithms = self.sweep.algorithms.len();
        let share = |count: usize| 1.0 / count as f64;
        let end = self.part(self.sweep.budget, share(self.sweep.bytes.len() - size));
        let searches = if algorithms == 1 {
            end
        } else {
            self.part(end, SEARCH_SHARE)
        };
        let points = size * algorithms..(size + 1) * algorithms;
        for (i, point) in points.clone().enumerate() {
            self.search(point, self.part(searches, share(algorithms - i)))?;
            self.done = self.done.max(point + usize::from(!self.interrupted));
            if self.interrupted {
                return Ok(());
            }
        }
        if first {
            self.compare_interleaved(&points.clone().collect::<Vec<_>>(), end)?;
        }
        while self.settle(&contenders(&self.board[points.clone()], points.start), end)? {}
        Ok(())
    }

    /// Repeats the best segment size of each algorithm interleaved, and the library's own function.
    ///
    /// The searches measured the algorithms one after another, and a machine's speed drifts. A
    /// difference may be due to the time of the measurement, which confidence intervals do not
    /// show. Interleaved repetitions expose all algorithms to the same drift.
    fn compare_interleaved(&mut self, points: &[usize], end: Duration) -> Result<()> {
        const BATCHES: usize = 3;
        /// Algorithms that are slower than the best by more than this factor are left out.
        const MAX_SLOWDOWN: u64 = 3;
        let bytes = self.board[points[0]].bytes;
        let leader = |&point: &usize| {
            let segment = self.board[point].leader()?;
            Some((point, segment, self.board[point].summary(segment)?))
        };
        let mut leaders: Vec<_> = points.iter().filter_map(leader).collect();
        let best = leaders.iter().map(|(.., s)| s.median).min().unwrap_or(0);
        leaders.retain(|&(point, segment, s)| {
            s.median / MAX_SLOWDOWN <= best && self.board[point].is_open(segment, MAX_REPETITIONS)
        });
        let mut library = Vec::new();
        if !self.library.iter().any(|row| row.trial.bytes == bytes) {
            for state in LibraryState::ALL {
                let run = self.repeat_library(points[0], MIN_REPETITIONS, state)?;
                library.extend(run.map(|run| (state, run)));
            }
        }
        if leaders.len() < 2 && library.is_empty() {
            return Ok(());
        }
        let repetitions = |(.., summary): &(usize, usize, Summary)| {
            let of_batch = summary.repetitions.div_ceil(BATCHES);
            of_batch.min(MAX_REPETITIONS / 10)
        };
        let mut measured: Vec<usize> = leaders.iter().map(repetitions).collect();
        let of_library = measured.iter().copied().max().unwrap_or(MIN_REPETITIONS);
        measured.extend(library.iter().map(|_| of_library));
        let batches = |&n: &usize| Batches::Sharing(BATCHES, BATCHES * n);
        let one_batch = |i: usize, repetitions: usize| {
            if self.interrupted || self.spent() >= end {
                return Ok(ControlFlow::Break(()));
            }
            if let Some(&(point, segment, _)) = leaders.get(i) {
                self.repeat(point, segment, repetitions)?;
            } else if let Some((state, sum)) = library.get_mut(i - leaders.len())
                && let Some(more) = self.repeat_library(points[0], repetitions, *state)?
            {
                sum.add(more)?;
            }
            Ok(ControlFlow::Continue(0))
        };
        let batches: Vec<_> = measured.iter().map(batches).collect();
        interleaved(&batches, one_batch, |_, _| {})?;
        self.library.extend(LibraryRow::new(bytes, &library));
        Ok(())
    }

    /// Measures the library's own function at the vector size of `point`.
    fn repeat_library(
        &mut self,
        point: usize,
        repetitions: usize,
        state: LibraryState,
    ) -> Result<Option<interleave::MeasuredRun>> {
        let search = &self.board[point];
        let (algorithm, request) = (&search.algorithm, &search.whole);
        self.measure
            .measure_library(algorithm, request, repetitions, state)
    }

    /// Searches the best segment size of one algorithm at one vector size until `end`.
    fn search(&mut self, point: usize, end: Duration) -> Result<()> {
        loop {
            while let Some(segment) = self.board[point].next()? {
                if self.board[point].measured() > 0 && self.spent() >= end {
                    return Ok(());
                }
                self.probe(point, segment, end)?;
                if self.interrupted {
                    return Ok(());
                }
            }
            let all: Vec<_> = self.board[point].segments().map(|s| (point, s)).collect();
            if !self.settle(&all, end)? {
                return Ok(());
            }
        }
    }

    /// Measures a segment size for the first time.
    fn probe(&mut self, point: usize, segment: usize, end: Duration) -> Result<()> {
        self.board[point].enter(segment)?;
        loop {
            let samples = self.board[point].samples(segment);
            let (count, total) = (samples.len(), samples.iter().sum::<u64>());
            let late = count >= MIN_REPETITIONS && self.spent() >= end;
            let missing = match count {
                0 => MIN_REPETITIONS,
                _ if late => 0,
                n if n < BASE_REPETITIONS => BASE_REPETITIONS - n,
                // Short measurements get a few more.
                n if total < BASE_TIME_NS && n < MAX_REPETITIONS / 10 => n,
                _ => 0,
            };
            if missing == 0 {
                self.board[point].complete(segment);
                return Ok(());
            }
            self.repeat(point, segment, missing)?;
            if self.interrupted {
                // A candidate with too few repetitions does not count. It is measured anew when the
                // sweep continues.
                return Ok(());
            }
        }
    }

    /// Adds repetitions to the best of `candidates` and to those that cannot be distinguished from
    /// it. Returns whether any were added.
    fn settle(&mut self, candidates: &[(usize, usize)], end: Duration) -> Result<bool> {
        /// Number of unsettled candidates that get repetitions in one round.
        const MAX_CANDIDATES: usize = 3;
        if self.interrupted || self.spent() >= end {
            return Ok(false);
        }
        let mut ranked: Vec<_> = candidates
            .iter()
            .filter_map(|&(p, s)| Some((self.board[p].summary(s)?, p, s)))
            .collect();
        ranked.sort_by_key(|(summary, ..)| summary.median);
        let Some(&(best, ..)) = ranked.first() else {
            return Ok(false);
        };
        let unsettled = |(summary, ..): &&(Summary, usize, usize)| {
            !summary.settled(&best, self.sweep.tolerance)
        };
        let mut round: Vec<_> = ranked[1..]
            .iter()
            .filter(unsettled)
            .take(MAX_CANDIDATES)
            .collect();
        if round.is_empty() {
            return Ok(false);
        }
        round.insert(0, &ranked[0]);
        let mut measured = false;
        for &&(summary, point, segment) in &round {
            if !self.board[point].is_open(segment, MAX_REPETITIONS) {
                continue;
            }
            self.repeat(point, segment, (summary.repetitions / 2).max(4))?;
            measured = true;
            if self.interrupted || self.spent() >= end {
                break;
            }
        }
        Ok(measured)
    }

    /// Repeats one measurement and regularly checks the clock and the observer.
    fn repeat(&mut self, point: usize, segment: usize, mut repetitions: usize) -> Result<()> {
        while repetitions > 0 && !self.interrupted {
            let search = &self.board[point];
            let progress = Progress {
                done: self.done,
                points: self.board.len(),
                bytes: search.bytes,
                algorithm: &search.algorithm,
                segment: segment as u64 * self.sweep.request.get_element_bytes(),
                measured: self.board.iter().map(Search::measured).sum(),
                spent: self.spent(),
                budget: self.sweep.budget,
                board: &self.board,
                library: &self.library,
                tolerance: self.sweep.tolerance,
            };
            if (self.observe)(&progress).is_break() {
                self.interrupted = true;
                return Ok(());
            }
            let fits = match search.summary(segment) {
                None => 1,
                Some(summary) => usize::try_from(CHECK_INTERVAL_NS / summary.median.max(1))
                    .unwrap_or(MAX_REPETITIONS),
            };
            let count = repetitions.min(fits.max(1));
            let times = self
                .measure
                .measure(&search.algorithm, search.request(segment), count)?;
            if times.is_empty() {
                return Err(Error::system("a measurement returned no times"));
            }
            self.board[point].add(segment, &times);
            repetitions -= count;
        }
        Ok(())
    }
}
