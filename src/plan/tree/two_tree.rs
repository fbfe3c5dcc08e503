//! Two-tree reduction: two binary trees work at the same time, each on half of the segments.
//!
//! - Source: Sanders, Speck, Träff, "Two-tree algorithms for full bandwidth broadcast, reduction
//!   and scan" (2009).
//! - Symbols: `p` ranks, `q` segments of `s` elements, `tc = alpha + beta s`, `tp = gamma s`,
//!   `L = ceil(log2 p)`.
//! - Rounds: `f + q - 1`, where `f` is the number of rounds until the first segment is complete.
//!   `f` was `2L - 1` or `2L - 2` for all `p` tried (2..=700, and some up to 65537).
//! - Time for powers of two: `(2L + q - 2)(tc + tp)`; for other `p` at most that. With few segments
//!   it is less than planned, because a message need not wait for its colour.
//! - Restrictions: a single segment uses one tree only, so ask for an even number of segments.
//!
//! Every rank other than the root is an inner node of at most one tree and a leaf of the other. In
//! every two rounds it receives two segments and sends two. Rounds are coloured even and odd, and
//! so is every tree edge: the two edges out of a rank have different colours, and so have the two
//! edges into it. Thus no port is used twice in a round. (Edges constrained in this way form paths
//! and even cycles, so such a colouring exists.) A segment moves up an edge in the first round of
//! the edge's colour after both children's segments have arrived. Later segments follow in every
//! second round. Both trees end at the root, on different colours: from round `f` on the root
//! completes one segment in every round. Even segments use the faster tree.
//!
//! Operand order is kept because both trees number ranks `1..p` in order (left subtree, its parent,
//! right subtree), so a rank always combines a range adjacent to the one it holds. In the first
//! tree odd numbers are leaves. If `p - 1` is even, the second tree is the mirror image of the
//! first. Otherwise it is the same kind of tree over numbers from 0 on, without the leaf 0.
//!
//! Example, `p = 5`: first tree 1→2, 3→2, 2→4, 4→0; second tree 4→3, 2→3, 3→1, 1→0.

use crate::plan::prelude::*;

pub(in crate::plan) const REDUCE: Row = Row {
    ports: PortModels::Bi,
    source: "Sanders, Speck, Träff 2009",
    rounds: "at most 2 ceil(log2 p)+q-2",
    formula: ClosedForm::Of(time),
    // 2 L + 2 k rounds with k segments for each tree.
    published: Some(|x| Some(x.rounds("about; Sanders, Speck, Träff 2009", 2.0 * x.l, 1.0))),
    ..row::planned_by("two-tree", Kind::Reduce, Planner::Reduction(reduction)).segmented()
};

pub(in crate::plan) const ALLREDUCE: Row = row::allreduce(REDUCE, "at most 4 ceil(log2 p)+2q-4");

pub(in crate::plan) fn reduction(request: &Request) -> Reduction {
    let q = request.segments.count();
    let trees = TwoTrees::new(request.ranks);
    let rounds = (0..trees.rounds(q)).map(|t| trees.round(t, q));
    Reduction::new(request, rounds)
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    let (q, s) = request.equal_segments()?;
    if request.ranks == 1 {
        return Some(0.0);
    }
    if !request.ranks.is_power_of_two() {
        return None;
    }
    let rounds = (2 * request.ranks.ilog2() as usize + q - 2) as f64;
    Some(rounds * (request.transfer_time(s) + request.combine_time(s)))
}

/// An edge from a rank to its parent: `2 * rank + tree`.
type ParentEdge = usize;

/// Two trees over ranks `1..p`, both below the root 0, and the rounds of their edges.
struct TwoTrees {
    /// By edge: the parent. The root's two edges are unused.
    parent: Vec<usize>,
    /// By rank: the edges into it, at most two.
    incoming: Vec<Vec<ParentEdge>>,
    /// By edge: the round of the first segment. Its parity is the edge's colour.
    first: Vec<usize>,
    /// The tree (0 or 1) that completes its first segment earlier.
    faster: usize,
}

impl TwoTrees {
    fn new(p: usize) -> TwoTrees {
        let mut trees = TwoTrees {
            parent: vec![0; 2 * p],
            incoming: vec![Vec::new(); p],
            first: vec![0; 2 * p],
            faster: 0,
        };
        if p < 2 {
            return trees;
        }
        let n = p - 1;
        in_order(1, n, 0, &mut |v, parent| trees.parent[2 * v] = parent);
        if n.is_multiple_of(2) {
            let mirror = |v: usize| if v == 0 { 0 } else { p - v };
            in_order(1, n, 0, &mut |v, parent| {
                trees.parent[2 * mirror(v) + 1] = mirror(parent);
            });
        } else {
            // The same tree shifted by one. Its first leaf would be the root, whose edges are
            // unused. Parent 0 means no parent, before and after the shift.
            in_order(1, p, 0, &mut |v, parent| {
                trees.parent[2 * (v - 1) + 1] = parent.saturating_sub(1);
            });
        }
        for edge in 2..2 * p {
            trees.incoming[trees.parent[edge]].push(edge);
        }
        trees.colour();
        trees
    }

    /// Colours the edges and sets the round of each.
    fn colour(&mut self) {
        let edges = self.parent.len();
        let mut odd: Vec<Option<bool>> = vec![None; edges];
        let mut components = Vec::new();
        for start in 2..edges {
            if odd[start].is_some() {
                continue;
            }
            odd[start] = Some(false);
            let mut component = vec![start];
            let mut next = 0;
            while let Some(&edge) = component.get(next) {
                next += 1;
                let other = odd[edge].map(|colour| !colour);
                let siblings = self.incoming[self.parent[edge]].iter().copied();
                for conflicting in siblings.filter(|&e| e != edge).chain([edge ^ 1]) {
                    if odd[conflicting].is_none() {
                        odd[conflicting] = other;
                        component.push(conflicting);
                    }
                }
            }
            components.push(component);
        }
        let mut odd: Vec<bool> = odd.into_iter().map(|colour| colour == Some(true)).collect();
        // The two colours of each component can be swapped: keep the variant that completes the
        // first segment earlier.
        let mut best = self.schedule(&odd);
        for component in &components {
            component.iter().for_each(|&edge| odd[edge] = !odd[edge]);
            let swapped = self.schedule(&odd);
            if swapped < best {
                best = swapped;
            } else {
                component.iter().for_each(|&edge| odd[edge] = !odd[edge]);
            }
        }
        self.schedule(&odd);
    }

    /// Sets the rounds of all edges for these colours. Returns the round in which the root receives
    /// its first segment.
    fn schedule(&mut self, odd: &[bool]) -> usize {
        let mut arrivals = [0, 0];
        for edge in self.incoming[0].clone() {
            arrivals[edge % 2] = self.schedule_subtree(edge, odd);
        }
        self.faster = usize::from(arrivals[1] < arrivals[0]);
        arrivals[self.faster]
    }

    /// Sets the rounds of `edge` and of the edges below it in its tree. Returns the round of
    /// `edge`.
    fn schedule_subtree(&mut self, edge: ParentEdge, odd: &[bool]) -> usize {
        let mut ready = 0;
        for i in 0..self.incoming[edge / 2].len() {
            let child = self.incoming[edge / 2][i];
            if child % 2 == edge % 2 {
                ready = ready.max(self.schedule_subtree(child, odd) + 1);
            }
        }
        self.first[edge] = ready + usize::from((ready % 2 == 1) != odd[edge]);
        self.first[edge]
    }

    fn rounds(&self, segments: usize) -> usize {
        let latency = self.incoming[0].iter().map(|&edge| self.first[edge]).min();
        latency.map_or(0, |f| f + segments)
    }

    fn round(&self, t: usize, segments: usize) -> Vec<Transfer> {
        let transfer = |edge: ParentEdge| {
            let since = t.checked_sub(self.first[edge])?;
            let segment = since + usize::from(edge % 2 != self.faster);
            (since % 2 == 0 && segment < segments)
                .then(|| Transfer::new(segment, edge / 2, self.parent[edge]))
        };
        (2..self.parent.len()).filter_map(transfer).collect()
    }
}

/// Visits the nodes `low..=high` of a binary tree in which odd numbers are leaves, with the parent
/// of each (`parent` for the root). `low` must be odd.
fn in_order(low: usize, high: usize, parent: usize, visit: &mut impl FnMut(usize, usize)) {
    if low > high {
        return;
    }
    let root = low - 1 + (1 << (high - low + 1).ilog2());
    visit(root, parent);
    in_order(low, root - 1, root, visit);
    in_order(root + 1, high, root, visit);
}
