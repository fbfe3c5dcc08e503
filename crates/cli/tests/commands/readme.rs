//! Tests README.md and the pages of docs/: commands print the output that the pages show, generated
//! parts are up to date, and links lead somewhere.
//!
//! The commands of a page run one after another in a folder of the page's own. They find there:
//! - the blocks whose fence names a file, such as "json ring.json";
//! - the schedules of examples/teaching;
//! - the files that earlier commands of the page wrote. A picture among these (or player.html) is
//!   the one that docs/images holds, if its name does not start with "my".
//!
//! Output is compared line by line, but for what depends on the machine: notes, and the lines that
//! start with a word of [`VOLATILE`]. Commands of a block marked "console varies" print measured
//! times: they must not refuse their arguments, and their output is not compared.
//!
//! `UPDATE_README=1 cargo test --release --test commands readme` writes output, table and pictures
//! where they differ. The README's commands name the release build, so use that.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use oneport::Kind;
use oneport::plan::registry::{self, Algorithm};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Starts of lines whose times and numbers of cores depend on the machine.
const VOLATILE: [&str; 2] = ["wall-clock", "threads"];

/// README.md and every page below docs/.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![Path::new(ROOT).join("README.md")];
    let mut folders = vec![Path::new(ROOT).join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

#[test]
fn pages_show_what_commands_print() {
    let update = std::env::var_os("UPDATE_README").is_some();
    for (i, path) in pages().iter().enumerate() {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("page-{i}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        for file in fs::read_dir(Path::new(ROOT).join("examples/teaching")).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), folder.join(file.file_name())).unwrap();
        }
        let shown = fs::read_to_string(path).unwrap();
        let printed = with_table(&with_outputs(&shown, &folder));
        if update {
            fs::write(path, &printed).unwrap();
        } else {
            for (line, (shown, printed)) in shown.lines().zip(printed.lines()).enumerate() {
                let at = format!("line {} of {} (left: shown)", line + 1, path.display());
                assert_eq!(shown, printed, "{at}");
            }
            assert_eq!(shown.lines().count(), printed.lines().count());
        }
        compare_pictures(&folder, update);
    }
}

/// Compares the pictures in `folder` with docs/images, or copies them there.
fn compare_pictures(folder: &Path, update: bool) {
    for entry in fs::read_dir(folder).unwrap() {
        let drawn = entry.unwrap().path();
        let name = drawn.file_name().unwrap().to_str().unwrap();
        if !(name.ends_with(".svg") || name == "player.html") || name.starts_with("my") {
            continue;
        }
        let kept = Path::new(ROOT).join("docs/images").join(name);
        if update {
            fs::copy(&drawn, kept).unwrap();
        } else {
            let same = fs::read(&drawn).unwrap() == fs::read(kept).unwrap_or_default();
            assert!(
                same,
                "docs/images/{name} is not the picture that its command draws"
            );
        }
    }
}

/// The page with the current output of every `oneport` command, where the shown one differs.
fn with_outputs(page: &str, folder: &Path) -> String {
    let mut result = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        writeln!(result, "{line}").unwrap();
        let Some(fence) = line.strip_prefix("```").filter(|fence| !fence.is_empty()) else {
            continue;
        };
        let block: String = lines
            .by_ref()
            .take_while(|line| *line != "```")
            .flat_map(|line| [line, "\n"])
            .collect();
        match fence.split_once(' ').unwrap_or((fence, "")) {
            ("console", varies) => result.push_str(&printed(&block, folder, varies == "varies")),
            (_, name) => {
                if !name.is_empty() {
                    fs::write(folder.join(name), &block).unwrap();
                }
                result.push_str(&block);
            }
        }
        result.push_str("```\n");
    }
    result
}

/// A block of commands, each with the output that it prints, or the shown one if it says the same.
fn printed(block: &str, folder: &Path, varies: bool) -> String {
    let mut result = String::new();
    for command in format!("\n{block}").split("\n$ ").skip(1) {
        let (command, shown) = command.split_once('\n').unwrap_or((command, ""));
        let shown = match shown {
            "" => String::new(),
            shown => format!("{}\n", shown.trim_end_matches('\n')),
        };
        let args = ["oneport ", "cargo run --release -- "]
            .into_iter()
            .find_map(|prefix| command.strip_prefix(prefix));
        let (code, printed) = args.map_or((0, shown.clone()), |args| output(args, folder));
        assert!(!varies || code != 2, "{command}: {printed}");
        let same = if varies {
            !shown.is_empty()
        } else {
            stable(&shown).eq(stable(&printed))
        };
        let text = if same { shown } else { printed };
        write!(result, "$ {command}\n{text}").unwrap();
    }
    result
}

/// The parts of an output's lines that do not depend on the machine.
fn stable(output: &str) -> impl Iterator<Item = &str> {
    let volatile = |line: &str| VOLATILE.into_iter().find(|word| line.starts_with(word));
    output
        .lines()
        .filter(|line| !line.starts_with("note:"))
        .map(move |line| volatile(line).unwrap_or(line))
}

/// Runs `oneport` and returns its exit code and what it prints.
fn output(args: &str, folder: &Path) -> (i32, String) {
    let output = assert_cmd::Command::cargo_bin("oneport")
        .unwrap()
        .args(args.split_whitespace().map(|arg| arg.trim_matches('"')))
        .current_dir(folder)
        .output()
        .unwrap();
    let mut text = String::from_utf8(output.stdout).unwrap();
    text.push_str(&String::from_utf8(output.stderr).unwrap());
    (output.status.code().unwrap(), text)
}

/// The page with a table of algorithms written from the registry between its markers.
fn with_table(page: &str) -> String {
    let (start, end) = ("<!-- table -->\n", "\n<!-- end of table -->");
    let Some((before, rest)) = page.split_once(start) else {
        return page.to_string();
    };
    let (_, after) = rest.split_once(end).expect("an end of the table");
    format!("{before}{start}{}{end}{after}", table())
}

fn table() -> String {
    let mut table = String::from(
        "| collective | algorithm | ports | operator | rounds | volume | source |\n\
         |---|---|---|---|---|---|---|",
    );
    for row in rows() {
        let a = row[0];
        let collectives: Vec<_> = row.iter().map(|a| a.collective.name()).collect();
        let operator = if row.iter().any(|a| a.commutative_only) {
            "commutes"
        } else {
            "any"
        };
        let (ports, rounds, volume, source) = (a.ports.name(), a.rounds, a.volume, a.source);
        write!(
            table,
            "\n| {} | {} | {ports} | {operator} | {rounds} | {volume} | {source} |",
            collectives.join(", "),
            a.name()
        )
        .unwrap();
    }
    table
}

/// Algorithms grouped into rows that differ only in their collective, in the order of the
/// collectives.
fn rows() -> Vec<Vec<&'static Algorithm>> {
    let mut rows: Vec<Vec<&Algorithm>> = Vec::new();
    let same = |a: &Algorithm, b: &Algorithm| {
        let text = |a: &Algorithm| (a.name(), a.ports, a.rounds, a.volume, a.source);
        text(a) == text(b)
    };
    let all = |kind| registry::of(kind).chain(registry::compositions(kind));
    for a in Kind::ALL.into_iter().flat_map(all) {
        match rows.iter_mut().find(|row| same(row[0], a)) {
            Some(row) => row.push(a),
            None => rows.push(vec![a]),
        }
    }
    rows
}

/// The page without its fenced blocks, which hold no links.
fn without_blocks(page: &str) -> String {
    page.split("```").step_by(2).collect()
}

/// The targets of the links of a page: `](target)`, `[label]: target`, `src="target"` and
/// `srcset="target"`.
fn links(page: &str) -> Vec<&str> {
    let marks = [
        ("](", ')'),
        ("]: ", '\n'),
        ("src=\"", '"'),
        ("srcset=\"", '"'),
    ];
    let targets = |(mark, end)| {
        let parts = page.split(mark).skip(1);
        parts.filter_map(move |part: &str| Some(part.split_once(end)?.0))
    };
    marks.into_iter().flat_map(targets).collect()
}

#[test]
fn links_resolve() {
    for path in pages() {
        let page = without_blocks(&fs::read_to_string(&path).unwrap());
        for link in links(&page) {
            if link.contains("://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => path.clone(),
                file => path.parent().unwrap().join(file),
            };
            assert!(target.exists(), "{}: {link} does not exist", path.display());
            let headings = fs::read_to_string(target).unwrap_or_default();
            let found = anchor.is_empty() || headings.lines().any(|line| is_anchor(line, anchor));
            assert!(found, "{}: no heading for {link}", path.display());
        }
    }
}

/// Files of the source that pages name, by the end of their path.
#[test]
fn files_in_pages_exist() {
    let folders = ["src", "crates", "tests", "benches", "examples", "python"];
    let mut folders = folders.map(|folder| Path::new(ROOT).join(folder)).to_vec();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if !path.is_dir() {
                files.push(path);
            } else if !path.ends_with("target") {
                folders.push(path);
            }
        }
    }
    let mut named = 0;
    let of_developers =
        ["ARCHITECTURE.md", "CONTRIBUTING.md"].map(|page| Path::new(ROOT).join(page));
    for path in pages().into_iter().chain(of_developers) {
        let page = without_blocks(&fs::read_to_string(&path).unwrap());
        // Every second piece between backquotes is quoted.
        for name in page.split('`').skip(1).step_by(2) {
            if !name.ends_with(".rs") || name.contains(['<', ' ', '*']) {
                continue;
            }
            named += 1;
            // A name such as `space/{a,b}.rs` is short for several.
            let (before, alternatives) = name.split_once('{').unwrap_or((name, ""));
            let (alternatives, after) = alternatives.split_once('}').unwrap_or(("", ""));
            for alternative in alternatives.split(',') {
                let file = format!("{before}{alternative}{after}");
                let exists = files.iter().any(|path| path.ends_with(&file));
                assert!(exists, "{}: {file} does not exist", path.display());
            }
        }
    }
    assert!(named > 30, "{named}");
}

/// Whether a line is a heading with this anchor.
fn is_anchor(line: &str, anchor: &str) -> bool {
    let Some((_, heading)) = line.split_once("# ").filter(|_| line.starts_with('#')) else {
        return false;
    };
    let letters = heading.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c.to_ascii_lowercase()),
        _ => None,
    });
    letters.collect::<String>() == anchor
}

#[test]
fn the_readme_is_short() {
    let lines = fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    assert!(
        lines.lines().count() <= 150,
        "the README has at most 150 lines"
    );
}

#[test]
fn the_readme_gives_the_test_command_that_ci_runs() {
    let read = |path: &str| fs::read_to_string(Path::new(ROOT).join(path)).unwrap();
    let command = "cargo test --workspace";
    assert!(read("README.md").contains(&format!("`{command}`")));
    assert!(read(".ci/run").lines().any(|line| line == command));
}

/// Whatever is built first, the whole workspace or the command alone, `oneport` is compiled once.
#[test]
fn the_command_is_built_with_the_features_of_the_workspace() {
    let features = |package: &[&str]| {
        let tree = ["tree", "--offline", "--edges", "normal", "--prefix", "none"];
        let output = std::process::Command::new(env!("CARGO"))
            .current_dir(ROOT)
            .args(tree)
            .args(["--format", "{p} {f}", "--package", "oneport-cli"])
            .args(package)
            .output()
            .unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let mut lines: Vec<_> = stdout
            .lines()
            .map(|line| line.trim_end_matches(" (*)").to_owned())
            .filter(|line| !line.is_empty())
            .collect();
        lines.sort();
        lines.dedup();
        assert!(
            lines.len() > 50,
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        lines
    };
    assert_eq!(features(&[]), features(&["--package", "oneport"]));
}

#[test]
fn pages_name_no_folder_of_a_machine() {
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap();
        for folder in ["/home/", "/root/", "/tmp/", "/Users/", ROOT] {
            assert!(!page.contains(folder), "{} names {folder}", path.display());
        }
    }
}
