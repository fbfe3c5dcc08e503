//! What the library plans, proves and times: schedules, planners, the rules of time, the checker.
//!
//! One crate of many files: every crate of tests compiles and links the library's generic code once
//! more. Tests of teams, some of which look at the threads of their process, are in
//! `tests/threads`; those of the command line in `tests/commands`.

mod circulant_constructions;
mod edges;
mod gather;
#[path = "../hand/mod.rs"]
mod hand;
mod json;
mod layers;
#[path = "../mutants/mod.rs"]
mod mutants;
mod mutation;
mod on_demand;
#[path = "../oracle/mod.rs"]
mod oracle;
mod property;
mod random;
mod readme;
mod registry;
mod rules;
mod steady;
mod table4;

#[path = "../support"]
mod support {
    pub(crate) mod random;
}
