//! The check that routes and matchings reach a throughput, by sums and comparisons alone.

use std::collections::HashSet;

use super::demand::{Combining, Wanted};
use super::fraction::{Fraction, sum, whole};
use super::ports::PortGraph;
use super::problem::Solution;
use super::route::{Arborescence, Route, Task, TaskGraph};
use oneport::error::{Error, Result};

impl Solution {
    /// Checks that the routes perform the operation, that the matchings carry them, and, by the
    /// certificate, that nothing is faster than its bound.
    pub(super) fn verify(&self) -> Result<()> {
        let demand = self.operation.demand(&self.platform)?;
        if let Some(certificate) = &self.certificate {
            certificate.verify(&self.platform, self.ports, &demand)?;
            if certificate.bound != self.throughput {
                return violated("the throughput is not its bound");
            }
        }
        for (route, rate) in &self.routes {
            if *rate < Fraction::ZERO {
                return violated("a rate is negative");
            }
            self.verify_route(route, &demand)?;
        }
        if sum(self.routes.iter().map(|(_, rate)| rate.clone())) != self.throughput {
            return violated("the rates do not add up to the throughput");
        }
        self.verify_slots(&self.port_graph())
    }

    fn verify_route(&self, route: &Route, demand: &Wanted) -> Result<()> {
        if let Some(combining) = &demand.combining {
            let ordered = match combining {
                Combining::Partial(partials) => partials.ordered,
                Combining::Trees => false,
            };
            if !route.trees.is_empty() {
                return violated("a route of tasks has trees");
            }
            return self.verify_tasks(&route.task_graph, demand.roots[0], ordered);
        }
        if route.trees.len() != demand.roots.len() || !route.task_graph.tasks.is_empty() {
            return violated("a route does not have a tree for each root");
        }
        let wanted = demand.roots.iter().zip(&demand.targets);
        for (tree, (&root, targets)) in route.trees.iter().zip(wanted) {
            if tree.root != root {
                return violated(format!("a tree from {} is one from {root}", tree.root));
            }
            self.verify_tree(tree, targets, demand.personal)?;
        }
        Ok(())
    }

    /// Checks that a tree leads from its root to all targets, with as many messages as these need.
    fn verify_tree(&self, tree: &Arborescence, targets: &[usize], personal: bool) -> Result<()> {
        let (edges, n) = (self.platform.edges(), self.platform.nodes());
        let mut entering = vec![None; n];
        let mut reached = vec![false; n];
        reached[tree.root] = true;
        for (i, &e) in tree.edges.iter().enumerate() {
            let Some(edge) = edges.get(e).filter(|e| reached[e.src] && !reached[e.dst]) else {
                return violated(format!("link {e} does not continue a tree"));
            };
            reached[edge.dst] = true;
            entering[edge.dst] = Some(i);
        }
        let mut behind = vec![0; tree.edges.len()];
        for &target in targets {
            let mut at = target;
            while let Some(i) = entering[at] {
                behind[i] += 1;
                at = edges[tree.edges[i]].src;
            }
            if at != tree.root {
                return violated(format!("a tree does not lead to {target}"));
            }
        }
        let needed = behind.iter().map(|&n| if personal { n } else { 1 });
        if !needed.eq(tree.messages.iter().copied()) {
            return violated("a tree carries other messages than its targets need");
        }
        Ok(())
    }

    /// Checks that tasks combine each node's contribution once, in the end at `root`, and in order
    /// if they must.
    fn verify_tasks(&self, graph: &TaskGraph, root: usize, ordered: bool) -> Result<()> {
        let (edges, n) = (self.platform.edges(), self.platform.nodes());
        if !graph.owners.iter().copied().eq(0..n) {
            return violated("contributions are not those of all nodes");
        }
        // By value: where it is, and which contributions are in it, in order.
        let mut values: Vec<(usize, Vec<usize>)> = (0..n).map(|v| (v, vec![v])).collect();
        for task in &graph.tasks {
            let made = match *task {
                Task::Move { edge, value } => match (edges.get(edge), values.get(value)) {
                    (Some(edge), Some((at, of))) if *at == edge.src => (edge.dst, of.clone()),
                    _ => return violated(format!("value {value} is not where it is sent from")),
                },
                Task::Combine { node, left, right } => {
                    match (values.get(left), values.get(right)) {
                        (Some((a, of)), Some((b, with))) if *a == node && *b == node => {
                            (node, [&of[..], &with[..]].concat())
                        }
                        _ => {
                            return violated(format!("node {node} does not have what it combines"));
                        }
                    }
                }
            };
            values.push(made);
        }
        let result = graph.results.first().and_then(|&value| values.get(value));
        let all = result.filter(|(at, _)| *at == root && graph.results.len() == 1);
        let is_all = all.is_some_and(|(_, of)| {
            let mut sorted = of.clone();
            sorted.sort_unstable();
            sorted.into_iter().eq(0..n) && (!ordered || of.is_sorted())
        });
        if !is_all {
            return violated("the result is not that of all contributions");
        }
        Ok(())
    }

    /// Checks that the matchings take the whole time at most, use no port twice, and last as long
    /// as the routes need their links and processors.
    fn verify_slots(&self, graph: &PortGraph) -> Result<()> {
        let mut missing = graph.loads(self.routes.iter().map(|(r, rate)| (r, rate.clone())));
        for slot in &self.slots {
            if slot.share < Fraction::ZERO {
                return violated("a share is negative");
            }
            let mut used = HashSet::new();
            for &e in &slot.edges {
                let Some(&(a, b)) = graph.links().get(e) else {
                    return violated(format!("there is no activity {e}"));
                };
                if !used.insert(a) || !used.insert(b) {
                    return violated("a matching uses a port twice");
                }
                missing[e] -= &slot.share;
            }
        }
        if sum(self.slots.iter().map(|slot| slot.share.clone())) > whole(1) {
            return violated("the matchings take longer than the time there is");
        }
        match missing.iter().position(|left| *left > Fraction::ZERO) {
            Some(e) => violated(format!("the matchings are too short for activity {e}")),
            None => Ok(()),
        }
    }
}

fn violated<T>(what: impl Into<String>) -> Result<T> {
    Err(Error::wrong(format!("certificate: {}", what.into())))
}
