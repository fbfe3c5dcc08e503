//! Tests of how commands write files: links, modes and owners are kept, and neither concurrent nor
//! interrupted writers lose data or leave temporary files.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Output, Stdio};
use std::time::Duration;

use assert_cmd::Command;
use oneport::Schedule;
use oneport_measure::tune::csv;
use oneport_measure::tune::rules::Rules;
use serde_json::Value;

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the folder of the test");
    folder
}

fn oneport(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oneport"));
    command
        .current_dir(folder)
        .args(arguments.split_whitespace());
    command
}

fn spawn(folder: &Path, arguments: &str) -> Child {
    let mut command = Process::new(env!("CARGO_BIN_EXE_oneport"));
    spawn_command(&mut command, folder, arguments)
}

fn spawn_command(command: &mut Process, folder: &Path, arguments: &str) -> Child {
    command
        .current_dir(folder)
        .args(arguments.split_whitespace())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Asserts that `command` exits with 2 and prints nothing to standard output. Returns its message.
fn refused(command: &mut Command) -> String {
    let output = command.assert().code(2).get_output().clone();
    let message = error_message(&output);
    assert!(output.stdout.is_empty(), "{message}");
    message
}

fn error_message(output: &Output) -> String {
    let message = String::from_utf8(output.stderr.clone()).expect("UTF-8");
    assert!(message.starts_with("error: "), "{message}");
    assert!(!message.contains("panicked"), "{message}");
    message
}

/// The sorted names of everything in the folder, including hidden files.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).unwrap().is_symlink()
}

fn schedule_in(path: &Path) -> Schedule {
    Schedule::from_json(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Commands that write files, whose names start with `FILE`.
const WRITERS: [&str; 10] = [
    "plan reduce -p 2 -o FILE.json",
    "plan broadcast -p 5 -a circulant --table -o FILE.txt",
    "draw reduce -p 2 -o FILE.svg",
    "draw reduce -p 2 --trace FILE.json",
    "run reduce -p 2 --trace FILE.svg",
    "run reduce -p 2 --histogram FILE.csv",
    "steady --generate fig3 -o FILE.json",
    "steady --generate fig3 --draw FILE.svg",
    "steady --generate fig3 --gantt FILE.svg",
    "tune reduce -p 2 --bytes 64 -a chain --budget 0 --csv FILE.csv --html FILE.html --rules FILE.json",
];

#[test]
fn writing_through_a_link_keeps_the_link_and_the_mode() {
    for (i, writer) in WRITERS.iter().enumerate() {
        let folder = folder(&format!("files_links_{i}"));
        fs::create_dir(folder.join("there")).unwrap();
        let words = writer.split_whitespace();
        let files: Vec<_> = words.filter(|word| word.starts_with("FILE")).collect();
        for file in &files {
            let old = folder.join("there").join(file);
            fs::write(&old, "").unwrap();
            fs::set_permissions(&old, fs::Permissions::from_mode(0o600)).unwrap();
            // A link to a link, each relative to its own folder.
            symlink(file, folder.join(format!("there/to-{file}"))).unwrap();
            symlink(format!("there/to-{file}"), folder.join(file)).unwrap();
        }
        let before = (names(&folder), names(&folder.join("there")));
        oneport(&folder, writer).assert().success();
        for file in &files {
            assert!(is_link(&folder.join(file)), "{writer}");
            let old = folder.join("there").join(file);
            assert_eq!(mode(&old), 0o600, "{writer}");
            assert!(fs::metadata(&old).unwrap().len() > 0, "{writer}");
        }
        let after = (names(&folder), names(&folder.join("there")));
        assert_eq!(after, before, "{writer}");
    }
}

#[test]
fn writing_through_a_dangling_link_creates_its_target() {
    let folder = folder("files_dangling");
    fs::create_dir(folder.join("there")).unwrap();
    symlink("there/new.json", folder.join("s.json")).unwrap();
    oneport(&folder, "plan reduce -p 3 -o s.json")
        .assert()
        .success();
    assert!(is_link(&folder.join("s.json")));
    assert_eq!(schedule_in(&folder.join("there/new.json")).ranks(), 3);
    assert_eq!(names(&folder.join("there")), ["new.json"]);
    // The new file has the default mode.
    File::create(folder.join("any")).unwrap();
    assert_eq!(
        mode(&folder.join("there/new.json")),
        mode(&folder.join("any"))
    );

    symlink("none/new.json", folder.join("no-folder.json")).unwrap();
    symlink("round.json", folder.join("round.json")).unwrap();
    for (file, expected) in [
        ("no-folder.json", "No such file"),
        ("round.json", "symbolic links"),
        ("there", "it is a folder"),
        ("there/", "it is a folder"),
        ("none/", "not a file name"),
        ("there/new.json/", "Not a directory"),
        (".", "it is a folder"),
    ] {
        let message = refused(&mut oneport(
            &folder,
            &format!("plan reduce -p 3 -o {file}"),
        ));
        assert!(
            message.contains(&format!("cannot write {file}: ")),
            "{message}"
        );
        assert!(message.contains(expected), "{message}");
    }
    let expected = ["any", "no-folder.json", "round.json", "s.json", "there"];
    assert_eq!(names(&folder), expected);
}

#[test]
fn the_owner_and_other_hard_links_are_kept() {
    let folder = folder("files_owner");
    let (path, other) = (folder.join("s.json"), folder.join("other.json"));
    fs::write(&path, "x".repeat(1 << 20)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    // Only root can change the owner. Otherwise the file keeps its owner, which the test accepts.
    let _ = chown(&path, Some(4321), Some(4321));
    let owner = |path: &Path| fs::metadata(path).map(|m| (m.uid(), m.gid())).unwrap();
    let before = owner(&path);
    oneport(&folder, "plan reduce -p 3 -o s.json")
        .assert()
        .success();
    assert_eq!((owner(&path), mode(&path)), (before, 0o640));
    assert_eq!(schedule_in(&path).ranks(), 3);

    fs::hard_link(&path, &other).unwrap();
    oneport(&folder, "plan reduce -p 2 -o s.json")
        .assert()
        .success();
    assert_eq!(schedule_in(&other).ranks(), 2);
    assert_eq!((owner(&other), mode(&other)), (before, 0o640));
    assert_eq!(names(&folder), ["other.json", "s.json"]);
}

#[test]
fn devices_pipes_and_standard_output_are_written_to() {
    let folder = folder("files_special");
    oneport(&folder, "plan reduce -p 2 -o /dev/null")
        .assert()
        .success();
    // The link leads to standard output, which is a file: the trace must follow the printed text
    // instead of replacing it.
    symlink("/proc/self/fd/1", folder.join("out.json")).unwrap();
    let status = Process::new(env!("CARGO_BIN_EXE_oneport"))
        .current_dir(&folder)
        .args("draw reduce -p 2 --json --trace out.json".split_whitespace())
        .stdout(File::create(folder.join("printed")).unwrap())
        .status();
    assert!(status.unwrap().success());
    assert!(is_link(&folder.join("out.json")));
    let printed = fs::read_to_string(folder.join("printed")).unwrap();
    assert!(
        printed.starts_with('{') && printed.trim_end().ends_with('}'),
        "{printed}"
    );
    let made = Process::new("mkfifo").arg(folder.join("pipe")).status();
    assert!(made.unwrap().success());
    let pipe = folder.join("pipe");
    // A pipe that is open at both ends buffers what is written.
    let mut pipe = File::options().read(true).write(true).open(pipe).unwrap();
    oneport(&folder, "plan reduce -p 4 -o pipe")
        .assert()
        .success();
    let mut written = vec![0; 1 << 16];
    let n = pipe.read(&mut written).unwrap();
    let schedule = Schedule::from_json(str::from_utf8(&written[..n]).unwrap()).unwrap();
    assert_eq!(schedule.ranks(), 4);
    assert_eq!(names(&folder), ["out.json", "pipe", "printed"]);
}

#[test]
fn leftovers_of_a_killed_writer_are_removed_and_a_live_writer_is_awaited() {
    let folder = folder("files_left");
    let temporary = folder.join(".s.json.oneport-tmp");
    fs::write(&temporary, "half of a sched").unwrap();
    // Files of others with similar names must be kept.
    let others = ["s.json.1.tmp", ".t.json.oneport-tmp", "s.json.oneport-tmp"];
    for other in others {
        fs::write(folder.join(other), other).unwrap();
    }
    oneport(&folder, "plan reduce -p 2 -o s.json")
        .assert()
        .success();
    assert!(!temporary.exists());
    for other in others {
        assert_eq!(fs::read_to_string(folder.join(other)).unwrap(), other);
    }

    fs::write(&temporary, "being written").unwrap();
    let live = File::open(&temporary).unwrap();
    live.lock().unwrap();
    let mut waiting = spawn(&folder, "plan reduce -p 3 -o s.json");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(waiting.try_wait().unwrap(), None);
    assert_eq!(fs::read_to_string(&temporary).unwrap(), "being written");
    assert_eq!(schedule_in(&folder.join("s.json")).ranks(), 2);
    drop(live);
    let done = waiting.wait_with_output().unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    assert!(!temporary.exists());
    assert_eq!(schedule_in(&folder.join("s.json")).ranks(), 3);
}

#[test]
fn concurrent_writers_of_one_file_leave_one_complete_file() {
    let folder = folder("files_many");
    let writers: Vec<_> = (1..=8)
        .map(|p| spawn(&folder, &format!("plan reduce -p {p} -o s.json")))
        .collect();
    for writer in writers {
        let done = writer.wait_with_output().unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
    }
    schedule_in(&folder.join("s.json"));
    assert_eq!(names(&folder), ["s.json"]);
}

#[test]
fn two_options_cannot_name_the_same_file() {
    let folder = folder("files_same");
    fs::write(folder.join("there"), "old").unwrap();
    symlink("there", folder.join("link.json")).unwrap();
    symlink("none.json", folder.join("dangling.json")).unwrap();
    fs::hard_link(folder.join("there"), folder.join("hard.json")).unwrap();
    let here = folder.to_string_lossy().into_owned();
    for (arguments, options) in [
        (
            "tune reduce -p 2 --csv x --html ./x".to_string(),
            "--csv and --html",
        ),
        (
            "tune reduce -p 2 --csv there --rules link.json".into(),
            "--csv and --rules",
        ),
        (
            "draw reduce -p 2 --trace dangling.json -o none.json".into(),
            "--trace and -o",
        ),
        (
            "run reduce -p 2 --trace hard.json --histogram link.json".into(),
            "--histogram and --trace",
        ),
        (
            format!("steady --generate fig3 -o {here}/a.svg --draw a.svg"),
            "-o and --draw",
        ),
        (
            "steady --generate fig3 --draw a.svg --gantt a.svg".into(),
            "--draw and --gantt",
        ),
    ] {
        let message = refused(&mut oneport(&folder, &arguments));
        assert!(
            message.contains(&format!("{options} name the same file")),
            "{message}"
        );
    }
    // Two outputs cannot overwrite each other in a device.
    let sweep = "tune reduce -p 2 --bytes 64 -a chain --budget 0";
    let arguments = format!("{sweep} --csv /dev/null --html /dev/null");
    oneport(&folder, &arguments).assert().success();
    assert_eq!(fs::read_to_string(folder.join("there")).unwrap(), "old");
    assert_eq!(
        names(&folder),
        ["dangling.json", "hard.json", "link.json", "there"]
    );
}

#[test]
fn a_dash_is_refused_where_standard_output_carries_other_text() {
    let folder = folder("files_dash");
    for arguments in [
        "calibrate -o -",
        "steady --generate fig3 -o -",
        "tune reduce -p 2 --rules -",
        "run reduce -p 2 --trace -",
    ] {
        let message = refused(&mut oneport(&folder, arguments));
        assert!(message.contains("writes a file"), "{message}");
    }
    assert_eq!(names(&folder), Vec::<String>::new());
}

/// A sweep that repeats its measurements until it is interrupted or its budget of 120 s is used up:
/// with a tolerance of 0, they never agree.
const ENDLESS: &str = "tune reduce -p 4 --bytes 1KiB,2KiB --clock paced --alpha 1ms --beta 100ns -a chain,bi-greedy,binomial --tolerance 0 --budget 120s --json";

/// Waits until the sweep has written two rows.
fn wait_for_rows(sweep: &mut Child, file: &Path) {
    let rows = || {
        let text = fs::read_to_string(file).unwrap_or_default();
        csv::read(&text).map_or(0, |blocks| blocks[0].rows.len())
    };
    while rows() < 2 {
        assert_eq!(sweep.try_wait().unwrap(), None, "the sweep ended early");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn send(signal: &str, process: &Child) {
    let kill = Process::new("kill")
        .args([signal, &process.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
}

fn rules_in(path: &Path) -> Vec<usize> {
    let rules = Rules::parse(&fs::read_to_string(path).unwrap()).unwrap();
    rules.rules.iter().map(|r| r.ranks).collect()
}

#[test]
fn concurrent_sweeps_all_add_their_rules_to_the_file() {
    let folder = folder("files_rules");
    let sweeps: Vec<_> = (2..=7)
        .map(|p| {
            let sweep = format!("tune reduce -p {p} --bytes 64 -a chain --budget 0 --rules r.json");
            spawn(&folder, &sweep)
        })
        .collect();
    for sweep in sweeps {
        let done = sweep.wait_with_output().unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
    }
    assert_eq!(rules_in(&folder.join("r.json")), [2, 3, 4, 5, 6, 7]);
    assert_eq!(names(&folder), ["r.json"]);
}

#[test]
fn rows_of_a_concurrent_sweep_are_not_overwritten() {
    let folder = folder("files_csv");
    let file = folder.join("a.csv");
    let mut sweep = spawn(&folder, &format!("{ENDLESS} --csv a.csv --rules r.json"));
    wait_for_rows(&mut sweep, &file);
    // A rename replaces the file at once, so the sweep cannot read half of it.
    fs::write(folder.join("b.csv"), "another's rows").unwrap();
    fs::rename(folder.join("b.csv"), &file).unwrap();
    let done = sweep.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(2));
    let message = String::from_utf8(done.stderr).unwrap();
    assert!(
        message.contains("a.csv is left as it is: another process"),
        "{message}"
    );
    // The sweep prints its own rows instead.
    let printed: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(printed["rows"].as_array().unwrap().len() >= 2);
    assert_eq!(fs::read_to_string(&file).unwrap(), "another's rows");
    assert_eq!(names(&folder), ["a.csv"]);
}

#[test]
fn a_hangup_ends_a_sweep_and_keeps_its_rows() {
    let folder = folder("files_hangup");
    // Restores the default action of SIGHUP, which the caller of the tests may have set to ignore.
    let mut command = Process::new("env");
    command.args(["--default-signal=HUP", env!("CARGO_BIN_EXE_oneport")]);
    let sweep = format!("{ENDLESS} --csv a.csv --html a.html --rules r.json");
    let mut sweep = spawn_command(&mut command, &folder, &sweep);
    wait_for_rows(&mut sweep, &folder.join("a.csv"));
    // When a terminal closes, both it and its shell send SIGHUP.
    send("-HUP", &sweep);
    send("-HUP", &sweep);
    let done = sweep.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(130));
    let printed: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(printed["interrupted"], true);
    assert!(printed["rows"].as_array().unwrap().len() >= 2);
    assert_eq!(names(&folder), ["a.csv", "a.html"]);
}

#[test]
fn a_sweep_under_nohup_ignores_hangups() {
    let folder = folder("files_nohup");
    let mut command = Process::new("nohup");
    command.arg(env!("CARGO_BIN_EXE_oneport"));
    let mut sweep = spawn_command(&mut command, &folder, &format!("{ENDLESS} --csv a.csv"));
    wait_for_rows(&mut sweep, &folder.join("a.csv"));
    let status = fs::read_to_string(format!("/proc/{}/status", sweep.id())).unwrap();
    let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:"));
    let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
    let is_caught = |signal: u32| caught & (1 << (signal - 1)) != 0;
    // Signal 1 is SIGHUP, signal 15 is SIGTERM.
    assert_eq!((is_caught(1), is_caught(15)), (false, true));
    send("-HUP", &sweep);
    send("-TERM", &sweep);
    assert_eq!(sweep.wait_with_output().unwrap().status.code(), Some(130));
}

/// Every input may come from a pipe, such as `<(command)`, although it is needed several times.
#[test]
fn a_pipe_is_read_once() {
    let folder = folder("files_read_once");
    let read = |arguments: &str| {
        let output = oneport(&folder, arguments).output().unwrap();
        assert!(output.status.success(), "{arguments}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let levels = r#"{"levels": [{"groups": [[0, 1], [2, 3]], "alpha": 300, "beta": 0.1},
        {"alpha": 2000, "beta": 0.4}]}"#;
    fs::write(folder.join("costs"), levels).unwrap();
    fs::write(folder.join("late"), r#"{"arrivals": [0, 1, 2, 3]}"#).unwrap();
    fs::write(folder.join("sizes"), "8,16,24,32").unwrap();
    fs::write(
        folder.join("plan"),
        read("plan reduce -p 4 --bytes 8 --json"),
    )
    .unwrap();
    for (arguments, file) in [
        ("compare reduce -p 4 --bytes 8 --costs", "costs"),
        ("compare reduce -p 4 --bytes 8,16 --costs", "costs"),
        ("simulate reduce -p 4 --bytes 8 --costs", "costs"),
        ("compare reduce -p 4 --bytes 8 --arrivals", "late"),
        ("simulate reduce -p 4 --bytes 8,16 --arrivals", "late"),
        ("compare gather -p 4 --sizes-file", "sizes"),
        ("compare --schedule", "plan"),
        ("compare reduce -p 4 --bytes 8,16 --schedule", "plan"),
        ("simulate --schedule", "plan"),
    ] {
        let expected = read(&format!("{arguments} {file}"));
        let mut command = oneport(&folder, &format!("{arguments} /dev/stdin"));
        let output = command.pipe_stdin(folder.join(file)).unwrap();
        let output = output.timeout(Duration::from_secs(60)).output().unwrap();
        assert!(output.status.success(), "{arguments}: {output:?}");
        // A pipe's own name stands in its row.
        let words = |text: &str| {
            let text = text.replace("/dev/stdin", file);
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let found = String::from_utf8(output.stdout).unwrap();
        assert_eq!(words(&found), words(&expected), "{arguments}");
    }
}

/// A pipe is not opened because a word of the command happens to be its name.
#[test]
fn a_pipe_named_like_a_collective_is_left_alone() {
    let folder = folder("files_named_pipe");
    for name in ["reduce", "chain"] {
        let made = Process::new("mkfifo").arg(folder.join(name)).status();
        assert!(made.unwrap().success());
    }
    let mut command = oneport(
        &folder,
        "compare reduce -p 3 --bytes 8,16 -a chain,binomial",
    );
    command.timeout(Duration::from_secs(60)).assert().success();
}

/// A command that cannot write its files leaves no folder behind.
#[test]
fn folders_are_removed_where_nothing_can_be_written() {
    let folder = folder("files_no_room");
    for arguments in [
        "atlas broadcast -p 2 -o made/site",
        "export simgrid broadcast -p 2 --bytes 8 -o made",
    ] {
        let status = Process::new("sh")
            .current_dir(&folder)
            .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"])
            .arg(env!("CARGO_BIN_EXE_oneport"))
            .args(arguments.split_whitespace())
            .output()
            .unwrap();
        assert_eq!(status.status.code(), Some(2), "{arguments}: {status:?}");
        assert!(
            names(&folder).is_empty(),
            "{arguments}: {:?}",
            names(&folder)
        );
    }
}

/// Ctrl-C ends even draws that would take days, with those that are done.
#[test]
#[cfg(target_os = "linux")]
fn a_comparison_under_random_arrivals_ends_with_what_it_has() {
    // Interrupted before the first draw it has nothing to print.
    let mut waits = [0, 100, 1000, 10_000].into_iter();
    let printed = loop {
        let wait = waits.next().expect("a draw within ten seconds");
        let printed = interrupted_trials(Duration::from_millis(wait));
        if !printed.is_empty() {
            break printed;
        }
    };
    let of = printed
        .split_once("mean of ")
        .and_then(|(_, rest)| rest.split_once(" draws of arrivals"));
    let draws: usize = of.unwrap_or_else(|| panic!("{printed}")).0.parse().unwrap();
    // The signal is noticed after a few draws, though plans are made anew for each.
    assert!(draws < 300_000, "{draws} draws");
}

/// What a comparison prints that gets a signal so long after it listens to signals.
#[cfg(target_os = "linux")]
fn interrupted_trials(wait: Duration) -> String {
    let folder = folder("files_trials");
    let trials = "compare reduce -p 4 --bytes 64 --arrivals random:exp,20us --trials 10000000";
    let mut running = spawn(&folder, trials);
    let status = format!("/proc/{}/status", running.id());
    let listens = || {
        let text = fs::read_to_string(&status).unwrap();
        let mask = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = u64::from_str_radix(mask.unwrap().trim(), 16).unwrap();
        mask & (1 << 1) != 0
    };
    while !listens() {
        assert!(running.try_wait().unwrap().is_none(), "it has ended");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(wait);
    send("-INT", &running);
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("interrupted, 1 point left"), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

/// A file of a gather of unequal blocks is not called one of equal blocks.
#[test]
fn files_name_unequal_blocks() {
    let folder = super::options::folder("unequal-blocks");
    let file = folder.join("gather.json");
    let file = file.to_str().unwrap();
    let task = "gather --sizes 10,50,200 --root 1 -a linear";
    crate::support::run::text(&format!("plan {task} -o {file}"));
    let own = crate::support::run::text(&format!("simulate --schedule {file}"));
    assert!(
        own.contains("blocks of 10 B to 200 B, 260 B in all"),
        "{own}"
    );
}
