//! `oneport schema`: prints the JSON Schema of a kind of file.

use crate::prelude::*;
use oneport_formats::schema;

options! {
    /// Print the JSON Schema of a kind of file.
    #[derive(Debug)]
    #[examples = "\
Examples:
  oneport schema schedule

Editors and validators take it: which fields there are, and of which types. The files are those of --schedule, of `oneport \
steady`, of --costs, of --profile and of --rules."]
    pub(crate) struct SchemaArgs {
        /// The kind of file
        name: String = SchemaName { is_placed: true },
    }
}

/// A kind of file.
#[derive(Debug)]
pub(crate) struct SchemaName;

impl Form for SchemaName {
    type Value = String;

    fn parse(text: &str) -> Result<String, String> {
        Ok(text.to_string())
    }

    fn names() -> Vec<(&'static str, &'static str)> {
        schema::names().map(|name| (name, "")).collect()
    }
}

impl Command for SchemaArgs {
    fn answer(&self, _: &mut Site) -> Result<Answer> {
        Ok(schema::schema(&self.name)?.into())
    }
}
