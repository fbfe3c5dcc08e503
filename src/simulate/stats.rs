//! Statistics of a schedule: its rounds, messages, volume and the segments its ranks hold.

use std::collections::HashMap;

use super::Prepared;
use crate::error::Result;
use crate::schedule::{Schedule, Span, Step};

/// Counts over a whole schedule; lengths in elements. The tokens of a barrier count as none.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Number of communication rounds: the messages on the longest chain of dependent messages,
    /// where computation does not overlap communication unless the schedule needs that to end.
    pub rounds: usize,
    /// Number of non-empty messages.
    pub messages: usize,
    /// Elements sent by all ranks together.
    pub elements: usize,
    /// Elements sent by each rank.
    pub sent: Vec<usize>,
    /// Elements received by each rank.
    pub received: Vec<usize>,
    /// The maximal number of segments that any rank holds unfinished at once. For reductions:
    /// combined into but not yet sent on (or, at a rank that never sends them, not yet combined for
    /// the last time). For copies: received but not yet sent on.
    pub segments_held: usize,
}

impl Schedule {
    /// Counts rounds, messages and volume, in the time of [`Prepared::new`] and of sorting the
    /// spans of each program.
    ///
    /// # Errors
    /// As [`Prepared::new`].
    pub fn stats(&self) -> Result<Stats> {
        let rounds = Prepared::of_rounds(self)?.rounds();
        let has_data = self.collective().kind().has_data();
        let count = |sends: bool| -> Vec<usize> {
            self.programs()
                .iter()
                .map(|program| {
                    program
                        .iter()
                        .filter(|s| s.peer().is_some() && s.is_send() == sends)
                        .map(|step| if has_data { step.len() } else { 0 })
                        .fold(0, usize::saturating_add)
                })
                .collect()
        };
        let sent = count(true);
        Ok(Stats {
            rounds,
            messages: self
                .programs()
                .iter()
                .flatten()
                .filter(|s| s.is_send() && !s.is_empty())
                .count(),
            elements: sent.iter().copied().fold(0, usize::saturating_add),
            sent,
            received: count(false),
            segments_held: self
                .programs()
                .iter()
                .map(|p| segments_held(p))
                .max()
                .unwrap_or(0),
        })
    }
}

/// The maximal number of spans of one program that are at the same time between their first receive
/// and their last use.
fn segments_held(program: &[Step]) -> usize {
    let mut lifetimes: HashMap<Span, (usize, usize)> = HashMap::new();
    for (i, step) in program.iter().enumerate() {
        let (spans, starts) = match step {
            Step::Send { spans, .. } => (spans, false),
            Step::Recv { spans, .. } | Step::RecvCombine { spans, .. } => (spans, true),
            _ => continue,
        };
        for span in spans.iter().filter(|s| s.len > 0) {
            match lifetimes.get_mut(span) {
                Some(l) => l.1 = i,
                None if starts => drop(lifetimes.insert(*span, (i, i))),
                None => {}
            }
        }
    }
    let mut changes: Vec<(usize, isize)> = lifetimes
        .values()
        .flat_map(|&(first, last)| [(2 * first, 1), (2 * last + 1, -1)])
        .collect();
    changes.sort_unstable();
    let mut held = 0isize;
    let max = changes.iter().fold(0, |max, (_, change)| {
        held += change;
        max.max(held)
    });
    max.unsigned_abs()
}
