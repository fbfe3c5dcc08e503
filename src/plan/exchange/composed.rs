//! Compositions on unidirectional ranks of phases that are the best by themselves, which need not
//! be those of one algorithm.
//!
//! | collective | phases |
//! |---|---|
//! | allreduce | reduce-scatter, allgather |
//! | reduce | reduce-scatter, gather along a binomial tree |
//!
//! - Rounds, volume and scratch: those of the two.
//! - Time: at most the sum of both. There is no closed form.
//! - Operand order: kept if it has to be; then the reduce-scatter is recursive halving.
//! - Cost of planning: that of simulating all candidates.
//!
//! Where combining costs time, a reduce-scatter in which all ranks combine at once is faster than
//! the [Fibonacci](super::fibonacci) one, whose allgather remains the best. For an odd number of
//! ranks, messages of other lengths are best for different algorithms.
//!
//! Example, `p = 16` with `gamma` as large as `beta`: recursive halving, then Fibonacci.

use super::van_de_geijn::Gather;
use super::{bruck, doubling_allgather, fibonacci, halving, pat, ring, swing};
use crate::budget::search::is_short;
use crate::plan::prelude::*;
use crate::plan::space::{Model, Space, best_first};

pub(in crate::plan) const ALLREDUCE: Row = Row {
    ports: PortModels::Uni,
    k_ported: true,
    for_arrivals: true,
    transfers: |p, _| transfers(p, 2),
    planning_work: 8,
    source: "oneport",
    rounds: "those of the best reduce_scatter, then of the best allgather, of different rows",
    volume: "at most about 2 p m, usually 2(p-1) m",
    ..row::new("composed", Kind::Allreduce, plan)
};

pub(in crate::plan) const REDUCE: Row = Row {
    transfers: |p, _| transfers(p, 1),
    rounds: "those of the best reduce_scatter, then ceil(log2 p)",
    volume: "about (p-1) m + ceil(log2 p)/2 m",
    best_root: BestRoot::Search,
    planner: Planner::Direct(reduce),
    collective: Kind::Reduce,
    ..ALLREDUCE
};

const REDUCE_SCATTERS: [Row; 6] = [
    fibonacci::REDUCE_SCATTER,
    halving::REDUCE_SCATTER,
    bruck::REDUCE_SCATTER,
    swing::REDUCE_SCATTER,
    pat::REDUCE_SCATTER,
    ring::REDUCE_SCATTER,
];

const ALLGATHERS: [Row; 5] = [
    fibonacci::ALLGATHER,
    doubling_allgather::ALLGATHER,
    bruck::ALLGATHER,
    swing::ALLGATHER,
    ring::ALLGATHER,
];

/// Those of the candidate with the most transfers, the ring, in `phases` phases.
fn transfers(ranks: usize, phases: usize) -> usize {
    let ring = (ring::ALLGATHER.transfers)(ranks, 1);
    if is_short(ranks, ring) {
        ring
    } else {
        row::logarithmic(ranks, 1)
    }
    .saturating_mul(phases)
}

pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    let blocks = evenly(request.elements(), request.ranks);
    let second = request.without_computation().collective(Kind::Allgather);
    let second = second.segments(Segments::whole(blocks[0])).blocks(blocks);
    let second = best(&ALLGATHERS, &second)?;
    in_sequence(Collective::Allreduce, reduce_scatter(request)?, second)
}

pub(crate) fn reduce(request: &Request) -> Result<Schedule> {
    let collective = Collective::Reduce { root: request.root };
    in_sequence(collective, reduce_scatter(request)?, gather(request)?)
}

fn reduce_scatter(request: &Request) -> Result<Schedule> {
    let vector = Segments::whole(request.elements());
    let request = request.clone().collective(Kind::ReduceScatter);
    let request = request.segments(vector);
    best(&REDUCE_SCATTERS, &request)
}

/// The second phase of the reduction: blocks stay at their positions in the vector.
fn gather(request: &Request) -> Result<Schedule> {
    let (root, blocks) = (request.root, request.block_spans());
    let mut b = over_blocks(request, Collective::Gather { root }, &blocks, 0);
    let gather = Gather::by_rank(request, blocks);
    rounds::forwards(&mut b, request, gather.messages());
    b.build()
}

/// The fastest of the candidates whose schedules are short.
fn best(candidates: &'static [Row], request: &Request) -> Result<Schedule> {
    let algorithms: Vec<_> = candidates.iter().map(Algorithm::of).collect();
    let space = Space::among(&algorithms, request).of_short()?;
    let mut ranking = best_first(&space, &Model);
    // Among equal times a rounding error decides: so the trees were chosen whose float sums have
    // the bits that are documented.
    (ranking.choices).sort_by(|a, b| a.time.total_cmp(&b.time));
    ranking.fastest(Some(request.kind))?.plan()
}
