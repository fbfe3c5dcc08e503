//! Optimal rank-ordered gather trees.
//!
//! - Source: the (strongly) ordered trees of Definition 3 of Träff, "On Optimal Trees for Irregular
//!   Gather and Scatter Collectives"; the algorithms are our own.
//! - Symbols: `p` ranks, blocks `m_i`, `S[i,j] = m_i + ... + m_j`, `comm(m) = alpha + beta m`,
//!   `comm(0) = 0`; `gamma` is the cost per byte of a local copy.
//! - Time: `O(p^2)` for linear costs with `gamma <= beta`, otherwise `O(p^3)`; where links differ,
//!   that of [`heterogeneous`].
//! - Memory: 8 bytes per range.
//!
//! Every rank receives ranges of consecutive ranks in rank order, and copies its own block in its
//! turn. `B[i,j]` is the time of the best tree over `i..=j`, with `B[i,i] = 0`. A rank that has
//! received `[i,y-1]`
//!
//! - without reaching its own block is ready at `F_i(y)`: `F_i(i) = 0`, otherwise the minimum of
//!   `max(F_i(x), B[x,y-1]) + comm(S[x,y-1])` over `i <= x < y`;
//! - with its own block among them is ready at `G_i(y)`: the minimum of `F_i(y-1) + gamma m_{y-1}`
//!   and of `max(G_i(x), B[x,y-1]) + comm(S[x,y-1])` over `i < x < y`. `B[i,j] = G_i(j+1)`.
//!
//! # Why O(p²) is right
//! Let `gamma <= beta`. None of these times rises when a rank at an end of the range is removed,
//! whether blocks are empty or not. If the first rank of a range is its root, the second can take
//! its place. If the last rank is, the last but one can: it copies after its messages, because
//! `gamma m_{j-1} + comm(S[x,j-2]) <= comm(S[x,j-1])`. Otherwise the subtree of the removed rank
//! shrinks or disappears.
//!
//! So `F_i(x)` does not fall with `x`, and `B[x,y-1]` does not rise. Among the `x` with
//! `F_i(x) < B[x,y-1]` the last one is best. For the others the time is `F_i(x) - beta P[x]` (`P`
//! are the prefix sums) plus a term that does not depend on `x`: the minimum over a window whose
//! ends move up with `y`. The same holds for `G`. Among the `x` with `S[x,y-1] = 0` the first one
//! is best; it is considered separately.
//!
//! Example, `m = 10,10,2,50`, `alpha = 5`, `beta = 1`, `gamma = 0`: root 3 receives `{0}`, then 2→1
//! and `{1,2}`: `15 + 17 = 32`, where adjacent trees take 37.

use std::collections::VecDeque;

use super::optimal::DynamicProgram;
use super::optimal::table::Ranges;
use super::tree::Received;
use super::tree_costs::TreeCosts;
use super::{GatherProblem, GatherTree, fastest, heterogeneous};
use crate::budget::trees::MAX_LINKED;
use crate::plan::gather::row::{table_of_pairs, tree_rows};
use crate::plan::prelude::*;

tree_rows!(
    GATHER, SCATTER: "rank-ordered", tree {
        best_root: crate::plan::registry::BestRoot::Own,
        max_ranks_with_links: Some(MAX_LINKED),
        tables: table_of_pairs,
        source: "Träff, optimal gather trees, Definition 3; O(p^2) by oneport",
        rounds: "those of the best tree in rank order",
        volume: "those of that tree",
    }
);

/// The best rank-ordered tree. See the [module documentation](self) for time and memory.
pub fn tree(problem: &GatherProblem) -> Result<GatherTree> {
    if problem.cost().links().is_some() {
        return heterogeneous::rank_ordered(&TreeCosts::of(problem), problem.root(), None);
    }
    let method = DynamicProgram::for_class(problem, "rank-ordered")?;
    let mut program = RankTimes {
        ranges: Ranges::new(problem),
        fast: method == DynamicProgram::Quadratic,
    };
    for (start, end) in program.ranges.needed(problem.root()) {
        for i in (start..end).rev() {
            let (mut before, mut after) = (Vec::new(), Vec::new());
            program.row(i, end, &mut before, &mut after);
        }
    }
    Ok(program.tree(problem.root()))
}

#[derive(Debug)]
struct RankTimes<'a> {
    /// `B`.
    ranges: Ranges<'a>,
    fast: bool,
}

impl RankTimes<'_> {
    /// The time at which a rank has received `[x, y-1]`, if it was ready at `ready` with everything
    /// before `x`.
    #[inline]
    fn received(&self, ready: f64, x: usize, y: usize) -> f64 {
        max_time(ready, self.ranges.at(x, y - 1)) + self.ranges.costs.message(x, y - 1)
    }

    /// Computes row `i` of `B`, and `F_i` and `G_i` of `i..=end`, which start at index 0.
    fn row(&mut self, i: usize, end: usize, before: &mut Vec<f64>, after: &mut Vec<f64>) {
        before.clear();
        after.clear();
        before.push(0.0);
        // An empty range does not contain its root.
        after.push(f64::INFINITY);
        let (mut without_root, mut with_root) = (Window::new(i), Window::new(i + 1));
        for y in i + 1..=end {
            let own = before[y - 1 - i] + self.ranges.costs.copy(y - 1);
            let time = own.min(with_root.min_time(self, after, i, y));
            after.push(time);
            if y > i + 1 {
                self.ranges.set(i, y - 1, time);
            }
            before.push(without_root.min_time(self, before, i, y));
        }
    }

    /// `G` of `start..=end`, if it is `ready` at `start`.
    fn extended(&self, start: usize, ready: f64, end: usize) -> Vec<f64> {
        let mut after = vec![ready];
        let mut window = Window::new(start);
        for y in start + 1..=end {
            after.push(window.min_time(self, &after, start, y));
        }
        after
    }

    /// The best last range `[x, y-1]` with `x` at least `first`, and its time, for a rank that is
    /// ready for it at `times[x - base]`.
    fn last(&self, times: &[f64], base: usize, first: usize, y: usize) -> (f64, usize) {
        let timed = (first..y).map(|x| (self.received(times[x - base], x, y), x));
        fastest(timed).unwrap_or((f64::INFINITY, first))
    }

    fn tree(&mut self, root: Option<usize>) -> GatherTree {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        GatherTree::of_ranges(self.ranges.costs.ranks(), root, |(i, j), given| {
            let mut parts = Vec::new();
            let mut y = j + 1;
            // Ranges after the root, then the root, then ranges before it.
            let root = match given {
                Some(root) => {
                    self.row(i, root, &mut before, &mut after);
                    let ready = before[root - i] + self.ranges.costs.copy(root);
                    let times = self.extended(root + 1, ready, y);
                    while y > root + 1 {
                        let x = self.last(&times, root + 1, root + 1, y).1;
                        parts.push(((x, y - 1), None));
                        y = x;
                    }
                    root
                }
                None => {
                    self.row(i, y, &mut before, &mut after);
                    loop {
                        let own = before[y - 1 - i] + self.ranges.costs.copy(y - 1);
                        let (time, x) = self.last(&after, i, i + 1, y);
                        if own <= time {
                            break y - 1;
                        }
                        parts.push(((x, y - 1), None));
                        y = x;
                    }
                }
            };
            let after_copy = parts.len();
            y = root;
            while y > i {
                let x = self.last(&before, i, i, y).1;
                parts.push(((x, y - 1), None));
                y = x;
            }
            parts.reverse();
            Received {
                root,
                copy_after: parts.len() - after_copy,
                parts,
            }
        })
    }
}

/// Finds the best last range `[x, y-1]` for rising `y`: a sliding minimum over its start `x`.
#[derive(Debug)]
struct Window {
    /// Minimum start of a range.
    first: usize,
    /// First start of a range that is complete no later than the receiver is ready for it.
    crossover: usize,
    /// First start that has not yet entered the window.
    next: usize,
    /// Candidates for the minimum, from `crossover` on, by rising time.
    minima: VecDeque<(f64, usize)>,
}

impl Window {
    fn new(first: usize) -> Window {
        Window {
            first,
            crossover: first,
            next: first,
            minima: VecDeque::new(),
        }
    }

    /// The minimum time, over all `x`, at which a rank that is ready at `times[x - base]` has
    /// received `[x, y-1]`.
    #[inline]
    fn min_time(&mut self, program: &RankTimes<'_>, times: &[f64], base: usize, y: usize) -> f64 {
        if !program.fast {
            return program.last(times, base, self.first, y).0;
        }
        let costs = &program.ranges.costs;
        while self.next < y {
            let time = times[self.next - base] - costs.sending_before(self.next);
            while self.minima.back().is_some_and(|b| b.0 >= time) {
                self.minima.pop_back();
            }
            self.minima.push_back((time, self.next));
            self.next += 1;
        }
        while self.crossover < y
            && times[self.crossover - base] < program.ranges.at(self.crossover, y - 1)
        {
            self.crossover += 1;
        }
        while self.minima.front().is_some_and(|f| f.1 < self.crossover) {
            self.minima.pop_front();
        }
        let mut best = f64::INFINITY;
        if self.crossover > self.first {
            let x = self.crossover - 1;
            best = program.received(times[x - base], x, y);
        }
        if let Some(&(_, x)) = self.minima.front() {
            best = best.min(program.received(times[x - base], x, y));
        }
        // Ranges of only empty blocks.
        let x = costs.empty_from(y).max(self.first);
        if x < y {
            best = best.min(program.received(times[x - base], x, y));
        }
        best
    }
}
