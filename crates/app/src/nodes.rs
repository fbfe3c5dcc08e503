//! `--node-ports`: the nodes of the machine, and how few ports they have.

use anyhow::{Result, bail};
use oneport::{CostModel, Ports, Schedule};

use crate::ask::options;
use crate::forms::Count;

options! {
    /// Nodes whose ranks share ports.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct NodeArgs {
        /// Number of ports of each kind that a node has, through which all messages between nodes
        /// pass: out and in, also where ranks have telephone ports [default: those of its ranks]
        pub(crate) node_ports: Option<usize> = Count { value: "K" },

        /// Number of nodes, of consecutive ranks [default: the nodes that --costs shows]
        nodes: Option<usize> = Count { value: "N", requires: &["node_ports"] },
    }
}

#[derive(Debug, Clone)]
pub(crate) struct NodePorts {
    nodes: Vec<Vec<usize>>,
    k: usize,
}

impl NodeArgs {
    /// The nodes of `ranks` ranks, if their ports are limited.
    pub(crate) fn of(&self, ranks: usize, cost: &CostModel) -> Result<Option<NodePorts>> {
        let Some(k) = self.node_ports else {
            return Ok(None);
        };
        if !(1..=Ports::MAX_K).contains(&k) {
            let max = Ports::MAX_K;
            bail!("--node-ports is {k}: a node has 1 to {max} ports of each kind");
        }
        let Some(n) = self.nodes else {
            let Some(nodes) = cost.nodes(ranks) else {
                bail!(
                    "--node-ports needs the nodes: give their number (--nodes), or costs with levels (--costs)"
                );
            };
            return Ok(Some(NodePorts { nodes, k }));
        };
        if n == 0 || n > ranks {
            bail!("{n} nodes for {ranks} ranks (--nodes)");
        }
        let first = |node: usize| node * ranks / n;
        let nodes = (0..n).map(|node| (first(node)..first(node + 1)).collect());
        Ok(Some(NodePorts {
            nodes: nodes.collect(),
            k,
        }))
    }
}

impl NodePorts {
    pub(crate) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn count(&self, ports: Ports) -> usize {
        self.nodes().saturating_mul(ports.with_k(self.k).lists())
    }

    pub(crate) fn share(&self, schedule: Schedule, cost: &CostModel) -> oneport::Result<Schedule> {
        schedule.with_node_ports(&self.nodes, self.k, cost)
    }
}
