//! Timing of long schedules, which are not stored, step by step.

use oneport::internal::budget::quick::MIN_STREAMED_RANKS;
use oneport::plan::refusal::Reason;
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
    task.timed_only = Some(Timing::Chosen);
    let variant = task.choose_aloud()?;
    let planned = task.to_time(&variant);
    let planned = planned.map_err(|error| Error::from(variant.refusal(Reason::Planner(error))))?;
    let (collective, several) = (planned.collective(), planned.uses_several_ports());
    warnings_about(common, &collective, planned.ports(), several, caller);
    let root = collective.root();
    Ok(Some(Input::of(&task, variant, planned, root)))
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
