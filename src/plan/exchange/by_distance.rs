//! Allgathers, and reduce-scatters by their rounds backwards, in which all ranks send over the same
//! distance in a round, and the same blocks, counted from themselves. Their planners give the
//! distances and blocks of all rounds.

use super::bruck;
use crate::plan::prelude::*;

/// What every rank receives in a round.
#[derive(Debug)]
pub(super) struct Share {
    pub(super) distance: usize,
    /// How far the ranks are whose blocks these are.
    pub(super) targets: Vec<usize>,
}

/// The order of the blocks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockOrder {
    /// That of the targets.
    AsListed,
    /// Rank order; neighbours become one span.
    Joined,
}

#[derive(Debug)]
pub(super) struct ByDistance {
    blocks: Vec<Span>,
    shares: Vec<Share>,
    order: BlockOrder,
    /// On unidirectional ports, by round, direction and rank: whether the rank receives first.
    receives_first: Vec<[Vec<bool>; 2]>,
}

pub(super) fn programs(
    request: &Request,
    shares: fn(usize) -> Vec<Share>,
    order: BlockOrder,
) -> Result<Box<dyn DynScheduleSource>> {
    let rounds = |blocks| ByDistance::new(blocks, shares, order, request.ports);
    let longest =
        |blocks: &[Span]| ByDistance::new(blocks.to_vec(), shares, order, Ports::BI).longest();
    compose::programs(request, rounds, longest)
}

impl ByDistance {
    pub(super) fn new(
        blocks: Vec<Span>,
        shares: fn(usize) -> Vec<Share>,
        order: BlockOrder,
        ports: Ports,
    ) -> ByDistance {
        let p = blocks.len();
        let mut rounds = ByDistance {
            shares: shares(p),
            blocks,
            order,
            receives_first: Vec::new(),
        };
        if !ports.can_relay() {
            let flags = rounds.shares.iter().map(|share| {
                let sends = |&from: &usize| rounds.sent_blocks(share, from).any(|b| b.len > 0);
                let ends = |from: usize| (from, (from + share.distance) % p);
                let messages = || (0..p).filter(sends).map(ends);
                [
                    receive_first_flags(p, messages()),
                    receive_first_flags(p, messages().map(|(from, to)| (to, from))),
                ]
            });
            rounds.receives_first = flags.collect();
        }
        rounds
    }

    fn sent_blocks(&self, share: &Share, from: usize) -> impl Iterator<Item = Span> {
        let (p, distance) = (self.blocks.len(), share.distance);
        let targets = share.targets.iter();
        // A target is less than two times all ranks away.
        targets.map(move |x| self.blocks[(from + 2 * p + distance - x) % p])
    }

    fn message(&self, share: &Share, from: usize, peer: usize) -> Option<(usize, Spans)> {
        let sent = self.sent_blocks(share, from);
        let spans = match self.order {
            BlockOrder::AsListed => sent.filter(|span| span.len > 0).collect(),
            BlockOrder::Joined => joined(sent),
        };
        (!spans.is_empty()).then_some((peer, spans))
    }

    fn longest(&self) -> usize {
        let len = |share, from| self.sent_blocks(share, from).map(|b| b.len).sum();
        let all = |share| (0..self.blocks.len()).map(move |from| len(share, from));
        self.shares.iter().flat_map(all).max().unwrap_or(0)
    }
}

impl Rounds for ByDistance {
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

    /// Ranks list their blocks in different orders if these are not sorted.
    fn is_uniform(&self, ports: Ports) -> bool {
        self.order == BlockOrder::Joined
            && are_equal(&self.blocks)
            && (ports.can_relay() || are_even(self.blocks.len(), &self.shares))
    }
}

/// Whether there is an even number of ranks along each cycle of messages.
fn are_even(p: usize, shares: &[Share]) -> bool {
    let is_even = |share: &Share| bruck::cycle(p, share.distance).is_multiple_of(2);
    shares.iter().all(is_even)
}

pub(super) fn time(request: &Request, shares: fn(usize) -> Vec<Share>) -> Option<f64> {
    let (b, shares) = (equal_block(request)?, shares(request.ranks));
    let in_step = request.ports.can_relay() || are_even(request.ranks, &shares);
    let round = |share: &Share| {
        let sent = share.targets.len() * b;
        let messages = time_of_round(request, sent);
        there_and_back(request, messages, time_of_combining(request, sent))
    };
    in_step.then(|| shares.iter().map(round).sum())
}
