//! JSON Schemas (draft 2020-12, <https://json-schema.org>) of oneport's own files.
//!
//! A file that a reader takes is valid; what else the readers demand, such as ranks that exist, no
//! schema can say.

mod files;

use oneport::error::{Error, Result};
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{Schema, schema_for};
use serde_json::Value;

/// By name: the schema, with its title.
type Maker = (&'static str, &'static str, fn() -> Schema);

const SCHEMAS: [Maker; 5] = [
    ("schedule", "A schedule of oneport", || {
        schema_for!(files::ScheduleSchema)
    }),
    ("platform", "A platform of oneport", || {
        schema_for!(files::PlatformSchema)
    }),
    ("cost", "Costs of each pair of ranks, for oneport", || {
        schema_for!(files::LinksSchema)
    }),
    (
        "profile",
        "A machine's profile, measured by oneport calibrate",
        || schema_for!(files::ProfileSchema),
    ),
    ("rules", "Selection rules of oneport tune", || {
        schema_for!(files::RulesSchema)
    }),
];

/// The names of all schemas.
pub fn names() -> impl Iterator<Item = &'static str> {
    SCHEMAS.iter().map(|s| s.0)
}

/// The schema of schedules, platforms, costs of each pair of ranks, profiles or selection rules, as
/// text; refuses unknown names.
pub fn schema(name: &str) -> Result<String> {
    let (title, schema) = of(name)?;
    Ok(text(title, schema))
}

/// A schema of files, with its title; refuses unknown names.
pub fn of(name: &str) -> Result<(&'static str, Schema)> {
    match SCHEMAS.iter().find(|s| s.0 == name) {
        Some((_, title, make)) => Ok((title, make())),
        None => {
            let names: Vec<_> = names().collect();
            Err(Error::usage(format!(
                "no schema '{name}': choose one of {}",
                names.join(", ")
            )))
        }
    }
}

/// A schema with a title, as text.
pub fn text(title: &str, mut schema: Schema) -> String {
    // Defaults are the readers' matter, formats are Rust's names of types.
    let plain = |schema: &mut Schema| {
        schema.remove("default");
        schema.remove("format");
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = text.replace('\n', " ");
        }
    };
    RecursiveTransform(plain).transform(&mut schema);
    schema.insert("title".into(), title.into());
    let text = serde_json::to_string_pretty(&schema).expect("a schema is plain data");
    // `StepSchema` describes a `Step`.
    text.replace("Schema\"", "\"") + "\n"
}
