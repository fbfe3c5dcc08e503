//! `oneport schema`: files are valid that the readers take, by the keywords that the schemas use.

use serde_json::{Value, json};

use oneport::machine::Links;
use oneport::plan::registry;
use oneport::{CostModel, Request, Schedule};
use oneport_measure::Profile;
use oneport_measure::tune::rules::Rules;

use crate::hand;
use crate::support::run::text;

const NAMES: [&str; 5] = ["schedule", "platform", "cost", "profile", "rules"];

/// Why `value` is not valid, if it is not. Panics on keywords that it does not know.
fn invalid(root: &Value, schema: &Value, value: &Value) -> Option<String> {
    let keywords = schema.as_object().unwrap();
    keywords.iter().find_map(|(keyword, rule)| {
        let wrong = match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" => false,
            "$ref" => {
                let name = rule.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                return invalid(root, &root["$defs"][name], value);
            }
            "type" => {
                let is = |name: &Value| match name.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "number" => value.is_number(),
                    "integer" => value.is_u64() || value.is_i64(),
                    "boolean" => value.is_boolean(),
                    "null" => value.is_null(),
                    other => panic!("type {other}"),
                };
                !match rule {
                    Value::Array(names) => names.iter().any(is),
                    name => is(name),
                }
            }
            "enum" => !rule.as_array().unwrap().contains(value),
            "const" => value != rule,
            "minimum" => value.as_f64().is_some_and(|v| v < rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_some_and(|v| v > rule.as_f64().unwrap()),
            "minLength" => value
                .as_str()
                .is_some_and(|v| (v.chars().count() as u64) < rule.as_u64().unwrap()),
            "maxLength" => value
                .as_str()
                .is_some_and(|v| v.chars().count() as u64 > rule.as_u64().unwrap()),
            "minItems" => value
                .as_array()
                .is_some_and(|v| (v.len() as u64) < rule.as_u64().unwrap()),
            "maxItems" => value
                .as_array()
                .is_some_and(|v| v.len() as u64 > rule.as_u64().unwrap()),
            "anyOf" => rule
                .as_array()
                .unwrap()
                .iter()
                .all(|s| invalid(root, s, value).is_some()),
            "oneOf" => {
                let alternatives = rule.as_array().unwrap().iter();
                let valid = alternatives.filter(|s| invalid(root, s, value).is_none());
                valid.count() != 1
            }
            "required" => {
                let has = |name: &Value| value.get(name.as_str().unwrap()).is_some();
                value.is_object() && !rule.as_array().unwrap().iter().all(has)
            }
            "additionalProperties" => {
                assert_eq!(rule, &json!(false));
                let known = |name: &String| schema["properties"].get(name).is_some();
                value.as_object().is_some_and(|v| !v.keys().all(known))
            }
            "properties" => {
                let mut properties = rule.as_object().unwrap().iter();
                return properties
                    .find_map(|(name, schema)| invalid(root, schema, value.get(name)?));
            }
            "items" => {
                return value
                    .as_array()?
                    .iter()
                    .find_map(|item| invalid(root, rule, item));
            }
            other => panic!("keyword {other}"),
        };
        wrong.then(|| format!("{keyword} {rule}: {value}"))
    })
}

fn schema(name: &str) -> Value {
    serde_json::from_str(&text(&format!("schema {name}"))).unwrap()
}

fn check(schema: &Value, text: &str) -> Option<String> {
    invalid(schema, schema, &serde_json::from_str(text).unwrap())
}

/// The value with one part changed, for each part and change.
fn changed(value: &Value) -> Vec<Value> {
    let mut all = vec![
        json!("x"),
        json!(-1),
        json!(0.5),
        json!(true),
        json!({"x": 0}),
        Value::Null,
    ];
    match value {
        Value::Object(map) => {
            let mut more = map.clone();
            more.insert("unknown".into(), json!(1));
            all.push(Value::Object(more));
            for (name, part) in map {
                let mut less = map.clone();
                less.remove(name);
                all.push(Value::Object(less));
                for part in changed(part) {
                    let mut other = map.clone();
                    other.insert(name.clone(), part);
                    all.push(Value::Object(other));
                }
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                let mut less = items.clone();
                less.remove(i);
                all.push(Value::Array(less));
                for item in changed(item) {
                    let mut other = items.clone();
                    other[i] = item;
                    all.push(Value::Array(other));
                }
            }
        }
        _ => {}
    }
    all
}

/// A schema takes all that a reader takes, and refuses most of what it refuses.
fn agrees(name: &str, text: &str, reads: impl Fn(&str) -> bool) {
    let schema = schema(name);
    assert!(reads(text), "{name}: {text}");
    assert_eq!(check(&schema, text), None, "{name}");
    let (mut refused, mut both) = (0, 0);
    for value in changed(&serde_json::from_str(text).unwrap()) {
        let text = value.to_string();
        let why = check(&schema, &text);
        if reads(&text) {
            assert_eq!(why, None, "{name}: {text}");
        } else {
            refused += 1;
            both += usize::from(why.is_some());
        }
    }
    assert!(
        refused > 10 && both * 10 >= refused * 8,
        "{name}: {both} of {refused}"
    );
}

#[test]
fn written_schedules_are_valid() {
    let schema = schema("schedule");
    let planned = registry::all().iter().filter_map(|algorithm| {
        let request = Request::new(algorithm.collective, 5, 10);
        algorithm.plan(&request).ok()
    });
    let by_hand = hand::all(3).into_iter().map(|(_, schedule)| schedule);
    for schedule in planned.chain(by_hand) {
        let text = schedule.to_json();
        assert_eq!(check(&schema, &text), None, "{text}");
    }
}

#[test]
fn schemas_agree_with_readers() {
    let schedule = r#"{"name": "mine", "ranks": 2, "ports": "bi", "ported": 1, "series": 3,
        "collective": {"kind": "multicast", "root": 0, "targets": [1]},
        "layout": [{"len": 4, "input": [[0, 4]], "output": []}, {"len": 9, "input": [], "output": [[0, 4]]}],
        "programs": [[{"send": {"to": 1, "spans": [[0, 2], [2, 2]], "port": 0}}],
          [{"recv": {"from": 0, "spans": [[4, 4]]}}, {"copy": {"src": [4, 4], "dst": [[0, 4]]}},
           {"recv_combine": {"from": 0, "spans": [], "order": "theirs_first"}},
           {"combine": {"src": [0, 1], "dst": [1, 1], "order": "mine_first"}}]],
        "shared_ports": [{"name": "uplink", "ranks": [0], "direction": "out", "steps": [[0, 0]]}]}"#;
    agrees("schedule", schedule, |text| {
        Schedule::from_json(text).is_ok()
    });
    let cost = r#"{"alpha": [[0, 1.5], [null, 0]], "beta": [[0, 1], [null, 0]], "gamma": [1, 2], "gamma_copy": []}"#;
    let levels = r#"{"levels": [{"groups": [[0, 1], [2]], "alpha": 1, "beta": 2, "latency": 1}, {"alpha": 3, "beta": 4}], "gamma": [1, 2, 3], "eager": "all"}"#;
    let late = r#"{"alpha": [[0, 1.5], [null, 0]], "beta": [[0, 1], [null, 0]], "latency": 2, "eager": 9}"#;
    let pairs = r#"{"alpha": [[0, 1], [2, 0]], "beta": [[0, 1], [3, 0]], "latency": [[0, 1], [2, 0]], "eager": "none"}"#;
    for text in [cost, levels, late, pairs] {
        agrees("cost", text, |text| {
            let links = Links::from_json(text);
            links.is_ok_and(|links| CostModel::heterogeneous(links).is_ok())
        });
    }
    let profile = r#"{"alpha": 100, "beta": 0.1, "gamma": 0.2, "gamma_copy": 0, "latency": 3, "latency_error": 0.1, "eager": 64, "shared_alpha": 500, "fit_error": 0.1,
        "machine": {"cpu": "x", "os": "y", "cores": 2}, "cores": [0, 1], "date": "", "version": "0",
        "points": [{"bytes": 1, "time": 2, "predicted": 2, "residual": 0}], "warnings": ["w"],
        "pieces": {"transfer": [{"from": 0, "alpha": 1, "beta": 2}]},
        "hosts": ["a", "b"], "levels": [{"groups": [[0, 1]], "alpha": 1, "beta": 2}, {"alpha": 3, "beta": 4}],
        "pairs": {"alpha": [[0, 1], [1, 0]], "beta": [[0, 1], [1, 0]]}, "tuning": {"own_work_ns": 50, "cache_bytes": 1048576}}"#;
    agrees("profile", profile, |text| Profile::from_json(text).is_ok());
    let rules = r#"{"oneport_rules": 1, "rules": [{"collective": "reduce", "ranks": 8, "ports": "bi", "ported": 1,
        "dtype": "f32", "ordered": false, "clock": null, "source": "s",
        "choices": [{"up_to_bytes": 10, "algorithm": "chain", "segment": 5},
                    {"up_to_bytes": 20, "algorithm": "binomial", "segment": null}]}]}"#;
    agrees("rules", rules, |text| Rules::parse(text).is_ok());
    {
        let platform = r#"{"nodes": 3, "source": 0, "targets": [1, 2], "compute": [1, "1/2", 0.25], "overlap": true,
            "edges": [{"src": 0, "dst": 1, "cost": "1/2", "latency": 1, "drift": 0.5}, {"src": 1, "dst": 2, "cost": 1}]}"#;
        agrees("platform", platform, |text| {
            oneport_steady::Platform::parse(text).is_ok()
        });
    }
}

/// No description has links of Rust's comments, and each schema has a title.
#[test]
fn schemas_are_for_readers_of_json() {
    for name in NAMES {
        let schema = text(&format!("schema {name}"));
        assert!(!schema.contains("](") && !schema.contains("[`"), "{schema}");
        let value: Value = serde_json::from_str(&schema).unwrap();
        assert!(value["title"].as_str().unwrap().contains("oneport"));
        assert!(value["description"].as_str().unwrap().len() > 20, "{name}");
    }
}
