//! What the options of `oneport run` mean, a schedule that can be run and is right, and its run.

use oneport::check::{self, Finding, FindingKind};
use oneport::internal::system;
use oneport::run::{Place as _, Run, Team, TeamOptions, Teams, Topology};
use oneport::simulate::Prepared;
use oneport_measure::{Measurable, MeasuredRun, interleave};
use oneport_pictures::Trace;

use super::limits::memory_of_schedule;
use super::report::Ran;
use super::{CoreChoice, RunArgs};
use crate::answer::FoundWrong;
use crate::args::operator;
use crate::draw::OutputFile;
use crate::input::{ensure_same_bits, first_of, print_warnings};
use crate::prelude::*;
use crate::site;

/// A schedule to run.
pub(super) struct RunJob<'a> {
    pub(super) args: &'a RunArgs,
    pub(super) input: Input,
    /// The type of its elements.
    pub(super) dtype: ElementType,
    /// What --trace writes.
    pub(super) trace: Option<OutputFile>,
}

impl<'a> RunJob<'a> {
    /// The one run of the options, whose files can be written.
    pub(super) fn new(args: &'a RunArgs, site: &Site) -> Result<RunJob<'a>> {
        let mut job = RunJob::planned(args, site)?;
        let schedule = &job.input.schedule;
        print_warnings(&args.common.typed().0, schedule, &site.caller);
        site.note_spare(schedule.ranks());
        job.trace = args.trace.as_deref().map(OutputFile::of).transpose()?;
        if let Some(file) = job.trace {
            file.ensure_fits_memory(schedule)?;
        }
        args.writable(site)?;
        job.proved(site)
    }

    /// What is run, if there is a place for it.
    pub(super) fn planned(args: &'a RunArgs, site: &Site) -> Result<RunJob<'a>> {
        let (mut common, dtype) = args.common.typed();
        if let Some(world) = &site.world {
            args.ensure_for_processes()?;
            common.take_ranks(world.size());
        } else if let Some(ranks) = common.ranks()?.filter(|_| common.schedule.is_empty()) {
            args.ensure_threads(ranks)?;
        }
        let input = common.input_for_run(
            &site.caller,
            args.built_in(site)?,
            |machine, ranks| match site.world {
                None => args.core_model(machine, ranks),
                Some(_) => Ok(None),
            },
        )?;
        let kind = input.schedule.collective().kind();
        common.vector.ensure_combines(kind, dtype)?;
        ensure_same_bits(&input.schedule, &common.vector)?;
        match site.world {
            None => args.ensure_fits(&input)?,
            Some(_) => site.ensure_processes(input.schedule.ranks())?,
        }
        if args.repetitions == 0 {
            bail!("--repetitions is 0: at least one is timed");
        }
        Ok(RunJob {
            args,
            input,
            dtype,
            trace: None,
        })
    }

    /// The job, if its schedule is right. One process finds that out for all.
    pub(super) fn proved(self, site: &Site) -> Result<RunJob<'a>> {
        let Some(error) = site.speaks().then(|| self.first_error()).flatten() else {
            return Ok(self);
        };
        let refused = refused(&error, &self.input.info);
        let answer = if self.args.common.json {
            serde_json::to_string_pretty(&refused)? + "\n"
        } else {
            String::new()
        };
        let message = format!("wrong schedule: {error}");
        Err(FoundWrong { message, answer }.into())
    }

    /// Returns the reason not to run the schedule: the first error that `check` finds, because
    /// correct data prove nothing (some operators hide errors that others reveal); without
    /// verification only steps that would wait for each other until the deadline.
    fn first_error(&self) -> Option<String> {
        let (args, input) = (self.args, &self.input);
        // Schedules that complete need no search for cycles.
        if args.no_verify && Prepared::new(&input.schedule, input.cost.overlaps()).is_ok() {
            return None;
        }
        let report = input.check(&args.common, check::Options::default().max_errors);
        let waits = |kind| matches!(kind, FindingKind::Deadlock | FindingKind::TwoPorts);
        let counts = |finding: &&Finding| !args.no_verify || waits(finding.kind);
        let wrong = first_of(report.errors.iter().filter(counts), report.more)?;
        let instead = if args.no_verify {
            ""
        } else {
            " (not run: --no-verify runs it all the same)"
        };
        Some(wrong + instead)
    }
}

impl site::Job for RunJob<'_> {
    type Done = Ran;

    fn fact(&self) -> String {
        let library = if self.args.library {
            " and measures the library"
        } else {
            ""
        };
        format!("runs a schedule{library}")
    }

    fn perform(self, site: &mut Site) -> Result<Ran> {
        let (args, input) = (self.args, &self.input);
        let schedule = &input.schedule;
        if (input.cost.links().is_some() || args.waits(input))
        // A schedule that does not complete is left to the run, which reports the error.
        && let Ok(prepared) = Prepared::new(schedule, input.cost.overlaps())
        {
            let simulation = prepared.simulate(&input.cost)?;
            let time = simulation.makespan();
            let late = input.cost.last_arrival();
            let waits = if args.clock == Clock::Paced {
                time
            } else {
                late
            };
            args.ensure_ends(waits, input.unit, &site.caller)?;
        }
        let cores = match &site.world {
            Some(world) => world.cores(),
            None => team(args, input, site)?.cores(),
        };
        let (row, library) = self.measured(site)?;
        let trace = row.step_times.as_deref();
        let trace = trace.map(|times| Trace::wall(schedule, times));
        Ok(Ran {
            trace: self.trace.zip(trace.transpose()?),
            processes: site.processes(),
            dtype: self.dtype,
            row,
            library,
            cores,
            input: self.input,
        })
    }
}

impl RunJob<'_> {
    /// What is measured of the schedule, and of the library's own function, if that is asked for.
    fn measured(&self, site: &mut Site) -> Result<(MeasuredRun, Option<MeasuredRun>)> {
        let runs = oneport::with_element_type!(self.dtype, T => self.runs::<T>(&site.caller))?;
        if !self.args.library {
            return Ok((runs[0].batch(site, self.args.repetitions, false)?, None));
        }
        let mut rows = interleave(site, &runs, |_, _| {})?;
        let library = rows.pop();
        Ok((rows.pop().context("no row of the schedule")?, library))
    }

    /// The run of the schedule with elements of type `T`, and of the library's own function.
    fn runs<T: Element>(&self, caller: &Caller) -> oneport::Result<[Box<dyn Measurable + '_>; 2]> {
        let (args, input) = (self.args, &self.input);
        let operator = operator::<T>(input.info.kind, args.common.vector.op())?;
        let run = caller
            .stoppable(Run::new(&input.schedule))
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
        Ok([Box::new(run.clone()), Box::new(run.by_library())])
    }
}

/// What JSON output says of a schedule that is not run.
fn refused(error: &str, info: &ScheduleInfo) -> impl Answered {
    record! {
        verified: false,
        error: error,
        #[serde(flatten)]
        info: info,
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
