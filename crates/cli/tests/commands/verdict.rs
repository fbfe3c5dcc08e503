//! Tests that every command that reads a schedule says if it is wrong.

use assert_cmd::Command;
use oneport::{Collective, CostModel, Ports, Schedule, Span, Step};
use oneport_app::ENTRIES;
use oneport_pictures::{Caption, Shown, Unit, page};
use serde_json::{Value, json as value};

use super::cli::{PAIR, folder};
use crate::support::run::{failure, json, oneport};

/// A copy of 4 elements to 3 others.
const COPY: &str = r#"{ "ranks": 1, "ports": "bi", "collective": {"kind": "broadcast", "root": 0},
  "layout": [ {"len": 8, "input": [[0,4]], "output": [[0,4]]} ],
  "programs": [ [ {"copy": {"src": [[0,4]], "dst": [[4,3]]}} ] ] }"#;
/// Both ranks pass on what they have received.
const DEADLOCK: &str = r#"{ "ranks": 2, "ports": "bi", "collective": {"kind": "allgather"},
  "layout": [ {"len": 2, "input": [[0,1]], "output": [[0,2]]}, {"len": 2, "input": [[1,1]], "output": [[0,2]]} ],
  "programs": [ [ {"recv": {"from": 1, "spans": [[1,1]]}}, {"send": {"to": 1, "spans": [[1,1]]}} ],
                [ {"recv": {"from": 0, "spans": [[0,1]]}}, {"send": {"to": 0, "spans": [[0,1]]}} ] ] }"#;
/// The root's operand is the right one.
const SWAPPED: &str = r#"{ "ranks": 2, "ports": "bi", "collective": {"kind": "reduce", "root": 0},
  "layout": [ {"len": 4, "input": [[0,4]], "output": [[0,4]]}, {"len": 4, "input": [[0,4]], "output": []} ],
  "programs": [ [ {"recv_combine": {"from": 1, "spans": [[0,4]], "order": "theirs_first"}} ],
                [ {"send": {"to": 0, "spans": [[0,4]]}} ] ] }"#;

/// Commands that make something of a schedule other than a run or a proof.
const COMMANDS: &[&str] = &[
    "simulate",
    "simulate --json",
    "simulate -v --critical-path",
    "plan",
    "plan --format rounds",
    "plan --format dot",
    "plan --json",
    "plan -o FOLDER.json",
    "draw",
    "draw -o FOLDER.svg",
    "draw --as page",
    "draw --as tree",
    "draw --as traffic",
    "draw --as trace",
    "export goal",
    "export msccl",
    "export dot --rounds",
    "export simgrid --force -o FOLDER",
    "export chakra --eager all --alpha 1us --beta 1ns --force -o FOLDER",
];

#[test]
fn all_exports_are_among_the_commands() {
    let exports = ENTRIES.iter().map(|entry| entry.name);
    // A plan of MSCCL++ is no broadcast or reduce, which the schedules here are.
    let exports = exports.filter(|name| name.starts_with("export ") && !name.ends_with("mscclpp"));
    for export in exports {
        let is_tried = COMMANDS
            .iter()
            .any(|command| command.split(" -").next() == Some(export));
        assert!(is_tried, "{export} is not among COMMANDS");
    }
}

/// The wrong schedules, and what is wrong with them: their name, options, text and error.
fn wrong_schedules() -> Vec<(&'static str, &'static str, String, &'static str)> {
    let combine = COPY
        .replace("broadcast", "reduce")
        .replace("copy", "combine");
    let combine = combine.replace("[[4,3]]", r#"[[4,3]], "order": "mine_first""#);
    let lost = PAIR.replace(r#""spans": [[0,4]]"#, r#""spans": [[0,3]]"#);
    let unmatched = PAIR.replacen(r#"{"send": {"to": 1, "spans": [[0,4]]}}"#, "", 1);
    let lengths = PAIR.replacen(r#""spans": [[0,4]]"#, r#""spans": [[0,3]]"#, 1);
    vec![
        ("lost", "", lost, "expected x0 [3], found nothing"),
        ("unmatched", "", unmatched, "no partner"),
        ("lengths", "", lengths, "expects 4 elements"),
        ("copy", "", COPY.into(), "the destination 3"),
        ("combine", "", combine, "the destination 3"),
        ("deadlock", "", DEADLOCK.into(), "deadlock: rank 0 step 1"),
        (
            "swapped",
            "--ordered --dtype f32",
            SWAPPED.into(),
            "out of rank order",
        ),
    ]
}

/// A command on a schedule.
fn on(schedule: &str, arguments: &str) -> Command {
    let place = concat!(env!("CARGO_TARGET_TMPDIR"), "/verdict_simgrid");
    let arguments = arguments.replace("FOLDER", place);
    let mut command = oneport(&format!("{arguments} --schedule -"));
    command.write_stdin(schedule);
    command
}

/// The exit code, what is printed, and the notes that call the schedule wrong.
fn done(mut command: Command) -> (i32, String, Vec<String>) {
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!stderr.contains("panicked"), "{stderr}");
    let notes = stderr.lines();
    let notes = notes.filter(|line| line.starts_with("note: the schedule is wrong: "));
    let notes = notes.map(str::to_string).collect();
    let printed = String::from_utf8(output.stdout).unwrap();
    (output.status.code().unwrap(), printed, notes)
}

#[test]
fn every_command_says_that_a_schedule_is_wrong() {
    for (name, options, schedule, error) in wrong_schedules() {
        for &command in COMMANDS {
            let what = format!("{command} of {name}");
            let (code, printed, notes) = done(on(&schedule, &format!("{command} {options}")));
            assert!(code <= 1, "{what}: {code}");
            assert_eq!(notes.len(), 1, "{what}: {notes:?}");
            assert!(notes[0].contains(error), "{what}: {notes:?}");
            let completes = ["lost", "copy", "combine", "swapped"].contains(&name);
            let drawn = command.starts_with("draw") && ["unmatched", "deadlock"].contains(&name);
            assert!(!(completes || drawn) || code == 0, "{what}: {code}");
            // Nothing happens, so the waits are the whole chart.
            if command == "draw" && drawn {
                let count = |text: &str| printed.matches(text).count();
                let waits = match name {
                    "deadlock" => 4,
                    _ => 1,
                };
                assert_eq!(count("class=\"wait\""), waits, "{what}: {printed}");
                assert_eq!(count("in the cycle<"), waits / 4 * 4, "{what}: {printed}");
            }
            if command == "simulate --json" && completes {
                let found: Value = serde_json::from_str(&printed).unwrap();
                assert_eq!(found["correct"], false, "{what}");
            }
        }
        for command in ["run", "check"] {
            let (code, _, notes) = done(on(&schedule, &format!("{command} {options}")));
            assert_eq!((code, notes.len()), (1, 0), "{command} of {name}");
        }
    }
}

#[test]
fn a_right_schedule_is_called_right() {
    for schedule in [PAIR, SWAPPED] {
        for &command in COMMANDS {
            let (code, printed, notes) = done(on(schedule, command));
            assert_eq!((code, notes.len()), (0, 0), "{command}: {notes:?}");
            if command == "simulate --json" {
                let found: Value = serde_json::from_str(&printed).unwrap();
                assert_eq!(found["correct"], true);
            }
        }
    }
    // Planned schedules are not proved each time.
    assert_eq!(json("simulate reduce -p 4")["correct"], Value::Null);
    assert_eq!(done(on(SWAPPED, "run --dtype f32")).0, 0);
}

#[test]
fn an_imported_schedule_that_is_wrong_is_imported_with_a_note() {
    let place = folder("verdict_import");
    for (name, _, schedule, error) in wrong_schedules() {
        let path = place.join(format!("{name}.xml"));
        let (code, text, _) = done(on(&schedule, "export msccl"));
        if code != 0 || ["deadlock", "swapped", "copy", "combine"].contains(&name) {
            // MSCCL knows neither of these: they are refused, or combined in any order.
            continue;
        }
        std::fs::write(&path, text).unwrap();
        let (code, _, notes) = done(oneport(&format!("import msccl {}", path.display())));
        assert_eq!((code, notes.len()), (0, 1), "{name}: {notes:?}");
        assert!(notes[0].contains(error), "{name}: {notes:?}");
    }
}

/// The solutions of the exercises in docs/teaching.md.
const TEACHING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/teaching");

#[test]
fn exercises_have_a_right_a_wasteful_and_a_wrong_solution() {
    let notes = [
        ("broadcast", vec!["held_already"]),
        ("reduce", vec!["unused", "combined_twice"]),
        ("allgather", vec!["held_already"; 4]),
    ];
    for (exercise, kinds) in notes {
        let of = |verdict| format!("check --schedule {TEACHING}/{exercise}-{verdict}.json");
        let [right, wasteful] = ["right", "wasteful"].map(|verdict| json(&of(verdict)));
        for found in [&right, &wasteful] {
            assert_eq!(found["ok"], true, "{exercise}");
            let [own, least] = [&found["bytes"], &found["lower_bounds"]["bytes"]];
            assert_eq!(own == least, found == &right, "{exercise}");
        }
        assert_eq!(right["notes"], serde_json::json!([]));
        let noted = wasteful["notes"].as_array().unwrap();
        let noted: Vec<_> = noted
            .iter()
            .map(|note| note["kind"].as_str().unwrap())
            .collect();
        assert_eq!(noted, kinds, "{exercise}");
        let [time, best] = [&wasteful["time"], &wasteful["best"]["time"]];
        assert!(time.as_f64() > best.as_f64(), "{exercise}");
        let (code, printed, _) = done(oneport(&of("wrong")));
        assert!(code == 1 && !printed.contains("verdict"), "{printed}");
        let (code, printed, _) = done(oneport(&of("wasteful")));
        let line = "\nverdict     ";
        assert!(
            code == 0 && printed.contains(line) && printed.contains("  note: rank "),
            "{printed}"
        );
    }
    // No other file lies there.
    assert_eq!(std::fs::read_dir(TEACHING).unwrap().count(), 3 * 3);
}

#[test]
fn several_files_are_a_row_each() {
    let place = folder("verdict_several");
    std::fs::write(place.join("not.json"), "[]").unwrap();
    let teaching = |name| format!("{TEACHING}/{name}.json");
    let several = [
        teaching("reduce-right"),
        teaching("reduce-wasteful"),
        teaching("reduce-wrong"),
        place.join("not.json").display().to_string(),
        place.join("missing.json").display().to_string(),
    ];
    let command =
        |options: &str| oneport(&format!("check --schedule {} {options}", several.join(" ")));
    let (code, printed, _) = done(command(""));
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!((code, lines.len()), (1, 3 + 1 + 1 + 5 + 1 + 1), "{printed}");
    for (i, (name, result)) in several
        .iter()
        .zip(["correct", "correct", "WRONG", "UNREADABLE", "UNREADABLE"])
        .enumerate()
    {
        // Those that fail have a sentence.
        assert!(
            i < 2 || lines[i - 2].starts_with(&format!("{name}: ")),
            "{printed}"
        );
        assert!(
            lines[5 + i].starts_with(name.as_str()) && lines[5 + i].contains(result),
            "{printed}"
        );
    }
    let expected = "expected an object with ranks, ports, collective, layout and programs";
    assert!(lines[1].ends_with(expected), "{printed}");
    assert_eq!(lines[11], "2 correct (1 wasteful), 1 wrong, 2 unreadable");
    let (code, printed, _) = done(command("--json"));
    let found: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((code, &found["ok"]), (1, &Value::Bool(false)));
    let counts = value!({ "correct": 2, "wasteful": 1, "wrong": 1, "unreadable": 2 });
    assert_eq!(found["counts"], counts);
    let found = found["schedules"].as_array().unwrap();
    let right: Vec<_> = found.iter().map(|one| one["ok"] == true).collect();
    assert_eq!(right, [true, true, false, false, false]);
    for (one, name) in found.iter().zip(&several) {
        assert_eq!(one["schedule"], name.as_str());
        assert_eq!(
            one["error"].is_string(),
            name.starts_with(place.to_str().unwrap())
        );
    }
    let right = format!("check --schedule {} {}", several[0], several[1]);
    let (code, printed, _) = done(oneport(&right));
    assert_eq!(code, 0);
    assert!(printed.starts_with("schedule ") && printed.ends_with("\n2 correct (1 wasteful)\n"));
    failure(
        &mut oneport(&format!(
            "simulate --schedule {0} --schedule {0}",
            several[0]
        )),
        2,
    );
}

#[test]
fn results_are_a_table_for_other_programs() {
    let place = folder("verdict_csv");
    let check = |options: &str| {
        let mut command = oneport(&format!("check {options}"));
        done({
            command.current_dir(&place);
            command
        })
    };
    let [right, wasteful, wrong] =
        ["right", "wasteful", "wrong"].map(|name| format!("{TEACHING}/reduce-{name}.json"));
    let files = format!("{right} mine={wasteful} {wrong} no.json");
    let (code, _, _) = check(&format!("--schedule {files} -o all.csv"));
    assert_eq!(code, 1);
    let mut table = csv::Reader::from_path(place.join("all.csv")).unwrap();
    let head = table.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = table.records().map(Result::unwrap).collect();
    let column = |name: &str| {
        let at = head.iter().position(|title| title == name).unwrap();
        rows.iter()
            .map(|row| row[at].to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(column("schedule"), [&right, &wasteful, &wrong, "no.json"]);
    assert_eq!(
        column("result"),
        ["correct", "correct", "wrong", "unreadable"]
    );
    assert_eq!(column("name"), ["", "mine", "", ""]);
    assert_eq!(column("notes"), ["0", "2", "0", ""]);
    assert_eq!(column("messages"), ["3", "5", "", ""]);
    assert_eq!(column("least_messages"), ["3", "3", "", ""]);
    assert!(column("error")[2].contains("x3 twice") && column("error")[3].contains("cannot read"));
    // One file is a row, too.
    assert_eq!(check(&format!("--schedule {right} -o one.csv")).0, 0);
    let one = std::fs::read_to_string(place.join("one.csv")).unwrap();
    assert_eq!(one.lines().count(), 2);
    for (options, expected) in [
        ("reduce -p 4 -o x.csv", "--schedule"),
        ("reduce -p 4 --like x.json", "--schedule"),
        (
            "--schedule no.json -o x.txt",
            "x.txt: the table of results is written as FILE.csv",
        ),
    ] {
        let message = failure(oneport(&format!("check {options}")).current_dir(&place), 2);
        assert!(message.contains(expected), "{message}");
    }
}

/// Plans and algorithms whose steps race are wrong, not unreadable: the exit code says so, and the
/// page why.
#[test]
fn published_files_have_a_verdict_on_a_page() {
    let place = folder("verdict_page");
    let make = |arguments: &str| {
        let mut command = oneport(arguments);
        command.current_dir(&place).assert().success();
    };
    make("export mscclpp allreduce -p 2 -a recursive-doubling --bytes 4 -o plan.json");
    make("export msccl allgather -p 2 -a ring --bytes 4 -o ring.xml");
    let text = |name: &str| std::fs::read_to_string(place.join(name)).unwrap();
    let racy = text("plan.json").replacen(r#"{"name":"nop"},"#, "", 1);
    let endless = text("plan.json").replacen(r#""name":"signal""#, r#""name":"nop""#, 1);
    let unordered = text("ring.xml").replace(r#"depid="0" deps="0""#, r#"depid="-1" deps="-1""#);
    for (name, text) in [
        ("racy.json", racy),
        ("endless.json", endless),
        ("racy.xml", unordered),
    ] {
        std::fs::write(place.join(name), text).unwrap();
        let message = failure(
            oneport(&format!("check --schedule {name}")).current_dir(&place),
            1,
        );
        assert!(message.contains(name), "{message}");
    }
    let files = "plan.json racy.json endless.json ring.xml racy.xml";
    let mut command = oneport(&format!("check --schedule {files} -o corpus.html"));
    command.current_dir(&place);
    let (code, printed, _) = done(command);
    assert_eq!(code, 1);
    assert!(printed.contains("2 correct, 3 wrong\n"), "{printed}");
    let page = text("corpus.html");
    for expected in [
        "2 correct, 3 wrong",
        "<td class=\"name\">plan.json</td>",
        "<p class=\"wrong\"><b>racy.json</b>: wrong: race: gpu 0, thread block 0, op 2 (Put)",
        "waits forever",
        "neither comes after the other",
        ">at least</th>",
        "allreduce, 2 ranks, bi",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
}

#[test]
fn a_task_may_be_demanded() {
    let place = folder("verdict_like");
    let make = |arguments: &str| {
        let mut command = oneport(arguments);
        command.current_dir(&place).assert().success();
    };
    make("plan reduce -p 4 --bytes 6 -a chain -o task.json");
    make("plan allgather -p 4 --bytes 2 -a ring -o blocks.json");
    let empty = r#"{ "ranks": 4, "ports": "bi", "collective": {"kind": "reduce", "root": 0},
        "layout": [EMPTY, EMPTY, EMPTY, EMPTY], "programs": [[], [], [], []] }"#;
    let empty = empty.replace("EMPTY", r#"{"len": 0, "input": [], "output": []}"#);
    std::fs::write(place.join("empty.json"), empty).unwrap();
    let check = |options: &str| {
        let mut command = oneport(&format!("check {options}"));
        command.current_dir(&place);
        done(command)
    };
    let (code, printed, _) = check("--schedule empty.json");
    let note = "note: all buffers are empty and there are no steps: nothing was to be proved";
    assert!(code == 0 && printed.contains(note), "{printed}");
    for (plan, task, expected) in [
        ("reduce -p 4 --bytes 6 -a binomial", "task", ""),
        ("reduce -p 4 --bytes 6 -a chain --segments 3", "task", ""),
        (
            "reduce -p 4 --bytes 1",
            "task",
            "the input of rank 0 has 1 element, not 6",
        ),
        (
            "reduce -p 3 --bytes 6",
            "task",
            "its number of ranks is 3, not 4",
        ),
        (
            "reduce -p 4 --bytes 6 --root 1",
            "task",
            "it performs reduce with root 1, not reduce with root 0",
        ),
        (
            "allreduce -p 4 --bytes 6",
            "task",
            "it performs allreduce, not reduce with root 0",
        ),
        (
            "reduce -p 4 --bytes 6 --ports uni",
            "task",
            "its ports are uni, not bi",
        ),
        (
            "reduce -p 4 --bytes 6 --ported 2",
            "task",
            "its ports are bi x 2, not bi",
        ),
        ("allgather -p 4 --sizes 2,2,2,2", "blocks", ""),
        (
            "allgather -p 4 --sizes 2,3,1,2",
            "blocks",
            "the input of rank 1 has 3 elements, not 2",
        ),
    ] {
        make(&format!("plan {plan} -o mine.json"));
        let (code, printed, _) = check(&format!("--schedule mine.json --like {task}.json"));
        assert_eq!(code, i32::from(!expected.is_empty()), "{plan}: {printed}");
        let said = format!("another task than is asked for: {expected}");
        assert_eq!(
            printed.contains(&said),
            !expected.is_empty(),
            "{plan}: {printed}"
        );
    }
    let (code, printed, _) = check("--schedule task.json empty.json --like task.json --json");
    let found: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((code, &found["counts"]["wrong"]), (1, &value!(1)));
    let error = &found["schedules"][1]["errors"][0];
    assert_eq!(error["kind"], "task");
    // Both at another size.
    assert_eq!(
        check("--schedule task.json --like task.json --bytes 12").0,
        0
    );
    let message = failure(
        oneport("check --schedule task.json --like no.json").current_dir(&place),
        2,
    );
    assert!(message.contains("cannot read no.json"), "{message}");
}

#[test]
fn verdicts_say_at_what_size_they_hold() {
    let verdict = |file: &str, options: &str| {
        let check = format!("check --schedule {TEACHING}/{file}.json {options}");
        let (_, printed, _) = done(oneport(&check));
        let line = printed.lines().find(|line| line.starts_with("verdict"));
        line.unwrap_or_else(|| panic!("{printed}")).to_string()
    };
    for (file, options, expected) in [
        (
            "reduce-right",
            "",
            "its time is within 0.1% of the lower bound at 4 B; no algorithm here is faster",
        ),
        (
            "reduce-right",
            "--alpha 1 --beta 0",
            "its time is the lower bound at 4 B",
        ),
        (
            "reduce-wasteful",
            "",
            "5 messages carry 20 B, and 3 with 12 B are needed at least; its time is 1.5 times the \
             lower bound at 4 B; binomial takes 2.0008 us",
        ),
        (
            "allgather-right",
            "--bytes 1KiB",
            "times the lower bound at blocks of 1 KiB; ",
        ),
        (
            "allgather-wasteful",
            "",
            "16 messages carry 16 B, and 6 with 12 B are needed at least",
        ),
    ] {
        let found = verdict(file, options);
        assert!(found.contains(expected), "{file}: {found}");
    }
}

#[test]
fn a_family_is_a_row_for_each_number_of_ranks() {
    let place = folder("verdict_family");
    for p in [2, 3] {
        let plan = format!("plan broadcast -p {p} --bytes 4 -a binomial -o mine-{p}.json");
        oneport(&plan).current_dir(&place).assert().success();
    }
    let mut check = oneport("check --schedule mine-{p}.json -p 2..=4");
    check.current_dir(&place);
    let (code, printed, _) = done(check);
    assert_eq!(code, 1);
    for row in [
        "mine-2.json  binomial  broadcast, root 0, 2 ranks, bi  correct",
        "mine-3.json  binomial  broadcast, root 0, 3 ranks, bi  correct",
        "mine-4.json  -         -                               UNREADABLE",
    ] {
        assert!(printed.contains(row), "{printed}");
    }
}

#[test]
fn a_file_without_a_schedule_has_an_answer_in_json() {
    let (code, printed, _) = done(on("[]", "check --json"));
    let found: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((code, &found["ok"]), (2, &Value::Bool(false)));
    assert_eq!(found["schedule"], "standard input");
    assert!(
        found["error"].as_str().unwrap().contains("not a schedule"),
        "{printed}"
    );
}

#[test]
fn pages_show_the_longest_times_and_buffers() {
    let (code, printed, _) = done(on(PAIR, "draw --as page --alpha 1e100 --beta 1e100"));
    assert!(code == 0 && printed.contains("Proved:"), "{code}");
    let (code, printed, _) = done(on(SWAPPED, "draw --as page --ordered"));
    assert!(
        code == 0 && printed.contains("hold, for operators that commute."),
        "{code}"
    );

    // The first element lies more than 2^63 places behind the others.
    let scattered = [Span::new(1 << 63, 1), Span::new(0, 2)];
    let mut b = Schedule::builder(2, Ports::BI, Collective::Broadcast { root: 0 });
    b.layout(0, usize::MAX, scattered, scattered);
    b.layout(1, 3, [], [Span::new(0, 3)]);
    b.step(0, Step::send(1, scattered));
    b.step(1, Step::recv(0, Span::new(0, 3)));
    let (schedule, cost) = (b.build().unwrap(), CostModel::new(1e100, 1e100));
    let caption = Caption::new("far apart");
    let shown = Shown {
        name: "",
        schedule: &schedule,
        cost: &cost,
    };
    let page = page(&[shown], Unit::Plain, &caption).unwrap();
    assert!(page.contains("Proved:"));
}
