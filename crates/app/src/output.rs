//! Files that are written, what a page says of its origin, and lists of what is left out.

pub(crate) mod escape;
mod table;

use std::borrow::Cow;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use oneport::plan::refusal::Refusal;
use schemars::JsonSchema;
use serde::Serialize;

pub(crate) use self::table::{
    WRONG, first_is_best, summary, table, table_of_names, table_with, wrapped_summary,
    wrapped_table,
};
use crate::answer::{Answer, Lines};
use crate::caller::Caller;
use crate::files::existing;
use crate::writer;

/// The version, and the commit if the build knows it.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("ONEPORT_COMMIT"));

/// A command line, quoted for a shell.
pub fn quoted(words: impl IntoIterator<Item = String>) -> String {
    let quoted = |word: String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,=:+@%".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    let words = words.into_iter().map(quoted);
    std::iter::once("oneport".to_string())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

/// A file that is about to be written, on the disk or in the memory of the caller.
#[derive(Debug)]
pub(crate) enum Writer<'a> {
    Disk(writer::Writer),
    Memory(&'a Caller, PathBuf),
}

impl Writer<'_> {
    /// As [`writer::Writer::open`].
    pub(crate) fn open<'a>(caller: &'a Caller, path: &Path) -> Result<Writer<'a>> {
        Ok(if caller.holds(path) {
            Writer::Memory(caller, path.to_path_buf())
        } else {
            Writer::Disk(writer::Writer::open(path)?)
        })
    }

    /// As [`writer::Writer::current`].
    pub(crate) fn current(&self) -> Result<Option<Vec<u8>>> {
        match self {
            Writer::Disk(writer) => writer.current(),
            Writer::Memory(caller, path) => Ok(existing(caller, path).transpose()?),
        }
    }

    pub(crate) fn write(self, content: &[u8]) -> Result<()> {
        match self {
            Writer::Disk(writer) => writer.write(content),
            Writer::Memory(caller, path) => {
                caller.keep(&path, content);
                Ok(())
            }
        }
    }
}
impl Caller {
    /// What makes a page or picture, for its foot: version, date and command line.
    pub(crate) fn provenance(&self) -> String {
        let now = oneport_measure::now();
        let date = now.split('T').next().unwrap_or_default();
        format!("oneport {VERSION}, {date}: {}", self.command)
    }

    /// What makes a page, for its summary.
    pub(crate) fn origin(&self, date: String) -> [(&'static str, String); 3] {
        [
            ("date", date),
            ("version", VERSION.into()),
            ("command", self.command.to_string()),
        ]
    }

    /// Makes sure that files can be written and are all different, before the work that produces
    /// them starts. Each path comes with the name of its option.
    pub(crate) fn writable(&self, outputs: &[(&str, Option<&Path>)]) -> Result<()> {
        let in_files = |(_, path): &&(_, Option<&Path>)| path.is_some_and(|path| !self.holds(path));
        let outputs: Vec<_> = outputs.iter().filter(in_files).copied().collect();
        if self.is_silent() {
            Ok(())
        } else {
            writer::writable(&outputs)
        }
    }

    pub(crate) fn write_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        if self.is_silent() {
            Ok(())
        } else {
            Writer::open(self, path)?.write(content)
        }
    }

    pub(crate) fn write_named(&self, path: &Path, content: &[u8]) -> Result<()> {
        self.write_file(path, content)?;
        if !self.is_program() {
            self.note(format!("written to {}", path.display()));
        }
        Ok(())
    }

    /// The text as the answer, or in a file.
    pub(crate) fn write_to(&self, file: Option<&Path>, text: String) -> Result<Answer> {
        let Some(path) = file else {
            return Ok(text.into());
        };
        self.write_named(path, text.as_bytes())?;
        Ok(Answer::default())
    }
}

/// Returns the file that `-o` names; `-` is standard output.
pub(crate) fn file_of(option: Option<&Path>) -> Option<&Path> {
    option.filter(|path| path.as_os_str() != "-")
}

/// The rows as CSV, with a header of the names of their fields.
pub(crate) fn csv(rows: impl IntoIterator<Item = impl Serialize>) -> Result<Vec<u8>> {
    let writer = || csv::Writer::from_writer(Vec::new());
    let (mut plain, mut escaped) = (writer(), writer());
    for row in rows {
        plain.serialize(row)?;
    }
    let plain = plain.into_inner().context("cannot write the table")?;
    let mut records = csv::ReaderBuilder::new();
    for record in records.has_headers(false).from_reader(&*plain).records() {
        escaped.write_record(record?.iter().map(escape::csv_field))?;
    }
    escaped.into_inner().context("cannot write the table")
}

#[derive(Debug, Clone, JsonSchema, Serialize)]
pub(crate) struct Skipped {
    pub(crate) algorithm: Cow<'static, str>,
    pub(crate) reason: String,
}

impl From<Refusal> for Skipped {
    /// Without the advice to choose another algorithm: the output lists the others anyway.
    fn from(refusal: Refusal) -> Self {
        let reason = refusal.without_alternatives().to_string();
        Skipped {
            reason,
            algorithm: refusal.algorithm,
        }
    }
}

pub(crate) fn none_applies(skipped: &[Skipped]) -> anyhow::Error {
    let reason = |s: &Skipped| format!("{}: {}", s.algorithm, s.reason);
    let reasons: Vec<_> = skipped.iter().map(reason).collect();
    anyhow!(
        "no algorithm can be planned for this: {}",
        reasons.join("; ")
    )
}

/// Those that are left out, by reason.
pub(crate) fn skipped(out: &mut Lines, skipped: &[Skipped]) -> Result<()> {
    let mut reasons: Vec<(String, &str)> = Vec::new();
    for Skipped { algorithm, reason } in skipped {
        // The names stand before it.
        let own = reason.strip_prefix(&**algorithm);
        let reason = own
            .and_then(|rest| rest.strip_prefix(' '))
            .unwrap_or(reason);
        match reasons.iter_mut().find(|(_, other)| *other == reason) {
            Some((names, _)) => *names += &format!(", {algorithm}"),
            None => reasons.push((algorithm.to_string(), reason)),
        }
    }
    if reasons.is_empty() {
        return Ok(());
    }
    let reasons = reasons
        .iter()
        .map(|(names, why)| (&**names, (*why).to_string()));
    writeln!(out, "\nrefused:")?;
    wrapped_summary(out, 2, &reasons.collect::<Vec<_>>())
}
