//! Gather trees for ranks with several ports.
//!
//! - Source: Träff, "Practical, Linear-time, Fully Distributed Algorithms for Irregular Gather and
//!   Scatter", after Theorem 1 (adaptive). The exact algorithm and the heuristics are our own (the
//!   optimum is NP-hard: Theorem 6 of "On Optimal Trees for Irregular Gather and Scatter
//!   Collectives").
//! - Symbols: `p` ranks, blocks `m_i`, `k` ports.
//!
//! The four planners:
//!
//! - `knomial`: joins `k + 1` adjacent subcubes of `(k + 1)^d` ranks at once, whatever their data.
//!
//! - [`adaptive`]: joins `k + 1` adjacent subcubes of `(k + 1)^d` ranks at once. The one that takes
//!   longest to gather receives from all others, each through its own port. Rounds:
//!   `ceil(log_{k+1} p)`. For `k = 1` this is the adaptive binomial tree.
//! - [`exact`], for `gamma_copy = 0`: the dynamic program of `Sets` over sets of ranks.
//!   `O(k 3^p)`; refused for more than 15 ranks.
//! - [`tree`]: exact for few ranks with free copies. Otherwise the best of four: the adaptive
//!   tree; all blocks sent directly to the root, large ones first, or in the best shares of
//!   its ports (for up to 24 ranks); `k` groups with about equal data, each gathered through one
//!   port of the root by the best tree over its ranks in decreasing order of blocks.

use super::binomial::{block_weights, join_subcubes, takes_longer};
use super::noncontiguous;
use super::subsets::{Parts, Sets};
use super::tree_costs::TreeCosts;
use super::{GatherProblem, GatherTree};
use crate::budget::trees::{EXACT_PORTED, MAX_EXACT_PORTED, MAX_SHARED, MAX_TRIED};
use crate::error::{Error, Result};
use crate::plan::gather::row::{table_of_pairs, tree_rows};
use crate::simulate::bounds::shares;

tree_rows!(
    ADAPTIVE_GATHER, ADAPTIVE_SCATTER: "ported-adaptive", adaptive {
        k_ported: true,
        source: "Träff, adaptive gather trees, after Theorem 1",
        rounds: "ceil(log_{k+1} p)",
        volume: "at most ceil(log_{k+1} p) times each block",
    }
);

tree_rows!(
    KNOMIAL_GATHER, KNOMIAL_SCATTER: "knomial", knomial {
        k_ported: true,
        source: "folklore; MPICH, Intel MPI (knomial), radix k+1",
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

/// The `k+1`-nomial tree, oblivious of the sizes: of subcubes without the given root the
/// highest-numbered one receives. Takes `O(p)` time.
pub(super) fn knomial(problem: &GatherProblem) -> Result<GatherTree> {
    let radix = problem.ported().saturating_add(1);
    Ok(join_subcubes(problem, problem.root(), radix, |_, _| false))
}

/// The best tree found: see the [module documentation](self). Takes `O(p log p + p k)` time, and as
/// long as [`optimal::tree`](super::optimal::tree) for the blocks of each port.
pub fn tree(problem: &GatherProblem) -> Result<GatherTree> {
    let (p, cost) = (problem.ranks(), problem.cost());
    let free = (0..p).all(|r| cost.copy(r, problem.sizes()[r]) == 0.0);
    if p <= EXACT_PORTED && free {
        return exact(problem);
    }
    let adaptive = adaptive(problem)?;
    let root = adaptive.root();
    let mut order: Vec<usize> = (0..p).filter(|&r| r != root).collect();
    order.sort_by_key(|&r| std::cmp::Reverse(problem.sizes()[r]));
    let k = problem.ported().min(p.max(2) - 1);
    let messages = order
        .iter()
        .map(|&r| cost.transfer(r, root, problem.sizes()[r]));
    let messages: Vec<f64> = messages.collect();
    // Each message takes the port that becomes free first.
    let mut busy = vec![0.0; k];
    let first_free = messages.iter().map(|message| {
        let port = (1..k).fold(
            0,
            |best, port| if busy[port] < busy[best] { port } else { best },
        );
        busy[port] += message;
        port
    });
    let first_free: Vec<usize> = first_free.collect();
    let star = |port_of: &[usize]| {
        let mut star = GatherTree::unconnected(p, root);
        for (&r, &port) in order.iter().zip(port_of) {
            star.add_child(root, r, port);
        }
        star
    };
    let mut groups = vec![Vec::new(); k];
    for (&r, &port) in order.iter().zip(&first_free) {
        groups[port].push(r);
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
    let shared = (p <= MAX_SHARED).then(|| star(&shares(&messages, k, MAX_TRIED).1));
    let trees = [adaptive.clone(), star(&first_free)].into_iter();
    let trees = trees.chain(grouped).chain(shared);
    Ok(problem.fastest(trees).unwrap_or(adaptive))
}

/// The best of all trees, ordered or not, by dynamic programming over sets of ranks: `O(k 3^p)`
/// time and `O(k 2^p)` memory.
pub fn exact(problem: &GatherProblem) -> Result<GatherTree> {
    let copies = |r: usize| problem.cost().copy(r, problem.sizes()[r]);
    if problem.ranks() <= MAX_EXACT_PORTED && (0..problem.ranks()).any(|r| copies(r) > 0.0) {
        return Err(Error::usage(
            "the best of all trees with several ports is computed only where copies cost nothing (gamma_copy 0)",
        ));
    }
    let (costs, ports) = (TreeCosts::of(problem), problem.ported());
    Sets::new(&costs, Parts::All, ports, MAX_EXACT_PORTED)?.tree(problem.root())
}
