//! Reduction and broadcast of whole vectors for ranks that arrive late.
//!
//! - Source: Golumbic, "Combinatorial merging" (1976); in the order of the ranks an alphabetic tree
//!   of given depths: Yeung, "Alphabetic codes revisited" (1991).
//! - Symbols: `p` ranks, `m` elements, rank `r` arrives at `a_r`, `T = alpha + beta m + gamma m`.
//! - Time: the least of all trees where latency is 0. Of the reduction, if the operator commutes
//!   and all `a_r` are multiples of `T`: `ceil(log2 sum 2^(a_r / T)) T`.
//!
//! The reduction merges the two partial results that are ready first, again and again; the rank of
//! the root receives, and of two others the one that has the result sooner. Where order counts
//! only neighbours merge. A search finds the earliest end that there is a tree for: until then rank
//! `r` has time for a number of merges, its depth. Ranks take their places in a binary tree from
//! left to right, each the first one of its depth that is left. No tree has all ranks at such
//! depths, or less deep, if these do not fit.
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
use crate::machine::numbers::truncated_i64;
use crate::plan::prelude::*;

pub(in crate::plan) const REDUCE: Row = Row {
    uniform_links_only: true,
    made_for: MadeFor::LateRanks,
    for_arrivals: true,
    transfers: |p, _| p,
    source: "Golumbic 1976; in rank order Yeung 1991",
    rounds: "none; the least time of all trees where messages have no latency",
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
        (true, true) => merging.neighbours(&ranks),
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

    /// Merges neighbours, by the earliest end that there is a tree for.
    fn neighbours(&self, ranks: &[Partial]) -> Vec<[usize; 2]> {
        let last = ranks.iter().map(|rank| rank.ready).fold(0.0, f64::max);
        let time = self.transfer.port_time + self.transfer.latency + self.combine;
        let balanced = f64::from(doublings(ranks.len()) + 1);
        let (mut early, mut end) = (last, last + balanced * time);
        loop {
            let middle = early + (end - early) / 2.0;
            if middle <= early || middle >= end {
                return self.within(ranks, time, end).1;
            }
            if self.within(ranks, time, middle).0 {
                end = middle
            } else {
                early = middle
            }
        }
    }

    /// The tree of neighbours in which each rank has as many merges above it as fit in until `end`,
    /// or fewer; and whether there is one. If there is none, the tree ends later.
    fn within(&self, ranks: &[Partial], time: f64, end: f64) -> (bool, Vec<[usize; 2]>) {
        // Finished parts, each with the number of merges above it, which ascend.
        let mut parts: Vec<(Partial, i64)> = Vec::new();
        let mut messages = Vec::new();
        let mut merge_last = |parts: &mut Vec<(Partial, i64)>| {
            if let (Some((b, _)), Some((a, above))) = (parts.pop(), parts.pop()) {
                messages.push(self.message(a, b));
                parts.push((self.merge(a, b), above - 1));
            }
        };
        for &rank in ranks {
            let above = truncated_i64((end - rank.ready) / time);
            // What comes before has to end as high as the rank begins.
            while parts.iter().rev().nth(1).is_some_and(|part| part.1 > above) {
                merge_last(&mut parts);
            }
            if let Some(part) = parts.last_mut() {
                part.1 = part.1.min(above);
            }
            for next in [None, Some((rank, above))] {
                parts.extend(next);
                while let [.., a, b] = parts[..]
                    && a.1 == b.1
                {
                    merge_last(&mut parts);
                }
            }
        }
        while parts.len() > 1 {
            merge_last(&mut parts);
        }
        (parts[0].1 >= 0, messages)
    }
}
