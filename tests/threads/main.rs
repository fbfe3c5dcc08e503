//! Tests of teams of threads: their data, model clock, handling of faults, and measurements.
//!
//! Every test starts with `alone()` or `shared()` of `tests/support/alone.rs`, because some tests
//! count the threads of the process or need an idle machine.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::too_many_lines,
    reason = "numbers of tests are small, and a test tells one story"
)]

mod collectives;
mod endpoint;
mod examples;
mod faults;
mod gather_distributed;
#[cfg(debug_assertions)]
mod lines;
#[path = "../mutants/mod.rs"]
mod mutants;
#[path = "../oracle/mod.rs"]
#[allow(dead_code, reason = "only its interpreter is used")]
mod oracle;
mod run;
mod stress;
mod testdata;
mod transfer;
mod verify;

#[path = "../support"]
mod support {
    pub(crate) mod alone;
    pub(crate) mod cases;
    pub(crate) mod plans;
    pub(crate) mod random;
    pub(crate) mod ranks;
    pub(crate) mod sample;
    pub(crate) mod watch;
}
