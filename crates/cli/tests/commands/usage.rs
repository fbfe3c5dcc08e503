//! Tests of how commands are used: error messages and exit codes of wrong usage.

use std::io::Read;
use std::process::{Command as Process, Stdio};

use super::cli::{PAIR, folder};
use crate::support::run::{failure, json, oneport, text};

#[test]
fn bad_usage_gives_one_message_and_exit_code_2() {
    for (arguments, expected) in [
        ("simulate reduce -p 0", "at least one rank"),
        ("simulate reduce -p -1", "'-1' is not a count"),
        ("simulate reduce -p many", "'many' is not a count"),
        ("simulate reduce -p 99999999999999999999", "too large"),
        ("simulate reduce -p 9999999999", "limit of 200000000"),
        ("simulate reduce --root 8", "root 8 is not one of 8 ranks"),
        ("simulate reduce --root first", "neither a rank"),
        ("simulate reduce --segment 0", "--segment is 0"),
        (
            "simulate reduce --arrivals 9:1us",
            "rank 9 is not one of 8 ranks",
        ),
        ("simulate reduce --arrivals 1:-1us", "not negative"),
        ("simulate reduce --arrivals last:NaN", "not negative"),
        ("simulate reduce --arrivals random:foo,1", "is not a law"),
        ("simulate reduce --arrivals nothing.json", "is no file"),
        (
            "simulate reduce --arrivals lats:10us",
            "nor none, last:TIME",
        ),
        (
            "simulate reduce --explain 8",
            "rank 8 is not one of 8 ranks",
        ),
        ("simulate reduce --explain 1:99", "steps, numbered from 0"),
        ("simulate reduce --explain 1-2", "RANK or RANK:STEP"),
        ("simulate reduce -p 2..8 --explain", "not a table"),
        ("simulate reduce --latency -1", "not negative"),
        ("simulate reduce --eager some", "or none, or all"),
        (
            "run reduce --workers cores --arrivals last:1us",
            "--arrivals needs a thread for each rank",
        ),
        (
            "run reduce --arrivals last:400000s",
            "take more than 24 hours",
        ),
        (
            "export msccl reduce --eager all",
            "this format does not take it",
        ),
        ("steady --generate fig3 --bytes 64", "cannot be used with"),
        ("simulate reduce --segments 0", "--segments is 0"),
        ("simulate reduce --segments -3", "'-3' is not a count"),
        (
            "simulate reduce --segment 4 --segments 4",
            "cannot be used with",
        ),
        (
            "simulate reduce --segment-sizes 4,0,4",
            "--segment-sizes has a 0",
        ),
        (
            "simulate reduce --segment-sizes 4,4 --bytes 9",
            "add up to 8 bytes, not to the 9",
        ),
        (
            "simulate reduce --bytes 10 --dtype i32",
            "not a whole number of elements of 4 bytes",
        ),
        (
            "simulate reduce --segment 6 --dtype i32",
            "not a whole number of elements",
        ),
        ("simulate reduce --bytes -5", "not a size"),
        ("simulate reduce --bytes 5XiB", "not a size"),
        ("simulate reduce --bytes 99999999999GiB", "limit of 8 PiB"),
        ("simulate reduce --bytes 8.5PiB", "limit of 8 PiB"),
        ("simulate reduce --bytes 1EiB", "limit of 8 PiB"),
        (
            "simulate reduce --bytes 8192TiB -p 1000",
            "limit of 2^60 bytes",
        ),
        (
            "simulate reduce --bytes 1TiB --segment 1",
            "more than this program's limit",
        ),
        (
            "plan reduce -a chain -p 1000000 --segments 60000",
            "take fewer ranks or larger segments",
        ),
        ("simulate reduce --alpha -1", "finite and not negative"),
        (
            "simulate reduce --beta -0.5ns",
            "a time is finite and not negative, -0.5ns is not",
        ),
        ("simulate reduce --gamma=-0.5ns", "finite and not negative"),
        ("simulate reduce --alpha nan", "finite and not negative"),
        ("simulate reduce --alpha inf", "finite and not negative"),
        ("simulate reduce --alpha 1parsec", "is not a time"),
        ("simulate reduce --alpha 1e308 -p 64", "too large"),
        ("simulate reduce --ported 0", "1 to 4096 ports"),
        ("simulate reduce --ported 1000000", "1 to 4096 ports"),
        ("simulate reduce --ports tri", "possible values: uni, bi"),
        ("rn reduce", "exists: 'run'"),
        ("chek", "exists: 'check'"),
        (
            "simulate redcue",
            "unknown collective 'redcue'; did you mean 'reduce'? Choose one of broadcast",
        ),
        ("check mine.json", "cannot read mine.json: No such file"),
        ("check no/such/file", "cannot read no/such/file: No such"),
        ("check .", "is a folder without .json files"),
        ("check reduce scan", "takes one name besides files, not 2"),
        ("tune mine.json", "unknown collective 'mine.json'"),
        ("list bin", "unknown algorithm 'bin'; did you mean 'bine'?"),
        ("list sort", "choose one of broadcast, reduce"),
        ("run reduce -np 4", "write the number of ranks as -p 8"),
        ("simulate reduce --beta 10/s", "such as 10GB/s"),
        ("simulate reduce --beta 10Gb/s", "may be bits"),
        (
            "simulate reduce -p 4 --arrivals 3:5us,3:6us",
            "rank 3 arrives twice",
        ),
        ("tune reduce -p 2 --reps 3", "tune chooses the repetitions"),
        (
            "simulate reduce --beta 10GB",
            "or a bandwidth, such as 10GB/s",
        ),
        ("simulate sort", "choose one of broadcast, reduce"),
        ("simulate reduce -a chian", "did you mean 'chain'?"),
        ("simulate reduce -a all", "--algorithm all"),
        ("simulate reduce --op summ", "similar value exists: 'sum'"),
        ("simulate reduce --dtype f8", "possible values: u8"),
        (
            "simulate reduce --dtype float32",
            "similar value exists: 'f32'",
        ),
        (
            "run allreduce --dtype uint16_t",
            "similar value exists: 'u16'",
        ),
        ("tune reduce --dtype double", "similar value exists: 'f64'"),
        (
            "simulate reduce --op affine --dtype f32",
            "affine works on u64",
        ),
        (
            "simulate reduce --op bxor --dtype f64",
            "bxor works on u8, i8, u16, i16, u32, i32, u64, i64, not on f64",
        ),
        (
            "simulate reduce --op minloc --dtype i32",
            "minloc works on i32_i32, f32_i32",
        ),
        ("simulate", "give a COLLECTIVE"),
        ("plan", "give a COLLECTIVE"),
        ("compare", "give a COLLECTIVE"),
        (
            "simulate --schedule x.json --segment 8",
            "cannot be used with",
        ),
        (
            "simulate --schedule no/such/file.json",
            "cannot read no/such/file.json",
        ),
        ("simulate --schedule .", "is a folder"),
        ("simulate x.json --segment 8", "cannot be used with"),
        ("compare reduce -o x.pdf", "or .svg (rsvg-convert -f pdf"),
        ("draw reduce -o x.pdf", "FILE.svg (rsvg-convert -f pdf"),
        (
            "simulate reduce --costs no/such/file.json",
            "cannot read no/such/file.json",
        ),
        (
            "simulate reduce --costs c.json --alpha 1",
            "cannot be used with",
        ),
        ("plan reduce --json --format text", "contradict"),
        (
            "plan reduce -o no/such/folder/x.json",
            "cannot write no/such/folder/x.json",
        ),
        ("plan reduce --format jsn", "similar value exists: 'json'"),
        ("simulate reduce --bogus", "unexpected argument"),
        ("run reduce --repetitions 0", "--repetitions is 0"),
        ("run reduce --repetitions -1", "'-1' is not a count"),
        ("run reduce --repetitions 99999999999", "too many"),
        ("run reduce --deadline 0", "a deadline is between"),
        ("run reduce --deadline soon", "not a time"),
        ("run reduce --cores 99999", "core 99999 is not available"),
        ("run reduce --cores 1-0", "'1-0' is not a core: list their"),
        ("run reduce --op add", "a similar value exists: 'sum'"),
        ("run reduce --op MPI_LAND", "a similar value exists: 'land'"),
        (
            "run reduce --segments 1..8",
            "more than one value: give one, such as --segments 8",
        ),
        (
            "compare reduce --segment 32KiB,64KiB",
            "such as --segment 32KiB, or none for the best; `oneport tune`",
        ),
        ("draw reduce -o x", "x: pictures are written as FILE.svg"),
        (
            "run reduce --trace x",
            "x: pictures are written as FILE.svg",
        ),
        ("run reduce --clock fast", "possible values: native, paced"),
        ("run reduce -p 100000 -a binomial --bytes 1", "more threads"),
        ("run reduce --bytes 1TiB --segments 1", "of memory"),
        (
            "run reduce --bytes 9 --dtype i64",
            "not a whole number of elements of 8 bytes",
        ),
        ("check reduce -a binomail", "did you mean 'binomial'?"),
        ("check reduce -a all -p 0", "at least one rank"),
        ("check", "give a COLLECTIVE"),
        ("frobnicate", "the commands are list, plan, check, simulate"),
        (
            "import frobnicate",
            "the commands are goal, msccl, mscclpp, teccl, chakra",
        ),
        ("import tecl", "a similar subcommand exists: 'teccl'"),
        ("simulat", "a similar subcommand exists: 'simulate'"),
        (
            "export openmpi reduce",
            "oneport tune COLLECTIVE --export openmpi=FILE",
        ),
        (
            "export intel",
            "oneport tune COLLECTIVE --export intel=FILE",
        ),
    ] {
        let message = failure(&mut oneport(arguments), 2);
        assert!(message.contains(expected), "{arguments}: {message}");
    }
    assert_eq!(oneport("").assert().code(2).get_output().stdout.len(), 0);
}

#[test]
fn what_users_of_mpi_type_is_understood() {
    for (typed, meant) in [
        (
            "plan bcast -n 3 --bytes 1k",
            "plan broadcast -p 3 --bytes 1024",
        ),
        ("plan MPI_Gatherv -p 3", "plan gather -p 3"),
        (
            "simulate reduce --bytes 4MB --beta 10GB/s",
            "simulate reduce --bytes 4000000 --beta 0.1ns",
        ),
    ] {
        assert_eq!(text(typed), text(meant), "{typed}");
    }
    assert!(text("run allreduce -p 2 --reps 3 --warmup 0").contains("3 repetitions after 0"));
    let core = oneport::run::allowed_cores()[0];
    let on_one = json(&format!("run allreduce -p 2 --cores {core}-{core}"));
    assert_eq!(on_one["oversubscribed"], true);
    // No option of tune is similar: its own suggestion would delete a sweep.
    let error = failure(&mut oneport("tune reduce --reps 3"), 2);
    assert!(!error.contains("restart"), "{error}");
    // The first letters of options are not options, but tell which are meant.
    let error = failure(&mut oneport("simulate reduce -p 8 --seg 4"), 2);
    for name in ["'--segment'", "'--segments'"] {
        assert!(error.contains(name), "{error}");
    }
    // What is wrong with a value is said, not how to pass it.
    for value in ["-3us", "-3", "-.5ms"] {
        let error = failure(
            &mut oneport(&format!("simulate reduce -p 8 --alpha {value}")),
            2,
        );
        let why = format!("a time is finite and not negative, {value} is not");
        assert!(error.contains(&why), "{error}");
    }
}

#[test]
fn a_list_of_algorithms_is_compared_checked_or_chosen_from() {
    let compared = json("compare reduce -p 8 -a chain,binomial,binomial,two-tree --ports uni");
    let names = |rows: &serde_json::Value| {
        let rows = rows.as_array().unwrap().iter();
        let mut names: Vec<_> = rows
            .map(|row| row["algorithm"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(&compared["rows"]), ["binomial", "chain"]);
    assert_eq!(names(&compared["skipped"]), ["two-tree"]);
    let checked = json("check allreduce -p 4 -a ring,rabenseifner");
    assert_eq!(names(&checked["algorithms"]), ["rabenseifner", "ring"]);
    let best = json("simulate broadcast -p 16 -a chain,linear,binomial --bytes 8");
    assert_eq!(best["algorithm"], "binomial");
    for (arguments, expected) in [
        (
            "compare reduce -a chain,binomail",
            "did you mean 'binomial'?",
        ),
        (
            "plan reduce -a chain,two-tree --ports uni",
            "two-tree reduce is not planned for uni",
        ),
        (
            "plan broadcast -a hier(binomial,chain),chain",
            "hier(binomial,chain)",
        ),
    ] {
        let error = failure(&mut oneport(arguments), 2);
        assert!(error.contains(expected), "{arguments}: {error}");
    }
}

#[test]
fn bad_schedules_are_refused_with_their_location() {
    for (content, expected) in [
        ("", "line 1 column 0: the text ends too early"),
        ("{", "line 1 column 1"),
        ("{\n \"ranks\": 2,\n \"ports\": \"tri\" }", "line 3 column"),
        ("[1, 2]", "not a schedule"),
        ("\u{0}", "line 1 column 1"),
    ] {
        let message = failure(oneport("simulate --schedule -").write_stdin(content), 2);
        assert!(message.contains("standard input"), "{message}");
        assert!(message.contains(expected), "{content}: {message}");
    }
    let message = failure(
        oneport("simulate --schedule -").write_stdin(vec![0xff, 0xfe]),
        2,
    );
    assert!(message.contains("not a text file"), "{message}");
    for (from, to, expected) in [
        ("\"ranks\": 2", "\"ranks\": 3", "there are 2 programs"),
        ("\"to\": 1", "\"to\": 7", "peer 7 is not one of 2 ranks"),
        ("[[0,4]]}} ], [", "[[2,4]]}} ], [", "leaves the buffer"),
        (
            "[[0,4]]}} ], [",
            "[[18446744073709551615,18446744073709551615]]}} ], [",
            "leaves the buffer",
        ),
        ("\"ported\": 1", "\"ported\": 0", "at least one port"),
        (
            "\"len\": 4",
            "\"len\": 18446744073709551615",
            "limit of 2^60",
        ),
        ("\"kind\"", "\"sort\"", "line 1 column"),
        ("\"send\"", "\"sned\"", "line 3 column"),
    ] {
        let content = PAIR.replacen(from, to, 1);
        assert_ne!(content, PAIR, "{from}");
        let message = failure(oneport("simulate --schedule -").write_stdin(content), 2);
        assert!(message.contains(expected), "{to}: {message}");
    }
    for (arguments, expected) in [
        ("-p 3", "the schedule has 2 ranks, not 3"),
        ("--root 1", "the schedule's root is 0, not 1"),
    ] {
        let mut command = oneport(&format!("simulate --schedule - {arguments}"));
        let message = failure(command.write_stdin(PAIR), 2);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_schedule_that_never_completes_fails_its_check() {
    let dangling = PAIR.replacen("{\"send\": {\"to\": 1, \"spans\": [[0,4]]}}", "", 1);
    let mut command = oneport("simulate --schedule -");
    let output = command.write_stdin(dangling).assert().code(1);
    let message = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    let lines: Vec<&str> = message.lines().collect();
    assert!(
        lines[0].starts_with("note: the schedule is wrong: "),
        "{message}"
    );
    assert!(lines[1].contains("match"), "{message}");
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    for arguments in [
        vec!["list"],
        vec!["list", "--json"],
        vec!["--help"],
        vec![
            "plan",
            "reduce",
            "-p",
            "300",
            "-a",
            "chain",
            "--segments",
            "50",
            "--json",
        ],
        vec!["simulate", "reduce", "-p", "3000", "-a", "binomial", "-v"],
    ] {
        let mut child = Process::new(env!("CARGO_BIN_EXE_oneport"))
            .args(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut message = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut message)
            .unwrap();
        assert_eq!(
            child.wait().unwrap().code(),
            Some(0),
            "{arguments:?}: {message}"
        );
        assert_eq!(message, "", "{arguments:?}");
    }
}

#[test]
fn every_command_refuses_a_root_that_does_not_exist() {
    let folder = folder("cli_roots");
    let pair_with = |kind: &str, root: &str| {
        let collective = format!("{{\"kind\": \"{kind}\"{root}}}");
        let from = "{\"kind\": \"broadcast\", \"root\": 0}";
        PAIR.replacen(from, &collective, 1)
    };
    let bad = [
        ("broadcast", ", \"root\": 9", "root 9"),
        ("reduce", ", \"root\": 2", "root 2"),
        (
            "gather",
            ", \"root\": 18446744073709551615",
            "root 18446744073709551615",
        ),
        ("scatter", ", \"root\": 2", "root 2"),
        ("multicast", ", \"root\": 2, \"targets\": [1]", "root 2"),
        (
            "multicast",
            ", \"root\": 0, \"targets\": [1, 5]",
            "target 5",
        ),
    ];
    for (i, (kind, root, invalid)) in bad.into_iter().enumerate() {
        let file = folder.join(format!("{i}.json"));
        std::fs::write(&file, pair_with(kind, root)).unwrap();
        for command in ["plan", "check", "simulate", "run", "draw"] {
            let arguments = format!("{command} --schedule {}", file.display());
            let message = failure(&mut oneport(&arguments), 2);
            let expected = format!("{kind}: {invalid} is not one of 2 ranks");
            assert!(message.contains(&expected), "{command}: {message}");
        }
    }
    // `reduce` has a root, `allreduce` has none: both refuse a root that does not exist.
    for command in [
        "plan reduce",
        "check reduce",
        "simulate reduce",
        "run reduce",
        "compare reduce",
        "draw reduce",
        "tune reduce",
        "plan allreduce",
        "check allreduce",
        "check allreduce -a all",
        "simulate allreduce",
        "run allreduce",
        "compare allreduce",
        "draw allreduce",
        "tune allreduce",
        "simulate broadcast -p 5000 -a chain --segments 5000",
    ] {
        let ranks = if command.contains("-p") { "" } else { "-p 2" };
        let root = if command.contains("-p") { 5000 } else { 2 };
        let message = failure(&mut oneport(&format!("{command} {ranks} --root {root}")), 2);
        assert!(
            message.contains(&format!("root {root} is not one of")),
            "{command}: {message}"
        );
    }
    let rootless = pair_with("allreduce", "");
    for command in ["plan", "check", "simulate", "run", "draw"] {
        let mut command = oneport(&format!("{command} --schedule - --root 2"));
        let message = failure(command.write_stdin(rootless.clone()), 2);
        assert!(
            message.contains("root 2 is not one of 2 ranks"),
            "{message}"
        );
    }
}

#[test]
fn a_paced_run_that_takes_days_is_refused() {
    let arguments = "run broadcast -p 2 --clock paced --alpha 1e30s";
    let message = failure(&mut oneport(arguments), 2);
    assert!(message.contains("more than 24 hours"), "{message}");
}

#[test]
fn every_command_refuses_costs_above_the_limit() {
    let folder = folder("cli_costs");
    let file = |name: &str, content: &str| {
        let path = folder.join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let pairs = r#"{"alpha": [[null, 1], [1e308, null]], "beta": [[null, 1], [1, null]]}"#;
    let pieces = r#"{"alpha": 1, "beta": 1, "pieces": {"transfer": [{"from": 0, "alpha": 1, "beta": 2e300}]}}"#;
    let costs = [
        "--alpha 1e308 --beta 1e308".to_string(),
        "--alpha 1e299s".to_string(),
        "--gamma 2e100".to_string(),
        "--gamma-copy 1e101".to_string(),
        format!("--costs {}", file("pairs.json", pairs)),
        format!(
            "--profile {}",
            file("profile.json", r#"{"alpha": 1e200, "beta": 1}"#)
        ),
        format!("--profile {}", file("pieces.json", pieces)),
    ];
    for command in [
        "plan broadcast",
        "check broadcast",
        "check broadcast -a all",
        "simulate broadcast",
        "run broadcast",
        "compare broadcast",
        "draw broadcast",
        "tune broadcast",
        "guidelines",
        "simulate --schedule PAIR",
        "run --schedule PAIR",
    ] {
        let command = command.replace("PAIR", &file("pair.json", PAIR));
        for cost in &costs {
            let arguments = format!("{command} -p 2 {cost}");
            let message = failure(&mut oneport(&arguments), 2);
            assert!(
                message.contains("too large, a cost is at most 1e100"),
                "{arguments}: {message}"
            );
            assert_eq!(message.lines().count(), 1, "{arguments}: {message}");
        }
    }
    // The maximum itself is accepted.
    let maximum = "compare broadcast -p 3 --bytes 100 --alpha 1e100 --beta 1e100 --gamma 1e100 --gamma-copy 1e100";
    assert!(json(maximum)["rows"][0]["time"].as_f64().unwrap() > 1e102);
    let small = "compare broadcast -p 3 --bytes 100 --alpha 1e100 --beta 1e-300";
    assert!(json(small)["rows"][0]["time"].as_f64().unwrap() >= 1e100);
}

/// Few options fit a screen; all stand in the long help.
#[test]
fn short_help_leaves_out_groups_and_prose() {
    let commands = [
        "plan", "check", "simulate", "run", "compare", "draw", "tune",
    ];
    for command in commands {
        let [short, long] = ["-h", "--help"].map(|help| text(&format!("{command} {help}")));
        assert!(short.lines().count() < 62, "{short}");
        for left_out in ["\nMachine:", "\nVector:", "\nBlocks of unequal size:"] {
            assert!(!short.contains(left_out), "{short}");
            // A sweep has sizes of its own.
            let is_long = long.contains(left_out);
            assert!(is_long || command == "tune", "{long}");
        }
        assert!(short.contains("Examples:\n"), "{short}");
        assert!(
            long.lines().count() > 2 * short.lines().count(),
            "{command}"
        );
    }
}

/// A title of help is for the options below it, and not for those that follow them.
#[test]
fn short_help_has_the_options_of_a_command_of_its_own() {
    for (command, own) in [
        ("plan", &["--format", "--table", "--output"][..]),
        ("check", &["--like", "--output"]),
        ("export goal", &["--form", "--output"]),
        ("export dot", &["--rounds"]),
    ] {
        let short = text(&format!("{command} -h"));
        for option in own {
            assert!(short.contains(option), "{command} {option}: {short}");
        }
    }
}

#[test]
fn completions_and_the_manual_name_every_command() {
    let commands = [" plan", " check", " steady"];
    for form in ["bash", "zsh", "fish", "elvish", "powershell", "man"] {
        let printed = text(&format!("completions {form}"));
        let printed = printed.replace("\\-", "-");
        for command in commands {
            let word = command.trim();
            assert!(printed.contains(word), "{form}: {command}");
        }
        assert!(
            printed.contains("max-errors") && !printed.contains("oneport-cli"),
            "{form}"
        );
    }
    failure(&mut oneport("completions csh"), 2);
}

#[test]
fn colours_are_for_terminals() {
    let compare = || oneport("compare reduce -p 4 --bytes 8");
    let printed = |mut command: assert_cmd::Command| {
        let output = command.assert().success().get_output().clone();
        String::from_utf8(output.stdout).unwrap()
    };
    let plain = printed(compare());
    assert!(!plain.contains('\u{1b}'), "{plain}");
    let mut forced = compare();
    forced.env("CLICOLOR_FORCE", "1").env_remove("NO_COLOR");
    let coloured = printed(forced);
    let bold: Vec<_> = coloured
        .lines()
        .filter(|l| l.starts_with("\u{1b}[1m"))
        .collect();
    // The fastest: a row with three lines of names.
    assert_eq!(bold.len(), 3, "{coloured}");
    assert_eq!(
        coloured.replace("\u{1b}[1m", "").replace("\u{1b}[0m", ""),
        plain
    );
}

/// What is printed on standard error by a command that succeeds.
fn notes(arguments: &str) -> String {
    let output = oneport(arguments).assert().success().get_output().clone();
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_cost_without_a_unit_beside_others_is_noted() {
    let said = notes("simulate reduce -p 4 --alpha 2 --beta 10GB/s");
    let note = "--alpha has no unit, but --beta has: 2 is taken as nanoseconds";
    assert!(said.contains(note), "{said}");
    for costs in [
        "--alpha 2 --beta 1",
        "--alpha 2us --beta 1ns",
        "--alpha 2us --beta 0",
    ] {
        let said = notes(&format!("simulate reduce -p 4 {costs}"));
        assert!(!said.contains("has no unit"), "{costs}: {said}");
    }
}

#[test]
fn a_schedule_from_a_file_has_its_root() {
    let mut command = oneport("simulate --schedule - --root free");
    let message = failure(command.write_stdin(PAIR), 2);
    assert!(
        message.contains("a schedule from a file has its root"),
        "{message}"
    );
}

#[test]
fn goal_is_written_in_the_form_that_can_have_the_schedule() {
    let export = "export goal broadcast -p 4 -a binomial --ports uni";
    assert!(text(export).contains("\"timed\":true"));
    let said = notes(export);
    let why = "those with unidirectional ports do not; the timed form may take it, and is written";
    assert!(said.contains(why), "{said}");
    let message = failure(&mut oneport(&format!("{export} --form uniform")), 2);
    assert!(message.contains("unidirectional"), "{message}");
    // The uniform form is the default still.
    let uniform = "export goal broadcast -p 4 -a binomial";
    assert!(!text(uniform).contains("\"timed\""));
    // Neither form can: the reason of the first is told.
    let message = failure(&mut oneport(&format!("{export} --overlap")), 2);
    assert!(message.contains("unidirectional"), "{message}");
}

#[test]
fn an_explanation_of_a_rank_ends_with_its_slack() {
    let simulate = "simulate reduce -p 4 -a binomial --bytes 8 --alpha 10 --beta 1 --explain";
    let all = text(simulate);
    assert!(
        all.contains("\nslack:\n") && all.contains("done before the end by"),
        "{all}"
    );
    let one = text(&format!("{simulate} 3"));
    let end = "\nslack: rank 3 is done 18 before the end\n";
    assert!(
        one.ends_with(end) && one.contains("0 to 18: it starts at once"),
        "{one}"
    );
}

/// The library that serves programs is beside the command, or it is said how to make it.
#[test]
fn preload_shows_the_library_or_how_to_make_it() {
    let output = oneport("preload --json").output().unwrap();
    if output.status.success() {
        let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let library = shown["library"].as_str().unwrap();
        assert!(std::path::Path::new(library).is_file(), "{library}");
        let launch = shown["launch"]["Open MPI"].as_str().unwrap();
        assert!(
            launch.contains(&format!("LD_PRELOAD={library} ")),
            "{launch}"
        );
    } else {
        let error = String::from_utf8_lossy(&output.stderr);
        let advice = "`cargo build --release -p oneport-preload` makes it";
        assert!(error.contains(advice), "{error}");
    }
}
