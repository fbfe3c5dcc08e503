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
use crate::simulate;

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

/// The executed time, when all segments have the same size but for the last, which may be smaller.
pub fn time(request: &Request) -> Option<f64> {
    let (&last, equal) = request.segments.sizes().split_last()?;
    let s = equal.first().copied().unwrap_or(last);
    if !request.closed_forms_hold() || last > s || equal.iter().any(|&x| x != s) {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    let (p, q) = (request.ranks as f64, request.segments.count() as f64);
    if request.ranks < 2 {
        return Some(0.0);
    }
    let (tc, tp) = (request.t_comm(s), request.t_comp(s));
    let (last_tc, last_tp) = (request.t_comm(last), request.t_comp(last));
    Some(if equal.is_empty() {
        (p - 1.0) * (tc + tp)
    } else if request.ports.is_bidirectional() {
        (p + q - 3.0) * (tc + tp) + last_tc + last_tp
    } else if request.ranks == 2 {
        (q - 1.0) * (tc + tp) + last_tc + last_tp
    } else {
        // While the root combines the last segment but one, rank 1 receives and combines the last.
        let before = (p - 1.0) * (tc + tp) + (q - 2.0) * (2.0 * tc + tp);
        before - tp + simulate::later(tp, last_tc + last_tp) + last_tc + last_tp
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Segments;
    use crate::simulate::Prepared;
    use crate::{CostModel, Ports};

    #[test]
    fn time_with_a_smaller_last_segment() {
        for p in 1..=9 {
            for (m, s) in [(7, 3), (10, 4), (9, 8), (11, 2), (5, 5), (3, 2)] {
                for (alpha, beta, gamma) in [
                    (2.0, 1.0, 3.0),
                    (0.0, 5.0, 1.0),
                    (7.0, 0.0, 2.0),
                    (1.0, 1.0, 0.0),
                ] {
                    for ports in [Ports::UNI, Ports::BI] {
                        let mut r = Request::new(p, m);
                        r.segments = Segments::of_size(m, s).unwrap();
                        r.ports = ports;
                        r.cost = CostModel::new(alpha, beta).gamma(gamma);
                        let prepared = Prepared::new(&plan(&r).unwrap(), false).unwrap();
                        let executed = prepared.simulate(&r.cost, 1).time();
                        assert_eq!(time(&r), Some(executed), "p={p} m={m} s={s} {ports:?}");
                    }
                }
            }
        }
    }
}
