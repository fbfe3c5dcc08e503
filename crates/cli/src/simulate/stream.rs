//! Timing of schedules that are too long to store, step by step.

use anyhow::Result;
use oneport::Request;
use oneport::plan::Segments;
use oneport::plan::registry::{Algorithm, Planned};
use oneport::simulate::bounds::lower_bound_of_layouts;

use super::{Output, SimulateArgs, Subject};
use crate::input::{Input, ScheduleInfo, warnings_about};
use crate::progress::WorkBar;
use crate::task::{PlanTask, Timing, finite, steps};
use crate::units::TimeUnit;

/// Maximum number of steps of a schedule that is stored.
const MAX_STORED: u64 = 1 << 20;
/// Schedules over fewer ranks are stored too: their steps are in the segments.
const MIN_RANKS: usize = 1 << 10;

/// A schedule that is timed while it is generated.
pub(super) struct Streamed {
    algorithm: Algorithm,
    pub(super) request: Request,
    planned: Planned,
    pub(super) unit: TimeUnit,
    pub(super) info: ScheduleInfo,
}

/// The requested schedule, if it is long and the options allow it to be timed without being stored:
/// streamed, or stored if the algorithm that was chosen cannot be streamed. `None` if nothing has
/// been planned.
pub(super) fn subject(args: &SimulateArgs) -> Result<Option<Subject>> {
    let common = &args.common;
    let Some(kind) = common.collective.filter(|_| common.schedule.is_empty()) else {
        return Ok(None);
    };
    if !may_stream(args) {
        return Ok(None);
    }
    let mut task = PlanTask::new(common, kind)?;
    let long = |segments| {
        let mut algorithms = task.algorithms.iter().filter(|a| a.is_streamed());
        algorithms.any(|a| steps(a, task.request.ranks(), segments) > MAX_STORED)
    };
    // The best number of segments is not known yet. With the largest possible number the schedule
    // may be long.
    let segments = task.segments.known();
    if !long(segments.map_or(task.request.elements().max(1), Segments::count)) {
        return Ok(None);
    }
    task.timed_only = Some(Timing::Chosen);
    let (algorithm, request) = task.choose()?;
    if !algorithm.is_streamed()
        || steps(&algorithm, request.ranks(), request.get_segments().count()) <= MAX_STORED
    {
        let input = Input::planned_by(&task, &algorithm, request)?;
        return Ok(Some(Subject::Stored(Box::new(input))));
    }
    let planned = algorithm.planned(&request)?;
    let collective = planned.collective();
    let several = planned.uses_several_ports();
    warnings_about(common, &collective, planned.ports(), several);
    let info = ScheduleInfo::planned(&task, &algorithm, &request, collective.root());
    Ok(Some(Subject::Streamed(Box::new(Streamed {
        algorithm,
        request,
        planned,
        unit: task.unit,
        info,
    }))))
}

/// Whether the options ask only for results that streaming provides, for enough ranks.
fn may_stream(args: &SimulateArgs) -> bool {
    let common = &args.common;
    let profile = common.machine.profile.as_ref();
    let piped = profile.is_some_and(|path| path.as_os_str() == "-");
    let plain = common.rules.is_none() && common.machine.costs.is_none() && !piped;
    let many = (common.ranks().ok().flatten()).is_some_and(|ranks| ranks >= MIN_RANKS);
    let whole = args.ranks_table || args.critical_path || common.nodes.node_ports.is_some();
    many && plain && !whole && common.algorithm != "all"
}

impl Streamed {
    /// Times the schedule while it is generated.
    pub(super) fn time(&self) -> Result<Output<'_>> {
        let (planned, request) = (&self.planned, &self.request);
        let (cost, size) = (request.get_cost(), request.get_element_bytes());
        // Each transfer consists of two steps.
        let segments = request.get_segments().count();
        let transfers = steps(&self.algorithm, request.ranks(), segments) / 2;
        let progress = WorkBar::new(
            transfers << u32::from(cost.overlaps()),
            "timing {wide_bar} {percent}% of {human_len} transfers, {eta} left",
        );
        let timed = planned.timed(cost, |more| progress.add(more));
        progress.finish();
        let timed = timed?;
        finite(timed.time)?;
        let collective = planned.collective();
        let (ports, ranks, layouts) = (request.get_ports(), request.ranks(), planned.layouts());
        let bounds = lower_bound_of_layouts(&collective, ports, ranks, layouts, cost, size);
        let planned = Some((&self.algorithm, request));
        Ok(Output::new(
            &timed, bounds, None, cost, size, planned, &self.info,
        ))
    }
}
