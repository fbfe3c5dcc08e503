//! Partial results of an operation that combines: which there are, how the cheapest whole is made
//! of them, and why it cannot be cheaper.
//!
//! A partial result is a set of contributions, combined: consecutive ones where operands keep their
//! order (the intervals of Legrand, Marchal and Robert 2003), any where the operator commutes. It
//! may pass an edge, and two may be combined on a node that has both. With `d(S, v)` the least cost
//! of having `S` on node `v`:
//!
//! ```text
//! d({i}, owner of i)  = 0
//! d(S, v)            <= d(S, u) + price of edge u -> v
//! d(A + B, v)        <= d(A, v) + d(B, v) + price of combining on v
//! ```
//!
//! Any numbers that satisfy these inequalities prove that the whole costs `d(all, root)` at least,
//! by induction over what it is made of. There are `n^3 / 2` of them for intervals: the dual of the
//! interval program. For any sets they are `n 2^n`: for few contributions only.
//!
//! Multicasts are the same with edges turned round and free combinations: a tree to the targets is
//! a way to combine them at the root.

use std::collections::HashMap;

use super::platform::Platform;
use super::route::{Task, Work, paths_from};
use super::weight::Weight;

/// Contributions, and what partial results there may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PartialResults {
    /// By contribution, the node that has it.
    pub(super) owners: Vec<usize>,
    /// Only consecutive contributions are combined, in order.
    pub(super) ordered: bool,
}

/// How a partial result comes to a node.
#[derive(Debug, Clone, Copy)]
enum From {
    /// It is there to begin with.
    There,
    Edge(usize),
    Split(usize, usize),
}

/// The least costs of partial results, by set and node, and how they are reached.
pub(super) struct Table<W> {
    pub(super) costs: Vec<Vec<Option<W>>>,
    from: Vec<Vec<From>>,
}

impl PartialResults {
    /// What reaches targets, turned round: combined in any way, for nothing.
    pub(super) fn of_targets(targets: &[usize]) -> PartialResults {
        PartialResults {
            owners: targets.to_vec(),
            ordered: false,
        }
    }

    /// Number of partial results. They are numbered such that parts come before what is made of
    /// them.
    pub(super) fn count(&self) -> usize {
        let n = self.owners.len();
        if self.ordered {
            n * (n + 1) / 2
        } else {
            (1 << n) - 1
        }
    }

    /// The number of contribution `i` alone.
    pub(super) fn single(&self, i: usize) -> usize {
        if self.ordered { i } else { (1 << i) - 1 }
    }

    /// The number of the whole.
    pub(super) fn all(&self) -> usize {
        self.count() - 1
    }

    /// The interval `first..first + len`.
    pub(super) fn interval(&self, first: usize, len: usize) -> usize {
        let n = self.owners.len();
        (len - 1) * (n + 1) - len * (len - 1) / 2 + first
    }

    /// All ways to make a partial result of two.
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
            // The part with the greatest contribution first: each pair once.
            let mut part = (set - 1) & set;
            while part > set / 2 {
                all.push((part - 1, (set ^ part) - 1));
                part = (part - 1) & set;
            }
            all
        };
        (1..1usize << n).map(parts).collect()
    }

    /// The least costs, under prices of the edges, and of combining by node. Combining on `v` costs
    /// the `v`-th of `computing`, nothing where there is none.
    pub(super) fn table<W: Weight>(
        &self,
        platform: &Platform,
        prices: &[W],
        computing: &[W],
    ) -> Table<W> {
        self.table_with(platform, prices, computing, |_| false)
    }

    /// The same, where what is `there` already costs nothing: partial results, by number, on nodes.
    pub(super) fn table_with<W: Weight>(
        &self,
        platform: &Platform,
        prices: &[W],
        computing: &[W],
        there: impl Fn((usize, usize)) -> bool,
    ) -> Table<W> {
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
            let mut how = vec![From::There; n];
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
                        how[v] = From::Split(a, b);
                    }
                }
            }
            for v in (0..n).filter(|&v| owner[set] == Some(v) || there((set, v))) {
                start[v] = Some(W::default());
                how[v] = From::There;
            }
            let (entering, distance) = paths_from(platform, prices, start);
            for (v, e) in entering.into_iter().enumerate() {
                if let Some(e) = e {
                    how[v] = From::Edge(e);
                }
            }
            costs.push(distance);
            from.push(how);
        }
        Table { costs, from }
    }

    /// The cheapest way to the whole on `root`; none if there is none.
    pub(super) fn cheapest<W: Weight>(
        &self,
        platform: &Platform,
        prices: &[W],
        computing: &[W],
        root: usize,
    ) -> Option<Work> {
        let table = self.table(platform, prices, computing);
        let mut work = Work {
            owners: self.owners.clone(),
            ..Work::default()
        };
        let own = self.owners.iter().enumerate();
        let mut made = own.map(|(i, &v)| ((self.single(i), v), i)).collect();
        let whole = table.extract(platform, (self.all(), root), &mut made, &mut work)?;
        work.results = vec![whole];
        Some(work)
    }
}

impl<W> Table<W> {
    /// Adds the tasks that make the partial result `goal.0` on node `goal.1` to `work`; `made` says
    /// which value is what, and where. The value; none if it cannot be made.
    pub(super) fn extract(
        &self,
        platform: &Platform,
        goal: (usize, usize),
        made: &mut HashMap<(usize, usize), usize>,
        work: &mut Work,
    ) -> Option<usize> {
        self.costs[goal.0][goal.1].as_ref()?;
        let mut open = vec![goal];
        while let Some(&state) = open.last() {
            if made.contains_key(&state) {
                open.pop();
                continue;
            }
            let (set, v) = state;
            let task = match self.from[set][v] {
                From::There => return None,
                From::Edge(edge) => {
                    let before = (set, platform.edges()[edge].src);
                    match made.get(&before) {
                        Some(&value) => Task::Move { edge, value },
                        None => {
                            open.push(before);
                            continue;
                        }
                    }
                }
                From::Split(a, b) => match (made.get(&(a, v)), made.get(&(b, v))) {
                    (Some(&left), Some(&right)) => Task::Combine {
                        node: v,
                        left,
                        right,
                    },
                    (None, _) => {
                        open.push((a, v));
                        continue;
                    }
                    (_, None) => {
                        open.push((b, v));
                        continue;
                    }
                },
            };
            made.insert(state, work.add(task));
            open.pop();
        }
        made.get(&goal).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts are numbered before wholes, and every way to make a whole is there once.
    #[test]
    fn parts_come_first() {
        for n in 1..=6 {
            for ordered in [true, false] {
                let owners: Vec<usize> = (0..n).collect();
                let joins = PartialResults { owners, ordered };
                let splits = joins.splits();
                assert_eq!(splits.len(), joins.count());
                let mut sizes = vec![0; splits.len()];
                for i in 0..n {
                    sizes[joins.single(i)] = 1;
                }
                for (set, parts) in splits.iter().enumerate() {
                    for &(a, b) in parts {
                        assert!(a < set && b < set);
                        sizes[set] = sizes[a] + sizes[b];
                    }
                    let of_size = if ordered {
                        sizes[set] - 1
                    } else {
                        (1 << (sizes[set] - 1)) - 1
                    };
                    assert_eq!(parts.len(), of_size);
                }
                assert_eq!(sizes[joins.all()], n);
            }
        }
    }
}
