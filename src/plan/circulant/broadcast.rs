//! Circulant broadcast: the optimal number of rounds for any number of blocks and ranks.
//!
//! - Source: Träff, "(Poly)logarithmic time construction of round-optimal n-block broadcast
//!   schedules", Algorithm 6 and Theorem 2 (whose -1 belongs outside the logarithm).
//! - Ports: bidirectional, one-ported.
//! - Symbols: `p` ranks, `L = ceil(log2 p)` (the `q` of [`schedule`](super::schedule)), `q`
//!   segments of `s` elements (the paper's `n` blocks), `tc = alpha + beta s`.
//! - Rounds: `L + q - 1`, optimal.
//! - Time: `(L + q - 1) tc`.
//! - Best segment: `s = sqrt(m alpha / ((L - 1) beta))`, with time
//!   `(L - 1) alpha + 2 sqrt((L - 1) alpha beta m) + beta m`.
//! - Volume: `(p - 1) m`.
//! - Restrictions: none; any root, by rotation.
//!
//! Example, `p = 3`, `q = 2`:
//! - round 0: 0→2 segment 0;
//! - round 1: 0→1 segment 1;
//! - round 2: 0→2 segment 1, 2→1 segment 0.

use super::n_blocks::{NBlocks, Operation, rounds};
use super::reduce;
use crate::error::Result;
use crate::plan::Request;
use crate::plan::registry::{Algorithm, ClosedForm, Planner};
use crate::schedule::collective::Kind;

pub(in crate::plan) const BROADCAST: Algorithm = Algorithm {
    collective: Kind::Broadcast,
    commutative_only: false,
    planner: Planner::Streamed(|request| Ok(Box::new(plan(request)?))),
    closed_form: ClosedForm::Of(time),
    ..reduce::REDUCE
};

/// Plans the broadcast as a stream of steps for each rank, in `O(q + log p)` time. Buffers have `m`
/// elements.
///
/// # Errors
/// As [`Request::validate`].
pub fn plan(request: &Request) -> Result<NBlocks> {
    NBlocks::new(request, Operation::Broadcast)
}

/// Closed form of the model time, `(L + q - 1) tc`, for equal segments.
pub(crate) fn time(request: &Request) -> Option<f64> {
    let (_, s) = request.equal_segments()?;
    Some(rounds(request) * request.transfer_time(s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::ScheduleSource;

    #[test]
    fn three_ranks_two_segments() {
        let request =
            Request::broadcast(3, 2).segments(crate::plan::Segments::of_size(2, 1).unwrap());
        let schedule = plan(&request).unwrap().materialize().unwrap();
        let sends: Vec<Vec<_>> = schedule
            .programs()
            .iter()
            .map(|program| {
                let sends = program.iter().filter(|s| s.is_send());
                sends.map(|s| (s.peer(), s.reads()[0].offset)).collect()
            })
            .collect();
        let root = vec![(Some(2), 0), (Some(1), 1), (Some(2), 1)];
        assert_eq!(sends, [root, vec![], vec![(Some(1), 0)]]);
    }
}
