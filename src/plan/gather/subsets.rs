//! The dynamic program over sets of ranks that finds the best of all trees, ordered or not.

use super::tree_costs::TreeCosts;
use super::{Child, GatherTree, ensure_few, fastest};
use crate::plan::prelude::*;

/// The sets of ranks that a message may have the data of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parts {
    /// All sets.
    All,
    /// Sets of consecutive ranks.
    Ranges,
}

/// The tables. A set of ranks is the number whose bits are its members.
///
/// `P[G,r]` is the time of one port of rank `r` that receives all of `G`: the copy of `r`'s block
/// for the empty set, otherwise the minimum of `max(P[G - Q,r], T[Q,x]) + comm_xr(size(Q))` over
/// the parts `Q` in `G` and the ranks `x` in `Q`. `W[j,G,r]` is the time of `j` ports: `W[1,G,r] =
/// P[G,r]`, and otherwise the minimum of `max(W[j-1,G - H,r], P[H,r])` over `H` in `G`. `T[Q,x]` is
/// the time of the best tree over `Q` to `x`: `W[k,Q - x,x]`, or 0 if `Q` is `x` alone. Where all
/// links cost the same, only the `x` of the smallest `T[Q,x]` matters.
pub(super) struct Sets<'a> {
    costs: &'a TreeCosts<'a>,
    parts: Parts,
    ports: usize,
    /// Number of receivers to tell apart: one where neither copies take time nor links differ.
    receivers: usize,
    links_differ: bool,
    /// By set: bytes of its blocks.
    size: Vec<u64>,
    /// `W[j,G,r]` at `times[j - 1][G * receivers + r]`.
    times: Vec<Vec<f64>>,
    /// By `Q`: the smallest of its `T[Q,x]`, and `x`.
    best: Vec<(f64, usize)>,
}

/// The last message that a port receives.
#[derive(Debug, Clone, Copy)]
struct LastMessage {
    end: f64,
    part: usize,
    from: usize,
}

impl<'a> Sets<'a> {
    /// Fills the tables for `ports` ports: more than one only where copies cost nothing.
    pub(super) fn new(
        costs: &'a TreeCosts<'a>,
        parts: Parts,
        ports: usize,
        max_ranks: usize,
    ) -> Result<Sets<'a>> {
        let p = costs.ranks();
        ensure_few(p, max_ranks, "the best of all trees is computed")?;
        let links_differ = costs.cost.links().is_some();
        let receivers = if links_differ || costs.copy.iter().any(|&c| c > 0.0) {
            p
        } else {
            1
        };
        let ports = ports.min(p.max(2) - 1);
        let size = |set: usize| members(p, set).map(|r| costs.size((r, r))).sum();
        let mut sets = Sets {
            costs,
            parts,
            ports,
            receivers,
            links_differ,
            size: (0..1 << p).map(size).collect(),
            times: vec![vec![0.0; receivers << p]; ports],
            best: vec![(0.0, 0); 1 << p],
        };
        sets.times[0][..receivers].copy_from_slice(&costs.copy[..receivers]);
        for set in 1..1usize << p {
            let trees = members(p, set).map(|x| (sets.tree_time(set, x), x));
            sets.best[set] = fastest(trees).unwrap_or_default();
            // What a rank receives does not contain itself.
            for r in (0..receivers).filter(|r| receivers == 1 || set >> r & 1 == 0) {
                sets.times[0][set * receivers + r] = sets.last(set, r).end;
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

    /// The time of the best tree over `set` to its member `root`.
    fn tree_time(&self, set: usize, root: usize) -> f64 {
        if set == 1 << root {
            0.0
        } else {
            self.time(self.ports - 1, set & !(1 << root), root)
        }
    }

    /// The last message of those with which one port of `r` receives all of `set` the soonest.
    fn last(&self, set: usize, r: usize) -> LastMessage {
        let mut last = LastMessage {
            end: f64::INFINITY,
            part: set,
            from: self.best[set].1,
        };
        for_each_part(self.parts, set, |part| {
            let before = self.time(0, set & !part, r);
            let mut offer = |(ready, from): (f64, usize)| {
                let end =
                    max_time(before, ready) + self.costs.message_of_size(from, r, self.size[part]);
                if end < last.end {
                    last = LastMessage { end, part, from };
                }
            };
            if self.links_differ {
                members(self.costs.ranks(), part).for_each(|x| offer((self.tree_time(part, x), x)))
            } else {
                offer(self.best[part])
            }
        });
        last
    }

    /// The time at which ports `0..=port` of `r` have received all of `set`, and what the last port
    /// receives.
    fn share(&self, port: usize, set: usize, r: usize) -> (f64, usize) {
        let time = |h: usize| max_time(self.time(port - 1, set & !h, r), self.time(0, h, r));
        fastest(subsets(set).chain([0]).map(|h| (time(h), h))).unwrap_or_default()
    }

    /// The best tree to `root`, or to the best root if `None`.
    pub(super) fn tree(&self, root: Option<usize>) -> Result<GatherTree> {
        let p = self.costs.ranks();
        let all = (1usize << p) - 1;
        let root = root.unwrap_or(self.best[all].1);
        if !self.tree_time(all, root).is_finite() {
            return Err(Error::usage(format!(
                "the links do not connect all ranks to root {root}"
            )));
        }
        let mut tree = GatherTree::unconnected(p, root);
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
                    let last = self.last(group, r);
                    children.push(Child {
                        rank: last.from,
                        port,
                    });
                    work.push((last.from, last.part));
                    group &= !last.part;
                }
            }
            children.reverse();
            tree.set_children(r, children);
        }
        Ok(tree)
    }
}

fn members(ranks: usize, set: usize) -> impl Iterator<Item = usize> {
    (0..ranks).filter(move |r| set >> r & 1 == 1)
}

fn subsets(set: usize) -> impl Iterator<Item = usize> {
    let first = (set > 0).then_some(set);
    std::iter::successors(first, move |q| Some((q - 1) & set).filter(|&q| q > 0))
}

/// The non-empty sets in `set` that a message may have the data of, the largest ones first.
fn for_each_part(parts: Parts, set: usize, mut each: impl FnMut(usize)) {
    if parts == Parts::All {
        return subsets(set).for_each(each);
    }
    let ranks = (usize::BITS - set.leading_zeros()) as usize;
    for first in members(ranks, set) {
        let length = (set >> first).trailing_ones() as usize;
        for length in (1..=length).rev() {
            each(((1 << length) - 1) << first);
        }
    }
}
