//! The best rank-ordered trees on a platform whose links and ranks differ in cost: every rank
//! receives ranges of consecutive ranks in rank order, any number of them or at most `d`.
//!
//! - Source: Träff, "On Optimal Trees for Irregular Gather and Scatter Collectives", Definition 3
//!   with Theorem 1 (any number), Fig. 7 and Theorem 3 (two), section 3.3 (other degrees).
//! - Time: `O(d p^4 log p)`, `d = 1` for any number. Memory: `O(d p^3)`.
//!
//! `T[c,i,y,r]` is the time at which rank `r` has received `[i, y-1]` in at most `c` messages and,
//! if `r < y`, has copied its own block in its turn. It is 0 for an empty range and the time of the
//! copy for `r` alone. Otherwise it is the minimum, over the start `x` and the root `s` of the last
//! message, of `max(T[c-1,i,x,r], C[x,y-1,s]) + comm_sr(S[x,y-1])`, or `T[c,i,r,r] + gamma_r m_r`
//! for `y = r + 1`. `C[i,j,r] = T[d,i,j+1,r]`, and 0 for a single rank.

use super::{LastMessage, Range, TreeCosts, best_root, offers, tree_of};
use crate::budget::trees::MAX_LINKED;
use crate::plan::gather::{GatherProblem, GatherTree, ensure_few};
use crate::plan::prelude::*;

/// The best binary tree.
pub fn binary(problem: &GatherProblem) -> Result<GatherTree> {
    rank_ordered(&TreeCosts::of(problem), problem.root(), Some(2))
}

/// The best tree whose ranks receive at most three messages.
pub(in crate::plan) fn ternary(problem: &GatherProblem) -> Result<GatherTree> {
    rank_ordered(&TreeCosts::of(problem), problem.root(), Some(3))
}

/// The best tree to `root`, or to the best root if `None`, in which no rank receives more than
/// `max_children` messages.
pub(in crate::plan) fn rank_ordered(
    platform: &TreeCosts,
    root: Option<usize>,
    max_children: Option<usize>,
) -> Result<GatherTree> {
    let p = platform.ranks();
    ensure_few(
        p,
        MAX_LINKED,
        "the best tree on a heterogeneous platform is computed",
    )?;
    let mut program = RankTimes::new(platform, max_children);
    program.fill();
    let root = best_root(p, root, |r| program.tree_time((0, p - 1), r))?;
    Ok(tree_of(p, root, |range, r| program.children(range, r)))
}

struct RankTimes<'a> {
    platform: &'a TreeCosts<'a>,
    /// Whether the messages of a rank are counted.
    is_limited: bool,
    /// `T[c, i, y, r]`, by `c` from 1 on; one table where messages are not counted.
    layers: Vec<Vec<f64>>,
}

impl<'a> RankTimes<'a> {
    fn new(platform: &'a TreeCosts<'a>, max_children: Option<usize>) -> RankTimes<'a> {
        let p = platform.ranks();
        let mut program = RankTimes {
            platform,
            is_limited: max_children.is_some(),
            layers: Vec::new(),
        };
        let mut layer = vec![f64::INFINITY; p * (p + 1) * (p + 2) / 2];
        for r in 0..p {
            for y in 0..=r {
                layer[program.index(y, y, r)] = 0.0;
            }
            layer[program.index(r, r + 1, r)] = platform.copy[r];
        }
        program.layers = vec![layer; max_children.unwrap_or(1)];
        program
    }

    #[inline]
    fn index(&self, i: usize, y: usize, r: usize) -> usize {
        (y * (y + 1) / 2 + i) * self.platform.ranks() + r
    }

    /// The layer before the last message of `layer`; `None` if that is the only one.
    fn before(&self, layer: usize) -> Option<usize> {
        if self.is_limited {
            layer.checked_sub(1)
        } else {
            Some(layer)
        }
    }

    /// `T[c, i, y, r]`, where `None` is no message at all.
    #[inline]
    fn at(&self, layer: Option<usize>, i: usize, y: usize, r: usize) -> f64 {
        match layer {
            Some(layer) => self.layers[layer][self.index(i, y, r)],
            None if i == y => 0.0,
            None if i == r && y == r + 1 => self.platform.copy[r],
            None => f64::INFINITY,
        }
    }

    /// `C[i, j, r]`.
    fn tree_time(&self, (i, j): Range, r: usize) -> f64 {
        if i == j {
            0.0
        } else {
            self.at(Some(self.layers.len() - 1), i, j + 1, r)
        }
    }

    /// Fills the tables. Each range is computed after all ranges within it.
    fn fill(&mut self) {
        let p = self.platform.ranks();
        for j in 0..p {
            for a in (0..=j).rev() {
                for layer in 0..self.layers.len() {
                    let copied = self.at(Some(layer), a, j, j) + self.platform.copy[j];
                    let at = self.index(a, j + 1, j);
                    self.layers[layer][at] = self.layers[layer][at].min(copied);
                }
                let roots = (a..=j).map(|s| (self.tree_time((a, j), s), s));
                let mut roots: Vec<_> = roots.filter(|root| root.0.is_finite()).collect();
                roots.sort_by(|x, y| x.0.total_cmp(&y.0));
                for r in (0..a).chain(j + 1..p) {
                    let offers = offers(self.platform, (a, j), &roots, r);
                    for layer in 0..self.layers.len() {
                        let starts = match self.before(layer) {
                            Some(_) => 0..a.min(r) + 1,
                            // A first message follows nothing, or the rank's own block.
                            None if r > j => a..a + 1,
                            None => r..r + usize::from(r + 1 == a),
                        };
                        for i in starts {
                            let ready = self.at(self.before(layer), i, a, r);
                            let at = self.index(i, j + 1, r);
                            let time = offers.received(ready);
                            self.layers[layer][at] = self.layers[layer][at].min(time);
                        }
                    }
                }
            }
        }
    }

    /// The ranges that `r` receives in the best tree over `[i, j]` rooted at it, in order, and the
    /// number of them before its copy.
    fn children(&self, (i, j): Range, r: usize) -> (Vec<LastMessage>, usize) {
        let (mut children, mut after_copy) = (Vec::new(), 0);
        let (mut y, mut layer) = (j + 1, Some(self.layers.len() - 1));
        while y > i {
            if y == r + 1 {
                (y, after_copy) = (r, children.len());
                continue;
            }
            let before = layer.and_then(|layer| self.before(layer));
            let first = if y > r { r + 1 } else { i };
            let offers = (first..y).flat_map(|x| (x..y).map(move |from| (x, from)));
            let timed = offers.map(|(x, from)| {
                let range = (x, y - 1);
                let ready = max_time(self.at(before, i, x, r), self.tree_time(range, from));
                let end = ready + self.platform.message(from, r, range);
                (end, LastMessage { range, from })
            });
            let (_, last) = crate::plan::gather::fastest(timed).expect("a range has a root");
            children.push(last);
            (y, layer) = (last.range.0, before);
        }
        children.reverse();
        let copy_after = children.len() - after_copy;
        (children, copy_after)
    }
}
