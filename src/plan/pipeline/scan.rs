//! Chain (linear pipeline) scan: segments pass through all ranks, and each rank adds its own
//! contribution and keeps the result.
//!
//! - Source: folklore.
//! - Ports: uni- or bidirectional, one-ported.
//! - Symbols: `p` ranks, `q` segments of `s` elements, `tc = alpha + beta s`, `tp = gamma s`.
//! - Rounds and time: those of the [`chain`] reduction, whose last rank is the first
//!   one here. Bidirectional: `p + q - 2` rounds, `(p + q - 2)(tc + tp)`; unidirectional:
//!   `(p - 1)(tc + tp) + (q - 1)(2 tc + tp)`.
//! - Volume: `(p - 1) m`.
//! - Restrictions: none.
//! - Operand order: kept.
//!
//! Rank `r` receives each segment from rank `r - 1`, combines it with its own, and sends the result
//! to rank `r + 1`.
//!
//! Example, `p = 3`, two segments: 0→1 the first; 1→2 the first and 0→1 the second; 1→2 the second.

use super::chain;
use crate::error::Result;
use crate::machine::Ports;
use crate::plan::Request;
use crate::plan::build::stream::{DynScheduleSource, StepAt, Stream};
use crate::plan::registry::{Algorithm, Planner};
use crate::schedule::collective::Collective;
use crate::schedule::collective::Kind;
use crate::schedule::{Layout, Order, Span, Step};

pub(in crate::plan) const SCAN: Algorithm = Algorithm {
    collective: Kind::Scan,
    source: "folklore",
    planner: Planner::Streamed(programs),
    ..chain::REDUCE.for_another_collective()
};

/// Plans the scan; steps are generated on demand.
pub(super) fn programs(request: &Request) -> Result<Box<dyn DynScheduleSource>> {
    Ok(Box::new(Stream(Scan::new(request)?)))
}

/// The steps of the scan.
#[derive(Debug)]
struct Scan {
    ranks: usize,
    ports: Ports,
    vector: Span,
    segments: Vec<Span>,
}

impl Scan {
    fn new(request: &Request) -> Result<Scan> {
        request.validate()?;
        Ok(Scan {
            ranks: request.ranks,
            ports: request.ports,
            vector: Span::new(0, request.elements()),
            segments: request.segments.spans(),
        })
    }
}

impl StepAt for Scan {
    fn ranks(&self) -> usize {
        self.ranks
    }

    fn ports(&self) -> Ports {
        self.ports
    }

    fn collective(&self) -> Collective {
        Collective::Scan
    }

    fn layout_of(&self, rank: usize) -> Layout {
        let whole = self.vector;
        self.collective().layout(rank, whole.len, whole, whole)
    }

    /// A receive and a send for each segment.
    fn slots(&self, _rank: usize) -> usize {
        2 * self.segments.len()
    }

    #[inline]
    fn step_at(&self, rank: usize, slot: usize) -> Option<Step> {
        let segment = self.segments[slot / 2];
        if slot.is_multiple_of(2) {
            let before = rank.checked_sub(1)?;
            Some(Step::recv_combine(before, segment, Order::TheirsFirst))
        } else {
            (rank + 1 < self.ranks).then(|| Step::send(rank + 1, segment))
        }
    }
}
