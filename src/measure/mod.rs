//! Measuring: tuning of segment sizes.

pub mod tune;
