//! Tests of the command-line program: what it prints, reads, writes and refuses.

mod circulant;
mod cli;
mod draw;
mod files;
mod formats;
mod fuzz;
mod guidelines;
#[path = "../../../../tests/hand/mod.rs"]
mod hand;
mod inputs;
mod limits;
mod measured;
mod options;
mod pages;
mod readme;
mod steady;
mod untrusted;
mod usage;
mod verdict;

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
