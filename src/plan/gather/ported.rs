//! Gather trees for ranks with several ports.
//!
//! - Source: Träff, "Practical, Linear-time, Fully Distributed Algorithms for Irregular Gather and
//!   Scatter", after Theorem 1 (adaptive). The exact algorithm and the heuristics are our own (the
//!   optimum is NP-hard: Theorem 6 of "On Optimal Trees for Irregular Gather and Scatter
//!   Collectives").
//! - Ports: `k`-ported.
//! - Symbols: `p` ranks, blocks `m_i`, `k` ports.
//!
//! The three planners:
//!
//! - [`adaptive`]: joins `k + 1` adjacent subcubes of `(k + 1)^d` ranks at once. The one that takes
//!   longest to gather receives from all others, each through its own port. Rounds:
//!   `ceil(log_{k+1} p)`. For `k = 1` this is the adaptive binomial tree.
//! - [`exact`], for `gamma_copy = 0`. `P[G]` is the time of one port that receives all of `G`:
//!   `P[{}] = 0`, otherwise the minimum of `max(P[G - Q], T[Q]) + comm(size(Q))` over non-empty `Q`
//!   in `G`. `W[j,G]` is the time of `j` ports: `W[1,G] = P[G]`, and otherwise the minimum of
//!   `max(W[j-1,G-H], P[H])` over `H` in `G`. `T[Q]` is the time of the best tree over `Q`, the
//!   minimum of `W[k,Q-r]` over `r` in `Q`. `O(k 3^p)`; refused for more than 15 ranks.
//! - [`tree`]: exact for few ranks with free copies. Otherwise the best of three: the adaptive
//!   tree; all blocks sent directly to the root, large ones first; `k` groups with about equal
//!   data, each gathered through one port of the root by the best tree over its ranks in decreasing
//!   order of blocks.

use super::noncontiguous;
use super::subsets::{fastest, subsets};
use super::{Child, GatherProblem, GatherTree};
use crate::error::{Error, Result};
use crate::plan::gather::row::{table_of_pairs, tree_rows};
use crate::rules::max_time;

tree_rows!(
    ADAPTIVE_GATHER, ADAPTIVE_SCATTER: "ported-adaptive", adaptive {
        k_ported: true,
        source: "Träff, adaptive gather trees, after Theorem 1",
        rounds: "ceil(log_{k+1} p)",
        volume: "at most ceil(log_{k+1} p) times each block",
    }
);

tree_rows!(
    GATHER, SCATTER: "ported", tree {
        k_ported: true,
        tables: table_of_pairs,
        source: "oneport",
        rounds: "those of the best tree (p <= 10, free copies), or one at least as good as ported-adaptive",
        volume: "those of that tree",
    }
);

/// Maximum number of ranks for [`exact`].
pub const MAX_EXACT: usize = 15;
/// Maximum number of ranks for which [`tree`] is exact.
const EXACT: usize = 10;

/// The adaptive tree for the problem's ports. Takes `O(p)` time.
pub fn adaptive(problem: &GatherProblem) -> Result<GatherTree> {
    let (p, k) = (problem.ranks(), problem.ported());
    let mut tree = GatherTree::unconnected(p, 0);
    let mut cubes: Vec<super::binomial::Cube> = problem
        .sizes()
        .iter()
        .enumerate()
        .map(|(root, &block)| super::binomial::Cube {
            root,
            block,
            others: 0,
        })
        .collect();
    while cubes.len() > 1 {
        let joined = cubes.chunks(k.saturating_add(1)).map(|group| {
            let given = group.iter().position(|c| Some(c.root) == problem.root());
            let best = given.unwrap_or_else(|| {
                (0..group.len()).fold(0, |best, i| {
                    if group[best].receives_from(group[i]) {
                        best
                    } else {
                        i
                    }
                })
            });
            let senders = group.iter().enumerate().filter(|&(i, _)| i != best);
            senders
                .enumerate()
                .fold(group[best], |to, (port, (_, &from))| {
                    tree.add_child(to.root, from.root, port);
                    to.with(from)
                })
        });
        cubes = joined.collect();
    }
    tree.set_root(cubes[0].root);
    Ok(tree)
}

/// The best tree found: see the [module documentation](self). Takes `O(p log p + p k)` time, and as
/// long as [`optimal::tree`](super::optimal::tree) for the blocks of each port.
///
/// # Errors
/// When more ranks send through one port than [`optimal::tree`](super::optimal::tree) accepts.
pub fn tree(problem: &GatherProblem) -> Result<GatherTree> {
    let (p, cost) = (problem.ranks(), problem.cost());
    let free = (0..p).all(|r| cost.copy(r, problem.sizes()[r]) == 0.0);
    if p <= EXACT && free && cost.links().is_none() {
        return exact(problem);
    }
    let adaptive = adaptive(problem)?;
    let root = adaptive.root();
    let mut order: Vec<usize> = (0..p).filter(|&r| r != root).collect();
    order.sort_by_key(|&r| std::cmp::Reverse(problem.sizes()[r]));
    let k = problem.ported().min(p.max(2) - 1);
    // Assign each block to the port that becomes free first.
    let mut ports = vec![0.0; k];
    let mut groups = vec![Vec::new(); k];
    let mut star = GatherTree::unconnected(p, root);
    for &r in &order {
        let port = (0..k).fold(0, |best, port| {
            if ports[port] < ports[best] {
                port
            } else {
                best
            }
        });
        ports[port] += cost.transfer(r, root, problem.sizes()[r]);
        groups[port].push(r);
        star.add_child(root, r, port);
    }
    let grouped = if cost.links().is_some() {
        None
    } else {
        let mut tree = GatherTree::unconnected(p, root);
        for (port, group) in groups.iter().enumerate() {
            noncontiguous::receive_group(problem, root, group, port, &mut tree)?;
        }
        Some(tree)
    };
    let trees = [adaptive.clone(), star].into_iter().chain(grouped);
    Ok(problem.fastest(trees).unwrap_or(adaptive))
}

/// The best of all trees, ordered or not, by dynamic programming over sets of ranks: `O(k 3^p)`
/// time and `O(k 2^p)` memory.
///
/// # Errors
/// When there are more than [`MAX_EXACT`] ranks, copies are not free, or links differ in cost.
pub fn exact(problem: &GatherProblem) -> Result<GatherTree> {
    let p = problem.ranks();
    if p > MAX_EXACT {
        return Err(Error::usage(format!(
            "{p} ranks are more than the {MAX_EXACT} for which the best of all trees is computed"
        )));
    }
    if problem.cost().links().is_some() {
        return Err(Error::usage(
            "the best of all trees is computed only where all links cost the same",
        ));
    }
    if (0..p).any(|r| problem.cost().copy(r, problem.sizes()[r]) > 0.0) {
        return Err(Error::usage(
            "the best of all trees with several ports is computed only where copies cost nothing (gamma_copy 0)",
        ));
    }
    let mut sets = Sets::new(problem);
    sets.fill();
    Ok(sets.tree(problem.root()))
}

/// The tables of [`exact`]. A set of ranks is a bit mask.
struct Sets {
    p: usize,
    k: usize,
    message: Vec<f64>,
    /// `W[j, G]` at `ports[j - 1][G]`; `W[1]` is `P`.
    ports: Vec<Vec<f64>>,
    /// `T[Q]`.
    rooted: Vec<f64>,
}

impl Sets {
    fn new(problem: &GatherProblem) -> Sets {
        let p = problem.ranks();
        let k = problem.ported().min(p.max(2) - 1);
        let size = |g: usize| {
            (0..p)
                .filter(move |r| g >> r & 1 == 1)
                .map(|r| problem.sizes()[r])
        };
        let message = (0..1usize << p).map(|g| problem.cost().transfer(0, 0, size(g).sum()));
        Sets {
            p,
            k,
            message: message.collect(),
            ports: vec![vec![0.0; 1 << p]; k],
            rooted: vec![0.0; 1 << p],
        }
    }

    fn members(&self, g: usize) -> impl Iterator<Item = usize> {
        (0..self.p).filter(move |r| g >> r & 1 == 1)
    }

    /// The time of a port that receives all of `g`, and the last set that it receives.
    fn last(&self, g: usize) -> (f64, usize) {
        let time = |q: usize| max_time(self.ports[0][g & !q], self.rooted[q]) + self.message[q];
        fastest(subsets(g).map(|q| (time(q), q)))
    }

    /// The time of ports `0..=j` that receive all of `g`, and the set that port `j` receives.
    fn share(&self, j: usize, g: usize) -> (f64, usize) {
        let time = |h: usize| max_time(self.ports[j - 1][g & !h], self.ports[0][h]);
        fastest(subsets(g).chain([0]).map(|h| (time(h), h)))
    }

    fn root(&self, q: usize) -> (f64, usize) {
        fastest(
            self.members(q)
                .map(|r| (self.ports[self.k - 1][q & !(1 << r)], r)),
        )
    }

    fn fill(&mut self) {
        for g in 1..1usize << self.p {
            self.rooted[g] = self.root(g).0;
            self.ports[0][g] = self.last(g).0;
            for j in 1..self.k {
                self.ports[j][g] = self.share(j, g).0;
            }
        }
    }

    fn tree(&self, root: Option<usize>) -> GatherTree {
        let all = (1usize << self.p) - 1;
        let root = root.unwrap_or_else(|| self.root(all).1);
        let mut tree = GatherTree::unconnected(self.p, root);
        let mut work = vec![(root, all)];
        while let Some((r, set)) = work.pop() {
            let mut rest = set & !(1 << r);
            let mut children = Vec::new();
            for port in (0..self.k).rev() {
                let mut group = if port == 0 {
                    rest
                } else {
                    self.share(port, rest).1
                };
                rest &= !group;
                while group > 0 {
                    let q = self.last(group).1;
                    let rank = self.root(q).1;
                    children.push(Child { rank, port });
                    work.push((rank, q));
                    group &= !q;
                }
            }
            children.reverse();
            tree.set_children(r, children);
        }
        tree
    }
}
