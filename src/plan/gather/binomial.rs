//! Binomial gather trees over ordered subcubes: one oblivious of the block sizes, two adapted to
//! them.
//!
//! - Source: folklore (oblivious); Träff, "Practical, Linear-time, Fully Distributed Algorithms for
//!   Irregular Gather and Scatter", Lemmas 1 and 2 (adaptive).
//! - Symbols: `p` ranks, blocks `m_i`; a subcube is a range of ranks `[a 2^d, (a + 1) 2^d)`, the
//!   last one possibly cut off at `p`.
//! - Time of the adaptive tree: at most
//!   `ceil(log2 p) alpha + beta sum_{i != r} m_i + gamma_copy m_r`, where `r` is the root, if the
//!   root is free and `gamma_copy = 0`.
//! - Class: adjacent trees.
//!
//! One message from the root of one subcube to the root of the other joins two adjacent subcubes. A
//! subcube that contains the given root is rooted there. Otherwise:
//! - oblivious: the higher-numbered side receives, so every subcube is rooted at its last rank;
//! - adaptive: the side that takes longer to gather receives, by the estimate
//!   `sum_{i != root} m_i`. Of two equal sides the one with more data receives, then the
//!   higher-numbered one. No receiver waits, except for a given root.
//!
//! Every rank copies its own block before it receives.
//!
//! Example, `p = 11`, `m = 1,0,2,3,4,2,0,0,1,7,5`, root 9, adaptive: 1→0, 2→3, 5→4, 6→7, 8→9; 0→3,
//! 7→4, 10→9; 4→3; 3→9.

use super::{GatherProblem, GatherTree, fastest};
use crate::plan::gather::row::tree_rows;
use crate::plan::prelude::*;

tree_rows!(
    OBLIVIOUS_GATHER, OBLIVIOUS_SCATTER: "oblivious", oblivious {
        source: "folklore; Träff, optimal gather trees, section 5.1",
        rounds: "ceil(log2 p)",
        volume: "at most ceil(log2 p) times each block",
    }
);

tree_rows!(
    BEST_ROOT_GATHER, BEST_ROOT_SCATTER: "oblivious-best-root", oblivious_best_root {
        best_root: crate::plan::registry::BestRoot::Own,
        source: "oneport",
        rounds: "ceil(log2 p)",
        volume: "at most ceil(log2 p) times each block",
    }
);

tree_rows!(
    ADAPTIVE_GATHER, ADAPTIVE_SCATTER: "adaptive", adaptive {
        source: "Träff, adaptive gather trees, Lemmas 1 and 2",
        rounds: "ceil(log2 p)",
        volume: "at most ceil(log2 p) times each block",
    }
);

/// The oblivious tree. With a free root it takes the published choice: the best of the roots `0`,
/// `p - 1` and all `2^k - 1`. Takes `O(p)` time.
pub fn oblivious(problem: &GatherProblem) -> Result<GatherTree> {
    let p = problem.ranks();
    let root = problem.root().unwrap_or_else(|| {
        let powers = (0..usize::BITS)
            .map(|k| (1usize << k) - 1)
            .take_while(|&r| r < p);
        best_of(problem, powers.chain([p - 1]))
    });
    Ok(join_subcubes(problem, Some(root), 2, |_, _| false))
}

/// The best oblivious tree over all roots. Takes `O(p log p)` time, or `O(p)` with a given root.
pub(crate) fn oblivious_best_root(problem: &GatherProblem) -> Result<GatherTree> {
    let root = problem
        .root()
        .unwrap_or_else(|| best_of(problem, 0..problem.ranks()));
    Ok(join_subcubes(problem, Some(root), 2, |_, _| false))
}

/// The adaptive tree: the side receives that has more data without its root's block.
///
/// Without a copy cost the receiver never waits for its own subcube (Lemma 1). With one it may, and
/// may miss the bound of Proposition 1, which holds if its root's block counts, too. Takes `O(p)`
/// time.
pub fn adaptive(problem: &GatherProblem) -> Result<GatherTree> {
    let low_receives = Subcube::receives_from;
    Ok(join_subcubes(problem, problem.root(), 2, low_receives))
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
    /// may.
    pub fn receives_from(self, high: Subcube) -> bool {
        let weight = |c: Subcube| (c.others, c.others + c.block);
        weight(self) > weight(high)
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
            let best = |best, i| match low_receives(group[best], group[i]) {
                true => best,
                false => i,
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

/// The first of the best of `roots` for the oblivious tree, each timed in `O(log p)`.
fn best_of(problem: &GatherProblem, roots: impl Iterator<Item = usize>) -> usize {
    let cubes = SubcubeLevels::new(problem);
    let timed = roots.map(|root| (cubes.time(problem, root), root));
    fastest(timed).map_or(0, |(_, root)| root)
}

/// Size and time of every subcube rooted at its last rank: `levels[dimension][subcube]`.
struct SubcubeLevels(Vec<Vec<(u64, f64)>>);

impl SubcubeLevels {
    fn new(problem: &GatherProblem) -> SubcubeLevels {
        let (sizes, cost, p) = (problem.sizes(), problem.cost(), problem.ranks());
        let mut levels = vec![sizes.iter().map(|&s| (s, 0.0)).collect::<Vec<_>>()];
        for d in 0.. {
            let below: &Vec<(u64, f64)> = &levels[d];
            if below.len() == 1 {
                break;
            }
            let combine = |(a, pair): (usize, &[(u64, f64)])| {
                let &[low, high] = pair else { return pair[0] };
                let last = |c: usize| (((c + 1) << d) - 1).min(p - 1);
                let (from, to) = (last(2 * a), last(2 * a + 1));
                let single = from + 1 == to;
                let own = cost.copy(to, sizes[to]);
                // A rank that has received nothing yet has not copied its block either.
                let ready = if single { own } else { high.1 };
                let time = match low.0 {
                    0 => ready,
                    size => max_time(ready, low.1) + cost.transfer(from, to, size),
                };
                (low.0 + high.0, time)
            };
            let next = below.chunks(2).enumerate().map(combine).collect();
            levels.push(next);
        }
        SubcubeLevels(levels)
    }

    /// The time of the oblivious tree rooted at `root`.
    fn time(&self, problem: &GatherProblem, root: usize) -> f64 {
        let (sizes, cost, p) = (problem.sizes(), problem.cost(), problem.ranks());
        if p == 1 {
            return 0.0;
        }
        let mut time = cost.copy(root, sizes[root]);
        for (d, level) in self.0.iter().enumerate() {
            let sibling = (root >> d) ^ 1;
            let Some(&(size, ready)) = level.get(sibling) else {
                continue;
            };
            if size > 0 && level.len() > 1 {
                let from = (((sibling + 1) << d) - 1).min(p - 1);
                time = max_time(time, ready) + cost.transfer(from, root, size);
            }
        }
        time
    }
}
