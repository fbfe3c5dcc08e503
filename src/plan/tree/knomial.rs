//! k-nomial tree reduction and broadcast: the binomial tree for ranks with several ports. A radix
//! of its own on one port would be a [`Reduction`] as in `binomial.rs`, with several transfers to
//! one rank in a round.
//!
//! - Source: folklore; "knomial" of MPICH and Open MPI, with a radix of one more than the number of
//!   ports.
//! - Symbols: `p` ranks, `m` elements, `L = ceil(log_(k+1) p)`,
//!   `c_i = min(k, floor((p-1)/(k+1)^i))`.
//! - Rounds: `L`, optimal.
//! - Time of the broadcast: `L (alpha + beta m)`. The reduction takes `c_i gamma m` more for each
//!   round `i < L`: a rank combines what its ports receive one after another.
//! - Restrictions: none. Not segmented, because a segment could start no earlier.
//! - Scratch: none for one port, otherwise `k m` for the reduction.
//!
//! At the start of round `i` each rank `r` that is a multiple of `w = (k+1)^i` holds the combined
//! contributions of ranks `r .. r + w`. Those that are multiples of `(k+1) w` receive from the next
//! `k` of them, each through its own port. The broadcast runs the rounds backwards.
//!
//! Example, `p = 6`, `k = 2`. Round 0: 1→0, 2→0, 4→3, 5→3. Round 1: 3→0.

use crate::plan::prelude::*;

pub(in crate::plan) const REDUCE: Row = Row {
    ports: PortModels::Each,
    k_ported: true,
    source: "folklore; MPICH, Open MPI (knomial), radix k+1",
    rounds: "ceil(log_{k+1} p) on k ports",
    ..row::new("knomial", Kind::Reduce, plan).with_formula(time)
};

pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    let Request { ranks, root, .. } = *request;
    let (mut b, vector) = over_vector(request, Collective::Reduce { root }, 0);
    // Where order counts, rank 0 forwards the result.
    let first = if request.keep_order { 0 } else { root };
    let all: Vec<_> = rounds(ranks, request.ports.k(), first, vector).collect();
    let scratch_of = |round: &Vec<Message>| needs_scratch(request, round);
    // The first rank receives through the most ports.
    let scratched = all.iter().filter(|round| scratch_of(round));
    let received = scratched.map(|round| round.iter().filter(|m| m.to == first).count());
    let areas = received.max().unwrap_or(0) + 1;
    let len = elements_of(areas, vector.len)?;
    for message in all.iter().flatten() {
        b.set_len(message.to, len);
    }
    for messages in &all {
        rounds::combining_round(&mut b, request, messages, vector.len);
    }
    if first != root {
        b.transfer(first, root, vector);
    }
    b.build()
}

/// The rounds if number `v` is rank `v + first`, modulo `p`.
fn rounds(p: usize, k: usize, first: usize, vector: Span) -> impl Iterator<Item = Vec<Message>> {
    powers(p, k).map(move |weight| {
        let period = weight.saturating_mul(k.saturating_add(1));
        let rank = |v: usize| (v + first) % p;
        let messages = (0..p).step_by(period).flat_map(|to| {
            let sources = (to + weight..p).step_by(weight).take(k).enumerate();
            sources
                .map(move |(port, from)| Message::new(rank(from), rank(to), vector).on_port(port))
        });
        messages.collect()
    })
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    let (p, k, m) = (request.ranks, request.ports.k(), request.elements());
    let combined = |weight: usize| match k.min((p - 1) / weight) {
        1 => request.combine_time(m),
        several => several as f64 * request.local_combine_time(m),
    };
    let rounds = powers(p, k).map(|weight| request.transfer_time(m) + combined(weight));
    Some(rounds.sum())
}
