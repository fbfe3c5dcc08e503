//! Tests of `oneport draw` and `oneport run --trace`: the files they write and their errors.

use std::path::Path;

use assert_cmd::Command;

use super::boxes;
use super::svg::{assert_inside, read};
use crate::support::run::failure;

fn oneport(arguments: &str, folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oneport"));
    command
        .args(arguments.split_whitespace())
        .current_dir(folder);
    command
}

fn folder(name: &str) -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A picture without its foot, which names the command line.
fn without_foot(svg: &str) -> String {
    let lines = svg.split_inclusive('\n');
    lines
        .filter(|line| !line.contains("font-size=\"9\""))
        .collect()
}

#[test]
fn draw_writes_drawings_and_traces() {
    let folder = folder("draw_writes");
    let reduce = "draw reduce -p 6 --bytes 12 --segments 3 -a chain --alpha 1 --beta 1";
    let stdout = |arguments: &str| {
        let output = oneport(arguments, &folder)
            .assert()
            .success()
            .get_output()
            .clone();
        String::from_utf8(output.stdout).unwrap()
    };
    let chart = stdout(reduce);
    assert_eq!(boxes(&chart).len(), 30, "{chart}");
    assert!(
        chart.contains("reduce by chain, p = 6, q = 3: time 35"),
        "{chart}"
    );
    for (options, file) in [
        ("", "a.svg"),
        ("--as tree", "b.svg"),
        ("--as traffic", "c.SVG"),
        ("", "d.json"),
        ("--as trace", "e.json"),
    ] {
        assert_eq!(stdout(&format!("{reduce} {options} -o {file}")), "");
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        if file.ends_with("json") {
            let trace: serde_json::Value = serde_json::from_str(&text).unwrap();
            let events = trace["traceEvents"].as_array().unwrap();
            // 15 transfers, each with a send, a receive and a combine event.
            assert_eq!(events.iter().filter(|e| e["ph"] == "X").count(), 45);
        } else {
            assert_inside(&read(&text));
        }
    }
    let written = std::fs::read_to_string(folder.join("a.svg")).unwrap();
    assert_eq!(without_foot(&written), without_foot(&chart));
    assert_eq!(
        stdout(&format!("{reduce} --json")),
        std::fs::read_to_string(folder.join("d.json")).unwrap()
    );
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 5);
    let dark = stdout(&format!("{reduce} --dark"));
    let inverted = oneport_pictures::dark(&chart);
    assert_eq!(without_foot(&dark), without_foot(&inverted));
    assert_inside(&read(&dark));
    for refused in ["--as trace", "--json", "--trace f.json"] {
        let arguments = format!("{reduce} --dark {refused}");
        oneport(&arguments, &folder).assert().code(2).stdout("");
    }
    // A schedule that is not a tree is drawn as traffic, with a note.
    let output = oneport("draw reduce -p 8 -a butterfly --as tree", &folder)
        .assert()
        .success()
        .get_output()
        .clone();
    assert!(String::from_utf8_lossy(&output.stderr).contains("do not form one tree"));
    assert!(String::from_utf8_lossy(&output.stdout).contains("traffic instead"));
}

#[test]
fn a_trace_is_written_alone_or_with_a_drawing() {
    let folder = folder("draw_trace");
    let reduce =
        "draw reduce -p 5 -a bi-greedy --bytes 12 --segments 3 --alpha 1 --beta 1 --gamma 1";
    let stdout = |arguments: &str| {
        let output = oneport(arguments, &folder).assert().success();
        String::from_utf8(output.get_output().stdout.clone()).unwrap()
    };
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    assert_eq!(stdout(&format!("{reduce} --trace alone.json")), "");
    assert_eq!(read("alone.json"), stdout(&format!("{reduce} --json")));
    assert_eq!(
        stdout(&format!("{reduce} -o both.svg --trace both.json")),
        ""
    );
    assert_eq!(read("both.json"), read("alone.json"));
    assert_eq!(
        without_foot(&read("both.svg")),
        without_foot(&stdout(reduce))
    );
    let traffic = stdout(&format!("{reduce} --as traffic --trace traffic.json"));
    assert!(traffic.starts_with("<svg"), "{traffic}");
    assert_eq!(read("traffic.json"), read("alone.json"));
}

#[test]
fn run_writes_a_trace() {
    let folder = folder("run_writes");
    let run = "run reduce -p 2 --bytes 4KiB --segments 4 -a chain --repetitions 2 --trace";
    for file in ["r.svg", "r.json"] {
        let output = oneport(&format!("{run} {file}"), &folder)
            .assert()
            .success()
            .get_output()
            .clone();
        assert!(String::from_utf8_lossy(&output.stdout).contains("verified"));
    }
    let chart = std::fs::read_to_string(folder.join("r.svg")).unwrap();
    assert!(
        boxes(&chart).len() <= 8 && chart.contains("recorded run"),
        "{chart}"
    );
    let text = std::fs::read_to_string(folder.join("r.json")).unwrap();
    let trace: serde_json::Value = serde_json::from_str(&text).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    assert_eq!(events.iter().filter(|e| e["ph"] == "X").count(), 8);
    assert_eq!(trace["otherData"]["clock"], "wall");
}

#[test]
fn failures_give_one_message_and_write_no_file() {
    let folder = folder("draw_fails");
    std::fs::write(folder.join("keep.svg"), "old").unwrap();
    for (arguments, expected) in [
        ("draw", "give a COLLECTIVE"),
        (
            "draw reduce -o no/such/folder.svg",
            "cannot write no/such/folder.svg",
        ),
        ("draw reduce -o chart.png", "FILE.svg"),
        ("draw reduce -o page.htlm", "pages as FILE.html"),
        ("draw reduce --trace chart.svg", "--trace writes JSON"),
        ("draw reduce -o c.json --trace c.json", "name the same file"),
        (
            "draw reduce -o chart.svg --trace no/such.json",
            "cannot write no/such.json",
        ),
        ("draw reduce --as gantt -o chart.json", "holds a trace"),
        ("draw reduce --as trace -o chart.svg", "FILE.json"),
        ("draw reduce --json --as tree", "--json writes a trace"),
        ("draw reduce --json -o keep.svg", "FILE.json"),
        (
            "draw reduce -p 512 --bytes 1MiB --segments 200 -a chain -o keep.svg",
            "50000",
        ),
        (
            "draw reduce -p 20000 -a binomial --as tree -o keep.svg",
            "too large to be drawn",
        ),
        (
            "draw reduce -p 20000 -a binomial --as traffic -o keep.svg",
            "at most 2048 ranks",
        ),
        ("draw reduce -p 20000 -a binomial -o keep.svg", "too tall"),
        (
            "draw reduce -p 9000 -a chain --segments 100 -o big.json",
            "1000000",
        ),
        ("draw --schedule missing.json", "cannot read missing.json"),
        ("run reduce -p 2 --trace chart.txt", "FILE.svg"),
        (
            "run reduce -p 2 --trace a.json --histogram a.json",
            "name the same file",
        ),
        (
            "run reduce -p 2 --trace no/such/folder.json",
            "cannot write no/such/folder.json",
        ),
    ] {
        let output = oneport(arguments, &folder)
            .assert()
            .code(2)
            .get_output()
            .clone();
        let stderr = String::from_utf8_lossy(&output.stderr);
        let errors: Vec<_> = stderr
            .lines()
            .filter(|l| !l.starts_with("note: "))
            .collect();
        assert_eq!(errors.len(), 1, "{arguments}: {stderr}");
        assert!(
            errors[0].starts_with("error: ") && stderr.contains(expected),
            "{arguments}: {stderr}"
        );
        assert!(output.stdout.is_empty(), "{arguments}");
    }
    assert_eq!(
        std::fs::read_to_string(folder.join("keep.svg")).unwrap(),
        "old"
    );
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn pictures_name_their_source_unless_they_are_plain() {
    let folder = folder("draw_plain");
    let drawn = |options: &str, file: &str| {
        let draw = format!("draw reduce -p 4 -a chain --bytes 4 --segments 2 {options} -o {file}");
        oneport(&draw, &folder).assert().success();
        let drawn = std::fs::read_to_string(folder.join(file)).unwrap();
        assert!(drawn.ends_with("</svg>\n") || drawn.ends_with("</html>\n"));
        (draw, drawn)
    };
    let version = concat!("oneport ", env!("CARGO_PKG_VERSION"));
    for (options, file) in [
        ("", "a.svg"),
        ("--as tree", "b.svg"),
        ("--as traffic", "c.svg"),
        ("", "d.html"),
    ] {
        let (draw, named) = drawn(options, file);
        assert!(named.contains(version), "{draw}");
        // The last word: long lines are wrapped.
        assert!(named.contains(file), "{draw}");
        let (_, plain) = drawn(&format!("{options} --plain"), file);
        assert!(!plain.contains(version) && !plain.contains(file), "{draw}");
        // A page keeps its heading.
        assert_eq!(plain.contains("chain"), file == "d.html", "{draw}");
    }
    let attribute = |svg: &str, name: &str| {
        let rest = svg.split_once(&format!(" {name}=\"")).unwrap().1;
        rest.split_once('"').unwrap().0.to_string()
    };
    let size = |svg: &str| {
        let view = attribute(svg, "viewBox");
        let numbers = view.split(' ').map(|n| n.parse::<f64>().unwrap());
        let [_, _, w, h] = numbers.collect::<Vec<_>>()[..] else {
            panic!("{view}")
        };
        (w, h)
    };
    // A tree is scaled; a Gantt chart is laid out for the width, so that its text can be read
    // there.
    for (options, is_scaled) in [("--as tree", true), ("", false)] {
        let (_, wide) = drawn(&format!("{options} --plain --width 84mm"), "e.svg");
        let (_, own) = drawn(&format!("{options} --plain"), "f.svg");
        assert_eq!(attribute(&wide, "width"), "84mm");
        assert_eq!(size(&wide) == size(&own), is_scaled);
        let (w, h) = size(&wide);
        let pixels = 84.0 * 96.0 / 25.4;
        assert!(is_scaled || (w - pixels).abs() <= 1.0, "{w}");
        let height = attribute(&wide, "height");
        let height = height.trim_end_matches("mm").parse::<f64>().unwrap();
        assert!((height - 84.0 * h / w).abs() < 0.01, "{height}");
    }
    let printed = oneport("--version", &folder)
        .assert()
        .success()
        .get_output()
        .clone();
    let printed = String::from_utf8(printed.stdout).unwrap();
    // The commit follows in a release build.
    assert!(printed.starts_with(version), "{printed}");
}

#[test]
fn several_schedules_are_drawn_on_a_page_only() {
    let folder = folder("draw_several");
    oneport("plan reduce -p 4 -a chain -o mine.json", &folder)
        .assert()
        .success();
    for arguments in [
        "draw reduce -p 4 -a chain,binomial -o x.svg",
        "draw reduce -p 4 -a chain,binomial --as tree",
        "draw reduce -p 4 -a chain,binomial --trace x.json",
        "draw reduce -p 4 -a chain,binomial -o x.html --trace x.json",
        "draw --schedule mine.json --schedule mine.json -o x.svg",
        "draw reduce -p 4 --width 84mm -o x.html",
        "draw reduce -p 4 --width 84 -o x.svg",
        "draw reduce -p 4 --plain -o x.json",
    ] {
        let output = oneport(arguments, &folder)
            .assert()
            .code(2)
            .get_output()
            .clone();
        let message = String::from_utf8(output.stderr).unwrap();
        let words = ["side by side", "--width", "--plain"];
        assert!(
            words.iter().any(|word| message.contains(word)),
            "{arguments}: {message}"
        );
        assert!(!folder.join("x.svg").exists() && !folder.join("x.html").exists());
    }
    let two = "draw --schedule mine.json --schedule mine.json -o x.html";
    oneport(two, &folder).assert().success();
    let page = std::fs::read_to_string(folder.join("x.html")).unwrap();
    assert!(page.contains("by chain (mine.json), chain (mine.json)</h1>"));
}

#[test]
fn pictures_of_runs_and_series_fit_into_papers() {
    let folder = folder("plain_runs");
    for (command, file) in [
        (
            "run reduce -p 2 --bytes 64 --repetitions 1 --trace",
            "run.svg",
        ),
        ("steady --generate fig3 --draw", "platform.svg"),
        ("steady --generate fig3 --gantt", "period.svg"),
    ] {
        let made = format!("{command} {file} --plain --width 84mm");
        oneport(&made, &folder).assert().success();
        let picture = std::fs::read_to_string(folder.join(file)).unwrap();
        assert!(picture.starts_with("<svg ") && picture.contains("width=\"84mm\""));
        assert!(!picture.contains("oneport "), "{file}");
    }
    for command in [
        "run reduce -p 2",
        "run reduce -p 2 --bytes 8..64",
        "steady --generate fig3",
    ] {
        let message = failure(&mut oneport(&format!("{command} --plain"), &folder), 2);
        assert!(message.contains("--plain is for pictures"), "{message}");
    }
}

#[test]
fn a_legend_says_that_parts_overlap() {
    let folder = folder("overlapping");
    for (algorithm, heading) in [
        ("rabenseifner", "which overlap (first-last element)"),
        ("circulant", "Segments (first-last element)"),
    ] {
        let draw = format!("draw allreduce -p 8 -a {algorithm} --bytes 1KiB -o gantt.svg");
        oneport(&draw, &folder).assert().success();
        let svg = std::fs::read_to_string(folder.join("gantt.svg")).unwrap();
        assert!(svg.contains(heading), "{algorithm}");
        let word = if algorithm == "circulant" {
            "segment"
        } else {
            "part"
        };
        for other in ["segment", "part"] {
            let named = svg.contains(&format!(", {other} 0 (elements "));
            assert_eq!(named, other == word, "{algorithm}: {other}");
        }
    }
}

/// What is piped is the picture.
#[test]
fn a_terminal_gets_no_picture() {
    let folder = folder("terminal");
    let draw = "draw reduce -p 4 --bytes 4";
    let piped = oneport(draw, &folder).assert().success();
    assert!(piped.get_output().stdout.starts_with(b"<svg"));
    let command = format!("{} {draw}", env!("CARGO_BIN_EXE_oneport"));
    let mut terminal = std::process::Command::new("script");
    terminal.args(["-qec", &command, "/dev/null"]);
    let Ok(output) = terminal.current_dir(&folder).output() else {
        eprintln!("SKIPPED: without `script` there is no terminal here");
        return;
    };
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("error: a picture is no text"), "{shown}");
    assert_eq!(output.status.code(), Some(2));
}
