//! The proof that no schedule is faster, and a check of it that is independent of how it was found.

use super::fraction::{Fraction, sum, whole};
use super::partial_results::PartialResults;
use super::platform::Platform;
use super::ports::PortGraph;
use super::route::{Combining, Demand};
use crate::error::{Error, Result};
use crate::machine::Ports;

/// Prices that prove an upper bound of the throughput.
///
/// Time on each edge has a price, and the proof has two parts.
///
/// - *Activities that take place at the same time are worth at most `bound`.* Ports have prices,
///   and so have odd sets of ports (there are none for bidirectional ports). The prices of the two
///   ports of an edge and of the sets around it cover the price of the edge. A matching uses each
///   port once, and at most `(|S| - 1) / 2` edges within a set `S`.
/// - *No operation costs less than 1.* For arborescences, cuts (sets that every message must enter)
///   have values; the values of the cuts that an edge crosses add up to at most its price times its
///   cost. For paths, nodes have potentials. For operations that combine on the way, and for trees
///   to some of the nodes, partial results have potentials on every node.
///
/// Hence at most `bound` operations fit into a time unit. The check only adds and compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The proved bound.
    pub bound: Fraction,
    /// Price of a time unit, by edge, followed by those of the nodes' combining where it takes
    /// time.
    pub prices: Vec<Fraction>,
    /// Prices by port. Unidirectional: by node. Bidirectional: all sending ports, then all
    /// receiving ports.
    pub ports: Vec<Fraction>,
    /// Odd sets of ports and their prices.
    pub odd_sets: Vec<(Vec<usize>, Fraction)>,
    /// By root, the proof of what its messages cost at least.
    pub roots: Vec<Proof>,
}

/// The proof of what the messages of one root cost at least.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// Sets of nodes that every message must enter, with their values.
    Cuts(Vec<(Vec<usize>, Fraction)>),
    /// By node, a lower bound of its distance from the root.
    Potentials(Vec<Fraction>),
    /// By partial result and node, a lower bound of the cost of having it there. Partial results
    /// are intervals of contributions, shorter ones first, or all sets of contributions, as binary
    /// numbers. For multicasts, the contributions are those of the targets on the reversed
    /// platform.
    Partial(Vec<Vec<Fraction>>),
}

impl Certificate {
    /// Converts the proof to a platform whose costs are `unit` times as high: prices of time units
    /// shrink, costs of operations stay.
    pub(super) fn per(mut self, unit: &Fraction) -> Certificate {
        self.bound /= unit;
        let sets = self.odd_sets.iter_mut().map(|(_, price)| price);
        for price in self.prices.iter_mut().chain(&mut self.ports).chain(sets) {
            *price /= unit;
        }
        self
    }

    /// Checks every inequality.
    ///
    /// # Errors
    /// When one does not hold; the message names it.
    pub(super) fn verify(&self, platform: &Platform, ports: Ports, demand: &Demand) -> Result<()> {
        let wrong = |violation: String| Err(Error::wrong(format!("certificate: {violation}")));
        let computing = demand.combining.is_some() && platform.computes();
        let graph = PortGraph::new(platform, ports, computing);
        let costs = platform.activity_costs(computing);
        let edges = platform.edges();
        let zero = Fraction::ZERO;
        if self.prices.len() != costs.len()
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
        for (i, (&(a, b), price)) in graph.links().iter().zip(&self.prices).enumerate() {
            let both = |set: &[usize]| set.contains(&a) && set.contains(&b);
            let sets = self.odd_sets.iter().filter(|(s, _)| both(s));
            let paid = &self.ports[a] + &self.ports[b] + sum(sets.map(|(_, p)| p.clone()));
            if paid < *price {
                return wrong(match edges.get(i) {
                    Some(e) => format!("edge {} -> {} is not paid for", e.src, e.dst),
                    None => format!("combining on node {} is not paid for", i - edges.len()),
                });
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
        let cost = |i: usize| &self.prices[i] * &costs[i];
        let combining = |v: usize| match computing {
            true => cost(edges.len() + v),
            false => Fraction::ZERO,
        };
        let mut value = Fraction::ZERO;
        for ((root, targets), proof) in demand.roots.iter().zip(&demand.targets).zip(&self.roots) {
            match proof {
                Proof::Partial(table) if !demand.personal => {
                    let (partials, turned) = match &demand.combining {
                        Some(Combining::Partial(partials)) => (partials.clone(), false),
                        Some(Combining::Trees) => return wrong("trees have no such proof".into()),
                        None => (PartialResults::of_targets(targets), true),
                    };
                    let splits = partials.splits();
                    if table.len() != splits.len()
                        || table.iter().any(|row| row.len() != platform.nodes())
                    {
                        return wrong("its partial results do not fit the operation".into());
                    }
                    for (i, &owner) in partials.owners.iter().enumerate() {
                        if table[partials.single(i)][owner] > zero {
                            return wrong(format!("contribution {i} is not free on its node"));
                        }
                    }
                    for row in table {
                        for (i, e) in edges.iter().enumerate() {
                            let (from, to) = if turned {
                                (e.dst, e.src)
                            } else {
                                (e.src, e.dst)
                            };
                            if row[to] > &row[from] + cost(i) {
                                return wrong(format!("edge {} -> {} costs less", e.src, e.dst));
                            }
                        }
                    }
                    let at: Vec<Fraction> = (0..platform.nodes()).map(combining).collect();
                    for (row, parts) in table.iter().zip(&splits) {
                        for (v, price) in at.iter().enumerate() {
                            let made =
                                |&(a, b): &(usize, usize)| &table[a][v] + &table[b][v] + price;
                            if parts.iter().any(|p| row[v] > made(p)) {
                                return wrong(format!("combining on node {v} costs less"));
                            }
                        }
                    }
                    value += &table[partials.all()][*root];
                }
                Proof::Cuts(cuts) if !demand.personal && demand.combining.is_none() => {
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
