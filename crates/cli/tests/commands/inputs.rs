//! Tests of the files of sizes and costs that commands read.

use super::cli::{PAIR, folder};
use crate::support::run::{failure, json, oneport};

/// Writes files of this folder; returns their paths.
fn files(name: &str) -> impl Fn(&str, &str) -> String {
    let folder = folder(name);
    move |name, content| {
        let path = folder.join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_string()
    }
}

#[test]
fn sizes_of_an_alltoall_are_a_list_or_a_square() {
    let file = files("inputs_sizes");
    let plan = |kind: &str, path: &str| format!("simulate {kind} --sizes-file {path}");
    for (kind, content, ranks) in [
        ("alltoall", "1\n2\n3\n4\n", 4),
        ("alltoall", "1, 2, 3,\n", 3),
        ("alltoall", "1,2,3,\n\n4 5 6\n7\t8 9", 3),
        // A list of another collective ends its lines anywhere.
        ("gather", "1 2 3\n4\n", 4),
        ("gather", "1 2\n3 4\n", 4),
    ] {
        let path = file("good", content);
        let found = json(&plan(kind, &path));
        assert_eq!(found["ranks"], ranks, "{kind} {content:?}");
    }
    for (content, line, what) in [
        ("1 2 3\n\n4 5\n7 8 9\n", 3, "is 2, that of lines 3"),
        ("1 2\n3\n", 2, "is 1, that of lines 2"),
        ("1 2 3\n4 5 6\n", 1, "is 3, that of lines 2"),
        ("1 2\n3 x\n", 2, "'x' is not a size"),
    ] {
        let path = file("bad", content);
        let message = failure(&mut oneport(&plan("alltoall", &path)), 2);
        assert!(
            message.contains(&format!("{path}, line {line}: ")),
            "{message}"
        );
        assert!(message.contains(what), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

#[test]
fn costs_of_a_level_without_groups_hold_for_all_ranks() {
    let file = files("inputs_costs");
    let costs = file("level.json", r#"{"levels": [{"alpha": 1, "beta": 2}]}"#);
    let broadcast = "simulate broadcast -a binomial --bytes 3";
    let found = json(&format!("{broadcast} -p 4 --costs {costs}"));
    assert_eq!(found["time"], 2 * (1 + 2 * 3));
    let found = json(&format!("simulate gather --sizes 1,2,3 --costs {costs}"));
    assert_eq!(found["ranks"], 3);
    let pair = file("pair.json", PAIR);
    let found = json(&format!("simulate --schedule {pair} --costs {costs}"));
    assert_eq!(found["time"], 1 + 2 * 4);
    let message = failure(&mut oneport(&format!("{broadcast} --costs {costs}")), 2);
    let expected = format!("{costs}: not a cost file: levels: no group names a rank");
    assert!(message.contains(&expected), "{message}");
}

#[test]
fn every_error_in_costs_names_the_file() {
    let file = files("inputs_named");
    for (content, why) in [
        (r#"{"alpha": [[0, 1]], "beta": [[0, 1]]}"#, "matrices"),
        (
            r#"{"alpha": [[0, -1], [1, 0]], "beta": [[0, 1], [1, 0]]}"#,
            "not a time",
        ),
        ("{", "the text ends too early"),
    ] {
        let costs = file("costs.json", content);
        for command in ["simulate broadcast", "steady"] {
            let arguments = format!("{command} --bytes 8 --costs {costs}");
            let message = failure(&mut oneport(&arguments), 2);
            assert!(
                message.starts_with(&format!("error: {costs}: ")),
                "{message}"
            );
            assert!(message.contains(why), "{message}");
        }
    }
}

#[test]
fn a_list_is_refused_where_an_object_is_expected() {
    let file = files("inputs_lists");
    // As many elements as some of the objects have fields.
    for list in ["[]", "\n[1, []]", "[[1, 2], [3]]"] {
        let path = file("list.json", list);
        for (command, what) in [
            ("simulate --schedule", "not a schedule"),
            ("simulate reduce --costs", "not a cost file"),
            ("simulate reduce --profile", "not a profile"),
            ("run reduce --rules", "not a file of selection rules"),
            ("synthesize broadcast --graph", "not a cost file"),
            ("steady", "platform"),
            ("check --certificate", "certificate"),
        ] {
            let message = failure(&mut oneport(&format!("{command} {path}")), 2);
            assert!(message.contains(what), "{command} {list}: {message}");
            assert!(
                message.contains(": a list, expected an object with "),
                "{command} {list}: {message}"
            );
        }
    }
}
