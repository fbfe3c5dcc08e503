//! Running a schedule on a team, as the options say.

use std::time::{Duration, Instant};

use super::eager::{Eager, longest_messages};
use super::outcome::Outcome;
use super::program::Program;
use super::recorder::{Off, Recorder, Stopwatch};
use super::repeat::repeat_on_all;
use super::runner::Job;
use crate::error::{Error, Result};
use crate::machine::{CostModel, Ports};
use crate::rules::max_time;
use crate::run::context::RunContext;
use crate::run::element::Element;
use crate::run::operator::Operator;
use crate::run::placement::Workers;
use crate::run::team::Team;
use crate::run::testdata::RunData;
use crate::run::tuning::MAX_RECORDS;
use crate::run::wait::nanoseconds;
use crate::schedule::{Layout, Schedule, total_len};

/// Whether a run goes at full speed or at the pace of its cost model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clock {
    /// As fast as the machine allows.
    #[default]
    Native,
    /// No step starts, and no rank finishes, before its model time (in nanoseconds since the common
    /// start) has passed in wall-clock time.
    Paced,
}

/// Options of [`Team::run`] and [`Team::run_verified`].
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Native or paced.
    pub clock: Clock,
    /// The cost model of the model clock. For a paced run its units are nanoseconds and bytes.
    pub cost: CostModel,
    /// Number of timed repetitions. For each thread, start and end of every repetition, including
    /// the warm-up, are kept: 16 bytes.
    pub repetitions: usize,
    /// Number of repetitions before them that are not timed.
    pub warmup: usize,
    /// Ports that the ranks really have, if they differ from those of the schedule. Opening a busy
    /// port is an error.
    pub ports: Option<Ports>,
    /// Whether to record when every transfer and computation takes place: [`Outcome::step_times`].
    /// Recording reads the clock twice per step, which takes some time. All transfers are then
    /// rendezvous. Without it there is no cost at all.
    pub trace: bool,
    /// Whether senders of a native run need not wait for their receivers.
    ///
    /// Where every rank has a core, this applies to short messages; where ranks share cores, to
    /// all messages. A sender then waits only before it overwrites a message that has not been
    /// received, or sends to the same rank again. This shortens the wall-clock time and changes
    /// nothing else: a repetition before the others carries the model clock. Without this option
    /// every transfer is a rendezvous.
    pub eager: bool,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            clock: Clock::Native,
            cost: CostModel::new(1000.0, 0.1),
            repetitions: 1,
            warmup: 0,
            ports: None,
            trace: false,
            eager: true,
        }
    }
}

impl Team {
    /// Runs `schedule` with real bytes. Before every repetition, `inputs[rank]` is copied into the
    /// rank's input spans. [`Outcome::outputs`] are the contents of the output spans after the last
    /// repetition. The rest of each buffer starts with values that spoil whatever they are combined
    /// with, and that differ between repetitions.
    ///
    /// The schedule need not be right: one that deadlocks, or whose steps do not match, ends in an
    /// error.
    ///
    /// # Errors
    /// When team, schedule, inputs and options do not fit together, there are more than 100,000,000
    /// repetitions summed over all threads, or a rank fails: [`ErrorKind::Deadline`],
    /// [`ErrorKind::PartnerLeft`], [`ErrorKind::Length`], [`ErrorKind::PortBusy`],
    /// [`ErrorKind::Panicked`] (an operator of the user). The team can be used again.
    ///
    /// [`ErrorKind::Deadline`]: crate::ErrorKind::Deadline
    /// [`ErrorKind::PartnerLeft`]: crate::ErrorKind::PartnerLeft
    /// [`ErrorKind::Length`]: crate::ErrorKind::Length
    /// [`ErrorKind::PortBusy`]: crate::ErrorKind::PortBusy
    /// [`ErrorKind::Panicked`]: crate::ErrorKind::Panicked
    pub fn run<T: Element>(
        &mut self,
        schedule: &Schedule,
        inputs: &[Vec<T>],
        operator: &Operator<T>,
        options: &RunOptions,
    ) -> Result<Outcome<T>> {
        accepts_inputs(schedule.layout(), inputs)?;
        let data = |_| {
            let (collective, layout) = (schedule.collective(), schedule.layout());
            Ok(RunData::given(collective, layout, operator, inputs))
        };
        self.run_on(schedule, operator, options, data)
    }

    /// Runs `schedule` on test data, and compares every rank's output spans after every repetition
    /// with a sequential computation: [`Outcome::is_verified`], [`Outcome::mismatch`].
    ///
    /// The first repetition uses the values of [`inputs`](crate::run::inputs), and each later one
    /// uses others. If vectors are so long or repetitions so many that preparing the data would
    /// take too long, at least four repetitions in a row have different data.
    ///
    /// Right data are no proof: the operators of minima, maxima and bits do not show a contribution
    /// that is counted twice. [`Schedule::check`] proves a schedule.
    ///
    /// # Errors
    /// As [`Team::run`] and
    /// [`Collective::expected_output`](crate::Collective::expected_output). Wrong data are not an
    /// error.
    ///
    /// # Example
    /// ```
    /// use oneport::run::{Operator, RunOptions, Team};
    /// use oneport::Request;
    ///
    /// let schedule = Request::reduce(4, 1000).plan("binomial")?;
    /// let sum = Operator::<f32>::named("sum")?;
    /// let outcome = Team::new(4)?.run_verified(&schedule, &sum, &RunOptions::default())?;
    /// assert!(outcome.is_verified());
    /// # Ok::<(), oneport::Error>(())
    /// ```
    pub fn run_verified<T: Element>(
        &mut self,
        schedule: &Schedule,
        operator: &Operator<T>,
        options: &RunOptions,
    ) -> Result<Outcome<T>> {
        let data = |repetitions| {
            let (collective, layout) = (schedule.collective(), schedule.layout());
            RunData::sampled(collective, layout, operator, repetitions)
        };
        self.run_on(schedule, operator, options, data)
    }

    /// Runs `schedule` on the data that `data` prepares for a given number of repetitions.
    fn run_on<'d, T: Element>(
        &mut self,
        schedule: &'d Schedule,
        operator: &'d Operator<T>,
        options: &RunOptions,
        data: impl FnOnce(usize) -> Result<RunData<'d, T>>,
    ) -> Result<Outcome<T>> {
        if options.trace {
            self.run_recorded::<T, Stopwatch>(schedule, operator, options, data)
        } else {
            self.run_recorded::<T, Off>(schedule, operator, options, data)
        }
    }

    /// As [`Team::run_on`], with recorder `R`.
    fn run_recorded<'d, T: Element, R: Recorder>(
        &mut self,
        schedule: &'d Schedule,
        operator: &'d Operator<T>,
        options: &RunOptions,
        data: impl FnOnce(usize) -> Result<RunData<'d, T>>,
    ) -> Result<Outcome<T>> {
        self.accepts(schedule, operator, options)?;
        let program = Program::new(schedule, options.cost.overlap)?;
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
        let data = data(repetitions)?;
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
        let (wall, wall_total) = reports.wall_times(warmup, whole)?;
        let rank_times = reports.rank_times();
        Ok(Outcome {
            mismatch: reports.mismatch(&data)?,
            compared: if data.is_verified() { repetitions } else { 0 },
            model_time: rank_times.iter().copied().fold(0.0, max_time),
            rank_times,
            step_times: R::ON.then(|| reports.step_times()),
            outputs: reports.ranks.into_iter().map(|r| r.output).collect(),
            wall,
            wall_total,
            pinned: self.pinned,
            oversubscribed: self.oversubscribed(),
            workers: self.workers,
            eager: eager.is_some(),
            warnings,
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
            deadline: self.deadline.saturating_add(pace),
            ..RunContext::new(
                self,
                operator,
                &options.cost,
                schedule.ports(),
                options.clock,
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
        if options.repetitions == 0 {
            return Err(Error::usage("0 repetitions"));
        }
        if operator.name().is_empty() {
            return Err(Error::usage("an operator without a name"));
        }
        Ok(())
    }
}

/// Refuses inputs that do not fill the input spans exactly.
pub(crate) fn accepts_inputs<T>(layout: &[Layout], inputs: &[Vec<T>]) -> Result<()> {
    if inputs.len() != layout.len() {
        return Err(Error::usage(format!(
            "inputs for {} ranks, not {}",
            inputs.len(),
            layout.len()
        )));
    }
    for (rank, (layout, input)) in layout.iter().zip(inputs).enumerate() {
        let expected = total_len(&layout.input);
        if input.len() != expected {
            return Err(Error::usage(format!(
                "rank {rank}: {} input elements for spans of {expected}",
                input.len()
            )));
        }
    }
    Ok(())
}
