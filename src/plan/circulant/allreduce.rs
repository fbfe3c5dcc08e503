//! Circulant allreduce of long vectors: a reduction of `n` blocks to rank 0, then their broadcast.
//!
//! - Source: Träff, "(Poly)logarithmic time construction of round-optimal n-block broadcast
//!   schedules", Algorithm 6 backwards and forwards.
//! - Ports: bidirectional, one-ported.
//! - Symbols: `p` ranks, `m` elements, `L = ceil(log2 p)`, `q` segments of `s` elements (the
//!   paper's `n` blocks), `tc = alpha + beta s`, `tp = gamma s`.
//! - Rounds: `2 (L + q - 1)`.
//! - Time: `(L + q - 1)(2 tc + tp)`. The broadcast starts with segment 0, with which the reduction
//!   ends.
//! - Best segment: `s = sqrt(2 m alpha / ((L - 1)(2 beta + gamma)))`.
//! - Volume: `2 (p-1) m`.
//! - Restrictions: the operator must commute; the request's root is ignored.
//!
//! Example, `p = 2`, `q = 2`: 1→0 segment 1; 1→0 segment 0; 0→1 segment 0; 0→1 segment 1.

use super::n_blocks::rounds;
use super::n_blocks::{NBlocks, Operation};
use super::reduce;
use crate::error::Result;
use crate::plan::Request;
use crate::plan::registry::row;
use crate::plan::registry::{Algorithm, ClosedForm, Planner};
use crate::schedule::collective::Kind;

pub(in crate::plan) const ALLREDUCE: Algorithm = Algorithm {
    collective: Kind::Allreduce,
    transfers: row::for_each_segment_twice,
    rounds: "2(ceil(log2 p)+q-1)",
    volume: "2(p-1) m",
    planner: Planner::Streamed(|request| Ok(Box::new(plan(request)?))),
    closed_form: ClosedForm::Of(time),
    ..reduce::REDUCE.for_another_collective()
};

/// Plans the allreduce as a stream of steps for each rank, in `O(q + log p)` time. Buffers have `m`
/// elements.
///
/// # Errors
/// As [`Request::validate`].
pub fn plan(request: &Request) -> Result<NBlocks> {
    let request = request.clone().root(0);
    NBlocks::new(&request, Operation::Allreduce)
}

/// Closed form of the model time, `(L + q - 1)(2 tc + tp)`, for equal segments.
pub(crate) fn time(request: &Request) -> Option<f64> {
    let (_, s) = request.equal_segments()?;
    Some(rounds(request) * (2.0 * request.transfer_time(s) + request.combine_time(s)))
}
