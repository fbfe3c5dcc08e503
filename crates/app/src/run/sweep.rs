//! The table of a range of sizes: times, bandwidths, and a comparison with an earlier table.

use oneport_measure::tune::MIN_FOR_P99;
use serde::Deserialize;

use super::RunArgs;
use super::job::RunJob;
use super::report::{Ran, WallSummary};
use crate::answer::{FoundWrong, wrong};
use crate::args::Inputs;
use crate::input::print_warnings;
use crate::prelude::*;
use crate::site;

/// A row of the table. What a run is comes first, then its times.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
struct RunRow {
    collective: String,
    ranks: usize,
    ports: String,
    ported: usize,
    dtype: String,
    op: String,
    clock: String,
    workers: String,
    bytes: u64,
    algorithm: String,
    segment: u64,
    repetitions: usize,
    /// Absent in tables of earlier versions, which wrote inputs anew.
    #[serde(default)]
    warmup: Option<usize>,
    #[serde(default = "rewritten")]
    inputs: String,
    /// When the last rank arrives: times count from there.
    #[serde(default)]
    last_arrival_ns: f64,
    median_ns: u64,
    low_ns: u64,
    high_ns: u64,
    min_ns: u64,
    max_ns: u64,
    p99_ns: u64,
    mean_ns: f64,
    deviation_ns: f64,
    outliers: u64,
    /// Bytes per nanosecond, which is GB/s.
    algbw_gb_per_s: f64,
    busbw_gb_per_s: f64,
    model_ns: f64,
    x_model: Option<f64>,
    verified: Option<bool>,
    /// Median of the library's own function, if it was measured.
    #[serde(default)]
    library_ns: Option<u64>,
    #[serde(default)]
    library_min_ns: Option<u64>,
    /// That median over the schedule's: above 1, the schedule is faster.
    #[serde(default)]
    x_library: Option<f64>,
    /// Beside the run of an earlier table.
    #[serde(skip)]
    baseline: Option<Change>,
}

fn rewritten() -> String {
    Inputs::Rewritten.name().into()
}

#[derive(Debug, Clone, JsonSchema, Serialize)]
struct Change {
    median_ns: u64,
    /// The median over that of the baseline.
    ratio: Option<f64>,
    /// `faster`, `slower`, or `same` where the intervals touch.
    change: &'static str,
}

impl RunRow {
    /// What is run.
    fn key(&self) -> ([&str; 7], [usize; 2], u64, u64) {
        let names = [
            &self.collective,
            &self.ports,
            &self.dtype,
            &self.op,
            &self.clock,
            &self.workers,
            &self.inputs,
        ];
        (
            names.map(|name| &**name),
            [self.ranks, self.ported],
            self.bytes,
            self.last_arrival_ns.to_bits(),
        )
    }

    fn compared(mut self, baseline: &[RunRow]) -> RunRow {
        let change = |old: &RunRow| Change {
            median_ns: old.median_ns,
            ratio: (old.median_ns > 0).then(|| self.median_ns as f64 / old.median_ns as f64),
            change: match () {
                () if self.high_ns < old.low_ns => "faster",
                () if self.low_ns > old.high_ns => "slower",
                () => "same",
            },
        };
        let old = baseline.iter().find(|old| self.key() == old.key());
        self.baseline = old.map(change);
        self
    }
}

/// The runs of a table, one for each size.
pub(super) struct RunSweep<'a> {
    args: &'a RunArgs,
    sizes: Vec<u64>,
    /// By size: the options.
    points: Vec<Common>,
    /// The table to compare with.
    baseline: Vec<RunRow>,
    /// The rows so far.
    rows: Vec<RunRow>,
    /// Those of the first run that has some.
    warnings: Vec<String>,
    /// The costs by which algorithms were chosen, if built-in ones: as JSON, and in words.
    chosen_for: Option<String>,
    assumed: Option<String>,
    /// The processes, if the engine is MPI.
    processes: Option<Processes>,
    /// Why there are no more.
    stopped: Option<anyhow::Error>,
}

impl<'a> RunSweep<'a> {
    pub(super) fn new(args: &'a RunArgs, site: &Site) -> Result<RunSweep<'a>> {
        if args.trace.is_some() || args.histogram.is_some() {
            bail!("--trace and --histogram are for one run, not for a table");
        }
        args.frame.ensure(false, false)?;
        let (common, dtype) = args.common.typed();
        let sizes = match &common.vector.bytes {
            Some(sizes) if !common.blocks.are_given() => sizes.values(2),
            _ => bail!("a table needs sizes: give --bytes, such as --bytes 8..4MiB"),
        };
        if let Some(odd) = sizes.iter().find(|b| !b.is_multiple_of(dtype.bytes())) {
            let (name, bytes) = (dtype.name(), dtype.bytes());
            bail!(
                "{odd} bytes are not a whole number of elements of {bytes} bytes (--dtype {name})"
            );
        }
        site.caller.writable(&[("--csv", args.csv.as_deref())])?;
        let baseline = args.baseline.as_ref().map(read).transpose()?;
        let points = sizes.iter().map(|&bytes| {
            let mut point = common.clone();
            point.vector.bytes = Some(Ranges::single(bytes));
            if let Some(world) = &site.world {
                point.take_ranks(world.size());
            }
            point
        });
        let mut points: Vec<Common> = points.collect();
        Common::take_one_tree(&mut points, &site.caller)?;
        if let Some(largest) = points.last() {
            let largest = args.with(largest);
            let schedule = RunJob::planned(&largest, site)?.input.schedule;
            print_warnings(&common, &schedule, &site.caller);
            site.note_spare(schedule.ranks());
        }
        Ok(RunSweep {
            args,
            sizes,
            points,
            baseline: baseline.unwrap_or_default(),
            rows: Vec::new(),
            warnings: Vec::new(),
            chosen_for: None,
            assumed: None,
            processes: site.processes(),
            stopped: None,
        })
    }
}

impl<'a> site::Job for RunSweep<'a> {
    type Done = RunSweep<'a>;

    fn fact(&self) -> String {
        let library = if self.args.library {
            ", beside the library"
        } else {
            ""
        };
        format!("runs vectors of {:?} bytes{library}", self.sizes)
    }

    fn perform(mut self, site: &mut Site) -> Result<RunSweep<'a>> {
        let length = self.sizes.len() as u64;
        let progress = WorkBar::new(&site.caller, length, "running {wide_bar} {pos}/{len} sizes");
        for (&bytes, point) in self.sizes.iter().zip(&self.points) {
            let args = self.args.with(point);
            let job = RunJob::planned(&args, site).and_then(|job| job.proved(site));
            let done = match site.perform(job) {
                Ok(done) => done,
                Err(error) => {
                    self.stopped = Some(error);
                    break;
                }
            };
            progress.add(1);
            let info = &done.input.info;
            self.chosen_for = self.chosen_for.or_else(|| info.chosen_for.clone());
            self.assumed = self.assumed.or_else(|| info.assumed());
            if self.warnings.is_empty() {
                site.caller.notes(&done.row.warnings);
                self.warnings.clone_from(&done.row.warnings);
            }
            self.rows
                .push(args.row(bytes, &done).compared(&self.baseline));
            if let Some(error) = done.row.error {
                self.stopped = Some(wrong(format!("wrong result: {error}")));
                break;
            }
        }
        progress.finish();
        Ok(self)
    }
}

impl RunSweep<'_> {
    pub(super) fn json(&self, is_wrong: bool) -> impl Answered {
        let mut verified = self.rows.iter().map(|row| row.verified);
        let baseline = self.args.baseline.as_ref();
        record! {
            /// Whether all results are right; null if one was not verified.
            verified: verified.try_fold(!is_wrong, |all, one| Some(all && one?)),
            rows: self.rows.iter().map(|row| record! {
                #[serde(flatten)]
                row: row,
                baseline (optional): row.baseline.as_ref(),
            }).collect::<Vec<_>>(),
            /// `threads` or `mpi`.
            engine: self.args.place().name(),
            /// The built-in costs by which algorithms were chosen, if they were.
            chosen_for (optional): self.chosen_for.as_ref(),
            warnings: &self.warnings,
            mpi (optional): self.processes.as_ref(),
            /// The file of the earlier table.
            baseline (optional): baseline.map(|file| file.path().display().to_string()),
        }
    }

    /// Writes and prints the table: also one that ends where something is wrong.
    pub(super) fn answer(mut self, caller: &Caller) -> Result<Answer> {
        let wrong = self
            .stopped
            .take()
            .map(|error| error.downcast::<FoundWrong>());
        let wrong = wrong.transpose()?;
        let (args, rows) = (self.args, &self.rows[..]);
        let json = self.json(wrong.is_some());
        if args.baseline.is_some() && rows.iter().all(|row| row.baseline.is_none()) {
            caller.note("the baseline has no row for any of these runs: nothing is compared");
        }
        if let (Some(path), None) = (&args.csv, &wrong) {
            let text = output::csv(rows)?;
            caller.write_named(path, &text)?;
        }
        let answer = answer(caller, args.common.json, &json, |out| {
            if rows.is_empty() {
                return Ok(());
            }
            if let Some(processes) = &self.processes {
                output::summary(out, &site::summary(processes))?;
            }
            print(out, rows, self.assumed.as_deref())
        })?;
        Ok(match wrong {
            None => answer,
            Some(wrong) => answer.but_wrong(wrong.message),
        })
    }
}

impl RunArgs {
    /// These options with one size.
    fn with(&self, point: &Common) -> RunArgs {
        let mut args = self.clone();
        args.common = point.clone();
        args
    }

    /// The row of a run that is done.
    fn row(&self, bytes: u64, done: &Ran) -> RunRow {
        let info = &done.input.info;
        let (all, share) = moved(info.kind, info.ranks, bytes);
        let wall = WallSummary::of(&done.row.wall);
        // As the wall-clock, from the arrival of the last rank on.
        let model_ns = done.row.model_time - done.input.cost.last_arrival();
        let median = wall.median as f64;
        let library = done.library_times();
        let algbw = match wall.median {
            0 => 0.0,
            median => all / median as f64,
        };
        RunRow {
            collective: info.collective.to_string(),
            ranks: info.ranks,
            ports: info.ports.to_string(),
            ported: info.ported,
            dtype: done.dtype.name().to_string(),
            op: done.op(self).unwrap_or_default().to_string(),
            clock: clock_name(self.clock).to_string(),
            workers: self.mode().to_string(),
            bytes,
            algorithm: info.algorithm.clone().unwrap_or_default().into_owned(),
            segment: info.segment.unwrap_or(bytes),
            repetitions: self.repetitions,
            warmup: Some(self.warmup),
            inputs: self.inputs.inputs.name().into(),
            last_arrival_ns: done.input.cost.last_arrival(),
            median_ns: wall.median,
            low_ns: wall.low,
            high_ns: wall.high,
            min_ns: wall.min,
            max_ns: wall.max,
            p99_ns: wall.p99,
            mean_ns: wall.mean,
            deviation_ns: wall.deviation,
            outliers: wall.outliers,
            algbw_gb_per_s: algbw,
            busbw_gb_per_s: algbw * share,
            model_ns,
            x_model: (model_ns > 0.0).then(|| median / model_ns),
            verified: (!self.no_verify).then_some(done.row.error.is_none()),
            library_ns: library.as_ref().map(|library| library.wall.median),
            library_min_ns: library.as_ref().map(|library| library.wall.min),
            x_library: library.map(|library| library.ratio),
            baseline: None,
        }
    }
}

/// The bytes of all blocks or of the vector, and the part of them that a link carries at least.
fn moved(kind: Kind, ranks: usize, bytes: u64) -> (f64, f64) {
    let (p, n) = (ranks as f64, bytes as f64);
    if !kind.has_data() {
        return (0.0, 1.0);
    }
    let all = if kind.is_sized_by_block() { p * n } else { n };
    (all, kind.bus_share(ranks))
}

/// Reads an earlier table.
fn read(file: &Source) -> Result<Vec<RunRow>> {
    let (text, path) = (file.read()?, file.path());
    let rows: csv::Result<Vec<RunRow>> = csv::Reader::from_reader(text.as_bytes())
        .deserialize()
        .collect();
    let bad = |error: csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        anyhow::anyhow!(
            "{}: line {line}: not a table that run --csv wrote",
            path.display()
        )
    };
    let rows = rows.map_err(bad)?;
    if rows.is_empty() {
        bail!("{}: a table without rows", path.display());
    }
    Ok(rows)
}

fn heading(out: &mut Lines, rows: &[RunRow], assumed: Option<&str>) -> Result<()> {
    let first = &rows[0];
    let op = match &*first.op {
        "" => String::new(),
        op => format!(", {op}"),
    };
    writeln!(
        out,
        "{}, {} ranks, {} ports, {}{op}, {} clock{}",
        first.collective,
        first.ranks,
        first.ports,
        first.dtype,
        first.clock,
        match first.verified {
            None => ", not verified",
            Some(_) if rows.iter().all(|r| r.verified == Some(true)) => ", verified",
            Some(_) => "",
        }
    )?;
    writeln!(
        out,
        "{} repetitions of each size after {} warm-up, inputs {}{}",
        first.repetitions,
        or_dash(first.warmup),
        first.inputs,
        if first.last_arrival_ns > 0.0 {
            format!(
                ", times from the last arrival on, at {}",
                show_ns(first.last_arrival_ns)
            )
        } else {
            String::new()
        }
    )?;
    if let Some(costs) = assumed {
        writeln!(out, "chosen for {costs}")?;
    }
    writeln!(out)?;
    Ok(())
}

fn print(out: &mut Lines, rows: &[RunRow], assumed: Option<&str>) -> Result<()> {
    heading(out, rows, assumed)?;
    let compares = rows.iter().any(|row| row.baseline.is_some());
    let library = rows.iter().any(|row| row.library_ns.is_some());
    let ns = |time_ns: u64| show_ns(time_ns as f64);
    let factor = |x: Option<f64>| or_dash(x.map(|x| number(x, 4)));
    let p99 = |row: &RunRow| (row.repetitions >= MIN_FOR_P99).then_some(row.p99_ns);
    let baseline = |row: &RunRow| row.baseline.as_ref().and_then(|baseline| baseline.ratio);
    let change = |row: &RunRow| row.baseline.as_ref().map(|baseline| baseline.change);
    let columns = Columns::<RunRow>::default()
        .add(">size", |row| show_bytes(row.bytes))
        .add("algorithm", |row| row.algorithm.clone())
        .add(">segment", |row| show_bytes(row.segment))
        .add(">median", |row| ns(row.median_ns))
        .add(">interval", |row| {
            format!("{} - {}", ns(row.low_ns), ns(row.high_ns))
        })
        .add(">min", |row| ns(row.min_ns))
        .add_if(rows.iter().any(|row| p99(row).is_some()), ">p99", |row| {
            or_dash(p99(row).map(ns))
        })
        .add(">max", |row| ns(row.max_ns))
        .add(">algbw GB/s", |row| number(row.algbw_gb_per_s, 4))
        .add(">busbw GB/s", |row| number(row.busbw_gb_per_s, 4))
        .add(">x model", |row| factor(row.x_model))
        .add_if(library, ">library", |row| or_dash(row.library_ns.map(ns)))
        .add_if(library, ">x library", |row| factor(row.x_library))
        .add_if(compares, ">x baseline", |row| factor(baseline(row)))
        .add_if(compares, ">change", |row| or_dash(change(row)));
    output::table(out, &columns, rows)?;
    let ratios = rows.iter().filter_map(|row| row.x_library);
    let (logs, n) = ratios.fold((0.0, 0u32), |(sum, n), x| (sum + x.ln(), n + 1));
    if n > 0 {
        let mean = (logs / f64::from(n)).exp();
        writeln!(
            out,
            "\nx library, geometric mean of {n} sizes: {}",
            number(mean, 4)
        )?;
    }
    Ok(())
}
