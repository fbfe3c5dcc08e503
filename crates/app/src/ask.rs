//! What a caller asks of a command: structs whose fields are options. An option stands once, where
//! its field does, with its type, its help, its default and its form on a command line; parsers,
//! help and signatures for other languages are made of these rows.
//!
//! A macro of one's own instead of the derives of a parser: those who ask may have no command line.

mod given;
mod schema;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

pub use self::given::{Value, Values};
pub(crate) use self::given::{Wrong, completed, given, words};
pub(crate) use self::schema::schema;
use crate::files::Source;

/// What the words are that are values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Words {
    /// Texts.
    Text,
    /// Names of files, which may be no text.
    Files,
    /// A name of a file among other things.
    Mixed,
}

/// What a program may give an option besides words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Nothing.
    Words,
    /// A whole number.
    Whole,
    /// Whole numbers.
    Wholes,
    /// A number.
    Number,
    /// Numbers.
    Numbers,
    /// A name of a file that is written.
    FileName,
    /// What is in the file that a word names.
    Content,
}

/// How the values of an option are written.
pub(crate) trait Form {
    /// What they mean.
    type Value;
    /// What help has in place of a value; if it is empty, the name of the option.
    const NAME: &'static str = "";
    /// Whether the option has no value: it is given or not.
    const IS_SWITCH: bool = false;
    const WORDS: Words = Words::Text;
    const TAKES: Takes = Takes::Words;

    /// What a text means; of forms that are no text, [`parse_raw`](Form::parse_raw) says it.
    fn parse(text: &str) -> Result<Self::Value, String> {
        Self::parse_raw(text.as_ref())
    }

    /// What no value is, if it is something.
    fn none() -> Option<Self::Value> {
        None
    }

    fn parse_raw(word: &OsStr) -> Result<Self::Value, String> {
        let text = word.to_str();
        Self::parse(text.ok_or_else(|| format!("'{}' is not a text", word.display()))?)
    }

    /// What a file means that a program gives; nothing where none is read.
    fn of_file(_: &Source) -> Option<Self::Value> {
        None
    }

    /// The values and their help, if there are only some.
    fn names() -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }
}

/// A value of an option: its name, what its help says, and what it means.
pub(crate) type Named<T> = (&'static str, &'static str, T);

/// The value of this name.
pub(crate) fn named<T: Copy>(values: &[Named<T>], name: &str) -> Result<T, String> {
    let value = values.iter().find(|value| value.0 == name);
    value.map(|value| value.2).ok_or_else(|| "unknown".into())
}

/// The names of values, with their help.
pub(crate) fn names<T>(values: &[Named<T>]) -> Vec<(&'static str, &'static str)> {
    values.iter().map(|&(name, help, _)| (name, help)).collect()
}

/// Defines forms of values: by their parser or of their names, and what else they take than words.
macro_rules! forms {
    ($($(#[$about:meta])* $form:ident: $value:ty = $name:expr, $by:ident $parse:expr $(, $takes:ident)?;)*) => {$(
        $(#[$about])*
        #[derive(Debug)]
        pub(crate) struct $form;

        impl $crate::ask::Form for $form {
            type Value = $value;
            const NAME: &'static str = $name;
            $(const TAKES: $crate::ask::Takes = $crate::ask::Takes::$takes;)?
            $crate::ask::forms! { @$by $value, $parse }
        }
    )*};
    (@by $value:ty, $parse:expr) => {
        fn parse(text: &str) -> Result<$value, String> {
            $parse(text)
        }
    };
    (@of $value:ty, $names:expr) => {
        fn parse(text: &str) -> Result<$value, String> {
            $crate::ask::named(&$names, text)
        }

        fn names() -> Vec<(&'static str, &'static str)> {
            $crate::ask::names(&$names)
        }
    };
}
pub(crate) use forms;

/// Defines kinds of things that have names: with their help, and as the form of their values.
macro_rules! choices {
    (
        $(#[doc = $about:literal])*
        #[derive($($derived:ident),*)]
        $seen:vis enum $choice:ident {
            $($(#[doc = $doc:literal])* $kind:ident = $name:literal),* $(,)?
        }
    ) => {
        $(#[doc = $about])*
        #[derive($($derived),*)]
        $seen enum $choice {
            $($(#[doc = $doc])* $kind),*
        }

        impl $choice {
            const NAMES: &[$crate::ask::Named<$choice>] =
                &[$(($name, concat!($($doc, "\n"),*), $choice::$kind)),*];
        }

        impl $crate::ask::Form for $choice {
            type Value = $choice;

            fn parse(text: &str) -> Result<$choice, String> {
                $crate::ask::named($choice::NAMES, text)
            }

            fn names() -> Vec<(&'static str, &'static str)> {
                $crate::ask::names($choice::NAMES)
            }
        }
    };
}
pub(crate) use choices;

/// An option that has no value.
#[derive(Debug)]
pub(crate) struct Switch;

impl Form for Switch {
    type Value = bool;
    const IS_SWITCH: bool = true;

    fn parse(_: &str) -> Result<bool, String> {
        Ok(true)
    }

    fn none() -> Option<bool> {
        Some(false)
    }
}

/// Words of any kind.
#[derive(Debug)]
pub(crate) struct Word;

impl Form for Word {
    type Value = String;

    fn parse(text: &str) -> Result<String, String> {
        Ok(text.to_string())
    }
}

/// The name of a file that is written.
#[derive(Debug)]
pub(crate) struct Output;

impl Form for Output {
    type Value = std::path::PathBuf;
    const NAME: &'static str = "FILE";
    const WORDS: Words = Words::Files;
    const TAKES: Takes = Takes::FileName;

    fn parse_raw(word: &OsStr) -> Result<Self::Value, String> {
        Ok(word.into())
    }
}

/// The name of a file that is read, which need not be a text.
#[derive(Debug)]
pub(crate) struct File;

impl Form for File {
    type Value = Source;
    const NAME: &'static str = "FILE";
    const WORDS: Words = Words::Files;
    const TAKES: Takes = Takes::Content;

    fn parse_raw(word: &OsStr) -> Result<Source, String> {
        Ok(Source::named(word))
    }

    fn of_file(source: &Source) -> Option<Source> {
        Some(source.clone())
    }
}

/// How often an option may be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// Once, or not at all.
    AtMostOnce,
    /// Once.
    Once,
    /// As often as one likes.
    AnyNumber,
}

/// How a field holds values.
pub(crate) trait Holds<V>: Sized {
    const TIMES: Times;

    /// `None` if there is no value where one must be.
    fn of(values: Vec<V>) -> Option<Self>;
}

impl<V> Holds<V> for V {
    const TIMES: Times = Times::Once;

    fn of(values: Vec<V>) -> Option<V> {
        values.into_iter().last()
    }
}

impl<V> Holds<V> for Option<V> {
    const TIMES: Times = Times::AtMostOnce;

    fn of(values: Vec<V>) -> Option<Option<V>> {
        Some(values.into_iter().last())
    }
}

impl<V> Holds<V> for Vec<V> {
    const TIMES: Times = Times::AnyNumber;

    fn of(values: Vec<V>) -> Option<Vec<V>> {
        Some(values)
    }
}

/// An option.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// That of the field.
    pub name: &'static str,
    /// Lines of its documentation, which is its help.
    pub doc: &'static str,
    /// What help has in place of a value.
    pub value: &'static str,
    /// Its value where none is given, as one would write it.
    pub default: Option<&'static str>,
    /// Its value where it is given without one.
    pub alone: Option<&'static str>,
    /// Whether a value stands behind an equals sign, so that the next word is none.
    pub behind_equals: bool,
    /// How often it may be given.
    pub times: Times,
    /// Whether several values may stand between commas in one word.
    pub is_list: bool,
    /// Whether further words are values, too.
    pub takes_words: bool,
    /// Whether it has no value.
    pub is_switch: bool,
    /// What its words are.
    pub words: Words,
    /// What else a program may give it.
    pub takes: Takes,
    /// Whether it is known by its place on a command line, and not by its name.
    pub is_placed: bool,
    /// The option whose values those of its words are that name a file and are none of its own.
    pub(crate) files_are: Option<&'static str>,
    /// The name on a command line, if it is another one.
    pub long: Option<&'static str>,
    /// Its short names.
    pub shorts: &'static [char],
    /// Other names, of which help speaks.
    pub aliases: &'static [&'static str],
    /// Other names, of which help does not speak.
    pub hidden_aliases: &'static [&'static str],
    /// Under which title help has it.
    pub heading: Option<&'static str>,
    /// Whether help has it not at all.
    pub is_hidden: bool,
    /// Whether only the long help has it.
    pub only_in_long_help: bool,
    /// Whether values may begin with a dash.
    pub takes_dashes: bool,
    /// Options without which it cannot be given.
    pub requires: &'static [&'static str],
    /// Options beside which it cannot be given.
    pub conflicts: &'static [&'static str],
    /// It must be given unless one of these is.
    pub or_one_of: &'static [&'static str],
    /// Of a group: options in it that conflict with nothing.
    pub freed: &'static [&'static str],
    /// The values and their help, if there are only some.
    pub names: fn() -> Vec<(&'static str, &'static str)>,
    /// What is wrong with a word as its value.
    pub(crate) check: fn(&OsStr) -> Result<(), String>,
}

impl Row {
    pub(crate) const fn new(name: &'static str) -> Row {
        Row {
            name,
            doc: "",
            value: "",
            default: None,
            alone: None,
            behind_equals: false,
            times: Times::AtMostOnce,
            is_list: false,
            takes_words: false,
            is_switch: false,
            words: Words::Text,
            takes: Takes::Words,
            is_placed: false,
            files_are: None,
            long: None,
            shorts: &[],
            aliases: &[],
            hidden_aliases: &[],
            heading: None,
            is_hidden: false,
            only_in_long_help: false,
            takes_dashes: false,
            requires: &[],
            conflicts: &[],
            or_one_of: &[],
            freed: &[],
            names: Vec::new,
            check: |_| Ok(()),
        }
    }

    /// Refuses a word that is no value of it, and names no file where one may stand.
    pub fn ensure_takes(&self, word: &OsStr) -> Result<(), String> {
        if self.files_are.is_some() && names_file(word) {
            return Ok(());
        }
        (self.check)(word)
    }
}

/// Whether a word is like a path, as no name of a collective is, or there is a file of this name.
fn names_file(word: &OsStr) -> bool {
    let is_mark = |byte: &u8| b"./=".contains(byte);
    let bytes = word.as_encoded_bytes();
    bytes == b"-" || bytes.iter().any(is_mark) || Path::new(word).exists()
}

/// A value of an option, as it is given.
#[derive(Debug, Clone)]
pub enum Item {
    /// What one would write.
    Word(OsString),
    /// What a program gives in place of the name of a file.
    File(Source),
}

/// By option: its values; none of a switch.
pub type Given = BTreeMap<&'static str, Vec<Item>>;

/// How a field of type `T` is read: as the values of an option, or as a group of options.
pub(crate) trait Reads<T> {
    /// Adds the option, or those of the group.
    fn add(row: Row, to: &mut Vec<Row>);

    /// What is given, which has the defaults; `None` if something is missing or wrong.
    fn read(name: &str, given: &Given) -> Option<T>;
}

impl<T: Holds<F::Value>, F: Form> Reads<T> for F {
    fn add(row: Row, to: &mut Vec<Row>) {
        let value = if row.value.is_empty() {
            F::NAME
        } else {
            row.value
        };
        to.push(Row {
            value,
            times: T::TIMES,
            is_switch: F::IS_SWITCH,
            words: match row.files_are {
                Some(_) => Words::Mixed,
                None => F::WORDS,
            },
            takes: F::TAKES,
            names: F::names,
            check: |word| F::parse_raw(word).map(|_| ()),
            ..row
        });
    }

    fn read(name: &str, given: &Given) -> Option<T> {
        let items = given.get(name).map_or(&[][..], |items| items);
        let values = items.iter().map(|item| match item {
            Item::Word(word) => F::parse_raw(word).ok(),
            Item::File(source) => F::of_file(source),
        });
        let mut values: Vec<_> = values.collect::<Option<_>>()?;
        if values.is_empty() {
            values.extend(F::none());
        }
        T::of(values)
    }
}

/// A group of options.
#[derive(Debug)]
pub(crate) struct Group;

impl<T: Options> Reads<T> for Group {
    fn add(group: Row, to: &mut Vec<Row>) {
        let first = to.len();
        T::add_to(to);
        for row in &mut to[first..] {
            row.heading = row.heading.or(group.heading);
            row.only_in_long_help |= group.only_in_long_help;
            if group.freed.contains(&row.name) {
                row.conflicts = &[];
            }
        }
    }

    fn read(_: &str, given: &Given) -> Option<T> {
        T::read(given)
    }
}

/// A field that no option fills.
#[derive(Debug)]
pub(crate) struct Unasked;

impl<T: Default> Reads<T> for Unasked {
    fn add(_: Row, _: &mut Vec<Row>) {}

    fn read(_: &str, _: &Given) -> Option<T> {
        Some(T::default())
    }
}

/// A struct whose fields are options.
pub(crate) trait Options: Sized {
    /// Lines of its documentation: what the command does.
    const DOC: &'static str;
    const EXAMPLES: &'static str;

    fn add_to(rows: &mut Vec<Row>);

    fn read(given: &Given) -> Option<Self>;
}

/// The options of a command.
pub(crate) fn rows<A: Options>() -> Vec<Row> {
    let mut rows = Vec::new();
    A::add_to(&mut rows);
    rows
}

/// Defines structs of options. Behind the type of a field stand the form of its values, and what
/// else a [`Row`] says of it.
macro_rules! options {
    (@text) => { "" };
    (@text $text:expr) => { $text };
    ($(
        $(#[doc = $about:literal])*
        $(#[derive($($derived:ident),*)])?
        $(#[examples = $examples:expr])?
        $seen:vis struct $options:ident {
            $(
                $(#[doc = $doc:expr])*
                $field_seen:vis $field:ident: $type:ty
                    = $form:ident $({ $($key:ident: $value:expr),* $(,)? })?
            ),* $(,)?
        }
    )*) => {$(
        $(#[doc = $about])*
        $(#[derive($($derived),*)])?
        $seen struct $options {
            $($(#[doc = $doc])* $field_seen $field: $type),*
        }

        impl $crate::ask::Options for $options {
            const DOC: &'static str = concat!($($about, "\n"),*);
            const EXAMPLES: &'static str = $crate::ask::options!(@text $($examples)?);

            #[allow(unused_variables, reason = "there may be no options")]
            fn add_to(rows: &mut Vec<$crate::ask::Row>) {
                $(<$form as $crate::ask::Reads<$type>>::add(
                    $crate::ask::Row {
                        doc: concat!($($doc, "\n"),*),
                        $($($key: $value,)*)?
                        ..$crate::ask::Row::new(stringify!($field))
                    },
                    rows,
                );)*
            }

            #[allow(unused_variables, reason = "there may be no options")]
            fn read(given: &$crate::ask::Given) -> Option<$options> {
                Some($options {
                    $($field: <$form as $crate::ask::Reads<$type>>::read(
                        stringify!($field),
                        given,
                    )?),*
                })
            }
        }
    )*};
}
pub(crate) use options;
