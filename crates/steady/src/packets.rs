//! Sends one long message as a series of packets, and searches the best number of packets.
//!
//! A packet of a message of size `L` cut into `q` packets takes `latency + cost * L / q` on an
//! edge. Many small packets soon keep all links busy, but pay every latency often. The search
//! compares the model times of whole schedules.

use super::fraction::{Fraction, whole};
use super::periodic::Periodic;
use super::platform::Platform;
use super::problem::{Operation, solve};
use super::solve::SolveMethod;
use oneport::error::{Error, Result};
use oneport::machine::Ports;

/// The best way found to send one long message in packets.
#[derive(Debug, Clone)]
pub struct Packets {
    /// Number of packets.
    pub count: usize,
    /// Model time of the whole message, in time units of the platform.
    pub time: f64,
    /// The periodic schedule of the packets; each of its operations sends one packet.
    pub periodic: Periodic,
}

const MAX_PACKETS: usize = 4096;
/// Limit of the steps of a schedule that is timed.
const MAX_STEPS: usize = 2_000_000;

/// Searches the best number of packets for one operation with messages of size `size`, in units of
/// the message that the platform's costs are for. It tries 1, 2, 3, 4, 6, 8, 12, ... packets, until
/// the time has not improved five times in a row.
///
/// Each number of packets is a steady-state problem of its own, which is solved exactly. Numbers
/// are compared by the simulated time of the schedule that sends all packets. A packet that is cut
/// at the end of a slot does not pay its latency again.
///
/// # Complexity
/// At most 24 numbers of packets, up to 4096, each with one [`solve`] and one simulation. Beyond a
/// single packet, schedules of more than about 2 million steps are not tried.
///
/// # Errors
/// When the size is not positive, and those of [`solve`],
/// [`Solution::periodic`](super::Solution::periodic) and [`Periodic::schedule`].
pub fn best_packets(
    platform: &Platform,
    operation: Operation,
    ports: Ports,
    size: &Fraction,
) -> Result<Packets> {
    if *size <= Fraction::ZERO {
        return Err(Error::usage("a long message needs a size above 0"));
    }
    let mut best: Option<Packets> = None;
    let mut worse = 0;
    let doubled = std::iter::successors(Some(2), |n| Some(2 * n));
    let counts = std::iter::once(1).chain(doubled.flat_map(|n: usize| [n, n + n / 2]));
    for count in counts.take_while(|&n| n <= MAX_PACKETS) {
        let packets = platform.with_costs(|_, e| &e.latency + &e.cost * size / whole(count))?;
        let solution = solve(&packets, operation, ports, SolveMethod::Ports)?;
        let periodic = solution.periodic(None, None)?;
        let periods = periodic.periods(count);
        if best.is_some() && periods.saturating_mul(2 * periodic.transfers()) > MAX_STEPS {
            break;
        }
        let schedule = periodic.schedule(count)?;
        let time = schedule.simulate(&periodic.cost(1.0)?)?.makespan();
        if best.as_ref().is_none_or(|b| time < b.time) {
            best = Some(Packets {
                count,
                time,
                periodic,
            });
            worse = 0;
        } else {
            worse += 1;
            if worse == 5 {
                break;
            }
        }
    }
    best.ok_or_else(|| Error::system("no number of packets was tried"))
}
