//! The outcome of a run, made from the reports of its threads.

use super::repeat::{RankReport, Reports};
use crate::error::Result;
use crate::machine::numbers;
use crate::run::placement::Workers;
use crate::run::testdata::Mismatch;
use crate::run::wall::WallTimes;

/// The result of a [`Run`](crate::run::Run) over `p` ranks.
///
/// Over MPI every process has an outcome. They are the same, except that each holds only the output
/// of its own rank, and that [`pinned`](Outcome::pinned),
/// [`oversubscribed`](Outcome::oversubscribed) and [`warnings`](Outcome::warnings) are about its
/// own host.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Outcome<T> {
    /// By rank: the contents of its output spans after the last repetition, packed in order. `p`
    /// vectors.
    pub outputs: Vec<Vec<T>>,
    /// Model time as executed, in the unit of the cost model: carried along with the messages, and
    /// to the last bit what [`Schedule::simulate`](crate::Schedule::simulate) computes, whatever
    /// the elements are: both count [`Schedule::element_bytes`](crate::Schedule::element_bytes).
    /// Over MPI it is computed that way (NaN if the schedule does not complete).
    pub model_time: f64,
    /// By rank: the model time at which it finished its last step. `p` times.
    pub rank_times: Vec<f64>,
    /// Wall-clock times of the timed repetitions, each from the arrival of the last rank on.
    pub wall: WallTimes,
    /// Whether every thread was pinned to its core; over MPI, whether the launcher bound each
    /// process of the host to one core.
    pub pinned: bool,
    /// Whether ranks outnumber cores.
    pub oversubscribed: bool,
    /// Whether each rank or each core had a thread; over MPI, each rank its process
    /// ([`Workers::Ranks`]).
    pub workers: Workers,
    /// Whether senders did not wait for their receivers in the timed repetitions:
    /// [`Run::eager`](crate::run::Run::eager).
    pub eager: bool,
    /// What a reader of the wall-clock times should know, one sentence each; empty if there is
    /// nothing.
    pub warnings: Vec<String>,
    /// Percentage of the time of the ranks' cores that other processes, or the host, had, if it is
    /// known and large enough for a warning.
    pub percent_by_others: Option<u64>,
    /// The first wrong element, in the first repetition with wrong outputs, if there was one: see
    /// [`Run::verified`](crate::run::Run::verified).
    pub mismatch: Option<Mismatch<T>>,
    /// Number of repetitions, including those that are not timed, after which every rank's output
    /// was compared. It is 0 for a run that is not [verified](crate::run::Run::verified), and 1 or
    /// 2 with [kept inputs](crate::run::Run::keep_inputs).
    pub compared: usize,
    /// Number of repetitions after which every rank's output was compared with the schedule's own
    /// reduction trees, bit by bit, on data that show the order of combining. They follow a
    /// [verified](crate::run::Run::verified) run of sums or products of floats and are not timed;
    /// [`mismatch`](Outcome::mismatch) counts them from 0 again.
    pub compared_bits: usize,
    /// The library's function that did the work, if
    /// [`Run::by_library`](crate::run::Run::by_library) asked for it.
    pub function: Option<&'static str>,
    /// By rank and step, if [`Run::trace`](crate::run::Run::trace) is set: when the step of the
    /// last repetition opened its port, or started to compute, and when it ended, in nanoseconds of
    /// wall-clock time since the first rank started. `oneport_pictures::Trace::wall` makes a trace
    /// of them. A message is combined while it arrives. Under a paced clock, a step lasts until the
    /// model lets it end, however soon its bytes have moved.
    pub step_times: Option<Vec<Vec<(u64, u64)>>>,
}

impl<T> Outcome<T> {
    /// Whether every rank's output was compared, after every repetition unless inputs are kept, and
    /// was right each time.
    pub fn is_verified(&self) -> bool {
        self.compared > 0 && self.mismatch.is_none()
    }
}

/// What a place reports of a run: an outcome without data.
pub type RunReport = Outcome<()>;

impl RunReport {
    /// The outcome with these outputs, and the first wrong element.
    pub(crate) fn with_data<T>(
        self,
        outputs: Vec<Vec<T>>,
        mismatch: Option<Mismatch<T>>,
    ) -> Outcome<T> {
        Outcome {
            outputs,
            mismatch,
            model_time: self.model_time,
            rank_times: self.rank_times,
            wall: self.wall,
            pinned: self.pinned,
            oversubscribed: self.oversubscribed,
            workers: self.workers,
            eager: self.eager,
            warnings: self.warnings,
            percent_by_others: self.percent_by_others,
            compared: self.compared,
            compared_bits: self.compared_bits,
            function: self.function,
            step_times: self.step_times,
        }
    }
}

impl Reports {
    /// The wall-clock times of the repetitions after the first `warmup`. With `whole`, a time lasts
    /// from the first start to the last end; otherwise it is the slowest thread's. Of both, the
    /// time until the last rank arrives, `late` nanoseconds, does not count.
    pub(crate) fn wall_times(&self, warmup: usize, whole: bool, late: f64) -> Result<WallTimes> {
        let mut wall = WallTimes::new()?;
        let late = numbers::truncated(late) as u64;
        let repetitions = self.walls.first().map_or(0, Vec::len);
        for n in warmup..repetitions {
            let spans = self.walls.iter().map(|w| w[n]);
            let time = if whole {
                let first = spans.clone().map(|w| w.0).min().unwrap_or(0);
                spans.map(|w| w.1).max().unwrap_or(0).saturating_sub(first)
            } else {
                spans.map(|(entry, exit)| exit - entry).max().unwrap_or(0)
            };
            wall.record(time.saturating_sub(late))?;
        }
        Ok(wall)
    }
    pub(super) fn rank_times(&self) -> Vec<f64> {
        self.ranks.iter().map(|r| r.model_time).collect()
    }

    /// By rank and step: start and end in the last repetition, since its first start.
    pub(super) fn step_times(&mut self) -> Vec<Vec<(u64, u64)>> {
        let last = self.walls.iter().filter_map(|w| w.last());
        let origin = last.map(|w| w.0).min().unwrap_or(0);
        let since =
            |(start, end): (u64, u64)| (start.saturating_sub(origin), end.saturating_sub(origin));
        let of_rank = |r: &mut RankReport| {
            let recorded = std::mem::take(&mut r.recorded);
            recorded.into_iter().map(since).collect()
        };
        self.ranks.iter_mut().map(of_rank).collect()
    }
}
