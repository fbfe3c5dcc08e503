//! Optimal ordered trees on a platform whose links and ranks differ in cost: for gather and scatter
//! (adjacent and binary trees), broadcast and reduction.
//!
//! - Source: Träff, "On Optimal Trees for Irregular Gather and Scatter Collectives", Fig. 5,
//!   Theorems 1, 3 and 4.
//! - Symbols: `p` ranks, blocks `m_i`, `S[i,j] = m_i + ... + m_j`. A message of `m` bytes from `s`
//!   to `r` takes `comm_sr(m) = alpha_sr + beta_sr m`, infinitely long without a link, and
//!   `comm_sr(0) = 0`. `C[i,j,r]` is the time of the best adjacent tree over `i..=j` rooted at `r`.
//! - Time: `O(p^4 log p)`.
//! - Memory: `O(p^3)` and the kept offers, a few for each range and receiver. At worst, if every
//!   root of every range matters to every rank, these are `O(p^4)`; more than 4 GiB are refused.
//!
//! `C[i,i,i] = 0`; for `i < j`, `C[i,j,r]` is the minimum, over `s`, of
//!
//! - `max(gamma_r m_r, C[i+1,j,s]) + comm_sr(S[i+1,j])` for `r = i`,
//! - `C[i,j-1,s] + comm_sr(S[i,j-1]) + gamma_r m_r` for `r = j`,
//! - `max(C[i,k,r], C[k+1,j,s]) + comm_sr(S[k+1,j])` for `i < k < j`, `r` in `[i,k]`,
//! - `max(C[i,k,s], C[k+1,j,r]) + comm_sr(S[i,k])` for `i <= k < j - 1`, `r` in `[k+1,j]`.
//!
//! Evaluated directly, these equations take `O(p^5)` operations (Theorem 1 forgets an index). A
//! rank `r` that is ready at `t` has received a range at the minimum of `max(t, C[..,s]) + comm_sr`
//! over the roots `s` of the range. If the roots are sorted by `C[..,s]`, only those with a smaller
//! `comm_sr` than all before them matter. A binary search finds the best, so the total is
//! `O(p^4 log p)`.
//!
//! Columns are filled one after another, from the bottom. As soon as a range is known, the ranks to
//! its left receive it. The ranks to its right receive it in later columns, so the roots that
//! matter to them are kept as offers.
//!
//! Trees whose ranks receive in rank order, among them binary ones, are in `rank_ordered.rs`.
//!
//! In broadcast and reduction every message has the same size, and a receiver combines it
//! (`gamma m`, 0 for a broadcast). A broadcast is a reduction reversed, with the links in the
//! opposite direction.

mod rank_ordered;

pub use rank_ordered::binary;
pub(in crate::plan) use rank_ordered::{rank_ordered, ternary};

use super::tree::{Range, Received};
use super::tree_costs::TreeCosts;
use super::{GatherProblem, GatherTree, ensure_few, fastest};
use crate::budget::trees::{MAX_KEPT_BYTES, MAX_LINKED};
use crate::plan::prelude::*;

/// The best adjacent tree. See the [module documentation](self) for time and memory.
pub fn tree(problem: &GatherProblem) -> Result<GatherTree> {
    tree_by(&TreeCosts::of(problem), problem.root())
}

/// The best ordered tree to `root`, or to the best root if `None`.
pub(in crate::plan) fn tree_by(platform: &TreeCosts, root: Option<usize>) -> Result<GatherTree> {
    let mut program = RangeCells::new(platform)?;
    program.fill()?;
    program.tree(root)
}

/// The last message that the root of a range receives.
#[derive(Debug, Clone, Copy)]
struct LastMessage {
    /// The received range, and below its root.
    range: Range,
    from: usize,
}

#[derive(Debug)]
struct RangeCells<'a> {
    platform: &'a TreeCosts<'a>,
    /// `C[i, j, r]`.
    cells: Vec<f64>,
}

/// The roots of a range that can be best for one receiver, by rising time of the root and falling
/// time of the message.
#[derive(Debug, Clone, Default)]
struct Offers(Vec<SenderOffer>);

#[derive(Debug, Clone, Copy)]
struct SenderOffer {
    ready: f64,
    message: f64,
    /// The minimum of `ready + message` over this offer and all later ones.
    min_end: f64,
}

impl Offers {
    /// The time at which a receiver that is ready at `time` has received the range.
    #[inline]
    fn received(&self, time: f64) -> f64 {
        let next = self.0.partition_point(|o| o.ready <= time);
        let now = match next.checked_sub(1) {
            Some(best) => time + self.0[best].message,
            None => f64::INFINITY,
        };
        self.0.get(next).map_or(now, |o| now.min(o.min_end))
    }
}

impl<'a> RangeCells<'a> {
    fn new(platform: &'a TreeCosts<'a>) -> Result<RangeCells<'a>> {
        let p = platform.ranks();
        if p == 0 {
            return Err(Error::usage("a collective needs at least one rank"));
        }
        let what = "the best tree on a heterogeneous platform is computed";
        ensure_few(p, MAX_LINKED, what)?;
        let mut program = RangeCells {
            platform,
            cells: vec![f64::INFINITY; p * p * (p + 1) / 2],
        };
        for r in 0..p {
            *program.cell(r, r, r) = 0.0;
        }
        Ok(program)
    }

    #[inline]
    fn index(&self, i: usize, j: usize, r: usize) -> usize {
        (j * (j + 1) / 2 + i) * self.platform.ranks() + r
    }

    #[inline]
    fn at(&self, i: usize, j: usize, r: usize) -> f64 {
        self.cells[self.index(i, j, r)]
    }

    #[inline]
    fn cell(&mut self, i: usize, j: usize, r: usize) -> &mut f64 {
        let at = self.index(i, j, r);
        &mut self.cells[at]
    }

    /// The roots of a range by rising time, without those that no links connect.
    fn sorted(&self, (a, b): Range) -> Vec<(f64, usize)> {
        let all = (a..=b).map(|s| (self.at(a, b, s), s));
        let mut roots: Vec<_> = all.filter(|r| r.0.is_finite()).collect();
        roots.sort_by(|x, y| x.0.total_cmp(&y.0));
        roots
    }

    fn offers(&self, range: Range, roots: &[(f64, usize)], receiver: usize) -> Offers {
        offers(self.platform, range, roots, receiver)
    }

    /// Fills the table. Each range is computed after all ranges within it.
    fn fill(&mut self) -> Result<()> {
        let p = self.platform.ranks();
        // By range: the offers for each rank after its end.
        let mut kept: Vec<Vec<Offers>> = vec![Vec::new(); p * (p + 1) / 2];
        let mut count = 0;
        for j in 0..p {
            for a in (0..=j).rev() {
                // [a, j] is done: ranks before it receive it,
                let roots = self.sorted((a, j));
                for r in 0..a {
                    let offers = self.offers((a, j), &roots, r);
                    for i in 0..=r {
                        let ready = if i + 1 == a {
                            self.platform.copy[r]
                        } else {
                            self.at(i, a - 1, r)
                        };
                        let time = offers.received(ready);
                        let cell = self.cell(i, j, r);
                        *cell = cell.min(time);
                    }
                }
                // its ranks receive ranges before it,
                for i in 0..a {
                    let before = &kept[a * (a - 1) / 2 + i];
                    for r in a..=j {
                        let offers = &before[r - a];
                        let time = if a == j {
                            offers.received(0.0) + self.platform.copy[r]
                        } else {
                            offers.received(self.at(a, j, r))
                        };
                        let cell = (j * (j + 1) / 2 + i) * p + r;
                        self.cells[cell] = self.cells[cell].min(time);
                    }
                }
                // and ranks after it will receive it.
                let after: Vec<Offers> =
                    (j + 1..p).map(|r| self.offers((a, j), &roots, r)).collect();
                count += after.iter().map(|o| o.0.len()).sum::<usize>();
                if count > MAX_KEPT_BYTES / size_of::<SenderOffer>() {
                    return Err(Error::too_large(format!(
                        "{p} ranks with links as different as these need more than 4 GiB: take fewer ranks"
                    )));
                }
                kept[j * (j + 1) / 2 + a] = after;
            }
        }
        Ok(())
    }

    /// The best last message to `r` as the root of `[i, j]`.
    fn last(&self, i: usize, j: usize, r: usize) -> LastMessage {
        let mut best = (f64::INFINITY, None);
        let mut offer = |range: Range, ready: f64, after: f64| {
            for from in range.0..=range.1 {
                let time = max_time(ready, self.at(range.0, range.1, from))
                    + self.platform.message(from, r, range)
                    + after;
                if best.1.is_none() || time < best.0 {
                    best = (time, Some(LastMessage { range, from }));
                }
            }
        };
        for k in r..j {
            let ready = if k == i {
                self.platform.copy[r]
            } else {
                self.at(i, k, r)
            };
            offer((k + 1, j), ready, 0.0);
        }
        for k in i..r {
            if k + 1 == j {
                offer((i, k), 0.0, self.platform.copy[r]);
            } else {
                offer((i, k), self.at(k + 1, j, r), 0.0);
            }
        }
        best.1.expect("a range of two ranks receives something")
    }

    fn tree(&self, root: Option<usize>) -> Result<GatherTree> {
        let p = self.platform.ranks();
        let root = best_root(p, root, |r| self.at(0, p - 1, r))?;
        let received = |(mut low, mut high), r: usize| {
            let mut received = Vec::new();
            while low < high {
                let last = self.last(low, high, r);
                if last.range.0 == low {
                    low = last.range.1 + 1;
                } else {
                    high = last.range.0 - 1;
                }
                received.push(last);
            }
            received.reverse();
            let copy_last = received.first().is_some_and(|first| first.range.1 + 1 == r);
            (received, usize::from(copy_last))
        };
        Ok(tree_of(p, root, received))
    }
}

/// What `receiver` is offered by `roots` of a range: see [`RangeCells::sorted`].
fn offers(platform: &TreeCosts, range: Range, roots: &[(f64, usize)], receiver: usize) -> Offers {
    let mut offers: Vec<SenderOffer> = Vec::new();
    for &(ready, s) in roots {
        let message = platform.message(s, receiver, range);
        if offers
            .last()
            .map_or(message.is_finite(), |o| message < o.message)
        {
            offers.push(SenderOffer {
                ready,
                message,
                min_end: ready + message,
            });
        }
    }
    let mut min_end = f64::INFINITY;
    for offer in offers.iter_mut().rev() {
        min_end = min_end.min(offer.min_end);
        offer.min_end = min_end;
    }
    Offers(offers)
}

/// The given root, or the first of the best ones, of `p` ranks by the `time` of each as the root.
fn best_root(p: usize, root: Option<usize>, time: impl Fn(usize) -> f64) -> Result<usize> {
    let all = (0..p).map(|r| (time(r), r));
    let best = root.or_else(|| fastest(all).map(|(_, r)| r)).unwrap_or(0);
    if time(best).is_finite() {
        return Ok(best);
    }
    let to = root.map_or(String::new(), |root| format!(" to root {root}"));
    Err(Error::usage(format!(
        "the links do not connect all ranks{to} by such a tree"
    )))
}

/// The tree in which rank `r` receives `received(range, r)` as the root of a range: in this order,
/// with its own copy after so many of them.
fn tree_of(
    ranks: usize,
    root: usize,
    received: impl Fn(Range, usize) -> (Vec<LastMessage>, usize),
) -> GatherTree {
    GatherTree::of_ranges(ranks, Some(root), |range, root| {
        let root = root.unwrap_or(range.0);
        let (messages, copy_after) = received(range, root);
        let parts = messages.into_iter().map(|m| (m.range, Some(m.from)));
        Received {
            root,
            parts: parts.collect(),
            copy_after,
        }
    })
}
