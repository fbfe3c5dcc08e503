//! The table of a sweep, and its forms for papers.

use oneport_pictures::SweepRow;

use super::Table;
use crate::files::name_of;
use crate::output::command;
use crate::units::{number, or_dash, show_bytes, show_ns};

/// The rows at a point, fastest first.
type At<'a> = [&'a SweepRow];
/// The text of a row in a column.
type Cell<'a> = Box<dyn Fn(&At, &SweepRow) -> String + 'a>;
type Column<'a> = (String, Cell<'a>);

impl Table<'_> {
    /// Header and rows of the table: a row for each point of a sweep with what is fastest there, or
    /// for each algorithm of one point.
    pub(super) fn cells(&self) -> (Vec<String>, Vec<Vec<String>>) {
        /// More algorithms than these have no columns of their own, but for those from files.
        const MAX_COLUMNS: usize = 5;
        let (points, names) = (self.sweep.points(), self.sweep.algorithms());
        let many_ranks = points.iter().any(|point| point.ranks != points[0].ranks);
        let many_sizes = points.iter().any(|point| point.bytes != points[0].bytes);
        let one_each = points.iter().all(|&point| self.sweep.at(point).len() == 1);
        let by_point = points.len() > 1 && !one_each;
        let own: Vec<String> = self
            .common
            .schedule
            .iter()
            .map(|path| name_of(path))
            .collect();
        let few = names.len() <= MAX_COLUMNS;
        let has_column = |name: &&str| few || own.iter().any(|own| own == name);
        let shown: Vec<&str> = names.into_iter().filter(has_column).collect();

        let over = |value: f64, by: f64| or_dash((by > 0.0).then(|| number(value / by, 4)));
        let x_best = move |at: &At, row: &SweepRow| over(row.value(), at[0].value());
        let x_bound = move |_: &At, row: &SweepRow| over(row.time, row.bound);
        let mut columns: Vec<Column> = Vec::new();
        let mut add = |name: &str, cell| columns.push((name.to_string(), cell));
        if many_ranks {
            add(">ranks", Box::new(|_, row| row.ranks.to_string()));
        }
        if many_sizes {
            add(">size", Box::new(|_, row| show_bytes(row.bytes)));
        }
        if points.iter().any(|point| point.late.is_some()) {
            let late = |row: &SweepRow| or_dash(row.late.map(|late| self.sweep.unit.show(late)));
            add(">late by", Box::new(move |_, row| late(row)));
        }
        let name = if by_point { "fastest" } else { "algorithm" };
        add(name, Box::new(|_, row| row.algorithm.clone()));
        let time = |row: &SweepRow| match row.median {
            Some(median) => show_ns(median),
            None => self.sweep.unit.show(row.time),
        };
        add(">time", Box::new(move |_, row| time(row)));
        if !by_point {
            add(">x best", Box::new(x_best));
        }
        type Of = fn(&SweepRow) -> Option<f64>;
        let spreads: [(&str, Of); 3] = [
            (">least", |row| row.least),
            (">p95", |row| row.p95),
            (">worst", |row| row.worst),
        ];
        for (name, of) in spreads {
            if self.sweep.rows.iter().any(|row| of(row).is_some()) {
                let text = move |time| self.sweep.unit.show(time);
                add(name, Box::new(move |_, row| or_dash(of(row).map(text))));
            }
        }
        if self.sweep.rows.iter().any(|row| row.bound > 0.0) {
            add(">x bound", Box::new(x_bound));
        }
        if !by_point {
            add(">rounds", Box::new(|_, row| row.rounds.to_string()));
            add(
                ">segment",
                Box::new(|_, row| or_dash(row.segment.map(show_bytes))),
            );
            add(">messages", Box::new(|_, row| row.messages.to_string()));
            add(">volume", Box::new(|_, row| show_bytes(row.volume)));
        } else if shown.is_empty() {
            let second = |at: &At| at.get(1).map(|row| row.algorithm.clone());
            add("second", Box::new(move |at, _| or_dash(second(at))));
            add(
                ">x best",
                Box::new(move |at, _| or_dash(at.get(1).map(|row| x_best(at, row)))),
            );
        } else {
            for name in shown {
                let cell = move |at: &At, _: &SweepRow| {
                    let mut rows = at.iter();
                    let row = rows.find(|row| row.algorithm == name);
                    or_dash(row.map(|row| x_best(at, row)))
                };
                add(&format!(">x {name}"), Box::new(cell));
            }
        }
        let at = points.into_iter().map(|point| self.sweep.at(point));
        let rows = at.flat_map(|at| {
            let shown = if by_point { 1 } else { at.len() };
            let row = |row| columns.iter().map(|(_, cell)| cell(&at, row)).collect();
            at[..shown]
                .iter()
                .map(|of| row(of))
                .collect::<Vec<Vec<String>>>()
        });
        let rows = rows.collect();
        (columns.into_iter().map(|(name, _)| name).collect(), rows)
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
