//! Completion times of the best adjacent tree over every range of ranks, and the tree that follows
//! from them.

use super::super::tree::Received;
use super::super::{GatherProblem, GatherTree};
use crate::rules::max_time;

pub(super) const TILE: usize = 128;

/// Index of `[i, j]` in the table. Tiles of columns are stored one after another, each row by row,
/// so that neighbours in a row are adjacent and neighbours in a column are close.
#[inline]
pub(super) fn place(i: usize, j: usize) -> usize {
    let tile = j / TILE;
    tile * (tile + 1) / 2 * (TILE * TILE) + i * TILE + j % TILE
}

/// Times of ranges `[i, j]`, `i <= j`. If a root is given, ranges that contain it are rooted there.
#[derive(Debug)]
pub(super) struct RangeTimes<'a> {
    pub(super) costs: RangeCosts<'a>,
    pub(super) root: Option<usize>,
    cells: Vec<f64>,
}

/// Sizes of ranges, and the costs of messages and copies.
#[derive(Debug)]
pub(in super::super) struct RangeCosts<'a> {
    problem: &'a GatherProblem,
    /// Total size in bytes of the blocks of all lower ranks; the last entry is the size of all
    /// blocks.
    before: Vec<u64>,
    /// The same as the time to send these bytes, without latency.
    sent: Vec<f64>,
    /// By rank: the start of the longest run of empty blocks that ends just before it.
    empty_from: Vec<usize>,
}

/// The costs, and times of ranges `[i, j]`, `i <= j`, row after row, each from the diagonal on.
#[derive(Debug)]
pub(in super::super) struct Ranges<'a> {
    pub(in super::super) costs: RangeCosts<'a>,
    cells: Vec<f64>,
}

impl Ranges<'_> {
    pub(in super::super) fn new(problem: &GatherProblem) -> Ranges<'_> {
        let p = problem.ranks();
        Ranges {
            costs: RangeCosts::new(problem),
            cells: vec![0.0; p * (p + 1) / 2],
        }
    }

    #[inline]
    fn index(&self, i: usize, j: usize) -> usize {
        // Rows before i have p, p - 1, ... entries.
        i * (2 * self.costs.ranks() + 1 - i) / 2 + j - i
    }

    #[inline]
    pub(in super::super) fn at(&self, i: usize, j: usize) -> f64 {
        self.cells[self.index(i, j)]
    }

    #[inline]
    pub(in super::super) fn set(&mut self, i: usize, j: usize, time: f64) {
        let at = self.index(i, j);
        self.cells[at] = time;
    }

    /// The ranges of which times are needed: if the root is given, not those that contain it.
    pub(in super::super) fn needed(&self, root: Option<usize>) -> Vec<(usize, usize)> {
        let p = self.costs.ranks();
        match root {
            None => vec![(0, p)],
            Some(root) => vec![(0, root), (root + 1, p)],
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    /// The root is the first rank: it copies its block and receives all other ranks.
    First,
    /// The root is the last rank: it receives all other ranks and copies its block.
    Final,
    /// The root receives the part after this rank.
    After(usize),
    /// The root receives the part up to this rank.
    UpTo(usize),
}

impl<'a> RangeCosts<'a> {
    pub(in super::super) fn new(problem: &'a GatherProblem) -> RangeCosts<'a> {
        let mut before = vec![0];
        let mut empty_from = vec![0];
        let mut sum = 0;
        for (r, &size) in problem.sizes().iter().enumerate() {
            sum += size;
            before.push(sum);
            empty_from.push(if size > 0 { r + 1 } else { empty_from[r] });
        }
        let sent = before
            .iter()
            .map(|&b| problem.cost().rates().beta * b as f64);
        RangeCosts {
            problem,
            sent: sent.collect(),
            before,
            empty_from,
        }
    }

    pub(in super::super) fn ranks(&self) -> usize {
        self.before.len() - 1
    }

    pub(in super::super) fn size(&self, i: usize, j: usize) -> u64 {
        self.before[j + 1] - self.before[i]
    }

    #[inline]
    pub(in super::super) fn message(&self, i: usize, j: usize) -> f64 {
        // All links cost the same here.
        self.problem.cost().transfer(0, 0, self.size(i, j))
    }

    /// The time that the block of `rank` adds to a message under linear costs.
    #[inline]
    pub(in super::super) fn sending(&self, rank: usize) -> f64 {
        self.sent[rank + 1] - self.sent[rank]
    }

    /// The time that the blocks of all ranks below `rank` add to a message under linear costs.
    #[inline]
    pub(in super::super) fn sending_before(&self, rank: usize) -> f64 {
        self.sent[rank]
    }

    /// The smallest rank `x` such that all blocks in `x..y` are empty.
    #[inline]
    pub(in super::super) fn empty_from(&self, y: usize) -> usize {
        self.empty_from[y]
    }

    #[inline]
    pub(in super::super) fn copy(&self, rank: usize) -> f64 {
        self.problem.cost().copy(rank, self.problem.sizes()[rank])
    }
}

impl<'a> RangeTimes<'a> {
    pub(super) fn new(problem: &'a GatherProblem, root: Option<usize>) -> RangeTimes<'a> {
        let p = problem.ranks();
        RangeTimes {
            costs: RangeCosts::new(problem),
            root,
            cells: vec![0.0; place(p - 1, p - 1) + 1],
        }
    }

    #[inline]
    pub(super) fn at(&self, i: usize, j: usize) -> f64 {
        self.cells[place(i, j)]
    }

    #[inline]
    pub(super) fn set(&mut self, i: usize, j: usize, time: f64) {
        self.cells[place(i, j)] = time;
    }

    pub(super) fn cells_mut(&mut self) -> &mut [f64] {
        &mut self.cells
    }

    /// Calls `each` with every possible last step of the root of `[i, j]`, `i < j`, and the
    /// resulting time.
    #[inline]
    pub(super) fn options(&self, i: usize, j: usize, mut each: impl FnMut(f64, Last)) {
        let RangeTimes { costs, root, .. } = self;
        let root = root.filter(|&r| i <= r && r <= j);
        if root.is_none_or(|r| r == i) {
            let time = max_time(costs.copy(i), self.at(i + 1, j)) + costs.message(i + 1, j);
            each(time, Last::First);
        }
        if root.is_none_or(|r| r == j) {
            let time = self.at(i, j - 1) + costs.message(i, j - 1) + costs.copy(j);
            each(time, Last::Final);
        }
        // First with the root in [i, k], a range of at least two ranks; then with the root in [k+1,
        // j].
        for k in (i + 1).max(root.unwrap_or(0))..j {
            let time = max_time(self.at(i, k), self.at(k + 1, j)) + costs.message(k + 1, j);
            each(time, Last::After(k));
        }
        for k in i..(j - 1).min(root.unwrap_or(j)) {
            let time = max_time(self.at(i, k), self.at(k + 1, j)) + costs.message(i, k);
            each(time, Last::UpTo(k));
        }
    }

    fn best(&self, i: usize, j: usize) -> Last {
        let mut best = (f64::INFINITY, Last::First);
        self.options(i, j, |time, last| {
            if time < best.0 {
                best = (time, last);
            }
        });
        best.1
    }

    /// The tree over all ranks. The best last steps are not stored, but computed again for as many
    /// ranges as there are ranks.
    pub(super) fn tree(&self) -> GatherTree {
        GatherTree::of_ranges(self.costs.ranks(), None, |(mut low, mut high), _| {
            let (mut parts, mut copy_after) = (Vec::new(), 0);
            while low < high {
                let range = match self.best(low, high) {
                    Last::First => (low + 1, high),
                    Last::Final => {
                        copy_after = 1;
                        (low, high - 1)
                    }
                    Last::After(k) => (k + 1, high),
                    Last::UpTo(k) => (low, k),
                };
                parts.push((range, None));
                if range.0 == low {
                    low = range.1 + 1
                } else {
                    high = range.0 - 1
                }
            }
            parts.reverse();
            Received {
                root: low,
                parts,
                copy_after,
            }
        })
    }
}
