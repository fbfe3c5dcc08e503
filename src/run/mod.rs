//! Running schedules, and rank programs written by hand, with real bytes on real threads.
//!
//! A [`Team`] holds one pinned thread per rank, or one per core ([`Workers`]). A [`Run`] executes a
//! schedule on it, [`Team::scope`] a rank program. Every message carries the model clock, so
//! each run returns both its wall-clock time and its model time as executed.

mod built_in;
mod clock;
mod context;
mod element;
mod endpoint;
pub(crate) mod exec;
mod failure;
mod op;
mod operator;
mod overrides;
mod placement;
mod rank;
mod scope;
mod sync;
pub mod system;
mod team;
mod testdata;
mod transfer;
pub(crate) mod tuning;
mod wait;
mod wall;
mod wires;

/// What an engine outside this folder needs to run schedules by the same executors.
#[cfg(feature = "mpi")]
pub(crate) mod engine {
    pub(crate) use super::context::RunContext;
    pub(crate) use super::exec::{
        Carrier, Eager, Job, Off, Peers, Program, RankExecutor, Reports, Runner, Sequence,
        ThreadReport, Transfer, repeat,
    };
    pub(crate) use super::failure::{Failure, TransferAt, panicked};
    pub(crate) use super::team::panic_message;
    pub(crate) use super::testdata::RunData;
    pub(crate) use super::transfer::{Due, RankMemory, Received, RecvOp, Sent, Slots};
}

pub use built_in::Located;
pub use clock::clock_work;
pub use element::{Element, ElementType};
pub use endpoint::{
    Bidirectional, Endpoint, OpenSend, PortModel, RecvPort, SendPort, Unidirectional,
};
pub(crate) use exec::longest_messages;
pub use exec::{Clock, Outcome, Place, Run};
#[cfg(feature = "half")]
pub use half::{bf16, f16};
pub use op::Op;
pub use operator::Operator;
pub use overrides::Tuning;
pub use placement::Workers;
pub use scope::{ScopeOptions, ScopeOutcome};
pub use team::{Team, TeamOptions};
pub use testdata::{Mismatch, inputs, oracle};
pub use wall::WallTimes;
pub(crate) use wall::median_tail;
