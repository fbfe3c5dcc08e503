//! Minimum cuts by shortest augmenting paths (Edmonds and Karp 1972).

use std::collections::VecDeque;

use super::weight::{Weight, least};

/// Finds a minimum cut between two of `n` vertices, where capacities up to `tiny` count as none.
/// Returns the side of `from`; `None` if rounding errors keep the flow from ending.
pub(super) fn minimum_cut<W: Weight>(
    n: usize,
    arcs: &[(usize, usize)],
    capacity: &[W],
    tiny: &W,
    (from, to): (usize, usize),
) -> Option<Vec<bool>> {
    let mut flow: Vec<W> = vec![W::default(); arcs.len()];
    // By vertex, the arcs around it, and whether they leave it.
    let mut around: Vec<Vec<(usize, bool)>> = vec![Vec::new(); n];
    for (i, &(a, b)) in arcs.iter().enumerate() {
        around[a].push((i, true));
        around[b].push((i, false));
    }
    let end = |(i, forward): (usize, bool)| if forward { arcs[i].1 } else { arcs[i].0 };
    let free = |flow: &[W], (i, forward): (usize, bool)| {
        if forward {
            capacity[i].clone() - flow[i].clone()
        } else {
            flow[i].clone()
        }
    };
    // More paths are never needed. The limit ends floating-point flows that grow by ever smaller
    // amounts.
    for _ in 0..n * arcs.len() + 1 {
        // By vertex, the arc through which it was reached, and whether in the arc's direction.
        let mut by: Vec<Option<(usize, bool)>> = vec![None; n];
        let mut seen = vec![false; n];
        seen[from] = true;
        let mut open = VecDeque::from([from]);
        while let Some(v) = open.pop_front() {
            for &arc in &around[v] {
                let next = end(arc);
                if !seen[next] && free(&flow, arc) > *tiny {
                    seen[next] = true;
                    by[next] = Some(arc);
                    open.push_back(next);
                }
            }
        }
        if !seen[to] {
            return Some(seen);
        }
        let path: Vec<_> =
            std::iter::successors(by[to], |&(i, forward)| by[end((i, !forward))]).collect();
        let amount = least(path.iter().map(|&arc| free(&flow, arc)))?;
        for (i, forward) in path {
            let old = flow[i].clone();
            flow[i] = if forward {
                old + amount.clone()
            } else {
                old - amount.clone()
            };
        }
    }
    None
}
