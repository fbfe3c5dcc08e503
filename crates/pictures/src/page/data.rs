//! The data of a page: the transfers and computations of a schedule with their times, and what
//! every buffer holds, as numbers in JSON. Most are differences, which repeat themselves and are
//! packed well.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::buffers::Buffers;
use super::positions::Positions;
use crate::gantt::{computations_overlap, doing};
use crate::legend::{FinestParts, color, color_number, palette, part_name};
use crate::svg::scale;
use crate::{Activity, Trace, Unit, Wait, What};
use oneport::check::Finding;
use oneport::internal::History;
use oneport::internal::numbers::signed;
use oneport::machine::CostModel;
use oneport::rules::End;
use oneport::schedule::Schedule;
use oneport::simulate::Simulation;
use oneport::simulate::explain::WaitReason;

/// A transfer or a computation. A transfer has two ends; the second end of a computation is its
/// first.
#[derive(Default)]
struct PageNode {
    what: usize,
    ends: [NodeEnd; 2],
    /// Index of the part of the data in the list of their names.
    part: Option<usize>,
    color: usize,
    bytes: u64,
    /// When its ends start and end: indices into the list of instants.
    times: [(usize, usize); 2],
    critical: bool,
    /// Why it starts no earlier, for its ends if these differ: by how much the awaited node comes
    /// before it, and a number for the reason and the ends. Of data without times, all that might.
    after: Vec<(i64, usize)>,
    /// The number of cells that it writes, in the buffer of its last end.
    writes: usize,
}

/// One end of a transfer, or a computation.
#[derive(Default, Clone, Copy)]
struct NodeEnd {
    rank: usize,
    step: usize,
    /// The lane of the rank; `None` for a computation that fills all lanes.
    lane: Option<usize>,
}

/// Everything that a page shows of a schedule.
pub(crate) struct PageData<'a> {
    pub(super) name: &'a str,
    pub(super) schedule: &'a Schedule,
    pub(super) cost: &'a CostModel,
    pub(super) simulation: Simulation,
    pub(super) trace: Trace,
    /// What the page says of it, as HTML.
    pub(super) facts: String,
    /// Whether the data have the times: otherwise the page finds them by what each node waits for.
    pub(crate) timed: bool,
    pub(super) history: History,
    pub(super) errors: Vec<Finding>,
    pub(super) positions: Positions,
}

/// The data of all schedules as a JSON object, with what they share.
pub(crate) fn json(all: &[PageData]) -> Value {
    let traces = || all.iter().map(|data| &data.trace);
    let end = traces().map(Trace::end).fold(0.0, f64::max);
    let unit = traces().next().map_or(Unit::Plain, |trace| trace.unit);
    let (divisor, unit) = scale(unit, end);
    let (colors, inks): (Vec<_>, Vec<_>) = palette().unzip();
    json!({
        "unit": unit, "divisor": divisor, "kinds": KINDS.map(What::name),
        "colors": colors, "inks": inks,
        "schedules": all.iter().map(PageData::json).collect::<Value>(),
    })
}

impl PageData<'_> {
    /// The data as a JSON object: columns of `nodes` are lists with one entry per transfer or
    /// computation, in the order in which they start.
    fn json(&self) -> Value {
        let trace = &self.trace;
        let mut instants: Vec<f64> = vec![0.0];
        instants.extend(trace.activities.iter().flat_map(|a| [a.start, a.end]));
        instants.sort_unstable_by(f64::total_cmp);
        instants.dedup();
        let finest = FinestParts::of(trace);
        let buffers = Buffers::new(self.schedule, &self.history, &self.errors, finest.as_ref());
        let mut names = [Numbers::default(), Numbers::default()];
        let nodes = self.nodes(&instants, &mut names, (&buffers, finest.as_ref()));
        let [parts, reasons] = names.map(|numbers| numbers.names);
        let lanes: Vec<String> = (0..trace.lists())
            .map(|l| trace.ports.list_name(l))
            .collect();
        let compute_lanes = if computations_overlap(trace) {
            trace.compute_lanes().1
        } else {
            0
        };
        let lists = self.history.contents().iter();
        let mut json = json!({
            "name": self.name, "facts": self.facts, "ranks": trace.ranks,
            "root": self.schedule.collective().root(), "arrivals": (0..trace.ranks).map(|rank| self.cost.arrival(rank)).collect::<Value>(),
            "waits": waits(trace),
            "lanes": lanes, "computeLanes": compute_lanes,
            "places": self.positions.at, "size": self.positions.size, "edges": self.positions.edges,
            "circle": self.positions.circle, "legend": legend(trace, finest.as_ref()), "parts": parts, "reasons": reasons,
            "nodes": columns(&nodes, self.timed),
            "lists": lists.clone().map(|c| &c.words).collect::<Vec<_>>(),
            "counts": lists.map(|c| c.count).collect::<Vec<_>>(),
            "buffers": buffers.json(),
        });
        if self.timed {
            json["times"] = json!(instants);
            json["shown"] = json!(trace.shown());
        }
        json
    }

    /// The transfers and computations in the order in which they start; those that start together,
    /// each after what it waits for.
    fn nodes(
        &self,
        instants: &[f64],
        names: &mut [Numbers],
        (buffers, finest): (&Buffers, Option<&FinestParts>),
    ) -> Vec<PageNode> {
        let (trace, prepared) = (&self.trace, self.simulation.prepared());
        let mut order: Vec<usize> = (0..prepared.nodes().len()).collect();
        let start = |&node: &usize| self.simulation.start(node);
        order.sort_by(|a, b| start(a).total_cmp(&start(b)));
        let mut place = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            place[old] = new;
        }
        let mut nodes: Vec<PageNode> = order.iter().map(|_| PageNode::default()).collect();
        let instant = |t: f64| instants.partition_point(|&i| i < t);
        let (compute_lanes, _) = trace.compute_lanes();
        let separate = computations_overlap(trace);
        let delayed = !self.cost.is_ideal();
        let reasons = self.simulation.reasons(self.schedule);
        for (i, a) in trace.activities.iter().enumerate() {
            let Some(old) = prepared.node(a.rank, a.event()) else {
                continue;
            };
            let node = &mut nodes[place[old]];
            let compute_lane = compute_lanes[i].filter(|_| separate);
            let lane = trace.list(a).or(compute_lane.map(|l| trace.lists() + l));
            let (rank, step) = (a.rank, a.step);
            let times = (instant(a.start), instant(a.end));
            let end = NodeEnd { rank, step, lane };
            let own = match a.what {
                What::Send => 0..1,
                What::Receive | What::ReceiveCombine => 1..2,
                What::Combine | What::Copy => 0..2,
            };
            node.ends[own.clone()].fill(end);
            node.times[own].fill(times);
            node.what = KINDS.iter().position(|&k| k == a.what).unwrap_or(0);
            let (number, name) = match finest {
                Some(finest) => finest.name(trace, a).unzip(),
                None => (color_number(trace, a), part_name(trace, "segment", a)),
            };
            node.part = name.map(|name| names[0].number(name));
            node.color = color(number);
            node.bytes = a.bytes;
            node.critical = a.critical;
            let code = |(side, reason, wait): (End, WaitReason, Option<(usize, End)>)| {
                let reason = names[1].number(format!("{reason:?}").to_lowercase());
                let (awaited, end) = wait.unwrap_or((old, side));
                let back = signed(place[old]) - signed(place[awaited]);
                (back, 4 * reason + 2 * side as usize + end as usize)
            };
            let ends = &[End::Sender, End::Receiver][usize::from(!delayed || a.port.is_none())..];
            let bindings = ends.iter().map(|&end| reasons.binding(old, end));
            node.after = if self.timed {
                bindings.map(code).collect()
            } else {
                reasons.waits(old).map(code).collect()
            };
            if self.writes(a) {
                node.writes = buffers.written(a.rank, a.step);
            }
        }
        nodes
    }

    /// Whether the end of an activity is the end of a step that writes.
    fn writes(&self, a: &Activity) -> bool {
        let computes = self.schedule.programs()[a.rank][a.step].computes();
        a.what != What::Send && (a.port.is_none() || !computes)
    }
}

/// The kinds of nodes; the page knows them by their number here.
const KINDS: [What; 3] = [What::Receive, What::Combine, What::Copy];

fn columns(nodes: &[PageNode], timed: bool) -> Value {
    let column = |of: &dyn Fn(&PageNode) -> Value| nodes.iter().map(of).collect::<Value>();
    // Small numbers keep pages small: `wait` counts instants since the node before has started,
    // `lasts` counts instants, `after` counts back, and `size` is the place in the list of sizes.
    let start = |n: &PageNode| n.times[0].0;
    let before = nodes.iter().scan(0, |last, n| {
        Some(start(n) - std::mem::replace(last, start(n)))
    });
    let sizes: BTreeSet<u64> = nodes.iter().map(|n| n.bytes).collect();
    let lane = |end: &NodeEnd| json!(end.lane.map_or(-1, signed));
    let critical = nodes.iter().enumerate().filter(|(_, n)| n.critical);
    let mut columns = json!({
        "kind": column(&|n| json!(n.what)),
        "from": column(&|n| json!(n.ends[0].rank)), "to": column(&|n| json!(n.ends[1].rank)),
        "sendStep": column(&|n| json!(n.ends[0].step)), "step": column(&|n| json!(n.ends[1].step)),
        "outLane": column(&|n| lane(&n.ends[0])), "lane": column(&|n| lane(&n.ends[1])),
        "part": column(&|n| json!(n.part.map_or(-1, signed))),
        "color": column(&|n| json!(n.color)), "sizes": sizes, "size": column(&|n| json!(sizes.range(..n.bytes).count())),
        "after": column(&|n| n.after.iter().map(|a| a.0).collect()),
        "why": column(&|n| n.after.iter().map(|a| a.1).collect()), "writes": column(&|n| json!(n.writes)),
    });
    if timed {
        columns["wait"] = before.collect();
        columns["lasts"] = column(&|n| json!(n.times[1].1 - start(n)));
        // How long it lasts at its sender, and how much later it starts at its receiver.
        if nodes.iter().any(|n| n.times[0] != n.times[1]) {
            columns["sent"] = column(&|n| json!(n.times[0].1 - start(n)));
            columns["comes"] = column(&|n| json!(n.times[1].0 - start(n)));
        }
        columns["critical"] = critical.map(|(i, _)| i).collect();
    }
    columns
}

/// What waits for ever.
fn waits(trace: &Trace) -> Value {
    let wait = |wait: &Wait| {
        let sends = wait.what == What::Send;
        let list = wait.list(trace.ports);
        json!({
            "rank": wait.rank, "step": wait.step, "since": wait.since, "cycle": wait.in_cycle,
            "alone": wait.alone, "behind": wait.behind.map(|(step, why)| json!([step, format!("{why:?}").to_lowercase()])),
            "lane": list.map_or(-1, signed), "sends": sends,
            "peer": wait.port.and(wait.peer).map_or(-1, signed),
            "words": doing(wait.what, wait.peer),
        })
    };
    trace.waits.iter().map(wait).collect()
}

/// What the colours mean: a heading, and the colour and name of every block, part or segment.
fn legend(trace: &Trace, finest: Option<&FinestParts>) -> Value {
    if let Some(finest) = finest {
        let entries = finest.parts();
        let entries = entries.map(|part| json!([color(Some(part)), finest.words(part)]));
        let title = "Colour of the first part of the vector in a message or a cell of a buffer:";
        return json!({"title": title, "entries": entries.collect::<Value>()});
    }
    let named = trace.activities.iter().filter_map(|a| {
        let number = color_number(trace, a)?;
        let name = match a.blocks {
            Some(_) => format!("block {number}"),
            None => part_name(trace, "segment", a)?,
        };
        Some((number, name))
    });
    let entries: BTreeMap<usize, String> = named.collect();
    let entries = entries
        .iter()
        .map(|(&n, name)| json!([color(Some(n)), name]));
    let title = if trace.blocks.is_empty() {
        "Colours:"
    } else {
        "Colour of the first block that a message carries:"
    };
    json!({"title": title, "entries": entries.collect::<Value>()})
}

/// Numbers distinct names in the order of their first use.
#[derive(Default)]
struct Numbers {
    names: Vec<String>,
    numbers: BTreeMap<String, usize>,
}

impl Numbers {
    fn number(&mut self, name: String) -> usize {
        let next = self.names.len();
        *self.numbers.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            next
        })
    }
}
