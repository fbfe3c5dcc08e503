//! The table of a sweep, and its forms for papers.

use std::rc::Rc;

use oneport_pictures::{Quantity, Sweep};

use super::Table;
use crate::output::escape;
use crate::prelude::*;

/// The rows at a point, fastest first, and one of them; of the leading one, how many are as fast.
type Row<'a> = (Rc<Vec<&'a SweepRow>>, &'a SweepRow, usize);

/// The first row that is slower than the leading one and those as fast.
fn second<'r, 'a>((at, leader, equals): &'r Row<'a>) -> Option<&'r &'a SweepRow> {
    let mut others = at.iter().filter(|row| row.algorithm != leader.algorithm);
    others.nth(*equals)
}

impl Table<'_> {
    /// The algorithms that have columns of their own.
    fn named(&self) -> Vec<&str> {
        /// More algorithms than these have none, but for those from files and those that were
        /// asked for by name.
        const MAX_COLUMNS: usize = 5;
        let names = self.sweep.algorithms();
        let own = self.sweep.rows.iter().filter(|row| row.own);
        let own: BTreeSet<&str> = own.map(|row| &*row.algorithm).collect();
        let few = !self.common.algorithm.is_open() || names.len() <= MAX_COLUMNS;
        let has_column = |name: &&str| few || own.contains(name);
        names.into_iter().filter(has_column).collect()
    }

    /// Columns and rows of the table: a row for each point of a sweep with what is fastest there,
    /// or for each algorithm of one point.
    pub(super) fn columns(&self) -> (Columns<'_, Row<'_>>, Vec<Row<'_>>) {
        let points = self.sweep.points();
        let many_ranks = points.iter().any(|point| point.ranks != points[0].ranks);
        let many_sizes = points.iter().any(|point| point.bytes != points[0].bytes);
        let many_dists = points.iter().any(|point| point.dist != points[0].dist);
        let one_each = points.iter().all(|&point| self.sweep.at(point).len() == 1);
        let by_point = points.len() > 1 && !one_each;
        let shown = self.named();

        let unit = self.sweep.unit;
        let has = |of: fn(&SweepRow) -> bool| self.sweep.rows.iter().any(of);
        let has_late = has(|row| row.late.is_some());
        let show = move |time: Option<f64>| or_dash(time.map(|time| unit.show(time)));
        let name = if by_point { "fastest" } else { "algorithm" };
        let several = by_point && shown.is_empty();
        let columns = Columns::<Row>::default()
            .add_if(many_ranks, ">ranks", |(_, row, _)| row.ranks)
            .add_if(many_dists, "blocks", |(_, row, _)| {
                or_dash(row.dist.as_ref())
            })
            .add_if(many_sizes, ">size", |(_, row, _)| show_bytes(row.bytes))
            .add_if(has_late, ">late by", move |(_, row, _)| show(row.late))
            .add(name, |(_, row, equals)| match equals {
                0 => row.algorithm.clone(),
                1 => format!("{} (and 1 other)", row.algorithm),
                _ => format!("{} (and {equals} others)", row.algorithm),
            })
            .add(">time", |(_, row, _)| sweep_time(&self.sweep, row))
            .add_if(has_late, ">late rank", |(_, row, _)| or_dash(row.late_rank))
            .add_if(!by_point, ">x best", move |(at, row, _)| {
                x_best(at, Some(row))
            })
            .add_spread(&self.sweep, |&(_, row, _)| row)
            .add_if(
                has(|row| row.bound > 0.0),
                ">x bound",
                move |(_, row, _)| over(row.time, row.bound),
            )
            .add_if(!by_point, ">rounds", |(_, row, _)| row.rounds)
            .add_if(!by_point, ">segment", |(_, row, _)| {
                or_dash(row.segment.map(show_bytes))
            });
        let columns = if by_point {
            let columns = columns
                .add_if(several, "second", |row| {
                    or_dash(second(row).map(|row| &row.algorithm))
                })
                .add_if(several, ">x best", move |row| x_best(&row.0, second(row)));
            add_named(columns, shown, has_late, unit)
        } else {
            columns.add_traffic(|&(_, row, _)| row)
        };
        (columns, self.rows(by_point))
    }

    /// A row for each point with what is fastest there, or for each algorithm.
    fn rows(&self, by_point: bool) -> Vec<Row<'_>> {
        let rows = self.sweep.leaders().into_iter().flat_map(|leader| {
            let at = Rc::new(self.sweep.at(leader.row.place()));
            let shown = if by_point {
                vec![(leader.row, leader.equals)]
            } else {
                at.iter().map(|&row| (row, 0)).collect()
            };
            let rows = shown.into_iter();
            rows.map(move |(row, equals)| (Rc::clone(&at), row, equals))
        });
        rows.collect()
    }

    /// What a paper has of it: the rows of the table, without what the row above has, too; or with
    /// `--show` a row for each number of ranks.
    pub(super) fn for_papers(&self) -> Result<PaperTable> {
        if let Some(show) = self.args.show {
            return self.by_ranks_and_sizes(show);
        }
        let (columns, rows) = self.columns();
        let mut cells: Vec<_> = rows.iter().map(|row| columns.cells(row)).collect();
        for column in 0..columns.titles().len() {
            align(&mut cells, column);
        }
        if columns
            .titles()
            .first()
            .is_some_and(|title| title == "ranks")
        {
            let mut before = String::new();
            for row in &mut cells {
                if row[0] == before {
                    row[0].clear()
                } else {
                    before.clone_from(&row[0])
                }
            }
        }
        Ok(PaperTable {
            is_numeric: columns.iter().map(|column| column.is_numeric).collect(),
            titles: columns.titles(),
            rows: cells,
        })
    }

    /// A table with a row for each number of ranks, and distribution, and a column for each size,
    /// of each algorithm that the other tables have a column of; where these are none, of the
    /// leading ones.
    fn by_ranks_and_sizes(&self, quantity: Quantity) -> Result<PaperTable> {
        let sweep = &self.sweep;
        if sweep.rows.iter().any(|row| row.late.is_some()) {
            bail!(
                "a table of ranks by sizes has no place for delays: leave --show or the file out"
            );
        }
        let (names, leaders) = (self.named(), sweep.leaders());
        let lines = sweep
            .rows
            .iter()
            .map(|row| (row.dist.as_deref(), row.ranks));
        let lines: BTreeSet<(Option<&str>, usize)> = lines.collect();
        let has_dists = lines.iter().any(|(dist, _)| dist.is_some());
        let sizes: BTreeSet<u64> = sweep.rows.iter().map(|row| row.bytes).collect();
        let show = |row: &SweepRow| {
            let value = sweep.quantity(row, quantity);
            or_dash(value.map(|value| match quantity {
                Quantity::Time => sweep_time(sweep, row),
                _ => format!("{value:.3}"),
            }))
        };
        let cell = |name: Option<&str>, line: (Option<&str>, usize), bytes: u64| {
            let is_here =
                |row: &SweepRow| (row.dist.as_deref(), row.ranks) == line && row.bytes == bytes;
            let Some(name) = name else {
                let leader = leaders.iter().find(|leader| is_here(leader.row));
                return or_dash(leader.map(|leader| match quantity {
                    Quantity::Ratio => leader.row.algorithm.clone(),
                    _ => show(leader.row),
                }));
            };
            let mut rows = sweep.rows.iter();
            or_dash(
                rows.find(|row| is_here(row) && row.algorithm == name)
                    .map(show),
            )
        };
        let subjects = if names.is_empty() {
            vec![None]
        } else {
            names.into_iter().map(Some).collect()
        };
        let several = subjects.len() > 1;
        let titles = several.then(|| "algorithm".to_string()).into_iter();
        let titles = titles.chain(has_dists.then(|| "blocks".to_string()));
        let titles = titles.chain(["ranks".to_string()]);
        let titles: Vec<String> = titles.chain(sizes.iter().map(|&m| show_bytes(m))).collect();
        let rows = subjects.iter().flat_map(|&name| {
            lines
                .iter()
                .enumerate()
                .map(move |(i, &line)| (name, i, line))
        });
        let rows = rows.map(|(name, i, line)| {
            let first = several.then(|| name.filter(|_| i == 0).unwrap_or_default());
            let first = first.map(str::to_string).into_iter();
            let first = first.chain(line.0.map(str::to_string));
            let cells = sizes.iter().map(|&bytes| cell(name, line, bytes));
            first.chain([line.1.to_string()]).chain(cells).collect()
        });
        let words = usize::from(several) + usize::from(has_dists);
        Ok(PaperTable {
            is_numeric: (0..titles.len()).map(|i| i >= words).collect(),
            rows: rows.collect(),
            titles,
        })
    }

    pub(super) fn tex(&self) -> Result<String> {
        let line = |cells: Vec<String>| format!("{} \\\\\n", cells.join(" & "));
        let table = self.for_papers()?;
        let side = table.is_numeric.iter();
        let side: String = side.map(|&is| if is { 'r' } else { 'l' }).collect();
        let titles = table
            .titles
            .iter()
            .map(|title| match title.strip_prefix("x ") {
                Some(of) => format!("$\\times$ {}", escape::tex(of)),
                None => escape::tex(title),
            });
        let cell = |cell: &String| match cell.strip_suffix(" us") {
            _ if cell == "-" => "--".to_string(),
            Some(number) => format!("{}~$\\mu$s", escape::tex(number)),
            None => escape::tex(cell),
        };
        let rows = table.rows.iter();
        let rows: String = rows
            .map(|row| line(row.iter().map(cell).collect()))
            .collect();
        let comment = format!("{}; {}; {}", self.title(), self.costs, self.caller.command);
        Ok(format!(
            "% {}\n\\begin{{tabular}}{{{side}}}\n\\toprule\n{}\\midrule\n{rows}\\bottomrule\n\\end{{tabular}}\n",
            escape::visible(&comment),
            line(titles.collect())
        ))
    }
}

/// A table as papers print it.
pub(super) struct PaperTable {
    titles: Vec<String>,
    is_numeric: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl PaperTable {
    pub(super) fn markdown(&self) -> String {
        let line = |cells: &[String]| {
            let cells = cells.iter().map(|cell| escape::markdown(cell));
            format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
        };
        let rule = |&is_numeric: &bool| if is_numeric { "--:" } else { "---" }.to_string();
        let rule = self.is_numeric.iter().map(rule);
        let head = line(&self.titles) + &line(&rule.collect::<Vec<_>>());
        head + &self.rows.iter().map(|row| line(row)).collect::<String>()
    }
}

fn sweep_time(sweep: &Sweep, row: &SweepRow) -> String {
    match row.median {
        Some(median) => show_ns(median),
        None => sweep.unit.show(row.time),
    }
}

/// Gives all numbers of a column as many decimals as that with the most has, if all are plain
/// numbers.
fn align(rows: &mut [Vec<String>], column: usize) {
    let is_plain = |cell: &str| cell.chars().all(|c| c.is_ascii_digit() || c == '.');
    let decimals = |cell: &str| {
        cell.split_once('.')
            .map_or(0, |(_, decimals)| decimals.len())
    };
    let all = || {
        rows.iter()
            .map(|row| &*row[column])
            .filter(|&cell| cell != "-")
    };
    let most = all().map(decimals).max().unwrap_or(0);
    if most == 0 || !all().all(is_plain) {
        return;
    }
    for cell in rows.iter_mut().map(|row| &mut row[column]) {
        if let Ok(value) = cell.parse::<f64>() {
            *cell = format!("{value:.most$}");
        }
    }
}

/// The quotient, where there is one.
fn over(value: f64, by: f64) -> String {
    or_dash((by > 0.0).then(|| number(value / by, 4)))
}

/// How many times longer a row takes than the fastest one at its place.
fn x_best(at: &[&SweepRow], row: Option<&&SweepRow>) -> String {
    or_dash(row.map(|row| over(row.value(), at[0].value())))
}

/// Adds columns for each of these algorithms: over the fastest, and its least time where ranks are
/// late.
fn add_named<'a>(
    mut columns: Columns<'a, Row<'a>>,
    names: Vec<&'a str>,
    has_late: bool,
    unit: Unit,
) -> Columns<'a, Row<'a>> {
    for name in names {
        let is_named = move |row: &&&SweepRow| row.algorithm == name;
        columns = columns
            .add(format!(">x {name}"), move |(at, ..)| {
                x_best(at, at.iter().find(is_named))
            })
            .add_if(has_late, format!(">least {name}"), move |(at, ..)| {
                let least = at.iter().find(is_named).and_then(|row| row.least);
                or_dash(least.map(|time| unit.show(time)))
            });
    }
    columns
}
