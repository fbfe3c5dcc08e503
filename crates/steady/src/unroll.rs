//! Turns a periodic schedule into an ordinary [`Schedule`] for any number of operations: start-up,
//! steady state and clean-up.
//!
//! A message that is received in one slot is forwarded in a later one of the same period, or in the
//! next, so a transfer belongs to operations that began some periods before. Transfers of
//! operations that have not begun or do not exist are left out: this gives start-up and clean-up.
//!
//! Messages are at the same place in all buffers, one operation after the other. This is different
//! where tasks combine messages: each rank then has its own contributions first, followed by a
//! place for every other partial result that it gets. Two partial results are combined in the place
//! of one of them if no other task needs that one.
//!
//! Where nodes combine while they communicate, the rules of time would let a rank perform any
//! number of combinations at once, but the platform gives it one processor. All combinations of
//! such a rank therefore pass through one accumulator, a region of its buffer, one piece after the
//! other.

use std::ops::Range;

use super::buffer_layout::{BufferLayout, placed};
use super::fraction::Fraction;
use super::items::{Cut, How, Item, items};
use super::periodic::Periodic;
use super::problem::Operation;
use oneport::error::{Error, Result};
use oneport::internal::budget::size::MAX_UNROLLED_STEPS;
use oneport::schedule::collective::Collective;
use oneport::schedule::{Builder, Order, Schedule, Span, Spans, Step};

/// Limit of the elements of all buffers of a schedule together.
const MAX_TOTAL: usize = 1 << 31;

/// A part of an item that one step handles.
#[derive(Debug, Clone, Copy)]
struct ItemPart {
    from: Span,
    to: Span,
    left: Option<Span>,
    how: How,
}

/// Start and end time of every step, by rank, in time units of the platform.
pub type StepTimes = Vec<Vec<(f64, f64)>>;

/// By rank and step: the number of a route.
pub type StepRoutes = Vec<Vec<usize>>;

impl Periodic {
    /// Returns the number of elements of all buffers together in a schedule of `operations`
    /// operations, at most `usize::MAX`.
    pub fn buffers(&self, operations: usize) -> usize {
        let layout = BufferLayout::new(&self.solution, operations.saturating_mul(self.elements));
        let accumulators = (0..self.solution.platform.nodes()).filter(|&v| self.accumulates(v));
        layout
            .total()
            .saturating_add(accumulators.count().saturating_mul(self.elements))
    }

    /// Whether a node's combinations pass through an accumulator.
    fn accumulates(&self, node: usize) -> bool {
        let platform = &self.solution.platform;
        platform.overlaps() && platform.compute().get(node).is_some_and(|c| !c.is_zero())
    }

    /// Builds a schedule of `operations` operations: one collective over a vector (or blocks) of
    /// `operations` times [`Periodic::elements`] elements. Rank `v` is node `v`.
    ///
    /// # Complexity
    /// About two steps for each of [`Periodic::transfers`] in each period, over
    /// `ceil(operations / operations of a period) + lag - 1` periods. All buffers together have
    /// [`Periodic::buffers`] elements.
    ///
    /// # Errors
    /// When there are no operations, or the schedule would be too large.
    pub fn schedule(&self, operations: usize) -> Result<Schedule> {
        if operations == 0 {
            return Err(Error::usage("a series needs at least one message"));
        }
        let periods = self.periods(operations);
        let steps = periods.saturating_mul(2 * self.transfers());
        let total = self.buffers(operations);
        if total > MAX_TOTAL || steps > MAX_UNROLLED_STEPS {
            return Err(Error::usage(format!(
                "{operations} operations of {} elements are too many for one schedule ({steps} steps, {} elements of buffers): take fewer, or a smaller period",
                self.elements, total
            )));
        }
        let solution = &self.solution;
        let layout = BufferLayout::new(solution, operations.saturating_mul(self.elements));
        let ranks = solution.platform.nodes();
        let collective = layout.collective(solution.is_reversed());
        let mut builder = Schedule::builder(ranks, solution.ports, collective);
        let series = Unrolled {
            periodic: self,
            layout,
            items: items(solution, &self.counts, &self.slots, self.elements).0,
            operations,
        };
        for rank in 0..ranks {
            series.add_layout(&mut builder, rank);
        }
        for period in 0..periods {
            for slot in &self.slots {
                series.add_slot(&mut builder, slot, period);
            }
        }
        let schedule = builder.build()?;
        if solution.is_reversed() {
            schedule.into_reversed()
        } else {
            Ok(schedule)
        }
    }

    /// Builds one period in the middle of a series, for drawing: a node may send what it has not
    /// received, so the schedule is not checkable. Also returns start and end of every step by
    /// rank, and the number of the route whose operation it begins with.
    ///
    /// # Errors
    /// When it would be too large.
    pub fn one_period(&self) -> Result<(Schedule, StepTimes, StepRoutes)> {
        let solution = &self.solution;
        let ranks = solution.platform.nodes();
        let root = solution.platform.source();
        let mut builder = Schedule::builder(ranks, solution.ports, Collective::Broadcast { root });
        let edges = solution.platform.edges().len();
        // Every transfer has a place of its own, so that a step waits only for its port.
        let mut len = 0;
        let mut place = |elements: usize| {
            len += elements;
            Span::new(len - elements, elements)
        };
        let (items, _) = items(solution, &self.counts, &self.slots, self.elements);
        let route = |activity: usize, range: &Range<usize>| {
            let operation = items[activity][range.start / self.elements].operation;
            let mut after = 0;
            let mut counts = self.counts.iter();
            let route = counts.position(|count| {
                after += count;
                operation < after
            });
            route.unwrap_or(0)
        };
        let mut slots = Vec::with_capacity(self.slots.len());
        for (slot, (_, _, transfers)) in self.slots.iter().zip(self.slots()) {
            let activities = slot.edges.iter().zip(transfers);
            let activities = activities.map(|((a, range), (_, _, time))| {
                let span = place(range.len());
                let second = if *a < edges { span } else { place(range.len()) };
                (*a, route(*a, range), span, second, time)
            });
            slots.push(activities.collect::<Vec<_>>());
        }
        if solution.is_reversed() {
            slots.reverse();
        }
        for rank in 0..ranks {
            builder.layout(rank, len, [], []);
        }
        let mut times: StepTimes = vec![Vec::new(); ranks];
        let mut routes: StepRoutes = vec![Vec::new(); ranks];
        let mut start = Fraction::ZERO;
        for slot in slots {
            let mut step = |rank: usize, step: Step, route: usize, time: &Fraction| {
                builder.step(rank, step);
                routes[rank].push(route);
                times[rank].push((start.to_f64(), (&start + time).to_f64()));
            };
            for (activity, route, span, second, time) in &slot {
                let (from, to) = solution.link(*activity);
                if *activity < edges {
                    step(from, Step::send(to, *span), *route, time);
                } else {
                    let combine = Step::combine(*second, *span, Order::MineFirst);
                    step(from, combine, *route, time);
                }
            }
            for (activity, route, span, _, time) in slot.iter().filter(|(a, ..)| *a < edges) {
                let (from, to) = solution.link(*activity);
                step(to, Step::recv(from, *span), *route, time);
            }
            let longest = slot.into_iter().map(|(.., time)| time).max();
            start += longest.unwrap_or_default();
        }
        Ok((builder.build()?, times, routes))
    }
}

/// A series of operations, as its schedule is built.
struct Unrolled<'a> {
    periodic: &'a Periodic,
    layout: BufferLayout<'a>,
    /// The items of a period, by edge and then by node.
    items: Vec<Vec<Item>>,
    operations: usize,
}

impl Unrolled<'_> {
    fn add_layout(&self, builder: &mut Builder, rank: usize) {
        let (periodic, layout) = (self.periodic, &self.layout);
        let mut routes = periodic.solution.routes.iter();
        let has_tasks = routes.any(|(route, _)| !route.task_graph.owners.is_empty());
        let (input, output) = if has_tasks {
            (vec![layout.span(0)], self.results(rank))
        } else {
            layout.input_and_output(rank)
        };
        let accumulator = if has_tasks && periodic.accumulates(rank) {
            periodic.elements
        } else {
            0
        };
        builder.layout(rank, layout.buffer(rank) + accumulator, input, output);
    }

    /// Adds the steps of a slot of a period: all sends and combinations, then all receives.
    fn add_slot(&self, builder: &mut Builder, slot: &Cut, period: usize) {
        let edges = self.periodic.solution.platform.edges();
        let mut receives = Vec::new();
        for (activity, range) in &slot.edges {
            let pieces = self.pieces(*activity, range, period);
            if pieces.is_empty() {
                continue;
            }
            match edges.get(*activity) {
                Some(edge) => {
                    let sent = joined(pieces.iter().map(|p| p.from));
                    let received = joined(pieces.iter().map(|p| p.to));
                    builder.step(edge.src, Step::send(edge.dst, sent));
                    receives.push((edge.dst, Step::recv(edge.src, received)));
                }
                None => {
                    let rank = activity - edges.len();
                    let accumulates = self.periodic.accumulates(rank);
                    let accumulator = accumulates.then(|| self.layout.buffer(rank));
                    for piece in pieces {
                        combine(builder, rank, &piece, accumulator);
                    }
                }
            }
        }
        for (rank, step) in receives {
            builder.step(rank, step);
        }
    }

    /// Returns the elements `range` of an edge's messages or a node's combinations in a period.
    fn pieces(&self, activity: usize, range: &Range<usize>, period: usize) -> Vec<ItemPart> {
        let elements = self.periodic.elements;
        let mut pieces: Vec<ItemPart> = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let item = self.items[activity][at / elements];
            let from = at % elements;
            let to = elements.min(from + range.end - at);
            at += to - from;
            let Some(batch) = period.checked_sub(item.delay) else {
                continue;
            };
            let operation = batch * self.periodic.operations() + item.operation;
            if operation >= self.operations {
                continue;
            }
            let span = |place: usize| {
                let offset = self.layout.offset(place) + operation * elements + from;
                Span::new(offset, to - from)
            };
            pieces.push(ItemPart {
                from: span(item.from),
                to: span(item.to),
                left: match item.how {
                    How::CopyAndCombine(left) => Some(span(left)),
                    _ => None,
                },
                how: item.how,
            });
        }
        pieces
    }

    /// Returns the spans where a rank finds the results of its tasks, by operation.
    fn results(&self, rank: usize) -> Vec<Span> {
        let Periodic {
            solution,
            counts,
            elements,
            ..
        } = self.periodic;
        let mut of_period: Vec<Option<usize>> = Vec::new();
        for ((route, _), &count) in solution.routes.iter().zip(counts) {
            let graph = &route.task_graph;
            let nodes = graph.nodes(&solution.platform);
            let at = placed(graph, &solution.platform);
            let own = match solution.operation {
                Operation::Scan => graph.results.get(rank),
                _ => graph.results.first().filter(|&&v| nodes[v] == rank),
            };
            of_period.extend(std::iter::repeat_n(own.map(|&v| at[v]), count));
        }
        let spans = (0..self.operations).filter_map(|operation| {
            let place = of_period[operation % of_period.len()]?;
            let offset = self.layout.offset(place) + operation * elements;
            Some(Span::new(offset, *elements))
        });
        joined(spans).into_iter().collect()
    }
}

fn joined(spans: impl IntoIterator<Item = Span>) -> Spans {
    let mut all = Spans::new();
    spans.into_iter().for_each(|span| all.append(span));
    all
}

/// Combines a piece in place, or in the accumulator at offset `accumulator`.
fn combine(builder: &mut Builder, rank: usize, piece: &ItemPart, accumulator: Option<usize>) {
    let order = match piece.how {
        How::Combine(order) => order,
        How::Carry | How::CopyAndCombine(_) => Order::MineFirst,
    };
    if let Some(offset) = accumulator {
        let at = Span::new(offset, piece.to.len);
        builder.step(rank, Step::copy(piece.left.unwrap_or(piece.to), at));
        builder.step(rank, Step::combine(piece.from, at, order));
        builder.step(rank, Step::copy(at, piece.to));
        return;
    }
    if let Some(left) = piece.left {
        builder.step(rank, Step::copy(left, piece.to));
    }
    builder.step(rank, Step::combine(piece.from, piece.to, order));
}
