//! Shortest paths on a platform (Dijkstra 1959). Time: `O(nodes^2 + edges)`.

use super::platform::Platform;
use super::weight::Weight;

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
