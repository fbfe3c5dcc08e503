//! Sparbit allgather: Bruck's rounds with the distances from far to near, so that the largest
//! messages go to near ranks.
//!
//! - Source: Loch, Koslovski, "Sparbit: a new logarithmic-cost and data locality-aware MPI
//!   Allgather algorithm" (2021); Open MPI.
//! - Symbols: `p` ranks, `m` elements in all blocks together, `b = m/p` if they are equal,
//!   `q = ceil(log2 p)`.
//! - Time for equal blocks: `q alpha + (p-1) beta b`, twice that on unidirectional ranks if `p` is
//!   a power of two: that of [Bruck](super::bruck). It differs where distances differ.
//! - Spans: a message has up to `p/2` of them.
//!
//! In the rounds with `d = 2^(q-1), .., 2, 1` rank `r` holds `c` blocks, every `2d`-th one from its
//! own downwards. It sends them to `r + d`, which then has every `d`-th. If `p` is no multiple of
//! the distances, the last of these blocks would arrive twice: it is left out in the rounds whose
//! bit is set in the complement of `p / t`, with bit 0, times `t`, where `t` is the largest power
//! of two that divides `p`.
//!
//! Example, `p = 4`: 0→2, 1→3, 2→0, 3→1 (own block); 0→1, 1→2, 2→3, 3→0 (own block and the opposite
//! one).

use super::by_distance::{self, BlockOrder, Share};
use crate::plan::prelude::*;

pub(in crate::plan) const ALLGATHER: Row = Row {
    transfers: row::parts_of_halves,
    source: "Loch, Koslovski 2021; Open MPI",
    rounds: "ceil(log2 p) (bi), 2 ceil(log2 p) (uni; p not a power of two: more)",
    formula: ClosedForm::Of(|request| by_distance::time(request, shares)),
    ..row::planned_by(
        "sparbit",
        Kind::Allgather,
        Planner::Streamed(|request| by_distance::programs(request, shares, BlockOrder::AsListed)),
    )
};

/// The rounds: each rank receives every `2d`-th block of those before it.
pub(super) fn shares(p: usize) -> Vec<Share> {
    let odd_part = p >> p.trailing_zeros();
    let left_out = (!odd_part | 1) << p.trailing_zeros();
    let mut held = 1;
    let share = |k| {
        let distance = 1usize << k;
        let sent = held - usize::from(distance & left_out != 0);
        held += sent;
        let targets = (0..sent).map(|j| distance + 2 * j * distance).collect();
        Share { distance, targets }
    };
    (0..doublings(p)).rev().map(share).collect()
}
