//! Circulant reduction: the circulant broadcast reversed, in the optimal number of rounds for any
//! number of ranks.
//!
//! - Source: Träff, "(Poly)logarithmic time construction of round-optimal n-block broadcast
//!   schedules", reversed.
//! - Ports: bidirectional, one-ported.
//! - Symbols: `p` ranks, `L = ceil(log2 p)` (the `q` of [`schedule`](super::schedule)), `q`
//!   segments of `s` elements (the paper's `n` blocks), `tc = alpha + beta s`, `tp = gamma s`.
//! - Rounds: `L + q - 1`, optimal.
//! - Time: `(L + q - 1)(tc + tp)`.
//! - Best segment: `s = sqrt(m alpha / ((L - 1)(beta + gamma)))`.
//! - Volume: `(p - 1) m`.
//! - Restrictions: the operator must commute, because a rank combines contributions from all over
//!   the ring. Any root, by rotation.
//!
//! The reduction runs the rounds of the [`broadcast`](super::broadcast) backwards: each rank sends
//! what it would receive in the broadcast.
//!
//! Example, `p = 3`, `q = 2`:
//! - round 0: 1→2 segment 0, 2→0 segment 1;
//! - round 1: 1→0 segment 1;
//! - round 2: 2→0 segment 0.

use super::n_blocks::{NBlocks, Operation, rounds};
use super::reduce_scatter_gather;
use crate::error::Result;
use crate::plan::Request;
use crate::plan::registry::row;
use crate::plan::registry::{Algorithm, BestSegment, ClosedForm, Planner};
use crate::plan::segments::TABLE_III;

pub(in crate::plan) const REDUCE: Algorithm = Algorithm {
    name: "circulant",
    schedule_table: Some(super::table::Table::new),
    segmented: true,
    transfers: row::for_each_segment,
    source: "Träff, round-optimal n-block broadcast on circulant graphs",
    rounds: "ceil(log2 p)+q-1",
    volume: "(p-1) m",
    planner: Planner::Streamed(|request| Ok(Box::new(plan(request)?))),
    closed_form: ClosedForm::Of(time),
    best_segment: BestSegment::Formula(|x| x.optimum(1.0, (x.l - 1.0) * (x.beta + x.gamma))),
    published: Some(|x| Some(x.rounds(TABLE_III, x.l - 1.0, 1.0))),
    ..reduce_scatter_gather::REDUCE
};

/// Plans the reduction as a stream of steps for each rank, in `O(q + log p)` time. Buffers have `m`
/// elements.
///
/// # Errors
/// As [`Request::validate`].
pub fn plan(request: &Request) -> Result<NBlocks> {
    NBlocks::new(request, Operation::Reduce)
}

/// Closed form of the model time, `(L + q - 1)(tc + tp)`, for equal segments.
pub(crate) fn time(request: &Request) -> Option<f64> {
    let (_, s) = request.equal_segments()?;
    Some(rounds(request) * (request.transfer_time(s) + request.combine_time(s)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::ScheduleSource;

    #[test]
    fn three_ranks_two_segments() {
        let request = Request::reduce(3, 2).segments(crate::plan::Segments::of_size(2, 1).unwrap());
        let schedule = plan(&request).unwrap().materialize().unwrap();
        let sends: Vec<Vec<_>> = schedule
            .programs()
            .iter()
            .map(|program| {
                let sends = program.iter().filter(|s| s.is_send());
                sends.map(|s| (s.peer(), s.reads()[0].offset)).collect()
            })
            .collect();
        let (one, two) = (
            vec![(Some(2), 0), (Some(0), 1)],
            vec![(Some(0), 1), (Some(0), 0)],
        );
        assert_eq!(sends, [vec![], one, two]);
    }
}
