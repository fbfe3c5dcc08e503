//! Optimal ternary gather trees: no rank receives more than three messages, in rank order.
//!
//! - Source: Träff, "On Optimal Trees for Irregular Gather and Scatter Collectives", section 3.3
//!   ("or other fixed-degree trees").
//! - Time and memory: those of [`heterogeneous::rank_ordered`](super::heterogeneous) with `d = 3`.
//!
//! Example, `m = 1,1,1,1`, `alpha = 10`, `beta = 1`, `gamma_copy = 0`, root 0: three messages of
//! one byte take 33, one fewer than two levels only if the root could receive at once; the binary
//! tree 2→1, 1→0, 3→0 takes 34.

use super::heterogeneous;
use crate::plan::gather::row::tree_rows;
use crate::plan::registry::MadeFor;

tree_rows!(
    GATHER, SCATTER: "ternary", heterogeneous::ternary {
        best_root: crate::plan::registry::BestRoot::Own,
        made_for: MadeFor::UnevenLinks,
        max_ranks: Some(heterogeneous::MAX_RANKS),
        source: "Träff, optimal gather trees, section 3.3",
        rounds: "those of the best tree of at most three children in rank order",
        volume: "those of that tree",
    }
);
