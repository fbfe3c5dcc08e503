//! All-pairs allreduces: every rank sends directly to every other one, all vectors at once
//! (one-shot), or one block of the vector and then its result (two-shot).
//!
//! - Source: folklore; all-pairs of MSCCL and of the libraries of GPUs, for few ranks.
//! - Ports: uni- or bidirectional, `k`-ported.
//! - Symbols: `p` ranks, `m` elements in `p` blocks, `b = m/p` if they are equal, `R` the rounds of
//!   the [pairwise](super::pairwise) alltoall: `ceil((p-1)/k)` bidirectional; unidirectional twice
//!   that for even `p`, and `2 ceil(p/k)` for odd `p`.
//! - Rounds: `R` (one-shot), `2R` (two-shot). With `p-1` bidirectional ports: 1 and 2.
//! - Time of one-shot: `R (alpha + beta m) + (p-1) gamma m`. Of two-shot for equal blocks, if `p`
//!   is even or ports are bidirectional: `2R (alpha + beta b) + (p-1) gamma b`.
//! - Volume: `p (p-1) m` (one-shot), `2(p-1) m` (two-shot).
//! - Restrictions: only the sum of the request's segments matters.
//! - Scratch: what a rank receives before it combines: `(p-1) m` (one-shot), at most `m`
//!   (two-shot).
//! - Operand order: kept. All contributions are there before a rank combines them, in rank order.
//!
//! Example, `p = 3`: 0→1, 1→2, 2→0; 0→2, 1→0, 2→1: in one-shot the vectors; in two-shot the blocks
//! that the receivers combine, and then the same messages with the senders' results.

use super::pairwise::Partners;
use crate::error::{Error, Result};
use crate::machine::Ports;
use crate::plan::build::rounds::{Arrival, Exchange, Rounds};
use crate::plan::build::stream::{DynScheduleSource, StepAt, Stream};
use crate::plan::registry::row;
use crate::plan::registry::{Algorithm, ClosedForm, Planner, PortModels};
use crate::plan::{Request, consecutive, evenly};
use crate::schedule::collective::{Collective, Kind};
use crate::schedule::{Layout, Order, Schedule, Span, Spans, Step};

pub(in crate::plan) const ONE_SHOT: Algorithm = Algorithm {
    transfers: row::for_each_pair,
    source: "folklore; MSCCL (allreduce_allpairs)",
    rounds: "ceil((p-1)/k) on k ports (bi), twice that (uni; p odd: 2 ceil(p/k))",
    volume: "p(p-1) m",
    planner: Planner::Streamed(one_shot_programs),
    closed_form: ClosedForm::Of(one_shot_time),
    ..row::new("one-shot", Kind::Allreduce, one_shot)
};

pub(in crate::plan) const TWO_SHOT: Algorithm = Algorithm {
    // Of short vectors, most ranks have no block, and the second half has few senders.
    ports: PortModels::Each,
    name: "two-shot",
    transfers: row::for_each_pair_twice,
    rounds: "2 ceil((p-1)/k) on k ports (bi), twice that (uni; p odd: 4 ceil(p/k))",
    volume: "2(p-1) m",
    planner: Planner::Streamed(two_shot_programs),
    closed_form: ClosedForm::Of(two_shot_time),
    ..ONE_SHOT
};

/// Plans the one-shot allreduce.
///
/// # Errors
/// Those of every planner, and when the number of elements of a buffer overflows.
pub(crate) fn one_shot(request: &Request) -> Result<Schedule> {
    one_shot_programs(request)?.materialize()
}

/// Plans the one-shot allreduce; steps are generated on demand.
pub(super) fn one_shot_programs(request: &Request) -> Result<Box<dyn DynScheduleSource>> {
    request.validate()?;
    let parts = vec![Span::new(0, request.elements()); request.ranks];
    Ok(Box::new(Stream(AllPairs::new(request, parts, false)?)))
}

/// Plans the two-shot allreduce; steps are generated on demand.
pub(super) fn two_shot_programs(request: &Request) -> Result<Box<dyn DynScheduleSource>> {
    request.validate()?;
    let parts = consecutive(&evenly(request.elements(), request.ranks));
    Ok(Box::new(Stream(AllPairs::new(request, parts, true)?)))
}

/// The steps of the allreduce: an exchange, the combinations, and the exchange of the results if
/// they are parts of the vector.
#[derive(Debug)]
struct AllPairs {
    elements: usize,
    contributions: Exchange<Direct>,
    results: Option<Exchange<Direct>>,
}

/// Every rank sends to every other one.
#[derive(Debug, Clone)]
struct Direct {
    partners: Partners,
    /// By rank: the part of the vector that it combines.
    parts: Vec<Span>,
    /// Where scratch begins, for contributions; `None` for results, which are stored in place.
    scratch: Option<usize>,
}

impl AllPairs {
    fn new(request: &Request, parts: Vec<Span>, has_results: bool) -> Result<AllPairs> {
        let (p, elements) = (request.ranks, request.elements());
        let largest = parts.iter().map(|part| part.len).max().unwrap_or(0);
        let len = largest.checked_mul(p).and_then(|n| n.checked_add(elements));
        if len.is_none() {
            return Err(Error::usage(format!(
                "{p} vectors of {elements} elements need buffers that are too large"
            )));
        }
        let exchange = |scratch| Exchange {
            rounds: Direct {
                partners: Partners::new(request),
                parts: parts.clone(),
                scratch,
            },
            backwards: false,
            arrival: Arrival::Stored,
            ports: request.ports,
        };
        Ok(AllPairs {
            elements,
            contributions: exchange(Some(elements)),
            results: has_results.then(|| exchange(None)),
        })
    }

    /// The `i`-th combination of `rank`: the nearest lower ranks first, then the higher ones, so
    /// that operands stay in order.
    fn combination(&self, rank: usize, i: usize) -> Option<Step> {
        let from = if i < rank { rank - 1 - i } else { i + 1 };
        let part = self.contributions.rounds.parts[rank];
        let src = self.contributions.rounds.stored(from, rank);
        (part.len > 0).then(|| Step::combine(src, part, Order::by_rank(rank, from)))
    }
}

impl StepAt for AllPairs {
    fn ranks(&self) -> usize {
        self.contributions.rounds.parts.len()
    }

    fn ports(&self) -> Ports {
        self.contributions.ports
    }

    fn collective(&self) -> Collective {
        Collective::Allreduce
    }

    fn layout_of(&self, rank: usize) -> Layout {
        let vector = Span::new(0, self.elements);
        let received = (self.ranks() - 1) * self.contributions.rounds.parts[rank].len;
        Layout {
            len: self.elements + received,
            input: vector.into(),
            output: vector.into(),
        }
    }

    fn slots(&self, _rank: usize) -> usize {
        let results = self.results.as_ref().map_or(0, Exchange::slots);
        self.contributions.slots() + self.ranks() - 1 + results
    }

    fn step_at(&self, rank: usize, slot: usize) -> Option<Step> {
        let Some(slot) = slot.checked_sub(self.contributions.slots()) else {
            return self.contributions.step_at(rank, slot);
        };
        match slot.checked_sub(self.ranks() - 1) {
            None => self.combination(rank, slot),
            Some(slot) => self.results.as_ref()?.step_at(rank, slot),
        }
    }
}

impl Direct {
    /// Where `rank` stores what comes from `from`.
    fn stored(&self, from: usize, rank: usize) -> Span {
        match self.scratch {
            None => self.parts[from],
            Some(scratch) => {
                let before = from - usize::from(from > rank);
                let len = self.parts[rank].len;
                Span::new(scratch + before * len, len)
            }
        }
    }
}

impl Rounds for Direct {
    fn count(&self) -> usize {
        self.partners.rounds
    }

    fn sent(&self, k: usize, rank: usize) -> Option<(usize, Spans)> {
        let [to, _] = self.partners.of(k, rank);
        let span = self.parts[if self.scratch.is_some() { to } else { rank }];
        (to != rank && span.len > 0).then(|| (to, span.into()))
    }

    fn received(&self, k: usize, rank: usize) -> Option<(usize, Spans)> {
        let [_, from] = self.partners.of(k, rank);
        if from == rank {
            return None;
        }
        let span = self.stored(from, rank);
        (span.len > 0).then(|| (from, span.into()))
    }

    /// In a pair the lower rank sends first.
    fn receives_first(&self, k: usize, rank: usize, _backwards: bool) -> bool {
        self.partners.of(k, rank)[0] < rank && self.received(k, rank).is_some()
    }

    fn port(&self, k: usize, ports: usize) -> usize {
        k % ports
    }
}

/// Time to exchange messages of `elements` elements between all ranks.
fn time_of_exchange(request: &Request, elements: usize) -> f64 {
    let rounds = Partners::new(request).rounds.div_ceil(request.ports.k());
    let directions = if request.ports.is_bidirectional() {
        1
    } else {
        2
    };
    (directions * rounds) as f64 * request.transfer_time(elements)
}

/// Time of the one-shot allreduce.
pub(crate) fn one_shot_time(request: &Request) -> Option<f64> {
    let (p, m) = (request.ranks, request.elements());
    let others = p.saturating_sub(1) as f64;
    request
        .closed_forms_hold()
        .then(|| time_of_exchange(request, m) + others * request.local_combine_time(m))
}

/// Time of the two-shot allreduce for equal blocks; `None` otherwise, and for an odd number of
/// unidirectional ranks, which do not run in lock-step.
pub(crate) fn two_shot_time(request: &Request) -> Option<f64> {
    let (p, m) = (request.ranks, request.elements());
    let in_step = request.ports.is_bidirectional() || p.is_multiple_of(2) || p == 1;
    if !request.closed_forms_hold() || !in_step || p == 0 || !m.is_multiple_of(p) {
        return None;
    }
    let combined = (p - 1) as f64 * request.local_combine_time(m / p);
    Some(2.0 * time_of_exchange(request, m / p) + combined)
}
