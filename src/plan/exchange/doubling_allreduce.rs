//! Recursive doubling allreduce: in every round partners exchange their partial results and combine
//! them.
//!
//! - Source: folklore.
//! - Symbols: `p` ranks, `m` elements, `n = 2^d` the largest power of two up to `p`.
//! - Time, bidirectional: `d (alpha + beta m + gamma m)`; unidirectional:
//!   `d (2 alpha + 2 beta m + gamma m)`. For `p != n`: `2 (alpha + beta m) + gamma m` more.
//! - Scratch: `m`.
//!
//! Before round `k` each of `2^k` neighbours holds the combination of all of them, and its partner,
//! `2^k` away, that of the adjacent group. Partners combine into the vector that they send, so both
//! receive into scratch first. For `p != n` the neighbours `2i`, `2i + 1` are folded into one
//! member for the first `p - n` values of `i`. The rank that left receives the result at the end.
//!
//! Example, `p = 3`: 1→0; 0↔2; 0→1.

use super::doubling_allgather;
use crate::plan::prelude::*;

pub(in crate::plan) const ALLREDUCE: Row = Row {
    collective: Kind::Allreduce,
    volume: "n floor(log2 p) m + 2(p-n) m, n = 2^floor(log2 p)",
    planner: Planner::Direct(plan),
    formula: ClosedForm::Of(time),
    ..doubling_allgather::ALLGATHER
};

pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    plan_by(request, |j, k, _| j ^ (1 << k))
}

/// Plans the allreduce in which `partner(j, k, n)` is the partner of member `j` of `n` in round
/// `k`.
pub(super) fn plan_by(
    request: &Request,
    partner: fn(usize, u32, usize) -> usize,
) -> Result<Schedule> {
    let p = request.ranks;
    let (mut b, vector) = over_vector(request, request.kind.with_root(0), 0);
    let members = members_of(p, 0);
    if members.len() > 1 {
        for &r in &members {
            b.set_len(r, 2 * vector.len);
        }
    }
    fold(&mut b, p, 0, vector);
    for k in 0..members.len().ilog2() {
        let messages = members
            .iter()
            .enumerate()
            .map(|(j, &me)| Message::new(me, members[partner(j, k, members.len())], vector));
        let messages: Vec<_> = messages.collect();
        round(
            &mut b,
            request,
            &messages,
            Arrival::CombinedAfter(vector.len),
        );
    }
    unfold(&mut b, p, vector);
    b.build()
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    let m = request.elements();
    let rounds = f64::from(request.ranks.ilog2());
    let round = time_of_round(request, m) + request.local_combine_time(m);
    Some(rounds * round + time_of_fold(request, 2.0))
}
