//! What the other crates of this workspace use of this one and its API does not promise.

pub use crate::machine::{bytes, refuses_cost};
pub use crate::rules::matching::{Grouped, Matching, Mismatch, NONE};
pub use crate::rules::max_time;
pub use crate::run::clock_work;
pub use crate::run::exec::longest_messages;
pub use crate::run::exec::sealed;
pub use crate::run::exec::sequence::{Action, Longest, Sequence, own_event};
pub use crate::run::system;
pub use crate::run::wall::{histogram, median_tail};
pub use crate::schedule::json::json_line;

/// Bytes of the shortest message that both partners copy.
pub const MIN_LONG_BYTES: u64 = crate::run::tuning::MIN_LONG_BYTES;
