//! Output of `oneport steady`: the JSON fields and the printed text.

use std::io::Write;

use anyhow::Result;
use oneport_steady::{Fraction, Operation, Periodic, Route, Single, Solution, Task, show_short};
use serde::Serialize;

use super::Found;
use crate::output;
use crate::units::counted;

#[derive(Serialize)]
pub(super) struct Output<'a> {
    pub(super) collective: &'static str,
    pub(super) ports: &'static str,
    pub(super) nodes: usize,
    pub(super) edges: usize,
    /// Operations per time unit.
    pub(super) throughput: Exact,
    /// Whether the throughput is optimal.
    pub(super) optimal: bool,
    /// Whether a certificate of optimality was checked.
    pub(super) proved: bool,
    /// The same throughput, computed by other methods; all agree.
    pub(super) recomputed: &'a [Recomputed],
    pub(super) trees: Vec<WeightedTree>,
    pub(super) matchings: Vec<MatchingEdges>,
    /// The shortest period with whole messages in every slot.
    pub(super) period: serde_json::Value,
    pub(super) schedule: Repeated,
    pub(super) single_tree: SingleTree,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) drift: Option<Drift>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bounds: Option<&'a ThroughputBounds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) long_message: Option<LongMessage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<&'a MeasuredSeries>,
}

impl<'a> Output<'a> {
    pub(super) fn of(found: &'a Found) -> Output<'a> {
        let (solution, periodic, single) = (&found.solution, &found.periodic, &found.single);
        let (messages, model_time) = (found.messages, found.model_time);
        Output {
            collective: solution.operation.name(),
            ports: solution.ports.name(),
            nodes: solution.platform().nodes(),
            edges: solution.platform().edges().len(),
            throughput: exact(&solution.throughput),
            optimal: solution.is_optimal,
            proved: solution.certificate.is_some(),
            recomputed: &found.recomputed,
            trees: trees(solution),
            matchings: matchings(solution),
            period: period(solution),
            schedule: Repeated {
                period: exact(periodic.period()),
                messages_per_period: periodic.operations(),
                elements: periodic.elements(),
                throughput: exact(&periodic.throughput()),
                loss: periodic.loss().to_f64(),
                messages,
                model_time,
                reached: messages as f64 / model_time / solution.throughput.to_f64(),
                checked: true,
            },
            single_tree: SingleTree {
                throughput: exact(&single.throughput),
                optimal: single.is_optimal,
            },
            drift: found.drift.as_ref().map(|drift| Drift {
                guaranteed: exact(&drift.guaranteed),
                best_guaranteed: exact(&drift.best_guaranteed),
            }),
            bounds: found.bounds.as_ref(),
            long_message: found.packets.as_ref().map(|packets| LongMessage {
                packets: packets.count,
                model_time: packets.time,
            }),
            run: found.run.as_ref(),
        }
    }
}

/// Bounds for problems whose optimum is NP-hard to find.
#[derive(Serialize)]
pub(super) struct ThroughputBounds {
    pub(super) lower: Exact,
    pub(super) upper: Exact,
    /// Fraction by which the throughput may be higher. It is 0 if the throughput is optimal, which
    /// need not be proved by a separate certificate.
    pub(super) gap: f64,
}

#[derive(Serialize)]
pub(super) struct Recomputed {
    pub(super) method: &'static str,
    pub(super) throughput: Exact,
}

#[derive(Serialize)]
pub(super) struct LongMessage {
    pub(super) packets: usize,
    pub(super) model_time: f64,
}

#[derive(Serialize)]
pub(super) struct Exact {
    pub(super) fraction: String,
    pub(super) float: f64,
}

#[derive(Serialize)]
pub(super) struct WeightedTree {
    pub(super) weight: String,
    pub(super) weight_float: f64,
    pub(super) edges: Vec<(usize, usize)>,
    /// Messages on each edge; omitted if all are 1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) messages: Vec<usize>,
    /// The contents of each message and each combination, if combining takes time or operands keep
    /// their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tasks: Vec<TreeTask>,
}

/// A task of a tree. `ranks` are the contributions in the message or in the result.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TreeTask {
    Move {
        from: usize,
        to: usize,
        ranks: Vec<usize>,
    },
    Combine {
        node: usize,
        ranks: Vec<usize>,
    },
}

/// A matching. An edge from a node to itself means that the node combines.
#[derive(Serialize)]
pub(super) struct MatchingEdges {
    pub(super) weight: String,
    pub(super) weight_float: f64,
    pub(super) edges: Vec<(usize, usize)>,
}

#[derive(Serialize)]
pub(super) struct Repeated {
    pub(super) period: Exact,
    pub(super) messages_per_period: usize,
    pub(super) elements: usize,
    pub(super) throughput: Exact,
    /// Fraction of the optimum lost by rounding.
    pub(super) loss: f64,
    pub(super) messages: usize,
    pub(super) model_time: f64,
    /// Fraction of the throughput that all messages together reach, start and end included.
    pub(super) reached: f64,
    pub(super) checked: bool,
}

#[derive(Serialize)]
pub(super) struct SingleTree {
    pub(super) throughput: Exact,
    pub(super) optimal: bool,
}

#[derive(Serialize)]
pub(super) struct Drift {
    pub(super) guaranteed: Exact,
    pub(super) best_guaranteed: Exact,
}

#[derive(Serialize)]
pub(super) struct MeasuredSeries {
    pub(super) verified: bool,
    /// In nanoseconds.
    pub(super) wall: u64,
    pub(super) time_unit_ns: f64,
    /// Messages per time unit, measured over the second half of the messages.
    pub(super) throughput: f64,
    /// The same in model time.
    pub(super) model_throughput: f64,
    /// Whether the run took about its model time.
    pub(super) kept_pace: bool,
}

pub(super) fn exact(value: &Fraction) -> Exact {
    Exact {
        fraction: value.to_string(),
        float: value.to_f64(),
    }
}

fn trees(solution: &Solution) -> Vec<WeightedTree> {
    let tree = |(route, weight): &(Route, Fraction)| {
        let trees = route.trees.iter();
        let edges = trees.clone().flat_map(|t| t.edges.iter().copied());
        let moves = route
            .task_graph
            .tasks
            .iter()
            .filter_map(|task| match *task {
                Task::Move { edge, .. } => Some(edge),
                Task::Combine { .. } => None,
            });
        let edges = edges.chain(moves).map(|e| solution.link(e));
        let messages: Vec<usize> = trees.flat_map(|t| t.messages.iter().copied()).collect();
        WeightedTree {
            weight: weight.to_string(),
            weight_float: weight.to_f64(),
            edges: edges.collect(),
            messages: if messages.iter().all(|&m| m == 1) {
                Vec::new()
            } else {
                messages
            },
            tasks: tasks(solution, route),
        }
    };
    solution.routes.iter().map(tree).collect()
}

fn tasks(solution: &Solution, route: &Route) -> Vec<TreeTask> {
    let made = route
        .task_graph
        .contents()
        .split_off(route.task_graph.owners.len());
    let tasks = route.task_graph.tasks.iter().zip(made);
    let tasks = tasks.map(|(task, ranks)| match *task {
        Task::Move { edge, .. } => {
            let (from, to) = solution.link(edge);
            TreeTask::Move { from, to, ranks }
        }
        Task::Combine { node, .. } => TreeTask::Combine { node, ranks },
    });
    tasks.collect()
}

fn matchings(solution: &Solution) -> Vec<MatchingEdges> {
    let slots = solution.slots.iter().map(|slot| MatchingEdges {
        weight: slot.share.to_string(),
        weight_float: slot.share.to_f64(),
        edges: slot.edges.iter().map(|&e| solution.link(e)).collect(),
    });
    slots.collect()
}

/// A number if JSON readers keep it exact, a string otherwise.
fn period(solution: &Solution) -> serde_json::Value {
    let period = solution.period();
    match u64::try_from(&period) {
        Ok(small) if small < 1 << 53 => small.into(),
        _ => period.to_string().into(),
    }
}

/// Maximum number of printed trees and of printed matchings.
const MAX_LINES: usize = 12;

/// Six decimals, or an exponent for very small or large values.
fn short(value: f64) -> String {
    if value == 0.0 || (1e-3..1e9).contains(&value.abs()) {
        format!("{value:.6}")
    } else {
        format!("{value:.5e}")
    }
}

/// All digits, or an exponent for very small or large values.
fn plain(value: f64) -> String {
    if value == 0.0 || (1e-3..1e15).contains(&value.abs()) {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

/// Prints the summary, and the first trees and matchings.
pub(super) fn print(out: &mut dyn Write, found: &Found, output: &Output) -> Result<()> {
    let mut summary = throughput_lines(&found.solution, &found.single, output);
    summary.extend(schedule_lines(&found.periodic, output));
    summary.extend(optional_lines(&found.solution, output));
    output::summary(out, &summary)?;
    let trees = output.trees.iter().map(|tree| {
        let way = if tree.tasks.is_empty() {
            links(&tree.edges)
        } else {
            named(&tree.tasks)
        };
        (&tree.weight, way)
    });
    writeln!(out)?;
    weighted(out, "trees", trees)?;
    let matchings = output.matchings.iter();
    weighted(
        out,
        "matchings",
        matchings.map(|m| (&m.weight, links(&m.edges))),
    )
}

/// A line of the summary: name and text.
type SummaryLine = (&'static str, String);

/// Returns the lines of the platform and its throughput.
fn throughput_lines(solution: &Solution, single: &Single, output: &Output) -> Vec<SummaryLine> {
    let why = match (output.optimal, output.proved, &output.bounds) {
        (true, true, _) => "optimal, proved by a dual certificate".to_string(),
        (true, false, _) => "optimal: it reaches its upper bound".to_string(),
        (false, _, Some(bounds)) => format!(
            "the best found by a heuristic, not known to be optimal: up to {:.1}% more may be possible",
            100.0 * bounds.gap
        ),
        (false, _, None) => "the best found by a heuristic, not known to be optimal".to_string(),
    };
    let platform = format!(
        "{} nodes, {} links, source {}",
        output.nodes,
        output.edges,
        solution.platform().source()
    );
    let series = format!("{}, {} ports", output.collective, output.ports);
    let throughput = format!(
        "{} a time unit ({}; {why})",
        show_short(&solution.throughput),
        short(output.throughput.float)
    );
    let mut lines = vec![
        ("platform", platform),
        ("series of", series),
        ("throughput", throughput),
    ];
    let same = output.recomputed.iter();
    let same = same.filter(|r| r.throughput.fraction == output.throughput.fraction);
    let methods: Vec<&str> = same.map(|r| r.method).collect();
    if !methods.is_empty() {
        lines.push(("the same", format!("by {}", methods.join(", and by "))));
    }
    let best_found = if single.is_optimal {
        ""
    } else {
        " (best found)"
    };
    let single = format!("{}{best_found}", show_short(&single.throughput));
    lines.push(("best single tree", single));
    lines
}

/// Returns the lines of the periodic schedule and of the schedule of all operations.
fn schedule_lines(periodic: &Periodic, output: &Output) -> [SummaryLine; 2] {
    let schedule = &output.schedule;
    let period = format!(
        "{} in a period of {}, {} a message: {} a time unit, loss {:.3}%",
        counted(periodic.operations(), "operation"),
        show_short(periodic.period()),
        counted(periodic.elements(), "element"),
        short(schedule.throughput.float),
        100.0 * schedule.loss
    );
    let model_time = format!(
        "{} for {}: {} a time unit with start and end, {:.2}% of the throughput",
        plain(schedule.model_time),
        counted(schedule.messages, "operation"),
        short(schedule.messages as f64 / schedule.model_time),
        100.0 * schedule.reached
    );
    [("schedule", period), ("model time", model_time)]
}

/// Returns the lines of what was requested by options, and of bounds.
fn optional_lines(solution: &Solution, output: &Output) -> Vec<SummaryLine> {
    let drift = output.drift.as_ref().map(|drift| {
        let text = format!(
            "{} guaranteed by the schedule for nominal costs, {} by the one of --robust ({}, {})",
            drift.guaranteed.fraction,
            drift.best_guaranteed.fraction,
            short(drift.guaranteed.float),
            short(drift.best_guaranteed.float)
        );
        ("under drift", text)
    });
    let bounds = output.bounds.as_ref().map(|bounds| {
        let text = format!(
            "{} to {} ({} to {}; {})",
            bounds.lower.fraction,
            bounds.upper.fraction,
            short(bounds.lower.float),
            short(bounds.upper.float),
            match solution.operation {
                Operation::Multicast => "by scatters, by flows",
                Operation::Scan => "what was found, the last rank's prefix alone",
                _ => "what was found, free combinations or busy processors",
            }
        );
        ("bounds", text)
    });
    let long_message = output.long_message.as_ref().map(|long| {
        let text = format!("best in {} packets: time {}", long.packets, long.model_time);
        ("long message", text)
    });
    let run = output.run.as_ref().map(|run| {
        let text = format!(
            "{}, {:.3} s; {} a time unit measured over the second half of the operations, {} in the model",
            if run.verified { "verified" } else { "WRONG" },
            run.wall as f64 * 1e-9,
            short(run.throughput),
            short(run.model_throughput)
        );
        ("run", text)
    });
    let lines = [drift, bounds, long_message, run];
    lines.into_iter().flatten().collect()
}

/// Prints a title, and the first weights, each with its text.
fn weighted<'a>(
    out: &mut dyn Write,
    title: &str,
    lines: impl ExactSizeIterator<Item = (&'a String, String)>,
) -> Result<()> {
    let more = lines.len().saturating_sub(MAX_LINES);
    writeln!(out, "{title}:")?;
    for (weight, text) in lines.take(MAX_LINES) {
        writeln!(out, "  {weight}  {text}")?;
    }
    if more > 0 {
        writeln!(out, "  and {more} more (--json)")?;
    }
    Ok(())
}

/// Formats links as `0->1`, and the combining of a node as `1+`.
fn links(edges: &[(usize, usize)]) -> String {
    let all = edges.iter().map(|(a, b)| match a == b {
        true => format!("{a}+"),
        false => format!("{a}->{b}"),
    });
    all.collect::<Vec<String>>().join(" ")
}

/// Formats tasks: `1->0 [1]` moves the contribution of rank 1, `0+ [0 1]` combines on node 0.
fn named(tasks: &[TreeTask]) -> String {
    let ranks = |ranks: &[usize]| {
        let in_row = ranks.windows(2).all(|w| w[1] == w[0] + 1);
        match ranks {
            [first, .., last] if in_row && ranks.len() > 2 => format!("[{first}..{last}]"),
            _ => {
                let all: Vec<String> = ranks.iter().map(usize::to_string).collect();
                format!("[{}]", all.join(" "))
            }
        }
    };
    let names = tasks.iter().map(|task| match task {
        TreeTask::Move { from, to, ranks: r } => format!("{from}->{to} {}", ranks(r)),
        TreeTask::Combine { node, ranks: r } => format!("{node}+ {}", ranks(r)),
    });
    names.collect::<Vec<String>>().join(", ")
}
