//! Searches for the segments of a vector that gives an algorithm its shortest time.
//!
//! - The best size of equal segments: `equal.rs`. Algorithms that have to be planned to be timed
//!   have a search of their own, beside them.
//! - Segments of unequal sizes: `unequal.rs`.
//! - The formulas of the published tables, as printed: `published.rs`.
//!
//! Times are *as executed*, that is, as the [rules of time](crate::rules) time the schedule. They
//! come from a closed form or an evaluator where there is one, and from a simulation otherwise, and
//! are in the unit of the request's cost model. Sizes are in elements.

mod equal;
mod published;
mod unequal;

pub(in crate::plan) use equal::even_size;
pub use equal::{Best, Method, best_segment, best_segment_within, closed_time, executed_time};
pub use published::{Published, Terms, published_bounds};
pub(in crate::plan) use published::{Symbols, ceil_log2};
pub use unequal::{BestSizes, best_sizes, best_unequal, compositions};
