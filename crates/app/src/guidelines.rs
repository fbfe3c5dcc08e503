//! `oneport guidelines`: checks performance guidelines between collectives.

mod files;

use oneport::Distribution;
use oneport::machine::CostClass;
use oneport_measure::Calibration;
use oneport_measure::guidelines::{
    self, BlockSizes, By, Comparison, Effort, Evaluation, Guideline, Performer, Setting,
};

use crate::args::Inputs;
use crate::blocks::{DEFAULT_RHO, DEFAULT_SEED, DistributionName};
use crate::delays::DelayArgs;
use crate::prelude::*;
use crate::site::{self, ensure_for_processes};
use crate::sweep::{Written as _, kinds_of};
use crate::task::left_out_texts;
use crate::{calibrate, parallel};

/// Largest number of ranks; some guidelines use twice as many.
const MAX_RANKS: usize = 4096;
const MAX_BYTES: u64 = 1 << 40;

options! {
    /// Check that no collective is slower than what can stand in for it
    #[derive(Debug)]
    #[examples = "\
Examples:
  oneport guidelines                                       in the model
  oneport guidelines broadcast reduce --only violated      of two collectives, without what holds
  oneport guidelines -p 4,16 --bytes 1KiB,1MiB --profile machine.json
  oneport guidelines gather --dist spikes -p 64            gatherv of unequal blocks beside padding them
  oneport guidelines -p 2 --bytes 64KiB --native           measured too, within 10%
  oneport guidelines scan -p 2 --native --budget 2s        longer, so that more is settled
  oneport guidelines -p 4 --bytes 1KiB --paced --alpha 1ms --beta 10ns
  mpirun -n 4 oneport guidelines --bytes 1KiB,64KiB        of the MPI library itself, too

A guideline compares two ways to the same end, such as one broadcast with a scatter followed by an allgather: for p ranks and m bytes \
the left side may not take longer than the right one. With --arrivals each call is timed from its last arrival on. Each call is performed by the algorithm that is the fastest in the model, with its \
best segments. Of gather, scatter, allgather and alltoall, m bytes are all blocks together. Guidelines about collectives for which no \
algorithm is registered are listed as not available, and become active with the first one. Measured are medians, both sides interleaved, \
verified; without costs, --native calibrates first. A measured row is settled if it is the same wherever in their 95% confidence intervals both \
times are; beside measured times the model's rows are printed where violated. Over MPI the library's own functions are measured beside the schedules: where \
MPI_Gather takes longer than MPI_Allgather, the library is at fault. Exit code: 0 when all hold, 1 when one is violated by more than the tolerance."]
    pub(crate) struct GuidelinesArgs {
        /// The collectives to judge: what stands in for them may be any other [default: all]
        kinds: Vec<Kind> = KindName { is_placed: true },

        /// Numbers of ranks [default: 2,3,4,8,16,64; 2,4 when measured; over MPI half and all of
        /// the processes]
        ranks: Option<Ranges> = Ranks { shorts: &['p', 'n'], value: "P,P,..." },

        /// Sizes [default: 8,1KiB,64KiB,1MiB; 1KiB,64KiB when measured]
        bytes: Option<Ranges> = Sizes { value: "SIZE,SIZE,..." },

        /// Sizes of the blocks of gatherv and alltoallv, of which SIZE is the sum on average: one
        /// of the distributions of --dist of compare [default: equal blocks]
        dist: Option<Distribution> = DistributionName,

        /// How uneven, for --dist [default: 5]
        rho: Option<usize> = Count { value: "N", requires: &["dist"] },

        /// Where random sizes start from, for --dist [default: 1]
        seed: Option<u64> = Seed { requires: &["dist"] },

        /// Measure too, flat out; over MPI that is always done
        native: bool = Switch { conflicts: &["paced"] },

        /// Measure on threads, or on the processes that mpirun or srun started [default: mpi if
        /// they did]
        pub(crate) engine: Option<Engine> = Engine,

        /// Measure too, at the pace of the cost model [default costs: 200us, 1ns per byte]
        paced: bool = Switch,

        /// By how much a left side may be slower, in percent [default: 0 in the model, 10 when
        /// measured]
        tolerance: Option<f64> = Tolerance,

        /// Show only these rows
        only: Option<Only> = Only { value: "violated" },

        /// Repetitions of each measured call; at least 6 give confidence intervals [default: what
        /// fits into some milliseconds]
        repetitions: Option<usize> = Count {
            value: "N", aliases: &["reps"], conflicts: &["budget"],
        },

        /// About how long to measure in all, after a calibration (seconds, or with a unit)
        budget: Option<Duration> = Budget { takes_dashes: true },

        /// How long a rank waits for a partner before a measurement ends in an error
        deadline: Duration = Deadline { default: Some("10s"), takes_dashes: true },

        inputs: InputArgs = Group,

        /// Write what is shown to FILE.csv, .md, .tex or .json, a plot of left sides over right
        /// sides to .svg, a page with both to .html; may be repeated
        output: Vec<PathBuf> = Output { shorts: &['o'] },

        /// Print one JSON object instead of text
        json: bool = Switch,

        machine: MachineArgs = Group { heading: Some("Machine") },

        delays: DelayArgs = Group { heading: Some("Machine") },
    }
}

choices! {
    /// Rows to show.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Only {
        Violated = "violated",
    }
}

impl Command for GuidelinesArgs {
    fn json_forms() -> JsonForms {
        JsonForms::new().of(|done: &'static GuidelinesJob<'static>| done.answered())
    }

    fn engine(&self) -> Option<Engine> {
        self.engine
    }

    fn answer(&self, site: &mut Site) -> Result<Answer> {
        let done = site.perform(GuidelinesJob::new(self, site))?;
        let caller = &site.caller;
        caller.notes(done.left_out());
        caller.notes(&done.evaluation.warnings);
        let answer = answer(caller, self.json, &done.answered(), |out| print(out, &done))?;
        let written = done.write(&kinds_of(&self.output)?, caller);
        Ok(Answer {
            exit_code: u8::from(!done.evaluation.holds()),
            ..answer
        }
        .and(written))
    }
}

struct GuidelinesJob<'a> {
    args: &'a GuidelinesArgs,
    caller: Caller,
    setting: Setting,
    unit: Unit,
    ranks: Vec<usize>,
    sizes: Vec<u64>,
    calibrates: bool,
    evaluation: Evaluation,
    processes: Option<Processes>,
}

impl<'a> GuidelinesJob<'a> {
    fn new(args: &'a GuidelinesArgs, site: &Site) -> Result<GuidelinesJob<'a>> {
        let files = kinds_of(&args.output)?.into_iter();
        let files = files.map(|(_, path)| ("-o", Some(path)));
        site.caller.writable(&files.collect::<Vec<_>>())?;
        let over_mpi = site.world.is_some();
        let clock = match (args.native || over_mpi, args.paced) {
            (_, true) => Some(Clock::Paced),
            (true, _) => Some(Clock::Native),
            _ => None,
        };
        let (ranks, sizes) = ranks_and_sizes(args, clock.is_some(), site);
        if over_mpi {
            ensure_for_processes(&[("--paced", args.paced)])?;
            site.ensure_processes(ranks.iter().copied().max().unwrap_or(1))?;
        }
        ensure!(
            clock.is_some() || !args.inputs.inputs.kept(),
            "--inputs is for measured times: take --native or --paced, too"
        );
        ensure_fits_memory(&ranks, &sizes, clock.is_some(), site)?;
        let machine = &args.machine;
        let ports = machine.ports(Ports::BI)?;
        let (cost, unit) = costs(args, clock, &ranks)?;
        let arrivals = arrivals(args, clock.is_some(), &ranks)?;
        let effort = effort(args, clock.is_some())?;
        let fallback = Setting::new(ports, cost);
        let setting = Setting {
            kinds: args.kinds.clone(),
            effort,
            clock,
            tolerance: args.tolerance.unwrap_or(fallback.tolerance),
            measured_tolerance: args.tolerance.unwrap_or(fallback.measured_tolerance),
            deadline: args.deadline,
            keep_inputs: args.inputs.inputs.kept(),
            library: over_mpi,
            arrivals: (!arrivals.is_empty()).then_some(arrivals),
            blocks: args.dist.map(|distribution| BlockSizes {
                distribution,
                rho: args.rho.unwrap_or(DEFAULT_RHO),
                seed: args.seed.unwrap_or(DEFAULT_SEED),
            }),
            ..fallback
        };
        ensure_applies(args, &setting)?;
        Ok(GuidelinesJob {
            setting,
            // Wall-clock times are in nanoseconds.
            unit: clock.map_or(unit, |_| Unit::Nanoseconds),
            ranks,
            sizes,
            args,
            caller: site.caller.clone(),
            calibrates: clock == Some(Clock::Native) && !machine.is_given(),
            evaluation: Evaluation::default(),
            processes: site.processes(),
        })
    }

    fn shows(&self, row: &Comparison) -> bool {
        self.args.only.is_none() || !row.holds
    }

    /// The rows to be shown.
    fn shown(&self) -> Vec<&Comparison> {
        let rows = self.evaluation.rows.iter();
        rows.filter(|row| self.shows(row)).collect()
    }

    /// What the searches for the calls left out.
    fn left_out(&self) -> Vec<String> {
        left_out_texts(self.evaluation.left_out.iter().cloned())
    }

    fn costs(&self) -> String {
        show_cost(&self.setting.cost, self.unit)
    }
}

impl site::Job for GuidelinesJob<'_> {
    type Done = Self;

    fn fact(&self) -> String {
        let kinds: Vec<_> = self.setting.kinds.iter().map(|kind| kind.name()).collect();
        format!(
            "takes {:?} ranks, {:?} bytes, the collectives {kinds:?}, blocks {:?} and {:?}",
            self.ranks, self.sizes, self.setting.blocks, self.setting.effort
        )
    }

    fn perform(mut self, site: &mut Site) -> Result<Self> {
        if self.calibrates {
            let quick = Calibration {
                quick: true,
                ..Calibration::default()
            };
            match calibrate::measure(&quick, site, |_, _| {}) {
                Ok(profile) => {
                    self.setting.cost = profile.cost()?.overlap(self.setting.cost.overlaps());
                }
                Err(reason) => {
                    site.caller
                        .note(format!("{reason}; algorithms are chosen by default costs"));
                }
            }
        }
        let bar = WorkBar::new(&site.caller, 0, "{bar:40} {percent}%, {eta} left");
        let (setting, ranks, sizes) = (&self.setting, &self.ranks, &self.sizes);
        let evaluation = match setting.clock {
            None => in_the_model(setting, ranks, sizes, &bar),
            Some(_) => {
                let progress = |done, of| bar.set(done, of);
                guidelines::evaluate_on(site, setting, ranks, sizes, progress)
            }
        };
        bar.finish();
        self.evaluation = evaluation?;
        Ok(self)
    }
}

/// Evaluates model times on all cores, some numbers of ranks at a time.
fn in_the_model(
    setting: &Setting,
    ranks: &[usize],
    sizes: &[u64],
    bar: &WorkBar,
) -> oneport::Result<Evaluation> {
    let places: Vec<_> = setting.guidelines().map(|g| g.name).collect();
    bar.begin("", (places.len() * ranks.len() * sizes.len()) as u64);
    let evaluate = |&p: &usize, _| guidelines::evaluate(setting, &[p], sizes, |_, _| bar.add(1));
    // The longest algorithms send a message from each rank to each other.
    let work = |&p: &usize| (places.len() * sizes.len() * p * p) as u64;
    let mut all = Evaluation::default();
    for report in parallel::map(ranks, work, evaluate, |_| false) {
        let report = report?;
        all.rows.extend(report.rows);
        let unavailable = report.unavailable.into_iter();
        unavailable.for_each(|one| all.add_unavailable(one.guideline, one.reason));
        let left_out = report.left_out.into_iter();
        left_out.for_each(|(algorithm, left_out)| all.add_left_out(algorithm, left_out));
    }
    all.rows
        .sort_by_key(|row| places.iter().position(|&name| name == row.guideline.name));
    Ok(all)
}

/// The numbers of ranks and the sizes: those that are given, else fewer where times are measured.
fn ranks_and_sizes(args: &GuidelinesArgs, measures: bool, site: &Site) -> (Vec<usize>, Vec<u64>) {
    let fewer = match site.world.as_ref().map(|world| world.size()) {
        None => vec![2, 4],
        Some(all @ (1..=3)) => vec![all],
        Some(all) => vec![all / 2, all],
    };
    let ranks = match &args.ranks {
        None if measures => fewer,
        None => vec![2, 3, 4, 8, 16, 64],
        Some(given) => given.counts(),
    };
    let sizes = match &args.bytes {
        None if measures => vec![1 << 10, 64 << 10],
        None => vec![8, 1 << 10, 64 << 10, 1 << 20],
        Some(given) => given.values(2),
    };
    (ranks, sizes)
}

fn costs(
    args: &GuidelinesArgs,
    clock: Option<Clock>,
    ranks: &[usize],
) -> Result<(CostModel, Unit)> {
    let machine = &args.machine;
    let (cost, unit) = match clock {
        // What threads can keep pace with.
        Some(Clock::Paced) if !machine.is_given() => {
            let cost = CostModel::new(200_000.0, 1.0).overlap(machine.overlap);
            (cost, Unit::Nanoseconds)
        }
        // Some guidelines use twice as many ranks.
        _ => machine.cost(ranks.iter().max().map(|&p| p.saturating_mul(2)))?,
    };
    let cost = args.delays.of_messages(cost);
    cost.validate()?;
    Ok((cost, unit))
}

/// The arrivals of each number of ranks that a guideline may use.
fn arrivals(
    args: &GuidelinesArgs,
    measures: bool,
    ranks: &[usize],
) -> Result<BTreeMap<usize, Vec<f64>>> {
    ensure!(
        !measures || args.delays.arrivals.is_none(),
        "--arrivals is for model times: guidelines are measured with ranks that arrive together"
    );
    let mut arrivals = BTreeMap::new();
    for (p, ranks) in ranks
        .iter()
        .flat_map(|&p| [(p, p), (p, p.saturating_mul(2))])
    {
        let late = args.delays.arrivals_of(ranks)?;
        let n = late.len();
        // A file has those of one number of ranks.
        ensure!(
            n == 0 || n == ranks || p != ranks,
            "--arrivals: {n} arrivals of {p} ranks"
        );
        if n == ranks {
            arrivals.insert(ranks, late);
        }
    }
    Ok(arrivals)
}

fn effort(args: &GuidelinesArgs, measures: bool) -> Result<Effort> {
    let effort = match (args.repetitions, args.budget) {
        (Some(n), _) => Effort::Repetitions(n),
        (None, Some(time)) => Effort::Budget(time),
        (None, None) => Effort::Short,
    };
    ensure!(
        measures || effort == Effort::Short,
        "--repetitions and --budget are for measured times: take --native or --paced, too"
    );
    ensure!(
        effort != Effort::Repetitions(0),
        "--repetitions must be at least 1"
    );
    Ok(effort)
}

/// Fails if there is no guideline for what is asked.
fn ensure_applies(args: &GuidelinesArgs, setting: &Setting) -> Result<()> {
    let takes_blocks = |guideline: &Guideline| {
        let mut calls = guideline.left.iter().chain(guideline.right);
        calls.any(|call| call.by == By::Irregular)
    };
    if let (Some(dist), false) = (args.dist, setting.guidelines().any(takes_blocks)) {
        bail!(
            "--dist {}: of these collectives no guideline has blocks of different sizes: gather and alltoall have",
            dist.name()
        );
    }
    if setting.guidelines().next().is_none() {
        let names = args.kinds.iter().map(|kind| kind.name());
        let names = names.collect::<Vec<_>>().join(" or ");
        bail!("there is no guideline for {names}");
    }
    Ok(())
}

fn ensure_fits_memory(ranks: &[usize], sizes: &[u64], measured: bool, site: &Site) -> Result<()> {
    ensure!(
        !ranks.contains(&0),
        "a collective needs at least one rank (-p 0)"
    );
    ensure!(
        !ranks.contains(&1),
        "guidelines are for two ranks or more: one rank sends nothing (-p 1)"
    );
    let p = ranks.iter().copied().max().unwrap_or(1);
    if p > MAX_RANKS {
        bail!("{p} ranks are more than the {MAX_RANKS} that guidelines are checked for");
    }
    let m = sizes.iter().copied().max().unwrap_or(0);
    ensure!(
        m <= MAX_BYTES,
        "{} are more than the {} that guidelines are checked for",
        show_bytes(m),
        show_bytes(MAX_BYTES)
    );
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
    const COPIES: u128 = 2 * 12;
    let needed = COPIES * p as u128 * u128::from(m);
    ensure_memory("measuring", needed, "take fewer ranks or smaller sizes")
}

fn inputs(setting: &Setting) -> &'static str {
    if setting.keep_inputs {
        Inputs::Kept.name()
    } else {
        Inputs::Rewritten.name()
    }
}

fn print(out: &mut Lines, done: &GuidelinesJob) -> Result<()> {
    let (report, setting, unit) = (&done.evaluation, &done.setting, done.unit);
    writeln!(out, "{}", show_cost(&setting.cost, unit))?;
    if let Some(processes) = &done.processes {
        output::summary(out, &site::summary(processes))?;
    }
    let measured = setting
        .clock
        .map(|clock| (Some(clock), setting.measured_tolerance));
    let tables = [
        Some((None, setting.tolerance, Performer::Schedules)),
        measured.map(|(clock, tolerance)| (clock, tolerance, Performer::Schedules)),
        measured
            .filter(|_| setting.library)
            .map(|(clock, tolerance)| (clock, tolerance, Performer::Library)),
    ];
    for (clock, tolerance, by) in tables.into_iter().flatten() {
        print_table(out, done, (clock, by), tolerance)?;
    }
    print_unavailable(out, report)
}

/// Prints the rows that are timed so, and what they mean.
fn print_table(
    out: &mut Lines,
    done: &GuidelinesJob,
    (clock, by): (Option<Clock>, Performer),
    tolerance: f64,
) -> Result<()> {
    let (report, setting, unit) = (&done.evaluation, &done.setting, done.unit);
    let rows = report.rows.iter();
    let rows: Vec<&Comparison> = rows.filter(|r| r.clock == clock && r.by == by).collect();
    let what = match (clock.map(clock_name), by) {
        (None, _) => "model times".to_string(),
        (Some(clock), Performer::Schedules) => {
            format!("measured times, {clock}, inputs {}", inputs(setting))
        }
        (Some(clock), Performer::Library) => {
            format!("measured times of the library itself, {clock}")
        }
    };
    writeln!(out, "\n{what}, tolerance {}:", percent(tolerance))?;
    let columns = add_sides(Columns::default(), unit);
    // Who measures does so for the measured rows.
    let in_full = clock.is_some() || setting.clock.is_none();
    let shown = rows.iter().copied();
    let shown = shown.filter(|row| !row.holds || (in_full && done.shows(row)));
    let shown: Vec<_> = shown.collect();
    if !shown.is_empty() {
        output::table(out, &columns, shown)?;
    }
    let violated: Vec<_> = rows.iter().filter(|row| !row.holds).collect();
    writeln!(
        out,
        "{} of {} hold",
        rows.len() - violated.len(),
        rows.len()
    )?;
    let unsettled = rows.iter().filter(|row| row.settled == Some(false)).count();
    if unsettled > 0 {
        writeln!(
            out,
            "{} not settled: the intervals of both sides are too wide (--budget measures longer)",
            counted(unsettled, "row")
        )?;
    }
    for row in &violated {
        writeln!(out, "{}", in_words(row, unit))?;
    }
    if clock.is_none() && !violated.is_empty() {
        writeln!(out, "{}", at_fault(setting))?;
    }
    Ok(())
}

/// Adds the columns of both sides, and whether they hold.
fn add_sides(columns: Columns<'_, Comparison>, unit: Unit) -> Columns<'_, Comparison> {
    columns
        .add("guideline", |row| row.guideline.name)
        .add(">p", |row| row.ranks)
        .add(">bytes", bytes_of)
        .add(">left", move |row| unit.show(row.left))
        .add(">right", move |row| unit.show(row.right))
        .add("left by", |row| row.left_by.join(" + "))
        .add("right by", |row| row.right_by.join(" + "))
        .add("", verdict)
}

/// Prints what could not be compared, by reason.
fn print_unavailable(out: &mut Lines, report: &Evaluation) -> Result<()> {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for entry in &report.unavailable {
        let of_reason = reasons.entry(&entry.reason).or_default();
        of_reason.push(entry.guideline);
    }
    if !reasons.is_empty() {
        writeln!(out, "\nnot available:")?;
    }
    for (reason, names) in reasons {
        writeln!(out, "  {reason}:")?;
        for name in names {
            writeln!(out, "    {name}")?;
        }
    }
    Ok(())
}

/// A violated guideline in words, such as `MPI_Gather of 1 KiB on 4 ranks takes 15 us, 50% longer
/// than MPI_Allgather with 10 us: all ranks but the root can drop the blocks`.
fn in_words(row: &Comparison, unit: Unit) -> String {
    let [left, right] = [(row.left, 0), (row.right, 1)].map(|(time, side)| {
        let interval = row.intervals.map_or_else(String::new, |sides| {
            let [low, high] = sides[side].map(|end| unit.show(end));
            format!(" ({low} to {high})")
        });
        unit.show(time) + &interval
    });
    let of = if row.guideline.has_no_size() {
        String::new()
    } else {
        format!(" of {}", show_bytes(row.bytes))
    };
    format!(
        "{}: {}{of} on {} ranks takes {left}, {} longer than {} with {right}: {}{}",
        row.guideline.name,
        row.left_by.join(" + "),
        row.ranks,
        percent(row.excess()),
        row.right_by.join(" + "),
        row.guideline.statement,
        not_settled(row)
    )
}

fn bytes_of(row: &Comparison) -> String {
    if row.guideline.has_no_size() {
        return "-".into();
    }
    show_bytes(row.bytes)
}

fn not_settled(row: &Comparison) -> &'static str {
    match row.settled {
        Some(false) => ", not settled",
        _ => "",
    }
}

/// What is wrong if a guideline is violated in the model: the fastest of all registered algorithms
/// is slower than what could stand in for it.
fn at_fault(setting: &Setting) -> &'static str {
    match setting.cost.class().0 {
        _ if setting.arrivals.is_some() => {
            "the planners are at fault: no registered algorithm of the left side suits these arrivals as well as the right side does"
        }
        CostClass::Links(_) => {
            "the costs of pairs differ: other ranks may have faster links, or no registered algorithm of the left side suits these links"
        }
        CostClass::Pieces(_) => {
            "the model is at fault rather than an algorithm: costs that are pieces by size need not grow with the size as guidelines take for granted; with --alpha and --beta, which are one line, a violation is a planner's"
        }
        CostClass::Linear(_) => {
            "the planners are at fault: with costs of one line, no registered algorithm of the left side does what the right side does"
        }
    }
}

fn verdict(row: &Comparison) -> String {
    if row.holds {
        format!("holds{}", not_settled(row))
    } else {
        format!("violated by {}{}", percent(row.excess()), not_settled(row))
    }
}

fn percent(share: f64) -> String {
    format!("{}%", number((1e6 * share).round() / 1e4, 3))
}
