//! Tests of selection rules.

use oneport::Kind;
use oneport::machine::Ports;
use oneport_measure::tune::rules::{Query, Rule, Rules, Selection};

fn rule(ranks: usize, dtype: Option<&str>, ordered: bool) -> Rule {
    let choice = |up_to_bytes, algorithm: &str, segment| Selection {
        up_to_bytes,
        algorithm: algorithm.into(),
        segment,
    };
    Rule {
        collective: Kind::Reduce,
        ranks,
        ports: "bi".into(),
        ported: 1,
        dtype: dtype.map(str::to_string),
        ordered,
        clock: Some("paced".into()),
        source: Some("a \"quoted\" command".into()),
        choices: vec![
            choice(1024, "binomial", None),
            choice(65536, "chain", Some(4096)),
        ],
    }
}

fn query(ranks: usize, bytes: u64) -> Query<'static> {
    Query {
        collective: Kind::Reduce,
        ranks,
        ports: Ports::BI,
        dtype: Some("f32"),
        ordered: false,
        bytes,
    }
}

#[test]
fn round_trip() {
    let mut rules = Rules::default();
    assert_eq!(Rules::parse(&rules.to_json()).unwrap(), rules);
    for (ranks, dtype) in [(16, None), (8, Some("f32")), (8, Some("f64"))] {
        rules.put(rule(ranks, dtype, false));
    }
    let text = rules.to_json();
    assert_eq!(Rules::parse(&text).unwrap(), rules);
    assert_eq!(
        text.lines().filter(|l| l.contains("up_to_bytes")).count(),
        6
    );
    // A rule for the same configuration is replaced.
    let mut changed = rule(8, Some("f32"), false);
    changed.choices.truncate(1);
    rules.put(changed.clone());
    assert_eq!(rules.rules.len(), 3);
    assert!(rules.rules.contains(&changed));
}

#[test]
fn the_nearest_rule_is_chosen() {
    let mut rules = Rules::default();
    for ranks in [4, 8, 16] {
        rules.put(rule(ranks, Some("f64"), true));
        rules.put(rule(ranks, Some("f64"), false));
        rules.put(rule(ranks, Some("f32"), false));
    }
    let chosen = |ranks, bytes| {
        let (rule, choice) = rules.choose(&query(ranks, bytes)).unwrap();
        assert_eq!((rule.dtype.as_deref(), rule.ordered), (Some("f32"), false));
        (rule.ranks, choice.algorithm.as_str())
    };
    assert_eq!(chosen(8, 0), (8, "binomial"));
    assert_eq!(chosen(8, 1024), (8, "binomial"));
    assert_eq!(chosen(8, 1025), (8, "chain"));
    assert_eq!(chosen(8, 1 << 30), (8, "chain"));
    assert_eq!(chosen(1, 1), (4, "binomial"));
    assert_eq!(chosen(6, 1).0, 4);
    assert_eq!(chosen(7, 1).0, 8);
    assert_eq!(chosen(1000, 1).0, 16);
    let mut ordered = query(8, 1);
    ordered.ordered = true;
    assert!(rules.choose(&ordered).unwrap().0.ordered);
    let mut uni = query(8, 1);
    uni.ports = Ports::UNI;
    let error = rules.choose(&uni).unwrap_err().to_string();
    assert!(
        error.contains("no choice for reduce with uni ports:"),
        "{error}"
    );
}

#[test]
fn broken_files_are_refused() {
    let mut rules = Rules::default();
    rules.put(rule(8, None, false));
    let text = rules.to_json();
    for (from, to) in [
        ("oneport_rules\": 1", "oneport_rules\": 2"),
        ("reduce", "reduction"),
        ("\"bi\"", "\"both\""),
        ("chain", "chains"),
        ("4096", "0"),
        ("65536", "1024"),
        ("65536", "-1"),
        ("\"ranks\": 8", "\"ranks\": 0"),
        ("ranks", "rank"),
        ("]", ""),
    ] {
        let broken = text.replacen(from, to, 1);
        assert_ne!(broken, text);
        assert!(Rules::parse(&broken).unwrap_err().is_usage(), "{from} {to}");
    }
}
