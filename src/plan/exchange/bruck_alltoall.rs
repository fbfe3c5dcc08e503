//! Bruck's alltoall: logarithmic for any number of ranks, at the price of forwarding blocks.
//!
//! - Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all
//!   communications in multiport message-passing systems" (1997).
//! - Symbols: `p` ranks, blocks of `b` elements, `q = ceil(log_(k+1) p)`, `c_i` the count of
//!   numbers below `p` whose digit `i` in base `k+1` is 1 (`p/(k+1)` if `p` is a power of `k+1`).
//! - Time for equal blocks: the sum over all `i` of `alpha + beta c_i b`, twice that on
//!   unidirectional ranks if along all cycles of messages there is an even number of ranks (one
//!   port: `p` is a power of two).
//! - Volume: at most `q k/(k+1) p^2 b`, about.
//! - Scratch: about twice a rank's input.
//! - Spans: a message has one for each block.
//!
//! A block that has to travel a distance with the digit `j > 0` of weight `w = (k+1)^i` travels
//! `j w` in round `i`. Rank `r` thus sends to `r + j w`, through port `j - 1`, one block for each
//! such distance. Its position depends on how often it has been forwarded: in the input before the
//! first time, in the output after the last time, and in between in one of two scratch places for
//! each distance (one is filled while the other is sent). A rank's block for itself stays in place.
//!
//! Example, `p = 3`: 0→1 the block for 1, 1→2 that for 2, 2→0 that for 0; then 0→2 the block for 2,
//! 1→0 that for 0, 2→1 that for 1.

use super::bruck;
use crate::plan::prelude::*;

pub(in crate::plan) const ALLTOALL: Row = Row {
    // The last round uses fewer ports than there are, more of them if each is by itself.
    ports: PortModels::Each,
    collective: Kind::Alltoall,
    // Each message has many spans: what they take to hold counts.
    transfers: row::for_each_pair,
    volume: "about p ceil(log2 p)/2 m",
    // Each rank remembers when each block was last used.
    tables: |p| (p as u64).saturating_mul(p as u64).saturating_mul(80),
    planner: Planner::Streamed(programs),
    formula: ClosedForm::Of(time),
    ..bruck::ALLGATHER
};

pub(super) fn programs(request: &Request) -> Result<Box<dyn DynScheduleSource>> {
    Ok(alltoall(request, BlockPositions::new(request)?))
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    let b = BlockPairs::equal_size(request)?;
    let p = request.ranks;
    let digits = Digit::all(p, request.ports.k());
    let is_even = |digit: &Digit| bruck::cycle(p, digit.distance()).is_multiple_of(2);
    if !request.ports.can_relay() && !digits.iter().all(is_even) {
        return None;
    }
    // The first port has the longest message of every round.
    let longest = digits.iter().filter(|digit| digit.value == 1);
    let rounds = longest.map(|digit| time_of_round(request, digit.count(p) * b));
    Some(rounds.sum())
}

/// A digit of the distances that blocks travel: what the messages through one port in one round
/// have in common.
#[derive(Debug, Clone, Copy)]
struct Digit {
    /// From 1 on.
    value: usize,
    /// The power of the radix that the digit counts.
    weight: usize,
    radix: usize,
}

impl Digit {
    /// The digits other than 0 of the numbers below `p`, from the lowest weight to the highest, for
    /// `k` ports.
    fn all(p: usize, k: usize) -> Vec<Digit> {
        let radix = k.saturating_add(1);
        let weights = std::iter::successors(Some(1usize), |w| w.checked_mul(radix));
        let digits = weights.take_while(|&w| w < p).flat_map(|weight| {
            (1..radix).map(move |value| Digit {
                value,
                weight,
                radix,
            })
        });
        digits.filter(|digit| digit.distance() < p).collect()
    }

    fn distance(&self) -> usize {
        self.value.saturating_mul(self.weight)
    }

    fn numbers(&self, p: usize) -> impl Iterator<Item = usize> + use<> {
        let Digit { weight, radix, .. } = *self;
        let runs = (self.distance()..p).step_by(weight.saturating_mul(radix));
        runs.flat_map(move |first| first..(first + weight).min(p))
    }

    fn count(&self, p: usize) -> usize {
        let period = self.weight.saturating_mul(self.radix);
        let rest = (p % period).saturating_sub(self.distance());
        p / period * self.weight + rest.min(self.weight)
    }

    /// How far the block of distance `i` has travelled before the digit's round.
    fn before(&self, i: usize) -> usize {
        i % self.weight
    }

    fn after(&self, i: usize) -> usize {
        i % self.weight.saturating_mul(self.radix)
    }
}

/// Number of digits of `n` that are not 0.
fn times(mut n: usize, radix: usize) -> usize {
    let mut times = 0;
    while n > 0 {
        times += usize::from(!n.is_multiple_of(radix));
        n /= radix;
    }
    times
}

/// The positions of all blocks between the rounds.
#[derive(Debug)]
struct BlockPositions {
    blocks: BlockPairs,
    /// By rank, or a single entry if all blocks have the same size.
    positions: Vec<RankPositions>,
    /// By round of [`Rounds`]: the digit of what is sent. Those of one weight run concurrently.
    digits: Vec<Digit>,
    radix: usize,
    /// On unidirectional ports, by round and rank: whether the rank receives first.
    receives_first: Vec<Vec<bool>>,
}

/// The scratch positions of forwarded blocks at one rank.
#[derive(Debug)]
struct RankPositions {
    places: Vec<[usize; 2]>,
    end: usize,
}

impl AlltoallRounds for BlockPositions {
    fn blocks(&self) -> &BlockPairs {
        &self.blocks
    }

    fn buffer_len(&self, rank: usize) -> usize {
        self.positions_of(rank).end
    }
}

impl BlockPositions {
    fn new(request: &Request) -> Result<BlockPositions> {
        let p = request.ranks;
        let blocks = BlockPairs::new(request)?;
        let equal = blocks.are_equal();
        let radix = request.ports.k().saturating_add(1);
        let mut positions = BlockPositions {
            positions: (0..if equal { 1 } else { p })
                .map(|rank| RankPositions::new(rank, radix, &blocks))
                .collect(),
            blocks,
            digits: Digit::all(p, request.ports.k()),
            radix,
            receives_first: Vec::new(),
        };
        if !request.ports.can_relay() {
            let rounds = (0..positions.count()).map(|k| {
                let sends = (0..p).filter(|&r| positions.forwarded(k, r).next().is_some());
                let distance = positions.digits[k].distance();
                receive_first_flags(p, sends.map(|r| (r, (r + distance) % p)))
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
        let digit = self.digits[k];
        let numbers = digit.numbers(self.blocks.ranks());
        numbers.filter(move |&i| block_len(&self.blocks, rank, i, digit.before(i)) > 0)
    }

    /// The span of the block of distance `i` at `rank` when it has travelled so far.
    fn span(&self, rank: usize, i: usize, travelled: usize) -> Span {
        let p = self.blocks.ranks();
        if travelled == 0 {
            return self.blocks.input(rank, wrapped(rank + i, p));
        }
        if travelled == i {
            return self.blocks.output(rank, wrapped(rank + p - i, p));
        }
        let times = times(travelled, self.radix);
        let place = self.positions_of(rank).places[i][(times - 1) % 2];
        Span::new(place, block_len(&self.blocks, rank, i, travelled))
    }
}

impl Rounds for BlockPositions {
    fn count(&self) -> usize {
        self.digits.len()
    }

    fn sent(&self, k: usize, rank: usize) -> Option<(usize, Spans)> {
        let digit = self.digits[k];
        let to = (rank + digit.distance()) % self.blocks.ranks();
        let spans = self.forwarded(k, rank);
        let spans = spans.map(|i| self.span(rank, i, digit.before(i)));
        Some((to, spans.collect())).filter(|(_, spans): &(_, Spans)| !spans.is_empty())
    }

    fn received(&self, k: usize, rank: usize) -> Option<(usize, Spans)> {
        let (p, digit) = (self.blocks.ranks(), self.digits[k]);
        let from = (rank + p - digit.distance()) % p;
        let spans = self.forwarded(k, from);
        let spans = spans.map(|i| self.span(rank, i, digit.after(i)));
        Some((from, spans.collect())).filter(|(_, spans): &(_, Spans)| !spans.is_empty())
    }

    fn is_uniform(&self, ports: Ports) -> bool {
        let p = self.blocks.ranks();
        let even = |digit: &Digit| bruck::cycle(p, digit.distance()).is_multiple_of(2);
        self.blocks.are_equal() && (ports.can_relay() || self.digits.iter().all(even))
    }

    fn receives_first(&self, k: usize, rank: usize, _backwards: bool) -> bool {
        self.receives_first[k][rank]
    }

    fn port(&self, k: usize, _ports: usize) -> usize {
        self.digits[k].value - 1
    }
}

/// Number of elements of the block of distance `i` that is at `rank` when it has travelled so far.
fn block_len(blocks: &BlockPairs, rank: usize, i: usize, travelled: usize) -> usize {
    let p = blocks.ranks();
    let from = wrapped(rank + p - travelled, p);
    blocks.len(from, wrapped(from + i, p))
}

fn wrapped(n: usize, p: usize) -> usize {
    if n >= p { n - p } else { n }
}

impl RankPositions {
    fn new(rank: usize, radix: usize, blocks: &BlockPairs) -> RankPositions {
        let mut rank_positions = RankPositions {
            places: Vec::with_capacity(blocks.ranks()),
            end: blocks.end(rank),
        };
        for i in 0..blocks.ranks() {
            // The largest block that each place holds, over all times that it is filled: whenever
            // the block has been forwarded but has not arrived.
            let mut largest = [0, 0];
            let weights = std::iter::successors(Some(1usize), |w| w.checked_mul(radix));
            let weights = weights.skip(1).take_while(|&w| w <= i);
            let stops = weights.map(|w| i % w).filter(|&travelled| travelled > 0);
            for travelled in stops {
                let place = &mut largest[(times(travelled, radix) - 1) % 2];
                *place = (*place).max(block_len(blocks, rank, i, travelled));
            }
            rank_positions
                .places
                .push([rank_positions.end, rank_positions.end + largest[0]]);
            rank_positions.end += largest[0] + largest[1];
        }
        rank_positions
    }
}
