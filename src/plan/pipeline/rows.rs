//! The registry's rows of pipelines.

use super::{bi_greedy, chain, out_of_order, scan, uni_greedy};
use crate::collective::Kind;
use crate::plan::registry::row::{allreduce, for_each_segment, row};
use crate::plan::registry::{Algorithm, Planner, PortModels};
use crate::plan::tree::reduce_broadcast;

pub(in crate::plan) const CHAIN: Algorithm = Algorithm {
    segmented: true,
    transfers: for_each_segment,
    source: "Lowery & Langou, section IV (pipeline)",
    rounds: "p+q-2 (bi), p-1+2(q-1) (uni)",
    volume: "(p-1) m",
    planner: Planner::Streamed(chain::reduce),
    time: Some(chain::time),
    ..row("chain", Kind::Reduce, chain::plan)
};

pub(in crate::plan) const CHAIN_BROADCAST: Algorithm = Algorithm {
    collective: Kind::Broadcast,
    planner: Planner::Streamed(chain::broadcast),
    ..CHAIN
};

pub(in crate::plan) const SCAN_CHAIN: Algorithm = Algorithm {
    collective: Kind::Scan,
    source: "folklore",
    planner: Planner::Streamed(scan::programs),
    ..CHAIN
};

pub(in crate::plan) const BI_GREEDY: Algorithm = Algorithm {
    ports: PortModels::Bi,
    commutative_only: true,
    segmented: true,
    transfers: for_each_segment,
    source: "Lowery & Langou, Algorithm 2",
    rounds: "ceil(log2 p)+q-1",
    volume: "(p-1) m",
    planner: Planner::Reduction(bi_greedy::reduction),
    time: Some(bi_greedy::time),
    ..row("bi-greedy", Kind::Reduce, bi_greedy::plan)
};

pub(in crate::plan) const UNI_GREEDY: Algorithm = Algorithm {
    ports: PortModels::Uni,
    commutative_only: true,
    segmented: true,
    transfers: for_each_segment,
    source: "Lowery & Langou, algorithm 1",
    rounds: "no closed form; the fewest of all that reduce segments in order",
    volume: "(p-1) m",
    planner: Planner::Reduction(uni_greedy::reduction),
    time: Some(uni_greedy::time),
    ..row("uni-greedy", Kind::Reduce, uni_greedy::plan)
};

pub(in crate::plan) const OUT_OF_ORDER: Algorithm = Algorithm {
    ports: PortModels::Uni,
    commutative_only: true,
    segmented: true,
    transfers: for_each_segment,
    source: "oneport; goes beyond Lowery & Langou",
    rounds: "floor(log2 p)+2q-1 for odd p, fewer for even (gamma = 0, as measured); never more than uni-greedy where all links cost the same",
    volume: "(p-1) m",
    planner: Planner::Reduction(out_of_order::reduction),
    time: Some(out_of_order::time),
    ..row("out-of-order", Kind::Reduce, out_of_order::plan)
};

pub(in crate::plan) const CHAIN_ALLREDUCE: Algorithm = Algorithm {
    planner: Planner::Streamed(chain::allreduce),
    ..allreduce(
        CHAIN,
        "2(p+q-2) (bi), 2(p-1)+4(q-1) (uni)",
        reduce_broadcast::over_chain,
        reduce_broadcast::over_chain_time,
    )
};

pub(in crate::plan) const UNI_GREEDY_ALLREDUCE: Algorithm = allreduce(
    UNI_GREEDY,
    "twice those of the reduction",
    reduce_broadcast::over_uni_greedy,
    reduce_broadcast::over_uni_greedy_time,
);
