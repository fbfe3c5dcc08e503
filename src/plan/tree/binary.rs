//! Binary tree reduction: every rank combines the vectors of its two children, segment by segment.
//!
//! - Symbols: `p` ranks, `N = ceil(log2(p + 1))` levels, `q` segments of `s` elements,
//!   `tc = alpha + beta s`, `tp = gamma s`.
//! - Time for `p = 2^N - 1`, bidirectional: `2(N + q - 2)(tc + tp)`. Unidirectional, `N >= 3`:
//!   `2(N - 1)(tc + tp) + (q - 1)(3 tc + 2 tp)`. (The paper's Table III prints `N + q - 1`, which
//!   contradicts its own best time.)
//!
//! Every inner rank combines each segment from its left child, then from its right child, and sends
//! the result to its parent. Ranks are numbered in preorder: rank `v`, its left subtree and its
//! right subtree are consecutive ranges, and they are combined in this order.
//!
//! For any other `p`, the extra ranks over the largest `2^n - 1` send to the leaves of a full tree
//! in a first step, at most two to each leaf. A right child has one round to spare, because its
//! parent first receives from the left child. Leaves whose path from the root has the most right
//! turns therefore get extra ranks first. On bidirectional ports the time stays within the formula
//! above.
//!
//! Example, `p = 7`, bidirectional. Round 0: 2→1, 5→4. Round 1: 3→1, 6→4. Round 2: 1→0 (and the
//! second segment 2→1, 5→4). Round 3: 4→0.

use crate::plan::prelude::*;

pub(in crate::plan) const REDUCE: Row = Row {
    source: "folklore; Lowery & Langou, section IV",
    rounds: "2(N+q-2) (bi), 2(N-1)+3(q-1) (uni), N = ceil(log2(p+1)); at most, if p is not 2^N-1",
    covered_ranks: |p| (p + 1).next_power_of_two() - 1,
    best_segment: BestSegment::Formula(|x| {
        let unit = x.beta + x.gamma;
        if x.relays {
            x.optimum(1.0, (x.n - 2.0) * unit)
        } else {
            x.optimum(3.0, 2.0 * (x.n - 1.0) * unit - 3.0 * x.beta - 2.0 * x.gamma)
        }
    }),
    published: Some(|x| {
        Some(if x.relays {
            Published {
                // As printed: 2 (N + q - 1) rounds; the best size and its time follow from
                // 2 (N + q - 2).
                time: x.time(2.0 * (x.n - 1.0), 2.0, x.s),
                erratum: Some(
                    "the printed time, 2(N+q-1) rounds, contradicts the printed best time, which follows from 2(N+q-2)",
                ),
                ..x.rounds(TABLE_III, 2.0 * (x.n - 2.0), 2.0)
            }
        } else {
            Published {
                terms: x.terms(2.0 * (x.n - 1.0), 2.0 * (x.n + 2.0 * x.m - 3.0)),
                ..x.rounds(TABLE_I, 2.0 * (x.n - 3.0), 4.0)
            }
        })
    }),
    ..row::planned_by("binary", Kind::Reduce, Planner::Reduction(reduction))
        .segmented()
        .with_formula(time)
};

pub(in crate::plan) const ALLREDUCE: Row = row::allreduce(REDUCE, "twice those of the reduction");

pub(in crate::plan) fn reduction(request: &Request) -> Reduction {
    let q = request.segments.count();
    // For each segment an inner rank receives twice and sends once. On unidirectional ports all
    // three share one port; on bidirectional ports the send overlaps the receives.
    let period = request.by_ports(3, 2);
    let tree = BinaryTree::new(request.ranks);
    let first = tree.first_sends();
    let last = first.iter().max();
    let rounds = last.map_or(0, |last| last + 1 + period * (q - 1));
    let round = |t: usize| {
        let sends = |v: usize| {
            let since = t.checked_sub(first[v - 1])?;
            let segment = since / period;
            (since % period == 0 && segment < q).then(|| Transfer::new(segment, v, tree.parent[v]))
        };
        (1..request.ranks).filter_map(sends).collect::<Vec<_>>()
    };
    Reduction::new(request, (0..rounds).map(round))
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    let (q, s) = request.equal_segments()?;
    if request.ranks < 2 {
        return Some(0.0);
    }
    if !(request.ranks + 1).is_power_of_two() {
        return None;
    }
    let levels = f64::from((request.ranks + 1).trailing_zeros());
    let q = q as f64;
    let (tc, tp) = (request.transfer_time(s), request.combine_time(s));
    Some(if request.ports.can_relay() || request.ranks == 3 {
        2.0 * (levels + q - 2.0) * (tc + tp)
    } else {
        2.0 * (levels - 1.0) * (tc + tp) + (q - 1.0) * (3.0 * tc + 2.0 * tp)
    })
}

/// A binary tree over ranks numbered in preorder.
struct BinaryTree {
    /// By rank; the root is its own parent.
    parent: Vec<usize>,
    /// By rank: 0 for a left (or only) child, 1 for a right child.
    side: Vec<usize>,
    children: Vec<usize>,
}

impl BinaryTree {
    fn new(p: usize) -> BinaryTree {
        let levels = (p + 1).ilog2();
        let extra = extra_children(levels, p + 1 - (1 << levels));
        let mut tree = BinaryTree {
            parent: Vec::with_capacity(p),
            side: Vec::with_capacity(p),
            children: Vec::with_capacity(p),
        };
        tree.grow(0, levels, &extra);
        tree
    }

    /// Appends a full subtree of `levels` levels under `parent` (the root passes its own number).
    /// `extra[i]` is the number of extra children of the subtree's `i`-th leaf.
    fn grow(&mut self, parent: usize, levels: u32, extra: &[usize]) {
        let me = self.parent.len();
        self.parent.push(parent);
        self.children.push(0);
        self.side
            .push(if me == 0 { 0 } else { self.children[parent] });
        if me != 0 {
            self.children[parent] += 1;
        }
        if levels > 1 {
            let (left, right) = extra.split_at(extra.len() / 2);
            self.grow(me, levels - 1, left);
            self.grow(me, levels - 1, right);
        } else {
            for _ in 0..extra[0] {
                self.grow(me, 1, &[0]);
            }
        }
    }

    /// The round in which each rank except the root sends its first segment, from rank 1 on.
    fn first_sends(&self) -> Vec<usize> {
        // `starts[v]` is the round in which rank `v` receives its first message. Children have
        // larger numbers than their parents, so the loop visits them first.
        let mut starts = vec![0; self.parent.len()];
        for v in (1..self.parent.len()).rev() {
            let ready = starts[v] + self.children[v];
            let start = &mut starts[self.parent[v]];
            *start = (*start).max(ready.saturating_sub(self.side[v]));
        }
        (1..self.parent.len())
            .map(|v| starts[self.parent[v]] + self.side[v])
            .collect()
    }
}

/// Distributes `extra` ranks over the leaves of a full tree, from left to right, so that they delay
/// the root as little as possible. Returns the number of extra children of each leaf.
fn extra_children(levels: u32, extra: usize) -> Vec<usize> {
    let leaves = 1usize << (levels - 1);
    // The set bits of a leaf's number are its right turns, and each gives one round to spare.
    let mut slots: Vec<(i64, usize)> = (1..=2i64)
        .flat_map(|nth| (0..leaves).map(move |leaf| (nth - i64::from(leaf.count_ones()), leaf)))
        .collect();
    slots.sort_unstable();
    let mut counts = vec![0; leaves];
    for &(_, leaf) in &slots[..extra] {
        counts[leaf] += 1;
    }
    counts
}
