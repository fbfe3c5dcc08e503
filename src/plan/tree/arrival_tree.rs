//! Reduction and broadcast of whole vectors for ranks that arrive late.
//!
//! - Source: Golumbic, "Combinatorial merging" (1976); in the order of the ranks the best
//!   alphabetic tree for the maximum, by intervals (Hu, Kleitman, Tamaki 1979).
//! - Ports: uni- or bidirectional, one-ported.
//! - Symbols: `p` ranks, `m` elements, rank `r` arrives at `a_r`, `T = alpha + beta m + gamma m`.
//! - Time: the least of all trees where latency is 0. Of the reduction, if the operator commutes
//!   and all `a_r` are multiples of `T`: `ceil(log2 sum 2^(a_r / T)) T`.
//! - Volume: `(p - 1) m`.
//! - Restrictions: links that cost the same. Not segmented.
//! - Operand order: kept.
//! - Cost of planning: `O(p log p)`; of a reduction in the order of the ranks `O(p^2 log p)`.
//!
//! The reduction merges the two partial results that are ready first, again and again; the rank of
//! the root receives, and of two others the one that has the result sooner. Where order counts
//! only neighbours merge. The least time of a range of ranks is that of the best cut in two, and a
//! longer range takes no less: so the best cut is where the two parts take equally long.
//!
//! The broadcast is greedy: the informed rank that can send first sends to the rank that arrives
//! first. Both choices are best. Let two ranks that a schedule informs in the other order change
//! places from then on: the first message waits for a rank that arrives sooner, the second one for
//! a rank that had arrived before the first. And informed ranks differ only in when they can send.
//!
//! Example, `p = 4`, arrivals 0, 2, 1, 0 in units of `T`, root 0: 3→0 until 1; 0 and 2 are ready
//! at 1 and merge until 2: 2→0; then 1→0.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::postal;
use crate::machine::TransferCost;
use crate::plan::prelude::*;

/// For more ranks the tables of ranges become too large.
const MAX_RANKS: usize = 1024;

pub(in crate::plan) const REDUCE: Row = Row {
    max_ranks: Some(MAX_RANKS),
    ..OF_ANY_RANKS
};

pub(in crate::plan) const BROADCAST: Row = row::broadcast(OF_ANY_RANKS);

const OF_ANY_RANKS: Row = Row {
    uniform_links_only: true,
    made_for: MadeFor::LateRanks,
    transfers: |p, _| p,
    source: "Golumbic 1976; in rank order Hu, Kleitman, Tamaki 1979",
    rounds: "none; the least time of all trees where messages have no latency",
    volume: "(p-1) m",
    ..row::planned_by("arrival-tree", Kind::Reduce, Planner::Reduction(reduction))
};

fn reduction(request: &Request) -> Reduction {
    let p = request.ranks;
    let merging = Merging {
        transfer: postal::whole(request),
        combine: request.combine_time(request.elements()),
        root: request.root,
    };
    let arrive = |rank| Partial {
        ready: request.cost.arrival(rank),
        rank,
    };
    let ranks: Vec<Partial> = (0..p).map(arrive).collect();
    let messages = match (request.kind.reduces(), request.keep_order) {
        (false, _) => spread(&merging, ranks),
        (true, false) => merging.soonest(&ranks),
        (true, true) => merging.neighbours(ranks),
    };
    let number = |rank: usize| (rank + p - request.root) % p;
    let rounds = messages.into_iter();
    let rounds = rounds.map(|[from, to]| [Transfer::new(0, number(from), number(to))]);
    let vector = Segments::whole(request.elements());
    // Where order counts neighbours merge, whatever the root is.
    Reduction::new(&request.clone().keep_order(false).segments(vector), rounds)
}

/// The broadcast backwards.
fn spread(merging: &Merging, mut ranks: Vec<Partial>) -> Vec<[usize; 2]> {
    ranks.sort_by(|a, b| {
        let is_other = |x: &Partial| x.rank != merging.root;
        (is_other(a).cmp(&is_other(b))).then(a.ready.total_cmp(&b.ready))
    });
    let arrivals: Vec<f64> = ranks.iter().map(|rank| rank.ready).collect();
    let ends = |sender, receiver| merging.transfer.ends(sender, receiver);
    let messages = postal::spread(&arrivals, ends).into_iter().rev();
    messages
        .map(|[from, to]| [ranks[to].rank, ranks[from].rank])
        .collect()
}

/// A partial result, the rank that has it, and when.
#[derive(Debug, Clone, Copy)]
struct Partial {
    ready: f64,
    rank: usize,
}

struct Merging {
    transfer: TransferCost,
    combine: f64,
    root: usize,
}

impl Merging {
    /// The merged result.
    fn merge(&self, a: Partial, b: Partial) -> Partial {
        let [to_a, to_b] = [(a, b), (b, a)].map(|(to, from)| {
            let [_, received] = self.transfer.ends(from.ready, to.ready);
            Partial {
                ready: received + self.combine,
                rank: to.rank,
            }
        });
        let takes_b = a.rank != self.root && (b.rank == self.root || to_b.ready < to_a.ready);
        if takes_b { to_b } else { to_a }
    }

    /// The message that merges the two.
    fn message(&self, a: Partial, b: Partial) -> [usize; 2] {
        let to = self.merge(a, b).rank;
        [a.rank + b.rank - to, to]
    }

    /// Merges the two that are ready first.
    fn soonest(&self, ranks: &[Partial]) -> Vec<[usize; 2]> {
        // Times are not negative: so their bits have the same order.
        let by_time = |partial: Partial| Reverse((partial.ready.to_bits(), partial.rank));
        let of = |Reverse((ready, rank))| Partial {
            ready: f64::from_bits(ready),
            rank,
        };
        let mut waiting: BinaryHeap<_> = ranks.iter().copied().map(by_time).collect();
        let mut messages = Vec::new();
        while let (Some(a), Some(b)) = (waiting.pop(), waiting.pop()) {
            let (a, b) = (of(a), of(b));
            messages.push(self.message(a, b));
            waiting.push(by_time(self.merge(a, b)));
        }
        messages
    }

    /// Merges neighbours, by the best cut of each range.
    fn neighbours(&self, ranks: Vec<Partial>) -> Vec<[usize; 2]> {
        let p = ranks.len();
        // By length, less one, and by first rank.
        let mut ranges = vec![ranks];
        for len in 2..=p {
            let merged = |first| {
                let [a, b] = self.cut(&ranges, first, len).1;
                self.merge(a, b)
            };
            let merged = (0..=p - len).map(merged).collect();
            ranges.push(merged);
        }
        let (mut messages, mut open) = (Vec::new(), vec![(0, p)]);
        while let Some((first, len)) = open.pop() {
            if len > 1 {
                let (cut, [a, b]) = self.cut(&ranges, first, len);
                messages.push(self.message(a, b));
                open.extend([(first, cut), (first + cut, len - cut)]);
            }
        }
        messages.reverse();
        messages
    }

    /// The best cut of a range: the length of its first part, and both parts.
    fn cut(&self, ranges: &[Vec<Partial>], first: usize, len: usize) -> (usize, [Partial; 2]) {
        let parts = |cut: usize| [ranges[cut - 1][first], ranges[len - cut - 1][first + cut]];
        // The first part takes longer the longer it is, the second part less.
        let (mut low, mut high) = (1, len - 1);
        while low < high {
            let middle = (low + high) / 2;
            let [a, b] = parts(middle);
            match a.ready < b.ready {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let ready = |cut: usize| {
            let [a, b] = parts(cut);
            self.merge(a, b).ready
        };
        let before = low.max(2) - 1;
        let cut = if ready(before) < ready(low) {
            before
        } else {
            low
        };
        (cut, parts(cut))
    }
}
