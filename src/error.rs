//! The crate's only error type.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::error::Category;

/// What went wrong, with the numbers that a caller needs to act on it.
///
/// Bad input is an error; a broken invariant of this crate is a panic.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A request that cannot be met: an unknown name, a root out of range, a segment of zero
    /// elements.
    Usage(String),
    /// A request that is refused for its size: planning or timing what it asks for takes too long,
    /// too much memory, or more than can be counted.
    TooLarge(String),
    /// Input that is not a schedule (or profile, or cost file) at all.
    Malformed(String),
    /// A message between two ranks that the cost model does not link.
    NoLink {
        /// Rank that sends.
        from: usize,
        /// Rank that receives.
        to: usize,
    },
    /// A schedule that is well formed but breaks a rule or computes a wrong result.
    Wrong(String),
    /// A step opened a port that another transfer of the same rank still holds.
    PortBusy {
        /// Rank whose port is busy.
        rank: usize,
        /// Port number on that rank.
        port: usize,
        /// Step that tried to open it.
        step: usize,
    },
    /// A transfer or a barrier that did not complete within the deadline.
    Deadline {
        /// Rank that waited.
        rank: usize,
        /// Step that waited (an index into the rank's program).
        step: usize,
        /// Rank it waited for.
        peer: usize,
        /// Port it held meanwhile.
        port: usize,
        /// What it was doing: `send`, `recv`, `recv_combine`, `barrier`.
        what: &'static str,
        /// What its partner waited for, and so on, to a rank that did not wait, or round a cycle:
        /// text that begins with `; `. Empty where nobody else waited, and over MPI.
        chain: String,
    },
    /// Two partners disagree about the length of one message.
    Length {
        /// Rank that received.
        rank: usize,
        /// Step of the receiving rank.
        step: usize,
        /// Rank that sent.
        peer: usize,
        /// Port of the receiving rank.
        port: usize,
        /// Elements the receive step asked for.
        expected: usize,
        /// Elements that came.
        found: usize,
    },
    /// A rank's program panicked.
    Panicked {
        /// Rank that panicked.
        rank: usize,
        /// Step it was in.
        step: usize,
        /// The panic's message.
        message: String,
    },
    /// A rank returned while another still waited for it, in a transfer or at a barrier.
    PartnerLeft {
        /// Rank that waited.
        rank: usize,
        /// Step that waited.
        step: usize,
        /// Rank that is gone.
        peer: usize,
        /// Port held meanwhile.
        port: usize,
    },
    /// The operating system refused something (threads, memory, a file).
    System(String),
}

/// An error of this crate; see [`ErrorKind`] for the cases.
#[derive(Clone, PartialEq)]
pub struct Error(Box<ErrorKind>);

/// Shorthand used throughout the crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// What went wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }

    /// Bad usage or unreadable input, as opposed to a failed check or run.
    pub fn is_usage(&self) -> bool {
        matches!(
            *self.0,
            ErrorKind::Usage(_)
                | ErrorKind::TooLarge(_)
                | ErrorKind::Malformed(_)
                | ErrorKind::NoLink { .. }
        )
    }

    /// Exit code the command line gives it: 2 for bad usage or unreadable input, 1 for a failed
    /// check or run.
    pub fn exit_code(&self) -> u8 {
        if self.is_usage() { 2 } else { 1 }
    }

    /// An error of the kind [`ErrorKind::Usage`].
    pub fn usage(message: impl Into<String>) -> Self {
        ErrorKind::Usage(printable(message.into())).into()
    }

    /// An error of the kind [`ErrorKind::TooLarge`].
    pub fn too_large(message: impl Into<String>) -> Self {
        ErrorKind::TooLarge(printable(message.into())).into()
    }

    /// An error of the kind [`ErrorKind::Malformed`].
    pub fn malformed(message: impl Into<String>) -> Self {
        ErrorKind::Malformed(printable(message.into())).into()
    }

    /// Why a text is not `what`, in JSON form.
    pub fn json(what: &str, error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let place = format!(" at line {line} column {column}");
        let text = text.strip_suffix(&place).unwrap_or(&text);
        let why = match error.classify() {
            Category::Eof => "the text ends too early".to_string(),
            // The parser's name for any word: a reader would take it for a requirement.
            Category::Syntax if text == "expected ident" => "not JSON".to_string(),
            Category::Syntax => format!("not JSON ({text})"),
            Category::Data | Category::Io => JSON_WORDS
                .iter()
                .fold(text.to_string(), |text, (parser, json)| {
                    text.replace(parser, json)
                }),
        };
        // What the whole text means has no place in it.
        if line == 0 {
            return Error::malformed(format!("{what}: {why}"));
        }
        Error::malformed(format!("{what}: line {line} column {column}: {why}"))
    }

    /// An error of the kind [`ErrorKind::Wrong`].
    pub fn wrong(message: impl Into<String>) -> Self {
        ErrorKind::Wrong(printable(message.into())).into()
    }

    /// An error of the kind [`ErrorKind::System`].
    pub fn system(message: impl Into<String>) -> Self {
        ErrorKind::System(message.into()).into()
    }
}

/// Reads an object in JSON form; `fields` are some of its fields. The reader would take a list as
/// the fields in their order, so a list is refused first.
///
/// # Errors
/// [`ErrorKind::Malformed`] with why the text is not `what`.
pub fn json_object<T: DeserializeOwned>(what: &str, fields: &str, text: &str) -> Result<T> {
    if text.trim_start().starts_with('[') {
        return Err(Error::malformed(format!(
            "{what}: a list, expected an object with {fields}"
        )));
    }
    serde_json::from_str(text).map_err(|e| Error::json(what, &e))
}

/// The parser's words, and what they mean to somebody who writes JSON.
const JSON_WORDS: [(&str, &str); 8] = [
    ("expected usize", "expected a whole number"),
    ("expected u64", "expected a whole number"),
    ("expected f64", "expected a number"),
    ("type: map", "type: object"),
    ("a sequence", "a list"),
    ("a tuple of size 2", "a list of 2"),
    (
        "internally tagged enum Collective",
        "an object such as {\"kind\": \"barrier\"}",
    ),
    ("unknown variant", "unknown name"),
];

/// Messages repeat words of files and requests: no word is longer than this in them, and no message
/// longer than [`MAX_MESSAGE`], in characters.
const MAX_WORD: usize = 200;
const MAX_MESSAGE: usize = 4_000;

/// The message in one line, with escapes in place of control characters: what a file contains must
/// not reach a terminal as a command. Long words are cut.
fn printable(message: String) -> String {
    if message.len() <= MAX_WORD && !message.contains(char::is_control) {
        return message;
    }
    let (mut shown, mut length, mut word) = (String::new(), 0, 0);
    for c in message.chars() {
        word = if c.is_whitespace() { 0 } else { word + 1 };
        match word {
            ..=MAX_WORD if c.is_control() => shown.extend(c.escape_debug()),
            ..=MAX_WORD => shown.push(c),
            _ if word == MAX_WORD + 1 => shown.push_str("..."),
            _ => continue,
        }
        length += 1;
        if length == MAX_MESSAGE {
            shown.push_str("...");
            break;
        }
    }
    shown
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Error(Box::new(kind))
    }
}

impl From<std::convert::Infallible> for Error {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorKind::Usage(message)
            | ErrorKind::TooLarge(message)
            | ErrorKind::Malformed(message)
            | ErrorKind::Wrong(message)
            | ErrorKind::System(message) => fmt::Display::fmt(message, f),
            ErrorKind::NoLink { from, to } => write!(
                f,
                "rank {from} sends to rank {to}, between which the costs have no link"
            ),
            ErrorKind::PortBusy { rank, port, step } => write!(
                f,
                "port busy: rank {rank} cannot open port {port} for step {step} while its earlier transfer is open (of two unidirectional ranks that send to each other, one must receive first)"
            ),
            ErrorKind::Deadline {
                rank,
                step,
                peer,
                port,
                what,
                chain,
            } => write!(
                f,
                "deadline passed: rank {rank}, step {step}, port {port} still waits for rank {peer} ({what}){chain}"
            ),
            ErrorKind::Length {
                rank,
                step,
                peer,
                port,
                expected,
                found,
            } => write!(
                f,
                "rank {rank}, step {step}, port {port}: message from rank {peer} has {found} elements, expected {expected}"
            ),
            ErrorKind::Panicked {
                rank,
                step,
                message,
            } => write!(f, "rank {rank} panicked at step {step}: {message}"),
            ErrorKind::PartnerLeft {
                rank,
                step,
                peer,
                port,
            } => write!(
                f,
                "rank {rank}, step {step}, port {port}: rank {peer} has left and will not come"
            ),
        }
    }
}

impl std::error::Error for ErrorKind {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl std::error::Error for Error {}

/// `Display` and `FromStr` of a type all of whose values have a name. A name that is typed is
/// compared as `$plain` writes it.
macro_rules! named {
    ($type:ty, $what:literal, $plain:expr) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::error::Error;

            /// The value with this name. The message about an unknown name lists all.
            fn from_str(name: &str) -> $crate::error::Result<$type> {
                let plain: fn(&str) -> String = $plain;
                let names = <$type>::ALL.iter().map(|value| value.name());
                $crate::error::find_name(names, $what, name, plain).map(|i| <$type>::ALL[i])
            }
        }
    };
}
pub(crate) use named;

/// The place of `name` among `names`.
pub(crate) fn find_name(
    names: impl Iterator<Item = &'static str>,
    what: &str,
    name: &str,
    plain: fn(&str) -> String,
) -> Result<usize> {
    let (names, wanted) = (names.collect::<Vec<_>>(), plain(name));
    let found = names.iter().position(|name| plain(name) == wanted);
    found.ok_or_else(|| {
        let all = names.join(", ");
        Error::usage(format!("unknown {what} '{name}': choose one of {all}"))
    })
}
