//! Allreduce with one late rank: the others reduce while it is away.
//!
//! - Source: "StragglAR" (arXiv 2505.23523, 2025); the pairs by powers in a field are oneport's.
//! - Symbols: `p = 2^d` ranks, `m` elements, shares of `b = m/(p-1)`.
//! - Time after the last arrival, if that is late enough and `p-1` divides `m`, for `gamma = 0`:
//!   `(p+d-2)(alpha + beta b)`. With such shares none takes fewer rounds: the late rank has to
//!   receive `p-1`, and the last one then needs `d-1` more to reach all.
//! - Scratch: one share.
//!
//! The last rank to arrive (of several, and where all arrive together, the one of the highest
//! number) becomes number 0. While it is away the others reduce-scatter in a ring. Then number 0
//! exchanges one share a round with its owner, and both add what they receive. The share is then
//! whole at both.
//!
//! Numbers are vectors of `d` bits, elements of the field of `p` elements. In round `t` each
//! number exchanges messages with the one that differs by the power `x^t` of a primitive element,
//! which is also the owner that number 0 meets: all owners in `p-1` rounds. Any `d` consecutive
//! powers are linearly independent. So the share that became whole in round `s` is, before round
//! `t`, at `x^s` plus the span of `x^(s+1) .. x^(t-1)`: it doubles every round, up to half of all
//! numbers, from where round `s+d` carries it to the other half. Each number thus spreads the
//! share of the oldest of the last `d` powers of which it is a sum, and takes up that of its
//! partner if that is younger. When number 0 has met all, it spreads the last share, too, which
//! thus starts anew in every round; so `d-1` rounds are enough for it.
//!
//! Example, `p = 4`, number 0 late, shares of the owners 1, 2, 3: 3↔0; then 1↔0 and 3→2 share 3;
//! then 2↔0 and 3→1 share 3, 1→3 share 1; then 0→3 share 2, 1→2 share 1, 2→1 share 2.

use std::iter::successors;

use super::ring;
use crate::plan::prelude::*;

pub(in crate::plan) const ALLREDUCE: Row = Row {
    ports: PortModels::Bi,
    commutative_only: true,
    made_for: MadeFor::LateRanks,
    for_arrivals: true,
    transfers: row::for_each_pair_twice,
    source: "StragglAR (arXiv 2505.23523)",
    rounds: "p-2, then p+log2 p-2 with the late rank; p no power of two: those of the ring",
    volume: "2(p-1) m",
    same_as: |request| {
        let covered = request.ranks > 1 && request.ranks.is_power_of_two();
        (!covered).then_some(&ring::ALLREDUCE)
    },
    ..row::new("straggler", Kind::Allreduce, plan)
};

fn plan(request: &Request) -> Result<Schedule> {
    let p = request.ranks;
    let (owners, d) = (p - 1, p.ilog2() as usize);
    let shares = consecutive(&evenly(request.elements(), owners));
    let (mut b, vector) = over_vector(request, Collective::Allreduce, shares[0].len);
    let arrival = |&rank: &usize| request.cost.arrival(rank);
    let late = (0..p).max_by(|a, b| arrival(a).total_cmp(&arrival(b)));
    let rank = |number: usize| number ^ late.unwrap_or(0);
    let message = |from, to, share: Span| Message::new(rank(from), rank(to), share);

    for k in 1..owners {
        let sent = |i: usize| {
            message(
                1 + i,
                1 + (i + 1) % owners,
                shares[(i + owners - k) % owners],
            )
        };
        let messages: Vec<_> = (0..owners).map(sent).collect();
        round(&mut b, request, &messages, Arrival::Combined);
    }

    // The first `d` powers are those before the first round: of shares that do not exist.
    let powers = powers(p);
    let power = |t: usize| powers[t % owners];
    let last = d + owners - 1;
    let share = |t: usize| match t {
        t if t < d => Span::new(0, 0),
        t => shares[power(t.min(last)) - 1],
    };
    // By number: the round whose share it spreads.
    let mut spreads: Vec<usize> = (0..p)
        .map(|number| number.trailing_zeros() as usize)
        .collect();
    for t in d..last + d {
        let met = power(t);
        let others = (1..p).filter(|&number| number != met);
        let spread = others.map(|number| message(number, number ^ met, share(spreads[number])));
        let mut stored: Vec<_> = spread.collect();
        if t > last {
            stored.push(message(0, met, share(last)));
        } else {
            let exchange = [(0, met), (met, 0)].map(|(from, to)| message(from, to, share(t)));
            round(
                &mut b,
                request,
                &exchange,
                Arrival::CombinedAfter(vector.len),
            );
        }
        round(&mut b, request, &stored, Arrival::Stored);
        spreads[0] = t;
        spreads = (0..p)
            .map(|number| spreads[number].max(spreads[number ^ met]))
            .collect();
    }
    b.build()
}

/// The powers `x^0 .. x^(p-2)` of a primitive element of the field of `p = 2^d` elements, as
/// vectors of bits: the element 2, by the first polynomial for which it is primitive.
fn powers(p: usize) -> Vec<usize> {
    let doubled = |element: usize, feedback| match 2 * element {
        carried if carried >= p => (carried - p) ^ feedback,
        element => element,
    };
    let orbit = |feedback| {
        let next = |&element: &usize| Some(doubled(element, feedback)).filter(|&e| e != 1);
        successors(Some(1), next).take(p).collect()
    };
    let mut orbits = (1..p).step_by(2).map(orbit);
    let all = orbits.find(|orbit: &Vec<usize>| orbit.len() == p - 1);
    all.expect("every field has a primitive element")
}
