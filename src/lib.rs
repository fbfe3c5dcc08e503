//! Plan, prove, time and run collective communication under the one-port model.
//!
//! A [`Schedule`] is data: each rank has a buffer and an ordered list of sends, receives and local
//! steps. Every other part of the crate either makes a schedule or consumes one:
//!
//! ```text
//! planners ──► Schedule ──┬─► check      proves it: matching, deadlock, ports, every byte where it should be
//!                         ├─► simulate   times it exactly in the cost model
//! your code ──►           └─► run        real threads, real bytes: native speed, or paced to alpha + beta*m
//! JSON files ─►
//! ```
//!
//! # A tour
//!
//! ```
//! use oneport::run::{Op, Run, Team};
//! use oneport::{CostModel, Request};
//!
//! // Plan: a reduction of 1000 elements of 4 bytes over 8 ranks, in 5 segments.
//! let schedule = Request::reduce(8, 1000).element_bytes(4).segment_count(5).plan("bi-greedy")?;
//!
//! // Prove it.
//! assert!(schedule.check().is_correct());
//!
//! // Time it: 3 + 5 - 1 rounds of alpha + beta * 800 bytes.
//! let cost = CostModel::new(1000.0, 0.5);
//! let model_time = schedule.simulate(&cost)?.makespan();
//! assert_eq!(model_time, 7.0 * 1400.0);
//!
//! // Run it with real data on real threads: the model clock of the run agrees to the last bit.
//! let run = Run::<f32>::new(&schedule).op(Op::SUM).verified().cost(cost);
//! let outcome = run.repetitions(10).on(&mut Team::new(8)?)?;
//! assert!(outcome.is_verified());
//! assert_eq!(outcome.model_time, model_time);
//! println!("median {} ns", outcome.wall.median_ns());
//! # Ok::<(), oneport::Error>(())
//! ```
//!
//! # The map
//!
//! | module | contents |
//! |---|---|
//! | [`schedule`] | steps, spans, builder, JSON form, reversal |
//! | [`rules`] | **the rules of time**: when each step may start |
//! | [`schedule::collective`] | what each collective operation must achieve |
//! | [`plan::distribution`] | named families of block sizes |
//! | [`machine`], [`simulate::bounds`] | the cost model and ports; lower bounds |
//! | [`check`] | the proof of a schedule |
//! | [`guide`] | pages for readers: algorithms, the JSON form, your own algorithm, commands |
//! | [`simulate`] | model time |
//! | [`plan`] | one file per algorithm; [`plan::registry`] has one row for each |
//! | [`random`] | pseudo-random numbers that are the same on every machine |
//! | [`run`] | teams of pinned threads, endpoints, the transfer protocol, operators, test data |
//! | [`collectives`] | collectives as functions that every rank of a program calls |
//! | `mpi`, a feature | the same schedules and rank programs over an MPI library |
//!
//! Other crates of the workspace use this one: `oneport-measure` (calibration, tuning,
//! guidelines), `oneport-pictures` (Gantt charts, trees, pages), `oneport-formats` (GOAL, MSCCL XML
//! and others, in and out), `oneport-steady` (series on heterogeneous platforms),
//! `oneport-synthesis` (the fewest rounds, proved) and `oneport-cli`, the command line.
//!
//! # What always holds
//!
//! * A planner never touches a thread, and an executor knows no algorithm. An algorithm added to
//!   the registry is immediately listed, checked, simulated, run, compared and tested.
//! * The rules of time are written once ([`rules`]). Checker, simulator and executor
//!   all use them. The model clock of a real run equals the simulator's result to the last bit.
//! * Two modules contain `unsafe` code: `run::transfer`, beside the description of its protocol,
//!   and `mpi::binding`, which calls the MPI library. The atomics of the former come from one
//!   `sync` module, which the tests replace by a model checker.
//! * Bad input returns an [`Error`] that contains the relevant numbers. A panic is a bug.

mod budget;
pub mod check;
pub mod collectives;
pub mod error;
pub mod guide;
#[doc(hidden)]
pub mod internal;
pub mod machine;
#[cfg(feature = "mpi")]
pub mod mpi;
pub mod plan;
pub mod random;
pub mod rules;
pub mod run;
pub mod schedule;
pub mod simulate;

pub use error::{Error, ErrorKind, Result};
pub use machine::{CostModel, Ports};
pub use plan::Request;
pub use plan::distribution::Distribution;
pub use schedule::collective::{Collective, Kind};
pub use schedule::{Layout, Order, Schedule, Span, Spans, Step};

/// Compiles the examples of the README and of ARCHITECTURE as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[cfg_attr(feature = "mpi", doc = include_str!("../ARCHITECTURE.md"))]
struct Readme;
