//! Partial results of an operation that combines: their numbering, the cheapest way to the full
//! result, and the proof that none is cheaper.
//!
//! A partial result is the combination of a set of contributions: of consecutive ones where
//! operands keep their order (the intervals of Legrand, Marchal and Robert 2003), of any where the
//! operator commutes. It can be sent over an edge, and two of them can be combined on a node that
//! has both. Let `d(S, v)` be the least cost of having `S` on node `v`:
//!
//! ```text
//! d({i}, owner of i)  = 0
//! d(S, v)            <= d(S, u) + price of edge u -> v
//! d(A + B, v)        <= d(A, v) + d(B, v) + price of combining on v
//! ```
//!
//! Any numbers that satisfy these inequalities prove that the full result costs at least
//! `d(all, root)`, by induction over the partial results it is made of. For intervals there are
//! `n^3 / 2` such numbers: the dual of the interval program. For sets there are `n 2^n`, so only
//! few contributions are possible.
//!
//! Multicasts are the same with reversed edges and free combinations: a tree to the targets is a
//! way to combine their contributions at the root.

use std::collections::HashMap;

use super::paths::paths_from;
use super::platform::Platform;
use super::route::{Task, TaskGraph};
use super::weight::Weight;

/// The contributions of an operation, and which of them may be combined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PartialResults {
    /// By contribution, the node that owns it.
    pub(super) owners: Vec<usize>,
    /// Whether only consecutive contributions are combined, in order.
    pub(super) ordered: bool,
}

#[derive(Debug, Clone, Copy)]
enum Derivation {
    /// It is there from the start.
    There,
    Edge(usize),
    Split(usize, usize),
}

/// The least costs of partial results by set and node, with the steps that reach them.
pub(super) struct CostTable<W> {
    pub(super) costs: Vec<Vec<Option<W>>>,
    from: Vec<Vec<Derivation>>,
}

impl PartialResults {
    /// The partial results of a multicast to `targets`, on the reversed platform.
    pub(super) fn of_targets(targets: &[usize]) -> PartialResults {
        PartialResults {
            owners: targets.to_vec(),
            ordered: false,
        }
    }

    /// In the numbering of partial results, parts come before the sets made of them.
    pub(super) fn count(&self) -> usize {
        let n = self.owners.len();
        if self.ordered {
            n * (n + 1) / 2
        } else {
            (1 << n) - 1
        }
    }

    pub(super) fn single(&self, i: usize) -> usize {
        if self.ordered { i } else { (1 << i) - 1 }
    }

    pub(super) fn all(&self) -> usize {
        self.count() - 1
    }

    pub(super) fn interval(&self, first: usize, len: usize) -> usize {
        let n = self.owners.len();
        (len - 1) * (n + 1) - len * (len - 1) / 2 + first
    }

    /// Returns, by partial result, all pairs of parts that it can be made of.
    pub(super) fn splits(&self) -> Vec<Vec<(usize, usize)>> {
        let n = self.owners.len();
        if self.ordered {
            let lengths = (1..=n).flat_map(|len| (0..=n - len).map(move |first| (first, len)));
            let parts = |(first, len): (usize, usize)| {
                let cut = |l| (self.interval(first, l), self.interval(first + l, len - l));
                (1..len).map(cut).collect()
            };
            return lengths.map(parts).collect();
        }
        let parts = |set: usize| {
            let mut all = Vec::new();
            // The part with the greatest contribution comes first, so each pair occurs once.
            let mut part = (set - 1) & set;
            while part > set / 2 {
                all.push((part - 1, (set ^ part) - 1));
                part = (part - 1) & set;
            }
            all
        };
        (1..1usize << n).map(parts).collect()
    }

    /// Computes the least costs under prices of the edges and of combining, which is free on nodes
    /// without an entry.
    pub(super) fn table<W: Weight>(
        &self,
        platform: &Platform,
        prices: &[W],
        computing: &[W],
    ) -> CostTable<W> {
        self.table_with(platform, prices, computing, |_| false)
    }

    /// Like [`PartialResults::table`], where partial results that are `there` already are free:
    /// pairs of number and node.
    pub(super) fn table_with<W: Weight>(
        &self,
        platform: &Platform,
        prices: &[W],
        computing: &[W],
        there: impl Fn((usize, usize)) -> bool,
    ) -> CostTable<W> {
        let n = platform.nodes();
        let splits = self.splits();
        let mut costs: Vec<Vec<Option<W>>> = Vec::with_capacity(splits.len());
        let mut from = Vec::with_capacity(splits.len());
        let mut owner = vec![None; splits.len()];
        for (i, &v) in self.owners.iter().enumerate() {
            owner[self.single(i)] = Some(v);
        }
        for (set, parts) in splits.iter().enumerate() {
            let mut start: Vec<Option<W>> = vec![None; n];
            let mut how = vec![Derivation::There; n];
            for &(a, b) in parts {
                for v in 0..n {
                    let (Some(x), Some(y)) = (&costs[a][v], &costs[b][v]) else {
                        continue;
                    };
                    let mut both = x.clone() + y.clone();
                    if let Some(c) = computing.get(v) {
                        both = both + c.clone();
                    }
                    if start[v].as_ref().is_none_or(|s| both < *s) {
                        start[v] = Some(both);
                        how[v] = Derivation::Split(a, b);
                    }
                }
            }
            for v in (0..n).filter(|&v| owner[set] == Some(v) || there((set, v))) {
                start[v] = Some(W::default());
                how[v] = Derivation::There;
            }
            let (entering, distance) = paths_from(platform, prices, start);
            for (v, e) in entering.into_iter().enumerate() {
                if let Some(e) = e {
                    how[v] = Derivation::Edge(e);
                }
            }
            costs.push(distance);
            from.push(how);
        }
        CostTable { costs, from }
    }

    /// Finds the cheapest way to the full result on `root`; `None` if there is none.
    pub(super) fn cheapest<W: Weight>(
        &self,
        platform: &Platform,
        prices: &[W],
        computing: &[W],
        root: usize,
    ) -> Option<TaskGraph> {
        let table = self.table(platform, prices, computing);
        let mut task_graph = TaskGraph::of(self.owners.clone());
        let own = self.owners.iter().enumerate();
        let mut made = own.map(|(i, &v)| ((self.single(i), v), i)).collect();
        let whole = table.extract(platform, (self.all(), root), &mut made, &mut task_graph)?;
        task_graph.results = vec![whole];
        Some(task_graph)
    }
}

impl<W> CostTable<W> {
    /// Adds the tasks to `task_graph` that make the partial result `goal.0` on node `goal.1`.
    /// `made` maps a partial result and a node to its value, and is extended. Returns the value of
    /// the goal; `None` if it cannot be made.
    pub(super) fn extract(
        &self,
        platform: &Platform,
        goal: (usize, usize),
        made: &mut HashMap<(usize, usize), usize>,
        task_graph: &mut TaskGraph,
    ) -> Option<usize> {
        self.costs[goal.0][goal.1].as_ref()?;
        let mut open = vec![goal];
        while let Some(&state) = open.last() {
            if made.contains_key(&state) {
                open.pop();
                continue;
            }
            let (set, v) = state;
            let needs = match self.from[set][v] {
                Derivation::There => return None,
                Derivation::Edge(edge) => vec![(set, platform.edges()[edge].src)],
                Derivation::Split(a, b) => vec![(a, v), (b, v)],
            };
            if let Some(&missing) = needs.iter().find(|need| !made.contains_key(need)) {
                open.push(missing);
                continue;
            }
            let task = match self.from[set][v] {
                Derivation::Edge(edge) => Task::Move {
                    edge,
                    value: made[&needs[0]],
                },
                _ => Task::Combine {
                    node: v,
                    left: made[&needs[0]],
                    right: made[&needs[1]],
                },
            };
            made.insert(state, task_graph.add(task));
            open.pop();
        }
        made.get(&goal).copied()
    }
}
