//! Tests that the folders of `src` and the crates import only lower layers, and that pure folders
//! use no thread, clock or file.
//!
//! The tests read the source text. A file imports every module that a `crate::` path names, in a
//! `use` line or elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Every folder of `src`, lowest first, and the folders that it may import besides [`SHARED`].
const LAYERS: &[(&str, &[&str])] = &[
    ("budget", &[]),
    ("error", &[]),
    ("guide", &[]),
    ("random", &[]),
    ("machine", &[]),
    ("schedule", &["machine"]),
    ("rules", &["schedule", "machine"]),
    ("check", &["rules", "schedule", "machine"]),
    ("simulate", &["rules", "schedule", "machine"]),
    // `run` simulates because paced runs and the order of eager steps follow model times.
    ("run", &["simulate", "rules", "schedule", "machine"]),
    ("mpi", &["run", "simulate", "rules", "schedule", "machine"]),
    ("plan", &["simulate", "rules", "schedule", "machine"]),
    ("collectives", &["plan", "run", "schedule"]),
];

/// The crates around the library, and which of each other they may use.
const CRATES: &[(&str, &[&str])] = &[
    ("pictures", &[]),
    ("formats", &[]),
    ("steady", &[]),
    ("synthesis", &[]),
    ("measure", &["pictures"]),
    (
        "cli",
        &["pictures", "formats", "steady", "synthesis", "measure"],
    ),
];

/// Modules that every folder may import.
const SHARED: &[&str] = &["budget", "error", "random"];

/// Folders that start no thread, read no clock and open no file.
const PURE: &[&str] = &[
    "machine",
    "schedule",
    "rules",
    "check",
    "simulate",
    "plan",
    "collectives",
    "pictures",
    "formats",
];

struct Source {
    /// The top-level folder of `src`, the file's name for a file directly in `src`, or the crate.
    folder: String,
    path: PathBuf,
    /// The names of its path within its crate.
    module: Vec<String>,
    /// The text without comments.
    code: String,
}

/// The Rust files below a folder of the package, in order of their paths.
fn rust_files(folder: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// The files of the library, then those of the crates.
fn sources() -> Vec<Source> {
    let mut sources = sources_below("src", None);
    for (name, _) in CRATES {
        sources.extend(sources_below(&format!("crates/{name}/src"), Some(name)));
    }
    sources
}

fn sources_below(root: &str, of_crate: Option<&str>) -> Vec<Source> {
    let files = rust_files(root).into_iter();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(root);
    let source = |path: PathBuf| {
        let inside = path.strip_prefix(&root).unwrap().with_extension("");
        let names = inside
            .iter()
            .map(|name| name.to_string_lossy().into_owned());
        let names: Vec<String> = names.collect();
        let code = code(&fs::read_to_string(&path).unwrap());
        Source {
            folder: of_crate.unwrap_or(&names[0]).to_string(),
            module: names.into_iter().filter(|name| name != "mod").collect(),
            path,
            code,
        }
    };
    files.map(source).collect()
}

/// Returns the text without its comment lines.
fn code(text: &str) -> String {
    let code = text.lines().filter(|l| !l.trim_start().starts_with("//"));
    code.collect::<Vec<_>>().join("\n")
}

/// Returns the first name after every `crate::`, including every entry of a `{...}` list.
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
                        found.insert(identifier(&list[i..]));
                        start = false;
                    }
                    _ => {}
                }
            }
        } else {
            found.insert(identifier(rest));
        }
    }
    found
}

/// Returns the identifier at the start of `text`.
fn identifier(text: &str) -> String {
    text.chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

#[test]
fn folders_import_only_lower_layers() {
    let layers: BTreeMap<_, _> = LAYERS.iter().copied().collect();
    let sources = sources_below("src", None);
    // A name at the crate root is a re-export: `crate::Request` counts as an import of `plan`.
    let top = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let mut reexports = BTreeMap::new();
    for line in top
        .lines()
        .filter_map(|l| l.trim().strip_prefix("pub use "))
    {
        let (target, names) = line.split_once("::").expect("a path");
        for name in names.split(|c: char| !c.is_alphanumeric() && c != '_') {
            reexports.insert(name.to_string(), target.to_string());
        }
    }
    let mut violations = Vec::new();
    for source in &sources {
        let Source {
            folder, path, code, ..
        } = source;
        // These name what others offer.
        if folder == "lib" || folder == "internal" {
            continue;
        }
        let Some(below) = layers.get(folder.as_str()) else {
            violations.push(format!(
                "{}: LAYERS lacks the folder {folder}",
                path.display()
            ));
            continue;
        };
        for import in imports(code) {
            let target = reexports.get(&import).unwrap_or(&import);
            let allowed = target == folder
                || SHARED.contains(&target.as_str())
                || below.contains(&target.as_str());
            if !allowed && layers.contains_key(target.as_str()) {
                violations.push(format!("{} imports {target}", path.display()));
            }
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
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

/// The manifests name no other crate of the workspace, but what tests need, and no crate that must
/// not have unsafe code lacks the attribute that forbids it.
#[test]
fn crates_use_only_lower_crates() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates");
    assert_eq!(fs::read_dir(&root).unwrap().count(), CRATES.len());
    for (i, (name, below)) in CRATES.iter().enumerate() {
        let manifest = fs::read_to_string(root.join(name).join("Cargo.toml")).unwrap();
        let (_, rest) = manifest.split_once("\n[dependencies]\n").unwrap();
        let dependencies = rest.split("\n[").next().unwrap();
        for (j, (other, _)) in CRATES.iter().enumerate() {
            let used = dependencies.contains(&format!("oneport-{other}"));
            assert!(!used || below.contains(other), "{name} uses {other}");
            assert!(!below.contains(other) || j < i, "{name} precedes {other}");
        }
        let top = fs::read_to_string(root.join(name).join("src/lib.rs")).unwrap();
        assert!(top.contains("\n#![forbid(unsafe_code)]\n"), "{name}");
    }
}

/// Returns the paths that the `use` declarations of `code` name, relative to the crate, for a file
/// that is `module`.
fn used(code: &str, module: &[String]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for declaration in code.split("use ").skip(1) {
        let tree: String = declaration.split(';').next().unwrap().into();
        expand(
            &mut tree.chars().filter(|c| !c.is_whitespace()).peekable(),
            &[],
            &mut found,
        );
    }
    let absolute = |path: Vec<String>| {
        let supers = path.iter().take_while(|name| *name == "super").count();
        let base = match path.first()?.as_str() {
            "crate" => return Some(path[1..].to_vec()),
            "self" => [module, &path[1..]].concat(),
            "super" => [
                &module[..module.len().checked_sub(supers)?],
                &path[supers..],
            ]
            .concat(),
            _ => return None,
        };
        Some(base)
    };
    found.into_iter().filter_map(absolute).collect()
}

/// Appends the paths of a use tree, each after `prefix`.
fn expand(
    tree: &mut std::iter::Peekable<impl Iterator<Item = char>>,
    prefix: &[String],
    found: &mut Vec<Vec<String>>,
) {
    let mut path = prefix.to_vec();
    let mut name = String::new();
    let mut nested = false;
    while let Some(c) = tree.next_if(|c| *c != '}' && *c != ',') {
        match c {
            ':' if !name.is_empty() => path.push(std::mem::take(&mut name)),
            ':' => {}
            '{' => {
                nested = true;
                expand(tree, &path, found);
                while tree.next_if_eq(&',').is_some() {
                    expand(tree, &path, found);
                }
                tree.next();
            }
            c => name.push(c),
        }
    }
    if !nested {
        path.push(name);
        found.push(path);
    }
}

#[test]
fn use_trees_are_expanded() {
    let module = ["a", "b"].map(String::from);
    let code = "use crate::{x::{y, z::w}, v};\npub use super::c::d; use self::e; use std::f;";
    let found: Vec<_> = used(code, &module).iter().map(|p| p.join("::")).collect();
    assert_eq!(found, ["x::y", "x::z::w", "v", "a::c::d", "a::b::e"]);
}

/// No two files import each other, directly or through others, but a module and its children.
#[test]
fn files_have_no_cycle() {
    let mut roots = vec![sources_below("src", None)];
    let of = |name: &str| sources_below(&format!("crates/{name}/src"), Some(name));
    roots.extend(CRATES.iter().map(|(name, _)| of(name)));
    for sources in &roots {
        assert_no_cycle(sources);
    }
}

fn assert_no_cycle(sources: &[Source]) {
    let files = sources
        .iter()
        .filter(|s| s.module != ["lib"] && s.module != ["internal"]);
    let files: BTreeMap<Vec<String>, &str> =
        files.map(|s| (s.module.clone(), s.code.as_str())).collect();
    let imported = |name: &[String], code: &str| -> Vec<Vec<String>> {
        let target = |path: Vec<String>| {
            let prefixes = (1..=path.len()).rev().map(|n| path[..n].to_vec());
            prefixes
                .into_iter()
                .find(|prefix| files.contains_key(prefix))
        };
        let targets = used(code, name).into_iter().filter_map(target);
        targets.filter(|to| !name.starts_with(to)).collect()
    };
    let edges: BTreeMap<_, _> = files
        .iter()
        .map(|(name, code)| (name, imported(name, code)))
        .collect();
    let reaches = |from: &Vec<String>, to: &Vec<String>| {
        let (mut seen, mut work) = (BTreeSet::new(), vec![from]);
        while let Some(file) = work.pop() {
            work.extend(edges[file].iter().filter(|next| seen.insert(*next)));
        }
        seen.contains(to)
    };
    let cyclic = files.keys().filter(|file| reaches(file, file));
    let cyclic: Vec<String> = cyclic.map(|file| file.join("::")).collect();
    assert!(cyclic.is_empty(), "{cyclic:?}");
}

#[test]
fn pure_folders_use_no_threads_clocks_or_files() {
    let forbidden = [
        "std::thread",
        "std::fs",
        "Instant",
        "SystemTime",
        "thread::",
    ];
    let mut violations = Vec::new();
    for source in sources() {
        if !PURE.contains(&source.folder.as_str()) {
            continue;
        }
        for word in forbidden {
            if source.code.contains(word) {
                violations.push(format!("{} uses {word}", source.path.display()));
            }
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

/// The lines of the given folders that break a law, but those of the `exempt` files.
fn lines_that(breaks: impl Fn(&str) -> bool, folders: &[&str], exempt: &[&str]) -> String {
    let mut violations = Vec::new();
    for source in sources() {
        if !folders.contains(&&*source.folder) || exempt.iter().any(|f| source.path.ends_with(f)) {
            continue;
        }
        for line in source.code.lines().filter(|line| breaks(line)) {
            violations.push(format!("{}: {}", source.path.display(), line.trim()));
        }
    }
    violations.join("\n")
}

/// Every folder of `src` and every crate.
fn all_folders() -> Vec<&'static str> {
    let folders = LAYERS.iter().map(|(folder, _)| *folder);
    folders
        .chain(CRATES.iter().map(|(name, _)| *name))
        .collect()
}

/// Whether a line compares the name of an algorithm.
fn compares_names(line: &str) -> bool {
    let compared = ["a", "algorithm", "row"].iter().flat_map(|value| {
        let names = [format!("{value}.name()"), format!("{value}.name")];
        names.into_iter().flat_map(|name| {
            [
                format!("{name} == "),
                format!("{name} != "),
                format!("match {name} "),
                format!("match &*{name} "),
                format!("matches!({name}"),
                format!("matches!(&*{name}"),
                format!("contains(&{name}"),
                format!("contains(&&*{name}"),
            ]
        })
    });
    let compared: Vec<String> = compared.collect();
    compared.iter().any(|comparison| line.contains(comparison))
}

/// Differences between algorithms are fields of their rows. Names are read by the registry alone.
#[test]
fn nothing_dispatches_on_algorithm_names() {
    let folders = ["plan", "measure", "formats", "pictures", "steady", "cli"];
    let readers = ["registry.rs", "registry/composition.rs"];
    assert_eq!(lines_that(compares_names, &folders, &readers), "");
    assert!(compares_names("if algorithm.name() == name {"));
    assert!(compares_names("rows.find(|a| a.name() != \"ring\")"));
    assert!(!compares_names("let name = algorithm.name();"));
}

/// Whether a line leaks memory, or has a static that can grow.
fn grows(line: &str) -> bool {
    let cells = ["Mutex<", "RwLock<", "Lazy", "OnceLock<", "OnceCell<"];
    let is_static = line.contains("static ") && line.contains(": ");
    is_static && cells.iter().any(|cell| line.contains(cell)) || line.contains("leak(")
}

#[test]
fn nothing_is_leaked_and_no_static_grows() {
    // A library is loaded once, and stays so.
    let exempt = ["mpi/binding/library.rs"];
    assert_eq!(lines_that(grows, &all_folders(), &exempt), "");
    assert!(grows(
        "static NAMED: Mutex<BTreeMap<String, Row>> = Mutex::new(BTreeMap::new());"
    ));
    assert!(grows("let name = name.leak();") && !grows("static ALL: [Algorithm; 9] = rows();"));
}

/// The manifests build the sources without a test harness, so a test there would never run.
#[test]
fn sources_have_no_unit_tests() {
    let is_test = |line: &str| line.contains("#[test]") || line.contains("cfg(test");
    assert_eq!(lines_that(is_test, &all_folders(), &[]), "");
}

/// Comments fit into 100 columns, except tables, URLs and blocks of code.
#[test]
fn comments_are_wrapped() {
    let mut violations = Vec::new();
    let folders = ["src", "crates", "benches", "examples", "tests"];
    for path in folders.iter().flat_map(|folder| rust_files(folder)) {
        let text = fs::read_to_string(&path).unwrap();
        let mut in_code = false;
        for (number, line) in text.lines().enumerate() {
            let Some(comment) = line.trim_start().strip_prefix("//") else {
                continue;
            };
            let words = comment.trim_start_matches(['/', '!']).trim_start();
            in_code ^= words.starts_with("```");
            let literal = in_code || words.starts_with('|') || words.contains("://");
            if line.chars().count() > 100 && !literal {
                violations.push(format!("{}:{}", path.display(), number + 1));
            }
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

/// Files of `run` that take primitives from elsewhere, though not on the way of a message.
const OWN_PRIMITIVES: &[&str] = &[
    "sync.rs",
    "recorded.rs",
    // Threads and jobs start and end.
    "system.rs",
    "team.rs",
    "scoped_job.rs",
    // The size of the cache is read once.
    "tuning.rs",
    // Operators are cloned before a run.
    "built_in.rs",
    "combine.rs",
    "operator.rs",
];

/// Otherwise neither the model checker nor the record of cache lines would see them.
#[test]
fn runs_take_their_primitives_from_one_file() {
    let mut violations = Vec::new();
    for source in sources() {
        let Source {
            folder, path, code, ..
        } = source;
        let file = path.file_name().unwrap().to_string_lossy();
        if folder != "run" || OWN_PRIMITIVES.contains(&&*file) {
            continue;
        }
        for word in [
            "std::sync",
            "core::sync",
            "parking_lot",
            "crossbeam_channel",
        ] {
            if code.contains(word) {
                violations.push(format!("{} uses {word}", path.display()));
            }
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}
