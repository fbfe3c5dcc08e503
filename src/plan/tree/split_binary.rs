//! Split-binary broadcast: each half of the vector goes down one half of a binary tree, then ranks
//! in mirror positions exchange halves. Backwards it is a reduction; both make an allreduce.
//!
//! - Ports: uni- or bidirectional, one-ported; the allreduce unidirectional.
//! - Symbols: `p` ranks, `m` elements in `q` segments of `s`, `N = ceil(log2(p+1))` levels.
//! - Time, bidirectional, for `p = 2^N - 1 > 1` and even `q`: `(q + 2(N-2))(alpha + beta s)` and
//!   `alpha + beta m/2`.
//!
//! Ranks are numbered from the root on. The odd numbers `2j + 1` form one subtree, the even ones
//! `2j + 2` the other, level by level: the parent of `j` is `(j-1)/2`. The first half of the
//! segments goes to the odd numbers. In the end `2j + 1` and `2j + 2` exchange their halves; an odd
//! number without a partner receives the second half from the root.
//!
//! Example, `p = 4`, `q = 2`: 0→1 segment 0, 0→2 segment 1, 1→3 segment 0; then 1↔2, and 0→3
//! segment 1.

use super::binomial;
use crate::plan::prelude::*;

pub(in crate::plan) const BROADCAST: Row = Row {
    source: "Open MPI (split binary tree)",
    rounds: "q+2(N-2) and one of m/2 (bi, p = 2^N-1, q even)",
    ..row::new("split-binary", Kind::Broadcast, plan)
        .segmented()
        .with_formula(time)
};

pub(in crate::plan) const REDUCE: Row = Row {
    collective: Kind::Reduce,
    commutative_only: true,
    planner: Planner::ReverseOf(plan),
    formula: ClosedForm::None,
    ..BROADCAST
};

pub(in crate::plan) const ALLREDUCE: Row = Row {
    collective: Kind::Allreduce,
    ports: PortModels::Uni,
    k_ported: true,
    for_arrivals: true,
    transfers: row::for_each_segment_twice,
    rounds: "those of the reduction, then those of the broadcast or ceil(log2 p)",
    volume: "2(p-1) m",
    planner: Planner::Direct(allreduce),
    ..REDUCE
};

pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    let (p, root) = (request.ranks, request.root);
    let rank = |v: usize| (v + root) % p;
    let mut segments = request.segments.spans();
    let count = segments.len().div_ceil(2);
    let (first, second) = segments.split_at_mut(count);
    let (mut b, vector) = over_vector(request, Collective::Broadcast { root }, 0);
    let middle = second.first().map_or(vector.len, |s| s.offset);
    let halves = [Span::from(0..middle), Span::from(middle..vector.len)];
    // A reduction is the broadcast backwards.
    if request.kind == Kind::Reduce {
        cut_from_the_end(first);
        cut_from_the_end(second);
    }
    // Segment by segment, each rank receives it before it sends it on.
    for i in 0..first.len() {
        for v in 1..p {
            let parent = if v < 3 {
                0
            } else {
                ((v - 1) / 2 - 1) / 2 * 2 + 2 - v % 2
            };
            let half = if v % 2 == 1 { &first } else { &second };
            if let Some(&segment) = half.get(i) {
                b.transfer(rank(parent), rank(v), segment);
            }
        }
    }
    let exchange = (1..p).map(|v| {
        let partner = if v % 2 == 1 { v + 1 } else { v - 1 };
        let from = if partner < p { partner } else { 0 };
        Message::new(rank(from), rank(v), halves[v % 2])
    });
    let exchange: Vec<_> = exchange.collect();
    round(&mut b, request, &exchange, Arrival::Stored);
    b.build()
}

const BINOMIAL: Row = row::broadcast(binomial::REDUCE);

/// Plans the allreduce. The broadcast has the segments of the reduction, or two of its own, or is
/// that of a binomial tree, whichever is the fastest.
pub(crate) fn allreduce(request: &Request) -> Result<Schedule> {
    let first = request.clone().root(0).collective(Kind::Reduce);
    let second = first.without_computation().collective(Kind::Broadcast);
    let halves = second.clone().segment_count(2);
    let [own, binomial] = [&BROADCAST, &BINOMIAL].map(Algorithm::of);
    let mut best: Option<(f64, &Algorithm, Request)> = None;
    for (algorithm, request) in [(&own, second.clone()), (&own, halves), (&binomial, second)] {
        let time = algorithm.time(&request)?;
        if best.as_ref().is_none_or(|(least, ..)| time < *least) {
            best = Some((time, algorithm, request));
        }
    }
    let (_, algorithm, second) = best.expect("there are three candidates");
    in_sequence(
        Collective::Allreduce,
        Algorithm::of(&REDUCE).plan(&first)?,
        algorithm.plan(&second)?,
    )
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    let (q, s) = request.equal_segments()?;
    let (p, m) = (request.ranks, request.elements());
    if p == 1 {
        return Some(0.0);
    }
    let is_full = p > 2 && (p + 1).is_power_of_two();
    if !is_full || !request.ports.can_relay() || !q.is_multiple_of(2) {
        return None;
    }
    let levels = (p + 1).ilog2() as usize;
    let rounds = (q + 2 * (levels - 2)) as f64;
    Some(rounds * request.transfer_time(s) + time_of_round(request, m / 2))
}
