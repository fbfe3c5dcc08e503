//! How a vector is split into segments and blocks.

use crate::budget::size::MAX_SEGMENTS;
use crate::error::{Error, Result};
use crate::schedule::Span;

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

    /// Segments of these sizes, in the order in which a reduction takes them. A broadcast that is
    /// planned as a reduction backwards takes them from the last to the first, and cuts the vector
    /// in that order.
    ///
    /// # Errors
    /// When `sizes` is empty, or their sum overflows.
    pub fn of_sizes(sizes: Vec<usize>) -> Result<Segments> {
        if sizes.is_empty() {
            return Err(Error::usage("0 segments"));
        }
        let sum = sizes.iter().try_fold(0usize, |a, &b| a.checked_add(b));
        if sum.is_none() {
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
    (0..parts)
        .map(|i| Span::share(elements, parts, i).len)
        .collect()
}

/// Mirrors consecutive spans: the first one ends where the last one did. A plan for them that is
/// run backwards moves the start of the vector first, and takes as long as before.
pub(crate) fn cut_from_the_end(spans: &mut [Span]) {
    let (Some(first), Some(last)) = (spans.first(), spans.last()) else {
        return;
    };
    let ends = first.offset + last.end();
    for span in spans {
        span.offset = ends - span.end();
    }
}
