//! `oneport steady`: steady-state series of operations on a heterogeneous platform.

mod execute;
mod picture;
mod report;

use oneport::check;
use oneport::internal::budget::memory::STEP_BYTES;
use oneport::internal::numbers::truncated;
use oneport_pictures::Trace;
use oneport_steady::{
    Fraction, Operation, Packets, Periodic, Platform, Robustness, Route, Series, Single, Solution,
    SolveMethod, best_packets, best_single, generate, parse_fraction, show_short, solve,
};

use crate::draw::{FrameArgs, OutputFile};
use crate::machine::read_costs;
use crate::memory::available_memory;
use crate::prelude::*;
use crate::units::did_you_mean;
use execute::execute;
use report::MeasuredSeries;

options! {
    /// The best throughput of a series of operations on a platform, and its schedule
    ///
    /// One operation after the other (broadcasts, say) is started; what counts is how many are
    /// completed per time unit in the long run. Different messages may take different ways.
    #[derive(Debug)]
    #[examples = "\
Examples:
  oneport steady --generate fig3                               a small example: 1 message a time unit
  oneport steady --generate fig3 --ports uni --run             2/3; run it on threads, at the platform's pace
  oneport steady --generate random:30:150 --json
  oneport steady platform.json --collective scatter --messages 100 -o scatter.json
  oneport steady --costs cluster.json --bytes 1MiB             on links measured by calibrate --pairs
  oneport steady --generate clustered:3x4 --max-period 200 --draw platform.svg --gantt period.svg

A platform file: {\"nodes\": 3, \"source\": 0, \"targets\": [1, 2], \"edges\": [{\"src\": 0, \"dst\": 1, \"cost\": \"1/2\"}, ...]}; \
a cost is the time of one message. \
\"sources\": [..] are the nodes whose messages an allgather or alltoall moves (all by default). \
An edge may have a \"latency\" (before the first byte of a packet, for --size) and a \"drift\" (by what part its cost may grow, for \
--drift); the platform may have \"compute\": [..] (the time of one combination by node, for reductions and scans) and \"overlap\": true (nodes \
combine while they communicate). The throughput is exact, and proved. It is reached by a schedule that repeats itself: messages \
travel along weighted trees, and at any time the busy links are one of the weighted matchings."]
    pub(crate) struct SteadyArgs {
        /// The platform, a JSON file (- for standard input)
        platform: Option<Source> = File {
            is_placed: true, value: "PLATFORM.json", or_one_of: &["generate", "costs"],
        },

        /// Make a platform: complete:N, ring:N, grid:AxB, tree:N, star:N, random:N:M,
        /// clustered:AxB, fig3
        generate: Option<String> = Word { value: "NAME", conflicts: &["platform"] },

        /// Make the platform of a cost file, or of a profile with pairs (calibrate --pairs) or with
        /// levels: a node for each rank
        costs: Option<Source> = File {
            requires: &["bytes"], conflicts: &["platform", "generate"],
        },

        /// With --costs, the length of a message, such as 64KiB
        bytes: Option<u64> = Size { requires: &["costs"], conflicts: &["platform", "generate"] },

        /// What is random in it
        seed: u64 = Seed { value: "SEED", default: Some("0") },

        /// broadcast, multicast, scatter, gather, reduce, reduce-ordered (operands keep their
        /// order), scan (prefix), allgather (total exchange) or alltoall [default: broadcast, or
        /// multicast if not all nodes are targets]
        collective: Option<Operation> = OperationName,

        /// Ports of a node: uni (one for both directions) or bi (one out, one in)
        ports: Ports = PortNames { default: Some("bi") },

        /// Number of operations of the schedule [default: enough to come close to the throughput]
        messages: Option<usize> = Count,

        /// Longest period in time units; rates are rounded to fit
        max_period: Option<Fraction> = Exact { value: "TIME" },

        /// Most trees (or other routes) that a period may use: the best ones found, starting from
        /// the best single tree
        max_trees: Option<usize> = Count,

        /// Elements of a message [default: as many as are needed to cut it exactly, 4096 at most]
        elements: Option<usize> = Count,

        /// By what part each cost may grow (1/10, 0.1): what throughput is still guaranteed
        drift: Option<Fraction> = Exact { value: "PART" },

        /// With --drift, the schedule that guarantees most, planned and timed with the worst costs
        robust: bool = Switch { requires: &["drift"] },

        /// Cut one message of this size (1: a message of the platform's costs) into packets, and
        /// find out how many are best
        size: Option<Fraction> = Exact { value: "SIZE" },

        /// Run the schedule on threads with real data, at the platform's pace, and verify it
        run: bool = Switch,

        /// With --run, how long a time unit lasts in microseconds [default: long enough for the
        /// threads to keep pace]
        time_unit: Option<Fraction> = Exact { value: "MICROSECONDS", requires: &["run"] },

        /// Write the schedule to this file, for check, simulate, run and draw; it keeps the
        /// platform's costs
        output: Option<PathBuf> = Output { shorts: &['o'] },

        /// Write the certificate that no schedule is faster to this file, for anybody to check:
        /// prices of links and ports, and what proves that no operation costs less than 1
        certificate: Option<PathBuf> = Output { value: "FILE.json" },

        /// Draw the platform, with the share of the time that each link is busy
        draw: Option<PathBuf> = Output { value: "FILE.svg" },

        /// Draw one period as a Gantt chart, or write it as a trace for Perfetto (.json)
        gantt: Option<PathBuf> = Output { value: "FILE.svg" },

        frame: FrameArgs = Group,

        /// For reductions and scans, nodes combine while they communicate
        overlap: bool = Switch,

        /// Compute the throughput by all other methods, too, and compare (takes longer; for
        /// broadcasts and reductions with bi ports on few nodes, the polynomial program is always
        /// compared)
        verify: bool = Switch,

        /// Print one JSON object
        json: bool = Switch,
    }
}

impl Command for SteadyArgs {
    fn json_forms() -> JsonForms {
        JsonForms::new().of(report::json)
    }

    fn answer(&self, site: &mut Site) -> Result<Answer> {
        let caller = &site.caller;
        let platform = self.platform()?;
        let gantt = self.check_files(caller)?;
        let found = self.find(&platform, caller)?;
        found.write_files(self, gantt, caller)?;
        let answer = answer(caller, self.json, &report::json(&found), |out| {
            report::print(out, &found)
        })?;
        if found.run.as_ref().is_some_and(|run| !run.verified) {
            return Ok(answer.but_wrong("the run's result is wrong".into()));
        }
        let exit_code = u8::from(!found.agree);
        Ok(Answer {
            exit_code,
            ..answer
        })
    }
}

struct Found {
    solution: Solution,
    periodic: Periodic,
    messages: usize,
    schedule: Schedule,
    model_time: f64,
    single: Single,
    drift: Option<Robustness>,
    recomputed: Vec<(&'static str, Fraction)>,
    agree: bool,
    /// The throughput with any number of trees, where that is limited.
    unlimited: Option<Fraction>,
    /// Lower and upper bound, for problems whose optimum is NP-hard to find.
    bounds: Option<(Fraction, Fraction)>,
    packets: Option<Packets>,
    run: Option<MeasuredSeries>,
}

impl Found {
    fn write_files(
        &self,
        args: &SteadyArgs,
        gantt: Option<OutputFile>,
        caller: &Caller,
    ) -> Result<()> {
        if let Some(path) = &args.output {
            let text = Series::of(&self.periodic).to_json(&self.schedule);
            caller.write_named(path, text.as_bytes())?;
        }
        if let Some(path) = &args.certificate {
            let text = self.solution.certificate_json().with_context(|| {
                format!(
                    "{} has no certificate here: its routes are the best found by a heuristic",
                    self.solution.operation.name()
                )
            })?;
            caller.write_named(path, text.as_bytes())?;
        }
        if let Some(path) = &args.draw {
            let picture = picture::platform_svg(&self.solution, &args.frame, caller);
            caller.write_named(path, args.frame.sized(picture).as_bytes())?;
        }
        if let (Some(path), Some(file)) = (&args.gantt, gantt) {
            let content = one_period(&self.periodic, file, &args.frame, caller)?;
            caller.write_named(path, content.as_bytes())?;
        }
        Ok(())
    }
}

/// Computes bounds of the throughput, where its optimum is NP-hard to find. It is optimal if it
/// reaches the upper one.
fn bounds(solution: &mut Solution, caller: &Caller) -> Option<(Fraction, Fraction)> {
    let bounds = solution.bounds().unwrap_or_else(|error| {
        caller.note(format!("the throughput's bounds are not known: {error}"));
        None
    });
    let (lower, upper) = bounds?;
    solution.is_optimal |= solution.throughput == upper;
    Some((lower, upper))
}

/// Computes the throughput by other methods, by all with `all`. Returns the results, and whether
/// they agree with the throughput.
fn recompute(
    solution: &Solution,
    all: bool,
    caller: &Caller,
) -> (Vec<(&'static str, Fraction)>, bool) {
    let mut agree = true;
    let mut recomputed = Vec::new();
    for (method, throughput) in solution.recomputed(all) {
        // The throughput has its own proof. An error here is only reported.
        match throughput {
            Ok(throughput) => {
                if throughput != solution.throughput {
                    agree = false;
                    let error = format!(
                        "the throughput is {}, which is proved, but {throughput} by {method}: please report this platform",
                        solution.throughput
                    );
                    caller.say("error", &error);
                }
                recomputed.push((method, throughput));
            }
            Err(error) => {
                agree &= !all;
                caller.note(format!(
                    "the throughput is not compared with {method}: {error}"
                ));
            }
        }
    }
    (recomputed, agree)
}

fn checked_schedule(periodic: &Periodic, messages: usize, overlap: bool) -> Result<Schedule> {
    let schedule = periodic.schedule(messages)?;
    let options = check::Options {
        keep_order: matches!(
            periodic.solution().operation,
            Operation::ReduceOrdered | Operation::Scan
        ),
        overlap,
        ..check::Options::default()
    };
    let report = schedule.check_with(&options);
    if let Some(error) = report.errors.first() {
        bail!("the schedule is wrong: {}", error.message);
    }
    Ok(schedule)
}

impl SteadyArgs {
    fn find(&self, platform: &Platform, caller: &Caller) -> Result<Found> {
        let operation = self.collective.unwrap_or(if platform.targets_all() {
            Operation::Broadcast
        } else {
            Operation::Multicast
        });
        let solution = solve(platform, operation, self.ports, SolveMethod::default())?;
        let drift = self.drift.as_ref().map(|d| solution.robustness(d));
        let drift = drift.transpose()?;
        // The robust solution is planned and timed with the worst costs.
        let mut solution = match &drift {
            Some(drift) if self.robust => drift.best.clone(),
            _ => solution,
        };
        let (recomputed, agree) = recompute(&solution, self.verify, caller);
        let bounds = bounds(&mut solution, caller);
        let unlimited = self.max_trees.map(|_| solution.throughput.clone());
        if let Some(count) = self.max_trees {
            ensure!(
                count > 0,
                "--max-trees is 0: a period uses at least one tree"
            );
            solution = solution.with_few_routes(count)?;
        }
        let periodic = self.periodic(&solution)?;
        let messages = self.messages(&periodic);
        let needed = steps(&periodic, messages) as u128 * u128::from(STEP_BYTES);
        let what = format!("the schedule of {messages} operations");
        ensure_memory(&what, needed, "take fewer with --messages")?;
        let schedule = checked_schedule(&periodic, messages, platform.overlaps())?;
        let model_time = schedule.simulate(&periodic.cost(1.0)?)?.makespan();
        let packets = self.size.as_ref();
        let packets = packets.map(|size| best_packets(platform, operation, self.ports, size));
        let unit = self.time_unit.as_ref();
        let run = || execute(caller, unit, &periodic, messages, &schedule, model_time);
        Ok(Found {
            single: best_single(&solution)?,
            packets: packets.transpose()?,
            run: self.run.then(run).transpose()?,
            solution,
            periodic,
            messages,
            schedule,
            model_time,
            drift,
            recomputed,
            agree,
            unlimited,
            bounds,
        })
    }

    fn messages(&self, periodic: &Periodic) -> usize {
        let given = self.messages;
        given.unwrap_or_else(|| default_messages(periodic, self.run))
    }

    /// Checks that the files can be written. Returns the kind of the Gantt chart's file.
    fn check_files(&self, caller: &Caller) -> Result<Option<OutputFile>> {
        caller.writable(&[
            ("-o", self.output.as_deref()),
            ("--certificate", self.certificate.as_deref()),
            ("--draw", self.draw.as_deref()),
            ("--gantt", self.gantt.as_deref()),
        ])?;
        if let Some(path) = &self.draw
            && OutputFile::of(path)? == OutputFile::Json
        {
            bail!("--draw makes a picture: name the file FILE.svg");
        }
        let gantt = self.gantt.as_deref().map(OutputFile::of).transpose()?;
        let pictures = self.draw.is_some() || gantt == Some(OutputFile::Svg);
        self.frame.ensure(pictures, false)?;
        Ok(gantt)
    }

    /// Returns the periodic schedule. Without a given longest period it tries some lengths and
    /// takes the one that reaches the most, because start-up counts.
    fn periodic(&self, solution: &Solution) -> Result<Periodic> {
        let mut best = solution.periodic(self.max_period.as_ref(), self.elements)?;
        if self.max_period.is_some() {
            return Ok(best);
        }
        let of = |periodic: &Periodic| reached(periodic, self.messages(periodic));
        let longest = best.period().clone();
        for part in [4u8, 16] {
            if of(&best) >= 1.0 - 2.0 * OVERHEAD {
                break;
            }
            let shorter = &longest / Fraction::from(part);
            if let Ok(periodic) = solution.periodic(Some(&shorter), self.elements)
                && of(&periodic) > of(&best)
            {
                best = periodic;
            }
        }
        Ok(best)
    }

    fn platform(&self) -> Result<Platform> {
        let platform = match (&self.generate, &self.platform) {
            (None, None) => self.platform_of_costs()?,
            (Some(name), _) => generate(name, self.seed)?,
            (None, Some(file)) => {
                let name = file.path().to_string_lossy();
                if !file.is_there() && generate(&name, self.seed).is_ok() {
                    bail!(
                        "there is no file {name}: to make such a platform, give --generate {name}"
                    );
                }
                Platform::parse(&file.read()?).with_context(|| name.to_string())?
            }
        };
        let overlap = self.overlap || platform.overlaps();
        Ok(platform.with_overlap(overlap))
    }

    fn platform_of_costs(&self) -> Result<Platform> {
        let (Some(file), Some(bytes)) = (&self.costs, self.bytes) else {
            bail!("give a PLATFORM.json, --generate NAME, or --costs FILE with --bytes SIZE");
        };
        let (cost, _) = read_costs(file, None)?;
        let ranks = cost.links().map_or(0, |links| links.alpha.len());
        Platform::of_costs(&cost, ranks, bytes).with_context(|| file.name())
    }
}

/// Lower bound of the fraction of the throughput that `messages` operations reach.
fn reached(periodic: &Periodic, messages: usize) -> f64 {
    let best = periodic.solution().throughput.to_f64();
    messages as f64 / periodic.time_bound(messages).to_f64() / best
}

/// Fraction of the time that start-up and clean-up may take, if memory and time allow.
const OVERHEAD: f64 = 0.01;
/// Limits for the number of transfers of a schedule and of elements in its buffers. Only runs
/// allocate the buffers.
const MAX_TRANSFERS: usize = 1_000_000;
const MAX_ELEMENTS: usize = 1 << 31;
const MAX_RUN: usize = 1 << 28;

/// Number of operations that makes start-up and clean-up negligible, within the limits.
fn default_messages(periodic: &Periodic, runs: bool) -> usize {
    let periods = truncated(periodic.lag() as f64 / OVERHEAD).max(20);
    let max_periods = MAX_TRANSFERS / periodic.transfers().max(1);
    let memory = if runs { MAX_RUN } else { MAX_ELEMENTS };
    let memory = memory / periodic.buffers(periodic.operations()).max(1);
    let period = steps(periodic, periodic.operations()).saturating_mul(STEP_BYTES);
    // Half of the memory, so that the estimate need not be exact.
    let free = available_memory().map_or(u64::MAX, |bytes| bytes / 2 / period.max(1));
    let free = usize::try_from(free).unwrap_or(usize::MAX);
    let periods = periods.min(max_periods).min(memory).min(free).max(2);
    periodic.operations() * periods
}

fn steps(periodic: &Periodic, operations: usize) -> u64 {
    let periods = operations.div_ceil(periodic.operations().max(1)) as u64;
    periods.saturating_mul(2 * periodic.transfers() as u64)
}

fn one_period(
    periodic: &Periodic,
    file: OutputFile,
    frame: &FrameArgs,
    caller: &Caller,
) -> Result<String> {
    let solution = periodic.solution();
    let caption = Caption::new(format!(
        "one period of {}: {} in {}",
        solution.operation.name(),
        counted(periodic.operations(), "operation"),
        show_short(periodic.period())
    ))
    .line(format!(
        "{} operations a time unit; {}: {}",
        show_short(&periodic.throughput()),
        if solution.is_optimal {
            "optimal"
        } else {
            "the best found"
        },
        show_short(&solution.throughput)
    ))
    .source(caller.provenance());
    let (schedule, times, routes) = periodic.one_period()?;
    let name = |(i, (route, weight)): (usize, &(Route, Fraction))| {
        let what = match route.trees.len() {
            1 => "tree",
            _ => "route",
        };
        format!("{what} {i}: {} a time unit", show_short(weight))
    };
    let names = solution.routes.iter().enumerate().map(name).collect();
    let mut trace = Trace::of_times(&schedule, &times)?;
    trace.groups = Some((names, routes));
    match file {
        OutputFile::Svg => {
            let content = file.content(&trace, &frame.caption(caption))?;
            Ok(frame.sized(content))
        }
        OutputFile::Json => file.content(&trace, &caption),
    }
}

forms! {
    /// An operation of a series.
    OperationName: Operation = "COLLECTIVE", by parse_operation;
    /// A number that is not negative, exactly.
    Exact: Fraction = "NUMBER", by parse_number, Number;
}

fn parse_operation(text: &str) -> Result<Operation, String> {
    let name = text.replace('_', "-");
    let name = match name.as_str() {
        "total-exchange" => "allgather",
        "ordered-reduce" => "reduce-ordered",
        "prefix" | "parallel-prefix" => "scan",
        other => other,
    };
    Operation::ALL
        .into_iter()
        .find(|o| o.name() == name)
        .ok_or_else(|| {
            let names: Vec<&str> = Operation::ALL.iter().map(|o| o.name()).collect();
            format!(
                "unknown collective '{text}': choose one of {}{}",
                names.join(", "),
                did_you_mean(text, names.iter().copied())
            )
        })
}

fn parse_number(text: &str) -> Result<Fraction, String> {
    let number = parse_fraction(text)
        .ok_or_else(|| format!("'{text}' is not a number: write 2, 0.5 or 1/2"))?;
    if number < Fraction::ZERO {
        return Err(format!("{text} is negative"));
    }
    Ok(number)
}
