//! Trees.

pub mod binomial;
