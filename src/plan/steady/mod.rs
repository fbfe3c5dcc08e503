//! Steady-state collectives on heterogeneous platforms.

mod arborescence;
mod certificate;
mod colouring;
mod fraction;
mod generate;
mod lp;
mod matching;
mod platform;
mod ports;
mod problem;
mod route;
mod solve;
mod weight;

pub use certificate::{Certificate, Proof};
pub use fraction::{Fraction, parse_fraction, show_fraction, show_short, to_f64};
pub use generate::generate;
pub use platform::{Edge, Platform};
pub use ports::Slot;
pub use problem::{Operation, Solution, solve};
pub use route::{Part, Route};
pub use solve::Method;

#[cfg(test)]
mod tests;
