//! Result of a sweep on standard output, as text or JSON.

use std::io::Write;

use anyhow::Result;
use oneport_measure::tune::{LibraryRow, Trial, TuningResult};
use serde::Serialize;

use super::job::{CoreUse, TuneJob};
use crate::args::clock_name;
use crate::output::{self, record};
use crate::units::{number, or_dash, show_bytes, show_ns};

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
    let leaders = tuning.rows.iter().filter(|row| row.best_segment);
    let ns = |t: u64| show_ns(t as f64);
    let cells = |row: &Trial, verdict: String| {
        let algorithm = !row.model_time.is_nan();
        let ratio = row.wall.median as f64 / row.model_time;
        [
            show_bytes(row.bytes),
            row.algorithm.clone(),
            or_dash(algorithm.then(|| show_bytes(row.segment))),
            or_dash(algorithm.then_some(row.segments)),
            ns(row.wall.median),
            ns(row.wall.p99),
            row.wall.repetitions.to_string(),
            or_dash(algorithm.then(|| show_ns(row.model_time))),
            or_dash(ratio.is_finite().then(|| number(ratio, 4))),
            verdict,
        ]
    };
    let of_library = |LibraryRow { trial, error }: &LibraryRow| {
        let best = tuning.winners().find(|best| best.bytes == trial.bytes);
        let ratio = best.map(|best| trial.wall.median as f64 / best.wall.median.max(1) as f64);
        let verdict = match (error, ratio) {
            (Some(_), _) => "WRONG".into(),
            (None, Some(ratio)) => format!("x {} of the best", number(ratio, 3)),
            (None, None) => String::new(),
        };
        (trial.bytes, cells(trial, verdict))
    };
    // By size, the library last.
    let leaders = leaders.map(|row| (row.bytes, cells(row, verdict(row, &disturbed))));
    let library = tuning.library.iter().map(of_library);
    let mut rows: Vec<_> = leaders.chain(library).collect();
    rows.sort_by_key(|&(bytes, _)| bytes);
    let rows = rows.into_iter().map(|(_, cells)| cells);
    let header = ">size|algorithm|>segment|>segments|>median|>p99|>repetitions|>model|>x model|";
    output::table(out, header, rows)?;
    output::skipped(out, &job.skipped)?;
    writeln!(out)?;
    writeln!(out, "the best of each size")?;
    let has_library = !tuning.library.is_empty();
    let winners = tuning.winners().map(|row| {
        let others = tuning.rows.iter().filter(|other| {
            other.bytes == row.bytes && other.best_segment && other.algorithm != row.algorithm
        });
        let next = others.min_by_key(|other| other.wall.median);
        let ratio = |time: u64| number(time as f64 / row.wall.median.max(1) as f64, 3);
        let mut cells = vec![
            show_bytes(row.bytes),
            row.algorithm.clone(),
            show_bytes(row.segment),
            ns(row.wall.median),
            format!("{} - {}", ns(row.wall.low), ns(row.wall.high)),
            or_dash(next.map(|next| format!("{} x {}", next.algorithm, ratio(next.wall.median)))),
        ];
        if has_library {
            let mut library = tuning.library.iter().map(|of| &of.trial);
            let library = library.find(|of| of.bytes == row.bytes);
            cells.push(or_dash(
                library.map(|of| format!("x {}", ratio(of.wall.median))),
            ));
        }
        cells.push(verdict(row, &disturbed));
        cells
    });
    let library = if has_library { "|library" } else { "" };
    let header = format!(">size|algorithm|>segment|>median|>interval|next{library}|");
    output::table(out, &header, winners)
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
