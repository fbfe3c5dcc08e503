//! Weakly ordered gather trees: every rank gathers consecutive ranks, and receives parts of them in
//! any order.
//!
//! - Source: Träff, "On Optimal Trees for Irregular Gather and Scatter Collectives", after
//!   Definition 3, which leaves open how hard the best one is to find; the algorithms are our own.
//! - Symbols: `p` ranks, blocks `m_i`; `W[i,j]` is the time of the best tree over `i..=j`, with
//!   `W[i,i] = 0`.
//! - Class: contains the adjacent and the rank-ordered trees.
//!
//! The two planners:
//!
//! - [`exact`]: the root `r` of `[i,j]` receives a partition of `[i,r-1]` and one of `[r+1,j]` into
//!   ranges. The best order is obvious: the range that is complete first is received first, and the
//!   root's own copy, complete at 0, comes before all. Partitions are tried one part after another,
//!   and abandoned as soon as they cannot beat the best one so far: `O(p^2 2^p)` at worst, refused
//!   for more than 20 ranks.
//! - [`tree`]: exact for few ranks. For more, the better of the best adjacent and the best
//!   rank-ordered tree, with children received in the order in which they are complete, if that is
//!   faster.
//!
//! No polynomial algorithm is known. For a fixed root and division, the time is the maximum over
//! all parts `q` of `ready_q` plus the sum of `comm` over all parts that are ready no earlier than
//! `q`. Whether a division meets a given time depends on as many conditions as it has parts, which
//! prevents a dynamic program over ranks.
//!
//! Example, `m = 10,10,2,50`, `alpha = 5`, `beta = 1`, `gamma = 0`: 32, root 3 receives `{0}`, then
//! `{1,2}`.

use super::optimal::table::RangeCosts;
use super::tree::Received;
use super::{GatherProblem, GatherTree, ensure_few, optimal, rank_ordered};
use crate::plan::gather::row::{table_of_pairs, tree_rows};
use crate::plan::prelude::*;

tree_rows!(
    GATHER, SCATTER: "weakly-ordered", tree {
        tables: table_of_pairs,
        source: "Träff, optimal gather trees, after Definition 3; oneport",
        rounds: "those of the best tree of consecutive ranks (p <= 12), or one at least as good as optimal and rank-ordered",
        volume: "those of that tree",
    }
);

/// Maximum number of ranks for [`exact`].
pub const MAX_EXACT: usize = 20;
/// Maximum number of ranks for which [`tree`] is exact.
const EXACT: usize = 12;

/// The best tree found: see the [module documentation](self). Takes as long as [`optimal::tree`]
/// for more than 12 ranks, and where links differ in cost.
pub fn tree(problem: &GatherProblem) -> Result<GatherTree> {
    if problem.cost().links().is_some() {
        return optimal::tree(problem);
    }
    if problem.ranks() <= EXACT {
        return exact(problem);
    }
    let trees = [optimal::tree(problem)?, rank_ordered::tree(problem)?];
    let sorted = trees
        .clone()
        .map(|tree| sorted_by_completion(problem, tree));
    let first = trees[0].clone();
    Ok(problem
        .fastest(trees.into_iter().chain(sorted))
        .unwrap_or(first))
}

/// The same tree, in which every rank copies first and then receives from its children in the order
/// in which they are complete. No rank is complete later than before.
fn sorted_by_completion(problem: &GatherProblem, mut tree: GatherTree) -> GatherTree {
    let (sizes, cost) = (problem.sizes(), problem.cost());
    let sums = tree.subtree_sizes(sizes);
    let mut times = vec![0.0f64; tree.ranks()];
    for &r in tree.top_down().iter().rev() {
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

/// The best weakly ordered tree, in at most `O(p^2 2^p)` time and `O(p^2)` memory.
pub fn exact(problem: &GatherProblem) -> Result<GatherTree> {
    let p = problem.ranks();
    ensure_few(p, MAX_EXACT, "the best weakly ordered tree is computed")?;
    if problem.cost().links().is_some() {
        return Err(Error::usage(
            "the best weakly ordered tree is computed only where all links cost the same",
        ));
    }
    let mut program = WeakTimes {
        costs: RangeCosts::new(problem),
        whole_is_best: problem.cost().linear().is_some(),
        times: vec![0.0; p * p],
    };
    for i in (0..p).rev() {
        for j in i + 1..p {
            program.times[i * p + j] = program.best((i, j), i..=j).0;
        }
    }
    let root = problem.root();
    Ok(GatherTree::of_ranges(p, root, |range, root| {
        let roots = root.map_or(range.0..=range.1, |r| r..=r);
        let (_, root, parts) = program.best(range, roots);
        Received {
            root,
            parts: parts.iter().map(|part| (part.range, None)).collect(),
            copy_after: 0,
        }
    }))
}

#[derive(Debug)]
struct WeakTimes<'a> {
    costs: RangeCosts<'a>,
    /// Whether one message takes no longer than the same data in several messages.
    whole_is_best: bool,
    times: Vec<f64>,
}

/// A received range, the time at which it is complete, and the time of its message.
#[derive(Debug, Clone, Copy)]
struct ReceivedRange {
    range: (usize, usize),
    ready: f64,
    message: f64,
}

impl WeakTimes<'_> {
    /// The best time of `[i, j]` over all `roots`, the best root, and the parts it receives, in
    /// order.
    fn best(
        &self,
        (i, j): (usize, usize),
        roots: impl Iterator<Item = usize>,
    ) -> (f64, usize, Vec<ReceivedRange>) {
        let mut best = (f64::INFINITY, i, Vec::new());
        if i == j {
            best.0 = 0.0;
            return best;
        }
        for r in roots {
            let mut search = RangeSearch {
                program: self,
                range: (i, j),
                root: r,
                parts: Vec::new(),
                best: best.0,
                found: None,
            };
            search.divide(r, r, 0.0);
            if let Some(parts) = search.found {
                best = (search.best, r, parts);
            }
        }
        best
    }

    fn part(&self, a: usize, b: usize) -> ReceivedRange {
        ReceivedRange {
            range: (a, b),
            ready: self.times[a * self.costs.ranks() + b],
            message: self.costs.message(a, b),
        }
    }
}

/// The search through all divisions of a range for its root, except those that cannot beat the best
/// one so far.
struct RangeSearch<'a> {
    program: &'a WeakTimes<'a>,
    range: (usize, usize),
    root: usize,
    /// The parts chosen so far, by the time at which they are complete.
    parts: Vec<ReceivedRange>,
    best: f64,
    found: Option<Vec<ReceivedRange>>,
}

impl RangeSearch<'_> {
    /// Divides the ranks of the range outside `[low, high]`. The messages of the parts chosen so
    /// far take `spent`.
    fn divide(&mut self, low: usize, high: usize, spent: f64) {
        let (program, (i, j)) = (self.program, self.range);
        let copy = program.costs.copy(self.root);
        // A lower bound: further parts only add to this time.
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
        // Try the largest parts first: they need few messages.
        if low > i {
            for a in i..low {
                let part = program.part(a, low - 1);
                self.with_part(part, |s| s.divide(a, high, spent + part.message));
            }
        } else {
            for b in (high + 1..=j).rev() {
                let part = program.part(high + 1, b);
                self.with_part(part, |s| s.divide(low, b, spent + part.message));
            }
        }
    }

    fn with_part(&mut self, part: ReceivedRange, then: impl FnOnce(&mut Self)) {
        let at = self.parts.partition_point(|p| p.ready <= part.ready);
        self.parts.insert(at, part);
        then(self);
        self.parts.remove(at);
    }
}
