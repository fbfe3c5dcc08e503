//! Linear reduction: every rank sends its vector directly to the root, which combines one after
//! another.
//!
//! - Symbols: `p` ranks, `m` elements.
//! - Time: `(p - 1)(alpha + beta m + gamma m)`, the longest of all reductions when every rank has
//!   its own core.
//! - Operand order: kept. The root receives in rank order.
//!
//! Only the root waits for other ranks. When many ranks share few cores, no context switch is spent
//! on forwarding.
//!
//! Example, `p = 4`: 1→0; 2→0; 3→0.

use crate::plan::prelude::*;

pub(in crate::plan) const REDUCE: Row = Row {
    transfers: |p, _| p,
    source: "folklore",
    rounds: "p-1",
    ..row::planned_by("linear", Kind::Reduce, Planner::Reduction(reduction)).with_formula(time)
};

pub(in crate::plan) const ALLREDUCE: Row = row::allreduce(REDUCE, "2(p-1)");

fn reduction(request: &Request) -> Reduction {
    let vector = Segments::whole(request.elements());
    let rounds = (1..request.ranks).map(|from| [Transfer::new(0, from, 0)]);
    Reduction::new(&request.clone().segments(vector), rounds)
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    let m = request.elements();
    let rounds = request.ranks.saturating_sub(1) as f64;
    Some(rounds * (request.transfer_time(m) + request.combine_time(m)))
}
