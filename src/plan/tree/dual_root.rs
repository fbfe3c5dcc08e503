//! Dual-root pipelined allreduce: two trees reduce segments towards two roots and broadcast results
//! at the same time.
//!
//! - Source: Träff, "A doubly-pipelined, dual-root reduction-to-all algorithm and implementation"
//!   (2021).
//! - Symbols: `p` ranks, `q` segments of `s` elements, `tc = alpha + beta s`, `tp = gamma s`.
//! - Time for `p = 2^(h+1) - 2`, two full trees of `h > 1` levels:
//!   `(4h - 3) tc + (2h - 1) tp + 3 (q - 1)(tc + tp)`. Other `p` take at most the time of the next
//!   such `p`. With the best segment size: `O(log p + sqrt(m log p)) + 3 (beta + gamma) m`.
//! - Scratch: one segment at each root.
//!
//! The lower half of the ranks forms one binary tree, the upper half another. Both are numbered in
//! postorder: left subtree, right subtree, their parent.
//!
//! In every iteration a rank exchanges messages with its right child, then its left child, then its
//! parent; the two roots exchange with each other. Each exchange sends and receives at once. The
//! rank combines what its children send up. To a child it sends the result that it received from
//! its own parent one iteration before. A rank at depth `d` thus receives the result of a segment
//! `d` iterations after it sent its own part of that segment up. Both roots combine what they
//! exchange.
//!
//! Operand order is kept because every rank holds the combination of consecutive ranks. Its right
//! child's ranks come directly before its own number, and its left child's ranks directly before
//! those.
//!
//! Example, `p = 6`: ranks 0 and 1 are below 2, ranks 3 and 4 below 5. Each iteration: 1→2 and 4→5,
//! 0→2 and 3→5, 2↔5. At the same time results of the previous iteration go down: 2→1, 2→0, and so
//! on.

use crate::plan::prelude::*;
use crate::plan::segments::{SymbolValues, ceil_log2};

pub(in crate::plan) const ALLREDUCE: Row = Row {
    ports: PortModels::Bi,
    segmented: true,
    transfers: row::for_each_segment_twice,
    source: "Träff 2021",
    rounds: "4 ceil(log2(p+2))-7+3(q-1) for p = 2^h-2; at most, for others",
    volume: "2(p-1) m",
    published: Some(published),
    ..row::new("dual-root", Kind::Allreduce, plan).with_formula(time)
};

pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    let p = request.ranks;
    let (mut b, vector) = over_vector(request, Collective::Allreduce, 0);
    let segments = request.segments.spans();
    let half = p / 2;
    let mut nodes = Vec::with_capacity(p);
    grow(&mut nodes, 0, half, None, 0);
    grow(&mut nodes, half, p - half, None, 0);
    let largest = request.segments.sizes().iter().max().copied().unwrap_or(0);
    for node in &nodes {
        let mut up = node.parent;
        if up.is_none() && half > 0 {
            up = Some(if node.rank < half { p - 1 } else { half - 1 });
            b.set_len(node.rank, vector.len + largest);
        }
        let Some(up) = up else { continue };
        let program = DualSteps {
            node,
            up,
            segments: &segments,
            scratch: vector.len,
        };
        for iteration in 0..=segments.len() + node.depth {
            program.iteration(&mut b, iteration);
        }
    }
    b.build()
}

/// A rank and its neighbours in its tree.
struct DualNode {
    rank: usize,
    depth: usize,
    parent: Option<usize>,
    /// The right child, then the left child.
    children: Vec<usize>,
}

/// Appends the nodes of the tree over ranks `first .. first + count`.
fn grow(
    nodes: &mut Vec<DualNode>,
    first: usize,
    count: usize,
    parent: Option<usize>,
    depth: usize,
) {
    let Some(below) = count.checked_sub(1) else {
        return;
    };
    let rank = first + below;
    let left = below.div_ceil(2);
    let mut children = Vec::new();
    if left < below {
        children.push(rank - 1);
    }
    if left > 0 {
        children.push(first + left - 1);
    }
    nodes.push(DualNode {
        rank,
        depth,
        parent,
        children,
    });
    grow(nodes, first, left, Some(rank), depth + 1);
    grow(nodes, first + left, below - left, Some(rank), depth + 1);
}

/// Generates the steps of one rank. `up` is its parent or, for a root, the other root.
struct DualSteps<'a> {
    node: &'a DualNode,
    up: usize,
    segments: &'a [Span],
    scratch: usize,
}

impl DualSteps<'_> {
    fn iteration(&self, b: &mut Builder, iteration: usize) {
        let DualNode { rank, depth, .. } = *self.node;
        let own = self.segment(Some(iteration));
        let for_children = self.segment(iteration.checked_sub(depth + 1));
        for &child in &self.node.children {
            if let Some(result) = for_children {
                b.step(rank, Step::send(child, result));
            }
            if let Some(part) = own {
                let order = Order::by_rank(rank, child);
                b.step(rank, Step::recv_combine(child, part, order));
            }
        }
        if let Some(part) = own {
            b.step(rank, Step::send(self.up, part));
        }
        if self.node.parent.is_some() {
            if let Some(result) = self.segment(iteration.checked_sub(depth)) {
                b.step(rank, Step::recv(self.up, result));
            }
        } else if let Some(part) = own {
            let scratch = Span::new(self.scratch, part.len);
            let order = Order::by_rank(rank, self.up);
            b.step(rank, Step::recv(self.up, scratch));
            b.step(rank, Step::combine(scratch, part, order));
        }
    }

    /// The segment with this number; `None` before the first and after the last one.
    fn segment(&self, number: Option<usize>) -> Option<Span> {
        number.and_then(|n| self.segments.get(n)).copied()
    }
}

/// The time over two trees of `h` levels that are full, or fuller than the request's:
/// `(4 h - 3) tc + (2 h - 1) tp + 3 (q - 1)(tc + tp)`.
fn published(x: &SymbolValues<'_>) -> Option<Published> {
    let h = f64::from(ceil_log2(x.ranks.saturating_add(2)) - 1);
    let (starts, combined) = (4.0 * h - 6.0, 2.0 * h - 4.0);
    // (starts + 3 m / s) alpha + slope s + whole
    let slope = starts * x.beta + combined * x.gamma;
    let whole = 3.0 * x.m * (x.beta + x.gamma);
    let time = |s: f64, q: f64| {
        (starts + 3.0 * q) * x.alpha + slope * s + 3.0 * q * s * (x.beta + x.gamma)
    };
    let best = (3.0 * x.m * x.alpha / slope).sqrt();
    let defined = best.is_finite();
    let s = if defined { best.clamp(1.0, x.m) } else { x.m };
    Some(Published {
        time: time(x.s, (x.m / x.s).ceil()),
        best_segment: defined.then_some(best),
        best_time: defined
            .then(|| starts * x.alpha + 2.0 * (3.0 * x.m * x.alpha * slope).sqrt() + whole),
        clamped: (s, time(s, x.m / s)),
        ..x.whole("at most; Träff 2021", 0.0)
    })
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    let (q, s) = request.equal_segments()?;
    let p = request.ranks;
    if p == 1 {
        return Some(0.0);
    }
    if p % 2 == 1 || !(p / 2 + 1).is_power_of_two() {
        return None;
    }
    // The first iteration proceeds upwards level by level, the last ones downwards.
    let levels = f64::from((p / 2 + 1).ilog2());
    let (tc, tp) = (request.transfer_time(s), request.combine_time(s));
    if request.local_combine_time(s) != tp {
        return None;
    }
    let q = q as f64;
    if p == 2 {
        return Some(q * (tc + tp));
    }
    Some((4.0 * levels - 3.0) * tc + (2.0 * levels - 1.0) * tp + 3.0 * (q - 1.0) * (tc + tp))
}
