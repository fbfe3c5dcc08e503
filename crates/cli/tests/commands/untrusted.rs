//! Files and arguments as somebody else may have made them: what they contain reaches messages
//! without control characters and cut short, and no input takes quadratic time.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::run::{failure, oneport};

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
