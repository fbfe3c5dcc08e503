//! Executing a schedule on a team: the loop of repetitions and the executors of programs.
//!
//! | file | content |
//! |---|---|
//! | `run` | what to run, on which data and how often |
//! | `any_run` | a run as its place sees it, which does not know the element type |
//! | `perform` | a run of one schedule on a team |
//! | `options` | how a run is carried out |
//! | `spec` | a run without its element type |
//! | `outcome` | what a run returns: times, data |
//! | `warnings` | what a reader of the times should know |
//! | `program` | a schedule prepared for execution |
//! | `carrier` | what carries a rank's messages |
//! | `executor` | what all executors of one rank's program can do |
//! | `rendezvous` | one rank's program, where every transfer is a rendezvous |
//! | `event_times` | the model clock of one rank's program |
//! | `held_ports` | the ports that a rank's open transfers hold |
//! | `ahead` | one rank's program, where senders do not wait |
//! | `sequence` | the order of a rank's steps where senders do not wait |
//! | `multiplexed` | several ranks' programs on one worker |
//! | `repeat` | the loop of repetitions of one thread |
//! | `recorder` | when each step takes place |
//! | `virtual_run` | the executors without threads and data, for an estimate |

mod ahead;
mod any_run;
mod carrier;
mod event_times;
mod executor;
mod held_ports;
mod multiplexed;
mod options;
mod outcome;
mod perform;
mod program;
mod recorder;
mod rendezvous;
mod repeat;
mod run;
mod runner;
pub(crate) mod sequence;
mod spec;
mod virtual_run;
mod warnings;

pub use ahead::longest_copied;
pub use options::Clock;
pub use outcome::Outcome;
pub use run::{Place, Run, sealed};
pub use virtual_run::{VirtualCarrier, VirtualRanks, VirtualRun};
#[cfg(feature = "mpi")]
pub(crate) use {
    ahead::{AheadExecutor, RunAhead},
    carrier::{Carrier, HalfTransfer},
    executor::{Peers, RankExecutor},
    options::{RunOptions, RunPerformer},
    outcome::RunReport,
    program::Program,
    repeat::{Reports, ThreadReport, repeat},
    runner::{Runner, RunnerJob},
    sequence::Sequence,
    spec::{ElementSpec, OperatorSpec, RunSpec},
    warnings::{cores_in_words, foreign_warning},
};
