//! The model clock of rank programs.

use crate::cost::Ports;
use crate::schedule::Span;
use crate::simulate::later;

/// The port out of a bidirectional rank; all of a unidirectional one.
pub(super) const OUT: usize = 0;
/// The port in.
pub(super) const IN: usize = 1;

/// The model clock of a program that is not known in advance: the rules of time, evaluated as steps come.
#[derive(Debug)]
pub(super) struct OnlineClock {
    bidirectional: bool,
    overlap: bool,
    /// When each port list is free.
    pub(super) lists: [f64; 2],
    /// When the last computation ended that everything waits for.
    floor: f64,
    /// What earlier steps did to which span, until when; only what can still delay something.
    touches: Vec<(Span, bool, f64)>,
    pub(super) finish: f64,
}

impl OnlineClock {
    pub(super) fn new(ports: Ports, overlap: bool) -> Self {
        OnlineClock {
            bidirectional: ports.is_bidirectional(),
            overlap,
            lists: [0.0; 2],
            floor: 0.0,
            touches: Vec::new(),
            finish: 0.0,
        }
    }

    pub(super) fn list(&self, direction: usize) -> usize {
        if self.bidirectional { direction } else { OUT }
    }

    /// When a transfer may start.
    pub(super) fn start(&self, direction: usize, reads: &[Span], writes: &[Span]) -> f64 {
        later(
            self.lists[self.list(direction)],
            self.data_ready(reads, writes),
        )
    }

    pub(super) fn data_ready(&self, reads: &[Span], writes: &[Span]) -> f64 {
        self.touches
            .iter()
            .filter(|(span, written, _)| {
                writes.iter().any(|w| w.overlaps(*span))
                    || (*written && reads.iter().any(|r| r.overlaps(*span)))
            })
            .fold(self.floor, |t, &(_, _, end)| later(t, end))
    }

    pub(super) fn transferred(&mut self, direction: usize, end: f64) {
        let list = self.list(direction);
        self.lists[list] = end;
        self.finish = later(self.finish, end);
    }

    /// A computation that waits for everything and that everything waits for; when it ends.
    pub(super) fn compute(&mut self, time: f64) -> f64 {
        let start = self.lists.iter().copied().fold(self.floor, later);
        self.floor = start + time;
        self.lists = [self.floor; 2];
        self.touches.clear();
        self.finish = later(self.finish, self.floor);
        self.floor
    }

    pub(super) fn touched(&mut self, span: Span, written: bool, end: f64) {
        self.finish = later(self.finish, end);
        // What ended before every port is free delays no transfer; with overlap it may still delay a computation.
        let free = if self.bidirectional {
            self.lists[OUT].min(self.lists[IN])
        } else {
            self.lists[OUT]
        };
        if !self.overlap {
            self.touches.retain(|t| t.2 > free);
        }
        self.touches.push((span, written, end));
    }
}
