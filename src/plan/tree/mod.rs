//! Planners that reduce along trees, and the allreduces built from them.

pub mod binary;
pub mod binomial;
pub mod dual_root;
pub mod linear;
pub mod ordered;
pub mod reduce_broadcast;
pub mod two_tree;
