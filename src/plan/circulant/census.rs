//! Circulant census: an allreduce of short vectors in the fewest rounds, for any number of ranks.
//!
//! Source: Träff, "(Poly)logarithmic time construction of round-optimal n-block broadcast
//! schedules", Algorithm 8 (whose line 3 means `k`); Bar-Noy, Kipnis, Schieber 1993. Ports:
//! bidirectional, one-ported. Symbols: `p` ranks, `m` elements, `L = ceil(log2 p)`, skips as in
//! [`schedule`](super::schedule).
//! Rounds: `L`, optimal. Volume: `p L m`. Time: `L (alpha + beta m) + (L + d) gamma m`, where `d`
//! is the number of rounds but the first and the last of those below that send a sum without the
//! sender's own. Restrictions: the operator must commute; the request's segments are ignored
//! but for their sum. Scratch: `m`, or `2m` where there are such rounds.
//!
//! Before round `k` rank `r` has two sums: of ranks `r .. r + skip[k]`, its own included, and of `r +
//! 1 .. r + skip[k]`, without it. Where `skip[k+1]` is `2 skip[k]`, it sends the first to `r -
//! skip[k]`, otherwise, where that would count a rank twice, the second to `r - skip[k] + 1`; it
//! adds what comes from the other side to both. The paper adds its own contribution to a copy
//! whenever it is needed; two sums need no copies, and the second is kept only as long as a later
//! round sends it.
//!
//! `p = 3`, skips 1, 2, 3: round 0: 0→2, 1→0, 2→1, all with their own; round 1 the same, each with
//! what it received.

use super::reduce;
use super::schedule::Circulant;
use crate::collective::Collective;
use crate::collective::Kind;
use crate::error::{Error, Result};
use crate::plan::Request;
use crate::plan::registry::row;
use crate::plan::registry::{Algorithm, ClosedForm, Planner};
use crate::schedule::{Order, Schedule, Span, Step};

pub(in crate::plan) const ALLREDUCE: Algorithm = Algorithm {
    name: "census",
    collective: Kind::Allreduce,
    segmented: false,
    transfers: row::logarithmic,
    source: "Träff, circulant census; Bar-Noy, Kipnis, Schieber 1993",
    rounds: "ceil(log2 p)",
    volume: "p ceil(log2 p) m",
    planner: Planner::Direct(plan),
    closed_form: ClosedForm::Of(time),
    ..reduce::REDUCE.for_another_collective()
};

/// Plans the allreduce.
///
/// # Errors
/// When the request's parts do not fit together, or there is no room for the scratch.
pub fn plan(request: &Request) -> Result<Schedule> {
    request.validate()?;
    let (p, m) = (request.ranks, request.elements());
    let graph = Circulant::new(p);
    let with = Span::new(0, m);
    let mut b = Schedule::builder(p, request.ports, Collective::Allreduce);
    let rounds = if m == 0 { 0 } else { graph.rounds() };
    let last_without = last_without(&graph);
    let areas = match (rounds, last_without) {
        (0, _) => 1,
        (_, None) => 2,
        (_, Some(_)) => 3,
    };
    let Some(len) = m.checked_mul(areas) else {
        return Err(Error::usage(format!(
            "a vector of {m} elements leaves no room for {} as long as it",
            areas - 1
        )));
    };
    // The sum without its own, and what has come, where it is not that sum.
    let (without, arrived) = (Span::new(m, m), Span::new((areas - 1) * m, m));
    for r in 0..p {
        b.layout(r, len, [with], [with]);
        for k in 0..rounds {
            let (distance, sum) = if sends_without(&graph, k) {
                (graph.skips()[k] - 1, without)
            } else {
                (graph.skips()[k], with)
            };
            // Whether a later round sends the sum without its own; the first message is that sum.
            let kept = last_without.is_some_and(|last| k < last);
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

/// `L (alpha + beta m) + (L + d) gamma m`.
pub fn time(request: &Request) -> Option<f64> {
    if !request.closed_forms_hold() || request.ranks == 0 {
        return None;
    }
    let (graph, m) = (Circulant::new(request.ranks), request.elements());
    let (message, combination) = (request.transfer_time(m), request.t_comp_local(m));
    let both = last_without(&graph).unwrap_or(0).saturating_sub(1);
    #[expect(clippy::cast_precision_loss, reason = "logarithms")]
    let (rounds, both) = (graph.rounds() as f64, both as f64);
    Some(rounds * message + (rounds + both) * combination)
}

/// Whether round `k` sends the sum without the sender's own contribution.
fn sends_without(graph: &Circulant, k: usize) -> bool {
    2 * graph.skips()[k] > graph.skips()[k + 1]
}

/// The last round that does.
fn last_without(graph: &Circulant) -> Option<usize> {
    (0..graph.rounds()).rev().find(|&k| sends_without(graph, k))
}
