//! What several families of planners need to build schedules.

pub(crate) mod compose;
pub(crate) mod cube;
pub(crate) mod reduction;
pub(crate) mod rounds;
pub(crate) mod stream;
