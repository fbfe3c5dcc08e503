//! Routes: how one operation of a series moves its messages through the platform, and the search
//! for the cheapest routes.

use super::arborescence::arborescence;
use super::partial_results::PartialResults;
use super::platform::Platform;
use super::weight::Weight;

/// One way to perform one operation of the series. It consists of an arborescence for each root or,
/// where combining takes time or operands keep their order, of tasks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Route {
    /// The arborescences, by root.
    pub parts: Vec<Part>,
    /// The transfers and combinations, where the route consists of tasks.
    pub work: Work,
}

/// The transfers and combinations of one operation. Values are numbered: first the contributions,
/// then the results of the tasks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Work {
    /// By contribution, the node that owns it.
    pub owners: Vec<usize>,
    /// The tasks, each after the tasks that produce its operands.
    pub tasks: Vec<Task>,
    /// The requested values: the full result of a reduction, or the prefixes of a scan by rank.
    pub results: Vec<usize>,
}

/// A task of an operation that combines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Task {
    /// A value passes an edge.
    Move {
        /// The edge, by its number in the platform.
        edge: usize,
        /// The value.
        value: usize,
    },
    /// A node combines two values.
    Combine {
        /// The node.
        node: usize,
        /// The left operand.
        left: usize,
        /// The right operand.
        right: usize,
    },
}

impl Task {
    /// The operands of the task.
    pub fn takes(&self) -> impl Iterator<Item = usize> {
        let (first, second) = match *self {
            Task::Move { value, .. } => (value, None),
            Task::Combine { left, right, .. } => (left, Some(right)),
        };
        std::iter::once(first).chain(second)
    }
}

impl Work {
    /// Adds a task and returns the number of the value that it produces.
    pub(super) fn add(&mut self, task: Task) -> usize {
        self.tasks.push(task);
        self.owners.len() + self.tasks.len() - 1
    }

    /// Returns, by task, the length of the longest chain of tasks before it.
    pub fn delays(&self) -> Vec<usize> {
        let mut delays: Vec<usize> = Vec::with_capacity(self.tasks.len());
        for task in &self.tasks {
            let earlier = task
                .takes()
                .filter_map(|v| v.checked_sub(self.owners.len()));
            delays.push(earlier.map(|t| delays[t] + 1).max().unwrap_or(0));
        }
        delays
    }

    /// Returns, by value, the contributions combined in it, in the order of the operands.
    pub fn contents(&self) -> Vec<Vec<usize>> {
        let mut contents: Vec<Vec<usize>> = (0..self.owners.len()).map(|i| vec![i]).collect();
        for task in &self.tasks {
            contents.push(task.takes().flat_map(|v| contents[v].clone()).collect());
        }
        contents
    }

    /// Returns, by value, the node that holds it.
    pub fn nodes(&self, platform: &Platform) -> Vec<usize> {
        let made = self.tasks.iter().map(|task| match *task {
            Task::Move { edge, .. } => platform.edges()[edge].dst,
            Task::Combine { node, .. } => node,
        });
        self.owners.iter().copied().chain(made).collect()
    }
}

/// The arborescence of one root.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Part {
    /// The root.
    pub root: usize,
    /// The edges, by their number in the platform. Each edge comes after the one that enters its
    /// start.
    pub edges: Vec<usize>,
    /// The messages on each edge: 1, or, where every target gets a message of its own, the number
    /// of targets behind the edge.
    pub messages: Vec<usize>,
}

impl Route {
    /// A route of one arborescence.
    pub(super) fn of(part: Part) -> Route {
        Route {
            parts: vec![part],
            work: Work::default(),
        }
    }

    /// Returns the messages by edge: `(edge, messages)`, sorted by edge.
    pub fn loads(&self) -> Vec<(usize, usize)> {
        let mut loads: Vec<(usize, usize)> = Vec::new();
        for part in &self.parts {
            loads.extend(
                part.edges
                    .iter()
                    .copied()
                    .zip(part.messages.iter().copied()),
            );
        }
        loads.extend(self.work.tasks.iter().filter_map(|task| match *task {
            Task::Move { edge, .. } => Some((edge, 1)),
            Task::Combine { .. } => None,
        }));
        added(loads)
    }

    /// Returns the combinations by node: `(node, combinations)`, sorted by node. Empty where
    /// combining is free and happens on reception.
    pub fn combinations(&self) -> Vec<(usize, usize)> {
        let tasks = self.work.tasks.iter().filter_map(|task| match *task {
            Task::Combine { node, .. } => Some((node, 1)),
            Task::Move { .. } => None,
        });
        added(tasks.collect())
    }

    /// Returns the messages by edge, followed by the combinations by node. Node `v` has the number
    /// `edges + v`.
    pub(super) fn activities(&self, edges: usize) -> Vec<(usize, usize)> {
        let mut all = self.loads();
        let combinations = self.combinations().into_iter();
        all.extend(combinations.map(|(v, count)| (edges + v, count)));
        all
    }

    /// Returns the largest number of edges that a message passes, or of tasks in a chain.
    pub fn depth(&self, platform: &Platform) -> usize {
        let part = |part: &Part| part.depths(platform).into_iter().max().unwrap_or(0);
        let tree = self.parts.iter().map(part).max().unwrap_or(0);
        let tasks = self.work.delays().into_iter().max();
        tree.max(tasks.map_or(0, |d| d + 1))
    }
}

/// Sorts the pairs and adds up those of the same number.
fn added(mut pairs: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
    pairs.sort_unstable();
    pairs.dedup_by(|b, a| {
        let same = a.0 == b.0;
        if same {
            a.1 += b.1;
        }
        same
    });
    pairs
}

impl Part {
    /// Returns, by edge of the part, its distance from the root in edges, itself included.
    pub(crate) fn depths(&self, platform: &Platform) -> Vec<usize> {
        let mut depth = vec![0; platform.nodes()];
        let mut depths = Vec::with_capacity(self.edges.len());
        for &e in &self.edges {
            let edge = &platform.edges()[e];
            depth[edge.dst] = depth[edge.src] + 1;
            depths.push(depth[edge.dst]);
        }
        depths
    }
}

/// The demand of one operation of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Demand {
    /// The senders.
    pub(super) roots: Vec<usize>,
    /// By root, the receivers.
    pub(super) targets: Vec<Vec<usize>>,
    /// Whether every target gets a message of its own.
    pub(super) personal: bool,
    /// How contributions are combined, where that matters. The operation then has one root.
    pub(super) combining: Option<Combining>,
}

/// How contributions are combined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Combining {
    /// In any way that these partial results allow; priced exactly.
    Partial(PartialResults),
    /// Each node combines everything it receives with its own contribution and sends the result.
    Trees,
}

/// The cheapest tree to some of the nodes is found exactly for up to this many targets.
pub(super) const MAX_EXACT_TARGETS: usize = 9;

impl Demand {
    /// Whether the cheapest routes are found exactly. Trees to many but not all nodes are not.
    pub(super) fn is_exact(&self, nodes: usize) -> bool {
        if let Some(combining) = &self.combining {
            return matches!(combining, Combining::Partial(_));
        }
        self.personal
            || (self.targets.iter()).all(|t| t.len() + 1 == nodes || t.len() <= MAX_EXACT_TARGETS)
    }

    /// Returns the cheapest route. `weights` (not negative) are those of the edges, followed by
    /// those of combining on each node. Returns `None` if a target cannot be reached.
    pub(super) fn cheapest<W: Weight>(&self, platform: &Platform, weights: &[W]) -> Option<Route> {
        let (weights, computing) = weights.split_at(platform.edges().len());
        if let Some(combining) = &self.combining {
            let root = *self.roots.first()?;
            let work = match combining {
                Combining::Partial(partials) => {
                    partials.cheapest(platform, weights, computing, root)
                }
                Combining::Trees => combining_tree(platform, weights, computing, root),
            };
            return Some(Route {
                parts: Vec::new(),
                work: work?,
            });
        }
        let parts = self.roots.iter().zip(&self.targets);
        let parts = parts.map(|(&root, targets)| self.part(platform, weights, root, targets));
        Some(Route {
            parts: parts.collect::<Option<Vec<Part>>>()?,
            work: Work::default(),
        })
    }

    fn part<W: Weight>(
        &self,
        platform: &Platform,
        weights: &[W],
        root: usize,
        targets: &[usize],
    ) -> Option<Part> {
        let entering = if self.personal {
            shortest_paths(platform, weights, root).0
        } else if targets.len() + 1 == platform.nodes() {
            let edges: Vec<(usize, usize)> =
                platform.edges().iter().map(|e| (e.src, e.dst)).collect();
            arborescence(platform.nodes(), root, &edges, weights)?.edges
        } else if targets.len() <= MAX_EXACT_TARGETS {
            steiner(platform, weights, root, targets)?
        } else {
            nearest_first(platform, weights, root, targets)?
        };
        self.pruned(platform, root, targets, &entering)
    }

    /// Builds the part from the entering edge of each node, without edges that lead to no target.
    pub(super) fn pruned(
        &self,
        platform: &Platform,
        root: usize,
        targets: &[usize],
        entering: &[Option<usize>],
    ) -> Option<Part> {
        let mut below = vec![0; platform.nodes()];
        for &t in targets {
            let mut v = t;
            while v != root {
                below[v] += 1;
                if below[v] > targets.len() {
                    return None;
                }
                v = platform.edges()[entering[v]?].src;
            }
        }
        let mut children = vec![Vec::new(); platform.nodes()];
        for v in (0..platform.nodes()).filter(|&v| below[v] > 0) {
            let e = entering[v]?;
            children[platform.edges()[e].src].push(e);
        }
        let (mut edges, mut messages) = (Vec::new(), Vec::new());
        let mut open = vec![root];
        while let Some(v) = open.pop() {
            for &e in &children[v] {
                let to = platform.edges()[e].dst;
                edges.push(e);
                messages.push(if self.personal { below[to] } else { 1 });
                open.push(to);
            }
        }
        Some(Part {
            root,
            edges,
            messages,
        })
    }
}

/// Finds shortest paths from `root`. Returns, by node, the edge that enters it and its distance
/// (`None` where it cannot be reached).
pub(super) fn shortest_paths<W: Weight>(
    platform: &Platform,
    weights: &[W],
    root: usize,
) -> (Vec<Option<usize>>, Vec<Option<W>>) {
    let mut start = vec![None; platform.nodes()];
    start[root] = Some(W::default());
    paths_from(platform, weights, start)
}

/// Finds shortest paths from all nodes with a start distance.
pub(super) fn paths_from<W: Weight>(
    platform: &Platform,
    weights: &[W],
    mut distance: Vec<Option<W>>,
) -> (Vec<Option<usize>>, Vec<Option<W>>) {
    let n = platform.nodes();
    let edges = platform.edges();
    let mut first = vec![edges.len(); n + 1];
    for (i, e) in edges.iter().enumerate().rev() {
        first[e.src] = i;
    }
    let mut entering = vec![None; n];
    let mut done = vec![false; n];
    loop {
        let mut nearest: Option<usize> = None;
        for v in (0..n).filter(|&v| !done[v] && distance[v].is_some()) {
            if nearest.is_none_or(|u| distance[v] < distance[u]) {
                nearest = Some(v);
            }
        }
        let Some(v) = nearest else {
            return (entering, distance);
        };
        done[v] = true;
        let Some(here) = distance[v].clone() else {
            continue;
        };
        for (i, e) in edges.iter().enumerate().skip(first[v]) {
            if e.src != v {
                break;
            }
            let there = here.clone() + weights[i].clone();
            if !done[e.dst] && distance[e.dst].as_ref().is_none_or(|d| there < *d) {
                distance[e.dst] = Some(there);
                entering[e.dst] = Some(i);
            }
        }
    }
}

/// Finds the cheapest tree from `root` to the targets (Dreyfus and Wagner 1971, for directed
/// graphs). Returns, by node, the edge that enters it.
fn steiner<W: Weight>(
    platform: &Platform,
    weights: &[W],
    root: usize,
    targets: &[usize],
) -> Option<Vec<Option<usize>>> {
    #[derive(Clone, Copy)]
    enum From {
        Nothing,
        Edge(usize),
        Split(usize),
    }
    let (n, all) = (platform.nodes(), (1usize << targets.len()) - 1);
    let (reversed, number) = platform.turned();
    let weights: Vec<W> = number.iter().map(|&i| weights[i].clone()).collect();
    let mut cost: Vec<Vec<Option<W>>> = vec![vec![None; n]; all + 1];
    let mut from = vec![vec![From::Nothing; n]; all + 1];
    for set in 1..=all {
        let mut start: Vec<Option<W>> = vec![None; n];
        if set.is_power_of_two() {
            start[targets[set.trailing_zeros() as usize]] = Some(W::default());
        }
        let mut part = (set - 1) & set;
        while part > set / 2 {
            for v in 0..n {
                if let (Some(a), Some(b)) = (&cost[part][v], &cost[set ^ part][v]) {
                    let both = a.clone() + b.clone();
                    if start[v].as_ref().is_none_or(|s| both < *s) {
                        start[v] = Some(both);
                        from[set][v] = From::Split(part);
                    }
                }
            }
            part = (part - 1) & set;
        }
        let (entering, distance) = paths_from(&reversed, &weights, start);
        for (v, e) in entering.into_iter().enumerate() {
            if let Some(e) = e {
                from[set][v] = From::Edge(number[e]);
            }
        }
        cost[set] = distance;
    }
    cost[all][root].as_ref()?;
    let mut used = vec![false; platform.edges().len()];
    let mut open = vec![(all, root)];
    while let Some((set, v)) = open.pop() {
        match from[set][v] {
            From::Nothing => {}
            From::Edge(e) => {
                used[e] = true;
                open.push((set, platform.edges()[e].dst));
            }
            From::Split(part) => open.extend([(part, v), (set ^ part, v)]),
        }
    }
    // The edges used may meet again where edges cost nothing, so a tree is extracted from them.
    let mut entering = vec![None; n];
    let mut open = vec![root];
    while let Some(v) = open.pop() {
        for (i, e) in platform.edges().iter().enumerate() {
            if used[i] && e.src == v && e.dst != root && entering[e.dst].is_none() {
                entering[e.dst] = Some(i);
                open.push(e.dst);
            }
        }
    }
    Some(entering)
}

/// Finds the cheapest way in which each node combines everything it receives with its own
/// contribution and sends one message. It is an arborescence of the reversed edges, where the
/// weight of an edge includes combining at its end.
fn combining_tree<W: Weight>(
    platform: &Platform,
    weights: &[W],
    computing: &[W],
    root: usize,
) -> Option<Work> {
    let (n, edges) = (platform.nodes(), platform.edges());
    let turned: Vec<(usize, usize)> = edges.iter().map(|e| (e.dst, e.src)).collect();
    let with_computing = weights.iter().zip(edges).map(|(w, e)| {
        let own = computing.get(e.dst).cloned().unwrap_or_default();
        w.clone() + own
    });
    let with_computing: Vec<W> = with_computing.collect();
    let leaving = arborescence(n, root, &turned, &with_computing)?.edges;
    let mut children = vec![Vec::new(); n];
    for e in leaving.iter().flatten() {
        children[edges[*e].dst].push(*e);
    }
    let mut order = vec![root];
    let mut at = 0;
    while at < order.len() {
        order.extend(children[order[at]].iter().map(|&e| edges[e].src));
        at += 1;
    }
    let mut work = Work {
        owners: (0..n).collect(),
        tasks: Vec::new(),
        results: Vec::new(),
    };
    let mut value: Vec<usize> = (0..n).collect();
    for &v in order.iter().rev() {
        for &edge in &children[v] {
            let from = edges[edge].src;
            let right = work.add(Task::Move {
                edge,
                value: value[from],
            });
            value[v] = work.add(Task::Combine {
                node: v,
                left: value[v],
                right,
            });
        }
    }
    work.results = vec![value[root]];
    Some(work)
}

/// Finds a cheap tree from `root` to the targets: repeatedly connects the target that is nearest to
/// the nodes reached so far (Takahashi and Matsuyama 1980). Returns, by node, the edge that enters
/// it.
fn nearest_first<W: Weight>(
    platform: &Platform,
    weights: &[W],
    root: usize,
    targets: &[usize],
) -> Option<Vec<Option<usize>>> {
    let n = platform.nodes();
    let mut entering = vec![None; n];
    let mut reached = vec![false; n];
    reached[root] = true;
    let mut remaining: Vec<usize> = targets.to_vec();
    while !remaining.is_empty() {
        let start = reached.iter().map(|&r| r.then(W::default)).collect();
        let (into, distance) = paths_from(platform, weights, start);
        let mut nearest = 0;
        for (i, &t) in remaining.iter().enumerate() {
            let better = match (&distance[t], &distance[remaining[nearest]]) {
                (Some(a), Some(b)) => a < b,
                (Some(_), None) => true,
                _ => false,
            };
            if better {
                nearest = i;
            }
        }
        let mut v = remaining.swap_remove(nearest);
        while !reached[v] {
            reached[v] = true;
            entering[v] = Some(into[v]?);
            v = platform.edges()[into[v]?].src;
        }
    }
    Some(entering)
}
