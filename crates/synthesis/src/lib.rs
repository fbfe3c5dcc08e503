//! Synthesis: schedules of the fewest rounds, found and proved by a SAT solver.
//!
//! In a round every port takes part in at most one message. A [`Problem`] names a collective, the
//! ports, who may send to whom, and what a message carries; [`synthesize`] answers with a schedule
//! and says how many rounds are proved to be needed: by a formula, or because the solver has
//! refuted fewer. The refutation can be had as DIMACS and DRAT, for a foreign checker.
//!
//! ```
//! use oneport::{Collective, Ports};
//! use oneport_synthesis::{Options, Problem, synthesize};
//!
//! let problem = Problem::new(Collective::Allgather, 5).ports(Ports::UNI);
//! let answer = synthesize(&problem, &Options::default())?;
//! assert_eq!((answer.lower, answer.upper), (5, Some(5)));
//! assert!(answer.schedule.is_some_and(|schedule| schedule.check().is_correct()));
//! # Ok::<(), oneport::Error>(())
//! ```

#![forbid(unsafe_code)]

mod bounds;
mod build;
mod cnf;
mod encode;
mod facts;
mod problem;
mod search;
mod second_round;
mod solver;

pub use cnf::Cnf;
pub use problem::{Links, Problem};
pub use search::{Answer, Certificate, Options, Step, synthesize};
pub use solver::{BatSat, Solver, Verdict};
