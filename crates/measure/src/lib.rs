//! Measurements on this machine, or on the processes of a cluster: calibration of the cost model,
//! tuning, performance guidelines and histograms. What runs schedules does so in a
//! [`Place`](oneport::run::Place): on threads, or over MPI.
//!
//! - [`calibrate()`] measures transfers, combinations and local copies on real teams and fits the
//!   cost model's parameters. The command line's `--profile` reads the [`Profile`] it returns.
//! - [`tune`] finds the fastest algorithm and segment size for each vector size.
//! - [`guidelines`] checks that no collective is slower than an equivalent sequence of other
//!   collectives.
//! - [`bits`] finds in which trees a library sums floats up.
//! - [`compare()`] sets schedules of one's own beside the algorithms, over ranks and sizes.
//! - [`interleave()`] carries out several runs interleaved.
//! - [`percentile_distribution`] writes the times of a run in HdrHistogram's text form.

#![forbid(unsafe_code)]

pub mod bits;
mod calibrate;
mod compare;
pub mod estimate;
pub mod fit;
pub mod guidelines;
mod histogram;
mod interleave;
mod probe;
mod profile;
pub mod tune;

pub use calibrate::{Calibration, calibrate, calibrate_on, load_warning};
pub use compare::{OwnPlanner, Sweep, compare};
pub use histogram::percentile_distribution;
pub use interleave::{Measurable, MeasuredRun, interleave, without_library};
pub use profile::{Machine, Point, Profile, now};
