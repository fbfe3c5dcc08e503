//! Pipelined planners: the vector travels in segments.

pub mod bi_greedy;
pub mod chain;
pub mod out_of_order;
pub mod scan;
pub mod uni_greedy;
