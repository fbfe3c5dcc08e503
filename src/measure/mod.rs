//! Measuring this machine: the cost model's parameters from the transfers, combinations and copies
//! of real teams.
//!
//! [`calibrate()`] measures and fits; the [`Profile`] that it returns is what the command line's
//! `--profile` takes. [`tune`] finds the fastest algorithm and segment size.
//! [`percentile_distribution`] writes a run's times in HdrHistogram's text form.

mod calibrate;
pub mod fit;
pub mod guidelines;
mod histogram;
mod probe;
mod profile;
pub mod tune;

pub use calibrate::{Calibration, calibrate};
pub use histogram::percentile_distribution;
pub use profile::{Machine, Point, Profile, now};
