//! Steady-state collectives on heterogeneous platforms: the best throughput of a series of
//! operations, and schedules that reach it.
//!
//! # Source
//! O. Beaumont, L. Marchal, Y. Robert: Complexity results for collective communications on
//! heterogeneous platforms.
//!
//! # Model
//! A [`Platform`] is a directed graph; a message takes time `c_e` on edge `e`. The ports of a node
//! carry one transfer at a time: a unidirectional node has one port for both directions, a
//! bidirectional node one port out and one port in. A very long series of operations (for example
//! broadcasts from one source) is performed one after the other. The throughput is the number of
//! operations per time unit in the long run. Different messages may take different routes.
//!
//! Combining is free unless the platform gives combining times. With combining times, a node that
//! combines neither sends nor receives, as in the [rules of time](oneport::rules). With
//! [`Platform::with_overlap`], a processor of the node combines while its ports communicate (A.
//! Legrand, L. Marchal, Y. Robert: Optimizing the steady-state throughput of scatter and reduce
//! operations on heterogeneous platforms). In the graph of ports, combining is one more activity: a
//! loop at the node, or a link between two ports of its own.
//!
//! # From platform to schedule
//!
//! - [`solve`] gives the best throughput as an exact fraction, weighted routes and matchings that
//!   reach it, and a [`Certificate`] that none is better.
//! - [`Solution::periodic`] gives a periodic schedule with whole messages. Rates are rounded, with
//!   a known loss, where the exact period would be too long.
//! - [`Periodic::schedule`] gives an ordinary [`Schedule`](oneport::Schedule) for any number of
//!   operations: start-up, steady state and clean-up.
//! - [`Series`] keeps the platform in the schedule's file.
//! - [`Solution::robustness`] gives the throughput that is still guaranteed when costs drift.
//! - [`best_single`] gives the best single tree for all messages, [`best_packets`] cuts one long
//!   message into packets.
//! - [`Solution::bounds`] gives bounds for operations whose optimum is NP-hard to find.
//!
//! Nodes and edges are numbered from 0, edges in the order of [`Platform::edges`]. Times are in the
//! platform's time units, throughputs in operations per time unit. Functions take time linear in
//! the size of the platform, the route or the schedule, apart from sorting, unless they say
//! otherwise; this counts operations with exact numbers, whose length depends on the costs.
//!
//! # What is proved
//! Throughputs are computed with exact numbers; floating-point numbers only guide the search. A
//! routine that only adds and compares checks the certificate. Certificates exist for:
//!
//! - broadcasts, reductions, scatters, gathers, allgathers and alltoalls;
//! - reductions in rank order, with any combining times;
//! - multicasts to at most 9 targets;
//! - reductions of at most 8 contributions by a commutative operator that takes time.
//!
//! With more targets or contributions, the result is a heuristic between bounds. So are scans,
//! which all follow the same single route. The schedules take at most [`Periodic::time_bound`], by
//! construction. The best single tree is optimal only where [`Single::is_optimal`] says so.
//!
//! ```
//! use oneport::check;
//! use oneport_steady::{SolveMethod, Operation, generate, solve};
//! use oneport::simulate::Prepared;
//! use oneport::Ports;
//!
//! let platform = generate("fig3", 0)?;
//! let solution = solve(&platform, Operation::Broadcast, Ports::UNI, SolveMethod::Ports)?;
//! assert_eq!(solution.throughput.to_string(), "2/3");
//! // 2 messages in every 3 time units; 100 of them:
//! let periodic = solution.periodic(None, None)?;
//! let schedule = periodic.schedule(100)?;
//! assert!(schedule.check().is_correct());
//! let time = schedule.simulate(&periodic.cost(1.0)?)?.makespan();
//! assert_eq!(time, 150.0);
//! # Ok::<(), oneport::Error>(())
//! ```

#![forbid(unsafe_code)]

mod arborescence;
mod buffer_layout;
mod certificate;
mod colouring;
mod cut;
mod demand;
mod few_routes;
mod flows;
mod fraction;
mod generate;
mod items;
mod lp;
mod matching;
mod packets;
mod partial_results;
mod paths;
mod periodic;
mod platform;
mod ports;
mod problem;
mod proof_file;
mod robust;
mod route;
mod scan;
mod series;
mod single;
mod solve;
mod steiner;
mod unroll;
mod verify;
mod weight;

pub use certificate::{Certificate, Proof};
pub use flows::flow_bound;
pub use fraction::{Fraction, parse_fraction, show_short};
pub use generate::generate;
pub use packets::{Packets, best_packets};
pub use periodic::Periodic;
pub use platform::{Edge, Platform};
pub use ports::Slot;
pub use problem::{Operation, Solution, solve};
pub use robust::Robustness;
pub use route::{Arborescence, Route, Task, TaskGraph};
pub use series::Series;
pub use single::{Single, best_single};
pub use solve::SolveMethod;
pub use unroll::{StepRoutes, StepTimes};
