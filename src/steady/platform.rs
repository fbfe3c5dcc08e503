//! Heterogeneous platforms: a directed graph with the time of a message on each edge.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::fraction::{Fraction, MAX_DIGITS, is_short, parse_fraction, show_fraction, to_f64};
use crate::error::{Error, Result};
use crate::machine::{CostModel, Links};

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
/// use oneport::steady::Platform;
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Platform {
    nodes: usize,
    source: usize,
    targets: Vec<usize>,
    edges: Vec<Edge>,
    compute: Vec<Fraction>,
    overlap: bool,
}

/// The JSON form of a platform.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    nodes: usize,
    #[serde(default)]
    source: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    targets: Option<Vec<usize>>,
    edges: Vec<FileEdge>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    compute: Vec<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    overlap: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileEdge {
    src: usize,
    dst: usize,
    /// A number as it is written in the file, or a fraction in quotes.
    cost: Box<RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latency: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    drift: Option<Box<RawValue>>,
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
}

impl Platform {
    /// Builds a platform. If `targets` is absent, all nodes except the source are targets. The
    /// edges are sorted.
    ///
    /// # Errors
    /// When there are fewer than two nodes or more than 2000; a node does not exist; an edge is a
    /// loop, occurs twice, or has a cost that is not positive, or a negative latency or drift; a
    /// number has more than 256 digits in its numerator or denominator; there is no target, a
    /// target occurs twice, or the source is a target.
    pub fn new(
        nodes: usize,
        source: usize,
        targets: Option<Vec<usize>>,
        mut edges: Vec<Edge>,
    ) -> Result<Platform> {
        if nodes < 2 {
            return Err(Error::malformed(format!(
                "platform: {nodes} nodes are too few: there must be a source and a target"
            )));
        }
        if nodes > MAX_NODES {
            return Err(Error::malformed(format!(
                "platform: {nodes} nodes are more than the {MAX_NODES} that are planned for"
            )));
        }
        let node = |name: &str, v: usize| {
            if v < nodes {
                return Ok(());
            }
            Err(Error::malformed(format!(
                "platform: {name} {v} is not one of the nodes 0 to {}",
                nodes - 1
            )))
        };
        node("source", source)?;
        let mut seen = HashSet::new();
        for e in &edges {
            let name = format!("edge {} -> {}", e.src, e.dst);
            node(&format!("{name}: node"), e.src)?;
            node(&format!("{name}: node"), e.dst)?;
            let wrong = |why: String| Err(Error::malformed(format!("platform: {name} {why}")));
            if e.src == e.dst {
                return wrong("leads to where it starts".into());
            }
            if e.cost <= Fraction::ZERO {
                return wrong(format!(
                    "has cost {}: a cost is more than 0",
                    show_fraction(&e.cost)
                ));
            }
            if e.latency < Fraction::ZERO {
                let latency = show_fraction(&e.latency);
                return wrong(format!("has latency {latency}: it cannot be negative"));
            }
            if e.drift.as_ref().is_some_and(|d| *d < Fraction::ZERO) {
                return wrong("has a negative drift".into());
            }
            let numbers = [Some(&e.cost), Some(&e.latency), e.drift.as_ref()];
            if !numbers.into_iter().flatten().all(is_short) {
                return wrong(format!("has a number of more than {MAX_DIGITS} digits"));
            }
            if !seen.insert((e.src, e.dst)) {
                return wrong("is there twice".into());
            }
        }
        edges.sort_unstable_by_key(|e| (e.src, e.dst));
        let mut targets = targets.unwrap_or_else(|| (0..nodes).filter(|&v| v != source).collect());
        for &t in &targets {
            node("target", t)?;
            if t == source {
                return Err(Error::malformed(format!(
                    "platform: target {t} is the source itself"
                )));
            }
        }
        targets.sort_unstable();
        if let Some(twice) = targets.windows(2).find(|w| w[0] == w[1]) {
            return Err(Error::malformed(format!(
                "platform: target {} is there twice",
                twice[0]
            )));
        }
        if targets.is_empty() {
            return Err(Error::malformed("platform: there is no target"));
        }
        Ok(Platform {
            nodes,
            source,
            targets,
            edges,
            compute: Vec::new(),
            overlap: false,
        })
    }

    /// Reads a platform in JSON form:
    ///
    /// ```json
    /// {"nodes": 3, "source": 0, "targets": [1, 2],
    ///  "edges": [{"src": 0, "dst": 1, "cost": "1/2"}, {"src": 1, "dst": 2, "cost": 1}]}
    /// ```
    ///
    /// - Costs are whole numbers, decimal numbers (read exactly as written) or fractions in quotes.
    /// - `source` defaults to 0, `targets` to all other nodes.
    /// - An edge may have a `latency` and a `drift`, the largest relative growth of its cost.
    /// - The platform may have `compute`, the time of one combination by node, which counts for
    ///   reductions and scans.
    /// - The platform may have `overlap`: true if nodes combine while they communicate.
    ///
    /// # Errors
    /// Those of [`Platform::new`], and when the text is not such an object.
    pub fn parse(text: &str) -> Result<Platform> {
        let malformed = |e: serde_json::Error| Error::malformed(format!("platform: {e}"));
        if text.trim_start().starts_with('[') {
            return Err(Error::malformed(
                "platform: a list, not an object such as {\"nodes\": 2, \"edges\": [...]}",
            ));
        }
        let file: File = serde_json::from_str(text).map_err(malformed)?;
        let number = |field: &str, v: &RawValue| {
            fraction_of(v).ok_or_else(|| {
                Error::malformed(format!(
                    "platform: {field} is {}: write a number of at most {MAX_DIGITS} digits, or a fraction such as \"1/2\"",
                    shortened(v.get())
                ))
            })
        };
        let mut edges = Vec::with_capacity(file.edges.len());
        for e in &file.edges {
            let name = format!("edge {} -> {}: ", e.src, e.dst);
            edges.push(Edge {
                src: e.src,
                dst: e.dst,
                cost: number(&format!("{name}cost"), &e.cost)?,
                latency: match &e.latency {
                    None => Fraction::ZERO,
                    Some(v) => number(&format!("{name}latency"), v)?,
                },
                drift: match &e.drift {
                    None => None,
                    Some(v) => Some(number(&format!("{name}drift"), v)?),
                },
            });
        }
        let compute = file.compute.iter().enumerate();
        let compute = compute
            .map(|(v, c)| number(&format!("compute time of node {v}"), c))
            .collect::<Result<Vec<_>>>()?;
        let platform = Platform::new(file.nodes, file.source, file.targets, edges)?;
        Ok(platform.with_compute(compute)?.with_overlap(file.overlap))
    }

    /// Writes the JSON form. [`Platform::parse`] reads the same platform from it.
    pub fn to_json(&self) -> String {
        let value = |c: &Fraction| {
            let text = show_fraction(c);
            let text = match u64::try_from(c.clone()) {
                Ok(_) => text,
                Err(_) => format!("\"{text}\""),
            };
            RawValue::from_string(text).unwrap_or_default()
        };
        let edges = self.edges.iter().map(|e| FileEdge {
            src: e.src,
            dst: e.dst,
            cost: value(&e.cost),
            latency: (!e.latency.is_zero()).then(|| value(&e.latency)),
            drift: e.drift.as_ref().map(value),
        });
        let file = File {
            nodes: self.nodes,
            source: self.source,
            targets: Some(self.targets.clone()),
            edges: edges.collect(),
            compute: self.compute.iter().map(value).collect(),
            overlap: self.overlap,
        };
        serde_json::to_string(&file).unwrap_or_default()
    }

    /// Returns the platform with these times of one combination, by node. An empty list makes
    /// combining free.
    ///
    /// # Errors
    /// When the list has not one entry per node, or an entry is negative or has more than 256
    /// digits in its numerator or denominator.
    pub fn with_compute(mut self, compute: Vec<Fraction>) -> Result<Platform> {
        if !compute.is_empty() && compute.len() != self.nodes {
            return Err(Error::malformed(format!(
                "platform: compute has {} entries for {} nodes",
                compute.len(),
                self.nodes
            )));
        }
        if let Some(v) = compute.iter().position(|c| *c < Fraction::ZERO) {
            return Err(Error::malformed(format!(
                "platform: compute time of node {v} is negative"
            )));
        }
        if let Some(v) = compute.iter().position(|c| !is_short(c)) {
            return Err(Error::malformed(format!(
                "platform: compute time of node {v} is a number of more than {MAX_DIGITS} digits"
            )));
        }
        self.compute = compute;
        Ok(self)
    }

    /// Returns the platform with overlap on or off. With overlap, nodes combine while they
    /// communicate, each with one processor (as in Legrand, Marchal and Robert). Without it, a node
    /// that combines neither sends nor receives (the [rules of time](crate::rules)).
    #[must_use]
    pub fn with_overlap(mut self, overlap: bool) -> Platform {
        self.overlap = overlap;
        self
    }

    /// Returns the platform with other costs, by edge in the order of [`Platform::edges`].
    ///
    /// # Errors
    /// Those of [`Platform::new`].
    pub fn with_costs(&self, mut cost: impl FnMut(usize, &Edge) -> Fraction) -> Result<Platform> {
        let edges = self.edges.iter().enumerate();
        let edges = edges.map(|(i, e)| Edge {
            cost: cost(i, e),
            ..e.clone()
        });
        let targets = Some(self.targets.clone());
        let platform = Platform::new(self.nodes, self.source, targets, edges.collect())?;
        Ok(platform
            .with_compute(self.compute.clone())?
            .with_overlap(self.overlap))
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

    /// Returns the platform with another source; all other nodes become targets.
    ///
    /// # Errors
    /// When the node does not exist.
    pub fn with_source(&self, source: usize) -> Result<Platform> {
        let platform = Platform::new(self.nodes, source, None, self.edges.clone())?;
        Ok(platform
            .with_compute(self.compute.clone())?
            .with_overlap(self.overlap))
    }

    /// Returns [`Platform::reversed`] and, for each of its edges, the number of that edge in
    /// `self`.
    pub(super) fn turned(&self) -> (Platform, Vec<usize>) {
        let mut number: Vec<usize> = (0..self.edges.len()).collect();
        number.sort_unstable_by_key(|&i| (self.edges[i].dst, self.edges[i].src));
        (self.reversed(), number)
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

    /// Returns the costs of the edges, followed, with `computing`, by the cost of combining on each
    /// node.
    pub(super) fn activity_costs(&self, computing: bool) -> Vec<Fraction> {
        let mut costs: Vec<Fraction> = self.edges.iter().map(|e| e.cost.clone()).collect();
        if computing {
            let of = |v: usize| self.compute.get(v).cloned().unwrap_or(Fraction::ZERO);
            costs.extend((0..self.nodes).map(of));
        }
        costs
    }

    /// Returns the smallest cost of an edge. In units of it, platforms whose costs are multiples of
    /// one another become equal.
    pub(super) fn unit(&self) -> Fraction {
        let costs = self.edges.iter().map(|e| &e.cost);
        costs.min().cloned().unwrap_or(Fraction::ONE)
    }

    /// Returns the platform with all times in units of `unit`.
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

    /// Returns for each node whether `from` reaches it.
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

    /// Checks that `from` reaches all of `to`.
    ///
    /// # Errors
    /// When it does not reach one of them. With `reversed`, the message names the original
    /// direction.
    pub(crate) fn reaches(&self, from: usize, to: &[usize], reversed: bool) -> Result<()> {
        let seen = self.reachable(from);
        match to.iter().find(|&&t| !seen[t]) {
            None => Ok(()),
            Some(t) if reversed => Err(Error::malformed(format!(
                "platform: node {t} cannot reach node {from}"
            ))),
            Some(t) => Err(Error::malformed(format!(
                "platform: node {t} cannot be reached from node {from}"
            ))),
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
            gamma: Vec::new(),
            gamma_copy: Vec::new(),
        };
        let elements = elements.max(1) as f64;
        for e in &self.edges {
            links.alpha[e.src][e.dst] = Some(0.0);
            links.beta[e.src][e.dst] = Some(to_f64(&e.cost) * unit / elements);
        }
        let compute = self.compute.iter();
        links.gamma = compute.map(|c| to_f64(c) * unit / elements).collect();
        let mut cost = CostModel::heterogeneous(links)?;
        cost.overlap = self.overlap;
        Ok(cost)
    }
}

/// Parses a number of a file exactly as it is written.
fn fraction_of(value: &RawValue) -> Option<Fraction> {
    let text = value.get();
    match text.as_bytes().first()? {
        b'"' => parse_fraction(&serde_json::from_str::<String>(text).ok()?),
        b'-' | b'0'..=b'9' => parse_fraction(text),
        _ => None,
    }
}

/// Returns the text, cut off after 40 characters.
fn shortened(text: &str) -> String {
    const MAX_SHOWN: usize = 40;
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let error = Platform::parse(text).unwrap_err();
        assert!(error.is_usage());
        error.to_string()
    }

    #[test]
    fn costs_are_exact() {
        let text = r#"{"nodes": 2, "edges": [{"src": 0, "dst": 1, "cost": 0.1, "latency": 1e-3}, {"src": 1, "dst": 0, "cost": "7/3"}]}"#;
        let platform = Platform::parse(text).unwrap();
        let costs: Vec<_> = platform
            .edges()
            .iter()
            .map(|e| show_fraction(&e.cost))
            .collect();
        assert_eq!(costs, ["1/10", "7/3"]);
        assert_eq!(show_fraction(&platform.edges()[0].latency), "1/1000");
        assert_eq!(Platform::parse(&platform.to_json()).unwrap(), platform);
        assert_eq!(platform.reversed().reversed(), platform);
    }

    /// Numbers are read exactly as written, not as the nearest floating-point number.
    #[test]
    fn numbers_of_files_are_exact() {
        let of = |cost: &str| {
            let text =
                format!(r#"{{"nodes": 2, "edges": [{{"src": 0, "dst": 1, "cost": {cost}}}]}}"#);
            show_fraction(&Platform::parse(&text).unwrap().edges()[0].cost)
        };
        for (text, expected) in [
            ("18446744073709551617", "18446744073709551617"),
            (
                "123456789012345678901234567890",
                "123456789012345678901234567890",
            ),
            (
                "0.1234567890123456789",
                "1234567890123456789/10000000000000000000",
            ),
            ("1E+2", "100"),
            ("25e-1", "5/2"),
            (r#"" 25e-1 / 5 ""#, "1/2"),
            (r#""\u0031/2""#, "1/2"),
            (r#""+3""#, "3"),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }

    /// The written JSON form of a platform is read as the same platform, whatever its numbers are.
    #[test]
    fn json_round_trip() {
        let mut state = 7u64;
        let mut random = |n: usize| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) as usize % n
        };
        for _ in 0..500 {
            // Limit of the digits of numerator and denominator.
            let max_digits = [1, 3, 20, 64, 65, 130, MAX_DIGITS][random(7)];
            let mut number = |min: u8| {
                let mut digits = || {
                    let count = 1 + random(max_digits);
                    let digits: String = (0..count)
                        .map(|_| char::from(b'0' + random(10) as u8))
                        .collect();
                    digits.parse::<dashu_int::UBig>().unwrap()
                };
                let (above, below) = (digits(), digits());
                Fraction::from(above + dashu_int::UBig::from(min)) / Fraction::from(below + 1u8)
            };
            let mut short = |min: u8| loop {
                let number = number(min);
                if is_short(&number) {
                    return number;
                }
            };
            let edges = [(0, 1), (1, 0), (1, 2)].map(|(src, dst)| Edge {
                src,
                dst,
                cost: short(1),
                latency: short(0),
                drift: (dst != 1).then(|| short(0)),
            });
            let compute = (0..3).map(|_| short(0)).collect();
            let platform = Platform::new(3, 0, Some(vec![2]), edges.to_vec()).unwrap();
            let platform = platform.with_compute(compute).unwrap().with_overlap(true);
            let text = platform.to_json();
            assert_eq!(Platform::parse(&text).unwrap(), platform, "{text}");
        }
        let long = Fraction::from(dashu_int::UBig::from(10u8).pow(MAX_DIGITS));
        let edge = Edge::new(0, 1, Fraction::ONE / &long);
        let error = Platform::new(2, 0, None, vec![edge]).unwrap_err();
        assert!(error.to_string().contains("more than 256 digits"));
        let edge = Edge::new(0, 1, Fraction::ONE);
        let platform = Platform::new(2, 0, None, vec![edge]).unwrap();
        let error = platform
            .with_compute(vec![Fraction::ZERO, long])
            .unwrap_err();
        assert!(error.to_string().contains("more than 256 digits"));
    }

    #[test]
    fn malformed_platforms_are_reported() {
        let edge = |e: &str| format!(r#"{{"nodes": 3, "edges": [{e}]}}"#);
        for (text, expected) in [
            ("{", "platform: EOF"),
            (r#"{"nodes": 1, "edges": []}"#, "1 nodes are too few"),
            (
                r#"{"nodes": 3, "source": 3, "edges": []}"#,
                "source 3 is not one of the nodes 0 to 2",
            ),
            (
                r#"{"nodes": 3, "targets": [0], "edges": []}"#,
                "target 0 is the source itself",
            ),
            (
                r#"{"nodes": 3, "targets": [9], "edges": []}"#,
                "target 9 is not one of",
            ),
            (
                r#"{"nodes": 3, "targets": [1, 1], "edges": []}"#,
                "target 1 is there twice",
            ),
            (
                r#"{"nodes": 3, "targets": [], "edges": []}"#,
                "there is no target",
            ),
            (r#"{"nodes": 3, "edges": [], "color": 1}"#, "unknown field"),
            (
                &edge(r#"{"src": 0, "dst": 5, "cost": 1}"#),
                "edge 0 -> 5: node 5 is not one of",
            ),
            (
                &edge(r#"{"src": 0, "dst": 0, "cost": 1}"#),
                "edge 0 -> 0 leads to where it starts",
            ),
            (
                &edge(r#"{"src": 0, "dst": 1, "cost": 0}"#),
                "edge 0 -> 1 has cost 0",
            ),
            (
                &edge(r#"{"src": 0, "dst": 1, "cost": "-1/2"}"#),
                "edge 0 -> 1 has cost -1/2",
            ),
            (
                &edge(r#"{"src": 0, "dst": 1, "cost": "x"}"#),
                "edge 0 -> 1: cost is \"x\"",
            ),
            (
                &edge(r#"{"src": 0, "dst": 1, "cost": null}"#),
                "edge 0 -> 1: cost is null",
            ),
            (
                &edge(r#"{"src": 0, "dst": 1, "cost": 1e400}"#),
                "cost is 1e400: write a number of at most 256 digits",
            ),
            (
                &edge(r#"{"src": 0, "dst": 1, "cost": [1]}"#),
                "edge 0 -> 1: cost is [1]",
            ),
            (
                &edge(r#"{"src": 0, "dst": 1, "cost": 1}, {"src": 0, "dst": 1, "cost": 2}"#),
                "is there twice",
            ),
        ] {
            let message = error(text);
            assert!(message.contains(expected), "{message} for {text}");
        }
    }
}
