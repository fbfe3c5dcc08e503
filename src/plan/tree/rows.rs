//! The registry's rows of trees and of reductions followed by broadcasts.

use super::{binary, binomial, dual_root, linear, ordered, reduce_broadcast, two_tree};
use crate::collective::Kind;
use crate::plan::registry::row::{allreduce, for_each_segment, for_each_segment_twice, row};
use crate::plan::registry::{Algorithm, Planner, PortModels};

pub(in crate::plan) const BINOMIAL: Algorithm = Algorithm {
    source: "folklore; Lowery & Langou, section IV",
    rounds: "ceil(log2 p)",
    volume: "(p-1) m",
    time: Some(binomial::time),
    ..row("binomial", Kind::Reduce, binomial::plan)
};

pub(in crate::plan) const LINEAR: Algorithm = Algorithm {
    transfers: |p, _| p,
    source: "folklore",
    rounds: "p-1",
    volume: "(p-1) m",
    time: Some(linear::time),
    ..row("linear", Kind::Reduce, linear::plan)
};

pub(in crate::plan) const BINARY: Algorithm = Algorithm {
    segmented: true,
    transfers: for_each_segment,
    source: "folklore; Lowery & Langou, section IV",
    rounds: "2(N+q-2) (bi), 2(N-1)+3(q-1) (uni), N = ceil(log2(p+1)); at most, if p is not 2^N-1",
    volume: "(p-1) m",
    planner: Planner::Reduction(binary::reduction),
    time: Some(binary::time),
    ..row("binary", Kind::Reduce, binary::plan)
};

pub(in crate::plan) const DUAL_ROOT: Algorithm = Algorithm {
    ports: PortModels::Bi,
    segmented: true,
    transfers: for_each_segment_twice,
    source: "Träff 2021",
    rounds: "4 ceil(log2(p+2))-7+3(q-1) for p = 2^h-2; at most, for others",
    volume: "2(p-1) m",
    time: Some(dual_root::time),
    ..row("dual-root", Kind::Allreduce, dual_root::plan)
};

pub(in crate::plan) const TWO_TREE: Algorithm = Algorithm {
    ports: PortModels::Bi,
    segmented: true,
    transfers: for_each_segment,
    source: "Sanders, Speck, Träff 2009",
    rounds: "at most 2 ceil(log2 p)+q-2",
    volume: "(p-1) m",
    planner: Planner::Reduction(two_tree::reduction),
    time: Some(two_tree::time),
    ..row("two-tree", Kind::Reduce, two_tree::plan)
};

pub(in crate::plan) const ORDERED: Algorithm = Algorithm {
    source: "Träff, optimal gather trees, Theorem 4",
    rounds: "ceil(log2 p); on a heterogeneous platform those of the best ordered tree",
    volume: "(p-1) m",
    restrictions: "at most 256 ranks where links differ",
    time: Some(ordered::time),
    ..row("ordered", Kind::Reduce, ordered::plan)
};

pub(in crate::plan) const ORDERED_BROADCAST: Algorithm = Algorithm {
    collective: Kind::Broadcast,
    planner: Planner::Direct(ordered::broadcast),
    ..ORDERED
};

pub(in crate::plan) const BINOMIAL_ALLREDUCE: Algorithm = allreduce(
    BINOMIAL,
    "2 ceil(log2 p)",
    reduce_broadcast::over_binomial,
    reduce_broadcast::over_binomial_time,
);

pub(in crate::plan) const LINEAR_ALLREDUCE: Algorithm = allreduce(
    LINEAR,
    "2(p-1)",
    reduce_broadcast::over_linear,
    reduce_broadcast::over_linear_time,
);

pub(in crate::plan) const BINARY_ALLREDUCE: Algorithm = allreduce(
    BINARY,
    "twice those of the reduction",
    reduce_broadcast::over_binary,
    reduce_broadcast::over_binary_time,
);

pub(in crate::plan) const TWO_TREE_ALLREDUCE: Algorithm = allreduce(
    TWO_TREE,
    "at most 4 ceil(log2 p)+2q-4",
    reduce_broadcast::over_two_trees,
    reduce_broadcast::over_two_trees_time,
);
