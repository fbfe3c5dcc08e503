//! Rounds that do not depend on each other, several of them in flight at a time.
//!
//! Round `i` goes through port `i` modulo `k`. If `k` does not divide the number of rounds, only
//! some ports would have a message in the end. The messages of these last rounds are split into
//! parts for more of the ports if that takes less time.
//!
//! Example, 5 rounds through 3 ports: 0, 1 and 2 as a whole; 3 and 4 in three parts each, two for
//! every port, which takes 2/3 of the time of a round where beta dominates.

use super::rounds::Rounds;
use crate::machine::Ports;
use crate::plan::Request;
use crate::schedule::{Span, Spans};

/// By how much parts multiply the messages of a rank at most.
const MAX_FACTOR: usize = 4;

/// Rounds of which each message is a single span, in flight through all ports.
#[derive(Debug, Clone)]
pub(in crate::plan) struct InFlight<R> {
    pub(in crate::plan) rounds: R,
    /// Number of the rounds whose messages are not split: a multiple of the number of ports if
    /// others follow.
    whole: usize,
    parts: usize,
}

/// How many of `count` rounds are not split, and the number of parts of the others, where the
/// longest message has `elements` elements.
fn split(request: &Request, count: usize, elements: usize) -> (usize, usize) {
    let k = request.ports.k();
    let last = count % k;
    if last == 0 {
        return (count, 1);
    }
    let most = (MAX_FACTOR * count / last).min(k).min(elements).max(1);
    let time = |&parts: &usize| time_of_parts(request, last, parts, elements);
    let parts = (1..=most).min_by(|a, b| time(a).total_cmp(&time(b)));
    (count - last, parts.unwrap_or(1))
}

/// The time of `last` messages in `parts` parts each, through all ports.
fn time_of_parts(request: &Request, last: usize, parts: usize, elements: usize) -> f64 {
    let messages = (last * parts).div_ceil(request.ports.k());
    messages as f64 * request.transfer_time(elements.div_ceil(parts))
}

/// The time of the messages that a rank sends, or receives, in `count` rounds, of `elements`
/// elements each; `None` if parts are of different sizes.
pub(in crate::plan) fn time(request: &Request, count: usize, elements: usize) -> Option<f64> {
    let (whole, parts) = split(request, count, elements);
    let rounds = (whole / request.ports.k()) as f64;
    elements.is_multiple_of(parts).then(|| {
        rounds * request.transfer_time(elements)
            + time_of_parts(request, count - whole, parts, elements)
    })
}

impl<R: Rounds> InFlight<R> {
    /// The rounds, where the longest message has `elements` elements. Messages of unknown length
    /// are not split.
    pub(in crate::plan) fn new(
        request: &Request,
        rounds: R,
        elements: Option<usize>,
    ) -> InFlight<R> {
        let (whole, parts) = split(request, rounds.count(), elements.unwrap_or(0));
        InFlight {
            rounds,
            whole,
            parts,
        }
    }

    #[inline]
    fn of(&self, i: usize) -> (usize, usize) {
        match i.checked_sub(self.whole) {
            None => (i, 0),
            Some(i) => (self.whole + i / self.parts, i % self.parts),
        }
    }

    /// A part of the message, if it is not empty.
    #[inline]
    fn part(
        &self,
        i: usize,
        part: usize,
        message: Option<(usize, Spans)>,
    ) -> Option<(usize, Spans)> {
        if i < self.whole || self.parts == 1 {
            return message;
        }
        let (peer, spans) = message?;
        let span = spans[0];
        debug_assert_eq!(spans.len(), 1);
        let (small, larger) = (span.len / self.parts, span.len % self.parts);
        let before = part * small + part.min(larger);
        let len = small + usize::from(part < larger);
        (len > 0).then(|| (peer, Span::new(span.offset + before, len).into()))
    }
}

impl<R: Rounds> Rounds for InFlight<R> {
    fn count(&self) -> usize {
        self.whole + (self.rounds.count() - self.whole) * self.parts
    }

    #[inline]
    fn sent(&self, i: usize, rank: usize) -> Option<(usize, Spans)> {
        let (round, part) = self.of(i);
        self.part(i, part, self.rounds.sent(round, rank))
    }

    #[inline]
    fn received(&self, i: usize, rank: usize) -> Option<(usize, Spans)> {
        let (round, part) = self.of(i);
        self.part(i, part, self.rounds.received(round, rank))
    }

    #[inline]
    fn receives_first(&self, i: usize, rank: usize, backwards: bool) -> bool {
        let (round, _) = self.of(i);
        self.rounds.receives_first(round, rank, backwards)
    }

    fn is_uniform(&self, ports: Ports) -> bool {
        self.rounds.is_uniform(ports)
    }

    #[inline]
    fn port(&self, i: usize, ports: usize) -> usize {
        i % ports
    }
}
