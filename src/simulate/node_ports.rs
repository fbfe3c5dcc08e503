//! Few ports for each node of a machine: which transfers use which of them, in which order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Prepared;
use crate::error::{Error, Result};
use crate::machine::numbers::id;
use crate::machine::{CostModel, Ports};
use crate::rules::matching::Grouped;
use crate::rules::{Event, max_time};
use crate::schedule::{Direction, Schedule, SharedPort};

impl Schedule {
    /// The same schedule on a machine whose nodes have `k` ports each, through which all transfers
    /// between nodes pass: `k` out and `k` in, or `k` for both directions if the ranks are
    /// unidirectional. Where ranks have ports for calls they are out and in, too: the two of a node
    /// may serve different nodes at once. `nodes` lists the ranks of each node; transfers of other
    /// ranks are not limited at their end. Shared ports that the schedule had are dropped.
    ///
    /// Ports grant the transfer that is ready first under `cost` without overlap; ties go to the
    /// longest wait. A transfer takes the port that has been free longest. This order becomes part
    /// of the schedule ([`SharedPort`]), so its time is exact under any costs, though perhaps not
    /// the least that `k` ports allow.
    ///
    /// Takes `O(n s log s)` time for `s` steps and nodes whose ranks have `n` ports together.
    ///
    /// ```
    /// use oneport::{CostModel, Request};
    /// // Pairwise exchange: 4 of the 6 messages of each node leave it.
    /// let schedule = Request::alltoall(4, 10).plan("pairwise")?;
    /// let cost = CostModel::new(5.0, 1.0);
    /// let nodes = [vec![0, 1], vec![2, 3]];
    /// let time = |k: usize| -> oneport::Result<f64> {
    ///     let shared = schedule.clone().with_node_ports(&nodes, k, &cost)?;
    ///     assert!(shared.check().is_correct());
    ///     Ok(shared.simulate(&cost)?.makespan())
    /// };
    /// assert_eq!((time(2)?, time(1)?), (3.0 * 15.0, 4.0 * 15.0));
    /// # Ok::<(), oneport::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if `k` is 0 or above 4096, or a rank is in two
    /// nodes or does not exist; and as [`Schedule::simulate`].
    pub fn with_node_ports(
        self,
        nodes: &[Vec<usize>],
        k: usize,
        cost: &CostModel,
    ) -> Result<Schedule> {
        if k == 0 || k > Ports::MAX_K {
            return Err(Error::usage(format!(
                "a node needs 1 to {} ports of each kind, not {k}",
                Ports::MAX_K
            )));
        }
        let node_of = node_of(nodes, self.ranks())?;
        let schedule = self.with_shared_ports(Vec::new())?;
        // An order that leads to no deadlock if computation keeps ports busy leads to none anyway.
        let cost = &cost.clone().overlap(false);
        let prepared = Prepared::new(&schedule, false)?;
        // Refuses costs that do not fit the schedule.
        prepared.simulate(cost)?;
        let cost = &*schedule.collective().kind().costs(cost);
        let ports = schedule.ports().with_k(k);
        let mut contention =
            PortContention::new(&schedule, &prepared, &node_of, nodes.len(), ports);
        contention.serve(|node| prepared.nodes()[node].time(cost, schedule.element_bytes()));
        let shared = contention.shared_ports(nodes);
        schedule.with_shared_ports(shared)
    }
}

fn node_of(nodes: &[Vec<usize>], ranks: usize) -> Result<Vec<Option<usize>>> {
    let mut node_of = vec![None; ranks];
    for (node, members) in nodes.iter().enumerate() {
        for &rank in members {
            match node_of.get_mut(rank) {
                None => {
                    let text = format!("nodes: rank {rank} is not one of {ranks} ranks");
                    return Err(Error::usage(text));
                }
                Some(Some(_)) => {
                    return Err(Error::usage(format!(
                        "nodes: rank {rank} is in two of them"
                    )));
                }
                Some(place) => *place = Some(node),
            }
        }
    }
    Ok(node_of)
}

/// One end of a transfer between nodes: its node, and its rank and step.
#[derive(Debug, Clone, Copy)]
struct BorderEnd {
    node: usize,
    sends: bool,
    step: (usize, usize),
}

/// A port of a node while transfers are served.
#[derive(Debug, Clone, Default)]
struct Port {
    free: f64,
    steps: Vec<(usize, usize)>,
}

/// The transfers and computations of a schedule, and the ports that they compete for.
struct PortContention<'a> {
    prepared: &'a Prepared,
    /// By transfer: its ends, as far as they pass through ports of nodes.
    ends: Vec<[Option<BorderEnd>; 2]>,
    /// The ports of each node, as a rank has them.
    ports: Ports,
    /// By node and list number.
    lists: Vec<Vec<Port>>,
}

impl<'a> PortContention<'a> {
    fn new(
        schedule: &Schedule,
        prepared: &'a Prepared,
        node_of: &[Option<usize>],
        nodes: usize,
        ports: Ports,
    ) -> Self {
        let mut ends = vec![[None; 2]; prepared.nodes().len()];
        for (rank, program) in schedule.programs().iter().enumerate() {
            let Some(node) = node_of[rank] else { continue };
            for (i, step) in program.iter().enumerate() {
                let crosses = step.peer().is_some_and(|p| node_of[p] != Some(node));
                let transfer = prepared.node(rank, Event::transferred(i));
                if let (true, Some(transfer)) = (crosses, transfer) {
                    let sends = step.is_send();
                    let step = (rank, i);
                    ends[transfer][usize::from(sends)] = Some(BorderEnd { node, sends, step });
                }
            }
        }
        PortContention {
            prepared,
            ends,
            ports,
            lists: vec![vec![Port::default(); ports.lists()]; nodes],
        }
    }

    /// Serves all transfers and computations, which take these times.
    fn serve(&mut self, time: impl Fn(usize) -> f64) {
        let n = self.prepared.nodes().len();
        let waits = |node| self.prepared.waits(node);
        let backwards = (0..n).flat_map(|node| waits(node).map(move |w| (id(w), id(node))));
        let successors = Grouped::new(n, backwards);
        let mut missing: Vec<usize> = (0..n).map(|node| waits(node).count()).collect();
        let mut ready = vec![0.0; n];
        // By start, then by the time since when it has been waiting. Times are not negative, so
        // their bits are in order.
        let mut queue: BinaryHeap<Reverse<(u64, u64, usize)>> = BinaryHeap::new();
        let key = |start: f64, ready: f64, node| Reverse((start.to_bits(), ready.to_bits(), node));
        queue.extend(
            (0..n)
                .filter(|&node| missing[node] == 0)
                .map(|node| key(0.0, 0.0, node)),
        );
        while let Some(Reverse((expected, _, node))) = queue.pop() {
            let start = self.start(node, ready[node]);
            if start.to_bits() > expected {
                // Its port has been taken meanwhile.
                queue.push(key(start, ready[node], node));
                continue;
            }
            let end = start + time(node);
            self.occupy(node, end);
            for &next in successors.of(node) {
                let next = next as usize;
                ready[next] = max_time(ready[next], end);
                missing[next] -= 1;
                if missing[next] == 0 {
                    queue.push(key(self.start(next, ready[next]), ready[next], next));
                }
            }
        }
    }

    /// The earliest start of a node of the graph that waits for nothing but ports from `ready` on.
    fn start(&self, node: usize, ready: f64) -> f64 {
        let ends = self.ends[node].iter().flatten();
        ends.fold(ready, |start, &end| {
            let (node, list) = self.port(end);
            max_time(start, self.lists[node][list].free)
        })
    }

    /// Has a node of the graph use its ports until `end`.
    fn occupy(&mut self, node: usize, end: f64) {
        for at in self.ends[node].into_iter().flatten() {
            let (node, list) = self.port(at);
            let port = &mut self.lists[node][list];
            port.free = end;
            port.steps.push(at.step);
        }
    }

    /// The port for one end of a transfer: of those of its node that serve its direction, the one
    /// that is free first.
    fn port(&self, end: BorderEnd) -> (usize, usize) {
        let lists = (0..self.ports.k()).map(|port| self.ports.list(end.sends, port));
        let free = |list: &usize| self.lists[end.node][*list].free;
        let first = lists.min_by(|a, b| free(a).total_cmp(&free(b)));
        (end.node, first.unwrap_or(0))
    }

    fn shared_ports(self, nodes: &[Vec<usize>]) -> Vec<SharedPort> {
        let mut shared = Vec::new();
        for (node, (ranks, mut lists)) in nodes.iter().zip(self.lists).enumerate() {
            let directions = if self.ports.has_sides() {
                &[Direction::Out, Direction::In][..]
            } else {
                &[Direction::Both]
            };
            for &direction in directions {
                for port in 0..self.ports.k() {
                    let list = self.ports.list(direction != Direction::In, port);
                    shared.push(SharedPort {
                        name: format!("node {node} {}", self.ports.list_name(list)),
                        ranks: ranks.clone(),
                        direction,
                        steps: std::mem::take(&mut lists[list].steps),
                    });
                }
            }
        }
        shared
    }
}
