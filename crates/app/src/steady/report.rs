//! Output of `oneport steady`: the JSON fields and the printed text.

use oneport_steady::{Fraction, Operation, Route, Solution, Task, show_short};

use super::Found;
use crate::prelude::*;

pub(super) fn json(found: &Found) -> impl Answered {
    let (solution, periodic) = (&found.solution, &found.periodic);
    record! {
        collective: solution.operation.name(),
        ports: solution.ports.name(),
        nodes: solution.platform().nodes(),
        edges: solution.platform().edges().len(),
        /// Operations per time unit.
        throughput: exact(&solution.throughput),
        optimal: solution.is_optimal,
        /// Whether a certificate of optimality was checked.
        proved: solution.certificate.is_some(),
        /// The same throughput, computed by other methods.
        recomputed: found.recomputed.iter().map(|(method, value)| record! {
            method: method,
            throughput: exact(value),
        }).collect::<Vec<_>>(),
        trees: solution.routes.iter().map(|route| tree(solution, route)).collect::<Vec<_>>(),
        /// An edge from a node to itself means that the node combines.
        matchings: solution.slots.iter().map(|slot| record! {
            weight: slot.share.to_string(),
            weight_float: slot.share.to_f64(),
            edges: slot.edges.iter().map(|&e| solution.link(e)).collect::<Vec<_>>(),
        }).collect::<Vec<_>>(),
        /// The shortest period with whole messages in every slot.
        period: period(solution),
        schedule: record! {
            period: exact(periodic.period()),
            messages_per_period: periodic.operations(),
            elements: periodic.elements(),
            throughput: exact(&periodic.throughput()),
            /// Fraction of the optimum lost by rounding.
            loss: periodic.loss().to_f64(),
            messages: found.messages,
            model_time: found.model_time,
            reached: found.reached(),
            checked: true,
        },
        single_tree: record! {
            throughput: exact(&found.single.throughput),
            optimal: found.single.is_optimal,
        },
        unlimited (optional): found.unlimited.as_ref().map(exact),
        drift (optional): found.drift.as_ref().map(|drift| record! {
            guaranteed: exact(&drift.guaranteed),
            best_guaranteed: exact(&drift.best_guaranteed),
        }),
        bounds (optional): found.bounds.as_ref().map(|(lower, upper)| record! {
            lower: exact(lower),
            upper: exact(upper),
            gap: gap(solution, upper),
        }),
        long_message (optional): found.packets.as_ref().map(|packets| record! {
            packets: packets.count,
            model_time: packets.time,
            /// Whether no other number of packets takes less time, and how many were tried.
            best: packets.is_best,
            tried: packets.tried,
        }),
        run (optional): found.run.as_ref(),
    }
}

impl Found {
    /// Fraction of the throughput that all messages together reach, start and end included.
    fn reached(&self) -> f64 {
        self.messages as f64 / self.model_time / self.solution.throughput.to_f64()
    }
}

/// Fraction by which the throughput may be higher. It is 0 if the throughput is optimal, which need
/// not be proved by a separate certificate.
fn gap(solution: &Solution, upper: &Fraction) -> f64 {
    (upper / &solution.throughput).to_f64() - 1.0
}

#[derive(JsonSchema, Serialize)]
pub(super) struct MeasuredSeries {
    pub(super) verified: bool,
    /// In nanoseconds.
    pub(super) wall: u64,
    pub(super) time_unit_ns: f64,
    /// Messages per time unit, measured over the second half of the messages.
    pub(super) throughput: f64,
    /// The same in model time.
    pub(super) model_throughput: f64,
    pub(super) kept_pace: bool,
}

fn exact(value: &Fraction) -> impl Answered + use<> {
    record! { fraction: value.to_string(), float: value.to_f64() }
}

fn tree(solution: &Solution, (route, weight): &(Route, Fraction)) -> impl Answered + use<> {
    let messages = route.trees.iter().flat_map(|t| t.messages.iter().copied());
    let messages: Vec<usize> = messages.collect();
    let tasks = tasks(solution, route).into_iter().map(|((from, to), ranks)| {
        let combines = from == to;
        record! {
            #[serde(rename = "move")]
            moves (optional): (!combines).then(|| record! { from: from, to: to, ranks: ranks.clone() }),
            combine (optional): combines.then(|| record! { node: to, ranks: ranks.clone() }),
        }
    });
    let tasks: Vec<_> = tasks.collect();
    record! {
        weight: weight.to_string(),
        weight_float: weight.to_f64(),
        edges: edges(solution, route),
        messages (optional): messages.iter().any(|&m| m != 1).then_some(messages),
        /// The contents of each message and each combination, if combining takes time or operands
        /// keep their order.
        tasks (optional): (!tasks.is_empty()).then_some(tasks),
    }
}

/// The links that a route uses, or the tasks in which it moves values.
fn edges(solution: &Solution, route: &Route) -> Vec<(usize, usize)> {
    let edges = route.trees.iter().flat_map(|t| t.edges.iter().copied());
    let moves = route
        .task_graph
        .tasks
        .iter()
        .filter_map(|task| match *task {
            Task::Move { edge, .. } => Some(edge),
            Task::Combine { .. } => None,
        });
    edges.chain(moves).map(|e| solution.link(e)).collect()
}

/// The tasks of a route: the link of a move, from a node to itself for a combination, and the
/// contributions in the message or in the result.
fn tasks(solution: &Solution, route: &Route) -> Vec<((usize, usize), Vec<usize>)> {
    let graph = &route.task_graph;
    let made = graph.contents().split_off(graph.owners.len());
    let link = |task: &Task| match *task {
        Task::Move { edge, .. } => solution.link(edge),
        Task::Combine { node, .. } => (node, node),
    };
    graph.tasks.iter().map(link).zip(made).collect()
}

/// A number if JSON readers keep it exact, a string otherwise.
fn period(solution: &Solution) -> Whole {
    let period = solution.period();
    match u64::try_from(&period) {
        Ok(small) if small < 1 << 53 => Whole::Small(small),
        _ => Whole::Large(period.to_string()),
    }
}

/// A whole number, as text if readers of JSON may round it.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
enum Whole {
    Small(u64),
    Large(String),
}

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

pub(super) fn print(out: &mut Lines, found: &Found) -> Result<()> {
    let solution = &found.solution;
    let mut summary = throughput_lines(found);
    summary.extend(schedule_lines(found));
    summary.extend(optional_lines(found));
    output::summary(out, &summary)?;
    let trees = solution.routes.iter().map(|(route, weight)| {
        let way = match tasks(solution, route) {
            none if none.is_empty() => links(&edges(solution, route)),
            tasks => named(&tasks),
        };
        (weight, way)
    });
    writeln!(out)?;
    weighted(out, "trees", trees)?;
    let matchings = solution.slots.iter().map(|slot| {
        let edges: Vec<_> = slot.edges.iter().map(|&e| solution.link(e)).collect();
        (&slot.share, links(&edges))
    });
    weighted(out, "matchings", matchings)
}

type SummaryLine = (&'static str, String);

fn throughput_lines(found: &Found) -> Vec<SummaryLine> {
    let (solution, single) = (&found.solution, &found.single);
    let why = match (&found.bounds, solution.certificate.is_some()) {
        (_, true) if solution.is_optimal => "optimal, proved by a dual certificate".to_string(),
        _ if solution.is_optimal => "optimal: it reaches its upper bound".to_string(),
        (Some((_, upper)), _) => format!(
            "the best found by a heuristic, not known to be optimal: up to {:.1}% more may be possible",
            100.0 * gap(solution, upper)
        ),
        (None, _) => "the best found by a heuristic, not known to be optimal".to_string(),
    };
    let platform = solution.platform();
    let (nodes, edges) = (platform.nodes(), platform.edges().len());
    let (operation, ports) = (solution.operation.name(), solution.ports.name());
    let throughput = &solution.throughput;
    let (exact, float) = (show_short(throughput), short(throughput.to_f64()));
    let source = platform.source();
    let mut lines = vec![
        (
            "platform",
            format!("{nodes} nodes, {edges} links, source {source}"),
        ),
        ("series of", format!("{operation}, {ports} ports")),
        (
            "throughput",
            format!("{exact} a time unit ({float}; {why})"),
        ),
    ];
    let recomputed = found.recomputed.iter();
    let same = recomputed.filter(|(_, value)| value == throughput);
    let methods: Vec<&str> = same.map(|(method, _)| *method).collect();
    if let Some(unlimited) = &found.unlimited {
        let trees = counted(solution.routes.len(), "tree");
        let any = show_short(unlimited);
        lines.push((
            "limited to",
            format!("{trees}; {any} with any number of trees"),
        ));
    }
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

fn schedule_lines(found: &Found) -> [SummaryLine; 2] {
    let periodic = &found.periodic;
    let period = format!(
        "{} in a period of {}, {} a message: {} a time unit, loss {:.3}%",
        counted(periodic.operations(), "operation"),
        show_short(periodic.period()),
        counted(periodic.elements(), "element"),
        short(periodic.throughput().to_f64()),
        100.0 * periodic.loss().to_f64()
    );
    let model_time = format!(
        "{} for {}: {} a time unit with start and end, {:.2}% of the throughput",
        plain(found.model_time),
        counted(found.messages, "operation"),
        short(found.messages as f64 / found.model_time),
        100.0 * found.reached()
    );
    [("schedule", period), ("model time", model_time)]
}

fn optional_lines(found: &Found) -> Vec<SummaryLine> {
    let drift = found.drift.as_ref().map(|drift| {
        let (guaranteed, best) = (&drift.guaranteed, &drift.best_guaranteed);
        let text = format!(
            "{guaranteed} guaranteed by the schedule for nominal costs, {best} by the one of --robust ({}, {})",
            short(guaranteed.to_f64()),
            short(best.to_f64())
        );
        ("under drift", text)
    });
    let bounds = found.bounds.as_ref().map(|(lower, upper)| {
        let text = format!(
            "{lower} to {upper} ({} to {}; {})",
            short(lower.to_f64()),
            short(upper.to_f64()),
            match found.solution.operation {
                Operation::Multicast => "by scatters, by flows",
                Operation::Scan => "what was found, the last rank's prefix alone",
                _ => "what was found, free combinations or busy processors",
            }
        );
        ("bounds", text)
    });
    let long_message = found.packets.as_ref().map(|packets| {
        let (cut, time) = (counted(packets.count, "packet"), packets.time);
        let text = if packets.is_best {
            format!("best in {cut}: time {time}")
        } else {
            format!(
                "{cut}, the best of {} numbers tried: time {time}",
                packets.tried
            )
        };
        ("long message", text)
    });
    let run = found.run.as_ref().map(|run| {
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

fn weighted<'a>(
    out: &mut Lines,
    title: &str,
    lines: impl ExactSizeIterator<Item = (&'a Fraction, String)>,
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

/// Formats a link as `0->1`, and the combining of a node as `1+`.
fn link((from, to): (usize, usize)) -> String {
    if from == to {
        format!("{from}+")
    } else {
        format!("{from}->{to}")
    }
}

fn links(edges: &[(usize, usize)]) -> String {
    let all: Vec<String> = edges.iter().map(|&edge| link(edge)).collect();
    all.join(" ")
}

/// Formats tasks: `1->0 [1]` moves the contribution of rank 1, `0+ [0 1]` combines on node 0.
fn named(tasks: &[((usize, usize), Vec<usize>)]) -> String {
    let names = tasks.iter().map(|(edge, ranks)| {
        let in_row = ranks.windows(2).all(|w| w[1] == w[0] + 1);
        let ranks = match &ranks[..] {
            [first, .., last] if in_row && ranks.len() > 2 => format!("{first}..{last}"),
            all => all
                .iter()
                .map(usize::to_string)
                .collect::<Vec<_>>()
                .join(" "),
        };
        format!("{} [{ranks}]", link(*edge))
    });
    names.collect::<Vec<String>>().join(", ")
}
