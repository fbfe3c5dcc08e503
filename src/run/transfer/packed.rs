//! Messages in memory as sequences of spans of a buffer, one after another.

use std::ops::Range;

use super::copy::copy;
use super::elements::{Combiner, Elements};
use crate::run::tuning::MAX_COMPARED_SPANS;
use crate::schedule::{Order, Span};

/// A message: `spans` of the buffer that starts at `base`.
pub(super) struct Packed<'s> {
    pub(super) base: *mut u8,
    pub(super) spans: &'s [Span],
}

/// What a receive does with the message.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RecvOp<'o> {
    /// Copies it into the spans.
    Copy,
    /// Combines it into the spans.
    Reduce(Combiner<'o>, Order),
}

impl Packed<'_> {
    /// Calls `f(to, from, n)` for each stretch of `n` elements of `range` that is contiguous on
    /// both sides. An element has `bytes` bytes.
    ///
    /// # Safety
    /// Both messages must hold the elements `range`, and their spans must lie within their buffers.
    unsafe fn stretches(
        to: &Packed<'_>,
        from: &Packed<'_>,
        bytes: usize,
        range: Range<usize>,
        mut f: impl FnMut(*mut u8, *mut u8, usize),
    ) {
        if let ([a], [b]) = (to.spans, from.spans) {
            // SAFETY: the caller guarantees that the range is inside the span, which is within the
            // buffer.
            let dst = unsafe { to.base.add((a.offset + range.start) * bytes) };
            // SAFETY: as above.
            let src = unsafe { from.base.add((b.offset + range.start) * bytes) };
            f(dst, src, range.len());
            return;
        }
        let (mut a, mut b) = (
            Cursor::at(to.spans, range.start),
            Cursor::at(from.spans, range.start),
        );
        let mut left = range.len();
        while left > 0 {
            let n = a.left(to.spans).min(b.left(from.spans)).min(left);
            // SAFETY: the cursor is inside a span, which is within the buffer (guaranteed by the
            // caller).
            let dst = unsafe { to.base.add(a.offset(to.spans) * bytes) };
            // SAFETY: as above.
            let src = unsafe { from.base.add(b.offset(from.spans) * bytes) };
            f(dst, src, n);
            a.advance(to.spans, n);
            b.advance(from.spans, n);
            left -= n;
        }
    }

    /// Copies the elements `range` of `from` into `to`, with streaming stores if `stream` is set.
    ///
    /// # Safety
    /// As [`Packed::stretches`]. In addition, in that range, nobody else may write `from` or touch
    /// `to` meanwhile, and the two must not overlap.
    pub(super) unsafe fn copy(
        to: &Packed<'_>,
        from: &Packed<'_>,
        elements: Elements,
        range: Range<usize>,
        stream: bool,
    ) {
        let bytes = elements.bytes;
        let copy = |dst, src: *mut u8, n| {
            // SAFETY: `stretches` passes `n` valid elements on both sides; the caller guarantees
            // that they do not overlap.
            unsafe { copy(dst, src, n * bytes, stream) }
        };
        // SAFETY: guaranteed by the caller.
        unsafe { Packed::stretches(to, from, bytes, range, copy) }
    }
}

impl RecvOp<'_> {
    /// Stores or combines the elements `range` of `message` into `mine`. With `stream`, elements
    /// that are only stored bypass the caches.
    ///
    /// # Safety
    /// As [`Packed::copy`], and both hold `elements`.
    ///
    /// # Panics
    /// When the operator is for elements of another type.
    pub(super) unsafe fn apply(
        self,
        mine: &Packed<'_>,
        message: &Packed<'_>,
        elements: Elements,
        range: Range<usize>,
        stream: bool,
    ) {
        match self {
            // SAFETY: guaranteed by the caller.
            RecvOp::Copy => unsafe { Packed::copy(mine, message, elements, range, stream) },
            RecvOp::Reduce(combiner, order) => {
                let combine = |dst, src: *mut u8, n| {
                    // SAFETY: `stretches` passes `n` valid elements on both sides; the caller
                    // guarantees that nobody else touches or writes them, and that they do not
                    // overlap.
                    unsafe { combiner.combine(elements, dst, src, n, order) };
                };
                // SAFETY: guaranteed by the caller.
                unsafe { Packed::stretches(mine, message, elements.bytes, range, combine) }
            }
        }
    }
}

/// A position in a packed message.
struct Cursor {
    span: usize,
    within: usize,
}

impl Cursor {
    fn at(spans: &[Span], mut element: usize) -> Cursor {
        let mut span = 0;
        while span < spans.len() && element >= spans[span].len {
            element -= spans[span].len;
            span += 1;
        }
        Cursor {
            span,
            within: element,
        }
    }

    fn left(&self, spans: &[Span]) -> usize {
        spans[self.span].len - self.within
    }

    fn offset(&self, spans: &[Span]) -> usize {
        spans[self.span].offset + self.within
    }

    fn advance(&mut self, spans: &[Span], n: usize) {
        self.within += n;
        while self.span < spans.len() && self.within >= spans[self.span].len {
            self.within -= spans[self.span].len;
            self.span += 1;
        }
    }
}

/// Whether two of the spans share an element.
pub(super) fn self_overlap(spans: &[Span]) -> bool {
    if spans.is_sorted_by(|a, b| a.end() <= b.offset) {
        return false;
    }
    let sorted = sorted(spans);
    !sorted.is_sorted_by(|a, b| a.end() <= b.offset)
}

fn sorted(spans: &[Span]) -> Vec<Span> {
    let mut v: Vec<Span> = spans.iter().copied().filter(|s| s.len > 0).collect();
    v.sort_unstable();
    v
}

/// Whether a span of `a` and a span of `b` share an element.
#[inline]
pub(crate) fn any_overlap(a: &[Span], b: &[Span]) -> bool {
    match (a, b) {
        ([a], [b]) => a.overlaps(*b),
        _ => any_of_many(a, b),
    }
}

fn any_of_many(a: &[Span], b: &[Span]) -> bool {
    if a.len() * b.len() <= MAX_COMPARED_SPANS {
        return a.iter().any(|x| b.iter().any(|y| x.overlaps(*y)));
    }
    let (a, b) = (sorted(a), sorted(b));
    let mut b = b.iter().peekable();
    a.iter().any(|x| {
        while b.peek().is_some_and(|y| y.end() <= x.offset) {
            b.next();
        }
        b.peek().is_some_and(|y| y.overlaps(*x))
    })
}
