//! Butterfly reduction: reduce-scatter by recursive halving, then a gather to the root by recursive doubling.
//!
//! Source: Rabenseifner, "Optimization of collective reduction operations" (2004). Ports: bidirectional, one-ported.
//! Symbols: `p` ranks, `m` elements, `n = 2^d` the largest power of two up to `p`.
//! Rounds: `2d`, and one more for `p != n`. Volume: `(p - 1) m` to reduce and `d/2 m` to gather.
//! Time, when `n` divides `m`: `2d alpha + 2 (n-1)/n beta m + (n-1)/n gamma m`, for `p != n` and `alpha + beta m + gamma m` more.
//! Restrictions: the request's segments are ignored but for their sum.
//!
//! Keeps operand order: in round `k` partners are `2^k` apart, so each holds contributions of `2^k` consecutive members and its
//! partner those next to them. The lower partner keeps the lower half of the elements; a member ends with the block whose number is its own with
//! the bits reversed. What a rank receives goes into the half that it keeps, what it sends is the other half, so both run at once.
//! For `p != n` neighbours `2i`, `2i + 1` are folded into one member for the first `p - n` values of `i`; the one that stays is the
//! root, if it is one of them, so every root is reached without forwarding.
//!
//! `p = 4`, `m = 4`, root 0, elements kept after round 0: 01, 23, 01, 23; after round 1: 0, 2, 1, 3; gathered: 2→0 and
//! 3→1 (one element), 1→0 (two).

use crate::collective::Collective;
use crate::error::Result;
use crate::plan::Request;
use crate::schedule::{Builder, Order, Schedule, Span, Step};

/// Plans the reduction.
///
/// # Errors
/// When the request's parts do not fit together.
pub fn plan(request: &Request) -> Result<Schedule> {
    request.validate()?;
    let (p, root) = (request.ranks, request.root);
    let vector = Span::new(0, request.elements());
    let mut b = Schedule::builder(p, request.ports, Collective::Reduce { root });
    for r in 0..p {
        b.layout(r, vector.len, [vector], (r == root).then_some(vector));
    }
    let members = fold(&mut b, p, root, vector);
    let cube = Cube {
        members,
        elements: vector.len,
    };
    cube.reduce_scatter(&mut b);
    cube.gather(&mut b, root);
    b.build()
}

/// The executed time, when the blocks are equal.
pub fn time(request: &Request) -> Option<f64> {
    let (p, m) = (request.ranks, request.elements());
    if !request.closed_forms_hold() || !request.cost.is_linear() || p == 0 {
        return None;
    }
    let n = 1usize << p.ilog2();
    if m % n != 0 {
        return None;
    }
    let fold = if p == n {
        0.0
    } else {
        request.t_comm(m) + request.t_comp(m)
    };
    if m == 0 {
        return Some(fold);
    }
    let rounds = f64::from(p.ilog2());
    let moved = crate::cost::bytes(m / n * (n - 1), request.element_bytes);
    #[expect(
        clippy::cast_precision_loss,
        reason = "sizes stay far below 2^53 bytes"
    )]
    let moved = moved as f64;
    let cost = &request.cost;
    Some(fold + 2.0 * rounds * cost.alpha + 2.0 * cost.beta * moved + cost.gamma * moved)
}

/// Combines neighbours until a power of two of members remains: their ranks, in order.
fn fold(b: &mut Builder, p: usize, root: usize, vector: Span) -> Vec<usize> {
    let n = 1usize << p.ilog2();
    let pairs = p - n;
    let mut members = Vec::with_capacity(n);
    for i in 0..pairs {
        let (low, high) = (2 * i, 2 * i + 1);
        let (stays, leaves) = if high == root {
            (high, low)
        } else {
            (low, high)
        };
        b.transfer_combine(leaves, stays, vector, Order::by_rank(stays, leaves));
        members.push(stays);
    }
    members.extend(2 * pairs..p);
    members
}

/// A power of two of ranks that exchange along the edges of a hypercube.
struct Cube {
    members: Vec<usize>,
    elements: usize,
}

impl Cube {
    fn dimensions(&self) -> u32 {
        self.members.len().ilog2()
    }

    /// What member `j` keeps after `rounds` rounds of halving.
    fn kept(&self, j: usize, rounds: u32) -> Span {
        // Block boundaries are those of equal parts, rounded down: the low bits of j, reversed, number the part.
        let parts = 1usize << rounds;
        let part = (0..rounds).fold(0, |part, k| 2 * part + ((j >> k) & 1));
        let start = |part: usize| {
            (part as u128 * self.elements as u128 / parts as u128)
                .try_into()
                .unwrap_or(usize::MAX)
        };
        Span::from(start(part)..start(part + 1))
    }

    fn reduce_scatter(&self, b: &mut Builder) {
        for k in 0..self.dimensions() {
            for (j, &me) in self.members.iter().enumerate() {
                let partner = j ^ (1 << k);
                let peer = self.members[partner];
                let (mine, theirs) = (self.kept(j, k + 1), self.kept(partner, k + 1));
                if theirs.len > 0 {
                    b.step(me, Step::send(peer, theirs));
                }
                if mine.len > 0 {
                    b.step(me, Step::recv_combine(peer, mine, Order::by_rank(me, peer)));
                }
            }
        }
    }

    /// Halving undone, but only towards the root.
    fn gather(&self, b: &mut Builder, root: usize) {
        // The root stays a member when neighbours are folded.
        let target = self.members.partition_point(|&r| r < root);
        for k in (0..self.dimensions()).rev() {
            // Members that agree with the root in the bits above k still take part.
            for low in 0..1usize << k {
                let to = ((target >> (k + 1)) << (k + 1)) | (target & (1 << k)) | low;
                let from = to ^ (1 << k);
                let span = self.kept(from, k + 1);
                if span.len > 0 {
                    b.transfer(self.members[from], self.members[to], span);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::CostModel;
    use crate::simulate::Prepared;

    #[test]
    fn blocks_are_bit_reversed() {
        let cube = Cube {
            members: (0..8).collect(),
            elements: 8,
        };
        let blocks: Vec<usize> = (0..8).map(|j| cube.kept(j, 3).offset).collect();
        assert_eq!(blocks, [0, 4, 2, 6, 1, 5, 3, 7]);
    }

    #[test]
    fn halves_of_kept_parts_are_the_parts_kept_next() {
        for elements in [0, 1, 3, 7, 100, 12_345] {
            let cube = Cube {
                members: (0..16).collect(),
                elements,
            };
            for k in 0..4 {
                for j in 0..16 {
                    let (low, high) = (
                        cube.kept(j & !(1 << k), k + 1),
                        cube.kept(j | (1 << k), k + 1),
                    );
                    assert_eq!(cube.kept(j, k), Span::from(low.offset..high.end()));
                    assert_eq!(low.end(), high.offset);
                }
            }
        }
    }

    #[test]
    fn every_root_takes_the_same_time() {
        for p in [1, 2, 6, 8, 13] {
            let mut request = Request::new(p, 48);
            request.cost = CostModel::new(10.0, 1.0).gamma(0.5);
            for root in 0..p {
                request.root = root;
                let schedule = plan(&request).unwrap();
                let prepared = Prepared::new(&schedule, false).unwrap();
                let executed = prepared.simulate(&request.cost, 1).time();
                assert_eq!(Some(executed), time(&request), "p={p} root={root}");
            }
        }
    }
}
