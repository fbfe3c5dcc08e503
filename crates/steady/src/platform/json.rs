//! The JSON form of platforms: reading and writing.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Edge, Platform};
use crate::fraction::{Fraction, MAX_DIGITS, parse_fraction};
use oneport::error::{Error, Result};
use oneport::internal::json_object;

/// A JSON number, or a fraction in quotes.
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "a RawValue has no schema")]
enum Number {
    Number(f64),
    Fraction(String),
}

/// Nodes and links for series of operations. A number is a JSON number, read exactly as written, or
/// a fraction in quotes such as "1/2".
#[derive(schemars::JsonSchema, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlatformFile {
    /// Number of nodes.
    nodes: usize,
    /// The source; 0 if it is left out.
    #[serde(default)]
    source: usize,
    /// The targets; all other nodes if they are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    targets: Option<Vec<usize>>,
    /// The nodes whose messages allgathers and alltoalls move; all nodes if they are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sources: Option<Vec<usize>>,
    edges: Vec<FileEdge>,
    /// Time of one combination, by node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Number>")]
    compute: Vec<Box<RawValue>>,
    /// Whether nodes combine while they communicate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    overlap: bool,
}

#[derive(schemars::JsonSchema, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileEdge {
    src: usize,
    dst: usize,
    /// Time of one message.
    #[schemars(with = "Number")]
    cost: Box<RawValue>,
    /// Time before the first byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Number>")]
    latency: Option<Box<RawValue>>,
    /// Largest relative growth of the cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Number>")]
    drift: Option<Box<RawValue>>,
}

impl Platform {
    /// Reads a platform in JSON form:
    ///
    /// ```json
    /// {"nodes": 3, "source": 0, "targets": [1, 2],
    ///  "edges": [{"src": 0, "dst": 1, "cost": "1/2"}, {"src": 1, "dst": 2, "cost": 1}]}
    /// ```
    ///
    /// - Costs are whole numbers, decimal numbers (read exactly as written) or fractions in quotes.
    /// - `source` defaults to 0, `targets` to all other nodes.
    /// - `sources` are the nodes whose messages allgathers and alltoalls move, by default all.
    /// - An edge may have a `latency` and a `drift`, the largest relative growth of its cost.
    /// - The platform may have `compute`, the time of one combination by node, which counts for
    ///   reductions and scans.
    /// - The platform may have `overlap`: true if nodes combine while they communicate.
    ///
    /// # Errors
    /// Those of [`Platform::new`], and when the text is not such an object.
    pub fn parse(text: &str) -> Result<Platform> {
        let file: PlatformFile = json_object("platform", "nodes and edges", text)?;
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
            let optional = |field: &str, v: &Option<Box<RawValue>>| {
                v.as_ref()
                    .map(|v| number(&format!("{name}{field}"), v))
                    .transpose()
            };
            edges.push(Edge {
                src: e.src,
                dst: e.dst,
                cost: number(&format!("{name}cost"), &e.cost)?,
                latency: optional("latency", &e.latency)?.unwrap_or_default(),
                drift: optional("drift", &e.drift)?,
            });
        }
        let compute = file.compute.iter().enumerate();
        let compute = compute
            .map(|(v, c)| number(&format!("compute time of node {v}"), c))
            .collect::<Result<Vec<_>>>()?;
        let mut platform = Platform::new(file.nodes, file.source, file.targets, edges)?;
        if let Some(sources) = file.sources {
            platform = platform.with_sources(sources)?;
        }
        Ok(platform.with_compute(compute)?.with_overlap(file.overlap))
    }

    /// Writes the JSON form. [`Platform::parse`] reads the same platform from it.
    pub fn to_json(&self) -> String {
        let value = |c: &Fraction| {
            let text = c.to_string();
            let text = match u64::try_from(c) {
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
        let file = PlatformFile {
            nodes: self.nodes,
            source: self.source,
            targets: Some(self.targets.clone()),
            sources: (self.sources.len() < self.nodes).then(|| self.sources.clone()),
            edges: edges.collect(),
            compute: self.compute.iter().map(value).collect(),
            overlap: self.overlap,
        };
        serde_json::to_string(&file).unwrap_or_default()
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
