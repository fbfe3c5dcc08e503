//! Weakly ordered gather trees: every rank gathers consecutive ranks, and receives parts of them in
//! any order.
//!
//! - Source: Träff, "On Optimal Trees for Irregular Gather and Scatter Collectives", after
//!   Definition 3, which leaves open how hard the best one is to find; the algorithms are our own.
//! - Symbols: `p` ranks, blocks `m_i`.
//! - Class: contains the adjacent and the rank-ordered trees.
//!
//! The two planners:
//!
//! - [`exact`]: the dynamic program of `Sets`, in which a message has a range of ranks. Takes
//!   `O(p^3 2^p)` time, and `p` times as long where links differ; refused for more than 16 ranks.
//! - [`tree`]: exact for few ranks. For more, the better of the best adjacent and the best
//!   rank-ordered tree, with children received in the order in which they are complete, if that is
//!   faster. Where links differ, no rank-ordered tree is tried.
//!
//! No polynomial algorithm is known. For a fixed root and division, the time is the maximum over
//! all parts `q` of `ready_q` plus the sum of `comm` over all parts that are ready no earlier than
//! `q`. Whether a division meets a given time depends on as many conditions as it has parts, which
//! prevents a dynamic program over ranks.
//!
//! Example, `m = 10,10,2,50`, `alpha = 5`, `beta = 1`, `gamma = 0`: 32, root 3 receives `{0}`, then
//! `{1,2}`.

use super::subsets::{Parts, Sets};
use super::tree_costs::TreeCosts;
use super::{GatherProblem, GatherTree, optimal, rank_ordered};
use crate::budget::trees::{EXACT, MAX_EXACT};
use crate::plan::gather::row::{table_of_pairs, tree_rows};
use crate::plan::prelude::*;

tree_rows!(
    GATHER, SCATTER: "weakly-ordered", tree {
        tables: table_of_pairs,
        source: "Träff, optimal gather trees, after Definition 3; oneport",
        rounds: "those of the best tree of consecutive ranks (p <= 12), or one at least as good as optimal and rank-ordered",
        volume: "those of that tree",
    }
);

/// The best tree found: see the [module documentation](self). Takes as long as [`optimal::tree`]
/// for more than 12 ranks.
pub fn tree(problem: &GatherProblem) -> Result<GatherTree> {
    if problem.ranks() <= EXACT {
        return exact(problem);
    }
    let first = optimal::tree(problem)?;
    let mut trees = vec![first.clone()];
    if problem.cost().links().is_none() {
        trees.push(rank_ordered::tree(problem)?);
    }
    let sorted: Vec<GatherTree> = trees
        .iter()
        .map(|tree| sorted_by_completion(problem, tree.clone()))
        .collect();
    Ok(problem
        .fastest(trees.into_iter().chain(sorted))
        .unwrap_or(first))
}

/// The same tree, in which every rank copies first and then receives from its children in the order
/// in which they are complete. No rank is complete later than before.
pub(super) fn sorted_by_completion(problem: &GatherProblem, mut tree: GatherTree) -> GatherTree {
    let (sizes, cost) = (problem.sizes(), problem.cost());
    let sums = tree.subtree_sizes(sizes);
    let mut times = vec![0.0f64; tree.ranks()];
    for &r in tree.top_down().iter().rev() {
        let mut children = tree.children(r).to_vec();
        if children.is_empty() {
            continue;
        }
        children.sort_by(|a, b| times[a.rank].total_cmp(&times[b.rank]));
        times[r] = children.iter().fold(cost.copy(r, sizes[r]), |t, c| {
            if sums[c.rank] == 0 {
                t
            } else {
                max_time(t, times[c.rank]) + cost.transfer(c.rank, r, sums[c.rank])
            }
        });
        tree.set_children(r, children);
    }
    tree
}

/// The best weakly ordered tree. See the [module documentation](self) for the time.
///
/// # Errors
/// More than 16 ranks, or links that connect no such tree.
pub fn exact(problem: &GatherProblem) -> Result<GatherTree> {
    Sets::new(&TreeCosts::of(problem), Parts::Ranges, 1, MAX_EXACT)?.tree(problem.root())
}
