//! Throughputs by brute force: an exact linear program over all matchings and all arborescences, or
//! all ways to send and combine partial results.

use oneport::Ports;
use oneport_steady::{Fraction, Platform};

/// The throughput of a series of broadcasts or multicasts from the source to the targets.
pub(crate) fn throughput(platform: &Platform, ports: Ports) -> Fraction {
    let edges = platform.edges();
    let trees = arborescences(platform);
    let matchings = matchings(platform, ports, false);
    // Rows: one for each edge, one for time. Columns: trees, then matchings.
    let mut rows = vec![vec![Fraction::ZERO; trees.len() + matchings.len()]; edges.len() + 1];
    for (t, tree) in trees.iter().enumerate() {
        for &e in tree {
            rows[e][t] = edges[e].cost.clone();
        }
    }
    for (m, matching) in matchings.iter().enumerate() {
        for &e in matching {
            rows[e][trees.len() + m] = -Fraction::ONE;
        }
        rows[edges.len()][trees.len() + m] = Fraction::ONE;
    }
    let mut bounds = vec![Fraction::ZERO; edges.len()];
    bounds.push(Fraction::ONE);
    let gains = (0..trees.len() + matchings.len()).map(|j| {
        if j < trees.len() {
            Fraction::ONE
        } else {
            Fraction::ZERO
        }
    });
    maximum(rows, bounds, gains.collect())
}

/// The throughput of the best single tree from each of these sources: all combinations of trees.
/// One tree is bipartite, so its transfers fit into the time of its busiest port.
pub(crate) fn single(platform: &Platform, ports: Ports, sources: &[usize]) -> Fraction {
    let n = platform.nodes();
    let into = if ports.can_relay() { n } else { 0 };
    let mut all = vec![vec![Fraction::ZERO; 2 * n]];
    for &source in sources {
        let own = match sources {
            [_] => platform.clone(),
            _ => platform.with_source(source).unwrap(),
        };
        let trees = arborescences(&own);
        let with = |busy: &Vec<Fraction>| -> Vec<Vec<Fraction>> {
            let of = |tree: &Vec<usize>| {
                let mut busy = busy.clone();
                for edge in tree.iter().map(|&e| &own.edges()[e]) {
                    busy[edge.src] += &edge.cost;
                    busy[into + edge.dst] += &edge.cost;
                }
                busy
            };
            trees.iter().map(of).collect()
        };
        all = all.iter().flat_map(with).collect();
    }
    let times = all.into_iter().map(|busy| busy.into_iter().max().unwrap());
    Fraction::ONE / times.min().unwrap()
}

fn arborescences(platform: &Platform) -> Vec<Vec<usize>> {
    let n = platform.nodes();
    let edges = platform.edges();
    let mut all = Vec::new();
    let mut choice: Vec<Vec<usize>> = vec![Vec::new()];
    for v in (0..n).filter(|&v| v != platform.source()) {
        let into = (0..edges.len()).filter(|&e| edges[e].dst == v).map(Some);
        let mut into: Vec<Option<usize>> = into.collect();
        if !platform.targets().contains(&v) {
            into.push(None);
        }
        let extended = choice.iter().flat_map(|c| {
            into.iter().map(move |&e| {
                let mut c = c.clone();
                c.extend(e);
                c
            })
        });
        choice = extended.collect();
    }
    for tree in choice {
        let mut reached = vec![false; n];
        reached[platform.source()] = true;
        for _ in 0..n {
            for &e in &tree {
                if reached[edges[e].src] {
                    reached[edges[e].dst] = true;
                }
            }
        }
        if platform.targets().iter().all(|&t| reached[t]) {
            all.push(tree);
        }
    }
    all
}

/// All maximal matchings; others are not needed, because edges of a matching may be idle.
///
/// With `computing`, the indices after the edges stand for the nodes' combining.
fn matchings(platform: &Platform, ports: Ports, computing: bool) -> Vec<Vec<usize>> {
    let edges = platform.edges();
    let all = edges.len() + if computing { platform.nodes() } else { 0 };
    let clash = |a: usize, b: usize| {
        let (Some(a), Some(b)) = (edges.get(a), edges.get(b)) else {
            let (edge, node) = (edges.get(a.min(b)), a.max(b) - edges.len());
            return !platform.overlaps() && edge.is_some_and(|e| e.src == node || e.dst == node);
        };
        if ports.can_relay() {
            a.src == b.src || a.dst == b.dst
        } else {
            a.src == b.src || a.dst == b.dst || a.src == b.dst || a.dst == b.src
        }
    };
    let fits = |set: &[usize], e: usize| set.iter().all(|&f| !clash(e, f));
    let mut sets: Vec<Vec<usize>> = vec![Vec::new()];
    for e in 0..all {
        let more: Vec<Vec<usize>> = (sets.iter().filter(|s| fits(s, e)))
            .map(|s| s.iter().copied().chain([e]).collect())
            .collect();
        sets.extend(more);
    }
    let maximal = |s: &Vec<usize>| (0..all).all(|e| s.contains(&e) || !fits(s, e));
    sets.into_iter().filter(maximal).collect()
}

/// The throughput of a series of reductions to the source, from the rates of all partial results on
/// all edges, and of all ways to combine two on each node.
///
/// A partial result is a set of ranks, stored as bits; with `ordered`, the ranks are consecutive.
pub(crate) fn reduction(platform: &Platform, ports: Ports, ordered: bool) -> Fraction {
    let (n, edges) = (platform.nodes(), platform.edges());
    let consecutive = |s: usize| {
        let s = s >> s.trailing_zeros();
        s & (s + 1) == 0
    };
    let sets: Vec<usize> = (1..1usize << n)
        .filter(|&s| !ordered || consecutive(s))
        .collect();
    let index_of = |s: usize| sets.iter().position(|&t| t == s);
    let all = (1 << n) - 1;
    let matchings = matchings(platform, ports, true);
    let activities = edges.len() + n;
    let row_of = |s: usize, v: usize| s * n + v;
    let first_activity = sets.len() * n;
    // Columns are lists of entries. Rows: the balance of each partial result on each node, the load
    // of each activity, the total time.
    let mut columns: Vec<(Fraction, Vec<(usize, Fraction)>)> = Vec::new();
    let (one, none) = (Fraction::ONE, Fraction::ZERO);
    let mut operations: Vec<(usize, Fraction)> = (0..n)
        .filter_map(|v| Some((row_of(index_of(1 << v)?, v), -Fraction::ONE)))
        .collect();
    operations.push((
        row_of(index_of(all).unwrap(), platform.source()),
        one.clone(),
    ));
    columns.push((one.clone(), operations));
    for (i, e) in edges.iter().enumerate() {
        for s in 0..sets.len() {
            let entries = vec![
                (row_of(s, e.src), one.clone()),
                (row_of(s, e.dst), -Fraction::ONE),
                (first_activity + i, e.cost.clone()),
            ];
            columns.push((none.clone(), entries));
        }
    }
    for (a, &left) in sets.iter().enumerate() {
        for (b, &right) in sets.iter().enumerate() {
            let Some(made) = index_of(left | right) else {
                continue;
            };
            if left & right != 0 || left > right {
                continue;
            }
            for v in 0..n {
                let time = platform.compute().get(v).cloned().unwrap_or(Fraction::ZERO);
                let entries = vec![
                    (row_of(a, v), one.clone()),
                    (row_of(b, v), one.clone()),
                    (row_of(made, v), -Fraction::ONE),
                    (first_activity + edges.len() + v, time),
                ];
                columns.push((none.clone(), entries));
            }
        }
    }
    for matching in &matchings {
        let busy = matching
            .iter()
            .map(|&a| (first_activity + a, -Fraction::ONE));
        let mut entries: Vec<(usize, Fraction)> = busy.collect();
        entries.push((first_activity + activities, one.clone()));
        columns.push((none.clone(), entries));
    }
    let count = first_activity + activities + 1;
    let mut rows = vec![vec![Fraction::ZERO; columns.len()]; count];
    for (j, (_, entries)) in columns.iter().enumerate() {
        for (row, value) in entries {
            rows[*row][j] += value;
        }
    }
    let mut bounds = vec![Fraction::ZERO; count];
    bounds[count - 1] = Fraction::ONE;
    maximum(
        rows,
        bounds,
        columns.into_iter().map(|(gain, _)| gain).collect(),
    )
}

/// The maximum of `gains * x` subject to `rows * x <= bounds` and `x >= 0`, where no bound is
/// negative, by the simplex method on a full tableau with Bland's rule.
fn maximum(
    mut rows: Vec<Vec<Fraction>>,
    mut bounds: Vec<Fraction>,
    gains: Vec<Fraction>,
) -> Fraction {
    let m = rows.len();
    for (i, row) in rows.iter_mut().enumerate() {
        row.extend((0..m).map(|j| {
            if i == j {
                Fraction::ONE
            } else {
                Fraction::ZERO
            }
        }));
    }
    let mut basis: Vec<usize> = (gains.len()..gains.len() + m).collect();
    let mut excess = gains;
    excess.extend((0..m).map(|_| Fraction::ZERO));
    let mut value = Fraction::ZERO;
    while let Some(enter) = excess.iter().position(|g| *g > Fraction::ZERO) {
        let ratios = (0..m).filter(|&i| rows[i][enter] > Fraction::ZERO);
        let out = ratios
            .map(|i| (&bounds[i] / &rows[i][enter], basis[i], i))
            .min()
            .expect("bounded")
            .2;
        let pivot = rows[out][enter].clone();
        for a in rows[out].iter_mut().filter(|a| !a.is_zero()) {
            *a /= &pivot;
        }
        bounds[out] /= &pivot;
        let (row, bound) = (rows[out].clone(), bounds[out].clone());
        for i in (0..m).filter(|&i| i != out) {
            let factor = rows[i][enter].clone();
            if factor.is_zero() {
                continue;
            }
            for (a, r) in rows[i].iter_mut().zip(&row).filter(|(_, r)| !r.is_zero()) {
                *a -= &factor * r;
            }
            bounds[i] -= &factor * &bound;
        }
        let factor = excess[enter].clone();
        for (g, r) in excess.iter_mut().zip(&row).filter(|(_, r)| !r.is_zero()) {
            *g -= &factor * r;
        }
        value += &factor * &bound;
        basis[out] = enter;
    }
    value
}
