//! Alltoall of different blocks by list scheduling: a message starts as soon as both of its ports
//! are free, those of the busiest ports first.
//!
//! - Source: Graham 1966; for open shops Bárány, Fiala 1982 (the bound is Racsmány's).
//! - Symbols: `p` ranks, `e` messages, `w` the largest sum of the times of all messages through one
//!   port.
//! - Time on one port: at most `2 w`, less the time of the last message, because while it waits
//!   one of its ports is busy. No schedule without forwarding takes less than `w`. Measured over
//!   random blocks: 3% more than `w` in the mean, 26% at worst (see the tests).
//! - Cost of planning: `O(e p log p)`.
//!
//! Whenever ports become free, the messages that may start do so one after another: those first
//! whose two ports have most left to do, then the longest. Two other orders are tried: by the
//! busier of the two ports, and by the time of the message alone. The schedule is the one that
//! finishes first. Its times are those of the request's costs, link by link. Empty blocks are not
//! sent. If all blocks are equal, the schedule is that of pairwise, in which no port waits.
//!
//! Example, `p = 3`, blocks of 2 for 0→1 and of 1 for 0→2 and 2→1: 0→1; 0→2 and, when it has
//! arrived, 2→1 on unidirectional ports; at the same time on bidirectional ones.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::pairwise;
use crate::machine::bytes;
use crate::plan::prelude::*;

pub(in crate::plan) const ALLTOALL: Row = Row {
    k_ported: true,
    transfers: row::for_each_pair,
    planning_work: 8,
    source: "list scheduling of open shops: Graham 1966; Bárány, Fiala 1982",
    rounds: "none; time at most twice that of the busiest port; equal blocks: as pairwise",
    same_as: pairwise::of_equal_blocks,
    ..row::new("list-scheduling", Kind::Alltoall, plan).with_formula(time)
};

pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    let blocks = BlockPairs::new(request)?;
    blocks.schedule(request, best(request, &blocks).parts)
}

/// When the last message of the plan finishes.
pub(crate) fn time(request: &Request) -> Option<f64> {
    let blocks = BlockPairs::new(request).ok()?;
    Some(best(request, &blocks).finish)
}

/// The messages in the order of their starts, and when the last one finishes.
struct List {
    parts: Vec<BlockPart>,
    finish: f64,
}

/// What is started first, from the time of a message and what its two ports have left to do.
type Priority = fn(f64, [f64; 2]) -> f64;

const PRIORITIES: [Priority; 3] = [|_, [a, b]| a + b, |_, [a, b]| a.max(b), |time, _| time];

fn best(request: &Request, blocks: &BlockPairs) -> List {
    let pairs = blocks.pairs();
    let [first, others @ ..] = PRIORITIES.map(|priority| list(request, blocks, &pairs, priority));
    others.into_iter().fold(first, |best, list| {
        if list.finish < best.finish {
            list
        } else {
            best
        }
    })
}

/// Starts messages as ports become free.
fn list(request: &Request, blocks: &BlockPairs, pairs: &[[usize; 2]], priority: Priority) -> List {
    let receivers = request.by_ports(0, request.ranks);
    // The ports of a message, as places in the lists below.
    let places = |[from, to]: [usize; 2]| [from, receivers + to];
    let len = |[from, to]: [usize; 2]| blocks.len(from, to);
    let time = |&pair: &[usize; 2]| {
        let bytes = bytes(len(pair), request.element_bytes);
        request.cost.transfer(pair[0], pair[1], bytes)
    };
    let times: Vec<f64> = pairs.iter().map(time).collect();
    let count = request.ranks + receivers;
    let mut free = vec![vec![true; request.ports.k()]; count];
    let mut waiting = vec![Vec::new(); count];
    let mut left = vec![0.0; count];
    for (i, &pair) in pairs.iter().enumerate() {
        for place in places(pair) {
            waiting[place].push(i);
            left[place] += times[i];
        }
    }
    let mut started = vec![false; pairs.len()];
    let mut parts: Vec<BlockPart> = Vec::with_capacity(pairs.len());
    // Messages by the times when they finish, which are not negative: so their bits have the same
    // order.
    let mut running: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let (mut now, mut freed) = (0.0f64, (0..count).collect::<Vec<_>>());
    loop {
        let mut ready: Vec<usize> = Vec::new();
        for place in freed.drain(..) {
            waiting[place].retain(|&i| !started[i]);
            ready.extend(&waiting[place]);
        }
        ready.retain(|&i| places(pairs[i]).iter().all(|&at| free[at].contains(&true)));
        let prior = |i: usize| priority(times[i], places(pairs[i]).map(|at| left[at]));
        let mut ready: Vec<(f64, usize)> = ready.into_iter().map(|i| (prior(i), i)).collect();
        // Pairs are listed by size.
        ready.sort_by(|(a, i), (b, j)| b.total_cmp(a).then(i.cmp(j)));
        ready.dedup_by_key(|ready| ready.1);
        for (_, i) in ready {
            let at = places(pairs[i]);
            let ports = at.map(|at| free[at].iter().position(|&free| free));
            if let [Some(out), Some(into)] = ports {
                free[at[0]][out] = false;
                free[at[1]][into] = false;
                started[i] = true;
                for at in at {
                    left[at] -= times[i];
                }
                running.push(Reverse(((now + times[i]).to_bits(), parts.len())));
                parts.push(BlockPart {
                    pair: pairs[i],
                    offset: 0,
                    len: len(pairs[i]),
                    ports: [out, into],
                });
            }
        }
        let Some(&Reverse((next, _))) = running.peek() else {
            return List { parts, finish: now };
        };
        now = f64::from_bits(next);
        while let Some(&Reverse((_, part))) = running.peek().filter(|top| top.0.0 == next) {
            running.pop();
            let at = places(parts[part].pair);
            for (at, port) in at.into_iter().zip(parts[part].ports) {
                free[at][port] = true;
                freed.push(at);
            }
        }
    }
}
