//! The registry of algorithms: one row per algorithm, from the list in `plan/mod.rs`.
//!
//! `oneport list`, the table of `docs/algorithms.md`, the generic test suite and the benches all
//! read it. An algorithm of the list is therefore listed, checked, simulated, run and benchmarked
//! like all others.

mod algorithm;
mod planner;
mod root;
pub(in crate::plan) mod row;

pub use self::algorithm::{Algorithm, PortModels};
pub(in crate::plan) use self::algorithm::{BestSegment, ClosedForm, Formula};
pub use self::planner::{Planned, Planner};
pub(in crate::plan) use self::root::BestRoot;
use super::ALGORITHMS;
pub use super::build::reduction::Reduction;
pub use super::build::stream::DynScheduleSource;
use crate::error::{Error, Result};
use crate::schedule::collective::Kind;

/// All algorithms.
pub fn all() -> &'static [Algorithm] {
    ALGORITHMS
}

/// The algorithms for one collective.
pub fn of(collective: Kind) -> impl Iterator<Item = &'static Algorithm> {
    ALGORITHMS
        .iter()
        .filter(move |a| a.collective == collective)
}

/// Finds the algorithm with this name, by a linear search.
///
/// # Errors
/// An unknown name; the message lists the valid ones.
pub fn find(collective: Kind, name: &str) -> Result<&'static Algorithm> {
    of(collective).find(|a| a.name == name).ok_or_else(|| {
        let names: Vec<_> = of(collective).map(|a| a.name).collect();
        Error::usage(if names.is_empty() {
            format!("no algorithm for {} is registered", collective.name())
        } else {
            format!(
                "unknown algorithm '{name}' for {}: choose one of {}",
                collective.name(),
                names.join(", ")
            )
        })
    })
}
