//! The model clock of rank programs whose steps are not known in advance.

use crate::machine::Ports;
use crate::rules::max_time;
use crate::rules::online::{Access, OnePorted, OnlineOrder};
use crate::schedule::Span;

/// The port for sending of a bidirectional rank; the only port of a unidirectional one.
pub(crate) const OUT: usize = 0;
/// The port for receiving of a bidirectional rank.
pub(crate) const IN: usize = 1;

/// The model clock of a program that is not known in advance: it applies the rules of time to each
/// step as it comes.
#[derive(Debug)]
pub struct OnlineClock {
    overlap: bool,
    ports: OnePorted<1>,
    order: OnlineOrder<1>,
    arrival: f64,
    /// The end of the last finished step.
    pub finish: f64,
}

impl OnlineClock {
    /// The clock of a rank that takes part from `arrival` on.
    pub fn new(ports: Ports, overlap: bool, arrival: f64) -> Self {
        OnlineClock {
            overlap,
            ports: OnePorted::new(ports, [arrival]),
            order: OnlineOrder::default(),
            arrival,
            finish: arrival,
        }
    }

    /// The port list of a transfer in this direction.
    #[inline]
    pub(super) fn list(&self, direction: usize) -> usize {
        self.ports.list(direction == OUT)
    }

    /// The model time from which the port of this direction is free.
    #[inline]
    pub(super) fn free(&self, direction: usize) -> f64 {
        let [free] = self.ports.free(direction == OUT);
        free
    }

    /// The model time at which a transfer may start.
    #[inline]
    pub fn start(&self, direction: usize, reads: &[Span], writes: &[Span]) -> f64 {
        let free = self.ports.free(direction == OUT);
        let [start] = self.order.transfer_start(free, Access { reads, writes });
        start
    }

    /// A transfer in this direction ended at `end`, which frees its port.
    #[inline]
    pub fn transferred(&mut self, direction: usize, reads: &[Span], writes: &[Span], end: f64) {
        self.ports.occupy(direction == OUT, [end]);
        let access = Access { reads, writes };
        self.order
            .transferred(&self.ports, access, self.overlap, &[end]);
        self.finish = max_time(self.finish, end);
    }

    /// The transfer of a combining receive ended at `received` and the combination takes `time`.
    /// All earlier steps must have ended unless computation overlaps. Returns the end of the
    /// combination.
    pub(super) fn combined(&mut self, writes: &[Span], received: f64, time: f64) -> f64 {
        self.ports.occupy(false, [received]);
        let [start] = OnlineOrder::combining_start(&self.ports, [received], self.overlap);
        self.computed(&[], writes, start + time)
    }

    /// A local step that takes `time`. All earlier steps must have ended unless computation
    /// overlaps. Returns its end.
    pub(super) fn local(&mut self, reads: &[Span], writes: &[Span], time: f64) -> f64 {
        let access = Access { reads, writes };
        let arrival = [self.arrival];
        let [start] = (self.order).local_start(&self.ports, access, self.overlap, arrival);
        self.computed(reads, writes, start + time)
    }

    fn computed(&mut self, reads: &[Span], writes: &[Span], end: f64) -> f64 {
        let access = Access { reads, writes };
        self.order
            .computed(&mut self.ports, access, self.overlap, &[end]);
        self.finish = max_time(self.finish, end);
        end
    }
}
