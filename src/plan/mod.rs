//! Planners turn a [`Request`] into a [`Schedule`](crate::Schedule): one file per algorithm, one
//! row per algorithm in the [`registry`].
//!
//! A planner works on *virtual* ranks with the root at 0. Round by round, it states which segment
//! moves from which rank to which; `reduction` turns that into programs over real ranks and spans.

pub(crate) mod build;
pub mod choose;
pub mod circulant;
pub mod distribution;
pub mod exchange;
pub mod gather;
pub mod pipeline;
pub mod refusal;
pub mod registry;
pub mod segments;
pub mod tree;

use crate::error::{Error, Result};
use crate::machine::{CostModel, Ports, bytes};
use crate::rules::max_time;
use crate::schedule::Span;

/// The problem to plan: ranks, root, ports, sizes and costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Number of ranks.
    pub ranks: usize,
    /// The root, for collectives that have one.
    pub root: usize,
    /// Whether the planner may choose a better root; the schedule's collective names the chosen
    /// one.
    pub root_free: bool,
    /// The port model.
    pub ports: Ports,
    /// How the vector is split: the vector of a broadcast, reduce, allreduce, reduce_scatter or
    /// scan, or one rank's block of a gather, scatter, allgather or alltoall (the largest, if they
    /// differ). Algorithms that move blocks split each block into the same number of parts.
    pub segments: Segments,
    /// Elements of each rank's block, for collectives that have blocks. `None` means equal blocks,
    /// or, for reduce_scatter, blocks as equal as possible. In alltoall every rank has a block of
    /// this size from each rank.
    pub blocks: Option<Vec<usize>>,
    /// Whether operands must be combined in rank order (the operator does not commute).
    pub keep_order: bool,
    /// The cost model, for planners that depend on it.
    pub cost: CostModel,
    /// Bytes of one element, to compute times.
    pub element_bytes: u64,
}

impl Request {
    /// A request for `ranks` bidirectional one-ported ranks, root 0, a vector of `elements`
    /// elements in one segment, a commuting operator, and messages of unit cost.
    pub fn new(ranks: usize, elements: usize) -> Request {
        Request {
            ranks,
            root: 0,
            root_free: false,
            ports: Ports::BI,
            segments: Segments::whole(elements),
            blocks: None,
            keep_order: false,
            cost: CostModel::new(1.0, 1.0),
            element_bytes: 1,
        }
    }

    /// Checks that there is at least one rank, that the root is one of the ranks, and that the cost
    /// model covers all ranks.
    ///
    /// # Errors
    /// Names the failed condition; also when there are more ranks than steps can be numbered for.
    pub fn validate(&self) -> Result<()> {
        if self.ranks == 0 {
            return Err(Error::usage("a collective needs at least one rank"));
        }
        if self.ranks > MAX_TRANSFERS {
            return Err(Error::usage(format!(
                "{} ranks are more than the 2^30 that can be planned for",
                self.ranks
            )));
        }
        if self.root >= self.ranks {
            return Err(Error::usage(format!(
                "root {} is not one of {} ranks (numbered from 0)",
                self.root, self.ranks
            )));
        }
        if self.ports.k() == 0 {
            return Err(Error::usage("a rank needs at least one port (ported is 0)"));
        }
        if let Some(blocks) = &self.blocks {
            if blocks.len() != self.ranks {
                return Err(Error::usage(format!(
                    "{} block sizes for {} ranks",
                    blocks.len(),
                    self.ranks
                )));
            }
            let sum = blocks.iter().try_fold(0usize, |a, &b| a.checked_add(b));
            if sum.is_none_or(|sum| sum > MAX_ELEMENTS) {
                return Err(Error::usage(
                    "the blocks have more than the 2^60 elements that can be planned for",
                ));
            }
        }
        if self.elements() > MAX_ELEMENTS {
            return Err(Error::usage(format!(
                "{} elements are more than the 2^60 that can be planned for",
                self.elements()
            )));
        }
        self.cost.validate()?;
        self.cost.covers(self.ranks)
    }

    /// Number of elements of the vector, or of one rank's block: see [`Request::segments`].
    pub fn elements(&self) -> usize {
        self.segments.elements()
    }

    /// The span of each rank's block among all blocks in rank order: in the output of a gather or
    /// allgather, the root's input of a scatter, every rank's input of an alltoall.
    pub fn block_spans(&self) -> Vec<Span> {
        match &self.blocks {
            Some(sizes) => consecutive(sizes),
            None => consecutive(&vec![self.elements(); self.ranks]),
        }
    }

    /// Number of elements of each rank's block of a gather, scatter or allgather.
    pub(crate) fn block_sizes(&self) -> Vec<usize> {
        match &self.blocks {
            Some(sizes) => sizes.clone(),
            None => vec![self.elements(); self.ranks],
        }
    }

    /// The span of each rank's block in the vector of a reduce_scatter: with the given sizes, or
    /// with sizes that differ by at most one, larger blocks first.
    pub fn reduce_scatter_spans(&self) -> Vec<Span> {
        match &self.blocks {
            Some(sizes) => consecutive(sizes),
            None => consecutive(&evenly(self.elements(), self.ranks)),
        }
    }

    /// The same request for free computation.
    pub(crate) fn without_computation(&self) -> Request {
        Request {
            cost: self.cost.clone().gamma(0.0),
            ..self.clone()
        }
    }

    /// Time of a message of `elements` elements; on a heterogeneous platform, an upper bound for
    /// all links.
    pub fn transfer_time(&self, elements: usize) -> f64 {
        self.cost
            .slowest_transfer(bytes(elements, self.element_bytes))
    }

    /// Number and size of the segments, if closed forms over equal segments are valid: equal sizes,
    /// a homogeneous model and no overlap.
    pub(crate) fn equal_segments(&self) -> Option<(usize, usize)> {
        let sizes = self.segments.sizes();
        let equal = sizes.iter().all(|&s| s == sizes[0]);
        (equal && self.closed_forms_hold()).then(|| (sizes.len(), sizes[0]))
    }

    /// Whether the cost model is one that closed forms are stated for: homogeneous, without
    /// overlap.
    pub(crate) fn closed_forms_hold(&self) -> bool {
        self.cost.links().is_none() && !self.cost.overlap
    }

    /// Time to combine `elements` elements; on a heterogeneous platform, at the slowest rank.
    pub fn combine_time(&self, elements: usize) -> f64 {
        let bytes = bytes(elements, self.element_bytes);
        let ranks = self.cost.links().map_or(1, |l| l.gamma.len());
        (0..ranks).fold(0.0, |t, rank| max_time(t, self.cost.combine(rank, bytes)))
    }

    /// Time to combine `elements` elements that a rank already holds; on a heterogeneous platform,
    /// at the slowest rank.
    pub fn local_combine_time(&self, elements: usize) -> f64 {
        let bytes = bytes(elements, self.element_bytes);
        let ranks = self.cost.links().map_or(1, |l| l.gamma.len());
        (0..ranks).fold(0.0, |t, rank| {
            max_time(t, self.cost.combine_local(rank, bytes))
        })
    }
}

/// Each transfer has two steps, and steps have 32-bit numbers.
pub(crate) const MAX_TRANSFERS: usize = 1 << 30;
/// Keeps buffers of a few vectors far from overflow; far more than any memory holds.
const MAX_ELEMENTS: usize = 1 << 60;
/// Maximal number of segments of a vector: the steps of more segments would not fit into memory.
const MAX_SEGMENTS: usize = 1 << 26;

/// A vector split into consecutive segments; sizes in elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segments(Vec<usize>);

impl Segments {
    /// One segment.
    pub fn whole(elements: usize) -> Segments {
        Segments(vec![elements])
    }

    /// Segments of `segment` elements, the last one possibly smaller. An empty vector is one empty
    /// segment.
    ///
    /// # Errors
    /// When `segment` is 0, or there are more than 2^26 segments.
    pub fn of_size(elements: usize, segment: usize) -> Result<Segments> {
        if segment == 0 {
            return Err(Error::usage("a segment of 0 elements"));
        }
        if elements == 0 {
            return Ok(Segments::whole(0));
        }
        if elements.div_ceil(segment) > MAX_SEGMENTS {
            return Err(Error::usage(format!(
                "{elements} elements in segments of {segment} are more than 2^26 segments: take larger segments"
            )));
        }
        let mut sizes = vec![segment; elements / segment];
        if !elements.is_multiple_of(segment) {
            sizes.push(elements % segment);
        }
        Ok(Segments(sizes))
    }

    /// `count` segments, or one per element if there are fewer elements. If equal sizes with a
    /// possibly smaller last segment give `count` segments, these are used (10 elements in 4: 3, 3,
    /// 3, 1); otherwise sizes differ by one (10 in 6: 2, 2, 2, 2, 1, 1).
    ///
    /// # Errors
    /// When `count` is 0, or there are more than 2^26 segments.
    pub fn of_count(elements: usize, count: usize) -> Result<Segments> {
        if count == 0 {
            return Err(Error::usage("0 segments"));
        }
        let count = count.min(elements).max(1);
        let size = elements.div_ceil(count).max(1);
        if elements == 0 || elements.div_ceil(size) == count {
            return Segments::of_size(elements, size);
        }
        let larger = elements % count;
        let smaller = std::iter::repeat_n(size - 1, count - larger);
        Ok(Segments(
            std::iter::repeat_n(size, larger).chain(smaller).collect(),
        ))
    }

    /// Segments of these sizes, in this order.
    ///
    /// # Errors
    /// When `sizes` is empty, or their sum overflows.
    pub fn of_sizes(sizes: Vec<usize>) -> Result<Segments> {
        if sizes.is_empty() {
            return Err(Error::usage("0 segments"));
        }
        if sizes
            .iter()
            .try_fold(0usize, |a, &b| a.checked_add(b))
            .is_none()
        {
            return Err(Error::usage("segment sizes overflow"));
        }
        Ok(Segments(sizes))
    }

    /// Number of segments.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Number of elements of all segments together.
    pub fn elements(&self) -> usize {
        self.0.iter().sum()
    }

    /// The sizes of the segments.
    pub fn sizes(&self) -> &[usize] {
        &self.0
    }

    /// The span of each segment in the vector.
    pub fn spans(&self) -> Vec<Span> {
        consecutive(&self.0)
    }
}

/// Consecutive spans of these lengths, starting at 0.
pub(crate) fn consecutive(sizes: &[usize]) -> Vec<Span> {
    let mut offset = 0;
    let span = |&len: &usize| {
        let span = Span::new(offset, len);
        offset = offset.saturating_add(len);
        span
    };
    sizes.iter().map(span).collect()
}

/// Splits `elements` into `parts` sizes that differ by at most one, larger sizes first.
pub(crate) fn evenly(elements: usize, parts: usize) -> Vec<usize> {
    let (small, larger) = (elements / parts, elements % parts);
    (0..parts)
        .map(|i| small + usize::from(i < larger))
        .collect()
}

/// A transfer of one segment from one virtual rank to another, which combines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Segment.
    pub segment: u32,
    /// Virtual rank that sends.
    pub from: u32,
    /// Virtual rank that receives.
    pub to: u32,
}

impl Transfer {
    pub(crate) fn new(segment: usize, from: usize, to: usize) -> Transfer {
        let narrow = |n: usize| u32::try_from(n).expect("ranks and segments fit 32 bits");
        Transfer {
            segment: narrow(segment),
            from: narrow(from),
            to: narrow(to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_count_gives_the_requested_count() {
        for elements in 0..60 {
            for count in 1..70 {
                let segments = Segments::of_count(elements, count).unwrap();
                assert_eq!(segments.count(), count.min(elements).max(1));
                assert_eq!(segments.elements(), elements);
                let (first, rest) = segments.sizes().split_first().unwrap();
                assert!(rest.iter().all(|s| s <= first && *s > 0));
            }
        }
        assert_eq!(Segments::of_count(10, 4).unwrap().sizes(), [3, 3, 3, 1]);
        assert_eq!(
            Segments::of_count(10, 6).unwrap().sizes(),
            [2, 2, 2, 2, 1, 1]
        );
        assert!(Segments::of_count(10, 0).is_err());
    }
}
