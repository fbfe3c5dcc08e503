//! Tests of the command-line program: what it prints, reads, writes and refuses.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::too_many_lines,
    reason = "numbers of tests are small, and a test tells one story"
)]

mod answers;
mod bits;
mod call;
mod circulant;
mod cli;
mod draw;
mod examples;
mod files;
mod formats;
mod fuzz;
mod guidelines;
#[path = "../../../../tests/hand/mod.rs"]
mod hand;
mod inputs;
mod late;
mod limits;
mod measured;
mod options;
mod pages;
#[path = "../../../app/src/parallel.rs"]
mod parallel;
mod parts;
mod python;
#[path = "../../../app/src/ranges.rs"]
#[allow(dead_code, reason = "for the program")]
mod ranges;
mod readme;
mod schema;
mod steady;
mod sweep;
mod synthesize;
mod tables;
#[path = "../../../app/src/units.rs"]
#[allow(dead_code, unreachable_pub, unused_imports, reason = "for the program")]
mod units;
mod untrusted;
mod usage;
mod verdict;
#[path = "../../../app/src/writer.rs"]
#[allow(dead_code, reason = "for the program")]
mod writer;

#[path = "../support"]
mod support {
    #[path = "../../../../tests/support/cases.rs"]
    pub(crate) mod cases;
    #[path = "../../../../tests/support/random.rs"]
    pub(crate) mod random;
    pub(crate) mod run;
    #[path = "../../../../tests/support/watch.rs"]
    pub(crate) mod watch;
}
