//! All algorithms, and the schedules of `--schedule`, timed in the model.

use std::sync::Mutex;

use oneport::plan::refusal::Reason;
use oneport::plan::registry::Planned;
use oneport::plan::space::{Variant, fastest_first};

use super::{Candidate, CompareArgs, CompareRow, own};
use crate::input::warnings_about;
use crate::levels;
use crate::prelude::*;
use crate::task::bar_length;

/// Comparisons that take at least this long, in seconds, say so before.
const SILENT_SECONDS: f64 = 5.0;

/// All algorithms, timed in the model.
pub(super) struct TimedAlgorithms {
    /// Description of the fastest schedule that an algorithm plans.
    pub(super) info: ScheduleInfo,
    /// For the roots that were taken.
    pub(super) lower_bound: f64,
    /// The least model time.
    pub(super) best: f64,
    /// One row for each algorithm, fastest first.
    pub(super) rows: Vec<CompareRow>,
    /// Those that cannot be used.
    pub(super) skipped: Vec<Skipped>,
}

/// Times all algorithms, and the schedules of `--schedule`.
pub(super) fn time_all(
    args: &CompareArgs,
    common: &Common,
    task: &PlanTask,
) -> Result<TimedAlgorithms> {
    let (mut rows, wrong) = own::rows(common, task)?;
    // Schedules of files may take another root, split blocks, or have a block in its place.
    let of_own = rows.iter().map(|row| row.figures.bound);
    let of_own = of_own.fold(f64::INFINITY, f64::min);
    // By root, of whichever row ends first. Rows of one root have the same one: algorithms differ
    // neither in where inputs and outputs are nor in whether they split a root's blocks.
    let bounds = Mutex::new(BTreeMap::new());
    let progress = WorkBar::new(
        &task.caller,
        0,
        "timing {msg} {wide_bar} {percent}% of {human_len} transfers",
    );
    if let Some(seconds) = task.seconds().filter(|&seconds| seconds >= SILENT_SECONDS) {
        task.caller.note(format!(
            "timing all algorithms may take up to {seconds:.0} s"
        ));
    }
    let all = task.side_by_side(&task.algorithms, Some(&progress), |share, algorithm| {
        let variant = share.variant_to_plan(algorithm)?;
        row_of(task, &variant, &progress, &bounds)
            .map_err(|error| variant.refusal(Reason::Planner(error)))
    });
    progress.finish();
    let (mut planned, mut skipped) = (Vec::new(), Vec::new());
    let mut several_ports = false;
    for algorithm in all {
        match algorithm {
            Ok((row, uses_several)) => {
                several_ports |= uses_several;
                planned.push(row);
            }
            Err(refusal) => skipped.push(Skipped::from(refusal)),
        }
    }
    skipped.extend(wrong);
    let time = |row: &CompareRow| row.figures.time;
    let mut planned = fastest_first(planned, time);
    let Some(info) = planned.first().map(|fastest| fastest.info.clone()) else {
        return Err(output::none_applies(&skipped));
    };
    warnings_about(
        &args.common,
        &info.kind.with_root(info.root.unwrap_or(0)),
        task.request.get_ports(),
        several_ports,
        &task.caller,
    );
    let variants = planned.iter().filter_map(|row| match &row.candidate {
        Candidate::Planned(variant) => Some(variant),
        Candidate::Own(_) => None,
    });
    task.note_left_out(variants);
    let bounds = bounds.into_inner().unwrap_or_default();
    let lower_bound = bounds.into_values().fold(of_own, f64::min);
    // Of equal times, those of algorithms come first.
    planned.append(&mut rows);
    let mut planned = fastest_first(planned, time);
    for row in &mut planned {
        row.figures.bound = lower_bound;
    }
    Ok(TimedAlgorithms {
        info,
        lower_bound,
        best: planned[0].figures.time,
        rows: planned,
        skipped,
    })
}

/// The row of a variant, and whether it uses several ports.
fn row_of(
    task: &PlanTask,
    variant: &Variant,
    progress: &WorkBar,
    bounds: &Mutex<BTreeMap<Option<usize>, f64>>,
) -> oneport::Result<(CompareRow, bool)> {
    let (algorithm, request) = (&variant.algorithm, &variant.request);
    let (cost, element_bytes) = (request.get_cost(), request.get_element_bytes());
    progress.begin(&algorithm.name(), bar_length(variant));
    let planned = task.to_time(variant)?;
    let timed = planned.timed(cost, |more| progress.add(more))?;
    let info = ScheduleInfo::planned(task, variant, planned.collective().root());
    let levels = match &planned {
        Planned::Stored(schedule) => levels::traffic(schedule, cost),
        Planned::Streamed { .. } => None,
    };
    let candidate = Candidate::Planned(variant.clone());
    let mut row = CompareRow::new(
        &algorithm.to_string(),
        &timed,
        element_bytes,
        info,
        candidate,
    );
    row.levels = levels;
    if let Ok(mut bounds) = bounds.lock() {
        let bound = || planned.lower_bound(cost).largest;
        bounds.entry(row.info.root).or_insert_with(bound);
    }
    Ok((row, planned.uses_several_ports()))
}
