//! Running a schedule on a team: options, repetitions, and the outcome with its times and data.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use parking_lot::Mutex;

use super::eager::{Eager, EagerExecutor, longest_messages};
use super::executor::{Executor, Failure, RankExecutor, RunContext, nanoseconds};
use super::multiplexed;
use super::program::Program;
use super::recorder::{Off, Recorder, Stopwatch};
use crate::error::{Error, ErrorKind, Result};
use crate::machine::{CostModel, Ports};
use crate::report::Trace;
use crate::run::element::Element;
use crate::run::operator::Operator;
use crate::run::team::{Team, Workers, panic_message};
use crate::run::testdata::{Mismatch, RunData, Wrong, packed};
use crate::run::transfer::{RankMemory, streams_from};
use crate::run::wait::{TeamState, sleep_until};
use crate::schedule::{Layout, Schedule, total_len};
use crate::simulate::{Prepared, max_time};

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
    /// Whether to record when every transfer and computation takes place: [`Outcome::trace`].
    /// Recording reads the clock twice per step, which takes some time. Without it there is no cost
    /// at all.
    pub trace: bool,
    /// Whether senders of a native run need not wait for their receivers.
    ///
    /// Where every rank has a core, this applies to short messages; where ranks share cores, to all
    /// messages. A sender then waits only before it overwrites a message that has not been
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
    /// When each step of the last repetition took place, if [`RunOptions::trace`] is set:
    /// wall-clock time in nanoseconds since the first rank started. A message is combined while it
    /// arrives. Under a paced clock, a step lasts until the model lets it end, however soon its
    /// bytes have moved.
    pub trace: Option<Trace>,
}

/// Maximum number of repetitions, summed over all threads, whose start and end are kept: 1.6 GB.
const MAX_RECORDS: usize = 100_000_000;

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
    /// The first repetition uses the values of [`inputs`](crate::run::inputs), and each later one uses
    /// others. If vectors are so long or repetitions so many that preparing the data would take too
    /// long, at least four repetitions in a row have different data.
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
            if let Ok(prepared) = Prepared::new(schedule, options.cost.overlap) {
                let time = prepared
                    .simulate(&options.cost, size_of::<T>() as u64)
                    .time();
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
        let context = RunContext {
            state: &self.state,
            wires: &program.wires,
            operator,
            cost: &options.cost,
            ports: schedule.ports(),
            enforced: options.ports.unwrap_or(schedule.ports()),
            deadline,
            paced,
            share_copies: self.share_copies,
            streams_from: streams_from(buffers),
        };
        let waits = !options.eager || paced || R::ON;
        let eager = if waits || context.enforced != context.ports {
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
        let job = Job {
            schedule,
            program: &program,
            data: &data,
            context: &context,
            eager: eager.as_ref(),
            repetitions,
            first_run: self.runs + 1,
            epoch: Instant::now(),
        };
        self.state.contention.begin(self.runs == 0);
        self.runs += repetitions as u64;
        let reports = match self.workers {
            Workers::Ranks => self.run_on_threads::<T, R>(&job),
            Workers::Cores => multiplexed::run::<T, R>(self, &job),
        };
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
        let trace = if R::ON {
            let last = walls.iter().filter_map(|w| w.last());
            let origin = last.map(|w| w.0).min().unwrap_or(0);
            let recorded: Vec<_> = ranks
                .iter_mut()
                .map(|r| std::mem::take(&mut r.recorded))
                .collect();
            let element_bytes = size_of::<T>() as u64;
            Some(Trace::wall(schedule, element_bytes, &recorded, origin)?)
        } else {
            None
        };
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
            trace,
        })
    }

    /// Runs each rank on its own thread.
    fn run_on_threads<T: Element, R: Recorder>(&self, job: &Job<'_, T>) -> Option<Reports<T>> {
        let Job { context, epoch, .. } = *job;
        let start_ns = AtomicU64::new(0);
        /// The report of a rank, and the times of its repetitions.
        type Slot<T> = Mutex<Option<(RankReport<T>, Vec<Wall>)>>;
        let reports: Vec<Slot<T>> = (0..self.ranks()).map(|_| Mutex::new(None)).collect();
        let rank_main = |rank: usize| {
            let program = &job.program.ranks[rank];
            let recorder = R::new(program.steps.len(), epoch);
            let mut executor = Executor::new(rank, program, context, recorder);
            let mut eager_executor = job
                .eager
                .map(|e| EagerExecutor::new(rank, e, program, context));
            // Whether the rank is in an eager repetition, for errors.
            let mut runs_eagerly = false;
            let work = AssertUnwindSafe(|| {
                let layout = &job.schedule.layout()[rank];
                // The rank's own thread allocates and first touches its buffer.
                let mut buffer = allocate(rank, layout.len).map_err(Failure::Own)?;
                let mut walls = job.walls()?;
                let (mut model_time, mut wrong) = (0.0, None);
                for n in 0..job.repetitions {
                    job.data.fill(rank, n, &mut buffer);
                    let mut memory = RankMemory::new(
                        rank,
                        &mut buffer,
                        program.lists.len(),
                        context.streams_from,
                    );
                    executor.begin(epoch);
                    let start = start_together(&self.state, rank, epoch, &start_ns, context.paced)?;
                    let entry = Instant::now();
                    let run = job.first_run + n as u64;
                    match &mut eager_executor {
                        Some(eager_executor) if n > 0 => {
                            runs_eagerly = true;
                            eager_executor.begin();
                            eager_executor.run(&mut memory, run)?;
                        }
                        _ => model_time = executor.run(&mut memory, start, run)?,
                    }
                    let exit = Instant::now();
                    let entry = if context.paced { start } else { entry };
                    walls.push(job.wall(entry, exit));
                    // Peers may still read this buffer. Besides, comparing and refilling it now
                    // would slow down ranks that are still running.
                    meet(&self.state, rank)?;
                    drop(memory);
                    wrong = wrong.or_else(|| job.data.wrong(rank, n, &buffer));
                }
                let mut report = RankReport::new(&mut executor, &buffer, layout, wrong);
                report.model_time = model_time;
                Ok((report, walls))
            });
            match catch_unwind(work) {
                Ok(Ok(report)) => *reports[rank].lock() = Some(report),
                Ok(Err(Failure::Aborted)) => {}
                Ok(Err(Failure::Own(error))) => self.state.fail(error),
                Err(payload) => {
                    let eager_executor = eager_executor.as_ref().filter(|_| runs_eagerly);
                    let step = eager_executor.map_or_else(|| executor.step(), RankExecutor::step);
                    self.state.fail(panicked(rank, step, &*payload));
                }
            }
        };
        self.run_on_all(&rank_main);
        let (ranks, walls) = reports
            .into_iter()
            .map(Mutex::into_inner)
            .collect::<Option<_>>()?;
        Some(Reports { ranks, walls })
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
        /// Time to wake a rank, perform its part of a transfer and put it to sleep again.
        const WAKE_NS: f64 = 5_000.0;
        let halves = schedule
            .programs()
            .iter()
            .flatten()
            .filter(|s| s.peer().is_some())
            .count();
        #[expect(clippy::cast_precision_loss, reason = "a count of steps")]
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

/// What the threads of a team need for a run of one schedule.
#[derive(Debug)]
pub(super) struct Job<'j, T> {
    pub(super) schedule: &'j Schedule,
    pub(super) program: &'j Program<'j>,
    pub(super) data: &'j RunData<'j, T>,
    pub(super) context: &'j RunContext<'j, T>,
    /// For eager messages in all repetitions but the first, which carries the model clock.
    pub(super) eager: Option<&'j Eager>,
    pub(super) repetitions: usize,
    /// The number of the first repetition; repetitions are numbered throughout the team's life.
    pub(super) first_run: u64,
    pub(super) epoch: Instant,
}

impl<T> Job<'_, T> {
    /// Allocates memory for the start and end of every repetition of a thread, or fails if there is
    /// not enough.
    pub(super) fn walls(&self) -> std::result::Result<Vec<Wall>, Failure> {
        let mut walls = Vec::new();
        walls.try_reserve_exact(self.repetitions).map_err(|e| {
            let n = self.repetitions;
            Failure::Own(Error::system(format!(
                "no memory for the times of {n} repetitions: {e}"
            )))
        })?;
        Ok(walls)
    }

    pub(super) fn wall(&self, entry: Instant, exit: Instant) -> Wall {
        let since = |t: Instant| {
            let since = t.saturating_duration_since(self.epoch);
            u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
        };
        (since(entry), since(exit))
    }
}

/// Start and end of a repetition, in nanoseconds since the run's epoch.
pub(super) type Wall = (u64, u64);

/// The reports of all ranks, and the times of all threads.
#[derive(Debug)]
pub(super) struct Reports<T> {
    pub(super) ranks: Vec<RankReport<T>>,
    /// By thread: the times of its repetitions.
    pub(super) walls: Vec<Vec<Wall>>,
}

#[derive(Debug)]
pub(super) struct RankReport<T> {
    output: Vec<T>,
    /// The rank's first wrong output.
    wrong: Option<Wrong<T>>,
    model_time: f64,
    /// Start and end of each step in the last repetition, in nanoseconds since the run's epoch, if
    /// recorded.
    recorded: Vec<(u64, u64)>,
}

impl<T: Element> RankReport<T> {
    /// The report of a rank after its last repetition.
    pub(super) fn new<R: Recorder>(
        executor: &mut Executor<'_, T, R>,
        buffer: &[T],
        layout: &Layout,
        wrong: Option<Wrong<T>>,
    ) -> Self {
        RankReport {
            output: packed(buffer, &layout.output),
            wrong,
            model_time: executor.finish(),
            recorded: executor.recorder().take(),
        }
    }
}

/// The error of a rank that panicked.
pub(crate) fn panicked(rank: usize, step: usize, payload: &(dyn std::any::Any + Send)) -> Error {
    ErrorKind::Panicked {
        rank,
        step,
        message: panic_message(payload),
    }
    .into()
}

/// Waits for all ranks or workers, without a deadline: they are setting up or finishing a
/// repetition, not waiting for a transfer.
pub(super) fn meet(state: &TeamState, me: usize) -> std::result::Result<(), Failure> {
    state.meet(me).map_err(|_| Failure::Aborted)
}

/// Waits for all ranks. For a paced clock, agrees on a start time slightly in the future and waits
/// for it too.
pub(super) fn start_together(
    state: &TeamState,
    rank: usize,
    epoch: Instant,
    start_ns: &AtomicU64,
    paced: bool,
) -> std::result::Result<Instant, Failure> {
    meet(state, rank)?;
    if !paced {
        return Ok(Instant::now());
    }
    if rank == 0 {
        let start = epoch.elapsed() + Duration::from_millis(1);
        start_ns.store(
            u64::try_from(start.as_nanos()).unwrap_or(u64::MAX),
            Ordering::Release,
        );
    }
    meet(state, rank)?;
    let start = epoch + Duration::from_nanos(start_ns.load(Ordering::Acquire));
    sleep_until(start, false);
    Ok(start)
}

/// Allocates a rank's buffer, or fails if there is not enough memory.
pub(super) fn allocate<T: Element>(rank: usize, len: usize) -> Result<Vec<T>> {
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(len).map_err(|e| {
        Error::system(format!(
            "rank {rank}: no memory for a buffer of {len} elements: {e}"
        ))
    })?;
    buffer.resize(len, T::default());
    Ok(buffer)
}

fn cores_in_words(cores: usize) -> String {
    format!("{cores} core{}", if cores == 1 { "" } else { "s" })
}
