//! Optimal rank-ordered gather trees.
//!
//! Source: the (strongly) ordered trees of Definition 3 of Träff, "On Optimal Trees for Irregular
//! Gather and Scatter Collectives"; the programs are ours. Ports: one-ported. Symbols: `p` ranks,
//! blocks `m_i`, `S[i,j] = m_i + ... + m_j`, `comm(m) = alpha + beta m`, `comm(0) = 0`, `gamma` the
//! cost of a local copy. Every rank receives in rank order, copying its own block in its place,
//! each time a range of consecutive ranks. `B[i,j]` is the time of the best tree over `i..=j`,
//! `B[i,i] = 0`; some rank that has received `[i,y-1]` and
//!
//! - has not yet come to its own block is ready at `F_i(y)`: `F_i(i) = 0`, otherwise the least
//!   `max(F_i(x), B[x,y-1]) + comm(S[x,y-1])`, `i <= x < y`;
//! - has its own block among them is ready at `G_i(y)`: the least of `F_i(y-1) + gamma m_{y-1}` and
//!   all `max(G_i(x), B[x,y-1]) + comm(S[x,y-1])`, `i < x < y`. `B[i,j] = G_i(j+1)`.
//!
//! Time: `O(p^2)` for linear costs with `gamma <= beta`, otherwise `O(p^3)`. Memory: 8 bytes a
//! range.
//!
//! # Why O(p²) is right
//! For `gamma <= beta` none of these rises when an end rank is taken away, empty blocks or not: if
//! the first rank of a range is its root, the second can take its place, and if the last is, the
//! last but one (which copies after its messages, for `gamma m_{j-1} + comm(S[x,j-2]) <=
//! comm(S[x,j-1])`); otherwise the subtree that it is in shrinks or is gone. So `F_i(x)` does not
//! fall with `x`, `B[x,y-1]` does not rise. Before `F_i(x) >= B[x,y-1]` the last `x` is best; from
//! there on it is `F_i(x) - beta P[x]` (`P` the prefix sums) plus what does not depend on `x`: the
//! minimum over a window whose ends move up with `y`. The same for `G`. Where `S[x,y-1] = 0` the
//! first such `x` is best, and looked at by itself.
//!
//! `m = 10,10,2,50`, `alpha = 5`, `beta = 1`, `gamma = 0`: root 3 receives `{0}`, then 2→1 and
//! `{1,2}`: 15 + 17 = 32, where adjacent trees take 37.

use std::collections::VecDeque;

use super::optimal::table::Costs;
use super::optimal::{MAX_RANKS, MAX_RANKS_CUBIC, Method};
use super::{GatherTree, Problem};
use crate::error::{Error, Result};
use crate::plan::gather::row::{table_of_pairs, tree_rows};
use crate::simulate::max_time;

tree_rows!(
    GATHER, SCATTER: "rank-ordered", tree {
        uniform_links_only: true,
        tables: table_of_pairs,
        source: "Träff, optimal gather trees, Definition 3; O(p^2) by oneport",
        rounds: "those of the best tree in rank order",
        volume: "those of that tree",
    }
);

/// The best rank-ordered tree.
///
/// # Errors
/// When there are more than [`MAX_RANKS`] ranks ([`MAX_RANKS_CUBIC`] for `gamma_copy > beta` and
/// costs in pieces), or links differ.
pub fn tree(problem: &Problem) -> Result<GatherTree> {
    tree_by(problem, Method::of(problem))
}

/// As [`tree`], by `method`.
///
/// # Errors
/// As [`tree`].
pub fn tree_by(problem: &Problem, method: Method) -> Result<GatherTree> {
    let p = problem.ranks();
    let most = match method {
        Method::Quadratic => MAX_RANKS,
        Method::Cubic => MAX_RANKS_CUBIC,
    };
    if p > most {
        return Err(Error::usage(format!(
            "{p} ranks are more than the {most} that optimal rank-ordered trees are looked for here"
        )));
    }
    if problem.cost().links().is_some() {
        return Err(Error::usage(
            "rank-ordered trees are planned for links that all cost the same: choose optimal",
        ));
    }
    let mut program = Program {
        costs: Costs::new(problem),
        fast: method == Method::Quadratic,
        cells: vec![0.0; p * (p + 1) / 2],
    };
    let ranges = match problem.root() {
        None => vec![(0, p)],
        Some(root) => vec![(0, root), (root + 1, p)],
    };
    for (start, end) in ranges {
        for i in (start..end).rev() {
            let (mut before, mut after) = (Vec::new(), Vec::new());
            program.row(i, end, &mut before, &mut after);
        }
    }
    Ok(program.tree(problem.root()))
}

#[derive(Debug)]
struct Program<'a> {
    costs: Costs<'a>,
    fast: bool,
    /// Row after row, from the diagonal on.
    cells: Vec<f64>,
}

impl Program<'_> {
    #[inline]
    fn index(&self, i: usize, j: usize) -> usize {
        i * (2 * self.costs.ranks() + 1 - i) / 2 + j - i
    }

    #[inline]
    fn at(&self, i: usize, j: usize) -> f64 {
        self.cells[self.index(i, j)]
    }

    /// When a rank is ready that was so at `ready`, having received up to before `x`, and now
    /// receives `[x, y-1]`.
    #[inline]
    fn received(&self, ready: f64, x: usize, y: usize) -> f64 {
        max_time(ready, self.at(x, y - 1)) + self.costs.message(x, y - 1)
    }

    /// `F_i` and `G_i` of `i..=end` (from index 0 on), and the row of `B`.
    fn row(&mut self, i: usize, end: usize, before: &mut Vec<f64>, after: &mut Vec<f64>) {
        before.clear();
        after.clear();
        before.push(0.0);
        // A range of no rank does not hold its root.
        after.push(f64::INFINITY);
        let (mut without, mut with) = (Window::new(i), Window::new(i + 1));
        for y in i + 1..=end {
            let own = before[y - 1 - i] + self.costs.copy(y - 1);
            let time = own.min(with.least(self, after, i, y));
            after.push(time);
            if y > i + 1 {
                let at = self.index(i, y - 1);
                self.cells[at] = time;
            }
            before.push(without.least(self, before, i, y));
        }
    }

    /// `G` from `start` on, where it is `ready`, up to `end`.
    fn extended(&self, start: usize, ready: f64, end: usize) -> Vec<f64> {
        let mut after = vec![ready];
        let mut window = Window::new(start);
        for y in start + 1..=end {
            after.push(window.least(self, &after, start, y));
        }
        after
    }

    /// The last range received, of those that start at `least` or later, by a rank that is ready at
    /// `times` (from `base` on), before `y`.
    fn last(&self, times: &[f64], base: usize, least: usize, y: usize) -> (f64, usize) {
        let timed = (least..y).map(|x| (self.received(times[x - base], x, y), x));
        timed
            .reduce(|best, next| if next.0 < best.0 { next } else { best })
            .unwrap_or((f64::INFINITY, least))
    }

    fn tree(&mut self, root: Option<usize>) -> GatherTree {
        let p = self.costs.ranks();
        let mut tree = GatherTree::bare(p, 0);
        let mut work = vec![(0, p - 1, root, None)];
        let (mut before, mut after) = (Vec::new(), Vec::new());
        while let Some((i, j, given, receiver)) = work.pop() {
            let mut received = Vec::new();
            let mut y = j + 1;
            // Ranges after the root, then the root, then ranges before it.
            let top = match given {
                Some(root) => {
                    self.row(i, root, &mut before, &mut after);
                    let ready = before[root - i] + self.costs.copy(root);
                    let times = self.extended(root + 1, ready, y);
                    while y > root + 1 {
                        let x = self.last(&times, root + 1, root + 1, y).1;
                        received.push((x, y - 1));
                        y = x;
                    }
                    root
                }
                None => {
                    self.row(i, y, &mut before, &mut after);
                    loop {
                        let own = before[y - 1 - i] + self.costs.copy(y - 1);
                        let (time, x) = self.last(&after, i, i + 1, y);
                        if own <= time {
                            break y - 1;
                        }
                        received.push((x, y - 1));
                        y = x;
                    }
                }
            };
            let copy_after = received.len();
            y = top;
            while y > i {
                let x = self.last(&before, i, i, y).1;
                received.push((x, y - 1));
                y = x;
            }
            match receiver {
                None => tree.set_root(top),
                Some((parent, slot)) => tree.name_child(parent, slot, top),
            }
            let copy_at = received.len() - copy_after;
            for (slot, &(a, b)) in received.iter().rev().enumerate() {
                if slot == copy_at {
                    tree.copy_now(top);
                }
                tree.receive(top, a, 0);
                work.push((a, b, None, Some((top, slot))));
            }
            if copy_at == received.len() {
                tree.copy_now(top);
            }
        }
        tree
    }
}

/// Which range to receive last, for one `y` after another.
#[derive(Debug)]
struct Window {
    /// First start of a range.
    least: usize,
    /// First start of those that are complete no later than the receiver is ready.
    even: usize,
    /// First start of a range that has not joined.
    next: usize,
    /// Starts from `even` on, by rising time.
    minima: VecDeque<(f64, usize)>,
}

impl Window {
    fn new(least: usize) -> Window {
        Window {
            least,
            even: least,
            next: least,
            minima: VecDeque::new(),
        }
    }

    /// The least time in which `[x, y-1]` is received by a rank ready at `times[x - base]`, over
    /// all `x`.
    #[inline]
    fn least(&mut self, program: &Program<'_>, times: &[f64], base: usize, y: usize) -> f64 {
        if !program.fast {
            return program.last(times, base, self.least, y).0;
        }
        let costs = &program.costs;
        while self.next < y {
            let time = times[self.next - base] - costs.sending_before(self.next);
            while self.minima.back().is_some_and(|b| b.0 >= time) {
                self.minima.pop_back();
            }
            self.minima.push_back((time, self.next));
            self.next += 1;
        }
        while self.even < y && times[self.even - base] < program.at(self.even, y - 1) {
            self.even += 1;
        }
        while self.minima.front().is_some_and(|f| f.1 < self.even) {
            self.minima.pop_front();
        }
        let mut best = f64::INFINITY;
        if self.even > self.least {
            let x = self.even - 1;
            best = program.received(times[x - base], x, y);
        }
        if let Some(&(_, x)) = self.minima.front() {
            best = best.min(program.received(times[x - base], x, y));
        }
        // Where nothing but empty blocks is received.
        let x = costs.empty_from(y).max(self.least);
        if x < y {
            best = best.min(program.received(times[x - base], x, y));
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::super::optimal;
    use super::super::testing::{Random, prove};
    use super::*;
    use crate::CostModel;

    #[test]
    fn the_fast_program_equals_the_cubic_one() {
        let mut random = Random(31);
        for round in 0..6000 {
            let most = if round % 50 == 0 { 50 } else { 12 };
            let problem = random.problem(round % 2 == 0, most);
            let [fast, slow] =
                [Method::Quadratic, Method::Cubic].map(|m| tree_by(&problem, m).unwrap());
            assert_eq!(problem.time(&fast), problem.time(&slow), "{problem:?}");
            assert!(fast.is_rank_ordered());
            if round % 60 == 0 {
                prove(&problem, &fast);
                prove(&problem, &slow);
            }
        }
    }

    #[test]
    fn neither_ordered_class_contains_the_other() {
        let time = |sizes: &[u64], alpha: f64, gamma: f64, root| {
            let cost = CostModel::new(alpha, 1.0).gamma_copy(gamma);
            let problem = Problem::new(sizes.to_vec(), cost, root).unwrap();
            let rank_ordered = tree(&problem).unwrap();
            (
                problem.time(&optimal::tree(&problem).unwrap()),
                problem.time(&rank_ordered),
            )
        };
        assert_eq!(time(&[10, 10, 2, 50], 5.0, 0.0, None), (37.0, 32.0));
        let partition = [21, 31, 31, 31, 41, 41, 41, 61, 61, 131, 240, 250];
        assert_eq!(time(&partition, 1.0, 1.0, None), (983.0, 986.0));
    }
}
