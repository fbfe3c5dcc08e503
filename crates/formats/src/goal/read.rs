//! Reads GOAL.

mod annotated;
mod foreign;
mod parse;

pub(crate) use self::foreign::schedule as schedule_of_graphs;
use self::parse::Parser;
pub(crate) use self::parse::{GoalOp, OpKind, RankGraph};
use crate::at_line;
use oneport::error::Result;
use oneport::schedule::Schedule;

/// Reads a schedule.
///
/// A file that [`write`](super::write()) has written gives the schedule that was written. A file of
/// another tool has no data: its schedule is a multicast without targets, which
/// [`Schedule::check`] proves free of deadlocks and of messages without partner. Its ports are
/// bidirectional, as many of each kind as the file has `nic` numbers. Requirements become accesses
/// to the same elements; a `calc` of `n` copies `n` elements, so that it takes its time with
/// `gamma_copy` 1. Requirements on several ports, or of empty messages, become an empty copy,
/// before which the rank finishes all earlier steps. A step thus never starts before all that it
/// requires is done, unless computation overlaps communication.
///
/// Time is `n log n` in the number `n` of characters, memory linear.
///
/// # Errors
/// Names the first line that is not GOAL, ranks that are missing or doubled, cyclic requirements,
/// and what the model does not have: `irequires`, receives from any rank, and messages between two
/// ranks whose tags are received in another order than they are sent.
pub fn read(text: &str) -> Result<Schedule> {
    let file = Parser::new(text).file()?;
    match file.head {
        Some((head, line)) => {
            let head = serde_json::from_str(head).map_err(|e| at_line(line, e))?;
            annotated::schedule(head, &file.ranks)
        }
        None => foreign::schedule(&file.ranks, |_, line| format!("line {line}")),
    }
}
