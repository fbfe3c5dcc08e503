//! Tests of calibration, tuning, guidelines and estimates, by their public functions.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::too_many_lines,
    reason = "numbers of tests are small, and a test tells one story"
)]
#![allow(missing_docs)]

/// The crate's own sources, of which calibration is made: what they offer to each other is private.
#[allow(dead_code, unreachable_pub)]
#[path = "."]
mod sources {
    #[path = "../../src/fit.rs"]
    mod fit;
    #[path = "../../src/interleave.rs"]
    mod interleave;
    #[path = "../../src/probe.rs"]
    mod probe;

    #[path = "."]
    mod calibrate {
        #[path = "../../src/calibrate/fits.rs"]
        mod fits;
        #[path = "../../src/calibrate/pairs.rs"]
        mod pairs;
        #[path = "calibrate.rs"]
        mod tests;
        #[path = "../../src/calibrate/warnings.rs"]
        mod warnings;
    }
}

#[path = "."]
mod support {
    #[path = "../../../../tests/support/cases.rs"]
    pub(crate) mod cases;
    #[path = "../../../../tests/support/random.rs"]
    pub(crate) mod random;
    #[path = "../../../../tests/support/sample.rs"]
    pub(crate) mod sample;
}

mod bits;
mod compare;
#[path = "../../../../examples/compare_mine.rs"]
mod compare_mine;
mod csv;
mod estimate;
mod fit;
mod guidelines;
mod histogram;
mod page;
mod profile;
mod rules;
mod summary;
mod tune;

#[test]
fn the_example_of_a_comparison_runs() {
    compare_mine::main().unwrap();
}
