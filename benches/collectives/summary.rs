//! Report of the collectives benchmark: a page, a CSV file, a Markdown file, and a few lines on the
//! terminal.

#[path = "page.rs"]
mod page;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use oneport::internal::MIN_LONG_BYTES;
use oneport_measure::{Machine, Profile, now};
use oneport_pictures::svg::bytes as size;

/// Result for one algorithm, number of ranks, vector size and segment size.
pub(crate) struct Point {
    pub(crate) group: &'static str,
    pub(crate) collective: &'static str,
    pub(crate) algorithm: String,
    pub(crate) ports: &'static str,
    pub(crate) ranks: usize,
    pub(crate) bytes: usize,
    pub(crate) segments: usize,
    pub(crate) segment: usize,
    pub(crate) repetitions: u64,
    pub(crate) min_ns: u64,
    pub(crate) median_ns: u64,
    pub(crate) p99_ns: u64,
    pub(crate) model_ns: Option<f64>,
    /// Model time by the single line for all sizes.
    pub(crate) line_ns: Option<f64>,
    /// Whether no batch of it was in one known state of the machine.
    pub(crate) moved: bool,
    pub(crate) oversubscribed: bool,
    pub(crate) pinned: bool,
}

/// All results of a run.
pub(crate) struct Summary<'a> {
    /// The calibration of the first state.
    pub(crate) profile: Option<Profile>,
    /// The states of the machine, in words.
    pub(crate) states: Vec<String>,
    pub(crate) points: &'a [Point],
    pub(crate) checked: &'a [Point],
}

impl Point {
    fn ratio(&self) -> Option<f64> {
        Some(self.median_ns as f64 / self.model_ns?)
    }

    fn line_ratio(&self) -> Option<f64> {
        Some(self.median_ns as f64 / self.line_ns?)
    }
}

impl Summary<'_> {
    /// Prints the model, how far measured times are from it, and the best segment sizes.
    pub(crate) fn print(&self) {
        for (name, value) in self.model() {
            println!("{name:6} {value}");
        }
        for line in [self.warnings(), self.findings(), self.best_segments()].concat() {
            println!("{line}");
        }
    }

    /// The page: measured against model for each collective.
    pub(crate) fn page(&self) -> String {
        page::page(self)
    }

    /// Writes the files into the target folder.
    pub(crate) fn write(&self) {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("oneport-bench");
        for (name, text) in [
            ("summary.csv", self.csv()),
            ("summary.md", self.markdown()),
            ("summary.html", self.page()),
        ] {
            match write(&folder, name, &text) {
                Ok(path) => println!("{} points in {}", self.all().count(), path.display()),
                Err(e) => println!("cannot write {}: {e}", folder.join(name).display()),
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = &Point> {
        self.points.iter().chain(self.checked)
    }

    /// The points with a core for each rank that were not disturbed: medians and worst ratios are
    /// theirs alone.
    fn counted(&self) -> impl Iterator<Item = &Point> {
        self.all().filter(|p| p.flags().is_empty())
    }

    /// Whether wall-clock times follow the model here.
    fn findings(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let is_short = |p: &&Point| (p.bytes as u64) < MIN_LONG_BYTES;
        let long = self.counted().filter(|p| !is_short(p));
        if let Some(long) = Deviation::of(long, Point::ratio) {
            lines.push(format!("wall-clock over alpha + beta*m: {long}"));
            if let Some(short) = Deviation::of(self.counted().filter(is_short), Point::ratio) {
                lines.push(format!(
                    "  less than 32 KiB, which their receivers copy alone: {short}"
                ));
                lines.push("  (down to 0.5 with cores far apart: one handover of a cache line, where half a ping-pong has two)".into());
            }
            lines.push(format!(
                "  not counted, of {}: {} disturbed, {} while the cores moved, {} with more ranks than cores",
                self.all().count(),
                self.all().filter(|p| p.disturbed()).count(),
                self.all().filter(|p| p.moved).count(),
                self.all().filter(|p| p.oversubscribed).count()
            ));
        }
        let checked = || self.checked.iter().filter(|p| p.flags().is_empty());
        if let (Some(pieces), Some(line)) = (
            Deviation::of(checked(), Point::ratio),
            Deviation::of(checked(), Point::line_ratio),
        ) {
            lines.push(format!(
                "  chain and binomial, broadcast and reduce, 2 ranks, in turns: {pieces}"
            ));
            lines.push(format!("  these by one line for all sizes: {line}"));
        }
        lines.extend(self.states.iter().cloned());
        lines
    }

    fn best_segments(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut swept: Vec<&Point> = self
            .points
            .iter()
            .filter(|p| p.group == "segments")
            .collect();
        swept.sort_by_key(|p| (p.collective, &p.algorithm, p.median_ns));
        let mut last = None;
        for point in swept {
            let key = (point.collective, &point.algorithm);
            if last.replace(key) != Some(key) {
                lines.push(format!(
                    "best segment of {} {}, {} ranks, {}: {} ({:.1} us)",
                    point.collective,
                    point.algorithm,
                    point.ranks,
                    size(point.bytes as u64),
                    size(point.segment as u64),
                    point.median_ns as f64 * 1e-3
                ));
            }
        }
        lines
    }

    /// The model, in lines of name and value.
    fn model(&self) -> Vec<(&'static str, String)> {
        let Some(p) = &self.profile else {
            return vec![("model", "none, this machine could not be calibrated".into())];
        };
        let pieces = p.pieces.as_ref().map_or(0, |pieces| pieces.transfer.len());
        let off = |error: f64| format!("off by {:.0}% in the median", 100.0 * error);
        vec![
            ("alpha", format!("{:.1} ns", p.alpha)),
            ("beta", format!("{:.5} ns/byte", p.beta)),
            ("gamma", format!("{:.5} ns/byte", p.gamma)),
            (
                "model",
                format!(
                    "calibrated in this run: alpha + beta*m as one line ({}), {pieces} pieces ({})",
                    off(p.line_error),
                    off(p.fit_error)
                ),
            ),
        ]
    }

    /// What makes the figures doubtful, such as other programs that are running.
    fn warnings(&self) -> Vec<String> {
        let of_profile = self.profile.iter().flat_map(|profile| &profile.warnings);
        of_profile.cloned().collect()
    }

    fn csv(&self) -> String {
        let machine = machine();
        let (commit, date) = (commit(), now());
        let mut text = "group,collective,algorithm,ports,p,bytes,segment_bytes,segments,repetitions,min_ns,median_ns,p99_ns,\
                        model_ns,ratio,oversubscribed,pinned,machine,commit,date\n"
            .to_string();
        for p in self.all() {
            let number =
                |x: Option<f64>, digits| x.map_or(String::new(), |x| format!("{x:.digits$}"));
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},\"{}\",{commit},{date}",
                p.group,
                p.collective,
                p.algorithm,
                p.ports,
                p.ranks,
                p.bytes,
                p.segment,
                p.segments,
                p.repetitions,
                p.min_ns,
                p.median_ns,
                p.p99_ns,
                number(p.model_ns, 1),
                number(p.ratio(), 4),
                yes(p.oversubscribed),
                yes(p.pinned),
                machine.replace('"', "\"\""),
            );
        }
        text
    }

    fn markdown(&self) -> String {
        let mut text = format!(
            "# Measured and modelled\n\n- machine: {}\n- commit: {}\n- date: {}\n",
            machine(),
            commit(),
            now()
        );
        for (name, value) in self.model() {
            let _ = writeln!(text, "- {name}: {value}");
        }
        for warning in self.warnings() {
            let _ = writeln!(text, "- note: {warning}");
        }
        text.push_str("- elements: f32, sum; native clock; medians of all repetitions\n");
        for line in [self.findings(), self.best_segments()].concat() {
            let _ = writeln!(text, "- {}", line.trim_start());
        }
        text.push_str(
            "\n| | collective | algorithm | ports | p | bytes | segment | repetitions | median us | model us | ratio | oversubscribed |\n\
             |---|---|---|---|--:|--:|--:|--:|--:|--:|--:|---|\n",
        );
        for p in self.all() {
            let number = |x: Option<f64>| x.map_or("-".into(), |x| format!("{x:.2}"));
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} | {} | {:.2} | {} | {} | {} |",
                p.group,
                p.collective,
                p.algorithm,
                p.ports,
                p.ranks,
                size(p.bytes as u64),
                size(p.segment as u64),
                p.repetitions,
                p.median_ns as f64 * 1e-3,
                number(p.model_ns.map(|t| t * 1e-3)),
                number(p.ratio()),
                yes(p.oversubscribed)
            );
        }
        text
    }
}

/// Deviation of measured from model times, as ratios.
struct Deviation {
    points: usize,
    median: f64,
    /// The ratio that is farthest from 1, in either direction.
    worst: f64,
    at: String,
}

impl Deviation {
    fn of<'p>(
        points: impl Iterator<Item = &'p Point>,
        ratio: fn(&Point) -> Option<f64>,
    ) -> Option<Deviation> {
        let points: Vec<_> = points.filter_map(|p| Some((p, ratio(p)?))).collect();
        let mut ratios: Vec<f64> = points.iter().map(|p| p.1).collect();
        let median = median(&mut ratios)?;
        let factor = |ratio: f64| ratio.max(1.0 / ratio);
        let worst = points
            .iter()
            .max_by(|a, b| factor(a.1).total_cmp(&factor(b.1)))?;
        Some(Deviation {
            points: points.len(),
            median,
            worst: worst.1,
            at: worst.0.name(),
        })
    }
}

impl std::fmt::Display for Deviation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Deviation {
            points,
            median,
            worst,
            at,
        } = self;
        write!(
            f,
            "median {median:.2}, worst {worst:.2} ({at}) of {points} points"
        )
    }
}

/// The median, unless there is no value.
fn median(values: &mut [f64]) -> Option<f64> {
    (!values.is_empty()).then(|| oneport_measure::fit::median(values))
}

fn yes(b: bool) -> &'static str {
    if b { "yes" } else { "no" }
}

fn machine() -> String {
    let Machine { cpu, os, cores } = Machine::this();
    format!("{cpu}, {cores} cores, {os}")
}

/// The measured commit, if git reports it.
fn commit() -> String {
    let output = Command::new("git")
        .args([
            "describe",
            "--always",
            "--dirty",
            "--abbrev=12",
            "--exclude=*",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output();
    match output {
        Ok(o) if o.status.success() => String::from_utf8_lossy(&o.stdout).trim().to_string(),
        _ => "unknown".to_string(),
    }
}

/// Writes a file atomically: it appears under its name only when it is complete.
fn write(folder: &Path, name: &str, text: &str) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let (path, temporary) = (folder.join(name), folder.join(format!("{name}.tmp")));
    std::fs::write(&temporary, text)?;
    std::fs::rename(&temporary, &path)?;
    Ok(path)
}
