//! The messages of a rank that refer to its memory and whose sender did not wait.

use super::packed::any_overlap;
use super::protocol::Lane;
use crate::schedule::Span;

/// The last such message of each lane.
#[derive(Debug)]
pub(super) struct LastMessages<'r> {
    messages: Vec<LaneMessage<'r>>,
    /// Where the first span of these messages starts, and the last one ends.
    range: (usize, usize),
}

#[derive(Debug)]
struct LaneMessage<'r> {
    lane: &'r Lane,
    spans: &'r [Span],
}

impl<'r> LastMessages<'r> {
    pub(super) fn new() -> Self {
        LastMessages {
            messages: Vec::new(),
            range: (usize::MAX, 0),
        }
    }

    /// Adds a message. The lane's last one must have been forgotten.
    #[inline]
    pub(super) fn add(&mut self, lane: &'r Lane, spans: &'r [Span]) {
        self.messages.push(LaneMessage { lane, spans });
        let (start, end) = &mut self.range;
        for span in spans {
            (*start, *end) = ((*start).min(span.offset), (*end).max(span.end()));
        }
    }

    /// Forgets the lane's last message, which has been received.
    #[inline]
    pub(super) fn forget(&mut self, lane: &Lane) {
        let mut messages = self.messages.iter();
        if let Some(at) = messages.position(|m| std::ptr::eq(m.lane, lane)) {
            self.messages.swap_remove(at);
        }
    }

    /// Whether the receiver of a message may be reading one of `spans`.
    #[inline]
    pub(super) fn overlaps(&self, spans: &[Span]) -> bool {
        let (start, end) = self.range;
        let near = |s: &Span| s.offset < end && s.end() > start;
        spans.iter().any(near) && self.overlaps_a_message(spans)
    }

    #[inline(never)]
    fn overlaps_a_message(&self, spans: &[Span]) -> bool {
        let touched = |m: &LaneMessage<'_>| any_overlap(m.spans, spans) && !m.lane.is_settled();
        self.messages.iter().any(touched)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Removes all messages. Returns their lanes.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = &'r Lane> {
        self.messages.drain(..).map(|message| message.lane)
    }
}
