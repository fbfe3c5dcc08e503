//! Collectives as rank programs: every rank decides by itself, over its
//! [endpoint](crate::run::Endpoint), what to do, without a plan made for all ranks.
//!
//! Each of them performs the steps that the planner of the same name would give its rank. They know
//! an algorithm, which an executor does not, and use nothing of the executor but endpoints.

pub mod circulant;
pub mod gather;
mod greedy;

pub use greedy::{uni_greedy_layout, uni_greedy_reduce};
