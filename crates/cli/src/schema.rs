//! `oneport schema`: prints the JSON Schema of a kind of file.

use crate::prelude::*;
use clap::builder::PossibleValuesParser;
use oneport_formats::schema;

/// Print the JSON Schema of a kind of file.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  oneport schema schedule

Editors and validators take it: which fields there are, and of which types. The files are those of --schedule, of `oneport \
steady`, of --costs, of --profile and of --rules.")]
pub(crate) struct SchemaArgs {
    /// The kind of file
    #[arg(value_parser = PossibleValuesParser::new(schema::names()))]
    name: String,
}

pub(crate) fn run(args: &SchemaArgs, out: &mut dyn Write) -> Result<()> {
    out.write_all(schema::schema(&args.name)?.as_bytes())?;
    Ok(())
}
