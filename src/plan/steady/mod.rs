//! Steady-state collectives on heterogeneous platforms.

mod arborescence;
mod certificate;
mod colouring;
mod flows;
mod fraction;
mod generate;
mod lp;
mod matching;
mod packets;
mod periodic;
mod platform;
mod ports;
mod problem;
mod robust;
mod route;
mod single;
mod solve;
mod weight;

pub use certificate::{Certificate, Proof};
pub use flows::{flow_bound, multicast_bounds};
pub use fraction::{Fraction, parse_fraction, show_fraction, show_short, to_f64};
pub use generate::generate;
pub use packets::{Packets, best_packets};
pub use periodic::Periodic;
pub use platform::{Edge, Platform};
pub use ports::Slot;
pub use problem::{Operation, Solution, solve};
pub use robust::Robustness;
pub use route::{Part, Route};
pub use single::{Single, best_single};
pub use solve::Method;

#[cfg(test)]
mod tests;
