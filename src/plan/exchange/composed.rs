//! Composed allreduce on unidirectional ranks: the reduce-scatter and the allgather that are best,
//! which need not be those of one algorithm.
//!
//! - Source: oneport.
//! - Ports: unidirectional.
//! - Rounds, volume and scratch: those of the two.
//! - Time: at most the sum of both. There is no closed form.
//! - Restrictions: only the sum of the request's segments matters.
//! - Operand order: kept if it has to be; then the reduce-scatter is recursive halving.
//! - Cost of planning: that of simulating all candidates.
//!
//! Where combining costs time, a reduce-scatter in which all ranks combine at once is faster than
//! the [Fibonacci](super::fibonacci) one, whose allgather remains the best. For an odd number of
//! ranks, messages of other lengths are best for different algorithms.
//!
//! Example, `p = 16` with `gamma` as large as `beta`: recursive halving, then Fibonacci.

use super::{bruck, doubling_allgather, fibonacci, halving, ring};
use crate::error::{Error, Result};
use crate::plan::registry::row;
use crate::plan::registry::{Algorithm, PortModels};
use crate::plan::segments::executed_time;
use crate::plan::tree::reduce_broadcast::in_sequence;
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

const REDUCE_SCATTERS: [Algorithm; 4] = [
    fibonacci::REDUCE_SCATTER,
    halving::REDUCE_SCATTER,
    bruck::REDUCE_SCATTER,
    ring::REDUCE_SCATTER,
];

const ALLGATHERS: [Algorithm; 4] = [
    fibonacci::ALLGATHER,
    doubling_allgather::ALLGATHER,
    bruck::ALLGATHER,
    ring::ALLGATHER,
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

/// Plans the allreduce.
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
    let first = best(&REDUCE_SCATTERS, &first)?.plan(&first)?;
    let second = best(&ALLGATHERS, &second)?.plan(&second)?;
    in_sequence(request, first, second)
}

/// The algorithm with the smallest time.
fn best<'a>(candidates: &'a [Algorithm], request: &Request) -> Result<&'a Algorithm> {
    let mut best: Option<(f64, &Algorithm)> = None;
    for algorithm in candidates {
        let transfers = (algorithm.transfers)(request.ranks, 1);
        if !is_short(request.ranks, transfers) || algorithm.accepts(request).is_err() {
            continue;
        }
        let time = executed_time(algorithm, request)?;
        if best.is_none_or(|(least, _)| time < least) {
            best = Some((time, algorithm));
        }
    }
    best.map(|(_, algorithm)| algorithm).ok_or_else(|| {
        let kind = request.kind.name();
        Error::usage(format!("no algorithm for {kind} can be planned for this"))
    })
}
