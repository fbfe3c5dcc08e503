//! Timing of long schedules, which are not stored, step by step.

use oneport::internal::budget::quick::{MAX_STORED, MIN_STREAMED_RANKS};
use oneport::plan::registry::Planned;

use super::SimulateArgs;
use crate::forms::AlgorithmNames;
use crate::input::warnings_about;
use crate::prelude::*;
use crate::task::Timing;

/// The requested schedule, if the options allow it to be timed without being stored: streamed if it
/// is long and can be, else stored. `None` if they do not.
pub(super) fn input(args: &SimulateArgs, caller: &Caller) -> Result<Option<Input<Planned>>> {
    let common = &args.common;
    let Some(kind) = common.collective.filter(|_| common.schedule.is_empty()) else {
        return Ok(None);
    };
    if !may_stream(args) {
        return Ok(None);
    }
    let mut task = PlanTask::new(common, kind, caller)?;
    let asked = task.request.clone();
    let is_long = |algorithm: &Algorithm, segments| {
        let planning_row = algorithm.planning_row(&asked);
        planning_row.is_streamed() && (planning_row.transfers)(asked.ranks(), segments) > MAX_STORED
    };
    // The best number of segments is not known yet. With the largest possible number the schedule
    // may be long.
    let segments = task.segments.known();
    let segments = segments.map_or(task.request.elements().max(1), Segments::count);
    let may_be_long = task.algorithms.iter().any(|a| is_long(a, segments));
    task.timed_only = may_be_long.then_some(Timing::Chosen);
    let variant = task.choose_aloud()?;
    let request = &variant.request;
    if !(task.streams(&variant) && is_long(&variant.algorithm, request.get_segments().count())) {
        let mut input = Input::planned_by(&task, variant).map_err(Error::from)?;
        input.print_warnings(common, caller)?;
        return Ok(Some(input.map(Planned::Stored)));
    }
    let schedule = variant.planned()?;
    let collective = schedule.collective();
    let several = schedule.uses_several_ports();
    warnings_about(common, &collective, schedule.ports(), several, caller);
    let root = collective.root();
    Ok(Some(Input::of(&task, variant, schedule, root)))
}

/// Whether the options ask only for results that streaming provides, for enough ranks.
fn may_stream(args: &SimulateArgs) -> bool {
    let common = &args.common;
    let profile = common.machine.profile.as_ref();
    let piped = profile.is_some_and(|file| file.path().as_os_str() == "-");
    let plain = common.rules.is_none() && common.machine.costs.is_none() && !piped;
    let many = (common.ranks().ok().flatten()).is_some_and(|ranks| ranks >= MIN_STREAMED_RANKS);
    let whole = args.wants_steps() || common.nodes.node_ports.is_some();
    many && plain && !whole && common.algorithm != AlgorithmNames::All
}
