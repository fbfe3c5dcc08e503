//! Report of the collectives benchmark: a page, a CSV file, a Markdown file, and a few lines on the
//! terminal.

#[path = "page.rs"]
mod page;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use oneport_measure::{Machine, Profile, now};
use oneport_pictures::shell::size;

/// Goals for two ranks: the median ratio of measured to model time, and the largest factor in
/// either direction.
const MEDIAN_GOAL: f64 = 1.25;
const WORST_GOAL: f64 = 1.5;

/// Change of the same points between start and end of the run that causes a remark.
const CHANGED: f64 = 1.25;

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
    pub(crate) oversubscribed: bool,
    pub(crate) pinned: bool,
}

/// All results of a run.
pub(crate) struct Summary<'a> {
    pub(crate) profile: Option<&'a Profile>,
    pub(crate) points: &'a [Point],
    pub(crate) checked: &'a [Point],
    /// The points of `checked`, measured again at the end of the run.
    pub(crate) checked_again: &'a [Point],
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
    /// Prints the error of the model between two ranks, and the best segment sizes.
    pub(crate) fn print(&self) {
        for line in self.findings() {
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

    fn findings(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let (Some(pieces), Some(line)) = (
            Deviation::of(self.checked, Point::ratio),
            Deviation::of(self.checked, Point::line_ratio),
        ) {
            lines.push(format!(
                "measured over model, 2 ranks, chain and binomial, broadcast and reduce, 1 KiB to 4 MiB ({} points):",
                self.checked.len()
            ));
            lines.push(format!("  calibrated model  {pieces}"));
            lines.push(format!("  one line alone    {line}"));
            lines.push(format!(
                "  goals: median within a factor {MEDIAN_GOAL}, worst within {WORST_GOAL}: {}",
                if pieces.meets_goals() {
                    "met"
                } else {
                    "missed"
                }
            ));
        }
        let pairs = self.checked.iter().zip(self.checked_again);
        let mut changes: Vec<f64> = pairs
            .map(|(before, after)| after.median_ns as f64 / before.median_ns as f64)
            .collect();
        changes.sort_unstable_by(f64::total_cmp);
        if let Some(&change) = changes.get(changes.len() / 2)
            && change.max(1.0 / change) > CHANGED
        {
            lines.push(format!(
                "  the machine has changed since: the same points took {change:.2} times as long at the end, so later ratios compare with a model of another state"
            ));
        }
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
        match self.profile {
            Some(p) => {
                let pieces = p.pieces.as_ref().map_or(0, |pieces| pieces.transfer.len());
                let _ = writeln!(
                    text,
                    "- model: calibrated in this run; alpha {:.1} ns, beta {:.5} ns/byte, gamma {:.5} ns/byte as one line (off by {:.0}% in the median), {pieces} pieces (off by {:.0}%)",
                    p.alpha,
                    p.beta,
                    p.gamma,
                    100.0 * p.line_error,
                    100.0 * p.fit_error
                );
                for warning in &p.warnings {
                    let _ = writeln!(text, "- calibration: {warning}");
                }
            }
            None => text.push_str("- model: none, this machine could not be calibrated\n"),
        }
        text.push_str("- elements: f32, sum; native clock; medians of all repetitions\n");
        for line in self.findings() {
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
    median: f64,
    worst: f64,
    at: String,
}

impl Deviation {
    fn of(points: &[Point], ratio: fn(&Point) -> Option<f64>) -> Option<Deviation> {
        let mut ratios: Vec<f64> = points.iter().filter_map(ratio).collect();
        let median = median(&mut ratios)?;
        let factor = |p: &Point| ratio(p).map_or(1.0, |r| r.max(1.0 / r));
        let worst = points
            .iter()
            .max_by(|a, b| factor(a).total_cmp(&factor(b)))?;
        Some(Deviation {
            median,
            worst: factor(worst),
            at: format!(
                "{} {}, {}",
                worst.collective,
                worst.algorithm,
                size(worst.bytes as u64)
            ),
        })
    }

    fn meets_goals(&self) -> bool {
        self.median.max(1.0 / self.median) <= MEDIAN_GOAL && self.worst <= WORST_GOAL
    }
}

impl std::fmt::Display for Deviation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "median {:.3}, worst factor {:.2} ({})",
            self.median, self.worst, self.at
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
