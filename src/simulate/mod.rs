//! The simulator: computes model time, evaluating the [rules of time](crate::rules) as a longest
//! path.
//!
//! - [`Schedule::simulate`] gives the time of every step, the port use and a critical path.
//!   [`Prepared`] is its first half: one preparation can be timed under many cost models.
//! - [`stream`] gives makespan, rank times and counts only, for programs that are generated step by
//!   step ([`ScheduleSource`](crate::schedule::ScheduleSource)) and for stored schedules. It builds
//!   no graph, but for calls and shared ports: it is several times as fast and needs a tenth of the
//!   memory.
//!
//! Times are in the unit of the cost model. Preparing takes the time of
//! [`Prepared::new`], and timing is linear in the number of
//! nodes and of their waits.

pub mod bounds;
pub mod explain;
mod node_ports;
mod stats;
mod stream;

pub use stats::Stats;
pub(crate) use stream::stream_within;
pub use stream::{Timed, stream};

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::machine::numbers::{index, truncated};
use crate::machine::{CostModel, Ports, TransferCost};
use crate::rules::{End, Event, Node, NodeKind, OrderedGraph, max_time};
use crate::schedule::Schedule;
use crate::schedule::collective::Kind;

/// A schedule with matched sends and ordered steps, ready to be timed under many cost models in one
/// pass over flat arrays each. A clone is a reference to the same graph.
#[derive(Debug, Clone)]
pub struct Prepared {
    ranks: usize,
    ports: Ports,
    overlap: bool,
    kind: Kind,
    element_bytes: u64,
    graph: Arc<OrderedGraph>,
}

/// Finishing times of one schedule under one cost model, in its unit.
#[derive(Debug, Clone)]
pub struct Simulation {
    prepared: Prepared,
    cost: CostModel,
    pub(crate) element_bytes: u64,
    /// By node: when it ends at its receiver, or the computation ends.
    finish: Vec<f64>,
    /// By node: when it ends at its sender; none where that is the same.
    sent: Vec<f64>,
}

impl Schedule {
    /// Times every step under `cost`, with elements of [`Schedule::element_bytes`] bytes.
    ///
    /// ```
    /// use oneport::{CostModel, Request};
    /// let schedule = Request::broadcast(8, 12).segment_count(4).plan("chain")?;
    /// let simulation = schedule.simulate(&CostModel::new(10.0, 1.0))?;
    /// assert_eq!(simulation.makespan(), 130.0);
    /// # Ok::<(), oneport::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Prepared::new`] and [`Prepared::simulate`].
    pub fn simulate(&self, cost: &CostModel) -> Result<Simulation> {
        Prepared::new(self, cost.overlaps())?.simulate(cost)
    }

    /// As [`stream`], with its errors.
    pub fn timed(&self, cost: &CostModel, watch: impl FnMut(u64)) -> Result<Timed> {
        stream(self, cost, self.element_bytes(), watch)
    }

    /// As [`Schedule::timed`], by the graph of the steps.
    fn timed_by_graph(&self, cost: &CostModel, watch: &mut dyn FnMut(u64)) -> Result<Timed> {
        let simulation = self.simulate(cost)?;
        let prepared = simulation.prepared();
        let rounds = if cost.overlaps() {
            Prepared::of_rounds(self)?.rounds()
        } else {
            prepared.rounds()
        };
        let transfers = || {
            let nodes = prepared.nodes().iter();
            nodes.filter(|node| node.kind == NodeKind::Transfer)
        };
        watch(transfers().count() as u64);
        let sizes = transfers().map(|node| index(node.elements));
        Ok(Timed {
            time: simulation.makespan(),
            rank_times: simulation.rank_times(),
            rounds,
            messages: sizes.clone().filter(|&size| size > 0).count(),
            elements: if prepared.kind.has_data() {
                sizes.fold(0, usize::saturating_add)
            } else {
                0
            },
        })
    }
}

impl Prepared {
    /// Matches and orders the steps of `schedule`. `overlap` is [`CostModel::overlap`].
    ///
    /// Time and space are linear in the number of steps and of the distinct parts of the buffers
    /// that they access, apart from sorting each rank's receives by sender.
    ///
    /// # Errors
    /// When a send or receive has no partner, partners disagree on a length, a port does not exist,
    /// or steps wait for each other in a cycle. [`crate::check`] gives more details.
    pub fn new(schedule: &Schedule, overlap: bool) -> Result<Prepared> {
        let graph = OrderedGraph::new(schedule, overlap)?;
        Ok(Prepared::of(schedule, overlap, graph))
    }

    /// As [`Prepared::new`], with those transfers and computations that take place before the
    /// others wait for ever: in a cycle, or for a partner that never comes.
    ///
    /// # Errors
    /// As [`Prepared::new`], but for steps without partners and cycles.
    #[doc(hidden)]
    pub fn reachable(schedule: &Schedule, overlap: bool) -> Result<Prepared> {
        let graph = OrderedGraph::reachable(schedule, overlap)?;
        Ok(Prepared::of(schedule, overlap, graph))
    }

    fn of(schedule: &Schedule, overlap: bool, graph: OrderedGraph) -> Prepared {
        Prepared {
            ranks: schedule.ranks(),
            ports: schedule.ports(),
            overlap,
            kind: schedule.collective().kind(),
            element_bytes: schedule.element_bytes(),
            graph: Arc::new(graph),
        }
    }

    /// Transfers and computations, each after everything it waits for.
    pub fn nodes(&self) -> &[Node] {
        self.graph.nodes()
    }

    /// The node whose end is `event` of `rank`; `None` if the step has no such event.
    ///
    /// # Panics
    /// When the schedule has no such rank or step.
    #[doc(hidden)]
    pub fn node(&self, rank: usize, event: Event) -> Option<usize> {
        self.graph.node(rank, event)
    }

    /// Nodes that node `node` waits for.
    ///
    /// # Panics
    /// When there is no such node.
    #[doc(hidden)]
    pub fn waits(&self, node: usize) -> impl Iterator<Item = usize> + Clone {
        self.graph.waits(node)
    }

    /// The ends of nodes that `end` of node `node` waits for by rules 1 to 3, all at the rank of
    /// this end. A computation has the end [`End::Receiver`] alone.
    ///
    /// # Panics
    /// When there is no such node.
    #[doc(hidden)]
    pub fn waits_at(&self, node: usize, end: End) -> impl Iterator<Item = (usize, End)> {
        self.graph.waits_at(node, end)
    }

    /// Times every step under `cost`, with elements of [`Schedule::element_bytes`] bytes.
    ///
    /// # Errors
    /// When a cost is not a valid time, `cost` has another `overlap` than the preparation, or
    /// `cost` is heterogeneous and describes too few ranks or has no link for a message
    /// ([`ErrorKind::NoLink`]).
    pub fn simulate(&self, cost: &CostModel) -> Result<Simulation> {
        self.simulate_bytes(cost, self.element_bytes)
    }

    /// As [`Prepared::simulate`], with elements of `element_bytes` bytes.
    pub(crate) fn simulate_bytes(
        &self,
        cost: &CostModel,
        element_bytes: u64,
    ) -> Result<Simulation> {
        cost.validate()?;
        cost.covers(self.ranks)?;
        if cost.overlaps() != self.overlap {
            return Err(Error::usage(
                "the schedule was not prepared with the cost model's overlap",
            ));
        }
        if cost.links().is_some() {
            let missing = self.nodes().iter().find(|n| {
                n.kind == NodeKind::Transfer
                    && n.elements > 0
                    && !cost.linked(n.from as usize, n.to as usize)
            });
            if let Some(n) = missing {
                let (from, to) = (n.from as usize, n.to as usize);
                return Err(ErrorKind::NoLink { from, to }.into());
            }
        }
        let mut simulation = Simulation {
            prepared: self.clone(),
            cost: self.kind.costs(cost).into_owned(),
            element_bytes,
            finish: vec![0.0; self.nodes().len()],
            sent: Vec::new(),
        };
        if cost.is_ideal() {
            self.finish_into(cost, element_bytes, &mut simulation.finish);
        } else {
            simulation.delayed();
        }
        Ok(simulation)
    }

    /// The preparation by which the rounds of `schedule` are counted: without overlap, or with it
    /// where computation that keeps ports busy leads to a deadlock.
    fn of_rounds(schedule: &Schedule) -> Result<Prepared> {
        let alone = Prepared::new(schedule, false);
        alone.or_else(|deadlock| Prepared::new(schedule, true).map_err(|_| deadlock))
    }

    /// Number of messages on the longest chain of dependent messages: see
    /// [`Stats::rounds`](Stats::rounds).
    pub(crate) fn rounds(&self) -> usize {
        let mut finish = vec![0.0; self.nodes().len()];
        let cost = CostModel::new(1.0, 0.0).overlap(self.overlap);
        let rounds = self.finish_into(&cost, 1, &mut finish);
        truncated(rounds)
    }

    /// The pass of [`Prepared::simulate`] alone: writes the finishing times by node into
    /// `finish` and returns the makespan. It does not validate `cost`, and a message over a missing
    /// link never ends: its time is infinite.
    ///
    /// # Panics
    /// When `finish` does not have one entry per node, `cost` has another `overlap` than the
    /// preparation, or it is not [ideal](CostModel::is_ideal).
    #[doc(hidden)]
    pub fn simulate_into(&self, cost: &CostModel, finish: &mut [f64]) -> f64 {
        assert!(
            cost.is_ideal(),
            "a model without arrivals, latency and eager sends"
        );
        self.finish_into(cost, self.element_bytes, finish)
    }

    fn finish_into(&self, cost: &CostModel, element_bytes: u64, finish: &mut [f64]) -> f64 {
        assert_eq!(
            cost.overlaps(),
            self.overlap,
            "prepare with the cost model's overlap"
        );
        assert_eq!(
            finish.len(),
            self.nodes().len(),
            "one finishing time a node"
        );
        let cost = &*self.kind.costs(cost);
        if let Some(line) = cost.linear() {
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
        for (i, (node, waits)) in self.graph.nodes_with_waits().enumerate() {
            let mut start = 0.0;
            for &w in waits {
                start = max_time(start, finish[w as usize]);
            }
            let end = start + time(node);
            finish[i] = end;
            makespan = max_time(makespan, end);
        }
        makespan
    }
}

impl Simulation {
    /// The prepared schedule, whose nodes the times are about.
    pub fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    /// The makespan: the time when the last rank finishes, and not before the last one arrives.
    /// Linear in the number of nodes.
    pub fn makespan(&self) -> f64 {
        let ends = self.finish.iter().chain(&self.sent).copied();
        ends.fold(self.cost.last_arrival(), max_time)
    }

    /// By rank: the time when it finishes its last step, its arrival if it has none. Linear in the
    /// number of nodes.
    pub fn rank_times(&self) -> Vec<f64> {
        let arrivals = (0..self.prepared.ranks).map(|rank| self.cost.arrival(rank));
        let mut times: Vec<f64> = arrivals.collect();
        for (i, node) in self.prepared.nodes().iter().enumerate() {
            for (end, rank) in [(End::Sender, node.from), (End::Receiver, node.to)] {
                let t = &mut times[rank as usize];
                *t = max_time(*t, self.finish_at(i, end));
            }
        }
        times
    }

    /// The time when node `node` of [`Prepared::nodes`] finishes, at its receiver.
    #[inline]
    pub fn finish(&self, node: usize) -> f64 {
        self.finish[node]
    }

    /// The time when node `node` finishes at one of its ends.
    #[inline]
    pub fn finish_at(&self, node: usize, end: End) -> f64 {
        match end {
            End::Sender if !self.sent.is_empty() => self.sent[node],
            _ => self.finish[node],
        }
    }

    /// The time when node `node` starts, at its sender.
    pub fn start(&self, node: usize) -> f64 {
        self.start_at(node, End::Sender)
    }

    /// The time when node `node` starts at one of its ends.
    pub fn start_at(&self, node: usize, end: End) -> f64 {
        let [sender, receiver] = End::BOTH.map(|end| self.ready_at(node, end));
        let n = &self.prepared.nodes()[node];
        match n.kind {
            NodeKind::Transfer => {
                let cost = n.transfer_cost(&self.cost, self.element_bytes);
                cost.starts(sender, receiver)[end as usize]
            }
            _ => receiver,
        }
    }

    /// The time from which rules 1 to 3 let node `node` start at one of its ends.
    pub(crate) fn ready_at(&self, node: usize, end: End) -> f64 {
        let n = &self.prepared.nodes()[node];
        let rank = match end {
            End::Sender => n.from,
            End::Receiver => n.to,
        };
        let waits = self.prepared.waits_at(node, end);
        waits.fold(self.cost.arrival(rank as usize), |t, (node, end)| {
            max_time(t, self.finish_at(node, end))
        })
    }

    /// Times every node under costs that are not ideal.
    fn delayed(&mut self) {
        self.sent = vec![0.0; self.finish.len()];
        for i in 0..self.finish.len() {
            let node = &self.prepared.nodes()[i];
            let [sender, receiver] = End::BOTH.map(|end| self.ready_at(i, end));
            [self.sent[i], self.finish[i]] = match node.kind {
                NodeKind::Transfer => {
                    let cost = node.transfer_cost(&self.cost, self.element_bytes);
                    cost.ends(sender, receiver)
                }
                _ => [receiver + node.time(&self.cost, self.element_bytes); 2],
            };
        }
    }

    /// Time during which each port of each rank of the simulated schedule carries a transfer:
    /// `[rank][list]`, with the list numbers of [`Ports::list`]. Linear in the number of steps.
    ///
    /// # Panics
    /// When `schedule` has ranks or steps that the simulated one does not have.
    pub fn port_busy(&self, schedule: &Schedule) -> Vec<Vec<f64>> {
        let ports = self.prepared.ports;
        let mut busy = vec![vec![0.0; ports.lists()]; self.prepared.ranks];
        for (rank, program) in schedule.programs().iter().enumerate() {
            for (i, step) in program.iter().enumerate() {
                let Some(port) = step.port() else { continue };
                let Some(node) = self.prepared.node(rank, Event::transferred(i)) else {
                    continue;
                };
                let time = self.prepared.nodes()[node].time(&self.cost, self.element_bytes);
                busy[rank][ports.list(step.is_send(), port)] += time;
            }
        }
        busy
    }

    /// Why node `node` starts no earlier at `end`: which of its ends lets it start last, and the
    /// end of a node that this one waits for; `None` if only for the arrival of its rank. Linear in
    /// the number of the node's waits.
    pub(crate) fn binding(&self, node: usize, end: End) -> (End, Option<(usize, End)>) {
        let n = &self.prepared.nodes()[node];
        let cost = match n.kind {
            NodeKind::Transfer => n.transfer_cost(&self.cost, self.element_bytes),
            _ => TransferCost::rendezvous(0.0),
        };
        let mut sides = [(End::Sender, n.from), (End::Receiver, n.to)];
        // Of equal times, the last one at the higher rank.
        sides.sort_by_key(|&(_, rank)| rank);
        let mut latest = (f64::NEG_INFINITY, (end, None));
        for (side, rank) in sides {
            let Some(lead) = cost.lead(end, side) else {
                continue;
            };
            let arrival = (self.cost.arrival(rank as usize), None);
            let waits = self.prepared.waits_at(node, side);
            // The ends of the waits are compared: a lead may round their difference away.
            let (ready, wait) = waits.fold(arrival, |last, wait| {
                let end = self.finish_at(wait.0, wait.1);
                if end >= last.0 {
                    (end, Some(wait))
                } else {
                    last
                }
            });
            let time = ready + lead;
            if time > latest.0 || time == latest.0 && wait.is_some() {
                latest = (time, (side, wait));
            }
        }
        latest.1
    }

    /// The nodes of one longest path, from first to last; none if a rank without steps arrives
    /// after all others are done. Linear in the number of nodes and of their waits.
    pub fn critical_path(&self) -> Vec<usize> {
        self.critical_ends().into_iter().map(|end| end.0).collect()
    }

    /// As [`critical_path`](Self::critical_path), with the end of each node by which it is on the
    /// path.
    #[doc(hidden)]
    pub fn critical_ends(&self) -> Vec<(usize, End)> {
        let ends = |node: usize| End::BOTH.map(|end| (node, end));
        let all = (0..self.finish.len()).flat_map(ends);
        let last = all.max_by(|a, b| {
            self.finish_at(a.0, a.1)
                .total_cmp(&self.finish_at(b.0, b.1))
        });
        let mut path = Vec::new();
        let mut next = last.filter(|&last| self.is_at_the_end(last));
        while let Some((node, end)) = next {
            path.push((node, end));
            next = self.binding(node, end).1;
        }
        path.reverse();
        path
    }

    /// Whether no rank arrives after this end of a node.
    fn is_at_the_end(&self, (node, end): (usize, End)) -> bool {
        self.finish_at(node, end) >= self.cost.last_arrival()
    }
}
