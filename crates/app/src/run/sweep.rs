//! The table of runs at several sizes and numbers of ranks: times, bandwidths, and a comparison
//! with an earlier table.

use std::borrow::Cow;

use csv::StringRecord;
use oneport_measure::tune::MIN_FOR_P99;
use oneport_pictures::{Players, Sweep};
use serde::Deserialize;

use super::RunArgs;
use super::job::RunJob;
use super::report::{Ran, WallSummary};
use crate::answer::wrong;
use crate::args::Inputs;
use crate::forms::parse_kind;
use crate::input::{assumed, print_warnings};
use crate::output::escape;
use crate::prelude::*;
use crate::site::summary;
use crate::sweep::{Findings, PaperTable, StoredRow};
use crate::units::show_ports;

/// A row of the table. What a run is comes first, then its times.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub(crate) struct RunRow {
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
    /// Of the model time, from the last arrival on, too.
    #[serde(default)]
    lower_bound_ns: f64,
    #[serde(default)]
    rounds: usize,
    #[serde(default)]
    messages: usize,
    #[serde(default)]
    volume_bytes: u64,
    /// The built-in costs by which the algorithm or its segments were chosen, if they were.
    #[serde(default)]
    chosen_for: Option<String>,
    /// Of a row in a CSV file: the command line, and the digest of what it read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
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

    /// What a plot and a page show of it.
    fn figures(&self) -> SweepRow {
        SweepRow {
            algorithm: self.algorithm.clone(),
            ranks: self.ranks,
            bytes: self.bytes,
            time: self.model_ns,
            bound: self.lower_bound_ns,
            median: Some(self.median_ns as f64),
            rounds: self.rounds,
            messages: self.messages,
            volume: self.volume_bytes,
            segment: (self.segment < self.bytes).then_some(self.segment),
            ..SweepRow::default()
        }
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

/// The rows of the runs so far.
#[derive(Clone)]
pub(super) struct RunTable<'a> {
    args: &'a RunArgs,
    caller: &'a Caller,
    /// The table to compare with.
    baseline: Vec<RunRow>,
    rows: Vec<RunRow>,
    /// The costs in words, and how it was measured.
    costs: String,
    /// Those of the first run that has some.
    warnings: Vec<String>,
    /// The name of the library's own function, if it was measured.
    library: Option<&'static str>,
    /// The processes, if the engine is MPI.
    processes: Option<Processes>,
}

impl RunArgs {
    /// Runs the schedules of all sizes and numbers of ranks.
    pub(super) fn table(&self, site: &mut Site) -> Result<Answer> {
        let caller = site.caller.clone();
        let table = RunTable::new(self, site, &caller);
        let table = site.agree(table)?;
        let mut common = self.common.typed().0;
        if let Some(world) = &site.world {
            common.take_ranks(world.size());
        }
        let experiment = self.sweep.experiment(&common, &caller, table)?;
        let experiment = experiment.with_csv(self.csv.as_deref());
        experiment.fill(site, |site, point, _| {
            let args = self.with(point);
            let job = RunJob::planned(&args, site);
            if let Ok(job) = &job {
                print_warnings(&args.common, &job.input.schedule, &site.caller);
                site.note_spare(job.input.schedule.ranks());
            }
            let job = job.and_then(|job| job.proved(site));
            site.perform(job)
        })
    }
}

impl<'a> RunTable<'a> {
    /// Without rows, if the options are for a table.
    fn new(args: &'a RunArgs, site: &Site, caller: &'a Caller) -> Result<RunTable<'a>> {
        let (common, dtype) = args.common.typed();
        if args.trace.is_some() || args.histogram.is_some() {
            bail!("--trace and --histogram are for one run, not for a table");
        }
        if common.blocks.are_given() {
            bail!("a table has blocks of one size: give --bytes in place of unequal ones");
        }
        let mut sizes = (common.vector.bytes.iter()).flat_map(|sizes| sizes.values(2));
        if let Some(odd) = sizes.find(|b| !b.is_multiple_of(dtype.bytes())) {
            let (name, bytes) = (dtype.name(), dtype.bytes());
            bail!(
                "{odd} bytes are not a whole number of elements of {bytes} bytes (--dtype {name})"
            );
        }
        args.writable(site)?;
        let baseline = args.baseline.as_ref().map(read).transpose()?;
        Ok(RunTable {
            args,
            caller,
            baseline: baseline.unwrap_or_default(),
            rows: Vec::new(),
            costs: String::new(),
            warnings: Vec::new(),
            library: None,
            processes: site.processes(),
        })
    }
}

impl RunTable<'_> {
    /// The built-in costs by which algorithms were chosen, if they were.
    fn chosen_for(&self) -> Option<&str> {
        let mut rows = self.rows.iter();
        rows.find_map(|row| row.chosen_for.as_deref())
    }

    fn show_costs(&self, cost: &CostModel, unit: Unit, row: &RunRow) -> String {
        let engine = self.processes.as_ref().map(ToString::to_string);
        format!(
            "{}; measured: medians of {} repetitions, {}, {} clock, on {}",
            show_cost(cost, unit),
            row.repetitions,
            row.dtype,
            row.clock,
            engine.unwrap_or_else(|| "threads".into())
        )
    }
}

impl Findings for RunTable<'_> {
    type Found = Ran;
    type Row = RunRow;

    fn take_known(&mut self, rows: Vec<RunRow>) -> Result<()> {
        if let Some(row) = rows.first() {
            let (cost, unit) = self.args.common.costs(row.ranks)?;
            self.costs = self.show_costs(&cost, unit, row);
        }
        let known = rows.into_iter().map(|row| RunRow {
            command: None,
            digest: None,
            ..row.compared(&self.baseline)
        });
        self.rows = known.collect();
        Ok(())
    }

    fn add(&mut self, _: &Common, done: Ran) -> Result<()> {
        let library = done.library.as_ref();
        self.library = (self.library).or_else(|| library.and_then(|library| library.function));
        if self.warnings.is_empty() {
            self.caller.notes(&done.row.warnings);
            self.warnings.clone_from(&done.row.warnings);
        }
        let row = self.args.row(&done)?;
        let row = row.compared(&self.baseline);
        self.costs = self.show_costs(&done.input.cost, done.input.unit, &row);
        let spot = |row: &RunRow| (row.ranks, row.bytes);
        self.rows.retain(|known| spot(known) != spot(&row));
        self.rows.push(row);
        match done.row.error {
            None => Ok(()),
            Some(error) => Err(wrong(format!("wrong result: {error}"))),
        }
    }

    fn remarks(&self) -> Vec<String> {
        let compares = self.rows.iter().any(|row| row.baseline.is_some());
        if self.args.baseline.is_none() || compares {
            return Vec::new();
        }
        vec!["the baseline has no row for any of these runs: nothing is compared".into()]
    }

    /// The library and the baseline have lines of their own.
    fn sweep(&self) -> Cow<'_, Sweep> {
        let rows = self.rows.iter().flat_map(|row| {
            let own = row.figures();
            let library = row.library_ns.zip(self.library);
            let library = library.map(|(ns, name)| own.beside(name, ns as f64));
            let baseline = row.baseline.as_ref();
            let baseline = baseline.map(|old| own.beside("baseline", old.median_ns as f64));
            [Some(own), library, baseline].into_iter().flatten()
        });
        Cow::Owned(Sweep {
            unit: Unit::Nanoseconds,
            rows: rows.collect(),
            players: Players::default(),
        })
    }

    fn collective(&self) -> &str {
        self.rows.first().map_or("", |row| &row.collective)
    }

    fn ports(&self) -> Cow<'_, str> {
        let row = self.rows.first();
        row.map_or_else(String::new, |row| show_ports(&row.ports, row.ported))
            .into()
    }

    fn costs(&self) -> &str {
        &self.costs
    }

    fn csv(&self, inputs: &str) -> Result<Vec<u8>> {
        output::csv(self.rows.iter().map(|row| RunRow {
            command: Some(self.caller.command.to_string()),
            digest: Some(inputs.to_string()).filter(|digest| !digest.is_empty()),
            ..row.clone()
        }))
    }

    fn answered(&self, has_failed: bool) -> impl Answered {
        let mut verified = self.rows.iter().map(|row| row.verified);
        let baseline = self.args.baseline.as_ref();
        record! {
            /// Whether all results are right; null if one was not verified.
            verified: verified.try_fold(!has_failed, |all, one| Some(all && one?)),
            rows: self.rows.iter().map(|row| record! {
                #[serde(flatten)]
                row: row,
                baseline (optional): row.baseline.as_ref(),
            }).collect::<Vec<_>>(),
            /// `threads` or `mpi`.
            engine: self.args.place().name(),
            /// The built-in costs by which algorithms were chosen, if they were.
            chosen_for (optional): self.chosen_for(),
            warnings: &self.warnings,
            mpi (optional): self.processes.as_ref(),
            /// The file of the earlier table.
            baseline (optional): baseline.map(|file| file.path().display().to_string()),
        }
    }

    fn paper(&self) -> PaperTable {
        PaperTable::of(&columns(&self.rows), &self.rows)
    }

    fn print(&self, _: &str, out: &mut Lines) -> Result<()> {
        if let Some(processes) = &self.processes {
            output::summary(out, &summary(processes))?;
        }
        let assumed = self.chosen_for().map(assumed);
        print(out, &self.rows, assumed.as_deref())
    }
}

impl StoredRow for RunRow {
    fn of(record: &StringRecord, header: &StringRecord) -> csv::Result<RunRow> {
        let mut row: RunRow = record.deserialize(Some(header))?;
        row.algorithm = escape::from_csv_field(row.algorithm);
        Ok(row)
    }

    fn origin(&self) -> [&str; 2] {
        [&self.command, &self.digest].map(|field| field.as_deref().unwrap_or_default())
    }

    fn is_sound(&self) -> bool {
        let words = [
            &self.ports,
            &self.dtype,
            &self.op,
            &self.clock,
            &self.algorithm,
        ];
        let words = words.into_iter().chain([&self.workers, &self.inputs]);
        let mut words = words.chain(&self.chosen_for);
        let is_figure = |figure: f64| figure.is_finite() && figure >= 0.0;
        let figures = [self.mean_ns, self.deviation_ns, self.last_arrival_ns];
        let figures = figures
            .into_iter()
            .chain([self.algbw_gb_per_s, self.busbw_gb_per_s]);
        let ratios = [self.x_model, self.x_library].into_iter().flatten();
        parse_kind(&self.collective).is_ok()
            && words.all(|word| escape::is_visible(word))
            && self.ranks > 0
            && (self.figures().times().chain(figures).chain(ratios)).all(is_figure)
    }

    fn is_measured(&self) -> bool {
        true
    }
}

impl RunArgs {
    /// These options at one point.
    fn with(&self, point: &Common) -> RunArgs {
        let mut args = self.clone();
        args.common = point.clone();
        args
    }

    /// The row of a run that is done.
    fn row(&self, done: &Ran) -> Result<RunRow> {
        let (info, schedule) = (&done.input.info, &done.input.schedule);
        let bytes = info.vector_bytes.unwrap_or(0);
        let stats = schedule.stats()?;
        let bound = schedule.lower_bound(&done.input.cost).largest;
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
        Ok(RunRow {
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
            lower_bound_ns: (bound - done.input.cost.last_arrival()).max(0.0),
            rounds: stats.rounds,
            messages: stats.messages,
            volume_bytes: stats.elements as u64 * schedule.element_bytes(),
            chosen_for: info.chosen_for.clone(),
            command: None,
            digest: None,
            baseline: None,
        })
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
            "{}: line {line}: not a table that run wrote as CSV",
            path.display()
        )
    };
    let rows = rows.map_err(bad)?;
    if rows.is_empty() {
        bail!("{}: a table without rows", path.display());
    }
    Ok(rows)
}

/// The least and the largest number of ranks.
fn span_of_ranks(rows: &[RunRow]) -> [usize; 2] {
    let ranks = || rows.iter().map(|row| row.ranks);
    [ranks().min(), ranks().max()].map(Option::unwrap_or_default)
}

fn heading(out: &mut Lines, rows: &[RunRow], assumed: Option<&str>) -> Result<()> {
    let first = &rows[0];
    let [low, high] = span_of_ranks(rows);
    let ranks = if low == high {
        low.to_string()
    } else {
        format!("{low} to {high}")
    };
    let op = match &*first.op {
        "" => String::new(),
        op => format!(", {op}"),
    };
    writeln!(
        out,
        "{}, {} ranks, {} ports, {}{op}, {} clock{}",
        first.collective,
        ranks,
        first.ports,
        first.dtype,
        first.clock,
        match first.verified {
            None => ", not verified",
            Some(_) if rows.iter().all(|r| r.verified == Some(true)) => ", verified",
            Some(_) => "",
        }
    )?;
    let arrivals = rows.iter().map(|row| row.last_arrival_ns);
    let earliest = arrivals.clone().fold(f64::INFINITY, f64::min);
    let latest = arrivals.fold(0.0, f64::max);
    let late = match [earliest, latest].map(show_ns) {
        _ if latest <= 0.0 => String::new(),
        [low, high] if low == high => format!(", times from the last arrival on, at {high}"),
        [low, high] => format!(", times from the last arrival on, at {low} to {high}"),
    };
    writeln!(
        out,
        "{} repetitions of each size after {} warm-up, inputs {}{late}",
        first.repetitions,
        or_dash(first.warmup),
        first.inputs,
    )?;
    if let Some(costs) = assumed {
        writeln!(out, "chosen for {costs}")?;
    }
    writeln!(out)?;
    Ok(())
}

/// The columns of the table.
fn columns(rows: &[RunRow]) -> Columns<'static, RunRow> {
    let compares = rows.iter().any(|row| row.baseline.is_some());
    let library = rows.iter().any(|row| row.library_ns.is_some());
    let ns = |time_ns: u64| show_ns(time_ns as f64);
    let factor = |x: Option<f64>| or_dash(x.map(|x| number(x, 4)));
    let p99 = |row: &RunRow| (row.repetitions >= MIN_FOR_P99).then_some(row.p99_ns);
    let baseline = |row: &RunRow| row.baseline.as_ref().and_then(|baseline| baseline.ratio);
    let change = |row: &RunRow| row.baseline.as_ref().map(|baseline| baseline.change);
    let [low, high] = span_of_ranks(rows);
    // A barrier has no size.
    let has_data = rows.iter().any(|row| row.bytes > 0);
    Columns::<RunRow>::default()
        .add_if(low < high, ">ranks", |row| row.ranks)
        .add_if(has_data, ">size", |row| show_bytes(row.bytes))
        .add("algorithm", |row| row.algorithm.clone())
        .add_if(has_data, ">segment", |row| show_bytes(row.segment))
        .add(">median", move |row| ns(row.median_ns))
        .add(">interval", move |row| {
            format!("{} - {}", ns(row.low_ns), ns(row.high_ns))
        })
        .add(">min", move |row| ns(row.min_ns))
        .add_if(
            rows.iter().any(|row| p99(row).is_some()),
            ">p99",
            move |row| or_dash(p99(row).map(ns)),
        )
        .add(">max", move |row| ns(row.max_ns))
        .add(">algbw GB/s", |row| number(row.algbw_gb_per_s, 4))
        .add(">busbw GB/s", |row| number(row.busbw_gb_per_s, 4))
        .add(">x model", move |row| factor(row.x_model))
        .add_if(library, ">library", move |row| {
            or_dash(row.library_ns.map(ns))
        })
        .add_if(library, ">x library", move |row| factor(row.x_library))
        .add_if(compares, ">x baseline", move |row| factor(baseline(row)))
        .add_if(compares, ">change", move |row| or_dash(change(row)))
}

fn print(out: &mut Lines, rows: &[RunRow], assumed: Option<&str>) -> Result<()> {
    heading(out, rows, assumed)?;
    output::table(out, &columns(rows), rows)?;
    let ratios = rows.iter().filter_map(|row| row.x_library);
    let (logs, n) = ratios.fold((0.0, 0u32), |(sum, n), x| (sum + x.ln(), n + 1));
    if n > 0 {
        let mean = (logs / f64::from(n)).exp();
        writeln!(
            out,
            "\nx library, geometric mean of {}: {}",
            counted(n as usize, "run"),
            number(mean, 4)
        )?;
    }
    Ok(())
}
