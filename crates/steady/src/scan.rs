//! Searches the best route for a series of scans (parallel prefixes) that all follow the same
//! route.
//!
//! Rank `i` receives the combination of the contributions of ranks `0..=i`. To find the best
//! throughput of a series of scans is NP-hard (Beaumont, Legrand, Marchal, Robert 2004). Here all
//! operations follow one route: a partial result gets to a node in one way, over an edge or as the
//! combination of two parts, and may be used there any number of times. The throughput of a route
//! is 1 over the time for which it keeps the busiest port busy (for unidirectional ports, also the
//! busiest odd set of them).
//!
//! 1. The prefixes are added one by one, each in the cheapest way under prices of the activities
//!    ([`PartialResults`]); partial results that are there already are free. Then the prices of
//!    busy activities rise, and the next round starts anew. The best route of all rounds is kept.
//! 2. On small platforms all routes are searched, node by node, skipping those that are no better.
//!    If this search ends, no single route is better.
//!
//! An upper bound is the last rank's prefix: a reduction in rank order, whose throughput is
//! computed exactly.

use std::collections::HashMap;

use super::colouring::{Slotted, general_slots, violated_sets, within};
use super::fraction::{Fraction, to_finite, whole};
use super::partial_results::PartialResults;
use super::platform::Platform;
use super::ports::{PortGraph, Slot};
use super::route::{Route, Task, TaskGraph};
use oneport::error::{Error, Result};
use oneport::machine::Ports;

pub(super) struct BestRoute {
    pub(super) route: Route,
    /// Time for which one operation keeps the busiest port or odd set busy.
    pub(super) time: Fraction,
    pub(super) slots: Vec<Slot>,
    /// Whether all routes were searched.
    pub(super) is_optimal: bool,
}

const ROUNDS: usize = 60;
/// Limit of the work in all rounds together: rounds times the fifth power of the nodes.
const MAX_PRICED: usize = 40_000_000;
/// Limit of the steps of the search of all routes.
const MAX_VISITS: usize = 100_000;
/// All routes are searched on platforms of up to this many nodes.
const MAX_SEARCHED: usize = 6;

/// Finds the best single route for a series of scans, where every rank can reach the next one.
pub(super) fn best_scan(platform: &Platform, ports: Ports) -> Result<BestRoute> {
    let unit = platform.unit();
    let mut best = best_in_units(&platform.in_units_of(&unit), ports)?;
    best.time *= unit;
    Ok(best)
}

/// Solves the problem for a platform whose costs are in units of the smallest one. The
/// floating-point prices then lead to the same route whatever unit of time the costs were given in.
fn best_in_units(platform: &Platform, ports: Ports) -> Result<BestRoute> {
    let n = platform.nodes();
    let mut scans = Scans::new(platform, ports);
    let rounds = (MAX_PRICED / n.pow(5)).clamp(1, ROUNDS);
    for upwards in [true, false] {
        let mut prices: Vec<f64> = scans.graph.costs.iter().map(to_finite).collect();
        for round in 0..rounds {
            let task_graph = scans.priced(&prices, upwards)?;
            let busy = scans.busy(&task_graph);
            scans.keep(task_graph, &busy)?;
            scans.graph.raise_prices(&mut prices, &busy, round);
        }
    }
    let is_optimal = n <= MAX_SEARCHED && scans.search()?;
    let Some((time, task_graph)) = scans.best else {
        return Err(Error::system("no scan was found"));
    };
    let route = Route::of_tasks(task_graph);
    let loads = scans.graph.loads([(&route, whole(1) / &time)]);
    match general_slots(&scans.graph, &loads, &[])? {
        Slotted::Fits(slots) => Ok(BestRoute {
            route,
            time,
            slots,
            is_optimal,
        }),
        Slotted::Violates(_) => Err(Error::system("a scan does not fit into its own time")),
    }
}

/// Returns the least time that these times of activities fit into: that of the busiest port or odd
/// set of ports.
pub(super) fn time_of(graph: &PortGraph, loads: &[Fraction]) -> Result<Fraction> {
    let mut time = graph.busy(loads).into_iter().max().unwrap_or_default();
    if graph.relays || time.is_zero() {
        return Ok(time);
    }
    loop {
        let shares: Vec<Fraction> = loads.iter().map(|w| w / &time).collect();
        let mut sets = violated_sets(graph, &shares);
        if sets.is_empty() {
            match general_slots(graph, &shares, &[])? {
                Slotted::Fits(_) => return Ok(time),
                Slotted::Violates(violated) => sets = violated,
            }
        }
        let busiest = sets
            .iter()
            .map(|s| within(graph, loads, s) / whole((s.len() - 1) / 2));
        match busiest.max() {
            Some(longer) if longer > time => time = longer,
            _ => {
                return Err(Error::system(
                    "violated odd sets are not busier than the ports",
                ));
            }
        }
    }
}

struct Scans<'a> {
    platform: &'a Platform,
    graph: PortGraph,
    partials: PartialResults,
    splits: Vec<Vec<(usize, usize)>>,
    into: Vec<Vec<usize>>,
    best: Option<(Fraction, TaskGraph)>,
}

/// A partial result, by number, on a node.
type PartialAt = (usize, usize);

impl<'a> Scans<'a> {
    fn new(platform: &'a Platform, ports: Ports) -> Scans<'a> {
        let computing = platform.computes();
        let partials = PartialResults {
            owners: (0..platform.nodes()).collect(),
            ordered: true,
        };
        let mut into = vec![Vec::new(); platform.nodes()];
        for (i, e) in platform.edges().iter().enumerate() {
            into[e.dst].push(i);
        }
        Scans {
            platform,
            graph: PortGraph::new(platform, ports, computing),
            splits: partials.splits(),
            partials,
            into,
            best: None,
        }
    }

    /// The prefix of rank `i` on rank `i`.
    fn goal(&self, i: usize) -> PartialAt {
        (self.partials.interval(0, i + 1), i)
    }

    /// Adds all prefixes one by one, each in the cheapest way given the partial results made so
    /// far.
    fn priced(&self, prices: &[f64], upwards: bool) -> Result<TaskGraph> {
        let n = self.platform.nodes();
        let (edges, computing) = prices.split_at(self.platform.edges().len());
        let mut task_graph = TaskGraph::of(self.partials.owners.clone());
        let mut made: HashMap<PartialAt, usize> =
            (0..n).map(|i| ((self.partials.single(i), i), i)).collect();
        for i in (1..n).map(|i| if upwards { i } else { n - i }) {
            let there = |state| made.contains_key(&state);
            let table = self
                .partials
                .table_with(self.platform, edges, computing, there);
            let goal = self.goal(i);
            table
                .extract(self.platform, goal, &mut made, &mut task_graph)
                .ok_or_else(|| Error::system("a prefix was not found"))?;
        }
        task_graph.results = (0..n).map(|i| made[&self.goal(i)]).collect();
        Ok(task_graph)
    }

    fn loads(&self, task_graph: &TaskGraph) -> Vec<Fraction> {
        let route = Route::of_tasks(task_graph.clone());
        self.graph.loads([(&route, whole(1))])
    }

    fn busy(&self, task_graph: &TaskGraph) -> Vec<f64> {
        let loads = self.loads(task_graph);
        let loads: Vec<f64> = loads.iter().map(to_finite).collect();
        self.graph.busy(&loads)
    }

    fn keep(&mut self, task_graph: TaskGraph, busy: &[f64]) -> Result<()> {
        let min_time = busy.iter().copied().fold(0.0, f64::max);
        if let Some((time, _)) = &self.best
            && min_time > to_finite(time) * (1.0 + 1e-9)
        {
            return Ok(());
        }
        let time = time_of(&self.graph, &self.loads(&task_graph))?;
        if self.best.as_ref().is_none_or(|(best, _)| time < *best) {
            self.best = Some((time, task_graph));
        }
        Ok(())
    }

    /// Searches all routes. Returns whether the search ended within its limit.
    fn search(&mut self) -> Result<bool> {
        let n = self.platform.nodes();
        let mut search = RouteSearch {
            made: HashMap::new(),
            order: (1..n).map(|i| self.goal(i)).collect(),
            at: 0,
            busy: vec![Fraction::ZERO; self.graph.len()],
            visits: 0,
        };
        self.decide(&mut search)?;
        Ok(search.visits < MAX_VISITS)
    }

    fn decide(&mut self, search: &mut RouteSearch) -> Result<()> {
        search.visits += 1;
        if search.visits >= MAX_VISITS {
            return Ok(());
        }
        let Some(&state) = search.order.get(search.at) else {
            let task_graph = search.task_graph(self);
            let busy = self.busy(&task_graph);
            return self.keep(task_graph, &busy);
        };
        let (set, v) = state;
        if self.partials.single(v) == set || search.made.contains_key(&state) {
            search.at += 1;
            self.decide(search)?;
            search.at -= 1;
            return Ok(());
        }
        let edges = self.platform.edges().len();
        let moves = self.into[v].iter();
        let moves = moves.map(|&e| (e, vec![(set, self.platform.edges()[e].src)]));
        let joined = self.splits[set].iter();
        let joined = joined.map(|&(a, b)| (edges + v, vec![(a, v), (b, v)]));
        let mut ways: Vec<(usize, Vec<PartialAt>)> = joined.chain(moves).collect();
        // Parts are made recursively. A way that needs the state itself is circular and is skipped.
        ways.retain(|(_, needs)| !needs.iter().any(|&need| search.needs(need, state)));
        for (activity, needs) in ways {
            let link = self.graph.links().get(activity).copied();
            let cost = self.graph.costs.get(activity).cloned().unwrap_or_default();
            if let Some((a, b)) = link {
                search.busy[a] += &cost;
                search.busy[b] += &cost;
            }
            let fits = match (&self.best, link) {
                (Some((best, _)), Some((a, b))) => search.busy[a] < *best && search.busy[b] < *best,
                _ => true,
            };
            if fits {
                let known = search.order.len();
                search.order.extend(&needs);
                search.made.insert(state, (activity, needs));
                search.at += 1;
                self.decide(search)?;
                search.at -= 1;
                search.made.remove(&state);
                search.order.truncate(known);
            }
            if let Some((a, b)) = link {
                search.busy[a] -= &cost;
                search.busy[b] -= &cost;
            }
        }
        Ok(())
    }
}

struct RouteSearch {
    /// By decided state, the activity that produces it and the states that it needs.
    made: HashMap<PartialAt, (usize, Vec<PartialAt>)>,
    /// The requested states; those before `at` are decided.
    order: Vec<PartialAt>,
    at: usize,
    busy: Vec<Fraction>,
    visits: usize,
}

impl RouteSearch {
    /// Whether `state` needs `other` according to the decisions so far.
    fn needs(&self, state: PartialAt, other: PartialAt) -> bool {
        let mut open = vec![state];
        while let Some(s) = open.pop() {
            if s == other {
                return true;
            }
            if let Some((_, needs)) = self.made.get(&s) {
                open.extend(needs);
            }
        }
        false
    }

    fn task_graph(&self, scans: &Scans<'_>) -> TaskGraph {
        let (n, edges) = (scans.platform.nodes(), scans.platform.edges().len());
        let mut task_graph = TaskGraph::of(scans.partials.owners.clone());
        let mut value: HashMap<PartialAt, usize> =
            (0..n).map(|i| ((scans.partials.single(i), i), i)).collect();
        let mut open: Vec<PartialAt> = (1..n).rev().map(|i| scans.goal(i)).collect();
        while let Some(&state) = open.last() {
            if value.contains_key(&state) {
                open.pop();
                continue;
            }
            let Some((activity, needs)) = self.made.get(&state) else {
                break;
            };
            let missing = needs.iter().copied().filter(|s| !value.contains_key(s));
            let missing: Vec<PartialAt> = missing.collect();
            if missing.is_empty() {
                let task = match needs[..] {
                    [from] => Task::Move {
                        edge: *activity,
                        value: value[&from],
                    },
                    _ => Task::Combine {
                        node: activity - edges,
                        left: value[&needs[0]],
                        right: value[&needs[1]],
                    },
                };
                value.insert(state, task_graph.add(task));
                open.pop();
            } else {
                open.extend(missing);
            }
        }
        let results = (0..n).filter_map(|i| value.get(&scans.goal(i)).copied());
        task_graph.results = results.collect();
        task_graph
    }
}
