//! The registry of algorithms: one row per algorithm.
//!
//! `oneport list`, the README's table, the generic test suite and the benches all read it. An
//! algorithm added here is therefore listed, checked, simulated, run and benchmarked like all
//! others.

mod algorithm;
mod planner;
pub(in crate::plan) mod row;

pub use self::algorithm::{Algorithm, PortModels};
pub(in crate::plan) use self::algorithm::{BestSegment, ClosedForm, Formula};
pub use self::planner::{Planned, Planner};
use self::row::broadcast;
pub use super::build::reduction::Reduction;
pub use super::build::stream::DynScheduleSource;
use super::{circulant, exchange, gather, pipeline, tree};
use crate::error::{Error, Result};
use crate::schedule::collective::Kind;

/// All algorithms.
pub fn all() -> &'static [Algorithm] {
    ALGORITHMS
}

/// The algorithms for one collective.
pub fn of(collective: Kind) -> impl Iterator<Item = &'static Algorithm> {
    ALGORITHMS
        .iter()
        .filter(move |a| a.collective == collective)
}

/// Finds the algorithm with this name.
///
/// # Errors
/// An unknown name; the message lists the valid ones.
pub fn find(collective: Kind, name: &str) -> Result<&'static Algorithm> {
    of(collective).find(|a| a.name == name).ok_or_else(|| {
        let names: Vec<_> = of(collective).map(|a| a.name).collect();
        Error::usage(if names.is_empty() {
            format!("no algorithm for {} is registered", collective.name())
        } else {
            format!(
                "unknown algorithm '{name}' for {}: choose one of {}",
                collective.name(),
                names.join(", ")
            )
        })
    })
}

const ALGORITHMS: &[Algorithm] = &[
    tree::binomial::REDUCE,
    tree::linear::REDUCE,
    tree::ordered::REDUCE,
    tree::binary::REDUCE,
    tree::two_tree::REDUCE,
    pipeline::chain::REDUCE,
    pipeline::uni_greedy::REDUCE,
    pipeline::out_of_order::REDUCE,
    pipeline::bi_greedy::REDUCE,
    exchange::butterfly::REDUCE,
    circulant::reduce::REDUCE,
    circulant::reduce_scatter_gather::REDUCE,
    exchange::van_de_geijn::REDUCE,
    exchange::van_de_geijn::RING_REDUCE,
    broadcast(tree::binomial::REDUCE),
    broadcast(tree::linear::REDUCE),
    tree::ordered::BROADCAST,
    broadcast(tree::binary::REDUCE),
    broadcast(tree::two_tree::REDUCE),
    pipeline::chain::BROADCAST,
    broadcast(pipeline::uni_greedy::REDUCE),
    broadcast(pipeline::out_of_order::REDUCE),
    broadcast(pipeline::bi_greedy::REDUCE),
    exchange::butterfly::BROADCAST,
    circulant::broadcast::BROADCAST,
    broadcast(circulant::reduce_scatter_gather::REDUCE),
    exchange::van_de_geijn::BROADCAST,
    exchange::van_de_geijn::RING_BROADCAST,
    circulant::census::ALLREDUCE,
    circulant::allgather::ALLREDUCE,
    circulant::allreduce::ALLREDUCE,
    exchange::doubling_allreduce::ALLREDUCE,
    exchange::rabenseifner::ALLREDUCE,
    exchange::bruck::ALLREDUCE,
    exchange::ring::ALLREDUCE,
    tree::binomial::ALLREDUCE,
    tree::linear::ALLREDUCE,
    tree::binary::ALLREDUCE,
    tree::two_tree::ALLREDUCE,
    pipeline::chain::ALLREDUCE,
    pipeline::uni_greedy::ALLREDUCE,
    tree::dual_root::ALLREDUCE,
    circulant::allgather::ALLGATHER,
    circulant::allgatherv::ALLGATHER,
    exchange::doubling_allgather::ALLGATHER,
    exchange::bruck::ALLGATHER,
    exchange::ring::ALLGATHER,
    exchange::linear::ALLGATHER,
    circulant::allgather::REDUCE_SCATTER,
    circulant::allgatherv::REDUCE_SCATTER,
    exchange::halving::REDUCE_SCATTER,
    exchange::bruck::REDUCE_SCATTER,
    exchange::ring::REDUCE_SCATTER,
    exchange::linear::REDUCE_SCATTER,
    exchange::pairwise::ALLTOALL,
    exchange::bruck_alltoall::ALLTOALL,
    exchange::doubling_scan::SCAN,
    pipeline::scan::SCAN,
    gather::linear::GATHER,
    gather::binomial::OBLIVIOUS_GATHER,
    gather::binomial::BEST_ROOT_GATHER,
    gather::binomial::ADAPTIVE_GATHER,
    gather::binary::GATHER,
    gather::optimal::GATHER,
    gather::rank_ordered::GATHER,
    gather::weakly_ordered::GATHER,
    gather::two_groups::GATHER,
    gather::degrading::GATHER,
    gather::ported::ADAPTIVE_GATHER,
    gather::ported::GATHER,
    gather::noncontiguous::GATHER,
    gather::linear::SCATTER,
    gather::binomial::OBLIVIOUS_SCATTER,
    gather::binomial::BEST_ROOT_SCATTER,
    gather::binomial::ADAPTIVE_SCATTER,
    gather::binary::SCATTER,
    gather::optimal::SCATTER,
    gather::rank_ordered::SCATTER,
    gather::weakly_ordered::SCATTER,
    gather::two_groups::SCATTER,
    gather::degrading::SCATTER,
    gather::ported::ADAPTIVE_SCATTER,
    gather::ported::SCATTER,
    gather::noncontiguous::SCATTER,
];
