//! The command as a function: its files may be in memory, and what it prints is returned.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::ask::{self, Times, Value, Values, Wrong};
use crate::host::{self, Memory};
use crate::output::{self, FoundWrong};
use crate::site::{self, Engine, Site};
use crate::stored::{Progress, StoredSchedule};
use crate::{Command, ENTRIES, Entry, parser, plan};
use anyhow::{Context, Result, anyhow, bail};
use clap::error::{ContextKind, ContextValue};

/// A call of the command. It prints nothing and never ends the process; ranks are threads.
///
/// ```
/// use std::sync::Arc;
/// use oneport_app::{Call, Value};
/// let plan = Call::new(["plan", "broadcast"]).option("ranks", 4u32);
/// let schedule = Value::Schedule(Arc::new(plan.input().1.unwrap()));
/// let time = Call::new(["simulate"]).option("schedule", schedule).option("json", true).answer();
/// assert_eq!((time.exit_code, time.error), (0, None));
/// assert!(time.output.contains("\"model_time\""));
/// ```
#[derive(Debug, Default)]
#[must_use = "a call is made by `answer` or `input`"]
pub struct Call {
    words: Vec<OsString>,
    options: Values,
    memory: Memory,
}

/// What a call has come to.
#[derive(Debug, Default)]
pub struct Answer {
    /// What the command prints on standard output.
    pub output: String,
    /// Beside JSON: what the command prints without `--json`, where it has that option.
    pub text: String,
    /// What it would remark on standard error.
    pub notes: Vec<String>,
    /// By name: the files that it was given or has written.
    pub files: BTreeMap<String, String>,
    /// 0: success; 1: a check failed or data are wrong; 2: bad usage or unreadable input.
    pub exit_code: u8,
    /// What went wrong.
    pub error: Option<String>,
    /// If the command has no such option: the one that was given, and a similar one that it has.
    pub unknown_option: Option<(String, Option<String>)>,
}

impl Call {
    /// A call of the command of this name, with what stands behind the name on a command line; with
    /// no [`option`](Call::option), the words may be a whole command line.
    pub fn new(words: impl IntoIterator<Item = impl Into<OsString>>) -> Call {
        Call {
            words: words.into_iter().map(Into::into).collect(),
            ..Call::default()
        }
    }

    /// Gives an option, by its name without dashes. A file that the command writes, if its name
    /// begins with `<`, is in [`Answer::files`].
    pub fn option(mut self, name: impl Into<String>, value: impl Into<Value>) -> Call {
        self.options.insert(name.into(), value.into());
        self
    }

    /// A file that words name: `-`, or a name that begins with `<`.
    pub fn file(mut self, name: impl Into<String>, content: impl Into<String>) -> Call {
        self.memory.files.insert(name.into(), content.into());
        self
    }

    /// The command line that gives the same, where files in memory are on the disk.
    pub fn command_line(&self) -> Result<Vec<String>> {
        let (entry, values) = self.entry()?;
        let words = ask::words(&(entry.rows)(), &values);
        let words = words.map_err(|wrong| anyhow!("{wrong}"))?;
        Ok(entry
            .name
            .split(' ')
            .map(str::to_string)
            .chain(words)
            .collect())
    }

    /// The command that the first words name, and its options: the words behind them are those that
    /// are known by their place.
    fn entry(&self) -> Result<(&'static Entry, Values)> {
        let words = self
            .words
            .iter()
            .map(|word| word.to_string_lossy().into_owned());
        let words: Vec<String> = words.collect();
        let is_named = |entry: &&Entry| {
            let name: Vec<&str> = entry.name.split(' ').collect();
            words.len() >= name.len() && words.iter().zip(&name).all(|(word, name)| word == name)
        };
        let Some(entry) = ENTRIES.iter().rfind(is_named) else {
            parsed(self.words.clone())?;
            bail!("'{}' is no command", words.join(" "));
        };
        let mut values = self.options.clone();
        let placed = words[entry.name.split(' ').count()..].to_vec();
        let row = (entry.rows)().into_iter().find(|row| row.is_placed);
        match (&placed[..], row) {
            ([], _) => {}
            ([word, ..], _) if word.starts_with('-') => {
                bail!("'{word}' beside options by name: give all of them by name")
            }
            ([_], Some(row)) => {
                values.insert(row.name.into(), Value::Word(placed.concat()));
            }
            (_, Some(row)) if row.times == Times::AnyNumber => {
                values.insert(row.name.into(), Value::Words(placed));
            }
            _ => bail!("unexpected argument '{}' found", placed.join(" ")),
        }
        Ok((entry, values))
    }

    /// The command line that pages, pictures and tables name as the one that made them, in place of
    /// these arguments, whose files nobody else has.
    pub fn named(mut self, command: impl Into<String>) -> Call {
        self.memory.command = Some(command.into());
        self
    }

    /// Long work says here how far it is.
    pub fn progress(mut self, progress: Arc<Progress>) -> Call {
        self.memory.progress = Some(progress);
        self
    }

    /// Ends long work when the flag is set: a search returns what it has found so far, all else
    /// unwinds the thread that made the call, without a message.
    pub fn stop(mut self, flag: Arc<AtomicBool>) -> Call {
        self.memory.stop = flag;
        self
    }

    /// Runs the command.
    pub fn answer(self) -> Answer {
        let run = |command: Command, out: &mut Vec<u8>| command.perform(&mut Site::default(), out);
        let (mut answer, code) = self.perform(run);
        if let Some(code) = code {
            let same = |number: &u8| ExitCode::from(*number) == code;
            answer.exit_code = (0..=u8::MAX).find(same).unwrap_or_default();
        }
        answer
    }

    /// The schedule that the arguments of `plan` describe, and the costs, instead of its text.
    pub fn input(self) -> (Answer, Option<StoredSchedule>) {
        self.perform(|command, _| match &command {
            Command::Plan(args) => {
                let input = plan::input(args)?;
                Ok(StoredSchedule {
                    made_by: input.info.maker(),
                    file: input.info.schedule.filter(|name| !host::is_unnamed(name)),
                    schedule: input.schedule,
                    cost: input.cost,
                })
            }
            _ => bail!("only `plan` has a schedule"),
        })
    }

    fn perform<R>(
        self,
        run: impl FnOnce(Command, &mut Vec<u8>) -> Result<R>,
    ) -> (Answer, Option<R>) {
        let by_name = (!self.options.is_empty()).then(|| (self.entry(), self.command_line()));
        let (mut words, mut memory) = (self.words, self.memory);
        if let Some((named, line)) = &by_name {
            let line = line.iter().flatten();
            words = line.map(OsString::from).collect();
            if let Ok((entry, values)) = named {
                memory.keep(&(entry.rows)(), values);
            }
        }
        host::begin(words, Some(memory));
        let command = match by_name {
            Some((named, _)) => named.and_then(|(entry, values)| read(entry, &values)),
            None => parsed(host::arguments()),
        };
        let mut out = Vec::new();
        let result = match command {
            Ok(command) if command.engine() == Some(Engine::Mpi) => {
                Err(anyhow!("ranks are processes of MPI only in the command"))
            }
            Ok(command) => run(command, &mut out),
            Err(error) => Err(error),
        };
        let (error, exit_code) = match &result {
            Ok(_) => (None, 0),
            Err(error) => {
                if let Some(wrong) = error.downcast_ref::<FoundWrong>() {
                    out.extend_from_slice(wrong.answer.as_bytes());
                }
                (Some(format!("{error:#}")), output::exit_code(error))
            }
        };
        let unknown = result
            .as_ref()
            .err()
            .and_then(|error| error.downcast_ref::<Wrong>());
        let unknown_option = match unknown {
            Some(Wrong::Unknown(name, similar)) => Some((name.clone(), similar.clone())),
            _ => None,
        };
        let memory = host::end();
        let answer = Answer {
            output: String::from_utf8_lossy(&out).into_owned(),
            text: memory.text,
            notes: memory.notes,
            files: memory.files,
            exit_code,
            error,
            unknown_option,
        };
        (answer, result.ok())
    }
}

/// The command that is asked for, with its options.
fn read(entry: &Entry, values: &Values) -> Result<Command> {
    let given = ask::given(&(entry.rows)(), values)?;
    (entry.read)(&given).with_context(|| format!("'{}' needs a format", entry.name))
}

/// The command of a command line.
fn parsed(words: Vec<OsString>) -> Result<Command> {
    parser::parse(words).map_err(|error| {
        let name = |kind| match error.get(kind) {
            Some(ContextValue::String(name)) => name.strip_prefix("--").map(str::to_string),
            _ => None,
        };
        let is_unknown = error.kind() == clap::error::ErrorKind::UnknownArgument;
        match name(ContextKind::InvalidArg).filter(|_| is_unknown) {
            Some(given) => Wrong::Unknown(given, name(ContextKind::SuggestedArg)).into(),
            // Help is no mistake, but no answer either.
            None if !error.use_stderr() => anyhow!(error.render().to_string()),
            None => anyhow!(site::sentence(&error)),
        }
    })
}
