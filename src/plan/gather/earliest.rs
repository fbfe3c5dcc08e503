//! Trees on a platform whose links differ, for messages of one size: the best of all trees, ordered
//! or not, for few ranks, and a greedy one for more.
//!
//! - Source: Träff, "On Optimal Trees for Irregular Gather and Scatter Collectives", Proposition 2
//!   (exact); Bhat, Raghavendra, Prasanna, "Efficient collective communication in distributed
//!   heterogeneous systems", 2003: the edge that ends first (greedy). Finding the best tree is
//!   NP-hard (Theorem 5 of the first).
//! - Symbols: `p` ranks, messages of `m` bytes, `c_sr = alpha_sr + beta_sr m + gamma_r m`, infinite
//!   without a link.
//! - Time: `O(p^2 3^p)` for up to 12 ranks; otherwise `O(p^3)` at most, and `p` times as long for a
//!   free root.
//!
//! The greedy tree is that of a broadcast, from the root and with the links reversed: of all
//! messages from a rank that has the data to one that has not, the one that ends first follows. The
//! reduction is that broadcast backwards, so what was sent first is received last.
//!
//! Example, links 0-1, 1-2, 1-3, 2-4 of cost 1, root 0: 3→1 and 4→2; then 2→1; then 1→0.

use super::subsets::{Parts, Sets};
use super::tree_costs::TreeCosts;
use super::{GatherTree, fastest};
use crate::budget::trees::{EXACT, MAX_GREEDY_WORK};
use crate::plan::prelude::*;

/// The best tree found to `root`, or to the best root if `None`.
///
/// # Errors
/// The links do not connect all ranks to the root.
pub(in crate::plan) fn tree_by(costs: &TreeCosts, root: Option<usize>) -> Result<GatherTree> {
    if costs.ranks() <= EXACT {
        Sets::new(costs, Parts::All, 1, EXACT)?.tree(root)
    } else {
        tree(costs, root)
    }
}

/// Ranks among which all free roots are tried.
pub(in crate::plan) const ALL_ROOTS: usize = MAX_GREEDY_WORK.isqrt().isqrt();

/// The greedy tree. Of [more](ALL_ROOTS) free roots only those are tried whose messages take the
/// least time together.
pub(super) fn tree(costs: &TreeCosts, root: Option<usize>) -> Result<GatherTree> {
    let p = costs.ranks();
    let messages = |r: usize| (0..p).map(move |s| costs.message(s, r, (s, s)));
    let sums: Vec<f64> = (0..p).map(|r| messages(r).sum()).collect();
    let mut roots: Vec<usize> = root.map_or((0..p).collect(), |root| vec![root]);
    roots.sort_by(|&a, &b| sums[a].total_cmp(&sums[b]));
    roots.truncate((MAX_GREEDY_WORK / p.saturating_pow(3)).max(1));
    let trees = roots.iter().filter_map(|&root| to_root(costs, root));
    fastest(trees).map(|(_, tree)| tree).ok_or_else(|| {
        let to = root.map_or(String::new(), |root| format!(" to root {root}"));
        Error::usage(format!("the links do not connect all ranks{to}"))
    })
}

/// The greedy tree to `root`, and its time; `None` if the links connect no tree.
fn to_root(costs: &TreeCosts, root: usize) -> Option<(f64, GatherTree)> {
    let p = costs.ranks();
    // From the root backwards: when each rank that has the data can send next.
    let mut next = vec![f64::INFINITY; p];
    next[root] = 0.0;
    // By rank without the data: the earliest end of a message to it, and its sender.
    let offer = |next: &[f64], from: usize, to: usize| {
        (next[from] + costs.message(to, from, (to, to)), from)
    };
    let mut waiting: Vec<usize> = (0..p).filter(|&r| r != root).collect();
    let mut offers: Vec<(f64, usize)> = (0..p).map(|r| offer(&next, root, r)).collect();
    let mut informed = vec![root];
    let mut messages = Vec::with_capacity(p);
    let mut time = 0.0;
    while let Some(at) =
        (0..waiting.len()).min_by(|&a, &b| offers[waiting[a]].0.total_cmp(&offers[waiting[b]].0))
    {
        let to = waiting.remove(at);
        let (end, from) = offers[to];
        if !end.is_finite() {
            return None;
        }
        (next[from], next[to], time) = (end, end, max_time(time, end));
        messages.push((from, to));
        informed.push(to);
        for &r in &waiting {
            // A sender that is busy for longer may no longer be the best one.
            let senders = if offers[r].1 == from {
                &informed[..]
            } else {
                &[to]
            };
            let kept = (offers[r].1 != from).then_some(offers[r]);
            let all = kept
                .into_iter()
                .chain(senders.iter().map(|&s| offer(&next, s, r)));
            offers[r] = all
                .reduce(|a, b| if b.0 < a.0 { b } else { a })
                .unwrap_or(offers[r]);
        }
    }
    let mut tree = GatherTree::unconnected(p, root);
    for &(to, from) in messages.iter().rev() {
        tree.add_child(to, from, 0);
    }
    Some((time, tree))
}
