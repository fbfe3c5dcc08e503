//! Report of the comparison: a table, geometric means, and files.

use std::fmt::Write;
use std::path::Path;

use crate::oneport::Measured;
use crate::{Point, Timing};

/// The results of both sides for a point.
pub(crate) struct Row {
    p: usize,
    point: Point,
    mpi: Option<(String, Timing)>,
    oneport: Measured,
}

impl Row {
    /// Takes the best of all libraries and settings over all rounds as the result of MPI.
    pub(crate) fn new(
        p: usize,
        point: Point,
        mpi: Vec<(String, Timing)>,
        oneport: Measured,
    ) -> Row {
        let mpi = mpi
            .into_iter()
            .filter(|(_, t)| t.right)
            .min_by_key(|(_, t)| t.median);
        Row {
            p,
            point,
            mpi,
            oneport,
        }
    }

    /// Median of MPI divided by oneport's: above 1 if oneport is faster.
    fn ratio(&self) -> Option<f64> {
        let mpi = self.mpi.as_ref()?.1.median.max(1) as f64;
        Some(mpi / self.oneport.timing.median.max(1) as f64)
    }

    /// The same for multiplexed runs.
    fn multiplexed_ratio(&self) -> Option<f64> {
        let mpi = self.mpi.as_ref()?.1.median.max(1) as f64;
        let (_, multiplexed) = self.oneport.multiplexed.as_ref()?;
        Some(mpi / multiplexed.median.max(1) as f64)
    }

    /// Time of the chosen algorithm divided by that of the best registered one.
    fn off(&self) -> Option<f64> {
        let best = *self.oneport.every.values().min()?;
        let (chosen, best) = self
            .oneport
            .again
            .unwrap_or((self.oneport.timing.median, best));
        Some(chosen as f64 / best.max(1) as f64)
    }
}

pub(crate) fn report(rows: &[Row], cores: usize) {
    let multiplexed = rows.iter().any(|r| r.oneport.multiplexed.is_some());
    let mut text = String::from(
        "| operation | p | bytes | best MPI | us (min) | oneport | us (min) | ratio |",
    );
    text += if multiplexed {
        " multiplexed | us (min) | ratio |\n|---|---|---|---|---|---|---|---|---|---|---|\n"
    } else {
        "\n|---|---|---|---|---|---|---|---|\n"
    };
    let mut csv = String::from(
        "operation,p,bytes,mpi,mpi_min_ns,mpi_median_ns,algorithm,min_ns,median_ns,ratio,best_algorithm,best_median_ns,multiplexed_algorithm,multiplexed_min_ns,multiplexed_median_ns\n",
    );
    for row in rows {
        let us = |t: &Timing| format!("{:.2} ({:.2})", t.median as f64 / 1e3, t.min as f64 / 1e3);
        let (name, mpi_us) = row.mpi.as_ref().map_or(("-".into(), "-".into()), |(n, t)| {
            (n.trim().to_string(), us(t))
        });
        let ratio = row.ratio().map_or("-".into(), |r| format!("{r:.2}"));
        let wrong = if row.oneport.timing.right {
            ""
        } else {
            " WRONG"
        };
        let _ = write!(
            text,
            "| {} | {} | {} | {name} | {mpi_us} | {}{wrong} | {} | {ratio} |",
            row.point.op,
            row.p,
            row.point.bytes,
            row.oneport.algorithm,
            us(&row.oneport.timing)
        );
        let run = row.oneport.multiplexed.as_ref();
        match run {
            Some((algorithm, timing)) => {
                let wrong = if timing.right { "" } else { " WRONG" };
                let ratio = row
                    .multiplexed_ratio()
                    .map_or("-".into(), |r| format!("{r:.2}"));
                let _ = writeln!(text, " {algorithm}{wrong} | {} | {ratio} |", us(timing));
            }
            None if multiplexed => text += " - | - | - |\n",
            None => text.push('\n'),
        }
        csv += &line(row, &name, &ratio);
    }
    text.push('\n');
    text += &summary(rows, cores);
    println!("{text}");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("oneport-peers");
    let written = std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(folder.join("peers.md"), &text))
        .and_then(|()| std::fs::write(folder.join("peers.csv"), &csv));
    match written {
        Ok(()) => println!("written to {}", folder.display()),
        Err(e) => println!("cannot write {}: {e}", folder.display()),
    }
}

/// A line of the CSV file.
fn line(row: &Row, name: &str, ratio: &str) -> String {
    let run = row.oneport.multiplexed.as_ref();
    let mpi = row.mpi.as_ref().map(|r| r.1);
    let ns = |n: Option<u64>| n.map_or(String::new(), |n| n.to_string());
    let best = row.oneport.every.iter().min_by_key(|(_, median)| **median);
    format!(
        "{},{},{},\"{name}\",{},{},\"{}\",{},{},{ratio},{},{},\"{}\",{},{}\n",
        row.point.op,
        row.p,
        row.point.bytes,
        ns(mpi.map(|t| t.min)),
        ns(mpi.map(|t| t.median)),
        row.oneport.algorithm,
        row.oneport.timing.min,
        row.oneport.timing.median,
        best.map_or("", |(name, _)| name),
        ns(best.map(|(_, median)| *median)),
        run.map_or("", |(algorithm, _)| algorithm),
        ns(run.map(|(_, t)| t.min)),
        ns(run.map(|(_, t)| t.median)),
    )
}

/// For each number of ranks: how oneport compares.
fn summary(rows: &[Row], cores: usize) -> String {
    let mut text = String::new();
    let mut ranks: Vec<usize> = rows.iter().map(|r| r.p).collect();
    ranks.dedup();
    for p in ranks {
        let of = |ratio: fn(&Row) -> Option<f64>| -> Vec<f64> {
            let selected = rows.iter().filter(|r| r.p == p);
            selected.filter_map(ratio).collect()
        };
        let ratios = of(Row::ratio);
        if let Some(mean) = geometric_mean(&ratios) {
            let min = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            let slower = ratios.iter().filter(|&&r| r < 0.9).count();
            let note = if p > cores {
                ", more ranks than cores: spans"
            } else {
                ""
            };
            let _ = writeln!(
                text,
                "p = {p}{note}: {mean:.2} times as fast as the best MPI in geometric mean over {} points; least {min:.2}, {slower} below 0.9",
                ratios.len()
            );
        }
        let ratios = of(Row::multiplexed_ratio);
        if let Some(mean) = geometric_mean(&ratios) {
            let _ = writeln!(
                text,
                "p = {p}, multiplexed: {mean:.2} times as fast as the best MPI in geometric mean over {} points",
                ratios.len()
            );
        }
        let offs: Vec<f64> = rows
            .iter()
            .filter(|r| r.p == p)
            .filter_map(Row::off)
            .collect();
        if !offs.is_empty() {
            let near = offs.iter().filter(|&&o| o <= 1.15).count();
            let _ = writeln!(
                text,
                "p = {p}: the automatic choice is within 15% of the best registered algorithm at {near} of {} points",
                offs.len()
            );
        }
    }
    text
}

fn geometric_mean(ratios: &[f64]) -> Option<f64> {
    if ratios.is_empty() {
        return None;
    }
    let logs: f64 = ratios.iter().map(|r| r.ln()).sum();
    Some((logs / ratios.len() as f64).exp())
}
