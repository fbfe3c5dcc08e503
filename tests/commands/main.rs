//! Tests of the command-line program: what it prints, reads, writes and refuses.

mod circulant;
mod cli;
mod draw;
mod files;
mod formats;
mod fuzz;
mod guidelines;
#[path = "../hand/mod.rs"]
mod hand;
mod inputs;
mod limits;
mod measured;
mod options;
mod pages;
mod usage;

#[path = "../support"]
mod support {
    pub(crate) mod random;
    pub(crate) mod run;
    pub(crate) mod watch;
}
