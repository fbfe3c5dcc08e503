//! The files that a sweep reads and writes, checked before the measurement starts.

use std::cell::RefCell;
use std::fmt::Display;
use std::fs;

use oneport_formats::selection::{self, Origin, SelectionTable, TimedChoice};
use oneport_measure::tune::csv::{self, Parameters};
use oneport_measure::tune::page::page;
use oneport_measure::tune::rules::{Rule, Rules};
use oneport_measure::tune::{Trial, TuningResult};
use oneport_pictures::shell::Heading;

use super::TuneArgs;
use super::job::{CoreUse, TuneJob};
use crate::files::FileKind;
use crate::prelude::*;

pub(super) struct Files<'a> {
    args: &'a TuneArgs,
    /// Content of the CSV file when it was last read or written.
    saved: RefCell<Option<Vec<u8>>>,
    parameters: Parameters,
    /// Rows of the interrupted sweep in the CSV file.
    pub(super) known: Vec<Trial>,
}

impl Files<'_> {
    /// Reads the interrupted sweep and makes sure that all files can be written.
    pub(super) fn open<'a>(job: &TuneJob<'a>) -> Result<Files<'a>> {
        let args = job.args;
        let mut outputs = vec![
            ("--csv", args.csv.as_deref()),
            ("--html", args.html.as_deref()),
            ("--rules", args.rules.as_deref()),
        ];
        let exports = args.export.iter();
        outputs.extend(exports.map(|(_, path)| ("--export", Some(&**path))));
        output::writable(&outputs)?;
        let is_page = |path: &PathBuf| match path.extension() {
            None => true,
            Some(_) => FileKind::of(path) == Some(FileKind::Html),
        };
        if let Some(path) = args.html.as_ref().filter(|path| !is_page(path)) {
            bail!("{}: pages are written as FILE.html", path.display());
        }
        let parameters = parameters(job);
        let mut known = Vec::new();
        let mut saved = None;
        if let Some(path) = args.csv.as_ref().filter(|path| path.is_file()) {
            let content =
                fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            if !args.restart && !content.is_empty() {
                let text = as_text(&content, path)?;
                let sweep = path.display();
                let failed =
                    || format!("cannot continue the sweep of {sweep} (--restart begins anew)");
                known = csv::resume(text, &parameters).with_context(failed)?;
            }
            saved = Some(content);
        }
        if !known.is_empty() {
            output::note(&format!("{} rows are known from the CSV file", known.len()));
        }
        if let Some(path) = args.rules.as_ref().filter(|path| path.is_file()) {
            rules_in(&read_text(path)?, path)?;
        }
        Ok(Files {
            args,
            saved: RefCell::new(saved),
            parameters,
            known,
        })
    }

    /// Writes the rows so far. An error if another process has written the file meanwhile, since
    /// its rows would be lost.
    pub(super) fn save(&self, rows: &[Trial]) -> Result<()> {
        let Some(path) = self.args.csv.as_ref().filter(|_| !output::is_silent()) else {
            return Ok(());
        };
        let mut saved = self.saved.borrow_mut();
        let writer = output::Writer::open(path)?;
        let current = writer.current()?;
        if current.is_some() && current != *saved {
            bail!(
                "{} is left as it is: another process has written it during this sweep",
                path.display()
            );
        }
        let content = csv::write(&self.parameters, rows).into_bytes();
        writer.write(&content)?;
        *saved = Some(content);
        Ok(())
    }

    pub(super) fn write(
        &self,
        job: &TuneJob,
        threads: &CoreUse,
        tuning: &TuningResult,
        warnings: &[String],
    ) -> Result<()> {
        let all = tuning.with_library();
        let rows = self.save(&all);
        let page = match &self.args.html {
            Some(path) => {
                let text = page(&job.heading(threads, tuning, warnings), &all);
                output::write_file(path, text.as_bytes())
            }
            None => Ok(()),
        };
        let rules = match &self.args.rules {
            Some(path) if has_winners(path, job, tuning) => add_rule(path, job.rule(tuning)),
            _ => Ok(()),
        };
        rows.and(page).and(rules).and(self.export(job, tuning))
    }

    fn export(&self, job: &TuneJob, tuning: &TuningResult) -> Result<()> {
        for (library, path) in &self.args.export {
            if !has_winners(path, job, tuning) {
                continue;
            }
            let written = selection::write(*library, &job.times(tuning))?;
            output::notes(&written.notes);
            output::write_named(path, written.text.as_bytes())?;
        }
        Ok(())
    }
}

/// Whether a sweep has winners, which an incomplete one has not; says so for the file of winners,
/// and says what makes them doubtful.
fn has_winners(path: &Path, job: &TuneJob, tuning: &TuningResult) -> bool {
    if tuning.interrupted {
        let path = path.display();
        output::note(&format!(
            "{path} is left as it was: the sweep is not complete"
        ));
    } else if let Some(doubts) = job.doubts(tuning) {
        output::note(&format!(
            "{} has doubtful winners: {doubts}",
            path.display()
        ));
    }
    !tuning.interrupted
}

/// Adds a rule to the file and keeps all other rules, including those that another sweep has added
/// meanwhile.
fn add_rule(path: &Path, rule: Rule) -> Result<()> {
    if output::is_silent() {
        return Ok(());
    }
    let writer = output::Writer::open(path)?;
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
        list(&mut args.cores.iter().map(usize::to_string))
    };
    let algorithms = job.sweep.algorithms.iter();
    let mut names = algorithms.map(|a| a.name().to_string());
    let processes = job.processes.as_ref();
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
        ("machine", job.machine.clone()),
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
            source: Some(match &self.processes {
                None => self.with_doubts(&self.machine, tuning),
                Some(processes) => self.with_doubts(processes, tuning),
            }),
            choices: Rule::choices(&tuning.rows, segmented),
        }
    }

    /// Where times come from, in one line, with what makes them doubtful.
    fn with_doubts(&self, place: &impl Display, tuning: &TuningResult) -> String {
        let doubts = self.doubts(tuning);
        let doubts = doubts.map_or_else(String::new, |doubts| format!("; DOUBTFUL: {doubts}"));
        format!("{place}; {}{doubts}", self.command)
    }

    /// The times of all rows: those over MPI, if ranks are processes, or else the model's, since
    /// runs on threads say little about a library on a network.
    fn times(&self, tuning: &TuningResult) -> SelectionTable {
        let request = &self.sweep.request;
        let origin = match &tuning.processes {
            Some(processes) => Origin::Measured(self.with_doubts(processes, tuning)),
            None => {
                let costs = show_cost(request.get_cost(), Unit::Nanoseconds);
                Origin::Modelled(format!("{costs}; {}", self.command))
            }
        };
        let row = |row: &Trial| TimedChoice {
            bytes: row.bytes,
            algorithm: row.algorithm.clone(),
            segment: (row.segments > 1).then_some(row.segment),
            time: match origin {
                Origin::Measured(_) => row.wall.median as f64,
                Origin::Modelled(_) => row.model_time,
            },
        };
        let rows = tuning.rows.iter().map(row).collect();
        SelectionTable {
            collective: self.args.collective,
            ranks: request.ranks(),
            rows,
            origin,
        }
    }

    fn heading(&self, threads: &CoreUse, tuning: &TuningResult, warnings: &[String]) -> Heading {
        let mut summary = self.summary(threads);
        summary.extend(output::origin(self.date.clone()));
        let mut warnings = warnings.to_vec();
        if tuning.interrupted {
            warnings.insert(0, "The sweep was interrupted: it is not complete.".into());
        }
        Heading {
            title: format!(
                "oneport tune {}: {} ranks, {} clock",
                self.args.collective.name(),
                self.sweep.request.ranks(),
                clock_name(self.args.clock)
            ),
            summary,
            warnings,
        }
    }
}
