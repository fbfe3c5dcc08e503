//! Executing a schedule on a team: the loop of repetitions and the executors of programs.
//!
//! | file | content |
//! |---|---|
//! | `perform` | a run of one schedule: options, repetitions, outcome |
//! | `program` | a schedule prepared for execution |
//! | `executor` | one rank's program, where every transfer is a rendezvous |
//! | `eager` | one rank's program, where senders do not wait |
//! | `sequence` | the order of a rank's steps where senders do not wait |
//! | `multiplexed` | several ranks' programs on one worker |
//! | `repeat` | the loop of repetitions of one thread |
//! | `recorder` | when each step takes place |

mod eager;
mod executor;
mod multiplexed;
mod perform;
mod program;
mod recorder;
mod repeat;
pub(crate) mod sequence;

pub(crate) use eager::longest_messages;
pub use perform::{Clock, Outcome, RunOptions};
