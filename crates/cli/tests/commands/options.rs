//! Tests of options: each has its effect, or is refused or noted.

use std::path::Path;

use crate::support::cases::cases;
use crate::support::run::{failure, json, oneport, text};

/// Gathers in which the published choice of the root is up to 1.6 times slower than root 0.
const UNEVEN: &str = "gather --sizes 100KiB,1,1KiB,0,64KiB,300,20KiB,5KiB,5KiB,0,0,12KiB \
                      --alpha 10us --beta 1ns";

#[test]
fn a_free_root_is_at_least_as_good_as_root_0() {
    let rows = |options: &str| json(&format!("compare {UNEVEN} {options}"))["rows"].clone();
    let (fixed, free) = (rows("--root 0"), rows("--root free"));
    let fixed = fixed.as_array().unwrap();
    assert_eq!(fixed.len(), free.as_array().unwrap().len());
    for row in free.as_array().unwrap() {
        let same = fixed.iter().find(|f| f["algorithm"] == row["algorithm"]);
        let (free, fixed) = (row["time"].as_f64(), same.unwrap()["time"].as_f64());
        assert!(free <= fixed, "{row}");
    }
    let heading = text(&format!("compare {UNEVEN} --root free"));
    assert!(heading.starts_with("gather, free root (0, 4), 12 ranks"));
    let links = "--alpha 1 --beta 1";
    let simulated = text(&format!("simulate broadcast -p 3 --root free {links}"));
    assert!(simulated.contains("broadcast, root 0 (free), 3 ranks"));
}

#[test]
fn a_free_root_is_the_best_one_with_node_ports() {
    let ports = "--ports uni --alpha 0 --beta 1.96965 --nodes 4 --node-ports 1";
    let what = format!("simulate reduce -p 7 --bytes 33 --ordered -a ordered {ports}");
    let time = |root: &str| {
        let simulated = json(&format!("{what} --root {root}"));
        simulated["time"].as_f64().unwrap()
    };
    let fixed = (0..7).map(|root| time(&root.to_string()));
    let fixed = fixed.fold(f64::INFINITY, f64::min);
    assert_eq!(time("free"), fixed);
    assert!(fixed < time("0"));
    // Too many roots to plan for each.
    let many = format!("simulate reduce -p 2000 --bytes 8 -a binomial {ports} --root free");
    let output = oneport(&many).output().unwrap();
    let note = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && note.contains("binomial may have a better root"));
}

/// Ranks of two nodes exchange: each node sends 4 messages of 10 through its port.
#[test]
fn node_ports_are_planned_proved_timed_and_run() {
    let folder = folder("node_ports");
    let what = "alltoall -p 4 -a pairwise --bytes 8 --alpha 2 --beta 1";
    let limited = format!("{what} --nodes 2 --node-ports 1");
    let time = |arguments: &str| json_in(&folder, arguments)["time"].as_f64().unwrap();
    assert_eq!(time(&format!("simulate {what}")), 30.0);
    let slow = time(&format!("simulate {limited}"));
    assert!(slow >= 40.0);
    let all = json_in(&folder, &format!("simulate {limited}"));
    assert_eq!(
        (all["shared_ports"].as_u64(), all["nodes"].as_u64()),
        (Some(4), Some(2))
    );
    assert!(all["closed_form"].is_null());
    let mut plan = oneport(&format!("plan {limited} -o a.json"));
    plan.current_dir(&folder).assert().success();
    assert_eq!(time("simulate --schedule a.json --alpha 2 --beta 1"), slow);
    assert_eq!(json_in(&folder, "check --schedule a.json")["ok"], true);
    let run = json_in(
        &folder,
        "run --schedule a.json --alpha 2 --beta 1 --repetitions 2",
    );
    assert_eq!(
        (run["model_time"].as_f64(), &run["verified"]),
        (Some(slow), &true.into())
    );
    // More ports than ranks limit nothing; the option limits a schedule from a file, too.
    let many = "simulate --schedule a.json --alpha 2 --beta 1 --nodes 2 --node-ports 2";
    assert_eq!(time(many), 30.0);
    // All rows are timed with the ports, and the best is the choice.
    let rows = json_in(
        &folder,
        &format!("compare {}", limited.replace("-a pairwise", "")),
    );
    assert_eq!(rows["node_ports"].as_u64(), Some(1));
    let best = rows["rows"][0].clone();
    let auto = json_in(
        &folder,
        &format!("simulate {}", limited.replace("-a pairwise", "")),
    );
    assert_eq!(
        (&auto["algorithm"], &auto["time"]),
        (&best["algorithm"], &best["time"])
    );
    // The plan for late ranks is the faster one on these ports.
    let reduce = "reduce -a arrival-tree -p 6 --bytes 64 --alpha 10 --beta 1";
    let mut plan = oneport(&format!("plan {reduce} -o punctual.json"));
    plan.current_dir(&folder).assert().success();
    let late = "--arrivals random:uniform,0,20,seed=12 --nodes 2 --node-ports 1";
    let planned = time(&format!("simulate {reduce} {late}"));
    let punctual = "--schedule punctual.json --alpha 10 --beta 1";
    assert!(planned <= time(&format!("simulate {punctual} {late}")));
    // Late ranks share them, too: one that is late by nothing changes nothing.
    for arrivals in ["--late 0", "--trials 3 --arrivals random:uniform,0,0"] {
        let compared = json_in(&folder, &format!("compare {limited} {arrivals}"));
        assert_eq!(compared["rows"][0]["model_time"], slow, "{arrivals}");
    }
    let swept = text(&format!("compare {limited} --late 0"));
    assert!(
        swept.contains("; nodes have 1 port of each kind\n"),
        "{swept}"
    );
    let listed = text(&format!("plan {limited}"));
    assert!(listed.contains("\nshared port node 0 out: "), "{listed}");
    for (arguments, why) in [
        ("--node-ports 1", "--node-ports needs the nodes"),
        ("--nodes 5 --node-ports 1", "5 nodes for 4 ranks"),
        ("--nodes 0 --node-ports 1", "0 nodes for 4 ranks"),
        ("--nodes 2", "--node-ports"),
        ("--nodes 2 --node-ports 0", "a node has 1 to 4096 ports"),
    ] {
        let error = failure(&mut oneport(&format!("simulate {what} {arguments}")), 2);
        assert!(error.contains(why), "{arguments}: {error}");
    }
    let measured = format!("compare {what} --nodes 2 --node-ports 1 --engine threads");
    let measured = failure(&mut oneport(&measured), 2);
    assert!(measured.contains("for model times"), "{measured}");
    let exported = failure(&mut oneport(&format!("export goal {limited}")), 2);
    assert!(
        exported.contains("shared port \"node 0 out\""),
        "{exported}"
    );
}

pub(crate) fn folder(name: &str) -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder of the test");
    folder
}

/// What the binary prints with `--json` in this folder.
pub(crate) fn json_in(folder: &Path, arguments: &str) -> serde_json::Value {
    let mut command = oneport(arguments);
    let output = command.arg("--json").current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

#[test]
fn a_stored_series_keeps_its_platform() {
    let folder = folder("series");
    for (collective, ports) in [("broadcast", "uni"), ("gather", "bi"), ("scan", "bi")] {
        let series = format!("--generate complete:4 --collective {collective} --ports {ports}");
        let solved = json_in(&folder, &format!("steady {series} --messages 40 -o s.json"));
        let timed = json_in(&folder, "simulate --schedule s.json");
        assert_eq!(
            timed["time"].as_f64(),
            solved["schedule"]["model_time"].as_f64()
        );
        let bound = 40.0 / solved["throughput"]["float"].as_f64().unwrap();
        let series = timed["lower_bounds"]["series"].as_f64().unwrap();
        assert!(series >= bound * 0.5 && series <= timed["time"].as_f64().unwrap());
        assert!(timed["lower_bound"].as_f64().unwrap() >= series);
        // Options still decide.
        let other = json_in(&folder, "simulate --schedule s.json --alpha 1 --beta 0");
        assert!(other["lower_bounds"].get("series").is_none());
        assert_eq!(json_in(&folder, "check --schedule s.json")["ok"], true);
        // Algorithms have no times on its platform.
        let compare = format!("compare --schedule {}", folder.join("s.json").display());
        let message = failure(&mut oneport(&compare), 2);
        assert!(message.contains("give the costs of all"), "{message}");
        let compared = json_in(&folder, "compare --schedule s.json --alpha 1 --beta 0");
        let mut rows = compared["rows"].as_array().unwrap().iter();
        let row = rows.find(|row| row["algorithm"] == "s.json").unwrap();
        assert_eq!(row["time"], other["time"]);
    }
}

#[test]
fn the_robust_throughput_is_the_one_that_is_recomputed() {
    let solved = json("steady --generate fig3 --robust --drift 1/10 --verify");
    let recomputed = solved["recomputed"].as_array().unwrap();
    assert!(!recomputed.is_empty());
    for other in recomputed {
        assert_eq!(other["throughput"], solved["throughput"]);
    }
}

#[test]
fn a_run_that_does_not_keep_pace_says_so() {
    let fast = "steady --generate fig3 --run --messages 40 --time-unit 0.01 --json";
    let output = oneport(fast).assert().success().get_output().clone();
    let run = &serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["run"];
    assert_eq!(run["kept_pace"], false);
    let note = String::from_utf8(output.stderr).unwrap();
    assert!(note.contains("did not keep pace"), "{note}");
    let help = text("steady --help");
    for field in ["latency", "drift", "compute", "overlap"] {
        assert!(help.contains(&format!("\"{field}\"")), "{field}");
    }
}

/// Two ranks that both pass on what they first have to receive.
const DEADLOCK: &str = r#"{ "ranks": 2, "ports": "bi", "collective": {"kind": "allgather"},
  "layout": [ {"len": 2, "input": [[0,1]], "output": [[0,2]]}, {"len": 2, "input": [[1,1]], "output": [[0,2]]} ],
  "programs": [ [ {"recv": {"from": 1, "spans": [[1,1]]}}, {"send": {"to": 1, "spans": [[1,1]]}} ],
                [ {"recv": {"from": 0, "spans": [[0,1]]}}, {"send": {"to": 0, "spans": [[0,1]]}} ] ] }"#;

#[test]
fn a_deadlock_is_found_before_the_run_waits() {
    for options in ["--no-verify", "--no-verify --clock paced", ""] {
        let run = format!("run --schedule - --deadline 600s {options}");
        let message = failure(oneport(&run).write_stdin(DEADLOCK), 1);
        assert!(!message.contains("deadline"), "{options}: {message}");
        for link in ["rank 0", "rank 1", "wait"] {
            assert!(message.contains(link), "{options}: {message}");
        }
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

#[test]
fn what_is_too_large_is_refused_before_it_is_planned() {
    for (arguments, expected) in [
        ("run broadcast -p 1000000 --bytes 8", "more threads than"),
        ("draw broadcast -p 1000000", "ranks have more steps"),
        (
            "draw broadcast -p 1000000 --as tree",
            "ranks have more steps",
        ),
        ("draw broadcast -p 2000000 --json", "ranks have more steps"),
    ] {
        let message = failure(&mut oneport(arguments), 2);
        assert!(message.contains(expected), "{arguments}: {message}");
    }
}

#[test]
fn a_long_paced_run_says_how_long() {
    let run = "run broadcast -p 2 --bytes 1 --clock paced --alpha 300ms --repetitions 4";
    let output = oneport(run).assert().success().get_output().clone();
    let note = String::from_utf8(output.stderr).unwrap();
    assert!(
        note.contains("5 repetitions of 300 ms each take about 1.5 s"),
        "{note}"
    );
}

/// Evaluated side by side, candidates are ranked as one after another: a limited address space
/// leaves no threads for that.
#[test]
fn rankings_do_not_depend_on_cores() {
    for arguments in [
        cases(
            "compare reduce -p 200 --bytes 64KiB --json",
            "compare reduce -p 1024 --bytes 64KiB --json",
        ),
        "compare gather -p 300 --dist random --root free --json",
        "simulate broadcast -p 512 --bytes 1MiB --segments 40 --json",
    ] {
        let all = json(arguments.trim_end_matches(" --json"));
        let one = std::process::Command::new("sh")
            .args(["-c", "ulimit -v 4000000 && exec \"$@\"", "sh"])
            .arg(env!("CARGO_BIN_EXE_oneport"))
            .args(arguments.split(' '))
            .output()
            .expect("a shell");
        let one: serde_json::Value = serde_json::from_slice(&one.stdout).unwrap();
        assert_eq!(all, one, "{arguments}");
    }
}

/// What the binary prints on standard error, as it succeeds.
fn notes(arguments: &str) -> String {
    let output = oneport(arguments).assert().success().get_output().clone();
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn what_a_search_left_out_is_said_once() {
    let long = "simulate broadcast -p 5 -a two-tree --bytes 720720 --alpha 0.0001 --beta 1";
    let why = "better segments: the search left out sizes that take too much time or memory";
    assert_eq!(notes(long), format!("note: two-tree may have {why}\n"));
    assert_eq!(json(long)["left_out"], serde_json::json!([why]));
    let short = "simulate broadcast -p 5 -a two-tree --bytes 720 --alpha 10 --beta 1";
    assert_eq!(notes(short), "");
    assert_eq!(json(short).get("left_out"), None);
    // Of an algorithm that is not the fastest, the answer tells, too.
    let others = long.replace("two-tree", "two-tree,bi-greedy,binomial");
    let faster =
        "a faster alternative: 1 other algorithm took too much time or memory to search whole";
    assert_eq!(
        notes(&others),
        format!("note: bi-greedy may have {faster}\n")
    );
    assert_eq!(json(&others)["left_out"], serde_json::json!([faster]));
    let all = others.replace("simulate", "compare");
    assert_eq!(notes(&all), format!("note: two-tree may have {why}\n"));
    let rows = json(&all)["rows"].clone();
    for row in rows.as_array().unwrap() {
        let left_out = (row["algorithm"] == "two-tree").then(|| serde_json::json!([why]));
        assert_eq!(row.get("left_out"), left_out.as_ref(), "{row}");
    }
}

/// Rows of a table say it as those of one request, and when they are known from a file.
#[test]
fn rows_of_a_table_have_what_a_search_left_out() {
    let folder = folder("left-out");
    let why = "better segments: the search left out sizes that take too much time or memory";
    let request = "broadcast -p 5 --bytes 720,720720 --alpha 0.0001 --beta 1";
    for (command, names) in [("compare", "two-tree,binomial"), ("simulate", "two-tree")] {
        let sweep = format!("{command} {request} -a {names} -o {command}.csv");
        let found = json_in(&folder, &sweep);
        for row in found["rows"].as_array().unwrap() {
            let is_cut = row["algorithm"] == "two-tree" && row["bytes"] == 720_720;
            let left_out = is_cut.then(|| serde_json::json!([why]));
            assert_eq!(row.get("left_out"), left_out.as_ref(), "{row}");
        }
        let table = std::fs::read_to_string(folder.join(format!("{command}.csv"))).unwrap();
        let header = table.lines().next().unwrap();
        assert!(header.ends_with(",inputs,left_out"), "{header}");
        assert_eq!(table.matches(&format!(",{why}\n")).count(), 1, "{table}");
        // All rows are known.
        assert_eq!(json_in(&folder, &sweep)["rows"], found["rows"]);
        let again = std::fs::read_to_string(folder.join(format!("{command}.csv"))).unwrap();
        assert_eq!(again, table);
    }
    let small = "compare broadcast -p 5 --bytes 720 -a chain -o small.csv";
    json_in(&folder, small);
    let table = std::fs::read_to_string(folder.join("small.csv")).unwrap();
    assert!(!table.contains("left_out"), "{table}");
}

/// The bound of a comparison is that of each of its rows, whichever of them ends first.
#[test]
fn rows_of_one_root_have_one_bound() {
    for request in [
        "gather -p 6 --ported 2 --dist spikes --block 4000 --gamma-copy 1ns",
        "scatter -p 9 --ported 3 --block 4000 --dist decreasing --overlap",
        "alltoall -p 5 --bytes 100 --ports uni",
        "reduce_scatter -p 6 --bytes 4",
        "allreduce -p 6 --bytes 4000 --ported 2",
    ] {
        let all = json(&format!("compare {request}"));
        let rows = all["rows"].as_array().unwrap();
        assert!(rows.len() > 2, "{all}");
        for row in rows {
            let name = row["algorithm"].as_str().unwrap();
            let one = json(&format!("simulate {request} -a {name}"));
            assert_eq!(one["lower_bound"], all["lower_bound"], "{request} {name}");
        }
    }
}

/// Combining in one order on all ranks, rank 2 begins before the vector of rank 1 has arrived.
#[test]
fn commands_agree_on_the_faster_form_of_a_sum() {
    let folder = folder("faster-form");
    let costs = r#"{"alpha": [[0, 100, 100], [100, 0, 100], [100, 500, 0]],
        "beta": [[0, 1, 1], [1, 0, 1], [5, 1, 0]], "gamma": [0, 0, 10]}"#;
    std::fs::write(folder.join("c.json"), costs).unwrap();
    let request = "allreduce -p 3 --bytes 64 --dtype f64 --costs c.json --overlap";
    for (names, time) in [("gossip", 1672), ("gossip,one-shot", 1624)] {
        let of = |command: &str| json_in(&folder, &format!("{command} {request} -a {names}"));
        let (one, all) = (of("simulate"), of("compare"));
        assert_eq!(one["time"], time, "{one}");
        assert_eq!(all["rows"][0]["algorithm"], one["algorithm"], "{all}");
        assert_eq!(all["rows"][0]["time"], one["time"], "{all}");
        assert_eq!(all["rows"][0]["bits"]["same_on_all_ranks"], true, "{all}");
    }
    // Without overlap no form is faster: a comparison keeps the one of each algorithm.
    let request = request.replace(" --overlap", "");
    let times = ["simulate", "compare"].map(|command| {
        let found = json_in(&folder, &format!("{command} {request} -a gossip,one-shot"));
        found
            .get("time")
            .unwrap_or(&found["rows"][0]["time"])
            .clone()
    });
    assert_eq!(times[0], times[1]);
}

/// Searching for unequal sizes, too, leaves out no algorithm that does not segment.
#[test]
fn unequal_segments_never_take_longer() {
    for request in [
        "allreduce -p 8 --bytes 8",
        "reduce -p 6 --bytes 64KiB",
        "scatter -p 5",
    ] {
        let [equal, unequal] = ["", " --segments unequal"].map(|more| {
            let found = json(&format!("simulate {request}{more}"));
            found["time"].as_f64().unwrap()
        });
        assert!(
            unequal <= equal * (1.0 + 1e-12),
            "{request}: {unequal} {equal}"
        );
    }
}

#[test]
fn equal_times_have_one_winner() {
    // A formula and a simulation differ in the last bit.
    let request = "allgather -p 9 --bytes 1000 --ports uni --alpha 0.7 --beta 0.7";
    let [one, all] = ["simulate", "compare"].map(|c| json(&format!("{c} {request}")));
    assert_eq!(one["algorithm"], all["rows"][0]["algorithm"]);
}

#[test]
fn what_a_task_says_is_said_once() {
    let request = "simulate allreduce -p 1024 --bytes 8 --dtype f32 --same-bits=tree";
    let said = notes(request);
    for what in [
        "all elements are added in the tree",
        "two-shot may add all elements in one tree, too: too long to plan and prove",
    ] {
        assert_eq!(said.matches(what).count(), 1, "{what}: {said}");
    }
}

#[test]
fn named_algorithms_apply_with_segments_too() {
    for segments in ["", " --segments 4", " --segments unequal"] {
        let plan = format!("plan reduce -p 5 -a chain,split-binary --ordered{segments}");
        let message = failure(&mut oneport(&plan), 2);
        let why = "split-binary reduce needs an operator that commutes";
        assert!(message.contains(why), "{plan}: {message}");
    }
    // Those that are not named are left out.
    let open = json("simulate reduce -p 5 --ordered --segments 4");
    assert_eq!(open["segments"], 4);
}

#[test]
fn options_without_effect_are_noted() {
    for (arguments, expected) in [
        (
            "simulate broadcast -p 3 --op max",
            "broadcast combines nothing",
        ),
        (
            "plan allgather -p 3 --ordered",
            "allgather combines nothing",
        ),
        (
            "simulate gather -p 3 --segments 4",
            "no algorithm for gather segments",
        ),
        (
            "simulate broadcast -p 3 -a linear --segments 4",
            "linear broadcast does not segment",
        ),
        (
            "simulate broadcast -p 3 --bytes 10 --segments 100",
            "10 elements make 10 segments",
        ),
        (
            "tune reduce -p 2 --bytes 64 -a chain --budget 0",
            "no winner is settled",
        ),
    ] {
        assert_eq!(notes(arguments).matches(expected).count(), 1, "{arguments}");
    }
    for arguments in [
        "simulate reduce -p 3 --op max",
        "simulate reduce -p 3 --segments 4",
        "simulate broadcast -p 3 -a chain --bytes 10 --segments 10",
    ] {
        assert_eq!(notes(arguments), "", "{arguments}");
    }
}

#[test]
fn segments_are_for_algorithms_that_segment() {
    // Unsegmented, binomial and ordered are faster.
    for kind in ["broadcast", "reduce", "allreduce"] {
        let planned = json(&format!("simulate {kind} -p 8 --bytes 16 --segments 4"));
        assert_eq!(planned["segments"], 4, "{planned}");
        assert_eq!(planned["segment_choice"], "given");
    }
    // Those that segment need operators that commute, or two ports: the others are as good as any.
    for what in ["reduce_scatter --ordered", "allgather --ports uni"] {
        let planned = json(&format!("simulate {what} -p 8 --bytes 16 --segments 4"));
        let rows = json(&format!("compare {what} -p 8 --bytes 16 --segments 4"));
        assert_eq!(planned["time"], rows["rows"][0]["time"], "{what}");
        assert_eq!(planned["segment_choice"], "unsegmented", "{what}");
    }
}

#[test]
fn negative_times_get_a_clear_word() {
    for (arguments, expected) in [
        (
            "run broadcast -p 2 --deadline -1s",
            "a deadline is between 1us and",
        ),
        (
            "guidelines -p 2 --deadline -5",
            "a deadline is between 1us and",
        ),
        ("tune reduce -p 2 --budget -1s", "a budget is between 0 and"),
    ] {
        let message = failure(&mut oneport(arguments), 2);
        assert!(message.contains(expected), "{arguments}: {message}");
    }
}

#[test]
fn written_files_are_named_and_read_ones_capped() {
    let folder = folder("named");
    for (arguments, file) in [
        ("plan broadcast -p 3 -o plan.json", "plan.json"),
        ("draw broadcast -p 3 -o draw.svg", "draw.svg"),
        ("run broadcast -p 2 --bytes 8 --histogram h.txt", "h.txt"),
        ("run broadcast -p 2 --bytes 8..16 --csv t.csv", "t.csv"),
        (
            "steady --generate fig3 --messages 4 -o s.json --draw p.svg",
            "s.json",
        ),
    ] {
        let output = oneport(arguments).current_dir(&folder).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let note = String::from_utf8(output.stderr).unwrap();
        assert!(
            note.contains(&format!("note: written to {file}")),
            "{arguments}: {note}"
        );
    }
    // An endless file, with an address space that it would fill.
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -v 400000 && exec \"$@\"", "sh"])
        .arg(env!("CARGO_BIN_EXE_oneport"))
        .args(["simulate", "--schedule", "/dev/zero"])
        .output()
        .expect("a shell");
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("an input file can have"), "{message}");
}

/// Where start-up times are almost free, the best segments are too many to be simulated.
#[test]
fn a_limited_search_for_segments_says_so() {
    let simulate = "simulate broadcast -p 5 -a two-tree --bytes 720720 --beta 1";
    for (alpha, limited) in [("0.0001", true), ("100", false)] {
        let mut command = oneport(&format!("{simulate} --alpha {alpha}"));
        let output = command.assert().success().get_output().clone();
        let notes = String::from_utf8(output.stderr).unwrap();
        let note = "note: two-tree may have better segments";
        assert_eq!(notes.contains(note), limited, "{notes}");
    }
}

#[test]
fn types_without_a_sum_are_moved_and_combined_by_the_operators_they_have() {
    for command in ["simulate", "plan", "run", "compare", "tune --budget 0"] {
        let arguments = format!("{command} gather -p 2 --bytes 64 --dtype f32_i32");
        assert_eq!(
            oneport(&arguments).output().unwrap().status.code(),
            Some(0),
            "{arguments}"
        );
        let arguments = arguments.replace("gather", "reduce");
        let output = oneport(&arguments).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        let expected = "f32_i32 has no sum: choose --op minloc or maxloc";
        assert!(message.contains(expected), "{message}");
        let arguments = format!("{arguments} --op minloc");
        assert_eq!(
            oneport(&arguments).output().unwrap().status.code(),
            Some(0),
            "{arguments}"
        );
    }
}

#[test]
fn published_times_are_those_of_the_request() {
    let chain = "simulate reduce -p 8 -a chain --bytes 64 --segments 4";
    let table = |more: &str| json(&format!("{chain} {more}"))["published"]["table"].clone();
    for more in ["", "--root 3", "--ordered"] {
        assert_eq!(table(more), "Table III; Lowery & Langou 2014", "{more}");
    }
    for more in ["--root 3 --ordered", "--overlap --gamma 1ns"] {
        assert!(table(more).is_null(), "{more}");
    }
}
