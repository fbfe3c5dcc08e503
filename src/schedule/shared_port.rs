//! Ports that several ranks share: the network ports of a node, each with the order of its
//! transfers.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::{Schedule, Step};
use crate::error::{Error, Result};

/// A port that several ranks share, with the transfers that use it, in their order.
///
/// It belongs to a node: the ranks of one machine, say, behind one network interface. Like a port
/// of a rank, it carries one transfer at a time: rule 1 of [`crate::rules`]. No program states the
/// order in which the ranks use it, so the schedule lists it.
///
/// [`Schedule::check`] proves that the ports of a node are as many as they claim to be: that every
/// transfer across the border of the node is in the list of exactly one of them.
///
/// In files an object `{"name": "node 0 out", "ranks": [0, 1], "direction": "out", "steps":
/// [[0, 3], [1, 2]]}`.
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedPort {
    /// A name for people.
    pub name: String,
    /// The ranks of the node. Ports of one node name the same ranks, in any order.
    pub ranks: Vec<usize>,
    /// Which transfers across the border of the node use the ports of this kind.
    pub direction: Direction,
    /// The transfers that use the port, in their order: the rank inside the node and its step.
    #[cfg_attr(feature = "schemars", schemars(with = "Vec<[usize; 2]>"))]
    pub steps: Vec<(usize, usize)>,
}

/// What a [`SharedPort`] carries.
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Transfers that leave the node.
    Out,
    /// Transfers that enter the node.
    In,
    /// Both.
    Both,
}

impl Direction {
    /// Whether it includes sends (`sends`) or receives.
    fn carries(self, sends: bool) -> bool {
        match self {
            Direction::Out => sends,
            Direction::In => !sends,
            Direction::Both => true,
        }
    }

    fn reversed(self) -> Direction {
        match self {
            Direction::Out => Direction::In,
            Direction::In => Direction::Out,
            Direction::Both => Direction::Both,
        }
    }
}

impl Schedule {
    /// The same schedule with these shared ports instead of its own. [`Schedule::check`] tells
    /// whether it still completes, and whether the lists are whole.
    ///
    /// Linear in the number of listed steps.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if a port names a rank or step that
    /// does not exist, a step that is no transfer, or a rank or step twice.
    pub fn with_shared_ports(mut self, ports: Vec<SharedPort>) -> Result<Schedule> {
        for port in &ports {
            let wrong = |what: String| {
                let name = &port.name;
                Err(Error::malformed(format!("shared port {name:?}: {what}")))
            };
            let mut ranks = HashSet::new();
            for &rank in &port.ranks {
                if rank >= self.ranks() {
                    let p = self.ranks();
                    return wrong(format!("rank {rank} is not one of {p} ranks"));
                }
                if !ranks.insert(rank) {
                    return wrong(format!("rank {rank} is named twice"));
                }
            }
            let mut steps = HashSet::new();
            for &(rank, step) in &port.steps {
                let program = self.programs.get(rank);
                let what = match program.and_then(|program| program.get(step)) {
                    None => "does not exist",
                    Some(named) if named.peer().is_none() => "is no transfer",
                    Some(_) if !steps.insert((rank, step)) => "is listed twice",
                    Some(_) => continue,
                };
                return wrong(format!("step {step} of rank {rank} {what}"));
            }
        }
        self.shared_ports = ports;
        Ok(self)
    }

    /// The ports that ranks share, none unless the schedule was given some.
    pub fn shared_ports(&self) -> &[SharedPort] {
        &self.shared_ports
    }

    /// Reverses the shared ports with the programs, which have kept their lengths: what left a node
    /// enters it, in the opposite order.
    pub(super) fn reverse_shared_ports(&mut self) {
        for port in &mut self.shared_ports {
            port.direction = port.direction.reversed();
            port.steps.reverse();
            for (rank, step) in &mut port.steps {
                *step = self.programs[*rank].len() - 1 - *step;
            }
        }
    }
}

impl SharedPort {
    /// Whether `step`, of a rank of the node, is a transfer across the border of the node in a
    /// direction that the port serves. `inside` says which ranks are of the node.
    pub(crate) fn serves(&self, step: &Step, inside: impl Fn(usize) -> bool) -> bool {
        let crosses = step.peer().is_some_and(|peer| !inside(peer));
        crosses && self.direction.carries(step.is_send())
    }
}
