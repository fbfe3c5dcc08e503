//! `oneport schema`: prints the JSON Schema of a kind of file, or of what a command prints.

use crate::prelude::*;
use crate::{ENTRIES, answer_schema};
use oneport_formats::schema;

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
        let names = schema::names().chain(commands.map(|entry| entry.name));
        names.map(|name| (name, "")).collect()
    }
}

impl Command for SchemaArgs {
    fn answer(&self, _: &mut Site) -> Result<Answer> {
        match answer_schema(&self.name) {
            Some(text) => Ok(text.into()),
            None => Ok(schema::schema(&self.name)?.into()),
        }
    }
}
