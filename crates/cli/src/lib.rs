//! The command line: parses arguments, asks for one command and prints its answer.

#![forbid(unsafe_code)]

mod completions;
mod parser;
mod terminal;

use std::ffi::OsString;
use std::io::{self, ErrorKind as IoError, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap_complete::Shell;
use oneport::ErrorKind;
use oneport::internal::launch;
use oneport::mpi::World;
use oneport_app::{Answer, Ask, Caller, Engine, Site, end_all, quoted};

use terminal::Terminal;

/// What a command line asks for.
#[derive(Debug)]
enum Asked {
    Command(Ask),
    /// A script for a shell, or else the manual page.
    Completions(Option<Shell>),
}

/// The command that the words of a command line ask for, its name not among them; the error, where
/// they ask for none.
pub fn ask(words: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Ask, String> {
    let words = words.into_iter().map(Into::into).collect();
    match parser::parse(words) {
        Ok(Asked::Command(ask)) => Ok(ask),
        Ok(Asked::Completions(_)) => Err("completions are for a shell".into()),
        Err(error) => Err(sentence(&error)),
    }
}

/// What is wrong with arguments, without the advice that follows.
fn sentence(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let text = text.split("\n\n").next().unwrap_or_default();
    let text = text.strip_prefix("error: ").unwrap_or(text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Ends this process because of its arguments. Other processes of the launch, whose arguments may
/// be right, wait for this one: it joins them to tell them, and one message is seen.
fn exit(error: &clap::Error, caller: &Caller) -> ! {
    /// Grace for peers that run a command without MPI.
    const PATIENCE: Duration = Duration::from_secs(10);
    if error.use_stderr() && launch::has_others() {
        let text = sentence(error);
        let (own, of) = (text.clone(), caller.clone());
        std::thread::spawn(move || {
            std::thread::sleep(PATIENCE);
            end_all(&of, &own);
        });
        let mut world = World::join().unwrap_or_else(|_| end_all(caller, &text));
        let agreed = world.agree::<()>(Err(ErrorKind::Usage(text.clone()).into()));
        let agreed = agreed.map_or_else(|error| error.to_string(), |()| String::new());
        if world.rank() == 0 {
            // Its own arguments are wrong, as all are: the whole of what there is to say.
            if agreed == text {
                terminal::show(error);
            } else {
                caller.say("error", &agreed);
            }
        }
        drop(world);
        std::process::exit(error.exit_code());
    }
    if is_silent() {
        std::process::exit(error.exit_code());
    }
    terminal::show(error);
    std::process::exit(error.exit_code())
}

/// Whether this process has nothing to say: another one of the launch speaks for all.
fn is_silent() -> bool {
    launch::rank().is_some_and(|rank| rank > 0)
}

/// Runs the command with these arguments, its name not among them, and returns its exit code. Wrong
/// arguments end the process.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = arguments.into_iter().collect();
    let shown = words.iter().map(|word| word.to_string_lossy().into_owned());
    let mut caller = Caller::default();
    caller.command = quoted(shown).into();
    caller.terminal = Some(Arc::new(Terminal));
    let asked = parser::parse(words).unwrap_or_else(|error| exit(&error, &caller));
    let engine = match &asked {
        Asked::Command(ask) => ask.engine(),
        Asked::Completions(_) => None,
    };
    if is_silent() && engine != Some(Engine::Mpi) {
        // Of a launch of many processes, only process 0 runs commands that do not use MPI.
        return ExitCode::SUCCESS;
    }
    // Kept until all is printed: then the processes of a launch end together.
    let mut site = Site::new(caller.clone());
    let answer = match &asked {
        Asked::Command(ask) => site
            .join(engine, ask.name)
            .and_then(|()| ask.perform(&mut site)),
        Asked::Completions(form) => {
            completions::completions(*form, parser::parser()).map(Answer::from)
        }
    };
    print(
        &answer.unwrap_or_else(|error| Answer::failed(&error)),
        &caller,
    )
}

/// Prints an answer, an error as `error: ...` on standard error, and returns the exit code.
///
/// A closed pipe (`| head`) is not an error: its reader has read what it needed.
fn print(answer: &Answer, caller: &Caller) -> ExitCode {
    let written = if caller.is_silent() {
        Ok(())
    } else {
        io::stdout()
            .lock()
            .write_all(answer.output.as_bytes())
            .and_then(|()| io::stdout().flush())
    };
    if let Err(error) = &written
        && error.kind() == IoError::BrokenPipe
    {
        return ExitCode::SUCCESS;
    }
    if let Some(remark) = &answer.remark {
        caller.note(remark);
    }
    if let Some(error) = &answer.error {
        caller.say("error", error);
    }
    match written.context("cannot write the output") {
        Err(error) if answer.error.is_none() => {
            caller.say("error", &format!("{error:#}"));
            ExitCode::from(2)
        }
        _ => ExitCode::from(answer.exit_code),
    }
}
