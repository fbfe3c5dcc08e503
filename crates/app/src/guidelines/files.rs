//! The files of `oneport guidelines`: its rows as tables, as JSON, as a plot and on a page.

use oneport_measure::guidelines::{Comparison, Performer};
use oneport_pictures::shell::Heading;
use oneport_pictures::{Players, Quantity, Sweep, plot};

use super::{GuidelinesJob, add_sides, inputs};
use crate::prelude::*;
use crate::site;
use crate::sweep::{PaperTable, Written};
use crate::units::show_ports;

impl GuidelinesJob<'_> {
    /// The rows of a plot, a guideline each: measured ones, if there are any.
    fn sweep(&self) -> Sweep {
        let row = |row: &Comparison| SweepRow {
            algorithm: match row.by {
                Performer::Schedules => row.guideline.name.into(),
                Performer::Library => format!("library: {}", row.guideline.name),
            },
            ranks: row.ranks,
            bytes: row.bytes,
            time: row.left,
            bound: row.right,
            ..SweepRow::default()
        };
        let rows = self.shown().into_iter();
        let rows = rows.filter(|row| row.clock == self.setting.clock);
        Sweep {
            unit: self.unit,
            rows: rows.map(row).collect(),
            players: Players::default(),
        }
    }

    fn caption(&self) -> Caption {
        Caption::new("left sides of guidelines over right sides, their bounds: up to 1 they hold")
            .line(self.costs())
    }

    /// The columns of a file: what times a row has comes first, where there are several.
    fn columns(&self) -> Columns<'_, Comparison> {
        let several = self.setting.clock.is_some();
        let by = Columns::default().add_if(several, "times", times_of);
        add_sides(by, self.unit)
    }
}

/// Whose times they are: `model`, `native` or `paced`, or the library's.
fn times_of(row: &Comparison) -> &'static str {
    match row.by {
        Performer::Library => "library",
        Performer::Schedules => row.clock.map_or("model", clock_name),
    }
}

impl Written for GuidelinesJob<'_> {
    fn comment(&self) -> String {
        format!("guidelines; {}", self.costs())
    }

    fn csv(&self) -> Result<Vec<u8>> {
        output::csv(self.shown().into_iter().map(|row| {
            let end = |side: usize, end: usize| row.intervals.map(|sides| sides[side][end]);
            record! {
                guideline: row.guideline.name,
                clock: row.clock.map_or("model", clock_name),
                by: row.by.name(),
                ranks: row.ranks,
                bytes: row.bytes,
                left: Number(row.left),
                right: Number(row.right),
                time_unit: self.unit.name(),
                left_algorithms: row.left_by.join(" + "),
                right_algorithms: row.right_by.join(" + "),
                holds: row.holds,
                excess: row.excess(),
                left_low: end(0, 0),
                left_high: end(0, 1),
                right_low: end(1, 0),
                right_high: end(1, 1),
                settled: row.settled,
                command: &*self.caller.command,
            }
        }))
    }

    fn answered(&self) -> impl Answered {
        let (setting, evaluation) = (&self.setting, &self.evaluation);
        record! {
            holds: evaluation.holds(),
            violated: evaluation.rows.iter().filter(|r| !r.holds).count(),
            compared: evaluation.rows.len(),
            ports: setting.ports.name(),
            tolerance: setting.tolerance,
            measured_tolerance (optional): setting.clock.map(|_| setting.measured_tolerance),
            inputs (optional): setting.clock.map(|_| inputs(setting)),
            dist (optional): setting.blocks.map(|blocks| blocks.distribution.name()),
            time_unit: self.unit.name(),
            mpi (optional): self.processes.as_ref(),
            rows: evaluation.rows.iter().filter(|row| self.shows(row)).map(|row| record! {
                guideline: row.guideline.name,
                statement: row.guideline.statement,
                clock: row.clock.map_or("model", clock_name),
                by: row.by.name(),
                ranks: row.ranks,
                bytes: row.bytes,
                left: Number(row.left),
                right: Number(row.right),
                left_algorithms: &row.left_by,
                right_algorithms: &row.right_by,
                holds: row.holds,
                /// By how much the left side is slower, as a fraction; negative if it is faster.
                excess: Number(row.excess()),
                left_interval (optional): row.intervals.map(|[left, _]| left),
                right_interval (optional): row.intervals.map(|[_, right]| right),
                settled (optional): row.settled,
            }).collect::<Vec<_>>(),
            unavailable: &evaluation.unavailable,
            /// What the searches for the fastest algorithms left out, which may be faster.
            left_out (optional): Some(self.left_out()).filter(|all| !all.is_empty()),
            warnings: &evaluation.warnings,
        }
    }

    fn paper(&self) -> Result<PaperTable> {
        Ok(PaperTable::of(&self.columns(), &self.shown()))
    }

    /// Left sides over right sides: these are their bounds.
    fn plot(&self) -> String {
        let caption = self.caption().source(self.caller.provenance());
        plot(&self.sweep(), Quantity::Bound, None, &caption)
    }

    fn page(&self) -> String {
        let picture = plot(&self.sweep(), Quantity::Bound, None, &self.caption());
        let table = self.columns().html("all", "All rows", self.shown(), |row| {
            (!row.holds).then_some("failed")
        });
        let ports = show_ports(self.setting.ports.name(), self.setting.ports.k());
        let mut summary = vec![("ports", ports), ("costs", self.costs())];
        summary.extend(self.processes.iter().flat_map(site::summary));
        summary.extend(self.caller.origin(oneport_measure::now()));
        let heading = Heading {
            title: "oneport guidelines".into(),
            summary,
            warnings: self.evaluation.warnings.clone(),
        };
        let body = format!("<figure>{picture}</figure>\n{table}");
        heading.page(&body, &serde_json::Value::Null, "")
    }
}
