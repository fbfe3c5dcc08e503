//! Rank programs: collectives that every rank carries out by itself over its
//! [endpoint](crate::run::Endpoint), without a plan that anybody made for all.
//!
//! An executor knows no algorithm; these do, and use nothing of the executor but endpoints. Each
//! does what a planner of the same name would tell it to do.

pub mod circulant;
pub mod gather;
mod greedy;

pub use greedy::{uni_greedy_layout, uni_greedy_reduce};
