//! The command as a function: its files may be in memory, and what it prints is returned.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::host::{self, Memory};
use crate::output::{self, FoundWrong};
use crate::parser::parse;
use crate::site::{self, Engine, Site};
use crate::stored::{Progress, StoredSchedule};
use crate::{Command, plan};
use anyhow::{Result, anyhow, bail};
use clap::error::{ContextKind, ContextValue};

/// A call of the command. It prints nothing and never ends the process; ranks are threads.
///
/// ```
/// use oneport_cli::Call;
/// let plan = Call::new(["plan", "broadcast", "-p", "4", "--json"]).answer();
/// let time = Call::new(["simulate", "--schedule", "-", "--json"]).file("-", plan.output).answer();
/// assert_eq!((time.exit_code, time.error), (0, None));
/// assert!(time.output.contains("\"model_time\""));
/// ```
#[derive(Debug, Default)]
#[must_use = "a call is made by `answer` or `input`"]
pub struct Call {
    arguments: Vec<OsString>,
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
    /// A call of the command with these arguments, its name not among them.
    pub fn new(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Call {
        let arguments = arguments.into_iter().map(Into::into).collect();
        let memory = Memory::default();
        Call { arguments, memory }
    }

    /// A file that arguments name: `-`, or a name that begins with `<`. Files that the command
    /// writes under such names are in [`Answer::files`].
    pub fn file(mut self, name: impl Into<String>, content: impl Into<String>) -> Call {
        self.memory.files.insert(name.into(), content.into());
        self
    }

    /// A schedule that arguments name as a file, as `--schedule=<name>`. It is not read again, and
    /// answers name its algorithm.
    pub fn schedule(mut self, name: impl Into<String>, schedule: Arc<StoredSchedule>) -> Call {
        self.memory.schedules.insert(name.into(), schedule);
        self
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
        host::begin(self.arguments, Some(self.memory));
        let mut out = Vec::new();
        let mut unknown_option = None;
        let result = match parse(host::arguments()) {
            Ok(command) if command.engine() == Some(Engine::Mpi) => {
                Err(anyhow!("ranks are processes of MPI only in the command"))
            }
            Ok(command) => run(command, &mut out),
            // Help is no mistake, but no answer either.
            Err(error) if !error.use_stderr() => Err(anyhow!(error.render().to_string())),
            Err(error) => {
                unknown_option = unknown_option_of(&error);
                Err(anyhow!(site::sentence(&error)))
            }
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

fn unknown_option_of(error: &clap::Error) -> Option<(String, Option<String>)> {
    let name = |kind| match error.get(kind) {
        Some(ContextValue::String(name)) => name.strip_prefix("--").map(str::to_string),
        _ => None,
    };
    let unknown = error.kind() == clap::error::ErrorKind::UnknownArgument;
    let given = unknown.then(|| name(ContextKind::InvalidArg)).flatten()?;
    Some((given, name(ContextKind::SuggestedArg)))
}
