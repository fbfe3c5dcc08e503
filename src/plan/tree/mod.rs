//! Trees.

pub mod binary;
pub mod binomial;
pub mod two_tree;
