//! How to split the vector: the best segment size of an algorithm, unequal segments, and what the
//! tables in print say.
//!
//! Times are *as executed*: what the rules of [`crate::schedule`] make of the schedule, by closed
//! form or evaluator where there is one, by simulation otherwise.

mod equal;
mod planned;
mod published;
mod unequal;

pub use equal::{
    Best, Method, best_segment, best_segment_within, best_uni_greedy, closed_time, executed_time,
};
pub use published::{Published, Terms, published, published_bounds};
pub use unequal::{BestSizes, best_sizes, best_unequal, compositions};
