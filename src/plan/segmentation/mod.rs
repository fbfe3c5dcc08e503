//! How to split the vector: the best segment size of an algorithm, unequal segments, and what the
//! tables in print say.
//!
//! Times are *as executed*: what the rules of [`crate::schedule`] make of the schedule, by closed
//! form or evaluator where there is one, by simulation otherwise.

mod equal;
mod published;
mod unequal;

pub(in crate::plan) use equal::even_size;
pub use equal::{Best, Method, best_segment, best_segment_within, closed_time, executed_time};
pub use published::{Published, Terms, published_bounds};
pub(in crate::plan) use published::{Symbols, ceil_log2};
pub use unequal::{BestSizes, best_sizes, best_unequal, compositions};
