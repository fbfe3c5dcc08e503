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
//! send to it, one after another, each with its own subtree.
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
        port,
        latency,
        eager,
    } = whole(request);
    let port = port + request.combine_time(request.elements());
    let waits = request.kind.reduces() && !eager;
    let kept = port + if waits { 2.0 * latency } else { 0.0 };
    let tree = spread(&vec![0.0; p], |free, _| {
        [free + kept, free + port + latency]
    });
    let numbers = numbers(p, &tree);
    let merges = tree.iter().rev();
    let rounds = merges.map(|&[to, from]| [Transfer::new(0, numbers[from], numbers[to])]);
    let vector = Segments::whole(request.elements());
    Reduction::new(&request.clone().segments(vector), rounds)
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

/// By place in the tree: its number, such that each subtree has consecutive ones.
fn numbers(p: usize, tree: &[[usize; 2]]) -> Vec<usize> {
    let (mut sizes, mut numbers) = (vec![1; p], vec![0; p]);
    for &[to, from] in tree.iter().rev() {
        numbers[from] = sizes[to];
        sizes[to] += sizes[from];
    }
    for &[to, from] in tree {
        numbers[from] += numbers[to];
    }
    numbers
}
