//! The files that a sweep reads and writes, checked before the measurement starts.

use std::cell::RefCell;

use oneport_formats::selection::{self, Origin, SelectionTable, TimedChoice};
use oneport_measure::tune::csv::{self, Block, Parameters};
use oneport_measure::tune::page::page;
use oneport_measure::tune::rules::{Rule, Rules};
use oneport_measure::tune::{Trial, TuningResult};
use oneport_pictures::shell::Heading;
use oneport_pictures::{Players, Quantity, Sweep};

use super::job::{MeasuredAt, TuneJob};
use super::report::columns;
use super::{PreparedSweep, TuneArgs, Tuned};
use crate::files::existing;
use crate::prelude::*;
use crate::sweep::{FilesOf, PaperTable, Written};

pub(super) struct Files<'a> {
    /// The CSV file that is continued.
    pub(super) csv: Option<&'a Path>,
    /// Further files of the table.
    tables: FilesOf<'a>,
    /// Content of the CSV file when it was last read or written.
    saved: RefCell<Option<Vec<u8>>>,
    parameters: Parameters,
    /// Rows of this sweep in the CSV file.
    pub(super) known: Vec<Trial>,
    /// What else the CSV file holds.
    others: Vec<Block>,
}

impl Files<'_> {
    /// Reads the rows that are known and makes sure that all files can be written. If all rows are
    /// known, they may be from another place, where the job is then about.
    pub(super) fn open<'a>(job: &mut TuneJob<'a>) -> Result<Files<'a>> {
        let (args, caller) = (job.args, &job.caller.clone());
        let mut outputs = vec![
            ("--csv", args.csv.as_deref()),
            ("--html", args.html.as_deref()),
            ("--rules", args.rules.as_deref()),
        ];
        let exports = args.export.iter();
        outputs.extend(exports.map(|(_, path)| ("--export", Some(&**path))));
        args.sweep.writable(caller, &outputs, None)?;
        let is_page = |path: &PathBuf| match path.extension() {
            None => true,
            Some(_) => FileKind::of(path) == Some(FileKind::Html),
        };
        if let Some(path) = args.html.as_ref().filter(|path| !is_page(path)) {
            bail!("{}: pages are written as FILE.html", path.display());
        }
        let (csv, tables) = tables(args)?;
        job.ensure_exports()?;
        let mut parameters = parameters(job);
        let (mut known, mut others) = (Vec::new(), Vec::new());
        let mut saved = None;
        if let Some((path, content)) = csv.and_then(|path| Some((path, existing(caller, path)?))) {
            let content = content.with_context(|| format!("cannot read {}", path.display()))?;
            if !args.restart && !content.is_empty() {
                let text = as_text(&content, path)?;
                let sweep = path.display();
                let failed =
                    || format!("cannot continue the sweep of {sweep} (--restart begins anew)");
                let found = csv::resume(text, &parameters).with_context(failed)?;
                (known, others) = (found.known, found.others);
                if let Some((difference, there)) = found.elsewhere {
                    job.take_all(&known, &there, &difference)
                        .with_context(failed)?;
                    parameters = there;
                }
            }
            saved = Some(content);
        }
        if !known.is_empty() {
            let nothing = if job.place.is_elsewhere {
                ", all that are needed: nothing is measured"
            } else {
                ""
            };
            caller.note(format!(
                "{} rows are known from the CSV file{nothing}",
                known.len()
            ));
        }
        let there = args.rules.as_ref();
        if let Some(path) = there
            && let Some(content) = existing(caller, path)
        {
            let content = content.with_context(|| format!("cannot read {}", path.display()))?;
            rules_in(as_text(&content, path)?, path)?;
        }
        Ok(Files {
            csv,
            tables,
            saved: RefCell::new(saved),
            parameters,
            known,
            others,
        })
    }

    /// Writes the rows so far. An error if another process has written the file meanwhile, since
    /// its rows would be lost.
    pub(super) fn save(&self, caller: &Caller, rows: &[Trial]) -> Result<()> {
        let Some(path) = self.csv.filter(|_| !caller.is_silent()) else {
            return Ok(());
        };
        let mut saved = self.saved.borrow_mut();
        let writer = output::Writer::open(caller, path)?;
        let current = writer.current()?;
        if current.is_some() && current != *saved {
            bail!(
                "{} is left as it is: another process has written it during this sweep",
                path.display()
            );
        }
        let content = self.content(rows);
        writer.write(&content)?;
        *saved = Some(content);
        Ok(())
    }

    /// The CSV file with these rows.
    fn content(&self, rows: &[Trial]) -> Vec<u8> {
        csv::write(&self.parameters, rows, &self.others).into_bytes()
    }
}

impl Tuned<'_> {
    pub(super) fn write_files(&self) -> Result<()> {
        let (PreparedSweep { job, files }, tuning) = (&self.sweep, &self.tuning);
        let (args, caller) = (job.args, &job.caller);
        let rows = if job.place.is_elsewhere {
            Ok(())
        } else {
            files.save(caller, &tuning.with_library())
        };
        let tables = self.write(&files.tables, caller);
        let rules = match &args.rules {
            Some(path) if !tuning.interrupted => add_rule(caller, path, job.rule(tuning)),
            _ => Ok(()),
        };
        let exports = if tuning.interrupted {
            Ok(args.export.iter().map(|(_, path)| path).collect())
        } else {
            job.export(tuning, |_| true)
        };
        note_winners(job, tuning, exports.as_deref().unwrap_or_default());
        rows.and(tables).and(rules).and(exports.map(|_| ()))
    }

    fn title(&self) -> String {
        let job = &self.sweep.job;
        format!(
            "{}: {} ranks, {} clock",
            job.args.collective.name(),
            job.sweep.request.ranks(),
            clock_name(job.args.clock)
        )
    }

    fn costs(&self) -> String {
        show_cost(self.sweep.job.sweep.request.get_cost(), Unit::Nanoseconds)
    }

    /// The best of each algorithm, and the library where its results are right.
    fn best(&self) -> Sweep {
        let ranks = self.sweep.job.sweep.request.ranks();
        let is_wrong = |row: &&Trial| {
            let library = self.tuning.library_at(row.bytes);
            row.is_of_library() && library.is_some_and(|own| own.error.is_some())
        };
        let rows = self.tuning.leaders().into_iter();
        let row = |row: &Trial| SweepRow {
            algorithm: row.algorithm.clone(),
            ranks,
            bytes: row.bytes,
            time: row.model_time,
            median: Some(row.wall.median as f64),
            segment: (row.segments > 1).then_some(row.segment),
            ..SweepRow::default()
        };
        Sweep {
            unit: Unit::Nanoseconds,
            rows: rows.filter(|row| !is_wrong(row)).map(row).collect(),
            players: Players::default(),
        }
    }
}

impl Written for Tuned<'_> {
    fn comment(&self) -> String {
        format!("{}; {}", self.title(), self.costs())
    }

    fn csv(&self) -> Result<Vec<u8>> {
        Ok(self.sweep.files.content(&self.tuning.with_library()))
    }

    fn answered(&self) -> impl Answered {
        let PreparedSweep { job, files } = &self.sweep;
        let resumed = files.known.len();
        job.json(&self.threads, &self.tuning, &self.warnings, resumed)
    }

    fn paper(&self) -> Result<PaperTable> {
        let job = &self.sweep.job;
        match job.args.sweep.show {
            Some(show) => PaperTable::by_ranks_and_sizes(&self.best(), &job.args.algorithms, show),
            None => {
                let rows = self.tuning.leaders();
                Ok(PaperTable::of(&columns(job, &self.tuning, &rows), &rows))
            }
        }
    }

    fn plot(&self) -> String {
        let job = &self.sweep.job;
        let caption = Caption::new(self.title()).line(self.costs());
        job.args.sweep.plot(&self.best(), caption, &job.caller)
    }

    fn page(&self) -> String {
        let job = &self.sweep.job;
        let mut summary = job.summary(&self.threads);
        if !job.args.sweep.frame.plain {
            summary.extend(job.caller.origin(job.date.clone()));
        }
        let mut warnings = self.warnings.clone();
        if self.tuning.interrupted {
            warnings.insert(0, "The sweep was interrupted: it is not complete.".into());
        }
        let heading = Heading {
            title: format!("oneport tune {}", self.title()),
            summary,
            warnings,
        };
        page(&heading, &self.tuning.with_library())
    }
}

/// The CSV file that is continued, and the further files of the table.
fn tables(args: &TuneArgs) -> Result<(Option<&Path>, FilesOf<'_>)> {
    ensure!(
        args.sweep.show != Some(Quantity::Bound),
        "--show bound: tune has no lower bounds, compare and run have"
    );
    let mut tables = args.sweep.files()?;
    let first = tables.iter().find(|(kind, _)| *kind == FileKind::Csv);
    let csv = args.csv.as_deref().or(first.map(|(_, path)| *path));
    ensure!(
        csv.is_some() || !args.restart,
        "--restart begins a CSV file anew: name it with --csv or -o"
    );
    tables.retain(|&(_, path)| Some(path) != csv);
    tables.extend(args.html.as_deref().map(|path| (FileKind::Html, path)));
    Ok((csv, tables))
}

/// Says for all files of winners at once, those of rules and `exports`, that an incomplete sweep
/// has none, or what makes them doubtful. Times of the model are not.
fn note_winners(job: &TuneJob, tuning: &TuningResult, exports: &[&PathBuf]) {
    let caller = &job.caller;
    let measured = job.place.processes.is_some() || tuning.interrupted;
    let exports = exports.iter().copied().filter(|_| measured);
    let paths = job.args.rules.iter().chain(exports);
    let paths: Vec<String> = paths.map(|path| path.display().to_string()).collect();
    let several = paths.len() > 1;
    let files = paths.join(", ");
    if paths.is_empty() {
        return;
    }
    if tuning.interrupted {
        let (are, were) = if several {
            ("are", "they were")
        } else {
            ("is", "it was")
        };
        caller.note(format!(
            "{files} {are} left as {were}: the sweep is not complete"
        ));
    } else if let Some(doubts) = job.doubts(tuning) {
        let have = if several { "have" } else { "has" };
        caller.note(format!("{files} {have} doubtful winners: {doubts}"));
    }
}

/// Adds a rule to the file and keeps all other rules, including those that another sweep has added
/// meanwhile.
fn add_rule(caller: &Caller, path: &Path, rule: Rule) -> Result<()> {
    if caller.is_silent() {
        return Ok(());
    }
    let writer = output::Writer::open(caller, path)?;
    let mut rules = match writer.current()? {
        Some(content) => rules_in(as_text(&content, path)?, path)?,
        None => Rules::default(),
    };
    rules.put(rule);
    writer.write(rules.to_json().as_bytes())
}

/// Reads the rules of a file; an empty file has none.
fn rules_in(text: &str, path: &Path) -> Result<Rules> {
    if text.trim().is_empty() {
        return Ok(Rules::default());
    }
    Rules::parse(text).with_context(|| format!("cannot add to {}", path.display()))
}

fn as_text<'a>(content: &'a [u8], path: &Path) -> Result<&'a str> {
    str::from_utf8(content)
        .ok()
        .with_context(|| format!("{} is not a text file", path.display()))
}

pub(super) fn parameters(job: &TuneJob) -> Parameters {
    let args = job.args;
    let request = &job.sweep.request;
    let list = |items: &mut dyn Iterator<Item = String>| items.collect::<Vec<_>>().join(" ");
    let costs = {
        let (cost, linear) = (request.get_cost(), request.get_cost().rates());
        let mut text = format!(
            "alpha {} beta {} gamma {} gamma_copy {}",
            linear.alpha, linear.beta, linear.gamma, linear.gamma_copy
        );
        if cost.overlaps() {
            text += " overlap";
        }
        if cost.linear().is_none() {
            // Matrices, or pieces by size.
            text += &format!(
                " fingerprint {:016x}",
                fingerprint(format!("{cost:?}").as_bytes())
            );
        }
        text
    };
    let cores = if args.cores.is_empty() {
        "all".to_string()
    } else {
        list(
            &mut args
                .cores
                .iter()
                .cloned()
                .flatten()
                .map(|core| core.to_string()),
        )
    };
    let algorithms = job.sweep.algorithms.iter();
    let mut names = algorithms.map(|a| a.name().to_string());
    let processes = job.place.processes.as_ref();
    let kept = Some(job.args.inputs.inputs).filter(|inputs| inputs.kept());
    [
        ("collective", job.args.collective.name().to_string()),
        ("ranks", request.ranks().to_string()),
        ("root", request.get_root().to_string()),
        (
            "ports",
            format!("{} {}", request.get_ports().k(), request.get_ports().name()),
        ),
        ("dtype", job.dtype.name().to_string()),
        ("op", job.op.name().to_string()),
        ("ordered", request.get_keep_order().to_string()),
        ("clock", clock_name(job.args.clock).to_string()),
        ("costs", costs),
        ("cores", cores),
        ("algorithms", list(&mut names)),
        (
            "sizes",
            list(&mut job.sweep.bytes.iter().map(u64::to_string)),
        ),
        ("machine", job.place.machine.clone()),
    ]
    .into_iter()
    // Files of earlier versions do not name the default.
    .chain(kept.map(|inputs| ("inputs", inputs.name().to_string())))
    .chain(processes.map(|processes| ("processes", processes.to_string())))
    .map(|(name, value)| (name.to_string(), value))
    .collect()
}

/// FNV-1a hash.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl TuneJob<'_> {
    fn rule(&self, tuning: &TuningResult) -> Rule {
        let request = &self.sweep.request;
        let segmented =
            |name: &str| registry::find(self.args.collective, name).is_ok_and(|a| a.segmented);
        let costs = show_cost(request.get_cost(), Unit::Nanoseconds);
        Rule {
            collective: self.args.collective,
            ranks: request.ranks(),
            ports: request.get_ports().name().to_string(),
            ported: request.get_ports().k(),
            dtype: Some(self.dtype.name().to_string()),
            ordered: request.get_keep_order(),
            clock: Some(match self.args.clock {
                Clock::Paced => format!("paced: {costs}"),
                _ => "native".to_string(),
            }),
            source: Some({
                let place = self.place.processes.as_ref().unwrap_or(&self.place.machine);
                let doubts = self.doubts(tuning);
                let doubts = doubts.map(|doubts| format!("; DOUBTFUL: {doubts}"));
                let tree = tuning.tree.as_ref();
                let tree = tree.map(|tree| format!("; all sizes in the tree {tree}"));
                format!(
                    "{place}; {}{}{}",
                    self.caller.command,
                    tree.unwrap_or_default(),
                    doubts.unwrap_or_default()
                )
            }),
            choices: Rule::choices(&tuning.rows, segmented),
        }
    }

    /// The times of all rows: those over MPI, if ranks are processes, or else the model's, since
    /// runs on threads say little about a library on a network. Rules may be for the sizes that
    /// `helps` allows.
    fn times(&self, tuning: &TuningResult, helps: impl Fn(u64) -> bool) -> SelectionTable {
        let request = &self.sweep.request;
        let (origin, doubts) = match &self.place.processes {
            Some(processes) => {
                let text = format!("{processes}; {}", self.caller.command);
                (Origin::Measured(text), self.doubts(tuning))
            }
            None => {
                let costs = show_cost(request.get_cost(), Unit::Nanoseconds);
                (
                    Origin::Modelled(format!("{costs}; {}", self.caller.command)),
                    None,
                )
            }
        };
        let is_measured = matches!(origin, Origin::Measured(_));
        let beats = |row: &Trial| !is_measured || tuning.beats_library(row, self.sweep.tolerance);
        let row = |row: &Trial| TimedChoice {
            bytes: row.bytes,
            algorithm: row.algorithm.clone(),
            segment: (row.segments > 1).then_some(row.segment),
            time: if is_measured {
                row.wall.median as f64
            } else {
                row.model_time
            },
            beats_library: helps(row.bytes) && beats(row),
        };
        let rows = tuning.rows.iter();
        // The best of each size have the tree that was asked for.
        let rows = rows.filter(|row| tuning.tree.is_none() || row.best);
        let rows = rows.map(row).collect();
        SelectionTable {
            collective: self.args.collective,
            ranks: request.ranks(),
            rows,
            origin,
            doubts,
        }
    }

    /// Writes the files of `--export`, with rules for the sizes that `helps` allows, and returns
    /// which: one without rules is not written.
    pub(super) fn export(
        &self,
        tuning: &TuningResult,
        helps: impl Fn(u64) -> bool,
    ) -> Result<Vec<&PathBuf>> {
        let (caller, table) = (&self.caller, self.times(tuning, helps));
        let (mut said, mut files) = (BTreeSet::new(), Vec::new());
        if tuning.tree.is_some() && !self.args.export.is_empty() {
            caller.note(
                "a library's algorithm may add in another tree than the one of that name here: \
                 oneport bits --library says in which",
            );
        }
        for (library, path) in &self.args.export {
            let name = path.display();
            let slower = tuning.slower_for_rules(self.sweep.tolerance);
            let slower = slower.filter(|(bytes, _)| {
                let mut rows = table.rows.iter().filter(|row| row.bytes == *bytes);
                !library.device_variables(table.collective).is_empty()
                    && !rows.any(|row| row.beats_library)
            });
            let slower: Vec<String> = slower
                .map(|(bytes, ratio)| format!("{} (x {})", show_bytes(bytes), number(ratio, 3)))
                .collect();
            if !slower.is_empty() {
                caller.note(format!(
                    "{name} is not written: without its device's collectives, which rules need, the \
                     library is slower at {}, where no rule makes up for it",
                    slower.join(", ")
                ));
                continue;
            }
            let Some(written) = selection::write(*library, &table)? else {
                caller.note(format!(
                    "{name} is not written: there is no size at which an algorithm that the library \
                     has {}",
                    match self.args.verify {
                        None => "beats its own choice",
                        Some(_) => "has made it faster",
                    }
                ));
                continue;
            };
            let notes = written.notes.into_iter();
            caller.notes(notes.filter(|note| said.insert(note.clone())));
            caller.write_named(path, written.text.as_bytes())?;
            files.push(path);
        }
        Ok(files)
    }

    /// Refuses an export that could not be written, whatever the times are.
    pub(super) fn ensure_exports(&self) -> Result<()> {
        let sizes = self.sweep.bytes.iter();
        let rows = sizes.flat_map(|&bytes| {
            let algorithms = self.sweep.algorithms.iter();
            algorithms.map(move |algorithm| TimedChoice {
                bytes,
                algorithm: algorithm.name().into_owned(),
                segment: None,
                time: 1.0,
                beats_library: true,
            })
        });
        let table = SelectionTable {
            collective: self.args.collective,
            ranks: self.sweep.request.ranks(),
            rows: rows.collect(),
            origin: Origin::Modelled(String::new()),
            doubts: None,
        };
        for (library, path) in &self.args.export {
            let failed = || format!("cannot write {}", path.display());
            if let Some(processes) = &self.place.processes {
                library.ensure_reads(processes).with_context(failed)?;
            }
            selection::write(*library, &table).with_context(failed)?;
        }
        Ok(())
    }

    /// Takes all rows from a file of another place, if none is missing: then this one does not
    /// matter.
    fn take_all(&mut self, known: &[Trial], there: &Parameters, difference: &str) -> Result<()> {
        let missing = self.sweep.bytes.iter().find_map(|&bytes| {
            let mut algorithms = self.sweep.algorithms.iter();
            algorithms.find_map(|algorithm| {
                let mut rows = known.iter();
                let is_known =
                    rows.any(|row| row.bytes == bytes && row.algorithm == algorithm.name());
                (!is_known).then(|| format!("{} of {}", algorithm.name(), show_bytes(bytes)))
            })
        });
        if let Some(missing) = missing {
            bail!("measured in another place: {difference}; {missing} is not in the file");
        }
        let value = |name| {
            let found = there.iter().find(|(n, _)| n == name);
            found.map(|(_, value)| value.clone())
        };
        self.place = MeasuredAt {
            machine: value("machine").unwrap_or_default(),
            processes: value("processes"),
            is_elsewhere: true,
        };
        self.load = None;
        self.sweep.budget = Duration::ZERO;
        self.ensure_exports()
    }
}
