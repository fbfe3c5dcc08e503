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
    ) -> impl Serialize {
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
            inputs: self.args.inputs.inputs,
            machine: &self.machine,
            cores: threads.cores,
            pinned: threads.pinned,
            oversubscribed: threads.oversubscribed,
            date: &self.date,
            command: &self.command,
            budget_s: self.sweep.budget.as_secs_f64(),
            elapsed_s: tuning.elapsed.as_secs_f64(),
            resumed: resumed,
            interrupted: tuning.interrupted,
            budget_spent: tuning.budget_spent,
            mpi (optional): tuning.processes.as_ref(),
            rows: &tuning.rows,
            // The library's own function at each size.
            library (optional): (!tuning.library.is_empty()).then(|| {
                tuning.library.iter().map(|LibraryRow { trial, error }| record! {
                    bytes: trial.bytes,
                    function: &trial.algorithm,
                    #[serde(flatten)]
                    wall: trial.wall,
                    error (optional): error.as_ref(),
                }).collect::<Vec<_>>()
            }),
            skipped: &self.skipped,
            warnings: warnings,
        }
    }
}

pub(super) fn print(
    out: &mut dyn Write,
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
    output::summary(out, &summary)?;
    writeln!(out)?;
    let disturbed: Vec<&Trial> = tuning.disturbed().collect();
    let ns = |t: u64| show_ns(t as f64);
    let best_of = |bytes| tuning.winners().find(move |best| best.bytes == bytes);
    let over_best =
        |time: u64, best: &Trial| number(time as f64 / best.wall.median.max(1) as f64, 3);
    // The library's rows have no model time.
    let is_algorithm = |row: &Trial| !row.model_time.is_nan();
    let x_model = |row: &Trial| row.wall.median as f64 / row.model_time;
    let words = |row: &Trial| {
        let mut library = tuning.library.iter();
        let library = library.find(|own| std::ptr::eq(&own.trial, row));
        match (library, best_of(row.bytes)) {
            (None, _) => verdict(row, &disturbed),
            (Some(own), _) if own.error.is_some() => "WRONG".into(),
            (_, Some(best)) => format!("x {} of the best", over_best(row.wall.median, best)),
            (_, None) => String::new(),
        }
    };
    let columns = Columns::<Trial>::default()
        .add(">size", |row| show_bytes(row.bytes))
        .add("algorithm", |row| row.algorithm.clone())
        .add(">segment", |row| {
            or_dash(is_algorithm(row).then(|| show_bytes(row.segment)))
        })
        .add(">segments", |row| {
            or_dash(is_algorithm(row).then_some(row.segments))
        })
        .add(">median", |row| ns(row.wall.median))
        .add(">p99", |row| or_dash(row.wall.shown_p99().map(ns)))
        .add(">repetitions", |row| row.wall.repetitions)
        .add(">model", |row| {
            or_dash(is_algorithm(row).then(|| show_ns(row.model_time)))
        })
        .add(">x model", |row| {
            or_dash(
                Some(x_model(row))
                    .filter(|x| x.is_finite())
                    .map(|x| number(x, 4)),
            )
        })
        .add("", words);
    // By size, the library last.
    let leaders = tuning.rows.iter().filter(|row| row.best_segment);
    let library = tuning.library.iter().map(|own| &own.trial);
    let mut rows: Vec<&Trial> = leaders.chain(library.clone()).collect();
    rows.sort_by_key(|row| row.bytes);
    output::table(out, &columns, rows)?;
    output::skipped(out, &job.skipped)?;
    writeln!(out, "\nthe best of each size")?;
    let next = |row: &Trial| {
        let others = tuning.rows.iter().filter(|other| {
            other.bytes == row.bytes && other.best_segment && other.algorithm != row.algorithm
        });
        let next = others.min_by_key(|other| other.wall.median)?;
        Some(format!(
            "{} x {}",
            next.algorithm,
            over_best(next.wall.median, row)
        ))
    };
    let of_library = |row: &Trial| {
        let own = library.clone().find(|own| own.bytes == row.bytes)?;
        Some(format!("x {}", over_best(own.wall.median, row)))
    };
    let columns = Columns::<Trial>::default()
        .add(">size", |row| show_bytes(row.bytes))
        .add("algorithm", |row| row.algorithm.clone())
        .add(">segment", |row| show_bytes(row.segment))
        .add(">median", |row| ns(row.wall.median))
        .add(">interval", |row| {
            format!("{} - {}", ns(row.wall.low), ns(row.wall.high))
        })
        .add("next", |row| or_dash(next(row)))
        .add_if(!tuning.library.is_empty(), "library", |row| {
            or_dash(of_library(row))
        })
        .add("", |row| verdict(row, &disturbed));
    output::table(out, &columns, tuning.winners())
}

fn verdict(row: &Trial, disturbed: &[&Trial]) -> String {
    let state = match (row.best, row.settled) {
        (true, true) => "best",
        (true, false) => "best so far, not settled",
        (false, true) => "",
        (false, false) => "not settled",
    };
    let disturbed = disturbed.contains(&row).then_some("disturbed");
    let words = [Some(state).filter(|state| !state.is_empty()), disturbed];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
