//! Chain (linear pipeline) reduction, and the broadcast and allreduce built from it.
//!
//! - Symbols: `p` ranks, `q` segments of `s` elements, `tc = alpha + beta s`, `tp = gamma s`.
//! - Rounds, bidirectional: `p + q - 2`. Time, bidirectional: `(p + q - 2)(tc + tp)`;
//!   unidirectional: `(p - 1)(tc + tp) + (q - 1)(2 tc + tp)`.
//! - Best `s`, bidirectional: `sqrt(m alpha / ((p - 2)(beta + gamma)))`.
//!
//! Rank `k` receives each segment from rank `k + 1`, combines it with its own, and sends the result
//! to rank `k - 1`.

use crate::plan::prelude::*;

pub(in crate::plan) const REDUCE: Row = Row {
    source: "Lowery & Langou, section IV (pipeline)",
    rounds: "p+q-2 (bi), p-1+2(q-1) (uni)",
    formula: ClosedForm::Of(time),
    best_segment: BestSegment::Formula(|x| {
        let unit = x.beta + x.gamma;
        if x.relays {
            x.optimum(1.0, (x.p - 2.0) * unit)
        } else {
            x.optimum(2.0, (x.p - 1.0) * unit - 2.0 * x.beta - x.gamma)
        }
    }),
    published: Some(|x| {
        let (table, fixed, per_segment) = if x.relays {
            (TABLE_III, x.p - 2.0, 1.0)
        } else {
            (TABLE_I, x.p - 3.0, 2.0)
        };
        Some(Published {
            terms: x.terms(x.p - 1.0, x.p + 2.0 * x.m - 3.0),
            ..x.rounds(table, fixed, per_segment)
        })
    }),
    ..row::planned_by(
        "chain",
        Kind::Reduce,
        Planner::Streamed(|request| Ok(reduction_of(request, Chain::new))),
    )
    .segmented()
};

pub(in crate::plan) const BROADCAST: Row = Row {
    collective: Kind::Broadcast,
    planner: Planner::Streamed(|request| Ok(broadcast_of(request, Chain::new))),
    ..REDUCE
};

pub(in crate::plan) const ALLREDUCE: Row = Row {
    planner: Planner::Streamed(|request| Ok(allreduce_of(request, [Chain::new; 2]))),
    ..row::allreduce(REDUCE, "2(p+q-2) (bi), 2(p-1)+4(q-1) (uni)")
};

#[derive(Debug)]
struct Chain {
    ranks: usize,
    root: usize,
    /// The last rank of the chain: the root, or rank 0 if operand order is kept. Rank 0 then
    /// forwards the result to the root.
    end: usize,
    vector: Span,
    segments: Vec<Span>,
}

impl Chain {
    fn new(request: &Request) -> Chain {
        Chain {
            ranks: request.ranks,
            root: request.root,
            end: if request.keep_order { 0 } else { request.root },
            vector: Span::new(0, request.elements()),
            segments: request.reduced_segments(),
        }
    }
}

impl StepAt for Chain {
    fn layout_of(&self, rank: usize) -> Layout {
        let whole = self.vector;
        let reduce = Collective::Reduce { root: self.root };
        reduce.layout(rank, whole.len, whole, whole)
    }

    /// A receive and a send for each segment, and one slot for forwarding the result.
    fn slots(&self, _rank: usize) -> usize {
        2 * self.segments.len() + 1
    }

    #[inline]
    fn step_at(&self, rank: usize, slot: usize) -> Option<Step> {
        let Some(&segment) = self.segments.get(slot / 2) else {
            return match rank {
                _ if self.end == self.root => None,
                _ if rank == self.end => Some(Step::send(self.root, self.vector)),
                _ if rank == self.root => Some(Step::recv(self.end, self.vector)),
                _ => None,
            };
        };
        // Both neighbours of the rank in the chain, which is cyclic but cut at `end`.
        let next = if rank + 1 == self.ranks { 0 } else { rank + 1 };
        let before = if rank == 0 { self.ranks } else { rank } - 1;
        if slot.is_multiple_of(2) {
            let order = Order::by_rank(rank, next);
            (next != self.end).then(|| Step::recv_combine(next, segment, order))
        } else {
            (rank != self.end).then(|| Step::send(before, segment))
        }
    }
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    let (&last, equal) = request.segments.sizes().split_last()?;
    let s = equal.first().copied().unwrap_or(last);
    if last > s || equal.iter().any(|&x| x != s) {
        return None;
    }
    let (p, q) = (request.ranks as f64, request.segments.count() as f64);
    if request.ranks < 2 {
        return Some(0.0);
    }
    let (tc, tp) = (request.transfer_time(s), request.combine_time(s));
    let (last_tc, last_tp) = (request.transfer_time(last), request.combine_time(last));
    Some(if equal.is_empty() {
        (p - 1.0) * (tc + tp)
    } else if request.ports.can_relay() {
        (p + q - 3.0) * (tc + tp) + last_tc + last_tp
    } else if request.ranks == 2 {
        (q - 1.0) * (tc + tp) + last_tc + last_tp
    } else {
        // While the root combines the last segment but one, rank 1 receives and combines the last
        // segment.
        let before = (p - 1.0) * (tc + tp) + (q - 2.0) * (2.0 * tc + tp);
        before - tp + max_time(tp, last_tc + last_tp) + last_tc + last_tp
    })
}
