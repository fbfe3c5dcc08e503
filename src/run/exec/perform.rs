//! Carrying out a run on a team.

use std::time::{Duration, Instant};

use super::eager::{Eager, longest_messages};
use super::outcome::Outcome;
use super::program::Program;
use super::recorder::{Off, Recorder, Stopwatch};
use super::repeat::repeat_on_all;
use super::run::{Clock, Performer, Place, Run, RunOptions};
use super::runner::Job;
use crate::error::{Error, Result};
use crate::rules::max_time;
use crate::run::context::RunContext;
use crate::run::element::Element;
use crate::run::operator::Operator;
use crate::run::placement::Workers;
use crate::run::team::Team;
use crate::run::tuning::MAX_RECORDS;
use crate::run::wait::nanoseconds;
use crate::schedule::Schedule;

impl Place for Team {
    fn run<T: Element>(&mut self, run: &Run<'_, T>) -> Result<Outcome<T>> {
        if run.options.trace {
            self.run_recorded::<T, Stopwatch>(run)
        } else {
            self.run_recorded::<T, Off>(run)
        }
    }

    fn max_ranks(&self) -> usize {
        self.ranks()
    }
}

impl Team {
    /// Carries out `run` with recorder `R`.
    fn run_recorded<T: Element, R: Recorder>(&mut self, run: &Run<'_, T>) -> Result<Outcome<T>> {
        let (schedule, options) = (run.schedule, &run.options);
        let operator = &run.operator()?;
        self.accepts(schedule, operator, options)?;
        let program = Program::new(schedule, options.cost.overlaps())?;
        let paced_time = match options.clock {
            Clock::Native => None,
            Clock::Paced => {
                let simulation = schedule.simulate_bytes(&options.cost, size_of::<T>() as u64);
                simulation.ok().map(|s| s.makespan())
            }
        };
        let mut warnings = self.warnings(schedule, options.clock, paced_time);
        let eager = self.eager::<T, R>(schedule, &program, options);
        // Eager repetitions carry no model clock, so it needs a repetition of its own.
        let warmup = options.warmup.max(usize::from(eager.is_some()));
        let repetitions = self.repetitions(warmup, options.repetitions)?;
        let data = run.data(schedule, operator, repetitions)?;
        let first_run = self.runs + 1;
        self.runs += repetitions as u64;
        let context = self.context(schedule, operator, options, paced_time);
        let job = Job {
            schedule,
            program: &program,
            data: &data,
            context: &context,
            eager: eager.as_ref(),
            clocked: 1,
            repetitions,
            first_run,
            epoch: Instant::now(),
        };
        self.state.contention.begin(first_run == 1);
        let reports = repeat_on_all::<T, R>(self, &job);
        if let Some(failure) = self.state.take_failure() {
            return Err(failure);
        }
        let mut reports = reports.ok_or_else(|| Error::system("a rank's thread is gone"))?;
        warnings.extend(self.foreign_warning());
        let whole = context.paced || self.oversubscribed() || self.workers == Workers::Cores;
        let wall = reports.wall_times(warmup, whole)?;
        let rank_times = reports.rank_times();
        Ok(Outcome {
            mismatch: reports.mismatch(&data)?,
            compared: if data.is_verified() { repetitions } else { 0 },
            model_time: rank_times.iter().copied().fold(0.0, max_time),
            rank_times,
            step_times: R::ON.then(|| reports.step_times()),
            outputs: reports.ranks.into_iter().map(|r| r.output).collect(),
            wall,
            pinned: self.pinned,
            oversubscribed: self.oversubscribed(),
            workers: self.workers,
            eager: eager.is_some(),
            warnings,
            function: None,
        })
    }

    /// The eager form of `schedule`, if it can run so with these options.
    fn eager<T: Element, R: Recorder>(
        &self,
        schedule: &Schedule,
        program: &Program<'_>,
        options: &RunOptions,
    ) -> Option<Eager> {
        let waits = !options.eager || options.clock == Clock::Paced || R::ON;
        if waits || options.ports.is_some_and(|p| p != schedule.ports()) {
            return None;
        }
        let longest = longest_messages(self.workers, self.ranks(), self.cores);
        Eager::of::<T>(schedule, program, &options.cost, longest)
    }

    /// What all ranks share in a run of `schedule`. A paced run takes `paced_time` nanoseconds.
    fn context<'r, T>(
        &'r self,
        schedule: &Schedule,
        operator: &'r Operator<T>,
        options: &'r RunOptions,
        paced_time: Option<f64>,
    ) -> RunContext<'r, T> {
        let lengths = schedule.layout().iter().map(|l| l.len);
        let elements = lengths.fold(0, usize::saturating_add);
        // Paced ranks may legitimately wait for as long as the whole run takes.
        let pace = paced_time.map_or(Duration::ZERO, nanoseconds);
        RunContext {
            enforced: options.ports.unwrap_or(schedule.ports()),
            ..RunContext::new(
                self,
                operator,
                &options.cost,
                schedule.ports(),
                options.clock,
                options.deadline.saturating_add(pace),
                elements.saturating_mul(size_of::<T>()),
            )
        }
    }

    /// The number of all repetitions, if the start and end of each can be kept for each thread.
    fn repetitions(&self, warmup: usize, timed: usize) -> Result<usize> {
        let all = warmup.checked_add(timed);
        let records = all.and_then(|all| all.checked_mul(self.threads()));
        match (all, records) {
            (Some(all), Some(records)) if records <= MAX_RECORDS => Ok(all),
            _ => Err(Error::usage(format!(
                "{timed} repetitions after {warmup} that are not counted are too many: of {} threads, {} are recorded at most",
                self.threads(),
                MAX_RECORDS / self.threads().max(1)
            ))),
        }
    }

    /// Refuses what does not fit together.
    fn accepts<T: Element>(
        &self,
        schedule: &Schedule,
        operator: &Operator<T>,
        options: &RunOptions,
    ) -> Result<()> {
        options.cost.validate()?;
        options.cost.covers(schedule.ranks())?;
        schedule.ensure_links(&options.cost)?;
        if options.by != Performer::Schedule {
            return Err(Error::usage(
                "threads have no library that could do the work",
            ));
        }
        if schedule.ranks() != self.ranks() {
            return Err(Error::usage(format!(
                "a schedule of {} ranks for a team of {}",
                schedule.ranks(),
                self.ranks()
            )));
        }
        if self.workers == Workers::Cores && options.clock == Clock::Paced {
            return Err(Error::usage(
                "the paced clock needs a thread for each rank, this team has one for each core",
            ));
        }
        self.accepts_elements(size_of::<T>())?;
        options.validate()?;
        if operator.name().is_empty() {
            return Err(Error::usage("an operator without a name"));
        }
        Ok(())
    }
}
