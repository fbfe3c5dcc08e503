//! Running schedules, and rank programs written by hand, with real bytes on real threads.
//!
//! A [`Team`] holds one pinned thread per rank, or one per core ([`Workers`]). A [`Run`] executes a
//! schedule on it, [`Team::scope`] a rank program. Every message carries the model clock, so
//! each run returns both its wall-clock time and its model time as executed.
//!
//! # Conventions
//!
//! - A run has `p` ranks. Ranks, steps, ports and repetitions are numbered from 0.
//! - Offsets and lengths are in elements ([`Element`]), unless their name says bytes.
//! - Wall-clock times are [`Duration`](std::time::Duration)s, or nanoseconds where the name ends in
//!   `_ns`. Model times are in the unit of the [`CostModel`](crate::CostModel), which for a paced
//!   run is the nanosecond.
//! - Functions take constant time unless they say otherwise.
//!
//! # Where alpha becomes waiting
//!
//! Nobody waits for `alpha`, nor for `beta` times the bytes: `CostModel::transfer_cost` makes of
//! both the time for which a transfer keeps the ports of its ends (`TransferCost::port_time`). Its
//! bytes move as fast as the machine can; the receiver computes from the clocks of both partners
//! when it ends in the model (`Due::ends` in `transfer/receive.rs`, which asks
//! `rules/transfer.rs`), and answers with that time. Both ends enter it among their times
//! (`EventTimes`), where the next step finds it. On a paced clock a *step* waits (`may_start` in
//! `exec/rendezvous.rs`): it starts when the wall-clock has come to the model times at which the
//! steps before it end (rules 1 to 3, asked of `rules::LocalOrder`), none of which is before the
//! arrival of its rank. A rank that has finished its program waits for the end of its own last step
//! (the end of `run` in `exec/rendezvous/among_ranks.rs`). An eager send ends when it is opened,
//! since nothing that its receiver does changes its time. The next step of a rank program is not
//! known, so it waits at the end of a receive or local step, too (`gate` in `rank.rs`).
//!
//! Who waits for the clock alone sleeps until then (`wait/pace.rs`, called by the loop in
//! `exec/rendezvous/among_ranks.rs`); at the end of a program, and where a rank begins late, it
//! wakes up early and yields for the rest. Who waits for a partner as well wakes for whichever
//! comes first (`wait/waiter.rs`). These instants are absolute, counted from one start of all ranks
//! (`exec/repeat.rs`), so that errors do not add up. Only a team with a thread for each rank is
//! paced. On a native clock the same model times are carried along, and nothing waits for them.
//!
//! # Errors
//!
//! - [`Usage`]: what was asked for does not exist, does not fit together, or is more than the
//!   machine allows. Nothing has run.
//! - [`NoLink`]: the cost model has no link for a message.
//! - [`Malformed`]: the layouts do not fit the collective.
//! - [`Wrong`]: a step has no meaning, such as a message to its own rank. Of an endpoint: its
//!   transfer has failed before, or another rank has failed.
//! - [`Deadline`]: a partner did not come in time.
//! - [`PartnerLeft`]: a partner has finished its program and will not come.
//! - [`Length`]: a message has another length than its receive.
//! - [`PortBusy`]: a step opens a port that is in use, or that its rank does not have.
//! - [`Panicked`]: a rank's program, or the operator of the user, panicked.
//! - [`System`]: the operating system refused memory or a thread.
//!
//! The five from `Deadline` to `Panicked` end a run for all ranks: the first of them is its error,
//! and names rank and step. After any error the team can be used again. Wrong data are no error.
//!
//! [`Usage`]: crate::ErrorKind::Usage
//! [`NoLink`]: crate::ErrorKind::NoLink
//! [`Malformed`]: crate::ErrorKind::Malformed
//! [`Wrong`]: crate::ErrorKind::Wrong
//! [`Deadline`]: crate::ErrorKind::Deadline
//! [`PartnerLeft`]: crate::ErrorKind::PartnerLeft
//! [`Length`]: crate::ErrorKind::Length
//! [`PortBusy`]: crate::ErrorKind::PortBusy
//! [`Panicked`]: crate::ErrorKind::Panicked
//! [`System`]: crate::ErrorKind::System

mod built_in;
pub(crate) mod clock;
mod combine;
mod context;
mod element;
mod endpoint;
pub(crate) mod exec;
mod failure;
mod link;
mod located;
mod op;
mod operator;
mod overrides;
pub(crate) mod placement;
mod processes;
mod rank;
mod scope;
pub(crate) mod sync;
#[doc(hidden)]
pub mod system;
mod team;
mod teams;
mod testdata;
mod topology;
pub(crate) mod transfer;
pub(crate) mod tuning;
mod wait;
pub(crate) mod wall;

/// What an engine outside this folder needs to run schedules by the same executors.
#[cfg(feature = "mpi")]
pub(crate) mod engine {
    pub(crate) use super::context::RunContext;
    pub(crate) use super::exec::{
        AheadExecutor, Carrier, ElementSpec, HalfTransfer, OperatorSpec, Peers, Program,
        RankExecutor, Reports, RunAhead, RunOptions, RunPerformer, RunReport, RunSpec, Runner,
        RunnerJob, Sequence, ThreadReport, repeat, sealed,
    };
    pub(crate) use super::exec::{cores_in_words, foreign_warning};
    pub(crate) use super::failure::{Failure, TransferAt, panic_message, panicked};
    pub(crate) use super::link::{AnyLink, Link, ScopeBuffer, Waits};
    pub(crate) use super::scope::{ProgramReport, endpoint, run_program};
    pub(crate) use super::testdata::RunBuffers;
    pub(crate) use super::transfer::{
        Buffer, Combiner, Copying, Due, Opaque, RankMemory, Received, RecvOp, Sent, Slots,
        combine_memory,
    };
    pub(crate) use super::wait::{Load, Precision, nanoseconds, sleep_until};
}

pub use element::{Element, ElementType};
pub use endpoint::{
    Bidirectional, Endpoint, OpenSend, PortModel, RecvPort, SendPort, Unidirectional,
};
pub use exec::{Clock, Outcome, Place, Run};
#[cfg(feature = "half")]
pub use half::{bf16, f16};
pub use located::Located;
pub use op::Op;
pub use operator::Operator;
pub use overrides::Tuning;
pub use placement::Workers;
pub use processes::{Host, Processes};
pub use scope::{ScopeOptions, ScopeOutcome};
pub use team::{Team, TeamOptions};
pub use teams::Teams;
pub use testdata::{Mismatch, inputs, oracle};
pub use topology::{CoreOrder, Topology, allowed_cores};
pub use wall::WallTimes;
