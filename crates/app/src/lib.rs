//! The command line: parses arguments, runs one subcommand and returns its exit code.
//!
//! [`main`] is the command as a process. [`Call`] is the same command as a function, for programs
//! that have their schedules and costs in memory.

#![forbid(unsafe_code)]

mod args;
mod ask;
mod atlas;
mod bits;
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
mod forms;
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
mod parser;
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
pub use ask::Value;
use ask::{Given, Options, Row};
pub use call::{Answer, Call};
use export::ExportFormat;
use import::ImportFormat;
use site::{Engine, Site};
pub use stored::{Progress, StoredSchedule};

/// A command, with what is asked of it.
#[derive(Debug)]
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
    Export(export::ExportFormat),
    Import(import::ImportFormat),
    Schema(schema::SchemaArgs),
    Steady(steady::SteadyArgs),
    Synthesize(synthesize::SynthesizeArgs),
    Completions(completions::CompletionsArgs),
}

/// A name of a command, with its options.
struct Entry {
    /// A second word is one of a choice, such as a format.
    name: &'static str,
    doc: &'static str,
    examples: &'static str,
    rows: fn() -> Vec<Row>,
    /// What is asked; `None` if something is missing or wrong.
    read: fn(&Given) -> Option<Command>,
}

macro_rules! entries {
    ($($name:literal $args:ty: $command:expr),* $(,)?) => {
        [$(Entry {
            name: $name,
            doc: <$args>::DOC,
            examples: <$args>::EXAMPLES,
            rows: ask::rows::<$args>,
            read: |given| <$args>::read(given).and_then($command),
        }),*]
    };
}

const ENTRIES: [Entry; 23] = entries![
    "list" list::ListArgs: |args| Some(Command::List(args)),
    "plan" plan::PlanArgs: |args| Some(Command::Plan(args)),
    "check" check::CheckArgs: |args| Some(Command::Check(args)),
    "simulate" simulate::SimulateArgs: |args| Some(Command::Simulate(args)),
    "run" run::RunArgs: |args| Some(Command::Run(args)),
    "compare" compare::CompareArgs: |args| Some(Command::Compare(args)),
    "draw" draw::DrawArgs: |args| Some(Command::Draw(args)),
    "atlas" atlas::AtlasArgs: |args| Some(Command::Atlas(args)),
    "calibrate" calibrate::CalibrateArgs: |args| Some(Command::Calibrate(args)),
    "tune" tune::TuneArgs: |args| Some(Command::Tune(args)),
    "guidelines" guidelines::GuidelinesArgs: |args| Some(Command::Guidelines(args)),
    "export" export::ExportArgs: |_| None,
    "export goal" export::Goal: |args| Some(Command::Export(ExportFormat::Goal(args))),
    "export msccl" export::ExportMsccl: |args| Some(Command::Export(ExportFormat::Msccl(args))),
    "export simgrid" export::Simgrid: |args| Some(Command::Export(ExportFormat::Simgrid(args))),
    "export dot" export::Dot: |args| Some(Command::Export(ExportFormat::Dot(args))),
    "import" import::ImportArgs: |_| None,
    "import goal" import::ImportGoal: |args| Some(Command::Import(ImportFormat::Goal(args))),
    "import msccl" import::ImportMsccl: |args| Some(Command::Import(ImportFormat::Msccl(args))),
    "schema" schema::SchemaArgs: |args| Some(Command::Schema(args)),
    "steady" steady::SteadyArgs: |args| Some(Command::Steady(args)),
    "synthesize" synthesize::SynthesizeArgs: |args| Some(Command::Synthesize(args)),
    "completions" completions::CompletionsArgs: |args| Some(Command::Completions(args)),
];

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
            Command::Completions(args) => completions::run(args, parser::parser(), out)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// By command: the JSON Schema of its options by name.
pub fn schemas() -> serde_json::Map<String, serde_json::Value> {
    let schema = |entry: &Entry| ask::schema(entry.doc, &(entry.rows)());
    let schemas = ENTRIES
        .iter()
        .map(|entry| (entry.name.to_string(), schema(entry)));
    schemas.collect()
}

/// Runs the command with these arguments, its name not among them, and returns its exit code. Wrong
/// arguments end the process.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    host::begin(arguments.into_iter().collect(), None);
    let command = parser::parse(host::arguments()).unwrap_or_else(|error| site::exit(&error));
    let engine = command.engine();
    if site::is_silent() && engine != Some(Engine::Mpi) {
        // Of a launch of many processes, only process 0 runs commands that do not use MPI.
        return ExitCode::SUCCESS;
    }
    // Kept until all is printed: then the processes of a launch end together.
    let mut site = Site::default();
    output::finish(|out| {
        site.join(engine)?;
        command.perform(&mut site, out)
    })
}
