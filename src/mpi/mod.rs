//! Running schedules over MPI: the same schedule on a cluster, one process a rank.
//!
//! MPI is the engine; nothing of it is rebuilt here. The library is loaded at run time, so that one
//! binary serves every MPI: see [`World::join`]. A schedule runs by the same rules and by the same
//! executors as on a [`Team`](crate::run::Team) of threads; only what carries the messages differs.
//!
//! | file | content |
//! |---|---|
//! | `binding` | the library: the unsafe code |
//! | `launch` | what the environment tells about the launch |
//! | `world` | the processes of a launch |
//! | `cores` | how those of a host share its cores |
//! | `idle` | how a process waits |
//! | `watchdog` | the deadline of calls that may never return |
//! | `ends` | what MPI has to know of each step of a program |
//! | `summary` | what the processes of a run must have in common |
//! | `process` | one process of a run: how it meets the others and waits |
//! | `run` | running a schedule |
//! | `scope` | running a rank program |
//! | `calls` | serving the calls of a program that uses MPI by itself |
//!
//! # The rules of time over MPI
//!
//! - *Rendezvous* ([`Run::eager`](crate::run::Run::eager) is false, or the schedule may deadlock
//!   otherwise): each port has at most one open request, a synchronous send or a receive.
//!   A step starts when its port is free and all that it waits for has ended.
//! - *Eager* (the default): steps are executed in the order of their model times. A send does not
//!   wait for its receiver; its rank waits only before it overwrites the message. Receives are
//!   opened early, as soon as no earlier step needs their spans.
//! - The `n`-th message from one rank to another has tag `n`, so it meets the `n`-th receive
//!   through whichever ports the two pass.
//! - A message of one span is sent from where it stands; several spans are packed. What is combined
//!   is received into memory of its own and combined by this crate, so operands keep their order.
//! - The model time is the simulator's: nothing is added to the messages.
//! - Messages of *rank programs* ([`World::scope`]), of which nobody knows the steps beforehand,
//!   carry the model clock, as on threads, and their senders wait for an answer.
//!
//! # Failure
//!
//! All processes agree before a run that they are about to do the same; if not, all return an
//! error. A failure during the run ends all processes of the launch, because the others wait in the
//! library: the process that fails prints one line, then calls `MPI_Abort`. For a transfer the line
//! names rank, step, peer and port; for a call that waits in the library too long, where a watchdog
//! notices, it names the call. If a process dies, the launcher ends the others. If it does not, the
//! waiting processes pass their deadline. Every failure in this module ends the job in one
//! function, `Mpi::end_job`.
//!
//! | a process waits in | limit | who notices |
//! |---|---|---|
//! | a transfer | the deadline | `poll_rank` in `process`, by `Idle` |
//! | a meeting before or after a repetition | the deadline and 2 s | the same |
//! | an agreement before a run | 30 deadlines, at least 30 s | the communicator (`binding`) |
//! | a function of the library | a meeting and the deadline | `watchdog` |
//!
//! Processes that fail at once end the job rank by rank, a quarter of a second apart
//! (`Communicator::fail`), so that one line is seen. A partner that has left is not seen over MPI
//! (`PollingPeers::has_left` is false): its neighbours pass their deadline.

mod binding;
pub(crate) mod calls;
mod cores;
mod ends;
mod idle;
pub(crate) mod launch;
mod process;
mod run;
mod scope;
mod summary;
mod watchdog;
mod world;

pub use launch::is_launched;
pub use world::World;
