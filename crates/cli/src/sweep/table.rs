//! The table of a sweep, and its forms for papers.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::Table;
use crate::output::{command, escape};
use crate::prelude::*;

/// The rows at a point, fastest first, and one of them.
type Row<'a> = (Rc<Vec<&'a SweepRow>>, &'a SweepRow);

impl Table<'_> {
    /// Columns and rows of the table: a row for each point of a sweep with what is fastest there,
    /// or for each algorithm of one point.
    pub(super) fn columns(&self) -> (Columns<'_, Row<'_>>, Vec<Row<'_>>) {
        /// More algorithms than these have no columns of their own, but for those from files and
        /// those that were asked for by name.
        const MAX_COLUMNS: usize = 5;
        let (points, names) = (self.sweep.points(), self.sweep.algorithms());
        let many_ranks = points.iter().any(|point| point.ranks != points[0].ranks);
        let many_sizes = points.iter().any(|point| point.bytes != points[0].bytes);
        let one_each = points.iter().all(|&point| self.sweep.at(point).len() == 1);
        let by_point = points.len() > 1 && !one_each;
        let own = self.sweep.rows.iter().filter(|row| row.own);
        let own: BTreeSet<&str> = own.map(|row| &*row.algorithm).collect();
        let by_name = !matches!(&*self.common.algorithm, "auto" | "all");
        let few = by_name || names.len() <= MAX_COLUMNS;
        let has_column = |name: &&str| few || own.contains(name);
        let shown: Vec<&str> = names.into_iter().filter(has_column).collect();

        let unit = self.sweep.unit;
        let has = |of: fn(&SweepRow) -> bool| self.sweep.rows.iter().any(of);
        let has_late = has(|row| row.late.is_some());
        let show = move |time: Option<f64>| or_dash(time.map(|time| unit.show(time)));
        let over = |value: f64, by: f64| or_dash((by > 0.0).then(|| number(value / by, 4)));
        let x_best = move |at: &[&SweepRow], row: Option<&&SweepRow>| {
            or_dash(row.map(|row| over(row.value(), at[0].value())))
        };
        let name = if by_point { "fastest" } else { "algorithm" };
        let several = by_point && shown.is_empty();
        let mut columns = Columns::<Row>::default()
            .add_if(many_ranks, ">ranks", |(_, row)| row.ranks)
            .add_if(many_sizes, ">size", |(_, row)| show_bytes(row.bytes))
            .add_if(has_late, ">late by", move |(_, row)| show(row.late))
            .add(name, |(_, row)| row.algorithm.clone())
            .add(">time", move |(_, row)| match row.median {
                Some(median) => show_ns(median),
                None => unit.show(row.time),
            })
            .add_if(has_late, ">late rank", |(_, row)| or_dash(row.late_rank))
            .add_if(!by_point, ">x best", move |(at, row)| x_best(at, Some(row)))
            .add_if(has(|row| row.least.is_some()), ">least", move |(_, row)| {
                show(row.least)
            })
            .add_if(has_late, ">late rank", |(_, row)| or_dash(row.least_rank))
            .add_if(has(|row| row.p95.is_some()), ">p95", move |(_, row)| {
                show(row.p95)
            })
            .add_if(has(|row| row.worst.is_some()), ">worst", move |(_, row)| {
                show(row.worst)
            })
            .add_if(has(|row| row.bound > 0.0), ">x bound", move |(_, row)| {
                over(row.time, row.bound)
            })
            .add_if(!by_point, ">rounds", |(_, row)| row.rounds)
            .add_if(!by_point, ">segment", |(_, row)| {
                or_dash(row.segment.map(show_bytes))
            })
            .add_if(!by_point, ">messages", |(_, row)| row.messages)
            .add_if(!by_point, ">volume", |(_, row)| show_bytes(row.volume))
            .add_if(several, "second", |(at, _)| {
                or_dash(at.get(1).map(|row| &row.algorithm))
            })
            .add_if(several, ">x best", move |(at, _)| x_best(at, at.get(1)));
        for name in shown.into_iter().filter(|_| by_point) {
            let is_named = move |row: &&&SweepRow| row.algorithm == name;
            columns = columns
                .add(format!(">x {name}"), move |(at, _)| {
                    x_best(at, at.iter().find(is_named))
                })
                .add_if(has_late, format!(">least {name}"), move |(at, _)| {
                    show(at.iter().find(is_named).and_then(|row| row.least))
                });
        }
        let rows = points.into_iter().flat_map(|point| {
            let at = Rc::new(self.sweep.at(point));
            let shown = if by_point { 1 } else { at.len() };
            (0..shown).map(move |i| (Rc::clone(&at), at[i]))
        });
        (columns, rows.collect())
    }

    pub(super) fn markdown(&self) -> String {
        let (columns, rows) = self.columns();
        let line = |cells: Vec<String>| {
            let cells = cells.iter().map(|cell| escape::markdown(cell));
            format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
        };
        let rule = columns.iter().map(|column| match column.is_numeric {
            true => "--:".to_string(),
            false => "---".to_string(),
        });
        let head = line(columns.titles()) + &line(rule.collect());
        head + &rows
            .iter()
            .map(|row| line(columns.cells(row)))
            .collect::<String>()
    }

    pub(super) fn tex(&self) -> String {
        let line = |cells: Vec<String>| {
            let cells: Vec<String> = cells.iter().map(|cell| escape::tex(cell)).collect();
            format!("{} \\\\\n", cells.join(" & "))
        };
        let (columns, rows) = self.columns();
        let side = columns
            .iter()
            .map(|column| if column.is_numeric { 'r' } else { 'l' });
        let rows: String = rows.iter().map(|row| line(columns.cells(row))).collect();
        let comment = format!("{}; {}; {}", self.title(), self.costs, command());
        format!(
            "% {}\n\\begin{{tabular}}{{{}}}\n\\toprule\n{}\\midrule\n{rows}\\bottomrule\n\\end{{tabular}}\n",
            escape::visible(&comment),
            side.collect::<String>(),
            line(columns.titles())
        )
    }
}
