//! k-ary tree broadcast and reduction: a pipeline in which every rank serves one child through each
//! of its ports.
//!
//! - Source: folklore; "kary" of MPICH and the pipelined trees of Open MPI, with as many children
//!   as there are ports.
//! - Ports: uni- or bidirectional, `k`-ported. With one port the tree is a chain.
//! - Symbols: `p` ranks, `D` the depth of a complete `k`-ary tree (`p-1` for `k = 1`), `q` segments
//!   of `s` elements, `tc = alpha + beta s`, `tp = gamma s`.
//! - Time, bidirectional: `(D + q - 1) tc` for the broadcast. The reduction takes `k tp` more in
//!   each round if each rank but the leaves has `k` children.
//! - Scratch: none for one port, otherwise `k` segments for the reduction.
//!
//! Ranks are numbered from the root on, level by level: the parent of `v` is `(v-1)/k`, rounded
//! down, and it uses the port with the number of the remainder. The reduction runs up the same
//! tree.
//!
//! Example, `p = 7`, `k = 2`: 0→1, 0→2 (two ports); 1→3, 1→4, 2→5, 2→6, and so on for each segment.

use crate::plan::prelude::*;

pub(in crate::plan) const BROADCAST: Row = Row {
    ports: PortModels::Each,
    k_ported: true,
    source: "folklore; MPICH, Open MPI (pipelined k-ary trees), k ports",
    rounds: "D+q-1 (bi), D = ceil(log_k((k-1)p+1))-1 on k > 1 ports, p-1 on one",
    ..row::new("kary", Kind::Broadcast, broadcast)
        .segmented()
        .with_formula(broadcast_time)
};

pub(in crate::plan) const REDUCE: Row = Row {
    collective: Kind::Reduce,
    commutative_only: true,
    planner: Planner::Direct(reduce),
    formula: ClosedForm::Of(reduce_time),
    ..BROADCAST
};

/// The tree over the numbers of all ranks.
struct KaryTree {
    ranks: usize,
    root: usize,
    k: usize,
}

impl KaryTree {
    fn of(request: &Request) -> KaryTree {
        KaryTree {
            ranks: request.ranks,
            root: request.root,
            k: request.ports.k(),
        }
    }

    fn rank(&self, v: usize) -> usize {
        (v + self.root) % self.ranks
    }

    /// The rank of the parent of number `v > 0`, and the port that both use.
    fn parent(&self, v: usize) -> (usize, usize) {
        (self.rank((v - 1) / self.k), (v - 1) % self.k)
    }

    /// The ranks of the children of number `v`, in the order of the ports.
    fn children(&self, v: usize) -> impl Iterator<Item = usize> {
        let first = v.saturating_mul(self.k).saturating_add(1);
        let end = first.saturating_add(self.k).min(self.ranks);
        (first..end).map(|child| self.rank(child))
    }

    /// Number of edges from the root to the last rank.
    fn depth(&self) -> usize {
        let (mut v, mut depth) = (self.ranks - 1, 0);
        while v > 0 {
            v = (v - 1) / self.k;
            depth += 1;
        }
        depth
    }

    /// Whether each rank has `k` children or none.
    fn is_full(&self) -> bool {
        (self.ranks - 1).is_multiple_of(self.k)
    }
}

pub(crate) fn broadcast(request: &Request) -> Result<Schedule> {
    let (tree, root) = (KaryTree::of(request), request.root);
    let (mut b, _) = over_vector(request, Collective::Broadcast { root }, 0);
    for v in 0..request.ranks {
        let rank = tree.rank(v);
        for segment in request.segments.spans() {
            if v > 0 {
                let (parent, port) = tree.parent(v);
                b.step(rank, Step::recv(parent, segment).on_port(port));
            }
            for (port, child) in tree.children(v).enumerate() {
                b.step(rank, Step::send(child, segment).on_port(port));
            }
        }
    }
    b.build()
}

pub(crate) fn reduce(request: &Request) -> Result<Schedule> {
    let (tree, root) = (KaryTree::of(request), request.root);
    let (mut b, vector) = over_vector(request, Collective::Reduce { root }, 0);
    let segments = request.segments.spans();
    let longest = segments.iter().map(|s| s.len).max().unwrap_or(0);
    for v in 0..request.ranks {
        let rank = tree.rank(v);
        let children: Vec<usize> = tree.children(v).collect();
        // One child's segment is combined on arrival; several arrive together.
        let scratch = |port: usize, len| Span::new(vector.len + port * longest, len);
        let areas = if children.len() > 1 {
            children.len()
        } else {
            0
        };
        b.set_len(rank, scratch(areas, 0).offset);
        for &segment in &segments {
            for (port, &child) in children.iter().enumerate() {
                let step = match areas {
                    0 => Step::recv_combine(child, segment, Order::MineFirst),
                    _ => Step::recv(child, scratch(port, segment.len)),
                };
                b.step(rank, step.on_port(port));
            }
            for port in 0..areas {
                let src = scratch(port, segment.len);
                b.step(rank, Step::combine(src, segment, Order::MineFirst));
            }
            if v > 0 {
                let (parent, port) = tree.parent(v);
                b.step(rank, Step::send(parent, segment).on_port(port));
            }
        }
    }
    b.build()
}

pub(crate) fn broadcast_time(request: &Request) -> Option<f64> {
    rounds(request).map(|(rounds, s)| rounds * request.transfer_time(s))
}

pub(crate) fn reduce_time(request: &Request) -> Option<f64> {
    let (rounds, s) = rounds(request)?;
    let combined = match request.ports.k() {
        1 => request.combine_time(s),
        k => k as f64 * request.local_combine_time(s),
    };
    let is_full = KaryTree::of(request).is_full();
    is_full.then(|| rounds * (request.transfer_time(s) + combined))
}

/// `D + q - 1` and `s`, for ranks that send and receive at once.
fn rounds(request: &Request) -> Option<(f64, usize)> {
    let (q, s) = request.equal_segments()?;
    let rounds = match request.ranks {
        0 | 1 => 0,
        _ => KaryTree::of(request).depth() + q - 1,
    };
    request.ports.can_relay().then_some((rounds as f64, s))
}
