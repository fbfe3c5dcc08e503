//! JSON Schemas of what the commands are asked: for signatures in other languages.

use serde_json::{Map, Value, json};

use super::{Row, Takes, Times};

/// The schema of an object that has these options.
pub(crate) fn schema(doc: &str, rows: &[Row]) -> Value {
    let rows = || rows.iter().filter(|row| !row.is_hidden);
    let properties = rows().map(|row| (row.name(), of(row)));
    let needed = |row: &&Row| row.times == Times::Once && row.default.is_none() && !row.is_switch;
    json!({
        "type": "object",
        "description": text(doc),
        "properties": properties.collect::<Map<String, Value>>(),
        "required": rows().filter(needed).map(Row::name).collect::<Vec<_>>(),
        "additionalProperties": false,
    })
}

/// The schema of the values of an option.
fn of(row: &Row) -> Value {
    let names: Vec<_> = (row.names)().iter().map(|(name, _)| *name).collect();
    let one = match row.takes {
        _ if row.is_switch => json!({"type": "boolean"}),
        // What is given without a value is true.
        _ if row.alone.is_some() => json!({"type": ["boolean", "string"]}),
        _ if !names.is_empty() => json!({"enum": names}),
        Takes::Words => json!({"type": "string"}),
        Takes::Whole | Takes::Wholes => json!({"type": ["integer", "string"]}),
        Takes::Number | Takes::Numbers => json!({"type": ["number", "string"]}),
        Takes::FileName => json!({"type": "string", "format": "path"}),
        Takes::Content => json!({"type": ["string", "object"], "format": "path"}),
    };
    let takes_lists = matches!(row.takes, Takes::Wholes | Takes::Numbers);
    let mut schema = if takes_lists || row.times == Times::AnyNumber {
        json!({"anyOf": [one, {"type": "array", "items": one}]})
    } else {
        one
    };
    schema["description"] = text(row.doc).into();
    if let Some(default) = row.default {
        schema["default"] = default.into();
    }
    schema
}

/// A documentation in paragraphs, without the ends of its lines.
fn text(doc: &str) -> String {
    let lines: Vec<_> = doc.lines().map(str::trim).collect();
    lines.join(" ").trim().replace("  ", "\n\n")
}
