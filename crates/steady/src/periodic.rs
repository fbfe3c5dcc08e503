//! Turns rates into a periodic schedule: the operations, slots and cuts of one period.
//! ([`unroll`](super::unroll) makes an ordinary schedule of it.)
//!
//! - Period: each route performs a whole number of operations per period. The slots follow one
//!   another, and in a slot each of its edges carries one transfer.
//! - Cuts: the messages that an edge carries in a period follow one another and are cut where slots
//!   end, so a transfer has as many elements as fit into its slot.
//! - Order: a node forwards what it received in an earlier slot of the same period, or in the
//!   period before. [`Periodic::lag`] is the number of periods that an operation takes, at most the
//!   depth of its route.
//! - Rounding: elements are whole. A cut within an element moves to the nearest element boundary,
//!   which makes slots a little longer. [`Periodic::throughput`] takes that into account, and
//!   [`Periodic::loss`] tells how much it is.

use dashu_int::ops::{BitTest, Gcd};
use dashu_int::{IBig, UBig};

use super::colouring::{Slotted, general_slots};
use super::fraction::{Fraction, common_denominator, lcm, magnitude, scaled, whole};
use super::items::{Cut, items};
use super::ports::Slot;
use super::problem::Solution;
use super::route::Route;
use super::scan::time_of;
use super::single::best_single;
use oneport::error::{Error, Result};
use oneport::machine::CostModel;

/// Rates are rounded if a period has more operations than this, unless a longest period is given.
const MAX_OPERATIONS: usize = 1000;
/// Limit of the elements of a message times the operations of a period, for messages that cannot be
/// cut exactly within `ELEMENTS`: with many messages there are few cuts per message.
const MAX_ELEMENTS: usize = 1 << 16;
/// Shortest and longest message that is not cut exactly; the longest also limits messages that are
/// cut exactly, unless cuts are `tight`.
const ELEMENTS: (usize, usize) = (64, 4096);
/// Fraction of the best rounded rate that is enough to prefer a shorter period, which has a shorter
/// start-up. Used unless a longest period is given.
const SUFFICIENT_RATE: f64 = 0.995;
/// Number of period lengths that are tried when rates are rounded.
const TRIES: usize = 400;
/// Limits of the roundings to a longest period that are cut to elements: `MAX_ROUNDED` divided by
/// the nodes of the platform, but at least `MIN_ROUNDED`.
const MAX_ROUNDED: usize = 400;
const MIN_ROUNDED: usize = 10;

/// A periodic schedule: its period is repeated.
#[derive(Debug, Clone)]
pub struct Periodic {
    pub(super) solution: Solution,
    pub(super) counts: Vec<usize>,
    pub(super) slots: Vec<Cut>,
    pub(super) elements: usize,
    period: Fraction,
    /// Time of one message on each edge, followed by that of one combination on each node.
    costs: Vec<Fraction>,
    lag: usize,
}

impl Solution {
    /// Turns the rates into a periodic schedule.
    ///
    /// Rates are rounded if the period would be longer than `longest` time units; the best single
    /// route is one of the roundings. Without `longest`, they are rounded only where a period would
    /// have more than a thousand operations.
    ///
    /// `elements` is the length of a message. Without it, messages get a length that can be cut
    /// exactly where slots end, or 64 to 4096 elements.
    ///
    /// # Errors
    /// When no operation is found that fits into the period, which the message says to be proved
    /// where it is, or a message has no elements.
    pub fn periodic(
        &self,
        longest: Option<&Fraction>,
        elements: Option<usize>,
    ) -> Result<Periodic> {
        if elements == Some(0) {
            return Err(Error::usage("a message needs at least one element"));
        }
        // The shortest period in which every route has whole operations; it need not be an integer.
        let below = common_denominator(self.routes.iter().map(|(_, x)| x));
        let rates = self.routes.iter().map(|(_, x)| scaled(x, &below));
        let rates = rates.map(|rate| magnitude(&rate));
        let common = rates.fold(UBig::ZERO, |g, rate| g.gcd(rate));
        let below = Fraction::from(below) / Fraction::from(common);
        let operations = &below * &self.throughput;
        let fits = match longest {
            Some(longest) => below <= *longest && operations <= whole(100 * MAX_OPERATIONS),
            None => operations <= whole(MAX_OPERATIONS),
        };
        if fits {
            let (counts, slots) = (self.operations_in(&below), stretched(&self.slots, &below));
            let periodic = self.cut(counts, slots, elements, longest.is_some())?;
            if longest.is_none_or(|longest| periodic.period <= *longest) {
                return Ok(periodic);
            }
        }
        if let Some(longest) = longest {
            return self.within(longest, elements);
        }
        let (counts, slots) = self.rounded()?;
        self.cut(counts, slots, elements, false)
    }

    /// Returns the best of some roundings whose period, cut to elements, is at most `longest`.
    fn within(&self, longest: &Fraction, elements: Option<usize>) -> Result<Periodic> {
        let mut all = self.clone();
        let single = best_single(self)?;
        if all.routes.iter().all(|(route, _)| *route != single.route) {
            all.routes.push((single.route.clone(), Fraction::ZERO));
        }
        let most = whole(100 * MAX_OPERATIONS) / &self.throughput;
        let most = longest.clone().min(most);
        let tried = all.roundings(&most, &single.route);
        let mut left = (MAX_ROUNDED / all.platform.nodes()).max(MIN_ROUNDED);
        let mut best: Option<Periodic> = None;
        // The estimate counts ports only; odd sets may take longer, and cuts take time. So the best
        // estimate need not be the best schedule.
        for (rate, counts) in tried {
            let enough = |p: &Periodic| p.throughput().to_f64() >= rate * (1.0 - 1e-9);
            if left == 0 || best.as_ref().is_some_and(enough) {
                break;
            }
            let (time, slots) = all.slots_of(&counts)?;
            if time > *longest {
                continue;
            }
            left -= 1;
            let periodic = all.cut(counts, slots, elements, true)?;
            let better = |b: &Periodic| periodic.throughput() > b.throughput();
            if periodic.period <= *longest && best.as_ref().is_none_or(better) {
                best = Some(periodic);
            }
        }
        best.ok_or_else(|| {
            // If operations fit into a period, so does one of them alone.
            let is_too_short = |throughput: &Fraction| longest * throughput < whole(1);
            let none_fits = self.is_optimal && is_too_short(&self.throughput)
                || single.is_optimal && is_too_short(&single.throughput);
            Error::usage(format!(
                "{} into a period of {longest}{}: the throughput is {}, that of the best single tree{} {}",
                if none_fits { "no operation fits" } else { "no operation was found that fits" },
                match elements {
                    Some(elements) => format!(", with messages of {elements} elements"),
                    None => String::new(),
                },
                self.throughput,
                if single.is_optimal { "" } else { " found" },
                single.throughput
            ))
        })
    }

    /// Returns roundings of the rates to periods of at most `longest`, and `single` alone: numbers
    /// of operations on the routes, with the rate that the ports allow. The highest rate comes
    /// first.
    fn roundings(&self, longest: &Fraction, single: &Route) -> Vec<(f64, Vec<usize>)> {
        let mut tried: Vec<(f64, Vec<usize>)> = Vec::new();
        let mut add = |counts: Vec<usize>| {
            let operations: usize = counts.iter().sum();
            let time = self.port_time(&counts);
            if operations > 0 && time > 0.0 && tried.last().is_none_or(|(_, last)| *last != counts)
            {
                tried.push((operations as f64 / time, counts));
            }
        };
        let alone = self.routes.iter().map(|(route, _)| route == single);
        add(alone.map(usize::from).collect());
        for i in 1..=TRIES {
            let period = longest * whole(i) / whole(TRIES);
            let down = self.operations_in(&period);
            let mut filled = down.clone();
            self.fill(&mut filled, period.to_f64());
            add(down);
            add(filled);
        }
        tried.sort_by(|a, b| b.0.total_cmp(&a.0));
        tried
    }

    /// Returns how long these numbers of operations on the routes take, and slots for them.
    fn slots_of(&self, counts: &[usize]) -> Result<(Fraction, Vec<Slot>)> {
        let used = self.routes.iter().zip(counts);
        let graph = self.port_graph();
        let loads = graph.loads(used.map(|((route, _), &count)| (route, whole(count))));
        let time = time_of(&graph, &loads)?;
        let shares: Vec<Fraction> = loads.iter().map(|w| w / &time).collect();
        let slots = match general_slots(&graph, &shares, &[])? {
            Slotted::Fits(slots) => slots,
            Slotted::Violates(_) => {
                return Err(Error::system("rounded rates do not fit into their period"));
            }
        };
        let slots = stretched(&slots, &time);
        Ok((time, slots))
    }

    /// Returns whole numbers of operations for a period that is not too long, and slots for them.
    fn rounded(&self) -> Result<(Vec<usize>, Vec<Slot>)> {
        let longest = whole(MAX_OPERATIONS) / &self.throughput;
        let mut tried: Vec<(f64, Vec<usize>)> = Vec::new();
        for i in 1..=TRIES {
            let period = &longest * whole(i) / whole(TRIES);
            let mut counts = self.operations_in(&period);
            let time = if self.ports.can_relay() {
                self.fill(&mut counts, period.to_f64());
                self.port_time(&counts).min(period.to_f64())
            } else {
                period.to_f64()
            };
            let all: usize = counts.iter().sum();
            let rate = all as f64 / time.max(f64::MIN_POSITIVE);
            // A longer period is kept only if its rate is higher.
            if all > 0 && tried.last().is_none_or(|(r, _)| rate > r * (1.0 + 1e-9)) {
                tried.push((rate, counts));
            }
        }
        let enough = tried.last().map_or(0.0, |(rate, _)| rate * SUFFICIENT_RATE);
        let mut tried = tried.into_iter();
        let Some((_, counts)) = tried.find(|(rate, _)| *rate >= enough) else {
            return Err(Error::system("no operation fits into a long period"));
        };
        let (_, slots) = self.slots_of(&counts)?;
        Ok((counts, slots))
    }

    /// Returns, by route, the whole operations in a time at the solution's rates.
    fn operations_in(&self, time: &Fraction) -> Vec<usize> {
        let whole = |rate: &Fraction| usize::try_from(&(rate * time).0.floor()).unwrap_or(0);
        self.routes.iter().map(|(_, rate)| whole(rate)).collect()
    }

    /// Adds an operation to one route after the other, as long as every port has the time.
    fn fill(&self, counts: &mut [usize], period: f64) {
        let mut order: Vec<usize> = (0..counts.len()).collect();
        let missing = |i: usize| self.routes[i].1.to_f64() * period - counts[i] as f64;
        order.sort_by(|&a, &b| missing(b).total_cmp(&missing(a)));
        for i in order {
            counts[i] += 1;
            if self.port_time(counts) > period * (1.0 + 1e-12) {
                counts[i] -= 1;
            }
        }
    }

    /// Returns how long the busiest port is busy.
    fn port_time(&self, counts: &[usize]) -> f64 {
        let graph = self.port_graph();
        let mut busy = vec![0.0; graph.len()];
        for ((route, _), &count) in self.routes.iter().zip(counts) {
            if count == 0 {
                continue;
            }
            for (e, messages) in route.activities(graph.edges) {
                let (Some(cost), Some(&(a, b))) = (graph.costs.get(e), graph.links().get(e)) else {
                    continue;
                };
                let time = cost.to_f64() * (messages * count) as f64;
                busy[a] += time;
                busy[b] += time;
            }
        }
        busy.into_iter().fold(0.0, f64::max)
    }

    /// Cuts the messages of a period where slots end. With `tight`, messages may be longer to be
    /// cut exactly.
    fn cut(
        &self,
        counts: Vec<usize>,
        slots: Vec<Slot>,
        elements: Option<usize>,
        tight: bool,
    ) -> Result<Periodic> {
        let costs = self.platform.activity_costs(self.computing());
        let mut done = vec![Fraction::ZERO; costs.len()];
        let mut ends: Vec<Vec<Fraction>> = Vec::with_capacity(slots.len());
        let mut below = UBig::ONE;
        for slot in &slots {
            let mut slot_ends = Vec::with_capacity(slot.edges.len());
            for &e in &slot.edges {
                done[e] += &slot.share / &costs[e];
                if below.bit_len() < 64 {
                    below = lcm(&below, done[e].0.denominator());
                }
                slot_ends.push(done[e].clone());
            }
            ends.push(slot_ends);
        }
        let elements =
            elements.unwrap_or_else(|| message_elements(counts.iter().sum(), &below, tight));
        let mut at = vec![0; costs.len()];
        let mut cuts = Vec::with_capacity(slots.len() + 1);
        // Combinations that take no time need no slot and come first.
        let free = self.free_combinations(&counts, elements);
        if !free.is_empty() {
            cuts.push(Cut { edges: free });
        }
        let mut period = Fraction::ZERO;
        for (slot, ends) in slots.iter().zip(&ends) {
            let mut cut = Vec::new();
            let mut time = Fraction::ZERO;
            for (&e, end) in slot.edges.iter().zip(ends) {
                let end: IBig = (end * whole(elements)).0.round();
                let end = usize::try_from(&end).unwrap_or(at[e]).max(at[e]);
                if end > at[e] {
                    time = time.max(&costs[e] * whole(end - at[e]));
                    cut.push((e, at[e]..end));
                    at[e] = end;
                }
            }
            if !cut.is_empty() {
                period += time / whole(elements);
                cuts.push(Cut { edges: cut });
            }
        }
        let (_, lag) = items(self, &counts, &cuts, elements);
        Ok(Periodic {
            solution: self.clone(),
            counts,
            slots: cuts,
            elements,
            period,
            costs,
            lag,
        })
    }

    /// Returns the combinations of a period that take no time, in elements.
    fn free_combinations(
        &self,
        counts: &[usize],
        elements: usize,
    ) -> Vec<(usize, std::ops::Range<usize>)> {
        let edges = self.platform.edges().len();
        let mut all = vec![0; self.platform.nodes()];
        for ((route, _), count) in self.routes.iter().zip(counts) {
            for (v, combinations) in route.combinations() {
                all[v] += combinations * count * elements;
            }
        }
        let is_free = |v: usize| self.platform.compute().get(v).is_none_or(Fraction::is_zero);
        let free = all.into_iter().enumerate();
        let free = free.filter(|&(v, all)| all > 0 && is_free(v));
        free.map(|(v, all)| (edges + v, 0..all)).collect()
    }
}

/// Returns the slots with shares `time` times as long.
fn stretched(slots: &[Slot], time: &Fraction) -> Vec<Slot> {
    let slot = |s: &Slot| Slot::new(s.edges.clone(), &s.share * time);
    slots.iter().map(slot).collect()
}

/// Returns the number of elements of a message: `exact` if messages can be cut exactly then and it
/// is not too long, with `tight` also if it is longer than usual.
fn message_elements(operations: usize, exact: &UBig, tight: bool) -> usize {
    let most = MAX_ELEMENTS / operations.max(1);
    let usual = most.clamp(ELEMENTS.0, ELEMENTS.1);
    match usize::try_from(exact) {
        Ok(exact) if exact <= usual || tight && exact <= most => exact,
        _ => usual,
    }
}

impl Periodic {
    /// The length of the period in time units.
    pub fn period(&self) -> &Fraction {
        &self.period
    }

    /// The number of operations of a period.
    pub fn operations(&self) -> usize {
        self.counts.iter().sum()
    }

    /// The number of operations of a period on each of the solution's routes.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// The number of elements of a message.
    pub fn elements(&self) -> usize {
        self.elements
    }

    /// The solution that the schedule realises.
    pub fn solution(&self) -> &Solution {
        &self.solution
    }

    /// Operations per time unit.
    pub fn throughput(&self) -> Fraction {
        whole(self.operations()) / &self.period
    }

    /// The fraction of the optimal throughput that rounding costs.
    pub fn loss(&self) -> Fraction {
        whole(1) - self.throughput() / &self.solution.throughput
    }

    /// The largest number of edges that a message passes; where combining takes time or operands
    /// keep their order, the longest chain of tasks.
    pub fn depth(&self) -> usize {
        let used = self.solution.routes.iter().zip(&self.counts);
        let used = used.filter(|(_, count)| **count > 0);
        let depths = used.map(|((route, _), _)| route.depth(&self.solution.platform));
        depths.max().unwrap_or(0)
    }

    /// The number of transfers (and combinations) of a period.
    pub fn transfers(&self) -> usize {
        self.slots.iter().map(|s| s.edges.len()).sum()
    }

    /// Returns start, length and transfers of each slot of a period. For a combination, sender and
    /// receiver are the node that combines.
    #[allow(
        clippy::type_complexity,
        reason = "start, length, and sender, receiver and time of each transfer"
    )]
    pub fn slots(&self) -> Vec<(Fraction, Fraction, Vec<(usize, usize, Fraction)>)> {
        let mut start = Fraction::ZERO;
        let slots = self.slots.iter().map(|slot| {
            let transfers: Vec<(usize, usize, Fraction)> = (slot.edges.iter())
                .map(|(e, range)| {
                    let (from, to) = self.solution.link(*e);
                    let cost = self.costs.get(*e).cloned().unwrap_or_default();
                    (from, to, cost * whole(range.len()) / whole(self.elements))
                })
                .collect();
            let length = transfers.iter().map(|t| &t.2).max();
            let length = length.cloned().unwrap_or_default();
            let begin = start.clone();
            start += &length;
            (begin, length, transfers)
        });
        slots.collect()
    }

    /// The largest number of periods that an operation takes from its first transfer to its last:
    /// at most [`Periodic::depth`].
    pub fn lag(&self) -> usize {
        self.lag
    }

    /// Returns the number of periods of [`Periodic::schedule`], including start-up and clean-up.
    pub(super) fn periods(&self, operations: usize) -> usize {
        operations.div_ceil(self.operations()) + self.lag - 1
    }

    /// Returns an upper bound of the model time of [`Periodic::schedule`], at most `lag` periods
    /// above `operations / throughput`: ranks do not wait for the end of a slot.
    pub fn time_bound(&self, operations: usize) -> Fraction {
        whole(self.periods(operations)) * &self.period
    }

    /// Returns the cost model under which [`Periodic::schedule`] takes the times of the platform. A
    /// time unit of the platform is `unit` time units of the model.
    pub fn cost(&self, unit: f64) -> Result<CostModel> {
        let platform = &self.solution.platform;
        let platform = platform.turned_if(self.solution.is_reversed());
        platform.cost_model(self.elements, unit)
    }
}
