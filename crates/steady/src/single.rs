//! Searches the best single tree, which all messages of a series follow.
//!
//! A tree is bipartite, so its transfers fit into slots that last as long as its busiest port is
//! busy, and the throughput of a tree is 1 over that time. To find the tree that minimises this
//! time is NP-hard. On platforms with few trees all of them are tried, with bounds. Otherwise,
//! trees from several starts are improved by exchanging single edges.

use super::demand::Wanted;
use super::fraction::{Fraction, over_common, whole};
use super::platform::Platform;
use super::ports::PortGraph;
use super::problem::{Operation, Solution};
use super::route::Route;
use super::scan::time_of;
use oneport::error::{Error, Result};

/// One route that all operations follow.
#[derive(Debug, Clone)]
pub struct Single {
    /// The route.
    pub route: Route,
    /// Operations per time unit on this route alone.
    pub throughput: Fraction,
    /// Whether it is proved that no single route is better.
    pub is_optimal: bool,
}

/// Limit of the partial trees in the search of all trees.
const MAX_VISITS: usize = 200_000;

/// Finds the best single route for the solution's operation among the solution's own routes and the
/// cheapest route. For broadcasts and reductions with free combining it also searches all trees, up
/// to a limit.
///
/// # Complexity
/// The search of all trees visits at most 200 000 partial trees; if it ends before, the tree is
/// optimal.
///
/// # Errors
/// When the operation cannot be performed on the platform.
pub fn best_single(solution: &Solution) -> Result<Single> {
    let platform = solution.platform();
    let demand = solution.operation.demand(platform)?;
    let graph = solution.port_graph();
    let mut routes: Vec<Route> = solution.routes.iter().map(|(r, _)| r.clone()).collect();
    if solution.operation != Operation::Scan {
        routes.extend(demand.cheapest(platform, &over_common(&graph.costs).0));
    }
    let mut best: Option<(Fraction, Route)> = None;
    for route in routes {
        let time = if demand.combining.is_some() || demand.roots.len() > 1 {
            time_of(&graph, &graph.loads([(&route, whole(1))]))?
        } else {
            busy(&graph, &route)
        };
        if best.as_ref().is_none_or(|(min_time, _)| time < *min_time) {
            best = Some((time, route));
        }
    }
    let Some((mut min_time, mut route)) = best else {
        return Err(Error::system("a solution without routes"));
    };
    let mut is_optimal = false;
    let spans_all = (demand.targets.iter()).all(|t| t.len() + 1 == platform.nodes());
    let is_tree = !demand.personal && demand.combining.is_none();
    if demand.roots.len() == 1 && is_tree && spans_all {
        loop {
            let better = exchanged(platform, &graph, &demand, &route, &min_time);
            let Some((time, r)) = better else { break };
            (min_time, route) = (time, r);
        }
        let mut search = TreeSearch::new(platform, &graph, demand.roots[0], min_time.clone());
        is_optimal = search.search_all();
        if let Some(entering) = search.best {
            min_time = search.min_time;
            if let Some(tree) =
                demand.pruned(platform, demand.roots[0], &demand.targets[0], &entering)
            {
                route = Route::of(tree);
            }
        }
    }
    let throughput = whole(1) / min_time;
    is_optimal |= match solution.operation {
        Operation::Scan => solution.all_searched || solution.is_optimal,
        _ => solution.is_optimal && throughput == solution.throughput,
    };
    Ok(Single {
        route,
        throughput,
        is_optimal,
    })
}

/// Returns the time for which one operation keeps the busiest port busy.
fn busy(graph: &PortGraph, route: &Route) -> Fraction {
    let busy = graph.busy(&graph.loads([(route, whole(1))]));
    busy.into_iter().max().unwrap_or_default()
}

/// Returns a better tree that differs by one edge, if there is one.
fn exchanged(
    platform: &Platform,
    graph: &PortGraph,
    demand: &Wanted,
    route: &Route,
    min_time: &Fraction,
) -> Option<(Fraction, Route)> {
    let mut entering = vec![None; platform.nodes()];
    for &e in &route.trees[0].edges {
        entering[platform.edges()[e].dst] = Some(e);
    }
    for (i, e) in platform.edges().iter().enumerate() {
        let Some(old) = entering[e.dst].replace(i) else {
            entering[e.dst] = None;
            continue;
        };
        if old != i
            && let Some(tree) =
                demand.pruned(platform, demand.roots[0], &demand.targets[0], &entering)
        {
            let tried = Route::of(tree);
            let time = busy(graph, &tried);
            if time < *min_time {
                return Some((time, tried));
            }
        }
        entering[e.dst] = Some(old);
    }
    None
}

/// The search of all trees, node by node. It skips partial trees that are no better than the best
/// tree.
struct TreeSearch<'a> {
    platform: &'a Platform,
    graph: &'a PortGraph,
    root: usize,
    into: Vec<Vec<usize>>,
    min_time: Fraction,
    best: Option<Vec<Option<usize>>>,
    entering: Vec<Option<usize>>,
    busy: Vec<Fraction>,
    visits: usize,
}

impl<'a> TreeSearch<'a> {
    fn new(platform: &'a Platform, graph: &'a PortGraph, root: usize, min_time: Fraction) -> Self {
        let n = platform.nodes();
        let mut into = vec![Vec::new(); n];
        for (i, e) in platform.edges().iter().enumerate() {
            into[e.dst].push(i);
        }
        for edges in &mut into {
            edges.sort_by(|&a, &b| platform.edges()[a].cost.cmp(&platform.edges()[b].cost));
        }
        TreeSearch {
            platform,
            graph,
            root,
            into,
            min_time,
            best: None,
            entering: vec![None; n],
            busy: vec![Fraction::ZERO; graph.len()],
            visits: 0,
        }
    }

    /// Returns whether the search was complete.
    fn search_all(&mut self) -> bool {
        self.choose(0);
        self.visits < MAX_VISITS
    }

    fn choose(&mut self, node: usize) {
        self.visits += 1;
        if self.visits >= MAX_VISITS {
            return;
        }
        let n = self.platform.nodes();
        if node == n {
            if let Some(most) = self.busy.iter().max() {
                self.min_time = most.clone();
                self.best = Some(self.entering.clone());
            }
            return;
        }
        if node == self.root {
            self.choose(node + 1);
            return;
        }
        for i in self.into[node].clone() {
            let edge = &self.platform.edges()[i];
            let (out, into) = self.graph.links()[i];
            self.busy[out] += &edge.cost;
            self.busy[into] += &edge.cost;
            let fits = self.busy[out] < self.min_time && self.busy[into] < self.min_time;
            if fits && !self.leads_back(edge.src, node) {
                self.entering[node] = Some(i);
                self.choose(node + 1);
                self.entering[node] = None;
            }
            self.busy[out] -= &edge.cost;
            self.busy[into] -= &edge.cost;
        }
    }

    /// Whether the path from `v` up to the root leads through `node`.
    fn leads_back(&self, mut v: usize, node: usize) -> bool {
        loop {
            if v == node {
                return true;
            }
            match self.entering[v] {
                Some(e) => v = self.platform.edges()[e].src,
                None => return false,
            }
        }
    }
}
