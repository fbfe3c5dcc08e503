//! Recursive doubling allgather: in every round partners exchange all blocks that they have so far.
//!
//! - Symbols: `p` ranks, `m` elements in all blocks together, `b = m/p` if they are equal,
//!   `n = 2^d` the largest power of two up to `p`.
//! - Time for equal blocks and `p = n`: `d alpha + (p-1) beta b` bidirectional, twice that
//!   unidirectional. For `p != n`, bidirectional and linear costs: `(d + 2) alpha + beta p b`, and
//!   `beta (2^k + min(2^k, p - n)) b` for each round `k < d`.
//!
//! For `p != n` the first `p - n` even ranks receive their right neighbours' blocks before the
//! exchange and send them all other blocks after it. The blocks of `2^k` consecutive members are
//! therefore consecutive.
//!
//! Example, `p = 4`: 0↔1, 2↔3 (one block); 0↔2, 1↔3 (two blocks). `p = 3`: 1→0; 0↔2 (two blocks one
//! way, one the other); 0→1 (blocks 0 and 2).

use crate::plan::prelude::*;

pub(in crate::plan) const ALLGATHER: Row = Row {
    source: "folklore",
    rounds: "floor(log2 p) (bi), 2 floor(log2 p) (uni), if p is not a power of two 2 more",
    ..row::new("recursive-doubling", Kind::Allgather, plan).with_formula(time)
};

pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    let rounds = 0..request.ranks.ilog2();
    compose::plan(request, |blocks| {
        exchanges(&blocks, |j, k, _| j ^ (1 << k), rounds.clone()).into_iter()
    })
}

/// Time of the schedule for equal blocks of size `b`; for `p != n` only if costs are linear.
///
/// In every round the first member is in the group with the most blocks, `2^k + min(2^k, p - n)`,
/// and waits for no other member.
pub(crate) fn time(request: &Request) -> Option<f64> {
    let b = equal_size(request, &request.block_spans())?;
    let p = request.ranks;
    let pairs = folded(p);
    if pairs > 0 && request.cost.linear().is_none() {
        return None;
    }
    let before_and_after = if pairs > 0 {
        request.transfer_time(b) + request.transfer_time((p - 1) * b)
    } else {
        0.0
    };
    let rounds = (0..p.ilog2()).map(|k| {
        let members = 1usize << k;
        let first = request.transfer_time((members + members.min(pairs)) * b);
        if request.ports.can_relay() {
            return first;
        }
        let folded = pairs.saturating_sub(members).min(members);
        first + request.transfer_time((members + folded) * b)
    });
    Some(before_and_after + rounds.sum::<f64>())
}
