//! What the other crates of this workspace use of this one and its API does not promise.

pub use crate::check::history::{Held, History};
pub use crate::error::json_object;
pub use crate::plan::Transfer;
pub use crate::plan::registry::split_outside;
pub use crate::rules::accesses::max_time;
pub use crate::rules::matching::{Grouped, Matching, Mismatched, NONE};
pub use crate::run::clock::{IN, OUT, OnlineClock};
pub use crate::run::exec::sequence::{Action, Longest, Sequence, own_event};
pub use crate::run::exec::{Carrier, HalfTransfer, VirtualRanks, VirtualRun};
pub use crate::run::exec::{longest_messages, sealed};
pub use crate::run::placement::worker_of;
pub use crate::run::system;
pub use crate::run::transfer::{Combiner, Due, Received, RecvOp, Sent, Slots, Wire};
pub use crate::run::wall::{histogram, median_tail};
pub use crate::schedule::json::json_line;

/// The limits of planning, choosing, timing and storing.
pub mod budget {
    pub use crate::budget::{memory, quick, search, size};
}

/// The limits of costs, numbers of bytes, and the named conversions of numbers.
pub mod numbers {
    pub use crate::machine::numbers::{
        bytes, id, index, refuses_cost, signed, truncated, truncated_i64,
    };
}

/// The planners that examples, tests and benches take apart.
pub mod circulant {
    pub use crate::plan::circulant::{allgatherv, schedule, table, tables};
}

/// As [`circulant`].
pub mod gather {
    pub use crate::plan::gather::{
        Child, GatherProblem, GatherTree, binary, binomial, degrading, heterogeneous, linear,
        noncontiguous, optimal, ported, rank_ordered, two_groups, weakly_ordered,
    };
}

/// As [`circulant`].
pub mod pipeline {
    pub use crate::plan::pipeline::{out_of_order, uni_greedy};
}

/// What the environment tells about the launch of this process.
#[cfg(feature = "mpi")]
pub mod launch {
    pub use crate::mpi::launch::{has_others, local_rank, rank, unbound};
}

/// Serving the collective calls of a program that uses MPI by itself.
#[cfg(feature = "mpi")]
pub mod calls {
    pub use crate::mpi::calls::{Datatype, Group, Intracommunicator, Library, Moved, Part};
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
