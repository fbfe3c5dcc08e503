//! What transfers, copies and combinations take a core.

use std::collections::BTreeMap;

use super::CoreModel;
use crate::cost::{CostModel, bytes};
use crate::schedule::{Schedule, Span, Step};
use crate::simulate::sequence::own_event;
use crate::simulate::{Prepared, max_time};

/// Messages from this many bytes on are long: both partners copy them where both can.
const SHARED: u64 = 32 << 10;

/// How much longer a byte takes that the sender has itself just received or combined, if its core's
/// own caches still hold it: the line has to be taken from them, and what it overwrites is held
/// there too. As measured with caches of a megabyte. Where ranks share cores, this is lost in their
/// turns.
const FRESH: f64 = 4.0;
const FRESH_UP_TO: u64 = 1 << 20;

/// How a message is taken from another core.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum CopyMode {
    /// Its sender helps to copy.
    Shared,
    /// By the receiver alone.
    Receiver,
    /// Another rank of the same core has taken the same before: it is in the core's cache.
    Cached,
}

/// What the parts of a transfer, and computations, take a core.
pub(super) struct CopyCosts<'a> {
    pub(super) cost: &'a CostModel,
    pub(super) element_bytes: u64,
    pub(super) core_model: &'a CoreModel,
    /// Bytes of all buffers of a core's ranks: where they exceed its caches, no part of them is
    /// found there.
    resident: u64,
    ranks: usize,
    /// By node: whether its sender has received, or made, some of what it sends.
    pub(super) fresh: Vec<bool>,
}

impl<'a> CopyCosts<'a> {
    pub(super) fn new(
        schedule: &Schedule,
        prepared: &Prepared,
        cost: &'a CostModel,
        element_bytes: u64,
        core_model: &'a CoreModel,
    ) -> CopyCosts<'a> {
        let ranks = schedule.ranks();
        let buffers = schedule.layout().iter();
        let buffers = buffers.map(|l| bytes(l.len, element_bytes));
        let buffers = buffers.fold(0, u64::saturating_add);
        CopyCosts {
            cost,
            element_bytes,
            core_model,
            resident: buffers / core_model.cores.clamp(1, ranks.max(1)) as u64,
            ranks,
            fresh: if core_model.cores < ranks {
                vec![false; prepared.nodes().len()]
            } else {
                fresh(schedule, prepared)
            },
        }
    }

    fn bytes(&self, step: &Step) -> u64 {
        bytes(step.len(), self.element_bytes)
    }

    pub(super) fn core(&self, rank: usize) -> usize {
        self.core_model.core(rank, self.ranks)
    }

    /// What `of` says of `bytes` that lie among all the others of the core: as a part of so many.
    fn among(&self, bytes: u64, of: impl Fn(u64) -> f64) -> f64 {
        if bytes >= self.resident {
            return of(bytes);
        }
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let part = bytes as f64 / self.resident as f64;
        max_time(of(bytes), part * of(self.resident))
    }

    /// Offering a message, which may be copied for that.
    pub(super) fn put(&self, rank: usize, step: &Step, copied: bool) -> f64 {
        let bytes = self.bytes(step);
        if !copied {
            return self.core_model.overhead;
        }
        // Where long messages are put, others have been meanwhile.
        let cold = if bytes < SHARED { 1.0 } else { 2.0 };
        self.core_model.overhead + cold * self.among(bytes, |b| self.cost.copy(rank, b))
    }

    /// Taking a message from where it stands, where its sender has received it itself if it is
    /// `fresh`.
    pub(super) fn take(
        &self,
        from: usize,
        rank: usize,
        step: &Step,
        how: CopyMode,
        fresh: bool,
    ) -> f64 {
        let bytes = self.bytes(step);
        let near = self.core_model.overhead + self.among(bytes, |b| self.cost.copy(rank, b));
        let moved = if how == CopyMode::Cached || self.core(from) == self.core(rank) {
            near
        } else {
            // The model's long messages are copied by both partners.
            let alone = if how == CopyMode::Shared || bytes < SHARED {
                1.0
            } else {
                2.0
            };
            let transfer = self.among(bytes, |b| self.cost.transfer(from, rank, b));
            let lines = transfer - self.cost.transfer(from, rank, 0);
            // Both partners copy the same halves each time.
            let taken_back = if fresh && how != CopyMode::Shared && bytes <= FRESH_UP_TO {
                (FRESH - 1.0) * alone * max_time(lines, 0.0)
            } else {
                0.0
            };
            max_time(near, alone * transfer) + taken_back
        };
        match step {
            Step::RecvCombine { .. } => moved + self.among(bytes, |b| self.cost.combine(rank, b)),
            _ => moved,
        }
    }

    pub(super) fn local(&self, rank: usize, step: &Step) -> f64 {
        match step {
            Step::Copy { .. } => self.among(self.bytes(step), |b| self.cost.copy(rank, b)),
            _ => self.cost.combine_local(rank, self.bytes(step)),
        }
    }
}

/// By node: whether it is a message of something that its sender has written before.
fn fresh(schedule: &Schedule, prepared: &Prepared) -> Vec<bool> {
    let mut fresh = vec![false; prepared.nodes().len()];
    for (rank, steps) in schedule.programs().iter().enumerate() {
        let mut written = Written::default();
        for (i, step) in steps.iter().enumerate() {
            if step.is_send()
                && let Some(node) = prepared.node(rank, own_event(i, step))
            {
                fresh[node] = step.reads().iter().any(|s| written.meets(*s));
            }
            step.writes().iter().for_each(|s| written.add(*s));
        }
    }
    fresh
}

/// Parts of a buffer, ascending and apart: where each starts and ends.
#[derive(Default)]
struct Written(BTreeMap<usize, usize>);

impl Written {
    fn add(&mut self, span: Span) {
        let (mut start, mut end) = (span.offset, span.end());
        while let Some((&from, &to)) = self.0.range(..=end).next_back()
            && to >= start
        {
            self.0.remove(&from);
            (start, end) = (start.min(from), end.max(to));
        }
        self.0.insert(start, end);
    }

    fn meets(&self, span: Span) -> bool {
        let before = self.0.range(..span.end()).next_back();
        before.is_some_and(|(_, &end)| end > span.offset)
    }
}
