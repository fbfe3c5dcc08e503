//! Spans: parts of a rank's buffer.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// `len` elements of a rank's buffer, starting at `offset`; `[offset, len]` in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(usize, usize)", into = "(usize, usize)")]
pub struct Span {
    /// First element.
    pub offset: usize,
    /// Number of elements.
    pub len: usize,
}

/// The spans of one message, packed in this order; most messages have one span.
pub type Spans = SmallVec<[Span; 1]>;

impl From<Span> for Spans {
    fn from(span: Span) -> Self {
        Spans::from_buf([span])
    }
}

impl Span {
    /// A span of `len` elements starting at `offset`.
    pub const fn new(offset: usize, len: usize) -> Self {
        Span { offset, len }
    }

    /// One past the last element. Saturates, so a span that overflows lies outside every buffer.
    pub const fn end(self) -> usize {
        self.offset.saturating_add(self.len)
    }

    /// Whether the two spans have an element in common.
    pub const fn overlaps(self, other: Span) -> bool {
        self.len > 0 && other.len > 0 && self.offset < other.end() && other.offset < self.end()
    }
}

impl From<(usize, usize)> for Span {
    fn from((offset, len): (usize, usize)) -> Self {
        Span { offset, len }
    }
}

impl From<Span> for (usize, usize) {
    fn from(span: Span) -> Self {
        (span.offset, span.len)
    }
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        Span::new(range.start, range.end.saturating_sub(range.start))
    }
}

/// Number of elements in all spans together (saturating).
pub fn total_len(spans: &[Span]) -> usize {
    spans.iter().fold(0, |sum, s| sum.saturating_add(s.len))
}

/// The serialized form of spans: a list of pairs `[offset, len]`.
pub(super) mod spans {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Span, Spans};

    pub(in super::super) fn serialize<S: Serializer>(
        spans: &Spans,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        spans.as_slice().serialize(s)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        d: D,
    ) -> Result<Spans, D::Error> {
        Vec::<Span>::deserialize(d).map(|spans| spans.into_iter().collect())
    }
}
