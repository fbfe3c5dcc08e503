//! TWO: two regular gathers at the same time, of the large blocks and of the small ones, joined by
//! one last message.
//!
//! - Source: Träff, "On Optimal Trees for Irregular Gather and Scatter Collectives", Lemma 2 and
//!   section 5.2.
//! - Symbols: `p` ranks, blocks `m_i`; a threshold divides the ranks into two groups, those with
//!   larger blocks and the others.
//! - Rounds: the larger of the logarithms of both groups' sizes, plus one.
//! - Time for one large block `y` and `p - 1` blocks of `x`, if `gamma_copy = beta` and
//!   `ceil(log2(p-1)) alpha + beta (p-1) x <= beta y`: `alpha + beta m`, which is optimal (Lemma
//!   2).
//! - Class: non-ordered (messages may have several spans).
//!
//! Each group is gathered along a binomial tree over its ranks in order. Then the root of one group
//! sends everything to the root of the other. The root of a group is the given root, otherwise its
//! first rank with the largest block. Without a given root the better of the two receives. The
//! threshold is the best of those that separate different sizes, or of 64 of these if there are
//! more.
//!
//! Example, `m = 1,9,1`, `alpha = beta = gamma_copy = 1`: 2→0 takes 3, while rank 1 copies its
//! block in 9; then 0→1 takes 3: 12 in all.

use super::{GatherProblem, GatherTree};
use crate::budget::trees::MAX_THRESHOLDS;
use crate::error::Result;
use crate::plan::gather::row::tree_rows;

tree_rows!(
    GATHER, SCATTER: "two", tree {
        planning_work: 64,
        source: "Träff, optimal gather trees, section 5.2",
        rounds: "ceil(log2 p)+1 at most",
        volume: "at most ceil(log2 p)+1 times each block",
    }
);

/// The best such tree, or a binomial tree if all blocks have the same size. Takes `O(p log p)` time
/// to sort the blocks, and `O(p)` for each of at most 128 trees.
pub fn tree(problem: &GatherProblem) -> Result<GatherTree> {
    let mut sizes = problem.sizes().to_vec();
    sizes.sort_unstable();
    sizes.dedup();
    // A threshold is the largest size that counts as small.
    let thresholds = sizes.len() - 1;
    let tried = thresholds.min(MAX_THRESHOLDS);
    let trees = (0..tried).flat_map(|t| {
        let threshold = sizes[t * thresholds / tried];
        let small_receives = [Some(false), Some(true)]
            .into_iter()
            .filter(|_| problem.root().is_none());
        let given = problem.root().map(|_| None);
        small_receives
            .chain(given)
            .map(move |small| (threshold, small))
    });
    let trees = trees.map(|(threshold, small)| tree_for_threshold(problem, threshold, small));
    let all: Vec<usize> = (0..problem.ranks()).collect();
    Ok(problem.fastest(trees).unwrap_or_else(|| {
        let root = problem.root().unwrap_or(0);
        let mut tree = GatherTree::unconnected(problem.ranks(), root);
        add_binomial_tree(&mut tree, &all, root);
        tree
    }))
}

/// The tree for one threshold. `small_receives` says which group receives; if `None`, the one with
/// the given root.
fn tree_for_threshold(
    problem: &GatherProblem,
    threshold: u64,
    small_receives: Option<bool>,
) -> GatherTree {
    let sizes = problem.sizes();
    let (small, large): (Vec<usize>, Vec<usize>) =
        (0..problem.ranks()).partition(|&r| sizes[r] <= threshold);
    let root_of = |group: &[usize]| {
        let given = problem.root().filter(|root| group.contains(root));
        let larger = |a, b| if sizes[b] > sizes[a] { b } else { a };
        given.or(group.iter().copied().reduce(larger)).unwrap_or(0)
    };
    let roots = (root_of(&small), root_of(&large));
    let small_receives = small_receives.unwrap_or(problem.root() == Some(roots.0));
    let (to, from) = if small_receives {
        roots
    } else {
        (roots.1, roots.0)
    };
    let mut tree = GatherTree::unconnected(problem.ranks(), to);
    add_binomial_tree(&mut tree, &small, roots.0);
    add_binomial_tree(&mut tree, &large, roots.1);
    tree.add_child(to, from, 0);
    tree
}

/// Adds a binomial tree over `group`, whose ranks are numbered from its member `root`.
pub(super) fn add_binomial_tree(tree: &mut GatherTree, group: &[usize], root: usize) {
    let n = group.len();
    let first = group.iter().position(|&r| r == root).unwrap_or(0);
    let real = |v: usize| group[(first + v) % n];
    let mut half = 1;
    while half < n {
        for v in (0..n - half).step_by(2 * half) {
            tree.add_child(real(v), real(v + half), 0);
        }
        half *= 2;
    }
}
