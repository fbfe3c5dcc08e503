//! Tests of `oneport tune`: its output, its files, interruption and continuation, and the selection
//! rules that other commands apply.

use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use oneport_measure::tune::csv;
use oneport_measure::tune::rules::Rules;
use serde_json::Value;

use crate::support::alone::shared;

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

fn oneport(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oneport"));
    command
        .current_dir(folder)
        .args(arguments.split_whitespace());
    command
}

fn json(folder: &Path, arguments: &str) -> Value {
    let output = oneport(folder, arguments).arg("--json").assert().success();
    serde_json::from_slice(&output.get_output().stdout).expect("one JSON object")
}

/// The message of a command that fails with exit code 2 and prints nothing else.
fn refused(folder: &Path, arguments: &str) -> String {
    let output = oneport(folder, arguments)
        .assert()
        .code(2)
        .get_output()
        .clone();
    let message = String::from_utf8(output.stderr).expect("text");
    assert!(output.stdout.is_empty(), "{message}");
    assert!(message.starts_with("error: "), "{message}");
    assert!(!message.contains("panicked"), "{message}");
    message
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

const PACED: &str =
    "tune reduce -p 4 --bytes 1KiB..4KiB --clock paced --alpha 200us --beta 50ns -a chain,binomial";

#[test]
fn a_sweep_writes_rows_files_and_rules() {
    let _shared = shared();
    let folder = folder("tune_sweep");
    let output = json(
        &folder,
        &format!("{PACED} --budget 2s --csv a.csv --html a.html --rules r.json"),
    );
    assert_eq!(files(&folder), ["a.csv", "a.html", "r.json"]);
    assert_eq!(output["clock"], "paced");
    assert_eq!(output["inputs"], "rewritten");
    assert_eq!(output["interrupted"], false);
    let rows = output["rows"].as_array().unwrap();
    for bytes in [1024, 2048, 4096] {
        let of = |field: &'static str| {
            let mine = move |r: &&Value| r["bytes"] == bytes && r[field] == true;
            rows.iter().filter(mine).count()
        };
        assert_eq!((of("best"), of("best_segment")), (1, 2), "{bytes}");
    }
    for row in rows {
        for field in ["segment", "wall", "min", "p99", "repetitions", "model_time"] {
            assert!(row[field].as_f64().unwrap() > 0.0, "{field}: {row}");
        }
        // Paced runs take their model time, or longer on a busy machine.
        assert!(row["max"].as_f64() >= row["model_time"].as_f64(), "{row}");
    }
    let text = std::fs::read_to_string(folder.join("a.csv")).unwrap();
    let written = csv::read(&text).unwrap();
    assert_eq!(written[0].rows.len(), rows.len());
    let page = std::fs::read_to_string(folder.join("a.html")).unwrap();
    for part in [
        "4 ranks",
        "paced",
        "<dt>date</dt><dd>20",
        "--csv a.csv",
        "</html>",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let rules = Rules::parse(&std::fs::read_to_string(folder.join("r.json")).unwrap()).unwrap();
    assert_eq!(rules.rules[0].choices.last().unwrap().up_to_bytes, 4096);

    // A continued sweep measures nothing again.
    let again = json(&folder, &format!("{PACED} --csv a.csv --budget 0"));
    assert_eq!(again["resumed"], rows.len());
    assert_eq!(again["rows"].as_array(), Some(rows));
    // A different sweep is refused for this file unless it restarts the file.
    let other = PACED.replace("50ns", "60ns");
    let message = refused(&folder, &format!("{other} --csv a.csv"));
    assert!(
        message.contains("costs is alpha 200000 beta 50"),
        "{message}"
    );
    assert!(message.contains("--restart"), "{message}");
    assert_eq!(std::fs::read_to_string(folder.join("a.csv")).unwrap(), text);
    let restarted = json(&folder, &format!("{other} --budget 0 --csv b.csv"));
    let restarted_again = json(
        &folder,
        &format!("{PACED} --budget 0 --csv b.csv --restart"),
    );
    let costs = |output: &Value| output["resumed"].as_u64();
    assert_eq!(
        (costs(&restarted), costs(&restarted_again)),
        (Some(0), Some(0))
    );
    // The file grows by sizes and by numbers of ranks; no row is lost or measured again.
    let more = PACED.replace("1KiB..4KiB", "1KiB..8KiB");
    let grown = json(&folder, &format!("{more} --csv a.csv --budget 0"));
    assert_eq!(grown["resumed"], rows.len());
    assert_eq!(&grown["rows"].as_array().unwrap()[..rows.len()], rows);
    let other = PACED.replace("-p 4", "-p 3");
    let others = json(
        &folder,
        &format!("{other} --budget 0 --csv a.csv --rules r.json"),
    );
    assert_eq!(
        (&others["resumed"], &others["ranks"]),
        (&0.into(), &3.into())
    );
    let blocks = csv::read(&std::fs::read_to_string(folder.join("a.csv")).unwrap()).unwrap();
    let counts: Vec<usize> = blocks.iter().map(|block| block.rows.len()).collect();
    assert_eq!(
        counts,
        [
            others["rows"].as_array().unwrap().len(),
            grown["rows"].as_array().unwrap().len()
        ]
    );
    // The rule for the other number of ranks is added.
    let rules = Rules::parse(&std::fs::read_to_string(folder.join("r.json")).unwrap()).unwrap();
    let ranks: Vec<_> = rules.rules.iter().map(|r| r.ranks).collect();
    assert_eq!(ranks, [3, 4]);
    let printed = oneport(&folder, &format!("{PACED} --budget 0"))
        .assert()
        .success();
    let text = String::from_utf8(printed.get_output().stdout.clone()).unwrap();
    assert!(text.contains("the best of each size"), "{text}");
    assert!(!text.contains("p99"), "{text}");
}

/// The best row of each algorithm is what all six kinds of files show of it.
#[test]
fn tables_and_plots_have_the_best_of_each_algorithm() {
    let _shared = shared();
    let folder = folder("tune_tables");
    let all = ["csv", "json", "md", "tex", "svg", "html"];
    let outputs: String = all.iter().map(|end| format!(" -o t.{end}")).collect();
    let output = json(&folder, &format!("{PACED} --budget 0{outputs} -o copy.csv"));
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let rows = output["rows"].as_array().unwrap();
    let best: Vec<&Value> = rows.iter().filter(|r| r["best_segment"] == true).collect();
    assert_eq!(best.len(), 2 * 3);
    assert_eq!(csv::read(&read("t.csv")).unwrap()[0].rows.len(), rows.len());
    assert_eq!(read("copy.csv"), read("t.csv"));
    let stored: Value = serde_json::from_str(&read("t.json")).unwrap();
    assert_eq!(stored["rows"], output["rows"]);
    let table = read("t.md");
    assert!(
        table.starts_with("| size | algorithm | segment |"),
        "{table}"
    );
    let lines: Vec<&str> = table.lines().skip(2).collect();
    assert_eq!(lines.len(), best.len(), "{table}");
    for (line, row) in lines.iter().zip(&best) {
        let size = format!("| {} KiB | ", row["bytes"].as_u64().unwrap() / 1024);
        let name = row["algorithm"].as_str().unwrap();
        assert!(line.starts_with(&size) && line.contains(name), "{line}");
    }
    assert!(read("t.tex").starts_with("% reduce: 4 ranks, paced clock; alpha"));
    for part in [
        "reduce: 4 ranks, paced clock",
        ">chain<",
        ">binomial<",
        ">time<",
    ] {
        assert!(read("t.svg").contains(part), "{part}");
    }
    assert!(read("t.html").contains("<title>oneport tune reduce: 4 ranks, paced clock, "));
    // The same command goes on in its first CSV file; sizes are columns then.
    let again = format!("{PACED} --budget 0{outputs} -o copy.csv");
    assert_eq!(json(&folder, &again)["resumed"], rows.len());
    let shown = format!("{PACED} --budget 0 --csv t.csv -o t.md --show ratio");
    assert_eq!(json(&folder, &shown)["resumed"], rows.len());
    let table = read("t.md");
    let titles = "| algorithm | ranks | 1 KiB | 2 KiB | 4 KiB |";
    assert_eq!(table.lines().next(), Some(titles), "{table}");
    // At each size one of the two takes the least.
    let ones = table.matches("1.000").count();
    assert!(table.lines().count() == 2 + 2 && ones >= 3, "{table}");
}

#[test]
fn other_commands_apply_the_rules() {
    let _shared = shared();
    let folder = folder("tune_rules");
    std::fs::write(
        folder.join("r.json"),
        r#"{"oneport_rules": 1, "rules": [
            {"collective": "reduce", "ranks": 4, "ports": "bi", "ported": 1, "choices": [
              {"up_to_bytes": 1000, "algorithm": "binomial", "segment": null},
              {"up_to_bytes": 100000, "algorithm": "bi-greedy", "segment": 3000}]},
            {"collective": "reduce", "ranks": 8, "ports": "bi", "ported": 1, "choices": [
              {"up_to_bytes": 100000, "algorithm": "chain", "segment": 100}]}]}"#,
    )
    .unwrap();
    let of = |arguments: &str| {
        let output = json(&folder, &format!("{arguments} --rules r.json"));
        assert_eq!(output["algorithm_choice"], "rules");
        let field = |name: &str| output[name].as_str().unwrap().to_string();
        (
            field("algorithm"),
            output["segment"].as_u64().unwrap(),
            field("rule"),
        )
    };
    let (algorithm, segment, rule) = of("simulate reduce -p 4 --bytes 1000");
    assert_eq!((algorithm.as_str(), segment), ("binomial", 1000));
    assert!(
        rule.contains("4 ranks") && rule.contains("up to 1000 B"),
        "{rule}"
    );
    let (algorithm, segment, _) = of("simulate reduce -p 4 --bytes 9000");
    assert_eq!((algorithm.as_str(), segment), ("bi-greedy", 3000));
    // No rule is for 3 ranks, so the rule for the nearest number of ranks applies.
    let (_, segment, rule) = of("run reduce -p 3 --bytes 9000 --dtype f64");
    assert_eq!(segment, 3000);
    assert!(rule.contains("4 ranks are the nearest measured"), "{rule}");
    // Segments are rounded to whole elements, and vectors may be longer than all measured ones.
    let (algorithm, segment, rule) = of("simulate reduce -p 100 --bytes 200000 --dtype f64");
    assert_eq!((algorithm.as_str(), segment), ("chain", 96));
    assert!(rule.contains("longer than its"), "{rule}");
    // An explicit segment size overrides the rule.
    let (_, segment, _) = of("simulate reduce -p 4 --bytes 9000 --segment 500");
    assert_eq!(segment, 500);

    for (arguments, part) in [
        ("run reduce -p 4 -a chain", "give one of them"),
        ("compare reduce -p 4", "compare has all of them"),
        ("plan broadcast -p 4", "no choice for broadcast"),
        (
            "simulate reduce -p 4 --ports uni",
            "no choice for reduce with uni ports:",
        ),
        (
            "simulate reduce -p 4 --op affine",
            "an operator that commutes",
        ),
    ] {
        let message = refused(&folder, &format!("{arguments} --rules r.json"));
        assert!(message.contains(part), "{arguments}: {message}");
    }
    std::fs::write(folder.join("bad.json"), "{}").unwrap();
    for file in ["bad.json", "none.json"] {
        let message = refused(&folder, &format!("simulate reduce -p 4 --rules {file}"));
        assert!(message.contains(file), "{message}");
    }
}

#[test]
fn bad_usage_writes_no_files() {
    let _shared = shared();
    let folder = folder("tune_bad");
    std::fs::write(folder.join("other.csv"), "a,b\n1,2\n").unwrap();
    std::fs::write(folder.join("other.json"), "[1]").unwrap();
    for (arguments, part) in [
        ("--bytes 1MiB..64KiB", "empty"),
        ("--bytes 64Ki", "not a size"),
        ("--bytes 1KiB..", "not a range"),
        ("--bytes 0..1KiB", "cannot start at 0"),
        ("--bytes 1..8 --factor 1", "--factor is 1"),
        ("--bytes 10 --dtype f32", "whole number of elements"),
        ("-a chian", "did you mean 'chain'"),
        ("-a bi-greedy --ports uni", "not planned for uni ports"),
        ("-p 0", "at least one rank"),
        ("--root 9", "root 9"),
        ("--op band --dtype f32", "band works on u8"),
        ("--budget -1", "-1"),
        ("--tolerance x", "a tolerance: write a percentage"),
        ("--csv none/a.csv", "cannot write none/a.csv"),
        ("--html .", "folder"),
        ("--csv x --html x", "same file"),
        ("--html a.pdf", "pages are written as FILE.html"),
        ("-o a.pdf", "name FILE.csv, .md, .tex, .json, .html or .svg"),
        ("-o a.svg --html a.svg", "same file"),
        ("-o a.svg --show bound", "tune has no lower bounds"),
        ("-o a.json --show ratio", "--show is for plots and tables"),
        ("-o a.md --top 1", "--top is for a plot"),
        ("--verify other.csv -o x.csv", "cannot be used with"),
        ("--verify other.csv", "start it with mpirun"),
        ("--verify other.csv --csv x", "cannot be used with"),
        ("--verify other.csv --rules x", "cannot be used with"),
        ("--csv other.csv", "--restart"),
        ("--rules other.json", "not a file of selection rules"),
        ("--restart", "name it with --csv or -o"),
        ("--cores 99999", "core 99999"),
        ("--bytes 900TiB", "of memory"),
    ] {
        let ranks = if arguments.contains("-p") { "" } else { "-p 2" };
        let message = refused(&folder, &format!("tune reduce {ranks} {arguments}"));
        assert!(message.contains(part), "{arguments}: {message}");
        assert_eq!(files(&folder), ["other.csv", "other.json"], "{arguments}");
    }
}

#[test]
fn an_interrupted_sweep_continues() {
    let _shared = shared();
    let folder = folder("tune_interrupted");
    let sweep = "tune reduce -p 4 --bytes 1KiB,2KiB --clock paced --alpha 1ms --beta 100ns \
        -a chain,bi-greedy,binomial --csv a.csv --html a.html --rules r.json";
    let mut child = Process::new(env!("CARGO_BIN_EXE_oneport"))
        .current_dir(&folder)
        .args(sweep.split_whitespace())
        .args(["--json", "--tolerance", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A tolerance of 0 is never reached, so the sweep would use its whole budget of a minute.
    let start = Instant::now();
    let rows = || {
        let text = std::fs::read_to_string(folder.join("a.csv")).unwrap_or_default();
        csv::read(&text).map_or(0, |blocks| blocks[0].rows.len())
    };
    while rows() < 3 && start.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = child.id().to_string();
    assert!(
        Process::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let output = child.wait_with_output().unwrap();
    let note = String::from_utf8(output.stderr).unwrap();
    assert!(
        note.contains("interrupted") && note.contains("continues from a.csv"),
        "{note}"
    );
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["interrupted"], true);
    let kept = printed["rows"].as_array().unwrap();
    assert!(kept.len() >= 3);
    assert_eq!(files(&folder), ["a.csv", "a.html"]);
    let page = std::fs::read_to_string(folder.join("a.html")).unwrap();
    assert!(page.contains("interrupted"));

    let complete = json(&folder, &format!("{sweep} --budget 5s"));
    assert_eq!(complete["resumed"], kept.len());
    let rows = complete["rows"].as_array().unwrap();
    for old in kept {
        let same = |r: &&Value| {
            ["bytes", "algorithm", "segment"]
                .iter()
                .all(|f| r[f] == old[f])
        };
        let new = rows.iter().find(same).expect("the row is kept");
        assert_eq!(
            (&new["wall"], &new["repetitions"]),
            (&old["wall"], &old["repetitions"])
        );
    }
    assert_eq!(files(&folder), ["a.csv", "a.html", "r.json"]);
}
