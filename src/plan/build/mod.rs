//! What several families of planners need to build schedules.

pub(crate) mod block_pairs;
pub(in crate::plan) mod buffers;
pub(crate) mod compose;
pub(crate) mod cube;
pub(crate) mod edge_colouring;
pub(in crate::plan) mod in_flight;
pub(crate) mod reduction;
pub(crate) mod rounds;
pub(crate) mod stream;
