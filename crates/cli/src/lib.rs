//! The command line: parses arguments, runs one subcommand and returns its exit code.
//!
//! [`main`] is the command as a process. [`Call`] is the same command as a function, for programs
//! that have their schedules and costs in memory.

#![forbid(unsafe_code)]

mod args;
mod atlas;
mod blocks;
mod calibrate;
mod call;
mod check;
mod compare;
mod completions;
mod delays;
mod draw;
mod export;
mod files;
mod guidelines;
mod host;
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
mod prelude;
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

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
pub use call::{Answer, Call};
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use site::{Engine, Site};
pub use stored::{Progress, StoredSchedule};
use units::edits;

/// Plan, prove, time and run collective communication under the one-port model.
///
/// A collective (a broadcast, a reduction, ...) is performed by a schedule: for every rank a list
/// of sends, receives and local steps. A port carries one transfer at a time. oneport plans such
/// schedules, or reads yours, proves them right, times them exactly in a cost model, and runs them
/// on real threads with real bytes.
#[derive(Debug, Parser)]
#[command(name = "oneport", version = output::VERSION, after_help = EXAMPLES, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
The flow, with a reduction over 8 ranks:
  oneport list                                              what there is
  oneport plan reduce -p 8 -a chain --segments 4 -o r.json  plan a schedule, or write one by hand
  oneport check --schedule r.json                           prove it right
  oneport simulate --schedule r.json                        time it in the cost model
  oneport run --schedule r.json                             run it on threads, with real data
  oneport compare reduce -p 8 --bytes 1MiB                  compare all algorithms
  oneport draw --schedule r.json -o r.svg                   draw what every rank does when
  oneport tune reduce -p 2 --bytes 64KiB --budget 2s        measure which segments are best
  oneport export goal --schedule r.json -o r.goal           write it for another tool
  oneport steady --generate fig3 --run                      a series of broadcasts on uneven links
  oneport synthesize allgather -p 9 --ports uni             the fewest rounds, proved

A transfer of n bytes takes alpha + beta*n, combining n bytes takes gamma*n. Every command explains itself with \
--help and prints one JSON object with --json. Exit code: 0 success, 1 a check failed or data is wrong, 2 bad usage or \
unreadable input.";

#[derive(Debug, Subcommand)]
enum Command {
    List(list::ListArgs),
    Plan(plan::PlanArgs),
    Check(check::CheckArgs),
    Simulate(simulate::SimulateArgs),
    Run(run::RunArgs),
    Compare(compare::CompareArgs),
    Draw(draw::DrawArgs),
    Atlas(atlas::AtlasArgs),
    Calibrate(calibrate::CalibrateArgs),
    Tune(tune::TuneArgs),
    Guidelines(guidelines::GuidelinesArgs),
    Export(export::ExportArgs),
    Import(import::ImportArgs),
    Schema(schema::SchemaArgs),
    Steady(steady::SteadyArgs),
    Synthesize(synthesize::SynthesizeArgs),
    #[command(hide = true)]
    Completions(completions::CompletionsArgs),
}

impl Command {
    /// Where ranks run, of commands that run any.
    fn engine(&self) -> Option<Engine> {
        let given = match self {
            Command::Run(args) => return Some(args.engine()),
            Command::Compare(args) => return args.engine(),
            Command::Calibrate(args) => args.engine,
            Command::Tune(args) => args.engine,
            Command::Guidelines(args) => args.engine,
            _ => return None,
        };
        Some(Engine::given_or_implied(given))
    }

    /// Runs the subcommand.
    fn perform(&self, site: &mut Site, out: &mut dyn Write) -> Result<ExitCode> {
        match self {
            Command::List(args) => list::run(args, out)?,
            Command::Plan(args) => plan::run(args, out)?,
            Command::Check(args) => check::run(args, out)?,
            Command::Simulate(args) => return simulate::run(args, out),
            Command::Run(args) => return run::run(args, site, out),
            Command::Compare(args) => return compare::run(args, site, out),
            Command::Draw(args) => draw::run(args, out)?,
            Command::Atlas(args) => atlas::run(args)?,
            Command::Calibrate(args) => calibrate::run(args, site, out)?,
            Command::Tune(args) => return tune::run(args, site, out),
            Command::Guidelines(args) => return guidelines::run(args, site, out),
            Command::Export(args) => export::run(args, out)?,
            Command::Import(args) => import::run(args, out)?,
            Command::Schema(args) => schema::run(args, out)?,
            Command::Steady(args) => return steady::run(args, out),
            Command::Synthesize(args) => return synthesize::run(args, out),
            Command::Completions(args) => completions::run(args, parser(), out)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Groups of options that `--help` shows and `-h` does not, so that it fits a screen. Nor does `-h`
/// explain more than the examples.
const LONG_HELP: [&str; 3] = ["Vector", "Blocks of unequal size", "Machine"];

/// The option with the first clause of its help in `-h`, if all of it is longer than a line.
fn brief(option: clap::Arg) -> clap::Arg {
    const MAX_LINE: usize = 60;
    /// Less, such as "Over MPI: ...", says nothing.
    const MIN_CLAUSE: usize = 24;
    let help = option.get_help().map(ToString::to_string);
    let help = help.unwrap_or_default();
    let (text, default) = help.split_at(help.rfind(" [default: ").unwrap_or(help.len()));
    let ends = [". ", "; ", ": "].iter().filter_map(|end| text.find(end));
    match ends.filter(|&end| end >= MIN_CLAUSE).min() {
        Some(end) if help.len() > MAX_LINE && !option.is_positional() => {
            let long = option
                .get_long_help()
                .map_or(help.clone(), ToString::to_string);
            let short = format!("{}{default}", &text[..end]);
            option.help(short).long_help(long)
        }
        _ => option,
    }
}

/// The parser of the command line. Values may begin like negative numbers: their parsers know
/// better what is wrong with them.
fn parser() -> clap::Command {
    fn adapted(command: clap::Command) -> clap::Command {
        let is_long = |arg: &clap::Arg| {
            arg.get_help_heading()
                .is_some_and(|h| LONG_HELP.contains(&h))
        };
        let mut command = command.mut_args(|arg| match is_long(&arg) {
            true => arg.hide_short_help(true),
            false => brief(arg),
        });
        let after = command.get_after_help().map(ToString::to_string);
        let after = after.unwrap_or_default();
        if let Some((examples, _)) = after.split_once("\n\n") {
            let examples = examples.to_string();
            command = command.after_help(examples).after_long_help(after);
        }
        command
            .allow_negative_numbers(true)
            .mut_subcommands(adapted)
    }
    adapted(Cli::command())
}

fn parse(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    let mut parser = parser();
    let name = OsString::from("oneport");
    let matches = parser.try_get_matches_from_mut([name].into_iter().chain(arguments));
    let matches = matches.map_err(|error| with_similar_names(error, &parser))?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut parser))
}

/// Suggests only what is similar to what was typed: `--restart` for `--reps` would delete a sweep.
fn with_similar_names(mut error: clap::Error, parser: &clap::Command) -> clap::Error {
    if let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) {
        let names = parser.get_subcommands().map(clap::Command::get_name);
        let similar = names.filter_map(|name| Some((edits(typed, name)?, name)));
        let nearest = similar.min().map(|(_, name)| name.to_owned());
        error.remove(ContextKind::SuggestedSubcommand);
        error.remove(ContextKind::Suggested);
        if let Some(name) = nearest {
            let name = ContextValue::String(name);
            error.insert(ContextKind::SuggestedSubcommand, name);
        }
    }
    if let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidValue)
        && let Some(ContextValue::Strings(names)) = error.get(ContextKind::ValidValue)
        && let Some(name) = args::element_type_like(typed)
        && names.iter().any(|valid| valid == name)
    {
        let name = ContextValue::String(name.to_owned());
        error.insert(ContextKind::SuggestedValue, name);
    }
    if let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand)
        && tune::is_library(typed)
    {
        let tip = format!(
            "rules for MPI libraries come from measurements: oneport tune COLLECTIVE --export \
             {typed}=FILE"
        );
        error.remove(ContextKind::SuggestedSubcommand);
        let tip = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tip);
    }
    if let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg)
        && let Some(ContextValue::String(name)) = error.get(ContextKind::SuggestedArg)
        && edits(typed, name).is_none()
    {
        error.remove(ContextKind::SuggestedArg);
        // It names the suggestion, too.
        error.remove(ContextKind::Usage);
    }
    error
}

/// Runs the command with these arguments, its name not among them, and returns its exit code. Wrong
/// arguments end the process.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    host::begin(arguments.into_iter().collect(), None);
    let cli = parse(host::arguments()).unwrap_or_else(|error| site::exit(&error));
    let engine = cli.command.engine();
    if site::is_silent() && engine != Some(Engine::Mpi) {
        // Of a launch of many processes, only process 0 runs commands that do not use MPI.
        return ExitCode::SUCCESS;
    }
    // Kept until all is printed: then the processes of a launch end together.
    let mut site = Site::default();
    output::finish(|out| {
        site.join(engine)?;
        cli.command.perform(&mut site, out)
    })
}
