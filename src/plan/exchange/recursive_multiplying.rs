//! Recursive multiplying allreduce: recursive doubling for ranks with several ports. In every round
//! groups of ranks exchange their partial results, all at once.
//!
//! - Source: folklore; "recursive multiplying" of MPICH, with a radix of one more than the number
//!   of ports.
//! - Symbols: `p` ranks, `m` elements, radix `h = min(k+1, p)`, `n = h^d` the largest power of `h`
//!   up to `p`, `f = ceil(p/n) - 1`, `tc = alpha + beta m`, `tp = gamma m`.
//! - Time, bidirectional: `d (tc + (h-1) tp)`, for `p != n` `2 tc + f tp` more. Unidirectional, for
//!   powers of two `h`: `2 d tc` instead of `d tc`.
//! - Scratch: `(h-1) m`.
//!
//! Before round `i` each of `w = h^i` neighbours holds the combination of all of them. In the round
//! the members whose numbers differ only in the digit of weight `w` exchange their vectors: to the
//! one whose digit is larger by `j`, modulo `h`, through port `j - 1`. For `p != n` consecutive
//! ranks are first folded into `n` members, at most `k` into each through as many ports. They
//! receive the result at the end.
//!
//! Example, `p = 3`, `k = 2`: 0→1, 1→2, 2→0 through one port, 0→2, 1→0, 2→1 through the other.

use crate::plan::prelude::*;

pub(in crate::plan) const ALLREDUCE: Row = Row {
    ranks_agree: |p, k| p <= 2 || k == 1,
    k_ported: true,
    source: "folklore; MPICH (recursive multiplying), radix k+1",
    rounds: "floor(log_{k+1} p) on k ports, if p is not a power of k+1 2 more (bi)",
    volume: "k n floor(log_{k+1} p) m + 2(p-n) m, n = (k+1)^floor(log_{k+1} p)",
    ..row::new("recursive-multiplying", Kind::Allreduce, plan).with_formula(time)
};

/// The members into which all ranks are folded.
struct Members {
    radix: usize,
    dimensions: u32,
    /// By member: the first of the ranks folded into it, which stays, and their number.
    groups: Vec<Span>,
}

impl Members {
    fn new(p: usize, k: usize) -> Members {
        let radix = k.saturating_add(1).min(p.max(2));
        let dimensions = p.checked_ilog(radix).unwrap_or(0);
        Members {
            radix,
            dimensions,
            groups: consecutive(&evenly(p, radix.pow(dimensions))),
        }
    }

    /// Number of ranks that leave the largest group.
    fn folded(&self) -> usize {
        self.groups[0].len - 1
    }

    /// From the ranks that leave to those that stay.
    fn fold(&self, vector: Span) -> Vec<Message> {
        let leave = |g: &Span| {
            let stays = g.offset;
            let leaves = (stays + 1..g.end()).enumerate();
            leaves.map(move |(port, r)| Message::new(r, stays, vector).on_port(port))
        };
        self.groups.iter().flat_map(leave).collect()
    }

    /// The messages of a round, such that operands are combined in rank order: those from lower
    /// ranks from the nearest on, then those from higher ones.
    fn exchange(&self, round: u32, vector: Span) -> Vec<Message> {
        let (radix, weight) = (self.radix, self.radix.pow(round));
        let received = |to: usize| {
            let digit = to / weight % radix;
            let sources = (0..digit).rev().chain(digit + 1..radix);
            sources.map(move |other| {
                let from = to - digit * weight + other * weight;
                let [from, to] = [from, to].map(|j| self.groups[j].offset);
                let port = (digit + radix - other) % radix - 1;
                Message::new(from, to, vector).on_port(port)
            })
        };
        (0..self.groups.len()).flat_map(received).collect()
    }
}

pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    let (p, m) = (request.ranks, request.elements());
    let members = Members::new(p, request.ports.k());
    let received = match members.dimensions {
        0 => 0,
        _ => members.radix - 1,
    };
    let areas = received.max(members.folded()) + 1;
    let len = elements_of(areas, m)?;
    let (mut b, vector) = over_vector(request, Collective::Allreduce, 0);
    for group in &members.groups {
        b.set_len(group.offset, len);
    }
    let fold = members.fold(vector);
    let arrival = match members.folded() {
        0 | 1 => Arrival::Combined,
        _ => Arrival::CombinedAfter(m),
    };
    round(&mut b, request, &fold, arrival);
    for k in 0..members.dimensions {
        let messages = members.exchange(k, vector);
        round(&mut b, request, &messages, Arrival::CombinedAfter(m));
    }
    let unfold: Vec<_> = fold.into_iter().map(Message::backwards).collect();
    round(&mut b, request, &unfold, Arrival::Stored);
    b.build()
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    let (p, m) = (request.ranks, request.elements());
    let members = Members::new(p, request.ports.k());
    let in_step = request.ports.can_relay() || members.radix.is_power_of_two();
    if !in_step {
        return None;
    }
    let fold = match members.folded() {
        0 => 0.0,
        1 => 2.0 * request.transfer_time(m) + request.combine_time(m),
        several => 2.0 * request.transfer_time(m) + several as f64 * request.local_combine_time(m),
    };
    let combined = (members.radix - 1) as f64 * request.local_combine_time(m);
    let rounds = f64::from(members.dimensions);
    Some(fold + rounds * (time_of_round(request, m) + combined))
}
