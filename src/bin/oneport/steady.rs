//! `oneport steady`: series of operations on a heterogeneous platform.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use oneport::plan::steady::{
    Fraction, Method, Operation, Periodic, Platform, Single, Solution, best_packets, best_single,
    generate, multicast_bounds, parse_fraction, show_fraction, show_short, solve, to_f64,
};
use oneport::report::{self, Caption, Trace, Unit, gantt};
use oneport::run::{self, Clock, Operator, RunOptions, Team, TeamOptions};
use oneport::simulate::Prepared;
use oneport::{Ports, Schedule, check};
use serde::Serialize;

use crate::args::{PortModel, did_you_mean, parse_count};
use crate::output;
use crate::task::read_text;

/// The best throughput of a series of operations on a platform, and its schedule
///
/// One operation after the other (broadcasts, say) is started; what counts is how many are completed per time unit in the long
/// run. Different messages may take different ways.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  oneport steady --generate fig3                               a small example: 1 message a time unit
  oneport steady --generate fig3 --ports uni --run             2/3; run it on threads, at the platform's pace
  oneport steady --generate random:30:150 --json
  oneport steady platform.json --collective scatter --messages 100 -o scatter.json
  oneport steady --generate clustered:3x4 --max-period 200 --draw platform.svg --gantt period.svg

A platform file: {\"nodes\": 3, \"source\": 0, \"targets\": [1, 2], \"edges\": [{\"src\": 0, \"dst\": 1, \"cost\": \"1/2\"}, ...]}; \
a cost is the time of one message. The throughput is exact, and proved. It is reached by a schedule that repeats itself: messages \
travel along weighted trees, and at any time the busy links are one of the weighted matchings.")]
pub(crate) struct Args {
    /// The platform, a JSON file (- for standard input)
    #[arg(value_name = "PLATFORM.json", required_unless_present = "generate")]
    platform: Option<PathBuf>,

    /// Make a platform: complete:N, ring:N, grid:AxB, tree:N, star:N, random:N:M, clustered:AxB, fig3
    #[arg(long, value_name = "NAME", conflicts_with = "platform")]
    generate: Option<String>,

    /// What is random in it
    #[arg(long, value_name = "SEED", default_value = "0")]
    seed: u64,

    /// broadcast, multicast, scatter, gather, reduce, allgather (total exchange) or alltoall [default: broadcast, or multicast if not all
    /// nodes are targets]
    #[arg(long, value_name = "COLLECTIVE", value_parser = parse_operation)]
    collective: Option<Operation>,

    /// Ports of a node: uni (one for both directions) or bi (one out, one in)
    #[arg(long, value_name = "uni|bi", default_value = "bi")]
    ports: PortModel,

    /// Number of operations of the schedule [default: enough to come close to the throughput]
    #[arg(long, value_name = "COUNT", value_parser = parse_count, allow_negative_numbers = true)]
    messages: Option<usize>,

    /// Longest period in time units; rates are rounded to fit
    #[arg(long, value_name = "TIME", value_parser = parse_number, allow_negative_numbers = true)]
    max_period: Option<Fraction>,

    /// Elements of a message [default: as many as are needed to cut it exactly, 4096 at most]
    #[arg(long, value_name = "COUNT", value_parser = parse_count, allow_negative_numbers = true)]
    elements: Option<usize>,

    /// By what part each cost may grow (1/10, 0.1): what throughput is still guaranteed
    #[arg(long, value_name = "PART", value_parser = parse_number, allow_negative_numbers = true)]
    drift: Option<Fraction>,

    /// Cut one message of this size (1: a message of the platform's costs) into packets, and find out how many are best
    #[arg(long, value_name = "SIZE", value_parser = parse_number, allow_negative_numbers = true)]
    size: Option<Fraction>,

    /// Run the schedule on threads with real data, at the platform's pace, and verify it
    #[arg(long)]
    run: bool,

    /// With --run, how long a time unit lasts in microseconds [default: long enough for the threads to keep pace]
    #[arg(long, value_name = "MICROSECONDS", value_parser = parse_number, requires = "run")]
    time_unit: Option<Fraction>,

    /// Write the schedule to this file, for check, simulate, run and draw
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Draw the platform, with the share of the time that each link is busy
    #[arg(long, value_name = "FILE.svg")]
    draw: Option<PathBuf>,

    /// Draw one period as a Gantt chart
    #[arg(long, value_name = "FILE.svg")]
    gantt: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Output {
    collective: &'static str,
    ports: &'static str,
    nodes: usize,
    edges: usize,
    /// Operations a time unit.
    throughput: Exact,
    /// Whether that is the best possible.
    optimal: bool,
    /// Whether a certificate of that was checked.
    proved: bool,
    trees: Vec<Tree>,
    matchings: Vec<Matching>,
    /// The shortest period with whole messages in every slot.
    period: serde_json::Value,
    schedule: Repeated,
    single_tree: SingleTree,
    #[serde(skip_serializing_if = "Option::is_none")]
    drift: Option<Drift>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bounds: Option<Bounds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    long_message: Option<LongMessage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<Run>,
}

/// Of a multicast.
#[derive(Serialize)]
struct Bounds {
    lower: Exact,
    upper: Exact,
}

#[derive(Serialize)]
struct LongMessage {
    packets: usize,
    model_time: f64,
}

#[derive(Serialize)]
struct Exact {
    fraction: String,
    float: f64,
}

#[derive(Serialize)]
struct Tree {
    weight: String,
    weight_float: f64,
    edges: Vec<(usize, usize)>,
    /// Messages on each edge, where it is not 1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<usize>,
}

#[derive(Serialize)]
struct Matching {
    weight: String,
    weight_float: f64,
    edges: Vec<(usize, usize)>,
}

#[derive(Serialize)]
struct Repeated {
    period: Exact,
    messages_per_period: usize,
    elements: usize,
    throughput: Exact,
    /// Part of the optimum that rounding costs.
    loss: f64,
    messages: usize,
    model_time: f64,
    checked: bool,
}

#[derive(Serialize)]
struct SingleTree {
    throughput: Exact,
    optimal: bool,
}

#[derive(Serialize)]
struct Drift {
    guaranteed: Exact,
    best_guaranteed: Exact,
}

#[derive(Serialize)]
struct Run {
    verified: bool,
    /// Nanoseconds.
    wall: u64,
    time_unit_ns: f64,
    /// Messages a time unit between the first half of the messages and all of them.
    throughput: f64,
    /// The same in model time.
    model_throughput: f64,
}

/// Solves, plans, and prints.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<ExitCode> {
    let platform = args.platform()?;
    let operation = args.collective.unwrap_or(if platform.targets_all() {
        Operation::Broadcast
    } else {
        Operation::Multicast
    });
    let ports = match args.ports {
        PortModel::Uni => Ports::UNI,
        PortModel::Bi => Ports::BI,
    };
    for path in [&args.output, &args.draw, &args.gantt]
        .into_iter()
        .flatten()
    {
        output::writable(path)?;
    }
    let solution = solve(&platform, operation, ports, Method::default())?;
    let periodic = solution.periodic(args.max_period.as_ref(), args.elements)?;
    let messages = args.messages.unwrap_or_else(|| enough(&periodic));
    let schedule = periodic.schedule(messages)?;
    let report = check::check(&schedule, &check::Options::default());
    if let Some(error) = report.errors.first() {
        bail!("the schedule is wrong: {}", error.message);
    }
    let cost = periodic.cost(1.0)?;
    let model_time = Prepared::new(&schedule, false)?
        .try_simulate(&cost, 1)?
        .time();
    let single = best_single(&solution)?;
    let drift = args
        .drift
        .as_ref()
        .map(|d| solution.robustness(d))
        .transpose()?;
    let bounds = match operation {
        Operation::Multicast => Some(multicast_bounds(&platform, ports)?),
        _ => None,
    };
    let packets = args.size.as_ref();
    let packets = packets
        .map(|size| best_packets(&platform, operation, ports, size))
        .transpose()?;
    let run = if args.run {
        Some(execute(args, &periodic, messages, &schedule, model_time)?)
    } else {
        None
    };
    if let Some(path) = &args.output {
        let text = serde_json::to_string(&schedule)?;
        output::write_file(path, text.as_bytes())?;
    }
    if let Some(path) = &args.draw {
        output::write_file(path, report::platform(&solution).as_bytes())?;
    }
    if let Some(path) = &args.gantt {
        output::write_file(path, one_period(&periodic)?.as_bytes())?;
    }
    let verified = run.as_ref().is_none_or(|r| r.verified);
    let output = Output {
        collective: operation.name(),
        ports: ports.name(),
        nodes: platform.nodes(),
        edges: platform.edges().len(),
        throughput: exact(&solution.throughput),
        optimal: solution.is_optimal,
        proved: solution.certificate.is_some(),
        trees: trees(&solution),
        matchings: matchings(&solution),
        period: period(&solution),
        schedule: Repeated {
            period: exact(periodic.period()),
            messages_per_period: periodic.operations(),
            elements: periodic.elements(),
            throughput: exact(&periodic.throughput()),
            loss: to_f64(&periodic.loss()),
            messages,
            model_time,
            checked: true,
        },
        single_tree: SingleTree {
            throughput: exact(&single.throughput),
            optimal: single.is_optimal,
        },
        drift: drift.map(|d| Drift {
            guaranteed: exact(&d.guaranteed),
            best_guaranteed: exact(&d.best_guaranteed),
        }),
        bounds: bounds.map(|(lower, upper)| Bounds {
            lower: exact(&lower),
            upper: exact(&upper),
        }),
        long_message: packets.map(|p| LongMessage {
            packets: p.count,
            model_time: p.time,
        }),
        run,
    };
    if args.json {
        output::json(out, &output)?;
    } else {
        print(out, &solution, &periodic, &single, &output)?;
    }
    if verified {
        return Ok(ExitCode::SUCCESS);
    }
    out.flush()?;
    output::error("the run's result is wrong");
    Ok(ExitCode::from(1))
}

impl Args {
    fn platform(&self) -> Result<Platform> {
        match (&self.generate, &self.platform) {
            (Some(name), _) => Ok(generate(name, self.seed)?),
            (None, Some(path)) => {
                Ok(Platform::parse(&read_text(path)?)
                    .with_context(|| path.display().to_string())?)
            }
            (None, None) => bail!("give a PLATFORM.json, or --generate NAME"),
        }
    }
}

/// So many operations that start-up and clean-up cost a few percent, where that is affordable.
fn enough(periodic: &Periodic) -> usize {
    let periods = (30 * periodic.depth()).max(20);
    let affordable = 200_000 / (2 * periodic.transfers()).max(1);
    let memory = (1 << 28) / periodic.buffers(periodic.operations()).max(1);
    periodic.operations() * periods.min(affordable).min(memory).max(2)
}

fn exact(value: &Fraction) -> Exact {
    Exact {
        fraction: show_fraction(value),
        float: to_f64(value),
    }
}

fn trees(solution: &Solution) -> Vec<Tree> {
    let tree = |(route, weight): &(oneport::plan::steady::Route, Fraction)| {
        let parts = route.parts.iter();
        let edges = parts
            .clone()
            .flat_map(|p| p.edges.iter().map(|&e| solution.link(e)));
        let messages: Vec<usize> = parts.flat_map(|p| p.messages.iter().copied()).collect();
        Tree {
            weight: show_fraction(weight),
            weight_float: to_f64(weight),
            edges: edges.collect(),
            messages: if messages.iter().all(|&m| m == 1) {
                Vec::new()
            } else {
                messages
            },
        }
    };
    solution.routes.iter().map(tree).collect()
}

fn matchings(solution: &Solution) -> Vec<Matching> {
    let slots = solution.slots.iter().map(|slot| Matching {
        weight: show_fraction(&slot.share),
        weight_float: to_f64(&slot.share),
        edges: slot.edges.iter().map(|&e| solution.link(e)).collect(),
    });
    slots.collect()
}

/// A number where JSON readers keep it exact, a string otherwise.
fn period(solution: &Solution) -> serde_json::Value {
    let period = solution.period();
    match u64::try_from(&period) {
        Ok(small) if small < 1 << 53 => small.into(),
        _ => period.to_string().into(),
    }
}

/// One period in the middle of a series.
fn one_period(periodic: &Periodic) -> Result<String> {
    let schedule = periodic.schedule_of_period()?;
    let cost = periodic.cost(1.0)?;
    let trace = Trace::model(&schedule, &cost, 1, Unit::Plain)?;
    let solution = periodic.solution();
    let caption = Caption::new(format!(
        "one period of {}: {} operations in {}",
        solution.operation.name(),
        periodic.operations(),
        show_short(periodic.period())
    ))
    .line(format!(
        "{} operations a time unit; optimal: {}",
        show_short(&periodic.throughput()),
        show_short(&solution.throughput)
    ));
    Ok(gantt(&trace, &caption)?)
}

/// Runs the schedule, and one of half as many operations, at the platform's pace.
fn execute(
    args: &Args,
    periodic: &Periodic,
    messages: usize,
    schedule: &Schedule,
    model_time: f64,
) -> Result<Run> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let ranks = schedule.ranks();
    let unit = match &args.time_unit {
        Some(us) if *us > Fraction::ZERO => to_f64(us) * 1e3,
        Some(_) => bail!("--time-unit must be more than 0"),
        None => {
            // A thread needs some microseconds for each of its transfers, and shares its core.
            let steps = schedule.programs().iter().map(Vec::len).max().unwrap_or(1);
            let needed = steps as f64 * 6_000.0 * ranks.div_ceil(cores) as f64 * 25.0;
            needed.clamp(3e8, 2e10) / model_time
        }
    };
    let half = messages / 2;
    let mut team = Team::with(
        ranks,
        &TeamOptions {
            deadline: Duration::from_secs(60),
            ..TeamOptions::default()
        },
    )?;
    let operator = Operator::<u8>::named("sum")?;
    let cost = periodic.cost(unit)?;
    let mut go = |schedule: &Schedule| -> Result<(bool, u64, f64)> {
        let data = run::inputs(schedule.collective(), schedule.layout(), &operator);
        let expected = run::oracle(schedule.collective(), schedule.layout(), &operator, &data)?;
        let options = RunOptions {
            clock: Clock::Paced,
            cost: cost.clone(),
            repetitions: 1,
            ..RunOptions::default()
        };
        let outcome = team.run(schedule, &data, &operator, &options)?;
        let right = outcome.outputs == expected;
        Ok((right, outcome.wall.max(), outcome.model_time))
    };
    let (mut verified, wall, model) = go(schedule)?;
    let (mut half_wall, mut half_model) = (0, 0.0);
    if half > 0 {
        let (right, wall, model) = go(&periodic.schedule(half)?)?;
        verified &= right;
        (half_wall, half_model) = (wall, model);
    }
    let rate = |time: f64| {
        if time > 0.0 {
            (messages - half) as f64 / (time / unit)
        } else {
            0.0
        }
    };
    Ok(Run {
        verified,
        wall,
        time_unit_ns: unit,
        throughput: rate(wall as f64 - half_wall as f64),
        model_throughput: rate(model - half_model),
    })
}

/// Lines of trees and matchings that are printed.
const MOST_LINES: usize = 12;

fn print(
    out: &mut dyn Write,
    solution: &Solution,
    periodic: &Periodic,
    single: &Single,
    output: &Output,
) -> Result<()> {
    let why = match (output.optimal, output.proved) {
        (true, true) => "optimal, proved by a dual certificate",
        (true, false) => "optimal",
        (false, _) => "the best found",
    };
    let mut facts = vec![
        (
            "platform",
            format!(
                "{} nodes, {} links, source {}",
                output.nodes,
                output.edges,
                solution.platform().source()
            ),
        ),
        (
            "series of",
            format!("{}, {} ports", output.collective, output.ports),
        ),
        (
            "throughput",
            format!(
                "{} a time unit ({:.6}; {why})",
                show_short(&solution.throughput),
                output.throughput.float
            ),
        ),
        (
            "best single tree",
            format!(
                "{}{}",
                show_short(&single.throughput),
                if single.is_optimal {
                    ""
                } else {
                    " (best found)"
                }
            ),
        ),
        (
            "schedule",
            format!(
                "{} operations in a period of {}, {} elements a message: {:.6} a time unit, loss {:.3}%",
                periodic.operations(),
                show_short(periodic.period()),
                periodic.elements(),
                output.schedule.throughput.float,
                100.0 * output.schedule.loss
            ),
        ),
        (
            "model time",
            format!(
                "{} for {} operations: {:.6} a time unit, start and end included",
                output.schedule.model_time,
                output.schedule.messages,
                output.schedule.messages as f64 / output.schedule.model_time
            ),
        ),
    ];
    if let Some(drift) = &output.drift {
        facts.push((
            "under drift",
            format!(
                "{:.6} guaranteed by this schedule, {:.6} by the best one for that",
                drift.guaranteed.float, drift.best_guaranteed.float
            ),
        ));
    }
    if let Some(bounds) = &output.bounds {
        facts.push((
            "bounds",
            format!(
                "{:.6} (scatters) to {:.6} (flows)",
                bounds.lower.float, bounds.upper.float
            ),
        ));
    }
    if let Some(long) = &output.long_message {
        facts.push((
            "long message",
            format!("best in {} packets: time {}", long.packets, long.model_time),
        ));
    }
    if let Some(run) = &output.run {
        facts.push((
            "run",
            format!(
                "{}, {:.3} s; {:.6} a time unit measured over the second half of the operations, {:.6} in the model",
                if run.verified { "verified" } else { "WRONG" },
                run.wall as f64 * 1e-9,
                run.throughput,
                run.model_throughput
            ),
        ));
    }
    output::facts(out, &facts)?;
    let edges = |edges: &[(usize, usize)]| {
        let all: Vec<String> = edges.iter().map(|(a, b)| format!("{a}->{b}")).collect();
        all.join(" ")
    };
    writeln!(out, "\ntrees:")?;
    for tree in output.trees.iter().take(MOST_LINES) {
        writeln!(out, "  {}  {}", tree.weight, edges(&tree.edges))?;
    }
    if output.trees.len() > MOST_LINES {
        writeln!(
            out,
            "  and {} more (--json)",
            output.trees.len() - MOST_LINES
        )?;
    }
    writeln!(out, "matchings:")?;
    for matching in output.matchings.iter().take(MOST_LINES) {
        writeln!(out, "  {}  {}", matching.weight, edges(&matching.edges))?;
    }
    if output.matchings.len() > MOST_LINES {
        writeln!(
            out,
            "  and {} more (--json)",
            output.matchings.len() - MOST_LINES
        )?;
    }
    Ok(())
}

fn parse_operation(text: &str) -> Result<Operation, String> {
    let wanted = text.replace('_', "-");
    let wanted = match wanted.as_str() {
        "total-exchange" => "allgather",
        other => other,
    };
    Operation::ALL
        .into_iter()
        .find(|o| o.name() == wanted)
        .ok_or_else(|| {
            let names: Vec<&str> = Operation::ALL.iter().map(|o| o.name()).collect();
            format!(
                "unknown collective '{text}': choose one of {}{}",
                names.join(", "),
                did_you_mean(text, names.iter().copied())
            )
        })
}

/// A number, exactly.
fn parse_number(text: &str) -> Result<Fraction, String> {
    let number = parse_fraction(text)
        .ok_or_else(|| format!("'{text}' is not a number: write 2, 0.5 or 1/2"))?;
    if number < Fraction::ZERO {
        return Err(format!("{text} is negative"));
    }
    Ok(number)
}
