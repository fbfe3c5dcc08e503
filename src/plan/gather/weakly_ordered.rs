//! Weakly ordered gather trees: every rank gathers consecutive ranks, and receives parts of them in
//! any order.
//!
//! Source: Träff, "On Optimal Trees for Irregular Gather and Scatter Collectives", after Definition
//! 3, which leaves open how hard the best one is to find; the programs are ours. Ports: one-ported.
//! Symbols: `p` ranks, blocks `m_i`, `W[i,j]` the time of the best tree over `i..=j`, `W[i,i] = 0`.
//! Contains the adjacent and the rank-ordered trees.
//!
//! - [`exact`]: the root `r` of `[i,j]` receives a partition of `[i,r-1]` and one of `[r+1,j]` into
//!   ranges. Which order is best is plain: whatever is complete first is received first, its own
//!   copy, complete at 0, before all. Partitions are tried one part after another, and left as soon
//!   as they cannot be better than the best one so far: `O(p^2 2^p)` at worst, refused for more
//!   than 20 ranks.
//! - [`tree`]: exact for few ranks; beyond, the better of the best adjacent and the best
//!   rank-ordered tree, in which then every rank receives what is complete first first, if that is
//!   better.
//!
//! No polynomial program is known. For a fixed root and division the time is the greatest of
//! `ready_q + sum of comm` over all parts that are ready no earlier than `q`, so a division is
//! right or wrong by as many conditions as it has parts, which is what stands in the way of a
//! dynamic program over ranks.
//!
//! `m = 10,10,2,50`, `alpha = 5`, `beta = 1`, `gamma = 0`: 32, root 3 receives `{0}`, then `{1,2}`.

use super::optimal::table::Costs;
use super::{Child, GatherTree, Problem, optimal, rank_ordered};
use crate::error::{Error, Result};
use crate::plan::gather::row::{table_of_pairs, tree_rows};
use crate::simulate::max_time;

tree_rows!(
    GATHER, SCATTER: "weakly-ordered", tree {
        tables: table_of_pairs,
        source: "Träff, optimal gather trees, after Definition 3; oneport",
        rounds: "those of the best tree of consecutive ranks (p <= 12), or one at least as good as optimal and rank-ordered",
        volume: "those of that tree",
    }
);

/// Most ranks for [`exact`].
pub const MAX_EXACT: usize = 20;
/// Up to as many ranks [`tree`] is exact.
const EXACT: usize = 12;

/// The best tree that is found: see the [module documentation](self).
///
/// # Errors
/// As [`optimal::tree`] for more ranks than are tried exactly.
pub fn tree(problem: &Problem) -> Result<GatherTree> {
    if problem.cost().links().is_some() {
        return optimal::tree(problem);
    }
    if problem.ranks() <= EXACT {
        return exact(problem);
    }
    let trees = [optimal::tree(problem)?, rank_ordered::tree(problem)?];
    let sorted = trees.clone().map(|tree| first_come(problem, tree));
    let first = trees[0].clone();
    Ok(problem
        .fastest(trees.into_iter().chain(sorted))
        .unwrap_or(first))
}

/// The same tree, in which every rank copies first and then receives in the order in which its
/// children are complete: no later than before.
fn first_come(problem: &Problem, mut tree: GatherTree) -> GatherTree {
    let (sizes, cost) = (problem.sizes(), problem.cost());
    let sums = tree.subtree_sizes(sizes);
    let mut times = vec![0.0f64; tree.ranks()];
    for &r in tree.downwards().iter().rev() {
        let mut children = tree.children(r).to_vec();
        if children.is_empty() {
            continue;
        }
        children.sort_by(|a, b| times[a.rank].total_cmp(&times[b.rank]));
        times[r] = children.iter().fold(cost.copy(r, sizes[r]), |t, c| {
            if sums[c.rank] == 0 {
                t
            } else {
                max_time(t, times[c.rank]) + cost.transfer(c.rank, r, sums[c.rank])
            }
        });
        tree.set_children(r, children);
    }
    tree
}

/// The best weakly ordered tree.
///
/// # Errors
/// When there are more than [`MAX_EXACT`] ranks, or links differ.
pub fn exact(problem: &Problem) -> Result<GatherTree> {
    let p = problem.ranks();
    if p > MAX_EXACT {
        return Err(Error::usage(format!(
            "{p} ranks are more than the {MAX_EXACT} for which the best weakly ordered tree is looked for"
        )));
    }
    if problem.cost().links().is_some() {
        return Err(Error::usage(
            "the best weakly ordered tree is looked for where links cost the same",
        ));
    }
    let mut program = Program {
        costs: Costs::new(problem),
        whole_is_best: problem.cost().is_linear(),
        times: vec![0.0; p * p],
    };
    for i in (0..p).rev() {
        for j in i + 1..p {
            program.times[i * p + j] = program.best((i, j), i..=j).0;
        }
    }
    let mut tree = GatherTree::bare(p, 0);
    let mut work = vec![((0, p - 1), problem.root(), None)];
    while let Some((range, root, receiver)) = work.pop() {
        let roots = root.map_or(range.0..=range.1, |r| r..=r);
        let (_, r, parts) = program.best(range, roots);
        match receiver {
            None => tree.set_root(r),
            Some((parent, slot)) => tree.name_child(parent, slot, r),
        }
        let children = parts.iter().map(|part| Child {
            rank: part.range.0,
            port: 0,
        });
        tree.set_children(r, children.collect());
        for (slot, part) in parts.iter().enumerate() {
            work.push((part.range, None, Some((r, slot))));
        }
    }
    Ok(tree)
}

#[derive(Debug)]
struct Program<'a> {
    costs: Costs<'a>,
    /// Whether a message in one part takes no longer than in several.
    whole_is_best: bool,
    times: Vec<f64>,
}

/// A range that is received, and when it is complete.
#[derive(Debug, Clone, Copy)]
struct Part {
    range: (usize, usize),
    ready: f64,
    message: f64,
}

impl Program<'_> {
    /// The best time of `[i, j]` rooted at one of `roots`, that root, and what it receives, in
    /// order.
    fn best(
        &self,
        (i, j): (usize, usize),
        roots: impl Iterator<Item = usize>,
    ) -> (f64, usize, Vec<Part>) {
        let mut best = (f64::INFINITY, i, Vec::new());
        if i == j {
            best.0 = 0.0;
            return best;
        }
        for r in roots {
            let mut search = Search {
                program: self,
                range: (i, j),
                root: r,
                parts: Vec::new(),
                best: best.0,
                found: None,
            };
            search.from(r, r, 0.0);
            if let Some(parts) = search.found {
                best = (search.best, r, parts);
            }
        }
        best
    }

    fn part(&self, a: usize, b: usize) -> Part {
        Part {
            range: (a, b),
            ready: self.times[a * self.costs.ranks() + b],
            message: self.costs.message(a, b),
        }
    }
}

/// All ways to divide a range for its root, but for those that are certainly no better than the
/// best so far.
struct Search<'a> {
    program: &'a Program<'a>,
    range: (usize, usize),
    root: usize,
    /// What is received so far, by the time at which it is complete.
    parts: Vec<Part>,
    best: f64,
    found: Option<Vec<Part>>,
}

impl Search<'_> {
    /// Divides what is left when `[low, high]` is done, for which messages take `spent`.
    fn from(&mut self, low: usize, high: usize, spent: f64) {
        let (program, (i, j)) = (self.program, self.range);
        let copy = program.costs.copy(self.root);
        // What is received later adds to this.
        let time = self.parts.iter().fold(copy, |t, part| {
            let (a, b) = part.range;
            match program.costs.size(a, b) {
                0 => t,
                _ => max_time(t, part.ready) + part.message,
            }
        });
        if time >= self.best {
            return;
        }
        if (low, high) == (i, j) {
            self.best = time;
            self.found = Some(self.parts.clone());
            return;
        }
        if program.whole_is_best {
            let left = if low > i {
                program.costs.message(i, low - 1)
            } else {
                0.0
            };
            let right = if high < j {
                program.costs.message(high + 1, j)
            } else {
                0.0
            };
            if copy + (spent + left + right) >= self.best {
                return;
            }
        }
        // The largest parts first: they make few messages.
        if low > i {
            for a in i..low {
                let part = program.part(a, low - 1);
                self.with(part, |s| s.from(a, high, spent + part.message));
            }
        } else {
            for b in (high + 1..=j).rev() {
                let part = program.part(high + 1, b);
                self.with(part, |s| s.from(low, b, spent + part.message));
            }
        }
    }

    fn with(&mut self, part: Part, then: impl FnOnce(&mut Self)) {
        let at = self.parts.partition_point(|p| p.ready <= part.ready);
        self.parts.insert(at, part);
        then(self);
        self.parts.remove(at);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Random;
    use super::*;

    /// The least time, over all divisions of all ranges for all roots.
    fn direct(problem: &Problem) -> f64 {
        let (p, costs) = (problem.ranks(), Costs::new(problem));
        let mut times = vec![0.0f64; p * p];
        for i in (0..p).rev() {
            for j in i + 1..p {
                let given = problem.root().filter(|_| (i, j) == (0, p - 1));
                let mut best = f64::INFINITY;
                for r in given.map_or(i..=j, |r| r..=r) {
                    // Bit b is a cut before rank i + 1 + b; those next to the root are always made.
                    for cuts in 0..1usize << (j - i) {
                        let cut = |k: usize| {
                            k == j + 1 || k == r || k == r + 1 || cuts >> (k - i - 1) & 1 == 1
                        };
                        let mut parts = Vec::new();
                        let mut first = i;
                        for k in (i + 1..=j + 1).filter(|&k| cut(k)) {
                            if first != r {
                                parts.push((times[first * p + k - 1], first, k - 1));
                            }
                            first = k;
                        }
                        parts.sort_by(|a, b| a.0.total_cmp(&b.0));
                        let time =
                            parts.iter().fold(costs.copy(r), |t, &(ready, a, b)| {
                                match costs.size(a, b) {
                                    0 => t,
                                    _ => max_time(t, ready) + costs.message(a, b),
                                }
                            });
                        best = best.min(time);
                    }
                }
                times[i * p + j] = best;
            }
        }
        times[p - 1]
    }

    #[test]
    fn the_search_equals_all_divisions() {
        let mut random = Random(91);
        for round in 0..300 {
            let mut problem = random.problem(round % 2 == 0, 8);
            if round % 3 == 0 {
                let cost = problem.cost().clone().gamma_copy(5.0);
                problem = Problem::new(problem.sizes().to_vec(), cost, problem.root()).unwrap();
            }
            let tree = exact(&problem).unwrap();
            assert!(tree.is_weakly_ordered());
            assert_eq!(problem.time(&tree), direct(&problem), "{problem:?}");
        }
    }
}
