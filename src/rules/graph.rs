//! The precedence graph of a schedule: its transfers and computations, with what each of them waits
//! for by the [rules of time](crate::rules).
//!
//! [`OrderedGraph::new`] matches sends with receives and orders transfers and computations so that
//! each comes after everything it waits for (a work-list, linear in the number of steps). The
//! simulator evaluates the graph under a cost model; the checker looks for cycles in it.

use super::matching::{Grouped, Matching, Mismatched, NONE, rank_u32};
use super::{End, Event, LocalOrder, OrderScratch, shared};
use crate::error::{Error, Result};
use crate::machine::numbers::id;
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
    /// By node: the nodes that it waits for, all smaller.
    waits: Grouped,
    /// For each of these waits, which end of a node waits for which: see [`wait_ends`]. Apart,
    /// since the ends of a transfer coincide under ideal costs.
    wait_ends: Vec<u8>,
    /// For every event of every rank (`2 * step + part`), its node; [`NONE`] if it has none.
    event_nodes: Vec<u32>,
    rank_events: Vec<usize>,
}

impl OrderedGraph {
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
        self.waits.of(node).iter().map(|&wait| wait as usize)
    }

    /// The ends of nodes that `end` of `node` waits for, all at the rank of this end.
    #[inline]
    pub(crate) fn waits_at(&self, node: usize, end: End) -> impl Iterator<Item = (usize, End)> {
        let ends = &self.wait_ends[self.waits.range(node)];
        let waits = self.waits(node).zip(ends);
        let own = waits.filter(move |&(_, &ends)| ends % 2 == end as u8);
        own.map(|(wait, &ends)| (wait, End::BOTH[usize::from(ends / 2)]))
    }

    /// Every node with the nodes that it waits for, in order.
    #[inline]
    pub(crate) fn nodes_with_waits(&self) -> impl Iterator<Item = (&Node, &[u32])> {
        self.nodes.iter().zip(self.waits.iter())
    }
}

/// The ends of a wait: of the node that waits, and of the one that it waits for.
fn wait_ends((waiting, awaited): (End, End)) -> u8 {
    waiting as u8 + 2 * awaited as u8
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
    wait_ends: Vec<u8>,
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
            wait_ends: Vec::new(),
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
        self.waits.of(node).iter().map(|&wait| wait as usize)
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

    /// The end of a node that an event of `rank` is.
    fn end_of(&self, rank: usize, program: &[Step], event: Event) -> (u32, End) {
        let sends = !event.is_computed() && program[event.step()].is_send();
        let node = self.event_nodes[self.rank_events[rank] + event.index()];
        (node, if sends { End::Sender } else { End::Receiver })
    }

    /// Collects the nodes that every node waits for, at both of its ranks and on shared ports.
    fn connect(&mut self, schedule: &Schedule, ports: Ports, overlap: bool) -> Result<()> {
        let programs = schedule.programs();
        let (mut order, mut scratch) = (LocalOrder::default(), OrderScratch::default());
        // Pairs (node, node it waits for), and their ends; a counting sort groups them by node
        // afterwards.
        let mut edges: Vec<(u32, u32)> = Vec::with_capacity(4 * self.nodes.len());
        let mut ends: Vec<u8> = Vec::with_capacity(4 * self.nodes.len());
        let mut wait = |(node, end): (u32, End), (before, before_end): (u32, End)| {
            edges.push((node, before));
            ends.push(wait_ends((end, before_end)));
        };
        for (rank, program) in programs.iter().enumerate() {
            order
                .analyse(program, ports, overlap, &mut scratch)
                .map_err(|e| Error::wrong(format!("rank {rank}: {e}")))?;
            let end_of = |event| self.end_of(rank, program, event);
            for (i, step) in program.iter().enumerate() {
                let (transferred, computed) = (Event::transferred(i), Event::computed(i));
                let first = match step.peer() {
                    Some(_) => end_of(transferred),
                    None => end_of(computed),
                };
                let before = order.before_start(i).iter();
                before.for_each(|&event| wait(first, end_of(event)));
                if step.peer().is_some() && step.computes() {
                    let computed = end_of(computed);
                    wait(computed, end_of(transferred));
                    let before = order.before_compute(i).iter();
                    before.for_each(|&event| wait(computed, end_of(event)));
                }
            }
        }
        for (listed, before) in shared::waits(schedule.shared_ports()) {
            let [listed, before] = [listed, before]
                .map(|(rank, step)| self.end_of(rank, &programs[rank], Event::transferred(step)));
            wait(listed, before);
        }
        self.waits = Grouped::new(self.nodes.len(), edges.iter().copied());
        let ends = edges.iter().map(|edge| edge.0).zip(ends.iter().copied());
        self.wait_ends = Grouped::new(self.nodes.len(), ends).into_values();
        Ok(())
    }

    /// Orders the nodes with a work-list so that each comes after everything it waits for.
    pub(crate) fn order(&self) -> Ordered {
        self.order_without(&[])
    }

    /// As [`Graph::order`], where these transfers (rank and step) never run.
    pub(crate) fn order_without(&self, never: &[(usize, usize)]) -> Ordered {
        let n = self.nodes.len();
        let backwards = (0..n).flat_map(|i| self.waits(i).map(move |w| (id(w), id(i))));
        let successors = Grouped::new(n, backwards);
        let mut missing: Vec<u32> = (0..n).map(|i| id(self.waits(i).count())).collect();
        for &(rank, step) in never {
            let event = self.rank_events[rank] + Event::transferred(step).index();
            missing[self.event_nodes[event] as usize] += 1;
        }
        // A queue instead of a stack: nodes that can run together become neighbours, and their
        // dependencies are still in cache.
        let mut order: Vec<u32> = (0..id(n)).filter(|&i| missing[i as usize] == 0).collect();
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
            position[node as usize] = id(i);
        }
        let mut ordered = OrderedGraph {
            // Comes first, so that the lists that a pass reads lie together (6% faster).
            wait_ends: Vec::with_capacity(self.wait_ends.len()),
            nodes: Vec::with_capacity(order.len()),
            waits: Grouped::with_capacity_of(&self.waits),
            event_nodes: Vec::new(),
            rank_events: Vec::new(),
        };
        for &node in order {
            ordered.nodes.push(self.nodes[node as usize]);
            let waits = self.waits(node as usize).map(|wait| position[wait]);
            ordered.waits.push(waits);
        }
        let ranges = order.iter().map(|&node| self.waits.range(node as usize));
        ranges.for_each(|waits| ordered.wait_ends.extend_from_slice(&self.wait_ends[waits]));
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
