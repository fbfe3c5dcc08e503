//! Optimal ordered binary gather trees.
//!
//! - Source: Träff, "On Optimal Trees for Irregular Gather and Scatter Collectives", Fig. 7 (whose
//!   last line means `m_j`); the `O(p^2)` algorithm is our own.
//! - Symbols: `p` ranks, blocks `m_i`, `S[i,j] = m_i + ... + m_j`, `comm(m) = alpha + beta m`,
//!   `comm(0) = 0`; `gamma` is the cost per byte of a local copy; `C[i,j]` is the time of the best
//!   tree over the ranks `i..=j` in which no rank receives from more than two others.
//! - Time: `O(p^2)` for linear costs with `gamma <= beta`, otherwise `O(p^3)`.
//! - Memory: 8 bytes per range.
//!
//! The root of `[i,j]` receives in rank order and copies its own block in its turn. `C[i,i] = 0`,
//! and for `i < j` it is the minimum of
//!
//! - root `i`, `i < k < j`:
//!   `max(max(gamma m_i, C[i+1,k]) + comm(S[i+1,k]), C[k+1,j]) + comm(S[k+1,j])`,
//! - root `k`, `i < k < j`:
//!   `max(C[i,k-1] + comm(S[i,k-1]) + gamma m_k, C[k+1,j]) + comm(S[k+1,j])`,
//! - root `j`, `i <= k < j - 1`:
//!   `max(C[i,k] + comm(S[i,k]), C[k+1,j-1]) + comm(S[k+1,j-1]) + gamma m_j`,
//! - root `i`, one child: `max(gamma m_i, C[i+1,j]) + comm(S[i+1,j])`,
//! - root `j`, one child: `C[i,j-1] + comm(S[i,j-1]) + gamma m_j`.
//!
//! # Why O(p²) is right
//! Let `gamma <= beta`. A range takes no longer without its first or without its last rank, whether
//! blocks are empty or not. The proof is by induction. If the first rank `i` is the root, let
//! `i + 1` take its place. This removes the first rank from the range of the first child:
//! `max(gamma m_{i+1}, C[i+2,k]) + comm(S[i+2,k])` is at most `C[i+1,k] + comm(S[i+1,k])`, because
//! `gamma m_{i+1} + comm(S[i+2,k]) <= comm(S[i+1,k])`. If the first rank is elsewhere, its subtree
//! shrinks or disappears. The same holds at the other end, where `j - 1` takes the place of root
//! `j` and copies after its messages.
//!
//! For a root `i`, as `k` grows, the first child is therefore complete later and later, and the
//! second earlier and earlier. While the second is later, the largest `k` is best. From where the
//! first is later, the time is `max(gamma m_i, C[i+1,k])` plus both messages, which together carry
//! `S[i+1,j]` for any `k`: the smallest `k` is best. So there are two candidates, next to a
//! crossover. One pointer per column to the crossover suffices, which only goes down as `i` does.
//! Root `j` is analogous.
//!
//! For a root `k`, while the first child is later, the time is `C[i,k-1] + (gamma - beta) m_k` plus
//! a term that does not depend on `k`. A row keeps the `k` for which this is smaller than for all
//! later `k`; along these it rises, while the time of the second child falls. Their crossover moves
//! up with `j`, and the candidates two or more places before it are never best again.
//!
//! Where a message is empty (which saves `alpha`) the best `k` is the first or last such one; these
//! are considered separately.
//!
//! Example, `p = 3`, `m = 1, 2, 3`, `alpha = beta = 1`, `gamma = 0`: root 2 receives 0, then 1, in
//! `2 + 3 = 5`; root 1 receives both in `2 + 4`; root 0 receives both in `3 + 4`. The best is
//! root 2.

use crate::plan::prelude::*;
use std::collections::VecDeque;

use super::optimal::DynamicProgram;
use super::optimal::table::Ranges;
use super::tree::Received;
use super::{GatherProblem, GatherTree, fastest, heterogeneous};
use crate::plan::gather::row::{table_of_pairs, tree_rows};

tree_rows!(
    GATHER, SCATTER: "binary", tree {
        best_root: crate::plan::registry::BestRoot::Own,
        max_ranks_with_links: Some(crate::budget::trees::MAX_LINKED),
        tables: table_of_pairs,
        source: "Träff, optimal gather trees, Fig. 7; O(p^2) by oneport",
        rounds: "those of the best binary tree in rank order",
        volume: "those of that tree",
    }
);

/// The best binary tree. See the [module documentation](self) for time and memory; where links
/// differ in cost, as [`heterogeneous::binary`].
pub fn tree(problem: &GatherProblem) -> Result<GatherTree> {
    if problem.cost().links().is_some() {
        return heterogeneous::binary(problem);
    }
    let method = DynamicProgram::for_class(problem, "binary")?;
    let mut program = BinaryTimes(Ranges::new(problem));
    for (start, end) in program.0.needed(problem.root()) {
        match method {
            DynamicProgram::Quadratic => program.fill_fast(start, end),
            DynamicProgram::Cubic => program.fill(start, end),
        }
    }
    Ok(program.tree(problem.root()))
}

#[derive(Debug, Clone, Copy)]
enum Fork {
    /// The first rank receives `[i+1,k]` and `[k+1,j]`.
    First(usize),
    /// Rank `k` receives `[i,k-1]` and `[k+1,j]`.
    Middle(usize),
    /// The last rank receives `[i,k]` and `[k+1,j-1]`.
    Last(usize),
    /// The first rank receives all others.
    FirstAlone,
    /// The last rank receives all others.
    LastAlone,
}

/// `C`.
#[derive(Debug)]
struct BinaryTimes<'a>(Ranges<'a>);

impl BinaryTimes<'_> {
    #[inline]
    fn time(&self, i: usize, j: usize, shape: Fork) -> f64 {
        let Ranges { costs, .. } = &self.0;
        let received =
            |t: f64, a: usize, b: usize| max_time(t, self.0.at(a, b)) + costs.message(a, b);
        match shape {
            Fork::First(k) => received(received(costs.copy(i), i + 1, k), k + 1, j),
            Fork::Middle(k) => received(received(0.0, i, k - 1) + costs.copy(k), k + 1, j),
            Fork::Last(k) => received(received(0.0, i, k), k + 1, j - 1) + costs.copy(j),
            Fork::FirstAlone => received(costs.copy(i), i + 1, j),
            Fork::LastAlone => received(0.0, i, j - 1) + costs.copy(j),
        }
    }

    /// All shapes of `[i, j]`, `i < j`; with a given `root`, only those rooted there.
    fn shapes(i: usize, j: usize, root: Option<usize>) -> impl Iterator<Item = Fork> {
        let is = move |r: usize| root.is_none_or(|root| root == r);
        let first = (i + 1..j).filter(move |_| is(i)).map(Fork::First);
        let middle = (i + 1..j).filter(move |&k| is(k)).map(Fork::Middle);
        let last = (i..j - 1).filter(move |_| is(j)).map(Fork::Last);
        let alone = is(i).then_some(Fork::FirstAlone);
        let alone = alone.into_iter().chain(is(j).then_some(Fork::LastAlone));
        alone.chain(first).chain(middle).chain(last)
    }

    fn best(&self, i: usize, j: usize, root: Option<usize>) -> (f64, Fork) {
        let timed = Self::shapes(i, j, root).map(|s| (self.time(i, j, s), s));
        fastest(timed).unwrap_or((0.0, Fork::FirstAlone))
    }

    /// Fills the ranges within `start..end` by trying every shape of each.
    fn fill(&mut self, start: usize, end: usize) {
        for i in (start..end).rev() {
            for j in i + 1..end {
                let best = self.best(i, j, None).0;
                self.0.set(i, j, best);
            }
        }
    }

    /// Fills the same ranges by trying only the few shapes that can be best.
    fn fill_fast(&mut self, start: usize, end: usize) {
        // By column: the crossover, the first split from which on the first child is complete later
        // than the second; for the first rank as root, and for the last.
        let mut first: Vec<usize> = (0..end).collect();
        let mut last: Vec<usize> = (0..end).map(|j| j.saturating_sub(1)).collect();
        let zeros = (start..end).any(|r| self.0.costs.size(r, r) == 0);
        // The nearest rank with a non-empty block from i on; below, up to j.
        let mut next = end;
        for i in (start..end).rev() {
            if self.0.costs.size(i, i) > 0 {
                next = i;
            }
            let mut previous = i;
            // Candidates for a middle root, by rising time without the terms that all of them
            // share.
            let mut middle: VecDeque<(usize, f64)> = VecDeque::new();
            for j in i + 1..end {
                if self.0.costs.size(j, j) > 0 {
                    previous = j;
                }
                let mut best =
                    self.time(i, j, Fork::FirstAlone)
                        .min(self.time(i, j, Fork::LastAlone));
                if j - i >= 2 {
                    best = best.min(self.first(i, j, &mut first[j]));
                    best = best.min(self.last(i, j, &mut last[j]));
                    best = best.min(self.middle(i, j, &mut middle));
                    if zeros {
                        best = best.min(self.around_empty(i, j, next, previous));
                    }
                }
                self.0.set(i, j, best);
            }
        }
    }

    /// The best time with two children of the first rank.
    #[inline]
    fn first(&self, i: usize, j: usize, crossover: &mut usize) -> f64 {
        let mut best = f64::INFINITY;
        while *crossover > i + 1 {
            let k = *crossover - 1;
            let ready = max_time(self.0.costs.copy(i), self.0.at(i + 1, k))
                + self.0.costs.message(i + 1, k);
            let other = self.0.at(k + 1, j);
            if ready < other {
                best = other + self.0.costs.message(k + 1, j);
                break;
            }
            *crossover = k;
        }
        if *crossover < j {
            best = best.min(self.time(i, j, Fork::First(*crossover)));
        }
        best
    }

    /// The best time with two children of the last rank.
    #[inline]
    fn last(&self, i: usize, j: usize, crossover: &mut usize) -> f64 {
        let mut best = f64::INFINITY;
        while *crossover > i {
            let k = *crossover - 1;
            let ready = self.0.at(i, k) + self.0.costs.message(i, k);
            let other = self.0.at(k + 1, j - 1);
            if ready < other {
                best = other + self.0.costs.message(k + 1, j - 1) + self.0.costs.copy(j);
                break;
            }
            *crossover = k;
        }
        if *crossover < j - 1 {
            best = best.min(self.time(i, j, Fork::Last(*crossover)));
        }
        best
    }

    /// The best time with a root between the first and the last rank.
    #[inline]
    fn middle(&self, i: usize, j: usize, roots: &mut VecDeque<(usize, f64)>) -> f64 {
        let costs = &self.0.costs;
        let ready = |k: usize| self.0.at(i, k - 1) + costs.message(i, k - 1) + costs.copy(k);
        // The time of both messages and the copy, without the terms that all roots share.
        let new = j - 1;
        let time = self.0.at(i, new - 1) + costs.copy(new) - costs.sending(new);
        while roots.back().is_some_and(|b| b.1 >= time) {
            roots.pop_back();
        }
        roots.push_back((new, time));
        while let Some(&(second, _)) = roots.get(1)
            && ready(second) < self.0.at(second + 1, j)
        {
            roots.pop_front();
        }
        let both = roots.iter().take(2);
        both.map(|&(k, _)| self.time(i, j, Fork::Middle(k)))
            .fold(f64::INFINITY, f64::min)
    }

    /// The best time of the shapes with an empty message. `next` is the first rank from `i` on with
    /// a non-empty block, `previous` the last one up to `j`.
    fn around_empty(&self, i: usize, j: usize, next: usize, previous: usize) -> f64 {
        // The first rank after i with a non-empty block, and the last one before j.
        let after = (i + 1..j).find(|&r| self.0.costs.size(r, r) > 0);
        let before = (i..j).rev().find(|&r| self.0.costs.size(r, r) > 0);
        let inner = |k: &usize| (i + 1..j).contains(k);
        let firsts = [after.map_or(j - 1, |a| a - 1), previous];
        let middles = [next, next.saturating_sub(1), previous, previous + 1];
        let lasts = [next.saturating_sub(1), before.unwrap_or(i)];
        let firsts = firsts.into_iter().filter(inner).map(Fork::First);
        let middles = middles.into_iter().filter(inner).map(Fork::Middle);
        let lasts = lasts.into_iter().filter(|k| (i..j - 1).contains(k));
        let all = firsts.chain(middles).chain(lasts.map(Fork::Last));
        all.map(|s| self.time(i, j, s))
            .fold(f64::INFINITY, f64::min)
    }

    fn tree(&self, root: Option<usize>) -> GatherTree {
        GatherTree::of_ranges(self.0.costs.ranks(), root, |(i, j), root| {
            let (root, ranges, copy_after) = match (i < j).then(|| self.best(i, j, root).1) {
                None => (i, vec![], 0),
                Some(Fork::First(k)) => (i, vec![(i + 1, k), (k + 1, j)], 0),
                Some(Fork::Middle(k)) => (k, vec![(i, k - 1), (k + 1, j)], 1),
                Some(Fork::Last(k)) => (j, vec![(i, k), (k + 1, j - 1)], 2),
                Some(Fork::FirstAlone) => (i, vec![(i + 1, j)], 0),
                Some(Fork::LastAlone) => (j, vec![(i, j - 1)], 1),
            };
            Received {
                root,
                parts: ranges.into_iter().map(|range| (range, None)).collect(),
                copy_after,
            }
        })
    }
}
