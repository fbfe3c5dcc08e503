//! Files and arguments as somebody else may have made them: what they contain reaches messages
//! without control characters and cut short, and no input takes quadratic time.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::run::{failure, json, oneport, text};

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the folder of the test");
    folder
}

/// Asserts that a refusal is short and has no control character but line ends.
fn ensure_printable(message: &str, what: &str) {
    let start: String = message.chars().take(300).collect();
    let control = message.chars().find(|&c| c.is_control() && c != '\n');
    assert_eq!(control, None, "{what}: {start:?}");
    assert!(
        message.len() < 10_000,
        "{what}: {} bytes: {start}",
        message.len()
    );
    let longest = message
        .split_whitespace()
        .map(|word| word.chars().count())
        .max();
    // Escapes make a word longer.
    assert!(longest < Some(400), "{what}: {start}");
}

/// `X` is replaced by a name with control characters, and by a long one.
#[test]
fn what_a_file_contains_is_printed_short_and_escaped() {
    let folder = folder("untrusted_files");
    let path = folder.join("input");
    let algo = "<algo name=\"x\" coll=\"broadcast\" ngpus=\"2\" nchunksperloop=\"1\">";
    let kinds = [
        ("check --schedule", r#"{"X":1}"#.to_string()),
        ("check --schedule", r#"{"ranks":"X"}"#.into()),
        ("check --schedule", r#"{"ranks":1,"ports":"X"}"#.into()),
        (
            "check --schedule",
            r#"{"ranks":1,"ports":"bi","collective":{"kind":"X"}}"#.into(),
        ),
        ("check --schedule", "X".into()),
        ("simulate broadcast -p 2 --costs", r#"{"X":1}"#.into()),
        (
            "simulate broadcast -p 2 --costs",
            r#"{"alpha":[["X"]]}"#.into(),
        ),
        ("simulate broadcast -p 2 --profile", r#"{"X":1}"#.into()),
        (
            "simulate broadcast -p 2 --profile",
            r#"{"alpha":"X"}"#.into(),
        ),
        ("steady", r#"{"X":1}"#.into()),
        (
            "steady",
            r#"{"nodes":2,"edges":[{"src":0,"dst":1,"cost":"X"}]}"#.into(),
        ),
        ("simulate broadcast -p 2 --rules", r#"{"X":1}"#.into()),
        (
            "simulate broadcast -p 2 --rules",
            r#"{"rules":[{"collective":"X"}]}"#.into(),
        ),
        ("simulate gather -p 2 --sizes-file", "1,X".into()),
        ("tune broadcast -p 2 --bytes 1 --csv", "X,Y\n1,2\n".into()),
        ("run broadcast -p 2 --baseline", "X,Y\n1,2\n".into()),
        ("import goal", "X".into()),
        ("import goal", "num_ranks 1\nrank 0 {\na: X 1\n}\n".into()),
        (
            "import goal",
            "num_ranks 1\nrank 0 {\nX: calc 1\nX: calc 1\n}\n".into(),
        ),
        (
            "import goal",
            "num_ranks 1\nrank 0 {\nX requires X\n}\n".into(),
        ),
        (
            "import goal",
            "// {\"X\":1}\nnum_ranks 1\nrank 0 {\n}\n".into(),
        ),
        ("import msccl", "X".into()),
        ("import msccl", "<X/>".into()),
        ("import msccl", "<a></X>".into()),
        ("import msccl", "<a X=\"1\" X=\"2\"/>".into()),
        ("import msccl", algo.replace("broadcast", "X") + "</algo>"),
        (
            "import msccl",
            algo.replace("ngpus=\"2\"", "ngpus=\"X\"") + "</algo>",
        ),
        ("import msccl", format!("{algo}<X/></algo>")),
        ("import msccl", format!("{algo}<gpu id=\"X\"/></algo>")),
        ("import mscclpp", "{\"gpus\": \"X\"}".into()),
        (
            "import teccl",
            "{\"1-Epoch_Duration\":1, \"3-Epochs_Required\":1, \"4-Collective_Finish_Time\":1, \
             \"7-Flows\": [], \"8-Chunk paths\": {\"X\": []}}"
                .into(),
        ),
        (
            "import mscclpp",
            "{\"collective\": \"X\", \"inplace\": true, \"gpus\": []}".into(),
        ),
    ];
    let payloads = [
        "a\u{1b}[31m\u{7}b".to_string(),
        "a\\u001b[31m\\u0007b".into(),
        "a\u{9b}2J\u{7f}".into(),
        "&#27;[31m".into(),
        "n".repeat(3 << 20),
        "&lt;".repeat(1 << 18),
    ];
    for (command, template) in &kinds {
        for payload in &payloads {
            fs::write(&path, template.replace('X', payload)).unwrap();
            let what = format!("{command} {template}");
            let message = failure(&mut oneport(&format!("{command} {}", path.display())), 2);
            ensure_printable(&message, &what);
        }
    }
}

#[test]
fn arguments_are_printed_short_and_escaped() {
    for payload in ["a\u{1b}[31m\u{7}b".to_string(), "n".repeat(100_000)] {
        for template in [
            "X",
            "simulate X",
            "simulate broadcast -p X",
            "simulate broadcast -p 2 --X",
            "simulate broadcast -p 2 -a X",
            "simulate broadcast -p 2 --bytes X",
            "simulate broadcast -p 2 --alpha X",
            "simulate gather -p 2 --sizes 1,X",
            "run broadcast -p 2 --op X",
            "compare broadcast -p 2 --factor X",
        ] {
            let message = failure(&mut oneport(&template.replace('X', &payload)), 2);
            ensure_printable(&message, template);
        }
    }
}

/// The XML library compares all attributes of an element, and copies all namespaces for each that
/// is declared: a minute and more for these.
#[test]
fn many_attributes_and_namespaces_are_refused() {
    let folder = folder("untrusted_xml");
    let path = folder.join("many.xml");
    let attributes: String = (0..200_000).map(|i| format!(" a{i}=\"1\"")).collect();
    let namespaces: String = (0..60_000)
        .map(|i| format!("<a xmlns:q{i}='{i}'>"))
        .collect();
    for (text, why) in [
        (
            format!("<algo\n{attributes}/>"),
            "line 1: an element has more attributes than the 64 that are read",
        ),
        (
            format!("<algo name=\"x\">\n{namespaces}"),
            "line 2: the file declares more namespaces than the 64 that are read",
        ),
    ] {
        fs::write(&path, text).unwrap();
        let message = failure(&mut oneport(&format!("import msccl {}", path.display())), 2);
        assert!(message.contains(why), "{message}");
    }
    // What is no attribute does not count.
    let equal = "=".repeat(1000);
    let text = format!(
        "<?xml version=\"1.0\"?><!-- {equal} > \" --><algo name=\"{equal}>'\"><![CDATA[<{equal}]]></algo>"
    );
    fs::write(&path, text).unwrap();
    let message = failure(&mut oneport(&format!("import msccl {}", path.display())), 2);
    assert!(
        message.contains("the attribute coll is missing"),
        "{message}"
    );
}

/// A plan under each of these names, which something would obey, is compared with the algorithms.
/// The table has it in each format, and is read back from the CSV file.
#[test]
fn names_are_escaped_in_every_format() {
    let folder = folder("untrusted_names");
    let mut plan = json("plan broadcast -p 3 --bytes 8 -a chain");
    plan.as_object_mut().unwrap().remove("name");
    let plan = plan.to_string();
    let is_plain = |text: &str| !text.contains(|c: char| c.is_control() && c != '\n');
    let names = [
        "=cmd(1)",
        "+1+2",
        "a|b<i>*`[x](y)",
        "x\ny\\input{z}",
        "a\u{1b}[31m\tb",
        "$\\end{tabular}^^M~",
    ];
    for (i, name) in names.into_iter().enumerate() {
        let file = format!("{name}.json");
        fs::write(folder.join(&file), &plan).unwrap();
        let [csv, md, tex] = ["csv", "md", "tex"].map(|end| format!("{i}.{end}"));
        let compare = || {
            let mut command = oneport("compare broadcast -p 3 --bytes 8,16 --schedule");
            command.arg(&file).args(["-o", &csv, "-o", &md, "-o", &tex]);
            let output = command.current_dir(&folder).output().unwrap();
            assert!(output.status.success(), "{name}: {output:?}");
            let [out, err] = [output.stdout, output.stderr].map(|t| String::from_utf8(t).unwrap());
            assert!(is_plain(&out) && is_plain(&err), "{name}: {out:?} {err:?}");
            // What does not apply is told where it was tried.
            let table = out.split("\nrefused").next().unwrap().trim_end();
            (table.to_owned(), err)
        };
        let (table, _) = compare();
        let (again, notes) = compare();
        assert!(notes.contains("rows are known"), "{name}: {notes}");
        assert_eq!(table, again, "{name}");

        let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
        let rows = read(&csv);
        let mut records = csv::Reader::from_reader(rows.as_bytes());
        for field in records.records().flat_map(|record| {
            let record = record.unwrap();
            record.iter().map(str::to_owned).collect::<Vec<_>>()
        }) {
            let computes = field.starts_with(['=', '+', '-', '@']);
            assert!(!computes || field.parse::<f64>().is_ok(), "{name}: {field}");
        }
        let cells = |line: &str| line.replace("\\|", "").matches('|').count();
        let markdown = read(&md);
        let lines: Vec<&str> = markdown.lines().collect();
        let same = |line: &&str| cells(line) == cells(lines[0]) && line.ends_with('|');
        assert!(
            lines.iter().all(same) && !markdown.replace("\\<", "").contains('<'),
            "{markdown}"
        );
        let table = read(&tex);
        assert!(is_plain(&table), "{name}: {table:?}");
        let body = table.split_once('\n').unwrap().1;
        for command in ["\\input", "^^"] {
            assert!(!body.contains(command), "{table}");
        }
        assert!(
            table.starts_with('%') && body.starts_with("\\begin{tabular}"),
            "{table}"
        );
        assert_eq!(body.matches("\\end{tabular}").count(), 1, "{table}");
    }
}

/// Rows of a CSV file that nobody has timed are no rows.
#[test]
fn a_table_goes_on_from_rows_that_make_sense_only() {
    let folder = folder("untrusted_rows");
    let path = folder.join("rows.csv");
    let command = format!("compare reduce -p 3 --bytes 8,16 -o {}", path.display());
    text(&command);
    let own = fs::read_to_string(&path).unwrap();
    for (column, value) in [
        ("model_time", "NaN"),
        ("model_time", "-1"),
        ("lower_bound", "inf"),
        ("median_ns", "NaN"),
        ("ranks", "0"),
        ("algorithm", "a\u{1b}[31m"),
        ("collective", "\u{1b}[31m"),
        ("ports", "\u{7}"),
    ] {
        let mut rows = csv::Reader::from_reader(own.as_bytes());
        let header = rows.headers().unwrap().clone();
        let at = header.iter().position(|name| name == column).unwrap();
        let mut changed = csv::Writer::from_writer(Vec::new());
        changed.write_record(&header).unwrap();
        for row in rows.records() {
            let row = row.unwrap();
            let fields = row.iter().enumerate();
            let field = |(i, own)| if i == at { value } else { own };
            changed.write_record(fields.map(field)).unwrap();
        }
        fs::write(&path, changed.into_inner().unwrap()).unwrap();
        let message = failure(&mut oneport(&command), 2);
        assert!(
            message.contains("something else than rows"),
            "{column}: {message}"
        );
        ensure_printable(&message, column);
    }
}
