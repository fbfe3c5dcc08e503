//! What the other crates of this workspace use of this one and its API does not promise.

pub use crate::check::history::{Held, History};
pub use crate::error::json_object;
pub use crate::plan::registry::split_outside;
pub use crate::rules::matching::{Grouped, Matching};
pub use crate::run::clock::OnlineClock;
pub use crate::run::exec::sequence::Sequence;
pub use crate::run::exec::{VirtualCarrier, VirtualRanks, VirtualRun};
pub use crate::run::exec::{longest_copied, sealed};
pub use crate::run::placement::worker_of;
pub use crate::run::system;
pub use crate::run::wall::{histogram, median_tail};
pub use crate::schedule::json::json_line;

/// The limits of planning, choosing, timing and storing.
pub mod budget {
    pub use crate::budget::*;
}

/// The limits of costs, numbers of bytes, and the named conversions of numbers.
pub mod numbers {
    pub use crate::machine::numbers::*;
}

/// The planners that examples, tests and benches take apart.
pub mod circulant {
    pub use crate::plan::circulant::*;
}

/// As [`circulant`].
pub mod gather {
    pub use crate::plan::gather::*;
}

/// As [`circulant`].
pub mod pipeline {
    pub use crate::plan::pipeline::*;
}

/// What the environment tells about the launch of this process.
#[cfg(feature = "mpi")]
pub mod launch {
    pub use crate::mpi::launch::*;
}

/// Serving the collective calls of a program that uses MPI by itself.
#[cfg(feature = "mpi")]
pub mod calls {
    pub use crate::mpi::calls::*;
}

/// Bytes of the shortest message that both partners copy.
pub const MIN_LONG_BYTES: u64 = crate::run::tuning::MIN_LONG_BYTES;

/// What threads write, by cache line.
#[cfg(debug_assertions)]
pub mod recorded {
    pub use crate::run::sync::recorded::*;
    /// Bytes of a cache line.
    pub const CACHE_LINE_BYTES: usize = crate::run::tuning::CACHE_LINE_BYTES;
}
