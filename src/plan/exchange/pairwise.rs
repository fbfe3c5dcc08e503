//! Pairwise alltoall: every block goes straight from its source to its destination.
//!
//! Source: folklore; on one port a 1-factorisation of the complete graph (Lucas 1883). Ports: both.
//! Symbols: `p` ranks, blocks of `b` elements. Rounds: bidirectional `p-1`, unidirectional `2(p-1)` for even `p` and `2p` for odd.
//! Volume: `p (p-1) b`. Time for equal blocks: that many times `alpha + beta b`. Restrictions: none. Scratch: none; a rank's block for itself stays where it is.
//!
//! Bidirectional: in round `k` rank `r` sends to `r + k` and receives from `r - k`, modulo `p`. Unidirectional: in round `k` ranks with `r + s = k` modulo `n`
//! exchange, where `n` is `p` or, if that is even, `p - 1` (the last rank then joins the one that would meet itself).
//!
//! `p = 3`: 0→1, 1→2, 2→0; 0→2, 1→0, 2→1. `p = 4`, unidirectional: 0↔3, 1↔2; 0↔1, 2↔3; 0↔2, 1↔3.

use super::rounds::{Arrival, Message, equal_size, round};
use crate::collective::Collective;
use crate::error::{Error, Result};
use crate::plan::Request;
use crate::schedule::{Schedule, Span};

/// Plans the alltoall.
///
/// # Errors
/// When the request's parts do not fit together, or the buffers would be too large.
pub fn plan(request: &Request) -> Result<Schedule> {
    request.validate()?;
    let p = request.ranks;
    let buffers = Buffers::new(request)?;
    let mut b = Schedule::builder(p, request.ports, Collective::Alltoall);
    for r in 0..p {
        let output = (0..p).map(|from| buffers.output(r, from));
        b.layout(r, buffers.end(r), buffers.input.iter().copied(), output);
    }
    for pairs in partners(request) {
        let messages: Vec<_> = pairs
            .into_iter()
            .map(|(from, to)| Message {
                from,
                to,
                sent: buffers.input[to].into(),
                stored: buffers.output(to, from).into(),
            })
            .collect();
        round(&mut b, request, &messages, Arrival::Stored);
    }
    b.build()
}

/// The executed time for equal blocks.
pub fn time(request: &Request) -> Option<f64> {
    let b = equal_size(request, &request.concatenated())?;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    let rounds = partners(request).len() as f64;
    let messages = if request.ports.is_bidirectional() {
        rounds
    } else {
        2.0 * rounds
    };
    Some(messages * request.t_comm(b))
}

/// By round: who sends to whom.
fn partners(request: &Request) -> impl ExactSizeIterator<Item = Vec<(usize, usize)>> {
    let p = request.ranks;
    let both = request.ports.is_bidirectional();
    let even = p.is_multiple_of(2);
    // Sums are modulo this, on one port an odd number.
    let n = if even && !both { p - 1 } else { p };
    let rounds = match p {
        1 => 0,
        _ if both => p - 1,
        _ => n,
    };
    (0..rounds).map(move |k| {
        let partner = |r: usize| {
            if both {
                return (r + k + 1) % p;
            }
            // The one rank that would meet itself meets the last one, which has no part in the sums, or nobody.
            let alone = if k % 2 == 0 { k / 2 } else { (k + n) / 2 };
            match r {
                _ if even && r == n => alone,
                _ if even && r == alone => n,
                _ => (k + n - r) % n,
            }
        };
        let pairs = (0..p).map(|r| (r, partner(r)));
        pairs.filter(|(r, s)| r != s).collect()
    })
}

/// Where blocks stand: every rank's input first, then what comes from others.
pub(super) struct Buffers {
    /// By destination, the same for all ranks.
    pub(super) input: Vec<Span>,
    pub(super) elements: usize,
}

impl Buffers {
    pub(super) fn new(request: &Request) -> Result<Buffers> {
        let input = request.concatenated();
        let elements = input.last().map_or(0, |b| b.end());
        let buffers = Buffers { input, elements };
        let largest = buffers.input.iter().map(|b| b.len).max().unwrap_or(0);
        // What comes in, and as much again on its way where blocks are forwarded, or three times that.
        let most = largest
            .checked_mul(request.ranks)
            .and_then(|n| n.checked_mul(4))
            .and_then(|n| n.checked_add(elements));
        if most.is_none() {
            return Err(Error::usage(format!(
                "{} ranks with blocks of {largest} elements need buffers that are too large",
                request.ranks
            )));
        }
        Ok(buffers)
    }

    /// Where the block from rank `from` belongs at rank `rank`: what is its own stays in the input.
    pub(super) fn output(&self, rank: usize, from: usize) -> Span {
        let block = self.input[rank];
        if from == rank {
            return block;
        }
        let before = from - usize::from(from > rank);
        Span::new(self.elements + before * block.len, block.len)
    }

    /// One past the last element of a rank's output.
    pub(super) fn end(&self, rank: usize) -> usize {
        self.elements + (self.input.len() - 1) * self.input[rank].len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ports;

    #[test]
    fn every_pair_meets_once_and_nobody_twice_a_round() {
        for p in 1..=20 {
            for ports in [Ports::UNI, Ports::BI] {
                let mut request = Request::new(p, 1);
                request.ports = ports;
                let mut met = std::collections::HashSet::new();
                for pairs in partners(&request) {
                    let mut busy = vec![0; p];
                    for (from, to) in pairs {
                        assert!(met.insert((from, to)), "p={p}: {from} to {to} again");
                        busy[from] += 1;
                        busy[to] += 1;
                    }
                    assert!(busy.iter().all(|&n| n == 0 || n == 2), "p={p}");
                }
                assert_eq!(met.len(), p * (p - 1));
            }
        }
    }
}
