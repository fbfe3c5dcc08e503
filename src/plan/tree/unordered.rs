//! Reduction and broadcast of whole vectors along the fastest tree where links differ or are
//! missing, whatever the order of operands.
//!
//! - Source: see [`earliest`], which makes the tree.
//! - Symbols: `p` ranks, `m` elements.
//! - Time: for up to 12 ranks the least of all trees; no latency counts in the search.
//! - Cost of planning: `O(p^2 3^p)` for up to 12 ranks, otherwise `O(p^3)`.
//!
//! The broadcast is the reversal of a reduction planned for reversed links.
//!
//! Example, links 0-1, 1-2, 1-3, 2-4 of cost 1, broadcast from 0: 0→1; then 1→2; then 2→4 and 1→3.

use super::ordered::{along, costs};
use crate::plan::gather::{GatherTree, earliest};
use crate::plan::prelude::*;

pub(in crate::plan) const REDUCE: Row = Row {
    commutative_only: true,
    made_for: MadeFor::UnevenLinks,
    transfers: |p, _| p,
    planning_work: 64,
    source: "Träff, optimal gather trees, Proposition 2; Bhat, Raghavendra, Prasanna 2003",
    rounds: "those of the best of all trees (p <= 12), or of one whose next message ends first",
    best_root: BestRoot::OwnAmong(earliest::ALL_ROOTS),
    ..row::new("unordered", Kind::Reduce, |request| along(tree, request))
};

pub(in crate::plan) const BROADCAST: Row = REDUCE.also(Kind::Broadcast);

fn tree(request: &Request) -> Result<GatherTree> {
    earliest::tree_by(&costs(request), request.given_root())
}
