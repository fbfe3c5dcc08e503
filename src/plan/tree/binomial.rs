//! Binomial tree reduction: the number of ranks that still hold a vector halves in every round.
//!
//! - Symbols: `p` ranks, `m` elements, `L = ceil(log2 p)`.
//! - Time: `L (alpha + beta m + gamma m)`.
//! - Restrictions: none. Not segmented, because a segment could start no earlier.
//!
//! At the start of round `k` each rank `r` that is a multiple of `2^k` holds the combined
//! contributions of ranks `r .. r + 2^k`. Every second one of them (a multiple of `2^(k+1)`)
//! receives and combines those of the next `2^k` ranks.
//!
//! The broadcast is this reduction backwards: rank `r > 0` receives from `r` less its lowest bit,
//! in the round of that bit counted from the last, and then sends to `r` plus each lower one.
//!
//! Example, `p = 6`. Round 0: 1→0, 3→2, 5→4. Round 1: 2→0. Round 2: 4→0.

use crate::plan::prelude::*;

pub(in crate::plan) const REDUCE: Row = Row {
    source: "folklore; Lowery & Langou, section IV",
    rounds: "ceil(log2 p)",
    published: Some(|x| {
        let table = if x.relays { TABLE_III } else { TABLE_I };
        Some(Published {
            terms: x.terms(x.l, x.l * x.m),
            ..x.whole(table, x.l)
        })
    }),
    ..row::planned_by("binomial", Kind::Reduce, Planner::Reduction(reduction)).with_formula(time)
};

pub(in crate::plan) const ALLREDUCE: Row = row::allreduce(REDUCE, "2 ceil(log2 p)");

pub(in crate::plan) fn reduction(request: &Request) -> Reduction {
    let vector = Segments::whole(request.elements());
    Reduction::new(&request.clone().segments(vector), rounds(request.ranks))
}

fn rounds(p: usize) -> impl Iterator<Item = Vec<Transfer>> {
    (0..p.next_power_of_two().trailing_zeros()).map(move |k| {
        let half = 1 << k;
        let receivers = (0..p.saturating_sub(half)).step_by(2 * half);
        receivers
            .map(|to| Transfer::new(0, to + half, to))
            .collect()
    })
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    let m = request.elements();
    let rounds = f64::from(request.ranks.next_power_of_two().trailing_zeros());
    Some(rounds * (request.transfer_time(m) + request.combine_time(m)))
}
