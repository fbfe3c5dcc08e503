//! Ring allgather: every block travels once around, and reversed a reduce-scatter.
//!
//! Source: folklore. Ports: both. Symbols: `p` ranks, `m` elements in all blocks together, `b = m/p` where they are equal.
//! Rounds: `p-1` (bidirectional). On unidirectional ranks the even ones send first: `2(p-1)` for even `p`.
//! Volume: `(p-1) m`. Time for equal blocks: `(p-1)(alpha + beta b)`, twice that on unidirectional ranks with even `p`; the
//! reduce-scatter takes `gamma b` more in each round.
//! Restrictions: the reduce-scatter's operator must commute.
//!
//! In round `k` rank `r` sends block `r-k` to `r+1` and receives block `r-k-1` from `r-1`, all modulo `p`. Blocks arrive where they belong;
//! nothing is moved locally. Empty blocks are not sent.
//!
//! `p = 3`: 0→1 block 0, 1→2 block 1, 2→0 block 2; then 0→1 block 2, 1→2 block 0, 2→0 block 1.

use crate::collective::Collective;
use crate::error::Result;
use crate::plan::Request;
use crate::schedule::{Schedule, Span, Step};

/// Plans the allgather.
///
/// # Errors
/// When the request's parts do not fit together.
pub fn plan(request: &Request) -> Result<Schedule> {
    request.validate()?;
    let p = request.ranks;
    let blocks = request.concatenated();
    let whole = Span::from(0..blocks.last().map_or(0, |b| b.end()));
    let mut b = Schedule::builder(p, request.ports, Collective::Allgather);
    for (r, &block) in blocks.iter().enumerate() {
        b.layout(r, whole.len, [block], [whole]);
        for k in 0..p - 1 {
            let sent = blocks[(r + p - k) % p];
            let received = blocks[(r + p - k - 1) % p];
            let send = (sent.len > 0).then(|| Step::send((r + 1) % p, sent));
            let receive = (received.len > 0).then(|| Step::recv((r + p - 1) % p, received));
            // On one port somebody must receive first.
            let steps = if request.ports.is_bidirectional() || r % 2 == 0 {
                [send, receive]
            } else {
                [receive, send]
            };
            for step in steps.into_iter().flatten() {
                b.step(r, step);
            }
        }
    }
    b.build()
}

/// The executed time of the allgather, when the blocks are equal and, on unidirectional ranks, `p` is even.
pub fn time(request: &Request) -> Option<f64> {
    rounds(request, &request.concatenated()).map(|(rounds, b)| rounds * request.t_comm(b))
}

/// The executed time of the reduce-scatter, likewise.
pub fn reduce_scatter_time(request: &Request) -> Option<f64> {
    let (rounds, b) = rounds(request, &request.scattered())?;
    let combined = if request.ports.is_bidirectional() {
        rounds
    } else {
        return None;
    };
    Some(rounds * request.t_comm(b) + combined * request.t_comp(b))
}

/// The rounds, and the size of every block, where both say what the time is.
fn rounds(request: &Request, blocks: &[Span]) -> Option<(f64, usize)> {
    let p = request.ranks;
    let size = blocks.first()?.len;
    let equal = blocks.iter().all(|b| b.len == size);
    let factor = match (request.ports.is_bidirectional(), p.is_multiple_of(2)) {
        (true, _) => 1,
        (false, true) => 2,
        (false, false) => return (p == 1).then_some((0.0, size)),
    };
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    let rounds = (factor * (p - 1)) as f64;
    (equal && request.closed_forms_hold()).then_some((rounds, size))
}
