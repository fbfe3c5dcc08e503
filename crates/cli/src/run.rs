//! `oneport run`: runs a schedule with real data, on threads or over MPI.

mod execute;
mod limits;
mod report;
mod sweep;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::ValueEnum;
use oneport::check::{self, Finding, FindingKind};
use oneport::run::{ElementType, Workers};
use oneport::simulate::Prepared;
use oneport_measure::percentile_distribution;

use self::execute::execute_as;
pub(crate) use self::limits::memory_of_schedule;
use self::report::{Disproved, Output, print};
pub(crate) use self::report::{Library, Wall};
use crate::args::Common;
use crate::draw::File;
use crate::input::{Input, first_of, print_warnings};
use crate::output;
use crate::site::{Engine, Site};
use crate::sizes::Sizes;
use crate::units::{TimeArg, parse_count, parse_time};

/// Run a schedule on pinned threads with real data, and verify the result.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:
  oneport run reduce -p 2 --bytes 64KiB --dtype f32 --repetitions 20
  oneport run broadcast -p 4 --bytes 1MiB --segments 8 -a chain
  oneport run reduce -p 4 --bytes 1KiB --clock paced --alpha 100us --beta 10ns
  oneport run reduce -p 2 --bytes 1MiB --segments 16 -a chain --trace run.svg
  oneport run broadcast -p 100000 --bytes 8 --workers cores
  oneport run allreduce -p 2 --bytes 8..4MiB --dtype f32 --csv before.csv

Every rank is a thread, pinned round-robin to the cores. With --workers cores there is one thread per core, which runs the programs of its ranks \
in turn: the same steps, checks and model time, but no rank waits for a core, and far more ranks fit. The schedule is proved as check does, and every repetition, each with other data, is compared with what a sequential \
computation gives: verified means that both are right. \
Without --dtype elements are bytes (u8), or of the first type that --op combines. The model time is the time of the same run in the cost \
model, carried along with the messages: what simulate says. With --clock paced the run takes that long in real time, as \
on a slower network; costs written without a unit are then nanoseconds.

A range of sizes makes a table, each size twice the one before. algbw is the size over the median, busbw what a link carries of it: for \
reduce_scatter, allgather, alltoall, gather and scatter (p-1)/p of it, for allreduce twice that. The size is that of all blocks where each \
rank has one. The interval holds the median with 95% confidence; with --baseline a size is faster or slower where the intervals \
do not touch.")]
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

    /// Run ranks as threads, or as the processes that mpirun or srun started [default: mpi if they
    /// did]
    #[arg(long, value_enum, help_heading = "Run")]
    engine: Option<Engine>,

    /// Over MPI: measure the library's own collective, too, in turns with the schedule
    #[arg(long, help_heading = "Run")]
    library: bool,

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
        allow_hyphen_values = true,
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

    /// Which cores get neighbouring ranks, by the machine's caches; the second hardware threads of
    /// cores come last [default: compact]
    #[arg(long, conflicts_with = "cores", help_heading = "Run")]
    placement: Option<Place>,

    /// Record when every transfer and computation of the last repetition took place, and write it
    /// to this file: a Gantt chart (.svg), or a trace for Perfetto (.json). All transfers are
    /// rendezvous then
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    trace: Option<PathBuf>,

    /// Write the table of a range of sizes to this file, as CSV
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    csv: Option<PathBuf>,

    /// Compare with the table that an earlier run wrote with --csv
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    baseline: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Place {
    /// Those that share a last-level cache.
    Compact,
    /// Those of different packages and caches.
    Spread,
    /// Ranks that exchange many bytes share a last-level cache.
    Schedule,
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

/// Runs, verifies and prints.
pub(crate) fn run(args: &Args, site: &mut Site, out: &mut dyn Write) -> Result<ExitCode> {
    site.join(args.engine())?;
    site.ensure_same(match (args.is_table(), args.library) {
        (false, false) => "runs one size".into(),
        (false, true) => "runs one size and measures the library".into(),
        (true, false) => "runs a table of sizes".into(),
        (true, true) => "runs a table of sizes and measures the library".into(),
    })?;
    if args.is_table() {
        return sweep::run(args, site, out);
    }
    let prepared = args.prepare(site);
    let (input, dtype) = site.agree(prepared)?;
    let file = args.trace.as_deref().map(File::of).transpose()?;
    if let Some(wrong) = args.disproved(&input, site) {
        if args.common.json {
            let refused = Disproved {
                verified: false,
                error: wrong.clone(),
                info: &input.info,
            };
            output::json(out, &refused)?;
        }
        return wrong_exit(out, &format!("wrong schedule: {wrong}"));
    }
    let done = execute_as(dtype, args, &input, site)?;
    for warning in &done.row.warnings {
        output::note(warning);
    }
    if let (Some(path), Some(file), Some(trace)) = (&args.trace, file, &done.trace) {
        let text = file.content(trace, &args.caption(&input, &done))?;
        output::write_named(path, text.as_bytes())?;
    }
    if let Some(path) = &args.histogram {
        let text = percentile_distribution(oneport::internal::histogram(&done.row.wall));
        output::write_named(path, text.as_bytes())?;
    }
    let output = Output::new(args, &input, dtype, done, site);
    if args.common.json {
        output::json(out, &output)?;
    } else {
        print(out, &input, &output)?;
    }
    match &output.error {
        None => Ok(ExitCode::SUCCESS),
        Some(wrong) => wrong_exit(out, &format!("wrong result: {wrong}")),
    }
}

/// Reports that a schedule or a result is wrong, after what has been printed.
fn wrong_exit(out: &mut dyn Write, message: &str) -> Result<ExitCode> {
    out.flush()?;
    output::error(message);
    Ok(ExitCode::from(1))
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

impl Args {
    /// Whether a table of several sizes is wanted.
    fn is_table(&self) -> bool {
        let range = self.common.vector.bytes.is_some_and(Sizes::is_range);
        range || self.csv.is_some() || self.baseline.is_some()
    }

    /// Where the ranks run.
    pub(crate) fn engine(&self) -> Engine {
        Engine::given_or_implied(self.engine)
    }

    fn mode(&self) -> &'static str {
        match self.engine() {
            Engine::Threads => self.workers.mode(),
            Engine::Mpi => "processes",
        }
    }

    /// What every process of a run prepares: its input, and the type of its elements.
    fn prepare(&self, site: &Site) -> Result<(Input, ElementType)> {
        let (input, dtype) = self.input(site)?;
        print_warnings(&self.common.typed().0, &input.schedule);
        site.note_spare(input.schedule.ranks());
        if let Some(file) = self.trace.as_deref().map(File::of).transpose()? {
            file.ensure_fits_memory(&input.schedule)?;
        }
        output::writable(&[
            ("--histogram", self.histogram.as_deref()),
            ("--trace", self.trace.as_deref()),
        ])?;
        Ok((input, dtype))
    }

    /// What is run, if it can be.
    fn input(&self, site: &Site) -> Result<(Input, ElementType)> {
        let (mut common, dtype) = self.common.typed();
        if let Some(world) = &site.world {
            self.ensure_for_processes()?;
            common.take_ranks(world.size());
        } else if let Some(ranks) = common.ranks.filter(|_| common.schedule.is_none()) {
            self.ensure_threads(ranks)?;
        }
        let input = match site.world {
            None => common.input_on_cores(|ranks| self.core_model(ranks))?,
            Some(_) => common.input()?,
        };
        let kind = input.schedule.collective().kind();
        common.vector.ensure_combines(kind, dtype)?;
        match &site.world {
            None => self.ensure_fits(&input)?,
            Some(_) => site.ensure_processes(input.schedule.ranks())?,
        }
        Ok((input, dtype))
    }

    /// The reason not to run the schedule. One process looks for it for all.
    fn disproved(&self, input: &Input, site: &mut Site) -> Option<String> {
        let wrong = site.speaks().then(|| self.first_error(input)).flatten();
        let disproved = wrong.as_deref().map_or(Ok(()), |w| Err(anyhow!("{w}")));
        let agreed = site.agree(disproved);
        agreed.err().map(|_| wrong.unwrap_or_default())
    }

    /// Returns the reason not to run the schedule: the first error that `check` finds, because
    /// correct data prove nothing (some operators hide errors that others reveal); without
    /// verification only steps that would wait for each other until the deadline.
    fn first_error(&self, input: &Input) -> Option<String> {
        // Schedules that complete need no search for cycles.
        if self.no_verify && Prepared::new(&input.schedule, input.cost.overlaps()).is_ok() {
            return None;
        }
        let report = input.check(&self.common, check::Options::default().max_errors);
        let waits = |kind| matches!(kind, FindingKind::Deadlock | FindingKind::TwoPorts);
        let counts = |finding: &&Finding| !self.no_verify || waits(finding.kind);
        let wrong = first_of(report.errors.iter().filter(counts), report.more)?;
        let instead = match self.no_verify {
            true => "",
            false => " (not run: --no-verify runs it all the same)",
        };
        Some(wrong + instead)
    }
}

/// Parses a deadline such as `500ms` or `2s`; plain numbers are seconds.
pub(crate) fn parse_deadline(text: &str) -> Result<Duration, String> {
    let refused = || format!("a deadline is between 1us and 1000000s, {text} is not");
    if text.starts_with('-') {
        return Err(refused());
    }
    let TimeArg { value, has_unit } = parse_time(text)?;
    let seconds = if has_unit { value * 1e-9 } else { value };
    if !(1e-6..=1e6).contains(&seconds) {
        return Err(refused());
    }
    Ok(Duration::from_secs_f64(seconds))
}
