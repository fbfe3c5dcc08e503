//! Tests of sweeps over ranks and sizes, their files, and schedules from files beside algorithms.

use std::fs;
use std::path::Path;

use super::options::{folder, json_in};
use crate::support::run::{failure, json, oneport, text};

#[test]
fn a_sweep_has_the_times_of_its_points_and_writes_them_everywhere() {
    let folder = folder("points");
    let sweep = "broadcast -p 2,5..=6 --bytes 8..8KiB*32 -a chain,circulant";
    let files = "-o s.csv -o s.md -o s.tex -o s.svg -o s.html -o s.json";
    let all = json_in(&folder, &format!("compare {sweep} {files}"));
    let rows = all["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3 * 3 * 2);
    for row in rows {
        let (p, m, name) = (
            &row["ranks"],
            &row["bytes"],
            row["algorithm"].as_str().unwrap(),
        );
        let one = json(&format!("simulate broadcast -p {p} --bytes {m} -a {name}"));
        assert_eq!(one["time"], row["model_time"], "{row}");
        assert_eq!(one["lower_bound"], row["lower_bound"], "{row}");
        assert_eq!(one["messages"], row["messages"], "{row}");
    }
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let saved: serde_json::Value = serde_json::from_str(&read("s.json")).unwrap();
    assert_eq!(saved, all);
    let lines = read("s.csv").lines().count();
    assert_eq!(lines, 1 + rows.len());
    assert!(read("s.md").starts_with("| ranks | size | fastest |"));
    assert_eq!(read("s.tex").matches(" \\\\\n").count(), 1 + 9);
    assert!(read("s.tex").contains("\\toprule") && read("s.svg").starts_with("<svg "));
    let small = "-o small.svg --width 84mm --plain";
    json_in(&folder, &format!("compare {sweep} {small}"));
    let small = read("small.svg");
    assert!(small.contains("width=\"84mm\"") && !small.contains("oneport"));
    let page = read("s.html");
    assert!(page.contains("Which leads where") && page.contains("\"algorithm\":\"circulant\""));
    // One algorithm a point: a row for each.
    let simulated = json(&format!(
        "simulate {}",
        sweep.replace("chain,circulant", "chain")
    ));
    let chains = rows.iter().filter(|row| row["algorithm"] == "chain");
    let times = |rows: Vec<&serde_json::Value>| -> Vec<_> {
        rows.iter().map(|row| row["model_time"].clone()).collect()
    };
    let simulated = simulated["rows"].as_array().unwrap();
    assert_eq!(times(simulated.iter().collect()), times(chains.collect()));
}

/// Blocks of a distribution may be swept, by their average size: each point is as by itself.
#[test]
fn sizes_of_unequal_blocks_may_be_swept() {
    let sweep = "allgather -p 5 --dist mod3 -a circulant-blocks,pipelined-ring";
    for command in ["compare", "simulate"] {
        let all = json(&format!("{command} {sweep} --block 300..3000*10"));
        let rows = all["rows"].as_array().unwrap();
        let sizes: Vec<_> = rows
            .iter()
            .map(|row| row["bytes"].as_u64().unwrap())
            .collect();
        let points = if command == "compare" {
            vec![300, 300, 3000, 3000]
        } else {
            vec![300, 3000]
        };
        assert_eq!(sizes, points, "{command}");
        for row in rows {
            let (size, name) = (&row["bytes"], row["algorithm"].as_str().unwrap());
            let of = format!("allgather -p 5 --dist mod3 --block {size} -a {name}");
            assert_eq!(
                json(&format!("simulate {of}"))["time"],
                row["model_time"],
                "{row}"
            );
        }
    }
    let error = failure(&mut oneport("run gather --dist mod3 --block 1,2"), 2);
    assert!(
        error.contains("--block 1,2 is more than one value"),
        "{error}"
    );
}

/// Distributions may be swept, too: each point is as by itself, and leads where it does.
#[test]
fn distributions_of_blocks_may_be_swept() {
    let folder = folder("distributions");
    let sweep = "gather -p 6,9 --dist spikes,mod3,increasing -a adaptive,knomial,linear";
    let run = |command: String| drop(oneport(&command).current_dir(&folder).assert().success());
    run(format!(
        "compare {sweep} --block 50,5000 -o d.csv -o d.json"
    ));
    let all = fs::read_to_string(folder.join("d.json")).unwrap();
    let all: serde_json::Value = serde_json::from_str(&all).unwrap();
    let rows = all["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 3 * 2 * 3);
    for row in rows {
        let of = |field: &str| row[field].to_string().replace('"', "");
        let alone = format!(
            "simulate gather -p {} --dist {} --block {} -a {}",
            of("ranks"),
            of("dist"),
            of("bytes"),
            of("algorithm")
        );
        assert_eq!(json(&alone)["time"], row["model_time"], "{row}");
    }
    // The file has all points of the same command.
    let before = fs::read(folder.join("d.csv")).unwrap();
    run(format!(
        "compare {sweep} --block 50,5000 -o d.csv -o d.json"
    ));
    assert!(before == fs::read(folder.join("d.csv")).unwrap());
    // One line for each distribution and number of ranks; without --block all have one average.
    run(format!(
        "compare {} --show bound -o d.md -o d.svg",
        sweep.replace(",knomial,linear", "")
    ));
    let table = fs::read_to_string(folder.join("d.md")).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "| blocks | ranks | 1000 B |");
    assert_eq!(lines.len(), 2 + 3 * 2, "{table}");
    let picture = fs::read_to_string(folder.join("d.svg")).unwrap();
    assert!(picture.contains("ranks, blocks spikes"), "{picture}");
    let error = failure(&mut oneport("plan gather --dist mod3,spikes"), 2);
    assert!(
        error.contains("--dist names several distributions"),
        "{error}"
    );
}

/// A lead goes on from size to size, not to another number of ranks: on 8 ranks `bi-greedy` leads
/// at the end, on 12 it is one of several that are as fast.
#[test]
fn table_and_page_name_the_same_leaders() {
    let folder = folder("leaders");
    let printed = oneport("compare broadcast -p 8,12 --bytes 8..4MiB*4 -o l.html -o l.tex")
        .current_dir(&folder)
        .assert()
        .success();
    let printed = String::from_utf8(printed.get_output().stdout.clone()).unwrap();
    let page = fs::read_to_string(folder.join("l.html")).unwrap();
    let (_, data) = page.split_once("id=\"data\">").unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let leaders = data["leaders"].as_array().unwrap();
    assert_eq!(leaders.len(), 2 * 11);
    for lead in leaders {
        let row = &data["rows"][lead[0].as_u64().unwrap() as usize];
        let name = row["algorithm"].as_str().unwrap();
        let others = match lead[1].as_u64().unwrap() {
            0 => String::new(),
            1 => " (and 1 other)".to_string(),
            n => format!(" (and {n} others)"),
        };
        let ranks = format!("{}  ", row["ranks"]);
        let mut lines = printed
            .lines()
            .filter(|line| line.trim().starts_with(&ranks));
        let expected = format!("  {name}{others}  ");
        assert!(
            lines.any(|line| line.contains(&expected)),
            "{lead} {expected}\n{printed}"
        );
    }
    let line = printed
        .lines()
        .find(|line| line.contains("12      8 B"))
        .unwrap();
    assert!(
        line.contains("binomial (and ") && line.contains("others)"),
        "{line}"
    );
    // Ranks stand once for all of their sizes.
    let tex = fs::read_to_string(folder.join("l.tex")).unwrap();
    let starts = tex.lines().filter(|line| line.starts_with(" & ")).count();
    assert_eq!(starts, 2 * 10, "{tex}");
    assert!(
        tex.contains("~$\\mu$s") && tex.contains("$\\times$ bound"),
        "{tex}"
    );
}

/// Plots and tables of what a paper compares, with an own schedule set apart.
#[test]
fn plots_and_tables_show_what_is_asked_for() {
    let folder = folder("show");
    let run = |arguments: &str| oneport(arguments).current_dir(&folder).assert().success();
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    run("plan broadcast -p 8 --bytes 64 -a binary --segments 2 -o mine.json");
    let sweep = "compare broadcast --schedule mine=mine.json --bytes 64..4KiB*4";
    for (show, title) in [
        ("time", ">time<"),
        ("ratio", ">time over the best<"),
        ("bound", ">time over the bound<"),
        ("bandwidth", ">size over time<"),
    ] {
        run(&format!(
            "{sweep} --show {show} --top 2 --width 84mm --plain -o p.svg -o p.tex"
        ));
        let plot = read("p.svg");
        assert!(plot.contains(title), "{plot}");
        // The own line is bold, and two others are drawn.
        let lines = |width: &str| {
            plot.matches(&format!("stroke-width=\"{width}\" stroke-d"))
                .count()
        };
        assert_eq!((lines("3"), lines("1.4")), (1, 2), "{plot}");
        assert!(plot.contains("font-weight=\"700\">mine<"), "{plot}");
        let table = read("p.tex");
        assert!(
            table.contains("\nranks & 64 B & 256 B & 1 KiB & 4 KiB \\\\\n"),
            "{table}"
        );
        let row = table.lines().find(|line| line.starts_with("8 & ")).unwrap();
        assert_eq!(row.matches('&').count(), 4, "{table}");
    }
    // One place has no line: a bar for each.
    run("compare broadcast -p 8 --bytes 64 -o one.svg --show ratio");
    let bars = read("one.svg");
    assert!(
        !bars.contains("<circle") && bars.matches("<rect").count() > 5,
        "{bars}"
    );
    for (arguments, expected) in [
        ("--show ratio", "--show is for plots and tables"),
        ("--top 3 -o x.tex", "--top is for a plot"),
    ] {
        let command = format!("compare broadcast -p 8 --bytes 8 {arguments}");
        let message = failure(oneport(&command).current_dir(&folder), 2);
        assert!(message.contains(expected), "{message}");
    }
    let nothing = "compare barrier -p 4..8 --show bandwidth -o x.svg";
    let one = nothing.replace("4..8", "4");
    for nothing in [nothing, &one, &one.replace("compare", "simulate")] {
        let message = failure(oneport(nothing).current_dir(&folder), 2);
        assert!(
            message.contains("no row has what --show asks for") && !folder.join("x.svg").exists(),
            "{message}"
        );
    }
}

#[test]
fn what_has_no_data_has_no_size() {
    let barrier = text("compare barrier -p 2..8");
    assert!(barrier.starts_with("barrier, 2 to 8 ranks\n"), "{barrier}");
}

#[test]
fn a_sweep_goes_on_from_its_csv_file_and_leaves_others_alone() {
    let folder = folder("again");
    let run = |arguments: &str| {
        let mut command = oneport(arguments);
        let output = command.current_dir(&folder).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let sweep = "compare reduce -p 2..8 --bytes 64 -a chain,binomial -o r.csv";
    assert_eq!(run(sweep).0, Some(0));
    let path = folder.join("r.csv");
    let whole = fs::read_to_string(&path).unwrap();
    // As if it had been stopped after the first point, and with a time that only the file has.
    let first: Vec<_> = whole.lines().take(3).collect();
    let marked = first.join("\n").replace(",64,binomial,", ",64,binomial,9") + "\n";
    fs::write(&path, &marked).unwrap();
    let (code, notes) = run(sweep);
    assert_eq!(code, Some(0), "{notes}");
    assert!(notes.contains("2 rows are known"), "{notes}");
    let again = fs::read_to_string(&path).unwrap();
    assert_eq!(again.lines().count(), whole.lines().count());
    assert!(again.contains(",64,binomial,9"), "{again}");
    // One that is complete is written as it was.
    assert_eq!(run(sweep).0, Some(0));
    assert_eq!(fs::read_to_string(&path).unwrap(), again);
    let other = sweep.replace("64 -a", "128 -a");
    let (code, error) = run(&other);
    assert_eq!(code, Some(2));
    assert!(
        error.contains("something else than rows of this command"),
        "{error}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), again);
    for (file, expected) in [
        ("r.pdf", "name FILE.csv"),
        ("no/r.csv", "no/r.csv"),
        ("r.md --width 84mm", "--width is for a picture"),
    ] {
        let message = failure(
            oneport(&format!("compare reduce -p 2 -o {file}")).current_dir(&folder),
            2,
        );
        assert!(message.contains(expected), "{message}");
    }
}

/// Standard input is read once, however often a command asks for it.
#[test]
fn a_barrier_from_standard_input_stands_beside_algorithms() {
    let barrier = text("plan barrier -p 4 -a dissemination --json");
    let mut compare = oneport("compare --schedule - -a dissemination --json");
    let run = compare.write_stdin(barrier).assert().success();
    let found: serde_json::Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    let names = found["rows"].as_array().unwrap().iter();
    let names: Vec<_> = names
        .map(|row| row["algorithm"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["dissemination", "dissemination (standard input)"]);
}

/// What a file had when its CSV was written is not what it has now.
#[test]
fn a_sweep_of_a_file_that_changed_begins_anew() {
    let folder = folder("changed");
    fs::create_dir(folder.join("answers")).unwrap();
    for (named, file, csv) in [
        ("mine.json", "mine.json", "s.csv"),
        ("answers", "answers/mine.json", "t.csv"),
    ] {
        let plan = |algorithm: &str| {
            let plan = format!("plan broadcast -p 4 --bytes 4 -a {algorithm} -o {file}");
            oneport(&plan).current_dir(&folder).assert().success();
        };
        let costs = "--alpha 1 --beta 0";
        let compare = format!("compare --schedule {named} --bytes 4,8 -a chain -o {csv} {costs}");
        let times = |note: &str| -> Vec<String> {
            let run = oneport(&compare).current_dir(&folder).assert().success();
            let said = String::from_utf8(run.get_output().stderr.clone()).unwrap();
            assert!(said.contains(note), "{said}");
            let rows = fs::read_to_string(folder.join(csv)).unwrap();
            let is_own = |line: &&str| line.contains(&format!(" ({file}),true,"));
            let own = rows.lines().filter(is_own);
            own.map(|line| line.split(',').nth(6).unwrap().to_string())
                .collect()
        };
        plan("binomial");
        assert_eq!(times(&format!("written to {csv}")), ["2", "2"]);
        // No rank count is given: the points are found again, and replace those of the file.
        assert_eq!(times("4 rows are known"), ["2", "2"]);
        plan("linear");
        assert_eq!(times(&format!("{csv} is written anew")), ["3", "3"]);
        fs::write(folder.join(file), "{}").unwrap();
        let failed = oneport(&compare).current_dir(&folder).assert().code(2);
        let said = String::from_utf8(failed.get_output().stderr.clone()).unwrap();
        assert_eq!(said.matches(file).count(), 1, "{said}");
    }
}

#[test]
fn schedules_from_files_stand_beside_algorithms_at_every_multiple_of_their_size() {
    let folder = folder("own");
    for p in [3, 4] {
        let plan = format!("plan broadcast -p {p} --bytes 6 -a chain -o mine-{p}.json");
        oneport(&plan).current_dir(&folder).assert().success();
    }
    let text = fs::read_to_string(folder.join("mine-3.json")).unwrap();
    fs::write(
        folder.join("unit.json"),
        text.replacen('{', "{ \"unit\": 4,", 1),
    )
    .unwrap();
    let files = "--schedule mine-3.json --schedule unit.json";
    let both = json_in(
        &folder,
        &format!("compare {files} --bytes 48 -a chain --segments 1"),
    );
    let rows = both["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    assert!(
        rows.iter().all(|row| row["time"] == rows[0]["time"]),
        "{both}"
    );
    let sweep =
        "compare --schedule mine-{p}.json -p 3,4 --bytes 6,60 --engine threads --repetitions 2";
    let sweep = json_in(&folder, sweep);
    let rows = sweep["rows"].as_array().unwrap().iter();
    let own: Vec<_> = rows
        .filter(|row| row["algorithm"] == "chain (mine-{p}.json)")
        .collect();
    assert_eq!(own.len(), 4);
    assert!(own.iter().all(|row| row["own"] == true));
    assert!(
        own.iter()
            .all(|row| row["median_ns"].as_f64().unwrap() > 0.0)
    );
    // A wrong one is not timed.
    let wrong = text.replace(
        "\"send\":{\"to\":1,\"spans\":[[0,6]]}",
        "\"send\":{\"to\":1,\"spans\":[[0,5],[0,1]]}",
    );
    assert_ne!(wrong, text);
    fs::write(folder.join("wrong.json"), wrong).unwrap();
    let with_wrong = json_in(&folder, "compare --schedule wrong.json");
    let skipped = with_wrong["skipped"].as_array().unwrap();
    let reason = skipped
        .iter()
        .find(|skipped| skipped["algorithm"] == "chain (wrong.json)");
    assert!(
        reason.unwrap()["reason"]
            .as_str()
            .unwrap()
            .starts_with("wrong: ")
    );
    for (arguments, expected) in [
        (
            "compare reduce --schedule mine-3.json",
            "performs a broadcast, not a reduce",
        ),
        (
            "compare broadcast -p 4 --bytes 6 --schedule mine-3.json",
            "3 ranks, not 4",
        ),
        (
            "compare --schedule mine-{p}.json",
            "a file for each number of ranks: give -p",
        ),
        (
            "simulate --schedule mine-3.json --bytes 13",
            "has 6 elements, so it scales to multiples",
        ),
        (
            "simulate --schedule mine-3.json --schedule mine-4.json",
            "this command takes one",
        ),
        (
            "compare",
            "give a COLLECTIVE (such as reduce), or --schedule FILE",
        ),
    ] {
        let message = failure(oneport(arguments).current_dir(&folder), 2);
        assert!(message.contains(expected), "{arguments}: {message}");
    }
    // What is not given beside a collective is that of the file.
    for given in ["", "-p 3 "] {
        let beside = format!("compare broadcast {given}--schedule mine-3.json");
        assert_eq!(json_in(&folder, &beside)["ranks"], 3, "{beside}");
    }
    let run = json_in(
        &folder,
        "run --schedule mine-3.json --bytes 48 --dtype f64 --repetitions 1",
    );
    assert_eq!(
        (&run["verified"], &run["vector_bytes"]),
        (&true.into(), &48.into())
    );
}

/// The `algorithm` of the rows that are schedules from files.
fn own_names(folder: &Path, arguments: &str) -> Vec<String> {
    let answer = json_in(folder, arguments);
    let rows = answer["rows"].as_array().unwrap().iter();
    let own = rows.filter(|row| row["own"] == true || row["schedule"].is_string());
    let name = |row: &serde_json::Value| row["algorithm"].as_str().unwrap().to_string();
    own.map(name).collect()
}

#[test]
fn schedules_have_names_of_their_own() {
    let folder = folder("own_names");
    let make = |arguments: &str| oneport(arguments).current_dir(&folder).assert().success();
    make("plan broadcast -p 4 --bytes 64 -a chain --segments 2 -o planned.json");
    let planned = fs::read_to_string(folder.join("planned.json")).unwrap();
    assert!(
        planned.starts_with("{ \"name\": \"chain\", \"ranks\": 4"),
        "{planned}"
    );
    let named = planned.replacen("\"chain\"", "\"Three & phases, 50%\"", 1);
    fs::write(folder.join("named.json"), &named).unwrap();
    let unnamed = planned.replacen("\"name\": \"chain\", ", "", 1);
    fs::write(folder.join("unnamed.json"), unnamed).unwrap();
    for (files, expected) in [
        ("unnamed.json", &["unnamed.json"][..]),
        ("named.json", &["Three & phases, 50%"]),
        ("mine=named.json", &["mine"]),
        ("mine=unnamed.json other=unnamed.json", &["mine", "other"]),
        // Algorithms and other files of the same name are told apart.
        ("planned.json", &["chain (planned.json)"]),
        (
            "a=named.json a=unnamed.json",
            &["a (named.json)", "a (unnamed.json)"],
        ),
    ] {
        for sweep in ["", "-p 4 --bytes 64,128"] {
            let found = own_names(&folder, &format!("compare {sweep} --schedule {files}"));
            let distinct: Vec<_> = found.iter().take(expected.len()).collect();
            assert_eq!(distinct, expected, "{files} {sweep}");
        }
    }
    let simulated = json_in(&folder, "simulate --schedule named.json");
    assert_eq!(simulated["algorithm"], "Three & phases, 50%");
    assert_eq!(simulated["schedule"], "named.json");
    assert!(json_in(&folder, "simulate --schedule unnamed.json")["algorithm"].is_null());
    let printed = make("simulate --schedule mine=named.json")
        .get_output()
        .stdout
        .clone();
    let printed = String::from_utf8(printed).unwrap();
    assert!(
        printed.contains("algorithm    mine (from named.json)"),
        "{printed}"
    );
    make("compare --schedule named.json -o all.md -o all.tex -o all.html -o all.csv");
    let written = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert!(written("all.md").contains("Three & phases, 50%"));
    assert!(written("all.tex").contains("Three \\& phases, 50\\%"));
    assert!(written("all.csv").contains("\"Three & phases, 50%\",true,"));
    assert!(written("all.html").contains("Three &amp; phases, 50%"));
    // Of a picture, and of a page that shows one twice.
    make("draw --schedule named.json -o one.svg");
    assert!(written("one.svg").contains("broadcast by Three &amp; phases, 50%, p = 4"));
    make("draw --schedule a=named.json a=unnamed.json -o two.html");
    assert!(written("two.html").contains("by a (named.json), a (unnamed.json)"));
    // Other forms keep it.
    make("plan --schedule mine=named.json -o again.json");
    assert!(written("again.json").starts_with("{ \"name\": \"mine\", "));
    for format in ["goal", "msccl"] {
        make(&format!(
            "export {format} --schedule named.json -o named.{format}"
        ));
        make(&format!("import {format} named.{format} -o back.json"));
        assert!(written("back.json").starts_with("{ \"name\": \"Three & phases, 50%\", "));
    }
    for (arguments, expected) in [
        ("simulate --schedule =named.json", "a name, '=' and a file"),
        ("simulate --schedule mine=", "a name, '=' and a file"),
        ("simulate --schedule mine=no.json", "cannot read no.json"),
        (
            "simulate --schedule mine=.",
            ". is a folder: a name is for one file",
        ),
    ] {
        let message = failure(oneport(arguments).current_dir(&folder), 2);
        assert!(message.contains(expected), "{arguments}: {message}");
    }
    let break_in_name = planned.replacen("chain", "a\\nb", 1);
    fs::write(folder.join("break.json"), break_in_name).unwrap();
    let message = failure(
        oneport("check --schedule break.json").current_dir(&folder),
        2,
    );
    assert!(message.contains("has a control character"), "{message}");
    // A file whose own name has the sign.
    fs::write(folder.join("k=3.json"), &named).unwrap();
    assert_eq!(
        own_names(&folder, "compare --schedule k=3.json"),
        ["Three & phases, 50%"]
    );
}

#[test]
fn several_schedules_are_listed_alike_everywhere() {
    let folder = folder("own_several");
    let make = |arguments: &str| oneport(arguments).current_dir(&folder).assert().success();
    fs::create_dir(folder.join("in")).unwrap();
    fs::write(folder.join("in/notes.txt"), "").unwrap();
    make("plan reduce -p 4 --bytes 8 -a binomial -o in/b.json");
    make("plan reduce -p 4 --bytes 8 -a binomial -o in/a.json");
    let both = ["binomial (in/a.json)", "binomial (in/b.json)"];
    for files in [
        "--schedule in/a.json in/b.json",
        "--schedule in/a.json --schedule in/b.json",
        "--schedule in",
        "in/a.json in/b.json",
        "in/a.json --schedule in/b.json",
        "in",
        "in/a.json reduce -p 4 --bytes 8 in/b.json",
        "reduce -p 4 --bytes 8 --schedule in",
        "--schedule in/a.json in/b.json reduce -p 4 --bytes 8",
    ] {
        assert_eq!(
            own_names(&folder, &format!("compare {files}")),
            both,
            "{files}"
        );
        let checked = json_in(&folder, &format!("check {files}"));
        assert_eq!(checked["schedules"].as_array().unwrap().len(), 2, "{files}");
        make(&format!("draw {files} -o two.html"));
        let page = fs::read_to_string(folder.join("two.html")).unwrap();
        assert!(
            page.contains("by binomial (in/a.json), binomial (in/b.json)"),
            "{files}"
        );
        let message = failure(
            oneport(&format!("simulate {files}")).current_dir(&folder),
            2,
        );
        assert!(
            message.contains("--schedule names 2 files"),
            "{files}: {message}"
        );
    }
    for command in [
        "check",
        "simulate",
        "compare",
        "plan",
        "draw",
        "run --repetitions 1",
        "export goal",
    ] {
        make(&format!("{command} reduce --schedule in/a.json"));
        make(&format!("{command} --schedule in/a.json reduce"));
        make(&format!("{command} in/a.json reduce"));
        make(&format!("{command} reduce in/a.json"));
        let other = format!("{command} broadcast --schedule in/a.json");
        let message = failure(oneport(&other).current_dir(&folder), 2);
        assert!(
            message.contains("in/a.json: it performs a reduce, not a broadcast"),
            "{message}"
        );
    }
    // A collective wins over a file of its name, and a file over no collective.
    for name in ["reduce", "own"] {
        fs::copy(folder.join("in/a.json"), folder.join(name)).unwrap();
    }
    assert_eq!(json_in(&folder, "check reduce -p 3")["ranks"], 3);
    for (file, input) in [("./reduce", ""), ("own", ""), ("-", "in/a.json")] {
        let mut command = oneport(&format!("check {file} --json"));
        if !input.is_empty() {
            command.pipe_stdin(folder.join(input)).unwrap();
        }
        let output = command.current_dir(&folder).output().unwrap();
        let checked: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(checked["ranks"], 4, "{file}");
    }
    fs::create_dir(folder.join("empty")).unwrap();
    for command in ["check", "compare", "simulate"] {
        let empty = format!("{command} --schedule empty");
        let message = failure(oneport(&empty).current_dir(&folder), 2);
        assert!(
            message.contains("empty is a folder without .json files"),
            "{message}"
        );
    }
}
