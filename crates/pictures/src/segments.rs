//! The segments of a schedule: the different parts of the vector that its messages carry.

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
    let moved = |(step, &mate): (&&Step, &u32)| {
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
        key
    };
    let moved: Vec<Spans> = steps.iter().zip(&matching.mates).map(moved).collect();
    Ok(distinct(&moved, |spans| spans.is_empty()))
}

/// The distinct values in order, but for empty ones, and the index of each value among them.
pub(crate) fn distinct<T: Ord + Clone>(
    values: &[T],
    is_empty: impl Fn(&T) -> bool,
) -> (Vec<T>, Vec<Option<usize>>) {
    let mut sorted: Vec<&T> = values.iter().filter(|value| !is_empty(value)).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let place = |value: &T| sorted.binary_search(&value).ok();
    let places = values.iter().map(place).collect();
    (sorted.into_iter().cloned().collect(), places)
}
