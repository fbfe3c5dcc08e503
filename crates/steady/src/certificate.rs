//! The proof that no schedule is faster, and a check of it that is independent of how it was found.

use dashu_int::IBig;

use super::demand::{Combining, Wanted};
use super::fraction::{Fraction, common_denominator, scaled, sum, whole};
use super::partial_results::PartialResults;
use super::platform::{Edge, Platform};
use super::ports::PortGraph;
use oneport::error::{Error, Result};
use oneport::machine::Ports;

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

    /// Checks every inequality; the error names one that does not hold.
    pub(super) fn verify(&self, platform: &Platform, ports: Ports, demand: &Wanted) -> Result<()> {
        let computing = demand.combining.is_some() && platform.computes();
        let graph = PortGraph::new(platform, ports, computing);
        let times = &graph.costs;
        if self.prices.len() != times.len()
            || self.ports.len() != graph.len()
            || self.roots.len() != demand.roots.len()
        {
            return violated("its lists do not fit the platform");
        }
        self.verify_prices(&graph, platform.edges())?;
        self.verify_bound()?;
        let costs = self.prices.iter().zip(times).map(|(p, t)| p * t);
        let costs: Vec<Fraction> = costs.collect();
        let (costs, combining) = costs.split_at(platform.edges().len());
        let priced = Priced {
            platform,
            costs,
            combining,
        };
        let mut value = Fraction::ZERO;
        for ((&root, targets), proof) in demand.roots.iter().zip(&demand.targets).zip(&self.roots) {
            value += priced.verify_root(proof, demand, root, targets)?;
        }
        if value < whole(1) {
            return violated("an operation may cost less than 1");
        }
        Ok(())
    }

    /// Checks that no price is negative, and that the prices of ports and odd sets cover those of
    /// the edges and of combining.
    fn verify_prices(&self, graph: &PortGraph, edges: &[Edge]) -> Result<()> {
        let sets = self.odd_sets.iter().map(|(_, p)| p);
        let mut prices = self.prices.iter().chain(&self.ports).chain(sets);
        if prices.any(|p| *p < Fraction::ZERO) {
            return violated("a price is negative");
        }
        for (i, (&(a, b), price)) in graph.links().iter().zip(&self.prices).enumerate() {
            let both = |set: &[usize]| set.contains(&a) && set.contains(&b);
            let sets = self.odd_sets.iter().filter(|(s, _)| both(s));
            let paid = &self.ports[a] + &self.ports[b] + sum(sets.map(|(_, p)| p.clone()));
            if paid < *price {
                return violated(match edges.get(i) {
                    Some(e) => format!("edge {} -> {} is not paid for", e.src, e.dst),
                    None => format!("combining on node {} is not paid for", i - edges.len()),
                });
            }
        }
        Ok(())
    }

    /// Checks that the odd sets are odd, and that a matching is worth at most `bound`.
    fn verify_bound(&self) -> Result<()> {
        let mut bound = sum(self.ports.iter().cloned());
        for (set, price) in &self.odd_sets {
            let mut distinct = set.clone();
            distinct.sort_unstable();
            distinct.dedup();
            if distinct.len() != set.len() || set.len() % 2 == 0 {
                return violated(format!("{set:?} is not an odd set"));
            }
            bound += whole((set.len() - 1) / 2) * price;
        }
        if bound > self.bound {
            return violated("the ports are worth more than the bound");
        }
        Ok(())
    }
}

/// A platform with the costs of its activities: their time at the price of a time unit.
struct Priced<'a> {
    platform: &'a Platform,
    /// By edge.
    costs: &'a [Fraction],
    /// By node; empty where combining is free.
    combining: &'a [Fraction],
}

impl Priced<'_> {
    /// Checks the proof of one root. Returns the least cost of its messages that it proves.
    fn verify_root(
        &self,
        proof: &Proof,
        demand: &Wanted,
        root: usize,
        targets: &[usize],
    ) -> Result<Fraction> {
        match proof {
            Proof::Partial(table) if !demand.personal => match &demand.combining {
                Some(Combining::Partial(partials)) => {
                    self.verify_partial(table, partials, false, root)
                }
                Some(Combining::Trees) => violated("trees have no such proof"),
                None => {
                    let partials = PartialResults::of_targets(targets);
                    self.verify_partial(table, &partials, true, root)
                }
            },
            Proof::Cuts(cuts) if !demand.personal && demand.combining.is_none() => {
                self.verify_cuts(cuts, root, targets)
            }
            Proof::Potentials(far) if demand.personal && far.len() == self.platform.nodes() => {
                if !far[root].is_zero() {
                    return violated(format!("root {root} is not at 0"));
                }
                self.verify_distances(far, false)?;
                Ok(sum(targets.iter().map(|&t| far[t].clone())))
            }
            _ => violated(format!("root {root} has a proof of the wrong kind")),
        }
    }

    /// Checks lower bounds of the costs of partial results. Returns that of the full result on
    /// `root`. With `reversed`, partial results pass the edges backwards.
    fn verify_partial(
        &self,
        table: &[Vec<Fraction>],
        partials: &PartialResults,
        reversed: bool,
        root: usize,
    ) -> Result<Fraction> {
        let nodes = self.platform.nodes();
        let splits = partials.splits();
        if table.len() != splits.len() || table.iter().any(|row| row.len() != nodes) {
            return violated("its partial results do not fit the operation");
        }
        for (i, &owner) in partials.owners.iter().enumerate() {
            if table[partials.single(i)][owner] > Fraction::ZERO {
                return violated(format!("contribution {i} is not free on its node"));
            }
        }
        for row in table {
            self.verify_distances(row, reversed)?;
        }
        // Whole numbers over one denominator: most of the work is here.
        let numbers = table.iter().flatten().chain(self.combining);
        let below = common_denominator(numbers);
        let numerators = |row: &[Fraction]| -> Vec<IBig> {
            row.iter().map(|cost| scaled(cost, &below)).collect()
        };
        let costs: Vec<Vec<IBig>> = table.iter().map(|row| numerators(row)).collect();
        let combining = numerators(self.combining);
        for (row, parts) in costs.iter().zip(&splits) {
            for v in 0..nodes {
                // What is made of two parts costs as much as both, and combining.
                let parts_may_cost = match combining.get(v) {
                    Some(price) => &row[v] - price,
                    None => row[v].clone(),
                };
                if parts
                    .iter()
                    .any(|&(a, b)| parts_may_cost > &costs[a][v] + &costs[b][v])
                {
                    return violated(format!("combining on node {v} costs less"));
                }
            }
        }
        Ok(table[partials.all()][root].clone())
    }

    /// Checks that no edge costs less than the distances `far` of its ends differ.
    fn verify_distances(&self, far: &[Fraction], reversed: bool) -> Result<()> {
        for (e, cost) in self.platform.edges().iter().zip(self.costs) {
            let (from, to) = if reversed {
                (e.dst, e.src)
            } else {
                (e.src, e.dst)
            };
            if far[to] > &far[from] + cost {
                return violated(format!("edge {} -> {} costs less", e.src, e.dst));
            }
        }
        Ok(())
    }

    /// Checks that every message from `root` enters the sets, and that the cuts which an edge
    /// crosses are worth at most its cost. Returns the value of all cuts.
    fn verify_cuts(
        &self,
        cuts: &[(Vec<usize>, Fraction)],
        root: usize,
        targets: &[usize],
    ) -> Result<Fraction> {
        for (set, value) in cuts {
            let is_entered = !set.contains(&root) && targets.iter().any(|t| set.contains(t));
            if *value < Fraction::ZERO || !is_entered {
                return violated(format!("{set:?} need not be entered from {root}"));
            }
        }
        for (e, cost) in self.platform.edges().iter().zip(self.costs) {
            let enters = |s: &[usize]| s.contains(&e.dst) && !s.contains(&e.src);
            let entered = cuts.iter().filter(|(s, _)| enters(s));
            if sum(entered.map(|(_, v)| v.clone())) > *cost {
                return violated(format!("edge {} -> {} costs less", e.src, e.dst));
            }
        }
        Ok(sum(cuts.iter().map(|(_, v)| v.clone())))
    }
}

fn violated<T>(inequality: impl Into<String>) -> Result<T> {
    Err(Error::wrong(format!("certificate: {}", inequality.into())))
}
