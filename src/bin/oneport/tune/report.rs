//! Result of a sweep on standard output, as text or JSON.

use std::io::Write;

use anyhow::Result;
use oneport::measure::tune::{Row, Tuning};
use serde::Serialize;

use super::job::{Job, Threads};
use super::plot;
use crate::output;
use crate::output::Skipped;
use crate::units::{TimeUnit, show_bytes, significant};

#[derive(Serialize)]
pub(super) struct Output<'a> {
    collective: &'static str,
    ranks: usize,
    root: usize,
    ports: &'static str,
    ported: usize,
    dtype: &'static str,
    op: Option<&'static str>,
    clock: &'static str,
    machine: &'a str,
    cores: usize,
    pinned: bool,
    oversubscribed: bool,
    date: &'a str,
    command: &'a str,
    budget_s: f64,
    elapsed_s: f64,
    /// Number of rows taken from the CSV file.
    resumed: usize,
    interrupted: bool,
    budget_spent: bool,
    rows: &'a [Row],
    skipped: &'a [Skipped],
    warnings: &'a [String],
}

impl Job {
    /// The result as JSON fields.
    pub(super) fn output<'a>(
        &'a self,
        threads: &Threads,
        tuning: &'a Tuning,
        warnings: &'a [String],
        resumed: usize,
    ) -> Output<'a> {
        let request = &self.sweep.request;
        Output {
            collective: self.kind.name(),
            ranks: request.ranks(),
            root: request.get_root(),
            ports: request.get_ports().name(),
            ported: request.get_ports().k(),
            dtype: self.dtype.name(),
            op: self.kind.reduces().then_some(self.op.name()),
            clock: self.clock.name(),
            machine: &self.machine,
            cores: threads.cores,
            pinned: threads.pinned,
            oversubscribed: threads.oversubscribed,
            date: &self.date,
            command: &self.command,
            budget_s: self.sweep.budget.as_secs_f64(),
            elapsed_s: tuning.elapsed.as_secs_f64(),
            resumed,
            interrupted: tuning.interrupted,
            budget_spent: tuning.budget_spent,
            rows: &tuning.rows,
            skipped: &self.skipped,
            warnings,
        }
    }
}

/// Prints the result as text.
pub(super) fn print(
    out: &mut dyn Write,
    job: &Job,
    threads: &Threads,
    tuning: &Tuning,
) -> Result<()> {
    let mut summary = vec![("tuned", job.kind.name().to_string())];
    summary.extend(job.summary(threads));
    summary.push((
        "measured",
        format!(
            "{} combinations in {}",
            tuning.rows.len(),
            TimeUnit::Nanoseconds.show(tuning.elapsed.as_secs_f64() * 1e9)
        ),
    ));
    output::summary(out, &summary)?;
    writeln!(out)?;
    let leaders = tuning.rows.iter().filter(|row| row.best_segment);
    let ns = |t: u64| TimeUnit::Nanoseconds.show(t as f64);
    let rows = leaders.map(|row| {
        let ratio = row.wall.median as f64 / row.model_time;
        [
            show_bytes(row.bytes),
            row.algorithm.clone(),
            show_bytes(row.segment),
            row.segments.to_string(),
            ns(row.wall.median),
            ns(row.wall.p99),
            row.wall.repetitions.to_string(),
            TimeUnit::Nanoseconds.show(row.model_time),
            if ratio.is_finite() {
                significant(ratio, 4)
            } else {
                "-".into()
            },
            match (row.best, row.settled) {
                (true, true) => "best",
                (true, false) => "best so far",
                (false, true) => "",
                (false, false) => "not settled",
            }
            .to_string(),
        ]
    });
    let header = [
        "size",
        "algorithm",
        "segment",
        "segments",
        "median",
        "p99",
        "repetitions",
        "model",
        "x model",
        "",
    ];
    output::table(out, &header, rows, &[0, 2, 3, 4, 5, 6, 7, 8])?;
    output::skipped(out, &job.skipped)?;
    writeln!(out)?;
    plot::plot(out, &tuning.rows)
}
