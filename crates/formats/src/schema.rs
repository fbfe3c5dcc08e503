//! JSON Schemas (draft 2020-12, <https://json-schema.org>) of the files that oneport writes and reads.
//!
//! A file that a reader takes is valid; what else the readers demand, such as ranks that exist, no
//! schema can say.

use oneport::error::{Error, Result};

/// The names of the schemas, and their texts.
const SCHEMAS: [(&str, &str); 5] = [
    ("schedule", include_str!("schema/schedule.json")),
    ("platform", include_str!("schema/platform.json")),
    ("cost", include_str!("schema/cost.json")),
    ("profile", include_str!("schema/profile.json")),
    ("rules", include_str!("schema/rules.json")),
];

/// The names of all schemas.
pub fn names() -> impl Iterator<Item = &'static str> {
    SCHEMAS.iter().map(|s| s.0)
}

/// The schema of schedules, platforms, costs of each pair of ranks, profiles or selection rules.
///
/// # Errors
/// An unknown name.
pub fn schema(name: &str) -> Result<&'static str> {
    let found = SCHEMAS.iter().find(|s| s.0 == name);
    found.map(|s| s.1).ok_or_else(|| {
        let names: Vec<_> = names().collect();
        Error::usage(format!(
            "no schema '{name}': choose one of {}",
            names.join(", ")
        ))
    })
}
