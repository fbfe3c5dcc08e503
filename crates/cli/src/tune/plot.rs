//! Log-log plot in text.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;
use oneport_measure::tune::Trial;

use crate::units::{TimeUnit, show_bytes};

const WIDTH: usize = 61;
const HEIGHT: usize = 17;

/// Plots time over vector size, each algorithm with its best segment size. For a single vector
/// size, plots time over segment size.
pub(super) fn plot(out: &mut dyn Write, rows: &[Trial]) -> Result<()> {
    let one_size = rows.iter().all(|row| row.bytes == rows[0].bytes);
    let x_of = |row: &Trial| if one_size { row.segment } else { row.bytes };
    let mut series: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    for row in rows {
        if (one_size || row.best_segment) && x_of(row) > 0 && row.wall.median > 0 {
            let points = series.entry(&row.algorithm).or_default();
            points.push((x_of(row), row.wall.median));
        }
    }
    let points = || series.values().flatten();
    let range = |values: &dyn Fn(&(u64, u64)) -> u64| {
        Some((points().map(values).min()?, points().map(values).max()?))
    };
    let (Some(x), Some(y)) = (range(&|p| p.0), range(&|p| p.1)) else {
        return Ok(());
    };
    let (x, y) = (Axis::new(x, WIDTH), Axis::new(y, HEIGHT));
    let mut grid = vec![vec![' '; WIDTH]; HEIGHT];
    let marks: Vec<char> = ('A'..='Z').collect();
    let mark = |i: usize| marks[i % marks.len()];
    for points in series.values() {
        for pair in points.windows(2) {
            line(&mut grid, &x, &y, pair[0], pair[1]);
        }
    }
    for (i, points) in series.values().enumerate() {
        for &(px, py) in points {
            let cell = &mut grid[HEIGHT - 1 - y.place(py)][x.place(px)];
            // Several algorithms may share one cell.
            *cell = if cell.is_alphabetic() { '*' } else { mark(i) };
        }
    }
    let over = if one_size { "segment size" } else { "size" };
    writeln!(out, "time over {over}")?;
    for (row, cells) in grid.iter().enumerate() {
        let label = if row.is_multiple_of(4) {
            TimeUnit::Nanoseconds.show(rounded(y.value(HEIGHT - 1 - row)))
        } else {
            String::new()
        };
        let cells: String = cells.iter().collect();
        writeln!(out, "{}", format!("{label:>9} |{cells}").trim_end())?;
    }
    writeln!(out, "{:>9} +{}", "", "-".repeat(WIDTH))?;
    let (first, last) = (show_bytes(x.low), show_bytes(x.high));
    if x.low == x.high {
        writeln!(out, "{:>9}  {:^WIDTH$}", "", first)?;
    } else {
        writeln!(
            out,
            "{:>9}  {first}{last:>rest$}",
            "",
            rest = WIDTH - first.len()
        )?;
    }
    let legend: Vec<_> = series
        .keys()
        .enumerate()
        .map(|(i, name)| format!("{} {name}", mark(i)))
        .collect();
    writeln!(out, "\n{}; * several", legend.join(", "))?;
    Ok(())
}

/// A logarithmic axis with a number of cells.
struct Axis {
    low: u64,
    high: u64,
    places: usize,
}

impl Axis {
    fn new((low, high): (u64, u64), places: usize) -> Axis {
        Axis { low, high, places }
    }

    fn place(&self, value: u64) -> usize {
        if self.low == self.high {
            return self.places / 2;
        }
        let part =
            (value as f64 / self.low as f64).ln() / (self.high as f64 / self.low as f64).ln();
        ((part * (self.places - 1) as f64).round() as usize).min(self.places - 1)
    }

    fn value(&self, place: usize) -> f64 {
        let ratio = self.high as f64 / self.low as f64;
        self.low as f64 * ratio.powf(place as f64 / (self.places - 1) as f64)
    }
}

/// Draws dots between two points.
fn line(grid: &mut [Vec<char>], x: &Axis, y: &Axis, from: (u64, u64), to: (u64, u64)) {
    let (x0, x1) = (x.place(from.0) as f64, x.place(to.0) as f64);
    let (y0, y1) = (y.place(from.1) as f64, y.place(to.1) as f64);
    let steps = (x1 - x0).abs().max((y1 - y0).abs()) as usize;
    for i in 1..steps {
        let part = i as f64 / steps as f64;
        let column = (x0 + part * (x1 - x0)).round() as usize;
        let row = (y0 + part * (y1 - y0)).round() as usize;
        grid[HEIGHT - 1 - row][column] = '.';
    }
}

/// Rounds to three significant digits.
fn rounded(value: f64) -> f64 {
    let scale = 10f64.powi(2 - value.abs().max(1.0).log10().floor() as i32);
    (value * scale).round() / scale
}
