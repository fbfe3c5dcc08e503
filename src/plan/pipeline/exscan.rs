//! Chain (linear pipeline) exclusive scan: segments pass through all ranks, each of which keeps
//! what it receives and adds its own contribution to what it passes on.
//!
//! - Source: folklore.
//! - Ports: uni- or bidirectional, one-ported.
//! - Symbols: `p` ranks, `q` segments of `s` elements, `tc = alpha + beta s`, `tp = gamma s`.
//! - Rounds, bidirectional: `p + q - 2`. Time for `p > 2`, bidirectional: `(p + q - 3)(tc + tp) +
//!   tc`; unidirectional: `(p - 2)(tc + tp) + tc + (q - 1)(2 tc + tp)`. For `p = 2`: `q tc`.
//! - Volume: `(p - 1) m`.
//! - Restrictions: none.
//! - Scratch: none.
//! - Operand order: kept.
//!
//! Rank `r` receives each segment of its output from rank `r - 1`, combines it into its input, and
//! sends the result to rank `r + 1`.
//!
//! Example, `p = 3`, two segments: 0→1 the first; 1→2 the first and 0→1 the second; 1→2 the second.

use super::chain;
use crate::error::Result;
use crate::machine::Ports;
use crate::plan::Request;
use crate::plan::build::stream::{DynScheduleSource, StepAt, Stream};
use crate::plan::registry::{Algorithm, BestSegment, ClosedForm, Planner};
use crate::schedule::collective::{Collective, Kind};
use crate::schedule::{Layout, Order, Span, Step};

pub(in crate::plan) const EXSCAN: Algorithm = Algorithm {
    collective: Kind::Exscan,
    source: "folklore",
    planner: Planner::Streamed(programs),
    closed_form: ClosedForm::Of(time),
    best_segment: BestSegment::Search,
    ..chain::REDUCE.for_another_collective()
};

/// Plans the scan; steps are generated on demand.
fn programs(request: &Request) -> Result<Box<dyn DynScheduleSource>> {
    Ok(Box::new(Stream(Exscan::new(request)?)))
}

/// The steps of the scan.
#[derive(Debug)]
struct Exscan {
    ranks: usize,
    ports: Ports,
    /// Elements of the vector.
    elements: usize,
    segments: Vec<Span>,
}

impl Exscan {
    fn new(request: &Request) -> Result<Exscan> {
        request.validate()?;
        Ok(Exscan {
            ranks: request.ranks,
            ports: request.ports,
            elements: request.elements(),
            segments: request.segments.spans(),
        })
    }
}

impl StepAt for Exscan {
    fn ranks(&self) -> usize {
        self.ranks
    }

    fn ports(&self) -> Ports {
        self.ports
    }

    fn collective(&self) -> Collective {
        Collective::Exscan
    }

    fn layout_of(&self, rank: usize) -> Layout {
        let input = Span::new(0, self.elements);
        let output = (rank > 0).then(|| Span::new(input.end(), self.elements));
        Layout {
            len: output.unwrap_or(input).end(),
            input: input.into(),
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
        let before = Span::new(self.elements + own.offset, own.len);
        let is_last = rank + 1 == self.ranks;
        match slot % 3 {
            0 => Some(Step::recv(rank.checked_sub(1)?, before)),
            1 if rank > 0 && !is_last => Some(Step::combine(before, own, Order::TheirsFirst)),
            2 if !is_last => Some(Step::send(rank + 1, own)),
            _ => None,
        }
    }
}

/// Time of the schedule if all segments have the same size; `None` otherwise.
fn time(request: &Request) -> Option<f64> {
    let (q, s) = request.equal_segments()?;
    let (tc, tp) = (request.transfer_time(s), request.local_combine_time(s));
    let (p, q) = (request.ranks as f64, q as f64);
    Some(match request.ranks {
        0 | 1 => 0.0,
        2 => q * tc,
        _ if request.ports.is_bidirectional() => (p + q - 3.0) * (tc + tp) + tc,
        _ => (p - 2.0) * (tc + tp) + tc + (q - 1.0) * (2.0 * tc + tp),
    })
}
