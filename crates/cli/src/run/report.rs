//! What `oneport run` prints: the JSON fields, the text, the caption of a trace.

use std::io::Write;

use anyhow::Result;
use oneport::run::{ElementType, Place, Processes, WallTimes};
use oneport_measure::Row;
use oneport_pictures::{Caption, Trace};
use serde::Serialize;

use super::Args;
use crate::input::{Input, ScheduleInfo};
use crate::output;
use crate::site::{self, Site};
use crate::units::{Number, TimeUnit};

/// Result of a run, independent of the element type.
pub(super) struct RunResult {
    pub(super) row: Row,
    /// The library's own function, if it is measured, too.
    pub(super) library: Option<Row>,
    pub(super) cores: usize,
    pub(super) trace: Option<Trace>,
}

#[derive(Serialize)]
pub(super) struct Output<'a> {
    /// Absent if the result was not verified.
    verified: Option<bool>,
    model_time: Number,
    /// In nanoseconds.
    wall: Wall,
    repetitions: usize,
    warmup: usize,
    pinned: bool,
    oversubscribed: bool,
    cores: usize,
    clock: &'static str,
    /// `threads`: one thread per rank; `folded`: one worker per core (multiplexed).
    mode: &'static str,
    /// `rendezvous`, or `eager` if senders did not wait for their receivers.
    transfers: &'static str,
    dtype: &'static str,
    op: Option<&'static str>,
    /// `threads` or `mpi`.
    engine: &'static str,
    /// The processes, if the engine is MPI.
    #[serde(skip_serializing_if = "Option::is_none")]
    mpi: Option<Processes>,
    /// The library's own collective, if it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    library: Option<Library>,
    #[serde(flatten)]
    info: &'a ScheduleInfo,
    /// The first wrong element.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    warnings: Vec<String>,
}

impl<'a> Output<'a> {
    /// The output of a run of `input` with elements of type `dtype`.
    pub(super) fn new(
        args: &Args,
        input: &'a Input,
        dtype: ElementType,
        done: RunResult,
        site: &Site,
    ) -> Output<'a> {
        let reduces = input.schedule.collective().kind().reduces();
        let RunResult { row, library, .. } = done;
        Output {
            verified: (!args.no_verify).then_some(row.error.is_none()),
            model_time: Number(row.model_time),
            wall: Wall::of(&row.wall),
            repetitions: args.repetitions,
            warmup: args.warmup,
            pinned: row.pinned,
            oversubscribed: row.oversubscribed,
            cores: done.cores,
            clock: args.clock.name(),
            mode: args.mode(),
            transfers: if row.eager { "eager" } else { "rendezvous" },
            dtype: dtype.name(),
            op: reduces.then_some(args.common.vector.op().name()),
            engine: args.engine().name(),
            mpi: site.processes(),
            library: library.map(|theirs| Library::of(&theirs, row.wall.median_ns())),
            info: &input.info,
            error: row.error,
            warnings: row.warnings,
        }
    }
}

/// The library's own collective beside the schedule.
#[derive(Serialize)]
pub(crate) struct Library {
    pub(crate) function: &'static str,
    /// The first wrong element, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// In nanoseconds.
    pub(crate) wall: Wall,
    /// Its median time in that of the schedule: above 1, the schedule is faster.
    pub(crate) ratio: f64,
}

impl Library {
    /// The library beside a schedule with this median.
    pub(crate) fn of(theirs: &Row, median_ns: u64) -> Library {
        let wall = Wall::of(&theirs.wall);
        Library {
            function: theirs.function.unwrap_or_default(),
            error: theirs.error.clone(),
            ratio: wall.median as f64 / median_ns.max(1) as f64,
            wall,
        }
    }
}

/// JSON output for a wrong schedule, which is not run.
#[derive(Serialize)]
pub(super) struct Disproved<'a> {
    pub(super) verified: bool,
    pub(super) error: String,
    #[serde(flatten)]
    pub(super) info: &'a ScheduleInfo,
}

/// Wall-clock times of the repetitions, in nanoseconds.
#[derive(Debug, Serialize)]
pub(crate) struct Wall {
    pub(crate) min: u64,
    pub(crate) median: u64,
    pub(crate) p99: u64,
    pub(crate) max: u64,
    /// Ends of the median's confidence interval.
    pub(crate) low: u64,
    pub(crate) high: u64,
    pub(crate) mean: f64,
    /// Standard deviation.
    pub(crate) deviation: f64,
    /// Times farther from the quartiles than one and a half times their distance.
    pub(crate) outliers: u64,
}

impl Wall {
    /// Summarises the recorded times.
    pub(crate) fn of(wall: &WallTimes) -> Wall {
        let times = oneport::internal::histogram(wall);
        let (low, high) = wall.interval_ns().into_inner();
        let [first, third] = [0.25, 0.75].map(|q| times.value_at_quantile(q));
        let fence = (third - first).saturating_mul(3) / 2;
        let far = |v: &u64| *v > third.saturating_add(fence) || *v < first.saturating_sub(fence);
        let outliers = times
            .iter_recorded()
            .filter(|v| far(&v.value_iterated_to()));
        Wall {
            min: times.min(),
            median: times.value_at_quantile(0.5),
            p99: times.value_at_quantile(0.99),
            max: times.max(),
            low,
            high,
            mean: times.mean(),
            deviation: times.stdev(),
            outliers: outliers.map(|v| v.count_at_value()).sum(),
        }
    }
}

pub(super) fn print(out: &mut dyn Write, input: &Input, output: &Output<'_>) -> Result<()> {
    let mut summary = input.summary();
    let op = output.op.map_or_else(String::new, |op| format!(", {op}"));
    summary.push(("elements", format!("{}{op}", output.dtype)));
    summary.push((
        "result",
        match (output.verified, &output.error) {
            (None, _) => "not verified".to_string(),
            (Some(true), _) => "verified".to_string(),
            (Some(false), error) => format!("WRONG: {}", error.as_deref().unwrap_or_default()),
        },
    ));
    summary.push(("model time", input.unit.show(output.model_time.0)));
    let ns = |t: u64| TimeUnit::Nanoseconds.show(t as f64);
    let wall = &output.wall;
    summary.push((
        "wall-clock",
        format!(
            "median {}, min {}, p99 {}, max {} of {} repetition{} ({}{})",
            ns(wall.median),
            ns(wall.min),
            ns(wall.p99),
            ns(wall.max),
            output.repetitions,
            if output.repetitions == 1 { "" } else { "s" },
            output.clock,
            if output.transfers == "eager" {
                ", eager"
            } else {
                ""
            }
        ),
    ));
    let pinned = if output.pinned {
        "pinned"
    } else {
        "not pinned"
    };
    let ranks = output.info.ranks;
    if let Some(mpi) = &output.mpi {
        summary.extend(of_processes(mpi, output));
        return output::summary(out, &summary);
    }
    summary.push((
        "threads",
        match output.mode {
            "folded" => format!(
                "multiplexed: {ranks} ranks on {} workers, one per core, {pinned}",
                output.cores.min(ranks)
            ),
            _ => {
                let plural = if output.cores == 1 { "" } else { "s" };
                format!("{ranks} on {} core{plural}, {pinned}", output.cores)
            }
        },
    ));
    output::summary(out, &summary)
}

/// The lines of a summary about the processes of a run, and the library's own collective.
fn of_processes(mpi: &Processes, output: &Output<'_>) -> Vec<(&'static str, String)> {
    let (ranks, n, cores) = (output.info.ranks, mpi.processes, output.cores);
    let plural = if cores == 1 { "" } else { "s" };
    let bound = if output.pinned { "bound" } else { "not bound" };
    let processes = format!("{ranks} of {n}, {cores} core{plural} a host, {bound} to one each");
    let mut lines = vec![("processes", processes)];
    lines.extend(site::summary(mpi));
    lines.push(("timing", mpi.timing.to_string()));
    if let Some(library) = &output.library {
        let ns = |t: u64| TimeUnit::Nanoseconds.show(t as f64);
        let (wall, error) = (&library.wall, library.error.as_ref());
        lines.push((
            library.function,
            format!(
                "median {}, min {}, p99 {}, max {}: {:.2} times the schedule's median{}",
                ns(wall.median),
                ns(wall.min),
                ns(wall.p99),
                ns(wall.max),
                library.ratio,
                error.map_or_else(String::new, |error| format!(", WRONG: {error}"))
            ),
        ));
    }
    lines
}

impl Args {
    /// Caption above the picture of a run.
    pub(super) fn caption(&self, input: &Input, done: &RunResult) -> Caption {
        let ns = |t: f64| TimeUnit::Nanoseconds.show(t);
        let last = done.trace.as_ref().map_or(0.0, Trace::end);
        let which = match self.repetitions {
            1 => "one repetition".to_string(),
            n => format!(
                "the last of {n} repetitions (median {})",
                ns(done.row.wall.median_ns() as f64)
            ),
        };
        input
            .caption(&format!("recorded run, {}", ns(last)))
            .line(format!(
                "{which}, {} clock, {} ranks on {} cores; model time {}",
                self.clock.name(),
                input.schedule.ranks(),
                done.cores,
                input.unit.show(done.row.model_time)
            ))
    }
}
