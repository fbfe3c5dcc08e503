//! The JSON form of platforms: reading and writing.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Edge, Platform};
use crate::fraction::{Fraction, MAX_DIGITS, parse_fraction, show_fraction};
use oneport::error::{Error, Result};

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
    /// - An edge may have a `latency` and a `drift`, the largest relative growth of its cost.
    /// - The platform may have `compute`, the time of one combination by node, which counts for
    ///   reductions and scans.
    /// - The platform may have `overlap`: true if nodes combine while they communicate.
    ///
    /// # Errors
    /// Those of [`Platform::new`], and when the text is not such an object.
    pub fn parse(text: &str) -> Result<Platform> {
        if text.trim_start().starts_with('[') {
            return Err(Error::malformed(
                "platform: a list, not an object such as {\"nodes\": 2, \"edges\": [...]}",
            ));
        }
        let file: File = serde_json::from_str(text).map_err(|e| Error::json("platform", &e))?;
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
    use crate::fraction::is_short;
    use oneport::random::Generator;

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
        let mut generator = Generator::new(7);
        let mut random = |n: usize| generator.below(n);
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
                Fraction::int(above + dashu_int::UBig::from(min)) / Fraction::int(below + 1u8)
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
        let long = Fraction::int(dashu_int::UBig::from(10u8).pow(MAX_DIGITS));
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
            ("{", "line 1 column 1: the text ends too early"),
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
