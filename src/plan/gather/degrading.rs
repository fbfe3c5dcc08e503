//! Graceful degradation: an adaptive tree in which every subtree with much data sends it directly
//! to the root.
//!
//! - Source: Träff, "Practical, Linear-time, Fully Distributed Algorithms for Irregular Gather and
//!   Scatter", section 3.
//! - Symbols: `p` ranks, blocks `m_i`, a threshold `t` in bytes.
//! - Volume: data in subtrees beyond the threshold is sent at most once more.
//! - Class: non-ordered in general.
//!
//! A rank whose subtree in the adaptive tree has more than `t` bytes sends what it gathers to the
//! root instead of to its parent, so its parent gathers less. The root receives subtrees in the
//! order in which they are complete. Empty subtrees are children of the root, where they cost
//! nothing.
//!
//! With `t = 0` the tree is linear. With `t` larger than all data it is the adaptive tree, except
//! for empty subtrees. [`tree`] takes the best of both of these and of the powers of two between.
//!
//! Example, `m = 1,1,1,9,1`, root 4, `t = 4`: the adaptive tree has 0→1, 2→3, 1→3, 3→4. Only the
//! subtree of rank 3 has more than 4 bytes, and rank 3 sends to the root anyway.

use super::{Child, GatherProblem, GatherTree, binomial};
use crate::error::Result;
use crate::plan::gather::row::tree_rows;

tree_rows!(
    GATHER, SCATTER: "degrading", tree {
        planning_work: 64,
        source: "Träff, adaptive gather trees, section 3",
        rounds: "ceil(log2 p) to p-1",
        volume: "at most that of adaptive",
    }
);

/// The best such tree over the threshold 0 and all powers of two, and over the adaptive trees
/// themselves. Takes `O(p log p log m)` time for `m` bytes in all.
pub fn tree(problem: &GatherProblem) -> Result<GatherTree> {
    let total: u64 = problem.sizes().iter().sum();
    let trees = binomial::adaptive_trees(problem).map(|adaptive| {
        let thresholds = (0..64 - total.leading_zeros()).map(|e| 1u64 << e);
        let trees = thresholds.chain([0]);
        let trees = trees.map(|t| with_threshold(problem, &adaptive, t));
        let best = problem.fastest([adaptive.clone()].into_iter().chain(trees));
        best.unwrap_or(adaptive)
    });
    Ok(problem.fastest(trees).expect("there is an adaptive tree"))
}

/// The tree for one threshold, in bytes, from the adaptive one. Takes `O(p log p)` time.
pub fn with_threshold(
    problem: &GatherProblem,
    adaptive: &GatherTree,
    threshold: u64,
) -> GatherTree {
    let root = adaptive.root();
    let data = adaptive.subtree_sizes(problem.sizes());
    let mut tree = GatherTree::unconnected(problem.ranks(), root);
    let mut to_root = Vec::new();
    for r in adaptive.top_down() {
        for c in adaptive.children(r) {
            // An empty subtree costs nothing at the root, but a copy elsewhere.
            if r == root || data[c.rank] > threshold || data[c.rank] == 0 {
                to_root.push(*c);
            } else {
                tree.add_child(r, c.rank, c.port);
            }
        }
    }
    // Times depend on the children of the root, so they are set first and sorted afterwards.
    tree.set_children(root, to_root.clone());
    let times = tree.times(problem.sizes(), problem.cost());
    to_root.sort_by(|a: &Child, b| times[a.rank].total_cmp(&times[b.rank]));
    tree.set_children(root, to_root);
    tree
}
