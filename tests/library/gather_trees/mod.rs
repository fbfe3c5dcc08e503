//! Tests of gather trees on random problems: each planner gives the best tree of its class, and
//! schedules take the time of their tree.

mod classes;
mod links;
mod optimal;

use oneport::internal::gather::{GatherProblem, GatherTree};
use oneport::machine::{Piece, Pieces};
use oneport::random::Generator;
use oneport::{CostModel, Ports, Result};

type Plan = fn(&GatherProblem) -> Result<GatherTree>;

/// The classes of trees, in all of which the ranks of every subtree are consecutive.
trait Classes {
    /// First and last rank of each subtree, and the number of its ranks.
    fn ranges(&self) -> Vec<(usize, usize, usize)>;

    /// Whether every subtree has consecutive ranks, received in any order.
    fn is_weakly_ordered(&self) -> bool {
        let consecutive = |(low, high, count)| high - low + 1 == count;
        self.ranges().into_iter().all(consecutive)
    }

    /// Whether every rank receives in rank order, too, with its own copy in its turn (Definition 3
    /// of the paper).
    fn is_rank_ordered(&self) -> bool;

    /// Whether every range that a rank receives is adjacent to the ranks it already holds.
    fn is_adjacent(&self) -> bool;
}

impl Classes for GatherTree {
    fn ranges(&self) -> Vec<(usize, usize, usize)> {
        fn add(tree: &GatherTree, r: usize, ranges: &mut [(usize, usize, usize)]) {
            for c in tree.children(r) {
                add(tree, c.rank, ranges);
                let (low, high, count) = ranges[c.rank];
                let mine = &mut ranges[r];
                *mine = (mine.0.min(low), mine.1.max(high), mine.2 + count);
            }
        }
        let mut ranges: Vec<_> = (0..self.ranks()).map(|r| (r, r, 1)).collect();
        add(self, self.root(), &mut ranges);
        ranges
    }

    fn is_rank_ordered(&self) -> bool {
        let ordered = |r: usize| {
            let children = self.children(r);
            let (before, after) = children.split_at(self.copy_after(r));
            children.is_empty()
                || children.is_sorted_by_key(|c| c.rank)
                    && before.iter().all(|c| c.rank < r)
                    && after.iter().all(|c| c.rank > r)
        };
        self.is_weakly_ordered() && (0..self.ranks()).all(ordered)
    }

    fn is_adjacent(&self) -> bool {
        let ranges = self.ranges();
        let touches = |r: usize| {
            let mut held = (r, r);
            self.children(r).iter().all(|c| {
                let (low, high, _) = ranges[c.rank];
                let touches = high + 1 == held.0 || held.1 + 1 == low;
                held = (held.0.min(low), held.1.max(high));
                touches
            })
        };
        self.is_weakly_ordered() && (0..self.ranks()).all(touches)
    }
}

/// Random numbers, and random problems made of them.
struct Random(Generator);

impl Random {
    fn new(seed: u64) -> Random {
        Random(Generator::new(seed))
    }

    /// A random number of `0..n`.
    fn below(&mut self, n: u64) -> u64 {
        self.0.below(n as usize) as u64
    }

    /// Sizes of several kinds: all positive or some empty, even or very uneven.
    fn sizes(&mut self, p: usize) -> Vec<u64> {
        let kind = self.below(5);
        let top = [2, 5, 20, 100, 1000][self.below(5) as usize];
        (0..p)
            .map(|_| match kind {
                0 => 1 + self.below(top),
                1 => self.below(top),
                2 => self.below(3).min(1) * self.below(top),
                3 => self.below(2) * (1 + self.below(top)),
                _ => 1 + self.below(4).saturating_sub(2) * self.below(top),
            })
            .collect()
    }

    /// Blocks of up to `max_ranks` ranks. Copies cost no more than messages, so that the `O(p^2)`
    /// programs apply.
    fn problem(&mut self, root_given: bool, max_ranks: u64) -> GatherProblem {
        let p = 1 + self.below(max_ranks) as usize;
        let beta = self.below(4);
        let alpha = [0, 1, 5, 100, 1000][self.below(5) as usize];
        let copy = self.below(beta + 1);
        let cost = CostModel::new(alpha as f64, beta as f64).gamma_copy(copy as f64);
        let root = self.below(p as u64) as usize;
        GatherProblem::new(self.sizes(p), cost, root_given.then_some(root)).unwrap()
    }
}

/// The same problem for the `O(p^3)` programs: they are used where any cost has pieces, here that
/// of combining, which a gather does not need.
fn for_cubic_programs(problem: &GatherProblem) -> GatherProblem {
    let combine = vec![Piece {
        from: 0,
        alpha: 0.0,
        beta: 1.0,
    }];
    let pieces = Pieces {
        combine,
        ..Pieces::default()
    };
    let cost = problem.cost().clone().pieces(pieces).unwrap();
    GatherProblem::new(problem.sizes().to_vec(), cost, problem.root()).unwrap()
}

/// Checks that the tree's schedules are correct and take its time, on both kinds of ports.
fn prove(problem: &GatherProblem, tree: &GatherTree) {
    let blocks: Vec<usize> = problem.sizes().iter().map(|&s| s as usize).collect();
    if let Some(root) = problem.root() {
        assert_eq!(tree.root(), root);
    }
    let time = problem.time(tree);
    for ports in [Ports::UNI, Ports::BI] {
        let ports = ports.with_k(tree.ported());
        let gather = tree.gather(&blocks, ports).unwrap();
        let scatter = tree.scatter(&blocks, ports).unwrap();
        for schedule in [gather, scatter] {
            let report = schedule.check();
            assert!(
                report.is_correct(),
                "{problem:?} {tree:?}: {:?}",
                report.errors
            );
            let simulated = schedule.simulate(problem.cost()).unwrap().makespan();
            assert_eq!(simulated, time, "{problem:?} {tree:?}");
        }
    }
}
