//! `oneport check`: proves schedules.

mod certificate;
mod judged;

use std::borrow::Cow;

use oneport::check::Finding;

use crate::bits::ShownBits;
use crate::forms::AlgorithmNames;
use crate::prelude::*;

options! {
    /// Prove that a schedule is right, or say what is wrong with it, or wasteful.
    #[derive(Debug)]
    #[examples = "\
Examples:
  oneport check reduce -p 100 --algorithm binomial
  oneport check broadcast -p 24 --algorithm all
  oneport check reduce -p 9 --algorithm chain --op affine --dtype u64
  oneport plan reduce -p 4 -a chain --segments 2 -o mine.json
  oneport check mine.json --ports uni
  oneport check mine.json r.json                 several files: a table; a folder: its .json files
  oneport check answers --like task.json -o grades.csv                  an exercise
  oneport check mine.json r.json -o corpus.html                          a page with a row for each
  oneport steady --generate fig3 --certificate proof.json
  oneport check --certificate proof.json         that no series of operations is faster

Every send must meet its receive, nothing may wait for itself, no port may carry two transfers at once, and in the end \
every element must be where the collective wants it: for reductions each contribution exactly once, and in rank order if \
the operator does not commute (--op affine, or --ordered). This is proved with symbols, whatever the data will be. Of sums and products of floats, 'bits' says whether all ranks \
and all places of the vector combine in one order, and with it get the same number to the last bit. \
A schedule from a file that is right is then judged: notes name steps that bring what their rank holds already or what \
nothing uses, and partial results that are combined twice; its time, rounds, messages and volume stand beside those of \
the fastest algorithm and the lower bounds. Notes are no errors. Options under Planning, Segments and Blocks choose \
what is planned: with --schedule they are refused. Exit code 1 means that something is wrong."]
    pub(crate) struct CheckArgs {
        common: Common = Group,

        /// Check the certificate that `oneport steady` has written to this file instead, by sums
        /// and comparisons alone; nothing else is asked then
        certificate: Option<Source> = File { conflicts: &["like", "output"] },

        /// Demand that the files do the task of this one: its collective, root, ranks, ports and
        /// sizes; what its programs do does not matter. What differs is an error of the file
        like: Option<Source> = File { requires: &["schedule"] },

        /// Write a row for each file to FILE.csv, too, or a page with them, FILE.html, with what is
        /// needed at least, the bits, why a file fails, and players that step through them
        output: Option<PathBuf> = Output {
            shorts: &['o'], requires: &["schedule"], heading: Some("Output"),
        },

        /// Report at most this many errors in full
        max_errors: usize = Count {
            default: Some("20"), hidden_aliases: &["most-errors"], heading: Some("Output"),
        },
    }
}

#[derive(JsonSchema, Serialize)]
struct CheckRow {
    algorithm: Cow<'static, str>,
    ok: bool,
    keeps_order: bool,
    ranks: usize,
    root: Option<usize>,
    segments: Option<usize>,
    steps: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    bits: Option<ShownBits>,
}

impl Command for CheckArgs {
    fn json_forms() -> JsonForms {
        let all = |found: &'static AllFound| found.json(Kind::Reduce);
        judged::json_forms().of(all).of(certificate::json)
    }

    fn answer(&self, site: &mut Site) -> Result<Answer> {
        let (common, caller) = (&self.common, &site.caller);
        if let Some(file) = &self.certificate {
            return certificate::check(common, file, caller);
        }
        match (common.collective, &common.files()?[..]) {
            (Some(kind), []) if checks_all(&common.algorithm) => {
                all(self, &PlanTask::new(common, kind, caller)?)
            }
            (_, [_, _, ..]) => judged::several(self, caller),
            (_, [_]) if common.points().len() > 1 => judged::several(self, caller),
            _ => judged::one(self, caller),
        }
    }
}

fn checks_all(names: &AlgorithmNames) -> bool {
    *names != AlgorithmNames::Auto && names.are_several()
}

fn verdict(answer: Answer, ok: bool, errors: usize) -> Answer {
    if ok {
        return answer;
    }
    let errors = counted(errors, "error");
    answer.but_wrong(format!("the check failed with {errors}"))
}

fn table(out: &mut Lines, rows: &[CheckRow]) -> Result<()> {
    let columns = Columns::<CheckRow>::default()
        .add("algorithm", |row| row.algorithm.clone())
        .add("result", |row| if row.ok { "correct" } else { "WRONG" })
        .add(
            "operand order",
            |row| if row.keeps_order { "kept" } else { "-" },
        )
        .add(">segments", |row| or_dash(row.segments))
        .add(">steps", |row| row.steps)
        .add_if(rows.iter().any(|row| row.bits.is_some()), "bits", |row| {
            or_dash(row.bits.as_ref().map(ShownBits::wide_cell))
        });
    output::table(out, &columns, rows)
}

/// What has become of all algorithms of a collective.
#[derive(Default)]
struct AllFound {
    rows: Vec<CheckRow>,
    /// Each with the name of its algorithm.
    errors: Vec<(Cow<'static, str>, Finding)>,
    /// Number of errors that are not among these.
    more: usize,
    skipped: Vec<Skipped>,
}

impl AllFound {
    fn is_correct(&self) -> bool {
        self.rows.iter().all(|row| row.ok)
    }

    fn json(&self, kind: Kind) -> impl Answered {
        record! {
            /// Whether all are correct.
            ok: self.is_correct(),
            errors: self.errors.iter().map(|(algorithm, finding)| record! {
                algorithm: algorithm,
                #[serde(flatten)]
                finding: finding,
            }).collect::<Vec<_>>(),
            /// Number of errors that are not in `errors`.
            more: self.more,
            collective: kind.name(),
            algorithms: &self.rows,
            skipped: &self.skipped,
        }
    }

    fn print(&self, out: &mut Lines) -> Result<()> {
        table(out, &self.rows)?;
        for (algorithm, finding) in &self.errors {
            writeln!(out, "\n{algorithm}: {finding}")?;
        }
        if self.more > 0 {
            writeln!(out, "\nand {} more", self.more)?;
        }
        output::skipped(out, &self.skipped)
    }
}

fn all(args: &CheckArgs, task: &PlanTask) -> Result<Answer> {
    let mut found = AllFound::default();
    let bar = WorkBar::new(
        &task.caller,
        task.algorithms.len() as u64,
        "checking {msg} {wide_bar} {pos}/{len}",
    );
    for algorithm in &task.algorithms {
        bar.name(&algorithm.name());
        let input = task
            .variant_to_plan(algorithm)
            .and_then(|variant| Input::planned_by(task, variant));
        match input {
            Ok(input) => {
                let report = input.check(&args.common, args.max_errors);
                found.rows.push(CheckRow {
                    algorithm: algorithm.name(),
                    ok: report.is_correct(),
                    keeps_order: report.keeps_order,
                    ranks: input.schedule.ranks(),
                    root: input.info.root,
                    segments: input.info.segments,
                    steps: input.schedule.steps(),
                    bits: ShownBits::of(&report, &args.common.vector, input.schedule.ranks()),
                });
                found.more += report.more;
                let errors = report.errors.into_iter();
                let errors = errors.map(|finding| (algorithm.name(), finding));
                found.errors.extend(errors);
            }
            Err(refusal) => found.skipped.push(refusal.into()),
        }
        bar.add(1);
    }
    bar.finish();
    if found.rows.is_empty() {
        return Err(output::none_applies(&found.skipped));
    }
    let json = found.json(task.algorithms[0].collective);
    let answer = answer(&task.caller, args.common.json, &json, |out| {
        found.print(out)
    })?;
    let errors = found.errors.len() + found.more;
    Ok(verdict(answer, found.is_correct(), errors))
}
