//! Sends one long message as a series of packets, and searches the best number of packets.
//!
//! A packet of a message of size `L` cut into `q` packets takes `latency + cost * L / q` on an
//! edge. Many small packets soon keep all links busy, but pay every latency often. The search
//! compares the model times of whole schedules.

use std::collections::BTreeMap;

use super::fraction::{Fraction, whole};
use super::periodic::Periodic;
use super::platform::{Edge, Platform};
use super::problem::{Operation, solve};
use super::solve::SolveMethod;
use oneport::error::{Error, Result};
use oneport::internal::budget::search::MAX_STEPS_OF_PACKETS;
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
    /// How many numbers of packets were tried.
    pub tried: usize,
    /// Whether any other number would take at least as long: those that were not tried by a bound.
    pub is_best: bool,
}

const MAX_PACKETS: usize = 4096;
/// Limits of the numbers of packets that are tried: `MAX_WORK_TRIED` divided by the edges of the
/// platform, but at least `MIN_TRIED` and at most `MAX_TRIED`.
const MAX_WORK_TRIED: usize = 4000;
const MIN_TRIED: usize = 24;
const MAX_TRIED: usize = 200;

/// Searches the best number of packets for one operation with messages of size `size`, in units of
/// the message that the platform's costs are for.
///
/// It tries 1, 2, 3, 4, 6, 8, 12, ... packets, until the time has not improved five times in a row,
/// then all other numbers, those next to the best one first, that are not excluded by a bound: `q`
/// packets take at least `q` divided by their throughput, which is the time that the busiest port
/// needs, and grows with `q`.
///
/// Each number of packets is a steady-state problem of its own, which is solved exactly. Numbers
/// are compared by the simulated time of the schedule that sends all packets. A packet that is cut
/// at the end of a slot does not pay its latency again.
///
/// # Complexity
/// At most 200 numbers of packets, fewer on platforms of more than 20 edges, each with one
/// [`solve`] and one simulation. Beyond a single packet, schedules of more than about 2 million
/// steps are not tried, nor are more than 4096 packets.
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
    let mut search = PacketSearch {
        platform,
        operation,
        ports,
        size,
        best: None,
        tried: BTreeMap::new(),
    };
    let mut worse = 0;
    let doubled = std::iter::successors(Some(2), |n| Some(2 * n));
    let counts = std::iter::once(1).chain(doubled.flat_map(|n: usize| [n, n + n / 2]));
    for count in counts.take_while(|&n| n <= MAX_PACKETS) {
        match search.attempt(count)? {
            Attempt::Best => worse = 0,
            Attempt::Worse => worse += 1,
            Attempt::TooLong => break,
        }
        if worse == 5 {
            break;
        }
    }
    let most = (MAX_WORK_TRIED / platform.edges().len().max(1)).clamp(MIN_TRIED, MAX_TRIED);
    while search.tried.len() < most {
        let Some(count) = search.next() else { break };
        search.attempt(count)?;
    }
    let is_best = search.next().is_none() && search.is_bounded();
    let (best, tried) = (search.best, search.tried.values());
    let tried = tried.filter(|at_least| at_least.is_some()).count();
    let best = best.ok_or_else(|| Error::system("no number of packets was tried"))?;
    Ok(Packets {
        tried,
        is_best,
        ..best
    })
}

enum Attempt {
    Best,
    Worse,
    /// Its schedule has too many steps.
    TooLong,
}

struct PacketSearch<'a> {
    platform: &'a Platform,
    operation: Operation,
    ports: Ports,
    size: &'a Fraction,
    best: Option<Packets>,
    /// By number of packets, the time that it takes at least; `None` if it was not timed.
    tried: BTreeMap<usize, Option<f64>>,
}

impl PacketSearch<'_> {
    fn attempt(&mut self, count: usize) -> Result<Attempt> {
        let cost = |e: &Edge| &e.latency + &e.cost * self.size / whole(count);
        let packets = self.platform.with_costs(|_, e| cost(e))?;
        let solution = solve(&packets, self.operation, self.ports, SolveMethod::Ports)?;
        let periodic = solution.periodic(None, None)?;
        let periods = periodic.periods(count);
        if self.best.is_some()
            && periods.saturating_mul(2 * periodic.transfers()) > MAX_STEPS_OF_PACKETS
        {
            self.tried.insert(count, None);
            return Ok(Attempt::TooLong);
        }
        // A throughput that is not proved gives no bound.
        let at_least = if solution.is_optimal {
            count as f64 / solution.throughput.to_f64()
        } else {
            0.0
        };
        self.tried.insert(count, Some(at_least));
        let schedule = periodic.schedule(count)?;
        let time = schedule.simulate(&periodic.cost(1.0)?)?.makespan();
        if self.best.as_ref().is_some_and(|best| best.time <= time) {
            return Ok(Attempt::Worse);
        }
        self.best = Some(Packets {
            count,
            time,
            periodic,
            tried: 0,
            is_best: false,
        });
        Ok(Attempt::Best)
    }

    /// The least number of packets from which on all take at least as long as the best one.
    fn end(&self) -> usize {
        let best = self.best.as_ref().map_or(f64::INFINITY, |best| best.time);
        // Rounding must not exclude a number.
        let is_long = |at_least: &Option<f64>| at_least.is_some_and(|t| t >= best * (1.0 + 1e-9));
        let mut tried = self.tried.iter();
        let first = tried.find(|(_, at_least)| is_long(at_least));
        first.map_or(MAX_PACKETS + 1, |(&count, _)| count)
    }

    /// The number next to the best one that neither was tried nor is excluded.
    fn next(&self) -> Option<usize> {
        let best = self.best.as_ref()?.count;
        let open = (1..self.end()).filter(|count| !self.tried.contains_key(count));
        open.min_by_key(|count| count.abs_diff(best))
    }

    /// Whether the numbers that were not timed are excluded.
    fn is_bounded(&self) -> bool {
        let end = self.end();
        let mut below = self.tried.range(..end);
        end <= MAX_PACKETS && below.all(|(_, at_least)| at_least.is_some())
    }
}
