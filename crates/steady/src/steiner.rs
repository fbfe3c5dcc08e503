//! Trees from a root to some of the nodes (directed Steiner trees): the cheapest one for few
//! targets, a cheap one for many.

use super::paths::paths_from;
use super::platform::Platform;
use super::weight::Weight;

/// Finds the cheapest tree from `root` to the targets (Dreyfus and Wagner 1971, for directed
/// graphs). Returns, by node, the edge that enters it; `None` if a target cannot be reached.
///
/// Time for `k` targets: `O(3^k nodes + 2^k nodes^2)`.
pub(super) fn steiner<W: Weight>(
    platform: &Platform,
    weights: &[W],
    root: usize,
    targets: &[usize],
) -> Option<Vec<Option<usize>>> {
    let all = (1usize << targets.len()) - 1;
    let table = Table::new(platform, weights, targets);
    table.cost[all][root].as_ref()?;
    let used = table.edges(platform, all, root);
    Some(spanning(platform, root, &used))
}

/// How the cheapest tree from a node to a set of targets begins.
#[derive(Debug, Clone, Copy)]
enum From {
    /// The node is the only target of the set.
    Nothing,
    Edge(usize),
    /// Two trees from the node, one to this part of the set, the other to the rest.
    Split(usize),
}

/// The cheapest trees by set of targets, as a binary number, and node.
struct Table<W> {
    cost: Vec<Vec<Option<W>>>,
    from: Vec<Vec<From>>,
}

impl<W: Weight> Table<W> {
    /// Computes the trees to all sets, smaller numbers first.
    fn new(platform: &Platform, weights: &[W], targets: &[usize]) -> Table<W> {
        let (n, sets) = (platform.nodes(), 1usize << targets.len());
        let (reversed, number) = platform.turned();
        let weights: Vec<W> = number.iter().map(|&i| weights[i].clone()).collect();
        let mut cost: Vec<Vec<Option<W>>> = vec![vec![None; n]; sets];
        let mut from = vec![vec![From::Nothing; n]; sets];
        for set in 1..sets {
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
        Table { cost, from }
    }

    /// Returns, by edge, whether it is in the tree from `root` to the targets of `set`.
    fn edges(&self, platform: &Platform, set: usize, root: usize) -> Vec<bool> {
        let mut used = vec![false; platform.edges().len()];
        let mut open = vec![(set, root)];
        while let Some((set, v)) = open.pop() {
            match self.from[set][v] {
                From::Nothing => {}
                From::Edge(e) => {
                    used[e] = true;
                    open.push((set, platform.edges()[e].dst));
                }
                From::Split(part) => open.extend([(part, v), (set ^ part, v)]),
            }
        }
        used
    }
}

/// Returns, by node, the edge that enters it in a tree of the used edges. They may meet again where
/// edges cost nothing.
fn spanning(platform: &Platform, root: usize, used: &[bool]) -> Vec<Option<usize>> {
    let mut entering = vec![None; platform.nodes()];
    let mut open = vec![root];
    while let Some(v) = open.pop() {
        for (i, e) in platform.edges().iter().enumerate() {
            if used[i] && e.src == v && e.dst != root && entering[e.dst].is_none() {
                entering[e.dst] = Some(i);
                open.push(e.dst);
            }
        }
    }
    entering
}

/// Finds a cheap tree from `root` to the targets: repeatedly connects the target that is nearest to
/// the nodes reached so far (Takahashi and Matsuyama 1980). Returns, by node, the edge that enters
/// it.
pub(super) fn nearest_first<W: Weight>(
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
