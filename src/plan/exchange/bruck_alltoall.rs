//! Bruck's alltoall: logarithmic for any number of ranks, at the price of forwarding.
//!
//! Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all communications in multiport message-passing systems" (1997). Ports: both.
//! Symbols: `p` ranks, blocks of `b` elements, `q = ceil(log2 p)`, `c_k` the numbers below `p` in which bit `k` is set (`p/2` of them if `p` is a power of two).
//! Rounds: `q` (bidirectional). Volume: `p b` times the sum of all `c_k`, about `q/2 p^2 b`. Time for equal blocks: the sum over all `k` of `alpha + beta c_k b`,
//! twice that on unidirectional ranks where `p` is a power of two.
//! Restrictions: none. Scratch: about twice a rank's input. A message has as many spans as blocks.
//!
//! A block that has to go `i` ranks further goes `2^k` further in round `k` if bit `k` of `i` is set. What rank `r` sends to `r + 2^k` is thus one block for each such
//! `i`; where it stands depends on how often it has been forwarded: in the input before the first time, in the output after the last, and in between in one of
//! two places that each `i` has (one being filled while the other is sent). A rank's block for itself stays where it is.
//!
//! `p = 3`: 0→1 the block for 1, 1→2 that for 2, 2→0 that for 0; then 0→2 the block for 2, 1→0 that for 0, 2→1 that for 1.

use super::pairwise::Buffers;
use super::rounds::{Arrival, Message, doublings, equal_size, round, time_of_round};
use crate::collective::Collective;
use crate::error::Result;
use crate::plan::Request;
use crate::schedule::{Schedule, Span, Spans};

/// Plans the alltoall.
///
/// # Errors
/// When the request's parts do not fit together, or the buffers would be too large.
pub fn plan(request: &Request) -> Result<Schedule> {
    request.validate()?;
    let p = request.ranks;
    let buffers = Buffers::new(request)?;
    let ways: Vec<Way> = (0..p).map(|r| Way::new(r, &buffers)).collect();
    let mut b = Schedule::builder(p, request.ports, Collective::Alltoall);
    for (r, way) in ways.iter().enumerate() {
        let output = (0..p).map(|from| buffers.output(r, from));
        b.layout(r, way.end, buffers.input.iter().copied(), output);
    }
    for k in 0..doublings(p) {
        let message = |r: usize| {
            let to = (r + (1 << k)) % p;
            let (mut sent, mut stored) = (Spans::new(), Spans::new());
            for i in (1..p).filter(|i| i >> k & 1 == 1) {
                let span = ways[r].span(&buffers, i, k);
                if span.len > 0 {
                    sent.push(span);
                    stored.push(ways[to].span(&buffers, i, k + 1));
                }
            }
            Message {
                from: r,
                to,
                sent,
                stored,
            }
        };
        let messages: Vec<_> = (0..p).map(message).collect();
        round(&mut b, request, &messages, Arrival::Stored);
    }
    b.build()
}

/// The executed time for equal blocks and, on unidirectional ranks, a power of two of them.
pub fn time(request: &Request) -> Option<f64> {
    let b = equal_size(request, &request.concatenated())?;
    let p = request.ranks;
    if !request.ports.is_bidirectional() && !p.is_power_of_two() {
        return None;
    }
    let rounds = (0..doublings(p)).map(|k| time_of_round(request, forwarded(p, k) * b));
    Some(rounds.sum())
}

/// Numbers below `p` in which bit `k` is set.
fn forwarded(p: usize, k: u32) -> usize {
    let (bit, period) = (1usize << k, 2usize << k);
    p / period * bit + (p % period).saturating_sub(bit)
}

/// Where blocks stand at one rank on their way.
struct Way {
    rank: usize,
    /// By distance: the two places.
    places: Vec<[usize; 2]>,
    /// One past the last element of the rank's buffer.
    end: usize,
}

impl Way {
    fn new(rank: usize, buffers: &Buffers) -> Way {
        let mut way = Way {
            rank,
            places: Vec::with_capacity(buffers.input.len()),
            end: buffers.end(rank),
        };
        for i in 0..buffers.input.len() {
            // The largest block that stands in each place, over all times that it is filled.
            let mut largest = [0, 0];
            let bits = (0..usize::BITS).filter(|k| i >> k & 1 == 1);
            let last = i.checked_ilog2().unwrap_or(0);
            for (times, k) in bits.filter(|&k| k != last).enumerate() {
                let len = way.block(buffers, i, k + 1);
                largest[times % 2] = largest[times % 2].max(len);
            }
            way.places.push([way.end, way.end + largest[0]]);
            way.end += largest[0] + largest[1];
        }
        way
    }

    /// How far the block of distance `i` has come after `rounds` rounds.
    fn gone(i: usize, rounds: u32) -> usize {
        i & ((1 << rounds) - 1)
    }

    /// Elements of the block of distance `i` that is here after `rounds` rounds.
    fn block(&self, buffers: &Buffers, i: usize, rounds: u32) -> usize {
        let destination = (self.rank + i - Self::gone(i, rounds)) % buffers.input.len();
        buffers.input[destination].len
    }

    /// Where the block of distance `i` stands after `rounds` rounds.
    fn span(&self, buffers: &Buffers, i: usize, rounds: u32) -> Span {
        let p = buffers.input.len();
        let gone = Self::gone(i, rounds);
        if gone == 0 {
            return buffers.input[(self.rank + i) % p];
        }
        if gone == i {
            return buffers.output(self.rank, (self.rank + p - i) % p);
        }
        let times = gone.count_ones() as usize;
        let place = self.places[i][(times - 1) % 2];
        Span::new(place, self.block(buffers, i, rounds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_counted() {
        for p in 1..70usize {
            for k in 0..7 {
                let count = (0..p).filter(|i| i >> k & 1 == 1).count();
                assert_eq!(forwarded(p, k), count, "p={p} k={k}");
            }
        }
    }
}
