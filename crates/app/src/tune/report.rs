//! Result of a sweep on standard output, as text or JSON.

use oneport_measure::tune::{LibraryRow, Trial, TuningResult};

use super::job::{CoreUse, TuneJob};
use crate::prelude::*;

impl TuneJob<'_> {
    /// The result as JSON fields; `resumed` rows are those of the CSV file.
    pub(super) fn json<'a>(
        &'a self,
        threads: &'a CoreUse,
        tuning: &'a TuningResult,
        warnings: &'a [String],
        resumed: usize,
    ) -> impl Answered {
        let request = &self.sweep.request;
        record! {
            collective: self.args.collective.name(),
            ranks: request.ranks(),
            root: request.get_root(),
            ports: request.get_ports().name(),
            ported: request.get_ports().k(),
            dtype: self.dtype.name(),
            op: self.args.collective.reduces().then_some(self.op.name()),
            clock: clock_name(self.args.clock),
            inputs: self.args.inputs.inputs.name(),
            machine: &self.place.machine,
            /// 0 where all rows are from a file.
            cores: threads.cores,
            pinned: threads.pinned,
            oversubscribed: threads.oversubscribed,
            date: &self.date,
            command: &*self.caller.command,
            budget_s: self.sweep.budget.as_secs_f64(),
            elapsed_s: tuning.elapsed.as_secs_f64(),
            resumed: resumed,
            interrupted: tuning.interrupted,
            budget_spent: tuning.budget_spent,
            mpi (optional): tuning.processes.as_ref(),
            /// The tree in which the best of all sizes add.
            tree (optional): tuning.tree.as_ref(),
            rows: &tuning.rows,
            /// The library's own function at each size.
            library (optional): (!tuning.library.is_empty()).then(|| {
                tuning.library.iter().map(|LibraryRow { trial, for_rules, error }| record! {
                    bytes: trial.bytes,
                    function: &trial.algorithm,
                    #[serde(flatten)]
                    wall: trial.wall,
                    /// Its time in the state that a file of rules needs, where that differs.
                    for_rules (optional): for_rules.as_ref().map(|trial| trial.wall),
                    error (optional): error.as_ref(),
                }).collect::<Vec<_>>()
            }),
            skipped: &self.skipped,
            warnings: warnings,
        }
    }
}

pub(super) fn print(
    out: &mut Lines,
    job: &TuneJob,
    threads: &CoreUse,
    tuning: &TuningResult,
) -> Result<()> {
    let mut summary = vec![("tuned", job.args.collective.name().to_string())];
    summary.extend(job.summary(threads));
    summary.push((
        "measured",
        format!(
            "{} combinations in {}",
            tuning.rows.len(),
            show_ns(tuning.elapsed.as_secs_f64() * 1e9)
        ),
    ));
    summary.extend(tuning.tree.iter().map(|tree| ("tree", tree.clone())));
    output::summary(out, &summary)?;
    writeln!(out)?;
    let rows = tuning.leaders();
    output::table(out, &columns(job, tuning, &rows), rows)?;
    output::skipped(out, &job.skipped)?;
    print_winners(out, job, tuning)
}

/// The columns of the table of leaders.
pub(super) fn columns<'a>(
    job: &'a TuneJob,
    tuning: &'a TuningResult,
    rows: &[&Trial],
) -> Columns<'a, Trial> {
    let ns = |t: u64| show_ns(t as f64);
    let best_of = |bytes| tuning.winners().find(move |best| best.bytes == bytes);
    let is_algorithm = |row: &Trial| !row.is_of_library();
    let x_model = |row: &Trial| row.wall.median as f64 / row.model_time;
    let words = move |row: &Trial| {
        let library = tuning.library_at(row.bytes).filter(|_| !is_algorithm(row));
        match (library, best_of(row.bytes)) {
            (None, _) => verdict(job, row, tuning),
            (Some(own), _) if own.error.is_some() => "WRONG".into(),
            (_, Some(best)) => {
                format!("x {} of the best algorithm", row.over(best))
            }
            (_, None) => String::new(),
        }
    };
    let has_p99 = rows.iter().any(|row| row.wall.shown_p99().is_some());
    Columns::<Trial>::default()
        .add(">size", |row| show_bytes(row.bytes))
        .add("algorithm", |row| row.algorithm.clone())
        .add(">segment", move |row| {
            or_dash(is_algorithm(row).then(|| show_bytes(row.segment)))
        })
        .add(">segments", move |row| {
            or_dash(is_algorithm(row).then_some(row.segments))
        })
        .add(">median", move |row| ns(row.wall.median))
        .add_if(has_p99, ">p99", move |row| {
            or_dash(row.wall.shown_p99().map(ns))
        })
        .add(">repetitions", |row| row.wall.repetitions)
        .add(">model", move |row| {
            or_dash(is_algorithm(row).then(|| show_ns(row.model_time)))
        })
        .add(">x model", move |row| {
            or_dash(
                Some(x_model(row))
                    .filter(|x| x.is_finite())
                    .map(|x| number(x, 4)),
            )
        })
        .add("", words)
}

fn print_winners(out: &mut Lines, job: &TuneJob, tuning: &TuningResult) -> Result<()> {
    writeln!(out, "\nthe best of each size")?;
    let columns = Columns::<Trial>::default()
        .add(">size", |row| show_bytes(row.bytes))
        .add("algorithm", |row| row.algorithm.clone())
        .add(">segment", |row| show_bytes(row.segment))
        .add(">median", |row| show_ns(row.wall.median as f64))
        .add(">interval", |row| {
            let [low, high] = [row.wall.low, row.wall.high].map(|ns| show_ns(ns as f64));
            format!("{low} - {high}")
        })
        .add("next", |row| or_dash(tuning.next(row)))
        .add_if(!tuning.library.is_empty(), ">library / best", |row| {
            or_dash(tuning.library_over(row))
        })
        .add("", |row| verdict(job, row, tuning));
    output::table(out, &columns, tuning.winners())
}

/// What is said of a row. What makes a winner doubtful here does so in files of rules, too: see
/// [`TuneJob::doubts`].
fn verdict(job: &TuneJob, row: &Trial, tuning: &TuningResult) -> String {
    let library = tuning.library_at(row.bytes).filter(|_| row.best);
    let is_slower = library.is_some_and(|own| own.trial.beats(row, job.sweep.tolerance));
    let state = match (row.best, row.settled) {
        (true, true) if is_slower => "",
        (true, true) => "best",
        (true, false) => "best so far, not settled",
        (false, true) => "",
        (false, false) => "not settled",
    };
    let library = if is_slower { "library faster" } else { "" };
    let words = [state, library, tuning.disturbance(row)]
        .into_iter()
        .filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(", ")
}
