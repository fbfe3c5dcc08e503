//! The incremental analysis of rules 1 to 3: when a step may start, for steps as they come.
//!
//! The streaming simulator and the model clock of endpoints use it. It agrees with
//! [`LocalOrder`](super::LocalOrder), which needs the whole program.
//!
//! Of finished steps only two things are kept: the time from which each port is free
//! ([`PortTimes`]), and for each part of the buffer the times of its last read and write, as long
//! as these are later than the times implied by all ports. Steps that have not finished are
//! compared with each other by [`must_precede`].

use super::accesses::{Accesses, Times, advance};
use crate::machine::Ports;
use crate::schedule::Span;

/// The spans that a step reads and writes. Long lists ([`sort_if_long`]) are sorted by offset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access<'a> {
    pub(crate) reads: &'a [Span],
    pub(crate) writes: &'a [Span],
}

/// What rules 1 to 3 need to know of a step that has not finished.
pub(crate) trait Unfinished {
    /// The spans that the step reads and writes.
    fn access(&self) -> Access<'_>;
    /// The port list of a transfer.
    fn port_list(&self) -> Option<usize>;
    /// Whether the step copies or combines, by itself or after its transfer.
    fn computes(&self) -> bool;
}

/// The times from which the ports of one rank are free.
pub(crate) trait PortTimes<const N: usize> {
    /// The time from which all ports are free.
    fn all_free(&self) -> Times<N>;
    /// The time before which no port is free: a lower bound on the start of every later step.
    fn min_free(&self) -> Times<N>;
    /// Makes all ports free from `time` on.
    fn delay_all(&mut self, time: &Times<N>);
}

/// The finished steps of one rank: when they let later steps start. Times under `N` cost models.
#[derive(Debug, Clone, Default)]
pub(crate) struct OnlineOrder<const N: usize> {
    /// Accesses that the times of the free ports do not imply.
    accesses: Accesses<N>,
}

impl<const N: usize> OnlineOrder<N> {
    /// The earliest start of a transfer on a port that is free from `free` on (rules 1 and 2).
    #[inline]
    pub(crate) fn transfer_start(&self, mut free: Times<N>, access: Access<'_>) -> Times<N> {
        self.wait(access, &mut free);
        free
    }

    /// The earliest start of a local step of a rank that arrived at `arrival` (rules 2 and 3).
    #[inline]
    pub(crate) fn local_start(
        &self,
        ports: &impl PortTimes<N>,
        access: Access<'_>,
        overlap: bool,
        arrival: Times<N>,
    ) -> Times<N> {
        if !overlap {
            return ports.all_free();
        }
        let mut start = arrival;
        self.wait(access, &mut start);
        start
    }

    /// The earliest start of the combining part of a receive whose transfer ended at `received`
    /// (rule 3).
    #[inline]
    pub(crate) fn combining_start(
        ports: &impl PortTimes<N>,
        received: Times<N>,
        overlap: bool,
    ) -> Times<N> {
        if overlap { received } else { ports.all_free() }
    }

    /// Records that a computation ended at `end` (rule 3). The ports must be up to date.
    #[inline]
    pub(crate) fn computed(
        &mut self,
        ports: &mut impl PortTimes<N>,
        access: Access<'_>,
        overlap: bool,
        end: &Times<N>,
    ) {
        if overlap {
            self.record(access, end);
        } else {
            // All earlier steps have ended, and all later steps start later.
            self.accesses.clear();
            ports.delay_all(end);
        }
    }

    /// Records that a transfer ended at `end`, unless the ports, which must be up to date, imply
    /// that later steps start later.
    #[inline]
    pub(crate) fn transferred(
        &mut self,
        ports: &impl PortTimes<N>,
        access: Access<'_>,
        overlap: bool,
        end: &Times<N>,
    ) {
        if !overlap {
            let implied = ports.min_free();
            let long = access.reads.len() + access.writes.len() > LONG;
            self.accesses.forget(&implied, long);
            if end
                .iter()
                .zip(&implied)
                .all(|(end, implied)| end <= implied)
            {
                return;
            }
        }
        self.record(access, end);
    }

    /// Delays `from` until finished steps have read and written the data of `access` (rule 2).
    #[inline]
    fn wait(&self, access: Access<'_>, from: &mut Times<N>) {
        match (access.reads, access.writes) {
            _ if self.accesses.is_empty() => {}
            (&[span], []) => self.accesses.wait(span, false, from),
            ([], &[span]) => self.accesses.wait(span, true, from),
            _ => self.wait_all(access, from),
        }
    }

    fn wait_all(&self, access: Access<'_>, from: &mut Times<N>) {
        for (spans, writes) in [(access.reads, false), (access.writes, true)] {
            if is_long(spans) {
                self.accesses.wait_sorted(spans, writes, from);
            } else {
                for span in spans {
                    self.accesses.wait(*span, writes, from);
                }
            }
        }
    }

    #[inline]
    fn record(&mut self, access: Access<'_>, end: &Times<N>) {
        match (access.reads, access.writes) {
            (&[span], []) => self.accesses.record(span, false, end),
            ([], &[span]) => self.accesses.record(span, true, end),
            _ => self.record_all(access, end),
        }
    }

    fn record_all(&mut self, access: Access<'_>, end: &Times<N>) {
        for (spans, writes) in [(access.reads, false), (access.writes, true)] {
            if is_long(spans) {
                self.accesses.record_sorted(spans, writes, end);
            } else {
                for span in spans {
                    self.accesses.record(*span, writes, end);
                }
            }
        }
    }
}

/// Whether `earlier`, which has not finished, must finish before `later`, a later step of the same
/// rank, starts (rules 1 to 3). Of rule 1 only that of lists: see [`OnePorted::new`].
#[inline]
pub(crate) fn must_precede<S: Unfinished>(earlier: &S, later: &S, overlap: bool) -> bool {
    let list = later.port_list();
    if !overlap && (list.is_none() || earlier.computes()) {
        return true;
    }
    if list.is_some() && list == earlier.port_list() {
        return true;
    }
    let (earlier, later) = (earlier.access(), later.access());
    any_overlap(earlier.writes, later.writes)
        || any_overlap(earlier.writes, later.reads)
        || any_overlap(earlier.reads, later.writes)
}

/// Whether the combining part of a receive may start after its transfer, if `earlier` earlier steps
/// of the rank have not finished (rule 3).
#[inline]
pub(crate) fn may_combine(earlier: usize, overlap: bool) -> bool {
    overlap || earlier == 0
}

/// The times from which the port lists of a one-ported rank are free.
#[derive(Debug, Clone)]
pub(crate) struct OnePorted<const N: usize> {
    ports: Ports,
    /// By list. A unidirectional rank uses the first one only.
    lists: [Times<N>; 2],
}

impl<const N: usize> OnePorted<N> {
    /// Ports that are free from `arrival` on.
    pub(crate) fn new(ports: Ports, arrival: Times<N>) -> Self {
        // What a step of a call waits for depends on partners: see `LocalOrder`.
        debug_assert!(ports.waits_by_list());
        OnePorted {
            ports,
            lists: [arrival; 2],
        }
    }

    /// The time from which the port for sending or receiving is free.
    #[inline]
    pub(crate) fn free(&self, sends: bool) -> Times<N> {
        self.lists[self.ports.list(sends, 0)]
    }

    /// Makes the port for sending or receiving free from `end` on.
    #[inline]
    pub(crate) fn occupy(&mut self, sends: bool, end: Times<N>) {
        self.lists[self.ports.list(sends, 0)] = end;
    }
}

impl<const N: usize> PortTimes<N> for OnePorted<N> {
    #[inline]
    fn all_free(&self) -> Times<N> {
        // The second list of a unidirectional rank is never later than the first.
        let mut time = self.lists[0];
        advance(&mut time, &self.lists[1]);
        time
    }

    #[inline]
    fn min_free(&self) -> Times<N> {
        let mut time = self.lists[0];
        if self.ports.has_sides() {
            for (t, &second) in time.iter_mut().zip(&self.lists[1]) {
                if second < *t {
                    *t = second;
                }
            }
        }
        time
    }

    #[inline]
    fn delay_all(&mut self, time: &Times<N>) {
        self.lists = [*time; 2];
    }
}

/// Lists of more spans are sorted by offset, because one pass over the whole buffer is then no more
/// expensive than a search for each span.
const LONG: usize = 8;

#[inline]
fn is_long(spans: &[Span]) -> bool {
    spans.len() > LONG
}

/// Sorts a long list of spans by offset. Neither times nor numbers of elements depend on the order.
#[inline]
pub(crate) fn sort_if_long(spans: &mut [Span]) {
    if is_long(spans) {
        // A stable sort, because such lists consist of few ascending runs.
        spans.sort_by_key(|s| s.offset);
    }
}

/// Whether a span of one list overlaps a span of the other.
#[inline]
fn any_overlap(a: &[Span], b: &[Span]) -> bool {
    if is_long(a) && is_long(b) {
        return any_overlap_sorted(a, b);
    }
    a.iter().any(|x| b.iter().any(|y| x.overlaps(*y)))
}

/// As [`any_overlap`], in linear time, for lists that are sorted by offset. Spans within one list
/// may overlap.
fn any_overlap_sorted(mut a: &[Span], mut b: &[Span]) -> bool {
    while let (Some((x, later_a)), Some((y, later_b))) = (a.split_first(), b.split_first()) {
        if x.overlaps(*y) {
            return true;
        }
        // A span that ends before the other list's next span starts does not overlap later spans
        // either.
        if x.len == 0 || x.end() <= y.offset {
            a = later_a;
        } else {
            b = later_b;
        }
    }
    false
}
