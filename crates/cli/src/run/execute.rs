//! Runs a schedule with elements of one type.

use anyhow::{Context, Result};
use oneport::internal::system;
use oneport::run::{
    Clock, Element, ElementType, Operator, Run, Team, TeamOptions, Teams, Topology,
};
use oneport::simulate::Prepared;
use oneport_measure::{in_turns, percentile_distribution};
use oneport_pictures::Trace;

use super::limits::memory_of;
use super::report::{Library, RunResult, Wall};
use super::{Args, Pace, Place};
use crate::input::Input;
use crate::site::Site;
use crate::task::finite;

/// Runs the schedule with elements of type `dtype`.
pub(super) fn execute_as(
    dtype: ElementType,
    args: &Args,
    input: &Input,
    site: &mut Site,
) -> Result<RunResult> {
    oneport::with_element_type!(dtype, T => execute::<T>(args, input, site))
}

fn execute<T: Element>(args: &Args, input: &Input, site: &mut Site) -> Result<RunResult> {
    let schedule = &input.schedule;
    if (input.cost.links().is_some() || args.clock == Pace::Paced)
        // A schedule that does not complete is left to the run, which reports the error.
        && let Ok(prepared) = Prepared::new(schedule, input.cost.overlaps())
    {
        let simulation = prepared.simulate(&input.cost)?;
        args.ensure_ends(finite(simulation.makespan())?, input.unit)?;
    }
    let operator = if schedule.collective().kind().reduces() {
        Operator::<T>::named(args.common.vector.op().name())?
    } else {
        Operator::none()
    };
    let run = Run::new(schedule)
        .op(&operator)
        .clock(match args.clock {
            Pace::Native => Clock::Native,
            Pace::Paced => Clock::Paced,
        })
        .cost(input.cost.clone())
        .deadline(args.deadline)
        .repetitions(args.repetitions)
        .warmup(args.warmup)
        .trace(args.trace.is_some())
        .eager(!args.rendezvous);
    let run = if args.no_verify { run } else { run.verified() };
    let cores = match &site.world {
        Some(world) => world.cores(),
        None => team(args, input, site)?.cores(),
    };
    let (outcome, library) = if args.library {
        let runs = [run.clone(), run.by_library()];
        let mut outcomes = in_turns(site, &runs, |_, _| {})?;
        let theirs = outcomes.pop().context("no outcome of the library")?;
        let ours = outcomes.pop().context("no outcome of the schedule")?;
        let library = Library::of(&theirs, ours.wall.median_ns());
        (ours, Some(library))
    } else {
        (run.on(site)?, None)
    };
    let trace = outcome.step_times.as_deref();
    let trace = trace.map(|times| Trace::wall(schedule, times));
    let trace = trace.transpose()?;
    let wall = &outcome.wall;
    Ok(RunResult {
        distribution: args
            .histogram
            .is_some()
            .then(|| percentile_distribution(oneport::internal::histogram(wall))),
        model_time: outcome.model_time,
        wall: Wall::of(wall),
        pinned: outcome.pinned,
        oversubscribed: outcome.oversubscribed,
        cores,
        warnings: outcome.warnings,
        eager: outcome.eager,
        library,
        trace,
        wrong: (!args.no_verify).then(|| outcome.mismatch.map(|m| m.to_string())),
    })
}

/// The team of threads of a run.
fn team<'s>(args: &Args, input: &Input, site: &'s mut Site) -> Result<&'s mut Team> {
    // The threads' stacks must not take the memory that the run needs.
    let reserved = system::reserve_memory("the run", memory_of(input))?;
    let mut options = TeamOptions {
        tuning: args.common.machine.tuning()?,
        ..args.team()
    };
    if args.placement == Some(Place::Schedule) {
        options.cores = Some(Topology::here().near_partners(&input.schedule));
    }
    site.teams = Teams::new(options);
    let team = site.teams.team(input.schedule.ranks())?;
    drop(reserved);
    Ok(team)
}
