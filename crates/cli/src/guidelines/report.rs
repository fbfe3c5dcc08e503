//! Guidelines as tables, and violated ones in words.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;
use oneport_measure::guidelines::{Comparison, Performer};

use super::GuidelinesJob;
use crate::args::clock_name;
use crate::input::show_cost;
use crate::output;
use crate::site;
use crate::units::{Unit, number, show_bytes};

/// Prints all tables.
pub(super) fn print(out: &mut dyn Write, done: &GuidelinesJob) -> Result<()> {
    let (report, setting, unit) = (&done.evaluation, &done.setting, done.unit);
    writeln!(out, "{}", show_cost(&setting.cost, unit))?;
    if let Some(processes) = &done.processes {
        output::summary(out, &site::summary(processes))?;
    }
    let measured = setting
        .clock
        .map(|clock| (Some(clock), setting.measured_tolerance));
    let tables = [
        Some((None, setting.tolerance, Performer::Schedules)),
        measured.map(|(clock, tolerance)| (clock, tolerance, Performer::Schedules)),
        measured
            .filter(|_| setting.library)
            .map(|(clock, tolerance)| (clock, tolerance, Performer::Library)),
    ];
    for (clock, tolerance, by) in tables.into_iter().flatten() {
        let rows = report.rows.iter();
        let rows: Vec<&Comparison> = rows.filter(|r| r.clock == clock && r.by == by).collect();
        let what = match (clock.map(clock_name), by) {
            (None, _) => "model times".to_string(),
            (Some(clock), Performer::Schedules) => format!("measured times, {clock}"),
            (Some(clock), Performer::Library) => {
                format!("measured times of the library itself, {clock}")
            }
        };
        writeln!(out, "\n{what}, tolerance {}:", percent(tolerance))?;
        let lines = rows.iter().map(|row| {
            [
                row.guideline.name.to_string(),
                row.ranks.to_string(),
                show_bytes(row.bytes),
                unit.show(row.left),
                unit.show(row.right),
                row.left_by.join(" + "),
                row.right_by.join(" + "),
                verdict(row),
            ]
        });
        let header = "guideline|>p|>bytes|>left|>right|left by|right by|";
        output::table(out, header, lines)?;
        let violated = rows.iter().filter(|r| !r.holds).count();
        writeln!(out, "{} of {} hold", rows.len() - violated, rows.len())?;
        for row in rows.iter().filter(|row| !row.holds) {
            writeln!(out, "{}", in_words(row, unit))?;
        }
    }
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for entry in &report.unavailable {
        reasons
            .entry(&entry.reason)
            .or_default()
            .push(entry.guideline);
    }
    if !reasons.is_empty() {
        writeln!(out, "\nnot available:")?;
    }
    for (reason, names) in reasons {
        writeln!(out, "  {reason}:")?;
        for name in names {
            writeln!(out, "    {name}")?;
        }
    }
    Ok(())
}

/// A violated guideline in words, such as `MPI_Gather of 1 KiB on 4 ranks takes 15 us, 50% longer
/// than MPI_Allgather with 10 us: all ranks but the root can drop the blocks`.
fn in_words(row: &Comparison, unit: Unit) -> String {
    format!(
        "{}: {} of {} on {} ranks takes {}, {} longer than {} with {}: {}",
        row.guideline.name,
        row.left_by.join(" + "),
        show_bytes(row.bytes),
        row.ranks,
        unit.show(row.left),
        percent(row.excess()),
        row.right_by.join(" + "),
        unit.show(row.right),
        row.guideline.statement
    )
}

fn verdict(row: &Comparison) -> String {
    if row.holds {
        "holds".to_string()
    } else {
        format!("violated by {}", percent(row.excess()))
    }
}

fn percent(share: f64) -> String {
    format!("{}%", number((1e6 * share).round() / 1e4, 3))
}
