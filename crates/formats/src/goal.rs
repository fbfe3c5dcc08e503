//! GOAL, the text of LogGOPSim's schedules: one dependency graph of sends, receives and
//! computations for each rank.
//!
//! ```text
//! file   = "num_ranks" INT { "rank" INT "{" { line } "}" }          ranks from 0, ascending
//! line   = [LABEL ":"] op | LABEL ("requires" | "irequires") LABEL | "//" text | "/*" text "*/"
//! op     = "send" INT "b" "to" INT ["tag" INT] ["cpu" INT] ["nic" INT]
//!        | "recv" INT "b" "from" INT ["tag" INT] ["cpu" INT] ["nic" INT]
//!        | "calc" INT ["cpu" INT]
//! LABEL  = [a-zA-Z][a-zA-Z0-9_]*
//! ```
//!
//! A label is defined before it is used. `a requires b`: `a` starts after `b` is done; `irequires`:
//! after `b` has started. Blanks are spaces and tabs. There is no version; this is the grammar of
//! `txt2bin.re` in <https://github.com/spcl/LogGOPSim> at commit 76451de (2023), which ATLAHS
//! (<https://github.com/spcl/atlahs>) has too.
//!
//! GOAL knows sizes and dependences, but no data. Comments keep what it leaves out, one JSON value
//! a line, so that a written file is [read](read()) back as the same schedule.
//!
//! # One-port times from LogGOPSim
//!
//! In the [uniform](GoalForm::Uniform) form every message has one byte, and the header names the
//! flags `-L t -g t -o 0 -G 0 -O 0 -S 0`, with `t` the time of a message: a message then holds the
//! sender's port out and, on arrival, the receiver's port in for `t`, and its send is done when it
//! is received. A sender of LogGOPSim does not wait until its receiver is ready. The times are
//! therefore those of the model if in the model no sender waits for its receiver, which is decided
//! when a file is written: the header and a note say so.

mod read;

use std::fmt::Write as _;

use serde::Serialize;

pub use self::read::read;
use super::{Written, computation, ensure_ideal, ensure_own_ports, tags};
use oneport::error::{Error, Result};
use oneport::internal::bytes;
use oneport::internal::json_line;
use oneport::machine::{CostModel, Ports};
use oneport::rules::{Event, LocalOrder, OrderScratch};
use oneport::schedule::collective::Collective;
use oneport::schedule::{Schedule, Step};
use oneport::simulate::Simulation;

/// The sizes in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GoalForm {
    /// Every message has one byte, and times are those of the one-port model: see the [module
    /// documentation](self).
    #[default]
    Uniform,
    /// Messages have their sizes, and computations their times in whole units.
    Bytes,
}

/// How a schedule is written.
#[derive(Debug, Clone, PartialEq)]
pub struct GoalOptions {
    /// The sizes.
    pub form: GoalForm,
    /// The costs.
    pub cost: CostModel,
}

impl GoalOptions {
    /// The uniform form.
    pub fn new(cost: CostModel) -> GoalOptions {
        GoalOptions {
            form: GoalForm::Uniform,
            cost,
        }
    }
}

/// The costs, and the size of an element in bytes.
#[derive(Clone)]
struct GoalTerms {
    cost: CostModel,
    element_bytes: u64,
}

impl GoalTerms {
    fn computation(&self, rank: usize, step: &Step) -> f64 {
        computation(&self.cost, rank, step, self.element_bytes)
    }
}

/// The largest time that LogGOPSim's flags take.
const MAX_TIME: f64 = i32::MAX as f64;

/// What the importer needs beside the dependence graph, as the first comment of a file.
#[derive(Serialize)]
struct HeadLine<'a> {
    ports: &'static str,
    ported: usize,
    overlap: bool,
    collective: &'a Collective,
}

/// Writes a schedule. Time and memory are linear in the number of steps, as those of simulating it.
///
/// # Errors
/// In the uniform form: unidirectional ports, messages of different sizes or without any element,
/// costs that differ between ranks, overlap, times that are not whole in any decimal unit, and
/// transfers that use ports of different numbers at their ends. In both forms: shared ports, and a
/// schedule that the model cannot time.
pub fn write(schedule: &Schedule, options: &GoalOptions) -> Result<Written> {
    ensure_own_ports(schedule, "GOAL")?;
    ensure_ideal(&options.cost, "GOAL")?;
    let kind = schedule.collective().kind();
    let terms = &GoalTerms {
        cost: kind.costs(&options.cost).into_owned(),
        element_bytes: schedule.element_bytes(),
    };
    let simulation = schedule.simulate(&terms.cost)?;
    let mut notes = Vec::new();
    let sizes = match options.form {
        GoalForm::Uniform => GoalSizes::Uniform(UniformClock::of(schedule, terms)?),
        GoalForm::Bytes => GoalSizes::Bytes(terms),
    };
    let mut text = String::from("// GOAL, written by oneport\n");
    let (kind, k) = (schedule.ports().name(), schedule.ports().k());
    match &sizes {
        GoalSizes::Uniform(clock) => {
            let waits = !senders_wait_for_none(schedule, &simulation)?;
            let time = clock.count(simulation.makespan());
            let (unit, t) = (&clock.unit, clock.message);
            let _ = writeln!(text, "// LogGOPSim -L {t} -g {t} -o 0 -G 0 -O 0 -S 0");
            let _ = writeln!(text, "// the model's time is {time}; {unit}");
            let remark = match waits {
                false => "LogGOPSim computes the model's time: no sender waits for its receiver",
                true => {
                    "LogGOPSim may compute another time than the model: in the model senders wait \
                     for their receivers"
                }
            };
            let _ = writeln!(text, "// {remark}");
            notes.push(remark.to_string());
        }
        GoalSizes::Bytes(_) => {
            let _ = writeln!(
                text,
                "// the ports are {kind}, {k} of each kind, in the order of requires lines only"
            );
            let whole = |t: f64| t.fract() == 0.0;
            if !computations(schedule, terms).all(whole) {
                notes.push("times of computations are rounded to whole units".into());
            }
        }
    }
    let head = HeadLine {
        ports: kind,
        ported: k,
        overlap: terms.cost.overlaps(),
        collective: schedule.collective(),
    };
    let _ = writeln!(text, "// {}", json_line(&head));
    let _ = writeln!(text, "num_ranks {}", schedule.ranks());
    let tags = tags(schedule);
    let (mut order, mut scratch) = (LocalOrder::default(), OrderScratch::default());
    for (rank, program) in schedule.programs().iter().enumerate() {
        order.analyse(
            program,
            schedule.ports(),
            terms.cost.overlaps(),
            &mut scratch,
        )?;
        let layout = json_line(&schedule.layout()[rank]);
        let _ = write!(text, "\nrank {rank} {{\n// {layout}\n");
        for (i, &tag) in tags[rank].iter().enumerate() {
            RankedStep { rank, program, i }.write(&mut text, &sizes, tag, &order);
        }
        text.push_str("}\n");
    }
    Ok(Written { text, notes })
}

enum GoalSizes<'a> {
    Uniform(UniformClock),
    Bytes(&'a GoalTerms),
}

impl GoalSizes<'_> {
    fn message(&self, step: &Step) -> u64 {
        match self {
            GoalSizes::Uniform(_) => 1,
            GoalSizes::Bytes(terms) => bytes(step.len(), terms.element_bytes),
        }
    }

    fn computation(&self, rank: usize, step: &Step) -> u64 {
        match self {
            GoalSizes::Uniform(clock) => clock.count(clock.terms.computation(rank, step)),
            GoalSizes::Bytes(terms) => terms.computation(rank, step).round() as u64,
        }
    }
}

fn computations(schedule: &Schedule, terms: &GoalTerms) -> impl Iterator<Item = f64> {
    let ranks = schedule.programs().iter().enumerate();
    ranks.flat_map(move |(rank, program)| {
        let time = move |step| terms.computation(rank, step);
        program.iter().map(time)
    })
}

/// The whole numbers that stand for the times of the uniform form.
struct UniformClock {
    terms: GoalTerms,
    /// Number of units in one time unit of the model.
    scale: f64,
    /// Time of a message, in units.
    message: u64,
    unit: String,
}

impl UniformClock {
    fn of(schedule: &Schedule, terms: &GoalTerms) -> Result<UniformClock> {
        let refusal = |why: &str| {
            Error::usage(format!(
                "the uniform form of GOAL: {why}; the byte form takes it (--form bytes)"
            ))
        };
        let refuse = |why: &str| Err(refusal(why));
        if matches!(schedule.ports(), Ports::Unidirectional { .. }) {
            return refuse(
                "LogGOPSim's hosts send and receive at once, these ports are unidirectional",
            );
        }
        if terms.cost.links().is_some() {
            return refuse("LogGOPSim has one L and one g, these costs differ between ranks");
        }
        if terms.cost.overlaps() {
            return refuse(
                "a calc of LogGOPSim occupies its host, here computation overlaps communication",
            );
        }
        let sends = schedule.programs().iter().flatten().filter(|s| s.is_send());
        // Tokens have no bytes.
        let has_data = schedule.collective().kind().has_data();
        let mut lengths = sends.map(|send| if has_data { send.len() } else { 1 });
        let first = lengths.next().unwrap_or(1);
        if let Some(other) = lengths.find(|&n| n != first) {
            return refuse(&format!(
                "all messages take the same time, here some have {first} elements and others {other} \
                 (choose sizes that all segments and blocks divide)"
            ));
        }
        if first == 0 {
            return refuse("every message takes time, here all are empty");
        }
        same_port_numbers(schedule).map_err(|why| refusal(&why))?;
        let message = terms.cost.transfer(0, 0, bytes(first, terms.element_bytes));
        let times = || computations(schedule, terms).chain([message]);
        let fits = |scale: &f64| {
            times().all(|t| {
                let n = (t * scale).round();
                (t * scale - n).abs() <= 1e-12 * n && n <= MAX_TIME
            })
        };
        let clock = |scale: f64, message: f64, unit: String| UniformClock {
            terms: terms.clone(),
            scale,
            message: message.round() as u64,
            unit,
        };
        if let Some(scale) = (0..10).map(|k| 10f64.powi(k)).find(fits) {
            let unit = format!("{scale} here is 1 time unit of the model");
            return Ok(clock(scale, message * scale, unit));
        }
        // Rounds have whole times in any case.
        if message > 0.0 && computations(schedule, terms).all(|t| t == 0.0) {
            let unit = format!("1 here is one message, {message} time units of the model");
            return Ok(clock(1.0 / message, 1.0, unit));
        }
        refuse(&format!(
            "LogGOPSim counts whole time units, and a message of {message} and the computations here are \
             whole in no decimal unit (choose alpha, beta and gamma so that they are)"
        ))
    }

    fn count(&self, time: f64) -> u64 {
        (time * self.scale).round() as u64
    }
}

/// LogGOPSim charges the receiver's port of the sender's number. Explains where that differs.
fn same_port_numbers(schedule: &Schedule) -> Result<(), String> {
    if schedule.ports().k() == 1 {
        return Ok(());
    }
    let matching = oneport::internal::Matching::new(schedule, |_| ()).map_err(|e| e.to_string())?;
    let steps: Vec<&Step> = schedule.programs().iter().flatten().collect();
    for (step, &mate) in steps.iter().zip(&matching.mates) {
        let mate = steps.get(mate as usize);
        if let (Some(port), Some(other)) = (step.port(), mate.and_then(|m| m.port()))
            && port != other
        {
            return Err(format!(
                "LogGOPSim has a message use ports of the same number at both ends, here one uses port {port} and port {other} instead"
            ));
        }
    }
    Ok(())
}

/// Whether in the model every transfer starts as soon as its sender may start it.
fn senders_wait_for_none(schedule: &Schedule, simulation: &Simulation) -> Result<bool> {
    let prepared = simulation.prepared();
    let (mut order, mut scratch) = (LocalOrder::default(), OrderScratch::default());
    for (rank, program) in schedule.programs().iter().enumerate() {
        order.analyse(program, schedule.ports(), false, &mut scratch)?;
        for (i, step) in program.iter().enumerate().filter(|(_, s)| s.is_send()) {
            let Some(node) = prepared.node(rank, Event::transferred(i)) else {
                continue;
            };
            let finish = |e: &Event| {
                prepared
                    .node(rank, *e)
                    .map_or(0.0, |n| simulation.finish(n))
            };
            let waits = order.before_start(i).iter().map(finish);
            let ready = waits.fold(0.0, f64::max);
            let both = prepared.waits(node).map(|n| simulation.finish(n));
            let start = both.fold(0.0, f64::max);
            if ready < start && !step.is_empty() {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

struct RankedStep<'a> {
    rank: usize,
    program: &'a [Step],
    i: usize,
}

impl RankedStep<'_> {
    /// Writes a comment with the step, the lines of its operations, and what they require.
    fn write(&self, text: &mut String, sizes: &GoalSizes, tag: usize, order: &LocalOrder) {
        let (i, step) = (self.i, &self.program[self.i]);
        let _ = writeln!(text, "// {}", json_line(step));
        let started = self.label(Event::transferred(i));
        if let Some(peer) = step.peer() {
            let (what, to) = match step.is_send() {
                true => ("send", "to"),
                false => ("recv", "from"),
            };
            let n = sizes.message(step);
            let _ = write!(text, "{started}: {what} {n}b {to} {peer} tag {tag}");
            if let Some(port @ 1..) = step.port() {
                let _ = write!(text, " nic {port}");
            }
            text.push('\n');
            self.requires(text, &started, order.before_start(i));
        }
        if step.computes() {
            let computed = self.label(Event::computed(i));
            let time = sizes.computation(self.rank, step);
            let _ = writeln!(text, "{computed}: calc {time}");
            if step.peer().is_some() {
                let _ = writeln!(text, "{computed} requires {started}");
                self.requires(text, &computed, order.before_compute(i));
            } else {
                self.requires(text, &computed, order.before_start(i));
            }
        }
    }

    fn requires(&self, text: &mut String, label: &str, events: &[Event]) {
        for &event in events {
            let _ = writeln!(text, "{label} requires {}", self.label(event));
        }
    }

    fn label(&self, event: Event) -> String {
        let i = event.step();
        let letter = match &self.program[i] {
            _ if event.is_computed() => 'c',
            step if step.is_send() => 's',
            _ => 'r',
        };
        format!("{letter}{i}")
    }
}
