//! What several tests share.

#![allow(dead_code, reason = "no test needs all of it")]

pub(crate) mod alone;
pub(crate) mod plans;
pub(crate) mod random;
pub(crate) mod watch;
