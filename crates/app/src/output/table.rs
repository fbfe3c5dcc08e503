//! Tables and summaries, which fit the terminal.

use std::borrow::Borrow;
use std::fmt::Write;

use anstyle::{AnsiColor, Color, Style};
use anyhow::Result;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets};
use oneport_pictures::Columns;

use super::escape;
use crate::answer::Lines;

const PADDING: (u16, u16) = (0, 2);

/// Prints a table of aligned columns without rules.
pub(crate) fn table<R>(
    out: &mut Lines,
    columns: &Columns<R>,
    rows: impl IntoIterator<Item = impl Borrow<R>>,
) -> Result<()> {
    styled(out, columns, cells_of(columns, rows), |_| None)
}

/// As [`table`], with one row for all that differ in their names alone, which stand in the first
/// column: they are listed there.
pub(crate) fn table_of_names<R>(
    out: &mut Lines,
    columns: &Columns<R>,
    rows: impl IntoIterator<Item = impl Borrow<R>>,
    style: impl Fn(usize) -> Option<Style>,
) -> Result<()> {
    /// A list of names is broken before it is wider, unless one name is.
    const MAX_WIDTH: usize = 30;
    let mut folded: Vec<Vec<String>> = Vec::new();
    for mut cells in cells_of(columns, rows) {
        let equal = folded.iter_mut().find(|row| row[1..] == cells[1..]);
        let Some(equal) = equal else {
            folded.push(cells);
            continue;
        };
        let (names, name) = (&mut equal[0], cells.swap_remove(0));
        let last = names.lines().next_back().unwrap_or_default();
        let fits = last.len() + ", ".len() + name.len() < MAX_WIDTH;
        *names += if fits { ", " } else { ",\n" };
        *names += &name;
    }
    styled(out, columns, folded, style)
}

const BEST: Style = Style::new().bold();
pub(crate) const WRONG: Style = Style::new().fg_color(Some(Color::Ansi(AnsiColor::Red)));

pub(crate) fn first_is_best(row: usize) -> Option<Style> {
    (row == 0).then_some(BEST)
}

/// As [`table`]; `style` gives the style of a row, if it has one.
pub(crate) fn table_with<R>(
    out: &mut Lines,
    columns: &Columns<R>,
    rows: impl IntoIterator<Item = impl Borrow<R>>,
    style: impl Fn(usize) -> Option<Style>,
) -> Result<()> {
    styled(out, columns, cells_of(columns, rows), style)
}

fn styled<R>(
    out: &mut Lines,
    columns: &Columns<R>,
    rows: Vec<Vec<String>>,
    style: impl Fn(usize) -> Option<Style>,
) -> Result<()> {
    // By line below the header: its row.
    let heights = rows.iter().map(|row| row[0].lines().count().max(1));
    let of_line = heights
        .enumerate()
        .flat_map(|(row, n)| std::iter::repeat_n(row, n));
    let of_line: Vec<usize> = of_line.collect();
    let mut table = plain_table(columns, rows);
    // What does not fit is left out from the right, and named below.
    let widths = table.column_max_content_widths();
    let widths: Vec<usize> = widths.iter().map(|&w| usize::from(w + PADDING.1)).collect();
    let mut width = widths.iter().sum::<usize>() - usize::from(PADDING.1);
    let (mut left_out, room) = (Vec::new(), out.caller.room());
    for (column, title) in columns.titles().into_iter().enumerate().skip(3).rev() {
        if room.is_none_or(|room| width <= usize::from(room)) {
            break;
        }
        width -= widths[column];
        left_out.insert(0, title);
        if let Some(column) = table.column_mut(column) {
            column.set_constraint(ColumnConstraint::Hidden);
        }
    }
    let terminal = out.caller.terminal.as_ref();
    let coloured = terminal.is_some_and(|terminal| terminal.is_coloured());
    for (line, text) in table.lines().enumerate() {
        let text = text.trim_end();
        // The header has the first line.
        let row = line.checked_sub(1).filter(|_| coloured);
        let row = row.and_then(|line| of_line.get(line).copied());
        match row.and_then(&style) {
            Some(style) => writeln!(out, "{style}{text}{style:#}")?,
            None => writeln!(out, "{text}")?,
        }
    }
    if !left_out.is_empty() {
        writeln!(out, "({}: where lines are longer)", left_out.join(", "))?;
    }
    Ok(())
}

/// Prints a table without rules whose cells are wrapped to the columns' widths.
pub(crate) fn wrapped_table<R>(
    out: &mut Lines,
    columns: &Columns<R>,
    rows: impl IntoIterator<Item = impl Borrow<R>>,
    widths: &[u16],
) -> Result<()> {
    let mut table = plain_table(columns, cells_of(columns, rows));
    arranged(&mut table, widths);
    print_table(out, &table)
}

fn arranged(table: &mut Table, widths: &[u16]) {
    table.set_content_arrangement(ContentArrangement::Dynamic);
    for (column, &width) in table.column_iter_mut().zip(widths) {
        column.set_padding(PADDING);
        let (_, padding) = PADDING;
        column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width + padding)));
    }
}

fn cells_of<R>(
    columns: &Columns<R>,
    rows: impl IntoIterator<Item = impl Borrow<R>>,
) -> Vec<Vec<String>> {
    let visible = |cell: String| escape::visible(&cell).into_owned();
    let cells = |row: &R| columns.cells(row).into_iter().map(visible).collect();
    rows.into_iter().map(|row| cells(row.borrow())).collect()
}

fn plain_table<R>(columns: &Columns<R>, rows: Vec<Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(columns.titles());
    table.add_rows(rows);
    for (own, column) in table.column_iter_mut().zip(columns.iter()) {
        own.set_padding(PADDING);
        if column.is_numeric {
            own.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn print_table(out: &mut Lines, table: &Table) -> Result<()> {
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Prints `name   value` lines with the names padded to equal width.
pub(crate) fn summary(out: &mut Lines, summary: &[(&str, String)]) -> Result<()> {
    let width = summary
        .iter()
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or(0);
    for (name, value) in summary {
        writeln!(out, "{name:width$}  {value}")?;
    }
    Ok(())
}

/// As [`summary`], indented, with names and values wrapped to the columns of the terminal.
pub(crate) fn wrapped_summary(
    out: &mut Lines,
    indent: u16,
    summary: &[(&str, String)],
) -> Result<()> {
    /// Of names.
    const MAX_WIDTH: u16 = 36;
    let names = summary.iter().map(|(name, _)| name.len());
    let width = u16::try_from(names.max().unwrap_or(0)).unwrap_or(MAX_WIDTH);
    let width = indent + width.min(MAX_WIDTH);
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for (name, value) in summary {
        table.add_row([name, value.as_str()]);
    }
    arranged(
        &mut table,
        &[width, out.caller.columns() - width - PADDING.1],
    );
    if let Some(names) = table.column_mut(0) {
        names.set_padding((indent, PADDING.1));
    }
    print_table(out, &table)
}
