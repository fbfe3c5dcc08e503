//! Tests of commands that measure this machine, in a process of their own: some of them need the
//! machine to be idle.

#![allow(clippy::too_many_lines, reason = "a test tells one story")]

mod contention;
mod profile;
mod tune;

#[path = "../support"]
mod support {
    #[path = "../../../../tests/support/alone.rs"]
    pub(crate) mod alone;
}
