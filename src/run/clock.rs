//! The model clock of rank programs whose steps are not known in advance.

use crate::machine::Ports;
use crate::rules::max_time;
use crate::rules::online::{Access, OnePorted, OnlineOrder};
use crate::schedule::Span;

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

    /// The model time from which the port for sending is free, or that for receiving.
    #[inline]
    pub(super) fn free(&self, sends: bool) -> f64 {
        let [free] = self.ports.free(sends);
        free
    }

    /// The model time at which a send may start, or a receive.
    #[inline]
    pub fn start(&self, sends: bool, reads: &[Span], writes: &[Span]) -> f64 {
        let free = self.ports.free(sends);
        let [start] = self.order.transfer_start(free, Access { reads, writes });
        start
    }

    /// A send ended at `end`, or a receive, which frees its port.
    #[inline]
    pub fn transferred(&mut self, sends: bool, reads: &[Span], writes: &[Span], end: f64) {
        self.ports.occupy(sends, [end]);
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
