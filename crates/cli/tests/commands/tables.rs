//! Tests of the tables that `run` makes of several sizes and numbers of ranks.

use std::fs;

use super::options::{folder, json_in};
use crate::support::run::{failure, json, oneport, text};

#[test]
fn tables_fit_the_terminal_and_name_what_they_leave_out() {
    let shown = |columns: &str| {
        let mut command = oneport("compare reduce -p 6 --bytes 64KiB -a chain,binomial");
        let output = command.env("COLUMNS", columns).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let narrow = shown("70");
    assert!(narrow.lines().all(|line| line.len() <= 70), "{narrow}");
    assert!(
        narrow.contains("messages, volume: where lines are longer)"),
        "{narrow}"
    );
    assert!(!shown("200").contains("where lines"));
}

/// JSON has them all.
#[test]
fn what_differs_by_name_alone_is_one_row() {
    let compare = "compare broadcast -p 16 --bytes 8";
    let lines = text(compare);
    let names = lines
        .lines()
        .skip_while(|line| !line.starts_with("binomial"));
    let names: Vec<_> = names.take(2).map(|line| line.split("  ").next()).collect();
    let expected = ["binomial, bine, knomial,", "ordered, bi-greedy, circulant"];
    assert_eq!(names, expected.map(Some), "{lines}");
    let left_out = "\n  uni-greedy, out-of-order  broadcast is not planned for bi ports\n";
    assert!(lines.contains(left_out), "{lines}");
    let all = json(compare);
    assert_eq!(all["rows"].as_array().unwrap().len(), 17);
    assert_eq!(all["skipped"].as_array().unwrap().len(), 2);
    // Equal times by other numbers of messages are two rows.
    let others = text("compare allreduce -p 7 --bytes 64KiB --ports uni");
    let row = |name: &str| others.lines().any(|line| line.starts_with(name));
    assert!(
        row("rabenseifner, swing ") && row("uni-greedy, out-of-order "),
        "{others}"
    );
}

#[test]
fn a_list_of_algorithms_names_them_in_one_line() {
    let list = text("list allreduce");
    assert!(list.contains("\nrecursive-multiplying  uni, bi"), "{list}");
    assert!(
        list.lines().all(|line| line.chars().count() <= 100),
        "{list}"
    );
}

#[test]
fn a_range_of_sizes_makes_a_table() {
    let folder = folder("sweep");
    let sweep = "run allreduce -p 2 --bytes 8..1KiB --dtype f32 --repetitions 12";
    let table = json_in(&folder, &format!("{sweep} --csv a.csv"));
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 8);
    assert_eq!(table["verified"], true);
    for (i, row) in rows.iter().enumerate() {
        assert_eq!(row["bytes"], 8 << i);
        let of = |name: &str| {
            row[name]
                .as_f64()
                .unwrap_or_else(|| panic!("{name} in {row}"))
        };
        let ordered = ["min_ns", "low_ns", "median_ns", "high_ns", "max_ns"].map(of);
        assert!(ordered.is_sorted(), "{row}");
        // Two ranks: half of the size twice.
        assert!((of("busbw_gb_per_s") / of("algbw_gb_per_s") - 1.0).abs() < 1e-11);
        assert!((of("algbw_gb_per_s") * of("median_ns") / of("bytes") - 1.0).abs() < 1e-9);
        assert!((of("x_model") * of("model_ns") / of("median_ns") - 1.0).abs() < 1e-9);
        assert!(of("deviation_ns") >= 0.0 && of("mean_ns") >= of("min_ns") * 0.99);
    }
    // The same run again, and against a table in which it was a thousand times slower.
    let again = json_in(&folder, &format!("{sweep} --baseline a.csv"));
    assert!(again["rows"][7]["baseline"]["ratio"].as_f64().unwrap() > 0.0);
    let csv = std::fs::read_to_string(folder.join("a.csv")).unwrap();
    let mut slow = csv::Reader::from_reader(csv.as_bytes());
    let header = slow.headers().unwrap().clone();
    let mut writer = csv::Writer::from_path(folder.join("slow.csv")).unwrap();
    writer.write_record(&header).unwrap();
    for record in slow.records() {
        let record = record.unwrap();
        let fields = record.iter().zip(&header).map(|(field, name)| match name {
            "median_ns" | "low_ns" | "high_ns" => format!("{field}000000"),
            _ => field.to_string(),
        });
        writer.write_record(fields).unwrap();
    }
    writer.flush().unwrap();
    let faster = json_in(&folder, &format!("{sweep} --baseline slow.csv"));
    assert_eq!(faster["rows"][3]["baseline"]["change"], "faster");
    let mut command = oneport(&format!("{sweep} --baseline slow.csv"));
    let shown = command.current_dir(&folder).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    for word in [
        "algbw",
        "busbw",
        "interval",
        "12 repetitions of each size after 1 warm-up, inputs rewritten",
        "x baseline",
        "faster",
    ] {
        assert!(shown.contains(word), "{word} in {shown}");
    }
    let many = text("run broadcast -p 2 --bytes 8..32 --repetitions 100 --inputs kept");
    let columns = |table: &str| {
        let header = table.lines().find(|line| line.contains("algbw"));
        header
            .unwrap()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let common = "size algorithm segment median interval min p99 max algbw GB/s busbw GB/s x model";
    assert_eq!(columns(&many), common);
    let few = common.replace(" p99", "");
    assert_eq!(columns(&shown), format!("{few} x baseline change"));
    assert!(many.contains("inputs kept"), "{many}");
    let late = "run broadcast -p 2 --bytes 8..16 --repetitions 2 --arrivals last:1ms";
    let shown = text(late);
    assert!(
        shown.contains("times from the last arrival on, at 1 ms"),
        "{shown}"
    );
    let found = json(late);
    assert_eq!(found["rows"][1]["last_arrival_ns"], 1e6);
    assert!(found["warnings"].is_array());
}

/// The table of several numbers of ranks and sizes, in all kinds of files, and on from one.
#[test]
fn a_table_of_runs_goes_everywhere_and_goes_on() {
    let folder = folder("runs");
    let runs = "run broadcast -p 2,3 --bytes 8..32 -a chain --repetitions 3";
    let files = "-o r.csv -o r.md -o r.tex -o r.svg -o r.html -o r.json";
    let all = json_in(&folder, &format!("{runs} {files}"));
    let rows = all["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 3);
    assert_eq!(all["verified"], true);
    for row in rows {
        let (p, m) = (&row["ranks"], &row["bytes"]);
        let one = json(&format!("simulate broadcast -p {p} --bytes {m} -a chain"));
        for (of_run, of_model) in [
            ("model_ns", "time"),
            ("lower_bound_ns", "lower_bound"),
            ("rounds", "rounds"),
            ("messages", "messages"),
            ("volume_bytes", "bytes"),
        ] {
            assert_eq!(row[of_run], one[of_model], "{of_run} in {row}");
        }
        assert!(row["median_ns"].as_f64().unwrap() > 0.0, "{row}");
    }
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let saved: serde_json::Value = serde_json::from_str(&read("r.json")).unwrap();
    assert_eq!(saved, all);
    assert!(read("r.md").starts_with("| ranks | size | algorithm | segment | median |"));
    assert_eq!(read("r.tex").matches(" \\\\\n").count(), 1 + 6);
    assert!(read("r.svg").contains("broadcast, 2 to 3 ranks, 8 B to 32 B"));
    assert!(read("r.html").contains("Which leads where"));
    let by_size = format!("{runs} --baseline r.csv --show ratio -o s.md");
    oneport(&by_size).current_dir(&folder).assert().success();
    let by_size = read("s.md");
    assert!(
        by_size.starts_with("| algorithm | ranks | 8 B | 16 B | 32 B |")
            && by_size.contains("| baseline | 2 |"),
        "{by_size}"
    );

    // As if it had been stopped after two runs, with a time that only the file has.
    let again = format!("{runs} -o a.csv");
    oneport(&again).current_dir(&folder).assert().success();
    let whole = read("a.csv");
    let median = rows_of(&whole, "median_ns");
    let first: Vec<_> = whole.lines().take(3).collect();
    let marked = first
        .join("\n")
        .replace(&format!(",{},", median[1]), ",987654321,")
        + "\n";
    fs::write(folder.join("a.csv"), marked).unwrap();
    let run = oneport(&again).current_dir(&folder).assert().success();
    let said = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(
        said.contains("2 rows are known from the CSV file"),
        "{said}"
    );
    let shown = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    assert!(
        shown.starts_with("broadcast, 2 to 3 ranks, bi ports, u8") && shown.contains("987.6"),
        "{shown}"
    );
    let medians = rows_of(&read("a.csv"), "median_ns");
    assert_eq!((medians.len(), &*medians[1]), (6, "987654321"));
    let other = again.replace("8..32", "8..64");
    let error = failure(oneport(&other).current_dir(&folder), 2);
    assert!(error.contains("something else than rows"), "{error}");
    assert_eq!(rows_of(&read("a.csv"), "median_ns"), medians);
    let again_as_json = again.replace("a.csv", "j.csv");
    let fresh = json_in(&folder, &again_as_json);
    assert_eq!(json_in(&folder, &again_as_json)["rows"], fresh["rows"]);
    // The number of ranks of the default is the same again.
    let few = "run broadcast --bytes 8,16 -a chain --repetitions 2 -o d.csv";
    oneport(few).current_dir(&folder).assert().success();
    let medians = rows_of(&read("d.csv"), "median_ns");
    oneport(few).current_dir(&folder).assert().success();
    assert_eq!(rows_of(&read("d.csv"), "median_ns"), medians);
    // So is the size, and what was assumed of the machine.
    let few = "run allreduce -p 2,3 --dtype f32 --repetitions 2 -o e.csv";
    let fresh = json_in(&folder, few);
    let [rows, chosen_for] = ["rows", "chosen_for"].map(|field| &fresh[field]);
    assert_eq!(rows_of(&read("e.csv"), "bytes"), ["65536"; 2]);
    assert!(chosen_for.is_string(), "{fresh}");
    let known = json_in(&folder, few);
    assert_eq!((&known["rows"], &known["chosen_for"]), (rows, chosen_for));
    let few = few.replace("e.csv", "f.csv");
    let tables = [(), ()].map(|()| {
        let shown = oneport(&few).current_dir(&folder).assert().success();
        String::from_utf8(shown.get_output().stdout.clone()).unwrap()
    });
    let assumed = format!("\nchosen for {} (", chosen_for.as_str().unwrap());
    assert!(tables[0].contains(&assumed), "{}", tables[0]);
    assert_eq!(tables[0], tables[1]);
    // What --csv names is written anew.
    let anew = other.replace("-o a.csv", "--csv a.csv");
    oneport(&anew).current_dir(&folder).assert().success();
    assert_eq!(
        rows_of(&read("a.csv"), "bytes"),
        ["8", "16", "32", "64"].repeat(2)
    );
}

/// The fields of a column of a CSV file.
fn rows_of(csv: &str, column: &str) -> Vec<String> {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let place = reader
        .headers()
        .unwrap()
        .iter()
        .position(|name| name == column);
    let field = |record: csv::StringRecord| record[place.unwrap()].to_string();
    reader
        .records()
        .map(|record| field(record.unwrap()))
        .collect()
}

/// Vectors have the default size, a barrier has none, and all rows have their own last arrival.
#[test]
fn a_table_of_runs_needs_no_size() {
    let folder = folder("no-size");
    let run = |arguments: &str| text(&format!("run {arguments} --repetitions 2"));
    let vectors = run("broadcast -p 2,3 -a chain");
    assert_eq!(vectors.matches(" 64 KiB  chain ").count(), 2, "{vectors}");
    let segments = run("broadcast -p 2,3 -a chain --segment-sizes 8,4");
    assert_eq!(segments.matches(" 12 B  chain ").count(), 2, "{segments}");
    let barriers = run("barrier -p 2,3");
    assert!(barriers.contains("\nranks  algorithm "), "{barriers}");
    let rows = json_in(&folder, "run barrier -p 2,3 --repetitions 2 -o b.csv");
    let rows = rows["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row["bytes"] == 0), "{rows:?}");
    let late = run("broadcast -p 2,3,4 -a chain --arrivals 0:1us,1:2us");
    assert!(late.contains(" on, at 2 us\n"), "{late}");
    let random = "broadcast -p 2,3,4 -a chain --arrivals random:exp,20us";
    let rows = json(&format!("run {random}"))["rows"].clone();
    let times = rows.as_array().unwrap().iter();
    let times = times.map(|row| row["last_arrival_ns"].as_f64().unwrap() / 1e3);
    let ends = [f64::min, f64::max].map(|of| times.clone().reduce(of).unwrap());
    assert!(ends[0] < ends[1], "{rows}");
    let late = run(random);
    let (_, shown) = late.split_once(" on, at ").unwrap();
    let shown = shown.lines().next().unwrap().replace(" us", "");
    let shown: Vec<f64> = shown.split(" to ").map(|t| t.parse().unwrap()).collect();
    assert_eq!(shown.len(), 2, "{late}");
    let is_near = |(shown, end): (f64, f64)| (shown - end).abs() < 1e-2;
    assert!(shown.into_iter().zip(ends).all(is_near), "{ends:?} {late}");
}

/// What cannot be planned is left out; what is wrong ends a table with the rows before it.
#[test]
fn an_error_at_one_point_keeps_the_rows_of_others() {
    let folder = folder("partial");
    for p in [2, 3, 4] {
        oneport(&format!(
            "plan broadcast -p {p} --bytes 8 -a chain -o c-{p}.json"
        ))
        .current_dir(&folder)
        .assert()
        .success();
    }
    // Rank 1 of three sends on before it has received.
    let path = folder.join("c-3.json");
    let mut wrong: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    wrong["programs"][1].as_array_mut().unwrap().reverse();
    fs::write(path, wrong.to_string()).unwrap();
    let sweep = "run broadcast --schedule c-{p}.json -p 2..=4 --bytes 8 -o r.json";
    let run = oneport(sweep).current_dir(&folder).assert().code(1);
    let [shown, said] = [&run.get_output().stdout, &run.get_output().stderr]
        .map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(shown.starts_with("broadcast, 2 ranks, bi ports"), "{shown}");
    assert!(
        said.contains("error: 3 ranks, 8 B: wrong schedule: rank 2, output elements 0 to 7"),
        "{said}"
    );
    assert!(!folder.join("r.json").exists());
    let json = oneport(&format!("{sweep} --json"))
        .current_dir(&folder)
        .assert()
        .code(1);
    let all: serde_json::Value = serde_json::from_slice(&json.get_output().stdout).unwrap();
    assert_eq!(
        (&all["verified"], all["rows"].as_array().unwrap().len()),
        (&false.into(), 1)
    );
    // As many threads as that there are nowhere.
    let run = oneport("run broadcast -p 2,100000000 --bytes 8")
        .assert()
        .success();
    let [shown, said] = [&run.get_output().stdout, &run.get_output().stderr]
        .map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(shown.starts_with("broadcast, 2 ranks, bi ports"), "{shown}");
    assert!(
        said.contains("note: 100000000 ranks, 8 B left out: 100000000 ranks are more"),
        "{said}"
    );
    for (options, expected) in [
        ("-p 2 --bytes 8 --show ratio", "--show is for plots"),
        ("-p 2 --bytes 8 -o x.pdf", "name FILE.csv"),
        ("-p 2,3 --trace t.svg --bytes 8", "not for a table"),
        ("-p 2,3 --bytes 2 --dtype f32", "2 bytes are not a whole"),
        (
            "-p 2 --bytes 8,16 --show bound -o x.csv",
            "--show is for plots",
        ),
    ] {
        let error = failure(&mut oneport(&format!("run broadcast {options}")), 2);
        assert!(error.contains(expected), "{options}: {error}");
    }
}

#[test]
fn wrong_tables_are_refused_before_anything_runs() {
    let folder = folder("sweep-wrong");
    std::fs::write(folder.join("bad.csv"), "bytes,median\n1,2\n").unwrap();
    std::fs::write(folder.join("empty.csv"), "").unwrap();
    for (arguments, expected) in [
        (
            "run broadcast -p 2 --bytes 8..64 --baseline none.csv",
            "cannot read none.csv",
        ),
        (
            "run broadcast -p 2 --bytes 8..64 --baseline bad.csv",
            "bad.csv: line 2: not a table",
        ),
        (
            "run broadcast -p 2 --bytes 8..64 --baseline empty.csv",
            "a table without rows",
        ),
        (
            "run broadcast -p 2 --bytes 8..64 --trace t.svg --csv o.csv",
            "--trace and --histogram",
        ),
        (
            "run broadcast -p 2 --bytes 2..64 --dtype f64 --csv o.csv",
            "2 bytes are not a whole number",
        ),
        ("run broadcast -p 2 --bytes 64..8 --csv o.csv", "is empty"),
        (
            "run gather -p 2,3 --dist mod3 --csv o.csv",
            "a table has blocks of one size",
        ),
        (
            "run broadcast -p 2 --bytes 8..64 --csv no/o.csv",
            "no/o.csv",
        ),
        ("plan broadcast -p 2 --bytes 8..64", "more than one value"),
        ("draw broadcast -p 2..8", "more than one value"),
    ] {
        let message = failure(oneport(arguments).current_dir(&folder), 2);
        assert!(message.contains(expected), "{arguments}: {message}");
        assert!(!folder.join("o.csv").exists(), "{arguments}");
    }
}
