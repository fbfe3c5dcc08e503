//! Binary trees on a platform whose links and ranks differ in cost: at most two children, received
//! in rank order.

use super::{LastMessage, Range, RangeCells, TreeCosts};
use crate::plan::gather::{GatherProblem, GatherTree};
use crate::plan::prelude::*;

/// The best binary tree, in `O(p^4)` time and `O(p^3)` memory.
pub fn binary(problem: &GatherProblem) -> Result<GatherTree> {
    let platform = TreeCosts::of(problem);
    let mut program = RangeCells::new(&platform)?;
    program.fill_binary();
    program.binary_tree(problem.root())
}

impl RangeCells<'_> {
    /// The time at which `to`, ready at `time`, has received `range`, and the best root of the
    /// range.
    fn received(&self, time: f64, range: Range, to: usize) -> (f64, usize) {
        let mut best = (f64::INFINITY, range.0);
        for from in range.0..=range.1 {
            let end = max_time(time, self.at(range.0, range.1, from))
                + self.platform.message(from, to, range);
            if end < best.0 {
                best = (end, from);
            }
        }
        best
    }

    pub(super) fn fill_binary(&mut self) {
        let p = self.platform.ranks();
        for i in (0..p).rev() {
            // The times at which i has received [i+1, k], by k; and at which r has received [i,
            // r-1] and copied its own block, by r.
            let mut first = vec![f64::INFINITY; p];
            let mut middle = vec![f64::INFINITY; p];
            for j in i + 1..p {
                first[j] = self.received(self.platform.copy[i], (i + 1, j), i).0;
                middle[j] = self.received(0.0, (i, j - 1), j).0 + self.platform.copy[j];
                let two = (i + 1..j).map(|k| self.received(first[k], (k + 1, j), i).0);
                *self.cell(i, j, i) = two.fold(first[j], f64::min);
                for (r, &ready) in middle.iter().enumerate().take(j).skip(i + 1) {
                    *self.cell(i, j, r) = self.received(ready, (r + 1, j), r).0;
                }
                let two = (i..j - 1).map(|k| {
                    let ready = self.received(0.0, (i, k), j).0;
                    self.received(ready, (k + 1, j - 1), j).0 + self.platform.copy[j]
                });
                *self.cell(i, j, j) = two.fold(middle[j], f64::min);
            }
        }
    }

    /// The ranges that `r` receives in the best tree over `[i, j]` rooted at it, in order, and the
    /// number of them before its copy.
    fn children(&self, i: usize, j: usize, r: usize) -> (Vec<LastMessage>, usize) {
        let copy = self.platform.copy[r];
        let receive = |time: f64, range: Range| {
            let (end, from) = self.received(time, range, r);
            (end, LastMessage { range, from })
        };
        if i == j {
            return (Vec::new(), 0);
        }
        if i < r && r < j {
            let (ready, left) = receive(0.0, (i, r - 1));
            return (vec![left, receive(ready + copy, (r + 1, j)).1], 1);
        }
        // All other ranks are on one side, in one or two ranges.
        let (a, b, start) = if r == i {
            (i + 1, j, copy)
        } else {
            (i, j - 1, 0.0)
        };
        let (mut best, alone) = receive(start, (a, b));
        let mut children = vec![alone];
        for k in a..b {
            let (ready, one) = receive(start, (a, k));
            let (end, two) = receive(ready, (k + 1, b));
            if end < best {
                best = end;
                children = vec![one, two];
            }
        }
        let copy_after = if r == i { 0 } else { children.len() };
        (children, copy_after)
    }

    fn binary_tree(&self, root: Option<usize>) -> Result<GatherTree> {
        let root = self.root(root)?;
        Ok(self.tree_of(root, |(i, j), r| self.children(i, j, r)))
    }
}
