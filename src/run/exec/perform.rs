//! Carrying out a run on a team.

use std::time::Instant;

use super::ahead::{RunAhead, longest_copied};
use super::any_run::AnyRun;
use super::options::{Clock, RunPerformer};
use super::outcome::RunReport;
use super::program::Program;
use super::repeat::repeat_on_all;
use super::run::{Place, sealed};
use super::runner::RunnerJob;
use super::spec::RunSpec;
use super::warnings::foreign_warning;
use crate::error::{Error, Result};
use crate::machine;
use crate::rules::max_time;
use crate::run::context::ensure_ends;
use crate::run::placement::Workers;
use crate::run::team::Team;
use crate::run::testdata::RunBuffers;
use crate::run::wait::nanoseconds;

impl sealed::Place for Team {
    fn run(&mut self, run: &AnyRun<'_>) -> Result<RunReport> {
        let AnyRun(run) = *run;
        let spec = run.spec(run.schedule())?;
        let prepared = self.prepare(&spec)?;
        let data = run.data(run.schedule(), spec.verified, prepared.filled)?;
        let report = self.perform(&spec, &prepared, &*data)?;
        let wrong = (0..self.ranks()).filter_map(|rank| Some((data.wrong_repetition(rank)?, rank)));
        if let Some((_, rank)) = wrong.min() {
            data.find_mismatch(rank)?;
        }
        Ok(report)
    }
}

impl Place for Team {
    fn max_ranks(&self) -> usize {
        self.ranks()
    }
}

/// What a team prepares for a run.
struct PreparedTeam<'s> {
    program: Program<'s>,
    ahead: Option<RunAhead>,
    /// Nanoseconds that a paced run takes.
    paced_time: Option<f64>,
    /// Number of repetitions before the timed ones.
    warmup: usize,
    repetitions: usize,
    /// Number of those whose buffers are filled and compared.
    filled: usize,
}

impl Team {
    /// Prepares `spec`, or refuses what does not fit together.
    fn prepare<'s>(&self, spec: &RunSpec<'s>) -> Result<PreparedTeam<'s>> {
        let (schedule, options) = (spec.schedule, spec.options);
        spec.validate()?;
        self.accepts(spec)?;
        let mut program = spec.program()?;
        if options.clock == Clock::Paced && options.cost.sends_eagerly() != machine::Eager::None {
            program = program.copy_to_slots(schedule, &options.cost, spec.combiner.elements)?;
        }
        let paced_time = match options.clock {
            Clock::Native => None,
            Clock::Paced => {
                let simulation = schedule.simulate(&options.cost);
                let time = simulation.ok().map(|s| s.makespan());
                ensure_ends("the paced run ends", time.unwrap_or(0.0))?;
                time
            }
        };
        let ahead = self.ahead(spec, &program);
        // Repetitions that run ahead carry no model clock, so it needs a repetition of its own.
        let (filled, warmup) = spec.filled_and_warmup(usize::from(ahead.is_some()));
        let repetitions = spec.repetitions(warmup, self.threads(), "threads")?;
        Ok(PreparedTeam {
            repetitions,
            filled: filled.min(repetitions),
            program,
            ahead,
            paced_time,
            warmup,
        })
    }

    fn perform(
        &mut self,
        spec: &RunSpec<'_>,
        prepared: &PreparedTeam<'_>,
        buffers: &dyn RunBuffers,
    ) -> Result<RunReport> {
        let (schedule, options) = (spec.schedule, spec.options);
        let mut warnings = self.warnings(schedule, options.clock, prepared.paced_time);
        let first_run = self.runs + 1;
        self.runs += prepared.repetitions as u64;
        // Paced ranks may legitimately wait for as long as the whole run takes.
        let late = options.cost.last_arrival();
        let patience = nanoseconds(prepared.paced_time.unwrap_or(late));
        let context = spec.context(patience, self.copying(spec.buffer_bytes()));
        let job = RunnerJob {
            program: &prepared.program,
            buffers,
            context: &context,
            ahead: prepared.ahead.as_ref(),
            clocked: 1,
            repetitions: prepared.repetitions,
            filled: prepared.filled,
            first_run,
            epoch: Instant::now(),
            trace: options.trace,
        };
        self.state.contention.begin(first_run == 1);
        let reports = repeat_on_all(self, &job, options.stop.as_ref());
        if let Some(failure) = self.state.take_failure() {
            return Err(failure);
        }
        let mut reports = reports.ok_or_else(|| Error::system("a rank's thread is gone"))?;
        let percent_by_others = self.state.contention.percent_by_others();
        warnings.extend(percent_by_others.map(foreign_warning));
        let whole = context.paced || self.oversubscribed() || self.workers == Workers::Cores;
        let rank_times = reports.rank_times();
        Ok(RunReport {
            outputs: Vec::new(),
            mismatch: None,
            model_time: rank_times.iter().copied().fold(0.0, max_time),
            rank_times,
            wall: reports.wall_times(prepared.warmup, whole, late)?,
            step_times: options.trace.then(|| reports.step_times()),
            pinned: self.pinned,
            oversubscribed: self.oversubscribed(),
            workers: self.workers,
            eager: prepared.ahead.is_some(),
            warnings,
            percent_by_others,
            compared: if spec.verified { prepared.filled } else { 0 },
            compared_bits: 0,
            function: None,
        })
    }

    /// The form that runs ahead of a schedule, if it can run so with these options.
    fn ahead(&self, spec: &RunSpec<'_>, program: &Program<'_>) -> Option<RunAhead> {
        let options = spec.options;
        let waits = !options.eager || options.clock == Clock::Paced || options.trace;
        if waits || !spec.has_own_ports() {
            return None;
        }
        let copied = longest_copied(self.workers, self.ranks(), self.cores);
        let elements = spec.combiner.elements;
        RunAhead::of(spec.schedule, program, elements, &options.cost, copied)
    }

    /// Refuses what a team does not run.
    fn accepts(&self, spec: &RunSpec<'_>) -> Result<()> {
        if spec.options.by != RunPerformer::Schedule {
            return Err(Error::usage(
                "by_library needs an MPI world: a team has no library",
            ));
        }
        if spec.schedule.ranks() != self.ranks() {
            return Err(Error::usage(format!(
                "a schedule of {} ranks for a team of {}",
                spec.schedule.ranks(),
                self.ranks()
            )));
        }
        let late = spec.options.cost.last_arrival() > 0.0;
        let asks = match spec.options.clock {
            Clock::Paced => Some("the paced clock needs"),
            Clock::Native => late.then_some("ranks that arrive late need"),
        };
        if let (Workers::Cores, Some(asks)) = (self.workers, asks) {
            return Err(Error::usage(format!(
                "{asks} a thread for each rank, this team has one for each core"
            )));
        }
        self.accepts_elements(spec.combiner.elements.bytes)
    }
}
