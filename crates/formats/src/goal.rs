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
//! Two forms make LogGOPSim compute the model's time, with the flags in the header. In the
//! [uniform](GoalForm::Uniform) form every message has one byte: it holds both ports for its time
//! `t`, `-g t`, the receiver's before it arrives, after `-L t`, and with `-S 0` its send is done
//! when it is received. In the [timed](GoalForm::Timed) form a message has `t + 1` bytes, of which
//! `-G 1` charges `t`: it arrives after its latency, `-L l`, and occupies its receiver, with `-O 1`
//! its sender as well, as unidirectional ports do; a send is done at once. A late rank begins with
//! a `calc` that all its operations wait for.
//!
//! Senders of LogGOPSim wait for no receiver, and receivers take messages as they arrive, in no
//! order of their own. Its times are therefore those of the model only if everything starts there
//! when it does in the model, and nothing else could have started first. That is decided when a
//! file is written: the header and a note say so.

mod clock;
mod read;

use std::fmt::Write as _;

use serde::Serialize;

use self::clock::GoalClock;
pub use self::read::read;
pub(crate) use self::read::{GoalOp, OpKind, RankGraph, schedule_of_graphs};
use super::{Written, ensure_own_ports, events, tags};
use oneport::error::Result;
use oneport::internal::json_line;
use oneport::machine::CostModel;
use oneport::rules::{Event, LocalOrder, OrderScratch};
use oneport::schedule::collective::Collective;
use oneport::schedule::{Schedule, Step};

/// The sizes in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GoalForm {
    /// Every message has one byte, and times are those of the one-port model: see the [module
    /// documentation](self).
    #[default]
    Uniform,
    /// Every message has a byte for each unit of its time, and one more: times are those of the
    /// one-port model, too.
    Timed,
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
        let form = GoalForm::Uniform;
        GoalOptions { form, cost }
    }
}

/// What the importer needs beside the dependence graph, as the first comment of a file.
#[derive(Serialize)]
struct HeadLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    ports: &'static str,
    ported: usize,
    overlap: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    timed: bool,
    collective: &'a Collective,
}

/// Writes a schedule. Time and memory are linear in the number of steps, as those of simulating it,
/// and in the number of messages that wait for each other.
///
/// # Errors
/// In the uniform form: unidirectional ports, messages of different sizes, costs that
/// differ between ranks, transfers that use ports of different numbers at their ends, latency and
/// eager sends. In the timed form: several ports of a kind, several latencies. In both: ports for
/// calls, messages without any element, overlap, and times that are not whole in any decimal unit.
/// In all forms: shared ports, and a schedule that the model cannot time.
pub fn write(schedule: &Schedule, options: &GoalOptions) -> Result<Written> {
    ensure_own_ports(schedule, "GOAL")?;
    let simulation = schedule.simulate(&options.cost)?;
    let mut clock = GoalClock::new(schedule, options)?;
    let mut text = String::from("// GOAL, written by oneport\n");
    let (kind, k) = (schedule.ports().name(), schedule.ports().k());
    let mut notes = Vec::new();
    if options.form == GoalForm::Bytes {
        let _ = writeln!(
            text,
            "// the ports are {kind}, {k} of each kind, in the order of requires lines only"
        );
        let whole = |t: f64| t.fract() == 0.0;
        if !clock.computations(schedule).all(whole) {
            notes.push("times of computations are rounded to whole units".into());
        }
    } else {
        let remark = clock.remark(schedule, &simulation);
        let time = clock.count(simulation.makespan());
        let _ = writeln!(text, "// LogGOPSim {}", clock.flags());
        let _ = writeln!(text, "// the model's time is {time}; {}", clock.unit);
        let _ = writeln!(text, "// {remark}");
        notes.push(remark);
    }
    let overlap = options.cost.overlaps();
    let head = HeadLine {
        name: schedule.name(),
        ports: kind,
        ported: k,
        overlap,
        timed: options.form == GoalForm::Timed,
        collective: schedule.collective(),
    };
    let _ = writeln!(text, "// {}", json_line(&head));
    let _ = writeln!(text, "num_ranks {}", schedule.ranks());
    let tags = tags(schedule);
    let (mut order, mut scratch) = (LocalOrder::default(), OrderScratch::default());
    for (rank, program) in schedule.programs().iter().enumerate() {
        order.analyse(program, schedule.ports(), overlap, &mut scratch)?;
        let layout = json_line(&schedule.layout()[rank]);
        let _ = write!(text, "\nrank {rank} {{\n// {layout}\n");
        let late = clock.late(rank);
        if late > 0 {
            let _ = writeln!(text, "late: calc {late}");
        }
        for (i, &tag) in tags[rank].iter().enumerate() {
            RankedStep { rank, program, i }.write(&mut text, &clock, tag, &order);
        }
        text.push_str("}\n");
    }
    Ok(Written { text, notes })
}

struct RankedStep<'a> {
    rank: usize,
    program: &'a [Step],
    i: usize,
}

impl RankedStep<'_> {
    /// Writes a comment with the step, the lines of its operations, and what they require.
    fn write(&self, text: &mut String, clock: &GoalClock, tag: usize, order: &LocalOrder) {
        let (i, step) = (self.i, &self.program[self.i]);
        let _ = writeln!(text, "// {}", json_line(step));
        for (event, before) in events(i, step, order) {
            let label = self.label(event);
            match step.peer() {
                Some(peer) if !event.is_computed() => {
                    let (what, to) = if step.is_send() {
                        ("send", "to")
                    } else {
                        ("recv", "from")
                    };
                    let n = clock.size(step);
                    let _ = write!(text, "{label}: {what} {n}b {to} {peer} tag {tag}");
                    if let Some(port @ 1..) = step.port() {
                        let _ = write!(text, " nic {port}");
                    }
                    text.push('\n');
                }
                _ => {
                    let time = clock.count(clock.computation(self.rank, step));
                    let _ = writeln!(text, "{label}: calc {time}");
                }
            }
            for event in before {
                let _ = writeln!(text, "{label} requires {}", self.label(event));
            }
        }
        if clock.late(self.rank) > 0
            && let Some((first, before)) = events(i, step, order).next()
            && before.is_empty()
        {
            let _ = writeln!(text, "{} requires late", self.label(first));
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
