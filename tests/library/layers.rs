//! Tests of the laws of the sources: folders, files and crates use only what is below them, and
//! what the architecture says to stand in one place does. Their numbers are those of
//! `ARCHITECTURE.md`.
//!
//! Sources are parsed. A file uses what its `use` declarations and all other paths name, those in
//! the arguments of macros too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

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
    // `run` simulates because paced runs and the order of eager steps follow model times, and
    // compares bits with those of the trees that the proof finds.
    (
        "run",
        &["check", "simulate", "rules", "schedule", "machine"],
    ),
    ("mpi", &["run", "simulate", "rules", "schedule", "machine"]),
    ("plan", &["simulate", "rules", "schedule", "machine"]),
    ("collectives", &["plan", "run", "schedule"]),
];

/// Modules that every folder may import.
const SHARED: &[&str] = &["budget", "error", "random"];

/// The crates around the library, lowest first, and which of each other they may use.
const CRATES: &[(&str, &[&str])] = &[
    ("pictures", &[]),
    ("formats", &[]),
    ("steady", &[]),
    ("synthesis", &[]),
    ("measure", &["pictures"]),
    ("preload", &["measure"]),
    (
        "app",
        &["pictures", "formats", "steady", "synthesis", "measure"],
    ),
    ("cli", &["app"]),
];

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

/// A source file.
struct Source {
    /// The top-level folder of `src`, the file's name for a file directly in `src`, or the crate.
    folder: String,
    path: PathBuf,
    /// The names of its path within its crate.
    module: Vec<String>,
    /// The text without comments.
    code: String,
    facts: Facts,
}

/// What a file names.
#[derive(Default)]
struct Facts {
    /// In `use` declarations.
    used: Vec<Vec<String>>,
    /// Elsewhere.
    paths: Vec<Vec<String>>,
}

impl Facts {
    /// Adds the paths of a use tree, each after `prefix`.
    fn add(&mut self, prefix: &[String], tree: &syn::UseTree) {
        let with = |name: &syn::Ident| [prefix, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.add(&with(&path.ident), &path.tree),
            syn::UseTree::Group(group) => group.items.iter().for_each(|t| self.add(prefix, t)),
            syn::UseTree::Name(name) => self.used.push(with(&name.ident)),
            syn::UseTree::Rename(name) => self.used.push(with(&name.ident)),
            syn::UseTree::Glob(_) => self.used.push(prefix.to_vec()),
        }
    }

    /// Adds the paths among the arguments of a macro.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut colons) = (Vec::new(), 0);
        for token in tokens {
            match token {
                TokenTree::Punct(p) if p.as_char() == ':' => colons += 1,
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.paths.push(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                _ => self.paths.push(std::mem::take(&mut path)),
            }
        }
        self.paths.push(path);
    }
}

impl<'a> Visit<'a> for Facts {
    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        self.add(&[], &item.tree);
    }
    fn visit_path(&mut self, path: &'a syn::Path) {
        let names = path.segments.iter().map(|s| s.ident.to_string());
        self.paths.push(names.collect());
        visit::visit_path(self, path);
    }
    fn visit_macro(&mut self, call: &'a syn::Macro) {
        self.add_tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }
}

/// The Rust files below a folder of the package, in order of their paths.
fn rust_files(folder: &str) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![root().join(folder)]);
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

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files of the library, then those of the crates.
fn sources() -> Vec<Source> {
    let crates = CRATES.iter().map(|(name, _)| Some(*name));
    [None]
        .into_iter()
        .chain(crates)
        .flat_map(sources_of)
        .collect()
}

fn sources_of(of_crate: Option<&str>) -> Vec<Source> {
    let below = of_crate.map_or("src".into(), |name| format!("crates/{name}/src"));
    let source = |path: PathBuf| {
        let inside = path
            .strip_prefix(root().join(&below))
            .unwrap()
            .with_extension("");
        let names = inside
            .iter()
            .map(|name| name.to_string_lossy().into_owned());
        let names: Vec<String> = names.collect();
        let text = fs::read_to_string(&path).unwrap();
        let lines = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        let mut facts = Facts::default();
        facts.visit_file(&syn::parse_file(&text).unwrap());
        Source {
            folder: of_crate.unwrap_or(&names[0]).to_string(),
            module: names.into_iter().filter(|name| name != "mod").collect(),
            code: lines.collect::<Vec<_>>().join("\n"),
            path,
            facts,
        }
    };
    rust_files(&below).into_iter().map(source).collect()
}

impl Source {
    /// A path as it stands in the file, from the root of its crate; `None` for other crates.
    fn absolute(&self, path: &[String]) -> Option<Vec<String>> {
        let supers = path.iter().take_while(|name| *name == "super").count();
        let own = &self.module;
        Some(match path.first()?.as_str() {
            "crate" => path[1..].to_vec(),
            "self" => [own, &path[1..]].concat(),
            "super" => [&own[..own.len().checked_sub(supers)?], &path[supers..]].concat(),
            _ => return None,
        })
    }

    /// Whether others only offer here what stands elsewhere.
    fn is_front(&self) -> bool {
        self.module == ["lib"] || self.module == ["internal"]
    }
}

/// What some files have that they may not: each with the name of its file.
fn assert_none(found: impl Iterator<Item = (PathBuf, String)>) {
    let found: Vec<String> = found
        .map(|(path, what)| format!("{}: {what}", path.display()))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Those of the folders of `sources` whose code has one of the words, outside the exempt files.
fn assert_without(words: &[&str], of: impl Fn(&Source) -> bool, exempt: &[&str]) {
    let sources = sources().into_iter().filter(|source| of(source));
    let sources = sources.filter(|s| !exempt.iter().any(|file| s.path.ends_with(file)));
    assert_none(sources.flat_map(|source| {
        let found = words.iter().filter(|word| source.code.contains(**word));
        let found: Vec<_> = found
            .map(|word| (source.path.clone(), word.to_string()))
            .collect();
        found
    }));
}

/// The files where something stands, by what `of` finds in a line.
fn places(of: impl Fn(&Source, &str) -> Option<String>) -> BTreeMap<String, BTreeSet<String>> {
    let mut places = BTreeMap::<String, BTreeSet<String>>::new();
    for source in sources() {
        let path = source.path.strip_prefix(root()).unwrap().display();
        for what in source
            .code
            .lines()
            .filter_map(|line| of(&source, line.trim()))
        {
            places.entry(what).or_default().insert(path.to_string());
        }
    }
    places
}

/// Asserts that each of `places` has one file.
fn assert_one_each(places: &BTreeMap<String, BTreeSet<String>>) {
    let several: Vec<_> = places.iter().filter(|(_, files)| files.len() > 1).collect();
    assert!(!places.is_empty() && several.is_empty(), "{several:#?}");
}

/// The name after one of the words at the beginning of a line.
fn name_after(line: &str, words: &[&str]) -> Option<String> {
    let rest = words.iter().find_map(|word| line.strip_prefix(word))?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    Some(rest[..end.unwrap_or(rest.len())].to_string())
}

#[test]
fn paths_are_found_wherever_they_stand() {
    let code = "pub use crate::{x::{y, z::w}, v}; use super::c::d as e; use self::f::*; use std::g; \
                fn h() { crate::i::j(); k!(a, crate::l::m(b)) }";
    let mut facts = Facts::default();
    facts.visit_file(&syn::parse_file(code).unwrap());
    let source = Source {
        folder: "a".into(),
        path: PathBuf::new(),
        module: vec!["a".into(), "b".into()],
        code: String::new(),
        facts,
    };
    let joined = |paths: &[Vec<String>]| {
        let paths = paths.iter().filter_map(|path| source.absolute(path));
        paths.map(|path| path.join("::")).collect::<Vec<_>>()
    };
    let expected = ["x::y", "x::z::w", "v", "a::c::d", "a::b::f"];
    assert_eq!(joined(&source.facts.used), expected);
    assert_eq!(joined(&source.facts.paths), ["i::j", "l::m"]);
}

#[test]
fn folders_import_only_lower_layers() {
    for (i, (folder, below)) in LAYERS.iter().enumerate() {
        let is_lower = |import: &&str| LAYERS[..i].iter().any(|(lower, _)| lower == import);
        assert!(
            below.iter().all(is_lower),
            "{folder} precedes what it imports"
        );
    }
    let layers: BTreeMap<_, _> = LAYERS.iter().copied().collect();
    let sources = sources_of(None);
    // A name at the crate root is a re-export: `crate::Request` counts as an import of `plan`.
    let top = sources
        .iter()
        .find(|source| source.module == ["lib"])
        .unwrap();
    let names = top.facts.used.iter();
    let reexports: BTreeMap<_, _> = names
        .map(|path| (&path[path.len() - 1], &path[0]))
        .collect();
    assert_none(sources.iter().filter(|s| !s.is_front()).flat_map(|source| {
        let Source {
            folder,
            path,
            facts,
            ..
        } = source;
        let below = *layers
            .get(&**folder)
            .unwrap_or_else(|| panic!("LAYERS lacks {folder}"));
        let paths = facts.used.iter().chain(&facts.paths);
        let roots = paths.filter_map(|path| source.absolute(path)?.into_iter().next());
        let targets = roots.map(|name| reexports.get(&name).map_or(name.clone(), |&to| to.clone()));
        let may = |to: &str| to == folder || SHARED.contains(&to) || below.contains(&to);
        let higher = targets.filter(|to| layers.contains_key(&**to) && !may(to));
        higher
            .map(|to| (path.clone(), format!("imports {to}")))
            .collect::<Vec<_>>()
    }));
}

/// The manifests name no other crate of the workspace, but what tests need; law 10: no crate that
/// must not have unsafe code lacks the attribute that forbids it.
#[test]
fn crates_use_only_lower_crates() {
    let crates = root().join("crates");
    assert_eq!(fs::read_dir(&crates).unwrap().count(), CRATES.len());
    for (i, (name, below)) in CRATES.iter().enumerate() {
        let manifest = fs::read_to_string(crates.join(name).join("Cargo.toml")).unwrap();
        let (_, rest) = manifest.split_once("\n[dependencies]\n").unwrap();
        let dependencies = rest.split("\n[").next().unwrap();
        for (j, (other, _)) in CRATES.iter().enumerate() {
            let used = dependencies.contains(&format!("oneport-{other}"));
            assert!(!used || below.contains(other), "{name} uses {other}");
            assert!(!below.contains(other) || j < i, "{name} precedes {other}");
        }
        let top = crates.join(name).join("src");
        let top = ["lib.rs", "main.rs"].map(|file| fs::read_to_string(top.join(file)));
        let top = top.into_iter().find_map(Result::ok).unwrap();
        // That which is called by programs in C.
        let is_safe = *name != "preload";
        assert_eq!(
            top.contains("\n#![forbid(unsafe_code)]\n"),
            is_safe,
            "{name}"
        );
    }
}

/// No two files import each other, directly or through others, but a module and its children. What
/// a module passes on from a file counts as the module's.
#[test]
fn files_have_no_cycle() {
    for of_crate in [None]
        .into_iter()
        .chain(CRATES.iter().map(|(name, _)| Some(*name)))
    {
        let sources = sources_of(of_crate);
        let files: BTreeMap<_, _> = sources
            .iter()
            .filter(|source| !source.is_front())
            .map(|source| (source.module.clone(), source))
            .collect();
        let imported = |source: &Source| {
            let file = |path: Vec<String>| {
                let mut prefixes = (1..=path.len()).rev().map(|n| path[..n].to_vec());
                prefixes.find(|prefix| files.contains_key(prefix))
            };
            let paths = source
                .facts
                .used
                .iter()
                .filter_map(|path| source.absolute(path));
            let targets = paths
                .filter_map(file)
                .filter(|to| !source.module.starts_with(to));
            targets.collect::<Vec<_>>()
        };
        let edges: BTreeMap<_, _> = files.iter().map(|(name, s)| (name, imported(s))).collect();
        let is_cyclic = |file: &&&Vec<String>| {
            let (mut seen, mut work) = (BTreeSet::new(), vec![**file]);
            while let Some(file) = work.pop() {
                work.extend(edges[file].iter().filter(|next| seen.insert(*next)));
            }
            seen.contains(**file)
        };
        let names: Vec<_> = files.keys().collect();
        let cyclic: Vec<_> = names.iter().filter(is_cyclic).collect();
        assert!(cyclic.is_empty(), "{cyclic:?}");
    }
}

/// Law 3.
#[test]
fn pure_folders_use_no_threads_clocks_or_files() {
    let words = [
        "std::thread",
        "std::fs",
        "Instant",
        "SystemTime",
        "thread::",
    ];
    assert_without(&words, |source| PURE.contains(&&*source.folder), &[]);
}

/// Law 1: differences between algorithms are fields of their rows. Names are read by the registry
/// alone.
#[test]
fn nothing_dispatches_on_algorithm_names() {
    let compared = ["a", "algorithm", "row"].into_iter().flat_map(|value| {
        let names = [format!("{value}.name()"), format!("{value}.name")];
        names.into_iter().flat_map(|name| {
            let before = ["match ", "match &*", "matches!(", "matches!(&*"];
            let before = before.map(|before| format!("{before}{name}"));
            let within = ["contains(&", "contains(&&*"].map(|before| format!("{before}{name}"));
            let after = [" == ", " != "].map(|after| format!("{name}{after}"));
            before.into_iter().chain(within).chain(after)
        })
    });
    let words: Vec<String> = compared.collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let finds = |code: &str| words.iter().any(|word| code.contains(word));
    assert!(finds("if algorithm.name() == name {") && finds("find(|a| a.name() != \"ring\")"));
    assert!(!finds("let name = algorithm.name();"));
    let folders = ["plan", "measure", "formats", "pictures", "steady", "app"];
    let readers = ["registry.rs", "registry/composition.rs", "app/src/ask.rs"];
    assert_without(
        &words,
        |source| folders.contains(&&*source.folder),
        &readers,
    );
}

/// Law 1: a library is loaded once, and stays so.
#[test]
fn nothing_is_leaked_and_no_static_grows() {
    let grows = |line: &str| {
        let cells = ["Mutex<", "RwLock<", "Lazy", "OnceLock<", "OnceCell<"];
        let is_static = line.contains("static ") && line.contains(": ");
        is_static && cells.iter().any(|cell| line.contains(cell)) || line.contains("leak(")
    };
    assert!(grows(
        "static NAMED: Mutex<BTreeMap<String, Row>> = Mutex::new(BTreeMap::new());"
    ));
    assert!(grows("let name = name.leak();") && !grows("static ALL: [Algorithm; 9] = rows();"));
    let sources = sources().into_iter();
    // What C calls finds its state in a static.
    let is_exempt = |path: &Path| {
        path.ends_with("mpi/binding/library.rs")
            || path.to_string_lossy().contains("crates/preload/")
    };
    let sources = sources.filter(|source| !is_exempt(&source.path));
    assert_none(sources.flat_map(|source| {
        let lines = source.code.lines().filter(|line| grows(line));
        let lines: Vec<_> = lines
            .map(|line| (source.path.clone(), line.to_string()))
            .collect();
        lines
    }));
}

/// Law 2: what checks, times and executes schedules asks the rules.
#[test]
fn whoever_orders_steps_asks_the_rules() {
    let askers = [
        "check/deadlock",
        "simulate/mod",
        "simulate/stream",
        "run/exec/program",
        "run/exec/sequence",
        "run/clock",
    ];
    let sources = sources_of(None);
    for asker in askers {
        let Some(source) = sources
            .iter()
            .find(|s| s.path.ends_with(format!("src/{asker}.rs")))
        else {
            panic!("{asker} is gone");
        };
        let mut used = source
            .facts
            .used
            .iter()
            .filter_map(|path| source.absolute(path));
        assert!(used.any(|path| path[0] == "rules"), "{asker} asks no rules");
    }
}

/// Law 4: a limit stands once: no two files have a constant of the same name and number, but these,
/// which limit different things.
#[test]
fn a_limit_stands_once() {
    let different = ["MAX_RANKS", "MAX_WORD", "ROUNDS"];
    assert_one_each(&places(|_, line| {
        let line = line
            .trim_start_matches("pub ")
            .trim_start_matches("pub(super) ");
        let constant = line
            .trim_start_matches("pub(crate) ")
            .strip_prefix("const ")?;
        let (name, value) = constant.strip_suffix(';')?.split_once(" = ")?;
        let is_number = value.len() > 1 && value.starts_with(|c: char| c.is_ascii_digit());
        let is_other = different.contains(&name.split(':').next()?);
        (is_number && !is_other).then(|| format!("{name} = {value}"))
    }));
}

/// Law 4: what limits the steps of schedules, the bytes that are taken for them or the tries of
/// planners stands in `budget`, what limits runs in `run/tuning`.
#[test]
fn limits_of_steps_and_memory_stand_in_the_budget() {
    /// The name of a constant that is a number.
    fn number(line: &str) -> Option<String> {
        let before = [
            "const ",
            "pub const ",
            "pub(super) const ",
            "pub(crate) const ",
            "pub(in crate::plan) const ",
        ];
        let value = line.split(" = ").nth(1)?.trim_start_matches('(');
        let is_number = value.starts_with(|c: char| c.is_ascii_digit());
        name_after(line, &before).filter(|_| is_number)
    }
    let is_maximum = |line: &str| number(line).is_some_and(|name| name.starts_with("MAX_"));
    let is_limit = |line: &str| {
        let name = number(line).unwrap_or_default();
        let takes = ["BYTES_PER_", "BYTES_OF_"]
            .iter()
            .any(|word| name.starts_with(word));
        takes || name.contains("MAX_STEPS") || name.ends_with("STEP_BYTES")
    };
    assert!(is_limit("const BYTES_PER_LINE: u128 = 700;"));
    assert!(is_limit("pub const MAX_STEPS: u64 = 200_000_000;"));
    assert!(!is_limit("const MAX_STEPS_BETWEEN: usize = MAX_STEPS;"));
    // What a format of files allows, and how often a solver asks whether it shall stop.
    let others = ["formats/src/msccl.rs", "steady/src/lp/float.rs"];
    // What belongs to an algorithm or to its notation, whatever the effort.
    let of_algorithms = [
        "build/in_flight.rs",
        "circulant/n_blocks.rs",
        "circulant/schedule.rs",
        "circulant/table.rs",
        "exchange/gossip.rs",
        "exchange/pat.rs",
        "out_of_order/broadcast.rs",
        "registry/composition.rs",
    ];
    let is_of_algorithm = |path: &Path| of_algorithms.iter().any(|file| path.ends_with(file));
    let sources = sources().into_iter();
    let sources = sources.filter(|s| s.module != ["budget"]);
    let sources = sources.filter(|s| !others.iter().any(|file| s.path.ends_with(file)));
    assert_none(sources.flat_map(|source| {
        let plans = source.folder == "plan" && !is_of_algorithm(&source.path);
        let lines = source.code.lines().map(str::trim);
        let limits = lines.filter(|line| is_limit(line) || plans && is_maximum(line));
        let limits: Vec<_> = limits
            .map(|line| (source.path.clone(), line.to_string()))
            .collect();
        limits
    }));
}

/// Law 5: one loop of repetitions, one builder of an outcome.
#[test]
fn all_runs_share_a_loop_and_an_outcome() {
    let found = places(|_, line| {
        let is_loop =
            line.starts_with("for ") && line.contains(" in 0..") && line.contains("repetitions {");
        let builds = line == "Outcome {" || line.ends_with(" = Outcome {");
        (is_loop || builds).then(|| if is_loop { "loop" } else { "outcome" }.to_string())
    });
    assert_eq!(found.keys().collect::<Vec<_>>(), ["loop", "outcome"]);
    assert_one_each(&found);
}

/// Law 6: a word names one public type of the library.
#[test]
fn a_word_names_one_public_type() {
    assert_one_each(&places(|source, line| {
        let of_library = source.path.starts_with(root().join("src"));
        name_after(line, &["pub struct ", "pub enum ", "pub trait "]).filter(|_| of_library)
    }));
}

/// Law 7: the ways to a model time.
#[test]
fn the_doors_to_a_model_time_are_few() {
    let words = ["simulate", "timed", "time", "stream", "closed_form"];
    let is_door = |name: &String| words.contains(&name.trim_end_matches("_within"));
    let of = |source: Source| {
        let lines = source.code.lines().map(str::trim);
        let names = lines.filter_map(|line| name_after(line, &["pub fn ", "pub const fn "]));
        let doors: Vec<String> = names.filter(is_door).collect();
        let path = source.path.strip_prefix(root()).unwrap();
        (!doors.is_empty()).then(|| format!("{}: {}", path.display(), doors.join(", ")))
    };
    let here = ["simulate", "plan"];
    let sources = sources().into_iter();
    let sources = sources.filter(|source| here.contains(&&*source.folder));
    let mut doors: Vec<String> = sources.filter_map(of).collect();
    doors.sort();
    let expected = [
        "src/plan/gather/problem.rs: time",
        "src/plan/gather/tree.rs: time",
        "src/plan/pipeline/uni_greedy/mod.rs: time, time",
        "src/plan/pipeline/uni_greedy/states.rs: time",
        "src/plan/registry/planner.rs: timed",
        "src/plan/space/given.rs: time, time",
        "src/plan/space/variant.rs: closed_form, time_within, closed_form",
        "src/simulate/mod.rs: simulate, timed, simulate",
        "src/simulate/stream.rs: stream",
    ];
    assert_eq!(doors, expected);
}

/// Law 8: only the command knows its arguments and a terminal, and it knows no JSON; of the
/// library only files of a form do.
#[test]
fn only_the_command_knows_argv_and_a_terminal() {
    let words = [
        "env::args",
        "terminal_size",
        "is_terminal",
        "clap::",
        "indicatif",
        "ExitCode",
    ];
    assert_without(
        &words,
        |source| !["app", "cli"].contains(&&*source.folder),
        &[],
    );
    // What a command is asked for and answers passes by value, not by a place that it looks into.
    assert_without(&["thread_local!"], |source| source.folder == "app", &[]);
    let json = ["schedule/json.rs", "machine/links.rs", "src/error.rs"];
    let of_crate = |source: &Source| {
        let mut crates = CRATES.iter().filter(|(name, _)| *name != "cli");
        crates.any(|(name, _)| *name == source.folder)
    };
    assert_without(&["serde_json"], |source| !of_crate(source), &json);
}

/// Law 9: a rank's ports are asked what they can do. Which model they are is known where models
/// are defined, and where a table lists some of them.
#[test]
fn only_one_file_knows_which_models_of_ports_there_are() {
    // Each is printed as its variant with its number of ports.
    let names = oneport::Ports::KINDS.map(|ports| {
        let printed = format!("{ports:?}");
        let variant = printed.split([' ', '{', '(']).next().unwrap();
        format!("Ports::{variant}")
    });
    let compared = ["== Ports::", "!= Ports::"];
    let names: Vec<&str> = names.iter().map(String::as_str).chain(compared).collect();
    let exempt = ["src/machine/ports.rs", "app/src/synthesize/table.rs"];
    assert_without(&names, |_| true, &exempt);
}

/// What the crates of the workspace use beside the API does not grow.
#[test]
fn few_names_are_internal() {
    let sources = sources_of(None);
    let internal = sources.iter().find(|s| s.module == ["internal"]).unwrap();
    let names = internal.facts.used.len();
    assert!(names <= 26, "{names} names or modules in internal.rs");
}

/// The manifests build the sources without a test harness, so a test there would never run.
#[test]
fn sources_have_no_unit_tests() {
    assert_without(&["#[test]", "cfg(test"], |_| true, &[]);
}

/// Comments fit into 100 columns, except tables, URLs and blocks of code.
#[test]
fn comments_are_wrapped() {
    let folders = ["src", "crates", "benches", "examples", "tests"];
    let files = folders.iter().flat_map(|folder| rust_files(folder));
    assert_none(files.flat_map(|path| {
        let (text, mut in_code) = (fs::read_to_string(&path).unwrap(), false);
        let is_wide = |(number, line): (usize, &str)| {
            let comment = line.trim_start().strip_prefix("//")?;
            let words = comment.trim_start_matches(['/', '!']).trim_start();
            in_code ^= words.starts_with("```");
            let literal = in_code || words.starts_with('|') || words.contains("://");
            let wide = line.chars().count() > 100 && !literal;
            wide.then(|| (path.clone(), format!("line {}", number + 1)))
        };
        text.lines()
            .enumerate()
            .filter_map(is_wide)
            .collect::<Vec<_>>()
    }));
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
    // Operators, and the trees of a run, are cloned before it.
    "run.rs",
    "built_in.rs",
    "combine.rs",
    "operator.rs",
];

/// Law 10: otherwise neither the model checker nor the record of cache lines would see them.
#[test]
fn runs_take_their_primitives_from_one_file() {
    let words = [
        "std::sync",
        "core::sync",
        "parking_lot",
        "crossbeam_channel",
    ];
    assert_without(&words, |source| source.folder == "run", OWN_PRIMITIVES);
}
