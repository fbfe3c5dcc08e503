//! Recursive halving reduce-scatter: in every round partners exchange halves of what is still to be combined.
//!
//! Source: folklore. Ports: both. Symbols: `p` ranks, `m` elements, `b = m/p` where blocks are equal, `n = 2^d` the largest power of two up to `p`.
//! Rounds: `d` (bidirectional), and two more for `p != n`. Volume: `(n-1) m`, for `p != n` `(p-n)(m + b)` more.
//! Time for equal blocks and `p = n`: `d alpha + (p-1)(beta + gamma) b` bidirectional, `2d alpha + (p-1)(2 beta + gamma) b` unidirectional; for `p != n` see [`time`].
//! Restrictions: none. Scratch: on unidirectional ranks half of the vector. A message has up to `p/2` spans.
//!
//! Keeps operand order: in round `k` partners are `2^k` apart, as in the [butterfly](super::butterfly); but a member keeps the blocks of those whose
//! numbers have the same bits as its own up to the `k`-th, so that it ends with its own block. For `p != n` the first `p - n` even ranks combine
//! their right neighbours' vectors before, and send them their blocks after.
//!
//! `p = 4`, blocks kept after round 0: 02, 13, 02, 13; after round 1: 0, 1, 2, 3.

use super::cube::{fold, folded, members_of};
use super::rounds::{Arrival, Message, equal_size, round, time_of_combining};
use crate::collective::Collective;
use crate::error::Result;
use crate::plan::Request;
use crate::schedule::{Schedule, Span, Spans, total_len};

/// Plans the reduce-scatter.
///
/// # Errors
/// When the request's parts do not fit together.
pub fn plan(request: &Request) -> Result<Schedule> {
    request.validate()?;
    let p = request.ranks;
    let blocks = request.scattered();
    let vector = Span::from(0..blocks.last().map_or(0, |b| b.end()));
    let members = members_of(p, 0);
    let kept = Kept::new(&members, &blocks, vector.len);
    let scratch = if request.ports.is_bidirectional() || p < 2 {
        0
    } else {
        let halves = (0..2).map(|class| total_len(&kept.spans(class, 1)));
        halves.max().unwrap_or(0)
    };
    let mut b = Schedule::builder(p, request.ports, Collective::ReduceScatter);
    for (r, &block) in blocks.iter().enumerate() {
        b.layout(r, vector.len, [vector], [block]);
    }
    for &r in &members {
        b.layout(r, vector.len + scratch, [vector], [blocks[r]]);
    }
    fold(&mut b, p, 0, vector);
    let arrival = if request.ports.is_bidirectional() {
        Arrival::Combined
    } else {
        Arrival::CombinedAfter(vector.len)
    };
    for k in 0..members.len().ilog2() {
        let messages: Vec<_> = (0..members.len())
            .map(|j| {
                let partner = j ^ (1 << k);
                Message::new(members[j], members[partner], kept.spans(partner, k + 1))
            })
            .collect();
        round(&mut b, request, &messages, arrival);
    }
    let out: Vec<_> = (0..folded(p))
        .map(|i| Message::new(2 * i, 2 * i + 1, blocks[2 * i + 1]))
        .collect();
    round(&mut b, request, &out, Arrival::Stored);
    b.build()
}

/// What members keep.
struct Kept {
    /// By member: its blocks, and where those of the next member start.
    members: Vec<Span>,
}

impl Kept {
    fn new(members: &[usize], blocks: &[Span], elements: usize) -> Kept {
        let start = |j: usize| members.get(j).map_or(elements, |&r| blocks[r].offset);
        Kept {
            members: (0..members.len())
                .map(|j| Span::from(start(j)..start(j + 1)))
                .collect(),
        }
    }

    /// The blocks of all members whose numbers have the same last `bits` bits as `j`, none that is empty, neighbours joined.
    fn spans(&self, j: usize, bits: u32) -> Spans {
        let class = j & ((1 << bits) - 1);
        let mut spans = Spans::new();
        for &span in self.members.iter().skip(class).step_by(1 << bits) {
            match spans.last_mut() {
                _ if span.len == 0 => {}
                Some(last) if last.end() == span.offset => last.len += span.len,
                _ => spans.push(span),
            }
        }
        spans
    }
}

/// The executed time for equal blocks of size `b`; for `p != n` only where costs are linear.
///
/// The first member keeps the most blocks in every round, `n/2^(k+1) + ceil((p-n)/2^(k+1))` of them, and waits for nobody else.
pub fn time(request: &Request) -> Option<f64> {
    let b = equal_size(request, &request.scattered())?;
    let p = request.ranks;
    let (n, pairs) = (1usize << p.ilog2(), folded(p));
    if pairs > 0 && !request.cost.is_linear() {
        return None;
    }
    let before_and_after = if pairs > 0 {
        request.t_comm(p * b) + request.t_comp(p * b) + request.t_comm(b)
    } else {
        0.0
    };
    let rounds = (0..p.ilog2()).map(|k| {
        let apart = 2usize << k;
        let kept = |class: usize| {
            let folded = pairs.saturating_sub(class).div_ceil(apart);
            (n / apart + folded) * b
        };
        let both = request.t_comm(kept(0)) + time_of_combining(request, kept(0));
        if request.ports.is_bidirectional() {
            both
        } else {
            both + request.t_comm(kept(apart / 2))
        }
    });
    Some(before_and_after + rounds.sum::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_ends_with_its_own_blocks() {
        for p in 1..=20 {
            let members = members_of(p, 0);
            let blocks: Vec<_> = (0..p).map(|r| Span::new(2 * r, 2)).collect();
            let kept = Kept::new(&members, &blocks, 2 * p);
            for (j, &r) in members.iter().enumerate() {
                let last = kept.spans(j, members.len().ilog2());
                let len = if j < folded(p) { 4 } else { 2 };
                assert_eq!(last.to_vec(), [Span::new(2 * r, len)], "p={p} rank {r}");
            }
            assert_eq!(kept.spans(0, 0).to_vec(), [Span::new(0, 2 * p)]);
        }
    }
}
