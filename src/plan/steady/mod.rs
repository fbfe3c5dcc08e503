//! Steady-state collectives on heterogeneous platforms: series of operations at the best
//! throughput.
//!
//! # Source
//! O. Beaumont, L. Marchal, Y. Robert: Complexity results for collective communications on
//! heterogeneous platforms.
//!
//! # Model
//! A [`Platform`] is a directed graph; a message takes time `c_e` on edge `e`. A node's ports carry
//! one transfer at a time: one for both directions (unidirectional), or one out and one in
//! (bidirectional). Very many operations (broadcasts from one source, say) are performed one
//! after the other; their number a time unit, in the long run, is the throughput. Different
//! messages may take different routes.
//!
//! Combining is free, unless the platform says what a node takes for it. Then a node that combines
//! neither sends nor receives, as in the rules of [`crate::schedule`]; or, with
//! [`Platform::with_overlap`], it has a processor that works beside its ports (A. Legrand, L.
//! Marchal, Y. Robert: Optimizing the steady-state throughput of scatter and reduce operations on
//! heterogeneous platforms). Either way it is one more activity that ports carry: a loop at its
//! node, or a link between two ports of its own.
//!
//! # From platform to schedule
//!
//! | step | result |
//! |---|---|
//! | [`solve`] | the best throughput as an exact fraction, weighted routes and matchings that reach it, and a [`Certificate`] that none is better |
//! | [`Solution::periodic`] | a schedule that repeats itself, with whole messages; rounded, with a known loss, where that needs too long a period |
//! | [`Periodic::schedule`] | an ordinary [`Schedule`](crate::Schedule) for any number of operations: start-up, steady state and clean-up |
//! | [`Solution::robustness`] | what is still guaranteed when costs drift |
//! | [`best_single`], [`best_packets`], [`multicast_bounds`] | one tree for all messages; one long message in packets; bounds of multicasts |
//! | [`Solution::bounds`] | what is known of operations whose optimum is NP-hard to find |
//!
//! # What is proved
//! Throughputs are computed with exact numbers; floating-point numbers only guide the search. For
//! broadcasts, reductions, scatters, gathers, allgathers and alltoalls the certificate is checked
//! by a routine that only adds and compares; so it is for reductions in rank order, with whatever
//! computation, for multicasts to at most 9 targets, and for reductions of at most 8 contributions
//! by an operator that commutes but takes time. With more targets or contributions these are
//! heuristics between bounds, as are scans, which all take the same, single way. The schedules take
//! at most [`Periodic::time_bound`], by construction. The best single tree is optimal only where
//! [`Single::is_optimal`] says so.
//!
//! ```
//! use oneport::check::{self, check};
//! use oneport::plan::steady::{Method, Operation, generate, show_fraction, solve};
//! use oneport::simulate::Prepared;
//! use oneport::Ports;
//!
//! let platform = generate("fig3", 0)?;
//! let solution = solve(&platform, Operation::Broadcast, Ports::UNI, Method::Ports)?;
//! assert_eq!(show_fraction(&solution.throughput), "2/3");
//! // 2 messages in every 3 time units; 100 of them:
//! let periodic = solution.periodic(None, None)?;
//! let schedule = periodic.schedule(100)?;
//! assert!(check(&schedule, &check::Options::default()).ok());
//! let time = Prepared::new(&schedule, false)?.simulate(&periodic.cost(1.0)?, 1).time();
//! assert_eq!(time, 150.0);
//! # Ok::<(), oneport::Error>(())
//! ```

mod arborescence;
mod buffer_layout;
mod certificate;
mod colouring;
mod flows;
mod fraction;
mod generate;
mod lp;
mod matching;
mod packets;
mod partial_results;
mod periodic;
mod platform;
mod ports;
mod problem;
mod robust;
mod route;
mod scan;
mod single;
mod solve;
mod unroll;
mod weight;

pub use certificate::{Certificate, Proof};
pub use flows::{flow_bound, multicast_bounds};
pub use fraction::{Fraction, parse_fraction, show_float, show_fraction, show_short, to_f64};
pub use generate::generate;
pub use packets::{Packets, best_packets};
pub use periodic::Periodic;
pub use platform::{Edge, Platform};
pub use ports::Slot;
pub use problem::{Operation, Solution, solve};
pub use robust::Robustness;
pub use route::{Part, Route, Task, Work};
pub use single::{Single, best_single};
pub use solve::Method;

#[cfg(test)]
mod tests;
