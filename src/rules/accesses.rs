//! The times of the last reads and writes of each part of a rank's buffer: rule 2 for finished
//! steps.

use std::ops::Range;

use smallvec::SmallVec;

use crate::schedule::Span;

/// The maximum of two times (neither is NaN).
#[inline]
pub(crate) fn max_time(a: f64, b: f64) -> f64 {
    if b > a { b } else { a }
}

/// Times under several cost models at once.
pub(crate) type Times<const N: usize> = [f64; N];

/// Sets `time` to the maximum of both times, for each model.
#[inline]
pub(crate) fn advance<const N: usize>(time: &mut Times<N>, other: &Times<N>) {
    for (t, o) in time.iter_mut().zip(other) {
        *t = max_time(*t, *o);
    }
}

/// A part of the buffer, with the end of the last step that wrote it, and the last end of that step
/// and of those that have read it since.
#[derive(Debug, Clone, Copy)]
struct AccessedPart<const N: usize> {
    start: usize,
    end: usize,
    written: Times<N>,
    accessed: Times<N>,
}

/// Disjoint parts of one buffer, in order. Between them no access is recorded, and the times are 0.
#[derive(Debug, Clone, Default)]
pub(super) struct Accesses<const N: usize> {
    /// Unused places, then the parts. A reversed schedule goes through the buffer backwards: long
    /// lists have room in front, so that this does not move all parts with each new one.
    places: SmallVec<[AccessedPart<N>; 2]>,
    /// Number of unused places.
    room: usize,
    /// Number of parts from which on it is worth while to look for accesses that can be dropped.
    many: usize,
}

impl<const N: usize> Accesses<N> {
    /// Whether no access is recorded.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.parts().is_empty()
    }

    #[inline]
    fn parts(&self) -> &[AccessedPart<N>] {
        &self.places[self.room..]
    }

    #[inline]
    fn parts_mut(&mut self) -> &mut [AccessedPart<N>] {
        &mut self.places[self.room..]
    }

    /// Delays `time` until a step may read `span` (`writes` false), that is after the last write,
    /// or may write it, that is after the last read and write.
    #[inline]
    pub(super) fn wait(&self, span: Span, writes: bool, time: &mut Times<N>) {
        if span.len == 0 {
            return;
        }
        let parts = self.parts();
        let first = match parts {
            // A single part, as in a rank that sends one buffer repeatedly, needs no search.
            [only] => usize::from(only.end <= span.offset),
            _ => parts.partition_point(|part| part.end <= span.offset),
        };
        Self::wait_for(&parts[first..], span, writes, time);
    }

    /// As [`Accesses::wait`] for each of `spans`, which must be sorted by offset, in one pass over
    /// all parts.
    pub(super) fn wait_sorted(&self, spans: &[Span], writes: bool, time: &mut Times<N>) {
        let mut parts = self.parts();
        for &span in spans.iter().filter(|s| s.len > 0) {
            let ended = |part: &&AccessedPart<N>| part.end <= span.offset;
            parts = &parts[parts.iter().take_while(ended).count()..];
            Self::wait_for(parts, span, writes, time);
        }
    }

    /// Delays `time` by the accesses in `parts`, the parts that end after the start of `span`.
    #[inline]
    fn wait_for(parts: &[AccessedPart<N>], span: Span, writes: bool, time: &mut Times<N>) {
        for part in parts.iter().take_while(|part| part.start < span.end()) {
            advance(
                time,
                if writes {
                    &part.accessed
                } else {
                    &part.written
                },
            );
        }
    }

    /// Records that a step that reads or writes `span` ended at `time`.
    #[inline]
    pub(super) fn record(&mut self, span: Span, writes: bool, time: &Times<N>) {
        match self.parts_mut() {
            // A rank that sends or receives one buffer repeatedly needs no search.
            [part] if (part.start, part.end) == (span.offset, span.end()) => {
                if writes {
                    (part.written, part.accessed) = (*time, *time);
                } else {
                    advance(&mut part.accessed, time);
                }
            }
            _ if span.len == 0 => {}
            _ => self.record_among(span, writes, time),
        }
    }

    /// [`Accesses::record`] for parts of any number and a span that is not empty.
    fn record_among(&mut self, span: Span, writes: bool, time: &Times<N>) {
        let (start, end) = (span.offset, span.end());
        let first = self.cut(start);
        let last = self.cut(end);
        if writes {
            let part = AccessedPart {
                start,
                end,
                written: *time,
                accessed: *time,
            };
            if first < last {
                self.parts_mut()[first] = part;
                self.places.drain(self.room + first + 1..self.room + last);
            } else {
                self.insert(first, part);
            }
            return;
        }
        let mut at = first;
        let mut from = start;
        while from < end {
            match self.parts_mut().get_mut(at) {
                Some(part) if part.start == from => {
                    advance(&mut part.accessed, time);
                    from = part.end;
                }
                next => {
                    let to = next.map_or(end, |part| part.start.min(end));
                    let part = AccessedPart {
                        start: from,
                        end: to,
                        written: [0.0; N],
                        accessed: *time,
                    };
                    self.insert(at, part);
                    from = to;
                }
            }
            at += 1;
        }
    }

    /// As [`Accesses::record`] for each of `spans`, which must be sorted by offset, in one pass
    /// over all parts.
    pub(super) fn record_sorted(&mut self, spans: &[Span], writes: bool, time: &Times<N>) {
        let room = std::mem::take(&mut self.room);
        let mut old = std::mem::take(&mut self.places).into_iter().skip(room);
        let mut next = old.next();
        let parts = &mut self.places;
        for Range { start, end } in joined(spans) {
            while let Some(part) = next.take_if(|part| part.end <= start) {
                parts.push(part);
                next = old.next();
            }
            if let Some(part) = next.as_mut().filter(|part| part.start < start) {
                parts.push(AccessedPart {
                    end: start,
                    ..*part
                });
                part.start = start;
            }
            let mut from = start;
            while from < end {
                let known = next.as_mut().filter(|part| part.start == from);
                let Some(part) = known else {
                    let to = next.as_ref().map_or(end, |part| part.start.min(end));
                    if !writes {
                        parts.push(AccessedPart {
                            start: from,
                            end: to,
                            written: [0.0; N],
                            accessed: *time,
                        });
                    }
                    from = to;
                    continue;
                };
                let to = part.end.min(end);
                if !writes {
                    let mut read = AccessedPart { end: to, ..*part };
                    advance(&mut read.accessed, time);
                    parts.push(read);
                }
                part.start = to;
                if part.end == to {
                    next = old.next();
                }
                from = to;
            }
            if writes {
                parts.push(AccessedPart {
                    start,
                    end,
                    written: *time,
                    accessed: *time,
                });
            }
        }
        parts.extend(next);
        parts.extend(old);
    }

    /// Drops accesses that ended before `time`, if that is cheap or `thorough` is set.
    #[inline]
    pub(super) fn forget(&mut self, time: &Times<N>, thorough: bool) {
        let recent = |part: &mut AccessedPart<N>| {
            let mut times = part.accessed.iter().zip(time);
            times.any(|(accessed, time)| accessed > time)
        };
        match self.parts_mut() {
            [] => {}
            [only] => {
                if !recent(only) {
                    self.drop_all();
                }
            }
            parts => {
                if thorough || parts.len() >= self.many {
                    self.places.drain(..self.room);
                    self.room = 0;
                    self.places.retain(recent);
                    self.shrink();
                    self.many = self.places.capacity().max(2 * self.places.len());
                }
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.drop_all();
        self.shrink();
    }

    #[inline]
    fn drop_all(&mut self) {
        self.places.clear();
        self.room = 0;
    }

    /// Frees a large allocation that is mostly unused: each of many ranks has one.
    fn shrink(&mut self) {
        if self.places.capacity() > 256.max(4 * self.places.len()) {
            self.places.shrink_to_fit();
        }
    }

    /// Inserts a part before the part with number `at`.
    fn insert(&mut self, at: usize, part: AccessedPart<N>) {
        /// Shorter lists are moved quickly.
        const LONG: usize = 32;
        let parts = self.parts().len();
        if parts < LONG || at > parts / 2 {
            self.places.insert(self.room + at, part);
            return;
        }
        if self.room == 0 {
            self.room = parts;
            self.places.insert_many(0, std::iter::repeat_n(part, parts));
        }
        self.room -= 1;
        let parts = self.parts_mut();
        parts.copy_within(1..=at, 0);
        parts[at] = part;
    }

    /// Splits the part that extends across `offset`, if any; returns the first part from `offset`
    /// on.
    fn cut(&mut self, offset: usize) -> usize {
        let at = self.parts().partition_point(|part| part.end <= offset);
        match self.parts_mut().get_mut(at) {
            Some(part) if part.start < offset => {
                let lower = AccessedPart {
                    end: offset,
                    ..*part
                };
                part.start = offset;
                self.insert(at, lower);
                at + 1
            }
            _ => at,
        }
    }
}

/// The ranges that `spans`, sorted by offset, cover; adjacent and overlapping spans are joined.
fn joined(spans: &[Span]) -> impl Iterator<Item = Range<usize>> {
    let mut spans = spans.iter().filter(|s| s.len > 0).peekable();
    std::iter::from_fn(move || {
        let first = spans.next()?;
        let mut end = first.end();
        while let Some(span) = spans.next_if(|s| s.offset <= end) {
            end = end.max(span.end());
        }
        Some(first.offset..end)
    })
}
