//! Circulant census: an allreduce of short vectors in the optimal number of rounds, for any number
//! of ranks.
//!
//! - Source: Träff, "(Poly)logarithmic time construction of round-optimal n-block broadcast
//!   schedules", Algorithm 8 (whose line 3 means `k`); Bar-Noy, Kipnis, Schieber 1993.
//! - Symbols: `p` ranks, `m` elements, `L = ceil(log_{k+1} p)`, skips as in
//!   [`schedule`](super::schedule). A round is *exclusive* when the sum that it sends lacks the
//!   sender's own contribution; `d` is the number of rounds after the first and before the last
//!   exclusive one.
//! - Rounds: `L`, optimal.
//! - Time on one port: `L (alpha + beta m) + (L + d) gamma m`.
//! - Scratch: `m` elements, or `2m` if there is an exclusive round; with `k > 1` ports `(k+1) m`.
//!
//! Before round `k` rank `r` holds two sums: over ranks `r .. r + skip[k]`, its own contribution
//! included, and over `r + 1 .. r + skip[k]`, without it. Where `skip[k+1] = 2 skip[k]`, it sends
//! the first sum to `r - skip[k]`. Otherwise that would count a rank twice, so it sends the second
//! sum to `r - skip[k] + 1`. It adds the sum that it receives from the other side to both of its
//! own.
//!
//! The paper adds the rank's own contribution to a copy whenever it is needed. With two sums no
//! copy is needed, and the second sum is kept only as long as a later round sends it.
//!
//! With `k > 1` ports, rank `r` has the sums over `r + 1 ..= r + c` and over `r ..= r + c`, where
//! `c` has in base `k + 1` the leading digits of `p - 1`. If `d` is the next one, it receives the
//! second sum of `d` ranks and the first of `k - d` others, so that their ranges follow each other:
//! `c` becomes `(k + 1) c + d`.
//!
//! The sums of a rank are over the ranks behind it, so that all ranks add in different trees. Where
//! they are to get the same bits, a [gossip](crate::plan::exchange::gossip) takes the same rounds:
//! its messages have up to half of all vectors.
//!
//! Example, `p = 3`, skips 1, 2, 3: in round 0 the messages are 0→2, 1→0, 2→1, all with the
//! sender's own contribution. Round 1 has the same messages; each holds what its sender received in
//! round 0.

use super::n_blocks;
use super::schedule::Circulant;
use crate::budget::search::MAX_GOSSIP;
use crate::plan::exchange::gossip;
use crate::plan::prelude::*;

pub(in crate::plan) const ALLREDUCE: Row = Row {
    name: "census",
    ranks_agree: |p, _| p <= 2,
    has_common_order: |p| p <= MAX_GOSSIP,
    same_as: |request| request.same_bits.then_some(&gossip::IN_COMMON_ORDER),
    k_ported: true,
    schedule_table: None,
    collective: Kind::Allreduce,
    segmented: false,
    transfers: row::logarithmic,
    source: "Träff, circulant census; Bar-Noy, Kipnis, Schieber 1993",
    rounds: "ceil(log_{k+1} p) on k ports",
    volume: "p ceil(log2 p) m; at most k p ceil(log_{k+1} p) m",
    planner: Planner::Direct(plan),
    formula: ClosedForm::Of(time),
    ..n_blocks::REDUCE.for_another_collective()
};

pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    if request.ports.k() > 1 {
        return plan_ported(request);
    }
    let (p, m) = (request.ranks, request.elements());
    let graph = Circulant::new(p);
    let rounds = if m == 0 { 0 } else { graph.rounds() };
    let last_exclusive = last_exclusive(&graph);
    let areas = match (rounds, last_exclusive) {
        (0, _) => 1,
        (_, None) => 2,
        (_, Some(_)) => 3,
    };
    let scratch = elements_of(areas, m)? - m;
    let (mut b, with) = over_vector(request, Collective::Allreduce, scratch);
    // The sum without the rank's own contribution, and the scratch for a received sum.
    let (without, arrived) = (Span::new(m, m), Span::new((areas - 1) * m, m));
    for r in 0..p {
        for k in 0..rounds {
            let (distance, sum) = if is_exclusive(&graph, k) {
                (graph.skips()[k] - 1, without)
            } else {
                (graph.skips()[k], with)
            };
            // Whether a later round sends the exclusive sum. The first message received is that
            // sum.
            let kept = last_exclusive.is_some_and(|last| k < last);
            let stored = if kept && k == 0 { without } else { arrived };
            let to = (r + p - distance) % p;
            b.step(r, Step::send(to, sum));
            b.step(r, Step::recv((r + distance) % p, stored));
            b.step(r, Step::combine(stored, with, Order::MineFirst));
            if kept && k > 0 {
                b.step(r, Step::combine(stored, without, Order::MineFirst));
            }
        }
    }
    b.build()
}

fn plan_ported(request: &Request) -> Result<Schedule> {
    let (p, m, k) = (request.ranks, request.elements(), request.ports.k());
    let mut digits: Vec<usize> = Vec::new();
    let mut left = if m == 0 { 0 } else { p - 1 };
    while left > 0 {
        digits.push(left % (k + 1));
        left /= k + 1;
    }
    let areas = if digits.is_empty() { 1 } else { 2 + k };
    let scratch = elements_of(areas, m)? - m;
    let (mut b, with) = over_vector(request, Collective::Allreduce, scratch);
    let area = |n: usize| Span::new(n * m, m);
    let without = area(1);
    let mut c = 0;
    for (round, &digit) in digits.iter().rev().enumerate() {
        // By port: how far the sender is, and which of its sums it sends.
        let mut end = c;
        let mut messages = Vec::new();
        for port in 0..k {
            let (distance, sum, count) = if port < digit {
                (end + 1, with, c + 1)
            } else {
                (end, without, c)
            };
            if count > 0 {
                messages.push((port, distance, sum));
            }
            end += count;
        }
        let is_last = round + 1 == digits.len();
        for r in 0..p {
            for &(port, distance, sum) in &messages {
                b.step(r, Step::send((r + p - distance) % p, sum).on_port(port));
            }
            for &(port, distance, _) in &messages {
                let step = Step::recv((r + distance) % p, area(2 + port));
                b.step(r, step.on_port(port));
            }
            for (i, &(port, ..)) in messages.iter().enumerate() {
                let arrived = area(2 + port);
                b.step(r, Step::combine(arrived, with, Order::MineFirst));
                match (is_last, c, i) {
                    (true, ..) => {}
                    (false, 0, 0) => {
                        b.step(r, Step::copy(arrived, without));
                    }
                    _ => {
                        b.step(r, Step::combine(arrived, without, Order::MineFirst));
                    }
                }
            }
        }
        c = end;
    }
    b.build()
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    if request.ports.k() > 1 {
        return None;
    }
    let (graph, m) = (Circulant::new(request.ranks), request.elements());
    let (message, combination) = (request.transfer_time(m), request.local_combine_time(m));
    let both = last_exclusive(&graph).unwrap_or(0).saturating_sub(1);
    let (rounds, both) = (graph.rounds() as f64, both as f64);
    Some(rounds * message + (rounds + both) * combination)
}

/// Whether round `k` is exclusive: sends the sum without the sender's own contribution.
fn is_exclusive(graph: &Circulant, k: usize) -> bool {
    2 * graph.skips()[k] > graph.skips()[k + 1]
}

fn last_exclusive(graph: &Circulant) -> Option<usize> {
    (0..graph.rounds()).rev().find(|&k| is_exclusive(graph, k))
}
