//! The model clock of rank programs whose steps are not known in advance.

use std::hint::black_box;
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use crate::machine::{CostModel, Ports};
use crate::rules::max_time;
use crate::schedule::Span;

/// The port for sending of a bidirectional rank; the only port of a unidirectional one.
pub(super) const OUT: usize = 0;
/// The port for receiving of a bidirectional rank.
pub(super) const IN: usize = 1;

/// Measures the wall-clock time that both ends together spend on the model clock for `messages`
/// messages of `bytes` bytes between two bidirectional ranks.
///
/// It counts the arithmetic of both clocks only. The cache line on which the clock travels is not
/// included, since the message needs it anyway.
pub fn clock_work(bytes: usize, messages: u64) -> Duration {
    let cost = black_box(CostModel::new(1000.0, 0.1));
    let [mut sender, mut receiver] = [(); 2].map(|()| OnlineClock::new(Ports::BI, false));
    let span = black_box(Span::new(0, bytes));
    let start = Instant::now();
    for _ in 0..messages {
        let theirs = black_box(sender.start(OUT, &[span], &[]));
        let ready = receiver.start(IN, &[], &[span]);
        let duration = cost.transfer(0, 1, span.len as u64);
        let end = black_box(max_time(ready, theirs) + duration);
        receiver.transferred(IN, end);
        receiver.touched(span, true, end);
        sender.transferred(OUT, end);
        sender.touched(span, false, end);
    }
    let time = start.elapsed();
    black_box((sender.finish, receiver.finish));
    time
}

/// Number of touches that are searched before those that no longer matter are removed.
const TOUCHES: usize = 4;

/// The model clock of a program that is not known in advance: it applies the rules of time to each
/// step as it comes.
#[derive(Debug)]
pub(super) struct OnlineClock {
    bidirectional: bool,
    overlap: bool,
    /// When each port list is free.
    pub(super) lists: [f64; 2],
    /// End of the last computation that all later steps wait for.
    pub(super) floor: f64,
    /// Spans that earlier steps touched: whether they wrote it, and when they ended. Only touches
    /// that can still delay a step are kept.
    touches: SmallVec<[(Span, bool, f64); TOUCHES]>,
    pub(super) finish: f64,
}

impl OnlineClock {
    pub(super) fn new(ports: Ports, overlap: bool) -> Self {
        OnlineClock {
            bidirectional: ports.is_bidirectional(),
            overlap,
            lists: [0.0; 2],
            floor: 0.0,
            touches: SmallVec::new(),
            finish: 0.0,
        }
    }

    #[inline]
    pub(super) fn list(&self, direction: usize) -> usize {
        if self.bidirectional { direction } else { OUT }
    }

    /// The model time at which a transfer may start.
    #[inline]
    pub(super) fn start(&self, direction: usize, reads: &[Span], writes: &[Span]) -> f64 {
        let free = max_time(self.lists[self.list(direction)], self.floor);
        self.data_ready(free, reads, writes)
    }

    /// The earliest time from `from` on at which a step may read `reads` and write `writes`.
    #[inline]
    pub(super) fn data_ready(&self, from: f64, reads: &[Span], writes: &[Span]) -> f64 {
        let mut ready = from;
        for &(span, written, end) in &self.touches {
            let delays = end > ready
                && (writes.iter().any(|w| w.overlaps(span))
                    || (written && reads.iter().any(|r| r.overlaps(span))));
            if delays {
                ready = end;
            }
        }
        ready
    }

    #[inline]
    pub(super) fn transferred(&mut self, direction: usize, end: f64) {
        let list = self.list(direction);
        self.lists[list] = end;
        self.finish = max_time(self.finish, end);
    }

    /// A computation that waits for all earlier steps and that all later steps wait for. Returns
    /// its end.
    pub(super) fn compute(&mut self, time: f64) -> f64 {
        let start = self.lists.iter().copied().fold(self.floor, max_time);
        self.floor = start + time;
        self.lists = [self.floor; 2];
        self.touches.clear();
        self.finish = max_time(self.finish, self.floor);
        self.floor
    }

    #[inline]
    pub(super) fn touched(&mut self, span: Span, written: bool, end: f64) {
        self.finish = max_time(self.finish, end);
        // A touch that ended before every port is free delays nothing. With overlap, every touch
        // may still delay a computation.
        let free = match (self.overlap, self.bidirectional) {
            (true, _) => f64::NEG_INFINITY,
            (false, true) => self.lists[OUT].min(self.lists[IN]),
            (false, false) => self.lists[OUT],
        };
        if end <= free {
            return;
        }
        let mut same = self.touches.iter_mut();
        if let Some(same) = same.find(|t| (t.0, t.1) == (span, written)) {
            // Repeated sends of the same span count as one touch.
            same.2 = max_time(same.2, end);
            return;
        }
        if self.touches.len() >= TOUCHES {
            self.touches.retain(|t| t.2 > free);
        }
        self.touches.push((span, written, end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sending_the_same_again_adds_nothing() {
        let mut clock = OnlineClock::new(Ports::BI, false);
        let vector = Span::new(0, 8);
        for end in 1..=100 {
            clock.transferred(OUT, f64::from(end));
            clock.touched(vector, false, f64::from(end));
        }
        assert_eq!(clock.touches.len(), 1);
        // A step that overwrites the span waits for the last send.
        assert_eq!(clock.start(IN, &[], &[vector]), 100.0);
        assert_eq!(clock.start(IN, &[], &[Span::new(8, 1)]), 0.0);
    }
}
