//! Planners that work in rounds: in each round a rank sends at most one message and receives at
//! most one.

pub mod bruck;
pub mod bruck_alltoall;
pub mod butterfly;
pub mod doubling_allgather;
pub mod doubling_allreduce;
pub mod doubling_scan;
pub mod halving;
pub mod linear;
pub mod pairwise;
pub mod rabenseifner;
pub mod ring;
pub mod van_de_geijn;
