//! Postal trees: reduction and broadcast of whole vectors where messages have latency.
//!
//! - Source: Bar-Noy, Kipnis, "Designing broadcasting algorithms in the postal model for
//!   message-passing systems" (1994); for LogP Karp, Sahay, Santos, Schauser (1993).
//! - Symbols: `p` ranks, `m` elements, `T = alpha + beta m`, `L` the latency.
//! - Time: the least of all trees, if all ranks arrive together. Of the broadcast, in the postal
//!   model with `T = 1`, all messages eager and `lambda = L + 1`: the least `t` with `F(t) >= p`,
//!   where `F(t) = 1` for `t < lambda` and `F(t) = F(t-1) + F(t-lambda)`. Without eager sends the
//!   first message starts `L` later.
//!
//! The broadcast is greedy: the informed rank that can send first sends next. Informed ranks
//! differ only in when they can, so a schedule that lets another one send has no more informed
//! ranks at any time. The reduction is that tree backwards. Time backwards, a rank that receives
//! is kept for `T + gamma m` by each message, and its sender starts its own part `T + gamma m + L`
//! after it. A sender that waits for its receiver learns `L` late that it is ready, so that the
//! receiver is kept for `2 L` more.
//!
//! Ranks are numbered along the tree: that of each receiver is followed by those of the ranks that
//! send to it, one after another, each with its own subtree. Where order counts, `r` ranks come
//! before root `r`: they are those of some of its subtrees, which merge on its other side, and what
//! fits in until the end is more ranks than these if need be, of which the last are left out.
//! Subtrees are taken from the largest on, as far as they fit. If a receiver is kept no longer than
//! a message takes, each is at most one rank larger than all that start later together: what its
//! first rank passes on starts after one of these. Then they fill any number of places. If it is
//! kept longer, each is at least as large as all that start later together. Either way no others
//! fill more of the places.
//!
//! Example, `p = 5`, `T = 1`, `L = 1`, broadcast: 0 sends at 0, 1 and 2, to 3, 2 and 1; rank 3 is
//! informed at 2 and sends to 4, which is informed at 4.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::machine::{TransferCost, bytes};
use crate::plan::prelude::*;

pub(in crate::plan) const REDUCE: Row = Row {
    uniform_links_only: true,
    made_for: MadeFor::Latency,
    transfers: |p, _| p,
    source: "Bar-Noy, Kipnis 1994; Karp et al. 1993 (LogP)",
    rounds: "none; the least time of all trees where messages have latency",
    ..row::planned_by("postal", Kind::Reduce, Planner::Reduction(reduction))
};

fn reduction(request: &Request) -> Reduction {
    let p = request.ranks;
    let TransferCost {
        port_time,
        latency,
        eager,
    } = whole(request);
    let port = port_time + request.combine_time(request.elements());
    let waits = request.kind.reduces() && !eager;
    let kept = port + if waits { 2.0 * latency } else { 0.0 };
    let mut request = request.clone();
    let before = if std::mem::take(&mut request.keep_order) {
        request.root
    } else {
        0
    };
    let tree = |ranks: usize| {
        let messages = spread(&vec![0.0; ranks], |free, _| {
            [free + kept, free + port + latency]
        });
        numbered(&messages, before, p - 1 - before)
    };
    let rounds = smallest(p, tree).into_iter().rev();
    let rounds = rounds.map(|[to, from]| [Transfer::new(0, from, to)]);
    let vector = Segments::whole(request.elements());
    Reduction::new(&request.segments(vector), rounds)
}

/// What a message of the whole vector takes.
pub(super) fn whole(request: &Request) -> TransferCost {
    let bytes = bytes(request.elements(), request.element_bytes);
    request.cost.transfer_cost(0, 1, bytes)
}

/// The sender and the receiver of each message of the greedy broadcast from place 0, for ranks that
/// arrive at these times; all but the first ascend. `ends(sender, receiver)` is when the two can
/// send next if they can take part in a message from these times on.
pub(super) fn spread(arrivals: &[f64], ends: impl Fn(f64, f64) -> [f64; 2]) -> Vec<[usize; 2]> {
    // Times are not negative: so their bits have the same order.
    let free = |at: f64, place: usize| Reverse((at.to_bits(), place));
    let mut informed = BinaryHeap::from([free(arrivals[0], 0)]);
    let receivers = arrivals.iter().enumerate().skip(1);
    let messages = receivers.map(|(to, &arrival)| {
        let Reverse((at, from)) = informed.pop().expect("the root is informed");
        let [sender, receiver] = ends(f64::from_bits(at), arrival);
        informed.extend([free(sender, from), free(receiver, to)]);
        [from, to]
    });
    messages.collect()
}

/// The first tree, of at least `p` ranks, that there is. Larger ones exist, too.
fn smallest<T>(p: usize, tree: impl Fn(usize) -> Option<T>) -> T {
    let (mut too_few, mut ranks) = (p - 1, p);
    let mut found = loop {
        match tree(ranks) {
            Some(found) => break found,
            None => (too_few, ranks) = (ranks, 2 * ranks),
        }
    };
    while ranks - too_few > 1 {
        let middle = too_few + (ranks - too_few) / 2;
        match tree(middle) {
            Some(smaller) => (ranks, found) = (middle, smaller),
            None => too_few = middle,
        }
    }
    found
}

/// The messages of a tree between numbers, from 0 at the root: each subtree has consecutive ones,
/// the first `after` numbers behind the root are those of whole subtrees of it, and the next
/// `before` ones those of others. Of a tree of more ranks the last to be reached are left out.
/// `None` if the subtrees do not fill both.
fn numbered(tree: &[[usize; 2]], before: usize, after: usize) -> Option<Vec<[usize; 2]>> {
    // The root's subtrees: by place the one that it is in, and their sizes.
    let (mut subtree, mut sizes) = (vec![0; tree.len() + 1], Vec::new());
    for &[to, from] in tree {
        subtree[from] = match to {
            0 => sizes.len(),
            _ => subtree[to],
        };
        sizes.resize(sizes.len().max(subtree[from] + 1), 0);
        sizes[subtree[from]] += 1;
    }
    let mut room = tree.len().checked_sub(after)?;
    let comes_before: Vec<bool> = sizes
        .iter()
        .map(|&size| {
            let fits = before > 0 && size <= room;
            room -= if fits { size } else { 0 };
            fits
        })
        .collect();
    let mut missing = [after, before];
    for (size, &side) in sizes.iter_mut().zip(&comes_before) {
        let missing = &mut missing[usize::from(side)];
        *size = (*size).min(*missing);
        *missing -= *size;
    }
    if missing != [0, 0] {
        return None;
    }
    let is_kept = |message: &&[usize; 2]| {
        let left = &mut sizes[subtree[message[1]]];
        let is_kept = *left > 0;
        *left -= usize::from(is_kept);
        is_kept
    };
    let messages: Vec<[usize; 2]> = tree.iter().filter(is_kept).copied().collect();

    let (mut sizes, mut numbers) = (vec![1; tree.len() + 1], vec![0; tree.len() + 1]);
    for &[to, from] in messages.iter().rev() {
        numbers[from] = sizes[to];
        sizes[to] += sizes[from];
    }
    // What merges last, the largest, is the farthest from the root on its side.
    let (mut start, mut end) = (after + 1, after + 1);
    for &[to, from] in &messages {
        if to > 0 {
            numbers[from] += numbers[to];
        } else if comes_before[subtree[from]] {
            numbers[from] = start;
            start += sizes[from];
        } else {
            end -= sizes[from];
            numbers[from] = end;
        }
    }
    let numbers = |message: [usize; 2]| message.map(|place| numbers[place]);
    Some(messages.into_iter().map(numbers).collect())
}
