//! Trees.

pub mod binary;
pub mod binomial;
