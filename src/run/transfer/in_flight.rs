//! Sends that have not been answered, and the messages of a rank that refer to its memory and whose
//! sender did not wait.

use super::packed::any_overlap;
use super::protocol::{Lane, Wire};
use crate::schedule::Span;

/// A send whose receiver has not answered yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnansweredSend<'r> {
    pub(super) wire: &'r Wire,
    pub(super) to: usize,
    pub(super) spans: SendSpans<'r>,
}

/// The spans of an open send: one by value, or several by a reference that outlives the run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SendSpans<'r> {
    /// One span.
    One(Span),
    /// Several.
    Many(&'r [Span]),
}

impl SendSpans<'_> {
    #[inline]
    pub(super) fn as_slice(&self) -> &[Span] {
        match self {
            SendSpans::One(span) => std::slice::from_ref(span),
            SendSpans::Many(spans) => spans,
        }
    }
}

/// The messages of a rank whose sender did not wait: the last one of each lane.
#[derive(Debug)]
pub(super) struct LastMessages<'r> {
    messages: Vec<LaneMessage<'r>>,
    /// Where the first span of these messages starts, and the last one ends.
    range: (usize, usize),
    /// How many of them are long.
    long: usize,
}

/// A message that its sender has left in its memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct LaneMessage<'r> {
    pub(super) lane: &'r Lane,
    pub(super) send: UnansweredSend<'r>,
    /// The step of the sender.
    pub(super) step: usize,
    /// Whether its receiver may ask its sender for help.
    pub(super) long: bool,
}

impl<'r> LastMessages<'r> {
    pub(super) fn new() -> Self {
        LastMessages {
            messages: Vec::new(),
            range: (usize::MAX, 0),
            long: 0,
        }
    }

    /// Adds a message. The lane's last one must have been forgotten.
    #[inline]
    pub(super) fn add(&mut self, message: LaneMessage<'r>) {
        self.messages.push(message);
        self.long += usize::from(message.long);
        let (start, end) = &mut self.range;
        for span in message.send.spans.as_slice() {
            (*start, *end) = ((*start).min(span.offset), (*end).max(span.end()));
        }
    }

    /// Forgets the lane's last message, which has been received.
    #[inline]
    pub(super) fn forget(&mut self, lane: &Lane) {
        let mut messages = self.messages.iter();
        if let Some(at) = messages.position(|m| std::ptr::eq(m.lane, lane)) {
            let forgotten = self.messages.swap_remove(at);
            self.long -= usize::from(forgotten.long);
        }
    }

    /// The long messages.
    #[inline]
    pub(super) fn long(&self) -> impl Iterator<Item = &LaneMessage<'r>> {
        let messages: &[_] = if self.long > 0 { &self.messages } else { &[] };
        messages.iter().filter(|m| m.long)
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
        let touched = |m: &LaneMessage<'_>| {
            any_overlap(m.send.spans.as_slice(), spans) && !m.lane.is_settled()
        };
        self.messages.iter().any(touched)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Removes all messages. Returns their lanes.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = &'r Lane> {
        self.long = 0;
        self.messages.drain(..).map(|message| message.lane)
    }
}
