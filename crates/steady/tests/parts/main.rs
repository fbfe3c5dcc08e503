//! Parts of the solver on their own: arborescences, matchings, linear programs, partial results.
//!
//! The crate's own sources are compiled here, without the parts that these do not need: what they
//! offer to each other is private.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::too_many_lines,
    reason = "numbers of tests are small, and a test tells one story"
)]
#![allow(dead_code, unreachable_pub)]

#[path = "../../src/arborescence.rs"]
mod arborescence;
// What `lp` has of it, `lp` keeps to itself.
#[allow(clippy::duplicate_mod)]
#[path = "../../src/lp/exact.rs"]
mod exact;
#[path = "../../src/fraction.rs"]
mod fraction;
#[path = "../../src/lp/mod.rs"]
mod lp;
#[path = "../../src/matching/mod.rs"]
mod matching;
#[path = "../../src/partial_results.rs"]
mod partial_results;
#[path = "../../src/paths.rs"]
mod paths;
#[path = "../../src/platform/mod.rs"]
mod platform;
#[path = "../../src/route.rs"]
mod route;
#[path = "../../src/weight.rs"]
mod weight;

mod minimal_trees;
mod prices;
mod programs;
mod splits;
