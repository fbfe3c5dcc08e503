//! What a correct schedule does needlessly, as the proof comes across it.

use std::collections::BTreeMap;

use super::finding::Findings;
use super::{Finding, FindingKind, counted, named};
use crate::schedule::{Schedule, Step};

/// By rank and step: the elements that it writes needlessly, and why.
#[derive(Debug, Default)]
pub(super) struct Waste(BTreeMap<(usize, usize, FindingKind), Elements>);

/// Elements of a buffer, from `first` to before `end`, possibly with gaps.
#[derive(Debug, Clone, Copy)]
struct Elements {
    first: usize,
    end: usize,
    count: usize,
}

impl Waste {
    /// `step` of `rank` writes `len` elements from position `at` on needlessly.
    pub(super) fn add(
        &mut self,
        (rank, step): (usize, usize),
        kind: FindingKind,
        at: usize,
        len: usize,
    ) {
        let (first, end) = (at, at + len);
        let count = 0;
        let entry = self.0.entry((rank, step, kind));
        let elements = entry.or_insert(Elements { first, end, count });
        elements.first = elements.first.min(first);
        elements.end = elements.end.max(end);
        elements.count += len;
    }

    pub(super) fn report(self, schedule: &Schedule, findings: &mut Findings) {
        for ((rank, step, kind), elements) in self.0 {
            findings.note(|| elements.note(schedule, rank, step, kind));
        }
    }
}

impl Elements {
    fn note(self, schedule: &Schedule, rank: usize, index: usize, kind: FindingKind) -> Finding {
        let step = &schedule.programs()[rank][index];
        let what = match self {
            Elements {
                first, count: 1, ..
            } => format!("element {first} of its buffer"),
            Elements { first, end, count } if end - first == count => {
                format!("elements {first} to {} of its buffer", end - 1)
            }
            Elements { first, count, .. } => {
                format!(
                    "{} of its buffer from {first} on",
                    counted(count, "element")
                )
            }
        };
        let verb = match step {
            Step::Copy { .. } => "copies",
            Step::RecvCombine { .. } | Step::Combine { .. } => "combines",
            _ => "receives",
        };
        let why = match kind {
            FindingKind::HeldAlready => "which it holds already",
            FindingKind::CombinedTwice => "to what another step has combined already",
            _ => "which nothing uses afterwards",
        };
        let message = format!(
            "rank {rank}, step {index} ({}) {verb} {what}, {why}",
            named(step)
        );
        Finding {
            position: Some(self.first),
            ..Finding::at(kind, rank, index, step, message)
        }
    }
}
