//! Binomial gather trees over ordered subcubes: one oblivious of the block sizes, two adapted to
//! them.
//!
//! - Source: folklore (oblivious); Träff, "Practical, Linear-time, Fully Distributed Algorithms for
//!   Irregular Gather and Scatter", Lemmas 1 and 2, and "On Optimal Trees for Irregular Gather and
//!   Scatter Collectives", Proposition 1 (adaptive).
//! - Symbols: `p` ranks, blocks `m_i`, `g` the cost of copying a byte over that of sending it; a
//!   subcube is a range of ranks `[a 2^d, (a + 1) 2^d)`, the last one possibly cut off at `p`.
//! - Time of the adaptive tree, if the root is free: at most
//!   `ceil(log2 p) alpha + beta (sum_{i != r} m_i + g m_r)` for a root `r`, so with `gamma_copy =
//!   beta` at most `ceil(log2 p) alpha + beta sum m_i`.
//! - Class: adjacent trees.
//!
//! One message from the root of one subcube to the root of the other joins two adjacent subcubes. A
//! subcube that contains the given root is rooted there. Otherwise:
//! - oblivious: the higher-numbered side receives, so every subcube is rooted at its last rank;
//! - adaptive: the side that takes longer to gather receives, by the estimate
//!   `sum_{i != root} m_i + g m_root`. Of two equal sides the one with more data receives, then the
//!   one whose root's block is smaller, then the higher-numbered one. No receiver waits, except for
//!   a given root. With free copies this is Lemma 1, with `g = 1` (all data) Proposition 1.
//!
//! For a given root the estimate `g = 0` is sometimes the better one although copies take time, so
//! then both trees are made, and the faster one is taken. A free root is the best one of all: the
//! subcubes that do not contain the root are the same for every root, so that each takes
//! `O(log p)` to time.
//!
//! Every rank copies its own block before it receives.
//!
//! Example, `p = 11`, `m = 1,0,2,3,4,2,0,0,1,7,5`, root 9, adaptive: 1→0, 2→3, 5→4, 6→7, 8→9; 0→3,
//! 7→4, 10→9; 4→3; 3→9.

use super::{GatherProblem, GatherTree, fastest};
use crate::plan::gather::row::tree_rows;
use crate::plan::prelude::*;
use crate::plan::segments::SymbolValues;

tree_rows!(
    OBLIVIOUS_GATHER, OBLIVIOUS_SCATTER: "oblivious", oblivious {
        best_root: crate::plan::registry::BestRoot::Own,
        source: "folklore; Träff, optimal gather trees, section 5.1",
        rounds: "ceil(log2 p)",
        volume: "at most ceil(log2 p) times each block",
    }
);

tree_rows!(
    BEST_ROOT_GATHER, BEST_ROOT_SCATTER: "oblivious-best-root", oblivious {
        best_root: crate::plan::registry::BestRoot::Own,
        source: "oneport",
        rounds: "ceil(log2 p)",
        volume: "at most ceil(log2 p) times each block",
    }
);

tree_rows!(
    ADAPTIVE_GATHER, ADAPTIVE_SCATTER: "adaptive", adaptive {
        published: Some(published),
        best_root: crate::plan::registry::BestRoot::Own,
        source: "Träff, adaptive gather trees, Lemmas 1 and 2; optimal gather trees, Proposition 1",
        rounds: "ceil(log2 p)",
        volume: "at most ceil(log2 p) times each block",
    }
);

/// The oblivious tree, with a free root the best one over all roots. Takes `O(p log p)` time, or
/// `O(p)` with a given root.
pub fn oblivious(problem: &GatherProblem) -> Result<GatherTree> {
    Ok(best_root_tree(problem, |_, _| false))
}

/// The adaptive tree, with a free root the best one over all roots. Takes `O(p log p)` time, or
/// `O(p)` with a given root.
pub fn adaptive(problem: &GatherProblem) -> Result<GatherTree> {
    let fastest = problem.fastest(adaptive_trees(problem));
    Ok(fastest.expect("there is at least one estimate"))
}

/// The bound of Lemma 2, or of Lemma 1 for a free root, with free copies: of the neighbouring
/// subcubes that a given root receives from, one may take longer to gather than what the root has
/// received before.
fn published(x: &SymbolValues<'_>) -> Option<Published> {
    let problem = GatherProblem::of(x.request).ok()?;
    let cost = problem
        .cost()
        .linear()
        .filter(|line| line.gamma_copy == 0.0)?;
    let levels = SubcubeLevels::new(&problem, takes_longer(0.0));
    let root = problem.root().or_else(|| {
        let tree = join_subcubes(&problem, None, 2, takes_longer(0.0));
        Some(tree.root())
    })?;
    let (mut received, mut penalty) = (0, 0u64);
    for (d, level) in levels.0.iter().enumerate() {
        if let Some(neighbour) = level.get((root >> d) ^ 1) {
            penalty = penalty.max(neighbour.cube.others.saturating_sub(received));
            received += neighbour.cube.data();
        }
    }
    let penalty = cost.beta * penalty as f64;
    Some(Published {
        time: x.l * cost.alpha + cost.beta * received as f64 + penalty,
        penalty: Some(penalty),
        ..x.whole(LEMMA_2, 0.0)
    })
}

const LEMMA_2: &str = "at most; Lemmas 1 and 2; Träff, adaptive gather trees";

/// The adaptive trees of all estimates.
pub(super) fn adaptive_trees(problem: &GatherProblem) -> impl Iterator<Item = GatherTree> {
    block_weights(problem).map(|weight| best_root_tree(problem, takes_longer(weight)))
}

/// What a byte of a root's own block counts in the estimates of [`adaptive`] trees, compared with
/// a byte that is sent.
pub(super) fn block_weights(problem: &GatherProblem) -> impl Iterator<Item = f64> {
    let (cost, sizes) = (problem.cost(), problem.sizes());
    let copies = (0..problem.ranks()).any(|r| cost.copy(r, sizes[r]) > 0.0);
    // Without a price per byte sent, only the copies tell: more than all bytes together.
    const MAX: f64 = (1u64 << 60) as f64;
    let weight = cost
        .linear()
        .map_or(1.0, |line| (line.gamma_copy / line.beta).min(MAX));
    [0.0].into_iter().chain(copies.then_some(weight))
}

/// Whether the lower-numbered of two subcubes takes longer to gather, by the estimate in which a
/// byte of the root's own block counts `block_weight`.
pub(super) fn takes_longer(block_weight: f64) -> impl Fn(Subcube, Subcube) -> bool {
    let estimate = move |c: Subcube| {
        let own = block_weight * c.block as f64;
        (c.others as f64 + own, c.data(), c.others)
    };
    move |low, high| estimate(low) > estimate(high)
}

/// A subcube whose data has been gathered at its root. Sizes are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subcube {
    /// The rank at which its data is gathered.
    pub root: usize,
    /// Size of the root's own block.
    pub block: u64,
    /// Size of all its other blocks: the time to gather them, except for latency.
    pub others: u64,
}

impl Subcube {
    /// Whether this subcube receives when joined with its higher-numbered neighbour `high`, if both
    /// may and copies cost nothing.
    pub fn receives_from(self, high: Subcube) -> bool {
        takes_longer(0.0)(self, high)
    }

    /// Size of all its blocks.
    pub fn data(self) -> u64 {
        self.others + self.block
    }

    /// This subcube after it has received the data of `sender`.
    pub fn with(self, sender: Subcube) -> Subcube {
        Subcube {
            others: self.others + sender.data(),
            ..self
        }
    }
}

/// The tree that joins `radix` adjacent subcubes at once, dimension by dimension. `low_receives`
/// decides which of two subcubes receives where the root does not.
pub(super) fn join_subcubes(
    problem: &GatherProblem,
    root: Option<usize>,
    radix: usize,
    low_receives: impl Fn(Subcube, Subcube) -> bool,
) -> GatherTree {
    let mut tree = GatherTree::unconnected(problem.ranks(), 0);
    let blocks = problem.sizes().iter().enumerate();
    let others = 0;
    let single = |(root, &block)| Subcube {
        root,
        block,
        others,
    };
    let mut cubes: Vec<Subcube> = blocks.map(single).collect();
    while cubes.len() > 1 {
        let joined = cubes.chunks(radix).map(|group| {
            let given = group.iter().position(|c| Some(c.root) == root);
            let best = |best, i| {
                if low_receives(group[best], group[i]) {
                    best
                } else {
                    i
                }
            };
            let to = given.unwrap_or_else(|| (1..group.len()).fold(0, best));
            let senders = group.iter().enumerate().filter(|&(i, _)| i != to);
            senders
                .enumerate()
                .fold(group[to], |to, (port, (_, &from))| {
                    tree.add_child(to.root, from.root, port);
                    to.with(from)
                })
        });
        cubes = joined.collect();
    }
    tree.set_root(cubes[0].root);
    tree
}

/// The tree of [`join_subcubes`] in pairs: to the given root, or to the first of the best ones.
fn best_root_tree(
    problem: &GatherProblem,
    low_receives: impl Fn(Subcube, Subcube) -> bool,
) -> GatherTree {
    let best = || {
        let levels = SubcubeLevels::new(problem, &low_receives);
        let timed = (0..problem.ranks()).map(|root| (levels.time(problem, root), root));
        fastest(timed).map_or(0, |(_, root)| root)
    };
    let root = problem.root().unwrap_or_else(best);
    join_subcubes(problem, Some(root), 2, low_receives)
}

/// A subcube without the given root, gathered by a tree of its own.
#[derive(Debug, Clone, Copy)]
struct Gathered {
    cube: Subcube,
    ranks: usize,
    /// When its root has all data. A single rank has not copied its block: it sends it from where
    /// it is.
    ready: f64,
}

impl Gathered {
    /// The time at which its root has all data of `sender`, too.
    fn receive(&self, problem: &GatherProblem, sender: &Gathered) -> f64 {
        let cost = problem.cost();
        let time = match self.ranks {
            1 => cost.copy(self.cube.root, self.cube.block),
            _ => self.ready,
        };
        match sender.cube.data() {
            0 => time,
            data => {
                max_time(time, sender.ready) + cost.transfer(sender.cube.root, self.cube.root, data)
            }
        }
    }
}

/// All subcubes, each gathered at the root that `low_receives` leads to:
/// `levels[dimension][subcube]`.
struct SubcubeLevels(Vec<Vec<Gathered>>);

impl SubcubeLevels {
    fn new(
        problem: &GatherProblem,
        low_receives: impl Fn(Subcube, Subcube) -> bool,
    ) -> SubcubeLevels {
        let single = |(root, &block)| Gathered {
            cube: Subcube {
                root,
                block,
                others: 0,
            },
            ranks: 1,
            ready: 0.0,
        };
        let join = |pair: &[Gathered]| {
            let &[low, high] = pair else { return pair[0] };
            let (to, from) = if low_receives(low.cube, high.cube) {
                (low, high)
            } else {
                (high, low)
            };
            Gathered {
                cube: to.cube.with(from.cube),
                ranks: low.ranks + high.ranks,
                ready: to.receive(problem, &from),
            }
        };
        let mut level: Vec<Gathered> = problem.sizes().iter().enumerate().map(single).collect();
        let mut levels = Vec::new();
        while level.len() > 1 {
            let next = level.chunks(2).map(join).collect();
            levels.push(std::mem::replace(&mut level, next));
        }
        SubcubeLevels(levels)
    }

    /// The time of the tree to `root`, which receives from the neighbour of each subcube that
    /// contains it.
    fn time(&self, problem: &GatherProblem, root: usize) -> f64 {
        let Some(singles) = self.0.first() else {
            return 0.0;
        };
        let mut mine = singles[root];
        for (d, level) in self.0.iter().enumerate() {
            if let Some(neighbour) = level.get((root >> d) ^ 1) {
                mine.ready = mine.receive(problem, neighbour);
                mine.ranks += neighbour.ranks;
            }
        }
        mine.ready
    }
}
