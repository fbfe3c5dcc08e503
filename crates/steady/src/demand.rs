//! What one operation of a series demands, and the search for the cheapest routes that meet it.

use super::arborescence::arborescence;
use super::partial_results::PartialResults;
use super::paths::shortest_paths;
use super::platform::Platform;
use super::route::{Arborescence, Route, Task, TaskGraph};
use super::steiner::{nearest_first, steiner};
use super::weight::Weight;
use oneport::internal::numbers::id;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) roots: Vec<usize>,
    /// By root, the receivers.
    pub(super) targets: Vec<Vec<usize>>,
    pub(super) personal: bool,
    /// How contributions are combined, where that matters. The operation then has one root.
    pub(super) combining: Option<Combining>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Combining {
    /// In any way that these partial results allow; priced exactly.
    Partial(PartialResults),
    /// Each node combines everything it receives with its own contribution and sends the result.
    Trees,
}

/// The cheapest tree to some of the nodes is found exactly for up to this many targets, and for as
/// many as this many combinations of parts on all nodes allow: 14 on 28 nodes. A tree then takes
/// about half a second, and seconds to be proved the cheapest.
const MAX_EXACT_TARGETS: usize = 9;
const MAX_EXACT_WORK: usize = 1 << 27;
/// From this many targets on, cheap trees are looked for before the cheapest one.
const MIN_QUICK_TARGETS: usize = 8;

/// Whether the cheapest tree to so many of the nodes is found exactly.
fn is_tree_exact(nodes: usize, targets: usize) -> bool {
    targets <= MAX_EXACT_TARGETS
        || targets <= 16 && 3usize.pow(id(targets)) * nodes <= MAX_EXACT_WORK
}

impl Wanted {
    /// Whether the cheapest routes are found exactly. Trees to many but not all nodes are not.
    pub(super) fn is_exact(&self, nodes: usize) -> bool {
        if let Some(combining) = &self.combining {
            return matches!(combining, Combining::Partial(_));
        }
        self.personal
            || (self.targets.iter()).all(|t| t.len() + 1 == nodes || is_tree_exact(nodes, t.len()))
    }

    /// Returns the cheapest route under these weights of the activities (not negative); `None` if a
    /// target cannot be reached.
    pub(super) fn cheapest<W: Weight>(&self, platform: &Platform, weights: &[W]) -> Option<Route> {
        let (weights, computing) = weights.split_at(platform.edges().len());
        if let Some(combining) = &self.combining {
            let root = *self.roots.first()?;
            let task_graph = match combining {
                Combining::Partial(partials) => {
                    partials.cheapest(platform, weights, computing, root)
                }
                Combining::Trees => combining_tree(platform, weights, computing, root),
            };
            return task_graph.map(Route::of_tasks);
        }
        let trees = self.roots.iter().zip(&self.targets);
        let trees = trees.map(|(&root, targets)| self.tree(platform, weights, root, targets));
        Some(Route {
            trees: trees.collect::<Option<Vec<Arborescence>>>()?,
            task_graph: TaskGraph::default(),
        })
    }

    /// Returns a cheap route, where that is much quicker than [`Wanted::cheapest`].
    pub(super) fn cheap<W: Weight>(&self, platform: &Platform, weights: &[W]) -> Option<Route> {
        let is_slow = |t: &Vec<usize>| {
            (MIN_QUICK_TARGETS..platform.nodes() - 1).contains(&t.len())
                && is_tree_exact(platform.nodes(), t.len())
        };
        if self.personal || self.combining.is_some() || !self.targets.iter().any(is_slow) {
            return None;
        }
        let trees = self
            .roots
            .iter()
            .zip(&self.targets)
            .map(|(&root, targets)| {
                let entering = nearest_first(platform, weights, root, targets)?;
                self.pruned(platform, root, targets, &entering)
            });
        Some(Route {
            trees: trees.collect::<Option<Vec<Arborescence>>>()?,
            task_graph: TaskGraph::default(),
        })
    }

    fn tree<W: Weight>(
        &self,
        platform: &Platform,
        weights: &[W],
        root: usize,
        targets: &[usize],
    ) -> Option<Arborescence> {
        let entering = if self.personal {
            shortest_paths(platform, weights, root).0
        } else if targets.len() + 1 == platform.nodes() {
            arborescence(platform.nodes(), root, &platform.ends(), weights)?.edges
        } else if is_tree_exact(platform.nodes(), targets.len()) {
            steiner(platform, weights, root, targets)?
        } else {
            nearest_first(platform, weights, root, targets)?
        };
        self.pruned(platform, root, targets, &entering)
    }

    /// The steps that [`Wanted::tree`] takes to this many targets, about.
    pub(super) fn tree_work(&self, nodes: usize, edges: usize, targets: usize) -> usize {
        match targets {
            _ if self.personal || targets + 1 == nodes => nodes * edges,
            _ if is_tree_exact(nodes, targets) => {
                3usize.pow(id(targets)) * nodes + ((nodes * nodes) << targets)
            }
            _ => targets * nodes * nodes,
        }
    }

    /// Builds the tree from the entering edge of each node, without edges that lead to no target.
    pub(super) fn pruned(
        &self,
        platform: &Platform,
        root: usize,
        targets: &[usize],
        entering: &[Option<usize>],
    ) -> Option<Arborescence> {
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
        Some(Arborescence {
            root,
            edges,
            messages,
        })
    }
}

/// Finds the cheapest way in which each node combines everything it receives with its own
/// contribution and sends one message. It is an arborescence of the reversed edges, where the
/// weight of an edge includes combining at its end.
fn combining_tree<W: Weight>(
    platform: &Platform,
    weights: &[W],
    computing: &[W],
    root: usize,
) -> Option<TaskGraph> {
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
    let mut task_graph = TaskGraph::of((0..n).collect());
    let mut value: Vec<usize> = (0..n).collect();
    for &v in order.iter().rev() {
        for &edge in &children[v] {
            let from = edges[edge].src;
            let right = task_graph.add(Task::Move {
                edge,
                value: value[from],
            });
            value[v] = task_graph.add(Task::Combine {
                node: v,
                left: value[v],
                right,
            });
        }
    }
    task_graph.results = vec![value[root]];
    Some(task_graph)
}
