//! Recursive doubling scan: in round `k` every rank passes its partial result to the rank `2^k`
//! higher.
//!
//! - Source: Hillis, Steele, "Data parallel algorithms" (1986).
//! - Symbols: `p` ranks, `m` elements, `q = ceil(log2 p)`.
//! - Time, bidirectional: `q (alpha + beta m + gamma m)`. Unidirectional: `alpha + beta m` more for
//!   each round in which a rank both sends and receives, that is, all but the last.
//! - Scratch: `m`.
//!
//! Before round `k` rank `r` holds the combination of the `2^k` ranks up to itself (or of all ranks
//! up to itself), and receives that of the ranks directly before them. It combines into the vector
//! that it sends, so it receives into scratch first.
//!
//! Example, `p = 4`: 0→1, 1→2, 2→3; 0→2, 1→3.

use super::doubling_allgather;
use crate::plan::prelude::*;

pub(in crate::plan) const SCAN: Row = Row {
    collective: Kind::Scan,
    source: "Hillis, Steele 1986",
    rounds: "ceil(log2 p) (bi), 2 ceil(log2 p)-1 (uni)",
    volume: "(ceil(log2 p) p - 2^ceil(log2 p) + 1) m",
    planner: Planner::Direct(plan),
    formula: ClosedForm::Of(time),
    ..doubling_allgather::ALLGATHER
};

pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    let p = request.ranks;
    let (mut b, vector) = over_vector(request, Collective::Scan, request.elements());
    // Rank 0 receives nothing.
    b.set_len(0, vector.len);
    for k in 0..doublings(p) {
        let messages: Vec<_> = (1 << k..p)
            .map(|to| Message::new(to - (1 << k), to, vector))
            .collect();
        round(
            &mut b,
            request,
            &messages,
            Arrival::CombinedAfter(vector.len),
        );
    }
    b.build()
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    let m = request.elements();
    let rounds = doublings(request.ranks);
    let messages = request.by_ports((2 * rounds).saturating_sub(1), rounds);
    let (messages, rounds) = (f64::from(messages), f64::from(rounds));
    Some(messages * request.transfer_time(m) + rounds * request.local_combine_time(m))
}
