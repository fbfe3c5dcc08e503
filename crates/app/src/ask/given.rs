//! What is given of the options of a command: by a program, as values.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::{Given, Item, Row, Takes, Times};
use crate::files::Source;
use crate::stored::StoredSchedule;
use crate::units::edits;

/// What a program gives an option.
#[derive(Debug, Clone)]
pub enum Value {
    /// Of one that has no value: whether it is given.
    Switch(bool),
    /// What one would write; of a file, its name.
    Word(String),
    /// Several values.
    Words(Vec<String>),
    /// Of an option that names a file: what is in it.
    Content(String),
    /// Of an option that names a schedule's file: the schedule.
    Schedule(Arc<StoredSchedule>),
}

impl From<bool> for Value {
    fn from(is_given: bool) -> Value {
        Value::Switch(is_given)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Value {
        Value::Word(number.to_string())
    }
}

impl From<&str> for Value {
    fn from(word: &str) -> Value {
        Value::Word(word.to_string())
    }
}

/// Values by the names of options.
pub type Values = BTreeMap<String, Value>;

/// What is wrong with values.
#[derive(Debug)]
pub(crate) enum Wrong {
    /// No option has this name; a similar one.
    Unknown(String, Option<String>),
    /// The whole message.
    Said(String),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Unknown(name, _) => write!(f, "unexpected argument '--{name}' found"),
            Wrong::Said(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Wrong {}

impl Row {
    /// The name on a command line, without its dashes.
    pub fn long(&self) -> String {
        let own = || self.name.replace('_', "-");
        self.long.map_or_else(own, str::to_string)
    }

    /// The name among options by name.
    pub(crate) fn name(&self) -> String {
        if self.is_placed {
            return self.name.to_string();
        }
        self.long().replace('-', "_")
    }

    /// What help has in place of a value.
    pub fn value(&self) -> String {
        match self.value {
            "" => self.name.to_ascii_uppercase(),
            value => value.to_string(),
        }
    }

    /// Whether several words may be given.
    pub fn takes_several(&self) -> bool {
        self.times == Times::AnyNumber || self.takes_words
    }

    /// The option as messages show it.
    fn shown(&self) -> String {
        let (long, value) = (self.long(), self.value());
        let more = if self.takes_words { "..." } else { "" };
        match self.times {
            _ if self.is_switch => format!("--{long}"),
            _ if !self.is_placed => format!("--{long} <{value}>{more}"),
            Times::Once => format!("<{value}>"),
            Times::AtMostOnce => format!("[{value}]{more}"),
            Times::AnyNumber => format!("[{value}]..."),
        }
    }

    /// Whether it has this name, with dashes or underscores.
    fn is_called(&self, name: &str) -> bool {
        let is = |own: &str| own.replace('-', "_") == name.replace('-', "_");
        let aliases = self.aliases.iter().chain(self.hidden_aliases);
        is(&self.long()) || aliases.copied().any(is) || self.is_placed && is(self.name)
    }

    /// The words that a value is; `None` if it says that the option is not given. A file of the
    /// program has the name of the option.
    fn words(&self, value: &Value) -> Result<Option<Vec<String>>, String> {
        let needs = || format!("a value is required for '{}'", self.shown());
        Ok(Some(match value {
            Value::Switch(false) => return Ok(None),
            Value::Switch(true) if self.is_switch => vec!["true".into()],
            Value::Switch(true) => vec![self.alone.ok_or_else(needs)?.into()],
            _ if self.is_switch => {
                return Err(format!(
                    "'{}' has no value: it is true or false",
                    self.shown()
                ));
            }
            Value::Word(word) if self.is_list => word.split(',').map(str::to_string).collect(),
            Value::Word(word) => vec![word.clone()],
            Value::Words(words) if self.takes_several() => words.clone(),
            Value::Words(words) => vec![words.join(",")],
            Value::Content(_) | Value::Schedule(_) if self.takes != Takes::Content => {
                return Err(format!("'{}' reads no file", self.shown()));
            }
            Value::Content(_) | Value::Schedule(_) => vec![format!("<{}>", self.name)],
        }))
    }

    fn check(&self, word: &str) -> Result<(), String> {
        let invalid = format!("invalid value '{word}' for '{}'", self.shown());
        let names = (self.names)();
        if !names.is_empty() && names.iter().all(|(name, _)| *name != word) {
            let names: Vec<_> = names.iter().map(|(name, _)| *name).collect();
            return Err(format!("{invalid} [possible values: {}]", names.join(", ")));
        }
        self.ensure_takes(word.as_ref())
            .map_err(|why| format!("{invalid}: {why}"))
    }
}

/// The option of this name.
fn called<'r>(rows: &'r [Row], name: &str) -> Result<&'r Row, Wrong> {
    rows.iter().find(|row| row.is_called(name)).ok_or_else(|| {
        let names = rows.iter().filter(|row| !row.is_hidden).map(Row::long);
        let name = name.replace('_', "-");
        let similar = names.filter_map(|own| Some((edits(&name, &own)?, own)));
        let nearest = similar.min().map(|(_, own)| own);
        Wrong::Unknown(name, nearest)
    })
}

/// What values give of these options.
pub(crate) fn given(rows: &[Row], values: &Values) -> Result<Given, Wrong> {
    let said = Wrong::Said;
    let mut given = Given::new();
    for (name, value) in values {
        let row = called(rows, name)?;
        let Some(words) = row.words(value).map_err(said)? else {
            continue;
        };
        let item = |word: String| {
            Ok(match value {
                Value::Content(text) => Item::File(Source::text(word, text)),
                Value::Schedule(stored) => Item::File(Source::schedule(word, stored)),
                _ => {
                    row.check(&word).map_err(said)?;
                    Item::Word(word.into())
                }
            })
        };
        let items = words.into_iter().map(item).collect::<Result<_, _>>()?;
        if given.insert(row.name, items).is_some() {
            let shown = row.shown();
            let again = format!("the argument '{shown}' cannot be used multiple times");
            return Err(Wrong::Said(again));
        }
    }
    Ok(given)
}

/// What is given, with the defaults of the other options; refuses what cannot be given together.
pub(crate) fn completed(rows: &[Row], mut given: Given) -> Result<Given, String> {
    for row in rows {
        if let Some(files) = row.files_are {
            take_files(row, files, &mut given)?;
        }
    }
    together(rows, &given)?;
    for row in rows {
        if let (Some(default), false) = (row.default, given.contains_key(row.name)) {
            given.insert(row.name, vec![Item::Word(default.into())]);
        }
    }
    Ok(given)
}

/// Leaves an option its own values and takes the other words as values of the option of `files`; a
/// word behind several of these that names no file may be a value, too, as in `--schedule a.json
/// reduce`.
fn take_files(row: &Row, files: &'static str, given: &mut Given) -> Result<(), String> {
    let is_own = |item: &Item| matches!(item, Item::Word(word) if (row.check)(word).is_ok());
    let placed = given.remove(row.name).unwrap_or_default();
    let (mut own, mut named): (Vec<_>, Vec<_>) = placed.into_iter().partition(is_own);
    named.extend(given.remove(files).unwrap_or_default());
    if let [_, .., last @ Item::Word(word)] = &named[..]
        && own.is_empty()
        && is_own(last)
        && !Path::new(word).exists()
    {
        own.extend(named.pop());
    }
    if own.len() > 1 {
        let shown = row.shown();
        let count = own.len();
        return Err(format!(
            "'{shown}' takes one name besides files, not {count}"
        ));
    }
    for (name, items) in [(row.name, own), (files, named)] {
        if !items.is_empty() {
            given.insert(name, items);
        }
    }
    Ok(())
}

/// Refuses options that cannot be given together, and those without others.
fn together(rows: &[Row], given: &Given) -> Result<(), String> {
    let is_given = |name: &&&str| given.contains_key(**name);
    let shown = |name: &str| {
        let row = rows.iter().find(|option| option.name == name);
        row.map_or_else(|| name.to_string(), Row::shown)
    };
    let missing = |name: &str| {
        let shown = shown(name);
        let placed = shown
            .strip_prefix('[')
            .and_then(|shown| shown.split_once(']'));
        let shown = placed.map_or(shown.clone(), |(value, more)| format!("<{value}>{more}"));
        format!("the following required arguments were not provided: {shown}")
    };
    for row in rows {
        let is_there = given.contains_key(row.name);
        if let (true, Some(other)) = (is_there, row.conflicts.iter().find(is_given)) {
            let (one, other) = (row.shown(), shown(other));
            return Err(format!(
                "the argument '{one}' cannot be used with '{other}'"
            ));
        }
        let mut needed = row.requires.iter();
        if let (true, Some(other)) = (is_there, needed.find(|name| !is_given(name))) {
            return Err(missing(other));
        }
        let is_needed = match row.or_one_of {
            [] => row.times == Times::Once && row.default.is_none() && !row.is_switch,
            others => !others.iter().any(|name| is_given(&name)),
        };
        if is_needed && !is_there {
            return Err(missing(row.name));
        }
    }
    Ok(())
}

/// The words of a command line that gives the same, in the order of help: files that are in memory
/// have the names of files on the disk, and those that the command would write there are left out.
pub(crate) fn words(rows: &[Row], values: &Values) -> Result<Vec<String>, Wrong> {
    for name in values.keys() {
        called(rows, name)?;
    }
    let mut words = Vec::new();
    let given = |row: &'_ Row| values.iter().find(|(name, _)| row.is_called(name));
    for (row, (_, value)) in rows.iter().filter_map(|row| Some((row, given(row)?))) {
        let (long, given) = (row.long(), row.words(value).map_err(Wrong::Said)?);
        let of_memory = |word: &String| word.starts_with('<');
        match (value, given) {
            (_, None) => {}
            (Value::Content(_) | Value::Schedule(_), _) if row.is_placed => {
                words.insert(0, format!("{}.json", row.name));
            }
            (Value::Content(_) | Value::Schedule(_), _) => {
                words.push(format!("--{long}={}.json", row.name));
            }
            (_, Some(given)) if given.iter().any(of_memory) => {}
            (_, Some(_)) if row.is_switch => words.push(format!("--{long}")),
            (_, Some(given)) if row.is_placed => words.splice(0..0, given).for_each(drop),
            (_, Some(given)) if row.is_list => words.push(format!("--{long}={}", given.join(","))),
            (_, Some(given)) => words.extend(given.iter().map(|word| format!("--{long}={word}"))),
        }
    }
    Ok(words)
}
