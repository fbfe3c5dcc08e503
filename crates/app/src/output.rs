//! Standard output, messages and exit codes.

pub(crate) mod escape;
mod table;

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, anyhow};
use oneport::plan::refusal::Refusal;
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter};

pub(crate) use self::table::{
    WRONG, columns, first_is_best, summary, table, table_of_names, table_with, wrapped_summary,
    wrapped_table,
};
use crate::host;
use crate::units::rounded;
use crate::writer;

/// The version, and the commit if the build knows it.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("ONEPORT_COMMIT"));

/// What makes a page or picture, for its foot: version, date and command line.
pub(crate) fn provenance() -> String {
    let now = oneport_measure::now();
    let date = now.split('T').next().unwrap_or_default();
    format!("oneport {VERSION}, {date}: {}", command())
}

/// What makes a page, for its summary.
pub(crate) fn origin(date: String) -> [(&'static str, String); 3] {
    [
        ("date", date),
        ("version", VERSION.into()),
        ("command", command()),
    ]
}

/// The command line, quoted for a shell, or what the caller of the command names instead.
pub(crate) fn command() -> String {
    if let Some(command) = host::command() {
        return command;
    }
    let quoted = |argument: String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,=:+@%".contains(c);
        if !argument.is_empty() && argument.chars().all(plain) {
            argument
        } else {
            format!("'{}'", argument.replace('\'', r"'\''"))
        }
    };
    let arguments = host::arguments().into_iter();
    let arguments = arguments.map(|a| quoted(a.to_string_lossy().into_owned()));
    std::iter::once("oneport".to_string())
        .chain(arguments)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs a command with a buffered standard output and returns its exit code. An error is printed as
/// `error: ...` on standard error and determines the exit code.
///
/// A closed pipe (`| head`) is not an error: its reader has read what it needed.
pub(crate) fn finish(command: impl FnOnce(&mut dyn Write) -> Result<ExitCode>) -> ExitCode {
    let mut out = Output(BufWriter::new(io::stdout().lock()));
    let outcome = command(&mut out).and_then(|code| {
        out.flush().context("cannot write the output")?;
        Ok(code)
    });
    let error = match outcome {
        Ok(code) => return code,
        Err(error) => error,
    };
    if is_closed_pipe(&error) {
        // The rest of the buffer has no reader either. Dropping the writer would only try to write
        // it.
        std::mem::forget(out);
        return ExitCode::SUCCESS;
    }
    if let Some(wrong) = error.downcast_ref::<FoundWrong>() {
        let _ = out.write_all(wrong.answer.as_bytes());
    }
    let _ = out.flush();
    self::error(&format!("{error:#}"));
    ExitCode::from(exit_code(&error))
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|e| e.kind() == ErrorKind::BrokenPipe)
}

/// The error of a command that has found something wrong: its exit code is 1.
#[derive(Debug)]
pub(crate) struct FoundWrong {
    pub(crate) message: String,
    /// What is printed before it.
    pub(crate) answer: String,
}

impl fmt::Display for FoundWrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for FoundWrong {}

pub(crate) fn wrong(message: String) -> anyhow::Error {
    let answer = String::new();
    FoundWrong { message, answer }.into()
}

/// Errors of the library carry their exit code; all others are bad usage or unreadable input.
pub(crate) fn exit_code(error: &anyhow::Error) -> u8 {
    if error.is::<FoundWrong>() {
        return 1;
    }
    error
        .chain()
        .find_map(|cause| cause.downcast_ref::<oneport::Error>())
        .map_or(2, oneport::Error::exit_code)
}

static SILENT: AtomicBool = AtomicBool::new(false);

/// From now on this process prints nothing and writes no files: another one of the launch speaks
/// for it.
pub(crate) fn silence() {
    SILENT.store(true, Ordering::Relaxed);
}

pub(crate) fn is_silent() -> bool {
    SILENT.load(Ordering::Relaxed)
}

struct Output(BufWriter<StdoutLock<'static>>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match is_silent() {
            true => Ok(bytes.len()),
            false => self.0.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

pub(crate) fn error(message: &str) {
    say("error", message);
}

/// Prints a remark on standard error, so that it does not disturb the output.
pub(crate) fn note(message: &str) {
    say("note", message);
}

pub(crate) fn notes(messages: impl IntoIterator<Item = impl AsRef<str>>) {
    for message in messages {
        note(message.as_ref());
    }
}

/// Prints a line on standard error at once, so that a launcher that ends this process has it all.
fn say(what: &str, message: &str) {
    if !host::note(message) && !is_silent() {
        // Words may be paths, which are not cut.
        let message = printable(message, usize::MAX);
        let _ = io::stderr().write_all(format!("{what}: {message}\n").as_bytes());
    }
}

/// Prints what the parser of the command line says. It repeats arguments as they are.
pub(crate) fn show(error: &clap::Error) {
    let plain = error.render().to_string();
    let shown = printable(&plain, MAX_WORD);
    if shown == plain || !error.use_stderr() {
        let _ = error.print();
    } else {
        let _ = io::stderr().write_all(shown.as_bytes());
    }
}

/// Characters of a word and of a message that are shown: both may be content of a file.
const MAX_WORD: usize = 200;
const MAX_MESSAGE: usize = 8_000;

/// The text with escapes in place of control characters, which a terminal would obey. Words longer
/// than `max_word` are cut, and the text after [`MAX_MESSAGE`] characters.
fn printable(text: &str, max_word: usize) -> String {
    let (mut shown, mut length, mut word) = (String::new(), 0, 0);
    for c in text.chars() {
        word = if c.is_whitespace() { 0 } else { word + 1 };
        if word > max_word {
            if word - 1 == max_word {
                shown.push_str("...");
            }
            continue;
        }
        match c.is_control() && c != '\n' {
            true => shown.extend(c.escape_debug()),
            false => shown.push(c),
        }
        length += 1;
        if length == MAX_MESSAGE {
            shown.push_str("...\n");
            break;
        }
    }
    shown
}

pub(crate) fn writable(outputs: &[(&str, Option<&Path>)]) -> Result<()> {
    let in_files = |(_, path): &&(_, Option<&Path>)| path.is_some_and(|path| !host::holds(path));
    let outputs: Vec<_> = outputs.iter().filter(in_files).copied().collect();
    match is_silent() {
        true => Ok(()),
        false => writer::writable(&outputs),
    }
}

/// A file that is about to be written, on the disk or in the memory of the caller.
#[derive(Debug)]
pub(crate) enum Writer {
    Disk(writer::Writer),
    Memory(PathBuf),
}

impl Writer {
    /// As [`writer::Writer::open`].
    pub(crate) fn open(path: &Path) -> Result<Writer> {
        Ok(match host::holds(path) {
            true => Writer::Memory(path.to_path_buf()),
            false => Writer::Disk(writer::Writer::open(path)?),
        })
    }

    /// As [`writer::Writer::current`].
    pub(crate) fn current(&self) -> Result<Option<Vec<u8>>> {
        match self {
            Writer::Disk(writer) => writer.current(),
            Writer::Memory(path) => Ok(host::read(path).map(String::into_bytes)),
        }
    }

    pub(crate) fn write(self, content: &[u8]) -> Result<()> {
        match self {
            Writer::Disk(writer) => writer.write(content),
            Writer::Memory(path) => {
                host::write(&path, content);
                Ok(())
            }
        }
    }
}

pub(crate) fn write_file(path: &Path, content: &[u8]) -> Result<()> {
    match is_silent() {
        true => Ok(()),
        false => Writer::open(path)?.write(content),
    }
}

pub(crate) fn write_named(path: &Path, content: &[u8]) -> Result<()> {
    write_file(path, content)?;
    if !host::is_called() {
        note(&format!("written to {}", path.display()));
    }
    Ok(())
}

/// Returns the file that `-o` names; `-` is standard output.
pub(crate) fn file_of(option: Option<&Path>) -> Option<&Path> {
    option.filter(|path| path.as_os_str() != "-")
}

pub(crate) fn write_to(out: &mut dyn Write, file: Option<&Path>, text: &str) -> Result<()> {
    match file {
        Some(path) => write_named(path, text.as_bytes()),
        None => Ok(out.write_all(text.as_bytes())?),
    }
}

/// Prints one JSON object and a line end. Its numbers have at most 12 significant digits: sums of
/// costs such as 0.1 have wrong ones after these.
pub(crate) fn json(out: &mut dyn Write, value: &impl Serialize) -> Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, Rounding::default());
    value.serialize(&mut serializer).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(())
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

#[derive(Default)]
struct Rounding(PrettyFormatter<'static>);

/// Defines methods of a formatter that do what the inner one does.
macro_rules! as_inner {
    ($($method:ident($($first:ident)?)),*) => {
        $(fn $method<W: ?Sized + Write>(&mut self, out: &mut W $(, $first: bool)?) -> io::Result<()> {
            self.0.$method(out $(, $first)?)
        })*
    };
}

impl Formatter for Rounding {
    as_inner!(
        begin_array(),
        end_array(),
        begin_array_value(first),
        end_array_value(),
        begin_object(),
        end_object(),
        begin_object_key(first),
        begin_object_value(),
        end_object_value()
    );

    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        self.0.write_f64(out, rounded(value, 12))
    }
}

/// A value for JSON that has these fields, in this order; an `(optional)` one is left out if it is
/// `None`. Each field has a type of its own, so that the fields are listed once.
macro_rules! record {
    (@type $name:ident) => { $name };
    (@type $name:ident optional) => { Option<$name> };
    ($($(#[$attribute:meta])* $name:ident $(($optional:ident))?: $value:expr),* $(,)?) => {
        match () {
            #[allow(non_camel_case_types, reason = "a field and its type have one name")]
            () => {
                #[derive(serde::Serialize)]
                struct Record<$($name: serde::Serialize),*> {
                    $($(#[$attribute])*
                    $(#[doc = stringify!($optional)] #[serde(skip_serializing_if = "Option::is_none")])?
                    $name: $crate::output::record!(@type $name $($optional)?)),*
                }
                Record { $($name: $value),* }
            }
        }
    };
}
pub(crate) use record;

pub(crate) fn answer(
    out: &mut dyn Write,
    as_json: bool,
    value: &impl Serialize,
    text: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    if !as_json {
        return text(out);
    }
    json(out, value)?;
    host::keep_text(|out| text(out))
}

#[derive(Debug, Clone, Serialize)]
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
pub(crate) fn skipped(out: &mut dyn Write, skipped: &[Skipped]) -> Result<()> {
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
    writeln!(out, "\nnot applicable:")?;
    wrapped_summary(out, 2, &reasons.collect::<Vec<_>>())
}
