//! Model time of a stored schedule, if only times and counts are needed.

use super::stream::{Timed, stream};
use super::{Prepared, max_time};
use crate::error::Result;
use crate::machine::CostModel;
use crate::schedule::{Schedule, Step};

/// Schedules with more steps are streamed: that is twice as fast and needs a tenth of the memory,
/// because no graph is built.
const MIN_STREAMED_STEPS: usize = 1 << 16;

/// Times `schedule` under `cost`, with elements of `element_bytes` bytes (1 gives times per
/// element). Gives the results of [`Prepared`] and [`Schedule::stats`] in one call.
///
/// A message over a missing link never ends, as in [`Prepared::simulate`].
///
/// ```
/// use oneport::plan::{Segments, registry};
/// use oneport::{CostModel, Kind, Request, simulate};
/// let mut request = Request::new(8, 12);
/// request.segments = Segments::of_count(12, 4)?;
/// let schedule = registry::find(Kind::Broadcast, "chain")?.plan(&request)?;
/// let timed = simulate::timed(&schedule, &CostModel::new(10.0, 1.0), 1)?;
/// assert_eq!((timed.time, timed.rounds, timed.messages), (130.0, 10, 28));
/// # Ok::<(), oneport::Error>(())
/// ```
///
/// # Errors
/// As [`Prepared::new`].
pub fn timed(schedule: &Schedule, cost: &CostModel, element_bytes: u64) -> Result<Timed> {
    // If streaming fails, the graph gives the better error message.
    if is_streamed(schedule)
        && let Ok(timed) = stream(schedule, cost, element_bytes)
    {
        return Ok(timed);
    }
    let prepared = Prepared::new(schedule, cost.overlap)?;
    let simulation = prepared.simulate(cost, element_bytes);
    let rounds = if cost.overlap {
        schedule.stats()?.rounds
    } else {
        prepared.rounds()
    };
    let rank_times = simulation.rank_times();
    let sends = schedule.programs().iter().flatten();
    let lengths = sends.filter(|s| s.is_send()).map(Step::len);
    let (messages, elements) = lengths.fold((0, 0usize), |(messages, elements), len| {
        (
            messages + usize::from(len > 0),
            elements.saturating_add(len),
        )
    });
    Ok(Timed {
        time: rank_times.iter().copied().fold(0.0, max_time),
        rank_times,
        rounds,
        messages,
        elements,
    })
}

/// Whether the schedule is long and its messages have few spans. Steps that access many parts of a
/// buffer are faster with a graph.
fn is_streamed(schedule: &Schedule) -> bool {
    let steps = schedule.steps();
    let spans = |step: &Step| step.reads().len() + step.writes().len();
    steps > MIN_STREAMED_STEPS
        && schedule
            .programs()
            .iter()
            .flatten()
            .map(spans)
            .fold(0, usize::saturating_add)
            <= 4 * steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Request, Segments, registry};

    /// Compares both ways on short and long schedules, with one span per message and with many.
    #[test]
    fn streamed_and_stored_schedules_agree() {
        let mut ways = [0; 2];
        for algorithm in registry::all() {
            for (p, n, overlap) in [
                (9, 4, false),
                (12, 3, true),
                (40, 850, false),
                (3, 12_000, true),
            ] {
                let mut request = Request::new(p, 2 * n + 1);
                request.segments = Segments::of_count(2 * n + 1, n).unwrap();
                request.cost = CostModel::new(0.1, 0.7).gamma(0.3).overlap(overlap);
                let long = (algorithm.transfers)(p, n);
                if algorithm.accepts(&request).is_err()
                    || (n > 4 && !(1 << 15..1 << 17).contains(&long))
                {
                    continue;
                }
                let schedule = algorithm.plan(&request).unwrap();
                let timed = timed(&schedule, &request.cost, 3).unwrap();
                let prepared = Prepared::new(&schedule, overlap).unwrap();
                let simulated = prepared.simulate(&request.cost, 3);
                let stats = schedule.stats().unwrap();
                let name = (algorithm.name, p, n, overlap);
                assert_eq!(timed.time.to_bits(), simulated.time().to_bits(), "{name:?}");
                assert_eq!(timed.rank_times, simulated.rank_times(), "{name:?}");
                assert_eq!(
                    (timed.rounds, timed.messages, timed.elements),
                    (stats.rounds, stats.messages, stats.elements),
                    "{name:?}"
                );
                ways[usize::from(is_streamed(&schedule))] += 1;
            }
        }
        assert!(ways.iter().all(|&w| w > 3), "{ways:?}");
    }
}
