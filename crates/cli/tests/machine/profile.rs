//! Tests of profiles and histograms on the command line.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

use crate::support::alone::shared;

mod calibration;

fn oneport(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oneport"));
    command.args(arguments);
    command
}

/// A command without spaces in its arguments.
fn words(command: &str) -> Command {
    oneport(&command.split_whitespace().collect::<Vec<_>>())
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Standard error of a command that fails with `code` and prints nothing else.
fn failure(command: &mut Command, code: i32) -> String {
    let output = command.assert().code(code).get_output().clone();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.stdout.is_empty(), "{message}");
    assert!(message.contains("error: "), "{message}");
    assert!(!message.contains("panicked"), "{message}");
    message
}

fn json(command: &mut Command) -> Value {
    let output = command
        .arg("--json")
        .assert()
        .success()
        .get_output()
        .clone();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// `time` of a simulation of `arguments`.
fn time(arguments: &str) -> f64 {
    let simulate = format!("simulate {arguments}");
    json(&mut words(&simulate))["time"].as_f64().unwrap()
}

const LINEAR: &str = r#"{"alpha": 200, "beta": 0.25, "gamma": 0.5, "gamma_copy": 0.125}"#;
const PIECES: &str = r#"{"alpha": 200, "beta": 0.25, "gamma": 0.5, "pieces": {
    "transfer": [{"from": 0, "alpha": 100, "beta": 1}, {"from": 1000, "alpha": 600, "beta": 0.5}],
    "combine": [{"from": 0, "alpha": 0, "beta": 0.125}, {"from": 4096, "alpha": 512, "beta": 0}],
    "combine_local": [{"from": 0, "alpha": 0, "beta": 2}]}}"#;
const PAIRS: &str = r#"{"alpha": 200, "beta": 0.25, "cores": [0, 1, 2], "pairs": {
    "alpha": [[null, 10, 20], [10, null, 30], [20, 30, null]],
    "beta": [[null, 1, 2], [1, null, 3], [2, 3, null]]}}"#;

#[test]
fn simulate_uses_a_profile() {
    let _shared = shared();
    let folder = folder("profile-simulate");
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path.into_os_string().into_string().unwrap()
    };
    let linear = file("line.json", LINEAR);
    let chain = "-p 5 --bytes 8000 --segments 8 -a chain";
    // (p + q - 2) segments of 1000 bytes.
    assert_eq!(
        time(&format!("broadcast {chain} --profile {linear}")),
        11.0 * (200.0 + 0.25 * 1000.0)
    );
    assert_eq!(
        time(&format!("reduce {chain} --profile {linear}")),
        11.0 * (200.0 + 0.75 * 1000.0)
    );
    // Each cost option overrides one value of the profile.
    assert_eq!(
        time(&format!(
            "reduce {chain} --profile {linear} --alpha 1us --gamma 0"
        )),
        11.0 * (1000.0 + 0.25 * 1000.0)
    );
    let pieces = file("pieces.json", PIECES);
    let binomial = "-p 2 -a binomial --bytes";
    for (bytes, transfer, combine) in [
        (1.0, 101.0, 0.125),
        (999.0, 1099.0, 0.125 * 999.0),
        (1000.0, 1100.0, 125.0),
        (8192.0, 600.0 + 4096.0, 512.0),
    ] {
        let of = |what: &str| time(&format!("{what} {binomial} {bytes} --profile {pieces}"));
        assert_eq!(of("broadcast"), transfer);
        assert_eq!(of("reduce"), transfer + combine);
        let beta = time(&format!(
            "reduce {binomial} {bytes} --profile {pieces} --beta 0.25"
        ));
        assert_eq!(beta, 200.0 + 0.25 * bytes + combine);
    }
    let output = json(&mut oneport(&[
        "simulate",
        "reduce",
        "-p",
        "2",
        "--profile",
        &pieces,
    ]));
    assert_eq!(output["time_unit"], "ns");
    assert_eq!(output["pieces"]["transfer"][1]["from"], 1000);
    // A census combines local data. The profile has a separate cost for that, which --gamma
    // overrides.
    let census = format!("allreduce -p 4 -a census --bytes 6000 --profile {pieces}");
    assert_eq!(time(&census), 2.0 * (3600.0 + 12000.0));
    assert_eq!(
        time(&format!("{census} --gamma 1")),
        2.0 * (3600.0 + 6000.0)
    );
    for workers in ["ranks", "cores"] {
        let run = format!("run {census} --workers {workers}");
        let run = json(&mut words(&run));
        assert_eq!(run["model_time"].as_f64(), Some(time(&census)));
    }
    // The model clock of a run agrees with the simulation.
    let run = json(&mut oneport(&[
        "run",
        "reduce",
        "-p",
        "4",
        "--bytes",
        "6000",
        "--segments",
        "4",
        "-a",
        "chain",
        "--profile",
        &pieces,
    ]));
    let arguments = "reduce -p 4 --bytes 6000 --segments 4 -a chain";
    assert_eq!(
        run["model_time"].as_f64().unwrap(),
        time(&format!("{arguments} --profile {pieces}"))
    );
    // The costs of pairs of cores are used for pairs of ranks.
    let pairs = file("pairs.json", PAIRS);
    assert_eq!(
        time(&format!(
            "broadcast -p 3 -a chain --segments 1 --bytes 10 --costs {pairs}"
        )),
        10.0 + 10.0 + 30.0 + 30.0
    );
    let message = failure(&mut oneport(&["simulate", "reduce", "--costs", &linear]), 2);
    assert!(message.contains("--pairs"), "{message}");
}

/// What a profile says of messages: its levels win over one line for all, its pairs over its levels
/// where each pair has costs of its own.
#[test]
fn every_planner_takes_the_levels_of_a_profile() {
    let _shared = shared();
    let folder = folder("profile-levels");
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path.into_os_string().into_string().unwrap()
    };
    let levels = r#""levels": [{"groups": [[0, 1], [2, 3]], "alpha": 10, "beta": 1}, {"alpha": 300, "beta": 5}]"#;
    let cost = file("cost.json", &format!("{{{levels}}}"));
    let profile = format!(r#"{{"alpha": 200, "beta": 0.25, {levels}}}"#);
    let profile = file("profile.json", &profile);
    let options = [
        format!("--costs {cost}"),
        format!("--profile {profile}"),
        format!("--costs {profile}"),
    ];
    let planned = folder.join("planned.json");
    for what in [
        "broadcast --bytes 4KiB",
        "broadcast -a hier(binomial,chain) --bytes 4KiB",
        "allreduce --bytes 64KiB",
        "gather -a two --sizes 100,200,7,4000",
        "reduce -a ordered --ordered --bytes 1KiB",
    ] {
        let [file, by_profile, by_costs] = options.each_ref().map(|option| {
            let plan = format!("plan {what} {option} -o {}", planned.display());
            words(&plan).assert().success();
            fs::read_to_string(&planned).unwrap()
        });
        assert!(file == by_profile && file == by_costs, "{what}");
    }
    let [file, by_profile, by_costs] = options.each_ref().map(|option| {
        let compare = format!("compare allreduce --bytes 64KiB {option}");
        json(&mut words(&compare))["rows"].clone()
    });
    assert!(file == by_profile && file == by_costs);
    let text = file.to_string();
    assert!(
        text.contains(r#""hier("#) && text.contains(r#""lane("#),
        "{text}"
    );
    let [file, by_profile] = [&cost, &profile].map(|path| {
        let steady = format!("steady --costs {path} --bytes 64");
        json(&mut words(&steady))["throughput"].clone()
    });
    assert!(!file.is_null());
    assert_eq!(file, by_profile);
    // Levels are for their ranks; one line, which options give, is for any number.
    let chain = "broadcast -a chain --segments 1 --bytes 10";
    assert_eq!(
        time(&format!("{chain} --profile {profile}")),
        20.0 + 350.0 + 20.0
    );
    let line = format!("{chain} --profile {profile} --alpha 1 -p 3");
    assert_eq!(time(&line), 2.0 * 3.5);
    let fewer = format!("simulate reduce -p 3 --profile {profile}");
    let message = failure(&mut words(&fewer), 2);
    assert!(
        message.contains("the costs describe 4 ranks, not 3"),
        "{message}"
    );
    // Both: each pair has costs of its own with --costs, as with a cost file.
    let levels = r#"{"levels": [{"groups": [[0, 1], [2]], "alpha": 7, "beta": 0}, {"alpha": 9, "beta": 0}],"#;
    let both = folder.join("both.json");
    fs::write(&both, PAIRS.replacen('{', levels, 1)).unwrap();
    let both = both.display();
    assert_eq!(
        time(&format!("{chain} --costs {both}")),
        10.0 + 10.0 + 30.0 + 30.0
    );
    assert_eq!(time(&format!("{chain} --profile {both}")), 7.0 + 9.0);
}

/// A long schedule of many ranks is stored where there are levels, so that their traffic can be
/// counted: 31 of 32 messages stay within a group of 32 ranks.
#[test]
fn long_schedules_have_the_traffic_of_levels() {
    let _shared = shared();
    let path = folder("profile-many").join("levels.json");
    let groups: Vec<Vec<usize>> = (0..32).map(|i| (32 * i..32 * (i + 1)).collect()).collect();
    let near = format!(r#"{{"groups": {groups:?}, "alpha": 10, "beta": 1}}"#);
    let levels = format!(r#"[{near}, {{"alpha": 300, "beta": 5}}]"#);
    let profile = format!(r#"{{"alpha": 200, "beta": 0.25, "levels": {levels}}}"#);
    fs::write(&path, profile).unwrap();
    let what = "simulate broadcast -p 1024 -a chain --bytes 1KiB --segments 513";
    let answer = json(words(what).arg("--profile").arg(&path));
    let messages = |level: usize| answer["levels"][level]["messages"].as_u64();
    let segments = answer["segments"].as_u64().unwrap();
    assert!(segments * 1023 > 1 << 19, "{segments}");
    assert_eq!(messages(0), Some(segments * 31 * 32));
    assert_eq!(messages(1), Some(segments * 31));
}

#[test]
fn every_planning_command_accepts_a_profile() {
    let _shared = shared();
    let folder = folder("profile-commands");
    let path = folder.join("p.json");
    fs::write(&path, LINEAR).unwrap();
    for command in ["plan", "check", "simulate", "run", "compare"] {
        oneport(&[command, "reduce", "-p", "3", "--profile"])
            .arg(&path)
            .assert()
            .success();
    }
}

#[test]
fn broken_profiles_are_refused() {
    let _shared = shared();
    let folder = folder("profile-broken");
    let levels = |levels: &str, more: &str| {
        format!(
            r#"{{"alpha": 1, "beta": 1, "levels": [{levels}, {{"alpha": 2, "beta": 2}}]{more}}}"#
        )
    };
    let twice = levels(r#"{"groups": [[0, 1], [1]], "alpha": 1, "beta": 1}"#, "");
    let across = r#"{"groups": [[0, 1], [2]], "alpha": 1, "beta": 1}, {"groups": [[0, 2], [1]], "alpha": 1, "beta": 1}"#;
    let across = levels(across, "");
    let near = r#"{"groups": [[0, 1], [2]], "alpha": 1, "beta": 1}"#;
    let unknown = levels(near, r#", "hosts": ["a", "a"]"#);
    let unpaired = levels(
        near,
        r#", "pairs": {"alpha": [[0, 1], [1, 0]], "beta": [[0, 1], [1, 0]]}"#,
    );
    let free = levels(r#"{"groups": [[0, 1]], "alpha": -3, "beta": 1}"#, "");
    for (name, text, expected) in [
        (
            "twice",
            &twice[..],
            "profile: level 0: rank 1 is named twice",
        ),
        (
            "across",
            &across,
            "profile: level 1: no group holds ranks 0 and 1",
        ),
        (
            "unknown",
            &unknown,
            "profile: levels of 3 ranks, but hosts of 2",
        ),
        (
            "unpaired",
            &unpaired,
            "profile: levels of 3 ranks, but pairs of 2",
        ),
        (
            "free",
            &free,
            "profile: level 0: alpha is -3.0: a cost is finite",
        ),
        ("empty", "", "not a profile"),
        ("text", "hello", "not a profile"),
        ("cut", &LINEAR[..30], "not a profile"),
        ("other", r#"{"rows": []}"#, "missing field `alpha`"),
        ("negative", r#"{"alpha": 1, "beta": -2}"#, "beta is -2"),
        (
            "falling",
            r#"{"alpha": 1, "beta": 2, "pieces": {"copy": [{"from": 0, "alpha": -5, "beta": 0}]}}"#,
            "copy piece 0",
        ),
    ] {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        for command in ["simulate", "run", "compare", "plan", "check"] {
            let message = failure(
                oneport(&[command, "reduce", "-p", "2", "--profile"]).arg(&path),
                2,
            );
            assert_eq!(message.trim_end().lines().count(), 1, "{message}");
            assert!(
                message.contains(expected) && message.contains(name),
                "{message}"
            );
        }
    }
    let message = failure(
        oneport(&["simulate", "reduce", "--profile"]).arg(folder.join("missing")),
        2,
    );
    assert!(message.contains("cannot read"), "{message}");
    fs::write(folder.join("bytes"), [0xff, 0xfe, 0]).unwrap();
    failure(
        oneport(&["simulate", "reduce", "--profile"]).arg(folder.join("bytes")),
        2,
    );
    failure(
        &mut oneport(&["simulate", "reduce", "--profile", "a", "--costs", "b"]),
        2,
    );
}

#[test]
fn run_writes_its_histogram() {
    let _shared = shared();
    let folder = folder("histogram");
    let run = [
        "run",
        "broadcast",
        "-p",
        "2",
        "--bytes",
        "1KiB",
        "--repetitions",
        "50",
    ];
    let output = json(
        oneport(&run)
            .args(["--histogram", "h.txt"])
            .current_dir(&folder),
    );
    assert_eq!(names(&folder), ["h.txt"]);
    let text = fs::read_to_string(folder.join("h.txt")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let header: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!(
        header,
        ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"]
    );
    let last: Vec<&str> = lines[lines.len() - 4].split_whitespace().collect();
    assert_eq!(last[1..], ["1.000000000000", "50"]);
    let max: f64 = last[0].parse().unwrap();
    assert!(lines[lines.len() - 3].starts_with("#[Mean    = "));
    assert!(lines[lines.len() - 2].ends_with("Total count    =           50]"));
    let wall = &output["wall"];
    let of = |field: &str| wall[field].as_f64().unwrap();
    assert!(of("min") <= of("median") && of("median") <= of("p99") && of("p99") <= of("max"));
    assert!((max / of("max") - 1.0).abs() < 1e-3);
    // A path that cannot be written is refused before the run.
    for path in ["/no/such/folder/h.txt", "."] {
        let message = failure(
            oneport(&run)
                .args(["--histogram", path])
                .current_dir(&folder),
            2,
        );
        assert!(message.contains("cannot write"), "{message}");
    }
    assert_eq!(names(&folder), ["h.txt"]);
}
