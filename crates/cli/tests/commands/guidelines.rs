//! Tests of `oneport guidelines`: its rows, exit codes and error messages.

use assert_cmd::Command;
use serde_json::Value;

fn oneport(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oneport"));
    command.arg("guidelines").args(arguments.split_whitespace());
    command
}

/// Returns the JSON output of a command that exits with `code`.
fn json(arguments: &str, code: i32) -> Value {
    let output = oneport(arguments).arg("--json").assert().code(code);
    serde_json::from_slice(&output.get_output().stdout).unwrap()
}

fn text(arguments: &str, code: i32) -> String {
    let output = oneport(arguments).assert().code(code);
    String::from_utf8(output.get_output().stdout.clone()).unwrap()
}

fn rows<'a>(output: &'a Value, guideline: &str) -> Vec<&'a Value> {
    let rows = output["rows"].as_array().unwrap().iter();
    rows.filter(|r| r["guideline"] == guideline).collect()
}

#[test]
fn model_times_satisfy_the_guidelines() {
    let output = json("-p 2,4 --bytes 8,1KiB --alpha 10 --beta 1", 0);
    assert_eq!(output["holds"], true);
    assert_eq!(output["violated"], 0);
    assert_eq!(output["tolerance"], 0.0);
    assert_eq!(output["time_unit"], "unit");
    let rows = rows(&output, "broadcast(p) <= broadcast(2p)");
    assert_eq!(rows.len(), 4);
    let row = rows[0];
    assert_eq!((&row["ranks"], &row["bytes"]), (&2.into(), &8.into()));
    assert_eq!((&row["left"], &row["right"]), (&18.into(), &36.into()));
    assert_eq!(
        (&row["clock"], &row["holds"]),
        (&"model".into(), &true.into())
    );
    assert_eq!(
        (&row["excess"], &row["by"]),
        (&(-0.5).into(), &"schedules".into())
    );
    // A guideline without rows has a reason.
    for unavailable in output["unavailable"].as_array().unwrap() {
        assert!(!unavailable["reason"].as_str().unwrap().is_empty());
    }
}

/// A gather of unequal blocks beside one of blocks that are all padded to the largest: both times
/// are those of `simulate`. What holds for equal blocks alone is not judged.
#[test]
fn unequal_blocks_are_compared_with_padding_them() {
    let simulated = |task: &str| {
        let options = "-p 8 --root 4 --alpha 100 --beta 1 --json";
        let mut command = Command::new(env!("CARGO_BIN_EXE_oneport"));
        let words = task.split_whitespace().chain(options.split_whitespace());
        let output = command.arg("simulate").args(words).assert().success();
        let output: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
        output["time"].as_f64().unwrap()
    };
    let output = json(
        "gather -p 8 --bytes 800 --dist mod3 --alpha 100 --beta 1",
        0,
    );
    assert_eq!(output["dist"], "mod3");
    let found = rows(&output, "gatherv <= allreduce(1) + gather(max)");
    let side = |name: &str| found[0][name].as_f64().unwrap();
    assert_eq!(side("left"), simulated("gather --dist mod3 --block 100"));
    let agree = simulated("allreduce --bytes 1");
    assert_eq!(side("right"), agree + simulated("gather --bytes 200"));
    assert!(rows(&output, "gather <= gatherv").is_empty());
    let unavailable = output["unavailable"].as_array().unwrap();
    assert!(
        unavailable
            .iter()
            .any(|one| one["guideline"] == "gather <= gatherv")
    );
}

/// With a late last rank a root can gather all blocks but one in time: the figures are by hand.
#[test]
fn calls_are_timed_from_the_last_arrival() {
    let late = "-p 8 --bytes 8 --alpha 10 --beta 0 --arrivals last:1000";
    let output = json(late, 1);
    let sides = |guideline| {
        let row = rows(&output, guideline)[0];
        (
            row["left"].as_f64().unwrap(),
            row["right"].as_f64().unwrap(),
        )
    };
    assert_eq!(sides("allgather <= gather + broadcast"), (30.0, 20.0));
    assert_eq!(sides("barrier(p) <= barrier(2p)"), (30.0, 40.0));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("late.json");
    std::fs::write(&file, r#"{"arrivals": [0, 0, 0, 9]}"#).unwrap();
    let of_four = json(&format!("-p 4 --bytes 8 --arrivals {}", file.display()), 1);
    assert_eq!(
        of_four["unavailable"][0]["reason"],
        "no arrivals of 8 ranks"
    );
    for (options, error) in [
        (
            format!("-p 5 --arrivals {}", file.display()),
            "4 arrivals of 5 ranks",
        ),
        (
            "-p 2 --native --arrivals last:1us".into(),
            "--arrivals is for model times",
        ),
        (
            "-p 2 --arrivals 7:1us".into(),
            "rank 7 is not one of 2 ranks",
        ),
    ] {
        let stderr = oneport(&options)
            .assert()
            .code(2)
            .get_output()
            .stderr
            .clone();
        let stderr = String::from_utf8(stderr).unwrap();
        assert!(stderr.contains(error), "{stderr}");
    }
}

#[test]
fn the_table_shows_which_guidelines_hold() {
    let text = text("-p 4 --bytes 1KiB", 0);
    assert!(text.contains("model times, tolerance 0%:"), "{text}");
    assert!(text.contains("broadcast(m) <= 2 broadcast(m/2)"), "{text}");
    assert!(text.contains("holds"), "{text}");
    assert!(!text.contains("not available yet:"), "{text}");
    assert!(text.contains("gather <= gatherv"), "{text}");
}

#[test]
fn a_violation_has_exit_code_1() {
    // Two ranks have only the slow link between 0 and 1; four ranks can avoid it.
    let costs = r#"{"alpha": [[null, 100, 1, 1], [100, null, 1, 1], [1, 1, null, 1], [1, 1, 1, null]],
        "beta": [[null, 0, 0, 0], [0, null, 0, 0], [0, 0, null, 0], [0, 0, 0, null]]}"#;
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("guidelines-costs.json");
    std::fs::write(&file, costs).unwrap();
    let arguments = format!("-p 2 --bytes 8 --costs {}", file.display());
    let output = json(&arguments, 1);
    assert_eq!(output["holds"], false);
    let row = rows(&output, "broadcast(p) <= broadcast(2p)")[0];
    assert_eq!((&row["left"], &row["holds"]), (&100.into(), &false.into()));
    let excess = row["excess"].as_f64().unwrap();
    assert!(excess > 10.0, "{row}");
    assert!(text(&arguments, 1).contains("violated by "));
    assert_eq!(
        json(&format!("{arguments} --tolerance 10000%"), 0)["holds"],
        true
    );
    assert_eq!(
        json(&format!("{arguments} --tolerance 10000"), 0)["holds"],
        true
    );
    assert_eq!(
        json(&format!("{arguments} --tolerance 1%"), 1)["tolerance"],
        0.01
    );
}

#[test]
fn guidelines_are_skipped_if_the_costs_describe_too_few_ranks() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("guidelines-few.json");
    let costs = r#"{"alpha": [[null, 1], [1, null]], "beta": [[null, 1], [1, null]]}"#;
    std::fs::write(&file, costs).unwrap();
    let output = json(&format!("-p 2 --bytes 8 --costs {}", file.display()), 0);
    assert_eq!(rows(&output, "reduce(m) <= reduce(2m)").len(), 1);
    assert!(rows(&output, "reduce(p) <= reduce(2p)").is_empty());
}

/// With unidirectional ports, more ranks may be faster: an odd number of ranks leaves a port idle
/// in every round.
#[test]
fn guidelines_on_the_number_of_ranks_are_skipped_for_unidirectional_ports() {
    let output = json("-p 3 --bytes 64 --ports uni", 0);
    assert!(rows(&output, "reduce(p) <= reduce(2p)").is_empty());
    assert!(!rows(&output, "reduce(m) <= reduce(2m)").is_empty());
}

/// Among more than a thousand ranks a composition is too long to be planned for a barrier.
#[test]
fn what_searches_left_out_is_noted() {
    let output = oneport("barrier -p 1100 --ports uni --json")
        .assert()
        .code(0);
    let output = output.get_output();
    let many: Value = serde_json::from_slice(&output.stdout).unwrap();
    let left_out = many["left_out"].as_array().unwrap();
    assert_eq!(left_out.len(), 1, "{left_out:?}");
    let text = left_out[0].as_str().unwrap();
    assert!(text.contains(" may have a faster alternative: 1 other algorithm took "));
    let notes = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(notes.contains(&format!("note: {text}\n")), "{notes}");
    let few = json("barrier -p 8 --ports uni", 0);
    assert_eq!(few["left_out"], Value::Null);
}

#[test]
fn measured_times_are_listed_after_model_times() {
    for (clock, costs) in [
        ("native", "--alpha 200ns --beta 0.05ns"),
        ("paced", "--alpha 200us --beta 1ns"),
    ] {
        let arguments = format!("-p 2 --bytes 1KiB --{clock} {costs} --tolerance 1000000000");
        let output = json(&arguments, 0);
        assert_eq!(output["measured_tolerance"], 10_000_000.0);
        assert_eq!(output["time_unit"], "ns");
        let rows = rows(&output, "reduce <= binomial");
        let clocks: Vec<_> = rows.iter().map(|r| r["clock"].as_str().unwrap()).collect();
        assert_eq!(clocks, ["model", clock]);
        assert!(rows[1]["left"].as_f64().unwrap() > 0.0);
        if clock == "paced" {
            assert!(rows[1]["left"].as_f64() >= rows[0]["left"].as_f64());
        }
    }
}

#[test]
fn bad_usage_gives_a_message_and_exit_code_2() {
    for (arguments, expected) in [
        ("-p 0", "at least one rank"),
        ("-p 1000000", "more than the 4096"),
        ("-p x", "'x'"),
        ("--bytes 1XB", "not a size"),
        ("--bytes 8000TiB", "more than the 1 TiB"),
        ("-p 1", "one rank sends nothing"),
        ("--repetitions 3", "for measured times"),
        ("--budget 3", "for measured times"),
        ("--native -p 2 --repetitions 0", "at least 1"),
        ("reduse", "did you mean 'reduce'"),
        (
            "--tolerance 0.1",
            "'0.1' is 0.1% or 10%: write the percent sign",
        ),
        ("--tolerance lots", "not a tolerance"),
        ("--tolerance -0.1", "not a tolerance"),
        ("--tolerance inf", "not a tolerance"),
        ("--native --paced", "cannot be used with"),
        ("--deadline 0s", "a deadline is between"),
        ("--alpha -1", "is finite and not negative"),
        ("--ported 0", "--ported is 0"),
        ("--profile /nonexistent", "/nonexistent"),
        ("-p 4000 --bytes 1TiB --native --alpha 1us", "memory"),
    ] {
        let output = oneport(arguments).assert().code(2).get_output().clone();
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(output.stdout.is_empty());
        assert!(message.contains("error: "), "{arguments}: {message}");
        assert!(message.contains(expected), "{arguments}: {message}");
    }
}

#[test]
fn inputs_are_kept_if_asked_for() {
    let kept = "-p 2 --bytes 8 --native --tolerance 1000000000% --inputs kept";
    assert_eq!(
        json(&format!("{kept} --alpha 1us --beta 1ns"), 0)["inputs"],
        "kept"
    );
    let refused = oneport("-p 2 --bytes 8 --inputs kept").assert().code(2);
    let error = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
    assert!(error.contains("--inputs is for measured times"), "{error}");
}

/// A tolerance is in percent, as that of `tune` is.
#[test]
fn tolerances_are_percentages() {
    for (tolerance, share) in [("10", 0.1), ("10%", 0.1), ("0.5%", 0.005), ("0", 0.0)] {
        let options = format!("barrier -p 2 --tolerance {tolerance}");
        assert_eq!(json(&options, 0)["tolerance"], share, "{tolerance}");
    }
    let refused = Command::new(env!("CARGO_BIN_EXE_oneport"))
        .args(["tune", "reduce", "-p", "2", "--tolerance", "0.1"])
        .assert()
        .code(2);
    let error = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
    assert!(error.contains("write the percent sign"), "{error}");
}

#[test]
fn collectives_and_rows_are_chosen() {
    let output = json("bcast scan -p 2,4 --bytes 8,1KiB", 0);
    let rows = output["rows"].as_array().unwrap();
    assert_eq!(rows.len(), output["compared"].as_u64().unwrap() as usize);
    for row in rows {
        let name = row["guideline"].as_str().unwrap();
        assert!(
            name.starts_with("broadcast") || name.starts_with("scan"),
            "{name}"
        );
        assert!(row.get("settled").is_none(), "{row}");
    }
    // What has no size is compared once.
    let barriers = json("barrier -p 2,4 --bytes 8,1KiB,64KiB", 0);
    assert_eq!(barriers["compared"], 2 * 3);
    let none = json("-p 2 --bytes 8 --only violated", 0);
    assert_eq!(none["rows"].as_array().unwrap().len(), 0);
    assert!(none["compared"].as_u64().unwrap() > 50);
    let late = "allgather -p 8 --bytes 8 --alpha 10 --beta 0 --arrivals last:1000 --only violated";
    let violated = json(late, 1);
    let rows = violated["rows"].as_array().unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|row| row["holds"] == false));
    let text = text(late, 1);
    assert!(!text.contains(" holds"), "{text}");
    assert!(text.contains("the planners are at fault"), "{text}");
}

#[test]
fn measured_rows_have_intervals() {
    let measured = "barrier -p 2 --native --alpha 1us --beta 1ns --tolerance 1000000000%";
    let rows_of = |options: &str| {
        let output = json(&format!("{measured} {options}"), 0);
        let rows = output["rows"].as_array().unwrap().clone();
        let native = rows.into_iter().filter(|row| row["clock"] == "native");
        native.collect::<Vec<_>>()
    };
    for options in ["", "--repetitions 21", "--budget 200ms"] {
        for row in rows_of(options) {
            let ends = |side: &str| {
                let interval = &row[format!("{side}_interval")];
                [0, 1].map(|i| interval[i].as_f64().unwrap())
            };
            for side in ["left", "right"] {
                let (time, [low, high]) = (row[side].as_f64().unwrap(), ends(side));
                assert!(low <= time && time <= high, "{options} {row}");
            }
            // Whatever the machine does: the same wherever in the intervals both times are.
            let ([fast, slow], [least, most]) = (ends("left"), ends("right"));
            let holds = |left: f64, right: f64| left <= right * 10_000_001.0;
            let is_settled = holds(fast, most) == holds(slow, least);
            assert_eq!(row["settled"], is_settled, "{row}");
        }
    }
    for row in rows_of("--repetitions 2") {
        assert!(row.get("left_interval").is_none(), "{row}");
        assert_eq!(row["settled"], false);
    }
    let text = text(&format!("{measured} --repetitions 2"), 0);
    assert!(text.contains("3 rows not settled"), "{text}");
}

/// Where no guideline has blocks of different sizes, a distribution of sizes is refused.
#[test]
fn a_distribution_needs_a_guideline_of_blocks() {
    for kind in ["scatter", "broadcast"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_oneport"));
        let output = command.args(["guidelines", kind, "--dist", "spikes", "-p", "8"]);
        let output = output.assert().code(2);
        let error = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert!(error.contains("--dist spikes: of these"), "{error}");
    }
}

/// Files have what is shown: all rows, or those that are violated.
#[test]
fn rows_are_written_as_tables_plots_and_pages() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("guidelines_files");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let task = "reduce -p 4,8 --bytes 64,1KiB --alpha 10 --beta 1";
    let all = "-o g.csv -o g.json -o g.md -o g.tex -o g.svg -o g.html";
    let output = oneport(&format!("{task} {all} --json"))
        .current_dir(&folder)
        .assert()
        .success();
    let output: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    let rows = output["rows"].as_array().unwrap();
    assert!(rows.len() > 8);
    assert_eq!(
        serde_json::from_str::<Value>(&read("g.json")).unwrap(),
        output
    );
    let mut csv = csv::Reader::from_path(folder.join("g.csv")).unwrap();
    let records: Vec<std::collections::BTreeMap<String, String>> =
        csv.deserialize().map(Result::unwrap).collect();
    assert_eq!(records.len(), rows.len());
    for (record, row) in records.iter().zip(rows) {
        for field in ["guideline", "clock", "by"] {
            assert_eq!(record[field], row[field].as_str().unwrap());
        }
        for field in ["ranks", "bytes", "left", "right", "excess"] {
            let number: f64 = record[field].parse().unwrap();
            let rounded = row[field].as_f64().unwrap();
            assert!((number - rounded).abs() <= 1e-9 * rounded.abs(), "{field}");
        }
        assert_eq!(record["holds"], row["holds"].to_string());
    }
    let table = read("g.md");
    assert!(
        table.starts_with("| guideline | p | bytes | left | right |"),
        "{table}"
    );
    assert_eq!(table.lines().count(), 2 + rows.len());
    assert!(read("g.tex").starts_with("% guidelines; alpha"));
    let picture = read("g.svg");
    for part in [">time over the bound<", "their bounds: up to 1 they hold"] {
        assert!(picture.contains(part), "{part}");
    }
    let page = read("g.html");
    assert!(page.contains("<svg") && !page.contains("class=\"failed\""));
    let lines = page.matches("<tr>").count();
    assert_eq!(lines, 1 + rows.len());
    // Only what is violated, of which there is nothing.
    let only = format!("{task} --only violated -o v.csv -o v.md -o v.svg -o v.html");
    oneport(&only).current_dir(&folder).assert().success();
    assert_eq!(read("v.csv"), "");
    assert_eq!(read("v.md").lines().count(), 2);
    let late = "allgather -p 8 --bytes 8 --alpha 10 --beta 0 --arrivals last:1000 -o l.html";
    oneport(late).current_dir(&folder).assert().code(1);
    assert!(read("l.html").contains("<tr class=\"failed\">"));
    for (file, part) in [("g.pdf", "name FILE.csv, .md"), ("none/g.md", "none/g.md")] {
        let failed = oneport(&format!("{task} -o {file}"))
            .current_dir(&folder)
            .assert()
            .code(2);
        let message = String::from_utf8(failed.get_output().stderr.clone()).unwrap();
        assert!(message.contains(part), "{message}");
    }
}
