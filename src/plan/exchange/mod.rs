//! Exchanges between pairs of ranks.

pub mod butterfly;
