//! Composed allreduces on unidirectional ranks: the reduce-scatter and the allgather that are best,
//! or the reduction and the broadcast, which need not be those of one algorithm.
//!
//! - Source: oneport.
//! - Ports: unidirectional.
//! - Rounds, volume and scratch: those of the two.
//! - Time: at most the sum of both. There is no closed form.
//! - Restrictions: only the sum of the request's segments matters.
//! - Operand order: kept if it has to be; then the reduce-scatter is recursive halving, and the
//!   reduction binomial.
//! - Cost of planning: that of simulating all candidates, with the best segments of each.
//!
//! Where combining costs time, a reduce-scatter in which all ranks combine at once is faster than
//! the [Fibonacci](super::fibonacci) one, whose allgather remains the best. For an odd number of
//! ranks, messages of other lengths are best for different algorithms. Reductions and broadcasts
//! are best with segments of different sizes.
//!
//! Example, `p = 16` with `gamma` as large as `beta`: recursive halving, then Fibonacci.

use super::{bruck, doubling_allgather, fibonacci, halving, ring};
use crate::error::Result;
use crate::plan::choose::{none_applies, rank, with_best_segments};
use crate::plan::pipeline::out_of_order;
use crate::plan::registry::row;
use crate::plan::registry::{Algorithm, Planner, PortModels};
use crate::plan::tree::reduce_broadcast::in_sequence;
use crate::plan::tree::{binomial, split_binary};
use crate::plan::{Request, Segments, evenly};
use crate::schedule::Schedule;
use crate::schedule::collective::Kind;

pub(in crate::plan) const ALLREDUCE: Algorithm = Algorithm {
    ports: PortModels::Uni,
    transfers,
    planning_work: 8,
    source: "oneport",
    rounds: "those of the best reduce_scatter, then of the best allgather, of different rows",
    volume: "at most about 2 p m, usually 2(p-1) m",
    ..row::new("composed", Kind::Allreduce, plan)
};

pub(in crate::plan) const ROOTED_ALLREDUCE: Algorithm = Algorithm {
    name: "composed-rooted",
    // As long as there are hundreds of segments or fewer.
    transfers: |p, _| row::for_each_segment_twice(p, 100),
    planning_work: 300,
    rounds: "those of the best reduce, then of the best broadcast, of different rows and segments",
    volume: "2(p-1) m",
    planner: Planner::Direct(plan_rooted),
    ..ALLREDUCE
};

static REDUCE_SCATTERS: [Algorithm; 4] = [
    fibonacci::REDUCE_SCATTER,
    halving::REDUCE_SCATTER,
    bruck::REDUCE_SCATTER,
    ring::REDUCE_SCATTER,
];

static ALLGATHERS: [Algorithm; 4] = [
    fibonacci::ALLGATHER,
    doubling_allgather::ALLGATHER,
    bruck::ALLGATHER,
    ring::ALLGATHER,
];

static REDUCTIONS: [Algorithm; 3] = [binomial::REDUCE, split_binary::REDUCE, out_of_order::REDUCE];

static BROADCASTS: [Algorithm; 3] = [
    row::broadcast(binomial::REDUCE),
    split_binary::BROADCAST,
    row::broadcast(out_of_order::REDUCE),
];

/// Limit of the transfers of a candidate: a ring among many ranks takes too long to plan.
const MAX_TRANSFERS: usize = 1 << 18;

/// Whether a candidate with so many transfers is planned.
fn is_short(ranks: usize, transfers: usize) -> bool {
    transfers <= MAX_TRANSFERS.max(64 * ranks)
}

/// Those of the candidate with the most transfers, the ring, in both phases.
fn transfers(ranks: usize, _segments: usize) -> usize {
    let ring = (ring::ALLGATHER.transfers)(ranks, 1);
    match is_short(ranks, ring) {
        true => ring.saturating_mul(2),
        false => row::logarithmic_twice(ranks, 1),
    }
}

/// Plans the allreduce of a reduce-scatter and an allgather.
pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    request.validate()?;
    let blocks = evenly(request.elements(), request.ranks);
    let vector = Segments::whole(request.elements());
    let first = request
        .clone()
        .collective(Kind::ReduceScatter)
        .segments(vector);
    let second = request.without_computation().collective(Kind::Allgather);
    let second = second.segments(Segments::whole(blocks[0])).blocks(blocks);
    let first = best(&REDUCE_SCATTERS, &first)?;
    let second = best(&ALLGATHERS, &second)?;
    in_sequence(request, first, second)
}

/// Plans the allreduce of a reduction and a broadcast.
fn plan_rooted(request: &Request) -> Result<Schedule> {
    request.validate()?;
    let whole = Segments::whole(request.elements());
    let first = request.clone().root(0).segments(whole);
    let second = first.without_computation().collective(Kind::Broadcast);
    let first = best(&REDUCTIONS, &first.collective(Kind::Reduce))?;
    in_sequence(request, first, best(&BROADCASTS, &second)?)
}

/// The schedule with the smallest time.
fn best(candidates: &'static [Algorithm], request: &Request) -> Result<Schedule> {
    let is_short = |a: &&Algorithm| is_short(request.ranks, (a.transfers)(request.ranks, 1));
    let candidates = candidates.iter().filter(is_short);
    let best = rank(candidates, |a| with_best_segments(a, request)).best();
    let best = best.map_err(|refusals| none_applies(Some(request.kind), &refusals))?;
    best.algorithm.plan(&best.request)
}
