//! Alltoall of different blocks in parts, so that the busiest port never waits: a decomposition
//! into matchings.
//!
//! - Source: Birkhoff 1946; as schedules Gonzalez, Sahni, "Open shop scheduling to minimize finish
//!   time" (1976), preemptive; Crescenzi, Deng, Papadimitriou, "On approximating a scheduling
//!   problem" (2001), with start-up times.
//! - Symbols: `p` ranks, `d` the most elements that a rank sends to others, or receives, `r` the
//!   number of matchings, at most `e + 2p` for `e` blocks that are not empty.
//! - Time on one port: `r alpha + beta d`. No schedule takes less than `beta d`.
//! - Cost of planning: `O(r p^2)`, about.
//!
//! The matrix of the sizes of all blocks is filled up with idle elements until all rows and columns
//! have the sum `d`. Such a matrix has a matching of all senders to all receivers over entries that
//! are not 0. Every rank sends as many elements to its receiver as the smallest of these entries
//! has, fewer where they are idle ones; and so on with what is left. A rank with `d` elements has
//! no idle ones, so that it sends, or receives, all the time. Long matchings come first: the
//! entries of a matching are not below a threshold, which is halved whenever no matching exists.
//!
//! If all blocks are equal, the schedule is that of pairwise, which is such a decomposition.
//!
//! Example, `p = 3`, blocks of 2 for 0→1, of 1 for 1→0 and 2→1: 0→1 2 elements, 1→0 1; 2→1 1.

use super::pairwise;
use crate::plan::prelude::*;

pub(in crate::plan) const ALLTOALL: Row = Row {
    ports: PortModels::Bi,
    // Most decompositions have far fewer matchings than there are pairs.
    k_ported: true,
    transfers: |p, _| row::for_each_pair(p, 1).saturating_mul(p.div_ceil(2)),
    planning_work: 4,
    source: "Birkhoff 1946; preemptive open shop: Gonzalez, Sahni 1976",
    rounds: "r, at most one for each block and 2p more; beta d at least; equal blocks: as pairwise",
    same_as: pairwise::of_equal_blocks,
    ..row::new("birkhoff", Kind::Alltoall, plan).with_formula(time)
};

pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    let blocks = &BlockPairs::new(request)?;
    let (p, k) = (request.ranks, request.ports.k());
    let mut sent = vec![0; p * p];
    let mut parts = Vec::new();
    for (round, matching) in Decomposition::new(blocks).enumerate() {
        for (from, &to) in matching.receivers.iter().enumerate() {
            let offset = &mut sent[from * p + to];
            let len = matching.len.min(len(blocks, from, to) - *offset);
            if len > 0 {
                parts.push(BlockPart {
                    pair: [from, to],
                    offset: *offset,
                    len,
                    ports: [round % k; 2],
                });
                *offset += len;
            }
        }
    }
    blocks.schedule(request, parts)
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    if request.ports.k() > 1 {
        return None;
    }
    let blocks = BlockPairs::new(request).ok()?;
    let times = |matching: WeightedMatching| request.transfer_time(matching.len);
    Some(Decomposition::new(&blocks).map(times).sum())
}

fn len(blocks: &BlockPairs, from: usize, to: usize) -> usize {
    if from == to { 0 } else { blocks.len(from, to) }
}

/// Each rank sends at most this many elements, to one other rank.
struct WeightedMatching {
    receivers: Vec<usize>,
    len: usize,
}

struct Decomposition {
    ranks: usize,
    /// What is left, idle elements included, by sender and receiver. All rows and columns have the
    /// same sum.
    left: Vec<usize>,
    sum: usize,
    /// The least number of elements of an entry in a matching.
    least: usize,
    /// The current matching, which may cover only some ranks: by sender the receiver, and the
    /// reverse.
    receiver: Vec<Option<usize>>,
    sender: Vec<Option<usize>>,
}

impl Decomposition {
    fn new(blocks: &BlockPairs) -> Decomposition {
        let p = blocks.ranks();
        let row = |from: usize| (0..p).map(move |to| len(blocks, from, to));
        let mut left: Vec<usize> = (0..p).flat_map(row).collect();
        let sent: Vec<usize> = left.chunks(p).map(|row| row.iter().sum()).collect();
        let column = |to: usize| (0..p).map(|from| left[from * p + to]).sum();
        let received: Vec<usize> = (0..p).map(column).collect();
        let sum = sent.iter().chain(&received).copied().max().unwrap_or(0);
        // Idle elements, in the fewest entries.
        let (mut from, mut to) = (0, 0);
        let mut idle_out: Vec<usize> = sent.iter().map(|n| sum - n).collect();
        let mut idle_in: Vec<usize> = received.iter().map(|n| sum - n).collect();
        while from < p && to < p {
            let idle = idle_out[from].min(idle_in[to]);
            left[from * p + to] += idle;
            idle_out[from] -= idle;
            idle_in[to] -= idle;
            match idle_out[from] {
                0 => from += 1,
                _ => to += 1,
            }
        }
        Decomposition {
            ranks: p,
            left,
            sum,
            least: sum.max(1),
            receiver: vec![None; p],
            sender: vec![None; p],
        }
    }

    /// Finds a receiver for `from`, and others for those that it takes theirs from, but none that
    /// has been `seen`.
    fn augment(&mut self, from: usize, seen: &mut [bool]) -> bool {
        for to in 0..self.ranks {
            if self.left[from * self.ranks + to] < self.least || seen[to] {
                continue;
            }
            seen[to] = true;
            if self.sender[to].is_none_or(|other| self.augment(other, seen)) {
                self.sender[to] = Some(from);
                self.receiver[from] = Some(to);
                return true;
            }
        }
        false
    }
}

impl Iterator for Decomposition {
    type Item = WeightedMatching;

    fn next(&mut self) -> Option<WeightedMatching> {
        if self.sum == 0 {
            return None;
        }
        let p = self.ranks;
        while let Some(from) = (0..p).find(|&from| self.receiver[from].is_none()) {
            // There is a matching over entries of at least one element, by Birkhoff.
            while !self.augment(from, &mut vec![false; p]) {
                self.least = (self.least / 2).max(1);
            }
        }
        let receivers: Vec<usize> = self.receiver.iter().flatten().copied().collect();
        let entries = receivers.iter().enumerate();
        let len = entries.map(|(from, to)| self.left[from * p + to]).min()?;
        for (from, &to) in receivers.iter().enumerate() {
            let left = &mut self.left[from * p + to];
            *left -= len;
            if *left < self.least {
                self.receiver[from] = None;
                self.sender[to] = None;
            }
        }
        self.sum -= len;
        Some(WeightedMatching { receivers, len })
    }
}
