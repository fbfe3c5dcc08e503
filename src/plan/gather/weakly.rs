//! Weakly ordered gather trees: every rank gathers consecutive ranks, and receives parts of them in any order.
//!
//! Source: Träff, "On Optimal Trees for Irregular Gather and Scatter Collectives", after Definition 3, which leaves open how hard the best one is to find; the
//! programs are ours. Ports: one-ported. Symbols: `p` ranks, blocks `m_i`, `W[i,j]` the time of the best tree over `i..=j`, `W[i,i] = 0`.
//! Contains the adjacent and the rank-ordered trees.
//!
//! - [`exact`]: the root `r` of `[i,j]` receives a partition of `[i,r-1]` and one of `[r+1,j]` into ranges. Which order is best is plain: whatever is complete first
//!   is received first, its own copy, complete at 0, before all. With all partitions: `O(p 2^p)`, refused for more than 20 ranks.
//! - [`tree`]: exact for few ranks; beyond, the better of the best adjacent and the best rank-ordered tree, in which then every rank receives what is complete
//!   first first, if that is better.
//!
//! `m = 10,10,2,50`, `alpha = 5`, `beta = 1`, `gamma = 0`: 32, root 3 receives `{0}`, then `{1,2}`.

use super::optimal::table::Costs;
use super::{Child, GatherTree, Problem, optimal, rank_ordered};
use crate::error::{Error, Result};
use crate::simulate::later;

/// Most ranks for [`exact`].
pub const MOST_EXACT: usize = 20;
/// Up to as many ranks [`tree`] is exact.
const EXACT: usize = 12;

/// The best tree that is found: see the [module documentation](self).
///
/// # Errors
/// As [`optimal::tree`] for more ranks than are tried exactly.
pub fn tree(problem: &Problem) -> Result<GatherTree> {
    if problem.cost().links().is_some() {
        return optimal::tree(problem);
    }
    if problem.ranks() <= EXACT {
        return exact(problem);
    }
    let trees = [optimal::tree(problem)?, rank_ordered::tree(problem)?];
    let sorted = trees.clone().map(|tree| first_come(problem, tree));
    let first = trees[0].clone();
    Ok(problem
        .fastest(trees.into_iter().chain(sorted))
        .unwrap_or(first))
}

/// The same tree, in which every rank copies first and then receives in the order in which its children are complete: no later than before.
fn first_come(problem: &Problem, mut tree: GatherTree) -> GatherTree {
    let (sizes, cost) = (problem.sizes(), problem.cost());
    let sums = tree.subtree_sizes(sizes);
    let mut times = vec![0.0f64; tree.ranks()];
    for &r in tree.downwards().iter().rev() {
        let mut children = tree.children(r).to_vec();
        if children.is_empty() {
            continue;
        }
        children.sort_by(|a, b| times[a.rank].total_cmp(&times[b.rank]));
        times[r] = children.iter().fold(cost.copy(r, sizes[r]), |t, c| {
            if sums[c.rank] == 0 {
                t
            } else {
                later(t, times[c.rank]) + cost.transfer(c.rank, r, sums[c.rank])
            }
        });
        tree.set_children(r, children);
    }
    tree
}

/// The best weakly ordered tree.
///
/// # Errors
/// When there are more than [`MOST_EXACT`] ranks, or links differ.
pub fn exact(problem: &Problem) -> Result<GatherTree> {
    let p = problem.ranks();
    if p > MOST_EXACT {
        return Err(Error::usage(format!(
            "{p} ranks are more than the {MOST_EXACT} for which the best weakly ordered tree is looked for"
        )));
    }
    if problem.cost().links().is_some() {
        return Err(Error::usage(
            "the best weakly ordered tree is looked for where links cost the same",
        ));
    }
    let mut program = Program {
        costs: Costs::new(problem),
        times: vec![0.0; p * p],
    };
    for i in (0..p).rev() {
        for j in i + 1..p {
            let roots = (i..=j).map(|r| program.rooted(i, j, r).0);
            program.times[i * p + j] = roots.fold(f64::INFINITY, f64::min);
        }
    }
    let mut tree = GatherTree::bare(p, 0);
    let mut work = vec![(0, p - 1, problem.root(), None)];
    while let Some((i, j, root, receiver)) = work.pop() {
        let roots = root.map_or(i..=j, |r| r..=r);
        let timed = roots.map(|r| (program.rooted(i, j, r), r));
        let best = timed.reduce(|best, next| if next.0.0 < best.0.0 { next } else { best });
        let ((_, cuts), r) = best.unwrap_or(((0.0, 0), i));
        match receiver {
            None => tree.set_root(r),
            Some((parent, slot)) => tree.name_child(parent, slot, r),
        }
        let mut parts = program.parts(i, j, r, cuts);
        parts.sort_by(|a, b| a.ready.total_cmp(&b.ready));
        let children = parts.iter().map(|part| Child {
            rank: part.range.0,
            port: 0,
        });
        tree.set_children(r, children.collect());
        for (slot, part) in parts.iter().enumerate() {
            work.push((part.range.0, part.range.1, None, Some((r, slot))));
        }
    }
    Ok(tree)
}

#[derive(Debug)]
struct Program<'a> {
    costs: Costs<'a>,
    times: Vec<f64>,
}

/// A range that is received, and when it is complete.
#[derive(Debug, Clone, Copy)]
struct Part {
    range: (usize, usize),
    ready: f64,
}

impl Program<'_> {
    /// The parts of `[i, j]` but for `r` that these cuts make: bit `b` of `cuts` is a cut before rank `i + 1 + b`.
    fn parts(&self, i: usize, j: usize, r: usize, cuts: usize) -> Vec<Part> {
        let p = self.costs.ranks();
        let mut parts = Vec::new();
        let mut first = i;
        for rank in i + 1..=j + 1 {
            let cut = rank > j || rank == r || rank == r + 1 || cuts >> (rank - i - 1) & 1 == 1;
            if cut {
                let range = (first, rank - 1);
                if range != (r, r) {
                    let ready = self.times[range.0 * p + range.1];
                    parts.push(Part { range, ready });
                }
                first = rank;
            }
        }
        parts
    }

    /// The least time of `[i, j]` rooted at `r`, and the cuts that make it.
    fn rooted(&self, i: usize, j: usize, r: usize) -> (f64, usize) {
        if i == j {
            return (0.0, 0);
        }
        // Cuts next to the root are always made.
        let fixed =
            (r.checked_sub(i + 1).map_or(0, |b| 1 << b)) | if r < j { 1 << (r - i) } else { 0 };
        let cuts = (0..1usize << (j - i)).filter(|cuts| cuts & fixed == fixed);
        let timed = cuts.map(|cuts| {
            let mut parts = self.parts(i, j, r, cuts);
            parts.sort_by(|a, b| a.ready.total_cmp(&b.ready));
            let time = parts.iter().fold(self.costs.copy(r), |t, part| {
                let (a, b) = part.range;
                match self.costs.size(a, b) {
                    0 => t,
                    _ => later(t, part.ready) + self.costs.message(a, b),
                }
            });
            (time, cuts)
        });
        timed
            .reduce(|best, next| if next.0 < best.0 { next } else { best })
            .unwrap_or((f64::INFINITY, 0))
    }
}
