//! Gather trees for ranks with several ports.
//!
//! - Source: Träff, "Practical, Linear-time, Fully Distributed Algorithms for Irregular Gather and
//!   Scatter", after Theorem 1 (adaptive). The exact algorithm and the heuristics are our own (the
//!   optimum is NP-hard: Theorem 6 of "On Optimal Trees for Irregular Gather and Scatter
//!   Collectives").
//! - Symbols: `p` ranks, blocks `m_i`, `k` ports.
//!
//! The three planners:
//!
//! - [`adaptive`]: joins `k + 1` adjacent subcubes of `(k + 1)^d` ranks at once. The one that takes
//!   longest to gather receives from all others, each through its own port. Rounds:
//!   `ceil(log_{k+1} p)`. For `k = 1` this is the adaptive binomial tree.
//! - [`exact`], for `gamma_copy = 0`: the dynamic program of `Sets` over sets of ranks.
//!   `O(k 3^p)`; refused for more than 15 ranks.
//! - [`tree`]: exact for few ranks with free copies. Otherwise the best of three: the adaptive
//!   tree; all blocks sent directly to the root, large ones first; `k` groups with about equal
//!   data, each gathered through one port of the root by the best tree over its ranks in decreasing
//!   order of blocks.

use super::binomial::{block_weights, join_subcubes, takes_longer};
use super::noncontiguous;
use super::subsets::{Parts, Sets};
use super::tree_costs::TreeCosts;
use super::{GatherProblem, GatherTree};
use crate::error::{Error, Result};
use crate::plan::gather::row::{table_of_pairs, tree_rows};

tree_rows!(
    ADAPTIVE_GATHER, ADAPTIVE_SCATTER: "ported-adaptive", adaptive {
        k_ported: true,
        source: "Träff, adaptive gather trees, after Theorem 1",
        rounds: "ceil(log_{k+1} p)",
        volume: "at most ceil(log_{k+1} p) times each block",
    }
);

tree_rows!(
    GATHER, SCATTER: "ported", tree {
        k_ported: true,
        tables: table_of_pairs,
        source: "oneport",
        rounds: "those of the best tree (p <= 10, free copies), or one at least as good as ported-adaptive",
        volume: "those of that tree",
    }
);

/// Maximum number of ranks for [`exact`].
pub const MAX_EXACT: usize = 15;
/// Maximum number of ranks for which [`tree`] is exact.
const EXACT: usize = 10;

/// The adaptive tree for the problem's ports, without a search for the best of free roots. Takes
/// `O(p)` time.
pub fn adaptive(problem: &GatherProblem) -> Result<GatherTree> {
    let (root, radix) = (problem.root(), problem.ported().saturating_add(1));
    let tree = |weight| join_subcubes(problem, root, radix, takes_longer(weight));
    let trees = block_weights(problem).map(tree);
    Ok(problem
        .fastest(trees)
        .expect("there is at least one estimate"))
}

/// The best tree found: see the [module documentation](self). Takes `O(p log p + p k)` time, and as
/// long as [`optimal::tree`](super::optimal::tree) for the blocks of each port.
pub fn tree(problem: &GatherProblem) -> Result<GatherTree> {
    let (p, cost) = (problem.ranks(), problem.cost());
    let free = (0..p).all(|r| cost.copy(r, problem.sizes()[r]) == 0.0);
    if p <= EXACT && free {
        return exact(problem);
    }
    let adaptive = adaptive(problem)?;
    let root = adaptive.root();
    let mut order: Vec<usize> = (0..p).filter(|&r| r != root).collect();
    order.sort_by_key(|&r| std::cmp::Reverse(problem.sizes()[r]));
    let k = problem.ported().min(p.max(2) - 1);
    // Assign each block to the port that becomes free first.
    let mut ports = vec![0.0; k];
    let mut groups = vec![Vec::new(); k];
    let mut star = GatherTree::unconnected(p, root);
    for &r in &order {
        let port = (0..k).fold(0, |best, port| {
            if ports[port] < ports[best] {
                port
            } else {
                best
            }
        });
        ports[port] += cost.transfer(r, root, problem.sizes()[r]);
        groups[port].push(r);
        star.add_child(root, r, port);
    }
    let grouped = if cost.links().is_some() {
        None
    } else {
        let mut tree = GatherTree::unconnected(p, root);
        for (port, group) in groups.iter().enumerate() {
            noncontiguous::receive_group(problem, root, group, port, &mut tree)?;
        }
        Some(tree)
    };
    let trees = [adaptive.clone(), star].into_iter().chain(grouped);
    Ok(problem.fastest(trees).unwrap_or(adaptive))
}

/// The best of all trees, ordered or not, by dynamic programming over sets of ranks: `O(k 3^p)`
/// time and `O(k 2^p)` memory.
pub fn exact(problem: &GatherProblem) -> Result<GatherTree> {
    let copies = |r: usize| problem.cost().copy(r, problem.sizes()[r]);
    if problem.ranks() <= MAX_EXACT && (0..problem.ranks()).any(|r| copies(r) > 0.0) {
        return Err(Error::usage(
            "the best of all trees with several ports is computed only where copies cost nothing (gamma_copy 0)",
        ));
    }
    let (costs, ports) = (TreeCosts::of(problem), problem.ported());
    Sets::new(&costs, Parts::All, ports, MAX_EXACT)?.tree(problem.root())
}
