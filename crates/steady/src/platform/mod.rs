//! Heterogeneous platforms: a directed graph with the time of a message on each edge.

mod costs;
mod json;

use std::collections::HashSet;

use super::fraction::{Fraction, MAX_DIGITS, is_short};
use oneport::error::{Error, Result};
use oneport::machine::{CostModel, Links};

/// Limit of the nodes of a platform: the cost matrices of larger ones would not fit into memory.
const MAX_NODES: usize = 2000;

/// A directed link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The sending node.
    pub src: usize,
    /// The receiving node.
    pub dst: usize,
    /// Time of one message (more than 0).
    pub cost: Fraction,
    /// Time before the first byte of a packet, for long messages cut into packets (not negative).
    pub latency: Fraction,
    /// The largest relative growth of the cost (not negative); absent if unknown.
    pub drift: Option<Fraction>,
}

/// A heterogeneous platform with a source and targets. [`Platform::parse`] describes its file
/// format.
///
/// ```
/// use oneport_steady::Platform;
/// let text = r#"{"nodes": 3, "source": 0, "edges": [
///     {"src": 0, "dst": 1, "cost": 1}, {"src": 0, "dst": 2, "cost": 1},
///     {"src": 1, "dst": 2, "cost": "1/2"}]}"#;
/// let platform = Platform::parse(text)?;
/// assert_eq!(platform.targets(), [1, 2]);
/// assert_eq!(platform.edges().len(), 3);
/// let free = r#"{"nodes": 2, "source": 0, "edges": [{"src": 0, "dst": 1, "cost": 0}]}"#;
/// assert!(Platform::parse(free).is_err());
/// # Ok::<(), oneport::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, schemars::JsonSchema)]
#[schemars(with = "json::PlatformFile")]
pub struct Platform {
    nodes: usize,
    source: usize,
    targets: Vec<usize>,
    /// The nodes whose messages an allgather or alltoall moves.
    sources: Vec<usize>,
    edges: Vec<Edge>,
    compute: Vec<Fraction>,
    overlap: bool,
}

impl Edge {
    /// An edge without latency.
    pub fn new(src: usize, dst: usize, cost: Fraction) -> Edge {
        Edge {
            src,
            dst,
            cost,
            latency: Fraction::ZERO,
            drift: None,
        }
    }

    fn check(&self, nodes: usize) -> Result<()> {
        let end = format!("edge {} -> {}: node", self.src, self.dst);
        check_node(nodes, &end, self.src)?;
        check_node(nodes, &end, self.dst)?;
        if self.src == self.dst {
            return self.wrong("leads to where it starts");
        }
        if self.cost <= Fraction::ZERO {
            return self.wrong(&format!("has cost {}: a cost is more than 0", self.cost));
        }
        if self.latency < Fraction::ZERO {
            return self.wrong(&format!(
                "has latency {}: it cannot be negative",
                self.latency
            ));
        }
        if self.drift.as_ref().is_some_and(|d| *d < Fraction::ZERO) {
            return self.wrong("has a negative drift");
        }
        let numbers = [Some(&self.cost), Some(&self.latency), self.drift.as_ref()];
        if !numbers.into_iter().flatten().all(is_short) {
            return self.wrong(&format!("has a number of more than {MAX_DIGITS} digits"));
        }
        Ok(())
    }

    fn wrong<T>(&self, why: &str) -> Result<T> {
        let (src, dst) = (self.src, self.dst);
        malformed(format!("edge {src} -> {dst} {why}"))
    }
}

fn malformed<T>(why: String) -> Result<T> {
    Err(Error::malformed(format!("platform: {why}")))
}

/// Checks that node `v`, which is called `name`, is one of `nodes` nodes.
fn check_node(nodes: usize, name: &str, v: usize) -> Result<()> {
    if v < nodes {
        return Ok(());
    }
    let last = nodes - 1;
    malformed(format!("{name} {v} is not one of the nodes 0 to {last}"))
}

fn sorted_targets(nodes: usize, source: usize, mut targets: Vec<usize>) -> Result<Vec<usize>> {
    for &t in &targets {
        check_node(nodes, "target", t)?;
        if t == source {
            return malformed(format!("target {t} is the source itself"));
        }
    }
    targets.sort_unstable();
    if let Some(twice) = targets.windows(2).find(|w| w[0] == w[1]) {
        return malformed(format!("target {} is there twice", twice[0]));
    }
    if targets.is_empty() {
        return malformed("there is no target".into());
    }
    Ok(targets)
}

impl Platform {
    /// Builds a platform. If `targets` is absent, all nodes except the source are targets. The
    /// edges are sorted.
    ///
    /// # Errors
    /// When there are fewer than two nodes or more than 2000; a node does not exist; an edge is a
    /// loop or occurs twice; a cost is not positive; a latency or drift is negative; a number has
    /// more than 256 digits above or below; there is no target, or one twice, or the source is one.
    pub fn new(
        nodes: usize,
        source: usize,
        targets: Option<Vec<usize>>,
        mut edges: Vec<Edge>,
    ) -> Result<Platform> {
        if nodes < 2 {
            return malformed(format!(
                "{nodes} nodes are too few: there must be a source and a target"
            ));
        }
        if nodes > MAX_NODES {
            return malformed(format!(
                "{nodes} nodes are more than the {MAX_NODES} that are planned for"
            ));
        }
        check_node(nodes, "source", source)?;
        let mut seen = HashSet::new();
        for e in &edges {
            e.check(nodes)?;
            if !seen.insert((e.src, e.dst)) {
                return e.wrong("is there twice");
            }
        }
        edges.sort_unstable_by_key(|e| (e.src, e.dst));
        let targets = targets.unwrap_or_else(|| (0..nodes).filter(|&v| v != source).collect());
        let targets = sorted_targets(nodes, source, targets)?;
        Ok(Platform {
            nodes,
            source,
            targets,
            sources: (0..nodes).collect(),
            edges,
            compute: Vec::new(),
            overlap: false,
        })
    }

    /// Returns the platform with these times of one combination, by node. An empty list makes
    /// combining free.
    ///
    /// # Errors
    /// When the list has not one entry per node, or an entry is negative or has more than 256
    /// digits in its numerator or denominator.
    pub fn with_compute(mut self, compute: Vec<Fraction>) -> Result<Platform> {
        if !compute.is_empty() && compute.len() != self.nodes {
            let (entries, nodes) = (compute.len(), self.nodes);
            return malformed(format!("compute has {entries} entries for {nodes} nodes"));
        }
        if let Some(v) = compute.iter().position(|c| *c < Fraction::ZERO) {
            return malformed(format!("compute time of node {v} is negative"));
        }
        if let Some(v) = compute.iter().position(|c| !is_short(c)) {
            return malformed(format!(
                "compute time of node {v} is a number of more than {MAX_DIGITS} digits"
            ));
        }
        self.compute = compute;
        Ok(self)
    }

    /// Returns the platform with these sources of allgathers and alltoalls, in which no other node
    /// sends a message of its own; they are sorted.
    ///
    /// # Errors
    /// When there is none, a node does not exist, or one is there twice.
    pub fn with_sources(mut self, mut sources: Vec<usize>) -> Result<Platform> {
        for &v in &sources {
            check_node(self.nodes, "source", v)?;
        }
        sources.sort_unstable();
        if let Some(twice) = sources.windows(2).find(|w| w[0] == w[1]) {
            return malformed(format!("source {} is there twice", twice[0]));
        }
        if sources.is_empty() {
            return malformed("there is no source of allgathers".into());
        }
        self.sources = sources;
        Ok(self)
    }

    /// The nodes whose messages an allgather or alltoall moves: all unless others are given.
    pub fn sources(&self) -> &[usize] {
        &self.sources
    }

    /// Returns the platform with overlap on or off: whether nodes combine while they communicate,
    /// each with one processor.
    #[must_use]
    pub fn with_overlap(mut self, overlap: bool) -> Platform {
        self.overlap = overlap;
        self
    }

    /// Returns the platform with other costs, by edge in the order of [`Platform::edges`].
    pub fn with_costs(&self, mut cost: impl FnMut(usize, &Edge) -> Fraction) -> Result<Platform> {
        let edges = self.edges.iter().enumerate();
        let edges = edges.map(|(i, e)| Edge {
            cost: cost(i, e),
            ..e.clone()
        });
        let targets = Some(self.targets.clone());
        let edges = Platform::new(self.nodes, self.source, targets, edges.collect())?.edges;
        Ok(Platform {
            edges,
            ..self.clone()
        })
    }

    /// Returns the platform with every edge reversed: a gather or reduction on this platform is a
    /// scatter or broadcast on the reversed one.
    #[must_use]
    pub fn reversed(&self) -> Platform {
        let mut reversed = self.clone();
        for e in &mut reversed.edges {
            std::mem::swap(&mut e.src, &mut e.dst);
        }
        reversed.edges.sort_unstable_by_key(|e| (e.src, e.dst));
        reversed
    }

    /// Returns [`Platform::reversed`] if `reversed`, otherwise the platform itself.
    pub(super) fn turned_if(&self, reversed: bool) -> Platform {
        if reversed {
            self.reversed()
        } else {
            self.clone()
        }
    }

    /// Returns the platform with another source; all other nodes become targets.
    ///
    /// # Errors
    /// When the node does not exist.
    pub fn with_source(&self, source: usize) -> Result<Platform> {
        let targets = Platform::new(self.nodes, source, None, self.edges.clone())?.targets;
        Ok(Platform {
            source,
            targets,
            ..self.clone()
        })
    }

    /// Returns [`Platform::reversed`] and, for each of its edges, the number of that edge in
    /// `self` and its weight.
    pub(super) fn turned<W: Clone>(&self, weights: &[W]) -> (Platform, Vec<usize>, Vec<W>) {
        let mut number: Vec<usize> = (0..self.edges.len()).collect();
        number.sort_unstable_by_key(|&i| (self.edges[i].dst, self.edges[i].src));
        let weights = number.iter().map(|&i| weights[i].clone()).collect();
        (self.reversed(), number, weights)
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The node that messages come from (for gathers and reductions: the node they go to).
    pub fn source(&self) -> usize {
        self.source
    }

    /// The nodes that messages go to, sorted.
    pub fn targets(&self) -> &[usize] {
        &self.targets
    }

    /// Whether every node except the source is a target.
    pub fn targets_all(&self) -> bool {
        self.targets.len() + 1 == self.nodes
    }

    /// The edges, sorted by sender and receiver.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Sender and receiver by edge.
    pub(super) fn ends(&self) -> Vec<(usize, usize)> {
        self.edges.iter().map(|e| (e.src, e.dst)).collect()
    }

    /// The time of one combination, by node; empty where combining is free.
    pub fn compute(&self) -> &[Fraction] {
        &self.compute
    }

    /// Whether combining takes time on some node.
    pub fn computes(&self) -> bool {
        self.compute.iter().any(|c| !c.is_zero())
    }

    /// Whether nodes combine while they communicate.
    pub fn overlaps(&self) -> bool {
        self.overlap
    }

    /// The costs of the edges and, with `computing`, of combining on each node.
    pub(super) fn activity_costs(&self, computing: bool) -> Vec<Fraction> {
        let mut costs: Vec<Fraction> = self.edges.iter().map(|e| e.cost.clone()).collect();
        if computing {
            let of = |v: usize| self.compute.get(v).cloned().unwrap_or(Fraction::ZERO);
            costs.extend((0..self.nodes).map(of));
        }
        costs
    }

    /// The smallest cost of an edge: in units of it, platforms whose costs are multiples of one
    /// another become equal.
    pub(super) fn unit(&self) -> Fraction {
        let costs = self.edges.iter().map(|e| &e.cost);
        costs.min().cloned().unwrap_or(Fraction::ONE)
    }

    pub(super) fn in_units_of(&self, unit: &Fraction) -> Platform {
        let mut platform = self.clone();
        for e in &mut platform.edges {
            e.cost /= unit;
            e.latency /= unit;
        }
        for time in &mut platform.compute {
            *time /= unit;
        }
        platform
    }

    pub(crate) fn reachable(&self, from: usize) -> Vec<bool> {
        let mut seen = vec![false; self.nodes];
        seen[from] = true;
        let mut open = vec![from];
        while let Some(v) = open.pop() {
            let first = self.edges.partition_point(|e| e.src < v);
            for e in self.edges[first..].iter().take_while(|e| e.src == v) {
                if !seen[e.dst] {
                    seen[e.dst] = true;
                    open.push(e.dst);
                }
            }
        }
        seen
    }

    /// Checks that `from` reaches all of `to`. With `reversed`, the error names the original
    /// direction.
    pub(crate) fn reaches(&self, from: usize, to: &[usize], reversed: bool) -> Result<()> {
        let seen = self.reachable(from);
        match to.iter().find(|&&t| !seen[t]) {
            None => Ok(()),
            Some(t) if reversed => malformed(format!("node {t} cannot reach node {from}")),
            Some(t) => malformed(format!("node {t} cannot be reached from node {from}")),
        }
    }

    /// Returns the cost model of schedules with messages of `elements` elements. A time unit of the
    /// platform is `unit` time units of the model. Latencies are not included: they belong to the
    /// costs of packets of long messages ([`best_packets`](super::best_packets)).
    ///
    /// # Errors
    /// When a cost is too large for a floating-point number.
    pub fn cost_model(&self, elements: usize, unit: f64) -> Result<CostModel> {
        let none = || vec![vec![None; self.nodes]; self.nodes];
        let mut links = Links {
            alpha: none(),
            beta: none(),
            ..Links::default()
        };
        let elements = elements.max(1) as f64;
        for e in &self.edges {
            links.alpha[e.src][e.dst] = Some(0.0);
            links.beta[e.src][e.dst] = Some(e.cost.to_f64() * unit / elements);
        }
        let compute = self.compute.iter();
        links.gamma = compute.map(|c| c.to_f64() * unit / elements).collect();
        Ok(CostModel::heterogeneous(links)?.overlap(self.overlap))
    }
}
