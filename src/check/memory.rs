//! One rank's symbolic buffer, stored as runs of elements that hold the same contributions.

use std::ops::Range;

use super::symbols::Value;
use crate::rules::matching::NONE;
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
    /// By run: the step that wrote it, until the first step that reads some of it.
    unread: Vec<u32>,
    len: usize,
}

/// What a write does to a part of a run: element `at` and those after it, `len` in all.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) at: usize,
    pub(super) len: usize,
    pub(super) old: Value,
    pub(super) new: Value,
    /// The step that wrote the old content, if no step has read it; otherwise [`NONE`].
    pub(super) unread: u32,
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

    /// What the next element holds.
    pub(super) fn next(&self) -> Option<Value> {
        Some(self.pieces.first()?.value.plus(self.taken))
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
            unread: vec![NONE; starts.len()],
            starts,
            values,
            len,
        }
    }

    /// The parts of the buffer that no step has read since a step wrote them: that step, the first
    /// element, and their number.
    pub(super) fn unread(&self) -> impl Iterator<Item = (u32, usize, usize)> {
        let runs = self.unread.iter().enumerate();
        let runs = runs.filter(|&(_, &step)| step != NONE);
        runs.map(|(run, &step)| (step, self.starts[run], self.end(run) - self.starts[run]))
    }

    fn end(&self, run: usize) -> usize {
        self.starts.get(run + 1).copied().unwrap_or(self.len)
    }

    fn run_at(&self, position: usize) -> usize {
        self.starts.partition_point(|&s| s <= position) - 1
    }

    /// As [`Memory::read`], by a step: what it reads is no longer unread.
    pub(super) fn consume(&mut self, span: Span, pieces: &mut Vec<SymbolPiece>) {
        let runs = self.read(span, pieces);
        self.unread[runs].fill(NONE);
    }

    /// Appends the content of `span` to `pieces`, joining runs that continue each other. Returns
    /// the runs that have elements of it.
    pub(super) fn read(&self, span: Span, pieces: &mut Vec<SymbolPiece>) -> Range<usize> {
        let (mut at, end) = (span.offset, span.end());
        if at == end {
            return 0..0;
        }
        let first = self.run_at(at);
        let mut run = first;
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
        first..run
    }

    /// Replaces each element of `span` by what `merge` returns for it and the next element of
    /// `message`: a value, and the step whose write of it is unread.
    pub(super) fn write(
        &mut self,
        span: Span,
        message: &mut MessageCursor<'_>,
        fresh: &mut Fresh,
        mut merge: impl FnMut(&Change) -> (Value, u32),
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
        fresh.unread.clear();
        while at < span.end() {
            let old = self.values[run].plus(at - self.starts[run]);
            let end = self.end(run);
            let Some(new) = message.take(end - at) else {
                break;
            };
            let (value, unread) = merge(&Change {
                at,
                len: new.len,
                old,
                new: new.value,
                unread: self.unread[run],
            });
            fresh.starts.push(at);
            fresh.values.push(value);
            fresh.unread.push(unread);
            at += new.len;
            run += usize::from(at == end);
        }
        if fresh.values.len() == run - first {
            self.values[first..run].copy_from_slice(&fresh.values);
            self.unread[first..run].copy_from_slice(&fresh.unread);
        } else {
            self.starts.splice(first..run, fresh.starts.drain(..));
            self.values.splice(first..run, fresh.values.drain(..));
            self.unread.splice(first..run, fresh.unread.drain(..));
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
            self.unread.insert(run + 1, self.unread[run]);
        }
    }
}

/// Working memory of [`Memory::write`]: the runs that replace those of the span.
#[derive(Debug, Default)]
pub(super) struct Fresh {
    starts: Vec<usize>,
    values: Vec<Value>,
    unread: Vec<u32>,
}
