//! Running a schedule on a team: options, repetitions, and the outcome with its times and data.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::eager::{Eager, longest_messages};
use super::program::Program;
use super::recorder::{Off, Recorder, Stopwatch};
use super::repeat::{Job, RankReport, Reports, repeat_on_all};
use crate::error::{Error, Result};
use crate::machine::{CostModel, Ports};
use crate::rules::max_time;
use crate::run::context::RunContext;
use crate::run::element::Element;
use crate::run::operator::Operator;
use crate::run::team::{Team, Workers};
use crate::run::testdata::{Mismatch, RunData};
use crate::run::tuning::{MAX_RECORDS, WAKE_NS};
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
    /// Recording reads the clock twice per step, which takes some time. Without it there is no
    /// cost at all.
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

/// The result of a run.
#[derive(Debug, Clone)]
pub struct Outcome<T> {
    /// The contents of every rank's output spans after the last repetition, in order.
    pub outputs: Vec<Vec<T>>,
    /// Model time as executed: carried along with the messages, and equal to what
    /// [`crate::simulate`] computes.
    pub model_time: f64,
    /// Model time at which each rank finished.
    pub rank_times: Vec<f64>,
    /// Wall-clock time of every timed repetition, in nanoseconds. Where every rank has a core, it
    /// is the time of the slowest rank. In oversubscribed, multiplexed and paced runs it is the
    /// time from the first start to the last end.
    pub wall: Histogram<u64>,
    /// The exact sum of these times; the histogram's buckets round.
    pub wall_total: Duration,
    /// Whether every thread was pinned to its core.
    pub pinned: bool,
    /// Whether ranks outnumber cores.
    pub oversubscribed: bool,
    /// Whether each rank or each core had a thread.
    pub workers: Workers,
    /// Whether senders did not wait for their receivers: [`RunOptions::eager`].
    pub eager: bool,
    /// What a reader of the wall-clock times should know.
    pub warnings: Vec<String>,
    /// The first wrong element, in the first repetition with wrong outputs, if there was one: see
    /// [`Team::run_verified`].
    pub mismatch: Option<Mismatch<T>>,
    /// Number of repetitions, including the warm-up, after which every rank's output was compared.
    /// It is 0 for a run on inputs given by the caller.
    pub compared: usize,
    /// By rank and step, if [`RunOptions::trace`] is set: when the step of the last repetition
    /// opened its port, or started to compute, and when it ended, in nanoseconds of wall-clock
    /// time since the first rank started. [`Trace::wall`](crate::report::Trace::wall) makes a
    /// trace of them. A message is combined while it arrives. Under a paced clock, a step
    /// lasts until the model lets it end, however soon its bytes have moved.
    pub step_times: Option<Vec<Vec<(u64, u64)>>>,
}

impl<T> Outcome<T> {
    /// Whether every rank's output was compared after every repetition and was right each time.
    pub fn is_verified(&self) -> bool {
        self.compared > 0 && self.mismatch.is_none()
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
    /// that is counted twice. [`check`](crate::check::check) proves a schedule.
    ///
    /// # Errors
    /// As [`Team::run`], and as [`Collective::promises`](crate::Collective::promises). Wrong data
    /// are not an error.
    ///
    /// # Example
    /// ```
    /// use oneport::run::{Operator, RunOptions, Team};
    /// use oneport::{Kind, Request, plan::registry};
    ///
    /// let schedule = registry::find(Kind::Reduce, "binomial")?.plan(&Request::new(4, 1000))?;
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

    fn run_recorded<'d, T: Element, R: Recorder>(
        &mut self,
        schedule: &'d Schedule,
        operator: &'d Operator<T>,
        options: &RunOptions,
        data: impl FnOnce(usize) -> Result<RunData<'d, T>>,
    ) -> Result<Outcome<T>> {
        self.accepts(schedule, operator, options)?;
        let program = Program::new(schedule, options.cost.overlap)?;
        let paced = options.clock == Clock::Paced;
        let mut warnings = Vec::new();
        let mut deadline = self.deadline;
        if paced {
            // Ranks may legitimately wait for as long as the whole run takes.
            if let Ok(simulation) = schedule.simulate(&options.cost, size_of::<T>() as u64) {
                let time = simulation.time();
                deadline = deadline.saturating_add(nanoseconds(time));
                warnings.extend(self.pace_warning(schedule, time));
            }
        } else if self.oversubscribed() && self.workers == Workers::Ranks {
            warnings.push(format!(
                "{} ranks on {}: wall-clock includes waiting for a core; try the paced clock",
                self.ranks(),
                cores_in_words(self.cores)
            ));
        }
        if self.unpaid_cores > 0 {
            warnings.push(format!(
                "the CPU quota of this process grants {} of the {} cores that ranks are pinned to: the system stops them when it is spent",
                self.cores,
                self.cores + self.unpaid_cores
            ));
        }
        if !self.pinned {
            warnings
                .push("the system refused to pin some ranks: they may move between cores".into());
        }
        let buffers = schedule.layout().iter().map(|l| l.len);
        let buffers = buffers
            .fold(0, usize::saturating_add)
            .saturating_mul(size_of::<T>());
        let enforced = options.ports.unwrap_or(schedule.ports());
        let waits = !options.eager || paced || R::ON;
        let eager = if waits || enforced != schedule.ports() {
            None
        } else {
            Eager::of::<T>(
                schedule,
                &program,
                &options.cost,
                longest_messages(self.workers, self.ranks(), self.cores),
            )
        };
        // Eager repetitions carry no model clock, so it needs a repetition of its own.
        let warmup = options.warmup.max(usize::from(eager.is_some()));
        let repetitions = self.repetitions(warmup, options.repetitions)?;
        let data = data(repetitions)?;
        let first_run = self.runs + 1;
        self.runs += repetitions as u64;
        let context = RunContext {
            enforced,
            deadline,
            ..RunContext::new(
                self,
                operator,
                &options.cost,
                schedule.ports(),
                options.clock,
                buffers,
            )
        };
        let job = Job {
            schedule,
            program: &program,
            data: &data,
            context: &context,
            eager: eager.as_ref(),
            repetitions,
            first_run,
            epoch: Instant::now(),
        };
        self.state.contention.begin(first_run == 1);
        let reports = repeat_on_all::<T, R>(self, &job);
        if let Some(failure) = self.state.take_failure() {
            return Err(failure);
        }
        let Reports { mut ranks, walls } =
            reports.ok_or_else(|| Error::system("a rank's thread is gone"))?;
        warnings.extend(self.state.contention.percent_by_others().map(|part| {
            format!(
                "other processes, or the host of this machine, had {part}% of the time of the ranks' cores: wall-clock includes waiting for them"
            )
        }));
        let step_times = R::ON.then(|| {
            let last = walls.iter().filter_map(|w| w.last());
            let origin = last.map(|w| w.0).min().unwrap_or(0);
            let since = |(start, end): (u64, u64)| {
                (start.saturating_sub(origin), end.saturating_sub(origin))
            };
            let of_rank = |r: &mut RankReport<T>| {
                let recorded = std::mem::take(&mut r.recorded);
                recorded.into_iter().map(since).collect()
            };
            ranks.iter_mut().map(of_rank).collect()
        });
        let mut wall = Histogram::new(3).map_err(|e| Error::system(e.to_string()))?;
        let mut total_ns = 0u64;
        let whole = paced || self.oversubscribed() || self.workers == Workers::Cores;
        for n in warmup..repetitions {
            let spans = walls.iter().map(|w| w[n]);
            let time = if whole {
                let first = spans.clone().map(|w| w.0).min().unwrap_or(0);
                spans.map(|w| w.1).max().unwrap_or(0).saturating_sub(first)
            } else {
                spans.map(|(entry, exit)| exit - entry).max().unwrap_or(0)
            };
            total_ns = total_ns.saturating_add(time);
            wall.record(time)
                .map_err(|e| Error::system(e.to_string()))?;
        }
        let wrong = ranks.iter().enumerate();
        let wrong = wrong.filter_map(|(rank, r)| Some((rank, r.wrong.as_ref()?)));
        let first_wrong = wrong.min_by_key(|(_, wrong)| wrong.0);
        let mismatch = match first_wrong {
            Some((rank, wrong)) => data.mismatch(rank, wrong)?,
            None => None,
        };
        let rank_times: Vec<f64> = ranks.iter().map(|r| r.model_time).collect();
        Ok(Outcome {
            mismatch,
            compared: if data.is_verified() { repetitions } else { 0 },
            model_time: rank_times.iter().copied().fold(0.0, max_time),
            rank_times,
            outputs: ranks.into_iter().map(|r| r.output).collect(),
            wall,
            wall_total: Duration::from_nanos(total_ns),
            pinned: self.pinned,
            oversubscribed: self.oversubscribed(),
            workers: self.workers,
            eager: eager.is_some(),
            warnings,
            step_times,
        })
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

    /// A warning if the cores cannot wake the ranks as often as the schedule needs within its model
    /// time.
    fn pace_warning(&self, schedule: &Schedule, model_ns: f64) -> Option<String> {
        let halves = schedule
            .programs()
            .iter()
            .flatten()
            .filter(|s| s.peer().is_some())
            .count();
        let floor = halves as f64 * WAKE_NS / self.cores.min(self.ranks()) as f64;
        (floor > model_ns).then(|| {
            format!(
                "{} ranks on {} cannot keep this pace: about {:.2} ms of switching for {:.2} ms of model time; use a larger alpha, fewer ranks or fewer segments",
                self.ranks(),
                cores_in_words(self.cores),
                floor * 1e-6,
                model_ns * 1e-6
            )
        })
    }
}

/// Refuses inputs that do not fill the input spans exactly.
fn accepts_inputs<T>(layout: &[Layout], inputs: &[Vec<T>]) -> Result<()> {
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

fn cores_in_words(cores: usize) -> String {
    format!("{cores} core{}", if cores == 1 { "" } else { "s" })
}
