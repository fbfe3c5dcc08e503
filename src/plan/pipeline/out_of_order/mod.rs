//! Out-of-order reduction: a unidirectional pipelined reduction in which a rank may work on a later
//! segment first.
//!
//! - Source: original to this project. It goes beyond Lowery & Langou, *A Greedy Algorithm for
//!   Optimally Pipelining a Reduction*: their section V proves uni-greedy (algorithm 1) optimal
//!   among the reductions in which every rank handles the segments in order. This planner drops
//!   that order.
//! - Symbols: `p` ranks, root 0, `q` segments, the `i`-th of `s_i` elements,
//!   `tc = alpha + beta s_i`, `tp = gamma s_i`, `L = floor(log2 p)`.
//! - Rounds, for `tp = 0` and equal segments: `2q - 1 + L` for odd `p`,
//!   `2q + L - floor((q - 1 + 2^L) / (p/2))` for even `p` ([`lower_bound`]; reached in every case
//!   measured, proved for `p <= 4`).
//! - Time in all other cases: no formula; the plan is made and evaluated.
//!
//! # Method
//!
//! Read backwards in time, a reduction is a broadcast in which a *sender* first prepares for `tp`
//! and then transfers for `tc`. This broadcast is planned instant by instant. Ranks that are ready
//! to send are paired with free ranks, those with many segments with those with few, and each pair
//! transfers the segment that the fewest ranks have. Two rules determine the quality of the plan:
//!
//! * *The cap.* Out of each cycle of `2tc + tp` a rank spends `2tc` in transfers, so on average at
//!   most `p tc / (2tc + tp)` transfers are in progress. Starting more whenever ranks are free
//!   drives all ranks into lock-step, and then all of them wait for `tp` in every cycle. The number
//!   of concurrent transfers is therefore capped at that average or next to it (at `floor(p/2)`
//!   when `tp = 0`).
//! * *Idle time.* A rank that is free from time `x` loses nothing as a receiver at `x` or as a
//!   sender at `x + tp`. Receivers that would lose time get a lower priority.
//!
//! Several caps and seeds are tried, every plan is timed by the rules, and the shortest is kept.
//! Uni-greedy's plan is one of the candidates. The result depends on the arguments only.
//!
//! Example, `p = 4`, `q = 3`, `tc = 1`, `tp = 0`, in 5 rounds (uni-greedy needs 6), the last
//! segment first:
//!
//! | round | transfers (segment) |
//! |---|---|
//! | 0 | 1→2 (2), 3→0 (2) |
//! | 1 | 1→3 (1), 2→0 (2) |
//! | 2 | 2→1 (0), 3→0 (1) |
//! | 3 | 3→1 (0), 2→0 (1) |
//! | 4 | 1→0 (0) |
//!
//! # Proved properties
//!
//! - It is never slower than uni-greedy, for any times of a homogeneous model without overlap.
//! - It is optimal for `tp = 0`, equal segments and `p <= 4`.
//! - The bound [`lower_bound`] holds.
//!
//! `examples/out_of_order.rs` compares it with uni-greedy and with the bounds; the results stand
//! there.
//!
//! # Planning time
//!
//! At most 24 plans are tried, and none after one meets the lower bound. The first plan may take
//! `6*10^8` elementary steps (about a second); further plans are tried only while fewer than
//! `2*10^8` steps have been spent in total. With equal segments, `p = q = 64` needs `3*10^7` for
//! all 24 plans, `p = 1024, q = 64` needs `6*10^7` for each plan, and `p = 4096, q = 64` needs most
//! of `6*10^8` for one. With unequal segments a plan costs about ten times as much. If the first
//! plan would need more, or if times are not finite, the result is uni-greedy's plan.
//!
//! The second phase of the allreduce is planned with the segments of the first one and with those
//! that are best for itself, for which quick plans of `10^7` steps in all are made before.

mod best_segment;
mod bounds;
mod broadcast;
mod search;

pub use bounds::lower_bound;

use super::uni_greedy;
use crate::budget::out_of_order::{Effort, MAX_BYTES_OF_PHASE};
use crate::plan::prelude::*;

pub(in crate::plan) const REDUCE: Row = Row {
    ports: PortModels::Uni,
    commutative_only: true,
    source: "oneport; goes beyond Lowery & Langou",
    rounds: "floor(log2 p)+2q-1 for odd p, fewer for even (gamma = 0, as measured); never more than uni-greedy where all links cost the same",
    formula: ClosedForm::OfPlan(time),
    best_segment: BestSegment::Own(best_segment::best),
    // 15 ms instead of 55 us for 64 ranks and 13 unequal segments.
    planning_work: 300,
    ..row::planned_by("out-of-order", Kind::Reduce, Planner::Reduction(reduction)).segmented()
};

pub(in crate::plan) const ALLREDUCE: Row = Row {
    planner: Planner::AllreduceOf([reduction, broadcast_phase]),
    formula: ClosedForm::OfPlan(allreduce_time),
    best_segment: REDUCE.best_segment,
    // The second phase may have more segments than the request.
    tables: |_| MAX_BYTES_OF_PHASE,
    ..row::allreduce(REDUCE, "those of the reduction, and at most as many")
};

/// Plans the reduction as a compact list of transfers, without storing its steps.
pub(in crate::plan) fn reduction(request: &Request) -> Reduction {
    // The registry admits only commuting operators here, so ranks may be rotated to any root. For a
    // reversed broadcast operand order has no meaning.
    let request = request.clone().keep_order(false);
    let (transfer_time, combine_time) = costs(&request);
    let transfers = out_of_order(request.ranks, &transfer_time, &combine_time);
    Reduction::new(&request, transfers.into_iter().map(|t| [t]))
}

/// Plans the reduction that, reversed, is the second phase of the allreduce.
fn broadcast_phase(request: &Request) -> Reduction {
    match fastest_broadcast(request) {
        Some((_, request)) => reduction(&request),
        None => reduction(request),
    }
}

/// The time of the second phase, and the request for it: with the segments of the first phase, or
/// with segments of its own if they are better. That is decided as if the phases followed one
/// another, so that overlap makes no allreduce slower. `None` where links differ, or there are
/// delays.
fn fastest_broadcast(request: &Request) -> Option<(f64, Request)> {
    if !request.has_uniform_costs() {
        return None;
    }
    let same = (makespan(request), request.clone());
    let own = best_segment::broadcast_phase(request);
    let own = own.filter(|own| own.segments != request.segments);
    let own = own.map(|own| (makespan(&own), own));
    Some(own.filter(|own| own.0 < same.0).unwrap_or(same))
}

fn allreduce_time(request: &Request) -> Option<f64> {
    let request = request.clone().root(0);
    let reduction = time(&request)?;
    let (broadcast, _) = fastest_broadcast(&request.without_computation())?;
    Some(reduction + broadcast)
}

/// Time of the schedule; `None` where closed forms do not hold. Takes as long as planning.
pub(crate) fn time(request: &Request) -> Option<f64> {
    request.closed_forms_hold().then(|| makespan(request))
}

/// When the last transfer and combination of the plan end if no computation overlaps
/// communication.
fn makespan(request: &Request) -> f64 {
    let (transfer_time, combine_time) = costs(request);
    search::best(request.ranks, &transfer_time, &combine_time, Effort::FULL).makespan
}

/// Plans a reduction of `q` segments from `p` ranks to rank 0.
///
/// Segment `i` takes `transfer_time[i]` to transfer and `combine_time[i]` to combine; `q` is the
/// common length of both slices, and the unit of time is the caller's. The `q (p - 1)` transfers
/// are listed by starting time, which defines the program order of every rank. `p < 2` and `q = 0`
/// give none. For the time that it takes see [Planning time](self#planning-time).
pub fn out_of_order(p: usize, transfer_time: &[f64], combine_time: &[f64]) -> Vec<Transfer> {
    let best = search::best(p, transfer_time, combine_time, Effort::FULL);
    best.plan.into_iter().map(|(_, t)| t).collect()
}

/// The makespan of a plan found with little effort, and the elementary steps it took. It is at
/// least as long as the plan that [`plan`] finds.
pub(in crate::plan) fn quick_time(request: &Request) -> (f64, u64) {
    let (transfer_time, combine_time) = costs(request);
    let best = search::best(request.ranks, &transfer_time, &combine_time, Effort::QUICK);
    (best.makespan, best.steps)
}

/// `tc` and `tp` of every segment; empty for a single rank.
pub(in crate::plan) fn costs(request: &Request) -> (Vec<f64>, Vec<f64>) {
    uni_greedy::costs(request).unzip()
}
