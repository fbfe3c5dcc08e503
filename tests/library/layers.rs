//! The layers of `src`: which folder may import which, and what no folder below `run` may do.
//!
//! Reads the source text. What a file imports is what its `use` lines and its paths that start with
//! `crate::` name; unit tests, which may look anywhere, are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A folder of `src` and the folders that it may import, besides [`SHARED`].
const LAYERS: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("random", &[]),
    ("machine", &[]),
    ("schedule", &["machine"]),
    ("rules", &["schedule", "machine"]),
    ("check", &["rules", "schedule", "machine"]),
    ("simulate", &["rules", "schedule", "machine"]),
    ("report", &["simulate", "rules", "schedule", "machine"]),
    // A paced run, and the order of eager steps, follow the model times of the schedule.
    ("run", &["simulate", "rules", "schedule", "machine"]),
    ("plan", &["simulate", "rules", "schedule", "machine"]),
    (
        "steady",
        &["report", "plan", "simulate", "rules", "schedule", "machine"],
    ),
    (
        "measure",
        &["run", "plan", "simulate", "rules", "schedule", "machine"],
    ),
];

/// What every folder may import.
const SHARED: &[&str] = &["error", "random"];

/// Folders that start no thread, read no clock and open no file.
const PURE: &[&str] = &[
    "machine", "schedule", "rules", "check", "simulate", "plan", "report",
];

/// A source file: its folder (or its name, for a file at the top), its path, and its text without
/// comments and unit tests.
struct Source {
    folder: String,
    path: PathBuf,
    code: String,
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("tests.rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    let source = |path: PathBuf| {
        let inside = path.strip_prefix(&root).unwrap();
        let first = inside.components().next().unwrap().as_os_str();
        let folder = Path::new(first)
            .file_stem()
            .unwrap()
            .to_string_lossy()
            .into();
        let code = code(&fs::read_to_string(&path).unwrap());
        Source { folder, path, code }
    };
    files.into_iter().map(source).collect()
}

/// The text without comments, and without what follows `#[cfg(test)]`.
fn code(text: &str) -> String {
    let tests = ["mod ", "pub(super) mod "].map(|m| format!("\n#[cfg(test)]\n{m}"));
    let ends = tests.iter().filter_map(|m| text.find(m));
    let end = ends.min().unwrap_or(text.len());
    let lines = text[..end].lines();
    let code = lines.filter(|l| !l.trim_start().starts_with("//"));
    code.collect::<Vec<_>>().join("\n")
}

/// The folders that a file imports.
fn imports(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if let Some(list) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut start = true;
            for (i, c) in list.char_indices() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => start = true,
                    c if start && (c.is_alphanumeric() || c == '_') => {
                        found.insert(word(&list[i..]));
                        start = false;
                    }
                    _ => {}
                }
            }
        } else {
            found.insert(word(rest));
        }
    }
    found
}

fn word(text: &str) -> String {
    text.chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

#[test]
fn folders_import_only_what_lies_below_them() {
    let layers: BTreeMap<_, _> = LAYERS.iter().copied().collect();
    let sources = sources();
    // Names at the top of the crate are re-exports: `crate::Request` is `plan`.
    let top = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let mut homes = BTreeMap::new();
    for line in top
        .lines()
        .filter_map(|l| l.trim().strip_prefix("pub use "))
    {
        let (home, names) = line.split_once("::").expect("a path");
        for name in names.split(|c: char| !c.is_alphanumeric() && c != '_') {
            homes.insert(name.to_string(), home.to_string());
        }
    }
    let mut wrong = Vec::new();
    for Source { folder, path, code } in &sources {
        if folder == "lib" || folder == "bin" {
            continue;
        }
        let Some(below) = layers.get(folder.as_str()) else {
            wrong.push(format!(
                "{}: no layer is known for {folder}",
                path.display()
            ));
            continue;
        };
        for import in imports(code) {
            let home = homes.get(&import).unwrap_or(&import);
            let fits =
                home == folder || SHARED.contains(&home.as_str()) || below.contains(&home.as_str());
            if !fits && layers.contains_key(home.as_str()) {
                wrong.push(format!("{} imports {home}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn layers_have_no_cycle() {
    for (i, (folder, below)) in LAYERS.iter().enumerate() {
        for import in *below {
            let at = LAYERS.iter().position(|(f, _)| f == import).unwrap();
            assert!(
                at < i,
                "{folder} is listed before {import}, which it imports"
            );
        }
    }
}

#[test]
fn only_what_runs_knows_threads_clocks_and_files() {
    let forbidden = [
        "std::thread",
        "std::fs",
        "Instant",
        "SystemTime",
        "thread::",
    ];
    let mut wrong = Vec::new();
    for source in sources() {
        if !PURE.contains(&source.folder.as_str()) {
            continue;
        }
        for word in forbidden {
            if source.code.contains(word) {
                wrong.push(format!("{} names {word}", source.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What differs between algorithms is a field of a row: nothing compares an algorithm's name with
/// a string.
#[test]
fn nothing_dispatches_on_the_name_of_an_algorithm() {
    let mut wrong = Vec::new();
    for source in sources() {
        for (number, line) in source.code.lines().enumerate() {
            let compares = line.contains(".name == \"") || line.contains("match algorithm.name");
            if compares && source.folder != "bin" {
                wrong.push(format!("{}: {number}: {line}", source.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Comments are wrapped at 100 columns, but for tables, pictures and lines of code in them.
#[test]
fn comments_are_wrapped() {
    let mut wrong = Vec::new();
    for source in sources() {
        let text = fs::read_to_string(&source.path).unwrap();
        let mut in_code = false;
        for (number, line) in text.lines().enumerate() {
            let Some(comment) = line.trim_start().strip_prefix("//") else {
                continue;
            };
            let words = comment.trim_start_matches(['/', '!']).trim_start();
            in_code ^= words.starts_with("```");
            let literal = in_code || words.starts_with('|') || words.contains("://");
            if line.chars().count() > 100 && !literal {
                wrong.push(format!("{}:{}", source.path.display(), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
