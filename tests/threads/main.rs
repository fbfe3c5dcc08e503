//! Teams of threads: their data, their model clock, what they do about faults, what they measure.
//!
//! Every test here begins with `alone()` or `shared()` of `tests/support/alone.rs`: some look at
//! the threads of the process or need a machine that does nothing else.

mod contention;
mod endpoint;
mod faults;
mod gather_distributed;
#[path = "../mutants/mod.rs"]
mod mutants;
#[path = "../oracle/mod.rs"]
#[allow(dead_code, reason = "its interpreter is all that is needed")]
mod oracle;
mod profile;
mod run;
mod stress;
mod tune;
mod verify;

#[path = "../support"]
mod support {
    pub(crate) mod alone;
    pub(crate) mod plans;
    pub(crate) mod random;
    pub(crate) mod watch;
}
