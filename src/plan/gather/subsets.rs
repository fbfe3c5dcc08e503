//! The dynamic program over sets of ranks that finds the best of all gather trees, ordered or not.

use super::{Child, GatherProblem, GatherTree, ensure_few, fastest};
use crate::plan::prelude::*;

/// The tables. A set of ranks is the number whose bits are its members.
///
/// `P[G,r]` is the time of one port of rank `r` that receives all of `G`: the copy of `r`'s block
/// for the empty set, otherwise the minimum of `max(P[G - Q,r], T[Q]) + comm(size(Q))` over
/// non-empty `Q` in `G`. `W[j,G,r]` is the time of `j` ports: `W[1,G,r] = P[G,r]`, and otherwise
/// the minimum of `max(W[j-1,G - H,r], P[H,r])` over `H` in `G`. `T[Q]` is the time of the best
/// tree over `Q`, the minimum of `W[k,Q - r,r]` over `r` in `Q`.
pub(super) struct Sets {
    ranks: usize,
    ports: usize,
    /// Number of receivers to tell apart: all ranks if copies take time, otherwise one.
    receivers: usize,
    /// By set: the time of the message with its blocks.
    message: Vec<f64>,
    /// `W[j,G,r]` at `times[j - 1][G * receivers + r]`.
    times: Vec<Vec<f64>>,
    /// `T[Q]`, and the root of that tree.
    best: Vec<(f64, usize)>,
}

impl Sets {
    /// Fills the tables for `ports` ports: more than one only where copies cost nothing.
    pub(super) fn new(problem: &GatherProblem, ports: usize, max_ranks: usize) -> Result<Sets> {
        let (p, cost, sizes) = (problem.ranks(), problem.cost(), problem.sizes());
        ensure_few(p, max_ranks, "the best of all trees is computed")?;
        if cost.links().is_some() {
            return Err(Error::usage(
                "the best of all trees is computed only where all links cost the same",
            ));
        }
        let copy: Vec<f64> = (0..p).map(|r| cost.copy(r, sizes[r])).collect();
        let receivers = if copy.iter().any(|&c| c > 0.0) { p } else { 1 };
        let size = |set: usize| members(p, set).map(|r| sizes[r]).sum();
        let ports = ports.min(p.max(2) - 1);
        let mut sets = Sets {
            ranks: p,
            ports,
            receivers,
            message: (0..1 << p)
                .map(|set| cost.transfer(0, 0, size(set)))
                .collect(),
            times: vec![vec![0.0; receivers << p]; ports],
            best: vec![(0.0, 0); 1 << p],
        };
        sets.times[0][..receivers].copy_from_slice(&copy[..receivers]);
        for set in 1..1usize << p {
            sets.best[set] = sets.root(set);
            // What a rank receives does not contain itself.
            for r in (0..receivers).filter(|r| receivers == 1 || set >> r & 1 == 0) {
                sets.times[0][set * receivers + r] = sets.last(set, r).0;
                for port in 1..ports {
                    sets.times[port][set * receivers + r] = sets.share(port, set, r).0;
                }
            }
        }
        Ok(sets)
    }

    /// The time at which ports `0..=port` of `r` have received all of `set`.
    fn time(&self, port: usize, set: usize, r: usize) -> f64 {
        self.times[port][set * self.receivers + r % self.receivers]
    }

    /// The time at which one port of `r` has received all of `set`, and the last set that it
    /// receives.
    fn last(&self, set: usize, r: usize) -> (f64, usize) {
        let time = |q: usize| max_time(self.time(0, set & !q, r), self.best[q].0) + self.message[q];
        fastest(subsets(set).map(|q| (time(q), q))).unwrap_or_default()
    }

    /// The time at which ports `0..=port` of `r` have received all of `set`, and what the last port
    /// receives.
    fn share(&self, port: usize, set: usize, r: usize) -> (f64, usize) {
        let time = |h: usize| max_time(self.time(port - 1, set & !h, r), self.time(0, h, r));
        fastest(subsets(set).chain([0]).map(|h| (time(h), h))).unwrap_or_default()
    }

    fn root(&self, set: usize) -> (f64, usize) {
        let time = |r: usize| match set == 1 << r {
            true => 0.0,
            false => self.time(self.ports - 1, set & !(1 << r), r),
        };
        fastest(members(self.ranks, set).map(|r| (time(r), r))).unwrap_or_default()
    }

    pub(super) fn tree(&self, root: Option<usize>) -> GatherTree {
        let all = (1usize << self.ranks) - 1;
        let root = root.unwrap_or(self.best[all].1);
        let mut tree = GatherTree::unconnected(self.ranks, root);
        let mut work = vec![(root, all)];
        while let Some((r, set)) = work.pop() {
            let mut rest = set & !(1 << r);
            let mut children = Vec::new();
            for port in (0..self.ports).rev() {
                let mut group = match port {
                    0 => rest,
                    _ => self.share(port, rest, r).1,
                };
                rest &= !group;
                while group > 0 {
                    let q = self.last(group, r).1;
                    let rank = self.best[q].1;
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

fn members(ranks: usize, set: usize) -> impl Iterator<Item = usize> {
    (0..ranks).filter(move |r| set >> r & 1 == 1)
}

fn subsets(set: usize) -> impl Iterator<Item = usize> {
    let first = (set > 0).then_some(set);
    std::iter::successors(first, move |q| Some((q - 1) & set).filter(|&q| q > 0))
}
