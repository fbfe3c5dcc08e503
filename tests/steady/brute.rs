//! The throughput of a series of broadcasts by listing all arborescences and all matchings, and an exact linear program over them.

use oneport::Ports;
use oneport::plan::steady::{Fraction, Platform};

pub(crate) fn throughput(platform: &Platform, ports: Ports) -> Fraction {
    let edges = platform.edges();
    let trees = arborescences(platform);
    let matchings = matchings(platform, ports);
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

fn arborescences(platform: &Platform) -> Vec<Vec<usize>> {
    let n = platform.nodes();
    let edges = platform.edges();
    let mut all = Vec::new();
    let mut choice: Vec<Vec<usize>> = vec![Vec::new()];
    for v in (0..n).filter(|&v| v != platform.source()) {
        let into: Vec<usize> = (0..edges.len()).filter(|&e| edges[e].dst == v).collect();
        let longer = choice.iter().flat_map(|c| {
            into.iter().map(move |&e| {
                let mut c = c.clone();
                c.push(e);
                c
            })
        });
        choice = longer.collect();
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
        if reached.iter().all(|&r| r) {
            all.push(tree);
        }
    }
    all
}

/// All that no other contains: smaller ones are of no use where edges may be idle.
fn matchings(platform: &Platform, ports: Ports) -> Vec<Vec<usize>> {
    let edges = platform.edges();
    let clash = |a: usize, b: usize| {
        let (a, b) = (&edges[a], &edges[b]);
        if ports.is_bidirectional() {
            a.src == b.src || a.dst == b.dst
        } else {
            a.src == b.src || a.dst == b.dst || a.src == b.dst || a.dst == b.src
        }
    };
    let fits = |set: &[usize], e: usize| set.iter().all(|&f| !clash(e, f));
    let mut sets: Vec<Vec<usize>> = vec![Vec::new()];
    for e in 0..edges.len() {
        let more: Vec<Vec<usize>> = (sets.iter().filter(|s| fits(s, e)))
            .map(|s| s.iter().copied().chain([e]).collect())
            .collect();
        sets.extend(more);
    }
    let maximal = |s: &Vec<usize>| (0..edges.len()).all(|e| s.contains(&e) || !fits(s, e));
    sets.into_iter().filter(maximal).collect()
}

/// `maximise gains * x` under `rows * x <= bounds`, `x >= 0`, with bounds not negative: the simplex method on a full table, by Bland's rule.
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
