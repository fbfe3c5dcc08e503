//! Alltoall of different blocks in the fewest rounds: an edge colouring.
//!
//! - Source: König 1916, Vizing 1964; as schedules of messages Gonzalez, Sahni, "Open shop
//!   scheduling to minimize finish time" (1976).
//! - Symbols: `p` ranks, `d` the largest number of messages through one port: of a bidirectional
//!   rank those that it sends, or those that it receives, of a unidirectional one both together.
//! - Rounds for one port: bidirectional `d`, unidirectional at most `d + 2`, and most often `d` or,
//!   if that is more, `ceil(e / floor(p/2))` for `e` messages; fewer are impossible, unless ranks
//!   forward blocks. With `k` ports `k` rounds are in flight at a time.
//! - Time: at most the sum over all rounds of that of the largest message. Where all messages are
//!   equally long it is the number of rounds times `alpha + beta b`.
//! - Cost of planning: `O(e p)` (bidirectional).
//!
//! Messages are the edges of a graph over the ports, and a round is the set of all edges of one
//! colour. Larger blocks are coloured first, so that a round has blocks of similar size; rounds of
//! larger blocks come first. Empty blocks are not sent. If all blocks are equal, the rounds are
//! those of pairwise, which are such a colouring.
//!
//! Example, `p = 3`, blocks 0→1, 1→2 and 0→2: 0→1, 1→2; 0→2.

use super::pairwise;
use crate::plan::build::edge_colouring::{edge_colouring, min_colours};
use crate::plan::prelude::*;

pub(in crate::plan) const ALLTOALL: Row = Row {
    k_ported: true,
    transfers: row::for_each_pair,
    source: "König 1916; Vizing 1964; open shop: Gonzalez, Sahni 1976",
    rounds: "d, the most messages of a port (bi); at most d+2 (uni); equal blocks: as pairwise",
    same_as: pairwise::of_equal_blocks,
    ..row::new("edge-colouring", Kind::Alltoall, plan).with_formula(time)
};

pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    let blocks = &BlockPairs::new(request)?;
    let messages = rounds(request, blocks);
    let k = request.ports.k();
    let parts = messages.into_iter().map(|(round, pair)| BlockPart {
        pair,
        offset: 0,
        len: blocks.len(pair[0], pair[1]),
        ports: [round % k; 2],
    });
    blocks.schedule(request, parts)
}

fn rounds(request: &Request, blocks: &BlockPairs) -> Vec<(usize, [usize; 2])> {
    let pairs = blocks.pairs();
    let (vertices, edges) = graph(request, &pairs);
    let colours = edge_colouring(vertices, &edges);
    // In the order of their largest blocks, which is that of the pairs.
    let (mut number, mut next) = (vec![usize::MAX; colours.len()], 0);
    let mut rounds: Vec<_> = colours
        .into_iter()
        .map(|colour| {
            if number[colour] == usize::MAX {
                number[colour] = next;
                next += 1;
            }
            number[colour]
        })
        .zip(pairs)
        .collect();
    rounds.sort_by_key(|&(round, _)| round);
    rounds
}

/// The number of ports, and the two that each message uses.
fn graph(request: &Request, pairs: &[[usize; 2]]) -> (usize, Vec<(usize, usize)>) {
    let p = request.ranks;
    let receivers = request.by_ports(0, p);
    let edges = pairs.iter().map(|&[from, to]| (from, receivers + to));
    (p + receivers, edges.collect())
}

/// Time of the schedule if all blocks that are not empty are equal, and rounds of them are as few
/// as can be; `None` otherwise. It plans the rounds.
pub(crate) fn time(request: &Request) -> Option<f64> {
    if request.ports.k() > 1 {
        return None;
    }
    let blocks = &BlockPairs::new(request).ok()?;
    let messages = rounds(request, blocks);
    let len = |pair: [usize; 2]| blocks.len(pair[0], pair[1]);
    let Some(&(last, pair)) = messages.last() else {
        return Some(0.0);
    };
    let pairs: Vec<[usize; 2]> = messages.iter().map(|&(_, pair)| pair).collect();
    let (vertices, edges) = graph(request, &pairs);
    let exact = last + 1 == min_colours(vertices, &edges);
    let equal = pairs.iter().all(|&other| len(other) == len(pair));
    (exact && equal).then(|| (last + 1) as f64 * request.transfer_time(len(pair)))
}
