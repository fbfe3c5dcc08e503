//! The proof that no schedule is faster, and a check of it that knows nothing of how it was found.

use super::fraction::{Fraction, sum, whole};
use super::platform::Platform;
use super::ports::PortGraph;
use super::route::Demand;
use crate::cost::Ports;
use crate::error::{Error, Result};

/// Prices that prove an upper bound of the throughput.
///
/// Time on each edge has a price. *At most `bound` can be spent on what takes place at the same time*: ports have prices, and so have odd
/// sets of ports (none of them for bidirectional ports); those of its two ports and of the sets around them pay for each edge, a matching
/// uses each port once and at most `(|S| - 1) / 2` edges within a set `S`. *No operation costs less than 1*: for arborescences, cuts
/// (sets that every message must enter) have values that no edge exceeds by its price times its cost; for paths, nodes have
/// potentials. Hence at most `bound` operations a time unit. All of that is sums and comparisons, which [`Certificate::verify`] does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The bound that is proved.
    pub bound: Fraction,
    /// Price of a time unit, by edge.
    pub prices: Vec<Fraction>,
    /// By port: nodes for unidirectional ports; all ports out, then all ports in for bidirectional ones.
    pub ports: Vec<Fraction>,
    /// Odd sets of ports and their prices.
    pub odd_sets: Vec<(Vec<usize>, Fraction)>,
    /// By root, why its messages cost what they cost.
    pub roots: Vec<Proof>,
}

/// Why the messages of one root cost no less than `value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// Sets of nodes that every message must enter, with values.
    Cuts(Vec<(Vec<usize>, Fraction)>),
    /// By node, how far it is from the root at least.
    Potentials(Vec<Fraction>),
}

impl Certificate {
    /// Checks every inequality.
    pub(super) fn verify(&self, platform: &Platform, ports: Ports, demand: &Demand) -> Result<()> {
        let wrong = |what: String| Err(Error::wrong(format!("certificate: {what}")));
        let graph = PortGraph::new(platform, ports);
        let edges = platform.edges();
        let zero = Fraction::ZERO;
        if self.prices.len() != edges.len()
            || self.ports.len() != graph.len()
            || self.roots.len() != demand.roots.len()
        {
            return wrong("its lists do not fit the platform".into());
        }
        let sets = self.odd_sets.iter().map(|(_, p)| p);
        if self
            .prices
            .iter()
            .chain(&self.ports)
            .chain(sets)
            .any(|p| *p < zero)
        {
            return wrong("a price is negative".into());
        }
        for (e, price) in edges.iter().zip(&self.prices) {
            let (a, b) = graph.ends(e.src, e.dst);
            let both = |set: &[usize]| set.contains(&a) && set.contains(&b);
            let sets = self.odd_sets.iter().filter(|(s, _)| both(s));
            let paid = &self.ports[a] + &self.ports[b] + sum(sets.map(|(_, p)| p.clone()));
            if paid < *price {
                return wrong(format!("edge {} -> {} is not paid for", e.src, e.dst));
            }
        }
        let mut bound = sum(self.ports.iter().cloned());
        for (set, price) in &self.odd_sets {
            let mut distinct = set.clone();
            distinct.sort_unstable();
            distinct.dedup();
            if distinct.len() != set.len() || set.len() % 2 == 0 {
                return wrong(format!("{set:?} is not an odd set"));
            }
            bound += whole((set.len() - 1) / 2) * price;
        }
        if bound > self.bound {
            return wrong("the ports are worth more than the bound".into());
        }
        let cost = |i: usize| &self.prices[i] * &edges[i].cost;
        let mut value = Fraction::ZERO;
        for ((root, targets), proof) in demand.roots.iter().zip(&demand.targets).zip(&self.roots) {
            match proof {
                Proof::Cuts(cuts) if !demand.personal => {
                    for (set, v) in cuts {
                        if *v < zero
                            || set.contains(root)
                            || !targets.iter().any(|t| set.contains(t))
                        {
                            return wrong(format!("{set:?} need not be entered from {root}"));
                        }
                        value += v;
                    }
                    for (i, e) in edges.iter().enumerate() {
                        let enters = |s: &[usize]| s.contains(&e.dst) && !s.contains(&e.src);
                        let entered = cuts.iter().filter(|(s, _)| enters(s));
                        if sum(entered.map(|(_, v)| v.clone())) > cost(i) {
                            return wrong(format!("edge {} -> {} costs less", e.src, e.dst));
                        }
                    }
                }
                Proof::Potentials(far) if demand.personal && far.len() == platform.nodes() => {
                    if !far[*root].is_zero() {
                        return wrong(format!("root {root} is not at 0"));
                    }
                    for (i, e) in edges.iter().enumerate() {
                        if far[e.dst] > &far[e.src] + cost(i) {
                            return wrong(format!("edge {} -> {} costs less", e.src, e.dst));
                        }
                    }
                    value += sum(targets.iter().map(|&t| far[t].clone()));
                }
                _ => return wrong(format!("root {root} has a proof of the wrong kind")),
            }
        }
        if value < whole(1) {
            return wrong("an operation may cost less than 1".into());
        }
        Ok(())
    }
}
