//! Chain (linear pipeline) scans: segments pass through all ranks, and each rank adds its own
//! contribution. It keeps the result, or in the exclusive scan what it receives.
//!
//! - Symbols: `p` ranks, `q` segments of `s` elements, `tc = alpha + beta s`, `tp = gamma s`.
//! - Time of the scan: that of the [`chain`] reduction, whose last rank is the first one here.
//!   Bidirectional: `(p + q - 2)(tc + tp)`;
//!   unidirectional: `(p - 1)(tc + tp) + (q - 1)(2 tc + tp)`.
//! - Time of the exclusive scan for `p > 2`, bidirectional: `(p + q - 3)(tc + tp) + tc`;
//!   unidirectional: `(p - 2)(tc + tp) + tc + (q - 1)(2 tc + tp)`. For `p = 2`: `q tc`.
//!
//! Rank `r` receives each segment from rank `r - 1`, combines it with its own, and sends the result
//! to rank `r + 1`. In the exclusive scan it receives into its output and combines into its input.
//!
//! Example, `p = 3`, two segments: 0→1 the first; 1→2 the first and 0→1 the second; 1→2 the second.

use super::chain;
use crate::plan::prelude::*;

pub(in crate::plan) const SCAN: Row = Row {
    collective: Kind::Scan,
    source: "folklore",
    planner: Planner::Streamed(programs),
    ..chain::REDUCE.for_another_collective()
};

pub(in crate::plan) const EXSCAN: Row = Row {
    collective: Kind::Exscan,
    formula: ClosedForm::Of(exclusive_time),
    best_segment: BestSegment::Search,
    ..SCAN
};

fn programs(request: &Request) -> Result<Box<dyn DynScheduleSource>> {
    let steps = Scan {
        ranks: request.ranks,
        exclusive: request.kind == Kind::Exscan,
        vector: Span::new(0, request.elements()),
        segments: request.segments.spans(),
    };
    Ok(streamed(request, request.kind.with_root(0), steps))
}

#[derive(Debug)]
struct Scan {
    ranks: usize,
    exclusive: bool,
    vector: Span,
    segments: Vec<Span>,
}

impl StepAt for Scan {
    fn layout_of(&self, rank: usize) -> Layout {
        let output = if self.exclusive {
            (rank > 0).then(|| Span::new(self.vector.end(), self.vector.len))
        } else {
            Some(self.vector)
        };
        Layout {
            len: output.unwrap_or(self.vector).end(),
            input: self.vector.into(),
            output: output.into_iter().collect(),
        }
    }

    /// A receive, a combination and a send for each segment.
    fn slots(&self, _rank: usize) -> usize {
        3 * self.segments.len()
    }

    #[inline]
    fn step_at(&self, rank: usize, slot: usize) -> Option<Step> {
        let own = self.segments[slot / 3];
        let before = Span::new(self.vector.end() + own.offset, own.len);
        let is_last = rank + 1 == self.ranks;
        match slot % 3 {
            0 if self.exclusive => Some(Step::recv(rank.checked_sub(1)?, before)),
            0 => Some(Step::recv_combine(
                rank.checked_sub(1)?,
                own,
                Order::TheirsFirst,
            )),
            1 if self.exclusive && rank > 0 && !is_last => {
                Some(Step::combine(before, own, Order::TheirsFirst))
            }
            2 if !is_last => Some(Step::send(rank + 1, own)),
            _ => None,
        }
    }
}

fn exclusive_time(request: &Request) -> Option<f64> {
    let (q, s) = request.equal_segments()?;
    let (tc, tp) = (request.transfer_time(s), request.local_combine_time(s));
    let (p, q) = (request.ranks as f64, q as f64);
    Some(match request.ranks {
        0 | 1 => 0.0,
        2 => q * tc,
        _ if request.ports.can_relay() => (p + q - 3.0) * (tc + tp) + tc,
        _ => (p - 2.0) * (tc + tp) + tc + (q - 1.0) * (2.0 * tc + tp),
    })
}
