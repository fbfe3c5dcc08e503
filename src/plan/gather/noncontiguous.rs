//! Gather trees in which the ranks of a subtree need not be consecutive.
//!
//! - Source: Träff, "On Optimal Trees for Irregular Gather and Scatter Collectives", Proposition 2
//!   (finding the best one is NP-hard: Theorem 7). The heuristics are our own, except for
//!   decreasing blocks, which is an earlier one of Träff's.
//! - Symbols: `p` ranks, blocks `m_i`.
//!
//! The two planners:
//!
//! - [`exact`]: the dynamic program of `Sets` over sets of ranks. `O(p 3^p)`, and `p` times as long
//!   where links differ; refused for more than 16 ranks.
//! - [`tree`]: exact for few ranks. For more, the best adjacent tree over the ranks in another
//!   order (a permutation): in rank order, in decreasing order of blocks with the root first, then
//!   with ranks moved as long as that helps, in a fixed number of tries; and [`super::two_groups`].
//!   Where links differ, the best adjacent tree, and the one of `earliest` for messages of
//!   the average size, which exists wherever links connect all ranks to the root.
//!
//! Schedules assemble blocks in rank order at every rank, so messages may have several spans; this
//! costs nothing in the model.
//!
//! Example, `m = 21,31,31,31,41,41,41,61,61,131,240,250`, `alpha = beta = gamma = 1`, free root:
//! 982, where adjacent trees take 983 and rank-ordered ones 986.

use super::decreasing::decreasing;
use super::subsets::{Parts, Sets};
use super::tree_costs::TreeCosts;
use super::weakly_ordered::sorted_by_completion;
use super::{GatherProblem, GatherTree, earliest, optimal, two_groups};
use crate::budget::trees::{EXACT, MAX_EXACT, MAX_ORDER_ENTRIES, MAX_ORDERS};
use crate::error::Result;
use crate::plan::gather::row::{table_of_pairs, tree_rows};
use crate::random::Generator;

tree_rows!(
    GATHER, SCATTER: "unordered", tree {
        tables: table_of_pairs,
        source: "Träff, optimal gather trees, Proposition 2; oneport",
        rounds: "those of the best of all trees (p <= 12), or one at least as good as optimal",
        volume: "those of that tree",
    }
);

/// The best tree found: see the [module documentation](self). For more than 12 ranks it calls
/// [`optimal::tree`] up to 26 times (twice from 363 ranks on); where links differ in cost, once.
pub fn tree(problem: &GatherProblem) -> Result<GatherTree> {
    let p = problem.ranks();
    if p <= EXACT {
        return exact(problem);
    }
    if problem.cost().links().is_some() {
        let average = problem.sizes().iter().sum::<u64>().div_ceil(p as u64);
        let costs = TreeCosts::of_reduction(problem.cost(), average, vec![0.0; p]);
        let earliest = earliest::tree(&costs, problem.root());
        let earliest = earliest.map(|tree| sorted_by_completion(problem, tree));
        // Ordered trees may not exist, or take too long to find.
        return match (optimal::tree(problem), earliest) {
            (Ok(ordered), Ok(other)) => {
                Ok(problem.fastest([ordered.clone(), other]).unwrap_or(ordered))
            }
            (ordered, other) => other.or(ordered),
        };
    }
    let mut order: Vec<usize> = (0..p).collect();
    let mut best = ordered(problem, &order)?;
    let mut time = problem.time(&best);
    let mut attempt = |order: &[usize], best: &mut GatherTree| -> Result<bool> {
        let next = ordered(problem, order)?;
        let better = problem.time(&next) < time;
        if better {
            (time, *best) = (problem.time(&next), next);
        }
        Ok(better)
    };
    let decreasing = decreasing(problem);
    if attempt(&decreasing, &mut best)? {
        order = decreasing;
    }
    let mut random = Generator::new(p as u64);
    for _ in 0..(MAX_ORDER_ENTRIES / (p * p)).min(MAX_ORDERS) {
        let mut next = order.clone();
        let moved = next.remove(random.below(p));
        next.insert(random.below(p), moved);
        if attempt(&next, &mut best)? {
            order = next;
        }
    }
    let two = two_groups::tree(problem)?;
    Ok(if problem.time(&two) < time { two } else { best })
}

fn ordered(problem: &GatherProblem, order: &[usize]) -> Result<GatherTree> {
    let sizes = order.iter().map(|&r| problem.sizes()[r]).collect();
    let root = problem
        .root()
        .and_then(|root| order.iter().position(|&r| r == root));
    let renumbered = GatherProblem::new(sizes, problem.cost().clone(), root)?;
    let tree = optimal::tree(&renumbered)?;
    let mut real = GatherTree::unconnected(order.len(), order[tree.root()]);
    for (v, &r) in order.iter().enumerate() {
        copy_children(&tree, v, &mut real, r, |c| order[c], 0);
    }
    Ok(real)
}

/// Lets `root` receive the ranks of `group` through `port`. The subtrees are those of the best
/// adjacent tree over an empty block at the root, followed by `group` in this order.
pub(super) fn receive_group(
    problem: &GatherProblem,
    root: usize,
    group: &[usize],
    port: usize,
    into: &mut GatherTree,
) -> Result<()> {
    let sizes = group.iter().map(|&r| problem.sizes()[r]);
    let sizes = std::iter::once(0).chain(sizes).collect();
    let tree = optimal::tree(&GatherProblem::new(sizes, problem.cost().clone(), Some(0))?)?;
    copy_children(&tree, 0, into, root, |c| group[c - 1], port);
    for (v, &r) in group.iter().enumerate() {
        copy_children(&tree, v + 1, into, r, |c| group[c - 1], 0);
    }
    Ok(())
}

/// Copies the children of `v` in `from` to `r` in `into`; `real` maps their ranks.
fn copy_children(
    from: &GatherTree,
    v: usize,
    into: &mut GatherTree,
    r: usize,
    real: impl Fn(usize) -> usize,
    port: usize,
) {
    for (i, c) in from.children(v).iter().enumerate() {
        into.add_child(r, real(c.rank), port);
        if i + 1 == from.copy_after(v) {
            into.copy_now(r);
        }
    }
}

/// The best tree of all, in `O(p 2^p)` memory.
///
/// # Errors
/// More than 16 ranks, or links that do not connect all ranks.
pub fn exact(problem: &GatherProblem) -> Result<GatherTree> {
    Sets::new(&TreeCosts::of(problem), Parts::All, 1, MAX_EXACT)?.tree(problem.root())
}
