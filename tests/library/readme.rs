//! Tests the README: its commands print the output that it shows, and its table of algorithms
//! matches the registry.
//!
//! `UPDATE_README=1 cargo test --release --test library readme` writes the current output and table
//! into it. The README's commands name the release build, so use that.

use std::fmt::Write as _;
use std::path::Path;

use oneport::Kind;
use oneport::plan::registry::{self, Algorithm};

/// Starts of lines whose times and numbers of cores depend on the machine.
const VOLATILE: [&str; 2] = ["wall-clock", "threads"];

#[test]
fn commands_print_what_the_readme_shows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let shown = std::fs::read_to_string(&path).unwrap();
    let printed = with_table(&with_outputs(&shown));
    if std::env::var_os("UPDATE_README").is_some() {
        std::fs::write(&path, printed).unwrap();
        return;
    }
    for (line, (shown, printed)) in stable_lines(&shown).zip(stable_lines(&printed)).enumerate() {
        assert_eq!(
            shown,
            printed,
            "line {} of README.md (left: shown, right: printed)",
            line + 1
        );
    }
    assert_eq!(stable_lines(&shown).count(), stable_lines(&printed).count());
}

/// The lines to compare: without notes, which depend on the number of cores, and with volatile
/// lines cut to their start.
fn stable_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter(|line| !line.starts_with("note:"))
        .map(|line| {
            VOLATILE
                .into_iter()
                .find(|v| line.starts_with(v))
                .unwrap_or(line)
        })
}

/// The README with the current output of every `oneport` command.
fn with_outputs(readme: &str) -> String {
    let mut result = String::new();
    let mut lines = readme.lines();
    while let Some(line) = lines.next() {
        writeln!(result, "{line}").unwrap();
        if line != "```console" {
            continue;
        }
        let command = lines.next().unwrap();
        writeln!(result, "{command}").unwrap();
        let args = ["$ oneport ", "$ cargo run --release -- "]
            .into_iter()
            .find_map(|prefix| command.strip_prefix(prefix));
        let shown = lines.by_ref().take_while(|l| *l != "```");
        match args {
            Some(args) => {
                shown.for_each(drop);
                result.push_str(&output(args));
            }
            None => shown.for_each(|l| writeln!(result, "{l}").unwrap()),
        }
        result.push_str("```\n");
    }
    result
}

fn output(args: &str) -> String {
    let output = assert_cmd::Command::cargo_bin("oneport")
        .unwrap()
        .args(args.split_whitespace())
        .output()
        .unwrap();
    let mut text = String::from_utf8(output.stdout).unwrap();
    text.push_str(&String::from_utf8(output.stderr).unwrap());
    text
}

/// The README with a table of algorithms written from the registry.
fn with_table(readme: &str) -> String {
    let start = readme.find("<!-- table -->").unwrap() + "<!-- table -->".len();
    let length = readme[start..].find("\n\nEvery row").unwrap();
    let mut table = String::from(
        "\n| collective | algorithm | ports | operator | rounds | volume | source |\n|---|---|---|---|---|---|---|",
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
            a.name
        )
        .unwrap();
    }
    format!("{}{table}{}", &readme[..start], &readme[start + length..])
}

/// Algorithms grouped into rows that differ only in their collective, in the order of the
/// collectives.
fn rows() -> Vec<Vec<&'static Algorithm>> {
    let mut rows: Vec<Vec<&Algorithm>> = Vec::new();
    let same = |a: &Algorithm, b: &Algorithm| {
        let text = |a: &Algorithm| (a.name, a.ports, a.rounds, a.volume, a.source);
        text(a) == text(b)
    };
    for a in Kind::ALL.into_iter().flat_map(registry::of) {
        match rows.iter_mut().find(|row| same(row[0], a)) {
            Some(row) => row.push(a),
            None => rows.push(vec![a]),
        }
    }
    rows
}
