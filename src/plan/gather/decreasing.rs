//! The binomial tree over ranks renumbered by decreasing blocks.
//!
//! - Source: Träff, "Hierarchical gather/scatter algorithms with graceful degradation", 2004, as
//!   "On Optimal Trees for Irregular Gather and Scatter Collectives", section 5.1, tells it.
//! - Class: non-ordered (messages may have several spans).
//!
//! The root has number 0. Number `v` sends to `v` without its lowest bit, so that what a number
//! sends is at most half of the blocks that are larger than its own.
//!
//! Example, `m = 1,9,2,5`, root 1: numbers 0..4 are ranks 1, 3, 2, 0, so 3→1 and 0→2, then 2→1.

use super::two_groups::add_binomial_tree;
use super::{GatherProblem, GatherTree};
use crate::error::Result;
use crate::plan::gather::row::tree_rows;

tree_rows!(
    GATHER, SCATTER: "decreasing", tree {
        source: "Träff 2004; optimal gather trees, section 5.1",
        rounds: "ceil(log2 p)",
        volume: "at most ceil(log2 p) times each block",
    }
);

/// The tree to the given root, or to the first of the largest blocks. Takes `O(p log p)` time.
pub(super) fn tree(problem: &GatherProblem) -> Result<GatherTree> {
    let order = decreasing(problem);
    let root = order[0];
    let mut tree = GatherTree::unconnected(problem.ranks(), root);
    add_binomial_tree(&mut tree, &order, root);
    Ok(tree)
}

/// All ranks by decreasing blocks, a given root first.
pub(super) fn decreasing(problem: &GatherProblem) -> Vec<usize> {
    let mut order: Vec<usize> = (0..problem.ranks()).collect();
    order.sort_by_key(|&r| {
        let first = problem.root() != Some(r);
        (first, std::cmp::Reverse(problem.sizes()[r]))
    });
    order
}
