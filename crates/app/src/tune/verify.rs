//! `tune --verify`: whether an MPI library does something else than in an earlier sweep, such as
//! what an exported file says.

use oneport_formats::selection;
use oneport_measure::tune::{self, Change, Summary, Trial, TuningResult, VerifiedRow, csv};

use super::TuneArgs;
use super::files::parameters;
use super::job::TuneJob;
use crate::prelude::*;
use crate::site;

pub(super) struct VerifyJob<'a> {
    job: TuneJob<'a>,
    known: Vec<Trial>,
    rows: Vec<VerifiedRow>,
}

impl<'a> VerifyJob<'a> {
    pub(super) fn new(args: &'a TuneArgs, site: &Site, file: &Source) -> Result<VerifyJob<'a>> {
        if site.world.is_none() {
            bail!("--verify measures an MPI library: start it with mpirun or srun");
        }
        let job = TuneJob::new(args, site)?;
        let text = file.read()?;
        let of_sweep = || format!("cannot verify by the sweep of {}", file.path().display());
        let found = csv::resume(&text, &parameters(&job)).with_context(of_sweep)?;
        if let Some((difference, _)) = found.elsewhere {
            bail!("{}: measured in another place: {difference}", of_sweep());
        }
        let known = found.known;
        job.ensure_exports()?;
        let version = job.place.processes.as_deref().unwrap_or_default();
        let version = version.split(',').next().unwrap_or_default();
        selection::ensure_obeyed(version, args.collective, &environment(), |file| {
            Path::new(file).is_file()
        })?;
        let rows = Vec::new();
        Ok(VerifyJob { job, known, rows })
    }
}

impl<'a> site::Job for VerifyJob<'a> {
    type Done = VerifyJob<'a>;

    fn fact(&self) -> String {
        format!("verifies {} rows", self.known.len())
    }

    fn perform(mut self, site: &mut Site) -> Result<VerifyJob<'a>> {
        let job = &self.job;
        let mut live = job.live(site)?;
        let bar = WorkBar::new(&job.caller, 0, "verifying {wide_bar} {percent}%");
        let mut progress = |done, of| bar.set(done, of);
        let rows = tune::verify(&job.sweep, &self.known, &mut live, &mut progress);
        bar.finish();
        self.rows = rows?;
        Ok(self)
    }
}

impl VerifyJob<'_> {
    pub(super) fn answer(&self) -> Result<Answer> {
        self.job.caller.notes(self.job.load.iter());
        let answer = answer(&self.job.caller, self.job.args.json, &self.json(), |out| {
            self.print_text(out)
        })?;
        let tuning = TuningResult::of_rows(&self.known);
        let exported = self.job.export(&tuning, |bytes| {
            let faster = |row: &&VerifiedRow| row.change() == Change::Faster;
            let mut faster = self.rows.iter().filter(faster);
            faster.any(|row| row.bytes == bytes)
        });
        let answer = answer.and(exported.map(|_| ()));
        let mut latest = self.rows.iter().rev();
        match latest.find_map(|row| Some((row, row.error.as_ref()?))) {
            None => Ok(answer),
            Some((row, error)) => {
                let (function, size) = (&row.library.algorithm, show_bytes(row.bytes));
                let wrong = format!("wrong result of {function} of {size}: {error}");
                Ok(answer.but_wrong(wrong))
            }
        }
    }

    pub(super) fn json(&self) -> impl Answered {
        record! {
            collective: self.job.args.collective.name(),
            ranks: self.job.sweep.request.ranks(),
            /// Variables that choose algorithms, with their values.
            environment: environment_in_words(),
            rows: self.rows.iter().map(json_row).collect::<Vec<_>>(),
        }
    }

    fn print_text(&self, out: &mut Lines) -> Result<()> {
        let function = self.rows.first().map_or("", |row| &row.library.algorithm);
        let ranks = self.job.sweep.request.ranks();
        let environment = match &environment_in_words()[..] {
            [] => "no variable that chooses algorithms".to_string(),
            variables => variables.join(" "),
        };
        output::summary(
            out,
            &[
                ("verified", format!("{function}, {ranks} ranks")),
                ("environment", environment),
                (
                    "x best",
                    "the library over the best row of the sweep, measured in turns".into(),
                ),
            ],
        )?;
        writeln!(out)?;
        let ns = |wall: Summary| show_ns(wall.median as f64);
        let columns = Columns::<VerifiedRow>::default()
            .add(">size", |row| show_bytes(row.bytes))
            .add("best", |row| row.best.algorithm.clone())
            .add(">segment", |row| show_bytes(row.best.segment))
            .add(">best then", |row| ns(row.best.wall))
            .add(">now", |row| ns(row.best_now))
            .add(">library then", |row| ns(row.library.wall))
            .add(">now", |row| ns(row.library_now))
            .add(">x best then", |row| number(row.ratios()[0], 3))
            .add(">now", |row| number(row.ratios()[1], 3))
            .add("library is", |row| row.change().name());
        output::table(out, &columns, &self.rows)
    }
}

/// A row as JSON fields: times in nanoseconds, of the earlier sweep and now; the ratios are the
/// library's median over the best row's.
fn json_row(row: &VerifiedRow) -> impl Answered {
    let [then, now] = row.ratios();
    record! {
        bytes: row.bytes,
        algorithm: &row.best.algorithm,
        segment: row.best.segment,
        function: &row.library.algorithm,
        library_then: row.library.wall,
        library_now: row.library_now,
        best_then: row.best.wall,
        best_now: row.best_now,
        ratio_then: then,
        ratio_now: now,
        change: row.change().name(),
        error (optional): row.error.as_deref(),
    }
}

/// The variables of this process that choose algorithms of MPI libraries.
fn environment() -> Vec<(String, String)> {
    let all = std::env::vars_os().map(|(name, value)| {
        let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
        (name.into_owned(), value.into_owned())
    });
    let mut chosen: Vec<_> = all.filter(|(name, _)| selection::chooses(name)).collect();
    chosen.sort();
    chosen
}

fn environment_in_words() -> Vec<String> {
    let words = |(name, value)| format!("{name}={value}");
    environment().into_iter().map(words).collect()
}
