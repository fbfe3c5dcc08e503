//! Multi-tree broadcast and reduction: one pipelined tree for each port, and every rank serves the
//! children of one of them through all of its ports.
//!
//! - Source: Bar-Noy, Ho, "Broadcasting multiple messages in the multiport model" (1999): `k`
//!   complete `k`-ary trees. Which rank serves which children is ours.
//! - Ports: bidirectional, `k`-ported. With one port the tree is a chain.
//! - Symbols: `p` ranks, `q` segments of `s` elements, `D` the number of levels of a complete
//!   `k`-ary tree of `p-1` ranks, `tc = alpha + beta s`.
//! - Rounds of the broadcast: `D + ceil(q/k) - 1`; one more for few `p` where the
//!   last level is nearly full, and up to three more for `p <= k`. Where `p` is a power of `k+1`,
//!   `ceil(log_(k+1) p) + ceil((q-1)/k)` rounds are necessary.
//! - Time of the broadcast: the rounds times `tc`. The reduction combines up to `k`
//!   segments more in each round.
//! - Scratch: none for the broadcast and one port, otherwise up to `k` segments.
//!
//! Segment `i` travels in tree `i mod t`, with `t = min(k, q)` trees below the root. Of the other
//! ranks, those with the same remainder modulo `t` serve the children of one tree, `k` each, in
//! order of their numbers. Where the ranks of a remainder are too few, those that have ports to
//! spare in their own tree serve the rest. The ports suffice: besides the edges from the root, all
//! trees together have `t (p-2)` edges, and the ranks have `k (p-1)` ports. In a round a segment
//! moves down one edge. Each edge has ports of its own at both ends, so trees do not wait for each
//! other.
//!
//! Example, `p = 5`, `k = 2`. Even segments: 0→1; 1→3, 1→2; 3→4. Odd ones: 0→2; 2→4, 2→1; 4→3.

use std::collections::BinaryHeap;
use std::ops::Range;

use crate::plan::prelude::*;

pub(in crate::plan) const BROADCAST: Row = Row {
    ports: PortModels::Bi,
    k_ported: true,
    source: "Bar-Noy, Ho 1999 (k complete k-ary trees)",
    rounds: "D+ceil(q/k)-1, D = ceil(log_k((k-1)(p-1)+1)) on k > 1 ports, p-1 on one",
    min_rounds: levels,
    ..row::new("multi-tree", Kind::Broadcast, plan)
        .segmented()
        .with_formula(time)
};

pub(in crate::plan) const REDUCE: Row = Row {
    collective: Kind::Reduce,
    commutative_only: true,
    formula: ClosedForm::None,
    ..BROADCAST
};

pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    let (trees, collective) = (Trees::of(request), request.kind.with_root(request.root));
    let scratch = rounds::scratch_of(request, trees.rounds(request));
    let (mut b, vector) = over_vector(request, collective, scratch);
    match request.kind {
        Kind::Broadcast => rounds::forwards(&mut b, request, trees.rounds(request)),
        _ => rounds::backwards(&mut b, request, trees.rounds(request), vector.len),
    }
    b.build()
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    let (q, s) = request.equal_segments()?;
    let rounds = Trees::of(request).count_rounds(q);
    Some(rounds as f64 * request.transfer_time(s))
}

/// The number of levels of a complete `k`-ary tree of `p-1` ranks, below the root.
fn levels(p: usize, k: usize) -> usize {
    let (mut levels, mut width, mut ranks) = (0, 1usize, 0usize);
    while ranks < p - 1 {
        ranks = ranks.saturating_add(width);
        width = width.saturating_mul(k);
        levels += 1;
    }
    levels
}

/// The trees, over numbers of ranks from the root on: of each its edges from the top down.
struct Trees(Vec<Vec<PortEdge>>);

struct PortEdge {
    tree: usize,
    parent: usize,
    child: usize,
    /// The number of the parent's port. The child's is that of the tree.
    port: usize,
    level: usize,
}

impl Trees {
    fn of(request: &Request) -> Trees {
        let (p, k) = (request.ranks, request.ports.k());
        let count = if p > 1 {
            k.min(request.segments.count())
        } else {
            0
        };
        // Ranks whose last ports have no child in the trees so far: how many ports, and the rank.
        let mut spare = BinaryHeap::new();
        let tree = |tree: usize| {
            let mut missing = p - 2;
            let mut parents = Vec::new();
            for v in (tree + 1..p).step_by(count) {
                let served = k.min(missing);
                missing -= served;
                spare.push((k - served, v));
                if served > 0 {
                    parents.push((v, 0..served));
                }
            }
            while missing > 0 {
                let (free, v) = spare.pop().expect("the ports of all ranks suffice");
                let served = free.min(missing);
                missing -= served;
                spare.push((free - served, v));
                parents.push((v, k - free..k - free + served));
            }
            edges(p, tree, &parents)
        };
        Trees((0..count).map(tree).collect())
    }

    /// The messages of a broadcast, round by round.
    fn rounds(&self, request: &Request) -> impl DoubleEndedIterator<Item = Vec<Message>> {
        let Request { ranks, root, .. } = *request;
        let mut segments = request.segments.spans();
        // A reduction is the broadcast backwards.
        if request.kind == Kind::Reduce {
            cut_from_the_end(&mut segments);
        }
        let q = segments.len();
        let rank = move |v: usize| (v + root) % ranks;
        (0..self.count_rounds(q)).map(move |t| {
            let message = |e: &PortEdge| {
                let segment = segments[(t - e.level) * self.0.len() + e.tree];
                let message = Message::new(rank(e.parent), rank(e.child), segment);
                message.on_ports([e.port, e.tree])
            };
            let busy = self.0.iter().flat_map(|edges| self.busy(edges, q, t));
            busy.map(message).collect()
        })
    }

    /// The edges of a tree that carry one of `q` segments in round `t`: on one port there may be as
    /// many levels as ranks, and as many rounds.
    fn busy<'e>(&self, edges: &'e [PortEdge], q: usize, t: usize) -> &'e [PortEdge] {
        let segments = self.segments_of(edges[0].tree, q);
        let done = edges.partition_point(|e| e.level + segments <= t);
        let begun = edges.partition_point(|e| e.level <= t);
        &edges[done..begun]
    }

    /// How many of `q` segments travel in a tree.
    fn segments_of(&self, tree: usize, q: usize) -> usize {
        (q - tree).div_ceil(self.0.len())
    }

    fn count_rounds(&self, q: usize) -> usize {
        let last = self.0.iter().filter_map(|edges| edges.last());
        let end = |e: &PortEdge| e.level + self.segments_of(e.tree, q);
        last.map(end).max().unwrap_or(0)
    }
}

/// The edges of a tree over `0..p` in which these ranks, from the top down, serve children through
/// these ports; the root serves the first of them.
fn edges(p: usize, tree: usize, parents: &[(usize, Range<usize>)]) -> Vec<PortEdge> {
    let mut is_parent = vec![false; p];
    parents.iter().for_each(|&(v, _)| is_parent[v] = true);
    let leaves = (1..p).filter(|&v| !is_parent[v]);
    let mut below = parents.iter().map(|&(v, _)| v).chain(leaves);
    let top = PortEdge {
        tree,
        parent: 0,
        child: below.next().expect("there is a rank besides the root"),
        port: tree,
        level: 0,
    };
    let mut edges = vec![top];
    for (i, (parent, ports)) in parents.iter().enumerate() {
        for port in ports.clone() {
            edges.push(PortEdge {
                tree,
                parent: *parent,
                child: below.next().expect("ports for all ranks but the first"),
                port,
                level: edges[i].level + 1,
            });
        }
    }
    edges
}
