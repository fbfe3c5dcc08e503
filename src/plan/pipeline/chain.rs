//! Chain (linear pipeline) reduction.
//!
//! Source: Lowery & Langou, section IV ("pipeline"). Ports: uni- or bidirectional, one-ported.
//! Symbols: `p` ranks, `q` segments of `s` elements, `tc = alpha + beta s`, `tp = gamma s`.
//! Rank `k` combines each segment from `k + 1` and sends it to `k - 1`. Volume: `(p - 1) m`. Keeps operand order.
//! Rounds and time, bidirectional: `p + q - 2`, `(p + q - 2)(tc + tp)`; unidirectional: `(p - 1)(tc + tp) + (q - 1)(2 tc + tp)`.
//! Best `s`, bidirectional: `sqrt(m alpha / ((p - 2)(beta + gamma)))`.

use crate::error::Result;
use crate::plan::{Request, Transfer, reduction};
use crate::schedule::Schedule;

/// Plans the reduction.
///
/// # Errors
/// When the request's parts do not fit together.
pub fn plan(request: &Request) -> Result<Schedule> {
    let (p, q) = (request.ranks, request.segments.count());
    // In round t, rank k sends segment t - (p - 1 - k).
    let rounds = (0..(p + q).saturating_sub(2)).map(|t| {
        (1..p)
            .filter_map(|k| Some((k, t.checked_sub(p - 1 - k)?)))
            .filter(|&(_, s)| s < q)
            .map(|(k, s)| Transfer::new(s, k, k - 1))
            .collect::<Vec<_>>()
    });
    reduction(request, rounds)
}

/// The executed time, when all segments have the same size.
pub fn time(request: &Request) -> Option<f64> {
    let sizes = request.segments.sizes();
    let s = sizes[0];
    if sizes.iter().any(|&x| x != s) {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    let (p, q) = (request.ranks as f64, sizes.len() as f64);
    let (tc, tp) = (request.t_comm(s), request.t_comp(s));
    Some(if request.ranks < 2 {
        0.0
    } else if request.ports.is_bidirectional() {
        (p + q - 2.0) * (tc + tp)
    } else if request.ranks == 2 {
        q * (tc + tp)
    } else {
        (p - 1.0) * (tc + tp) + (q - 1.0) * (2.0 * tc + tp)
    })
}
