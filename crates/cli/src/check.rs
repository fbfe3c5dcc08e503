//! `oneport check`: proves schedules.

mod judged;

use std::borrow::Cow;
use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use oneport::check::Finding;
use serde::Serialize;

use crate::args::Common;
use crate::input::Input;
use crate::output::{self, Skipped};
use crate::progress::WorkBar;
use crate::task::{PlanTask, names_several};
use crate::units::{counted, or_dash, parse_count};

/// Prove that a schedule is right, or say what is wrong with it, or wasteful.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  oneport check reduce -p 100 --algorithm binomial
  oneport check broadcast -p 24 --algorithm all
  oneport check reduce -p 9 --algorithm chain --op affine --dtype u64
  oneport plan reduce -p 4 -a chain --segments 2 -o mine.json
  oneport check --schedule mine.json --ports uni
  oneport check --schedule mine.json r.json      several files: a line each, then a table

Every send must meet its receive, nothing may wait for itself, no port may carry two transfers at once, and in the end \
every element must be where the collective wants it: for reductions each contribution exactly once, and in rank order if \
the operator does not commute (--op affine, or --ordered). This is proved with symbols, whatever the data will be. \
A schedule from a file that is right is then judged: notes name steps that bring what their rank holds already or what \
nothing uses, and partial results that are combined twice; its time, rounds, messages and volume stand beside those of \
the fastest algorithm and the lower bounds. Notes are no errors. Exit code 1 means that something is wrong.")]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    common: Common,

    /// Report at most this many errors in full
    #[arg(
        long,
        alias = "most-errors",
        value_name = "COUNT",
        value_parser = parse_count,
        default_value = "20",
        help_heading = "Output"
    )]
    max_errors: usize,
}

/// JSON output for all algorithms of one collective.
#[derive(Serialize)]
struct All {
    ok: bool,
    errors: Vec<AlgorithmFinding>,
    /// Number of errors that are not in `errors`.
    more: usize,
    collective: &'static str,
    algorithms: Vec<CheckRow>,
    skipped: Vec<Skipped>,
}

#[derive(Serialize)]
struct AlgorithmFinding {
    algorithm: Cow<'static, str>,
    #[serde(flatten)]
    finding: Finding,
}

#[derive(Serialize)]
struct CheckRow {
    algorithm: Cow<'static, str>,
    ok: bool,
    keeps_order: bool,
    ranks: usize,
    root: Option<usize>,
    segments: Option<usize>,
    steps: usize,
}

/// Checks and prints.
pub(crate) fn run(args: &CheckArgs, out: &mut dyn Write) -> Result<ExitCode> {
    match (args.common.collective, &args.common.schedule[..]) {
        (Some(kind), []) if checks_all(&args.common.algorithm) => {
            all(args, &PlanTask::new(&args.common, kind)?, out)
        }
        (_, [_, _, ..]) => judged::several(args, out),
        _ => judged::one(args, out),
    }
}

/// Whether each algorithm is checked, and not only the best one.
fn checks_all(names: &str) -> bool {
    names != "auto" && names_several(names)
}

fn verdict(ok: bool, errors: usize) -> Result<ExitCode> {
    if ok {
        return Ok(ExitCode::SUCCESS);
    }
    let errors = counted(errors, "error");
    Err(output::wrong(format!("the check failed with {errors}")))
}

fn all(args: &CheckArgs, task: &PlanTask, out: &mut dyn Write) -> Result<ExitCode> {
    let (mut rows, mut errors, mut skipped, mut more) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let bar = WorkBar::new(
        task.algorithms.len() as u64,
        "checking {msg} {wide_bar} {pos}/{len}",
    );
    for algorithm in &task.algorithms {
        bar.name(&algorithm.name());
        let input = task
            .request_for(algorithm)
            .and_then(|request| Input::planned_by(task, algorithm, request));
        match input {
            Ok(input) => {
                let report = input.check(&args.common, args.max_errors);
                rows.push(CheckRow {
                    algorithm: algorithm.name(),
                    ok: report.is_correct(),
                    keeps_order: report.keeps_order,
                    ranks: input.schedule.ranks(),
                    root: input.info.root,
                    segments: input.info.segments,
                    steps: input.schedule.steps(),
                });
                more += report.more;
                errors.extend(report.errors.into_iter().map(|finding| AlgorithmFinding {
                    algorithm: algorithm.name(),
                    finding,
                }));
            }
            Err(refusal) => skipped.push(refusal.into()),
        }
        bar.add(1);
    }
    bar.finish();
    if rows.is_empty() {
        return Err(output::none_applies(&skipped));
    }
    let output = All {
        ok: rows.iter().all(|row| row.ok),
        errors,
        more,
        collective: task.algorithms[0].collective.name(),
        algorithms: rows,
        skipped,
    };
    output::answer(out, args.common.json, &output, |out| print(out, &output))?;
    verdict(output.ok, output.errors.len() + output.more)
}

fn print(out: &mut dyn Write, output: &All) -> Result<()> {
    let rows = output.algorithms.iter().map(|row| {
        [
            row.algorithm.to_string(),
            if row.ok { "correct" } else { "WRONG" }.to_string(),
            if row.keeps_order { "kept" } else { "-" }.to_string(),
            or_dash(row.segments),
            row.steps.to_string(),
        ]
    });
    let header = "algorithm|result|operand order|>segments|>steps";
    output::table(out, header, rows)?;
    for error in &output.errors {
        writeln!(out, "\n{}: {}", error.algorithm, error.finding)?;
    }
    if output.more > 0 {
        writeln!(out, "\nand {} more", output.more)?;
    }
    output::skipped(out, &output.skipped)
}
