//! All algorithms, and the schedules of `--schedule`, timed in the model.

use std::sync::Mutex;

use oneport::plan::refusal::Reason;
use oneport::plan::registry::Planned;
use oneport::plan::space::Variant;

use super::{CompareArgs, CompareRow, own};
use crate::input::warnings_about;
use crate::levels;
use crate::prelude::*;
use crate::task::bar_length;

/// Comparisons that take at least this long, in seconds, say so before.
const SILENT_SECONDS: f64 = 5.0;

/// All algorithms, timed in the model.
pub(super) struct RankedAlgorithms {
    /// Description of the fastest schedule.
    pub(super) info: ScheduleInfo,
    /// For the roots that were taken.
    pub(super) lower_bound: f64,
    /// The least model time.
    pub(super) best: f64,
    /// One row for each algorithm, fastest first.
    pub(super) rows: Vec<CompareRow>,
    /// Those that cannot be used.
    pub(super) skipped: Vec<Skipped>,
    /// By row: what was timed.
    pub(super) candidates: Vec<Candidate>,
}

/// What a row is about.
pub(super) enum Candidate {
    Planned(Variant),
    Own(Schedule),
}

/// Times all algorithms, and the schedules of `--schedule`.
pub(super) fn rank(
    args: &CompareArgs,
    common: &Common,
    task: &PlanTask,
) -> Result<RankedAlgorithms> {
    let (own, wrong) = own::timed(common, task)?;
    // By root.
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
        let variant = share.variant_of(algorithm)?;
        TimedAlgorithm::new(task, &variant, &progress, &bounds)
            .map_err(|error| algorithm.refusal(&variant.request, Reason::Planner(error)))
    });
    progress.finish();
    let (mut timed, mut skipped) = (Vec::new(), Vec::new());
    for algorithm in all {
        match algorithm {
            Ok(algorithm) => timed.push(algorithm),
            Err(refusal) => skipped.push(Skipped::from(refusal)),
        }
    }
    skipped.extend(wrong);
    timed.sort_by(|a, b| a.row.figures.time.total_cmp(&b.row.figures.time));
    let Some(fastest) = timed.first() else {
        return Err(output::none_applies(&skipped));
    };
    let several_ports = timed.iter().any(|timed| timed.several_ports);
    let ports = task.request.get_ports();
    let info = &fastest.row.info;
    let collective = info.kind.with_root(info.root.unwrap_or(0));
    warnings_about(
        &args.common,
        &collective,
        ports,
        several_ports,
        &task.caller,
    );
    let bounds = bounds.into_inner().unwrap_or_default();
    // Schedules of files may take another root, split blocks, or have a block in its place.
    let cost = task.request.get_cost();
    let of_own = own.iter().map(|own| own.schedule.lower_bound(cost).largest);
    let lower_bound = bounds
        .into_values()
        .chain(of_own)
        .fold(f64::INFINITY, f64::min);
    let info = fastest.row.info.clone();
    let timed = timed.into_iter();
    let planned = timed.map(|timed| (timed.row, Candidate::Planned(timed.variant)));
    let own = own
        .into_iter()
        .map(|own| (own.row, Candidate::Own(own.schedule)));
    let mut all: Vec<_> = planned.chain(own).collect();
    all.sort_by(|a, b| a.0.figures.time.total_cmp(&b.0.figures.time));
    let (mut rows, candidates): (Vec<CompareRow>, Vec<Candidate>) = all.into_iter().unzip();
    for row in &mut rows {
        row.figures.bound = lower_bound;
    }
    Ok(RankedAlgorithms {
        info,
        lower_bound,
        best: rows[0].figures.time,
        rows,
        skipped,
        candidates,
    })
}

/// A timed algorithm.
struct TimedAlgorithm {
    variant: Variant,
    several_ports: bool,
    row: CompareRow,
}

impl TimedAlgorithm {
    fn new(
        task: &PlanTask,
        variant: &Variant,
        progress: &WorkBar,
        bounds: &Mutex<BTreeMap<Option<usize>, f64>>,
    ) -> oneport::Result<TimedAlgorithm> {
        let (algorithm, request) = (&variant.algorithm, &variant.request);
        let (cost, element_bytes) = (request.get_cost(), request.get_element_bytes());
        progress.begin(&algorithm.name(), bar_length(variant));
        let planned = if task.streams(algorithm) {
            variant.planned()?
        } else {
            Planned::Stored(task.plan(variant)?)
        };
        let timed = planned.timed(cost, |more| progress.add(more))?;
        let info = ScheduleInfo::planned(task, variant, planned.collective().root());
        let levels = match &planned {
            Planned::Stored(schedule) => levels::traffic(schedule, cost),
            Planned::Streamed { .. } => None,
        };
        let name = algorithm.to_string();
        let row = CompareRow::new(&name, &timed, element_bytes, info, levels)?;
        if let Ok(mut bounds) = bounds.lock() {
            let bound = || planned.lower_bound(cost).largest;
            bounds.entry(row.info.root).or_insert_with(bound);
        }
        Ok(TimedAlgorithm {
            variant: variant.clone(),
            several_ports: planned.uses_several_ports(),
            row,
        })
    }
}
