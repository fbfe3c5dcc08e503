//! What the messages of a tree cost: of a gather, or of a reduction.

use super::GatherProblem;
use super::tree::Range;
use crate::plan::prelude::*;

/// The costs of messages and copies, for blocks of different sizes or messages of equal size.
#[derive(Debug)]
pub(in crate::plan) struct TreeCosts<'a> {
    pub(super) cost: &'a CostModel,
    /// Total size in bytes of the blocks of all lower ranks; the last entry is the size of all
    /// blocks.
    before: Vec<u64>,
    /// The size of every message, if they are all equal.
    same: Option<u64>,
    /// By rank: the time of copying its own block.
    pub(super) copy: Vec<f64>,
    /// The time that each rank adds to every message it receives.
    combine: Vec<f64>,
}

impl<'a> TreeCosts<'a> {
    /// Those of a gather.
    pub(super) fn of(problem: &'a GatherProblem) -> TreeCosts<'a> {
        let (p, cost) = (problem.ranks(), problem.cost());
        let mut before = vec![0];
        before.extend(problem.sizes().iter().scan(0, |sum, &size| {
            *sum += size;
            Some(*sum)
        }));
        TreeCosts {
            cost,
            before,
            same: None,
            copy: (0..p).map(|r| cost.copy(r, problem.sizes()[r])).collect(),
            combine: vec![0.0; p],
        }
    }

    /// Those of a reduction: every message has `size` bytes, and rank `r` takes `combine[r]` to
    /// combine it with its own data.
    pub(in crate::plan) fn of_reduction(
        cost: &'a CostModel,
        size: u64,
        combine: Vec<f64>,
    ) -> TreeCosts<'a> {
        let ranks = combine.len();
        TreeCosts {
            cost,
            before: vec![0; ranks + 1],
            same: Some(size),
            copy: vec![0.0; ranks],
            combine,
        }
    }

    pub(super) fn ranks(&self) -> usize {
        self.copy.len()
    }

    /// Bytes of the blocks of ranks `a..=b`.
    #[inline]
    pub(super) fn size(&self, (a, b): Range) -> u64 {
        self.before[b + 1] - self.before[a]
    }

    /// Time of the message with the data of ranks `a..=b`.
    #[inline]
    pub(super) fn message(&self, from: usize, to: usize, range: Range) -> f64 {
        self.message_of_size(from, to, self.size(range))
    }

    /// Time of the message with blocks of `size` bytes together.
    #[inline]
    pub(super) fn message_of_size(&self, from: usize, to: usize, size: u64) -> f64 {
        self.cost.transfer(from, to, self.same.unwrap_or(size)) + self.combine[to]
    }
}
