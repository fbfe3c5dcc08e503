//! Tables as papers print them.

use std::borrow::Borrow;

use oneport_pictures::{Quantity, Sweep};

use crate::forms::AlgorithmNames;
use crate::output::escape;
use crate::prelude::*;

/// A table as papers print it.
pub(crate) struct PaperTable {
    titles: Vec<String>,
    is_numeric: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl PaperTable {
    /// The rows of a table, without what the row above has, too.
    pub(crate) fn of<R>(columns: &Columns<R>, rows: &[impl Borrow<R>]) -> PaperTable {
        let cells = rows.iter().map(|row| columns.cells(row.borrow()));
        let mut cells: Vec<_> = cells.collect();
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
        PaperTable {
            is_numeric: columns.iter().map(|column| column.is_numeric).collect(),
            titles: columns.titles(),
            rows: cells,
        }
    }

    /// A table with a row for each number of ranks, and distribution, and a column for each size,
    /// of each algorithm that the other tables have a column of; where these are none, of the
    /// leading ones.
    pub(crate) fn by_ranks_and_sizes(
        sweep: &Sweep,
        algorithms: &AlgorithmNames,
        quantity: Quantity,
    ) -> Result<PaperTable> {
        if sweep.rows.iter().any(|row| row.late.is_some()) {
            bail!(
                "a table of ranks by sizes has no place for delays: leave --show or the file out"
            );
        }
        let (names, leaders) = (named(sweep, algorithms), sweep.leaders());
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

    /// The table below a comment.
    pub(super) fn tex(&self, comment: &str) -> String {
        let line = |cells: Vec<String>| format!("{} \\\\\n", cells.join(" & "));
        let side = self.is_numeric.iter();
        let side: String = side.map(|&is| if is { 'r' } else { 'l' }).collect();
        let titles = self
            .titles
            .iter()
            .map(|title| match title.strip_prefix("x ") {
                Some(of) => format!("$\\times$ {}", escape::tex(of)),
                None => escape::tex(title),
            });
        let time = |text: &str| match text.strip_suffix(" us") {
            Some(number) => format!("{}~$\\mu$s", escape::tex(number)),
            None => escape::tex(text),
        };
        // An interval has two.
        let cell = |cell: &String| match cell.split_once(" - ") {
            _ if cell == "-" => "--".to_string(),
            Some((low, high)) => format!("{} -- {}", time(low), time(high)),
            None => time(cell),
        };
        let rows = self.rows.iter();
        let rows: String = rows
            .map(|row| line(row.iter().map(cell).collect()))
            .collect();
        format!(
            "% {}\n\\begin{{tabular}}{{{side}}}\n\\toprule\n{}\\midrule\n{rows}\\bottomrule\n\\end{{tabular}}\n",
            escape::visible(comment),
            line(titles.collect())
        )
    }
}

/// The algorithms that have columns of their own.
pub(super) fn named<'s>(sweep: &'s Sweep, algorithms: &AlgorithmNames) -> Vec<&'s str> {
    /// More algorithms than these have none, but for those from files and those that were asked
    /// for by name.
    const MAX_COLUMNS: usize = 5;
    let names = sweep.algorithms();
    let own = sweep.rows.iter().filter(|row| row.own);
    let own: BTreeSet<&str> = own.map(|row| &*row.algorithm).collect();
    let few = !algorithms.is_open() || names.len() <= MAX_COLUMNS;
    let has_column = |name: &&str| few || own.contains(name);
    names.into_iter().filter(has_column).collect()
}

pub(super) fn sweep_time(sweep: &Sweep, row: &SweepRow) -> String {
    match row.median {
        Some(median) => show_ns(median),
        None => sweep.unit.show(row.time),
    }
}

/// Gives all numbers of a column as many decimals as that with the most has, if all are plain
/// numbers, and none so small that the others would get digits that nobody has found.
fn align(rows: &mut [Vec<String>], column: usize) {
    const MAX_DECIMALS: usize = 4;
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
    if most == 0 || most > MAX_DECIMALS || !all().all(is_plain) {
        return;
    }
    for cell in rows.iter_mut().map(|row| &mut row[column]) {
        if let Ok(value) = cell.parse::<f64>() {
            *cell = format!("{value:.most$}");
        }
    }
}
