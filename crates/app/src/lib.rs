//! What the commands of oneport do, without a command line and a terminal: what is [asked](Ask) is
//! answered by an [`Answer`], and the [`Caller`] hears what there is to say meanwhile.

#![forbid(unsafe_code)]

mod answer;
mod args;
pub mod ask;
mod atlas;
mod bits;
mod blocks;
mod calibrate;
mod caller;
mod check;
mod compare;
mod delays;
mod draw;
mod export;
mod files;
mod forms;
mod guidelines;
mod import;
mod input;
mod levels;
mod list;
mod machine;
mod memory;
mod nodes;
mod output;
mod own_file;
mod parallel;
mod plan;
mod preload;
mod prelude;
mod probe;
mod progress;
mod ranges;
mod run;
mod schema;
mod simulate;
mod site;
mod steady;
mod stored;
mod sweep;
mod synthesize;
mod task;
mod tune;
mod units;
mod writer;

use std::fmt::Debug;

use anyhow::{Error, Result, anyhow, bail};
use serde_json::{Map, Value as Json};

pub use answer::Answer;
use answer::JsonForms;
pub use args::{element_type_like, operator_like};
use ask::{Given, Options, Row, Value, Values};
pub use caller::{Bar, Caller, Progress, Terminal};
use input::Input;
pub use output::{VERSION, quoted};
pub use site::{Engine, Site, end_all};
pub use stored::StoredSchedule;
pub use tune::is_library;
use units::did_you_mean;
pub use units::edits;

/// What is asked of a command: its options.
pub(crate) trait Command: Debug {
    /// Where ranks run, of a command that runs any.
    fn engine(&self) -> Option<Engine> {
        None
    }

    fn answer(&self, site: &mut Site) -> Result<Answer>;

    /// The forms of its JSON output.
    fn json_forms() -> JsonForms
    where
        Self: Sized,
    {
        JsonForms::new()
    }

    /// The schedule that is asked for, and its costs.
    fn input(&self, _: &Caller) -> Result<Input> {
        bail!("only `plan` has a schedule")
    }
}

/// A name of a command, with its options.
#[derive(Debug)]
pub struct Entry {
    /// A second word is one of a choice, such as a format.
    pub name: &'static str,
    /// Lines of its documentation.
    pub doc: &'static str,
    /// What help has below the options.
    pub examples: &'static str,
    /// Its options.
    pub rows: fn() -> Vec<Row>,
    /// What is asked; `None` if something is missing, such as the second word, or wrong.
    read: fn(&Given) -> Option<Box<dyn Command>>,
    /// The forms of its JSON output.
    json_forms: fn() -> JsonForms,
}

macro_rules! entries {
    ($($name:literal $args:ty $(, $before:ident)?);* $(;)?) => {
        [$(Entry {
            name: $name,
            doc: <$args>::DOC,
            examples: <$args>::EXAMPLES,
            rows: ask::rows::<$args>,
            read: entries!(@read $args $(, $before)?),
            json_forms: entries!(@json $args $(, $before)?),
        }),*]
    };
    (@read $args:ty) => {
        |given| Some(Box::new(<$args>::read(given)?))
    };
    (@read $args:ty, parent) => {
        |_| None
    };
    (@json $args:ty) => {
        <$args>::json_forms
    };
    (@json $args:ty, parent) => {
        JsonForms::new
    };
}

/// All commands.
pub const ENTRIES: &[Entry] = &entries![
    "list" list::ListArgs;
    "plan" plan::PlanArgs;
    "check" check::CheckArgs;
    "simulate" simulate::SimulateArgs;
    "run" run::RunArgs;
    "compare" compare::CompareArgs;
    "draw" draw::DrawArgs;
    "atlas" atlas::AtlasArgs;
    "calibrate" calibrate::CalibrateArgs;
    "tune" tune::TuneArgs;
    "preload" preload::PreloadArgs;
    "guidelines" guidelines::GuidelinesArgs;
    "bits" probe::BitsArgs;
    "export" export::ExportArgs, parent;
    "export goal" export::ExportGoal;
    "export msccl" export::ExportMsccl;
    "export mscclpp" export::ExportMscclpp;
    "export simgrid" export::ExportSimgrid;
    "export chakra" export::ExportChakra;
    "export dot" export::ExportDot;
    "import" import::ImportArgs, parent;
    "import goal" import::ImportGoal;
    "import msccl" import::ImportMsccl;
    "import mscclpp" import::ImportMscclpp;
    "import teccl" import::ImportTeccl;
    "import chakra" import::ImportChakra;
    "schema" schema::SchemaArgs;
    "steady" steady::SteadyArgs;
    "synthesize" synthesize::SynthesizeArgs;
];

/// By command: the JSON Schema of its options by name.
pub fn schemas() -> Map<String, Json> {
    let schema = |entry: &Entry| ask::schema(entry.doc, &(entry.rows)());
    let schemas = ENTRIES
        .iter()
        .map(|entry| (entry.name.to_string(), schema(entry)));
    schemas.collect()
}

/// The JSON Schema of what a command prints as JSON, in one or several forms; `None` if it prints
/// none, or there is no such command.
pub fn answer_schema(name: &str) -> Option<String> {
    let entry = ENTRIES.iter().find(|entry| entry.name == name)?;
    let forms = (entry.json_forms)();
    if forms.is_empty() {
        return None;
    }
    let title = format!("What oneport {name} prints with --json");
    Some(schema::text(&title, forms.schema()))
}

/// What is asked: a command, with its options.
#[derive(Debug)]
pub struct Ask {
    /// The command.
    pub name: &'static str,
    command: Box<dyn Command>,
}

impl Ask {
    /// Of a command with these values of its options; an error if they cannot be given together.
    pub fn of(entry: &Entry, given: Given) -> Result<Ask, String> {
        let given = ask::completed(&(entry.rows)(), given)?;
        let command = (entry.read)(&given);
        Ok(Ask {
            name: entry.name,
            command: command.ok_or_else(|| format!("'{}' needs a format", entry.name))?,
        })
    }

    /// The command that the first words name: the words behind them are those that are known by
    /// their place, the options have names without dashes. A file that the command writes, if its
    /// name begins with `<`, is in [`Answer::files`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use oneport_app::ask::{Value, Values};
    /// use oneport_app::{Ask, Caller};
    /// let options = Values::from([("ranks".into(), 4u32.into())]);
    /// let plan = Ask::by_name(&["plan", "broadcast"], &options).unwrap();
    /// let schedule = Value::Schedule(Arc::new(plan.input(&Caller::default()).1.unwrap()));
    /// let options = [("schedule", schedule), ("json", true.into())];
    /// let options = options.map(|(name, value)| (name.to_string(), value)).into();
    /// let time = Ask::by_name(&["simulate"], &options).unwrap().answer(&Caller::default());
    /// assert_eq!((time.exit_code, time.error), (0, None));
    /// assert!(time.output.contains("\"model_time\""));
    /// ```
    pub fn by_name(words: &[impl AsRef<str>], options: &Values) -> Result<Ask> {
        let (entry, values) = named(words, options)?;
        let given = ask::given(&(entry.rows)(), &values)?;
        Ask::of(entry, given).map_err(Error::msg)
    }

    /// Where ranks run, of a command that runs any.
    pub fn engine(&self) -> Option<Engine> {
        self.command.engine()
    }

    /// Does what is asked, where the processes of a launch have joined.
    pub fn perform(&self, site: &mut Site) -> Result<Answer> {
        self.command.answer(site)
    }

    /// Does what is asked. It prints nothing and never ends the process; ranks are threads.
    pub fn answer(&self, caller: &Caller) -> Answer {
        let mut site = Site::new(caller.clone());
        let answer = match self.engine() {
            Some(Engine::Mpi) => Err(anyhow!("ranks are processes of MPI only in the command")),
            _ => self.perform(&mut site),
        };
        let answer = answer.unwrap_or_else(|error| Answer::failed(&error));
        answer.told(caller)
    }

    /// The schedule that `plan` is asked for, and the costs, instead of its text.
    pub fn input(&self, caller: &Caller) -> (Answer, Option<StoredSchedule>) {
        let (answer, stored) = match self.command.input(caller) {
            Ok(input) => (Answer::default(), Some(input.stored())),
            Err(error) => (Answer::failed(&error), None),
        };
        (answer.told(caller), stored)
    }
}

/// The command line that asks for the same, where files in memory are on the disk.
pub fn command_line(words: &[impl AsRef<str>], options: &Values) -> Result<Vec<String>> {
    let (entry, values) = named(words, options)?;
    let words = ask::words(&(entry.rows)(), &values);
    let words = words.map_err(|wrong| anyhow!("{wrong}"))?;
    let name = entry.name.split(' ').map(str::to_string);
    Ok(name.chain(words).collect())
}

/// Whether the command that these words name has an option of this name.
pub fn has_option(words: &[impl AsRef<str>], option: &str) -> Result<bool> {
    let (entry, _) = named(words, &Values::new())?;
    Ok((entry.rows)().iter().any(|row| row.long() == option))
}

/// The command that the first words name, and its options with those that are known by their place.
fn named(words: &[impl AsRef<str>], options: &Values) -> Result<(&'static Entry, Values)> {
    const ALL: &[Entry] = ENTRIES;
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    let is_named = |entry: &&Entry| {
        let name: Vec<&str> = entry.name.split(' ').collect();
        words.starts_with(&name)
    };
    let Some(entry) = ALL.iter().rfind(is_named) else {
        let names = ALL.iter().map(|entry| entry.name);
        let names: Vec<&str> = names.filter(|name| !name.contains(' ')).collect();
        let word = words.first().copied().unwrap_or_default();
        bail!(
            "'{word}' is no command{}: the commands are {}",
            did_you_mean(word, names.iter().copied()),
            names.join(", ")
        );
    };
    let mut values = options.clone();
    let placed = &words[entry.name.split(' ').count()..];
    let row = (entry.rows)().into_iter().find(|row| row.is_placed);
    match (placed, row) {
        ([], _) => {}
        ([word, ..], _) if word.starts_with('-') => {
            bail!("'{word}' beside options by name: give all of them by name")
        }
        ([word], Some(row)) => {
            values.insert(row.name.into(), Value::Word((*word).into()));
        }
        (_, Some(row)) if row.takes_several() => {
            let placed = placed.iter().map(|word| (*word).to_string());
            values.insert(row.name.into(), Value::Words(placed.collect()));
        }
        _ => bail!("unexpected argument '{}' found", placed.join(" ")),
    }
    Ok((entry, values))
}
