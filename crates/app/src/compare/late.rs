//! Times of algorithms under many arrivals of the ranks: each rank late in turn, or random ones.

use std::time::Instant;

use oneport::internal::budget::search::MAX_WORK_OF_ARRIVALS;
use oneport::internal::numbers::index;
use oneport::plan::registry::{MadeFor, Planned};
use oneport::simulate::Prepared;

use super::{Candidate, CompareArgs, CompareJob};
use crate::delays::DelayArgs;
use crate::parallel;
use crate::prelude::*;
use crate::sweep::Point;

/// Refuses options that contradict each other.
pub(super) fn ensure(args: &CompareArgs) -> Result<()> {
    if args.engine.is_some() {
        bail!("--late and --trials are for model times: leave --engine out");
    }
    match args.trials {
        Some(0) => bail!("--trials is 0: at least one is drawn"),
        Some(_) => args.common.delays.draw(1, 0).map(|_| ()),
        None => Ok(()),
    }
}

/// All algorithms at one point of a sweep, under the arrivals of the options, of which `delays` has
/// the random ones. What `stop` interrupts has the draws that are done, or no row of the delays
/// that are left.
pub(super) fn point(
    args: &CompareArgs,
    delays: &DelayArgs,
    site: &Site,
    stop: &AtomicBool,
) -> Result<Point> {
    // Segments are chosen for ranks that arrive together.
    let (common, mut task) = args.task(site)?;
    if common.algorithm.is_open() {
        let all = registry::of(task.request.get_collective());
        let late = all.filter(|a| a.made_for == MadeFor::LateRanks);
        task.algorithms.extend(late.cloned());
    }
    let job = CompareJob::of(args, &common, task)?;
    let ranks = job.task.request.ranks();
    let cost = job.task.request.get_cost().clone();
    let mut rows = Vec::new();
    let mut interrupted = false;
    let what = match (&args.late, args.trials) {
        (Some(late), _) => {
            for &late in &late.0 {
                let arrivals = |rank| {
                    let mut arrivals = vec![0.0; ranks];
                    arrivals[rank] = late;
                    Ok(arrivals)
                };
                let (found, done) = under(&job, &cost, ranks, &arrivals, stop)?;
                if done < ranks {
                    interrupted = true;
                    break;
                }
                for (row, times) in found {
                    let of = |better: fn(f64, f64) -> bool| {
                        let better = |best, rank| better(times[rank], times[best]);
                        (1..ranks)
                            .fold(0, |best, rank| if better(best, rank) { rank } else { best })
                    };
                    let [most, least] = [of(|a, b| a > b), of(|a, b| a < b)];
                    let is_late = |rank: usize| (late > 0.0).then_some(rank);
                    rows.push(SweepRow {
                        time: times[most],
                        late: Some(late),
                        late_rank: is_late(most),
                        least: Some(times[least]),
                        least_rank: is_late(least),
                        ..row
                    });
                }
            }
            "one rank late".to_string()
        }
        (None, trials) => {
            let trials = trials.unwrap_or(1);
            let arrivals = |trial| delays.draw(ranks, trial);
            let (found, done) = under(&job, &cost, trials, &arrivals, stop)?;
            interrupted = done < trials;
            for (row, mut times) in found.into_iter().filter(|_| done > 0) {
                times.sort_by(f64::total_cmp);
                let rank_of_p95 = (times.len() * 19).div_ceil(20);
                rows.push(SweepRow {
                    time: times.iter().sum::<f64>() / times.len() as f64,
                    least: times.first().copied(),
                    p95: times.get(rank_of_p95 - 1).copied(),
                    worst: times.last().copied(),
                    ..row
                });
            }
            format!("mean of {done} draws of arrivals")
        }
    };
    (site.caller).notes(planned_once(&job, args.trials.unwrap_or(ranks)));
    let mut point = job.point();
    point.costs += &format!("; {what}, times after the last arrival");
    point.rows = rows;
    point.interrupted = interrupted;
    Ok(point)
}

/// The row of an algorithm, and its times.
type RowTimes = (SweepRow, Vec<f64>);

/// By algorithm: its row, without a bound, and its times after the last arrival, in the order of
/// the arrivals; under the first of `count` arrivals, whose number is returned, too: all, unless
/// `stop` is set.
fn under(
    job: &CompareJob<'_>,
    cost: &CostModel,
    count: usize,
    arrivals: &dyn Fn(usize) -> Result<Vec<f64>>,
    stop: &AtomicBool,
) -> Result<(Vec<RowTimes>, usize)> {
    /// About how long it takes from one look at `stop` to the next.
    const BETWEEN_LOOKS: Duration = Duration::from_millis(200);
    /// A schedule is prepared anew after so many arrivals, which is not to count.
    const MIN_ARRIVALS: usize = 16;
    let compared = &job.timed.rows;
    let bytes = size_of::<f64>() as u128 * compared.len() as u128 * count as u128;
    let what = format!("{count} times of each of {} algorithms", compared.len());
    ensure_memory(&what, bytes, "take fewer --trials")?;
    let (mut all_times, mut done) = (vec![Vec::new(); compared.len()], 0);
    let mut part = MIN_ARRIVALS;
    while done < count && !stop.load(Ordering::Relaxed) {
        let started = Instant::now();
        let next = done.saturating_add(part).min(count);
        let drawn = (done..next).map(arrivals).collect::<Result<Vec<_>>>()?;
        let found = parallel::map(
            compared,
            |row| (row.figures.messages * drawn.len()) as u64,
            |row, _| times(job, &row.candidate, cost, &drawn, count),
            |_| false,
        );
        for (times, found) in all_times.iter_mut().zip(found) {
            times.extend(found?);
        }
        done = next;
        part = match started.elapsed() {
            took if took < BETWEEN_LOOKS / 2 => part.saturating_mul(2),
            took if took > BETWEEN_LOOKS => (part / 2).max(MIN_ARRIVALS),
            _ => part,
        };
    }
    let rows = compared.iter().zip(all_times).map(|(row, times)| {
        let row = SweepRow {
            bound: 0.0,
            ..row.figures.clone()
        };
        (row, times)
    });
    Ok((rows.collect(), done))
}

/// Whether an algorithm is planned for each of `count` arrivals. Those that are not made for late
/// ranks only choose among parts then, which is left out where it takes longer than some seconds;
/// and all have one tree, if that is asked for.
fn is_planned_anew(job: &CompareJob<'_>, algorithm: &Algorithm, count: usize) -> bool {
    if !algorithm.for_arrivals || job.args.common.vector.tree.is_some() {
        return false;
    }
    let ranks = job.task.request.ranks();
    let work = (algorithm.transfers)(ranks, 1).saturating_mul(index(algorithm.planning_work));
    let is_quick = work.saturating_mul(count) <= MAX_WORK_OF_ARRIVALS;
    algorithm.made_for == MadeFor::LateRanks || is_quick
}

/// Which algorithms would be planned for each of `count` arrivals, but are not, if any.
fn planned_once(job: &CompareJob<'_>, count: usize) -> Option<String> {
    let names = job
        .timed
        .rows
        .iter()
        .filter_map(|row| match &row.candidate {
            Candidate::Planned(variant) => {
                let algorithm = &variant.algorithm;
                let is_once = algorithm.for_arrivals && !is_planned_anew(job, algorithm, count);
                is_once.then_some(&*row.figures.algorithm)
            }
            Candidate::Own(_) => None,
        });
    let names = names.collect::<Vec<_>>().join(", ");
    (!names.is_empty()).then(|| {
        format!("under all arrivals a schedule for ranks that arrive together is timed of {names}")
    })
}

/// The time of a candidate after the last arrival, under each of `arrivals`, some of `count`.
fn times(
    job: &CompareJob<'_>,
    candidate: &Candidate,
    cost: &CostModel,
    arrivals: &[Vec<f64>],
    count: usize,
) -> oneport::Result<Vec<f64>> {
    let late = |arrivals: &Vec<f64>| {
        let late = cost.clone().arrivals(arrivals.clone());
        let last = late.last_arrival();
        (late, last)
    };
    let stored = |schedule: &Schedule| {
        let prepared = Prepared::new(schedule, cost.overlaps())?;
        let time = |arrivals| {
            let (late, last) = late(arrivals);
            Ok(prepared.simulate(&late)?.makespan() - last)
        };
        arrivals.iter().map(time).collect()
    };
    let variant = match candidate {
        Candidate::Own(schedule) => return stored(schedule),
        Candidate::Planned(variant) => variant,
    };
    if !is_planned_anew(job, &variant.algorithm, count) {
        let planned = match job.task.planned(variant)? {
            Planned::Stored(schedule) => return stored(&schedule),
            streamed => streamed,
        };
        let time = |arrivals| {
            let (late, last) = late(arrivals);
            Ok(planned.timed(&late, |_| ())?.time - last)
        };
        return arrivals.iter().map(time).collect();
    }
    let time = |arrivals| {
        let (late, last) = late(arrivals);
        let mut variant = variant.clone();
        variant.request = variant.request.cost(late.clone());
        let timed = job.task.planned(&variant)?.timed(&late, |_| ())?;
        Ok(timed.time - last)
    };
    arrivals.iter().map(time).collect()
}
