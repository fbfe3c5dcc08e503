//! Trees.

pub mod binary;
pub mod binomial;
pub mod ordered;
pub mod two_tree;
