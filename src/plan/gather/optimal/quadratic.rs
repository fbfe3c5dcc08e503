//! The dynamic program in `O(p^2)`, for `gamma_copy <= beta`: see [the proof](super#why-o-p-2-is-right).
//!
//! Layout: the triangle lies column after column; 32 columns are filled together, row after row from the bottom, so that a row's state is fetched
//! once for 32 entries, and the entries that one entry looks at stand next to those that the entry below it looked at.

use std::collections::VecDeque;

use super::table::Table;
use crate::plan::gather::Problem;
use crate::simulate::later;

/// The smaller of two times (neither is NaN).
#[inline]
fn earlier(a: f64, b: f64) -> f64 {
    if b < a { b } else { a }
}

/// Columns filled together.
const BLOCK: usize = 128;

/// Fills the table.
pub(super) fn fill(problem: &Problem, root: Option<usize>) -> Table<'_> {
    let mut table = Table::new(problem, root);
    if problem.sizes().contains(&0) {
        Program::<2>::new(problem).fill(&mut table);
    } else {
        Program::<1>::new(problem).fill(&mut table);
    }
    table
}

/// Costs in a form that is quick to look at. `N` is the number of classes of ranks: 2 if some blocks are empty.
#[derive(Debug)]
struct Program<const N: usize> {
    alpha: f64,
    beta: f64,
    /// Bytes of all blocks before a rank, and what they take to send but for the latency.
    before: Vec<f64>,
    sent: Vec<f64>,
    copy: Vec<f64>,
    /// Class of each rank: 1 if its block is empty.
    class: Vec<u8>,
    /// By rank and class: one more than the nearest rank of that class below, 0 if there is none.
    below: Vec<[u32; N]>,
}

/// What is known about one column from the row below.
#[derive(Debug, Clone)]
struct Column<const N: usize> {
    /// First split of each class at which the left part takes no less time than the right.
    even: [usize; N],
    /// The same for given roots, among splits whose left part is received.
    even_left: [usize; N],
    /// Splits before, by what they take with the root in the right part: sliding minima.
    minima: [VecDeque<(f64, usize)>; N],
}

impl<const N: usize> Column<N> {
    fn new() -> Self {
        Column {
            even: [0; N],
            even_left: [0; N],
            minima: std::array::from_fn(|_| VecDeque::new()),
        }
    }

    fn start(&mut self, even: usize, even_left: usize) {
        self.even = [even; N];
        self.even_left = [even_left; N];
        for minima in &mut self.minima {
            minima.clear();
        }
    }
}

/// Sliding minima of every row, apart for columns of each class: splits by rising time.
#[derive(Debug)]
struct Rows<const N: usize> {
    /// By class of the column and of the split.
    splits: [[Vec<u16>; N]; N],
    /// By row and class of the column.
    state: Vec<[Row<N>; N]>,
}

/// The state of one row for columns of one class.
#[derive(Debug, Clone, Copy)]
struct Row<const N: usize> {
    /// First split that has not joined.
    next: usize,
    /// By class of the split.
    windows: [Window; N],
}

/// Where the first split of a window is, one past its last, and what its first and last take.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    head: usize,
    tail: usize,
    first: f64,
    last: f64,
}

impl<const N: usize> Rows<N> {
    /// For rows that see splits from these ranks up to `end`.
    fn new(firsts: impl Iterator<Item = usize>, end: usize) -> Self {
        let mut state = Vec::new();
        let mut start = 0;
        for next in firsts {
            let window = Window {
                head: start,
                tail: start,
                ..Window::default()
            };
            let windows = [window; N];
            state.push([Row { next, windows }; N]);
            start += end.saturating_sub(next);
        }
        Rows {
            // Not touched before it is written: what is not used takes no memory.
            splits: std::array::from_fn(|_| std::array::from_fn(|_| vec![0; start])),
            state,
        }
    }
}

impl Window {
    /// Appends a split that takes `time`; those before it that take no less will never be best again.
    #[inline]
    fn push(&mut self, splits: &mut [u16], split: u16, time: f64, of: impl Fn(u16) -> f64) {
        while self.tail > self.head && self.last >= time {
            self.tail -= 1;
            if self.tail > self.head {
                self.last = of(splits[self.tail - 1]);
            }
        }
        if self.tail == self.head {
            self.first = time;
        }
        splits[self.tail] = split;
        self.tail += 1;
        self.last = time;
    }

    /// The least time of the splits from `from` on; earlier ones never come back.
    #[inline]
    fn least(&mut self, splits: &[u16], from: usize, of: impl Fn(u16) -> f64) -> Option<f64> {
        let before = self.head;
        while self.head < self.tail && usize::from(splits[self.head]) < from {
            self.head += 1;
        }
        if self.head == self.tail {
            return None;
        }
        if self.head != before {
            self.first = of(splits[self.head]);
        }
        Some(self.first)
    }
}

impl<const N: usize> Program<N> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "sizes are exact far beyond any memory"
    )]
    fn new(problem: &Problem) -> Self {
        let cost = problem.cost();
        let mut before = vec![0.0];
        let mut sum = 0u64;
        let mut below = vec![[0u32; N]];
        let mut class = Vec::new();
        for (r, &size) in problem.sizes().iter().enumerate() {
            sum += size;
            before.push(sum as f64);
            let of = usize::from(N > 1 && size == 0);
            class.push(of as u8);
            let mut next = below[r];
            next[of] = r as u32 + 1;
            below.push(next);
        }
        Program {
            alpha: cost.alpha,
            beta: cost.beta,
            sent: before.iter().map(|b| cost.beta * b).collect(),
            before,
            copy: (0..problem.ranks())
                .map(|r| cost.copy(r, problem.sizes()[r]))
                .collect(),
            class,
            below,
        }
    }

    #[inline]
    fn message(&self, i: usize, j: usize) -> f64 {
        let size = self.before[j + 1] - self.before[i];
        if N == 1 || size > 0.0 {
            self.alpha + self.beta * size
        } else {
            0.0
        }
    }

    #[inline]
    fn class(&self, rank: usize) -> usize {
        if N == 1 {
            0
        } else {
            usize::from(self.class[rank])
        }
    }

    /// The nearest rank of `class` below `rank`, but not below `least`.
    #[inline]
    fn below(&self, class: usize, rank: usize, least: usize) -> Option<usize> {
        let below = if N == 1 {
            rank
        } else {
            self.below[rank][class] as usize
        };
        (below > least).then(|| below - 1)
    }

    fn fill(&self, table: &mut Table<'_>) {
        let p = self.copy.len();
        match table.root {
            None => self.triangle(table, 0, p),
            Some(root) => {
                self.triangle(table, 0, root);
                self.triangle(table, root + 1, p);
                self.rectangle(table, root);
            }
        }
    }

    /// Ranges within `start..end`, all rooted where it is best.
    fn triangle(&self, table: &mut Table<'_>, start: usize, end: usize) {
        let n = end - start;
        let mut rows = Rows::<N>::new((0..n).map(|row| row + 1), n);
        let mut columns = vec![Column::<N>::new(); BLOCK.min(n)];
        for first in (start..end).step_by(BLOCK) {
            let block = first..(first + BLOCK).min(end);
            for (column, j) in columns.iter_mut().zip(block.clone()) {
                column.start(j.saturating_sub(1), 0);
            }
            for i in (start..block.end).rev() {
                let from = block.start.max(i + 1);
                for j in from..block.end {
                    let column = &mut columns[j - block.start];
                    let time = self.free(table, &mut rows, column, start, i, j);
                    table.set(i, j, time);
                }
            }
        }
    }

    /// The best time of `[i, j]`, of ranks from `start` on.
    #[inline]
    fn free(
        &self,
        table: &Table<'_>,
        rows: &mut Rows<N>,
        column: &mut Column<N>,
        start: usize,
        i: usize,
        j: usize,
    ) -> f64 {
        // One rank apart from the others, as root or not.
        let (right, left) = (table.at(i + 1, j), table.at(i, j - 1));
        let mut best = later(self.copy[i], right) + self.message(i + 1, j);
        best = earlier(best, left + self.message(i, j - 1) + self.copy[j]);
        if j - i < 2 {
            return best;
        }
        best = earlier(best, right + self.message(i, i));
        best = earlier(best, left + self.message(j, j));
        if j - i < 3 {
            return best;
        }
        // Splits k with i < k < j - 1: one joins the others in this column, one in this row.
        let new = i + 1;
        let minima = &mut column.minima[self.class(new)];
        let time = table.at(i + 2, j) + self.sent[i + 2];
        while minima.back().is_some_and(|b| b.0 >= time) {
            minima.pop_back();
        }
        minima.push_back((time, new));
        let row_time = |k: u16| {
            let k = usize::from(k) + start;
            table.at(i, k) - self.sent[k + 1]
        };
        let row = &mut rows.state[i - start][self.class(j)];
        let splits = &mut rows.splits[self.class(j)];
        self.join(row, splits, j - 1 - start, start, row_time);

        for (class, splits) in splits.iter().enumerate() {
            let mut even = column.even[class];
            let mut times = None;
            while let Some(k) = self.below(class, even, i + 1) {
                let (a, b) = (table.at(i, k), table.at(k + 1, j));
                if a < b {
                    // The last one before they are even.
                    best = earlier(best, b + self.message(k + 1, j));
                    break;
                }
                even = k;
                times = Some(a);
            }
            column.even[class] = even;
            if even < j - 1 {
                let a = times.unwrap_or_else(|| table.at(i, even));
                best = earlier(best, a + self.message(i, even));
            }
            let minima = &mut column.minima[class];
            while minima.front().is_some_and(|f| f.1 >= even) {
                minima.pop_front();
            }
            if let Some(&(time, _)) = minima.front() {
                best = earlier(best, time - self.sent[i] + self.alpha);
            }
            if let Some(time) = row.windows[class].least(splits, even - start, row_time) {
                best = earlier(best, time + self.sent[j + 1] + self.alpha);
            }
        }
        best
    }

    /// Lets all splits before `end`, which are numbered from `base` on, join a row.
    #[inline]
    fn join(
        &self,
        row: &mut Row<N>,
        splits: &mut [Vec<u16>; N],
        end: usize,
        base: usize,
        time: impl Fn(u16) -> f64,
    ) {
        while row.next < end {
            let class = self.class(row.next + base);
            let k = row.next as u16;
            row.windows[class].push(&mut splits[class], k, time(k), &time);
            row.next += 1;
        }
    }

    /// Ranges that contain `root`, rooted there.
    fn rectangle(&self, table: &mut Table<'_>, root: usize) {
        let p = self.copy.len();
        let mut rows = Rows::<N>::new((0..=root).map(|i| usize::from(i == root)), p - root);
        let mut columns = vec![Column::<N>::new(); BLOCK.min(p - root)];
        for first in (root..p).step_by(BLOCK) {
            let block = first..(first + BLOCK).min(p);
            for (column, j) in columns.iter_mut().zip(block.clone()) {
                column.start(
                    j,
                    if j == root {
                        root.saturating_sub(1)
                    } else {
                        root
                    },
                );
            }
            for i in (0..=root).rev() {
                for j in block.clone() {
                    if i < j {
                        let column = &mut columns[j - block.start];
                        let time = self.rooted(table, &mut rows, column, root, i, j);
                        table.set(i, j, time);
                    }
                }
            }
        }
    }

    /// The best time of `[i, j]` rooted at `root`, which it contains.
    #[inline]
    fn rooted(
        &self,
        table: &Table<'_>,
        rows: &mut Rows<N>,
        column: &mut Column<N>,
        root: usize,
        i: usize,
        j: usize,
    ) -> f64 {
        let mut best = f64::INFINITY;
        if i == root {
            best = later(self.copy[i], table.at(i + 1, j)) + self.message(i + 1, j);
        } else if (i + 1, j) != (root, root) {
            best = table.at(i + 1, j) + self.message(i, i);
        }
        if j == root {
            best = earlier(
                best,
                table.at(i, j - 1) + self.message(i, j - 1) + self.copy[j],
            );
        } else if (i, j - 1) != (root, root) {
            best = earlier(best, table.at(i, j - 1) + self.message(j, j));
        }
        // Splits k >= root: [k + 1, j] is received. One joins them in this row.
        let least = root.max(i + 1);
        let row_time = |k: u16| {
            let k = usize::from(k) + root;
            table.at(i, k) - self.sent[k + 1]
        };
        let row = &mut rows.state[i][self.class(j)];
        let splits = &mut rows.splits[self.class(j)];
        self.join(row, splits, j - root, root, row_time);
        // Splits k < root: [i, k] is received. One joins them in this column.
        let end_left = if j == root { root - 1 } else { root };
        if i < end_left {
            let minima = &mut column.minima[self.class(i)];
            let time = table.at(i + 1, j) + self.sent[i + 1];
            while minima.back().is_some_and(|b| b.0 >= time) {
                minima.pop_back();
            }
            minima.push_back((time, i));
        }
        for (class, splits) in splits.iter().enumerate() {
            let mut even = column.even[class];
            while let Some(k) = self.below(class, even, least) {
                let b = table.at(k + 1, j);
                if table.at(i, k) < b {
                    best = earlier(best, b + self.message(k + 1, j));
                    break;
                }
                even = k;
            }
            column.even[class] = even;
            if let Some(time) = row.windows[class].least(splits, even - root, row_time) {
                best = earlier(best, time + self.sent[j + 1] + self.alpha);
            }

            let mut even = column.even_left[class];
            while let Some(k) = self.below(class, even, i) {
                if table.at(i, k) < table.at(k + 1, j) {
                    break;
                }
                even = k;
            }
            column.even_left[class] = even;
            if even < end_left {
                best = earlier(best, table.at(i, even) + self.message(i, even));
            }
            let minima = &mut column.minima[class];
            while minima.front().is_some_and(|f| f.1 >= even) {
                minima.pop_front();
            }
            if let Some(&(time, _)) = minima.front() {
                best = earlier(best, time - self.sent[i] + self.alpha);
            }
        }
        best
    }
}
