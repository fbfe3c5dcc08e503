//! Tests of comparisons by measured times, on threads. `tests/mpi.sh` tests them over MPI.

use assert_cmd::Command;
use serde_json::Value;

fn compare(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oneport"));
    command.arg("compare").args(arguments.split_whitespace());
    command
}

#[test]
fn measured_algorithms_are_sorted_by_their_medians() {
    let arguments = "allreduce -p 2 --bytes 1KiB --engine threads --repetitions 6";
    let output = compare(arguments).arg("--json").assert().success();
    let output: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert_eq!(output["engine"], "threads");
    assert_eq!(
        (&output["dtype"], &output["repetitions"]),
        (&"u8".into(), &6.into())
    );
    // Threads have no library.
    assert!(output.get("mpi").is_none() && output.get("library").is_none());
    let rows = output["rows"].as_array().unwrap();
    let median = |row: &Value| row["wall"]["median"].as_u64().unwrap();
    assert!(rows.len() > 3 && median(&rows[0]) > 0);
    assert!(rows.is_sorted_by_key(median));
    // The model's times are those of a comparison that measures nothing.
    let model = compare("allreduce -p 2 --bytes 1KiB --json")
        .assert()
        .success();
    let model: Value = serde_json::from_slice(&model.get_output().stdout).unwrap();
    for row in model["rows"].as_array().unwrap() {
        assert!(row.get("wall").is_none(), "{row}");
        let same = rows
            .iter()
            .find(|other| other["algorithm"] == row["algorithm"]);
        assert_eq!(same.unwrap()["time"], row["time"]);
    }

    let text = compare(arguments).assert().success();
    let text = String::from_utf8(text.get_output().stdout.clone()).unwrap();
    assert!(
        text.contains("6 repetitions of each, interleaved, u8, verified"),
        "{text}"
    );
}

#[test]
fn what_cannot_be_measured_is_refused() {
    for (arguments, says) in [
        (
            "reduce -p 2 --engine threads --repetitions 0",
            "at least one is timed",
        ),
        (
            "reduce -p 2 --engine threads --op land --dtype f32",
            "--op land works on",
        ),
        (
            "reduce -p 100000 --bytes 8 --engine threads",
            "more threads than",
        ),
    ] {
        let output = compare(arguments).assert().code(2);
        let error = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert!(error.contains(says), "{arguments}: {error}");
    }
}

/// Where options give no costs, a native run is planned for shared memory; its model time is that
/// of the default costs all the same.
#[test]
fn native_runs_are_planned_for_where_they_run() {
    let json = |command: &str, arguments: &str| -> Value {
        let mut oneport = Command::new(env!("CARGO_BIN_EXE_oneport"));
        let words = format!("{command} allreduce -p 2 {arguments} --dtype f32 --json");
        let output = oneport.args(words.split_whitespace()).assert().success();
        serde_json::from_slice(&output.get_output().stdout).unwrap()
    };
    let native = json("run", "--bytes 4MiB --repetitions 1");
    assert_eq!(native["chosen_for"], "built-in costs of shared memory");
    assert_ne!(native["algorithm"], "census");
    let algorithm = native["algorithm"].as_str().unwrap();
    let segments = format!(
        "--bytes 4MiB -a {algorithm} --segments {}",
        native["segments"]
    );
    assert_eq!(native["model_time"], json("simulate", &segments)["time"]);

    // Whoever gives costs gets the choice for them; and so does a paced run.
    for costs in [
        "--alpha 1us",
        "--latency 0ns",
        "--clock paced --repetitions 1 --warmup 0",
    ] {
        let given = json("run", &format!("--bytes 4MiB {costs}"));
        assert_eq!(
            (&given["algorithm"], given.get("chosen_for")),
            (&"census".into(), None)
        );
    }
    // Nothing was chosen.
    let given = json("run", "--bytes 4MiB -a census");
    assert_eq!(given.get("chosen_for"), None);
    let table = json("run", "--bytes 2MiB..4MiB --repetitions 1");
    assert_eq!(table["chosen_for"], "built-in costs of shared memory");

    let arguments = "run allreduce -p 2 --bytes 4MiB --repetitions 1";
    let mut oneport = Command::new(env!("CARGO_BIN_EXE_oneport"));
    let output = oneport
        .args(arguments.split_whitespace())
        .assert()
        .success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    let line = "\nchosen for  built-in costs of shared memory (oneport calibrate measures those of this machine)\n";
    assert!(text.contains(line), "{text}");
}

/// A launcher may give its first process a terminal, and pass on what that prints to a file.
#[test]
fn a_launched_process_prints_nothing_bold() {
    let printed = |rank: Option<&str>| {
        let mut command = compare("reduce -p 2 --bytes 8 --engine threads --repetitions 6");
        command
            .env("CLICOLOR_FORCE", "1")
            .envs(rank.map(|rank| ("PMI_RANK", rank)));
        let output = command.assert().success().get_output().clone();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(printed(None).contains("\x1b[1m"));
    assert!(!printed(Some("0")).contains('\x1b'));
}

/// A folder stands for the library in it, whatever it is called there.
#[test]
fn a_folder_may_name_the_mpi_library() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("lib")).unwrap();
    let library = folder.path().join("lib/libmpich.so.12");
    std::fs::write(&library, "not a library").unwrap();
    for named in [folder.path().to_owned(), folder.path().join("lib")] {
        let refused = compare("reduce -p 2 --bytes 8 --engine mpi")
            .env("ONEPORT_MPI_LIB", named)
            .assert()
            .code(2);
        let error = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
        let file = library.display().to_string();
        assert!(error.contains(&format!("({file}: ")), "{error}");
    }
}
