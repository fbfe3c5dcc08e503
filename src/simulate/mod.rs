//! The simulator: computes model time, evaluating the rules of [`crate::rules`] as a longest
//! path.
//!
//! [`Prepared::new`] matches sends with receives and orders transfers and computations so that each
//! comes after everything it waits for (a work-list, linear in the number of steps).
//! [`Prepared::simulate`] is then one pass over flat arrays, without allocation per step, so that
//! one preparation can be timed under many cost models.
//!
//! [`stream`] times programs that are generated step by step
//! ([`ScheduleSource`](crate::schedule::ScheduleSource)) and never stored.

mod accesses;
pub mod bounds;
pub(crate) mod estimate;
pub(crate) mod sequence;
mod stored;
mod stream;

pub use stored::timed;
pub use stream::{Timed, stream, stream_watched};

use crate::error::{Error, Result};
use crate::machine::{CostModel, OneLine, Ports};
use crate::rules::matching::{Matching, Mismatch, NONE, grouped, rank_u32};
use crate::rules::{Event, LocalOrder, OrderScratch};
use crate::schedule::{Schedule, Step};

/// The kind of a node of the timing graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// A message from one rank to another.
    Transfer,
    /// Combining received elements.
    Combine,
    /// Combining elements that the rank already holds.
    CombineLocal,
    /// Copying elements locally.
    Copy,
}

/// A node of the timing graph: a transfer or a computation.
#[derive(Debug, Clone, Copy)]
pub struct Node {
    /// The kind of the node.
    pub work: Work,
    /// The sending or computing rank.
    pub from: u32,
    /// The receiving or computing rank.
    pub to: u32,
    /// Number of elements moved or computed.
    pub elements: u64,
}

/// A schedule with matched sends and ordered steps: see the [module documentation](self).
#[derive(Debug, Clone)]
pub struct Prepared {
    ranks: usize,
    ports: Ports,
    overlap: bool,
    nodes: Vec<Node>,
    /// The nodes that node `i` waits for are `waits[wait_ends[i-1]..wait_ends[i]]`, all smaller
    /// than `i`.
    wait_ends: Vec<u32>,
    waits: Vec<u32>,
    /// For every event of every rank (`2 * step + part`), its node; [`NONE`] if it has none.
    event_nodes: Vec<u32>,
    /// First event of each rank.
    rank_events: Vec<usize>,
}

/// Finishing times of one schedule under one cost model.
#[derive(Debug, Clone)]
pub struct Simulation<'a> {
    prepared: &'a Prepared,
    cost: CostModel,
    element_bytes: u64,
    finish: Vec<f64>,
}

impl Prepared {
    /// Matches and orders the steps of `schedule`. `overlap` is [`CostModel::overlap`].
    ///
    /// # Errors
    /// When a send or receive has no partner, partners disagree on a length, a port does not exist,
    /// or steps wait for each other in a cycle. [`crate::check`] gives more details.
    pub fn new(schedule: &Schedule, overlap: bool) -> Result<Prepared> {
        let mut first = None;
        let matching = Matching::new(schedule, |m| first = first.or(Some(m)))?;
        if let Some(mismatch) = first {
            return Err(mismatch_error(schedule, mismatch));
        }
        let graph = Graph::new(schedule, schedule.ports(), overlap, &matching)?;
        graph.ordered(schedule, overlap)
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Transfers and computations, each after everything it waits for.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node whose end is `event` of `rank`.
    pub fn node(&self, rank: usize, event: Event) -> Option<usize> {
        let node = self.event_nodes[self.rank_events[rank] + event.index()];
        (node != NONE).then_some(node as usize)
    }

    /// Nodes that node `node` waits for.
    pub fn waits(&self, node: usize) -> &[u32] {
        let start = if node == 0 {
            0
        } else {
            self.wait_ends[node - 1]
        };
        &self.waits[start as usize..self.wait_ends[node] as usize]
    }

    /// As [`Prepared::simulate`], for a cost model that may not fit the schedule.
    ///
    /// # Errors
    /// When a cost is not a valid time, `cost` has another `overlap` than the preparation, or
    /// `cost` is heterogeneous and describes too few ranks or has no link for a message.
    pub fn try_simulate(&self, cost: &CostModel, element_bytes: u64) -> Result<Simulation<'_>> {
        cost.validate()?;
        cost.covers(self.ranks)?;
        if cost.overlap != self.overlap {
            return Err(Error::usage(
                "the schedule was not prepared with the cost model's overlap",
            ));
        }
        let missing = self.nodes.iter().find(|n| {
            n.work == Work::Transfer
                && n.elements > 0
                && !cost.linked(n.from as usize, n.to as usize)
        });
        match missing {
            Some(n) => Err(Error::usage(format!(
                "rank {} sends to rank {}, between which the costs have no link",
                n.from, n.to
            ))),
            None => Ok(self.simulate(cost, element_bytes)),
        }
    }

    /// Times every step under `cost`, with elements of `element_bytes` bytes (1 gives times per
    /// element). A message over a missing link never ends; [`Prepared::try_simulate`] returns an
    /// error instead.
    ///
    /// # Panics
    /// When `cost` has another `overlap` than the preparation, because overlap changes the
    /// dependencies.
    pub fn simulate(&self, cost: &CostModel, element_bytes: u64) -> Simulation<'_> {
        let mut finish = vec![0.0; self.nodes.len()];
        self.simulate_into(cost, element_bytes, &mut finish);
        Simulation {
            prepared: self,
            cost: cost.clone(),
            element_bytes,
            finish,
        }
    }

    /// Number of messages on the longest chain of dependent messages: see
    /// [`Stats::rounds`](crate::schedule::Stats::rounds).
    pub(crate) fn rounds(&self) -> usize {
        let rounds = self.simulate(&CostModel::new(1.0, 0.0), 1).time();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count of steps"
        )]
        let rounds = rounds as usize;
        rounds
    }

    /// As [`Prepared::simulate`], but writes the finishing times by node into `finish`. Returns the
    /// makespan.
    ///
    /// # Panics
    /// When `finish` does not have one entry per node, or as [`Prepared::simulate`].
    pub fn simulate_into(&self, cost: &CostModel, element_bytes: u64, finish: &mut [f64]) -> f64 {
        assert_eq!(
            cost.overlap, self.overlap,
            "prepare with the cost model's overlap"
        );
        assert_eq!(finish.len(), self.nodes.len(), "one finishing time a node");
        if let Some(line) = cost.one_line() {
            // Distinguish the cost models once instead of for every node.
            self.pass(|node| node.time_by(&line, element_bytes), finish)
        } else {
            self.pass(|node| node.time(cost, element_bytes), finish)
        }
    }

    /// Computes the finishing time of every node in order.
    #[inline]
    fn pass(&self, time: impl Fn(&Node) -> f64, finish: &mut [f64]) -> f64 {
        let mut makespan = 0.0;
        let mut first = 0;
        for (i, (node, &end)) in self.nodes.iter().zip(&self.wait_ends).enumerate() {
            let mut start = 0.0;
            for &w in &self.waits[first..end as usize] {
                start = max_time(start, finish[w as usize]);
            }
            first = end as usize;
            let end = start + time(node);
            finish[i] = end;
            makespan = max_time(makespan, end);
        }
        makespan
    }
}

impl Node {
    /// Duration of the node.
    #[inline]
    pub fn time(&self, cost: &CostModel, element_bytes: u64) -> f64 {
        let bytes = self.elements.saturating_mul(element_bytes);
        match self.work {
            Work::Transfer => cost.transfer(self.from as usize, self.to as usize, bytes),
            Work::Combine => cost.combine(self.to as usize, bytes),
            Work::CombineLocal => cost.combine_local(self.to as usize, bytes),
            Work::Copy => cost.copy(self.to as usize, bytes),
        }
    }

    /// As [`Node::time`], for linear homogeneous costs.
    #[inline]
    fn time_by(&self, line: &OneLine, element_bytes: u64) -> f64 {
        let bytes = self.elements.saturating_mul(element_bytes);
        match self.work {
            Work::Transfer => line.transfer(bytes),
            Work::Combine | Work::CombineLocal => line.combine(bytes),
            Work::Copy => line.copy(bytes),
        }
    }
}

/// The maximum of two times (neither is NaN).
#[inline]
pub(crate) fn max_time(a: f64, b: f64) -> f64 {
    if b > a { b } else { a }
}

impl Simulation<'_> {
    /// The makespan: the time when the last rank finishes.
    pub fn time(&self) -> f64 {
        self.finish.iter().copied().fold(0.0, max_time)
    }

    /// The time when each rank finishes its last step.
    pub fn rank_times(&self) -> Vec<f64> {
        let mut times = vec![0.0; self.prepared.ranks];
        for (node, &end) in self.prepared.nodes.iter().zip(&self.finish) {
            for rank in [node.from, node.to] {
                let t = &mut times[rank as usize];
                *t = max_time(*t, end);
            }
        }
        times
    }

    /// The time when node `node` of [`Prepared::nodes`] finishes.
    pub fn finish(&self, node: usize) -> f64 {
        self.finish[node]
    }

    /// The time when node `node` starts.
    pub fn start(&self, node: usize) -> f64 {
        self.prepared
            .waits(node)
            .iter()
            .fold(0.0, |t, &w| max_time(t, self.finish[w as usize]))
    }

    /// Time during which each port of each rank carries a transfer: `[rank][list]`, with the list
    /// numbers of [`Ports::list`].
    pub fn port_busy(&self, schedule: &Schedule) -> Vec<Vec<f64>> {
        let ports = self.prepared.ports;
        let mut busy = vec![vec![0.0; ports.lists()]; self.prepared.ranks];
        for (rank, program) in schedule.programs().iter().enumerate() {
            for (i, step) in program.iter().enumerate() {
                let Some(port) = step.port() else { continue };
                let Some(node) = self.prepared.node(rank, Event::transferred(i)) else {
                    continue;
                };
                let time = self.prepared.nodes[node].time(&self.cost, self.element_bytes);
                busy[rank][ports.list(step.is_send(), port)] += time;
            }
        }
        busy
    }

    /// The nodes of one longest path, from first to last.
    pub fn critical_path(&self) -> Vec<usize> {
        let last =
            (0..self.finish.len()).max_by(|&a, &b| self.finish[a].total_cmp(&self.finish[b]));
        let mut path: Vec<usize> = last.into_iter().collect();
        while let Some(&node) = path.last() {
            let before = self.prepared.waits(node).iter().map(|&w| w as usize);
            match before.max_by(|&a, &b| self.finish[a].total_cmp(&self.finish[b])) {
                Some(w) => path.push(w),
                None => break,
            }
        }
        path.reverse();
        path
    }
}

/// The timing graph: nodes in program order with their dependencies, before they are ordered.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
    wait_ends: Vec<u32>,
    waits: Vec<u32>,
    /// As in [`Prepared`].
    pub(crate) event_nodes: Vec<u32>,
    /// As in [`Prepared`].
    pub(crate) rank_events: Vec<usize>,
}

/// Nodes in an order in which each comes after everything it waits for, as far as possible.
#[derive(Debug)]
pub(crate) struct Ordered {
    pub(crate) order: Vec<u32>,
    /// By node: the number of nodes it waits for that never run. Zero everywhere unless steps wait
    /// in a cycle.
    pub(crate) missing: Vec<u32>,
}

impl Graph {
    /// Builds the graph. An unmatched step becomes a transfer of its own, which delays only its own
    /// rank.
    pub(crate) fn new(
        schedule: &Schedule,
        ports: Ports,
        overlap: bool,
        matching: &Matching,
    ) -> Result<Graph> {
        let programs = schedule.programs();
        let mut graph = Graph {
            nodes: Vec::new(),
            wait_ends: Vec::new(),
            waits: Vec::new(),
            event_nodes: vec![NONE; 2 * matching.mates.len()],
            rank_events: matching
                .first_step
                .iter()
                .map(|&s| 2 * s as usize)
                .collect(),
        };
        graph.number(programs, &matching.mates)?;
        graph.connect(programs, ports, overlap)?;
        Ok(graph)
    }

    /// Nodes that node `node` waits for.
    pub(crate) fn waits(&self, node: usize) -> &[u32] {
        let start = if node == 0 {
            0
        } else {
            self.wait_ends[node - 1]
        };
        &self.waits[start as usize..self.wait_ends[node] as usize]
    }

    /// Gives every transfer and computation a node; the two steps of a transfer share one.
    ///
    /// Numbers the first steps of all ranks first, then all second steps, and so on. Nodes that run
    /// at about the same time are then close together in memory, which keeps the ordering pass
    /// local.
    fn number(&mut self, programs: &[Vec<Step>], mates: &[u32]) -> Result<()> {
        let mut next = node_counts(programs, mates);
        let mut total = 0;
        for n in &mut next {
            total += std::mem::replace(n, total);
        }
        let nothing = Node {
            work: Work::Transfer,
            from: 0,
            to: 0,
            elements: 0,
        };
        self.nodes = vec![nothing; total as usize];
        for (rank, program) in programs.iter().enumerate() {
            let base = self.rank_events[rank];
            for (i, step) in program.iter().enumerate() {
                let event = base + 2 * i;
                let me = rank_u32(rank)?;
                let mut push = |node: Node| {
                    let number = next[i];
                    next[i] += 1;
                    self.nodes[number as usize] = node;
                    number
                };
                let elements = step.len() as u64;
                match step {
                    // A matched send is numbered with its receive.
                    Step::Send { .. } if mates[event / 2] != NONE => {}
                    Step::Send { to, .. } => {
                        self.event_nodes[event] = push(Node {
                            work: Work::Transfer,
                            from: me,
                            to: rank_u32(*to)?,
                            elements,
                        });
                    }
                    Step::Recv { from, .. } | Step::RecvCombine { from, .. } => {
                        let from = rank_u32(*from)?;
                        let node = push(Node {
                            work: Work::Transfer,
                            from,
                            to: me,
                            elements,
                        });
                        self.event_nodes[event] = node;
                        if mates[event / 2] != NONE {
                            self.event_nodes[2 * mates[event / 2] as usize] = node;
                        }
                        if step.computes() {
                            self.event_nodes[event + 1] = push(Node {
                                work: Work::Combine,
                                from: me,
                                to: me,
                                elements,
                            });
                        }
                    }
                    Step::Copy { .. } | Step::Combine { .. } => {
                        let work = if matches!(step, Step::Copy { .. }) {
                            Work::Copy
                        } else {
                            Work::CombineLocal
                        };
                        self.event_nodes[event + 1] = push(Node {
                            work,
                            from: me,
                            to: me,
                            elements,
                        });
                    }
                }
            }
        }
        Ok(())
    }

    /// Collects the nodes that every node waits for, at both of its ranks.
    fn connect(&mut self, programs: &[Vec<Step>], ports: Ports, overlap: bool) -> Result<()> {
        let (mut order, mut scratch) = (LocalOrder::default(), OrderScratch::default());
        // Pairs (node, node it waits for); a counting sort groups them by node afterwards.
        let mut edges: Vec<(u32, u32)> = Vec::with_capacity(4 * self.nodes.len());
        for (rank, program) in programs.iter().enumerate() {
            order
                .analyse(program, ports, overlap, &mut scratch)
                .map_err(|e| Error::wrong(format!("rank {rank}: {e}")))?;
            let events = &self.event_nodes[self.rank_events[rank]..];
            for (i, step) in program.iter().enumerate() {
                let transferred = events[Event::transferred(i).index()];
                let computed = events[Event::computed(i).index()];
                let first = if step.peer().is_some() {
                    transferred
                } else {
                    computed
                };
                edges.extend(
                    order
                        .before_start(i)
                        .iter()
                        .map(|e| (first, events[e.index()])),
                );
                if step.peer().is_some() && step.computes() {
                    edges.push((computed, transferred));
                    edges.extend(
                        order
                            .before_compute(i)
                            .iter()
                            .map(|e| (computed, events[e.index()])),
                    );
                }
            }
        }
        (self.wait_ends, self.waits) = grouped(self.nodes.len(), edges.iter().copied());
        Ok(())
    }

    /// Orders the nodes with a work-list so that each comes after everything it waits for.
    pub(crate) fn order(&self) -> Ordered {
        let n = self.nodes.len();
        let backwards = (0..n).flat_map(|i| self.waits(i).iter().map(move |&w| (w, i as u32)));
        let (then_ends, then) = grouped(n, backwards);
        let mut missing: Vec<u32> = (0..n).map(|i| self.waits(i).len() as u32).collect();
        // A queue instead of a stack: nodes that can run together become neighbours, and their
        // dependencies are still in cache.
        let mut order: Vec<u32> = (0..n as u32)
            .filter(|&i| missing[i as usize] == 0)
            .collect();
        let mut next = 0;
        while let Some(&node) = order.get(next) {
            next += 1;
            let start = if node == 0 {
                0
            } else {
                then_ends[node as usize - 1] as usize
            };
            for &t in &then[start..then_ends[node as usize] as usize] {
                missing[t as usize] -= 1;
                if missing[t as usize] == 0 {
                    order.push(t);
                }
            }
        }
        Ordered { order, missing }
    }

    fn ordered(self, schedule: &Schedule, overlap: bool) -> Result<Prepared> {
        let n = self.nodes.len();
        let Ordered { order, .. } = self.order();
        if order.len() < n {
            return Err(Error::wrong(format!(
                "deadlock: {} of {n} transfers and computations wait for each other (run `check` for the cycle)",
                n - order.len()
            )));
        }
        let mut position = vec![0u32; n];
        for (i, &node) in order.iter().enumerate() {
            position[node as usize] = i as u32;
        }
        let mut prepared = Prepared {
            ranks: schedule.ranks(),
            ports: schedule.ports(),
            overlap,
            nodes: Vec::with_capacity(n),
            wait_ends: Vec::with_capacity(n),
            waits: Vec::with_capacity(self.waits.len()),
            event_nodes: Vec::new(),
            rank_events: Vec::new(),
        };
        for &node in &order {
            prepared.nodes.push(self.nodes[node as usize]);
            let waits = self.waits(node as usize);
            prepared
                .waits
                .extend(waits.iter().map(|&w| position[w as usize]));
            prepared.wait_ends.push(prepared.waits.len() as u32);
        }
        (prepared.event_nodes, prepared.rank_events) = (self.event_nodes, self.rank_events);
        for node in &mut prepared.event_nodes {
            if *node != NONE {
                *node = position[*node as usize];
            }
        }
        Ok(prepared)
    }
}

/// By position in the program: the number of nodes of all ranks' steps there. The total is below
/// 2^32, because there are fewer than 2^31 steps.
fn node_counts(programs: &[Vec<Step>], mates: &[u32]) -> Vec<u32> {
    let longest = programs.iter().map(Vec::len).max().unwrap_or(0);
    let mut counts = vec![0; longest];
    let mut mates = mates.iter();
    for program in programs {
        for ((step, count), &mate) in program.iter().zip(&mut counts).zip(&mut mates) {
            *count += match step {
                Step::Send { .. } if mate != NONE => 0,
                Step::RecvCombine { .. } => 2,
                _ => 1,
            };
        }
    }
    counts
}

/// Formats the first mismatch as an error of the simulator.
fn mismatch_error(schedule: &Schedule, mismatch: Mismatch) -> Error {
    Error::wrong(match mismatch {
        Mismatch::Alone {
            rank,
            step,
            peer,
            nth,
            partners,
        } => {
            let sends = schedule.programs()[rank][step].is_send();
            let (what, other, to) = if sends {
                ("send", "receives", "to")
            } else {
                ("receive", "sends", "from")
            };
            format!(
                "rank {rank}, step {step}: {what} number {} {to} rank {peer}, which has only {partners} matching {other} (run `check` for all mismatches)",
                nth + 1
            )
        }
        Mismatch::Length {
            from,
            send_step,
            sent,
            to,
            recv_step,
            expected,
        } => format!(
            "rank {from}, step {send_step}: sends {sent} elements to rank {to}, whose step {recv_step} expects {expected}"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::collective::Collective;
    use crate::schedule::{Order, Span};

    fn chain_reduce(p: usize, q: usize) -> Schedule {
        let mut b = Schedule::builder(p, Ports::BI, Collective::Reduce { root: 0 });
        for r in 0..p {
            let out = (r == 0).then_some(Span::new(0, q));
            b.layout(r, q, [Span::new(0, q)], out);
            for s in 0..q {
                let span = Span::new(s, 1);
                if r + 1 < p {
                    b.step(r, Step::recv_combine(r + 1, span, Order::MineFirst));
                }
                if r > 0 {
                    b.step(r, Step::send(r - 1, span));
                }
            }
        }
        b.build().unwrap()
    }

    #[test]
    fn chain_takes_its_closed_form() {
        for p in 2..12usize {
            for q in 1..9usize {
                let s = chain_reduce(p, q);
                let prepared = Prepared::new(&s, false).unwrap();
                let time = prepared
                    .simulate(&CostModel::new(1.0, 1.0).gamma(1.0), 1)
                    .time();
                #[expect(clippy::cast_precision_loss, reason = "small")]
                let expected = (p + q - 2) as f64 * 3.0;
                assert_eq!(time, expected, "p={p} q={q}");
                assert_eq!(s.stats().unwrap().segments_held, 1);
            }
        }
    }
}
