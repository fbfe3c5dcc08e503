//! Spans: parts of a rank's buffer.

use std::fmt;
use std::ops::{Deref, DerefMut, Range};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::SmallVec;

/// `len` elements of a rank's buffer, starting at `offset`; `[offset, len]` in files. It can be
/// made from a range: `Span::from(2..6)` is `Span::new(2, 4)`.
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schemars", schemars(with = "[usize; 2]", inline))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(usize, usize)", into = "(usize, usize)")]
pub struct Span {
    /// Index of the first element.
    pub offset: usize,
    /// Number of elements.
    pub len: usize,
}

impl Span {
    /// Part `i` of `parts` parts of `len` elements, whose lengths differ by at most one, longer
    /// ones first.
    pub(crate) fn share(len: usize, parts: usize, i: usize) -> Span {
        let (small, longer) = (len / parts, len % parts);
        Span::new(i * small + i.min(longer), small + usize::from(i < longer))
    }
}

/// The spans of one message, of one side of a local step, or of an input or output, packed in this
/// order. A list of pairs `[offset, len]` in files.
///
/// It is a slice of spans, so `len()` is the number of spans; [`total_len`] is the number of
/// elements. One span, as most messages have, needs no allocation.
///
/// ```
/// use oneport::{Span, Spans};
/// assert_eq!(Spans::from(2..6), Spans::from(Span::new(2, 4)));
/// let spans = Spans::from([0..1, 5..7]);
/// assert_eq!((spans.len(), oneport::schedule::total_len(&spans)), (2, 3));
/// ```
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schemars", schemars(with = "Vec<Span>", inline))]
#[derive(Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spans(SmallVec<[Span; 1]>);

/// As derived, but in one copy: a simulation clones the spans of each step.
impl Clone for Spans {
    #[inline]
    fn clone(&self) -> Spans {
        Spans(SmallVec::from_slice(&self.0))
    }
}

impl Spans {
    /// No spans: no elements.
    pub fn new() -> Spans {
        Spans::default()
    }

    /// Keeps the spans for which `keep` holds, in order. Linear in the number of spans.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&Span) -> bool) {
        self.0.retain(|span| keep(span));
    }

    /// Appends a span at the end.
    pub fn push(&mut self, span: Span) {
        self.0.push(span);
    }

    /// Appends the elements of a span: one that begins where the last one ends makes that longer.
    pub fn append(&mut self, span: Span) {
        match self.0.last_mut() {
            _ if span.len == 0 => {}
            Some(last) if last.end() == span.offset => last.len += span.len,
            _ => self.0.push(span),
        }
    }
}

impl Deref for Spans {
    type Target = [Span];

    #[inline]
    fn deref(&self) -> &[Span] {
        &self.0
    }
}

impl DerefMut for Spans {
    fn deref_mut(&mut self) -> &mut [Span] {
        &mut self.0
    }
}

impl fmt::Debug for Spans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Spans {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.0.as_slice().serialize(s)
    }
}

impl<'de> Deserialize<'de> for Spans {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Vec::<Span>::deserialize(d).map(Spans::from)
    }
}

impl FromIterator<Span> for Spans {
    fn from_iter<I: IntoIterator<Item = Span>>(spans: I) -> Self {
        Spans(spans.into_iter().collect())
    }
}

impl Extend<Span> for Spans {
    fn extend<I: IntoIterator<Item = Span>>(&mut self, spans: I) {
        self.0.extend(spans);
    }
}

impl IntoIterator for Spans {
    type Item = Span;
    type IntoIter = std::vec::IntoIter<Span>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_vec().into_iter()
    }
}

impl<'s> IntoIterator for &'s Spans {
    type Item = &'s Span;
    type IntoIter = std::slice::Iter<'s, Span>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<S: Into<Span>> From<S> for Spans {
    fn from(span: S) -> Self {
        Spans(SmallVec::from_buf([span.into()]))
    }
}

impl From<Vec<Span>> for Spans {
    fn from(spans: Vec<Span>) -> Self {
        Spans(spans.into())
    }
}

impl From<&[Span]> for Spans {
    fn from(spans: &[Span]) -> Self {
        Spans(spans.into())
    }
}

impl From<Option<Span>> for Spans {
    fn from(span: Option<Span>) -> Self {
        span.into_iter().collect()
    }
}

impl<const N: usize> From<[Span; N]> for Spans {
    fn from(spans: [Span; N]) -> Self {
        spans.into_iter().collect()
    }
}

/// Lists of ranges. (One for all lengths would leave the type of `[]` open.)
macro_rules! from_ranges {
    ($($n:literal)*) => {
        $(impl From<[Range<usize>; $n]> for Spans {
            fn from(ranges: [Range<usize>; $n]) -> Self {
                ranges.into_iter().map(Span::from).collect()
            }
        })*
    };
}

from_ranges!(1 2 3 4 5 6 7 8);

impl Span {
    /// A span of `len` elements starting at `offset`.
    pub const fn new(offset: usize, len: usize) -> Self {
        Span { offset, len }
    }

    /// One past the index of the last element. Saturates, so a span that overflows lies outside
    /// every buffer.
    pub const fn end(self) -> usize {
        self.offset.saturating_add(self.len)
    }

    /// Why a span is refused that is not part of a buffer of `len` elements.
    pub(crate) fn outside(self, len: usize) -> String {
        let Span { offset, len: own } = self;
        let leaves = format!("span [{offset}, {own}] leaves the buffer of {len} elements");
        match offset.checked_add(own) {
            // The length of a reversed range, which its end follows from.
            None => format!(
                "{leaves}: as a range, {offset}..{}, it ends before it starts",
                offset.wrapping_add(own)
            ),
            Some(_) => leaves,
        }
    }

    /// Whether the two spans have an element in common; an empty span has none.
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
    /// A range whose end lies before its start becomes a span that leaves every buffer: a schedule
    /// or a step with it is refused, and the error shows the range.
    fn from(range: Range<usize>) -> Self {
        // The difference wraps around, so offset and length overflow when they are added.
        Span::new(range.start, range.end.wrapping_sub(range.start))
    }
}

/// Number of elements in all spans together: the length of the message that they hold. Saturating,
/// and linear in the number of spans.
pub fn total_len(spans: &[Span]) -> usize {
    spans.iter().fold(0, |sum, s| sum.saturating_add(s.len))
}
