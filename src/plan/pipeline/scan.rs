//! Chain (linear pipeline) scan: segments pass through all ranks, each adding its own and keeping the result.
//!
//! Source: folklore. Ports: uni- or bidirectional, one-ported. Symbols: `p` ranks, `q` segments of `s` elements, `tc = alpha + beta s`, `tp = gamma s`.
//! Rank `r` combines each segment from `r - 1` and sends it to `r + 1`. Volume: `(p - 1) m`. Keeps operand order.
//! Rounds and time are those of the [chain](super::chain) reduction, whose last rank is the first here:
//! bidirectional `p + q - 2`, `(p + q - 2)(tc + tp)`; unidirectional `(p - 1)(tc + tp) + (q - 1)(2 tc + tp)`. Restrictions: none.
//!
//! `p = 3`, two segments: 0→1 the first; 1→2 the first and 0→1 the second; 1→2 the second.

use crate::collective::Collective;
use crate::error::Result;
use crate::plan::Request;
use crate::schedule::{Order, Schedule, Span, Step};

/// Plans the scan.
///
/// # Errors
/// When the request's parts do not fit together.
pub fn plan(request: &Request) -> Result<Schedule> {
    request.validate()?;
    let p = request.ranks;
    let vector = Span::new(0, request.elements());
    let mut b = Schedule::builder(p, request.ports, Collective::Scan);
    for r in 0..p {
        b.layout(r, vector.len, [vector], [vector]);
        for segment in request.segments.spans() {
            if let Some(before) = r.checked_sub(1) {
                b.step(r, Step::recv_combine(before, segment, Order::TheirsFirst));
            }
            if r + 1 < p {
                b.step(r, Step::send(r + 1, segment));
            }
        }
    }
    b.build()
}
