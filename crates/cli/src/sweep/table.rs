//! The table of a sweep, and its forms for papers.

use std::collections::BTreeSet;

use oneport_pictures::SweepRow;

use super::Table;
use crate::files::name_of;
use crate::output::command;
use crate::units::{number, or_dash, show_bytes, show_ns};

impl Table<'_> {
    /// Header and rows of the table: a row for each point of a sweep with what is fastest there, or
    /// for each algorithm of one point.
    pub(super) fn cells(&self) -> (Vec<String>, Vec<Vec<String>>) {
        /// More algorithms than these have no columns of their own, but for those from files.
        const MAX_COLUMNS: usize = 5;
        let (points, names) = (self.sweep.points(), self.sweep.algorithms());
        let vary = |values: BTreeSet<u64>| values.len() > 1;
        let many_ranks = vary(points.iter().map(|point| point.0 as u64).collect());
        let many_sizes = vary(points.iter().map(|point| point.1).collect());
        let one_each = points.iter().all(|&point| self.sweep.at(point).len() == 1);
        let over = |value: f64, by: f64| or_dash((by > 0.0).then(|| number(value / by, 4)));
        let show = |row: &SweepRow| match row.median {
            Some(median) => show_ns(median),
            None => self.sweep.unit.show(row.time),
        };
        let mut header: Vec<String> = Vec::new();
        let mut head = |names: &[&str]| header.extend(names.iter().map(|&name| name.into()));
        if many_ranks {
            head(&[">ranks"]);
        }
        if many_sizes {
            head(&[">size"]);
        }
        let by_point = points.len() > 1 && !one_each;
        let columns: Vec<&str> = match names.len() <= MAX_COLUMNS {
            true => names,
            false => {
                let own = self.common.schedule.iter().map(|path| name_of(path));
                let own: Vec<String> = own.collect();
                let is_own = |name: &&str| own.iter().any(|own| own == name);
                names.into_iter().filter(is_own).collect()
            }
        };
        match by_point {
            true => {
                head(&["fastest", ">time", ">x bound"]);
                match columns.is_empty() {
                    true => head(&["second", ">x best"]),
                    false => {
                        let names = columns.iter().map(|name| format!(">x {name}"));
                        header.extend(names);
                    }
                }
            }
            false => head(&[
                "algorithm",
                ">time",
                ">x best",
                ">x bound",
                ">rounds",
                ">segment",
                ">messages",
                ">volume",
            ]),
        }
        let mut rows = Vec::new();
        for &(ranks, bytes) in &points {
            let at = self.sweep.at((ranks, bytes));
            let Some(best) = at.first() else { continue };
            let mut place = Vec::new();
            place.extend(many_ranks.then(|| ranks.to_string()));
            place.extend(many_sizes.then(|| show_bytes(bytes)));
            if by_point {
                let mut cells = place;
                cells.extend([
                    best.algorithm.clone(),
                    show(best),
                    over(best.time, best.bound),
                ]);
                let x_best = |row: &&SweepRow| over(row.value(), best.value());
                match columns.is_empty() {
                    true => {
                        let second = at.get(1);
                        cells.push(or_dash(second.map(|row| row.algorithm.clone())));
                        cells.push(or_dash(second.map(x_best)));
                    }
                    false => cells.extend(columns.iter().map(|name| {
                        or_dash(at.iter().find(|row| row.algorithm == *name).map(x_best))
                    })),
                }
                rows.push(cells);
                continue;
            }
            rows.extend(at.iter().map(|row| {
                let mut cells = place.clone();
                cells.extend([
                    row.algorithm.clone(),
                    show(row),
                    over(row.value(), best.value()),
                    over(row.time, row.bound),
                    row.rounds.to_string(),
                    or_dash(row.segment.map(show_bytes)),
                    row.messages.to_string(),
                    show_bytes(row.volume),
                ]);
                cells
            }));
        }
        (header, rows)
    }

    pub(super) fn markdown(&self) -> String {
        let (header, rows) = self.cells();
        let line = |cells: &mut dyn Iterator<Item = String>| {
            let cells: Vec<String> = cells.map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let name = |name: &String| name.trim_start_matches('>').to_string();
        let mut text = line(&mut header.iter().map(name));
        let rule = |name: &String| if name.starts_with('>') { "--:" } else { "---" }.to_string();
        text += &line(&mut header.iter().map(rule));
        for row in rows {
            text += &line(&mut row.into_iter());
        }
        text
    }

    /// A table for the package booktabs.
    pub(super) fn tex(&self) -> String {
        let escape = |cell: &str| {
            let mut text = String::new();
            for c in cell.trim_start_matches('>').chars() {
                match c {
                    '_' | '%' | '&' | '#' | '$' | '{' | '}' => text.extend(['\\', c]),
                    '\\' => text += "\\textbackslash{}",
                    c => text.push(c),
                }
            }
            text
        };
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| escape(cell)).collect();
            format!("{} \\\\\n", cells.join(" & "))
        };
        let (header, rows) = self.cells();
        let side = |name: &String| if name.starts_with('>') { 'r' } else { 'l' };
        let columns: String = header.iter().map(side).collect();
        let rows: String = rows.iter().map(|row| line(row)).collect();
        format!(
            "% {}; {}; {}\n\\begin{{tabular}}{{{columns}}}\n\\toprule\n{}\\midrule\n{rows}\\bottomrule\n\\end{{tabular}}\n",
            self.title(),
            self.costs,
            command(),
            line(&header)
        )
    }
}
