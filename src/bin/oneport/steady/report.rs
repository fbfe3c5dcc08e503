//! Output of `oneport steady`: the JSON fields and the printed text.

use std::io::Write;

use anyhow::Result;
use oneport::steady::{
    Fraction, Operation, Periodic, Route, Single, Solution, Task, show_fraction, show_short, to_f64,
};
use serde::Serialize;

use crate::output;

#[derive(Serialize)]
pub(super) struct Output {
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
    /// The throughput for nominal costs, computed by other methods; all agree.
    pub(super) recomputed: Vec<Recomputed>,
    pub(super) trees: Vec<Tree>,
    pub(super) matchings: Vec<Matching>,
    /// The shortest period with whole messages in every slot.
    pub(super) period: serde_json::Value,
    pub(super) schedule: Repeated,
    pub(super) single_tree: SingleTree,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) drift: Option<Drift>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bounds: Option<Bounds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) long_message: Option<LongMessage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<Run>,
}

/// Bounds for problems whose optimum is NP-hard to find.
#[derive(Serialize)]
pub(super) struct Bounds {
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
pub(super) struct Tree {
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
pub(super) struct Matching {
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
pub(super) struct Run {
    pub(super) verified: bool,
    /// In nanoseconds.
    pub(super) wall: u64,
    pub(super) time_unit_ns: f64,
    /// Messages per time unit, measured over the second half of the messages.
    pub(super) throughput: f64,
    /// The same in model time.
    pub(super) model_throughput: f64,
}

pub(super) fn exact(value: &Fraction) -> Exact {
    Exact {
        fraction: show_fraction(value),
        float: to_f64(value),
    }
}

pub(super) fn trees(solution: &Solution) -> Vec<Tree> {
    let tree = |(route, weight): &(Route, Fraction)| {
        let parts = route.parts.iter();
        let edges = parts.clone().flat_map(|p| p.edges.iter().copied());
        let moves = route.work.tasks.iter().filter_map(|task| match *task {
            Task::Move { edge, .. } => Some(edge),
            Task::Combine { .. } => None,
        });
        let edges = edges.chain(moves).map(|e| solution.link(e));
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
            tasks: tasks(solution, route),
        }
    };
    solution.routes.iter().map(tree).collect()
}

fn tasks(solution: &Solution, route: &Route) -> Vec<TreeTask> {
    let made = route.work.contents().split_off(route.work.owners.len());
    let tasks = route.work.tasks.iter().zip(made);
    let tasks = tasks.map(|(task, ranks)| match *task {
        Task::Move { edge, .. } => {
            let (from, to) = solution.link(edge);
            TreeTask::Move { from, to, ranks }
        }
        Task::Combine { node, .. } => TreeTask::Combine { node, ranks },
    });
    tasks.collect()
}

pub(super) fn matchings(solution: &Solution) -> Vec<Matching> {
    let slots = solution.slots.iter().map(|slot| Matching {
        weight: show_fraction(&slot.share),
        weight_float: to_f64(&slot.share),
        edges: slot.edges.iter().map(|&e| solution.link(e)).collect(),
    });
    slots.collect()
}

/// A number if JSON readers keep it exact, a string otherwise.
pub(super) fn period(solution: &Solution) -> serde_json::Value {
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

pub(super) fn print(
    out: &mut dyn Write,
    solution: &Solution,
    periodic: &Periodic,
    single: &Single,
    output: &Output,
) -> Result<()> {
    let why = match (output.optimal, output.proved, &output.bounds) {
        (true, true, _) => "optimal, proved by a dual certificate".to_string(),
        (true, false, _) => "optimal: it reaches its upper bound".to_string(),
        (false, _, Some(bounds)) => format!(
            "the best found by a heuristic, not known to be optimal: up to {:.1}% more may be possible",
            100.0 * bounds.gap
        ),
        (false, _, None) => "the best found by a heuristic, not known to be optimal".to_string(),
    };
    let mut summary = vec![
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
                "{} a time unit ({}; {why})",
                show_short(&solution.throughput),
                short(output.throughput.float)
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
                "{} operations in a period of {}, {} elements a message: {} a time unit, loss {:.3}%",
                periodic.operations(),
                show_short(periodic.period()),
                periodic.elements(),
                short(output.schedule.throughput.float),
                100.0 * output.schedule.loss
            ),
        ),
        (
            "model time",
            format!(
                "{} for {} operations: {} a time unit with start and end, {:.2}% of the throughput",
                plain(output.schedule.model_time),
                output.schedule.messages,
                short(output.schedule.messages as f64 / output.schedule.model_time),
                100.0 * output.schedule.reached
            ),
        ),
    ];
    let same = output.recomputed.iter();
    let same = same.filter(|r| r.throughput.fraction == output.throughput.fraction);
    let methods: Vec<&str> = same.map(|r| r.method).collect();
    if !methods.is_empty() {
        let methods = methods.join(", and by ");
        summary.insert(3, ("the same", format!("by {methods}")));
    }
    if let Some(drift) = &output.drift {
        summary.push((
            "under drift",
            format!(
                "{} guaranteed by the schedule for nominal costs, {} by the one of --robust ({}, {})",
                drift.guaranteed.fraction,
                drift.best_guaranteed.fraction,
                short(drift.guaranteed.float),
                short(drift.best_guaranteed.float)
            ),
        ));
    }
    if let Some(bounds) = &output.bounds {
        summary.push((
            "bounds",
            format!(
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
            ),
        ));
    }
    if let Some(long) = &output.long_message {
        summary.push((
            "long message",
            format!("best in {} packets: time {}", long.packets, long.model_time),
        ));
    }
    if let Some(run) = &output.run {
        summary.push((
            "run",
            format!(
                "{}, {:.3} s; {} a time unit measured over the second half of the operations, {} in the model",
                if run.verified { "verified" } else { "WRONG" },
                run.wall as f64 * 1e-9,
                short(run.throughput),
                short(run.model_throughput)
            ),
        ));
    }
    output::summary(out, &summary)?;
    let edges = |edges: &[(usize, usize)]| {
        let all = edges.iter().map(|(a, b)| match a == b {
            true => format!("{a}+"),
            false => format!("{a}->{b}"),
        });
        all.collect::<Vec<String>>().join(" ")
    };
    writeln!(out, "\ntrees:")?;
    for tree in output.trees.iter().take(MAX_LINES) {
        let way = if tree.tasks.is_empty() {
            edges(&tree.edges)
        } else {
            named(&tree.tasks)
        };
        writeln!(out, "  {}  {way}", tree.weight)?;
    }
    if output.trees.len() > MAX_LINES {
        writeln!(
            out,
            "  and {} more (--json)",
            output.trees.len() - MAX_LINES
        )?;
    }
    writeln!(out, "matchings:")?;
    for matching in output.matchings.iter().take(MAX_LINES) {
        writeln!(out, "  {}  {}", matching.weight, edges(&matching.edges))?;
    }
    if output.matchings.len() > MAX_LINES {
        writeln!(
            out,
            "  and {} more (--json)",
            output.matchings.len() - MAX_LINES
        )?;
    }
    Ok(())
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
