//! Searches the best single tree, which all messages of a series follow.
//!
//! A tree is bipartite, so its transfers fit into slots that last as long as its busiest port is
//! busy, and the throughput of a tree is 1 over that time. To find the tree that minimises this
//! time is NP-hard. The search goes on until a route takes no longer than the throughput of many
//! routes allows:
//!
//! 1. The first routes are those of the solution, the cheapest route, and the cheapest ones under
//!    prices that rise at busy ports. Where every node sends to all, also the paths around a cycle
//!    through all nodes: every port then carries the messages of all roots but one.
//! 2. The best of them are improved by exchanging single edges of one root's tree. A series of
//!    exchanges often has to relieve one busiest port after the other. So an exchange counts if the
//!    times of all ports, the longest first, are lexicographically smaller. Where there is none,
//!    one that leaves them equal moves the load elsewhere, once for each node of a tree.
//! 3. On platforms with few trees that span all nodes, all of these are tried, with bounds.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use dashu_int::IBig;

use super::demand::{Combining, Wanted};
use super::fraction::{Fraction, over_common, to_finite, whole};
use super::platform::Platform;
use super::ports::PortGraph;
use super::problem::{Operation, Solution};
use super::route::{Arborescence, Route};
use super::scan::time_of;
use oneport::error::{Error, Result};
use oneport::internal::numbers::id;

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
/// Limits of the rounds with rising prices, and of their work all together: what a cheapest route
/// takes, in steps of some nanoseconds.
const ROUNDS: usize = 60;
const MAX_PRICED: usize = 20_000_000;
/// Number of routes that are improved by exchanges.
const IMPROVED: usize = 3;
/// Limit of the exchanges that are tried, times the nodes of the platform.
const MAX_EXCHANGES: usize = 2_000_000;

/// Finds a good single route for the solution's operation: the cheapest ones under prices that rise
/// at busy ports, improved by exchanging single edges. It is proved to be the best one where it is
/// as good as many routes are, and for broadcasts and reductions with free combining where all
/// trees can be searched.
///
/// # Complexity
/// The search of all trees visits at most 200 000 partial trees; if it ends before, the tree is
/// optimal.
///
/// # Errors
/// When the operation cannot be performed on the platform.
pub fn best_single(solution: &Solution) -> Result<Single> {
    let unit = solution.platform().unit();
    let platform = solution.platform().in_units_of(&unit);
    let demand = solution.operation.demand(&platform)?;
    let graph = PortGraph::new(&platform, solution.ports, solution.computing());
    let (costs, below) = over_common(&graph.costs);
    let mut search = SingleSearch {
        platform: &platform,
        needs_slots: demand.combining.is_some() || demand.roots.len() > 1,
        demand: &demand,
        costs,
        below: Fraction::from(below),
        graph,
        // Nothing is faster than many routes are, if that is known.
        enough: (solution.is_optimal).then(|| whole(1) / (&solution.throughput * &unit)),
        found: Vec::new(),
    };
    for (route, _) in &solution.routes {
        search.keep(route.clone())?;
    }
    if solution.operation != Operation::Scan {
        search.price()?;
    }
    let spans_all = (demand.targets.iter()).all(|t| t.len() + 1 == platform.nodes());
    let is_tree = !demand.personal && demand.combining.is_none();
    if demand.roots.len() > 1 && is_tree && spans_all && !search.is_enough() {
        search.go_round()?;
    }
    if demand.combining.is_none() {
        search.exchange()?;
    }
    let mut is_optimal = search.is_enough();
    if demand.roots.len() == 1 && is_tree && spans_all && !is_optimal {
        is_optimal = search.try_all()?;
    }
    let Some((time, route)) = search.found.into_iter().next() else {
        return Err(Error::system("a solution without routes"));
    };
    if solution.operation == Operation::Scan {
        is_optimal = solution.all_searched || solution.is_optimal;
    }
    Ok(Single {
        route,
        throughput: whole(1) / (time * unit),
        is_optimal,
    })
}

struct SingleSearch<'a> {
    platform: &'a Platform,
    demand: &'a Wanted,
    graph: PortGraph,
    /// The graph's costs are these whole numbers over one denominator.
    costs: Vec<IBig>,
    below: Fraction,
    /// Whether a route may need longer than its busiest port is busy.
    needs_slots: bool,
    /// No route takes less time.
    enough: Option<Fraction>,
    /// The best routes so far and their times, the best one first.
    found: Vec<(Fraction, Route)>,
}

impl SingleSearch<'_> {
    fn is_enough(&self) -> bool {
        let best = self.found.first().map(|(time, _)| time);
        best.is_some() && best == self.enough.as_ref()
    }

    fn keep(&mut self, route: Route) -> Result<()> {
        let loads = self.graph.loads([(&route, whole(1))]);
        let mut time = self.graph.busy(&loads).into_iter().max();
        let is_good = |time: &Fraction| {
            self.found.len() < IMPROVED || self.found.iter().any(|(other, _)| time < other)
        };
        if self.needs_slots && time.as_ref().is_some_and(is_good) {
            time = Some(time_of(&self.graph, &loads)?);
        }
        let time = time.unwrap_or_default();
        if is_good(&time) && self.found.iter().all(|(_, other)| *other != route) {
            let at = self.found.partition_point(|(other, _)| *other <= time);
            self.found.insert(at, (time, route));
            self.found.truncate(IMPROVED);
        }
        Ok(())
    }

    /// Keeps the cheapest route, and those that are the cheapest while prices rise at busy ports.
    fn price(&mut self) -> Result<()> {
        let rounds = (MAX_PRICED / self.pricing_work().max(1)).clamp(1, ROUNDS);
        let mut prices: Vec<f64> = self.graph.costs.iter().map(to_finite).collect();
        for round in 0..rounds {
            let Some(route) = self.demand.cheapest(self.platform, &prices) else {
                return Ok(());
            };
            let loads = self.graph.loads([(&route, whole(1))]);
            let loads: Vec<f64> = loads.iter().map(to_finite).collect();
            let busy = self.graph.busy(&loads);
            self.keep(route)?;
            if self.is_enough() {
                return Ok(());
            }
            self.graph.raise_prices(&mut prices, &busy, round);
        }
        Ok(())
    }

    /// The steps that the search of a cheapest route takes, about.
    fn pricing_work(&self) -> usize {
        let (n, edges) = (self.platform.nodes(), self.platform.edges().len());
        match &self.demand.combining {
            Some(Combining::Partial(partials)) if partials.ordered => n.pow(5),
            Some(Combining::Partial(_)) => 3usize.pow(id(n)) * n * n,
            Some(Combining::Trees) => n * edges,
            None => {
                let of = |targets: &Vec<usize>| self.demand.tree_work(n, edges, targets.len());
                self.demand.targets.iter().map(of).sum()
            }
        }
    }

    /// Improves the best routes by exchanges.
    fn exchange(&mut self) -> Result<()> {
        let mut left = MAX_EXCHANGES / self.platform.nodes();
        for (_, route) in self.found.clone() {
            if self.is_enough() {
                return Ok(());
            }
            let mut trees = Trees::new(self, route.trees);
            while trees.exchange(self, &mut left) {}
            self.keep(Route {
                trees: trees.trees,
                ..Route::default()
            })?;
        }
        Ok(())
    }

    /// Keeps the paths around a cycle of the cheapest edges with which one is found.
    fn go_round(&mut self) -> Result<()> {
        let edges = self.platform.edges();
        let limits: BTreeSet<&Fraction> = edges.iter().map(|edge| &edge.cost).collect();
        let mut left = MAX_VISITS;
        let mut cycles = limits.into_iter().map(|limit| {
            let mut cycle = Cycle::new(self.platform, limit, left);
            let is_found = cycle.extend(0);
            left = cycle.left;
            is_found.then_some(cycle.leaving)
        });
        let Some(leaving) = cycles.find_map(|cycle| cycle) else {
            return Ok(());
        };
        let path = |&root: &usize| {
            let mut at = root;
            let path = std::iter::from_fn(|| {
                let edge = leaving[at]?;
                at = edges[edge].dst;
                (at != root).then_some(edge)
            });
            let edges: Vec<usize> = path.collect();
            Arborescence {
                root,
                messages: vec![1; edges.len()],
                edges,
            }
        };
        self.keep(Route {
            trees: self.demand.roots.iter().map(path).collect(),
            ..Route::default()
        })
    }

    /// Tries all trees that span all nodes. Returns whether it could.
    fn try_all(&mut self) -> Result<bool> {
        let (demand, root) = (self.demand, self.demand.roots[0]);
        let min_time = self.found.first().map(|(time, _)| time.clone());
        let min_time = min_time.unwrap_or_default();
        let mut search = TreeSearch::new(self.platform, &self.graph, root, min_time);
        let is_complete = search.search_all();
        let best = search.best.take();
        let tree = best.and_then(|e| demand.pruned(self.platform, root, &demand.targets[0], &e));
        if let Some(tree) = tree {
            self.keep(Route::of(tree))?;
        }
        Ok(is_complete)
    }
}

/// The search of a cycle through all nodes, along edges of at most some cost: next comes the node
/// from which the fewest nodes can follow (Warnsdorff 1823).
struct Cycle {
    /// By node, the edges that may leave it, and their ends.
    onward: Vec<Vec<(usize, usize)>>,
    /// By node, the edge of the cycle that leaves it.
    leaving: Vec<Option<usize>>,
    nodes: usize,
    left: usize,
}

impl Cycle {
    fn new(platform: &Platform, limit: &Fraction, left: usize) -> Cycle {
        let mut onward = vec![Vec::new(); platform.nodes()];
        for (i, edge) in platform.edges().iter().enumerate() {
            if edge.cost <= *limit {
                onward[edge.src].push((i, edge.dst));
            }
        }
        Cycle {
            onward,
            leaving: vec![None; platform.nodes()],
            nodes: 1,
            left,
        }
    }

    /// Extends the path, which starts at node 0, from its end; returns whether a cycle was found.
    fn extend(&mut self, end: usize) -> bool {
        let open = |cycle: &Cycle, node: usize| cycle.leaving[node].is_none();
        if self.nodes == self.leaving.len() {
            let back = self.onward[end].iter().find(|(_, to)| *to == 0);
            self.leaving[end] = back.map(|(edge, _)| *edge);
            return back.is_some();
        }
        let mut next = self.onward[end].clone();
        next.retain(|&(_, to)| to != 0 && to != end && open(self, to));
        next.sort_by_cached_key(|&(_, to)| {
            let after = self.onward[to].iter();
            after.filter(|&&(_, to)| open(self, to)).count()
        });
        for (edge, to) in next {
            if self.left == 0 {
                return false;
            }
            self.left -= 1;
            self.nodes += 1;
            self.leaving[end] = Some(edge);
            if self.extend(to) {
                return true;
            }
            self.leaving[end] = None;
            self.nodes -= 1;
        }
        false
    }
}

/// A route of trees that is improved by exchanges of single edges.
struct Trees {
    trees: Vec<Arborescence>,
    /// By port, how long it is busy.
    busy: Vec<IBig>,
    /// Trees and nodes of the exchanges since the last one that helped, which only moved load.
    moved: BTreeSet<(usize, usize)>,
}

impl Trees {
    fn new(search: &SingleSearch<'_>, trees: Vec<Arborescence>) -> Trees {
        let mut busy = vec![IBig::ZERO; search.graph.len()];
        for tree in &trees {
            add(&mut busy, search, tree, 1);
        }
        let moved = BTreeSet::new();
        Trees { trees, busy, moved }
    }

    /// By node: the edges into it, from the least busy senders first, where most of the exchanges
    /// that help are.
    fn entries(&self, search: &SingleSearch<'_>) -> Vec<Vec<usize>> {
        let mut entries: Vec<Vec<usize>> = vec![Vec::new(); search.platform.nodes()];
        for (i, edge) in search.platform.edges().iter().enumerate() {
            entries[edge.dst].push(i);
        }
        for entries in &mut entries {
            entries.sort_by_key(|&e| &self.busy[search.graph.links()[e].0] + &search.costs[e]);
        }
        entries
    }

    /// Makes one exchange that relieves a busiest port. Returns false if there is none, if none is
    /// needed, or if as many as `left` have been tried.
    fn exchange(&mut self, search: &SingleSearch<'_>, left: &mut usize) -> bool {
        let (platform, demand, links) = (search.platform, search.demand, search.graph.links());
        let edges = platform.edges();
        let Some(most) = self.busy.iter().max() else {
            return false;
        };
        if Some(Fraction::from(most.clone()) / &search.below) == search.enough {
            return false;
        }
        let mut sideways = None;
        let is_busiest = |edge: usize| {
            let (out, into) = links[edge];
            self.busy[out] == *most || self.busy[into] == *most
        };
        let entries = self.entries(search);
        for (at, tree) in self.trees.iter().enumerate() {
            let mut entering = vec![None; platform.nodes()];
            // A message of its own passes the ports before it, too.
            let mut passes_busiest = vec![false; platform.nodes()];
            for &e in &tree.edges {
                let (from, to) = (edges[e].src, edges[e].dst);
                entering[to] = Some(e);
                passes_busiest[to] = is_busiest(e) || demand.personal && passes_busiest[from];
            }
            for &old in &tree.edges {
                let node = edges[old].dst;
                if !passes_busiest[node] {
                    continue;
                }
                for &new in &entries[node] {
                    let from = edges[new].src;
                    if new == old || from != tree.root && entering[from].is_none() {
                        continue;
                    }
                    if *left == 0 {
                        return false;
                    }
                    *left -= 1;
                    entering[node] = Some(new);
                    let targets = &demand.targets[at];
                    let tried = demand.pruned(platform, tree.root, targets, &entering);
                    entering[node] = Some(old);
                    // A node below this one would leave a cycle.
                    let Some(tried) = tried else {
                        continue;
                    };
                    let mut busy = self.busy.clone();
                    add(&mut busy, search, tree, -1);
                    add(&mut busy, search, &tried, 1);
                    match longest_first(&busy, &self.busy) {
                        Ordering::Less => {
                            (self.busy, self.trees[at]) = (busy, tried);
                            self.moved.clear();
                            return true;
                        }
                        Ordering::Equal if !self.moved.contains(&(at, node)) => {
                            sideways.get_or_insert((at, node, tried, busy));
                        }
                        _ => {}
                    }
                }
            }
        }
        let Some((at, node, tree, busy)) = sideways else {
            return false;
        };
        (self.busy, self.trees[at]) = (busy, tree);
        self.moved.insert((at, node))
    }
}

/// Adds the time of a tree's messages to that of the ports, or takes it away.
fn add(busy: &mut [IBig], search: &SingleSearch<'_>, tree: &Arborescence, sign: i8) {
    for (&e, &messages) in tree.edges.iter().zip(&tree.messages) {
        let (out, into) = search.graph.links()[e];
        let time = &search.costs[e] * IBig::from(messages) * IBig::from(sign);
        busy[out] += &time;
        busy[into] += &time;
    }
}

/// Compares times of ports: the longest, then the second longest, and so on.
fn longest_first(a: &[IBig], b: &[IBig]) -> Ordering {
    let [mut a, mut b] = [a, b].map(|times| times.iter().collect::<Vec<_>>());
    for times in [&mut a, &mut b] {
        times.sort_unstable_by(|x, y| y.cmp(x));
    }
    a.cmp(&b)
}

/// The search of all trees, node by node: first the nodes that send but are not entered yet, whose
/// ports leave the fewest choices. It skips partial trees that are no better than the best tree.
struct TreeSearch<'a> {
    platform: &'a Platform,
    graph: &'a PortGraph,
    root: usize,
    into: Vec<Vec<usize>>,
    min_time: Fraction,
    best: Option<Vec<Option<usize>>>,
    entering: Vec<Option<usize>>,
    /// By node, the nodes that it sends to.
    children: Vec<usize>,
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
            children: vec![0; n],
            busy: vec![Fraction::ZERO; graph.len()],
            visits: 0,
        }
    }

    /// Returns whether the search was complete.
    fn search_all(&mut self) -> bool {
        self.choose();
        self.visits < MAX_VISITS
    }

    fn choose(&mut self) {
        self.visits += 1;
        if self.visits >= MAX_VISITS {
            return;
        }
        let is_open = |&node: &usize| node != self.root && self.entering[node].is_none();
        let open = (0..self.platform.nodes()).rev().filter(is_open);
        let Some(node) = open.max_by_key(|&node| self.children[node] > 0) else {
            if let Some(most) = self.busy.iter().max() {
                self.min_time = most.clone();
                self.best = Some(self.entering.clone());
            }
            return;
        };
        for i in self.into[node].clone() {
            let edge = &self.platform.edges()[i];
            let (out, into) = self.graph.links()[i];
            self.busy[out] += &edge.cost;
            self.busy[into] += &edge.cost;
            let fits = self.busy[out] < self.min_time && self.busy[into] < self.min_time;
            if fits && !self.leads_back(edge.src, node) {
                let from = edge.src;
                self.entering[node] = Some(i);
                self.children[from] += 1;
                self.choose();
                self.children[from] -= 1;
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
