//! Exchanges between pairs of ranks.

pub mod butterfly;
pub mod ring;
