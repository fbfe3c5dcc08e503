//! Tests of planning, checking and simulation: schedules, planners, the rules of time, the checker.
//!
//! All files form one test crate, because every further crate compiles and links the library's
//! generic code again. `tests/threads` tests teams, in a process of their own because some of those
//! tests inspect its threads. `tests/commands` tests the command line.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::too_many_lines,
    reason = "numbers of tests are small, and a test tells one story"
)]

mod best_segments;
mod bits;
mod bounds;
mod builder;
mod checker;
mod choose;
mod circulant_constructions;
mod collectives;
mod compositions;
mod cost_models;
mod delays;
#[cfg(feature = "mpi")]
mod early_receives;
mod edges;
mod free_root;
mod gather;
mod gather_trees;
#[path = "../hand/mod.rs"]
mod hand;
mod json;
mod layers;
#[path = "../mutants/mod.rs"]
mod mutants;
mod mutation;
mod node_ports;
#[path = "../oracle/mod.rs"]
mod oracle;
mod placed;
mod planners;
mod ported;
mod ports;
mod property;
mod random;
mod registry;
mod rules;
mod run;
mod shared_ports;
mod small_schedules;
mod stream;
mod table4;
mod telephone;

#[path = "../support"]
mod support {
    pub(crate) mod cases;
    pub(crate) mod random;
    pub(crate) mod ranks;
    pub(crate) mod sample;
}

/// What the files that `run` compiles find in their own crate.
use oneport::{error, schedule};

/// As above.
mod machine {
    pub(crate) use oneport::internal::numbers;
}
