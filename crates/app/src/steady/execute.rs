//! `oneport steady --run`: runs the schedule on threads at the platform's pace.

use oneport::run::{self, Operator, Team};
use oneport_steady::{Fraction, Operation, Periodic};

use super::report::MeasuredSeries;
use crate::prelude::*;

/// A run that takes up to this many times its model time has kept pace.
const MAX_LATE: f64 = 1.05;

/// How long a rank waits for a partner beyond the time of its pace.
const DEADLINE: Duration = Duration::from_secs(60);

/// Runs the schedule and one with half as many operations at the platform's pace. The throughput
/// follows from the difference of their times.
pub(super) fn execute(
    caller: &Caller,
    time_unit: Option<&Fraction>,
    periodic: &Periodic,
    messages: usize,
    schedule: &Schedule,
    model_time: f64,
) -> Result<MeasuredSeries> {
    let unit = match time_unit {
        Some(us) if *us > Fraction::ZERO => us.to_f64() * 1e3,
        Some(_) => bail!("--time-unit must be more than 0"),
        None => sufficient_time(schedule) / model_time,
    };
    let half = messages / 2;
    let mut team = Team::new(schedule.ranks())?;
    let ordered = matches!(
        periodic.solution().operation,
        Operation::ReduceOrdered | Operation::Scan
    );
    let mut go = |schedule: &Schedule| {
        if ordered {
            let operator = Operator::<u64>::named("affine")?;
            paced(&mut team, schedule, &operator, periodic, unit)
        } else {
            let operator = Operator::<u8>::named("sum")?;
            paced(&mut team, schedule, &operator, periodic, unit)
        }
    };
    let (mut verified, wall, model) = go(schedule)?;
    let (mut half_wall, mut half_model) = (0, 0.0);
    if half > 0 {
        let (right, wall, model) = go(&periodic.schedule(half)?)?;
        verified &= right;
        (half_wall, half_model) = (wall, model);
    }
    let rate = |time: f64| {
        if time > 0.0 {
            (messages - half) as f64 / (time / unit)
        } else {
            0.0
        }
    };
    let late = wall as f64 / model;
    let kept_pace = late <= MAX_LATE;
    if !kept_pace {
        caller.note(format!(
            "the run did not keep pace: it took {late:.2} times its model time; give it a longer --time-unit than {:.6} us",
            unit / 1e3
        ));
    }
    Ok(MeasuredSeries {
        kept_pace,
        verified,
        wall,
        time_unit_ns: unit,
        throughput: rate(wall as f64 - half_wall as f64),
        model_throughput: rate(model - half_model),
    })
}

/// Returns the nanoseconds in which threads can keep the pace of a schedule: a thread needs some
/// microseconds for each of its transfers, and threads share cores.
fn sufficient_time(schedule: &Schedule) -> f64 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let steps = schedule.programs().iter().map(Vec::len).max().unwrap_or(1);
    let ranks_per_core = schedule.ranks().div_ceil(cores);
    let needed = steps as f64 * 6_000.0 * ranks_per_core as f64 * 25.0;
    needed.clamp(3e8, 2e10)
}

/// Runs a schedule once. Returns whether the result is correct, the wall-clock time in nanoseconds,
/// and the model time.
fn paced<T: Element + PartialEq>(
    team: &mut Team,
    schedule: &Schedule,
    operator: &Operator<T>,
    periodic: &Periodic,
    unit: f64,
) -> Result<(bool, u64, f64)> {
    // Costs are per byte, the platform's costs per element.
    let cost = periodic.cost(unit / size_of::<T>() as f64)?;
    let run = run::Run::new(schedule).op(operator).verified();
    let run = run.clock(Clock::Paced).cost(cost).deadline(DEADLINE);
    let outcome = run.on(team)?;
    Ok((
        outcome.is_verified(),
        outcome.wall.max_ns(),
        outcome.model_time,
    ))
}
