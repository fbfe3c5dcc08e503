//! What `oneport run` prints: the JSON fields, the text, the caption of a trace.

use std::fmt;

use oneport::run::WallTimes;
use oneport_measure::{MeasuredRun, percentile_distribution};
use oneport_pictures::Trace;

use super::RunArgs;
use crate::draw::OutputFile;
use crate::prelude::*;
use crate::site;

/// What has come of a run, independent of the element type.
pub(super) struct Ran {
    pub(super) input: Input,
    pub(super) dtype: ElementType,
    pub(super) row: MeasuredRun,
    /// The library's own function, if it is measured, too.
    pub(super) library: Option<MeasuredRun>,
    pub(super) cores: usize,
    /// The processes, if the engine is MPI.
    pub(super) processes: Option<Processes>,
    /// What --trace writes.
    pub(super) trace: Option<(OutputFile, Trace)>,
}

impl Ran {
    /// Writes the files and prints.
    pub(super) fn answer(self, args: &RunArgs, caller: &Caller) -> Result<Answer> {
        caller.notes(&self.row.warnings);
        if let (Some(path), Some((file, trace))) = (&args.trace, &self.trace) {
            let caption = args.sweep.frame.caption(self.caption(args, trace, caller));
            let text = args.sweep.frame.sized(file.content(trace, &caption)?);
            caller.write_named(path, text.as_bytes())?;
        }
        if let Some(path) = &args.histogram {
            let text = percentile_distribution(oneport::internal::histogram(&self.row.wall));
            caller.write_named(path, text.as_bytes())?;
        }
        let answer = answer(caller, args.common.json, &self.json(args), |out| {
            output::summary(out, &self.summary(args))
        })?;
        Ok(match self.row.error {
            None => answer,
            Some(error) => answer.but_wrong(format!("wrong result: {error}")),
        })
    }

    pub(super) fn json(&self, args: &RunArgs) -> impl Answered {
        let row = &self.row;
        record! {
            /// Absent if the result was not verified.
            verified: (!args.no_verify).then_some(row.error.is_none()),
            /// Repetitions on data that show the order of combining: of sums and products of
            /// floats.
            compared_bits: row.compared_bits,
            model_time: Number(row.model_time),
            after_last_arrival (optional):
                args.common.delays.after_last_arrival(&self.input.cost, row.model_time),
            /// In nanoseconds.
            wall: WallSummary::of(&row.wall),
            repetitions: args.repetitions,
            warmup: args.warmup,
            inputs: args.inputs.inputs.name(),
            pinned: row.pinned,
            oversubscribed: row.oversubscribed,
            cores: self.cores,
            clock: clock_name(args.clock),
            mode: args.mode(),
            /// `eager` if senders did not wait for their receivers.
            transfers: if row.eager { "eager" } else { "rendezvous" },
            dtype: self.dtype.name(),
            op: self.op(args),
            engine: args.place().name(),
            mpi (optional): self.processes.as_ref(),
            library (optional): self.library_times(),
            #[serde(flatten)]
            info: &self.input.info,
            /// The first wrong element.
            error (optional): row.error.as_ref(),
            warnings: &row.warnings,
        }
    }

    pub(super) fn op(&self, args: &RunArgs) -> Option<&'static str> {
        let reduces = self.input.info.kind.reduces();
        reduces.then_some(args.common.vector.op().name())
    }

    /// The library's own collective, if it was measured.
    pub(super) fn library_times(&self) -> Option<LibraryTimes> {
        let library = self.library.as_ref()?;
        Some(LibraryTimes::of(library, self.row.wall.median_ns()))
    }

    fn summary(&self, args: &RunArgs) -> Vec<(&'static str, String)> {
        let (input, row) = (&self.input, &self.row);
        let mut summary = input.summary();
        let op = self
            .op(args)
            .map_or_else(String::new, |op| format!(", {op}"));
        let result = match &row.error {
            _ if args.no_verify => "not verified".to_string(),
            None => "verified".to_string(),
            Some(error) => format!("WRONG: {error}"),
        };
        let eager = if row.eager { ", eager" } else { "" };
        summary.extend([
            ("elements", format!("{}{op}", self.dtype.name())),
            ("result", result),
            ("model time", input.unit.show(row.model_time)),
        ]);
        summary.extend(input.summary_of_late(row.model_time));
        summary.extend([
            ("wall-clock", WallSummary::of(&row.wall).to_string()),
            (
                "measured",
                format!(
                    "{} after {} warm-up, inputs {}, {} clock{eager}",
                    counted(args.repetitions, "repetition"),
                    args.warmup,
                    args.inputs.inputs.name(),
                    clock_name(args.clock),
                ),
            ),
        ]);
        if let Some(mpi) = &self.processes {
            summary.extend(self.of_processes(mpi));
            return summary;
        }
        let pinned = if row.pinned { "pinned" } else { "not pinned" };
        let (ranks, cores) = (input.info.ranks, self.cores);
        let threads = match args.mode() {
            "folded" => format!(
                "multiplexed: {ranks} ranks on {} workers, one per core, {pinned}",
                cores.min(ranks)
            ),
            _ => format!("{ranks} on {}, {pinned}", counted(cores, "core")),
        };
        summary.push(("threads", threads));
        summary
    }

    /// The lines of a summary about the processes of a run, and the library's own collective.
    fn of_processes(&self, mpi: &Processes) -> Vec<(&'static str, String)> {
        let (ranks, n) = (self.input.info.ranks, mpi.processes);
        let bound = if self.row.pinned {
            "bound"
        } else {
            "not bound"
        };
        let cores = counted(self.cores, "core");
        let processes = format!("{ranks} of {n}, {cores} a host, {bound} to one each");
        let mut lines = vec![("processes", processes)];
        lines.extend(site::summary(mpi));
        lines.push(("timing", mpi.timing.to_string()));
        if let Some(library) = self.library_times() {
            let error = library.error.as_ref();
            let error = error.map_or_else(String::new, |error| format!(", WRONG: {error}"));
            let (wall, ratio) = (&library.wall, library.ratio);
            lines.push((
                library.function,
                format!("{wall}: {ratio:.2} times the schedule's median{error}"),
            ));
        }
        lines
    }

    /// Caption above the picture of a run.
    fn caption(&self, args: &RunArgs, trace: &Trace, caller: &Caller) -> Caption {
        let which = match args.repetitions {
            1 => "one repetition".to_string(),
            n => format!(
                "the last of {n} repetitions (median {})",
                show_ns(self.row.wall.median_ns() as f64)
            ),
        };
        let input = &self.input;
        input
            .caption(&format!("recorded run, {}", show_ns(trace.end())), caller)
            .line(format!(
                "{which}, {} clock, {} ranks on {} cores; model time {}",
                clock_name(args.clock),
                input.schedule.ranks(),
                self.cores,
                input.unit.show(self.row.model_time)
            ))
    }
}

/// The library's own collective beside the schedule.
#[derive(JsonSchema, Serialize)]
pub(crate) struct LibraryTimes {
    pub(crate) function: &'static str,
    /// The first wrong element, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// In nanoseconds.
    pub(crate) wall: WallSummary,
    /// Its median time in that of the schedule: above 1, the schedule is faster.
    pub(crate) ratio: f64,
}

impl LibraryTimes {
    /// The library beside a schedule with this median.
    pub(crate) fn of(theirs: &MeasuredRun, median_ns: u64) -> LibraryTimes {
        let wall = WallSummary::of(&theirs.wall);
        LibraryTimes {
            function: theirs.function.unwrap_or_default(),
            error: theirs.error.clone(),
            ratio: wall.median as f64 / median_ns.max(1) as f64,
            wall,
        }
    }
}

impl fmt::Display for WallSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = [self.median, self.min, self.max];
        let [median, min, max] = times.map(|time| show_ns(time as f64));
        write!(f, "median {median}, min {min}, ")?;
        if let Some(p99) = self.shown_p99() {
            write!(f, "p99 {}, ", show_ns(p99 as f64))?;
        }
        write!(f, "max {max}")
    }
}

/// Wall-clock times of the repetitions, in nanoseconds.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct WallSummary {
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
    /// Number of repetitions.
    #[serde(skip)]
    pub(super) count: usize,
}

impl WallSummary {
    /// Summarises the recorded times.
    pub(crate) fn of(wall: &WallTimes) -> WallSummary {
        let times = oneport::internal::histogram(wall);
        let (low, high) = wall.interval_ns().into_inner();
        let [first, third] = [0.25, 0.75].map(|q| times.value_at_quantile(q));
        let fence = (third - first).saturating_mul(3) / 2;
        let far = |v: &u64| *v > third.saturating_add(fence) || *v < first.saturating_sub(fence);
        let outliers = times
            .iter_recorded()
            .filter(|v| far(&v.value_iterated_to()));
        WallSummary {
            min: times.min(),
            median: times.value_at_quantile(0.5),
            p99: times.value_at_quantile(0.99),
            max: times.max(),
            low,
            high,
            mean: times.mean(),
            deviation: times.stdev(),
            outliers: outliers.map(|v| v.count_at_value()).sum(),
            count: usize::try_from(times.len()).unwrap_or(usize::MAX),
        }
    }

    /// The 99th percentile, where there are enough repetitions for one that is not the maximum.
    pub(crate) fn shown_p99(&self) -> Option<u64> {
        (self.count >= oneport_measure::tune::MIN_FOR_P99).then_some(self.p99)
    }
}
