//! One rank's window on its program: the steps that have been taken from it and have not finished.

use std::collections::HashMap;

use smallvec::SmallVec;

use super::slots::key;
use crate::error::{Error, Result};
use crate::machine::Ports;
use crate::rules::matching::rank_u32;
use crate::rules::online::{Access, OnlineOrder, Unfinished, must_precede, sort_if_long};
use crate::schedule::{Span, Spans, Step, total_len};

/// Initial window width: one step for each port of a one-ported bidirectional rank, and one between
/// them.
pub(super) const INITIAL_WINDOW: usize = 3;

/// The number of spans from which a step is heavy. It is large, so that the time to generate the
/// spans hides the time of more visits.
const MIN_HEAVY_SPANS: usize = 256;

/// The state of one rank: its program, window and past accesses.
pub(super) struct StreamRank<'a, const N: usize> {
    program: Box<dyn Iterator<Item = Step> + 'a>,
    /// Indexed as a slice, since an index of the vector itself is a call.
    pub(super) window: SmallVec<[Pending; INITIAL_WINDOW]>,
    /// The finished steps.
    pub(super) order: OnlineOrder<N>,
    /// Length of the buffer, in elements.
    len: usize,
    /// Number of steps taken from the program.
    taken: u32,
    pub(super) ended: bool,
    /// Whether the rank takes no step, while its window is not empty, until its next visit.
    pub(super) paused: bool,
    /// Number of transfers taken from the program, by partner and direction, if ranks have several
    /// ports.
    #[expect(
        clippy::box_collection,
        reason = "keeps ranks small: most have one port"
    )]
    counts: Option<Box<HashMap<(u32, bool), u32>>>,
}

/// An unfinished step, stored compactly because the windows of all ranks pass through the
/// processor's caches.
#[derive(Debug)]
pub(super) struct Pending {
    /// The spans that a send reads. For other steps the written spans, followed by the spans that a
    /// local step reads.
    spans: Spans,
    /// For a transfer, the rank at the other end; for a local step, the number of written spans.
    peer: u32,
    /// Index of the step in the program.
    pub(super) index: u32,
    /// Number of earlier transfers with the same partner in the same direction, if ranks have
    /// several ports.
    number: u32,
    /// The port list of a transfer.
    list: u16,
    pub(super) kind: Act,
    pub(super) state: StepState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Send,
    Recv,
    RecvCombine,
    Copy,
    Combine,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepState {
    Waits,
    Open,
    /// A combining receive whose transfer has ended.
    Transferred,
}

impl Act {
    #[inline]
    pub(super) fn is_transfer(self) -> bool {
        matches!(self, Act::Send | Act::Recv | Act::RecvCombine)
    }

    #[inline]
    pub(super) fn computes(self) -> bool {
        !matches!(self, Act::Send | Act::Recv)
    }

    /// As [`Step::name`].
    pub(super) fn name(self) -> &'static str {
        match self {
            Act::Send => "send",
            Act::Recv => "recv",
            Act::RecvCombine => "recv_combine",
            Act::Copy => "copy",
            Act::Combine => "combine",
        }
    }
}

impl Pending {
    /// # Errors
    /// The errors that [`Schedule::new`](crate::Schedule::new) and the analysis of programs report.
    #[inline(always)]
    fn new(step: Step, index: u32, p: usize, len: usize, ports: Ports) -> Result<Pending> {
        let (kind, peer, port, spans) = match step {
            Step::Send { to, spans, port } => (Act::Send, to, port, spans),
            Step::Recv { from, spans, port } => (Act::Recv, from, port, spans),
            Step::RecvCombine {
                from, spans, port, ..
            } => (Act::RecvCombine, from, port, spans),
            Step::Copy { src, dst } => {
                return Pending::local(Act::Copy, &src, dst, index, len);
            }
            Step::Combine { src, dst, .. } => {
                return Pending::local(Act::Combine, &src, dst, index, len);
            }
        };
        if peer >= p {
            return Err(Error::malformed(format!(
                "{}: peer {peer} is not one of {p} ranks",
                kind.name()
            )));
        }
        if port >= ports.k() {
            return Err(Error::wrong(format!(
                "{}: port {port}, but the rank has {} (numbered from 0)",
                kind.name(),
                ports.k()
            )));
        }
        in_bounds(kind, &spans, len)?;
        let mut spans = spans;
        sort_if_long(&mut spans);
        Ok(Pending {
            spans,
            peer: rank_u32(peer)?,
            index,
            number: 0,
            list: u16::try_from(ports.list(kind == Act::Send, port))
                .map_err(|_| Error::usage("more than 2^15 ports"))?,
            kind,
            state: StepState::Waits,
        })
    }
    fn local(kind: Act, src: &[Span], dst: Spans, index: u32, len: usize) -> Result<Pending> {
        let writes = u32::try_from(dst.len()).map_err(|_| Error::usage("more than 2^32 spans"))?;
        let mut spans = dst;
        spans.extend(src.iter().copied());
        let (written, read) = spans.split_at_mut(writes as usize);
        sort_if_long(written);
        sort_if_long(read);
        in_bounds(kind, &spans, len)?;
        Ok(Pending {
            spans,
            peer: writes,
            index,
            number: 0,
            list: 0,
            kind,
            state: StepState::Waits,
        })
    }

    /// Whether the step has so many spans that many ranks with such steps need much memory.
    #[inline]
    pub(super) fn is_heavy(&self) -> bool {
        self.spans.len() >= MIN_HEAVY_SPANS
    }

    /// The rank at the other end of a transfer.
    #[inline]
    pub(super) fn peer(&self) -> usize {
        self.peer as usize
    }

    #[inline]
    pub(super) fn list(&self) -> usize {
        self.list.into()
    }

    /// The key of a transfer.
    #[inline]
    pub(super) fn key(&self) -> u64 {
        key(self.peer, self.number, self.kind == Act::Send)
    }

    /// The key that the matching step of a transfer has, if `me` is the rank of this step.
    #[inline]
    pub(super) fn partner_key(&self, me: u32) -> u64 {
        key(me, self.number, self.kind != Act::Send)
    }

    /// Number of elements moved, copied or combined.
    #[inline]
    pub(super) fn elements(&self) -> usize {
        total_len(if self.kind == Act::Send {
            &self.spans
        } else {
            self.writes()
        })
    }

    /// As [`Step::writes`].
    #[inline]
    fn writes(&self) -> &[Span] {
        match self.kind {
            Act::Send => &[],
            Act::Recv | Act::RecvCombine => &self.spans,
            Act::Copy | Act::Combine => &self.spans[..self.peer as usize],
        }
    }

    /// Whether this is a transfer with `peer` in the given direction that has not taken place yet.
    pub(super) fn is_transfer(&self, sends: bool, peer: usize) -> bool {
        self.kind.is_transfer()
            && self.peer as usize == peer
            && (self.kind == Act::Send) == sends
            && self.state != StepState::Transferred
    }
}

impl Unfinished for Pending {
    #[inline]
    fn access(&self) -> Access<'_> {
        let reads: &[Span] = match self.kind {
            Act::Send => &self.spans,
            Act::Recv | Act::RecvCombine => &[],
            Act::Copy | Act::Combine => &self.spans[self.peer as usize..],
        };
        Access {
            reads,
            writes: self.writes(),
        }
    }

    #[inline]
    fn port_list(&self) -> Option<usize> {
        self.kind.is_transfer().then_some(self.list.into())
    }

    #[inline]
    fn computes(&self) -> bool {
        self.kind.computes()
    }
}

#[inline]
fn in_bounds(kind: Act, spans: &[Span], len: usize) -> Result<()> {
    match spans.iter().find(|s| s.end() > len) {
        None => Ok(()),
        Some(s) => Err(Error::malformed(format!(
            "{}: {}",
            kind.name(),
            s.outside(len)
        ))),
    }
}

impl<'a, const N: usize> StreamRank<'a, N> {
    pub(super) fn new(
        program: Box<dyn Iterator<Item = Step> + 'a>,
        len: usize,
        ports: Ports,
    ) -> StreamRank<'a, N> {
        StreamRank {
            program,
            window: SmallVec::new(),
            order: OnlineOrder::default(),
            len,
            taken: 0,
            ended: false,
            paused: false,
            counts: (ports.k() > 1).then(Box::default),
        }
    }

    /// Takes the next step from the program, unless the window is wide enough; returns whether it
    /// did.
    #[inline]
    pub(super) fn take(
        &mut self,
        limit: usize,
        p: usize,
        ports: Ports,
        overlap: bool,
    ) -> Result<bool> {
        let alone = |last: &Pending| !overlap && last.kind.computes();
        if self.ended
            || self.paused && !self.window.is_empty()
            || self.window.len() >= limit
            || self.window.last().is_some_and(alone)
            || self.every_port_waits(ports)
        {
            return Ok(false);
        }
        let Some(step) = self.program.next() else {
            self.ended = true;
            return Ok(false);
        };
        let mut pending = Pending::new(step, self.taken, p, self.len, ports)?;
        if let Some(counts) = &mut self.counts
            && pending.kind.is_transfer()
        {
            let sends = pending.kind == Act::Send;
            let count = counts.entry((pending.peer, sends)).or_default();
            pending.number = *count;
            *count = count.wrapping_add(1);
        }
        self.window.push(pending);
        self.taken = self
            .taken
            .checked_add(1)
            .ok_or_else(|| Error::usage("more than 2^32 steps of a rank"))?;
        Ok(true)
    }

    /// The index of the step that [`StreamRank::take`] takes next.
    pub(super) fn taken(&self) -> u32 {
        self.taken
    }

    /// Whether each port of a one-ported rank has a waiting step.
    #[inline]
    fn every_port_waits(&self, ports: Ports) -> bool {
        if ports.k() > 1 {
            return false;
        }
        let transfers = self.window.iter().filter(|p| p.kind.is_transfer());
        let seen = transfers.fold(0u32, |seen, p| seen | 1 << p.list);
        seen == (1 << ports.lists()) - 1
    }

    /// Whether the step at `place` waits for none of the earlier steps in the window.
    #[inline]
    pub(super) fn may_open(&self, place: usize, overlap: bool) -> bool {
        let (earlier, later) = self.window.split_at(place);
        earlier
            .iter()
            .all(|earlier| !must_precede(earlier, &later[0], overlap))
    }
}
