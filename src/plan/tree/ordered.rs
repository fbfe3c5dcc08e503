//! Reduction and broadcast of whole vectors along the best tree that keeps operand order.
//!
//! - Source: Träff, "On Optimal Trees for Irregular Gather and Scatter Collectives", Theorem 4.
//! - Symbols: `p` ranks, `m` elements, `tc = alpha + beta m`, `tp = gamma m`.
//! - Rounds with equal links: `ceil(log2 p)`. Time: `ceil(log2 p) (tc + tp)`, which no tree beats.
//! - Operand order: kept, for any root.
//! - Cost of planning: `O(p)` with equal links, otherwise `O(p^4 log p)`, as for
//!   [`heterogeneous`] gathers.
//!
//! Every rank holds the combination of a range of consecutive ranks and only ever adds an adjacent
//! range. With equal links, ranges are halved. Otherwise the dynamic program of
//! [`crate::plan::gather::heterogeneous`] finds the minimum time over all such trees. The broadcast
//! is the reversal of a reduction planned for reversed links.
//!
//! Example, `p = 5`, root 3: 0→1, 2→3; then 1→3; then 4→3.

use crate::budget::trees::MAX_LINKED;
use crate::machine::bytes;
use crate::plan::gather::{GatherTree, TreeCosts, heterogeneous};
use crate::plan::prelude::*;
use crate::plan::tree::binomial;

pub(in crate::plan) const REDUCE: Row = Row {
    source: "Träff, optimal gather trees, Theorem 4",
    rounds: "ceil(log2 p); on a heterogeneous platform those of the best ordered tree",
    max_ranks_with_links: Some(MAX_LINKED),
    best_root: BestRoot::Own,
    ..row::new("ordered", Kind::Reduce, |request| along(tree, request)).with_formula(binomial::time)
};

pub(in crate::plan) const BROADCAST: Row = REDUCE.also(Kind::Broadcast);

/// A tree for a reduction, or for the reversal of a broadcast.
pub(super) type ReductionTree = fn(&Request) -> Result<GatherTree>;

/// The reduction along a tree, or the broadcast: the reversal of a reduction with links in the
/// opposite direction.
pub(super) fn along(tree: ReductionTree, request: &Request) -> Result<Schedule> {
    if request.kind.reduces() {
        return reduce(&tree(request)?, request);
    }
    let reversed = request.cost.clone().reversed_links()?;
    let request = request.clone().cost(reversed).keep_order(false);
    reduce(&tree(&request)?, &request)?.into_reversed()
}

fn reduce(tree: &GatherTree, request: &Request) -> Result<Schedule> {
    let root = tree.root();
    let (mut b, vector) = over_vector(request, Collective::Reduce { root }, 0);
    let parents = tree.parents();
    for (r, parent) in parents.into_iter().enumerate() {
        for child in tree.children(r) {
            let order = Order::by_rank(r, child.rank);
            b.step(r, Step::recv_combine(child.rank, vector, order));
        }
        if let Some(parent) = parent {
            b.step(r, Step::send(parent, vector));
        }
    }
    b.build()
}

/// The costs of messages that have the whole vector, and are combined in a reduction.
pub(super) fn costs(request: &Request) -> TreeCosts<'_> {
    let size = bytes(request.elements(), request.element_bytes);
    let combine = |r: usize| {
        if request.kind.reduces() {
            request.cost.combine(r, size)
        } else {
            0.0
        }
    };
    TreeCosts::of_reduction(
        &request.cost,
        size,
        (0..request.ranks).map(combine).collect(),
    )
}

fn tree(request: &Request) -> Result<GatherTree> {
    let p = request.ranks;
    if request.cost.links().is_some() {
        return heterogeneous::tree_by(&costs(request), request.given_root());
    }
    let mut tree = GatherTree::unconnected(p, request.root);
    halve(&mut tree, 0, p, request.root);
    Ok(tree)
}

/// Adds the tree that reduces `start..end` to `root`, a rank of this range. The range is cut in two
/// parts, each of at most half of the next power of two.
fn halve(tree: &mut GatherTree, start: usize, end: usize, root: usize) {
    let n = end - start;
    if n < 2 {
        return;
    }
    let half = n.next_power_of_two() / 2;
    // Of the possible cuts, this one makes the root's own part as large as allowed.
    let cut = if root < start + half {
        start + half
    } else {
        end - half
    };
    let (from, other) = if root < cut {
        halve(tree, start, cut, root);
        (cut, (cut, end))
    } else {
        halve(tree, cut, end, root);
        (cut - 1, (start, cut))
    };
    halve(tree, other.0, other.1, from);
    tree.add_child(root, from, 0);
}
