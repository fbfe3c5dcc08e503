//! `oneport schema`: prints the JSON Schema (draft 2020-12, <https://json-schema.org>) of a kind of
//! file, or of what a command prints.
//!
//! Schemas of files are made of the types that read them: a file that a reader takes is valid; what
//! else the readers demand, such as ranks that exist, no schema can say.

use oneport::machine::Links;
use oneport_measure::Profile;
use oneport_measure::tune::rules::Rules;
use oneport_steady::Platform;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{Schema, schema_for};
use serde_json::Value;

use crate::prelude::*;
use crate::{ENTRIES, answer_schema};

options! {
    /// Print the JSON Schema of a kind of file, or of what a command prints with --json.
    #[derive(Debug)]
    #[examples = "\
Examples:
  oneport schema schedule     a file
  oneport schema compare      what `oneport compare --json` prints

Editors and validators take it: which fields there are, of which types, and what they mean. The files are those of \
--schedule, of `oneport steady`, of --costs, of --profile and of --rules."]
    pub(crate) struct SchemaArgs {
        /// The kind of file, or the command
        name: String = SchemaName { is_placed: true },
    }
}

/// A kind of file, or a command.
#[derive(Debug)]
pub(crate) struct SchemaName;

impl Form for SchemaName {
    type Value = String;

    fn parse(text: &str) -> Result<String, String> {
        Ok(text.to_string())
    }

    fn names() -> Vec<(&'static str, &'static str)> {
        let commands = ENTRIES
            .iter()
            .filter(|entry| !(entry.json_forms)().is_empty());
        let names = FILES
            .iter()
            .map(|file| file.0)
            .chain(commands.map(|entry| entry.name));
        names.map(|name| (name, "")).collect()
    }
}

impl Command for SchemaArgs {
    fn answer(&self, _: &mut Site) -> Result<Answer> {
        match (answer_schema(&self.name), of_file(&self.name)) {
            (Some(text), _) => Ok(text.into()),
            (None, Some((title, schema))) => Ok(text(title, schema).into()),
            (None, None) => {
                let names: Vec<&str> = SchemaName::names().iter().map(|name| name.0).collect();
                let name = &self.name;
                bail!("no schema '{name}': choose one of {}", names.join(", "))
            }
        }
    }
}

/// A kind of files: its name, the title and the description of its schema, and what makes this.
type FileSchema = (&'static str, &'static str, &'static str, fn() -> Schema);

const FILES: [FileSchema; 5] = [
    (
        "schedule",
        "A schedule of oneport",
        "A program for every rank that together perform one collective. Spans are [offset, length] in elements of \
         a rank's buffer.",
        || schema_for!(Schedule),
    ),
    (
        "platform",
        "A platform of oneport",
        "Nodes and links for series of operations. A number is a JSON number, read exactly as written, or a \
         fraction in quotes such as \"1/2\".",
        || schema_for!(Platform),
    ),
    (
        "cost",
        "Costs of each pair of ranks, for oneport",
        "Matrices with a row a sender and a column a receiver, null where there is no link; or the levels of a \
         machine, the innermost first: two ranks have the costs of the first level that has both in one group, and \
         a level without groups is one of all ranks. A message of n bytes takes alpha + beta * n.",
        || schema_for!(Links),
    ),
    (
        "profile",
        "A machine's profile, measured by oneport calibrate",
        "Times in nanoseconds, sizes in bytes. Other properties are ignored.",
        || schema_for!(Profile),
    ),
    (
        "rules",
        "Selection rules of oneport tune",
        "The algorithm and segment size to use for each size.",
        || schema_for!(Rules),
    ),
];

/// The schema of a kind of file, with its title.
pub(crate) fn of_file(name: &str) -> Option<(&'static str, Schema)> {
    let &(_, title, description, make) = FILES.iter().find(|file| file.0 == name)?;
    let mut schema = make();
    schema.insert("description".into(), description.into());
    Some((title, schema))
}

/// A schema with a title, as text.
pub(crate) fn text(title: &str, mut schema: Schema) -> String {
    // Defaults are the readers' matter, formats are Rust's names of types.
    let plain = |schema: &mut Schema| {
        schema.remove("default");
        schema.remove("format");
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = without_links(text);
        }
    };
    RecursiveTransform(plain).transform(&mut schema);
    schema.insert("title".into(), title.into());
    let text = serde_json::to_string_pretty(&schema).expect("a schema is plain data");
    text + "\n"
}

/// The first paragraph of a comment in Rust: `None` for [`Option::None`](std::option).
fn without_links(comment: &str) -> String {
    let text = comment.split("\n\n").next().unwrap_or_default();
    let text = text.replace('\n', " ").replace("[`", "`");
    let mut parts = text.split("`]");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |text, part| {
        let behind = part.strip_prefix('(').and_then(|link| link.split_once(')'));
        text + "`" + behind.map_or(part, |(_, behind)| behind)
    })
}
