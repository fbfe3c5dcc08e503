//! The core time of transfers, copies and combinations in an estimate.

use std::collections::BTreeMap;

use super::CoreModel;
use oneport::internal::MIN_LONG_BYTES;
use oneport::internal::numbers::bytes;
use oneport::machine::CostModel;
use oneport::schedule::{Schedule, Span, Step};

/// How a message is copied from another core.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum CopyMode {
    /// The sender helps to copy.
    Shared,
    /// The receiver copies alone.
    Receiver,
    /// The receiver copies alone a message whose sender has not waited: its handover has gone on
    /// since it was offered.
    Ahead,
    /// Another rank of the same core has already taken the same message, so it is in the core's
    /// cache.
    Cached,
}

/// The core time of the parts of transfers, and of computations.
pub(super) struct CopyCosts<'a> {
    schedule: &'a Schedule,
    cost: &'a CostModel,
    core_model: &'a CoreModel,
    /// Total size, in bytes, of the buffers of a core's ranks. If it exceeds the core's caches, no
    /// part of the buffers is cached.
    resident: u64,
    /// By rank and step: whether it sends data that the rank has received or computed. Empty if the
    /// other ranks of a core evict it.
    fresh: Vec<Vec<bool>>,
}

impl<'a> CopyCosts<'a> {
    pub(super) fn new(
        schedule: &'a Schedule,
        cost: &'a CostModel,
        core_model: &'a CoreModel,
    ) -> CopyCosts<'a> {
        let (ranks, element_bytes) = (schedule.ranks(), schedule.element_bytes());
        let buffers = schedule.layout().iter();
        let buffers = buffers.map(|l| bytes(l.len, element_bytes));
        let buffers = buffers.fold(0, u64::saturating_add);
        CopyCosts {
            schedule,
            cost,
            core_model,
            resident: buffers / core_model.cores.clamp(1, ranks.max(1)) as u64,
            fresh: if core_model.cores < ranks {
                Vec::new()
            } else {
                schedule.programs().iter().map(|p| fresh(p)).collect()
            },
        }
    }

    pub(super) fn step(&self, rank: usize, i: usize) -> &'a Step {
        &self.schedule.programs()[rank][i]
    }

    fn bytes(&self, elements: usize) -> u64 {
        bytes(elements, self.schedule.element_bytes())
    }

    /// Bytes of step `i` of `rank`.
    pub(super) fn step_bytes(&self, rank: usize, i: usize) -> u64 {
        self.bytes(self.step(rank, i).len())
    }

    pub(super) fn core(&self, rank: usize) -> usize {
        self.core_model.core(rank, self.schedule.ranks())
    }

    /// The cost `of` `bytes` bytes that are spread among all buffers of the core: at least their
    /// share of the cost of all these buffers.
    fn among(&self, bytes: u64, of: impl Fn(u64) -> f64) -> f64 {
        if bytes >= self.resident {
            return of(bytes);
        }
        let part = bytes as f64 / self.resident as f64;
        of(bytes).max(part * of(self.resident))
    }

    /// Time of `rank` to offer the message of its step `i`, including its copy if it is `copied`.
    pub(super) fn put(&self, rank: usize, i: usize, copied: bool) -> f64 {
        let bytes = self.step_bytes(rank, i);
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

    /// Time until `rank` sees a message that `from` has sent without waiting: that of one handover
    /// of a cache line. Half a ping-pong, by which messages are calibrated, takes two: the message,
    /// and the reply on the same line.
    pub(super) fn handover(&self, from: usize, rank: usize) -> f64 {
        if self.core(from) == self.core(rank) {
            return 0.0;
        }
        self.cost.transfer(from, rank, 1) / 2.0
    }

    /// Time of `rank` to take a message in its step `i` from the memory of `from`, which sends it
    /// in its step `sent`. Its line takes at least the time `line`.
    pub(super) fn take(
        &self,
        (from, sent): (usize, usize),
        (rank, i): (usize, usize),
        how: CopyMode,
        line: f64,
    ) -> f64 {
        let step = self.step(rank, i);
        let bytes = self.bytes(step.len());
        // The sender has itself received or computed the data.
        let fresh = self.fresh.get(from).is_some_and(|fresh| fresh[sent]);
        let tuning = &self.core_model.tuning;
        let copy = self.among(bytes, |b| self.cost.copy(rank, b));
        let is_near = how == CopyMode::Cached || self.core(from) == self.core(rank);
        let (overhead, copy) = match how {
            CopyMode::Shared => (self.core_model.overhead, copy / 2.0),
            // The sender's half of the overhead is its own.
            CopyMode::Ahead if !is_near => (self.core_model.overhead / 2.0, copy),
            _ => (self.core_model.overhead, copy),
        };
        let local_time = overhead + copy;
        let transfer_time = if is_near {
            local_time
        } else {
            let transfer = self.among(bytes, |b| self.cost.transfer(from, rank, b));
            let start = self.cost.transfer(from, rank, 1);
            let mut lines = (transfer - start).max(0.0);
            if how != CopyMode::Shared && bytes >= MIN_LONG_BYTES {
                // Calibrated shorter messages are copied by one partner, too.
                let shorter = self.cost.transfer(from, rank, MIN_LONG_BYTES - 1) - start;
                let at_most = shorter * bytes as f64 / MIN_LONG_BYTES as f64;
                lines = (tuning.lone_copy_factor * lines).min(at_most.max(lines));
            }
            let start = match how {
                // Lines with the claims of both partners follow.
                CopyMode::Ahead if bytes >= MIN_LONG_BYTES => 2.0 * start,
                CopyMode::Ahead => 0.0,
                _ => start,
            };
            // Calibrated short messages are fresh. In shared mode each partner always copies the
            // same half.
            let fresh_bytes = MIN_LONG_BYTES..=tuning.max_fresh_bytes;
            let fetch_time = if fresh && how != CopyMode::Shared && fresh_bytes.contains(&bytes) {
                (tuning.fresh_factor - 1.0) * lines
            } else {
                0.0
            };
            // The lines of each span have to be asked for.
            let spans = step.writes().len().max(self.step(from, sent).reads().len());
            let asked = spans.saturating_sub(1) as f64 * self.core_model.overhead;
            local_time.max(start + lines.max(line)) + fetch_time + asked
        };
        match step {
            Step::RecvCombine { .. } => {
                transfer_time + self.among(bytes, |b| self.cost.combine(rank, b))
            }
            _ => transfer_time,
        }
    }

    /// Time to copy, or combine, `elements` elements in the memory of `rank`.
    pub(super) fn local(&self, rank: usize, elements: usize, combines: bool) -> f64 {
        let bytes = self.bytes(elements);
        if combines {
            self.cost.combine_local(rank, bytes)
        } else {
            self.among(bytes, |b| self.cost.copy(rank, b))
        }
    }
}

/// By step: whether it sends data that the rank has written before.
fn fresh(steps: &[Step]) -> Vec<bool> {
    let mut written = WrittenParts::default();
    let is_fresh = |step: &Step| {
        let fresh = step.is_send() && step.reads().iter().any(|s| written.overlaps(*s));
        step.writes().iter().for_each(|s| written.add(*s));
        fresh
    };
    steps.iter().map(is_fresh).collect()
}

/// Disjoint parts of a buffer, ascending: start and end of each.
#[derive(Default)]
struct WrittenParts(BTreeMap<usize, usize>);

impl WrittenParts {
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
