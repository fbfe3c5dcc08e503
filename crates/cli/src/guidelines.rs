//! `oneport guidelines`: checks performance guidelines between collectives.

mod report;

use std::borrow::Cow;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Error, Result, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use oneport::run::{Clock, Place, Processes};
use oneport::{CostModel, Ports};
use oneport_measure::guidelines::{self, Comparison, Evaluation, Setting};
use oneport_measure::{Calibration, calibrate};
use serde::Serialize;

use crate::args::Machine;
use crate::calibrate::between_processes;
use crate::memory::available_memory;
use crate::run::parse_deadline;
use crate::site::{Engine, Site, ensure_for_processes};
use crate::units::{Number, TimeUnit, parse_count, parse_size, show_bytes};
use crate::{output, parallel};

/// Largest number of ranks; some guidelines use twice as many.
const MAX_RANKS: usize = 4096;
/// Largest size in bytes.
const MAX_BYTES: u64 = 1 << 40;

/// Check that no collective is slower than what can stand in for it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  oneport guidelines                                       in the model
  oneport guidelines -p 4,64 --bytes 1KiB,1MiB --profile machine.json
  oneport guidelines -p 2 --bytes 64KiB --native           measured too, within 10%
  oneport guidelines -p 4 --bytes 1KiB --paced --alpha 1ms --beta 10ns
  mpirun -n 4 oneport guidelines --bytes 1KiB,64KiB        of the MPI library itself, too

A guideline compares two ways to the same end, such as one broadcast with a scatter followed by an allgather: for p ranks and m bytes \
the left side may not take longer than the right one. Each call is performed by the algorithm that is the fastest in the model, with its \
best segments. Of gather, scatter, allgather and alltoall, m bytes are all blocks together. Guidelines about collectives for which no \
algorithm is registered are listed as not available, and become active with the first one. Measured are medians, both sides in turns, \
verified; without costs, --native calibrates first. Over MPI the library's own functions are measured beside the schedules: where \
MPI_Gather takes longer than MPI_Allgather, the library is at fault. Exit code: 0 when all hold, 1 when one is violated by more than the tolerance.")]
pub(crate) struct Args {
    /// Numbers of ranks [default: 2,3,4,8,16,64; 2,4 when measured; over MPI half and all of the
    /// processes]
    #[arg(short = 'p', long, value_name = "P,P,...", value_parser = parse_count, value_delimiter = ',', allow_negative_numbers = true)]
    ranks: Vec<usize>,

    /// Sizes [default: 8,1KiB,64KiB,1MiB; 1KiB,64KiB when measured]
    #[arg(long, value_name = "SIZE,SIZE,...", value_parser = parse_size, value_delimiter = ',', allow_negative_numbers = true)]
    bytes: Vec<u64>,

    /// Measure too, flat out; over MPI that is always done
    #[arg(long, conflicts_with = "paced")]
    native: bool,

    /// Measure on threads, or on the processes that mpirun or srun started [default: mpi if they
    /// did]
    #[arg(long, value_enum)]
    engine: Option<Engine>,

    /// Measure too, at the pace of the cost model [default costs: 200us, 1ns per byte]
    #[arg(long)]
    paced: bool,

    /// By how much a left side may be slower, such as 10% or 0.1 [default: 0 in the model, 10%
    /// when measured]
    #[arg(long, value_name = "SHARE", value_parser = parse_share, allow_negative_numbers = true)]
    tolerance: Option<f64>,

    /// How long a rank waits for a partner before a measurement ends in an error
    #[arg(long, value_name = "TIME", value_parser = parse_deadline, default_value = "10s", allow_hyphen_values = true)]
    deadline: Duration,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,

    #[command(flatten, next_help_heading = "Machine")]
    machine: Machine,
}

#[derive(Serialize)]
struct Output<'a> {
    holds: bool,
    violated: usize,
    ports: &'static str,
    tolerance: f64,
    /// Tolerance for measured times.
    #[serde(skip_serializing_if = "Option::is_none")]
    measured_tolerance: Option<f64>,
    time_unit: &'static str,
    /// The processes, if the engine is MPI.
    #[serde(skip_serializing_if = "Option::is_none")]
    mpi: Option<Processes>,
    rows: Vec<OutputRow>,
    unavailable: Vec<UnavailableRow<'a>>,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct OutputRow {
    guideline: &'static str,
    statement: &'static str,
    /// `model`, `native` or `paced`.
    clock: &'static str,
    /// Who performs the calls: `schedules` or `library`.
    by: &'static str,
    ranks: usize,
    bytes: u64,
    left: Number,
    right: Number,
    left_algorithms: Vec<Cow<'static, str>>,
    right_algorithms: Vec<Cow<'static, str>>,
    holds: bool,
    /// By how much the left side is slower, as a fraction; negative if it is faster.
    excess: f64,
}

#[derive(Serialize)]
struct UnavailableRow<'a> {
    guideline: &'a str,
    reason: &'a str,
}

/// Evaluates the guidelines and prints the result.
pub(crate) fn run(args: &Args, site: &mut Site, out: &mut dyn Write) -> Result<ExitCode> {
    site.join(args.engine())?;
    let over_mpi = site.world.is_some();
    let clock = match (args.native || over_mpi, args.paced) {
        (_, true) => Some(Clock::Paced),
        (true, _) => Some(Clock::Native),
        _ => None,
    };
    let measured = clock.is_some();
    let or_default = |given: &[usize], model: &[usize], fewer: &[usize]| match given {
        [] if measured => fewer.to_vec(),
        [] => model.to_vec(),
        given => given.to_vec(),
    };
    let fewer = match site.world.as_ref().map(|world| world.size()) {
        None => vec![2, 4],
        Some(all @ (1..=3)) => vec![all],
        Some(all) => vec![all / 2, all],
    };
    let ranks = or_default(&args.ranks, &[2, 3, 4, 8, 16, 64], &fewer);
    let sizes = match args.bytes[..] {
        [] if measured => vec![1 << 10, 64 << 10],
        [] => vec![8, 1 << 10, 64 << 10, 1 << 20],
        ref given => given.to_vec(),
    };
    let prepared = args.prepare(site, &ranks, &sizes, measured);
    let ports = site.agree(prepared)?;
    site.ensure_same(format!("takes {ranks:?} ranks and {sizes:?} bytes"))?;
    // Some guidelines use twice as many ranks.
    let most = ranks.iter().max().map(|&p| p.saturating_mul(2));
    let (cost, unit) = costs(args, most, clock, site)?;
    let fallback = Setting::new(ports, cost);
    let setting = Setting {
        clock,
        tolerance: args.tolerance.unwrap_or(fallback.tolerance),
        measured_tolerance: args.tolerance.unwrap_or(fallback.measured_tolerance),
        deadline: args.deadline,
        library: over_mpi,
        ..fallback
    };
    let bar = bar();
    let report = match clock {
        None => in_the_model(&setting, &ranks, &sizes, &bar),
        Some(_) => guidelines::evaluate_on(site, &setting, &ranks, &sizes, |done, of| {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
        })
        .map_err(Error::from),
    };
    bar.finish_and_clear();
    let report = report?;
    for warning in &report.warnings {
        output::note(warning);
    }
    if args.json {
        output::json(out, &json(&report, &setting, unit, site))?;
    } else {
        report::print(out, &report, &setting, unit, site)?;
    }
    Ok(ExitCode::from(u8::from(!report.holds())))
}

impl Args {
    /// Where the ranks run.
    pub(crate) fn engine(&self) -> Engine {
        Engine::given_or_implied(self.engine)
    }

    /// Refuses what cannot be done. Returns the ports.
    fn prepare(
        &self,
        site: &Site,
        ranks: &[usize],
        sizes: &[u64],
        measured: bool,
    ) -> Result<Ports> {
        if site.world.is_some() {
            ensure_for_processes(&[("--paced", self.paced)])?;
            site.ensure_processes(ranks.iter().copied().max().unwrap_or(1))?;
        }
        ensure_fits_memory(ranks, sizes, measured, site)?;
        self.machine.ports(Ports::BI)
    }
}

/// Evaluates model times on all cores, some numbers of ranks at a time.
fn in_the_model(
    setting: &Setting,
    ranks: &[usize],
    sizes: &[u64],
    bar: &ProgressBar,
) -> Result<Evaluation> {
    let places: Vec<_> = guidelines::all().map(|g| g.name).collect();
    bar.set_length((places.len() * ranks.len() * sizes.len()) as u64);
    let evaluate = |&p: &usize, _| guidelines::evaluate(setting, &[p], sizes, |_, _| bar.inc(1));
    // The longest algorithms send a message from each rank to each other.
    let work = |&p: &usize| (places.len() * sizes.len() * p * p) as u64;
    let mut all = Evaluation::default();
    for report in parallel::map(ranks, work, evaluate, |_| false) {
        let report = report?;
        all.rows.extend(report.rows);
        let known = all.unavailable.clone();
        let new = report.unavailable.into_iter();
        all.unavailable
            .extend(new.filter(|one| !known.contains(one)));
    }
    all.rows
        .sort_by_key(|row| places.iter().position(|&name| name == row.guideline.name));
    Ok(all)
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    let style = "{bar:40} {percent}%, {eta} left";
    bar.set_style(ProgressStyle::with_template(style).unwrap_or(ProgressStyle::default_bar()));
    if output::is_silent() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    bar
}

/// Rejects requests that would take too long or too much memory.
fn ensure_fits_memory(ranks: &[usize], sizes: &[u64], measured: bool, site: &Site) -> Result<()> {
    if ranks.contains(&0) {
        bail!("a collective needs at least one rank (-p 0)");
    }
    let p = ranks.iter().copied().max().unwrap_or(1);
    if p > MAX_RANKS {
        bail!("{p} ranks are more than the {MAX_RANKS} that guidelines are checked for");
    }
    let m = sizes.iter().copied().max().unwrap_or(0);
    if m > MAX_BYTES {
        bail!(
            "{} are more than the {} that guidelines are checked for",
            show_bytes(m),
            show_bytes(MAX_BYTES)
        );
    }
    if !measured {
        return Ok(());
    }
    let max_ranks = site.max_ranks();
    if site.world.is_none() && 2 * p > max_ranks {
        bail!(
            "some guidelines take {} ranks, more than the {max_ranks} that this system can hold",
            2 * p
        );
    }
    // Estimated memory: twice the size, times inputs of each collective, buffers, results and
    // expected results.
    const COPIES: u64 = 2 * 12;
    let needed = (p as u64).saturating_mul(m).saturating_mul(COPIES);
    if let Some(free) = available_memory().filter(|&free| needed > free) {
        bail!(
            "measuring needs about {needed} bytes of memory, {free} are free: take fewer ranks or smaller sizes"
        );
    }
    Ok(())
}

/// Returns the given cost model. Without one, native measurements calibrate this machine, and paced
/// measurements use costs that threads can keep pace with.
fn costs(
    args: &Args,
    ranks: Option<usize>,
    clock: Option<Clock>,
    site: &mut Site,
) -> Result<(CostModel, TimeUnit)> {
    let machine = &args.machine;
    let times = [
        machine.alpha,
        machine.beta,
        machine.gamma,
        machine.gamma_copy,
    ];
    let given =
        times.iter().any(Option::is_some) || machine.profile.is_some() || machine.costs.is_some();
    match clock {
        Some(Clock::Native) if !given => {
            let quick = Calibration {
                quick: true,
                ..Calibration::default()
            };
            let profile = match &mut site.world {
                None => calibrate(&quick, |_, _| {}),
                Some(world) => between_processes(world, &quick, |_, _| {}),
            };
            match profile {
                Ok(profile) => {
                    let cost = profile.cost()?.overlap(machine.overlap);
                    return Ok((cost, TimeUnit::Nanoseconds));
                }
                Err(reason) => {
                    output::note(&format!("{reason}; algorithms are chosen by default costs"))
                }
            }
        }
        Some(Clock::Paced) if !given => {
            let cost = CostModel::new(200_000.0, 1.0).overlap(machine.overlap);
            return Ok((cost, TimeUnit::Nanoseconds));
        }
        _ => {}
    }
    let given = machine.cost(ranks);
    let (cost, unit) = site.agree(given)?;
    // Wall-clock times are in nanoseconds.
    let unit = if clock.is_some() {
        TimeUnit::Nanoseconds
    } else {
        unit
    };
    Ok((cost, unit))
}

fn clock_name(clock: Option<Clock>) -> &'static str {
    match clock {
        None => "model",
        Some(Clock::Paced) => "paced",
        Some(_) => "native",
    }
}

fn json<'a>(report: &'a Evaluation, setting: &Setting, unit: TimeUnit, site: &Site) -> Output<'a> {
    let row = |row: &Comparison| OutputRow {
        guideline: row.guideline.name,
        statement: row.guideline.statement,
        clock: clock_name(row.clock),
        by: row.by.name(),
        ranks: row.ranks,
        bytes: row.bytes,
        left: Number(row.left),
        right: Number(row.right),
        left_algorithms: row.left_by.clone(),
        right_algorithms: row.right_by.clone(),
        holds: row.holds,
        excess: row.excess(),
    };
    let unavailable = report.unavailable.iter();
    Output {
        holds: report.holds(),
        violated: report.rows.iter().filter(|r| !r.holds).count(),
        ports: setting.ports.name(),
        tolerance: setting.tolerance,
        measured_tolerance: setting.clock.map(|_| setting.measured_tolerance),
        time_unit: unit.name(),
        mpi: site.processes(),
        rows: report.rows.iter().map(row).collect(),
        unavailable: unavailable
            .map(|entry| UnavailableRow {
                guideline: entry.guideline,
                reason: &entry.reason,
            })
            .collect(),
        warnings: &report.warnings,
    }
}

/// Parses a fraction: `10%` or `0.1`.
fn parse_share(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.trim().strip_suffix('%') {
        Some(number) => (number, 0.01),
        None => (text.trim(), 1.0),
    };
    let share = number.trim_end().parse::<f64>().ok().map(|n| n * unit);
    share
        .filter(|s| s.is_finite() && *s >= 0.0)
        .ok_or_else(|| format!("'{text}' is not a tolerance: write 10% or 0.1"))
}
