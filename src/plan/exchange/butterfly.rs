//! Butterfly reduction: reduce-scatter by recursive halving, then a gather to the root by recursive
//! doubling.
//!
//! - Source: Rabenseifner, "Optimization of collective reduction operations" (2004).
//! - Symbols: `p` ranks, `m` elements, `n = 2^d` the largest power of two up to `p`.
//! - Time if `n` divides `m`, bidirectional: `2d alpha + 2 (n-1)/n beta m + (n-1)/n gamma m`;
//!   unidirectional: `3d alpha + 3 (n-1)/n beta m + (n-1)/n gamma m`. For `p != n`:
//!   `alpha + beta m + gamma m` more.
//! - Scratch: `m/2` on unidirectional ranks.
//!
//! The halving is that of a [`Cube`]. Of two neighbours that are folded into one member the root is
//! the one that stays. Every root is thus reached without forwarding.
//!
//! Example, `p = 4`, `m = 4`, root 0. Elements kept after round 0: 01, 23, 01, 23; after round 1:
//! 0, 2, 1, 3. Gather: 2→0 and 3→1 (one element), 1→0 (two).

use crate::plan::prelude::*;

pub(in crate::plan) const REDUCE: Row = Row {
    source: "Rabenseifner 2004",
    rounds: "2 floor(log2 p), if p is not a power of two 1 more (bi); about 3 floor(log2 p) (uni)",
    volume: "(p-1) m + floor(log2 p)/2 m",
    best_root: BestRoot::Search,
    published: Some(|x| {
        let share = (x.p - 1.0) / x.p * x.m;
        let time = 2.0 * x.l * x.alpha + 2.0 * share * x.beta + share * x.gamma;
        x.relays.then(|| Published {
            time,
            clamped: (x.m, time),
            erratum: (!x.ranks.is_power_of_two())
                .then_some("only a lower bound where p is not a power of two"),
            ..x.whole(TABLE_III, x.l)
        })
    }),
    ..row::new("butterfly", Kind::Reduce, plan).with_formula(time)
};

pub(in crate::plan) const BROADCAST: Row = Row {
    published: None,
    ..row::broadcast(REDUCE)
};

pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    let root = request.root;
    let (mut b, vector) = over_vector(request, Collective::Reduce { root }, 0);
    let cube = Cube::reduce_scatter(&mut b, request, root, vector.len);
    gather(&cube, &mut b, root);
    b.build()
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    let (m, d) = (request.elements(), request.ranks.ilog2());
    if !m.is_multiple_of(1 << d) {
        return None;
    }
    let rounds = (1..=d).map(|k| {
        let half = m >> k;
        time_of_round(request, half)
            + time_of_combining(request, half)
            + request.transfer_time(half)
    });
    Some(time_of_fold(request, 1.0) + rounds.sum::<f64>())
}

/// Reverses the halving, but only towards the root.
fn gather(cube: &Cube, b: &mut Builder, root: usize) {
    // The root is always a member: folding keeps it.
    let target = cube.members.partition_point(|&r| r < root);
    for k in (0..cube.dimensions()).rev() {
        // Only members that agree with the root in the bits above k still take part.
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
