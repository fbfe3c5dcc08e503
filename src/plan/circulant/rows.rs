//! The registry's rows of circulant graphs.

use super::{allgather, allgatherv, allreduce, broadcast, census, reduce, reduce_scatter_gather};
use crate::collective::Kind;
use crate::plan::registry::row::{
    for_each_segment, for_each_segment_twice, logarithmic, logarithmic_twice, parts_of_all,
    reduce_scatter, row,
};
use crate::plan::registry::{Algorithm, Planner, PortModels};

pub(in crate::plan) const CIRCULANT_RSG: Algorithm = Algorithm {
    ports: PortModels::Bi,
    commutative_only: true,
    source: "Träff, circulant reduce-scatter and gather",
    rounds: "2 ceil(log2 p)",
    volume: "(p-1) m + at most ceil(log2 p)/2 m",
    time: Some(reduce_scatter_gather::time),
    ..row("circulant-rsg", Kind::Reduce, reduce_scatter_gather::plan)
};

pub(in crate::plan) const CIRCULANT: Algorithm = Algorithm {
    name: "circulant",
    segmented: true,
    transfers: for_each_segment,
    source: "Träff, round-optimal n-block broadcast on circulant graphs",
    rounds: "ceil(log2 p)+q-1",
    volume: "(p-1) m",
    planner: Planner::Streamed(|request| Ok(Box::new(reduce::plan(request)?))),
    time: Some(reduce::time),
    ..CIRCULANT_RSG
};

pub(in crate::plan) const CIRCULANT_BROADCAST: Algorithm = Algorithm {
    collective: Kind::Broadcast,
    commutative_only: false,
    planner: Planner::Streamed(|request| Ok(Box::new(broadcast::plan(request)?))),
    time: Some(broadcast::time),
    ..CIRCULANT
};

pub(in crate::plan) const CIRCULANT_ALLREDUCE: Algorithm = Algorithm {
    collective: Kind::Allreduce,
    transfers: for_each_segment_twice,
    rounds: "2(ceil(log2 p)+q-1)",
    volume: "2(p-1) m",
    planner: Planner::Streamed(|request| Ok(Box::new(allreduce::plan(request)?))),
    time: Some(allreduce::time),
    ..CIRCULANT
};

pub(in crate::plan) const CENSUS: Algorithm = Algorithm {
    name: "census",
    collective: Kind::Allreduce,
    segmented: false,
    transfers: logarithmic,
    source: "Träff, circulant census; Bar-Noy, Kipnis, Schieber 1993",
    rounds: "ceil(log2 p)",
    volume: "p ceil(log2 p) m",
    planner: Planner::Direct(census::plan),
    time: Some(census::time),
    ..CIRCULANT
};

pub(in crate::plan) const CIRCULANT_RSAG: Algorithm = Algorithm {
    name: "circulant-rsag",
    collective: Kind::Allreduce,
    segmented: false,
    transfers: logarithmic_twice,
    source: "Träff, circulant reduce-scatter and allgather",
    rounds: "2 ceil(log2 p)",
    volume: "2(p-1) m",
    planner: Planner::Direct(allgather::allreduce),
    time: Some(allgather::allreduce_time),
    ..CIRCULANT
};

pub(in crate::plan) const CIRCULANT_ALLGATHER: Algorithm = Algorithm {
    collective: Kind::Allgather,
    commutative_only: false,
    segmented: false,
    transfers: logarithmic,
    source: "Träff, circulant allgather",
    rounds: "ceil(log2 p)",
    planner: Planner::Direct(allgather::plan),
    time: Some(allgather::time),
    ..CIRCULANT
};

pub(in crate::plan) const CIRCULANT_BLOCKS: Algorithm = Algorithm {
    name: "circulant-blocks",
    collective: Kind::Allgather,
    commutative_only: false,
    transfers: parts_of_all,
    source: "Träff, irregular n-block allgather on circulant graphs",
    planner: Planner::Direct(allgatherv::plan),
    time: Some(allgatherv::time),
    ..CIRCULANT
};

pub(in crate::plan) const CIRCULANT_REDUCE_SCATTER: Algorithm =
    reduce_scatter(CIRCULANT_ALLGATHER, allgather::reduce_scatter_time);

pub(in crate::plan) const CIRCULANT_BLOCKS_REDUCE_SCATTER: Algorithm =
    reduce_scatter(CIRCULANT_BLOCKS, allgatherv::reduce_scatter_time);
