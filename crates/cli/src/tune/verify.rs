//! `tune --verify`: whether an MPI library does something else than in an earlier sweep, such as
//! what an exported file says.

use std::cmp::Ordering;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use oneport::run::{Element, Operator};
use oneport_measure::tune::{self, Live, Summary, Trial, VerifiedRow, csv};
use serde::Serialize;

use super::TuneArgs;
use super::files::parameters;
use super::job::TuneJob;
use crate::files::read_text;
use crate::output;
use crate::progress::WorkBar;
use crate::site::{self, Site};
use crate::units::{show_bytes, show_ns, significant};

/// Beginnings of the names of variables that choose algorithms in MPI libraries.
const CHOOSING: [&str; 5] = [
    "OMPI_MCA_coll_",
    "MPIR_CVAR_COLL_",
    "MPIR_CVAR_DEVICE_COLLECTIVES",
    "I_MPI_ADJUST_",
    "I_MPI_TUNING_BIN",
];

/// The library's functions, to be measured again.
pub(super) struct VerifyJob {
    job: TuneJob,
    /// The rows of the earlier sweep.
    rows: Vec<Trial>,
}

/// What has come of it.
pub(super) struct Verified {
    job: TuneJob,
    rows: Vec<VerifiedRow>,
}

#[derive(Serialize)]
struct Output<'a> {
    collective: &'static str,
    ranks: usize,
    /// Variables that choose algorithms, with their values.
    environment: Vec<String>,
    rows: Vec<OutputRow<'a>>,
}

#[derive(Serialize)]
struct OutputRow<'a> {
    bytes: u64,
    algorithm: &'a str,
    segment: u64,
    function: &'a str,
    /// In nanoseconds, of the earlier sweep and now.
    library_then: Summary,
    library_now: Summary,
    best_then: Summary,
    best_now: Summary,
    /// The library's median over the best row's.
    ratio_then: f64,
    ratio_now: f64,
    change: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

impl VerifyJob {
    pub(super) fn new(args: &TuneArgs, site: &Site, file: &Path) -> Result<VerifyJob> {
        if site.world.is_none() {
            bail!("--verify measures an MPI library: start it with mpirun or srun");
        }
        let job = TuneJob::new(args, site)?;
        let text = read_text(file)?;
        let of_sweep = || format!("cannot verify by the sweep of {}", file.display());
        csv::resume(&text, &parameters(args, &job)).with_context(of_sweep)?;
        let (_, rows) = csv::read(&text).with_context(of_sweep)?;
        Ok(VerifyJob { job, rows })
    }

    fn verify<T: Element>(self, site: &mut Site) -> Result<Verified> {
        let job = self.job;
        let operator = match job.kind.reduces() {
            true => Operator::<T>::named(job.op.name())?,
            false => Operator::none(),
        };
        let mut live = Live::new(site, operator, job.clock).with_library();
        live.keep_inputs(job.inputs.kept());
        let bar = WorkBar::new(0, "verifying {wide_bar} {percent}%");
        let rows = tune::verify(&job.sweep, &self.rows, &mut live, |done, of| {
            bar.set(done, of)
        });
        bar.finish();
        let rows = rows?;
        Ok(Verified { job, rows })
    }
}

impl site::Job for VerifyJob {
    type Done = Verified;

    fn fact(&self) -> String {
        format!("verifies {} rows", self.rows.len())
    }

    fn perform(self, site: &mut Site) -> Result<Verified> {
        oneport::with_element_type!(self.job.dtype, T => self.verify::<T>(site))
    }
}

impl Verified {
    pub(super) fn print(&self, args: &TuneArgs, out: &mut dyn Write) -> Result<ExitCode> {
        output::notes(self.job.load.iter());
        let mut wrong = None;
        for row in &self.rows {
            if let Some(error) = &row.error {
                let (function, size) = (&row.library.algorithm, show_bytes(row.bytes));
                wrong = Some(format!("wrong result of {function} of {size}: {error}"));
            }
        }
        let output = Output {
            collective: self.job.kind.name(),
            ranks: self.job.sweep.request.ranks(),
            environment: environment(),
            rows: self.rows.iter().map(output_row).collect(),
        };
        output::answer(out, args.json, &output, |out| print(out, &output))?;
        match wrong {
            None => Ok(ExitCode::SUCCESS),
            Some(wrong) => Err(output::wrong(wrong)),
        }
    }
}

/// The variables of this process that choose algorithms in MPI libraries.
fn environment() -> Vec<String> {
    let all = std::env::vars_os().map(|(name, value)| {
        let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
        format!("{name}={value}")
    });
    let mut chosen: Vec<_> = all
        .filter(|entry| CHOOSING.iter().any(|start| entry.starts_with(start)))
        .collect();
    chosen.sort();
    chosen
}

fn output_row(row: &VerifiedRow) -> OutputRow<'_> {
    let [ratio_then, ratio_now] = row.ratios();
    OutputRow {
        bytes: row.bytes,
        algorithm: &row.best.algorithm,
        segment: row.best.segment,
        function: &row.library.algorithm,
        library_then: row.library.wall,
        library_now: row.library_now,
        best_then: row.best.wall,
        best_now: row.best_now,
        ratio_then,
        ratio_now,
        change: match row.change() {
            Ordering::Less => "faster",
            Ordering::Equal => "same",
            Ordering::Greater => "slower",
        },
        error: row.error.as_deref(),
    }
}

fn print(out: &mut dyn Write, output: &Output<'_>) -> Result<()> {
    let function = output.rows.first().map_or("", |row| row.function);
    let environment = match &output.environment[..] {
        [] => "no variable that chooses algorithms".to_string(),
        variables => variables.join(" "),
    };
    output::summary(
        out,
        &[
            ("verified", format!("{function}, {} ranks", output.ranks)),
            ("environment", environment),
            (
                "x best",
                "the library over the best row of the sweep, measured in turns".into(),
            ),
        ],
    )?;
    writeln!(out)?;
    let ns = |wall: Summary| show_ns(wall.median as f64);
    let line = |row: &OutputRow<'_>| {
        [
            show_bytes(row.bytes),
            row.algorithm.to_string(),
            show_bytes(row.segment),
            ns(row.best_then),
            ns(row.best_now),
            ns(row.library_then),
            ns(row.library_now),
            significant(row.ratio_then, 3),
            significant(row.ratio_now, 3),
            row.change.to_string(),
        ]
    };
    let header =
        ">size|best|>segment|>best then|>now|>library then|>now|>x best then|>now|library is";
    output::table(out, header, output.rows.iter().map(line))
}
