//! Sliding minima over splits: for the columns that are filled together, and for the current row.

use std::ops::Range;

use super::{NEVER, QuadraticCosts, min_time};
use crate::machine::numbers::id;
use crate::plan::gather::optimal::table::{TILE, place};

/// State of the columns that are filled together.
#[derive(Debug)]
pub(super) struct Columns<const N: usize> {
    /// Number of the first of these columns, and its index in the table.
    pub(super) first: usize,
    pub(super) place: usize,
    /// By class of the split and column: the crossover, the first split at which the left part
    /// takes at least as long as the right one. With a given root, only splits whose right part the
    /// root receives count.
    pub(super) crossover: [[u32; TILE]; N],
    /// The same for splits whose left part the root receives.
    pub(super) crossover_left: [[u32; TILE]; N],
    /// By column: the best time of the options that need no window.
    pub(super) best: [f64; TILE],
    /// By column: the latency plus the time to send all blocks up to its rank.
    pub(super) sending: [f64; TILE],
    pub(super) windows: Windows<N>,
}

/// Windows of the columns, by class of the split and column: the splits from the current row up to
/// a crossover. The time of a split is that with the root in the right part, without the terms that
/// depend only on the row.
#[derive(Debug)]
pub(super) struct Windows<const N: usize> {
    /// `upto` holds the splits from here on, in the group in which the window ends.
    pub(super) low: [[u32; TILE]; N],
    /// The minimum time of all splits below `low`.
    pub(super) before: [[f64; TILE]; N],
    /// The minimum time of the splits in the current group, the one of the current row.
    pub(super) present: [[f64; TILE]; N],
    /// By split within its group, and column: the minimum time of the splits from `low` up to this
    /// one.
    pub(super) upto: [Vec<f64>; N],
    /// By group, and column: the minimum time.
    pub(super) groups: [Vec<f64>; N],
}

/// State of a triangle or rectangle that is being filled.
#[derive(Debug)]
pub(super) struct TileState<const N: usize> {
    pub(super) columns: Columns<N>,
    /// For the current row, by class of the column and of the split: the minimum time of the splits
    /// from one up to the last of its group that has joined.
    from: [[[f64; TILE]; N]; N],
    /// By class of the split: for each row, the minimum time in each group of splits.
    groups: [Vec<f64>; N],
    count: usize,
}

/// The window of the current row: the splits from a crossover up to the current column. The time of
/// a split is that with the root in the left part, without the terms that depend only on the
/// column.
#[derive(Debug)]
pub(super) struct RowWindow<const N: usize> {
    i: usize,
    /// By class of the column and of the split: `TileState::from` holds the splits up to here, in
    /// the group in which the window starts.
    high: [[usize; N]; N],
    /// The minimum time of all splits above `high`.
    after: [[f64; N]; N],
    /// By class of the split: the minimum time of the splits in the current group.
    present: [f64; N],
}

impl<const N: usize> TileState<N> {
    pub(super) fn new(end: usize) -> Self {
        let count = end.div_ceil(TILE);
        TileState {
            columns: Columns::new(end),
            from: [[[NEVER; TILE]; N]; N],
            groups: std::array::from_fn(|_| vec![NEVER; end * count]),
            count,
        }
    }
}

impl<const N: usize> RowWindow<N> {
    #[inline(always)]
    pub(super) fn new(i: usize) -> Self {
        RowWindow {
            i,
            high: [[0; N]; N],
            after: [[NEVER; N]; N],
            present: [NEVER; N],
        }
    }

    /// Adds a split. It belongs to the current group of splits if `to_present`, else to the one
    /// before.
    #[inline(always)]
    pub(super) fn join(&mut self, class: usize, time: f64, to_present: bool) {
        for after in &mut self.after {
            after[class] = min_time(after[class], time);
        }
        if to_present {
            self.present[class] = min_time(self.present[class], time);
        }
    }
}

impl<const N: usize> Columns<N> {
    pub(super) fn new(end: usize) -> Self {
        let groups = end.div_ceil(TILE);
        let vec = |count: usize| std::array::from_fn(|_| vec![NEVER; count * TILE]);
        Columns {
            first: 0,
            place: 0,
            crossover: [[0; TILE]; N],
            crossover_left: [[0; TILE]; N],
            best: [NEVER; TILE],
            sending: [NEVER; TILE],
            windows: Windows {
                low: [[0; TILE]; N],
                before: [[NEVER; TILE]; N],
                present: [[NEVER; TILE]; N],
                upto: vec(end.min(TILE)),
                groups: vec(groups),
            },
        }
    }

    pub(super) fn start(
        &mut self,
        program: &QuadraticCosts<N>,
        range: Range<usize>,
        crossover: impl Fn(usize) -> (usize, usize),
    ) {
        self.first = range.start / TILE * TILE;
        self.place = place(0, self.first);
        for j in range {
            let c = j - self.first;
            let (right, left) = crossover(j);
            self.sending[c] = program.alpha + program.sent[j + 1];
            for class in 0..N {
                self.crossover[class][c] = id(right);
                self.crossover_left[class][c] = id(left);
            }
        }
        self.windows.low = [[u32::MAX; TILE]; N];
        self.windows.before = [[NEVER; TILE]; N];
        self.windows.present = [[NEVER; TILE]; N];
    }

    #[inline(always)]
    pub(super) fn at(&self, i: usize, j: usize) -> usize {
        self.place + i * TILE + j - self.first
    }
}

impl<const N: usize> Windows<N> {
    /// Prepares for the splits at row `i` to join.
    #[inline(always)]
    pub(super) fn enter_row(&mut self, i: usize) {
        if i % TILE == TILE - 1 {
            let group = i / TILE + 1;
            for (groups, present) in self.groups.iter_mut().zip(&mut self.present) {
                if let Some(group) = groups.get_mut(group * TILE..(group + 1) * TILE) {
                    group.copy_from_slice(present);
                }
                *present = [NEVER; TILE];
            }
        }
    }
}

impl<const N: usize> QuadraticCosts<N> {
    /// The minimum time of the splits of a column from `i` up to, but excluding, `end`.
    #[inline(always)]
    pub(super) fn min_below(
        &self,
        cells: &[f64],
        columns: &mut Columns<N>,
        class: usize,
        c: usize,
        i: usize,
        end: usize,
    ) -> f64 {
        if end <= columns.windows.low[class][c] as usize {
            self.rebuild_column(cells, columns, class, c, i, end);
        }
        let Windows { upto, before, .. } = &columns.windows;
        min_time(upto[class][(end - 1) % TILE * TILE + c], before[class][c])
    }

    /// Rebuilds the window of a column for the group of splits in which it now ends.
    #[inline(never)]
    fn rebuild_column(
        &self,
        cells: &[f64],
        columns: &mut Columns<N>,
        class: usize,
        c: usize,
        i: usize,
        end: usize,
    ) {
        let Columns { place, windows, .. } = columns;
        let (now, group) = (i / TILE, (end - 1) / TILE);
        let low = i.max(group * TILE);
        let mut min = NEVER;
        for k in low..end {
            if self.class(k) == class {
                let time = cells[*place + (k + 1) * TILE + c] + self.sent[k + 1];
                min = min_time(min, time);
            }
            windows.upto[class][k % TILE * TILE + c] = min;
        }
        windows.low[class][c] = id(low);
        windows.before[class][c] = if now == group {
            NEVER
        } else {
            let groups = (now + 1..group).map(|g| windows.groups[class][g * TILE + c]);
            groups.fold(windows.present[class][c], min_time)
        };
    }

    /// The minimum time of the splits of a row from `start` up to, but excluding, `j`.
    #[inline(always)]
    pub(super) fn min_from(
        &self,
        cells: &[f64],
        work: &mut TileState<N>,
        line: &mut RowWindow<N>,
        class: usize,
        j: usize,
        start: usize,
    ) -> f64 {
        let cj = self.class(j);
        if start > line.high[cj][class] {
            let high = (start / TILE * TILE + TILE - 1).min(j - 1);
            line.high[cj][class] = high;
            let present = line.present[class];
            line.after[cj][class] =
                self.rebuild_row(cells, work, line.i, (cj, class), start..high + 1, present);
        }
        min_time(work.from[cj][class][start % TILE], line.after[cj][class])
    }

    /// Rebuilds the window of a row for the group of splits in which it now starts. Returns the
    /// minimum time of the later splits.
    #[inline(never)]
    fn rebuild_row(
        &self,
        cells: &[f64],
        work: &mut TileState<N>,
        i: usize,
        (cj, class): (usize, usize),
        splits: Range<usize>,
        present: f64,
    ) -> f64 {
        let start = splits.start;
        let times = &cells[self.starts[start] + i * TILE..][..splits.len()];
        let sent = &self.sent[start + 1..][..splits.len()];
        let from = &mut work.from[cj][class][start % TILE..][..splits.len()];
        let mut min = NEVER;
        for k in (0..times.len()).rev() {
            if self.class(start + k) == class {
                min = min_time(min, times[k] - sent[k]);
            }
            from[k] = min;
        }
        let (now, group) = (work.columns.first / TILE, start / TILE);
        if group == now {
            return NEVER;
        }
        let groups = &work.groups[class][i * work.count..][group + 1..now];
        groups.iter().copied().fold(present, min_time)
    }

    #[inline(always)]
    pub(super) fn finish_row(
        &self,
        cells: &[f64],
        work: &mut TileState<N>,
        mut line: RowWindow<N>,
        end: usize,
    ) {
        let (i, k) = (line.i, end - 1);
        if k == i {
            return;
        }
        let time = cells[work.columns.at(i, k)] - self.sent[end];
        line.join(self.class(k), time, true);
        for (class, time) in line.present.into_iter().enumerate() {
            work.groups[class][i * work.count + k / TILE] = time;
        }
    }
}
