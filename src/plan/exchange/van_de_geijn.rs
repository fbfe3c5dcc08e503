//! Van de Geijn's broadcast, planned backwards as a reduction: reduce-scatter, then a gather along
//! a binomial tree, or a (k+1)-nomial one with `k` ports.
//!
//! - Source: Barnett, Gupta, Payne, Shuler, van de Geijn, Watts, "Interprocessor collective
//!   communication library" (1994): scatter, then allgather.
//! - Ports: uni- or bidirectional, `k`-ported; the ring uses one port.
//! - Symbols: `p` ranks, `m` elements in `p` blocks as equal as possible, `q = ceil(log_(k+1) p)`.
//! - Rounds: `q` for the gather; for the reduce-scatter `q` ([Bruck](super::bruck)) or `p-1`
//!   ([ring]).
//! - Time if `p` divides `m`, on one bidirectional port: `2q alpha + 2 (p-1)/p beta m` (Bruck) or
//!   `(p-1+q) alpha + 2 (p-1)/p beta m` (ring); the reduction takes `(p-1)/p gamma m` more.
//!   Unidirectional, for powers of two (Bruck) or even `p` (ring): twice the messages of the
//!   reduce-scatter, and the gather. On `k` ports, for powers of `k+1` (Bruck): the `k`-th part of
//!   beta.
//! - Scratch: for the reduce-scatter on unidirectional ranks, the size of the longest message.
//!
//! Ranks and blocks are numbered from the root on, modulo `p`. Number `v` gathers the blocks of the
//! numbers that differ from `v` only in its trailing zeros to the base `k+1`; they are consecutive.
//! Blocks stay at their position in the vector; nothing is moved locally.
//!
//! Example, `p = 3`, after the reduce-scatter: 1→0 block 1; 2→0 block 2. As a broadcast: 0→2 block
//! 2; 0→1 block 1; then the allgather.

use super::ring::Ring;
use super::{bruck, ring};
use crate::plan::prelude::*;

pub(in crate::plan) const REDUCE: Row = Row {
    ports: PortModels::Each,
    commutative_only: true,
    k_ported: true,
    transfers: row::logarithmic_twice,
    source: "van de Geijn et al. 1994 (scatter, allgather; Bruck's here), backwards for reduce",
    rounds: "2 ceil(log_{k+1} p) on k ports (bi), about 3 ceil(log_{k+1} p) (uni)",
    volume: "(p-1) m + about ceil(log2 p)/2 m",
    best_root: BestRoot::Search,
    ..row::new("van-de-geijn", Kind::Reduce, plan).with_formula(time)
};

pub(in crate::plan) const RING_REDUCE: Row = Row {
    name: "van-de-geijn-ring",
    ports: PortModels::Both,
    transfers: |p, _| row::for_each_pair(p, 1).saturating_add(p),
    source: "van de Geijn et al. 1994 (scatter, ring allgather), backwards for reduce",
    rounds: "p-1+ceil(log_{k+1} p) (bi), about 2(p-1)+ceil(log_{k+1} p) (uni)",
    planner: Planner::Streamed(ring_programs),
    formula: ClosedForm::Of(time_ring),
    ..REDUCE
};

pub(in crate::plan) const RING_BROADCAST: Row = RING_REDUCE.also(Kind::Broadcast);

/// Plans the reduction: Bruck's allgather backwards, then the gather.
pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    let (root, blocks) = (request.root, request.block_spans());
    let allgather = || bruck::allgather(request, root, blocks.clone());
    let scratch = rounds::scratch_of(request, allgather());
    let (mut b, vector) = over_vector(request, Collective::Reduce { root }, scratch);
    rounds::backwards(&mut b, request, allgather(), vector.len);
    let gather = Gather::new(request, blocks);
    rounds::forwards(&mut b, request, gather.messages());
    b.build()
}

/// Plans the reduction, the ring's allgather backwards and then the gather, or the broadcast that
/// is that backwards; steps are generated on demand.
fn ring_programs(request: &Request) -> Result<Box<dyn DynScheduleSource>> {
    let (root, blocks) = (request.root, request.block_spans());
    let collective = Collective::Reduce { root };
    let scratch = scratch_after(request, &blocks, ring::longest);
    let ring = |blocks| Ring::from(root, blocks);
    let gather = |blocks| Gather::new(request, blocks);
    let steps = Consecutive {
        first: Blocks::backwards(request, collective.clone(), ring, blocks.clone(), scratch),
        second: Blocks::forwards(request, collective.clone(), gather, blocks),
    };
    Ok(match request.kind {
        Kind::Broadcast => streamed(request, Collective::Broadcast { root }, Reversed(steps)),
        _ => streamed(request, collective, steps),
    })
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    let b = equal_block(request)?;
    let scattered = bruck::sum_of_rounds(request, b, |shares| {
        time_of_round(request, shares[0]) + rounds::time_of_combining_all(request, shares)
    })?;
    Some(scattered + time_of_gather(request, b))
}

/// Time of the reduction with the ring's reduce-scatter if the blocks are equal and, on
/// unidirectional ranks, `p` is even; `None` otherwise.
pub(crate) fn time_ring(request: &Request) -> Option<f64> {
    let b = equal_block(request)?;
    let round = time_of_round(request, b) + rounds::time_of_combining(request, b);
    Some(ring::rounds_of(request)? * round + time_of_gather(request, b))
}

fn time_of_gather(request: &Request, block: usize) -> f64 {
    let p = request.ranks;
    let counts = powers(p, request.ports.k()).map(|width| width.min(p - width));
    counts
        .map(|count| request.transfer_time(count * block))
        .sum()
}

/// The rounds of a (k+1)-nomial tree that bring to number `v` the blocks of the numbers that differ
/// from it only in its trailing zeros to the base `k+1`. The `k` rounds of a level run
/// concurrently, each through its own port.
#[derive(Debug)]
pub(super) struct Gather {
    root: usize,
    blocks: Vec<Span>,
    /// The block of number 0.
    first: usize,
    /// Number of ports in use, `k`.
    ports: usize,
    /// By level: how many blocks its messages have.
    widths: Vec<usize>,
}

impl Gather {
    /// The rounds if number `v` has block `v`.
    fn new(request: &Request, blocks: Vec<Span>) -> Gather {
        let ports = request.ports.k().min(blocks.len().saturating_sub(1));
        Gather {
            root: request.root,
            first: 0,
            widths: powers(blocks.len(), ports).collect(),
            blocks,
            ports,
        }
    }

    /// The rounds if every rank has the block of its own number.
    pub(super) fn by_rank(request: &Request, blocks: Vec<Span>) -> Gather {
        Gather {
            first: request.root,
            ..Gather::new(request, blocks)
        }
    }

    pub(super) fn messages(&self) -> impl Iterator<Item = Vec<Message>> {
        let message = |k, v| {
            let from = self.rank(v);
            let (to, spans) = self.sent(k, from)?;
            Some(Message::new(from, to, spans).on_port(self.port(k, self.ports)))
        };
        (0..self.count()).map(move |k| {
            let (distance, period) = self.level(k);
            let senders = (distance..self.blocks.len()).step_by(period);
            senders.filter_map(|v| message(k, v)).collect()
        })
    }

    /// How far the messages of round `k` go, and how far apart their senders are.
    fn level(&self, k: usize) -> (usize, usize) {
        let width = self.widths[k / self.ports];
        let distance = (1 + k % self.ports).saturating_mul(width);
        (distance, (1 + self.ports).saturating_mul(width))
    }

    fn rank(&self, number: usize) -> usize {
        (number + self.root) % self.blocks.len()
    }

    fn number(&self, rank: usize) -> usize {
        (rank + self.blocks.len() - self.root) % self.blocks.len()
    }

    /// The spans that number `v` sends in round `k`.
    fn gathered(&self, k: usize, v: usize) -> Option<Spans> {
        let width = self.widths[k / self.ports].min(self.blocks.len() - v);
        let spans = cyclic(&self.blocks, self.first + v, width);
        (!spans.is_empty()).then_some(spans)
    }
}

impl Rounds for Gather {
    fn count(&self) -> usize {
        self.widths.len() * self.ports
    }

    fn sent(&self, k: usize, rank: usize) -> Option<(usize, Spans)> {
        let (v, (distance, period)) = (self.number(rank), self.level(k));
        if v % period != distance {
            return None;
        }
        Some((self.rank(v - distance), self.gathered(k, v)?))
    }

    fn received(&self, k: usize, rank: usize) -> Option<(usize, Spans)> {
        let (v, (distance, period)) = (self.number(rank), self.level(k));
        if !v.is_multiple_of(period) || distance >= self.blocks.len() - v {
            return None;
        }
        Some((self.rank(v + distance), self.gathered(k, v + distance)?))
    }

    fn port(&self, k: usize, _ports: usize) -> usize {
        k % self.ports
    }
}
