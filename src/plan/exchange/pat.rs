//! PAT (parallel aggregated trees) allgather and reduce-scatter: trees from far to near, with a
//! limited number of blocks in a message.
//!
//! - Source: Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale"
//!   (2025); NCCL.
//! - Symbols: `p` ranks, `P` the next power of two, `m` elements in all blocks together, `b = m/p`
//!   if they are equal, `A = min(8, P/2)` blocks in a message at most.
//! - Rounds: `log2 A + P/A - 1` (bidirectional); for `p < P` some may be empty.
//! - Time for equal blocks: as many times `alpha`, and `(p-1) beta b`, twice that on unidirectional
//!   ranks if `p` is a power of two. The reduce-scatter takes `(p-1) gamma b` more.
//! - Scratch: for the reduce-scatter on unidirectional ranks, the size of the longest message.
//! - Spans: a message has up to `A` of them.
//!
//! The block of rank `r` reaches rank `r + x` from rank `r + x - d`, where `d` is the largest power
//! of two that divides `x`: a binomial tree whose first messages go farthest. Messages over the
//! same distance go together. The first `log2 A` rounds bring each block to `A` ranks at distances
//! of `P/A`; from there on it goes through the trees of these ranks side by side, to one rank of
//! each in a round, in the order of `x`.
//!
//! Example, `p = 4`: 0→2, 1→3, 2→0, 3→1 (own block); 0→1, 1→2, 2→3, 3→0 (two blocks).

use super::by_distance::{self, BlockOrder, Share};
use crate::plan::prelude::*;

pub(in crate::plan) const ALLGATHER: Row = Row {
    transfers: |p, _| {
        p.saturating_mul(2 * MAX_BLOCKS + p.div_ceil(MAX_BLOCKS))
            .saturating_mul(4)
    },
    source: "Jeaugey 2025; NCCL",
    rounds: "log2 A + P/A - 1, P = 2^ceil(log2 p), A = min(8, P/2) (bi); about twice that (uni)",
    formula: ClosedForm::Of(|request| by_distance::time(request, shares)),
    ..row::planned_by(
        "pat",
        Kind::Allgather,
        Planner::Streamed(|request| by_distance::programs(request, shares, BlockOrder::Joined)),
    )
};

pub(in crate::plan) const REDUCE_SCATTER: Row = ALLGATHER.also(Kind::ReduceScatter);

/// Blocks in a message at most: a power of two.
const MAX_BLOCKS: usize = 8;

/// The roots of the trees, from far to near, then the ranks of all trees.
pub(super) fn shares(p: usize) -> Vec<Share> {
    let all = p.next_power_of_two();
    let trees = MAX_BLOCKS.min(all / 2).max(1);
    let apart = all / trees;
    let roots = (0..trees.ilog2()).map(|k| {
        let distance = all >> (k + 1);
        (distance, (distance..all).step_by(2 * distance))
    });
    let others = (1..apart).map(|y| (1 << y.trailing_zeros(), (y..all).step_by(apart)));
    let share = |(distance, targets): (usize, std::iter::StepBy<std::ops::Range<usize>>)| Share {
        distance,
        targets: targets.filter(|&x| x < p).collect(),
    };
    let shares = roots.chain(others).map(share);
    shares.filter(|share| !share.targets.is_empty()).collect()
}
