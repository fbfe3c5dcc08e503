//! Circulant allgather of blocks divided into `n` parts, and its reversal reduce-scatter: for
//! blocks of very different sizes.
//!
//! - Source: Träff, "(Poly)logarithmic time construction of round-optimal n-block broadcast
//!   schedules", Algorithm 9 (which also needs Algorithm 6's shift by the skipped rounds) and
//!   Theorem 3, forwards and backwards.
//! - Symbols: `p` ranks, `m` elements in all blocks together, `L = ceil(log2 p)`, `q` segments (the
//!   paper's `n`). Each block is cut into `q` parts; when they cannot be equal, the first ones have
//!   one element more.
//! - Rounds: `L + q - 1`.
//! - Time when all parts are equal: `(L + q - 1) alpha + (p-1)/p beta m`; reduce-scatter `(p-1)/p
//!   gamma m` more. In any case at most about `(L + q - 1)(alpha + beta m / q)` (Theorem 3).
//! - Best segment: one huge block is best cut into many parts; equal blocks are best left whole.
//!   The time of unequal blocks goes up and down with `q`, so all `q` are compared that may be
//!   best: a rank receives `q` parts of the largest block one after another, and all blocks but its
//!   own, which takes at least `q alpha + beta (m - m_r)`.
//! - Cost of planning: a rank needs the schedules of all ranks. It can compute them in `O(p log p)`
//!   time, or gather them from the other ranks, as the example `rank_programs` does. Among threads
//!   computing is faster (example `allgatherv_schedules`). Each step takes `O(p)` time, so the
//!   programs of all ranks take `O(p^2 (L + q))`.
//!
//! Every rank is the root of a broadcast of its own block. All these broadcasts run along the same
//! edges at the same time: for root `j`, rank `r` uses the schedules of rank `(r - j) mod p`. A
//! message carries one part for each root, except for the root that receives it, and for roots
//! whose part is empty or not yet available. Parts that are adjacent in the vector form one span.
//!
//! A message is sent as a list of spans and copied once. If the sender packs it into contiguous
//! memory and the receiver unpacks it, an allgather of 1 MiB takes two to three times as long on
//! the same machine (example `allgatherv_schedules`).
//!
//! Example, `p = 3`, `q = 1`, skips 1, 2:
//! - round 0: 0→1 block 0, 1→2 block 1, 2→0 block 2;
//! - round 1: 0→2 block 0, 1→0 block 1, 2→1 block 2.

use std::collections::BTreeSet;

use super::n_blocks;
use super::phases::{Phases, Round};
use super::schedule::Circulant;
use super::tables::Tables;
use crate::budget::search::MAX_SPANS_OF_PARTS;
use crate::plan::prelude::*;
use crate::plan::segments::SymbolValues;

pub(in crate::plan) const ALLGATHER: Row = Row {
    name: "circulant-blocks",
    collective: Kind::Allgather,
    commutative_only: false,
    transfers: row::parts_of_all,
    source: "Träff, irregular n-block allgather on circulant graphs",
    planner: Planner::Direct(plan),
    formula: ClosedForm::Of(time),
    published: Some(|x| {
        let all = SymbolValues {
            m: x.all_blocks,
            ..*x
        };
        let published = all.rounds("at most; Theorem 3; Träff 2022", x.l - 1.0, 1.0);
        Some(Published {
            time: (x.l - 1.0 + x.q) * (x.alpha + (x.beta + x.gamma) * x.all_blocks / x.q),
            // The segments of the theorem are those of all blocks together.
            best_segment: None,
            ..published
        })
    }),
    best_segment: BestSegment::Own(best_parts),
    ..n_blocks::REDUCE.for_another_collective()
};

pub(in crate::plan) const REDUCE_SCATTER: Row = row::reduce_scatter(ALLGATHER, time);

/// Plans the allgather and stores it. A buffer holds the `m` elements of all blocks in rank order.
pub fn plan(request: &Request) -> Result<Schedule> {
    ScheduleSource::materialize(&Allgatherv::new(request)?)
}

/// The programs of all ranks: the broadcasts from all roots, combined into one message per round.
/// Takes `O(p (q + log p))` memory, and generates each step in `O(p)` time.
#[derive(Debug, Clone)]
pub struct Allgatherv {
    graph: Circulant,
    phases: Phases,
    ports: Ports,
    recv: Vec<i8>,
    blocks: Vec<Span>,
    parts: usize,
    /// Spans of the parts: `spans[root * parts + part]`.
    spans: Vec<Span>,
}

impl Allgatherv {
    /// The programs for `request`, with schedules computed here, in `O(p (q + log p))` time.
    pub fn new(request: &Request) -> Result<Allgatherv> {
        // Validate before computing the schedules of what may be too many ranks.
        request.validate()?;
        let recv = Tables::new(&Circulant::new(request.ranks)).recv;
        Allgatherv::with_schedules(request, recv)
    }

    /// The programs for `request`, with receive schedules from elsewhere, such as an allgather of
    /// each rank's own (example `rank_programs`): `recv[r * L + k]` is the block of rank `r` in
    /// round `k` of a phase of `L` rounds. Their values are not validated; [`crate::check`]
    /// finds schedules that are wrong. Takes `O(p q)` time.
    pub fn with_schedules(request: &Request, recv: Vec<i8>) -> Result<Allgatherv> {
        request.validate()?;
        let graph = Circulant::new(request.ranks);
        let (p, q) = (graph.ranks(), graph.rounds());
        if recv.len() != p * q {
            return Err(Error::usage(format!(
                "{} numbers for the receive schedules of {p} ranks over {q} rounds",
                recv.len()
            )));
        }
        let (blocks, parts) = (request.block_spans(), request.segments.count());
        let mut spans = Vec::with_capacity(p * parts);
        for block in &blocks {
            let mut offset = block.offset;
            for len in evenly(block.len, parts) {
                spans.push(Span::new(offset, len));
                offset += len;
            }
        }
        Ok(Allgatherv {
            phases: Phases::new(q, parts),
            graph,
            ports: request.ports,
            recv,
            blocks,
            parts,
            spans,
        })
    }

    /// Number of rounds.
    pub(crate) fn rounds(&self) -> usize {
        self.phases.rounds()
    }

    /// The spans that arrive at rank `to` in a round. The sender computes the same spans from the
    /// receiver's schedules.
    fn message(&self, round: Round, to: usize) -> Spans {
        let (p, q) = (self.graph.ranks(), self.graph.rounds());
        let mut message = Spans::new();
        for root in 0..p {
            // Rank `to` counted from the root. The root itself receives nothing.
            let me = if to < root { to + p - root } else { to - root };
            if me == 0 {
                continue;
            }
            let Some(part) = round.block(self.recv[me * q + round.k]) else {
                continue;
            };
            message.append(self.spans[root * self.parts + part]);
        }
        message
    }
}

impl ScheduleSource for Allgatherv {
    type Program<'a> = Box<dyn Iterator<Item = Step> + 'a>;

    fn ranks(&self) -> usize {
        self.graph.ranks()
    }

    fn ports(&self) -> Ports {
        self.ports
    }

    fn collective(&self) -> Collective {
        Collective::Allgather
    }

    fn layout_of(&self, rank: usize) -> Layout {
        let whole = Span::from(0..self.blocks.last().map_or(0, |b| b.end()));
        Collective::Allgather.layout(rank, whole.len, whole, self.blocks[rank])
    }

    fn program_of(&self, rank: usize) -> Self::Program<'_> {
        let p = self.graph.ranks();
        Box::new((0..self.phases.rounds()).flat_map(move |i| {
            let round = self.phases.round(i);
            let skip = self.graph.skips()[round.k];
            let (to, from) = ((rank + skip) % p, (rank + p - skip) % p);
            let (sent, received) = (self.message(round, to), self.message(round, rank));
            let send = (!sent.is_empty()).then(|| Step::send(to, sent));
            let recv = (!received.is_empty()).then(|| Step::recv(from, received));
            send.into_iter().chain(recv)
        }))
    }
}

/// The best number of parts of unequal blocks, if costs are linear.
fn best_parts(variant: &Variant, max_transfers: usize) -> Result<Option<Best>> {
    let request = &variant.request;
    let (Some(line), Some(blocks)) = (request.cost.linear(), &request.blocks) else {
        return Ok(None);
    };
    let [smallest, largest] = [blocks.iter().min(), blocks.iter().max()].map(|b| *b.unwrap_or(&0));
    if smallest == largest {
        return Ok(None);
    }
    let received = blocks.iter().sum::<usize>() - smallest;
    let received = received as f64 * request.element_bytes as f64 * line.beta;
    let least = |parts: usize| parts as f64 * line.alpha + received;
    let (rounds, mut spans) = (Circulant::new(request.ranks).rounds(), 0usize);
    let mut tried = BTreeSet::new();
    let mut best = (f64::INFINITY, 1);
    // From a coarse search to all that may be better than what it found.
    for step in [8, usize::MAX] {
        let mut parts = 1;
        while parts <= largest && !is_better(best.0, least(parts)) {
            let messages = (rounds + parts).saturating_mul(request.ranks);
            if !tried.contains(&parts) {
                spans = spans.saturating_add(messages.saturating_mul(request.ranks));
                let segments = Segments::of_count(request.elements(), parts)?;
                let variant = variant.with_segments(segments);
                let is_too_long = spans > MAX_SPANS_OF_PARTS || variant.transfers() > max_transfers;
                if is_too_long && best.0.is_finite() {
                    return found(request, best, Method::LimitedSearch);
                }
                let time = variant.time_or_infinity()?;
                tried.insert(parts);
                if is_better(time, best.0) || (time <= best.0 && parts < best.1) {
                    best = (time, parts);
                }
            }
            parts += 1 + parts / step;
        }
    }
    found(request, best, Method::Exhaustive)
}

fn found(request: &Request, (time, parts): (f64, usize), method: Method) -> Result<Option<Best>> {
    Ok(Some(Best {
        segments: Segments::of_count(request.elements(), parts)?,
        time: Time::Exact(time),
        method,
    }))
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    let (parts, block) = (request.segments.count(), equal_block(request)?);
    if !block.is_multiple_of(parts) {
        return None;
    }
    // The time of a round in which a rank's message has `n` elements.
    let time = |n| there_and_back(request, request.transfer_time(n), request.combine_time(n));
    let graph = Circulant::new(request.ranks);
    let (p, q) = (graph.ranks(), graph.rounds());
    let phases = Phases::new(q, parts);
    let linear = request.cost.linear().is_some();
    // Under linear costs only the total number of parts matters, which is (p - 1) parts.
    let recv = if linear {
        Vec::new()
    } else {
        Tables::new(&graph).recv
    };
    let part = block / parts;
    let mut sum = 0.0;
    for i in 0..phases.rounds() {
        let count = if linear {
            1
        } else {
            let round = phases.round(i);
            let arrives = |me: &usize| round.block(recv[me * q + round.k]).is_some();
            (1..p).filter(arrives).count()
        };
        sum += time(count * part);
    }
    if linear {
        // One part per round has been counted; the others add no start-up.
        let rest = (p - 1) * parts - phases.rounds();
        sum += time((rest + 1) * part) - time(part);
    }
    Some(sum)
}
