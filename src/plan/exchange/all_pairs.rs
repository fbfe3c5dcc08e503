//! All pairs of ranks exchange directly: allgather, reduce-scatter, and two allreduces, in which
//! every rank sends its whole vector (one-shot), or the parts of a reduce-scatter and then of an
//! allgather (two-shot).
//!
//! - Source: folklore; all-pairs of MSCCL and of the libraries of GPUs, for few ranks.
//! - Symbols: `p` ranks, `m` elements in `p` blocks, `b = m/p` if they are equal; `X(n)` the time
//!   of a [pairwise](super::pairwise) alltoall of blocks of `n` elements, and `R` its rounds:
//!   `ceil((p-1)/k)` bidirectional; unidirectional twice that for even `p`, and `2 ceil(p/k)` for
//!   odd `p`.
//! - Rounds: `R` (allgather, reduce-scatter, one-shot), `2R` (two-shot). With `p-1` bidirectional
//!   ports: 1 and 2.
//! - Time of one-shot: `X(m) + (p-1) gamma m`. For equal blocks: of the allgather `X(b)`; of the
//!   reduce-scatter `X(b) + (p-1) gamma b`; of two-shot, if `p` is even or ports are bidirectional,
//!   `2 X(b) + (p-1) gamma b`.
//! - Scratch: what a rank receives before it combines: `(p-1) m` (one-shot), at most `m`
//!   (two-shot), `p-1` times its block (reduce-scatter).
//! - Operand order: kept. All contributions are there before a rank combines them, in rank order.
//!   It begins with its own one; for the same bits on all ranks with that of rank 0, which takes as
//!   many combinations, so that all parts are combined in one tree.
//!
//! Example, `p = 3`: 0→1, 1→2, 2→0; 0→2, 1→0, 2→1: in one-shot the vectors; in two-shot the blocks
//! that the receivers combine, and then the same messages with the senders' results. The former
//! alone are a reduce-scatter, the latter an allgather.

use super::pairwise::{Partners, time_of_exchange};
use crate::plan::prelude::*;

pub(in crate::plan) const ONE_SHOT: Row = Row {
    ranks_agree: |p, _| p <= 2,
    has_common_order: |_| true,
    k_ported: true,
    transfers: row::for_each_pair,
    source: "folklore; MSCCL (allreduce_allpairs)",
    rounds: "ceil((p-1)/k) on k ports (bi), twice that (uni; p odd: 2 ceil(p/k))",
    volume: "p(p-1) m",
    formula: ClosedForm::Of(one_shot_time),
    ..row::planned_by(
        "one-shot",
        Kind::Allreduce,
        Planner::Streamed(|request| {
            let vectors = vec![Span::new(0, request.elements()); request.ranks];
            programs(request, vectors, [Some(Of::Contributions), None])
        }),
    )
};

pub(in crate::plan) const TWO_SHOT: Row = Row {
    // Of short vectors, most ranks have no block, and the second half has few senders.
    ports: PortModels::Each,
    ranks_agree: |_, _| true,
    name: "two-shot",
    transfers: row::for_each_pair_twice,
    rounds: "2 ceil((p-1)/k) on k ports (bi), twice that (uni; p odd: 4 ceil(p/k))",
    volume: "2(p-1) m",
    planner: Planner::Streamed(|request| {
        let exchanges = [Some(Of::Contributions), Some(Of::Results)];
        programs(request, request.block_spans(), exchanges)
    }),
    formula: ClosedForm::Of(time),
    ..ONE_SHOT
};

pub(in crate::plan) const ALLGATHER: Row = Row {
    transfers: row::for_each_pair,
    source: "folklore; MSCCL (allgather_allpairs), MPICH (pairwise reduce_scatter)",
    volume: "(p-1) m",
    planner: Planner::Streamed(|request| {
        programs(request, request.block_spans(), [None, Some(Of::Results)])
    }),
    formula: ClosedForm::Of(time),
    name: "all-pairs",
    collective: Kind::Allgather,
    ..ONE_SHOT
};

pub(in crate::plan) const REDUCE_SCATTER: Row = Row {
    // Of short vectors, most ranks have no block: few receive.
    ports: PortModels::Each,
    collective: Kind::ReduceScatter,
    planner: Planner::Streamed(|request| {
        programs(
            request,
            request.block_spans(),
            [Some(Of::Contributions), None],
        )
    }),
    ..ALLGATHER
};

/// The steps: an exchange of contributions, their combinations, and an exchange of results.
#[derive(Debug)]
struct AllPairs {
    collective: Collective,
    elements: usize,
    /// By rank: the part of the vector whose result it has first.
    parts: Vec<Span>,
    /// Whether all ranks combine in one order.
    in_common_order: bool,
    contributions: Option<Exchange<InFlight<Direct>>>,
    results: Option<Exchange<InFlight<Direct>>>,
}

/// What ranks send each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// Their elements of the receiver's part, which stores them in scratch.
    Contributions,
    /// Their own parts, which are stored in place.
    Results,
}

#[derive(Debug, Clone)]
struct Direct {
    partners: Partners,
    of: Of,
    parts: Vec<Span>,
    elements: usize,
}

fn programs(
    request: &Request,
    parts: Vec<Span>,
    exchanges: [Option<Of>; 2],
) -> Result<Box<dyn DynScheduleSource>> {
    let p = request.ranks;
    let elements = parts.iter().map(|part| part.end()).max().unwrap_or(0);
    let longest = parts.iter().map(|part| part.len).max().unwrap_or(0);
    let len = longest.checked_mul(p).and_then(|n| n.checked_add(elements));
    if len.is_none() {
        return Err(Error::too_large(format!(
            "{p} vectors of {elements} elements need buffers that are too large"
        )));
    }
    // Every rank sends or receives the longest part, whose time decides where all links cost the
    // same.
    let longest = request.has_uniform_costs().then_some(longest);
    let [contributions, results] = exchanges.map(|of| {
        let rounds = Direct {
            partners: Partners::new(request),
            of: of?,
            parts: parts.clone(),
            elements,
        };
        let rounds = InFlight::new(request, rounds, longest);
        Some(Exchange::forwards(rounds, request.ports))
    });
    let collective = request.kind.with_root(0);
    let steps = AllPairs {
        collective: collective.clone(),
        elements,
        parts,
        in_common_order: request.same_bits,
        contributions,
        results,
    };
    Ok(streamed(request, collective, steps))
}

impl AllPairs {
    /// The `i`-th combination of `rank`: the nearest lower ranks first, then the higher ones, so
    /// that operands stay in order.
    /// In an order of all ranks, the sum of the lower ranks grows where the contribution of rank 0
    /// has arrived.
    fn combination(&self, rank: usize, i: usize) -> Option<Step> {
        let part = self.parts[rank];
        let arrived = |from| scratch(self.elements, part, from, rank);
        let (from, dst, order) = match i.checked_sub(rank) {
            None if self.in_common_order && i + 1 < rank => (i + 1, arrived(0), Order::MineFirst),
            None if self.in_common_order => (0, part, Order::TheirsFirst),
            None => (rank - 1 - i, part, Order::TheirsFirst),
            Some(_) => (i + 1, part, Order::MineFirst),
        };
        (part.len > 0).then(|| Step::combine(arrived(from), dst, order))
    }

    fn combinations(&self) -> usize {
        self.contributions
            .as_ref()
            .map_or(0, |_| self.parts.len() - 1)
    }
}

/// Where `rank`, behind the `elements` elements of its vector, stores the contribution of `from` to
/// its part.
fn scratch(elements: usize, part: Span, from: usize, rank: usize) -> Span {
    let before = from - usize::from(from > rank);
    Span::new(elements + before * part.len, part.len)
}

impl StepAt for AllPairs {
    fn layout_of(&self, rank: usize) -> Layout {
        let (part, vector) = (self.parts[rank], Span::new(0, self.elements));
        let len = self.elements + self.combinations() * part.len;
        self.collective.layout(rank, len, vector, part)
    }

    fn is_uniform(&self) -> bool {
        // A rank combines in an order of its own, but only when everything has arrived.
        let mut exchanges = [&self.contributions, &self.results].into_iter().flatten();
        exchanges.all(Exchange::is_uniform)
    }

    fn slots(&self, _rank: usize) -> usize {
        let exchanges = [&self.contributions, &self.results].into_iter().flatten();
        exchanges.map(Exchange::slots).sum::<usize>() + self.combinations()
    }

    fn step_at(&self, rank: usize, mut slot: usize) -> Option<Step> {
        if let Some(contributions) = &self.contributions {
            match slot.checked_sub(contributions.slots()) {
                None => return contributions.step_at(rank, slot),
                Some(behind) => slot = behind,
            }
        }
        match slot.checked_sub(self.combinations()) {
            None => self.combination(rank, slot),
            Some(slot) => self.results.as_ref()?.step_at(rank, slot),
        }
    }
}

impl Rounds for Direct {
    fn count(&self) -> usize {
        self.partners.rounds
    }

    fn sent(&self, k: usize, rank: usize) -> Option<(usize, Spans)> {
        let [to, _] = self.partners.of(k, rank);
        let span = match self.of {
            Of::Contributions => self.parts[to],
            Of::Results => self.parts[rank],
        };
        (to != rank && span.len > 0).then(|| (to, span.into()))
    }

    fn received(&self, k: usize, rank: usize) -> Option<(usize, Spans)> {
        let [_, from] = self.partners.of(k, rank);
        if from == rank {
            return None;
        }
        let span = match self.of {
            Of::Contributions => scratch(self.elements, self.parts[rank], from, rank),
            Of::Results => self.parts[from],
        };
        (span.len > 0).then(|| (from, span.into()))
    }

    fn is_uniform(&self, ports: Ports) -> bool {
        let even = self.parts.len().is_multiple_of(2);
        are_equal(&self.parts) && (even || ports.can_relay())
    }
}

pub(crate) fn one_shot_time(request: &Request) -> Option<f64> {
    let m = request.elements();
    Some(time_of_exchange(request, m)? + combined(request, m))
}

/// Time of the other rows for equal blocks; `None` otherwise, and of the two-shot allreduce for an
/// odd number of unidirectional ranks, which do not run in lock-step.
pub(crate) fn time(request: &Request) -> Option<f64> {
    let (p, b) = (request.ranks, equal_block(request)?);
    let in_step = request.ports.can_relay() || p.is_multiple_of(2) || p == 1;
    if request.kind == Kind::Allreduce && !in_step {
        return None;
    }
    let messages = time_of_exchange(request, b)?;
    Some(there_and_back(request, messages, combined(request, b)))
}

fn combined(request: &Request, elements: usize) -> f64 {
    request.ranks.saturating_sub(1) as f64 * request.local_combine_time(elements)
}
