//! Names of users and files in the formats of tables: what has a meaning there is escaped.

use std::borrow::Cow;

/// The text in one line, with escapes in place of control characters, which a terminal or another
/// format would obey.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if is_visible(text) {
        Cow::Borrowed(text)
    } else {
        text.chars().flat_map(escaped_control).collect()
    }
}

/// Whether a text has no control characters.
pub(crate) fn is_visible(text: &str) -> bool {
    !text.contains(char::is_control)
}

fn escaped_control(c: char) -> impl Iterator<Item = char> {
    let escape = c.is_control().then(|| c.escape_default());
    let own = escape.is_none().then_some(c);
    escape.into_iter().flatten().chain(own)
}

/// The content of a cell of a Markdown table.
pub(crate) fn markdown(cell: &str) -> String {
    let mut text = String::new();
    for c in visible(cell).chars() {
        if matches!(c, '\\' | '|' | '`' | '*' | '<' | '[' | ']') {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

/// The content of a cell of a TeX table.
pub(crate) fn tex(cell: &str) -> String {
    let mut text = String::new();
    for c in visible(cell).chars() {
        match c {
            '_' | '%' | '&' | '#' | '$' | '{' | '}' => text.extend(['\\', c]),
            '\\' => text += "\\textbackslash{}",
            '~' => text += "\\textasciitilde{}",
            '^' => text += "\\textasciicircum{}",
            c => text.push(c),
        }
    }
    text
}

/// How a field begins that spreadsheets would compute.
const FORMULAS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// A field of a CSV file, with an apostrophe before what a spreadsheet would take for a formula.
pub(crate) fn csv_field(field: &str) -> String {
    let computes = field.starts_with(FORMULAS) && field.parse::<f64>().is_err();
    let before = if computes { "'" } else { "" };
    format!("{before}{field}")
}

/// What was written as a [field](csv_field).
pub(crate) fn from_csv_field(field: String) -> String {
    match field.strip_prefix('\'') {
        Some(formula) if formula.starts_with(FORMULAS) => formula.to_owned(),
        _ => field,
    }
}
