//! Tests of the JSON form of schedules: round trips, and clear errors for anything else.

use oneport::plan::registry;
use oneport::{Ports, Request, Schedule};
use serde_json::json;

use crate::hand;

/// The example of the documentation, for three ranks.
const EXAMPLE: &str = r#"
    { "ranks": 3, "ports": "bi", "ported": 1, "collective": {"kind": "broadcast", "root": 0},
      "layout": [ {"len": 4, "input": [[0,4]], "output": [[0,4]]}, {"len": 4, "input": [], "output": [[0,4]]}, {"len": 4, "input": [], "output": [[0,4]]} ],
      "programs": [ [ {"send": {"to": 1, "spans": [[0,4]]}} ],
                    [ {"recv": {"from": 0, "spans": [[0,4]]}}, {"send": {"to": 2, "spans": [[0,4]]}} ],
                    [ {"recv": {"from": 1, "spans": [[0,4]]}} ] ] }
"#;

#[test]
fn the_documented_example_is_correct() {
    let s = Schedule::from_json(EXAMPLE).unwrap();
    assert_eq!((s.ranks(), s.steps(), s.ports()), (3, 4, Ports::BI));
    let report = s.check();
    assert!(report.is_correct(), "{report}");
    assert_eq!(Schedule::from_json(&s.to_json()).unwrap(), s);
}

#[test]
fn schedules_survive_a_round_trip() {
    let assert_round_trip = |s: &Schedule| {
        let read = Schedule::from_json(&s.to_json()).unwrap();
        assert_eq!((&read, read.name()), (s, s.name()));
        let value = serde_json::to_string(s).unwrap();
        assert_eq!(&Schedule::from_json(&value).unwrap(), s);
    };
    for p in [1, 2, 5] {
        hand::all(p).iter().for_each(|(_, s)| assert_round_trip(s));
    }
    for algorithm in registry::all() {
        for ports in [Ports::UNI, Ports::BI] {
            let request = Request::new(algorithm.collective, 7, 10)
                .segment_count(4)
                .ports(ports);
            if let Ok(s) = algorithm.plan(&request) {
                assert_eq!(s.name(), Some(&*algorithm.name()));
                assert_round_trip(&s);
                let odd = s.with_name(r#"Über "x=\y" | 2, a & b"#).unwrap();
                assert_round_trip(&odd);
            }
        }
    }
}

#[test]
fn names_fit_into_a_cell() {
    let s = Schedule::from_json(EXAMPLE).unwrap();
    assert_eq!(s.name(), None);
    let long = "x".repeat(101);
    for (name, expected) in [
        ("", "is empty"),
        (" \u{a0}", "is empty"),
        (" a", "begins or ends with a blank"),
        ("a\nb", "has a control character"),
        ("\u{1b}[1m", "has a control character"),
        (&long, "has more than 100 characters"),
    ] {
        let error = s.clone().with_name(name).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        let text = EXAMPLE.replacen('{', &format!("{{\"name\": {},", json!(name)), 1);
        let error = Schedule::from_json(&text).unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with("not a schedule: ") && error.contains(expected),
            "{error}"
        );
    }
    assert!(Schedule::from_json(&EXAMPLE.replacen('{', "{\"name\": null,", 1)).is_err());
    let named = s.clone().with_name("mine").unwrap();
    // A name is no part of what a schedule does.
    assert_eq!(named, s);
    assert_eq!(named.scaled(2).unwrap().name(), Some("mine"));
}

#[test]
fn every_kind_of_step_is_read_with_its_defaults() {
    let s = Schedule::from_json(
        r#"{"ranks": 1, "ports": "uni", "collective": {"kind": "multicast", "root": 0, "targets": []}, "layout": [{"len": 9, "input": [], "output": []}],
        "programs": [[ {"send": {"to": 0, "spans": [], "port": 0}}, {"recv": {"from": 0, "spans": [[0,0]]}},
          {"recv_combine": {"from": 0, "spans": [[9,0]], "order": "theirs_first"}}, {"recv_combine": {"from": 0, "spans": []}},
          {"copy": {"src": [0,2], "dst": [[2,1],[3,1]]}}, {"combine": {"src": [[0,2]], "dst": [2,2], "order": "mine_first"}}, {"combine": {"src": [], "dst": []}} ]]}"#,
    )
    .unwrap();
    assert_eq!((s.steps(), s.ports()), (7, Ports::UNI));
    assert_eq!(Schedule::from_json(&s.to_json()).unwrap(), s);
}

/// Asserts that the example with its first `old` replaced by `new` gives an error with `words`.
fn refused(old: &str, new: &str, words: &str) {
    assert!(EXAMPLE.contains(old), "{old}");
    let text = EXAMPLE.replacen(old, new, 1);
    let error = Schedule::from_json(&text).expect_err(&text);
    assert!(error.is_usage(), "{error}");
    assert_eq!(error.exit_code(), 2);
    let message = error.to_string();
    assert!(message.contains(words), "{new}: {message}");
}

#[test]
fn a_list_is_no_schedule() {
    for list in ["[[1, 2], [3]]", "\n [3, \"bi\"]"] {
        let error = Schedule::from_json(list).unwrap_err().to_string();
        assert!(
            error.contains("a list, expected an object with ranks"),
            "{error}"
        );
    }
}

#[test]
fn wrong_types_are_refused() {
    refused(
        "\"ranks\": 3",
        "\"ranks\": \"3\"",
        "invalid type: string \"3\", expected a whole number",
    );
    refused(
        "\"ranks\": 3",
        "\"ranks\": 3.5",
        "invalid type: floating point `3.5`",
    );
    refused("\"ranks\": 3", "\"ranks\": null", "invalid type: null");
    refused(
        "\"ports\": \"bi\"",
        "\"ports\": \"both\"",
        "unknown name `both`, expected one of `uni`, `bi`",
    );
    refused("\"ports\": \"bi\"", "\"ports\": 1", "line 2");
    refused("[[0,4]]", "[0,4]", "invalid type: integer `0`");
    refused("[[0,4]]", "[[0,4,1]]", "trailing characters");
    refused("[[0,4]]", "[[0]]", "invalid length 1");
    refused("[[0,4]]", "[[0,true]]", "invalid type: boolean `true`");
    refused(
        "[ {\"send\"",
        "[ {\"sent\"",
        "unknown name `sent`, expected one of `send`, `recv`",
    );
    refused(
        "{\"send\": {\"to\": 1, \"spans\": [[0,4]]}}",
        "\"send\"",
        "invalid type",
    );
    refused(
        "{\"send\": {\"to\": 1, \"spans\": [[0,4]]}}",
        "{}",
        "expected",
    );
    refused(
        "{\"kind\": \"broadcast\", \"root\": 0}",
        "\"broadcast\"",
        "invalid type: string \"broadcast\"",
    );
    refused(
        "\"broadcast\"",
        "\"broadcasts\"",
        "unknown name `broadcasts`",
    );
    refused(
        "{\"send\": {\"to\": 1, \"spans\": [[0,4]]}}",
        "{\"copy\": {\"src\": [0], \"dst\": [1,1]}}",
        "expected a span [offset, len] or a list of spans",
    );
    refused(
        "{\"send\": {\"to\": 1, \"spans\": [[0,4]]}}",
        "{\"recv_combine\": {\"from\": 1, \"spans\": [], \"order\": \"mine\"}}",
        "unknown name `mine`, expected `mine_first` or `theirs_first`",
    );
    for text in [
        "",
        "null",
        "[]",
        "3",
        "\"schedule\"",
        "{",
        "{}",
        "\u{0}",
        "nonsense",
        "[[[[[[",
    ] {
        let message = Schedule::from_json(text).unwrap_err().to_string();
        assert!(message.starts_with("not a schedule: "), "{text}: {message}");
    }
    let deep = "[".repeat(100_000);
    assert!(Schedule::from_json(&deep).is_err());
}

#[test]
fn missing_and_unknown_fields_are_refused() {
    refused("\"ranks\": 3,", "", "missing field `ranks`");
    refused("\"ports\": \"bi\",", "", "missing field `ports`");
    refused(
        "\"collective\": {\"kind\": \"broadcast\", \"root\": 0},",
        "",
        "missing field `collective`",
    );
    refused("\"kind\": \"broadcast\", ", "", "missing field `kind`");
    refused(", \"root\": 0", "", "missing field `root`");
    refused("\"len\": 4, ", "", "missing field `len`");
    refused("\"input\": [], ", "", "missing field `input`");
    refused("\"to\": 1, ", "", "missing field `to`");
    refused(", \"spans\": [[0,4]]", "", "missing field `spans`");
    refused(
        "\"ranks\": 3,",
        "\"ranks\": 3, \"rank\": 3,",
        "unknown field `rank`",
    );
    refused(
        "\"ranks\": 3,",
        "\"ranks\": 3, \"ranks\": 3,",
        "duplicate field `ranks`",
    );
    refused(
        "\"root\": 0",
        "\"root\": 0, \"op\": \"sum\"",
        "unknown field `op`",
    );
    refused(
        "\"len\": 4, ",
        "\"len\": 4, \"length\": 4, ",
        "unknown field `length`",
    );
    refused(
        "\"to\": 1, ",
        "\"to\": 1, \"from\": 0, ",
        "unknown field `from`",
    );
}

#[test]
fn numbers_out_of_range_are_refused() {
    refused(
        "\"ranks\": 3",
        "\"ranks\": -3",
        "invalid value: integer `-3`, expected a whole number",
    );
    refused("[[0,4]]", "[[-1,4]]", "invalid value: integer `-1`");
    refused("\"to\": 1", "\"to\": -1", "invalid value: integer `-1`");
    refused(
        "\"len\": 4",
        "\"len\": 18446744073709551616",
        "floating point `1.8446744073709552e+19`, expected a whole number",
    );
    refused(
        "[[0,4]]",
        "[[18446744073709551616,4]]",
        "floating point `1.8446744073709552e+19`, expected a whole number",
    );
    refused(
        "[[0,4]]",
        "[[0,1e30]]",
        "invalid type: floating point `1e+30`",
    );
    refused(
        "[[0,4]]",
        "[[0,5]]",
        "rank 0: input span [0, 5] leaves the buffer of 4 elements",
    );
    refused(
        "[[0,4]]",
        "[[4,1]]",
        "rank 0: input span [4, 1] leaves the buffer of 4 elements",
    );
    refused(
        "[[0,4]]",
        "[[5,0]]",
        "rank 0: input span [5, 0] leaves the buffer of 4 elements",
    );
    // The sum of offset and length overflows.
    refused("[[0,4]]", "[[18446744073709551615,1]]", "leaves the buffer");
    refused("[[0,4]]", "[[1,18446744073709551615]]", "leaves the buffer");
    refused(
        "{\"to\": 1, \"spans\": [[0,4]]",
        "{\"to\": 1, \"spans\": [[0,4],[2,3]]",
        "rank 0, step 0 (send): span [2, 3] leaves the buffer of 4 elements",
    );
    refused(
        "\"to\": 1",
        "\"to\": 3",
        "rank 0, step 0 (send): peer 3 is not one of 3 ranks",
    );
    refused(
        "\"to\": 1",
        "\"to\": 18446744073709551615",
        "is not one of 3 ranks",
    );
    refused(
        "\"root\": 0",
        "\"root\": 3",
        "broadcast: root 3 is not one of 3 ranks",
    );
    refused(
        "{\"kind\": \"broadcast\", \"root\": 0}",
        "{\"kind\": \"multicast\", \"root\": 0, \"targets\": [1, 9]}",
        "multicast: target 9 is not one of 3 ranks",
    );
    refused(
        "\"ported\": 1",
        "\"ported\": 0",
        "a rank needs at least one port",
    );
    refused(
        "\"ported\": 1",
        "\"ported\": 18446744073709551615",
        "at most 4096 ports",
    );
}

#[test]
fn contradictory_fields_are_refused() {
    refused(
        "\"ranks\": 3",
        "\"ranks\": 4",
        "\"ranks\" is 4, but there are 3 programs",
    );
    refused(
        "\"ranks\": 3",
        "\"ranks\": 0",
        "\"ranks\" is 0, but there are 3 programs",
    );
    refused(
        "{\"len\": 4, \"input\": [], \"output\": [[0,4]]},",
        "",
        "2 layouts for 3 programs",
    );
    let empty = r#"{"ranks": 0, "ports": "bi", "collective": {"kind": "scan"}, "layout": [], "programs": []}"#;
    let message = Schedule::from_json(empty).unwrap_err().to_string();
    assert_eq!(message, "a schedule needs at least one rank");
    let error = Schedule::from_json(&format!("{EXAMPLE} and more")).unwrap_err();
    assert!(error.to_string().contains("trailing characters"), "{error}");
}

#[test]
fn readable_schedules_are_checked_without_a_panic() {
    // Empty programs, and spans and lengths near the limit.
    for (old, new) in [
        ("[ {\"send\": {\"to\": 1, \"spans\": [[0,4]]}} ]", "[]"),
        ("\"len\": 4", "\"len\": 18446744073709551615"),
        (
            "{\"to\": 1, \"spans\": [[0,4]]",
            "{\"to\": 1, \"port\": 18446744073709551615, \"spans\": [[0,4]]",
        ),
        (
            "{\"to\": 1, \"spans\": [[0,4]]",
            "{\"to\": 1, \"port\": 4095, \"spans\": [[0,4]]",
        ),
        ("\"ported\": 1", "\"ported\": 4096"),
        (
            "{\"to\": 1, \"spans\": [[0,4]]",
            "{\"to\": 1, \"spans\": [[0,4],[0,4],[1,1],[4,0]]",
        ),
        (
            "{\"kind\": \"broadcast\", \"root\": 0}",
            "{\"kind\": \"alltoall\"}",
        ),
    ] {
        let s = Schedule::from_json(&EXAMPLE.replacen(old, new, 1)).unwrap();
        let report = s.check();
        assert_eq!(
            report.is_correct(),
            new.contains("\"ported\": 4096") || new.contains("\"len\": 184"),
            "{new}: {report}"
        );
        assert_eq!(Schedule::from_json(&s.to_json()).unwrap(), s);
    }
    // The sum of the buffer lengths overflows, so the checker must not allocate the buffers.
    let huge = u64::MAX;
    for kind in [
        "allgather",
        "alltoall",
        "reduce_scatter",
        "scan",
        "allreduce",
    ] {
        let text = format!(
            r#"{{"ranks": 2, "ports": "bi", "collective": {{"kind": "{kind}"}},
            "layout": [ {{"len": {huge}, "input": [[0,{huge}]], "output": [[0,{huge}]]}}, {{"len": {huge}, "input": [[0,{huge}]], "output": [[0,{huge}]]}} ],
            "programs": [ [{{"send": {{"to": 1, "spans": [[0,{huge}],[0,{huge}]]}}}}], [{{"recv": {{"from": 0, "spans": [[0,{huge}]]}}}}] ] }}"#
        );
        let s = Schedule::from_json(&text).unwrap();
        assert!(!s.check().is_correct());
    }
}
