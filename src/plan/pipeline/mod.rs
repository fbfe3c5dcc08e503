//! Pipelines: the vector travels in segments.

pub mod chain;
pub mod uni_greedy;
