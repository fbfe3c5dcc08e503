//! Rates as a periodic schedule, and that as an ordinary [`Schedule`] for any number of operations.
//!
//! In every period each route performs a whole number of operations. The slots follow one another; in a slot each of its edges carries one
//! transfer, as many elements as fit: the messages that the edge carries in a period, one after the other, are cut where slots end. What
//! a node passes on it received in an earlier period: an edge at depth `d` of a route works `d - 1` periods after the route's first
//! edges. So `N` operations take `ceil(N / operations of a period) + depth - 1` periods at most; ranks do not wait for the end of a slot,
//! so it may be less.
//!
//! Elements are whole: where a cut would fall within one it moves to the next boundary, and the slots become a little longer.
//! [`Periodic::throughput`] takes that into account; [`Periodic::loss`] says how much it is.

use dashu_int::ops::{BitTest, Gcd};
use dashu_int::{IBig, UBig};

use super::colouring::{Slotted, general_slots};
use super::fraction::{
    Fraction, common_denominator, lcm, magnitude, scaled, to_f64, to_usize, whole,
};
use super::ports::{Slot, bipartite_slots};
use super::problem::{Operation, Solution};
use super::route::Route;
use super::solve::edge_loads;
use crate::collective::Collective;
use crate::cost::CostModel;
use crate::error::{Error, Result};
use crate::schedule::{Schedule, Span, Spans, Step};

/// Operations of a period above which rates are rounded, unless a longest period is given.
const MOST_OPERATIONS: usize = 1000;
/// Elements of a message, where that would not be enough to cut it exactly.
const MOST_ELEMENTS: usize = 4096;
/// Longest buffers and programs of a schedule, all ranks together.
const MOST_TOTAL: usize = 1 << 31;
const MOST_STEPS: usize = 50_000_000;
/// Lengths of periods that are tried when rates are rounded.
const TRIES: usize = 400;

/// A schedule that repeats itself.
#[derive(Debug, Clone)]
pub struct Periodic {
    solution: Solution,
    counts: Vec<usize>,
    slots: Vec<Cut>,
    elements: usize,
    period: Fraction,
}

/// A slot: for each edge, which of its elements of the period it carries.
#[derive(Debug, Clone)]
struct Cut {
    edges: Vec<(usize, std::ops::Range<usize>)>,
}

/// A message that an edge carries in every period.
#[derive(Debug, Clone, Copy)]
struct Item {
    /// Periods after the first.
    delay: usize,
    /// Which of the period's operations it belongs to.
    operation: usize,
    /// Which block of the vector.
    block: usize,
}

impl Solution {
    /// The rates as a periodic schedule.
    ///
    /// `longest` is the longest period in time units; rates are rounded to fit, if need be. Without it they are rounded only where
    /// a period would have more than a thousand operations. `elements` is the length of a message; without it, one that can be cut
    /// exactly where slots end, or 4096 elements.
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
        // The shortest period in which every route has whole operations; it need not be a whole number.
        let below = common_denominator(self.routes.iter().map(|(_, x)| x));
        let common = self
            .routes
            .iter()
            .fold(UBig::ZERO, |g, (_, x)| g.gcd(magnitude(&scaled(x, &below))));
        let below = Fraction::from(below) / Fraction::from(common);
        let operations = &below * &self.throughput;
        let fits = match longest {
            Some(longest) => below <= *longest && operations <= whole(100 * MOST_OPERATIONS),
            None => operations <= whole(MOST_OPERATIONS),
        };
        let (counts, slots) = if fits {
            let count = |(_, rate): &(Route, Fraction)| {
                let count = rate * &below;
                to_usize(count.numerator()).unwrap_or(0)
            };
            let slots = self.slots.iter().map(|s| Slot {
                edges: s.edges.clone(),
                share: &s.share * &below,
            });
            (self.routes.iter().map(count).collect(), slots.collect())
        } else {
            self.rounded(longest)?
        };
        self.cut(counts, slots, elements)
    }

    /// Whole numbers of operations for periods no longer than `longest`, the best of some, and slots for them.
    fn rounded(&self, longest: Option<&Fraction>) -> Result<(Vec<usize>, Vec<Slot>)> {
        let default = whole(MOST_OPERATIONS) / &self.throughput;
        let longest = longest.cloned().unwrap_or(default);
        let most = whole(100 * MOST_OPERATIONS) / &self.throughput;
        let longest = longest.min(most);
        let mut best: Option<(f64, Vec<usize>, Fraction)> = None;
        for i in 1..=TRIES {
            let period = &longest * whole(i) / whole(TRIES);
            let mut counts: Vec<usize> = (self.routes.iter())
                .map(|(_, rate)| to_usize(&(rate * &period).floor()).unwrap_or(0))
                .collect();
            if self.ports.is_bidirectional() {
                self.fill(&mut counts, to_f64(&period));
            }
            let all: usize = counts.iter().sum();
            let time = self.port_time(&counts).min(to_f64(&period));
            let rate = if self.ports.is_bidirectional() && time > 0.0 {
                all as f64 / time
            } else {
                all as f64 / to_f64(&period)
            };
            // A longer period must be worth it.
            if all > 0 && best.as_ref().is_none_or(|(r, ..)| rate > r * (1.0 + 1e-9)) {
                best = Some((rate, counts, period));
            }
        }
        let Some((_, counts, period)) = best else {
            return Err(Error::usage(format!(
                "no operation fits into a period of {longest}: the throughput is {}",
                self.throughput
            )));
        };
        let used: Vec<(Route, Fraction)> = (self.routes.iter().zip(&counts))
            .map(|((route, _), &count)| (route.clone(), whole(count)))
            .collect();
        let loads = edge_loads(&self.platform, &used);
        if self.ports.is_bidirectional() {
            return Ok((counts, bipartite_slots(&self.platform, &loads)));
        }
        let shares: Vec<Fraction> = loads.iter().map(|w| w / &period).collect();
        let slots = match general_slots(&self.platform, &shares, &[])? {
            Slotted::Fits(slots) => slots,
            Slotted::Violates(_) => {
                return Err(Error::system("rounded rates do not fit into their period"));
            }
        };
        let slots = slots.into_iter().map(|s| Slot {
            share: s.share * &period,
            edges: s.edges,
        });
        Ok((counts, slots.collect()))
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
        let n = self.platform.nodes();
        let bidirectional = self.ports.is_bidirectional();
        let mut busy = vec![0.0; 2 * n];
        for ((route, _), &count) in self.routes.iter().zip(counts) {
            if count == 0 {
                continue;
            }
            for (e, messages) in route.loads() {
                let edge = &self.platform.edges()[e];
                let time = to_f64(&edge.cost) * (messages * count) as f64;
                busy[edge.src] += time;
                busy[edge.dst + if bidirectional { n } else { 0 }] += time;
            }
        }
        busy.into_iter().fold(0.0, f64::max)
    }

    /// Cuts the messages of a period where slots end.
    fn cut(
        &self,
        counts: Vec<usize>,
        slots: Vec<Slot>,
        elements: Option<usize>,
    ) -> Result<Periodic> {
        let edges = self.platform.edges();
        let mut done = vec![Fraction::ZERO; edges.len()];
        let mut ends: Vec<Vec<Fraction>> = Vec::with_capacity(slots.len());
        let mut below = UBig::ONE;
        for slot in &slots {
            let mut slot_ends = Vec::with_capacity(slot.edges.len());
            for &e in &slot.edges {
                done[e] += &slot.share / &edges[e].cost;
                if below.bit_len() < 64 {
                    below = lcm(&below, done[e].denominator());
                }
                slot_ends.push(done[e].clone());
            }
            ends.push(slot_ends);
        }
        let elements = match (elements, usize::try_from(&below)) {
            (Some(given), _) => given,
            (None, Ok(exact)) if exact <= MOST_ELEMENTS => exact,
            _ => MOST_ELEMENTS,
        };
        let mut at = vec![0; edges.len()];
        let mut cuts = Vec::with_capacity(slots.len());
        let mut period = Fraction::ZERO;
        for (slot, ends) in slots.iter().zip(&ends) {
            let mut cut = Vec::new();
            let mut time = Fraction::ZERO;
            for (&e, end) in slot.edges.iter().zip(ends) {
                let end: IBig = (end * whole(elements)).round();
                let end = to_usize(&end).unwrap_or(at[e]).max(at[e]);
                if end > at[e] {
                    time = time.max(&edges[e].cost * whole(end - at[e]));
                    cut.push((e, at[e]..end));
                    at[e] = end;
                }
            }
            if !cut.is_empty() {
                period += time / whole(elements);
                cuts.push(Cut { edges: cut });
            }
        }
        Ok(Periodic {
            solution: self.clone(),
            counts,
            slots: cuts,
            elements,
            period,
        })
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

    /// The most edges that a message passes.
    pub fn depth(&self) -> usize {
        let used = self.solution.routes.iter().zip(&self.counts);
        let used = used.filter(|(_, count)| **count > 0);
        let depths = used.map(|((route, _), _)| route.depth(&self.solution.platform));
        depths.max().unwrap_or(0)
    }

    /// Transfers of a period.
    pub fn transfers(&self) -> usize {
        self.slots.iter().map(|s| s.edges.len()).sum()
    }

    /// Start, length and edges of each slot of a period: sender, receiver and how long the transfer takes.
    #[allow(
        clippy::type_complexity,
        reason = "start, end, and who sends to whom for how long"
    )]
    pub fn slots(&self) -> Vec<(Fraction, Fraction, Vec<(usize, usize, Fraction)>)> {
        let edges = self.solution.platform.edges();
        let mut start = Fraction::ZERO;
        let slots = self.slots.iter().map(|slot| {
            let transfers: Vec<(usize, usize, Fraction)> = (slot.edges.iter())
                .map(|(e, range)| {
                    let (from, to) = self.solution.link(*e);
                    let time = &edges[*e].cost * whole(range.len()) / whole(self.elements);
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

    /// The model time of [`Periodic::schedule`] is no more than this: `(ceil(operations / those of a period) + depth - 1) * period`.
    pub fn time_bound(&self, operations: usize) -> Fraction {
        let periods = operations.div_ceil(self.operations()) + self.depth().max(1) - 1;
        whole(periods) * &self.period
    }

    /// The costs under which [`Periodic::schedule`] takes the times of the platform, in units of `unit` a time unit.
    ///
    /// # Errors
    /// As [`Platform::cost_model`](super::Platform::cost_model).
    pub fn cost(&self, unit: f64) -> Result<CostModel> {
        let platform = &self.solution.platform;
        if self.solution.operation.is_reversed() {
            platform.reversed().cost_model(self.elements, unit)
        } else {
            platform.cost_model(self.elements, unit)
        }
    }

    /// A schedule of `operations` operations: one collective over a vector (or blocks) of `operations` times
    /// [`Periodic::elements`] elements.
    ///
    /// # Errors
    /// When there is no operation, or it would be too large.
    pub fn schedule(&self, operations: usize) -> Result<Schedule> {
        if operations == 0 {
            return Err(Error::usage("a series needs at least one message"));
        }
        let solution = &self.solution;
        let places = Places::new(solution, operations.saturating_mul(self.elements));
        let ranks = solution.platform.nodes();
        let total = places.buffer().saturating_mul(ranks);
        let periods = operations.div_ceil(self.operations()) + self.depth().max(1) - 1;
        let steps = periods.saturating_mul(2 * self.transfers());
        if total > MOST_TOTAL || steps > MOST_STEPS {
            return Err(Error::usage(format!(
                "{operations} operations of {} elements are too many for one schedule ({steps} steps, {total} elements of buffers): take fewer, or a smaller period",
                self.elements
            )));
        }
        let mut builder = Schedule::builder(ranks, solution.ports, places.collective());
        for rank in 0..ranks {
            let (input, output) = places.layout(rank);
            builder.layout(rank, places.buffer(), input, output);
        }
        let items = self.items();
        for period in 0..periods {
            for slot in &self.slots {
                let mut receives = Vec::new();
                for (e, range) in &slot.edges {
                    let spans = self.spans(&items[*e], range, period, operations, &places);
                    if spans.is_empty() {
                        continue;
                    }
                    let edge = &solution.platform.edges()[*e];
                    builder.step(edge.src, Step::send(edge.dst, spans.clone()));
                    receives.push((edge.dst, Step::recv(edge.src, spans)));
                }
                for (rank, step) in receives {
                    builder.step(rank, step);
                }
            }
        }
        let schedule = builder.build()?;
        if solution.operation.is_reversed() {
            schedule.into_reversed()
        } else {
            Ok(schedule)
        }
    }

    /// One period in the middle of a series, for a picture: as [`Periodic::schedule`], but a node may send what it has not received, and the
    /// whole proves nothing.
    ///
    /// # Errors
    /// As [`Periodic::schedule`].
    pub fn schedule_of_period(&self) -> Result<Schedule> {
        let solution = &self.solution;
        let reversed = solution.operation.is_reversed();
        let ranks = solution.platform.nodes();
        let root = solution.platform.source();
        let mut builder = Schedule::builder(ranks, solution.ports, Collective::Broadcast { root });
        let edges = solution.platform.edges();
        // Every edge has a place of its own, so that nothing waits for anything but its port.
        let mut first = vec![0; edges.len()];
        let mut len = 0;
        for slot in &self.slots {
            for (e, range) in &slot.edges {
                if range.start == 0 {
                    first[*e] = len;
                    len += self.carried(*e);
                }
            }
        }
        for rank in 0..ranks {
            builder.layout(rank, len, [], []);
        }
        let slots: Vec<&Cut> = if reversed {
            self.slots.iter().rev().collect()
        } else {
            self.slots.iter().collect()
        };
        for slot in slots {
            for (e, range) in &slot.edges {
                let (from, to) = solution.link(*e);
                let span = Span::new(first[*e] + range.start, range.len());
                builder.step(from, Step::send(to, span));
            }
            for (e, range) in &slot.edges {
                let (from, to) = solution.link(*e);
                let span = Span::new(first[*e] + range.start, range.len());
                builder.step(to, Step::recv(from, span));
            }
        }
        builder.build()
    }

    /// Elements that an edge carries in a period.
    fn carried(&self, edge: usize) -> usize {
        let cuts = self.slots.iter().flat_map(|s| &s.edges);
        let of_edge = cuts.filter(|(e, _)| *e == edge);
        of_edge.map(|(_, range)| range.end).max().unwrap_or(0)
    }

    /// By edge, the messages of a period in order.
    fn items(&self) -> Vec<Vec<Item>> {
        let platform = &self.solution.platform;
        let places = Places::new(&self.solution, 0);
        let mut items = vec![Vec::new(); platform.edges().len()];
        let mut operation = 0;
        for ((route, _), &count) in self.solution.routes.iter().zip(&self.counts) {
            for _ in 0..count {
                for (p, part) in route.parts.iter().enumerate() {
                    let blocks = places.blocks(part, platform);
                    let depths = part.depths(platform);
                    for ((&e, depth), blocks) in part.edges.iter().zip(depths).zip(blocks) {
                        items[e].extend(blocks.into_iter().map(|block| Item {
                            delay: depth - 1,
                            operation,
                            block: if places.personal { block } else { p },
                        }));
                    }
                }
                operation += 1;
            }
        }
        items
    }

    /// Where the elements `range` of an edge's messages stand, in period `period`; neighbours joined.
    fn spans(
        &self,
        items: &[Item],
        range: &std::ops::Range<usize>,
        period: usize,
        operations: usize,
        places: &Places,
    ) -> Spans {
        let mut spans = Spans::new();
        let mut at = range.start;
        while at < range.end {
            let item = items[at / self.elements];
            let from = at % self.elements;
            let to = self.elements.min(from + range.end - at);
            at += to - from;
            let Some(batch) = period.checked_sub(item.delay) else {
                continue;
            };
            let operation = batch * self.operations() + item.operation;
            if operation >= operations {
                continue;
            }
            let offset = places.offset(item.block) + operation * self.elements + from;
            match spans.last_mut() {
                Some(last) if last.end() == offset => last.len += to - from,
                _ => spans.push(Span::new(offset, to - from)),
            }
        }
        spans
    }
}

/// Where blocks stand in the buffers: at the same place in all of them.
struct Places<'a> {
    operation: Operation,
    personal: bool,
    ranks: usize,
    source: usize,
    targets: &'a [usize],
    /// Elements of a block.
    len: usize,
}

impl<'a> Places<'a> {
    fn new(solution: &'a Solution, len: usize) -> Places<'a> {
        let operation = solution.operation;
        Places {
            operation,
            personal: matches!(
                operation,
                Operation::Scatter | Operation::Gather | Operation::Alltoall
            ),
            ranks: solution.platform.nodes(),
            source: solution.platform.source(),
            targets: solution.platform.targets(),
            len,
        }
    }

    /// Number of blocks.
    fn count(&self) -> usize {
        match self.operation {
            Operation::Broadcast | Operation::Multicast | Operation::Reduce => 1,
            Operation::Scatter | Operation::Gather => self.targets.len(),
            Operation::Allgather => self.ranks,
            Operation::Alltoall => self.ranks * self.ranks,
        }
    }

    fn buffer(&self) -> usize {
        self.count().saturating_mul(self.len)
    }

    fn offset(&self, block: usize) -> usize {
        block * self.len
    }

    fn span(&self, block: usize) -> Span {
        Span::new(self.offset(block), self.len)
    }

    /// By edge of a part, the blocks that it carries (block 0 where messages are not personal).
    fn blocks(&self, part: &super::route::Part, platform: &super::Platform) -> Vec<Vec<usize>> {
        if !self.personal {
            return vec![vec![0]; part.edges.len()];
        }
        let mut entering = vec![None; self.ranks];
        for (i, &e) in part.edges.iter().enumerate() {
            entering[platform.edges()[e].dst] = Some((i, platform.edges()[e].src));
        }
        let mut blocks = vec![Vec::new(); part.edges.len()];
        let mut deliver = |block: usize, target: usize| {
            let mut v = target;
            while let Some((i, from)) = entering[v] {
                blocks[i].push(block);
                v = from;
            }
        };
        if self.operation == Operation::Alltoall {
            for t in (0..self.ranks).filter(|&t| t != part.root) {
                deliver(part.root * self.ranks + t, t);
            }
        } else {
            for (i, &t) in self.targets.iter().enumerate() {
                deliver(i, t);
            }
        }
        blocks
    }

    /// Of the schedule as built; gathers and reductions are that of a scatter or broadcast, reversed.
    fn collective(&self) -> Collective {
        let root = self.source;
        match self.operation {
            Operation::Broadcast | Operation::Reduce => Collective::Broadcast { root },
            Operation::Multicast => Collective::Multicast {
                root,
                targets: self.targets.to_vec(),
            },
            Operation::Scatter | Operation::Gather => Collective::Scatter { root },
            Operation::Allgather => Collective::Allgather,
            Operation::Alltoall => Collective::Alltoall,
        }
    }

    fn layout(&self, rank: usize) -> (Vec<Span>, Vec<Span>) {
        let is_source = rank == self.source;
        let all = vec![Span::new(0, self.buffer())];
        match self.operation {
            Operation::Broadcast | Operation::Reduce if is_source => (all.clone(), all),
            Operation::Broadcast | Operation::Reduce => (Vec::new(), all),
            Operation::Multicast | Operation::Scatter | Operation::Gather if is_source => {
                (all, Vec::new())
            }
            Operation::Multicast if self.targets.contains(&rank) => (Vec::new(), all),
            Operation::Multicast => (Vec::new(), Vec::new()),
            Operation::Scatter | Operation::Gather => {
                let block = self.targets.binary_search(&rank).ok();
                (
                    Vec::new(),
                    block.map(|b| self.span(b)).into_iter().collect(),
                )
            }
            Operation::Allgather => (vec![self.span(rank)], all),
            Operation::Alltoall => (
                (0..self.ranks)
                    .map(|t| self.span(rank * self.ranks + t))
                    .collect(),
                (0..self.ranks)
                    .map(|s| self.span(s * self.ranks + rank))
                    .collect(),
            ),
        }
    }
}
