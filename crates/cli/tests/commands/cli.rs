//! Tests of every subcommand: its output, JSON fields and exit codes.

use std::collections::HashMap;
use std::path::Path;

use oneport::plan::registry;
use oneport::{CostModel, Kind};
use serde_json::Value;

use crate::support::run::{failure, json, oneport, text};

pub(crate) fn folder(name: &str) -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder of the test");
    folder
}

pub(crate) const PAIR: &str = r#"{ "ranks": 2, "ports": "bi", "ported": 1, "collective": {"kind": "broadcast", "root": 0},
  "layout": [ {"len": 4, "input": [[0,4]], "output": [[0,4]]}, {"len": 4, "input": [], "output": [[0,4]]} ],
  "programs": [ [ {"send": {"to": 1, "spans": [[0,4]]}} ], [ {"recv": {"from": 0, "spans": [[0,4]]}} ] ] }"#;

#[test]
fn list_names_every_algorithm() {
    let listed = json("list");
    let algorithms = listed["algorithms"].as_array().unwrap();
    let composed = oneport::Kind::ALL
        .into_iter()
        .flat_map(registry::compositions);
    let registered = registry::all().len() + composed.count();
    assert_eq!(algorithms.len(), registered);
    for a in algorithms {
        for field in ["collective", "name", "source"] {
            assert!(a[field].is_string(), "{a}");
        }
        assert!(a["commutative_only"].is_boolean(), "{a}");
        let ports = a["ports"].as_array().unwrap();
        assert!(
            !ports.is_empty() && ports.iter().all(|p| p == "uni" || p == "bi"),
            "{a}"
        );
    }
    let listed = text("list");
    let reduce = text("list reduce");
    let bine = text("list bine");
    for line in [&listed, &reduce, &bine]
        .iter()
        .flat_map(|text| text.lines())
    {
        assert!(line.chars().count() <= 100, "{line}");
    }
    // A screenful.
    assert!(listed.lines().count() < 50, "{listed}");
    for a in algorithms {
        let (collective, name) = (
            a["collective"].as_str().unwrap(),
            a["name"].as_str().unwrap(),
        );
        assert!(listed.contains(collective) && listed.contains(name), "{a}");
    }
    assert!(reduce.starts_with("reduce:\nalgorithm "), "{reduce}");
    assert!(!reduce.contains("scan"));
    assert!(bine.starts_with("broadcast bine\n  ports "), "{bine}");
    let found = json("list bine");
    let found = found["algorithms"].as_array().unwrap();
    assert!(found.len() > 1 && found.iter().all(|a| a["name"] == "bine"));
}

#[test]
fn plan_prints_the_schedule_in_every_format() {
    let arguments = "plan reduce -p 5 --bytes 12 --segments 3 -a chain";
    let schedule = json(arguments);
    assert_eq!(schedule["ranks"], 5);
    assert_eq!(schedule["collective"]["kind"], "reduce");
    assert_eq!(schedule["programs"][4][2]["send"]["to"], 3);
    let printed = text(&format!("{arguments} --format json"));
    let read = oneport::Schedule::from_json(&printed).unwrap();
    assert_eq!(read.ranks(), 5);
    let programs = text(arguments);
    assert!(programs.contains("rank 4"), "{programs}");
    assert!(
        programs.contains("receive from 4 and combine  [8,4]"),
        "{programs}"
    );
    let rounds = text(&format!("{arguments} --format rounds"));
    assert!(rounds.contains("round 6:"), "{rounds}");
    let dot = text(&format!("{arguments} --format dot"));
    assert!(
        dot.starts_with("digraph") && dot.contains("4 -> 3"),
        "{dot}"
    );
}

#[test]
fn a_saved_schedule_is_simulated_like_the_planned_one() {
    let folder = folder("planned_file");
    let plan = "plan broadcast -p 6 --bytes 8 --segments 2 -a chain -o chain.json";
    oneport(plan)
        .current_dir(&folder)
        .assert()
        .success()
        .stdout("");
    // Writing again replaces the file, and no temporary file remains.
    oneport(plan).current_dir(&folder).assert().success();
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    let file = folder.join("chain.json");
    let file = file.to_str().unwrap();
    let costs = "--alpha 1 --beta 1";
    let read = json(&format!("simulate --schedule {file} {costs}"));
    let planned = json(&format!(
        "simulate broadcast -p 6 --bytes 8 --segments 2 -a chain {costs}"
    ));
    for field in ["time", "rounds", "messages", "bytes", "lower_bound"] {
        assert_eq!(read[field], planned[field], "{field}");
    }
    assert_eq!(read["time"], 30);
    let uni = json(&format!("simulate --schedule {file} {costs} --ports uni"));
    assert_eq!(uni["time"], 35);
    assert_eq!(
        text(&format!("plan --schedule {file} --format json")),
        std::fs::read_to_string(file).unwrap()
    );
    let piped = oneport("simulate --schedule - --json")
        .write_stdin(PAIR)
        .assert()
        .success();
    let piped: Value = serde_json::from_slice(&piped.get_output().stdout).unwrap();
    assert_eq!(piped["messages"], 1);
}

#[test]
fn simulated_times_equal_closed_forms() {
    // (p + q - 2)(alpha + beta s + gamma s)
    let s =
        json("simulate reduce -p 9 --bytes 30 --segments 5 -a chain --alpha 10 --beta 2 --gamma 3");
    assert_eq!(s["time"], 12 * (10 + 5 * 6));
    assert_eq!(s["closed_form"], s["time"]);
    assert_eq!(s["rounds"], 12);
    assert_eq!(s["messages"], 40);
    assert_eq!(s["bytes"], 240);
    // The last rank has sent its vector after three messages of one element at the least.
    assert_eq!(s["lower_bound"], 3 * (10 + 2) + 10 + 2 * 30);
    // `--bytes` counts bytes even with an element type.
    let typed =
        "simulate reduce -p 9 --bytes 240 --segments 5 -a chain --dtype i64 --alpha 10 --beta 2";
    assert_eq!(json(typed)["time"], 12 * (10 + 48 * 2));
    // Times with units are converted to nanoseconds.
    let s = json("simulate broadcast -p 2 --bytes 1000 --alpha 1us --beta 0.5ns");
    assert_eq!(s["time"], 1500);
    assert_eq!(s["time_unit"], "ns");
    // A unidirectional reduction over an odd number of ranks takes at least 2 beta m.
    let s = json("simulate reduce -p 5 --bytes 100 --alpha 0 --beta 1 --ports uni");
    assert_eq!(s["lower_bound"], 200);
}

#[test]
fn simulate_shows_rank_times_and_the_critical_path() {
    let arguments = "simulate reduce -p 4 --bytes 8 -a binomial --alpha 1 --beta 1 --gamma 1 -v --critical-path";
    let s = json(arguments);
    assert_eq!(s["rank_times"].as_array().unwrap().len(), 4);
    assert_eq!(s["rank_times"][0], s["time"]);
    assert_eq!(s["port_busy"][0], serde_json::json!([0, 18]));
    let path = s["critical_path"].as_array().unwrap();
    assert_eq!(path.last().unwrap()["end"], s["time"]);
    assert_eq!(path[0]["start"], 0);
    let shown = text(arguments);
    assert!(
        shown.contains("critical path") && shown.contains("finishes"),
        "{shown}"
    );
}

#[test]
fn simulate_accepts_unequal_segments_several_ports_and_a_free_root() {
    let s = json("simulate reduce -p 3 --segment-sizes 3,2,1 -a chain --alpha 1 --beta 1");
    assert_eq!(
        (&s["segments"], &s["vector_bytes"], &s["segment"]),
        (&3.into(), &6.into(), &3.into())
    );
    let s = json("simulate reduce -p 3 --ported 2 --alpha 1 --beta 1");
    assert_eq!(s["ported"], 2);
    let s = json("simulate reduce -p 3 --root free");
    assert_eq!((&s["root"], &s["root_choice"]), (&0.into(), &"free".into()));
}

/// A search that has left out numbers of segments does not call the one that it found the best.
#[test]
fn only_a_complete_search_calls_a_number_of_segments_the_best() {
    let all = text("simulate broadcast -p 5 --bytes 12 -a chain --alpha 1 --beta 1");
    assert!(all.contains(" (the best number)\n"), "{all}");
    let blocks = "simulate allgather -a circulant-blocks --alpha 1 --beta 1 --sizes";
    let few = text(&format!("{blocks} 5,0,900,3"));
    assert!(few.contains(" (the best number)\n"), "{few}");
    // More than the limit of spans that are compared.
    let sizes = format!("1000000{}", ",1".repeat(15));
    let many = text(&format!("{blocks} {sizes}"));
    assert!(many.contains(" (the best number found)\n"), "{many}");
    // Near the optimum of a formula, but not all of them.
    let formula = text("simulate broadcast -p 8 --bytes 1MiB -a chain");
    assert!(formula.contains(" (the best number found)\n"), "{formula}");
    // The search does not know of ports that ranks share.
    let shared = text("simulate broadcast -p 4 --bytes 12 -a chain --nodes 2 --node-ports 1");
    assert!(shared.contains(" (the best number found)\n"), "{shared}");
}

#[test]
fn a_multicast_goes_to_its_targets() {
    let what = "multicast -p 8 --root 2 --targets 1,5,7 --bytes 8 --alpha 1 --beta 0";
    let simulated = json(&format!("simulate {what}"));
    assert_eq!(
        (&simulated["time"], &simulated["messages"]),
        (&2.into(), &3.into())
    );
    assert_eq!(json(&format!("check {what} -a all"))["ok"], true);
    let rows = json(&format!("compare {what}"))["rows"]
        .as_array()
        .unwrap()
        .len();
    assert!(rows > 5, "{rows}");
    assert_eq!(
        json(&format!("run {what} --repetitions 2"))["verified"],
        true
    );
    let plan: serde_json::Value =
        serde_json::from_str(&text(&format!("plan {what} --json"))).unwrap();
    let collective = serde_json::json!({"kind": "multicast", "root": 2, "targets": [1, 5, 7]});
    assert_eq!(plan["collective"], collective);
    for (arguments, expected) in [
        (
            "simulate broadcast --targets 1",
            "a broadcast has no targets",
        ),
        (
            "simulate multicast -p 4 --targets 4",
            "target 4 is not one of 4 ranks",
        ),
        (
            "simulate multicast -p 4 --targets 1,1",
            "target 1 is named twice",
        ),
        (
            "compare multicast -p 6 --targets 1,3,9",
            "target 9 is not one of 6 ranks",
        ),
        (
            "simulate multicast -p 4 --targets 1,x",
            "'x' is not a whole number from 0",
        ),
        ("check --schedule x.json --targets 1", "cannot be used with"),
    ] {
        // Once, not for each algorithm.
        let message = failure(&mut oneport(arguments), 2);
        let found = message.matches(expected).count();
        assert_eq!(found, 1, "{arguments}: {message}");
    }
}

#[test]
fn telephone_ports_call_one_partner_at_a_time() {
    let what = "allreduce -p 4 --bytes 8 --ports telephone --alpha 10 --beta 1";
    let doubling = format!("{what} -a recursive-doubling");
    let simulated = json(&format!("simulate {doubling}"));
    assert_eq!(
        (&simulated["ports"], &simulated["time"]),
        (&"telephone".into(), &36.into())
    );
    assert!(text(&format!("simulate {doubling}")).contains("4 ranks, 8 B, telephone ports"));
    // A call has two directions, each with a time of its own.
    let table = text(&format!("simulate {doubling} --ranks-table"));
    assert!(table.contains("port out busy  port in busy"), "{table}");
    // A partner on each side, one after another.
    let ring =
        json("simulate allgather -p 4 -a ring --bytes 8 --ports telephone --alpha 10 --beta 1");
    assert_eq!(ring["time"], 6 * 18);
    assert_eq!(json(&format!("check {what} -a all"))["ok"], true);
    let run = json(&format!("run {doubling} --repetitions 2"));
    assert_eq!(
        (&run["verified"], &run["model_time"]),
        (&true.into(), &36.into())
    );
    let rows = json(&format!("compare {what}"))["rows"].clone();
    assert_eq!(rows[0]["algorithm"], "recursive-doubling");
    for (arguments, expected) in [
        (
            "simulate allreduce -p 4 -a ring-of-rings --ports phone".to_string(),
            "possible values: uni, bi",
        ),
        (
            "simulate broadcast -p 4 -a circulant --ports telephone".to_string(),
            "not planned for telephone ports",
        ),
        (
            "steady --generate fig3 --ports telephone".to_string(),
            "not for telephone ports",
        ),
        (
            format!("export goal {doubling} -o -"),
            "hosts do not have telephone ports; the bytes form may take it",
        ),
    ] {
        let message = failure(&mut oneport(&arguments), 2);
        assert!(message.contains(expected), "{arguments}: {message}");
    }
}

/// The example of Lowery and Langou's section VIII: 41 instead of 44 with ten segments.
#[test]
fn unequal_segments_are_searched_for() {
    let costs = "--ports uni --alpha 0 --beta 1 --gamma 1";
    let reduce = format!("simulate reduce -a uni-greedy -p 12 --bytes 10 {costs}");
    let [equal, unequal] = ["10", "unequal"].map(|n| json(&format!("{reduce} --segments {n}")));
    assert_eq!((&equal["time"], &unequal["time"]), (&44.into(), &41.into()));
    assert_eq!(unequal["segment_choice"], "unequal");
    let sizes: Vec<u64> = serde_json::from_value(unequal["segment_sizes"].clone()).unwrap();
    assert_eq!(sizes.iter().sum::<u64>(), 10);
    let listed: Vec<String> = sizes.iter().map(u64::to_string).collect();
    let again = json(&format!("{reduce} --segment-sizes {}", listed.join(",")));
    assert_eq!(again["time"], 41);
    assert!(equal["segment_sizes"].is_null());
    // Sizes that differ by a few bytes look so.
    let chain = text("simulate broadcast -p 4 --bytes 1MiB -a chain --segments unequal");
    assert!(chain.contains("13 x 74899 B, 74889 B"), "{chain}");
    // Never slower than equal segments, whatever is chosen; algorithms without segments ignore it.
    for task in [
        "allreduce -p 9",
        "broadcast -p 6 --ports uni",
        "scan -p 5",
        "alltoall -p 4",
    ] {
        let compare = |options: &str| json(&format!("compare {task} --bytes 4KiB {options}"));
        let (equal, unequal) = (compare(""), compare("--segments unequal"));
        let times = |c: &Value| -> HashMap<String, f64> {
            let rows = c["rows"].as_array().unwrap().iter();
            let of = |row: &Value| {
                let name = row["algorithm"].as_str().unwrap().to_string();
                (name, row["time"].as_f64().unwrap())
            };
            rows.map(of).collect()
        };
        let (equal, unequal) = (times(&equal), times(&unequal));
        assert_eq!(equal.len(), unequal.len(), "{task}");
        assert!(
            equal.iter().all(|(name, time)| unequal[name] <= *time),
            "{task}"
        );
    }
}

/// Number of the algorithms for machines without delays and nodes.
fn candidates(kind: Kind) -> usize {
    registry::candidates(kind, &CostModel::new(1.0, 1.0), 8).count()
}

#[test]
fn compare_sorts_all_algorithms_by_time() {
    for collective in ["reduce", "broadcast"] {
        for ports in ["uni", "bi"] {
            let c = json(&format!(
                "compare {collective} -p 12 --bytes 4KiB --ports {ports}"
            ));
            let rows = c["rows"].as_array().unwrap();
            let skipped = c["skipped"].as_array().unwrap();
            let kind = collective.parse::<Kind>().unwrap();
            assert_eq!(rows.len() + skipped.len(), candidates(kind));
            let times: Vec<f64> = rows.iter().map(|r| r["time"].as_f64().unwrap()).collect();
            assert!(times.is_sorted());
            assert!(times[0] >= c["lower_bound"].as_f64().unwrap());
            assert!(
                rows.iter()
                    .all(|r| r["root"] == 0 && r["algorithm"].is_string())
            );
            assert!(skipped.iter().all(|s| s["reason"].is_string()));
            // `auto` selects the first row.
            let s = json(&format!(
                "simulate {collective} -p 12 --bytes 4KiB --ports {ports}"
            ));
            assert_eq!(s["time"], rows[0]["time"]);
        }
    }
    let shown = text("compare reduce -p 16 --alpha 3 --beta 1");
    assert!(
        shown.contains("x best") && shown.contains("chain"),
        "{shown}"
    );
}

/// Figure 9 of the paper on greedy reductions has both on one machine. Without their names,
/// algorithms for one direction at a time are left out.
#[test]
fn uni_greedy_stands_beside_bi_greedy_by_name() {
    let task = "reduce -p 3 --bytes 15 --alpha 0 --beta 1";
    let c = json(&format!("compare {task} -a uni-greedy,bi-greedy"));
    let time = |name: &str| {
        let mut rows = c["rows"].as_array().unwrap().iter();
        let row = rows.find(|row| row["algorithm"] == name).unwrap();
        row["time"].as_f64().unwrap()
    };
    assert_eq!(c["ports"], "bi");
    // Rank 1 passes on what rank 2 sends, one byte behind it; one port does one thing at a time.
    assert!(time("bi-greedy") <= time("uni-greedy") && time("uni-greedy") < 20.0);
    let uni = json(&format!("simulate {task} -a uni-greedy --ports uni"));
    assert_eq!(uni["time"], 30.0);
}

#[test]
fn a_noncommutative_operator_skips_algorithms_with_a_reason() {
    let c = json("compare reduce -p 12 --bytes 4KiB --op affine --dtype u64");
    for s in c["skipped"].as_array().unwrap() {
        let name = s["algorithm"].as_str().unwrap();
        let algorithm = registry::find(Kind::Reduce, name).unwrap();
        let reason = s["reason"].as_str().unwrap();
        let ports = !algorithm.ports.allow(oneport::Ports::BI) && reason.contains("bi ports");
        assert!(
            ports || algorithm.commutative_only && reason.contains("commutes"),
            "{s}"
        );
    }
    for row in c["rows"].as_array().unwrap() {
        let name = row["algorithm"].as_str().unwrap();
        let algorithm = registry::find(Kind::Reduce, name).unwrap();
        assert!(!algorithm.commutative_only);
    }
}

#[test]
fn check_proves_every_algorithm() {
    for collective in ["reduce", "broadcast"] {
        for rest in [
            "-p 7 --ports uni --root 3",
            "-p 12",
            "-p 1",
            "-p 9 --ordered --root 8 --bytes 40",
        ] {
            let c = json(&format!("check {collective} -a all {rest}"));
            assert_eq!(c["ok"], true, "{collective} {rest}");
            assert_eq!(c["errors"], serde_json::json!([]));
            let kind = collective.parse::<Kind>().unwrap();
            let proved = c["algorithms"].as_array().unwrap();
            let skipped = c["skipped"].as_array().unwrap();
            assert_eq!(proved.len() + skipped.len(), candidates(kind));
            assert!(!proved.is_empty());
            if rest.contains("--ordered") && collective == "reduce" {
                assert!(proved.iter().all(|a| a["keeps_order"] == true));
            }
        }
    }
    let one = json("check reduce -p 5 -a chain --op affine --dtype u64");
    assert_eq!(
        (&one["ok"], &one["keeps_order"]),
        (&true.into(), &true.into())
    );
    assert!(text("check reduce -p 5 -a chain").contains("correct"));
    assert!(text("check reduce -p 5 -a all").contains("\nrefused:"));
}

#[test]
fn check_names_the_error_and_exits_with_1() {
    let short = PAIR.replace(r#""spans": [[0,4]]"#, r#""spans": [[0,3]]"#);
    let output = oneport("check --schedule - --json")
        .write_stdin(short.as_str())
        .assert()
        .code(1);
    let report: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert_eq!(report["ok"], false);
    assert_eq!(report["errors"][0]["rank"], 1);
    assert_eq!(report["errors"][0]["element"], 3);
    let output = oneport("check --schedule -")
        .write_stdin(short)
        .assert()
        .code(1)
        .get_output()
        .clone();
    assert!(String::from_utf8_lossy(&output.stdout).contains("rank 1"));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "error: the check failed with 1 error\n"
    );
    let dangling = PAIR.replacen(r#"{"send": {"to": 1, "spans": [[0,4]]}}"#, "", 1);
    oneport("check --schedule -")
        .write_stdin(dangling)
        .assert()
        .code(1);
    oneport("check --schedule - --json")
        .write_stdin(PAIR)
        .assert()
        .code(0);
    // This exchange completes on bidirectional ports and deadlocks on unidirectional ones.
    let exchange = r#"{ "ranks": 2, "ports": "bi", "collective": {"kind": "allgather"},
      "layout": [ {"len": 2, "input": [[0,1]], "output": [[0,2]]}, {"len": 2, "input": [[1,1]], "output": [[0,2]]} ],
      "programs": [ [ {"send": {"to": 1, "spans": [[0,1]]}}, {"recv": {"from": 1, "spans": [[1,1]]}} ],
                    [ {"send": {"to": 0, "spans": [[1,1]]}}, {"recv": {"from": 0, "spans": [[0,1]]}} ] ] }"#;
    oneport("check --schedule -")
        .write_stdin(exchange)
        .assert()
        .code(0);
    oneport("check --schedule - --ports uni")
        .write_stdin(exchange)
        .assert()
        .code(1);
}

#[test]
fn run_verifies_and_reports_the_simulated_model_time() {
    for arguments in [
        "reduce -p 3 -a chain --bytes 1000 --gamma 0.05ns",
        "reduce -p 5 -a binomial --bytes 0 --alpha 3",
        "broadcast -p 6 -a binomial --bytes 4KiB --ports uni --root 2",
        "reduce -p 4 -a binomial --bytes 800 --op affine --dtype u64 --root 1",
        "reduce -p 4 -a binomial --bytes 800 --op prod --dtype f32",
        "reduce -p 1 --bytes 8",
    ] {
        let run = json(&format!("run {arguments} --repetitions 3"));
        assert_eq!(run["verified"], true, "{arguments}");
        assert_eq!(run["repetitions"], 3);
        assert_eq!(
            run["model_time"],
            json(&format!("simulate {arguments}"))["time"],
            "{arguments}"
        );
        let wall = |field: &str| run["wall"][field].as_u64().unwrap();
        assert!(wall("min") <= wall("median") && wall("median") <= wall("p99"));
        assert!(wall("p99") <= wall("max"));
        assert!(run["pinned"].is_boolean() && run["oversubscribed"].is_boolean());
    }
    // Three times 0.1.
    let sum = text("simulate broadcast -p 4 -a chain --bytes 1 --alpha 0.1 --beta 0 --json");
    assert!(sum.contains("\"time\": 0.3,"), "{sum}");
    let kept = json("run reduce -p 2 --bytes 64 --inputs kept --warmup 0");
    assert_eq!(kept["verified"], true);
    assert_eq!(kept["inputs"], "kept");
    let few = text("run reduce -p 2 --bytes 64 --inputs kept");
    let measured = "measured    10 repetitions after 1 warm-up, inputs kept, native clock";
    assert!(few.contains(measured) && !few.contains("p99"), "{few}");
    assert!(text("run reduce -p 2 --bytes 64 --repetitions 100").contains("p99"));
    let run = json("run reduce -p 2 --bytes 64 --no-verify --repetitions 1 --warmup 0");
    assert_eq!(run["verified"], Value::Null);
    let paced =
        json("run broadcast -p 2 --bytes 64 --clock paced --alpha 2ms --beta 0 --repetitions 2");
    assert!(
        paced["wall"]["min"].as_u64().unwrap() >= 1_990_000,
        "{paced}"
    );
    assert!(text("run reduce -p 2 --bytes 64").contains("verified"));
}

#[test]
fn a_wrong_schedule_is_not_run_and_exits_with_1() {
    let short = PAIR.replace(r#""spans": [[0,4]]"#, r#""spans": [[0,3]]"#);
    let dangling = PAIR.replacen(r#"{"send": {"to": 1, "spans": [[0,4]]}}"#, "", 1);
    let run_wrong = |schedule: &str, arguments: &str| {
        let mut command = oneport(&format!("run --schedule - --json {arguments}"));
        let output = command
            .write_stdin(schedule)
            .assert()
            .code(1)
            .get_output()
            .clone();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.stdout, message)
    };
    for (schedule, finding) in [(&short, "element 3"), (&dangling, "step 0 (recv from 0")] {
        let (json, message) = run_wrong(schedule, "");
        let run: Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(run["verified"], false);
        assert!(run["error"].as_str().unwrap().contains(finding), "{run}");
        let start = "error: wrong schedule: rank 1";
        assert!(
            message.starts_with(start) && message.contains(finding),
            "{message}"
        );
    }
    // Without verification, the run itself fails.
    let (_, message) = run_wrong(&dangling, "--no-verify --deadline 200ms");
    assert!(message.contains("rank 1, step 0"), "{message}");
    let mut command = oneport("run --schedule - --json --no-verify");
    let output = command.write_stdin(short).assert().success();
    let run: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert_eq!(run["verified"], Value::Null);
}

#[test]
fn simulate_handles_1024_ranks() {
    assert_eq!(
        json("simulate reduce -p 1024 -a binomial")["messages"],
        1023
    );
    assert_eq!(
        json("simulate broadcast -p 1024 --segments 16 -a chain")["rounds"],
        1038
    );
}

#[test]
fn heterogeneous_costs_are_read_and_validated() {
    let folder = folder("costs");
    let file = |name: &str, content: &str| {
        let path = folder.join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_string()
    };
    let good = file(
        "good.json",
        r#"{"alpha": [[0,1,5],[1,0,1],[5,1,0]], "beta": [[0,1,5],[1,0,1],[5,1,0]], "gamma": [0,1,0]}"#,
    );
    let s = json(&format!(
        "simulate reduce --bytes 2 --segments 1 -a chain --costs {good}"
    ));
    assert_eq!((&s["ranks"], &s["time"]), (&3.into(), &8.into()));
    let gap = file(
        "gap.json",
        r#"{"alpha": [[0,1,null],[1,0,1],[null,1,0]], "beta": [[0,1,null],[1,0,1],[null,1,0]]}"#,
    );
    // The chain avoids the missing link, the binomial tree needs it.
    let c = json(&format!("compare reduce -p 3 --bytes 2 --costs {gap}"));
    assert!(
        c["rows"]
            .as_array()
            .unwrap()
            .iter()
            .any(|r| r["algorithm"] == "chain")
    );
    let binomial = c["skipped"]
        .as_array()
        .unwrap()
        .iter()
        .find(|s| s["algorithm"] == "binomial");
    assert!(
        binomial.unwrap()["reason"]
            .as_str()
            .unwrap()
            .contains("no link")
    );
    assert_eq!(
        json(&format!("simulate reduce -p 3 --bytes 2 --costs {gap}"))["ranks"],
        3
    );
    // Links 0-2 and 1-2 have no tree of consecutive ranks to rank 1.
    let path = file(
        "path.json",
        r#"{"alpha": [[0,null,1],[null,0,1],[1,1,0]], "beta": [[0,null,1],[null,0,1],[1,1,0]]}"#,
    );
    for collective in ["gather", "scatter"] {
        let c = json(&format!(
            "compare {collective} --sizes 4,5,6 --root 1 --costs {path}"
        ));
        // The outer block travels alone, and together with the middle one.
        let rows = c["rows"].as_array().unwrap();
        let row = rows.iter().find(|r| r["algorithm"] == "unordered").unwrap();
        assert_eq!(row["time"], 5 + 11);
    }
    // A tree of links 0-1, 1-2, 1-3, 2-4.
    let links = [[0, 1], [1, 2], [1, 3], [2, 4]];
    let mut costs = vec![vec![Value::Null; 5]; 5];
    for [a, b] in links {
        (costs[a][b], costs[b][a]) = (1.into(), 1.into());
    }
    let costs = serde_json::json!({"alpha": costs, "beta": vec![vec![0; 5]; 5]}).to_string();
    let tree = file("tree.json", &costs);
    for collective in ["broadcast", "reduce"] {
        let c = json(&format!("compare {collective} --bytes 8 --costs {tree}"));
        assert_eq!(c["rows"][0]["time"], 3);
        assert!(
            c["rows"]
                .as_array()
                .unwrap()
                .iter()
                .any(|r| r["algorithm"] == "unordered")
        );
    }
    // It is no candidate where links cost the same.
    let c = json("compare broadcast -p 5 --bytes 8");
    assert!(!c.to_string().contains("unordered"));
    let one = file("one.json", r#"{"alpha": [[null]], "beta": [[null]]}"#);
    assert_eq!(json(&format!("simulate reduce --costs {one}"))["time"], 0);
    for (name, content, expected) in [
        (
            "square.json",
            r#"{"alpha": [[0,1]], "beta": [[0,1]]}"#,
            "matrices",
        ),
        (
            "negative.json",
            r#"{"alpha": [[0,-1],[1,0]], "beta": [[0,1],[1,0]]}"#,
            "not a time",
        ),
        ("broken.json", "{\n  \"alpha\": oops", "line 2 column"),
        (
            "empty.json",
            r#"{"alpha": [], "beta": []}"#,
            "at least one rank",
        ),
    ] {
        let path = file(name, content);
        let message = failure(&mut oneport(&format!("simulate reduce --costs {path}")), 2);
        assert!(message.contains(expected), "{message}");
    }
    let message = failure(
        &mut oneport(&format!("simulate reduce -p 4 --costs {good}")),
        2,
    );
    assert!(message.contains("describe 3 ranks, not 4"), "{message}");
}

/// The root of a binomial gather is chosen in a time that hardly grows with the number of ranks.
#[test]
fn the_best_root_of_many_ranks_is_found() {
    for algorithm in ["adaptive", "oblivious"] {
        let timed = json(&format!(
            "simulate gather -p 40000 --dist skewed --block 10 --root free -a {algorithm} --alpha 10 --beta 1"
        ));
        let fixed = json(&format!(
            "simulate gather -p 40000 --dist skewed --block 10 --root 0 -a {algorithm} --alpha 10 --beta 1"
        ));
        assert_eq!(timed["root_choice"], "free");
        assert!(timed["time"].as_f64() <= fixed["time"].as_f64());
    }
    let sizes = "--sizes 16,22,80,10,20,99,28,1,25,22,60 --alpha 10 --beta 1 --gamma-copy 1";
    let timed = json(&format!("simulate gather {sizes} --root free -a adaptive"));
    assert!(timed["time"].as_f64().unwrap() <= 423.0);
}
