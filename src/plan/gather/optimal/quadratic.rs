//! The dynamic program in `O(p^2)`, for `gamma_copy <= beta`: see [the
//! proof](super#why-o-p-2-is-right).
//!
//! [`TILE`] columns are filled together, row after row from the bottom, and are stored together, so
//! that neighbouring entries read neighbouring memory.
//!
//! The sliding minima use no queues, whose ends would move unpredictably. Splits are divided into
//! groups of `TILE`. For the window of a column the program keeps
//! - prefix minima within the group in which the window ends, rebuilt whenever the end enters
//!   another group,
//! - one minimum for each group below that lies entirely in the window,
//! - one minimum of the splits that have joined since.
//!
//! Windows of rows work the same way in the opposite direction. So each split is read twice, in
//! memory next to what is read anyway, and the whole groups of a window are read about once every
//! `TILE` entries. That is `p / TILE^2` operations per entry, two for the maximum number of ranks.

mod windows;

use std::ops::Range;

use self::windows::{Columns, RowWindow, TileState};
use super::table::{RangeTimes, TILE, place};
use crate::machine::numbers::id;
use crate::plan::gather::GatherProblem;
use crate::rules::max_time;

const NEVER: f64 = f64::INFINITY;

#[inline]
fn min_time(a: f64, b: f64) -> f64 {
    if b < a { b } else { a }
}

pub(super) fn fill(problem: &GatherProblem, root: Option<usize>) -> RangeTimes<'_> {
    let mut table = RangeTimes::new(problem, root);
    if problem.sizes().contains(&0) {
        QuadraticCosts::<2>::new(problem).fill(&mut table);
    } else {
        QuadraticCosts::<1>::new(problem).fill(&mut table);
    }
    table
}

#[derive(Debug)]
struct QuadraticCosts<const N: usize> {
    alpha: f64,
    /// The time to send the blocks of all lower ranks, without latency.
    sent: Vec<f64>,
    copy: Vec<f64>,
    /// Class of each rank: 1 if its block is empty.
    class: Vec<u8>,
    /// By rank and class: one more than the nearest rank of that class below, 0 if there is none.
    below: Vec<[u32; N]>,
    /// The index in the table at which each column starts.
    starts: Vec<usize>,
}

impl<const N: usize> QuadraticCosts<N> {
    fn new(problem: &GatherProblem) -> Self {
        let (p, cost) = (problem.ranks(), problem.cost());
        let linear = cost.rates();
        let mut sent = vec![0.0];
        let mut sum = 0u64;
        let mut below = vec![[0u32; N]];
        let mut class = Vec::new();
        for (r, &size) in problem.sizes().iter().enumerate() {
            sum += size;
            sent.push(linear.beta * sum as f64);
            let of = u8::from(N > 1 && size == 0);
            class.push(of);
            let mut next = below[r];
            next[usize::from(of)] = id(r) + 1;
            below.push(next);
        }
        QuadraticCosts {
            alpha: linear.alpha,
            sent,
            copy: (0..p).map(|r| cost.copy(r, problem.sizes()[r])).collect(),
            class,
            below,
            starts: (0..p).map(|k| place(0, k)).collect(),
        }
    }

    #[inline(always)]
    fn message(&self, i: usize, j: usize) -> f64 {
        let sending = self.sent[j + 1] - self.sent[i];
        if N == 1 || self.below[j + 1][0] as usize > i {
            self.alpha + sending
        } else {
            0.0
        }
    }

    #[inline(always)]
    fn class(&self, rank: usize) -> usize {
        if N == 1 {
            0
        } else {
            usize::from(self.class[rank])
        }
    }

    /// The nearest rank of `class` below `rank` that is at least `lowest`.
    #[inline(always)]
    fn below(&self, class: usize, rank: usize, lowest: usize) -> Option<usize> {
        let below = if N == 1 {
            rank
        } else {
            self.below[rank][class] as usize
        };
        (below > lowest).then(|| below.wrapping_sub(1))
    }

    /// Moves the crossover of `class` in column `c` down, to the first split, at least `lowest`, at
    /// which the left part takes at least as long as the right one. Returns the crossover, and the
    /// time of the last split before it.
    #[inline(always)]
    fn move_crossover(
        &self,
        cells: &[f64],
        columns: &mut Columns<N>,
        class: usize,
        c: usize,
        row: usize,
        lowest: usize,
    ) -> (usize, f64) {
        let mut crossover = columns.crossover[class][c] as usize;
        let mut before = NEVER;
        while let Some(k) = self.below(class, crossover, lowest) {
            let right = cells[columns.place + (k + 1) * TILE + c];
            if cells[self.starts[k] + row] < right {
                before = right + self.message(k + 1, columns.first + c);
                break;
            }
            crossover = k;
        }
        columns.crossover[class][c] = id(crossover);
        (crossover, before)
    }

    fn fill(&self, table: &mut RangeTimes<'_>) {
        let p = self.copy.len();
        let root = table.root;
        let cells = table.cells_mut();
        match root {
            None => self.triangle(cells, 0, p),
            Some(root) => {
                self.triangle(cells, 0, root);
                self.triangle(cells, root + 1, p);
                self.rectangle(cells, root);
            }
        }
    }

    /// Fills the ranges within `start..end`, each with the best root.
    fn triangle(&self, cells: &mut [f64], start: usize, end: usize) {
        let mut work = TileState::<N>::new(end);
        let mut first = start;
        while first < end {
            let last = ((first / TILE + 1) * TILE).min(end);
            work.columns
                .start(self, first..last, |j| (j.saturating_sub(1), 0));
            for i in (start..last).rev() {
                work.columns.windows.enter_row(i);
                let mut from = first;
                if i + 1 >= first {
                    // Ranges of two ranks.
                    let j = i + 1;
                    if j == last {
                        continue;
                    }
                    let time = self.copy[i] + self.message(j, j);
                    let time = min_time(time, self.message(i, i) + self.copy[j]);
                    cells[work.columns.at(i, j)] = time;
                    from = j + 1;
                }
                if from < last {
                    self.join(&mut work.columns, cells, i, from..last);
                    self.row(cells, &mut work, i, from..last);
                } else {
                    self.finish_row(cells, &mut work, RowWindow::new(i), last);
                }
            }
            first = last;
        }
    }

    /// Adds the split after rank `i` to the windows of these columns. Initialises the best time in
    /// row `i` with the options that do not divide the range into two parts of at least two ranks,
    /// as far as they follow from the row below.
    #[inline(always)]
    fn join(&self, columns: &mut Columns<N>, cells: &[f64], i: usize, range: Range<usize>) {
        let (copy, sent) = (self.copy[i], self.sent[i + 1]);
        let right = &cells[columns.at(i + 1, range.start)..][..range.len()];
        let at = range.start - columns.first;
        let class = self.class(i);
        let before = &mut columns.windows.before[class][at..][..right.len()];
        let present = &mut columns.windows.present[class][at..][..right.len()];
        let best = &mut columns.best[at..][..right.len()];
        let sending = &columns.sending[at..][..right.len()];
        for (c, &right) in right.iter().enumerate() {
            let time = right + sent;
            before[c] = min_time(before[c], time);
            present[c] = min_time(present[c], time);
            // The first rank as root receives all others.
            if N == 1 {
                best[c] = max_time(copy, right) + (sending[c] - sent);
            } else {
                best[c] = max_time(copy, right) + self.message(i + 1, range.start + c);
                // The first rank, alone and empty, is received.
                if class == 1 {
                    best[c] = min_time(best[c], right);
                }
            }
        }
    }

    /// Computes the entries of row `i` in these columns.
    #[inline(always)]
    fn row(&self, cells: &mut [f64], work: &mut TileState<N>, i: usize, range: Range<usize>) {
        let row = i * TILE;
        let row_term = self.alpha - self.sent[i];
        let mut line = RowWindow::new(i);
        let (first, place) = (work.columns.first, work.columns.place);
        let mut left = cells[self.starts[range.start - 1] + row];
        for c in range.start - first..range.end - first {
            let j = first + c;
            line.join(self.class(j - 1), left - self.sent[j], c > 0);
            // The last rank as root receives all others; or, alone and empty, it is received.
            let last = left + self.message(i, j - 1) + self.copy[j];
            let mut best = min_time(work.columns.best[c], last);
            if N > 1 && self.class(j) == 1 {
                best = min_time(best, left);
            }
            for class in 0..N {
                let (crossover, before) =
                    self.move_crossover(cells, &mut work.columns, class, c, row, i + 1);
                best = min_time(best, before);
                if crossover < j - 1 {
                    best = min_time(
                        best,
                        cells[self.starts[crossover] + row] + self.message(i, crossover),
                    );
                }
                let time = self.min_below(cells, &mut work.columns, class, c, i, crossover);
                best = min_time(best, time + row_term);
                let time = self.min_from(cells, work, &mut line, class, j, crossover);
                best = min_time(best, time + work.columns.sending[c]);
            }
            cells[place + row + c] = best;
            left = best;
        }
        self.finish_row(cells, work, line, range.end);
    }

    /// Fills the ranges that contain `root`, rooted there.
    fn rectangle(&self, cells: &mut [f64], root: usize) {
        let p = self.copy.len();
        let mut work = TileState::<N>::new(p);
        let mut first = root;
        while first < p {
            let last = ((first / TILE + 1) * TILE).min(p);
            work.columns.start(self, first..last, |j| {
                (j.saturating_sub(1), received_before(root, j))
            });
            for i in (0..=root).rev() {
                work.columns.windows.enter_row(i);
                let mut from = first.max(i + 1);
                if from < last && from == root && i + 1 == root {
                    // Only the root and the rank before it.
                    let time = self.message(i, i) + self.copy[root];
                    cells[work.columns.at(i, root)] = time;
                    from += 1;
                }
                if from < last {
                    if i < root {
                        self.join(&mut work.columns, cells, i, from..last);
                    }
                    self.rooted_row(cells, &mut work, root, i, from..last);
                } else {
                    self.finish_row(cells, &mut work, RowWindow::new(i), last);
                }
            }
            first = last;
        }
    }

    /// Computes the entries of row `i` in these columns, rooted at `root`.
    #[inline(always)]
    fn rooted_row(
        &self,
        cells: &mut [f64],
        work: &mut TileState<N>,
        root: usize,
        i: usize,
        range: Range<usize>,
    ) {
        let row = i * TILE;
        let row_term = self.alpha - self.sent[i];
        let mut line = RowWindow::new(i);
        let (first, place) = (work.columns.first, work.columns.place);
        let mut left = cells[self.starts[range.start - 1] + row];
        for c in range.start - first..range.end - first {
            let j = first + c;
            let mut best = NEVER;
            if i == root {
                // The root receives all others.
                let right = cells[place + row + TILE + c];
                best = max_time(self.copy[i], right) + self.message(i + 1, j);
            } else if N > 1 && self.class(i) == 1 {
                // The first rank, alone and empty, is received.
                best = cells[place + row + TILE + c];
            }
            if j == root {
                best = min_time(best, left + self.message(i, j - 1) + self.copy[j]);
            } else if N > 1 && self.class(j) == 1 && i < j - 1 {
                best = min_time(best, left);
            }
            // Splits at or after the root: the root receives the right part.
            let lowest = root.max(i + 1);
            if j > lowest {
                line.join(self.class(j - 1), left - self.sent[j], c > 0);
                for class in 0..N {
                    let (crossover, before) =
                        self.move_crossover(cells, &mut work.columns, class, c, row, lowest);
                    best = min_time(best, before);
                    let time = self.min_from(cells, work, &mut line, class, j, crossover);
                    best = min_time(best, time + work.columns.sending[c]);
                }
            }
            // Splits before the root: the root receives the left part.
            let end = received_before(root, j);
            if i < end {
                for class in 0..N {
                    let mut crossover = work.columns.crossover_left[class][c] as usize;
                    while let Some(k) = self.below(class, crossover, i + 1) {
                        if cells[self.starts[k] + row] < cells[place + (k + 1) * TILE + c] {
                            break;
                        }
                        crossover = k;
                    }
                    work.columns.crossover_left[class][c] = id(crossover);
                    if crossover < end {
                        let time = cells[self.starts[crossover] + row] + self.message(i, crossover);
                        best = min_time(best, time);
                    }
                    let time = self.min_below(cells, &mut work.columns, class, c, i, crossover);
                    best = min_time(best, time + row_term);
                }
            }
            cells[place + row + c] = best;
            left = best;
        }
        self.finish_row(cells, work, line, range.end);
    }
}

/// One past the last split of `[.., j]` whose left part `root` receives. If the root is the last
/// rank, the split that leaves it alone is excluded: there the root copies its block afterwards.
#[inline(always)]
fn received_before(root: usize, j: usize) -> usize {
    if j == root {
        root.saturating_sub(1)
    } else {
        root
    }
}
