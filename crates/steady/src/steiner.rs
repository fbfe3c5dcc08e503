//! Trees from a root to some of the nodes (directed Steiner trees): the cheapest one for few
//! targets, a cheap one for many.

use super::partial_results::PartialResults;
use super::paths::paths_from;
use super::platform::Platform;
use super::route::Task;
use super::weight::Weight;

/// Finds the cheapest tree from `root` to the targets (Dreyfus and Wagner 1971, for directed
/// graphs): backwards it is a way to combine what the targets contribute. Returns, by node, the
/// edge that enters it; `None` if a target cannot be reached.
///
/// Time for `k` targets: `O(3^k nodes + 2^k nodes^2)`.
pub(super) fn steiner<W: Weight>(
    platform: &Platform,
    weights: &[W],
    root: usize,
    targets: &[usize],
) -> Option<Vec<Option<usize>>> {
    let (turned, number, weights) = platform.turned(weights);
    let partials = PartialResults::of_targets(targets);
    let tree = partials.cheapest(&turned, &weights, &[], root)?;
    let mut used = vec![false; number.len()];
    for task in tree.tasks {
        if let Task::Move { edge, .. } = task {
            used[number[edge]] = true;
        }
    }
    Some(spanning(platform, root, &used))
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
        let reachable = (0..remaining.len()).filter(|&i| distance[remaining[i]].is_some());
        let nearer = |a: usize, b| {
            if distance[remaining[b]] < distance[remaining[a]] {
                b
            } else {
                a
            }
        };
        let nearest = reachable.reduce(nearer)?;
        let mut v = remaining.swap_remove(nearest);
        while !reached[v] {
            reached[v] = true;
            entering[v] = Some(into[v]?);
            v = platform.edges()[into[v]?].src;
        }
    }
    Some(entering)
}
