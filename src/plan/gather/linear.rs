//! Linear gather: the root receives every block itself, in rank order.
//!
//! - Source: folklore; Träff, section 5.1.
//! - Symbols: `p` ranks, blocks `m_i`, root `r`.
//! - Rounds: one message from every other rank with a non-empty block.
//! - Time: `sum_{i != r, m_i > 0} (alpha + beta m_i) + gamma_copy m_r`; the root copies its own
//!   block in its turn in rank order.
//! - Volume: `sum_{i != r} m_i`.
//! - Class: rank-ordered trees.
//!
//! Example, `p = 3`, root 1, `m = 2, 3, 0`, `alpha = beta = gamma_copy = 1`: time `3 + 3`.

use super::{GatherProblem, GatherTree};
use crate::error::Result;
use crate::plan::gather::row::tree_rows;

tree_rows!(
    GATHER, SCATTER: "linear", tree {
        best_root: crate::plan::registry::BestRoot::Own,
        source: "folklore",
        rounds: "p-1",
        volume: "sum of all blocks but the root's",
    }
);

/// The linear tree; with a free root, the first of the best ones. Takes `O(p)` time, or `O(p^2)`
/// with a free root where links differ in cost.
pub fn tree(problem: &GatherProblem) -> Result<GatherTree> {
    let root = problem.root().unwrap_or_else(|| best_root(problem));
    Ok(rooted(problem.ranks(), root))
}

/// The linear tree with root `root`.
pub(super) fn rooted(p: usize, root: usize) -> GatherTree {
    let mut tree = GatherTree::unconnected(p, root);
    for r in 0..p {
        if r == root {
            tree.copy_now(root);
        } else {
            tree.add_child(root, r, 0);
        }
    }
    tree
}

/// The root with the minimum time of all messages and its copy.
fn best_root(problem: &GatherProblem) -> usize {
    let (sizes, cost) = (problem.sizes(), problem.cost());
    let time = |root: usize| {
        let others = (0..sizes.len()).filter(|&r| r != root);
        let messages: f64 = others.map(|r| cost.transfer(r, root, sizes[r])).sum();
        messages + cost.copy(root, sizes[root])
    };
    // If all links cost the same, the times of the roots differ only by the copy of the root's
    // block minus the message that it saves.
    let own_cost =
        |root: usize| cost.copy(root, sizes[root]) - cost.transfer(root, root, sizes[root]);
    let by = |f: &dyn Fn(usize) -> f64| {
        (0..sizes.len())
            .min_by(|&a, &b| f(a).total_cmp(&f(b)))
            .unwrap_or(0)
    };
    if cost.links().is_some() {
        by(&time)
    } else {
        by(&own_cost)
    }
}
