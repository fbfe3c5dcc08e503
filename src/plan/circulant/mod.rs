//! Planners on circulant graphs, in which rank `r` sends to `r + skip` and receives from
//! `r - skip`, modulo `p`, for `ceil(log2 p)` values of `skip`.

pub mod allgather;
pub mod allgatherv;
pub mod allreduce;
pub mod broadcast;
pub mod census;
pub mod n_blocks;
mod phases;
pub mod prove;
pub mod reduce;
pub mod reduce_scatter_gather;
pub mod schedule;
pub mod table;
pub mod tables;
