//! Rabenseifner's allreduce: reduce-scatter by recursive halving, then allgather by recursive
//! doubling.
//!
//! - Source: Rabenseifner, "Optimization of collective reduction operations" (2004).
//! - Symbols: `p` ranks, `m` elements, `n = 2^d` the largest power of two up to `p`.
//! - Time if `n` divides `m`, bidirectional: `2d alpha + 2 (n-1)/n beta m + (n-1)/n gamma m`;
//!   unidirectional: `4d alpha + 4 (n-1)/n beta m + (n-1)/n gamma m`. For `p != n`:
//!   `2 (alpha + beta m) + gamma m` more.
//! - Volume: `2 (n-1) m + 2 (p-n) m`.
//! - Scratch: `m/2` on unidirectional ranks.
//!
//! It is the [butterfly](super::butterfly) reduction with the halving reversed at all members, not
//! only towards a root. Ranks beyond a power of two are folded in the same way and receive the
//! result at the end.
//!
//! Example, `p = 4`, `m = 4`. Elements kept after round 0: 01, 23, 01, 23; after round 1: 0, 2,
//! 1, 3. Then 0↔2 and 1↔3 (one element), 0↔1 and 2↔3 (two).

use crate::plan::prelude::*;

pub(in crate::plan) const ALLREDUCE: Row = Row {
    transfers: row::logarithmic_twice,
    source: "Rabenseifner 2004",
    rounds: "2 floor(log2 p), if p is not a power of two 2 more (bi); about twice that (uni)",
    volume: "2(p-1) m",
    ..row::new("rabenseifner", Kind::Allreduce, plan).with_formula(time)
};

pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    let (mut b, vector) = over_vector(request, Collective::Allreduce, 0);
    let cube = Cube::reduce_scatter(&mut b, request, 0, vector.len);
    cube.allgather(&mut b, request);
    unfold(&mut b, request.ranks, vector);
    b.build()
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    let (m, d) = (request.elements(), request.ranks.ilog2());
    if m % (1 << d) != 0 {
        return None;
    }
    let rounds = (1..=d).map(|k| {
        let half = m >> k;
        2.0 * time_of_round(request, half) + time_of_combining(request, half)
    });
    Some(time_of_fold(request, 2.0) + rounds.sum::<f64>())
}
