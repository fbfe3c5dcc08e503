//! Van de Geijn's broadcast, planned as the reduction that it is backwards: reduce-scatter, then a gather along a binomial tree.
//!
//! Source: Barnett, Gupta, Payne, Shuler, van de Geijn, Watts, "Interprocessor collective communication library" (1994): scatter, then allgather. Ports: both.
//! Symbols: `p` ranks, `m` elements in `p` blocks as equal as possible, `q = ceil(log2 p)`.
//! Rounds: `q` to gather, and to reduce-scatter `q` ([Bruck](super::bruck)) or `p-1` ([ring](super::ring)). Volume: `(p-1) m` to reduce-scatter, about `q/2 m` to gather.
//! Time, when `p` divides `m`, bidirectional: `2q alpha + 2 (p-1)/p beta m` or `(p-1+q) alpha + 2 (p-1)/p beta m`, the reduction `(p-1)/p gamma m` more.
//! Unidirectional, for powers of two or even `p`: twice the reduce-scatter, and the gather.
//! Restrictions: operators must commute; the request's segments are ignored but for their sum.
//!
//! Ranks and blocks are numbered from the root on, modulo `p`. Number `v` gathers the blocks of the numbers that differ from it in the zeros at the end of `v` only: they are
//! consecutive. Blocks stay where they stand in the vector; nothing is moved locally.
//!
//! `p = 3`, after the reduce-scatter: 1→0 block 1; 2→0 block 2. As a broadcast: 0→2 block 2; 0→1 block 1; then the allgather.

use super::rounds::{self, Arrival, Message, doublings, round};
use super::{bruck, ring};
use crate::collective::Collective;
use crate::error::Result;
use crate::plan::{Request, consecutive, evenly};
use crate::schedule::{Builder, Schedule, Span};

/// Plans the reduction with Bruck's reduce-scatter.
///
/// # Errors
/// When the request's parts do not fit together.
pub fn plan(request: &Request) -> Result<Schedule> {
    let plan = Plan::new(request)?;
    plan.around(|b| combine(b, request, bruck::allgather(request.root, &plan.blocks)))
}

/// Plans the reduction with the ring's reduce-scatter.
///
/// # Errors
/// When the request's parts do not fit together.
pub fn plan_ring(request: &Request) -> Result<Schedule> {
    let plan = Plan::new(request)?;
    plan.around(|b| combine(b, request, ring::allgather(request.root, &plan.blocks)))
}

/// The executed time of the reduction with Bruck's reduce-scatter, when the blocks are equal and, on unidirectional ranks, `p` is a power of two.
pub fn time(request: &Request) -> Option<f64> {
    let b = equal_block(request)?;
    let scattered = bruck::sum_of_rounds(request, |count| time_of_combining(request, count * b))?;
    Some(scattered + time_of_gather(request, b))
}

/// The executed time of the reduction with the ring's reduce-scatter, when the blocks are equal and, on unidirectional ranks, `p` is even.
pub fn time_ring(request: &Request) -> Option<f64> {
    let b = equal_block(request)?;
    Some(ring::rounds_of(request)? * time_of_combining(request, b) + time_of_gather(request, b))
}

fn equal_block(request: &Request) -> Option<usize> {
    let (p, m) = (request.ranks, request.elements());
    (request.closed_forms_hold() && p > 0 && m % p == 0).then(|| m / p)
}

fn time_of_combining(request: &Request, elements: usize) -> f64 {
    let both = request.t_comm(elements) + request.t_comp(elements);
    if request.ports.is_bidirectional() {
        both
    } else {
        2.0 * both
    }
}

fn time_of_gather(request: &Request, block: usize) -> f64 {
    let p = request.ranks;
    let counts = (0..doublings(p)).map(|k| (1usize << k).min(p - (1 << k)));
    counts.map(|count| request.t_comm(count * block)).sum()
}

/// Rounds backwards, combining in passing: what is received into scratch would be copied there when this is run backwards.
fn combine(
    b: &mut Builder,
    request: &Request,
    rounds: impl DoubleEndedIterator<Item = Vec<Message>>,
) {
    for messages in rounds.rev() {
        let messages: Vec<_> = messages.into_iter().map(Message::backwards).collect();
        round(b, request, &messages, Arrival::Combined);
    }
}

struct Plan<'a> {
    request: &'a Request,
    /// By number.
    blocks: Vec<Span>,
}

impl<'a> Plan<'a> {
    fn new(request: &'a Request) -> Result<Plan<'a>> {
        request.validate()?;
        let blocks = consecutive(&evenly(request.elements(), request.ranks));
        Ok(Plan { request, blocks })
    }

    fn around(&self, reduce_scatter: impl FnOnce(&mut Builder)) -> Result<Schedule> {
        let Request { ranks, root, .. } = *self.request;
        let vector = Span::new(0, self.request.elements());
        let collective = Collective::Reduce { root };
        let mut b = Schedule::builder(ranks, self.request.ports, collective);
        for r in 0..ranks {
            b.layout(r, vector.len, [vector], (r == root).then_some(vector));
        }
        reduce_scatter(&mut b);
        rounds::forwards(&mut b, self.request, self.gather());
        b.build()
    }

    fn gather(&self) -> impl Iterator<Item = Vec<Message>> {
        let Request { ranks: p, root, .. } = *self.request;
        (0..doublings(p)).map(move |k| {
            let half = 1usize << k;
            let senders = (half..p).step_by(2 * half);
            let message = |v: usize| {
                let blocks = &self.blocks[v..p.min(v + half)];
                let end = blocks.last().map_or(0, |b| b.end());
                let rank = |v: usize| (v + root) % p;
                Message::new(rank(v), rank(v - half), Span::from(blocks[0].offset..end))
            };
            senders.map(message).collect()
        })
    }
}
