//! Times of algorithms under many arrivals of the ranks: each rank late in turn, or random ones.

use anyhow::{Result, bail};
use oneport::plan::registry::{self, MadeFor, Planned};
use oneport::simulate::Prepared;
use oneport::{CostModel, Schedule};
use oneport_pictures::SweepRow;

use super::rank::{Candidate, RankedAlgorithms};
use super::{CompareArgs, CompareJob};
use crate::parallel;
use crate::site::Site;
use crate::sweep::Point;

/// Refuses options that contradict each other.
pub(super) fn ensure(args: &CompareArgs) -> Result<()> {
    if args.engine().is_some() {
        bail!("--late and --trials are for model times: leave --engine out");
    }
    match args.trials {
        Some(0) => bail!("--trials is 0: at least one is drawn"),
        Some(trials) => args.common.delays.draws(1, trials).map(|_| ()),
        None => Ok(()),
    }
}

/// All algorithms at one point of a sweep, under the arrivals of the options.
pub(super) fn point(args: &CompareArgs, site: &Site) -> Result<Point> {
    let mut ideal = args.clone();
    // Segments are chosen for ranks that arrive together.
    ideal.common.delays.arrivals = None;
    let (common, mut task) = ideal.task(site)?;
    if matches!(&*common.algorithm, "auto" | "all") {
        let all = registry::of(task.request.get_collective());
        let late = all.filter(|a| a.made_for == MadeFor::LateRanks);
        task.algorithms.extend(late.cloned());
    }
    let job = CompareJob::of(&ideal, &common, task)?;
    let ranks = job.task.request.ranks();
    let cost = job.task.request.get_cost().clone();
    let mut rows = Vec::new();
    let what = match (&args.late, args.trials) {
        (Some(late), _) => {
            for &late in &late.0 {
                let arrivals = (0..ranks).map(|rank| {
                    let mut arrivals = vec![0.0; ranks];
                    arrivals[rank] = late;
                    arrivals
                });
                for (row, times) in under(&job.ranked, &cost, &arrivals.collect::<Vec<_>>())? {
                    rows.push(SweepRow {
                        time: times.last().copied().unwrap_or(0.0),
                        least: times.first().copied(),
                        late: Some(late),
                        ..row
                    });
                }
            }
            "one rank late".to_string()
        }
        (None, trials) => {
            let trials = trials.unwrap_or(1);
            let arrivals = args.common.delays.draws(ranks, trials)?;
            for (row, times) in under(&job.ranked, &cost, &arrivals)? {
                let rank_of_p95 = (times.len() * 19).div_ceil(20);
                rows.push(SweepRow {
                    time: times.iter().sum::<f64>() / times.len() as f64,
                    least: times.first().copied(),
                    p95: times.get(rank_of_p95 - 1).copied(),
                    worst: times.last().copied(),
                    ..row
                });
            }
            format!("mean of {trials} draws of arrivals")
        }
    };
    let mut point = job.point();
    point.costs += &format!("; {what}, times after the last arrival");
    point.rows = rows;
    Ok(point)
}

/// By algorithm: its row, without a bound, and its times after the last arrival, ascending.
fn under(
    ranked: &RankedAlgorithms,
    cost: &CostModel,
    arrivals: &[Vec<f64>],
) -> Result<Vec<(SweepRow, Vec<f64>)>> {
    let all: Vec<_> = ranked.rows.iter().zip(&ranked.candidates).collect();
    let times = parallel::map(
        &all,
        |(row, _)| (row.figures.messages * arrivals.len()) as u64,
        |(_, candidate), _| times(candidate, cost, arrivals),
        |_| false,
    );
    let rows = all.iter().zip(times).map(|((row, _), times)| {
        let mut times = times?;
        times.sort_by(f64::total_cmp);
        let row = SweepRow {
            bound: 0.0,
            ..row.figures.clone()
        };
        Ok((row, times))
    });
    rows.collect()
}

/// The time of a candidate after the last arrival, under each of `arrivals`.
fn times(
    candidate: &Candidate,
    cost: &CostModel,
    arrivals: &[Vec<f64>],
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
    let choice = match candidate {
        Candidate::Own(schedule) => return stored(schedule),
        Candidate::Planned(choice) => choice,
    };
    if choice.algorithm.made_for != MadeFor::LateRanks
        && let Planned::Stored(schedule) = choice.algorithm.planned(&choice.request)?
    {
        return stored(&schedule);
    }
    let time = |arrivals| {
        let (late, last) = late(arrivals);
        let request = choice.request.clone().cost(late.clone());
        let timed = (choice.algorithm.planned(&request)?).timed(&late, |_| ())?;
        Ok(timed.time - last)
    };
    arrivals.iter().map(time).collect()
}
