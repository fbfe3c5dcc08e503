//! The JSON form of platforms, and platforms from the costs of messages.

use oneport::CostModel;
use oneport::machine::Links;
use oneport::random::Generator;
use oneport_steady::{Edge, Fraction, Platform, parse_fraction};

/// Limit of the digits of numerator and denominator.
const MAX_DIGITS: usize = 256;

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
        .map(|e| e.cost.to_string())
        .collect();
    assert_eq!(costs, ["1/10", "7/3"]);
    assert_eq!(platform.edges()[0].latency.to_string(), "1/1000");
    assert_eq!(Platform::parse(&platform.to_json()).unwrap(), platform);
    assert_eq!(platform.reversed().reversed(), platform);
}

/// Numbers are read exactly as written, not as the nearest floating-point number.
#[test]
fn numbers_of_files_are_exact() {
    let of = |cost: &str| {
        let text = format!(r#"{{"nodes": 2, "edges": [{{"src": 0, "dst": 1, "cost": {cost}}}]}}"#);
        Platform::parse(&text).unwrap().edges()[0].cost.to_string()
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
        let mut digits = || -> String {
            let count = 1 + random(max_digits);
            let digits = (0..count).map(|_| char::from(b'0' + random(10) as u8));
            digits.collect()
        };
        let mut number = |min: u8| loop {
            let number = parse_fraction(&format!("{}/{}", digits(), digits()));
            if let Some(number) = number.filter(|n| min == 0 || !n.is_zero()) {
                return number;
            }
        };
        let edges = [(0, 1), (1, 0), (1, 2)].map(|(src, dst)| Edge {
            src,
            dst,
            cost: number(1),
            latency: number(0),
            drift: (dst != 1).then(|| number(0)),
        });
        let compute = (0..3).map(|_| number(0)).collect();
        let platform = Platform::new(3, 0, Some(vec![2]), edges.to_vec()).unwrap();
        let platform = platform.with_compute(compute).unwrap().with_overlap(true);
        let text = platform.to_json();
        assert_eq!(Platform::parse(&text).unwrap(), platform, "{text}");
    }
    let long = parse_fraction("1e255").unwrap() * Fraction::from(10);
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

#[test]
fn edges_cost_what_messages_take() {
    let levels = r#"{"levels": [{"groups": [[0, 1], [2, 3]], "alpha": 100, "beta": 0.5},
        {"groups": [[0, 1, 2, 3]], "alpha": 1000.4, "beta": 2}]}"#;
    let cost = CostModel::heterogeneous(Links::from_json(levels).unwrap()).unwrap();
    let platform = Platform::of_costs(&cost, 4, 1000).unwrap();
    assert_eq!((platform.nodes(), platform.edges().len()), (4, 12));
    for edge in platform.edges() {
        let near = edge.src / 2 == edge.dst / 2;
        assert_eq!(edge.cost, Fraction::from(if near { 600 } else { 3000 }));
    }
    assert!(Platform::of_costs(&cost, 4, 0).is_err(), "takes no time");
    assert!(
        Platform::of_costs(&cost, 5, 8).is_err(),
        "no costs of rank 4"
    );
    assert!(!platform.computes());
}
