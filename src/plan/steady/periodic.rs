//! Rates as a periodic schedule: what every period carries. ([`unroll`](super::unroll) makes an
//! ordinary schedule of it.)
//!
//! In every period each route performs a whole number of operations. The slots follow one another;
//! in a slot each of its edges carries one transfer, as many elements as fit: the messages that the
//! edge carries in a period, one after the other, are cut where slots end. What a node passes on it
//! received in an earlier slot, of the same period or of the one before; [`Periodic::lag`] is the
//! number of periods that an operation takes, no more than the depth of its route. So `N`
//! operations take `ceil(N / operations of a period) + lag - 1` periods at most; ranks do not wait
//! for the end of a slot, so it may be less.
//!
//! Elements are whole: where a cut would fall within one it moves to the next boundary, and the
//! slots become a little longer. [`Periodic::throughput`] takes that into account;
//! [`Periodic::loss`] says how much it is.

use dashu_int::ops::{BitTest, Gcd};
use dashu_int::{IBig, UBig};

use super::colouring::{Slotted, general_slots};
use super::fraction::{
    Fraction, common_denominator, lcm, magnitude, scaled, to_f64, to_usize, whole,
};
use super::ports::{PortGraph, Slot, bipartite_slots};
use super::problem::Solution;
use super::route::Route;
use super::scan::time_of;
use super::single::best_single;
use super::solve::edge_loads;
use crate::cost::CostModel;
use crate::error::{Error, Result};

/// Operations of a period above which rates are rounded, unless a longest period is given.
const MAX_OPERATIONS: usize = 1000;
/// Most elements of a message, where that would not be enough to cut it exactly: so many in a
/// period, within these limits. (With many messages in a period cuts are few beside them.)
const MAX_ELEMENTS: usize = 1 << 16;
const ELEMENTS: (usize, usize) = (64, 4096);
/// What part of the best rounded rate is enough for a shorter period, unless a longest one is
/// given: it has a shorter start-up.
const WORTH: f64 = 0.995;
/// Lengths of periods that are tried when rates are rounded.
const TRIES: usize = 400;
/// Of what was rounded to a longest period, so much is cut to elements, on a platform of one node;
/// and at least so much on any.
const MAX_ROUNDED: usize = 400;
const MIN_ROUNDED: usize = 10;

/// A schedule that repeats itself.
#[derive(Debug, Clone)]
pub struct Periodic {
    pub(super) solution: Solution,
    pub(super) counts: Vec<usize>,
    pub(super) slots: Vec<Cut>,
    pub(super) elements: usize,
    period: Fraction,
    /// Time of one message on each edge, and then of one combination on each node.
    costs: Vec<Fraction>,
    /// Periods that an operation takes at most, from its start to its end.
    lag: usize,
}

/// A slot: for each edge (and then for each node's combinations), which of its elements of the
/// period it carries.
#[derive(Debug, Clone)]
pub(super) struct Cut {
    pub(super) edges: Vec<(usize, std::ops::Range<usize>)>,
}

impl Solution {
    /// The rates as a periodic schedule.
    ///
    /// `longest` is the longest period in time units; rates are rounded to fit, if need be, the
    /// best single route being one to round to: so where its messages can be cut exactly the
    /// outcome is no worse than that. Without it they are rounded only where a period would
    /// have more than a thousand operations. `elements` is the length of a message; without it, one
    /// that can be cut exactly where slots end, or 64 to 4096 elements.
    ///
    /// # Errors
    /// When no operation fits into the period, or a message has no elements.
    pub fn periodic(
        &self,
        longest: Option<&Fraction>,
        elements: Option<usize>,
    ) -> Result<Periodic> {
        if elements == Some(0) {
            return Err(Error::usage("a message needs at least one element"));
        }
        // The shortest period in which every route has whole operations; it need not be a whole
        // number.
        let below = common_denominator(self.routes.iter().map(|(_, x)| x));
        let common = self
            .routes
            .iter()
            .fold(UBig::ZERO, |g, (_, x)| g.gcd(magnitude(&scaled(x, &below))));
        let below = Fraction::from(below) / Fraction::from(common);
        let operations = &below * &self.throughput;
        let fits = match longest {
            Some(longest) => below <= *longest && operations <= whole(100 * MAX_OPERATIONS),
            None => operations <= whole(MAX_OPERATIONS),
        };
        if fits {
            let count = |(_, rate): &(Route, Fraction)| {
                let count = rate * &below;
                to_usize(count.numerator()).unwrap_or(0)
            };
            let slots = self.slots.iter().map(|s| Slot {
                edges: s.edges.clone(),
                share: &s.share * &below,
            });
            let counts = self.routes.iter().map(count).collect();
            let periodic = self.cut(counts, slots.collect(), elements, longest.is_some())?;
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

    /// The best of some roundings whose period, cut to whole elements, is no longer than `longest`.
    fn within(&self, longest: &Fraction, elements: Option<usize>) -> Result<Periodic> {
        let mut all = self.clone();
        let single = best_single(self)?;
        if all.routes.iter().all(|(route, _)| *route != single.route) {
            all.routes.push((single.route.clone(), Fraction::ZERO));
        }
        let most = whole(100 * MAX_OPERATIONS) / &self.throughput;
        let most = longest.clone().min(most);
        let mut tried: Vec<(f64, Vec<usize>)> = Vec::new();
        let mut add = |counts: Vec<usize>| {
            let operations: usize = counts.iter().sum();
            let time = all.port_time(&counts);
            if operations > 0 && time > 0.0 && tried.last().is_none_or(|(_, last)| *last != counts)
            {
                tried.push((operations as f64 / time, counts));
            }
        };
        let alone = all.routes.iter();
        let alone = alone.map(|(route, _)| usize::from(*route == single.route));
        add(alone.collect());
        for i in 1..=TRIES {
            let period = &most * whole(i) / whole(TRIES);
            let down = |(_, rate): &(Route, Fraction)| to_usize(&(rate * &period).floor());
            let down: Vec<usize> = all.routes.iter().map(|r| down(r).unwrap_or(0)).collect();
            let mut filled = down.clone();
            all.fill(&mut filled, to_f64(&period));
            add(down);
            add(filled);
        }
        tried.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut left = (MAX_ROUNDED / all.platform.nodes()).max(MIN_ROUNDED);
        let mut best: Option<Periodic> = None;
        // What ports allow may still not be possible, and cutting takes its part: so the best
        // estimate need not be the best.
        for (rate, counts) in tried {
            let enough = |p: &Periodic| to_f64(&p.throughput()) >= rate * (1.0 - 1e-9);
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
            Error::usage(format!(
                "no operation fits into a period of {longest}{}: the throughput is {}, that of the best single tree {}",
                match elements {
                    Some(elements) => format!(", with messages of {elements} elements"),
                    None => String::new(),
                },
                self.throughput,
                single.throughput
            ))
        })
    }

    /// How long so many operations on the routes take, and slots for them.
    fn slots_of(&self, counts: &[usize]) -> Result<(Fraction, Vec<Slot>)> {
        let used: Vec<(Route, Fraction)> = (self.routes.iter().zip(counts))
            .map(|((route, _), &count)| (route.clone(), whole(count)))
            .collect();
        let costs = self.platform.activity_costs(self.computing());
        let loads = edge_loads(&self.platform, &costs, &used);
        let graph = PortGraph::new(&self.platform, self.ports, self.computing());
        let time = time_of(&graph, &loads)?;
        if self.ports.is_bidirectional() {
            return Ok((time, bipartite_slots(&graph, &loads)));
        }
        let shares: Vec<Fraction> = loads.iter().map(|w| w / &time).collect();
        let slots = match general_slots(&graph, &shares, &[])? {
            Slotted::Fits(slots) => slots,
            Slotted::Violates(_) => {
                return Err(Error::system("rounded rates do not fit into their period"));
            }
        };
        let slots = slots.into_iter().map(|s| Slot {
            share: s.share * &time,
            edges: s.edges,
        });
        let slots = slots.collect();
        Ok((time, slots))
    }

    /// Whole numbers of operations for a period that is not too long, and slots for them.
    fn rounded(&self) -> Result<(Vec<usize>, Vec<Slot>)> {
        let longest = whole(MAX_OPERATIONS) / &self.throughput;
        let mut tried: Vec<(f64, Vec<usize>)> = Vec::new();
        for i in 1..=TRIES {
            let period = &longest * whole(i) / whole(TRIES);
            let mut counts: Vec<usize> = (self.routes.iter())
                .map(|(_, rate)| to_usize(&(rate * &period).floor()).unwrap_or(0))
                .collect();
            let time = if self.ports.is_bidirectional() {
                self.fill(&mut counts, to_f64(&period));
                self.port_time(&counts).min(to_f64(&period))
            } else {
                to_f64(&period)
            };
            let all: usize = counts.iter().sum();
            let rate = all as f64 / time.max(f64::MIN_POSITIVE);
            // A longer period must be worth it.
            if all > 0 && tried.last().is_none_or(|(r, _)| rate > r * (1.0 + 1e-9)) {
                tried.push((rate, counts));
            }
        }
        let enough = tried.last().map_or(0.0, |(rate, _)| rate * WORTH);
        let mut tried = tried.into_iter();
        let Some((_, counts)) = tried.find(|(rate, _)| *rate >= enough) else {
            return Err(Error::system("no operation fits into a long period"));
        };
        let (_, slots) = self.slots_of(&counts)?;
        Ok((counts, slots))
    }

    /// One more operation on one route after the other, as long as every port has the time.
    fn fill(&self, counts: &mut [usize], period: f64) {
        let mut order: Vec<usize> = (0..counts.len()).collect();
        let missing = |i: usize| to_f64(&self.routes[i].1) * period - counts[i] as f64;
        order.sort_by(|&a, &b| missing(b).total_cmp(&missing(a)));
        for i in order {
            counts[i] += 1;
            if self.port_time(counts) > period * (1.0 + 1e-12) {
                counts[i] -= 1;
            }
        }
    }

    /// How long the busiest port is busy.
    fn port_time(&self, counts: &[usize]) -> f64 {
        let graph = PortGraph::new(&self.platform, self.ports, self.computing());
        let costs = self.platform.activity_costs(self.computing());
        let mut busy = vec![0.0; graph.len()];
        for ((route, _), &count) in self.routes.iter().zip(counts) {
            if count == 0 {
                continue;
            }
            for (e, messages) in route.activities(self.platform.edges().len()) {
                let (Some(cost), Some(&(a, b))) = (costs.get(e), graph.links().get(e)) else {
                    continue;
                };
                let time = to_f64(cost) * (messages * count) as f64;
                busy[a] += time;
                busy[b] += time;
            }
        }
        busy.into_iter().fold(0.0, f64::max)
    }

    /// Cuts the messages of a period where slots end; `tight`ly, if messages may be longer for
    /// that.
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
                    below = lcm(&below, done[e].denominator());
                }
                slot_ends.push(done[e].clone());
            }
            ends.push(slot_ends);
        }
        let operations: usize = counts.iter().sum();
        let most = (MAX_ELEMENTS / operations.max(1)).clamp(ELEMENTS.0, ELEMENTS.1);
        let elements = match (elements, usize::try_from(&below)) {
            (Some(given), _) => given,
            (None, Ok(exact)) if exact <= most => exact,
            (None, Ok(exact)) if tight && exact <= MAX_ELEMENTS / operations.max(1) => exact,
            _ => most,
        };
        let mut at = vec![0; costs.len()];
        let mut cuts = Vec::with_capacity(slots.len() + 1);
        // What takes no time needs no slot; it comes first.
        let free = self.free_combinations(&counts, elements);
        if !free.is_empty() {
            cuts.push(Cut { edges: free });
        }
        let mut period = Fraction::ZERO;
        for (slot, ends) in slots.iter().zip(&ends) {
            let mut cut = Vec::new();
            let mut time = Fraction::ZERO;
            for (&e, end) in slot.edges.iter().zip(ends) {
                let end: IBig = (end * whole(elements)).round();
                let end = to_usize(&end).unwrap_or(at[e]).max(at[e]);
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
        let mut periodic = Periodic {
            solution: self.clone(),
            counts,
            slots: cuts,
            elements,
            period,
            costs,
            lag: 1,
        };
        periodic.lag = periodic.items().1;
        Ok(periodic)
    }

    /// The combinations of a period that take no time, in elements.
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

impl Periodic {
    /// Length of the period in time units.
    pub fn period(&self) -> &Fraction {
        &self.period
    }

    /// Operations of a period.
    pub fn operations(&self) -> usize {
        self.counts.iter().sum()
    }

    /// Operations of a period on each of the solution's routes.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// Elements of a message.
    pub fn elements(&self) -> usize {
        self.elements
    }

    /// The solution that it realises.
    pub fn solution(&self) -> &Solution {
        &self.solution
    }

    /// Operations a time unit.
    pub fn throughput(&self) -> Fraction {
        whole(self.operations()) / &self.period
    }

    /// The part of the optimal throughput that rounding costs.
    pub fn loss(&self) -> Fraction {
        whole(1) - self.throughput() / &self.solution.throughput
    }

    /// The most edges that a message passes; the most tasks in a row, where combining takes time or
    /// operands keep their order.
    pub fn depth(&self) -> usize {
        let used = self.solution.routes.iter().zip(&self.counts);
        let used = used.filter(|(_, count)| **count > 0);
        let depths = used.map(|((route, _), _)| route.depth(&self.solution.platform));
        depths.max().unwrap_or(0)
    }

    /// Time of one message on an edge, or of one combination.
    fn time_of(&self, activity: usize) -> Fraction {
        self.costs.get(activity).cloned().unwrap_or(Fraction::ZERO)
    }

    /// Transfers (and combinations) of a period.
    pub fn transfers(&self) -> usize {
        self.slots.iter().map(|s| s.edges.len()).sum()
    }

    /// Start, length and edges of each slot of a period: sender, receiver and how long the transfer
    /// takes. A node that combines is named twice.
    #[allow(
        clippy::type_complexity,
        reason = "start, end, and who sends to whom for how long"
    )]
    pub fn slots(&self) -> Vec<(Fraction, Fraction, Vec<(usize, usize, Fraction)>)> {
        let edges = self.solution.platform.edges().len();
        let mut start = Fraction::ZERO;
        let slots = self.slots.iter().map(|slot| {
            let transfers: Vec<(usize, usize, Fraction)> = (slot.edges.iter())
                .map(|(e, range)| {
                    let (from, to) = match e.checked_sub(edges) {
                        None => self.solution.link(*e),
                        Some(v) => (v, v),
                    };
                    let time = self.time_of(*e) * whole(range.len()) / whole(self.elements);
                    (from, to, time)
                })
                .collect();
            let length = transfers
                .iter()
                .map(|t| t.2.clone())
                .max()
                .unwrap_or_default();
            let begin = start.clone();
            start += &length;
            (begin, length, transfers)
        });
        slots.collect()
    }

    /// Periods that an operation takes from its first transfer to its last, at most: no more than
    /// [`Periodic::depth`].
    pub fn lag(&self) -> usize {
        self.lag
    }

    /// Periods of [`Periodic::schedule`], those of start-up and clean-up included.
    pub(super) fn periods(&self, operations: usize) -> usize {
        operations.div_ceil(self.operations()) + self.lag - 1
    }

    /// The model time of [`Periodic::schedule`] is no more than this: `(ceil(operations / those of
    /// a period) + lag - 1) * period`. Beyond `operations / throughput` that is at most `lag`
    /// periods, however many operations there are.
    pub fn time_bound(&self, operations: usize) -> Fraction {
        whole(self.periods(operations)) * &self.period
    }

    /// The costs under which [`Periodic::schedule`] takes the times of the platform, in units of
    /// `unit` a time unit.
    ///
    /// # Errors
    /// As [`Platform::cost_model`](super::Platform::cost_model).
    pub fn cost(&self, unit: f64) -> Result<CostModel> {
        let platform = &self.solution.platform;
        if self.solution.is_reversed() {
            platform.reversed().cost_model(self.elements, unit)
        } else {
            platform.cost_model(self.elements, unit)
        }
    }
}
