//! What is asked for, and the answer.

use super::certificate::Certificate;
use super::fraction::{Fraction, common_denominator, lcm};
use super::platform::Platform;
use super::ports::Slot;
use super::route::{Demand, Route};
use super::solve::{Method, best_rates};
use crate::cost::Ports;
use crate::error::{Error, Result};
use dashu_int::UBig;

/// A series of these operations is performed, as many a time unit as the platform allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The source's message to all nodes.
    Broadcast,
    /// The source's message to the targets; other nodes may pass it on.
    Multicast,
    /// A message of its own from the source to each target.
    Scatter,
    /// A message from each target to the source.
    Gather,
    /// All nodes' messages combined at the source, by an operator that commutes and takes no time.
    Reduce,
    /// Every node's message to all nodes: a broadcast from every node (the papers' total exchange).
    Allgather,
    /// A message of its own from every node to every other: a scatter from every node.
    Alltoall,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 7] = [
        Operation::Broadcast,
        Operation::Multicast,
        Operation::Scatter,
        Operation::Gather,
        Operation::Reduce,
        Operation::Allgather,
        Operation::Alltoall,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Broadcast => "broadcast",
            Operation::Multicast => "multicast",
            Operation::Scatter => "scatter",
            Operation::Gather => "gather",
            Operation::Reduce => "reduce",
            Operation::Allgather => "allgather",
            Operation::Alltoall => "alltoall",
        }
    }

    /// Whether it is another operation run backwards: on the platform with its edges turned round.
    pub fn is_reversed(self) -> bool {
        matches!(self, Operation::Gather | Operation::Reduce)
    }

    /// What one operation asks for, on the platform or its reverse.
    pub(super) fn demand(self, platform: &Platform) -> Result<Demand> {
        let n = platform.nodes();
        let others = |v: usize| (0..n).filter(|&u| u != v).collect::<Vec<usize>>();
        let source = platform.source();
        let (roots, targets): (Vec<usize>, Vec<Vec<usize>>) = match self {
            Operation::Broadcast | Operation::Reduce => (vec![source], vec![others(source)]),
            Operation::Multicast | Operation::Scatter | Operation::Gather => {
                (vec![source], vec![platform.targets().to_vec()])
            }
            Operation::Allgather | Operation::Alltoall => {
                ((0..n).collect(), (0..n).map(others).collect())
            }
        };
        for (&root, targets) in roots.iter().zip(&targets) {
            platform.reaches(root, targets, self.is_reversed())?;
        }
        Ok(Demand {
            roots,
            targets,
            personal: matches!(
                self,
                Operation::Scatter | Operation::Gather | Operation::Alltoall
            ),
        })
    }
}

/// The optimal throughput of a series of operations, and how it is reached.
#[derive(Debug, Clone)]
pub struct Solution {
    /// What is performed.
    pub operation: Operation,
    /// What a node's ports allow.
    pub ports: Ports,
    /// Operations a time unit.
    pub throughput: Fraction,
    /// Routes and how many operations a time unit each has. For gathers and reductions they are routes of the reversed platform: messages run
    /// from the end of each edge to its start, and towards the root.
    pub routes: Vec<(Route, Fraction)>,
    /// What takes place at the same time, and for what share of it. Every edge is busy just as long as the routes ask for.
    pub slots: Vec<Slot>,
    /// The proof that no schedule is faster; verified. Absent for multicasts to some of the nodes.
    pub certificate: Option<Certificate>,
    /// Whether the throughput is the best possible. It is not known to be for multicasts to many but not all nodes.
    pub is_optimal: bool,
    pub(super) platform: Platform,
}

/// The optimal throughput of a series of operations on `platform`.
///
/// # Errors
/// When a target cannot be reached, or the ports are not one-ported.
pub fn solve(
    platform: &Platform,
    operation: Operation,
    ports: Ports,
    method: Method,
) -> Result<Solution> {
    if ports.k() != 1 {
        return Err(Error::usage(format!(
            "steady-state throughput is for one port of each kind, not {}",
            ports.k()
        )));
    }
    let platform = if operation.is_reversed() {
        platform.reversed()
    } else {
        platform.clone()
    };
    let demand = operation.demand(&platform)?;
    let rates = best_rates(&platform, ports, &demand, method)?;
    Ok(Solution {
        operation,
        ports,
        throughput: rates.throughput,
        routes: rates.routes,
        slots: rates.slots,
        certificate: rates.certificate,
        is_optimal: demand.is_exact(platform.nodes()),
        platform,
    })
}

impl Solution {
    /// The platform that the edges of routes and slots are numbered by: for gathers and reductions the reversed one.
    pub fn platform(&self) -> &Platform {
        &self.platform
    }

    /// Sender and receiver of an edge's messages.
    pub fn link(&self, edge: usize) -> (usize, usize) {
        let e = &self.platform.edges()[edge];
        if self.operation.is_reversed() {
            (e.dst, e.src)
        } else {
            (e.src, e.dst)
        }
    }

    /// The shortest period in which every route has whole operations and every slot whole messages: the least common multiple of the
    /// denominators of the routes' rates and of the slots' shares over the costs. It may be very long.
    pub fn period(&self) -> UBig {
        let routes = common_denominator(self.routes.iter().map(|(_, rate)| rate));
        let edges = self.platform.edges();
        let messages: Vec<Fraction> = (self.slots.iter())
            .flat_map(|s| s.edges.iter().map(move |&e| &s.share / &edges[e].cost))
            .collect();
        lcm(&routes, &common_denominator(&messages))
    }
}
