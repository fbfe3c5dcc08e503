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

use super::cube::{Cube, fold, members_of};
use crate::collective::Collective;
use crate::error::Result;
use crate::plan::Request;
use crate::schedule::{Builder, Schedule, Span};

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
    fold(&mut b, p, root, vector);
    let cube = Cube {
        members: members_of(p, root),
        elements: vector.len,
    };
    cube.reduce_scatter(&mut b, request);
    gather(&cube, &mut b, root);
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

/// Halving undone, but only towards the root.
fn gather(cube: &Cube, b: &mut Builder, root: usize) {
    // The root stays a member when neighbours are folded.
    let target = cube.members.partition_point(|&r| r < root);
    for k in (0..cube.dimensions()).rev() {
        // Members that agree with the root in the bits above k still take part.
        for low in 0..1usize << k {
            let to = ((target >> (k + 1)) << (k + 1)) | (target & (1 << k)) | low;
            let from = to ^ (1 << k);
            let span = cube.kept(from, k + 1);
            if span.len > 0 {
                b.transfer(cube.members[from], cube.members[to], span);
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
