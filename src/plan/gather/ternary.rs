//! Optimal ternary gather trees: no rank receives more than three messages, in rank order.
//!
//! - Source: Träff, "On Optimal Trees for Irregular Gather and Scatter Collectives", section 3.3
//!   ("or other fixed-degree trees").
//! - Time and memory: those of [`heterogeneous::rank_ordered`](super::heterogeneous) with `d = 3`.
//!
//! Example, `p = 4`, messages to rank 0 take 1, all others 10: rank 0 receives from 1, 2 and 3 in
//! 3; the best binary tree, 3→2, then 1→0 and 2→0, takes 11.

use super::heterogeneous;
use crate::budget::trees::MAX_LINKED_COMPARED;
use crate::plan::gather::row::tree_rows;
use crate::plan::registry::MadeFor;

tree_rows!(
    GATHER, SCATTER: "ternary", heterogeneous::ternary {
        best_root: crate::plan::registry::BestRoot::Own,
        made_for: MadeFor::UnevenLinks,
        max_ranks: Some(MAX_LINKED_COMPARED),
        source: "Träff, optimal gather trees, section 3.3",
        rounds: "those of the best tree of at most three children in rank order",
        volume: "those of that tree",
    }
);
