//! `oneport tune`: which algorithm and which segment size is the fastest for which size.

mod files;
mod machine;
mod plot;
mod progress;
mod sizes;

use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use oneport::Kind;
use oneport::measure::tune::{self, Live, Measure, Row, Sweep, Tuning};
use oneport::plan::registry::Algorithm;
use oneport::run::{Clock, Element, Operator, Team, TeamOptions};
use serde::Serialize;

use crate::args::{Common, Dtype, Machine, Op, Root, Vector, parse_count, parse_kind, parse_root};
use crate::output;
use crate::subject::show_cost;
use crate::task::{Task, algorithms, available_memory};
use crate::units::{TimeArg, TimeUnit, parse_time, show_bytes, significant};
use files::Files;
use progress::Bar;
use sizes::{Sizes, parse_sizes};

/// Measure algorithms and segment sizes over a range of vector sizes, and find the best.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  oneport tune reduce -p 2 --bytes 1KiB..1MiB --dtype f32
  oneport tune reduce -p 8 --bytes 64KiB..1MiB --clock paced --alpha 2ms --beta 20ns --html reduce.html
  oneport tune broadcast -p 4 --bytes 4KiB..4MiB --csv b.csv --rules tuned.json
  oneport run broadcast -p 4 --bytes 100KiB --rules tuned.json

The search starts at the segment size that is best in the model, brackets the measured optimum by factors of two (wider where it \
stands at an edge) and refines it; repetitions go where times cannot be told apart yet, until they can (95% confidence intervals of the \
medians) or differ by no more than --tolerance, or --budget is spent. Costs without a unit are nanoseconds.

Ctrl-C ends the sweep: what was measured is kept, written to --csv and --html (not to --rules) and printed, and the exit code is 130. \
The same command with the same --csv FILE continues there; rows in FILE are not measured again. \
A second Ctrl-C ends at once.")]
pub(crate) struct Args {
    /// The collective (`oneport list` shows those that can be planned)
    #[arg(value_parser = parse_kind)]
    collective: Kind,

    /// Sizes of the vector (of one rank's block of gather, scatter, allgather, alltoall): a range such as 64KiB..1MiB, by factors of
    /// --factor and with its end, a list, or both
    #[arg(
        long,
        value_name = "SIZE..SIZE|SIZE,...",
        value_parser = parse_sizes,
        value_delimiter = ',',
        default_value = "1KiB..1MiB",
        allow_negative_numbers = true
    )]
    bytes: Vec<Sizes>,

    /// Factor from one size of a range to the next
    #[arg(long, value_name = "FACTOR", value_parser = parse_count, default_value = "2", allow_negative_numbers = true)]
    factor: usize,

    /// Algorithms to be measured, or `all` that can be used here
    #[arg(
        short,
        long,
        visible_alias = "algorithm",
        value_name = "NAME,...|all",
        value_delimiter = ',',
        default_value = "all"
    )]
    algorithms: Vec<String>,

    /// Number of ranks [default: 8, or as many as --costs describes]
    #[arg(short = 'p', long, value_name = "P", value_parser = parse_count, allow_negative_numbers = true)]
    ranks: Option<usize>,

    /// The root, or `free` to let the algorithm choose it where it can
    #[arg(long, value_name = "RANK|free", value_parser = parse_root, allow_negative_numbers = true)]
    root: Option<Root>,

    /// Type of the elements [default: u8, or u64 for --op affine]
    #[arg(long, value_name = "TYPE")]
    dtype: Option<Dtype>,

    /// Operator of reductions; affine maps (u64) do not commute, so operand order is then kept
    #[arg(long, value_name = "OP", default_value = "sum")]
    op: Op,

    /// Keep operand order even though the operator commutes
    #[arg(long)]
    ordered: bool,

    /// Run flat out, or at the pace of the cost model
    #[arg(
        long,
        value_enum,
        default_value = "native",
        help_heading = "Measurement"
    )]
    clock: Pace,

    /// Time to be spent (seconds, or with a unit); each size has its share
    #[arg(
        long,
        value_name = "TIME",
        value_parser = parse_budget,
        default_value = "60s",
        allow_negative_numbers = true,
        help_heading = "Measurement"
    )]
    budget: Duration,

    /// Difference between two times that does not matter, in percent
    #[arg(
        long,
        value_name = "PERCENT",
        value_parser = parse_tolerance,
        default_value = "2",
        allow_negative_numbers = true,
        help_heading = "Measurement"
    )]
    tolerance: f64,

    /// Cores to pin the ranks to, in turn, such as 0,2,4 [default: all]
    #[arg(
        long,
        value_name = "CORE,CORE,...",
        value_delimiter = ',',
        help_heading = "Measurement"
    )]
    cores: Vec<usize>,

    /// Write all rows as CSV, and continue the interrupted sweep that it holds
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    csv: Option<PathBuf>,

    /// Begin anew, whatever the CSV file holds
    #[arg(long, requires = "csv", help_heading = "Output")]
    restart: bool,

    /// Write a page with plots to hover over
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    html: Option<PathBuf>,

    /// Write which algorithm and segment size to choose when, for `--rules` of run, simulate, plan and check; rules for other
    /// settings in the file stay
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    rules: Option<PathBuf>,

    /// Print one JSON object instead of text
    #[arg(long, help_heading = "Output")]
    json: bool,

    #[command(flatten, next_help_heading = "Machine")]
    machine: Machine,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Pace {
    Native,
    Paced,
}

/// The sweep and what is known about it.
struct Job {
    kind: Kind,
    sweep: Sweep,
    dtype: Dtype,
    op: Op,
    clock: Pace,
    skipped: Vec<Skipped>,
    machine: String,
    date: String,
    command: String,
}

#[derive(Serialize)]
struct Skipped {
    algorithm: &'static str,
    reason: String,
}

#[derive(Serialize)]
struct Output<'a> {
    collective: &'static str,
    ranks: usize,
    root: usize,
    ports: &'static str,
    ported: usize,
    dtype: &'static str,
    op: Option<&'static str>,
    clock: &'static str,
    machine: &'a str,
    cores: usize,
    pinned: bool,
    oversubscribed: bool,
    date: &'a str,
    command: &'a str,
    budget_s: f64,
    elapsed_s: f64,
    /// Rows taken from the CSV file.
    resumed: usize,
    interrupted: bool,
    budget_spent: bool,
    rows: &'a [Row],
    skipped: &'a [Skipped],
    warnings: &'a [String],
}

/// The team's part of the result.
struct Threads {
    cores: usize,
    pinned: bool,
    oversubscribed: bool,
}

/// Measures, writes and prints.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<ExitCode> {
    let job = Job::new(args)?;
    let files = Files::open(args, &job)?;
    match job.dtype {
        Dtype::U8 => go::<u8>(args, &job, files, out),
        Dtype::I32 => go::<i32>(args, &job, files, out),
        Dtype::I64 => go::<i64>(args, &job, files, out),
        Dtype::U64 => go::<u64>(args, &job, files, out),
        Dtype::F32 => go::<f32>(args, &job, files, out),
        Dtype::F64 => go::<f64>(args, &job, files, out),
    }
}

fn go<T: Element>(args: &Args, job: &Job, files: Files, out: &mut dyn Write) -> Result<ExitCode> {
    let operator = Operator::<T>::named(match args.op {
        _ if !job.kind.reduces() => "min",
        op => op.name(),
    })?;
    let team = Team::with(
        job.sweep.request.ranks,
        &TeamOptions {
            cores: (!args.cores.is_empty()).then(|| args.cores.clone()),
            ..TeamOptions::default()
        },
    )?;
    let threads = Threads {
        cores: team.cores(),
        pinned: team.pinned(),
        oversubscribed: team.oversubscribed(),
    };
    let clock = match args.clock {
        Pace::Native => Clock::Native,
        Pace::Paced => Clock::Paced,
    };
    let stop = stop_on_signals()?;
    let mut live = Live::new(team, operator, clock);
    let tuning = measure(job, &files, &mut live, &stop)?;
    let warnings = job.warnings(args, &threads, &tuning);
    files.write(job, &threads, &tuning, &warnings)?;
    for warning in &warnings {
        output::note(warning);
    }
    let resumed = files.known.len();
    if args.json {
        output::json(out, &job.output(&threads, &tuning, &warnings, resumed))?;
    } else {
        print(out, job, &threads, &tuning)?;
    }
    if !tuning.interrupted {
        return Ok(ExitCode::SUCCESS);
    }
    out.flush()?;
    output::note(&format!(
        "interrupted: {} row{} kept; {}",
        tuning.rows.len(),
        if tuning.rows.len() == 1 {
            " is"
        } else {
            "s are"
        },
        match &args.csv {
            Some(path) => format!("the same command continues from {}", path.display()),
            None => "with --csv FILE the same command could continue there".to_string(),
        }
    ));
    Ok(ExitCode::from(130))
}

/// Performs the sweep; rows are saved as they come.
fn measure(job: &Job, files: &Files, live: &mut dyn Measure, stop: &AtomicBool) -> Result<Tuning> {
    let bar = Bar::new(job.sweep.budget);
    let mut saved = files.known.len();
    let mut unsaved = None;
    let tuning = tune::tune(&job.sweep, &files.known, live, &mut |progress| {
        if stop.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        bar.show(progress);
        if progress.measured > saved {
            saved = progress.measured;
            if let Err(error) = files.save(&progress.rows()) {
                unsaved = Some(error);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    });
    bar.end();
    match unsaved {
        Some(error) => Err(error),
        None => Ok(tuning?),
    }
}

/// A flag that SIGINT and SIGTERM set; the second of them ends the program.
fn stop_on_signals() -> Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::flag;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .context("cannot listen for Ctrl-C")?;
    }
    Ok(stop)
}

impl Job {
    fn new(args: &Args) -> Result<Job> {
        let dtype = args.dtype.unwrap_or(match args.op {
            Op::Affine => Dtype::U64,
            _ => Dtype::U8,
        });
        let bytes = sizes::expand(&args.bytes, args.factor)?;
        let most = bytes.iter().copied().max().unwrap_or(0);
        let common = Common {
            collective: Some(args.collective),
            schedule: None,
            ranks: args.ranks,
            root: args.root,
            algorithm: "all".into(),
            rules: None,
            json: args.json,
            vector: Vector {
                bytes: Some(most),
                segment: None,
                segments: Some(1),
                segment_sizes: Vec::new(),
                dtype: Some(dtype),
                op: args.op,
                ordered: args.ordered,
            },
            machine: args.machine.clone(),
        };
        if let Some(bad) = bytes.iter().find(|b| !b.is_multiple_of(dtype.bytes())) {
            bail!(
                "a vector of {bad} bytes is not a whole number of elements of {} bytes (--dtype {})",
                dtype.bytes(),
                dtype.name()
            );
        }
        let task = Task::new(&common, args.collective)?;
        let (algorithms, skipped) = chosen(args, &task)?;
        fits(&task, most)?;
        let mut request = task.request;
        request.segments = oneport::plan::Segments::whole(0);
        Ok(Job {
            kind: args.collective,
            sweep: Sweep {
                request,
                algorithms,
                bytes,
                budget: args.budget,
                tolerance: args.tolerance,
            },
            dtype,
            op: args.op,
            clock: args.clock,
            skipped,
            machine: machine::name(),
            date: machine::date(),
            command: machine::command(),
        })
    }

    fn warnings(&self, args: &Args, threads: &Threads, tuning: &Tuning) -> Vec<String> {
        let mut warnings = Vec::new();
        let ranks = self.sweep.request.ranks;
        if threads.oversubscribed && self.clock == Pace::Native {
            warnings.push(format!(
                "{ranks} ranks on {} cores: wall-clock includes waiting for a core; try --clock paced",
                threads.cores
            ));
        }
        if !threads.pinned {
            warnings
                .push("the system refused to pin some ranks: they may move between cores".into());
        }
        if self.clock == Pace::Native && !args.machine.is_given() {
            warnings.push(
                "model times are for the default costs, not for this machine: give its costs (oneport calibrate measures them)"
                    .into(),
            );
        }
        if tuning.budget_spent {
            let open = tuning.rows.iter().filter(|r| r.best && !r.settled).count();
            warnings.push(format!(
                "the budget was spent before the winner was settled at {open} of {} sizes: a larger --budget goes on",
                self.sweep.bytes.len()
            ));
        }
        warnings
    }

    fn output<'a>(
        &'a self,
        threads: &Threads,
        tuning: &'a Tuning,
        warnings: &'a [String],
        resumed: usize,
    ) -> Output<'a> {
        let request = &self.sweep.request;
        Output {
            collective: self.kind.name(),
            ranks: request.ranks,
            root: request.root,
            ports: request.ports.name(),
            ported: request.ports.k(),
            dtype: self.dtype.name(),
            op: self.kind.reduces().then_some(self.op.name()),
            clock: self.clock.name(),
            machine: &self.machine,
            cores: threads.cores,
            pinned: threads.pinned,
            oversubscribed: threads.oversubscribed,
            date: &self.date,
            command: &self.command,
            budget_s: self.sweep.budget.as_secs_f64(),
            elapsed_s: tuning.elapsed.as_secs_f64(),
            resumed,
            interrupted: tuning.interrupted,
            budget_spent: tuning.budget_spent,
            rows: &tuning.rows,
            skipped: &self.skipped,
            warnings,
        }
    }

    /// What is measured, for people.
    fn facts(&self, threads: &Threads) -> Vec<(&'static str, String)> {
        let request = &self.sweep.request;
        let ports = match request.ports.k() {
            1 => format!("{} ports", request.ports.name()),
            k => format!("{k} {} ports each", request.ports.name()),
        };
        let op = if self.kind.reduces() {
            format!(", {}", self.op.name())
        } else {
            String::new()
        };
        let pinned = if threads.pinned {
            "pinned"
        } else {
            "not pinned"
        };
        vec![
            ("machine", self.machine.clone()),
            (
                "ranks",
                format!(
                    "{} on {} cores, {pinned}; {ports}",
                    request.ranks, threads.cores
                ),
            ),
            ("elements", format!("{}{op}", self.dtype.name())),
            ("clock", self.clock.name().to_string()),
            ("costs", show_cost(&request.cost, TimeUnit::Nanoseconds)),
        ]
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

/// The algorithms asked for. One that is named must be usable; of `all`, those that are not are skipped.
fn chosen(args: &Args, task: &Task) -> Result<(Vec<&'static Algorithm>, Vec<Skipped>)> {
    let (mut found, mut skipped): (Vec<&'static Algorithm>, Vec<Skipped>) = Default::default();
    for name in &args.algorithms {
        for algorithm in algorithms(args.collective, name)? {
            match task.request_for(algorithm) {
                _ if found.iter().any(|a| a.name == algorithm.name) => {}
                Ok(_) => found.push(algorithm),
                Err(error) if name == "all" || name == "auto" => skipped.push(Skipped {
                    algorithm: algorithm.name,
                    reason: output::reason(&error),
                }),
                Err(error) => return Err(error),
            }
        }
    }
    if found.is_empty() {
        let reasons: Vec<_> = skipped
            .iter()
            .map(|s| format!("{}: {}", s.algorithm, s.reason))
            .collect();
        bail!(
            "no algorithm can be planned for this: {}",
            reasons.join("; ")
        );
    }
    Ok((found, skipped))
}

/// Refuses what would not fit into memory.
fn fits(task: &Task, bytes: u64) -> Result<()> {
    /// Buffer, input, output and what it should be, on each rank; gathers hold all ranks' blocks.
    const COPIES: u64 = 4;
    let kind = task.algorithms[0].collective;
    let ranks = task.request.ranks as u64;
    let blocks = match kind {
        Kind::Gather | Kind::Scatter => 2,
        Kind::Allgather | Kind::Alltoall => ranks,
        _ => 1,
    };
    let need = bytes
        .saturating_mul(ranks)
        .saturating_mul(blocks)
        .saturating_mul(COPIES);
    if let Some(free) = available_memory().filter(|&free| need > free) {
        bail!(
            "the runs need about {need} bytes of memory, {free} are free: take fewer ranks or smaller vectors"
        );
    }
    Ok(())
}

fn print(out: &mut dyn Write, job: &Job, threads: &Threads, tuning: &Tuning) -> Result<()> {
    let mut facts = vec![("tuned", job.kind.name().to_string())];
    facts.extend(job.facts(threads));
    facts.push((
        "measured",
        format!(
            "{} combinations in {}",
            tuning.rows.len(),
            TimeUnit::Nanoseconds.show(tuning.elapsed.as_secs_f64() * 1e9)
        ),
    ));
    output::facts(out, &facts)?;
    writeln!(out)?;
    let leaders = tuning.rows.iter().filter(|row| row.best_segment);
    let ns = |t: u64| TimeUnit::Nanoseconds.show(t as f64);
    let rows = leaders.map(|row| {
        let ratio = row.wall.median as f64 / row.model_time;
        [
            show_bytes(row.bytes),
            row.algorithm.clone(),
            show_bytes(row.segment),
            row.segments.to_string(),
            ns(row.wall.median),
            ns(row.wall.p99),
            row.wall.repetitions.to_string(),
            TimeUnit::Nanoseconds.show(row.model_time),
            if ratio.is_finite() {
                significant(ratio, 4)
            } else {
                "-".into()
            },
            match (row.best, row.settled) {
                (true, true) => "best",
                (true, false) => "best so far",
                (false, true) => "",
                (false, false) => "not settled",
            }
            .to_string(),
        ]
    });
    let header = [
        "size",
        "algorithm",
        "segment",
        "segments",
        "median",
        "p99",
        "repetitions",
        "model",
        "x model",
        "",
    ];
    output::table(out, &header, rows, &[0, 2, 3, 4, 5, 6, 7, 8])?;
    output::skipped(
        out,
        job.skipped.iter().map(|s| (s.algorithm, s.reason.as_str())),
    )?;
    writeln!(out)?;
    plot::plot(out, &tuning.rows)
}

/// A time budget: `500ms`, `2s`; plain numbers are seconds.
fn parse_budget(text: &str) -> Result<Duration, String> {
    let TimeArg { value, has_unit } = parse_time(text)?;
    let seconds = if has_unit { value * 1e-9 } else { value };
    if !(0.0..=1e6).contains(&seconds) {
        return Err(format!("a budget is at most 1000000s, {text} is not"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Percent, as a fraction.
fn parse_tolerance(text: &str) -> Result<f64, String> {
    text.trim_end_matches('%')
        .parse::<f64>()
        .ok()
        .filter(|percent| (0.0..=100.0).contains(percent))
        .map(|percent| percent / 100.0)
        .ok_or_else(|| format!("'{text}' is not a percentage from 0 to 100"))
}
