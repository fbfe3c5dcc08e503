//! PAT (parallel aggregated trees) allgather and reduce-scatter: trees from far to near, with a
//! limited number of blocks in a message.
//!
//! - Source: Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale"
//!   (2025); NCCL.
//! - Ports: uni- or bidirectional.
//! - Symbols: `p` ranks, `P` the next power of two, `m` elements in all blocks together, `b = m/p`
//!   if they are equal, `A = min(8, P/2)` blocks in a message at most.
//! - Rounds: `log2 A + P/A - 1` (bidirectional); for `p < P` some may be empty.
//! - Time for equal blocks: as many times `alpha`, and `(p-1) beta b`, twice that on unidirectional
//!   ranks if `p` is a power of two. The reduce-scatter takes `(p-1) gamma b` more.
//! - Volume: `(p-1) m`.
//! - Restrictions: operators must commute.
//! - Scratch: for the reduce-scatter on unidirectional ranks, the size of the longest message.
//! - Spans: a message has up to `A` of them.
//!
//! The block of rank `r` reaches rank `r + x` from rank `r + x - d`, where `d` is the largest power
//! of two that divides `x`: a binomial tree whose first messages go farthest. Messages over the
//! same distance go together. The first `log2 A` rounds bring each block to `A` ranks at distances
//! of `P/A`; from there on it goes through the trees of these ranks side by side, to one rank of
//! each in a round, in the order of `x`.
//!
//! Example, `p = 4`: 0→2, 1→3, 2→0, 3→1 (own block); 0→1, 1→2, 2→3, 3→0 (two blocks).

use super::bruck;
use crate::error::Result;
use crate::machine::Ports;
use crate::plan::Request;
use crate::plan::build::compose::Blocks;
use crate::plan::build::rounds::{
    Rounds, are_equal, equal_size, joined, receive_first_flags, time_of_combining, time_of_round,
};
use crate::plan::build::stream::{DynScheduleSource, Stream};
use crate::plan::registry::row;
use crate::plan::registry::{Algorithm, ClosedForm, Planner};
use crate::schedule::collective::Kind;
use crate::schedule::{Span, Spans};

pub(in crate::plan) const ALLGATHER: Algorithm = Algorithm {
    transfers: |p, _| {
        p.saturating_mul(2 * MAX_BLOCKS + p.div_ceil(MAX_BLOCKS))
            .saturating_mul(4)
    },
    source: "Jeaugey 2025; NCCL",
    rounds: "log2 A + P/A - 1, P = 2^ceil(log2 p), A = min(8, P/2) (bi); about twice that (uni)",
    volume: "(p-1) m",
    closed_form: ClosedForm::Of(time),
    ..row::planned_by("pat", Kind::Allgather, Planner::Streamed(programs))
};

pub(in crate::plan) const REDUCE_SCATTER: Algorithm = Algorithm {
    collective: Kind::ReduceScatter,
    commutative_only: true,
    planner: Planner::Streamed(reduce_scatter_programs),
    closed_form: ClosedForm::Of(reduce_scatter_time),
    ..ALLGATHER
};

/// Blocks in a message at most: a power of two.
const MAX_BLOCKS: usize = 8;

/// Plans the allgather; steps are generated on demand.
fn programs(request: &Request) -> Result<Box<dyn DynScheduleSource>> {
    let pat = |blocks| Pat::new(blocks, request.ports);
    Ok(Box::new(Stream(Blocks::allgather(request, pat)?)))
}

/// Plans the reduce-scatter; steps are generated on demand.
fn reduce_scatter_programs(request: &Request) -> Result<Box<dyn DynScheduleSource>> {
    let pat = |blocks| Pat::new(blocks, request.ports);
    let longest = |blocks: &[Span]| Pat::new(blocks.to_vec(), Ports::BI).longest();
    Ok(Box::new(Stream(Blocks::reduce_scatter(
        request, pat, longest,
    )?)))
}

/// The rounds of the allgather.
#[derive(Debug)]
struct Pat {
    blocks: Vec<Span>,
    shares: Vec<Share>,
    /// On unidirectional ports, by round, direction and rank: whether the rank receives first.
    receives_first: Vec<[Vec<bool>; 2]>,
}

impl Pat {
    fn new(blocks: Vec<Span>, ports: Ports) -> Pat {
        let p = blocks.len();
        let mut pat = Pat {
            shares: shares(p),
            blocks,
            receives_first: Vec::new(),
        };
        if !ports.is_bidirectional() {
            let flags = pat.shares.iter().map(|share| {
                let sends = |&from: &usize| pat.sent_blocks(share, from).any(|b| b.len > 0);
                let ends = |from: usize| (from, (from + share.distance) % p);
                let messages = || (0..p).filter(sends).map(ends);
                [
                    receive_first_flags(p, messages()),
                    receive_first_flags(p, messages().map(|(from, to)| (to, from))),
                ]
            });
            pat.receives_first = flags.collect();
        }
        pat
    }

    /// The blocks that `from` sends in a round.
    fn sent_blocks(&self, share: &Share, from: usize) -> impl Iterator<Item = Span> {
        let (p, distance) = (self.blocks.len(), share.distance);
        let targets = share.targets.iter();
        targets.map(move |x| self.blocks[(from + p + distance - x) % p])
    }

    fn message(&self, share: &Share, from: usize, peer: usize) -> Option<(usize, Spans)> {
        let spans = joined(self.sent_blocks(share, from));
        (!spans.is_empty()).then_some((peer, spans))
    }

    /// Number of elements of the longest message.
    fn longest(&self) -> usize {
        let len = |share, from| self.sent_blocks(share, from).map(|b| b.len).sum();
        let all = |share| (0..self.blocks.len()).map(move |from| len(share, from));
        self.shares.iter().flat_map(all).max().unwrap_or(0)
    }
}

impl Rounds for Pat {
    fn count(&self) -> usize {
        self.shares.len()
    }

    fn sent(&self, k: usize, rank: usize) -> Option<(usize, Spans)> {
        let share = &self.shares[k];
        self.message(share, rank, (rank + share.distance) % self.blocks.len())
    }

    fn received(&self, k: usize, rank: usize) -> Option<(usize, Spans)> {
        let (p, share) = (self.blocks.len(), &self.shares[k]);
        let from = (rank + p - share.distance) % p;
        self.message(share, from, from)
    }

    fn receives_first(&self, k: usize, rank: usize, backwards: bool) -> bool {
        self.receives_first[k][usize::from(backwards)][rank]
    }

    fn is_uniform(&self, ports: Ports) -> bool {
        let even =
            |share: &Share| bruck::cycle(self.blocks.len(), share.distance).is_multiple_of(2);
        are_equal(&self.blocks) && (ports.is_bidirectional() || self.shares.iter().all(even))
    }
}

/// What every rank receives in a round.
#[derive(Debug)]
struct Share {
    /// How far the source is.
    distance: usize,
    /// How far the ranks are whose blocks these are.
    targets: Vec<usize>,
}

fn shares(p: usize) -> Vec<Share> {
    let all = p.next_power_of_two();
    let trees = MAX_BLOCKS.min(all / 2).max(1);
    let apart = all / trees;
    // The roots of the trees, from far to near, then the ranks of all trees.
    let roots = (0..trees.ilog2()).map(|k| {
        let distance = all >> (k + 1);
        (distance, (distance..all).step_by(2 * distance))
    });
    let others = (1..apart).map(|y| (1 << y.trailing_zeros(), (y..all).step_by(apart)));
    let share = |(distance, targets): (usize, std::iter::StepBy<std::ops::Range<usize>>)| Share {
        distance,
        targets: targets.filter(|&x| x < p).collect(),
    };
    let shares = roots.chain(others).map(share);
    shares.filter(|share| !share.targets.is_empty()).collect()
}

/// Time of the allgather for equal blocks and, on unidirectional ranks, a power of two of ranks;
/// `None` otherwise.
pub(crate) fn time(request: &Request) -> Option<f64> {
    let b = equal_size(request, &request.block_spans())?;
    sum_of_rounds(request, b, |sent| time_of_round(request, sent))
}

/// Time of the reduce-scatter under the same conditions.
pub(crate) fn reduce_scatter_time(request: &Request) -> Option<f64> {
    let b = equal_size(request, &request.reduce_scatter_spans())?;
    sum_of_rounds(request, b, |sent| {
        time_of_round(request, sent) + time_of_combining(request, sent)
    })
}

/// The sum over all rounds of `time(elements that each rank sends)`.
fn sum_of_rounds(request: &Request, block: usize, time: impl Fn(usize) -> f64) -> Option<f64> {
    let shares = shares(request.ranks);
    let is_even = |share: &Share| bruck::cycle(request.ranks, share.distance).is_multiple_of(2);
    if !request.ports.is_bidirectional() && !shares.iter().all(is_even) {
        return None;
    }
    Some(
        shares
            .iter()
            .map(|share| time(share.targets.len() * block))
            .sum(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::build::rounds::{assert_consistent, block_sizes};
    use crate::plan::consecutive;

    #[test]
    fn both_ends_agree_about_every_message() {
        for p in 1..40 {
            for sizes in block_sizes(p) {
                let pat = Pat::new(consecutive(&sizes), Ports::UNI);
                assert_consistent(&pat, p, true, &format!("{sizes:?}"));
            }
        }
    }

    #[test]
    fn rounds_and_blocks_are_those_of_the_source() {
        for p in (1..10).map(|d| 1usize << d) {
            let trees = MAX_BLOCKS.min(p / 2);
            let rounds = trees.ilog2() as usize + p / trees - 1;
            assert_eq!(shares(p).len(), rounds, "p={p}");
        }
        for p in 1..300 {
            let mut targets: Vec<_> = shares(p).into_iter().flat_map(|s| s.targets).collect();
            targets.sort_unstable();
            assert!(targets.into_iter().eq(1..p), "p={p}");
            assert!(
                shares(p)
                    .iter()
                    .all(|share| share.targets.len() <= MAX_BLOCKS)
            );
        }
    }
}
