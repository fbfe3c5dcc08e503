//! Runs a schedule with elements of one type.

use anyhow::{Context, Result};
use oneport::internal::system;
use oneport::run::{Clock, Element, Place as _, Run, Team, TeamOptions, Teams, Topology};
use oneport::simulate::Prepared;
use oneport_measure::{MeasuredRun, interleave};
use oneport_pictures::Trace;

use super::job::RunJob;
use super::limits::memory_of_schedule;
use super::report::Ran;
use super::{CoreChoice, RunArgs};
use crate::args::operator;
use crate::input::Input;
use crate::site::Site;
use crate::task::finite;

impl RunJob<'_> {
    /// Runs the schedule with elements of type `T`.
    pub(super) fn execute<T: Element>(self, site: &mut Site) -> Result<Ran> {
        let (args, input) = (self.args, self.input);
        let schedule = &input.schedule;
        if (input.cost.links().is_some() || args.clock == Clock::Paced)
        // A schedule that does not complete is left to the run, which reports the error.
        && let Ok(prepared) = Prepared::new(schedule, input.cost.overlaps())
        {
            let simulation = prepared.simulate(&input.cost)?;
            args.ensure_ends(finite(simulation.makespan())?, input.unit)?;
        }
        let operator = operator::<T>(input.info.kind, args.common.vector.op())?;
        let run = Run::new(schedule)
            .op(&operator)
            .clock(args.clock)
            .cost(input.cost.clone())
            .deadline(args.deadline)
            .repetitions(args.repetitions)
            .warmup(args.warmup)
            .keep_inputs(args.inputs.inputs.kept())
            .trace(args.trace.is_some())
            .eager(!args.rendezvous);
        let run = if args.no_verify { run } else { run.verified() };
        let cores = match &site.world {
            Some(world) => world.cores(),
            None => team(args, &input, site)?.cores(),
        };
        let (row, library) = if args.library {
            let runs = [run.clone(), run.by_library()];
            let mut rows = interleave(site, &runs, |_, _| {})?;
            let library = rows.pop();
            (rows.pop().context("no row of the schedule")?, library)
        } else {
            (MeasuredRun::from(run.on(site)?), None)
        };
        let trace = row.step_times.as_deref();
        let trace = trace.map(|times| Trace::wall(schedule, times));
        Ok(Ran {
            trace: self.trace.zip(trace.transpose()?),
            processes: site.processes(),
            dtype: self.dtype,
            row,
            library,
            cores,
            input,
        })
    }
}

/// The team of threads of a run.
fn team<'s>(args: &RunArgs, input: &Input, site: &'s mut Site) -> Result<&'s mut Team> {
    // The threads' stacks must not take the memory that the run needs.
    let reserved = system::reserve_memory("the run", memory_of_schedule(&input.schedule))?;
    let mut options = TeamOptions {
        tuning: args.common.machine.tuning()?,
        ..args.team()
    };
    if args.placement == Some(CoreChoice::Schedule) {
        options.cores = Some(Topology::here().near_partners(&input.schedule));
    }
    site.teams = Teams::new(options);
    let team = site.teams.team(input.schedule.ranks())?;
    drop(reserved);
    Ok(team)
}
