//! One rank's symbolic buffer, stored as runs of elements that hold the same contributions.

use super::symbols::Value;
use crate::schedule::Span;

/// A buffer of symbols, as runs of elements. Run `i` starts at `starts[i]`, and its first element
/// holds `values[i]`. Each further element, up to the next start, holds the same contributions with
/// an index one higher.
///
/// Cuts between runs are only added, never removed (initially all cuts that the rank's own steps
/// need). Otherwise writing a whole vector would remove cuts that the next segment needs again.
#[derive(Debug)]
pub(super) struct Memory {
    starts: Vec<usize>,
    values: Vec<Value>,
    len: usize,
}

/// Part of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct SymbolPiece {
    pub(super) len: usize,
    pub(super) value: Value,
}

/// Takes elements from the front of a message.
#[derive(Debug)]
pub(super) struct MessageCursor<'a> {
    pieces: &'a [SymbolPiece],
    /// Number of elements of the first piece that have already been taken.
    taken: usize,
}

impl<'a> MessageCursor<'a> {
    pub(super) fn new(pieces: &'a [SymbolPiece]) -> Self {
        MessageCursor { pieces, taken: 0 }
    }

    /// Takes at most `max` elements that belong to one run.
    pub(super) fn take(&mut self, max: usize) -> Option<SymbolPiece> {
        let first = self.pieces.first()?;
        let (value, left) = (first.value.plus(self.taken), first.len - self.taken);
        let len = left.min(max);
        if len == left {
            self.pieces = &self.pieces[1..];
            self.taken = 0;
        } else {
            self.taken += len;
        }
        Some(SymbolPiece { len, value })
    }
}

impl Memory {
    /// A buffer of `len` elements that holds `nothing` (at index 0), with cuts at `cuts`.
    pub(super) fn new(len: usize, nothing: Value, cuts: impl IntoIterator<Item = usize>) -> Self {
        let mut starts: Vec<usize> = cuts.into_iter().filter(|&c| c < len).collect();
        starts.push(0);
        starts.sort_unstable();
        starts.dedup();
        let values = starts.iter().map(|&s| nothing.plus(s)).collect();
        Memory {
            starts,
            values,
            len,
        }
    }

    fn end(&self, run: usize) -> usize {
        self.starts.get(run + 1).copied().unwrap_or(self.len)
    }

    /// The run that contains `position`.
    fn run_at(&self, position: usize) -> usize {
        self.starts.partition_point(|&s| s <= position) - 1
    }

    /// Appends the content of `span` to `pieces`, joining runs that continue each other.
    pub(super) fn read(&self, span: Span, pieces: &mut Vec<SymbolPiece>) {
        let (mut at, end) = (span.offset, span.end());
        if at == end {
            return;
        }
        let mut run = self.run_at(at);
        while at < end {
            let next = self.end(run).min(end);
            let value = self.values[run].plus(at - self.starts[run]);
            match pieces.last_mut() {
                Some(last) if last.value.plus(last.len) == value => last.len += next - at,
                _ => pieces.push(SymbolPiece {
                    len: next - at,
                    value,
                }),
            }
            (at, run) = (next, run + 1);
        }
    }

    /// Replaces each element `old` of `span` by `merge(old, new)`, where `new` is the next element
    /// of `message`.
    pub(super) fn write(
        &mut self,
        span: Span,
        message: &mut MessageCursor<'_>,
        fresh: &mut Fresh,
        mut merge: impl FnMut(Value, Value) -> Value,
    ) {
        if span.len == 0 {
            return;
        }
        self.cut(span.offset);
        self.cut(span.end());
        let (mut at, first) = (span.offset, self.run_at(span.offset));
        let mut run = first;
        fresh.starts.clear();
        fresh.values.clear();
        while at < span.end() {
            let old = self.values[run].plus(at - self.starts[run]);
            let end = self.end(run);
            let Some(new) = message.take(end - at) else {
                break;
            };
            fresh.starts.push(at);
            fresh.values.push(merge(old, new.value));
            at += new.len;
            run += usize::from(at == end);
        }
        if fresh.values.len() == run - first {
            self.values[first..run].copy_from_slice(&fresh.values);
        } else {
            self.starts.splice(first..run, fresh.starts.drain(..));
            self.values.splice(first..run, fresh.values.drain(..));
        }
    }

    /// Makes a run start at `position`.
    fn cut(&mut self, position: usize) {
        if position >= self.len {
            return;
        }
        let run = self.run_at(position);
        let start = self.starts[run];
        if start < position {
            self.starts.insert(run + 1, position);
            self.values
                .insert(run + 1, self.values[run].plus(position - start));
        }
    }
}

/// Working memory of [`Memory::write`]: the runs that replace those of the span.
#[derive(Debug, Default)]
pub(super) struct Fresh {
    starts: Vec<usize>,
    values: Vec<Value>,
}
