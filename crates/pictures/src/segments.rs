//! The segments of a schedule: the different parts of the vector that its messages carry.

use std::collections::HashMap;

use oneport::error::Result;
use oneport::internal::{Matching, NONE};
use oneport::schedule::{Schedule, Spans, Step};

/// The distinct segments of a schedule in order, and for every step (numbered over all ranks) the
/// index of its segment.
///
/// The segment of a message is the one its *sender* names, so both ends show the same; the segment
/// of a local step is the one it writes.
pub(crate) fn segments(schedule: &Schedule) -> Result<(Vec<Spans>, Vec<Option<usize>>)> {
    let matching = Matching::new(schedule, |_| {})?;
    let steps: Vec<&Step> = schedule.programs().iter().flatten().collect();
    let mut found: HashMap<Spans, usize> = HashMap::new();
    let mut of_step: Vec<Option<usize>> = Vec::with_capacity(steps.len());
    for (step, &mate) in steps.iter().zip(&matching.mates) {
        let spans = match step {
            Step::Send { spans, .. } => spans,
            Step::Recv { spans, .. } | Step::RecvCombine { spans, .. } => match mate {
                NONE => spans,
                mate => match steps[mate as usize] {
                    Step::Send { spans, .. } => spans,
                    _ => spans,
                },
            },
            Step::Copy { dst, .. } | Step::Combine { dst, .. } => dst,
        };
        let mut key = Spans::new();
        spans.iter().for_each(|&span| key.append(span));
        let next = found.len();
        of_step.push((!key.is_empty()).then(|| *found.entry(key).or_insert(next)));
    }
    let mut sorted: Vec<(Spans, usize)> = found.into_iter().collect();
    sorted.sort_unstable();
    let mut place = vec![0; sorted.len()];
    for (new, (_, old)) in sorted.iter().enumerate() {
        place[*old] = new;
    }
    for segment in of_step.iter_mut().flatten() {
        *segment = place[*segment];
    }
    Ok((
        sorted.into_iter().map(|(spans, _)| spans).collect(),
        of_step,
    ))
}
