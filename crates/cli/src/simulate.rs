//! `oneport simulate`: computes the model time of a schedule.

mod stream;

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use oneport::machine::Pieces;
use oneport::plan::registry::Algorithm;
use oneport::plan::segments::Published;
use oneport::rules::NodeKind;
use oneport::simulate::bounds::LowerBounds;
use oneport::simulate::{Simulation, Stats, Timed};
use oneport::{CostModel, Request};
use oneport_pictures::SweepRow;
use serde::Serialize;

use self::stream::Streamed;
use crate::args::Common;
use crate::input::{Input, ScheduleInfo, show_cost};
use crate::levels::{self, Level};
use crate::memory::ensure_memory;
use crate::output;
use crate::sweep::{Point, SweepArgs};
use crate::task::finite;
use crate::units::{Number, TimeUnit, show_bytes, significant};

/// Time a schedule exactly in the cost model.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SimulateArgs {
    #[command(flatten)]
    common: Common,

    #[command(flatten)]
    sweep: SweepArgs,

    /// Show when each rank finishes, what it sends and receives, and how long its ports are busy
    #[arg(short = 'v', long, help_heading = "Output")]
    ranks_table: bool,

    /// Show one longest chain of transfers and computations, which the model time is the sum of
    #[arg(long, help_heading = "Output")]
    critical_path: bool,
}

const EXAMPLES: &str = "\
Examples:
  oneport simulate reduce -p 16 --bytes 1MiB
  oneport simulate broadcast -p 15 --bytes 5 --segments 5 -a chain --ports uni --alpha 1 --beta 1
  oneport simulate reduce -p 4 --bytes 1KiB --dtype f64 --gamma 0.05ns --critical-path
  oneport simulate broadcast -p 2..64 --bytes 8..1MiB*4 -a circulant -o circulant.csv

Model time follows from four rules. Ports: steps on one port run one after another. Data: a step waits for what it \
reads and what it overwrites. Compute: computing is alone on its rank (unless --overlap). Rendezvous: a transfer starts \
when both ends are ready. A transfer of n bytes takes alpha + beta*n, combining n bytes gamma*n. Where all costs are \
given as plain numbers, model times are in the same units, otherwise in nanoseconds.";

#[derive(Serialize)]
struct Output<'a> {
    time: Number,
    model_time: Number,
    rounds: usize,
    messages: usize,
    bytes: u64,
    lower_bound: Number,
    /// Time divided by lower bound, which `x_bound` is, too.
    ratio: Option<Number>,
    x_bound: Option<Number>,
    /// The lower bounds, of which `lower_bound` is the largest.
    lower_bounds: Bounds,
    closed_form: Option<Number>,
    /// The row of a published table.
    published: Option<Print>,
    alpha: Number,
    beta: Number,
    gamma: Number,
    gamma_copy: Number,
    /// Present if the costs are not linear in the size; alpha to gamma_copy are then only an
    /// approximation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pieces: Option<&'a Pieces>,
    #[serde(flatten)]
    info: &'a ScheduleInfo,
    /// By level of the machine, from the innermost one: the traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    levels: Option<Vec<Level>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rank_times: Option<Vec<Number>>,
    /// By rank and port: how long each port carries a transfer.
    #[serde(skip_serializing_if = "Option::is_none")]
    port_busy: Option<Vec<Vec<Number>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    critical_path: Option<Vec<PathLink>>,
}

#[derive(Serialize)]
struct Bounds {
    latency: Number,
    bandwidth: Number,
    computation: Number,
    path: Number,
    port: Number,
    /// Of a series of operations, by its best throughput.
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<Number>,
}

/// A row of a published table.
#[derive(Serialize)]
struct Print {
    table: &'static str,
    time: Number,
    /// In bytes, not rounded.
    best_segment: Option<Number>,
    best_time: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    erratum: Option<&'static str>,
}

/// A transfer or computation on the critical path.
#[derive(Serialize)]
struct PathLink {
    work: &'static str,
    from: u32,
    to: u32,
    bytes: u64,
    start: Number,
    end: Number,
}

/// Memory of a step of a stored schedule while it is timed, in bytes.
const BYTES_PER_STEP: u64 = 160;

/// What is timed.
enum Subject {
    Stored(Box<Input>),
    Streamed(Box<Streamed>),
}

/// Simulates and prints.
pub(crate) fn run(args: &SimulateArgs, out: &mut dyn Write) -> Result<ExitCode> {
    args.sweep.writable()?;
    let mut table = args.sweep.table(&args.common);
    if args.common.points().len() > 1 {
        if args.ranks_table || args.critical_path {
            bail!("--ranks-table and --critical-path are for one schedule, not for a table");
        }
        return table.fill(out, false, |point| {
            let args = SimulateArgs {
                common: point.clone(),
                ..args.clone()
            };
            let subject = Subject::of(&args)?;
            Ok(subject.point(&subject.time(&args)?))
        });
    }
    let subject = Subject::of(args)?;
    let output = subject.time(args)?;
    output::answer(out, args.common.json, &output, |out| {
        print(out, &subject, &output)
    })?;
    table.add(subject.point(&output));
    table.write()?;
    Ok(ExitCode::SUCCESS)
}

impl Subject {
    /// The schedule that the options describe, not stored if it is long.
    fn of(args: &SimulateArgs) -> Result<Subject> {
        let mut subject = match stream::subject(args)? {
            Some(subject) => subject,
            None => Subject::Stored(Box::new(args.common.input()?)),
        };
        if let Subject::Stored(input) = &mut subject {
            input.print_warnings(&args.common);
        }
        Ok(subject)
    }

    fn time(&self, args: &SimulateArgs) -> Result<Output<'_>> {
        match self {
            Subject::Stored(input) => time(args, input),
            Subject::Streamed(streamed) => streamed.time(),
        }
    }

    /// What a sweep keeps of it.
    fn point(&self, output: &Output<'_>) -> Point {
        let info = output.info;
        let name = info.algorithm.as_deref().or(info.schedule.as_deref());
        let row = SweepRow {
            algorithm: name.unwrap_or_default().into(),
            ranks: info.ranks,
            bytes: info.vector_bytes.unwrap_or(0),
            time: output.time.0,
            bound: output.lower_bound.0,
            median: None,
            rounds: output.rounds,
            messages: output.messages,
            volume: output.bytes,
            segment: info.segment.filter(|_| info.segments > Some(1)),
        };
        let (ports, cost, unit) = match self {
            Subject::Stored(input) => (input.schedule.ports(), &input.cost, input.unit),
            Subject::Streamed(s) => (s.request.get_ports(), s.request.get_cost(), s.unit),
        };
        Point {
            collective: info.collective,
            ports,
            costs: show_cost(cost, unit),
            unit,
            rows: vec![row],
            skipped: Vec::new(),
        }
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        match self {
            Subject::Stored(input) => input.summary(),
            Subject::Streamed(s) => s.info.summary(s.request.get_cost(), s.unit),
        }
    }
}

/// Times a stored schedule.
fn time<'i>(args: &SimulateArgs, input: &'i Input) -> Result<Output<'i>> {
    let needed = input.schedule.steps() as u128 * u128::from(BYTES_PER_STEP);
    ensure_memory(
        || "the times".into(),
        needed,
        "take fewer ranks or segments",
    )?;
    let timed = input.schedule.timed(&input.cost, |_| ())?;
    finite(timed.time)?;
    let simulation = (args.ranks_table || args.critical_path)
        .then(|| input.schedule.simulate(&input.cost))
        .transpose()?;
    let bounds = input.schedule.lower_bound(&input.cost);
    let series = input.series.as_ref().and_then(|series| {
        let bound = series.min_time(&input.schedule);
        let unknown = |e| output::note(&format!("the series has no known bound: {e}"));
        bound.map_err(unknown).ok()
    });
    // Formulas and published times are those of nodes whose ranks share no ports.
    let planned = input.planned.as_ref();
    let planned = planned.filter(|_| input.schedule.shared_ports().is_empty());
    let planned = planned.map(|p| (&p.algorithm, &p.request));
    let size = input.schedule.element_bytes();
    let simulated = simulation.as_ref();
    Ok(Output {
        levels: levels::traffic(&input.schedule, &input.cost),
        rank_times: args
            .ranks_table
            .then(|| timed.rank_times.iter().copied().map(Number).collect()),
        port_busy: simulated
            .filter(|_| args.ranks_table)
            .map(|simulation| busy(simulation, input)),
        critical_path: simulated
            .filter(|_| args.critical_path)
            .map(|simulation| path(simulation, size)),
        ..Output::new(
            &timed,
            bounds,
            series,
            &input.cost,
            size,
            planned,
            &input.info,
        )
    })
}

impl<'a> Output<'a> {
    /// The times of a whole schedule with elements of `size` bytes, `planned` by an algorithm for a
    /// request; `series` is the bound of a series of operations.
    fn new(
        timed: &Timed,
        bounds: LowerBounds,
        series: Option<f64>,
        cost: &'a CostModel,
        size: u64,
        planned: Option<(&Algorithm, &Request)>,
        info: &'a ScheduleInfo,
    ) -> Output<'a> {
        let largest = bounds.largest.max(series.unwrap_or(0.0));
        let x_bound = (largest > 0.0).then(|| Number(timed.time / largest));
        let linear = cost.rates();
        let closed_form = planned.and_then(|(algorithm, request)| algorithm.closed_form(request));
        let published = planned.and_then(|(algorithm, request)| algorithm.published(request));
        Output {
            time: Number(timed.time),
            model_time: Number(timed.time),
            rounds: timed.rounds,
            messages: timed.messages,
            bytes: timed.elements as u64 * size,
            lower_bound: Number(largest),
            ratio: x_bound,
            x_bound,
            lower_bounds: Bounds {
                latency: Number(bounds.latency),
                bandwidth: Number(bounds.bandwidth),
                computation: Number(bounds.computation),
                path: Number(bounds.path),
                port: Number(bounds.port),
                series: series.map(Number),
            },
            closed_form: closed_form.map(Number),
            published: published.map(|published| print_of(&published, size)),
            alpha: Number(linear.alpha),
            beta: Number(linear.beta),
            gamma: Number(linear.gamma),
            gamma_copy: Number(linear.gamma_copy),
            pieces: cost.size_pieces(),
            info,
            levels: None,
            rank_times: None,
            port_busy: None,
            critical_path: None,
        }
    }
}

fn print_of(published: &Published, element_bytes: u64) -> Print {
    let finite = |time: f64| Some(Number(time)).filter(|t| t.0.is_finite());
    Print {
        table: published.table,
        time: Number(published.time),
        best_segment: published
            .best_segment
            .and_then(|s| finite(s * element_bytes as f64)),
        best_time: published.best_time.and_then(finite),
        erratum: published.erratum,
    }
}

fn busy(simulation: &Simulation, input: &Input) -> Vec<Vec<Number>> {
    let lists = simulation.port_busy(&input.schedule);
    lists
        .into_iter()
        .map(|ports| ports.into_iter().map(Number).collect())
        .collect()
}

fn path(simulation: &Simulation, element_bytes: u64) -> Vec<PathLink> {
    let link = |i: usize| {
        let node = simulation.prepared().nodes()[i];
        PathLink {
            work: match node.kind {
                NodeKind::Transfer => "transfer",
                NodeKind::Combine | NodeKind::CombineLocal => "combine",
                NodeKind::Copy => "copy",
            },
            from: node.from,
            to: node.to,
            bytes: node.elements * element_bytes,
            start: Number(simulation.start(i)),
            end: Number(simulation.finish(i)),
        }
    };
    simulation.critical_path().into_iter().map(link).collect()
}

fn print(out: &mut dyn Write, subject: &Subject, output: &Output<'_>) -> Result<()> {
    let unit = match subject {
        Subject::Stored(input) => input.unit,
        Subject::Streamed(streamed) => streamed.unit,
    };
    print_summary(out, subject.summary(), unit, output)?;
    let Subject::Stored(input) = subject else {
        return Ok(());
    };
    if let Some(times) = &output.rank_times {
        writeln!(out)?;
        ranks_table(
            out,
            input,
            &input.schedule.stats()?,
            times,
            output.port_busy.as_deref().unwrap_or(&[]),
        )?;
    }
    if let Some(path) = &output.critical_path {
        writeln!(out)?;
        critical_path(out, path, unit)?;
    }
    Ok(())
}

/// Appends the times of the whole schedule to its `summary` and prints it.
fn print_summary(
    out: &mut dyn Write,
    mut summary: Vec<(&'static str, String)>,
    unit: TimeUnit,
    output: &Output<'_>,
) -> Result<()> {
    summary.push(("time", unit.show(output.time.0)));
    if let Some(ratio) = output.ratio {
        let bound = unit.show(output.lower_bound.0);
        summary.push((
            "lower bound",
            format!("{bound} (time is {} times that)", significant(ratio.0, 4)),
        ));
    }
    if let Some(closed) = output.closed_form {
        summary.push(("formula", unit.show(closed.0)));
    }
    if let Some(print) = &output.published {
        summary.push(("published", show_print(print, unit)));
    }
    summary.push(("rounds", output.rounds.to_string()));
    summary.push((
        "messages",
        format!("{}, {} together", output.messages, show_bytes(output.bytes)),
    ));
    summary.extend(levels::lines(output.levels.as_deref().unwrap_or_default()));
    output::summary(out, &summary)
}

/// Formats a row, such as `39 (Table I; ..); 37.2 with segments of 2.5 bytes, the best`.
fn show_print(print: &Print, unit: TimeUnit) -> String {
    let mut text = format!("{} ({})", unit.show(print.time.0), print.table);
    if let (Some(segment), Some(time)) = (print.best_segment, print.best_time) {
        text += &format!(
            "; {} with segments of {} bytes, the best",
            unit.show(time.0),
            significant(segment.0, 5)
        );
    }
    if let Some(erratum) = print.erratum {
        text += &format!(" [{erratum}]");
    }
    text
}

fn ranks_table(
    out: &mut dyn Write,
    input: &Input,
    stats: &Stats,
    times: &[Number],
    busy: &[Vec<Number>],
) -> Result<()> {
    let ports = input.schedule.ports();
    let mut header = String::from(">rank|>finishes|>sends|>receives");
    for port in 0..ports.k() {
        let number = if ports.k() > 1 {
            format!(" {port}")
        } else {
            String::new()
        };
        if ports.is_bidirectional() {
            header += &format!("|>port{number} out busy|>port{number} in busy");
        } else {
            header += &format!("|>port{number} busy");
        }
    }
    let rows = times
        .iter()
        .zip(busy)
        .enumerate()
        .map(|(rank, (time, busy))| {
            let bytes =
                |elements: usize| show_bytes(elements as u64 * input.schedule.element_bytes());
            let mut row = vec![
                rank.to_string(),
                input.unit.show(time.0),
                bytes(stats.sent[rank]),
                bytes(stats.received[rank]),
            ];
            row.extend(busy.iter().map(|b| input.unit.show(b.0)));
            row
        });
    output::table(out, &header, rows)
}

fn critical_path(out: &mut dyn Write, path: &[PathLink], unit: TimeUnit) -> Result<()> {
    writeln!(out, "critical path:")?;
    let rows = path.iter().map(|link| {
        let place = if link.work == "transfer" {
            format!("{} -> {}", link.from, link.to)
        } else {
            format!("at {}", link.to)
        };
        [
            link.work.to_string(),
            place,
            show_bytes(link.bytes),
            unit.show(link.start.0),
            unit.show(link.end.0),
        ]
    });
    output::table(out, "work|ranks|>size|>starts|>ends", rows)
}
