//! The core time of transfers, copies and combinations in an estimate.

use std::collections::BTreeMap;

use super::CoreModel;
use oneport::internal::MIN_LONG_BYTES;
use oneport::internal::bytes;
use oneport::internal::max_time;
use oneport::internal::own_event;
use oneport::machine::CostModel;
use oneport::schedule::{Schedule, Span, Step};
use oneport::simulate::Prepared;

/// How a message is copied from another core.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum CopyMode {
    /// The sender helps to copy.
    Shared,
    /// The receiver copies alone.
    Receiver,
    /// Another rank of the same core has already taken the same message, so it is in the core's
    /// cache.
    Cached,
}

/// The core time of the parts of transfers, and of computations.
pub(super) struct CopyCosts<'a> {
    pub(super) cost: &'a CostModel,
    pub(super) element_bytes: u64,
    pub(super) core_model: &'a CoreModel,
    /// Total size, in bytes, of the buffers of a core's ranks. If it exceeds the core's caches, no
    /// part of the buffers is cached.
    resident: u64,
    ranks: usize,
    /// By node: whether its sender has received or computed some of the data it sends.
    pub(super) fresh: Vec<bool>,
}

impl<'a> CopyCosts<'a> {
    pub(super) fn new(
        schedule: &Schedule,
        prepared: &Prepared,
        cost: &'a CostModel,
        core_model: &'a CoreModel,
    ) -> CopyCosts<'a> {
        let (ranks, element_bytes) = (schedule.ranks(), schedule.element_bytes());
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

    /// The cost `of` `bytes` bytes that are spread among all buffers of the core: at least their
    /// share of the cost of all these buffers.
    fn among(&self, bytes: u64, of: impl Fn(u64) -> f64) -> f64 {
        if bytes >= self.resident {
            return of(bytes);
        }
        let part = bytes as f64 / self.resident as f64;
        max_time(of(bytes), part * of(self.resident))
    }

    /// Time to offer a message, including its copy if it is `copied`.
    pub(super) fn put(&self, rank: usize, step: &Step, copied: bool) -> f64 {
        let bytes = self.bytes(step);
        if !copied {
            return self.core_model.overhead;
        }
        let cold = if bytes < MIN_LONG_BYTES {
            1.0
        } else {
            self.core_model.tuning.cold_copy_factor
        };
        self.core_model.overhead + cold * self.among(bytes, |b| self.cost.copy(rank, b))
    }

    /// Time to take a message from the sender's memory; `fresh` if the sender has itself received
    /// or computed the data.
    pub(super) fn take(
        &self,
        from: usize,
        rank: usize,
        step: &Step,
        how: CopyMode,
        fresh: bool,
    ) -> f64 {
        let bytes = self.bytes(step);
        let tuning = &self.core_model.tuning;
        let local_time = self.core_model.overhead + self.among(bytes, |b| self.cost.copy(rank, b));
        let transfer_time = if how == CopyMode::Cached || self.core(from) == self.core(rank) {
            local_time
        } else {
            let copy_factor = if how == CopyMode::Shared || bytes < MIN_LONG_BYTES {
                1.0
            } else {
                tuning.lone_copy_factor
            };
            let transfer = self.among(bytes, |b| self.cost.transfer(from, rank, b));
            let lines = transfer - self.cost.transfer(from, rank, 0);
            // In shared mode each partner always copies the same half.
            let fetch_time = if fresh && how != CopyMode::Shared && bytes <= tuning.max_fresh_bytes
            {
                (tuning.fresh_factor - 1.0) * copy_factor * max_time(lines, 0.0)
            } else {
                0.0
            };
            max_time(local_time, copy_factor * transfer) + fetch_time
        };
        match step {
            Step::RecvCombine { .. } => {
                transfer_time + self.among(bytes, |b| self.cost.combine(rank, b))
            }
            _ => transfer_time,
        }
    }

    pub(super) fn local(&self, rank: usize, step: &Step) -> f64 {
        match step {
            Step::Copy { .. } => self.among(self.bytes(step), |b| self.cost.copy(rank, b)),
            _ => self.cost.combine_local(rank, self.bytes(step)),
        }
    }
}

/// By node: whether it is a message with data that its sender has written before.
fn fresh(schedule: &Schedule, prepared: &Prepared) -> Vec<bool> {
    let mut fresh = vec![false; prepared.nodes().len()];
    for (rank, steps) in schedule.programs().iter().enumerate() {
        let mut written = Written::default();
        for (i, step) in steps.iter().enumerate() {
            if step.is_send()
                && let Some(node) = prepared.node(rank, own_event(i, step))
            {
                fresh[node] = step.reads().iter().any(|s| written.overlaps(*s));
            }
            step.writes().iter().for_each(|s| written.add(*s));
        }
    }
    fresh
}

/// Disjoint parts of a buffer, ascending: start and end of each.
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

    fn overlaps(&self, span: Span) -> bool {
        let before = self.0.range(..span.end()).next_back();
        before.is_some_and(|(_, &end)| end > span.offset)
    }
}
