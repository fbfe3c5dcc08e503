//! Sliding minima over splits, for the columns that are filled together and for the present row.

use std::ops::Range;

use super::{NEVER, Program, min_time};
use crate::plan::gather::optimal::table::{TILE, place};

/// What is known about the columns that are filled together.
#[derive(Debug)]
pub(super) struct Columns<const N: usize> {
    /// The first of them in the table, and in it.
    pub(super) first: usize,
    pub(super) place: usize,
    /// By class of the split and column: the first split at which the left part takes no less time
    /// than the right, of all; with a given root, of those at which the right part is
    /// received.
    pub(super) even: [[u32; TILE]; N],
    /// The same of those at which the left part is received.
    pub(super) even_left: [[u32; TILE]; N],
    /// By column: what is best of the options without a split.
    pub(super) best: [f64; TILE],
    /// By column: the latency, and what all blocks up to its rank take to send.
    pub(super) sending: [f64; TILE],
    pub(super) windows: Windows<N>,
}

/// By class of the split and column: splits from the present row up to before an even one, by what
/// they take with the root in the right part, but for what depends on the row alone.
#[derive(Debug)]
pub(super) struct Windows<const N: usize> {
    /// Splits from here on, in the group of the window's end, are in `upto`.
    pub(super) low: [[u32; TILE]; N],
    /// The least time of all splits before those.
    pub(super) before: [[f64; TILE]; N],
    /// The least time of the present group's splits.
    pub(super) present: [[f64; TILE]; N],
    /// By split within its group, and column: the least time of the splits from `low` up to this
    /// one.
    pub(super) upto: [Vec<f64>; N],
    /// By group, and column: the least time.
    pub(super) groups: [Vec<f64>; N],
}

/// What is remembered while columns are filled together.
#[derive(Debug)]
pub(super) struct Work<const N: usize> {
    pub(super) columns: Columns<N>,
    /// By class of the column and of the split, for the present row: the least time of the splits
    /// from one up to the last of its group that has joined.
    from: [[[f64; TILE]; N]; N],
    /// By class of the split: for each row, the least time in each group of splits.
    groups: [Vec<f64>; N],
    /// Groups in a row.
    count: usize,
}

/// The splits of a row from an even one up to the present column, by what they take with the root
/// in the left part, but for what depends on the column alone.
#[derive(Debug)]
pub(super) struct Line<const N: usize> {
    i: usize,
    /// By class of the column and of the split: splits up to here, in the group of the window's
    /// start, are in `from`.
    high: [[usize; N]; N],
    /// The least time of all splits after those.
    after: [[f64; N]; N],
    /// By class of the split: the least time of the present group's splits.
    present: [f64; N],
}

impl<const N: usize> Work<N> {
    /// For columns before `end`.
    pub(super) fn new(end: usize) -> Self {
        let count = end.div_ceil(TILE);
        Work {
            columns: Columns::new(end),
            from: [[[NEVER; TILE]; N]; N],
            groups: std::array::from_fn(|_| vec![NEVER; end * count]),
            count,
        }
    }
}

impl<const N: usize> Line<N> {
    #[inline(always)]
    pub(super) fn new(i: usize) -> Self {
        Line {
            i,
            high: [[0; N]; N],
            after: [[NEVER; N]; N],
            present: [NEVER; N],
        }
    }

    /// A split joins, which belongs to the present group of splits or to the one before.
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
            even: [[0; TILE]; N],
            even_left: [[0; TILE]; N],
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
        program: &Program<N>,
        range: Range<usize>,
        even: impl Fn(usize) -> (usize, usize),
    ) {
        self.first = range.start / TILE * TILE;
        self.place = place(0, self.first);
        for j in range {
            let c = j - self.first;
            let (right, left) = even(j);
            self.sending[c] = program.alpha + program.sent[j + 1];
            for class in 0..N {
                self.even[class][c] = right as u32;
                self.even_left[class][c] = left as u32;
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
    /// The splits at row `i` are about to join.
    #[inline(always)]
    pub(super) fn enter(&mut self, i: usize) {
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

impl<const N: usize> Program<N> {
    /// The least time of the splits of a column from `i` up to before `end`.
    #[inline(always)]
    pub(super) fn least_below(
        &self,
        cells: &[f64],
        columns: &mut Columns<N>,
        class: usize,
        c: usize,
        i: usize,
        end: usize,
    ) -> f64 {
        if end <= columns.windows.low[class][c] as usize {
            self.renew_column(cells, columns, class, c, i, end);
        }
        let Windows { upto, before, .. } = &columns.windows;
        min_time(upto[class][(end - 1) % TILE * TILE + c], before[class][c])
    }

    /// Comes to the group of splits in which the window before `end` now ends.
    #[inline(never)]
    fn renew_column(
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
        let mut least = NEVER;
        for k in low..end {
            if self.class(k) == class {
                let time = cells[*place + (k + 1) * TILE + c] + self.sent[k + 1];
                least = min_time(least, time);
            }
            windows.upto[class][k % TILE * TILE + c] = least;
        }
        windows.low[class][c] = low as u32;
        windows.before[class][c] = if now == group {
            NEVER
        } else {
            let groups = (now + 1..group).map(|g| windows.groups[class][g * TILE + c]);
            groups.fold(windows.present[class][c], min_time)
        };
    }

    /// The least time of the splits of a row from `start` up to before `j`.
    #[inline(always)]
    pub(super) fn least_from(
        &self,
        cells: &[f64],
        work: &mut Work<N>,
        line: &mut Line<N>,
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
                self.renew_row(cells, work, line.i, (cj, class), start..high + 1, present);
        }
        min_time(work.from[cj][class][start % TILE], line.after[cj][class])
    }

    /// Comes to the group of splits in which the window now starts, and returns the least time
    /// after it.
    #[inline(never)]
    fn renew_row(
        &self,
        cells: &[f64],
        work: &mut Work<N>,
        i: usize,
        (cj, class): (usize, usize),
        splits: Range<usize>,
        present: f64,
    ) -> f64 {
        let start = splits.start;
        let times = &cells[self.starts[start] + i * TILE..][..splits.len()];
        let sent = &self.sent[start + 1..][..splits.len()];
        let from = &mut work.from[cj][class][start % TILE..][..splits.len()];
        let mut least = NEVER;
        for k in (0..times.len()).rev() {
            if self.class(start + k) == class {
                least = min_time(least, times[k] - sent[k]);
            }
            from[k] = least;
        }
        let (now, group) = (work.columns.first / TILE, start / TILE);
        if group == now {
            return NEVER;
        }
        let groups = &work.groups[class][i * work.count..][group + 1..now];
        groups.iter().copied().fold(present, min_time)
    }

    /// The row is done before column `end`.
    #[inline(always)]
    pub(super) fn leave(&self, cells: &[f64], work: &mut Work<N>, mut line: Line<N>, end: usize) {
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
