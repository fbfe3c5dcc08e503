//! What a command answers: as JSON or as text, and whether something is wrong.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

use anyhow::Result;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter};

use crate::ask::Wrong;
use crate::caller::Caller;
use crate::units::{Number, rounded};

/// What has come of a command.
#[derive(Debug, Default)]
pub struct Answer {
    /// One JSON object if that is asked for, otherwise a text.
    pub output: String,
    /// Beside JSON, for a program: the text.
    pub text: String,
    /// 0: success; 1: a check failed or data are wrong; 2: bad usage or unreadable input; 130: a
    /// signal has ended it.
    pub exit_code: u8,
    /// What went wrong.
    pub error: Option<String>,
    /// What there is to say behind the output.
    pub remark: Option<String>,
    /// What was remarked to a program meanwhile.
    pub notes: Vec<String>,
    /// By name: the files that a program has in memory.
    pub files: BTreeMap<String, String>,
    /// If the command has no such option: the one that was given, and a similar one that it has.
    pub unknown_option: Option<(String, Option<String>)>,
}

impl From<String> for Answer {
    fn from(output: String) -> Answer {
        Answer {
            output,
            ..Answer::default()
        }
    }
}

impl Answer {
    /// The answer after which something has failed, such as a file that cannot be written. Of
    /// several failures the first one counts.
    pub(crate) fn and(mut self, result: Result<()>) -> Answer {
        if let (None, Err(error)) = (&self.error, result) {
            (self.exit_code, self.error) = (exit_code(&error), Some(format!("{error:#}")));
        }
        self
    }

    /// Something that was found is wrong: exit code 1.
    pub(crate) fn but_wrong(self, message: String) -> Answer {
        self.and(Err(wrong(message)))
    }

    /// A signal has ended the work.
    pub(crate) fn interrupted(mut self, remark: String) -> Answer {
        if self.error.is_none() {
            (self.exit_code, self.remark) = (130, Some(remark));
        }
        self
    }

    /// What there is where a command has failed.
    pub fn failed(error: &anyhow::Error) -> Answer {
        let answer = error.downcast_ref::<FoundWrong>();
        let unknown_option = match error.downcast_ref::<Wrong>() {
            Some(Wrong::Unknown(name, similar)) => Some((name.clone(), similar.clone())),
            _ => None,
        };
        Answer {
            output: answer.map_or_else(String::new, |wrong| wrong.answer.clone()),
            exit_code: exit_code(error),
            error: Some(format!("{error:#}")),
            unknown_option,
            ..Answer::default()
        }
    }

    /// The answer with what the caller has of the command besides.
    pub(crate) fn told(mut self, caller: &Caller) -> Answer {
        if let (true, Some(remark)) = (caller.is_program(), self.remark.take()) {
            caller.note(remark);
        }
        (self.notes, self.files) = caller.heard();
        self
    }
}

/// A text in the making.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    text: String,
    /// Who reads it.
    pub(crate) caller: &'a Caller,
}

impl fmt::Write for Lines<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text.push_str(text);
        Ok(())
    }
}

/// The answer as JSON, if that is asked for, or as text; a program has both.
pub(crate) fn answer(
    caller: &Caller,
    as_json: bool,
    value: &impl Answered,
    text: impl FnOnce(&mut Lines) -> Result<()>,
) -> Result<Answer> {
    let mut lines = Lines {
        text: String::new(),
        caller,
    };
    if !as_json || caller.is_program() {
        text(&mut lines)?;
    }
    let text = lines.text;
    if !as_json {
        return Ok(text.into());
    }
    let output = json(value)?;
    Ok(Answer {
        output,
        text,
        ..Answer::default()
    })
}

/// What JSON output is made of: its fields and their types are known.
pub(crate) trait Answered: Serialize + JsonSchema {}

impl<T: Serialize + JsonSchema> Answered for T {}

impl JsonSchema for Number {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        f64::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        f64::json_schema(generator)
    }
}

/// The JSON Schemas of the forms that a command's JSON output may have.
pub(crate) struct JsonForms {
    generator: SchemaGenerator,
    forms: Vec<Schema>,
}

/// Of which a schema is.
const META_SCHEMA: &str = "https://json-schema.org/draft/2020-12/schema";

impl JsonForms {
    /// None yet.
    pub(crate) fn new() -> JsonForms {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        JsonForms {
            generator: settings.into_generator(),
            forms: Vec::new(),
        }
    }

    /// With the form that a function makes, which is not called.
    pub(crate) fn of<A, T: Answered>(mut self, _: impl FnOnce(A) -> T) -> JsonForms {
        self.forms.push(self.generator.subschema_for::<T>());
        self
    }

    /// With the form of a file.
    pub(crate) fn of_file(mut self, name: &str) -> JsonForms {
        self.forms
            .extend(crate::schema::of_file(name).map(|(_, schema)| schema));
        self
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// One schema of all.
    pub(crate) fn schema(mut self) -> Schema {
        let mut schema = match self.forms.pop() {
            Some(form) if self.forms.is_empty() => form,
            last => {
                self.forms.extend(last);
                json_schema!({ "anyOf": self.forms })
            }
        };
        schema.insert("$schema".into(), META_SCHEMA.into());
        let shared = self.generator.take_definitions(true);
        if !shared.is_empty() {
            schema.insert("$defs".into(), shared.into());
        }
        schema
    }
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

/// One JSON object and a line end. Its numbers have at most 12 significant digits: sums of costs
/// such as 0.1 have wrong ones after these.
pub(crate) fn json(value: &impl Serialize) -> Result<String> {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Rounding::default());
    value.serialize(&mut serializer)?;
    bytes.push(b'\n');
    Ok(String::from_utf8(bytes)?)
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
    (@doc optional) => { "" };
    ($($(#[$attribute:meta])* $name:ident $(($optional:ident))?: $value:expr),* $(,)?) => {
        match () {
            #[allow(
                non_camel_case_types,
                clippy::empty_docs,
                reason = "a field and its type have one name; what is optional needs no words"
            )]
            () => {
                #[derive(serde::Serialize, schemars::JsonSchema)]
                #[schemars(inline)]
                struct Record<$($name: $crate::answer::Answered),*> {
                    $($(#[$attribute])*
                    $(#[doc = $crate::answer::record!(@doc $optional)]
                    #[serde(skip_serializing_if = "Option::is_none")])?
                    $name: $crate::answer::record!(@type $name $($optional)?)),*
                }
                Record { $($name: $value),* }
            }
        }
    };
}
pub(crate) use record;
