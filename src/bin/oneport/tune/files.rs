//! The files that a sweep reads and writes: checked before anything is measured.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use oneport::CostModel;
use oneport::measure::tune::csv::{self, Parameters};
use oneport::measure::tune::page::{Heading, page};
use oneport::measure::tune::rules::{Rule, Rules};
use oneport::measure::tune::{Row, Tuning};
use oneport::plan::registry;

use super::Args;
use super::job::{Job, Threads};
use crate::output;
use crate::subject::show_cost;
use crate::task::read_text;
use crate::units::TimeUnit;

/// Where results go, and what is there already.
pub(super) struct Files {
    csv: Option<PathBuf>,
    html: Option<PathBuf>,
    rules: Option<PathBuf>,
    parameters: Parameters,
    /// Rows of the interrupted sweep that the CSV file holds.
    pub(super) known: Vec<Row>,
    /// What the rules file holds.
    others: Rules,
}

impl Files {
    /// Reads what is to be continued and makes sure that everything can be written.
    pub(super) fn open(args: &Args, job: &Job) -> Result<Files> {
        let paths = [
            ("csv", &args.csv),
            ("html", &args.html),
            ("rules", &args.rules),
        ];
        for (i, (option, path)) in paths.iter().enumerate() {
            let Some(path) = path else { continue };
            if let Some((other, _)) = paths[..i].iter().find(|(_, p)| p.as_ref() == Some(path)) {
                bail!(
                    "--{other} and --{option} are the same file, {}",
                    path.display()
                );
            }
            writable(path)?;
        }
        let parameters = parameters(args, job);
        let mut known = Vec::new();
        if let Some(path) = args
            .csv
            .as_ref()
            .filter(|path| path.is_file() && !args.restart)
        {
            let text = read_text(path)?;
            if !text.is_empty() {
                known = csv::resume(&text, &parameters).with_context(|| {
                    format!(
                        "cannot continue the sweep of {} (--restart begins anew)",
                        path.display()
                    )
                })?;
            }
        }
        if !known.is_empty() {
            output::note(&format!("{} rows are known from the CSV file", known.len()));
        }
        let others = match args.rules.as_ref().filter(|path| path.is_file()) {
            Some(path) => {
                let text = read_text(path)?;
                if text.trim().is_empty() {
                    Rules::default()
                } else {
                    Rules::parse(&text)
                        .with_context(|| format!("cannot add to {}", path.display()))?
                }
            }
            None => Rules::default(),
        };
        Ok(Files {
            csv: args.csv.clone(),
            html: args.html.clone(),
            rules: args.rules.clone(),
            parameters,
            known,
            others,
        })
    }

    /// Writes the rows so far.
    pub(super) fn save(&self, rows: &[Row]) -> Result<()> {
        match &self.csv {
            Some(path) => output::write_file(path, csv::write(&self.parameters, rows).as_bytes()),
            None => Ok(()),
        }
    }

    /// Writes everything.
    pub(super) fn write(
        &self,
        job: &Job,
        threads: &Threads,
        tuning: &Tuning,
        warnings: &[String],
    ) -> Result<()> {
        self.save(&tuning.rows)?;
        if let Some(path) = &self.html {
            let text = page(&job.heading(threads, tuning, warnings), &tuning.rows);
            output::write_file(path, text.as_bytes())?;
        }
        match &self.rules {
            // Half a sweep has no winners.
            Some(path) if tuning.interrupted => output::note(&format!(
                "{} is left as it was: the sweep is not complete",
                path.display()
            )),
            Some(path) => {
                let mut rules = self.others.clone();
                rules.put(job.rule(tuning));
                output::write_file(path, rules.to_json().as_bytes())?;
            }
            None => {}
        }
        Ok(())
    }
}

/// Makes sure that a file can be written, without touching it.
fn writable(path: &Path) -> Result<()> {
    let shown = path.display();
    if path.is_dir() {
        bail!("cannot write {shown}: it is a folder");
    }
    if path.exists() {
        let open = OpenOptions::new().append(true).open(path);
        open.with_context(|| format!("cannot write {shown}"))?;
        if !path.is_file() {
            return Ok(());
        }
    }
    // Files are replaced as a whole, so it is the folder that counts.
    let Some(name) = path.file_name() else {
        bail!("cannot write {shown}: not a file name");
    };
    let mut probe = name.to_os_string();
    probe.push(format!(".{}.tmp", std::process::id()));
    let probe = path.with_file_name(probe);
    fs::write(&probe, b"")
        .and_then(|()| fs::remove_file(&probe))
        .with_context(|| format!("cannot write {shown}"))
}

/// What rows depend on.
fn parameters(args: &Args, job: &Job) -> Parameters {
    let request = &job.sweep.request;
    let list = |items: Vec<String>| items.join(" ");
    let costs = {
        let c = &request.cost;
        let plain = CostModel::new(c.alpha, c.beta)
            .gamma(c.gamma)
            .gamma_copy(c.gamma_copy)
            .overlap(c.overlap);
        let mut text = format!(
            "alpha {} beta {} gamma {} gamma_copy {}",
            c.alpha, c.beta, c.gamma, c.gamma_copy
        );
        if c.overlap {
            text += " overlap";
        }
        if plain != *c {
            // Matrices, or pieces of sizes.
            text += &format!(
                " fingerprint {:016x}",
                fingerprint(format!("{c:?}").as_bytes())
            );
        }
        text
    };
    let cores = if args.cores.is_empty() {
        "all".to_string()
    } else {
        list(args.cores.iter().map(usize::to_string).collect())
    };
    [
        ("collective", job.kind.name().to_string()),
        ("ranks", request.ranks.to_string()),
        ("root", request.root.to_string()),
        (
            "ports",
            format!("{} {}", request.ports.k(), request.ports.name()),
        ),
        ("dtype", job.dtype.name().to_string()),
        ("op", job.op.name().to_string()),
        ("ordered", request.keep_order.to_string()),
        ("clock", job.clock.name().to_string()),
        ("costs", costs),
        ("cores", cores),
        (
            "algorithms",
            list(
                job.sweep
                    .algorithms
                    .iter()
                    .map(|a| a.name.to_string())
                    .collect(),
            ),
        ),
        (
            "sizes",
            list(job.sweep.bytes.iter().map(u64::to_string).collect()),
        ),
        ("machine", job.machine.clone()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_string(), value))
    .collect()
}

/// FNV-1a.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl Job {
    /// The rule that the measurements suggest.
    fn rule(&self, tuning: &Tuning) -> Rule {
        let request = &self.sweep.request;
        let segmented = |name: &str| registry::find(self.kind, name).is_ok_and(|a| a.segmented);
        let costs = show_cost(&request.cost, TimeUnit::Nanoseconds);
        Rule {
            collective: self.kind,
            ranks: request.ranks,
            ports: request.ports.name().to_string(),
            ported: request.ports.k(),
            dtype: Some(self.dtype.name().to_string()),
            ordered: request.keep_order,
            clock: Some(match self.clock {
                super::Pace::Native => "native".to_string(),
                super::Pace::Paced => format!("paced: {costs}"),
            }),
            source: Some(format!("{}; {}", self.machine, self.command)),
            choices: Rule::choices(&tuning.rows, segmented),
        }
    }

    /// What stands above the plots.
    fn heading(&self, threads: &Threads, tuning: &Tuning, warnings: &[String]) -> Heading {
        let own = |name: &str, value: String| (name.to_string(), value);
        let mut facts: Vec<_> = self
            .facts(threads)
            .into_iter()
            .map(|(name, value)| own(name, value))
            .collect();
        facts.push(own("date", self.date.clone()));
        facts.push(own("command", self.command.clone()));
        let mut warnings = warnings.to_vec();
        if tuning.interrupted {
            warnings.insert(0, "The sweep was interrupted: it is not complete.".into());
        }
        Heading {
            title: format!(
                "oneport tune {}: {} ranks, {} clock",
                self.kind.name(),
                self.sweep.request.ranks,
                self.clock.name()
            ),
            facts,
            warnings,
        }
    }
}
