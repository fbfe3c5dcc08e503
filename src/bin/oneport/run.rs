//! `oneport run`: runs a schedule on threads with real data.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::ValueEnum;
use oneport::check;
use oneport::measure::estimate::CoreModel;
use oneport::measure::percentile_distribution;
use oneport::report::{Caption, Trace};
use oneport::run::system;
use oneport::run::{Clock, Element, Operator, Run, Team, TeamOptions, Workers};
use oneport::schedule::total_len;
use oneport::simulate::Prepared;
use serde::Serialize;

use crate::args::{Common, Dtype, Op, parse_count};
use crate::draw::File;
use crate::input::{Input, ScheduleInfo, print_warnings};
use crate::output;
use crate::task::{ensure_memory, finite};
use crate::units::{Number, TimeArg, TimeUnit, parse_time};

/// Run a schedule on pinned threads with real data, and verify the result.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  oneport run reduce -p 2 --bytes 64KiB --dtype f32 --repetitions 20
  oneport run broadcast -p 4 --bytes 1MiB --segments 8 -a chain
  oneport run reduce -p 4 --bytes 1KiB --clock paced --alpha 100us --beta 10ns
  oneport run reduce -p 2 --bytes 1MiB --segments 16 -a chain --trace run.svg
  oneport run broadcast -p 100000 --bytes 8 --workers cores

Every rank is a thread, pinned round-robin to the cores. With --workers cores there is one thread per core, which runs the programs of its ranks \
in turn: the same steps, checks and model time, but no rank waits for a core, and far more ranks fit. The schedule is proved as check does, and every repetition, each with other data, is compared with what a sequential \
computation gives: verified means that both are right. \
Without --dtype elements are bytes (u8), or u64 for --op affine. The model time is the time of the same run in the cost \
model, carried along with the messages: what simulate says. With --clock paced the run takes that long in real time, as \
on a slower network; costs written without a unit are then nanoseconds.")]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,

    /// Number of timed repetitions
    #[arg(
        long,
        value_name = "COUNT",
        value_parser = parse_count,
        default_value = "10",
        allow_negative_numbers = true,
        help_heading = "Run"
    )]
    repetitions: usize,

    /// Number of repetitions before them that are not timed
    #[arg(
        long,
        value_name = "COUNT",
        value_parser = parse_count,
        default_value = "1",
        allow_negative_numbers = true,
        help_heading = "Run"
    )]
    warmup: usize,

    /// Neither prove the schedule nor compare the results with a sequential computation
    #[arg(long, help_heading = "Run")]
    no_verify: bool,

    /// Run flat out, or at the pace of the cost model
    #[arg(long, value_enum, default_value = "native", help_heading = "Run")]
    clock: Pace,

    /// A thread for each rank, or one for each core, which runs the programs of its ranks in turn
    /// (a multiplexed run)
    #[arg(long, value_enum, default_value = "ranks", help_heading = "Run")]
    workers: Work,

    /// Let every sender wait for its receiver: without it, senders of native runs (of short
    /// messages, where every rank has a core) go on and wait only before they overwrite what
    /// they have sent, and a repetition before the others carries the model clock
    #[arg(long, help_heading = "Run")]
    rendezvous: bool,

    /// How long a rank waits for a partner before the run ends in an error
    #[arg(
        long,
        value_name = "TIME",
        value_parser = parse_deadline,
        default_value = "10s",
        allow_negative_numbers = true,
        help_heading = "Run"
    )]
    deadline: Duration,

    /// Write the distribution of the wall-clock times, in nanoseconds, in HdrHistogram's text form
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    histogram: Option<PathBuf>,

    /// Cores to pin the ranks to, in turn, such as 0,2,4; one that is named twice gets two ranks a
    /// turn [default: all, but no more than the CPU quota pays for]
    #[arg(
        long,
        value_name = "CORE,CORE,...",
        value_delimiter = ',',
        help_heading = "Run"
    )]
    cores: Vec<usize>,

    /// Record when every transfer and computation of the last repetition took place, and write it
    /// to this file: a Gantt chart (.svg), or a trace for Perfetto (.json). All transfers are
    /// rendezvous then
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    trace: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Pace {
    Native,
    Paced,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Work {
    Ranks,
    Cores,
}

impl From<Work> for Workers {
    fn from(work: Work) -> Workers {
        match work {
            Work::Ranks => Workers::Ranks,
            Work::Cores => Workers::Cores,
        }
    }
}

#[derive(Serialize)]
struct Output<'a> {
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
    #[serde(flatten)]
    info: &'a ScheduleInfo,
    /// The first wrong element.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    warnings: Vec<String>,
}

/// JSON output for a wrong schedule, which is not run.
#[derive(Serialize)]
struct Disproved<'a> {
    verified: bool,
    error: String,
    #[serde(flatten)]
    info: &'a ScheduleInfo,
}

#[derive(Serialize)]
struct Wall {
    min: u64,
    median: u64,
    p99: u64,
    max: u64,
}

/// Result of a run, independent of the element type.
struct RunResult {
    model_time: f64,
    wall: Wall,
    /// In HdrHistogram's text form, if requested.
    distribution: Option<String>,
    pinned: bool,
    oversubscribed: bool,
    cores: usize,
    warnings: Vec<String>,
    eager: bool,
    trace: Option<Trace>,
    /// The first wrong element, or `None` if all are correct; absent if not verified.
    wrong: Option<Option<String>>,
}

/// Runs, verifies and prints.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<ExitCode> {
    let mut common = args.common.clone();
    let op = common.vector.op;
    let dtype = common.vector.dtype.unwrap_or(match op {
        Op::Affine => Dtype::U64,
        _ => Dtype::U8,
    });
    common.vector.dtype = Some(dtype);
    let input = common.input_on_cores(|ranks| args.core_model(ranks))?;
    if let Some(refusal) = op.refuses(dtype) {
        bail!(refusal);
    }
    print_warnings(&common, &input.schedule);
    args.ensure_fits(&input)?;
    let file = args.trace.as_deref().map(File::of).transpose()?;
    if let Some(file) = file {
        file.ensure_fits_memory(&input.schedule)?;
    }
    output::writable(&[
        ("--histogram", args.histogram.as_deref()),
        ("--trace", args.trace.as_deref()),
    ])?;
    if !args.no_verify
        && let Some(wrong) = first_error(&input, op)
    {
        let refused = Disproved {
            verified: false,
            error: format!("{wrong} (not run: --no-verify runs it all the same)"),
            info: &input.info,
        };
        if args.common.json {
            output::json(out, &refused)?;
        }
        out.flush()?;
        output::error(&format!("wrong schedule: {}", refused.error));
        return Ok(ExitCode::from(1));
    }
    let done = match dtype {
        Dtype::U8 => execute::<u8>(args, &input)?,
        Dtype::I32 => execute::<i32>(args, &input)?,
        Dtype::I64 => execute::<i64>(args, &input)?,
        Dtype::U64 => execute::<u64>(args, &input)?,
        Dtype::F32 => execute::<f32>(args, &input)?,
        Dtype::F64 => execute::<f64>(args, &input)?,
    };
    for warning in &done.warnings {
        output::note(warning);
    }
    if let (Some(path), Some(file), Some(trace)) = (&args.trace, file, &done.trace) {
        let text = file.content(trace, &args.caption(&input, &done))?;
        output::write_file(path, text.as_bytes())?;
    }
    if let (Some(path), Some(text)) = (&args.histogram, &done.distribution) {
        output::write_file(path, text.as_bytes())?;
    }
    let wrong = done.wrong.clone().flatten();
    let output = Output {
        verified: done.wrong.as_ref().map(Option::is_none),
        model_time: Number(done.model_time),
        wall: done.wall,
        repetitions: args.repetitions,
        warmup: args.warmup,
        pinned: done.pinned,
        oversubscribed: done.oversubscribed,
        cores: done.cores,
        clock: args.clock.name(),
        mode: args.workers.mode(),
        transfers: if done.eager { "eager" } else { "rendezvous" },
        dtype: dtype.name(),
        op: input
            .schedule
            .collective()
            .kind()
            .reduces()
            .then_some(op.name()),
        info: &input.info,
        error: wrong.clone(),
        warnings: done.warnings,
    };
    if args.common.json {
        output::json(out, &output)?;
    } else {
        print(out, &input, &output)?;
    }
    match wrong {
        None => Ok(ExitCode::SUCCESS),
        Some(wrong) => {
            out.flush()?;
            output::error(&format!("wrong result: {wrong}"));
            Ok(ExitCode::from(1))
        }
    }
}

impl Args {
    /// Returns the core model of a native run, if a profile has one.
    fn core_model(&self, ranks: usize) -> Result<Option<CoreModel>> {
        if self.clock == Pace::Paced || self.rendezvous {
            return Ok(None);
        }
        let cores = Team::cores_for(ranks, &self.team())?;
        let workers = self.workers.into();
        self.common.machine.core_model(workers, ranks, cores)
    }

    /// Returns the options of the team.
    fn team(&self) -> TeamOptions {
        TeamOptions {
            cores: (!self.cores.is_empty()).then(|| self.cores.clone()),
            workers: self.workers.into(),
            ..TeamOptions::default()
        }
    }

    /// Rejects runs that do not fit into memory, and invalid combinations of options.
    fn ensure_fits(&self, input: &Input) -> Result<()> {
        let (ranks, max_ranks) = (input.schedule.ranks(), Team::max_ranks());
        if ranks > max_ranks && self.workers == Work::Ranks {
            bail!(
                "{ranks} ranks are more threads than the {max_ranks} that this system can hold: --workers cores and simulate have no such limit"
            );
        }
        if self.workers == Work::Cores && self.clock == Pace::Paced {
            bail!(
                "--clock paced needs a thread for each rank: it cannot be combined with --workers cores"
            );
        }
        let all = self.repetitions.saturating_add(self.warmup);
        let threads = match self.workers {
            Work::Ranks => input.schedule.ranks(),
            Work::Cores => Team::cores_for(input.schedule.ranks(), &self.team())?,
        };
        if all.saturating_mul(threads) > 100_000_000 {
            bail!("{all} repetitions on {threads} threads are too many to be recorded");
        }
        // Start and end of every repetition.
        let records = (all as u64).saturating_mul(16 * threads as u64);
        let bytes = memory_of(input).saturating_add(records);
        let what = || "the run".to_string();
        let advice = "take fewer ranks or a smaller vector";
        ensure_memory(what, bytes.into(), advice)?;
        if self.repetitions == 0 {
            bail!("--repetitions is 0: at least one is timed");
        }
        Ok(())
    }
}

/// Longest duration of a paced run.
const MAX_PACED_HOURS: f64 = 24.0;

impl Args {
    /// Rejects a paced run longer than [`MAX_PACED_HOURS`]; each repetition takes `time`
    /// nanoseconds.
    fn ensure_ends(&self, time: f64, unit: TimeUnit) -> Result<()> {
        let repetitions = (self.repetitions + self.warmup) as f64;
        if self.clock == Pace::Paced && time * repetitions > MAX_PACED_HOURS * 3600e9 {
            bail!(
                "{repetitions} paced repetitions of {} each take more than {MAX_PACED_HOURS} hours: lower the costs, or take the native clock",
                unit.show(time)
            );
        }
        Ok(())
    }
}

/// Estimates the bytes that a run needs in addition to its schedule and its threads' stacks.
fn memory_of(input: &Input) -> u64 {
    /// Dependencies and times of a step, measured.
    const BYTES_PER_STEP: u64 = 160;
    /// Stack pages, queues and pair cells of a rank.
    const BYTES_PER_RANK: u64 = 32 << 10;
    let elements = input.schedule.layout().iter().fold(0u64, |sum, l| {
        // The buffer, the input, the output and the expected output.
        let outputs = (total_len(&l.output) as u64).saturating_mul(2);
        let own = (l.len as u64).saturating_add(total_len(&l.input) as u64);
        sum.saturating_add(own.saturating_add(outputs))
    });
    let data = elements.saturating_mul(input.element_bytes);
    let steps = (input.schedule.steps() as u64).saturating_mul(BYTES_PER_STEP);
    let ranks = (input.schedule.ranks() as u64).saturating_mul(BYTES_PER_RANK);
    data.saturating_add(steps).saturating_add(ranks)
}

impl Args {
    /// Caption above the picture of a run.
    fn caption(&self, input: &Input, done: &RunResult) -> Caption {
        let ns = |t: f64| TimeUnit::Nanoseconds.show(t);
        let last = done.trace.as_ref().map_or(0.0, Trace::end);
        let which = match self.repetitions {
            1 => "one repetition".to_string(),
            n => format!(
                "the last of {n} repetitions (median {})",
                ns(done.wall.median as f64)
            ),
        };
        input
            .caption(&format!("recorded run, {}", ns(last)))
            .line(format!(
                "{which}, {} clock, {} ranks on {} cores; model time {}",
                self.clock.name(),
                input.schedule.ranks(),
                done.cores,
                input.unit.show(done.model_time)
            ))
    }
}

impl Work {
    fn mode(self) -> &'static str {
        match self {
            Work::Ranks => "threads",
            Work::Cores => "folded",
        }
    }
}

impl Pace {
    fn name(self) -> &'static str {
        match self {
            Pace::Native => "native",
            Pace::Paced => "paced",
        }
    }
}

fn execute<T: Element>(args: &Args, input: &Input) -> Result<RunResult> {
    let schedule = &input.schedule;
    if (input.cost.links().is_some() || args.clock == Pace::Paced)
        // A schedule that does not complete is left to the run, which reports the error.
        && let Ok(prepared) = Prepared::new(schedule, input.cost.overlap)
    {
        let simulation = prepared.simulate_bytes(&input.cost, input.element_bytes)?;
        args.ensure_ends(finite(simulation.makespan())?, input.unit)?;
    }
    let operator = if schedule.collective().kind().reduces() {
        Operator::<T>::named(args.common.vector.op.name())?
    } else {
        Operator::none()
    };
    // The threads' stacks must not take the memory that the run needs.
    let reserved = system::reserve_memory("the run", memory_of(input))?;
    let options = TeamOptions {
        tuning: args.common.machine.tuning()?,
        ..args.team()
    };
    let mut team = Team::with(schedule.ranks(), &options)?;
    drop(reserved);
    let run = Run::new(schedule)
        .op(&operator)
        .clock(match args.clock {
            Pace::Native => Clock::Native,
            Pace::Paced => Clock::Paced,
        })
        .cost(input.cost.clone())
        .deadline(args.deadline)
        .repetitions(args.repetitions)
        .warmup(args.warmup)
        .trace(args.trace.is_some())
        .eager(!args.rendezvous);
    let run = if args.no_verify { run } else { run.verified() };
    let outcome = run.on(&mut team)?;
    let trace = outcome.step_times.as_deref();
    let trace = trace.map(|times| Trace::wall(schedule, size_of::<T>() as u64, times));
    let trace = trace.transpose()?;
    let wall = &outcome.wall;
    Ok(RunResult {
        distribution: args
            .histogram
            .is_some()
            .then(|| percentile_distribution(wall.histogram())),
        model_time: outcome.model_time,
        wall: Wall {
            min: wall.min_ns(),
            median: wall.median_ns(),
            p99: wall.quantile_ns(0.99),
            max: wall.max_ns(),
        },
        pinned: outcome.pinned,
        oversubscribed: outcome.oversubscribed,
        cores: team.cores(),
        warnings: outcome.warnings,
        eager: outcome.eager,
        trace,
        wrong: (!args.no_verify).then(|| outcome.mismatch.map(|m| m.to_string())),
    })
}

/// Returns the first error that `check` finds in the schedule. Correct data prove nothing: some
/// operators hide errors that others reveal.
fn first_error(input: &Input, op: Op) -> Option<String> {
    let options = check::Options {
        keep_order: input.schedule.collective().kind().reduces() && !op.commutes(),
        overlap: input.cost.overlap,
        ..check::Options::default()
    };
    let report = input.schedule.check_with(&options);
    let first = report.errors.first()?;
    let others = match report.errors.len() + report.more - 1 {
        0 => String::new(),
        n => format!("; {n} more, see oneport check"),
    };
    Some(format!("{}{others}", first.message))
}

fn print(out: &mut dyn Write, input: &Input, output: &Output<'_>) -> Result<()> {
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

/// Parses a deadline such as `500ms` or `2s`; plain numbers are seconds.
pub(crate) fn parse_deadline(text: &str) -> Result<Duration, String> {
    let TimeArg { value, has_unit } = parse_time(text)?;
    let seconds = if has_unit { value * 1e-9 } else { value };
    if !(1e-6..=1e6).contains(&seconds) {
        return Err(format!(
            "a deadline is between 1us and 1000000s, {text} is not"
        ));
    }
    Ok(Duration::from_secs_f64(seconds))
}
