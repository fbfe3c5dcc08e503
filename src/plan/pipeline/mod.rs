//! Pipelines: the vector travels in segments.

pub mod chain;
