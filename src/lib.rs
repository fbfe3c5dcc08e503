//! Plan, prove, time and run collective communication under the one-port model.

pub mod bounds;
pub mod check;
pub mod collective;
pub mod cost;
pub mod error;
pub mod plan;
pub mod run;
pub mod schedule;
pub mod simulate;

pub use collective::{Collective, Kind};
pub use cost::{CostModel, Ports};
pub use error::{Error, ErrorKind, Result};
pub use plan::Request;
pub use schedule::{Layout, Order, Schedule, Span, Spans, Step};
