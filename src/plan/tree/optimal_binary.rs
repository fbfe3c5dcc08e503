//! Reduction and broadcast of whole vectors along the best binary tree where links differ.
//!
//! - Source: Träff, "On Optimal Trees for Irregular Gather and Scatter Collectives", section 3.3:
//!   "Dynamic programming can likewise be used to compute optimal binary trees for these problems".
//! - Symbols: `p` ranks, `m` elements.
//! - Cost of planning: `O(p^4 log p)`, as for [`heterogeneous`] gathers.
//!
//! No rank receives from more than two others, each of which has a range of consecutive ranks, the
//! lower range first. The broadcast is the reversal of a reduction planned for reversed links.
//!
//! Example, `p = 4`, root 0, all messages take 1: 2→1 and 3→0, then 1→0 (2 in all).

use super::ordered::{along, costs};
use crate::budget::trees::MAX_LINKED_COMPARED;
use crate::plan::gather::{GatherTree, heterogeneous};
use crate::plan::prelude::*;

pub(in crate::plan) const REDUCE: Row = Row {
    commutative_only: true,
    made_for: MadeFor::UnevenLinks,
    transfers: |p, _| p,
    max_ranks: Some(MAX_LINKED_COMPARED),
    source: "Träff, optimal gather trees, section 3.3",
    rounds: "those of the best binary tree in rank order",
    best_root: BestRoot::Own,
    ..row::new("optimal-binary", Kind::Reduce, |request| {
        along(tree, request)
    })
};

pub(in crate::plan) const BROADCAST: Row = REDUCE.also(Kind::Broadcast);

fn tree(request: &Request) -> Result<GatherTree> {
    heterogeneous::rank_ordered(&costs(request), request.given_root(), Some(2))
}
