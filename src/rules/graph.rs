//! The precedence graph of a schedule: its transfers and computations, with what each of them waits
//! for by the [rules of time](crate::rules).
//!
//! [`OrderedGraph::new`] matches sends with receives and orders transfers and computations so that
//! each comes after everything it waits for (a work-list, linear in the number of steps). The
//! simulator evaluates the graph under a cost model; the checker looks for cycles in it.

use super::matching::{Grouped, Matching, Mismatched, NONE, rank_u32};
use super::{End, Event, LocalOrder, OrderScratch, shared};
use crate::error::{Error, Result};
use crate::machine::{CostModel, Linear, Ports, TransferCost};
use crate::schedule::{Schedule, Step};

/// The kind of a node of the precedence graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// A message from one rank to another.
    Transfer,
    /// Combining received elements.
    Combine,
    /// Combining elements that the rank already holds.
    CombineLocal,
    /// Copying elements locally.
    Copy,
}

/// A node of the precedence graph: a transfer or a computation.
#[derive(Debug, Clone, Copy)]
pub struct Node {
    /// The kind of the node.
    pub kind: NodeKind,
    /// The sending or computing rank.
    pub from: u32,
    /// The receiving or computing rank.
    pub to: u32,
    /// Number of elements moved or computed.
    pub elements: u64,
}

impl Node {
    /// Duration of the node under `cost`, with elements of `element_bytes` bytes.
    #[inline]
    pub(crate) fn time(&self, cost: &CostModel, element_bytes: u64) -> f64 {
        let bytes = self.elements.saturating_mul(element_bytes);
        match self.kind {
            NodeKind::Transfer => cost.transfer(self.from as usize, self.to as usize, bytes),
            NodeKind::Combine => cost.combine(self.to as usize, bytes),
            NodeKind::CombineLocal => cost.combine_local(self.to as usize, bytes),
            NodeKind::Copy => cost.copy(self.to as usize, bytes),
        }
    }

    /// What a transfer takes under `cost`.
    #[inline]
    pub(crate) fn transfer_cost(&self, cost: &CostModel, element_bytes: u64) -> TransferCost {
        let bytes = self.elements.saturating_mul(element_bytes);
        cost.transfer_cost(self.from as usize, self.to as usize, bytes)
    }

    /// As [`Node::time`], for linear homogeneous costs.
    #[inline]
    pub(crate) fn time_by(&self, line: &Linear, element_bytes: u64) -> f64 {
        let bytes = self.elements.saturating_mul(element_bytes);
        match self.kind {
            NodeKind::Transfer => line.transfer(bytes),
            NodeKind::Combine | NodeKind::CombineLocal => line.combine(bytes),
            NodeKind::Copy => line.copy(bytes),
        }
    }
}

/// A schedule's transfers and computations, each after everything it waits for.
#[derive(Debug, Clone)]
pub(crate) struct OrderedGraph {
    nodes: Vec<Node>,
    /// By end of a node: the ends of nodes that it waits for, all of smaller nodes.
    waits: Grouped,
    /// For every event of every rank (`2 * step + part`), its node; [`NONE`] if it has none.
    event_nodes: Vec<u32>,
    /// First event of each rank.
    rank_events: Vec<usize>,
}

impl OrderedGraph {
    /// See [`Prepared::new`](crate::simulate::Prepared::new).
    pub(crate) fn new(schedule: &Schedule, overlap: bool) -> Result<OrderedGraph> {
        let mut first = None;
        let matching = Matching::new(schedule, |m| first = first.or(Some(m)))?;
        if let Some(mismatch) = first {
            return Err(mismatch_error(schedule, mismatch));
        }
        let graph = Graph::new(schedule, schedule.ports(), overlap, &matching)?;
        let (n, order) = (graph.nodes.len(), graph.order().order);
        if order.len() < n {
            return Err(Error::wrong(format!(
                "deadlock: {} of {n} transfers and computations wait for each other (run `check` for the cycle)",
                n - order.len()
            )));
        }
        Ok(graph.ordered(&order))
    }

    /// See [`Prepared::reachable`](crate::simulate::Prepared::reachable).
    pub(crate) fn reachable(schedule: &Schedule, overlap: bool) -> Result<OrderedGraph> {
        let (mut alone, mut unequal) = (Vec::new(), None);
        let matching = Matching::new(schedule, |m| match m {
            Mismatched::Alone { rank, step, .. } => alone.push((rank, step)),
            Mismatched::Length { .. } => unequal = unequal.or(Some(m)),
        })?;
        if let Some(mismatch) = unequal {
            return Err(mismatch_error(schedule, mismatch));
        }
        let graph = Graph::new(schedule, schedule.ports(), overlap, &matching)?;
        let order = graph.order_without(&alone).order;
        Ok(graph.ordered(&order))
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(crate) fn node(&self, rank: usize, event: Event) -> Option<usize> {
        let node = self.event_nodes[self.rank_events[rank] + event.index()];
        (node != NONE).then_some(node as usize)
    }

    /// The nodes that `node` waits for, at either end.
    pub(crate) fn waits(&self, node: usize) -> impl Iterator<Item = usize> + Clone {
        waits_of(&self.waits, node)
    }

    /// The ends of nodes that `end` of `node` waits for, all at the rank of this end.
    #[inline]
    pub(crate) fn waits_at(&self, node: usize, end: End) -> impl Iterator<Item = (usize, End)> {
        self.waits
            .of(end_number(node as u32, end) as usize)
            .iter()
            .map(|&wait| at_end(wait))
    }

    /// Every node with the nodes that it waits for, in order.
    #[inline]
    pub(crate) fn nodes_with_waits(
        &self,
    ) -> impl Iterator<Item = (&Node, impl Iterator<Item = usize>)> {
        let waits = self.waits.pairs();
        self.nodes
            .iter()
            .zip(waits.map(|waits| waits.iter().map(|&wait| node_of(wait))))
    }
}

/// The number of an end of a node. There are less than 2^31 nodes.
#[inline]
fn end_number(node: u32, end: End) -> u32 {
    2 * node + end as u32
}

/// The node of the end with this number.
#[inline]
fn node_of(end: u32) -> usize {
    end as usize / 2
}

/// The end with this number.
#[inline]
fn at_end(number: u32) -> (usize, End) {
    (node_of(number), End::BOTH[number as usize % 2])
}

/// The nodes that both ends of a node wait for.
fn waits_of(waits: &Grouped, node: usize) -> impl Iterator<Item = usize> + Clone {
    waits.of_pair(node).iter().map(|&wait| node_of(wait))
}

/// The precedence graph: nodes in program order with what they wait for, before they are ordered.
///
/// The checker uses it where an [`OrderedGraph`] need not exist: steps may be unmatched or wait in
/// a cycle.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
    waits: Grouped,
    /// As in [`OrderedGraph`].
    pub(crate) event_nodes: Vec<u32>,
    /// As in [`OrderedGraph`].
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
            waits: Grouped::default(),
            event_nodes: vec![NONE; 2 * matching.mates.len()],
            rank_events: matching
                .first_step
                .iter()
                .map(|&s| 2 * s as usize)
                .collect(),
        };
        graph.number(programs, &matching.mates)?;
        graph.connect(schedule, ports, overlap)?;
        Ok(graph)
    }

    /// Nodes that node `node` waits for.
    pub(crate) fn waits(&self, node: usize) -> impl Iterator<Item = usize> + Clone {
        waits_of(&self.waits, node)
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
            kind: NodeKind::Transfer,
            from: 0,
            to: 0,
            elements: 0,
        };
        self.nodes = vec![nothing; total as usize];
        for (rank, program) in programs.iter().enumerate() {
            let (me, base) = (rank_u32(rank)?, self.rank_events[rank]);
            for (i, step) in program.iter().enumerate() {
                let event = base + 2 * i;
                let mate = mates[event / 2];
                let mut push = |kind, from, to| {
                    let number = next[i];
                    next[i] += 1;
                    self.nodes[number as usize] = Node {
                        kind,
                        from,
                        to,
                        elements: step.len() as u64,
                    };
                    number
                };
                match step {
                    // A matched send is numbered with its receive.
                    Step::Send { .. } if mate != NONE => {}
                    Step::Send { to, .. } => {
                        let to = rank_u32(*to)?;
                        self.event_nodes[event] = push(NodeKind::Transfer, me, to);
                    }
                    Step::Recv { from, .. } | Step::RecvCombine { from, .. } => {
                        let node = push(NodeKind::Transfer, rank_u32(*from)?, me);
                        self.event_nodes[event] = node;
                        if mate != NONE {
                            self.event_nodes[2 * mate as usize] = node;
                        }
                        if step.computes() {
                            self.event_nodes[event + 1] = push(NodeKind::Combine, me, me);
                        }
                    }
                    Step::Copy { .. } => {
                        self.event_nodes[event + 1] = push(NodeKind::Copy, me, me);
                    }
                    Step::Combine { .. } => {
                        self.event_nodes[event + 1] = push(NodeKind::CombineLocal, me, me);
                    }
                }
            }
        }
        Ok(())
    }

    /// Collects the nodes that every node waits for, at both of its ranks and on shared ports.
    fn connect(&mut self, schedule: &Schedule, ports: Ports, overlap: bool) -> Result<()> {
        let programs = schedule.programs();
        let (mut order, mut scratch) = (LocalOrder::default(), OrderScratch::default());
        // Pairs of ends of nodes, of which the first waits for the second; a counting sort groups
        // them afterwards.
        let mut edges: Vec<(u32, u32)> = Vec::with_capacity(4 * self.nodes.len());
        for (rank, program) in programs.iter().enumerate() {
            order
                .analyse(program, ports, overlap, &mut scratch)
                .map_err(|e| Error::wrong(format!("rank {rank}: {e}")))?;
            // The end of a node that an event of this rank is.
            let end_of = |event: Event| {
                let sends = !event.is_computed() && program[event.step()].is_send();
                let node = self.event_nodes[self.rank_events[rank] + event.index()];
                end_number(node, if sends { End::Sender } else { End::Receiver })
            };
            for (i, step) in program.iter().enumerate() {
                let (transferred, computed) = (Event::transferred(i), Event::computed(i));
                let first = match step.peer() {
                    Some(_) => end_of(transferred),
                    None => end_of(computed),
                };
                let before = order.before_start(i).iter();
                edges.extend(before.map(|&event| (first, end_of(event))));
                if step.peer().is_some() && step.computes() {
                    let computed = end_of(computed);
                    edges.push((computed, end_of(transferred)));
                    let before = order.before_compute(i).iter();
                    edges.extend(before.map(|&event| (computed, end_of(event))));
                }
            }
        }
        let transfer = |(rank, step): (usize, usize)| {
            let node = self.event_nodes[self.rank_events[rank] + Event::transferred(step).index()];
            let sends = programs[rank][step].is_send();
            end_number(node, if sends { End::Sender } else { End::Receiver })
        };
        let waits = shared::waits(schedule.shared_ports());
        edges.extend(waits.map(|(listed, before)| (transfer(listed), transfer(before))));
        self.waits = Grouped::new(2 * self.nodes.len(), edges.iter().copied());
        Ok(())
    }

    /// Orders the nodes with a work-list so that each comes after everything it waits for.
    pub(crate) fn order(&self) -> Ordered {
        self.order_without(&[])
    }

    /// As [`Graph::order`], where these transfers (rank and step) never run.
    pub(crate) fn order_without(&self, never: &[(usize, usize)]) -> Ordered {
        let n = self.nodes.len();
        let backwards = (0..n).flat_map(|i| self.waits(i).map(move |w| (w as u32, i as u32)));
        let successors = Grouped::new(n, backwards);
        let mut missing: Vec<u32> = (0..n).map(|i| self.waits(i).count() as u32).collect();
        for &(rank, step) in never {
            let event = self.rank_events[rank] + Event::transferred(step).index();
            missing[self.event_nodes[event] as usize] += 1;
        }
        // A queue instead of a stack: nodes that can run together become neighbours, and their
        // dependencies are still in cache.
        let mut order: Vec<u32> = (0..n as u32)
            .filter(|&i| missing[i as usize] == 0)
            .collect();
        let mut next = 0;
        while let Some(&node) = order.get(next) {
            next += 1;
            for &next in successors.of(node as usize) {
                missing[next as usize] -= 1;
                if missing[next as usize] == 0 {
                    order.push(next);
                }
            }
        }
        Ordered { order, missing }
    }

    /// Takes only the nodes of `order`, in which each comes after everything it waits for.
    fn ordered(self, order: &[u32]) -> OrderedGraph {
        let mut position = vec![NONE; self.nodes.len()];
        for (i, &node) in order.iter().enumerate() {
            position[node as usize] = i as u32;
        }
        let mut ordered = OrderedGraph {
            nodes: Vec::with_capacity(order.len()),
            waits: Grouped::with_capacity_of(&self.waits),
            event_nodes: Vec::new(),
            rank_events: Vec::new(),
        };
        for &node in order {
            ordered.nodes.push(self.nodes[node as usize]);
            for end in End::BOTH {
                let waits = self.waits.of(end_number(node, end) as usize).iter();
                ordered.waits.push(waits.map(|&wait| {
                    let (node, end) = at_end(wait);
                    end_number(position[node], end)
                }));
            }
        }
        (ordered.event_nodes, ordered.rank_events) = (self.event_nodes, self.rank_events);
        for node in &mut ordered.event_nodes {
            if *node != NONE {
                *node = position[*node as usize];
            }
        }
        ordered
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

/// Formats the first mismatch as an error.
fn mismatch_error(schedule: &Schedule, mismatch: Mismatched) -> Error {
    Error::wrong(match mismatch {
        Mismatched::Alone {
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
        Mismatched::Length {
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
