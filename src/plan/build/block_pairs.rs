//! The blocks of an alltoall, one for each pair of ranks, and their positions in the buffers.

use super::rounds::{Exchange, Rounds};
use super::stream::{StepAt, streamed};
use crate::error::{Error, Result};
use crate::plan::{Request, consecutive};
use crate::schedule::collective::Collective;
use crate::schedule::{DynScheduleSource, Layout, Schedule, Span, Step};

/// The position of every block: first the rank's input, then the blocks received from other ranks.
/// A rank's own block stays in the input.
///
/// Takes `O(p)` memory if the size of a block depends on its destination alone, else `O(p^2)`.
#[derive(Debug)]
pub(crate) struct BlockPairs {
    ranks: usize,
    /// Spans in the inputs: by destination if they are the same for all ranks, by source and
    /// destination otherwise.
    input: Vec<Span>,
    /// Where inputs differ: spans in the buffers, by destination and source.
    output: Vec<Span>,
}

impl BlockPairs {
    /// The blocks of `request`, in `O(p)` or `O(p^2)` time.
    pub(crate) fn new(request: &Request) -> Result<BlockPairs> {
        let p = request.ranks();
        let sizes = match request.get_blocks() {
            Some(sizes) => sizes,
            None => &vec![request.elements(); p],
        };
        let blocks = BlockPairs {
            ranks: p,
            input: sizes.chunks(p).flat_map(consecutive).collect(),
            output: Vec::new(),
        };
        let largest = sizes.iter().copied().max().unwrap_or(0);
        // At most the received blocks, plus as many elements again, or three times as many, for
        // blocks that are forwarded.
        let max_len = largest
            .checked_mul(p)
            .and_then(|n| n.checked_mul(4))
            .and_then(|n| n.checked_add((0..p).map(|rank| blocks.elements(rank)).max()?));
        if max_len.is_none() {
            return Err(Error::too_large(format!(
                "{p} ranks with blocks of {largest} elements need buffers that are too large"
            )));
        }
        if blocks.same_for_all() {
            return Ok(blocks);
        }
        let received = |rank: usize| {
            let mut end = blocks.elements(rank);
            let blocks = &blocks;
            (0..p).map(move |from| {
                let block = blocks.input(from, rank);
                if from == rank {
                    return block;
                }
                end += block.len;
                Span::new(end - block.len, block.len)
            })
        };
        let output = (0..p).flat_map(received).collect();
        Ok(BlockPairs { output, ..blocks })
    }

    /// Whether the size of a block depends on its destination alone.
    fn same_for_all(&self) -> bool {
        self.input.len() == self.ranks
    }

    pub(crate) fn ranks(&self) -> usize {
        self.ranks
    }

    #[inline]
    pub(crate) fn len(&self, from: usize, to: usize) -> usize {
        self.input(from, to).len
    }

    #[inline]
    pub(crate) fn input(&self, from: usize, to: usize) -> Span {
        if self.same_for_all() {
            self.input[to]
        } else {
            self.input[from * self.ranks + to]
        }
    }

    #[inline]
    pub(crate) fn output(&self, rank: usize, from: usize) -> Span {
        if !self.same_for_all() {
            return self.output[rank * self.ranks + from];
        }
        let block = self.input[rank];
        if from == rank {
            return block;
        }
        let before = from - usize::from(from > rank);
        Span::new(self.elements(rank) + before * block.len, block.len)
    }

    fn elements(&self, rank: usize) -> usize {
        self.input(rank, self.ranks - 1).end()
    }

    /// One past the last element of a rank's output.
    pub(crate) fn end(&self, rank: usize) -> usize {
        let Some(last) = (0..self.ranks).rfind(|&from| from != rank) else {
            return self.elements(rank);
        };
        self.output(rank, last).end()
    }

    pub(crate) fn layout_of(&self, rank: usize, len: usize) -> Layout {
        Layout {
            len,
            input: (0..self.ranks).map(|to| self.input(rank, to)).collect(),
            output: (0..self.ranks)
                .map(|from| self.output(rank, from))
                .collect(),
        }
    }

    /// The pairs `[from, to]` of different ranks whose block is not empty: the largest blocks
    /// first, equal ones in rank order.
    pub(in crate::plan) fn pairs(&self) -> Vec<[usize; 2]> {
        let p = self.ranks;
        let all = (0..p).flat_map(|from| (0..p).map(move |to| [from, to]));
        let mut pairs: Vec<[usize; 2]> = all
            .filter(|&[from, to]| from != to && self.len(from, to) > 0)
            .collect();
        pairs.sort_by_key(|&[from, to]| std::cmp::Reverse(self.len(from, to)));
        pairs
    }

    /// The schedule of these messages. Each rank sends and receives its own in this order.
    pub(in crate::plan) fn schedule(
        &self,
        request: &Request,
        parts: impl IntoIterator<Item = BlockPart>,
    ) -> Result<Schedule> {
        let mut b = Schedule::builder(self.ranks, request.get_ports(), Collective::Alltoall);
        for rank in 0..self.ranks {
            let Layout { len, input, output } = self.layout_of(rank, self.end(rank));
            b.layout(rank, len, input, output);
        }
        for part in parts {
            let [from, to] = part.pair;
            let [sent, stored] = [self.input(from, to), self.output(to, from)]
                .map(|block| Span::new(block.offset + part.offset, part.len));
            b.step(from, Step::send(to, sent).on_port(part.ports[0]));
            b.step(to, Step::recv(from, stored).on_port(part.ports[1]));
        }
        b.build()
    }

    /// Whether all blocks have the same size, those of ranks for themselves included.
    pub(crate) fn are_equal(&self) -> bool {
        self.input.iter().all(|b| b.len == self.input[0].len)
    }

    /// The common size of all blocks for other ranks; `None` if they differ or closed forms do not
    /// hold.
    pub(crate) fn equal_size(request: &Request) -> Option<usize> {
        if !request.closed_forms_hold() {
            return None;
        }
        let p = request.ranks();
        let Some(sizes) = request.get_blocks() else {
            return Some(request.elements());
        };
        let own = |i: usize| p == 1 || (sizes.len() > p && i.is_multiple_of(p + 1));
        let mut others = sizes.iter().enumerate().filter(|(i, _)| !own(*i));
        let first = others.next().map_or(0, |(_, &size)| size);
        others.all(|(_, &size)| size == first).then_some(first)
    }
}

pub(in crate::plan) trait AlltoallRounds: Rounds {
    fn blocks(&self) -> &BlockPairs;

    /// The length of the buffer of `rank`: the end of its output, or what blocks that are forwarded
    /// need besides.
    fn buffer_len(&self, rank: usize) -> usize {
        self.blocks().end(rank)
    }
}

/// The alltoall in these rounds; steps are generated on demand.
pub(in crate::plan) fn alltoall<R: AlltoallRounds + 'static>(
    request: &Request,
    rounds: R,
) -> Box<dyn DynScheduleSource> {
    let steps = AlltoallSteps(Exchange::forwards(rounds, request.get_ports()));
    streamed(request, Collective::Alltoall, steps)
}

#[derive(Debug)]
struct AlltoallSteps<R>(Exchange<R>);

impl<R: AlltoallRounds> StepAt for AlltoallSteps<R> {
    fn layout_of(&self, rank: usize) -> Layout {
        let blocks = self.0.rounds.blocks();
        blocks.layout_of(rank, self.buffer_len(rank))
    }

    fn buffer_len(&self, rank: usize) -> usize {
        self.0.rounds.buffer_len(rank)
    }

    fn is_uniform(&self) -> bool {
        self.0.is_uniform()
    }

    fn slots(&self, _rank: usize) -> usize {
        self.0.slots()
    }

    #[inline]
    fn step_at(&self, rank: usize, slot: usize) -> Option<Step> {
        self.0.step_at(rank, slot)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plan) struct BlockPart {
    pub(in crate::plan) pair: [usize; 2],
    pub(in crate::plan) offset: usize,
    pub(in crate::plan) len: usize,
    /// The numbers of the ports of the source and of the destination.
    pub(in crate::plan) ports: [usize; 2],
}
