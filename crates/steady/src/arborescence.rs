//! Minimum-cost arborescences (Chu and Liu 1965, Edmonds 1967), with the packing of cuts that
//! proves them minimal.
//!
//! Every node except the root chooses its cheapest incoming edge and subtracts the cost of that
//! edge from all its incoming edges. Cycles of chosen edges are contracted to nodes, and this
//! repeats. The amount that a (contracted) node subtracts is the weight of a *cut*: of the edges
//! that enter its set of original nodes. Every arborescence enters every set without the root, the
//! weights of the cuts that an edge crosses add up to at most its own weight, and the weights of
//! all cuts add up to the cost of the arborescence found. Time: `O(nodes * edges)`.

use super::weight::Weight;

#[derive(Debug, Clone)]
pub(super) struct MinArborescence<W> {
    /// By node, the edge that enters it; `None` for the root.
    pub(super) edges: Vec<Option<usize>>,
    /// Sets of nodes without the root, with weights (not zero) that add up to the cost.
    pub(super) cuts: Vec<(Vec<usize>, W)>,
}

struct Contraction<W> {
    /// Start, end, weight, and the number of the edge in the level below.
    edges: Vec<(usize, usize, W, usize)>,
    /// By node, its cheapest incoming edge.
    best: Vec<Option<usize>>,
}

/// Finds the cheapest arborescence with root `root` from edges `(from, to)` with weights that are
/// not negative. `None` if a node cannot be reached.
pub(super) fn arborescence<W: Weight>(
    nodes: usize,
    root: usize,
    edges: &[(usize, usize)],
    weights: &[W],
) -> Option<MinArborescence<W>> {
    let mut members: Vec<Vec<usize>> = (0..nodes).map(|v| vec![v]).collect();
    let mut root_now = root;
    let mut current: Vec<(usize, usize, W, usize)> = (edges.iter().zip(weights).enumerate())
        .filter(|(_, ((_, to), _))| *to != root)
        .map(|(i, (&(from, to), w))| (from, to, w.clone(), i))
        .collect();
    let mut cuts = Vec::new();
    let mut levels: Vec<Contraction<W>> = Vec::new();
    loop {
        let n = members.len();
        let best = cheapest_entering(n, &current);
        for v in (0..n).filter(|&v| v != root_now) {
            let weight = current[best[v]?].2.clone();
            if weight != W::default() {
                cuts.push((members[v].clone(), weight));
            }
        }
        let (above, count) = contracted(n, root_now, &best, &current);
        let cyclic = count < n;
        let mut next = Vec::new();
        let mut next_members = vec![Vec::new(); count];
        if cyclic {
            for (i, (from, to, w, _)) in current.iter().enumerate() {
                let (a, b) = (above[*from], above[*to]);
                if a != b
                    && let Some(cheapest) = best[*to]
                {
                    next.push((a, b, w.clone() - current[cheapest].2.clone(), i));
                }
            }
            for (v, of) in members.iter().enumerate() {
                next_members[above[v]].extend(of);
            }
        }
        let root_above = above[root_now];
        levels.push(Contraction {
            edges: std::mem::replace(&mut current, next),
            best,
        });
        if !cyclic {
            break;
        }
        members = next_members;
        root_now = root_above;
    }
    Some(MinArborescence {
        edges: expanded(&levels),
        cuts,
    })
}

fn cheapest_entering<W: Weight>(
    n: usize,
    edges: &[(usize, usize, W, usize)],
) -> Vec<Option<usize>> {
    let mut best: Vec<Option<usize>> = vec![None; n];
    for (i, (_, to, w, _)) in edges.iter().enumerate() {
        if best[*to].is_none_or(|b: usize| *w < edges[b].2) {
            best[*to] = Some(i);
        }
    }
    best
}

/// Renumbers the nodes so that those of a cycle of cheapest edges share a number. Returns the
/// numbers and their count.
fn contracted<W>(
    n: usize,
    root: usize,
    best: &[Option<usize>],
    edges: &[(usize, usize, W, usize)],
) -> (Vec<usize>, usize) {
    const NEW: usize = usize::MAX;
    let mut number = vec![NEW; n];
    let mut walk = vec![NEW; n];
    let mut count = 1;
    number[root] = 0;
    for start in 0..n {
        let mut v = start;
        while number[v] == NEW && walk[v] == NEW {
            walk[v] = start;
            v = best[v].map_or(root, |b| edges[b].0);
        }
        if number[v] == NEW && walk[v] == start {
            // A cycle through v.
            let mut u = v;
            while number[u] == NEW {
                number[u] = count;
                u = best[u].map_or(root, |b| edges[b].0);
            }
            count += 1;
        }
        let mut v = start;
        while number[v] == NEW {
            number[v] = count;
            count += 1;
            v = best[v].map_or(root, |b| edges[b].0);
        }
    }
    (number, count)
}

/// Returns the edges of the lowest level, level by level from the highest: a cycle loses its edge
/// into the node where the arborescence enters it.
fn expanded<W>(levels: &[Contraction<W>]) -> Vec<Option<usize>> {
    let mut chosen: Vec<Option<usize>> = Vec::new();
    for (depth, level) in levels.iter().enumerate().rev() {
        let mut entering = level.best.clone();
        if depth + 1 < levels.len() {
            let upper = &levels[depth + 1];
            for edge in chosen.iter().flatten() {
                let below = upper.edges[*edge].3;
                entering[level.edges[below].1] = Some(below);
            }
        }
        chosen = entering;
    }
    let given = |edge: Option<usize>| edge.map(|e| levels[0].edges[e].3);
    chosen.into_iter().map(given).collect()
}
