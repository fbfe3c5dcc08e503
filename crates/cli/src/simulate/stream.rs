//! Timing of schedules that are too long to store, step by step.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use oneport::Request;
use oneport::plan::Segments;
use oneport::plan::registry::Algorithm;
use oneport::simulate::bounds::lower_bound_of_layouts;

use super::{Args, Output, print_summary};
use crate::input::{Input, ScheduleInfo, warnings_about};
use crate::output;
use crate::progress::Progress;
use crate::task::{Task, Timing, finite, steps};

/// Maximum number of steps of a schedule that is stored.
const MAX_STORED: u64 = 1 << 20;
/// Schedules over fewer ranks are stored too: their steps are in the segments.
const MIN_RANKS: usize = 1 << 10;

/// Result of an attempt to stream a schedule.
pub(super) enum Outcome {
    /// The schedule was timed and printed.
    Done(ExitCode),
    /// The schedule was planned and stored instead. It is passed on because the choice of the
    /// algorithm may take long.
    Stored(Box<Input>),
    /// Nothing has been done.
    Nothing,
}

/// Times the requested schedule without storing it, if it is long and the algorithm and the options
/// allow that.
pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let common = &args.common;
    let Some(kind) = common.collective.filter(|_| common.schedule.is_none()) else {
        return Ok(Outcome::Nothing);
    };
    if !may_stream(args) {
        return Ok(Outcome::Nothing);
    }
    let mut task = Task::new(common, kind)?;
    let long = |segments| {
        let mut algorithms = task.algorithms.iter().filter(|a| a.is_streamed());
        algorithms.any(|a| steps(a, task.request.ranks(), segments) > MAX_STORED)
    };
    // The best number of segments is not known yet. With the largest possible number the schedule
    // may be long.
    let segments = task.segments.known();
    if !long(segments.map_or(task.request.elements().max(1), Segments::count)) {
        return Ok(Outcome::Nothing);
    }
    task.timed_only = Some(Timing::Chosen);
    let (algorithm, request) = task.choose()?;
    if !algorithm.is_streamed()
        || steps(&algorithm, request.ranks(), request.get_segments().count()) <= MAX_STORED
    {
        return Ok(Outcome::Stored(Box::new(Input::planned_by(
            &task, &algorithm, request,
        )?)));
    }
    print_timed(args, &task, &algorithm, &request, out)?;
    Ok(Outcome::Done(ExitCode::SUCCESS))
}

/// Whether the options ask only for results that streaming provides, for enough ranks.
fn may_stream(args: &Args) -> bool {
    let common = &args.common;
    let profile = common.machine.profile.as_ref();
    let piped = profile.is_some_and(|path| path.as_os_str() == "-");
    let plain = common.rules.is_none() && common.machine.costs.is_none() && !piped;
    let many = common.ranks.is_some_and(|ranks| ranks >= MIN_RANKS);
    let whole = args.ranks_table || args.critical_path || common.nodes.node_ports.is_some();
    many && plain && !whole && common.algorithm != "all"
}

/// Times the algorithm's schedule while it is generated, and prints the result.
fn print_timed(
    args: &Args,
    task: &Task,
    algorithm: &Algorithm,
    request: &Request,
    out: &mut dyn Write,
) -> Result<()> {
    let planned = algorithm.planned(request)?;
    let collective = planned.collective();
    let several = planned.uses_several_ports();
    warnings_about(&args.common, &collective, planned.ports(), several);
    // Each transfer consists of two steps.
    let transfers = steps(algorithm, request.ranks(), request.get_segments().count()) / 2;
    let progress = Progress::new(
        transfers << u32::from(request.get_cost().overlaps()),
        "timing {wide_bar} {percent}% of {human_len} transfers, {eta} left",
    );
    let cost = request.get_cost();
    let size = request.get_element_bytes();
    let timed = planned.timed(cost, |more| progress.add(more));
    progress.finish();
    let timed = timed?;
    finite(timed.time)?;
    let layouts = planned.layouts();
    let (ports, ranks) = (request.get_ports(), request.ranks());
    let bounds = lower_bound_of_layouts(&collective, ports, ranks, layouts, cost, size);
    let info = ScheduleInfo::planned(task, algorithm, request, collective.root());
    let planned = Some((algorithm, request));
    let output = Output::new(&timed, bounds, None, cost, size, planned, &info);
    output::answer(out, args.common.json, &output, |out| {
        print_summary(out, info.summary(cost, task.unit), task.unit, &output)
    })?;
    Ok(())
}
