//! Completion times of the best adjacent tree over every range of ranks, and the tree that they
//! tell of.

use super::super::{GatherTree, Problem};
use crate::simulate::max_time;

/// Columns that stand together in memory.
pub(super) const TILE: usize = 128;

/// Where `[i, j]` stands: row after row of the first columns, then of the next ones, so that
/// neighbours in a row are near each other, and those in a column nearly so.
#[inline]
pub(super) fn place(i: usize, j: usize) -> usize {
    let tile = j / TILE;
    tile * (tile + 1) / 2 * (TILE * TILE) + i * TILE + j % TILE
}

/// Times of ranges `[i, j]`, `i <= j`. Where a root is given, ranges that contain it are rooted
/// there.
#[derive(Debug)]
pub(super) struct Table<'a> {
    pub(super) costs: Costs<'a>,
    pub(super) root: Option<usize>,
    cells: Vec<f64>,
}

/// Sizes and costs of ranges.
#[derive(Debug)]
pub(in super::super) struct Costs<'a> {
    problem: &'a Problem,
    /// Bytes of all blocks before; one entry more, for all.
    before: Vec<u64>,
    /// The same in time, but for latencies.
    sent: Vec<f64>,
    /// By rank: from where on all blocks before it are empty.
    empty_from: Vec<usize>,
}

/// What the root of a range receives last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    /// The root is the first rank: it copies its block and receives all others.
    First,
    /// The root is the last rank: it receives all others and copies its block.
    Final,
    /// The part after this rank.
    After(usize),
    /// The part up to this rank.
    UpTo(usize),
}

impl<'a> Costs<'a> {
    pub(in super::super) fn new(problem: &'a Problem) -> Costs<'a> {
        let mut before = vec![0];
        let mut empty_from = vec![0];
        let mut sum = 0;
        for (r, &size) in problem.sizes().iter().enumerate() {
            sum += size;
            before.push(sum);
            empty_from.push(if size > 0 { r + 1 } else { empty_from[r] });
        }
        #[expect(
            clippy::cast_precision_loss,
            reason = "sizes are exact far beyond any memory"
        )]
        let sent = before.iter().map(|&b| problem.cost().beta * b as f64);
        Costs {
            problem,
            sent: sent.collect(),
            before,
            empty_from,
        }
    }

    pub(in super::super) fn ranks(&self) -> usize {
        self.before.len() - 1
    }

    /// Bytes of the blocks of `i..=j`.
    pub(in super::super) fn size(&self, i: usize, j: usize) -> u64 {
        self.before[j + 1] - self.before[i]
    }

    /// Time of a message with the blocks of `i..=j`.
    #[inline]
    pub(in super::super) fn message(&self, i: usize, j: usize) -> f64 {
        // All links cost the same here.
        self.problem.cost().transfer(0, 0, self.size(i, j))
    }

    /// What the block of `rank` adds to the time of a message, where costs are linear.
    #[inline]
    pub(in super::super) fn sending(&self, rank: usize) -> f64 {
        self.sent[rank + 1] - self.sent[rank]
    }

    /// The same for the blocks of all ranks before `rank`.
    #[inline]
    pub(in super::super) fn sending_before(&self, rank: usize) -> f64 {
        self.sent[rank]
    }

    /// The first rank from which on the blocks up to before `y` are empty.
    #[inline]
    pub(in super::super) fn empty_from(&self, y: usize) -> usize {
        self.empty_from[y]
    }

    /// Time of the copy of the block of `rank`.
    #[inline]
    pub(in super::super) fn copy(&self, rank: usize) -> f64 {
        self.problem.cost().copy(rank, self.problem.sizes()[rank])
    }
}

impl<'a> Table<'a> {
    /// All times 0.
    pub(super) fn new(problem: &'a Problem, root: Option<usize>) -> Table<'a> {
        let p = problem.ranks();
        Table {
            costs: Costs::new(problem),
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

    /// All of them, [in their places](place).
    pub(super) fn cells_mut(&mut self) -> &mut [f64] {
        &mut self.cells
    }

    /// Everything that the root of `[i, j]`, `i < j`, can receive last, with the time that this
    /// takes.
    #[inline]
    pub(super) fn options(&self, i: usize, j: usize, mut each: impl FnMut(f64, Last)) {
        let Table { costs, root, .. } = self;
        let root = root.filter(|&r| i <= r && r <= j);
        if root.is_none_or(|r| r == i) {
            let time = max_time(costs.copy(i), self.at(i + 1, j)) + costs.message(i + 1, j);
            each(time, Last::First);
        }
        if root.is_none_or(|r| r == j) {
            let time = self.at(i, j - 1) + costs.message(i, j - 1) + costs.copy(j);
            each(time, Last::Final);
        }
        // With the root in [i, k], which is more than a rank, and with it in [k+1, j].
        for k in (i + 1).max(root.unwrap_or(0))..j {
            let time = max_time(self.at(i, k), self.at(k + 1, j)) + costs.message(k + 1, j);
            each(time, Last::After(k));
        }
        for k in i..(j - 1).min(root.unwrap_or(j)) {
            let time = max_time(self.at(i, k), self.at(k + 1, j)) + costs.message(i, k);
            each(time, Last::UpTo(k));
        }
    }

    /// The first of the best options.
    fn best(&self, i: usize, j: usize) -> Last {
        let mut best = (f64::INFINITY, Last::First);
        self.options(i, j, |time, last| {
            if time < best.0 {
                best = (time, last);
            }
        });
        best.1
    }

    /// The tree over all ranks. What is best is found once more for as many ranges as there are
    /// ranks.
    pub(super) fn tree(&self) -> GatherTree {
        let p = self.costs.ranks();
        let mut tree = GatherTree::bare(p, 0);
        // Ranges, each with who receives it, and as which child.
        let mut work = vec![(0, p - 1, None)];
        while let Some((i, j, receiver)) = work.pop() {
            let (mut low, mut high) = (i, j);
            let mut received = Vec::new();
            let mut copy_last = false;
            while low < high {
                match self.best(low, high) {
                    Last::First => {
                        received.push((low + 1, high));
                        high = low;
                    }
                    Last::Final => {
                        received.push((low, high - 1));
                        copy_last = true;
                        low = high;
                    }
                    Last::After(k) => {
                        received.push((k + 1, high));
                        high = k;
                    }
                    Last::UpTo(k) => {
                        received.push((low, k));
                        low = k + 1;
                    }
                }
            }
            let root = low;
            match receiver {
                None => tree.set_root(root),
                Some((parent, slot)) => tree.name_child(parent, slot, root),
            }
            for (slot, &(i, j)) in received.iter().rev().enumerate() {
                // Its root is not known yet.
                tree.receive(root, i, 0);
                if slot == 0 && copy_last {
                    tree.copy_now(root);
                }
                work.push((i, j, Some((root, slot))));
            }
        }
        tree
    }
}
