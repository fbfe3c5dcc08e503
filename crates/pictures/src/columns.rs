//! Tables by their columns, whether they are printed or stand on a page.

use std::borrow::Borrow;
use std::fmt::Write as _;

use crate::svg::escape;

/// The columns of a table with a row for each `R`.
#[expect(
    missing_debug_implementations,
    reason = "functions have no form to be seen"
)]
pub struct Columns<'a, R>(Vec<Column<'a, R>>);

/// A column.
#[expect(
    missing_debug_implementations,
    reason = "functions have no form to be seen"
)]
pub struct Column<'a, R> {
    /// Its title.
    pub title: String,
    /// Whether it has numbers, which are aligned to the right.
    pub is_numeric: bool,
    cell: Box<dyn Fn(&R) -> String + 'a>,
}

impl<R> Default for Columns<'_, R> {
    fn default() -> Self {
        Columns(Vec::new())
    }
}

impl<'a, R> Columns<'a, R> {
    /// Adds a column with what `cell` shows of a row. A title that begins with `>` is one of
    /// numbers.
    #[must_use]
    pub fn add<T: ToString>(
        self,
        title: impl AsRef<str>,
        cell: impl Fn(&R) -> T + 'a,
    ) -> Columns<'a, R> {
        self.push(title.as_ref(), Box::new(move |row| cell(row).to_string()))
    }

    fn push(mut self, title: &str, cell: Box<dyn Fn(&R) -> String + 'a>) -> Columns<'a, R> {
        self.0.push(Column {
            title: title.trim_start_matches('>').to_string(),
            is_numeric: title.starts_with('>'),
            cell,
        });
        self
    }

    /// As [`add`](Self::add), if the column is wanted.
    #[must_use]
    pub fn add_if<T: ToString>(
        self,
        is_wanted: bool,
        title: impl AsRef<str>,
        cell: impl Fn(&R) -> T + 'a,
    ) -> Columns<'a, R> {
        if is_wanted {
            self.add(title, cell)
        } else {
            self
        }
    }

    /// The columns, from left to right.
    pub fn iter(&self) -> std::slice::Iter<'_, Column<'a, R>> {
        self.0.iter()
    }

    /// The titles of the columns.
    pub fn titles(&self) -> Vec<String> {
        self.iter().map(|column| column.title.clone()).collect()
    }

    /// What the columns show of a row.
    pub fn cells(&self, row: &R) -> Vec<String> {
        self.iter().map(|column| (column.cell)(row)).collect()
    }

    /// An HTML table in a box that scrolls. A row that is of a `class` looks so: `best`, `failed`.
    pub fn html(
        &self,
        id: &str,
        label: &str,
        rows: impl IntoIterator<Item = impl Borrow<R>>,
        class: impl Fn(&R) -> Option<&'static str>,
    ) -> String {
        let line = |kind: &str, cells: Vec<String>| {
            let cells = self.iter().zip(cells).map(|(column, cell)| {
                let class = if column.is_numeric {
                    ""
                } else {
                    " class=\"name\""
                };
                format!("<{kind}{class}>{cell}</{kind}>")
            });
            cells.collect::<String>() + "</tr>"
        };
        let mut html = format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\"><table id=\"{id}\">\n<thead><tr>{}</thead>\n<tbody>\n",
            line("th", self.titles())
        );
        for row in rows {
            let row = row.borrow();
            let class = class(row).map_or(String::new(), |class| format!(" class=\"{class}\""));
            let cells = self.cells(row).iter().map(|cell| escape(cell)).collect();
            let _ = writeln!(html, "<tr{class}>{}", line("td", cells));
        }
        html + "</tbody></table></div>\n"
    }
}
