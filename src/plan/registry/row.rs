//! Functions that build rows of the registry: defaults, derived collectives and numbers of
//! transfers.

use super::{Algorithm, BestRoot, BestSegment, ClosedForm, Formula, Nodes, Planner, PortModels};
use crate::error::Result;
use crate::plan::Request;
use crate::schedule::Schedule;
use crate::schedule::collective::Kind;

/// A row with the most common properties: any ports, operator, links and blocks, no segments, and a
/// logarithmic number of rounds.
///
/// The caller adds source, rounds, volume and, if there is a closed form, the time.
pub(in crate::plan) const fn new(
    name: &'static str,
    collective: Kind,
    plan: fn(&Request) -> Result<Schedule>,
) -> Algorithm {
    planned_by(name, collective, Planner::Direct(plan))
}

/// As [`new`], with a planner of any form.
pub(in crate::plan) const fn planned_by(
    name: &'static str,
    collective: Kind,
    planner: Planner,
) -> Algorithm {
    Algorithm {
        name,
        collective,
        ports: PortModels::Both,
        commutative_only: false,
        k_ported: false,
        uniform_links_only: false,
        regular_only: false,
        one_size_a_rank: false,
        nodes: Nodes::Any,
        segmented: false,
        planning_work: 1,
        transfers: logarithmic,
        tables: |_| 0,
        source: "",
        rounds: "",
        volume: "",
        max_ranks: None,
        max_ranks_with_links: None,
        min_rounds: |_, _| 0,
        schedule_table: None,
        best_root: BestRoot::First,
        planner,
        same_as: |_| None,
        closed_form: ClosedForm::None,
        covered_ranks: |p| p,
        best_segment: BestSegment::Search,
        published: None,
    }
}

/// The planner of the reversal. Streamed programs have separate functions for their reversal.
const fn reversed(planner: Planner) -> Planner {
    match planner {
        Planner::Direct(plan) | Planner::ReverseOf(plan) => Planner::ReverseOf(plan),
        Planner::Reduction(plan) => Planner::BroadcastOf(plan),
        _ => panic!("streamed programs are not reversed"),
    }
}

/// A broadcast: the reversal of a reduction.
pub(in crate::plan) const fn broadcast(reduce: Algorithm) -> Algorithm {
    Algorithm {
        collective: Kind::Broadcast,
        commutative_only: false,
        planner: reversed(reduce.planner),
        ..reduce
    }
}

/// An allreduce: a reduction to rank 0, then a broadcast.
pub(in crate::plan) const fn allreduce(reduce: Algorithm, rounds: &'static str) -> Algorithm {
    Algorithm {
        collective: Kind::Allreduce,
        transfers: if reduce.segmented {
            for_each_segment_twice
        } else {
            logarithmic_twice
        },
        rounds,
        volume: "2(p-1) m",
        planner: match reduce.planner {
            Planner::Reduction(plan) => Planner::AllreduceOf([plan, plan]),
            Planner::Direct(plan) => Planner::ReduceBroadcast(plan),
            streamed => streamed,
        },
        closed_form: match reduce.closed_form {
            ClosedForm::Of(time) => ClosedForm::ReduceThenBroadcast(time),
            other => other,
        },
        ..reduce.for_another_collective()
    }
}

/// A reduce-scatter: the reversal of an allgather.
pub(in crate::plan) const fn reduce_scatter(allgather: Algorithm, time: Formula) -> Algorithm {
    Algorithm {
        collective: Kind::ReduceScatter,
        commutative_only: true,
        planner: reversed(allgather.planner),
        closed_form: ClosedForm::Of(time),
        ..allgather
    }
}

/// One or two transfers per rank and round, with as many rounds as `p` has binary digits.
pub(in crate::plan) fn logarithmic(p: usize, _segments: usize) -> usize {
    p.saturating_mul(1 + p.max(1).ilog2() as usize)
}

/// Each rank sends each segment once.
pub(in crate::plan) fn for_each_segment(p: usize, segments: usize) -> usize {
    p.saturating_mul(segments)
}

/// Each rank sends messages with a part of almost every rank's block; a message of many spans
/// counts as several steps.
pub(in crate::plan) fn parts_of_all(p: usize, segments: usize) -> usize {
    let messages = p.saturating_mul(segments.saturating_add(p.max(1).ilog2() as usize));
    messages.saturating_mul(1 + p / 8)
}

/// Each rank sends one message per round, with as many rounds as `p` has binary digits. The first
/// message has a span for every second rank, the next one for every fourth, and so on.
pub(in crate::plan) fn parts_of_halves(p: usize, segments: usize) -> usize {
    logarithmic(p, segments).saturating_add(p.saturating_mul(p / 4))
}

/// Each rank sends one message to each other rank.
pub(in crate::plan) fn for_each_pair(p: usize, _segments: usize) -> usize {
    p.saturating_mul(p)
}

/// As [`for_each_pair`], for two phases.
pub(in crate::plan) fn for_each_pair_twice(p: usize, segments: usize) -> usize {
    for_each_pair(p, segments).saturating_mul(2)
}

/// Each rank sends each segment twice.
pub(in crate::plan) fn for_each_segment_twice(p: usize, segments: usize) -> usize {
    for_each_segment(p, segments).saturating_mul(2)
}

/// As [`logarithmic`], for two phases.
pub(in crate::plan) fn logarithmic_twice(p: usize, segments: usize) -> usize {
    logarithmic(p, segments).saturating_mul(2)
}
