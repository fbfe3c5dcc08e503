//! Bruck's alltoall: logarithmic for any number of ranks, at the price of forwarding blocks.
//!
//! - Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all
//!   communications in multiport message-passing systems" (1997).
//! - Ports: uni- or bidirectional.
//! - Symbols: `p` ranks, blocks of `b` elements, `q = ceil(log2 p)`, `c_k` the count of numbers
//!   below `p` in which bit `k` is set (`p/2` if `p` is a power of two).
//! - Rounds: `q` (bidirectional).
//! - Time for equal blocks: the sum over all `k` of `alpha + beta c_k b`, twice that on
//!   unidirectional ranks if `p` is a power of two.
//! - Volume: `p b` times the sum of all `c_k`, about `q/2 p^2 b`.
//! - Restrictions: none.
//! - Scratch: about twice a rank's input.
//! - Spans: a message has one for each block.
//!
//! A block that has to travel the distance `i` travels `2^k` in round `k` if bit `k` of `i` is set.
//! Rank `r` thus sends to `r + 2^k` one block for each such `i`. Its position depends on how often
//! it has been forwarded: in the input before the first time, in the output after the last time,
//! and in between in one of two scratch places for each `i` (one is filled while the other is
//! sent). A rank's block for itself stays in place.
//!
//! Example, `p = 3`: 0→1 the block for 1, 1→2 that for 2, 2→0 that for 0; then 0→2 the block for 2,
//! 1→0 that for 0, 2→1 that for 1.

use super::bruck;
use super::pairwise::Buffers;
use crate::error::Result;
use crate::machine::Ports;
use crate::plan::Request;
use crate::plan::build::rounds::{
    Arrival, Exchange, Rounds, doublings, equal_size, receive_first_flags, time_of_round,
};
use crate::plan::build::stream::{DynScheduleSource, StepAt, Stream};
use crate::plan::registry::row;
use crate::plan::registry::{Algorithm, ClosedForm, Planner};
use crate::schedule::collective::Collective;
use crate::schedule::collective::Kind;
use crate::schedule::{Layout, Span, Spans, Step};

pub(in crate::plan) const ALLTOALL: Algorithm = Algorithm {
    collective: Kind::Alltoall,
    // Each message has many spans: what they take to hold counts.
    transfers: row::for_each_pair,
    volume: "about p ceil(log2 p)/2 m",
    // Each rank remembers when each block was last used.
    tables: |p| (p as u64).saturating_mul(p as u64).saturating_mul(80),
    planner: Planner::Streamed(programs),
    closed_form: ClosedForm::Of(time),
    ..bruck::ALLGATHER
};

/// Plans the alltoall; steps are generated on demand.
///
/// # Errors
/// Those of every planner, and when the number of elements of a buffer overflows.
pub(super) fn programs(request: &Request) -> Result<Box<dyn DynScheduleSource>> {
    Ok(Box::new(Stream(Bruck::new(request)?)))
}

/// Time of the schedule for equal blocks and, on unidirectional ranks, a power of two of ranks;
/// `None` otherwise.
pub(crate) fn time(request: &Request) -> Option<f64> {
    let b = equal_size(request, &request.block_spans())?;
    let p = request.ranks;
    if !request.ports.is_bidirectional() && !p.is_power_of_two() {
        return None;
    }
    let rounds = (0..doublings(p)).map(|k| time_of_round(request, forwarded(p, k) * b));
    Some(rounds.sum())
}

/// The count of numbers below `p` in which bit `k` is set.
fn forwarded(p: usize, k: u32) -> usize {
    let (bit, period) = (1usize << k, 2usize << k);
    p / period * bit + (p % period).saturating_sub(bit)
}

/// The steps of the alltoall.
#[derive(Debug)]
struct Bruck(Exchange<Positions>);

/// The positions of all blocks between the rounds.
#[derive(Debug)]
struct Positions {
    buffers: Buffers,
    /// By rank, or a single entry if all blocks have the same size.
    positions: Vec<RankPositions>,
    /// On unidirectional ports, by round and rank: whether the rank receives first.
    receives_first: Vec<Vec<bool>>,
}

/// The scratch positions of forwarded blocks at one rank.
#[derive(Debug)]
struct RankPositions {
    /// By distance: the offsets of the two places.
    places: Vec<[usize; 2]>,
    /// One past the last element of the rank's buffer.
    end: usize,
}

impl Bruck {
    fn new(request: &Request) -> Result<Bruck> {
        request.validate()?;
        Ok(Bruck(Exchange {
            rounds: Positions::new(request)?,
            backwards: false,
            arrival: Arrival::Stored,
            ports: request.ports,
        }))
    }
}

impl StepAt for Bruck {
    fn ranks(&self) -> usize {
        self.0.rounds.buffers.input.len()
    }

    fn ports(&self) -> Ports {
        self.0.ports
    }

    fn collective(&self) -> Collective {
        Collective::Alltoall
    }

    fn layout_of(&self, rank: usize) -> Layout {
        self.0.rounds.buffers.layout_of(rank, self.buffer_len(rank))
    }

    fn buffer_len(&self, rank: usize) -> usize {
        self.0.rounds.positions_of(rank).end
    }

    fn slots(&self, _rank: usize) -> usize {
        self.0.slots()
    }

    fn step_at(&self, rank: usize, slot: usize) -> Option<Step> {
        self.0.step_at(rank, slot)
    }
}

impl Positions {
    fn new(request: &Request) -> Result<Positions> {
        let p = request.ranks;
        let buffers = Buffers::new(request)?;
        let equal = buffers.input.iter().all(|b| b.len == buffers.input[0].len);
        let mut positions = Positions {
            positions: (0..if equal { 1 } else { p })
                .map(|rank| RankPositions::new(rank, &buffers))
                .collect(),
            buffers,
            receives_first: Vec::new(),
        };
        if !request.ports.is_bidirectional() {
            let rounds = (0..positions.count()).map(|k| {
                let sends = (0..p).filter(|&r| positions.forwarded(k, r).next().is_some());
                receive_first_flags(p, sends.map(|r| (r, (r + (1 << k)) % p)))
            });
            positions.receives_first = rounds.collect();
        }
        Ok(positions)
    }

    fn positions_of(&self, rank: usize) -> &RankPositions {
        &self.positions[rank.min(self.positions.len() - 1)]
    }

    /// The distances of the non-empty blocks that `rank` forwards in round `k`.
    fn forwarded(&self, k: usize, rank: usize) -> impl Iterator<Item = usize> {
        let p = self.buffers.input.len();
        let (bit, period) = (1usize << k, 2usize << k);
        let runs = (bit..p).step_by(period);
        let numbers = runs.flat_map(move |first| first..(first + bit).min(p));
        numbers.filter(move |&i| block_len(&self.buffers, rank, i, k) > 0)
    }

    /// The span of the block of distance `i` at `rank` after `rounds` rounds.
    fn span(&self, rank: usize, i: usize, rounds: usize) -> Span {
        let p = self.buffers.input.len();
        let travelled = travelled(i, rounds);
        if travelled == 0 {
            return self.buffers.input[wrapped(rank + i, p)];
        }
        if travelled == i {
            return self.buffers.output(rank, wrapped(rank + p - i, p));
        }
        let times = travelled.count_ones() as usize;
        let place = self.positions_of(rank).places[i][(times - 1) % 2];
        Span::new(place, block_len(&self.buffers, rank, i, rounds))
    }
}

impl Rounds for Positions {
    fn count(&self) -> usize {
        doublings(self.buffers.input.len()) as usize
    }

    fn sent(&self, k: usize, rank: usize) -> Option<(usize, Spans)> {
        let to = (rank + (1 << k)) % self.buffers.input.len();
        let spans = self.forwarded(k, rank).map(|i| self.span(rank, i, k));
        Some((to, spans.collect())).filter(|(_, spans): &(_, Spans)| !spans.is_empty())
    }

    fn received(&self, k: usize, rank: usize) -> Option<(usize, Spans)> {
        let p = self.buffers.input.len();
        let from = (rank + p - (1 << k)) % p;
        let spans = self.forwarded(k, from);
        let spans = spans.map(|i| self.span(rank, i, k + 1));
        Some((from, spans.collect())).filter(|(_, spans): &(_, Spans)| !spans.is_empty())
    }

    fn receives_first(&self, k: usize, rank: usize, _backwards: bool) -> bool {
        self.receives_first[k][rank]
    }
}

/// How far the block of distance `i` has travelled after `rounds` rounds.
fn travelled(i: usize, rounds: usize) -> usize {
    i & ((1 << rounds) - 1)
}

/// Number of elements of the block of distance `i` that is at `rank` after `rounds` rounds.
fn block_len(buffers: &Buffers, rank: usize, i: usize, rounds: usize) -> usize {
    let destination = rank + i - travelled(i, rounds);
    buffers.input[wrapped(destination, buffers.input.len())].len
}

/// `n` modulo `p`, for `n < 2 p`.
fn wrapped(n: usize, p: usize) -> usize {
    if n >= p { n - p } else { n }
}

impl RankPositions {
    fn new(rank: usize, buffers: &Buffers) -> RankPositions {
        let mut rank_positions = RankPositions {
            places: Vec::with_capacity(buffers.input.len()),
            end: buffers.end(rank),
        };
        for i in 0..buffers.input.len() {
            // The largest block that each place holds, over all times that it is filled.
            let mut largest = [0, 0];
            let bits = (0..usize::BITS as usize).filter(|k| i >> k & 1 == 1);
            let last = i.checked_ilog2().unwrap_or(0) as usize;
            for (times, k) in bits.filter(|&k| k != last).enumerate() {
                let len = block_len(buffers, rank, i, k + 1);
                largest[times % 2] = largest[times % 2].max(len);
            }
            rank_positions
                .places
                .push([rank_positions.end, rank_positions.end + largest[0]]);
            rank_positions.end += largest[0] + largest[1];
        }
        rank_positions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::build::rounds::{assert_consistent, block_sizes};

    #[test]
    fn both_ends_agree_about_every_message() {
        for p in 1..=17 {
            for sizes in block_sizes(p) {
                let request = Request::alltoall(p, 2)
                    .ports(Ports::UNI)
                    .blocks(sizes.clone());
                let positions = Positions::new(&request).unwrap();
                assert_consistent(&positions, p, false, &format!("{sizes:?}"));
            }
        }
    }

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
