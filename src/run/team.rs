//! Teams: one pinned thread a rank, living across runs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use hdrhistogram::Histogram;
use parking_lot::Mutex;

use super::element::Element;
use super::executor::{Executor, Failure, Setting, nanoseconds};
use super::operator::Operator;
use super::program::Program;
use super::recorder::{Off, Recorder, Stopwatch};
use super::transfer::{Errand, RankMemory, lend};
use super::wait::{Crowd, Waiter, ask_for_precise_timers, sleep_until};
use crate::cost::{CostModel, Ports};
use crate::error::{Error, ErrorKind, Result};
use crate::report::Trace;
use crate::schedule::{Layout, Schedule, Span, total_len};
use crate::simulate::{Prepared, later};

/// How a team is set up: see [`Team::with`].
#[derive(Debug, Clone)]
pub struct TeamOptions {
    /// Cores to pin to, round-robin; all cores of this process by default.
    pub cores: Option<Vec<usize>>,
    /// Stack of each thread.
    pub stack_bytes: usize,
    /// How long a rank waits for a partner before the run ends in an error.
    pub deadline: Duration,
    /// Whether both partners of a transfer copy parts of a long message, where every rank has a core of its own.
    pub share_copies: bool,
}

impl Default for TeamOptions {
    fn default() -> Self {
        TeamOptions {
            cores: None,
            stack_bytes: 256 << 10,
            deadline: Duration::from_secs(10),
            share_copies: true,
        }
    }
}

/// `p` ranks, each a pinned thread. Threads start once and serve any number of runs; between runs they sleep.
///
/// # Example
/// ```
/// use oneport::run::{Operator, RunOptions, Team, inputs, oracle};
/// use oneport::{Kind, Request, plan::registry};
///
/// let mut team = Team::new(4)?;
/// let schedule = registry::find(Kind::Reduce, "binomial")?.plan(&Request::new(4, 1000))?;
/// let sum = Operator::<f32>::named("sum")?;
/// let data = inputs(schedule.collective(), schedule.layout(), &sum);
/// let outcome = team.run(&schedule, &data, &sum, &RunOptions::default())?;
/// assert_eq!(outcome.outputs, oracle(schedule.collective(), schedule.layout(), &sum, &data)?);
/// # Ok::<(), oneport::Error>(())
/// ```
#[derive(Debug)]
pub struct Team {
    errands: Vec<Sender<Errand>>,
    reports: Receiver<()>,
    threads: Vec<JoinHandle<()>>,
    pub(super) crowd: Crowd,
    pub(super) deadline: Duration,
    pub(super) share_copies: bool,
    cores: usize,
    pinned: bool,
    pub(super) runs: u64,
}

/// Whether a run goes flat out or at the pace of its cost model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clock {
    /// As fast as the machine allows.
    #[default]
    Native,
    /// No step starts, and no rank finishes, before its model time (in nanoseconds since the common start) has come in wall-clock.
    Paced,
}

/// How a schedule is run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Native or paced.
    pub clock: Clock,
    /// The cost model of the model clock; in nanoseconds and bytes for a paced run.
    pub cost: CostModel,
    /// Timed repetitions.
    pub repetitions: usize,
    /// Repetitions before them that are not counted.
    pub warmup: usize,
    /// Ports that the ranks really have, if not those the schedule was made for: opening a busy one is an error.
    pub ports: Option<Ports>,
    /// Whether to record when every transfer and computation took place: [`Outcome::trace`]. Reading the clock twice a step takes
    /// some time of its own; without it there is no cost at all.
    pub trace: bool,
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
        }
    }
}

/// What came out of a run.
#[derive(Debug, Clone)]
pub struct Outcome<T> {
    /// What every rank's output spans held after the last repetition, in order.
    pub outputs: Vec<Vec<T>>,
    /// Model time as executed: carried along with the messages, equal to what [`crate::simulate`] computes.
    pub model_time: f64,
    /// Model time at which each rank finished.
    pub rank_times: Vec<f64>,
    /// Wall-clock of every counted repetition, in nanoseconds. The slowest rank's own time where every rank has a core;
    /// otherwise, and under a paced clock, from the first start to the last end.
    pub wall: Histogram<u64>,
    /// All of them together, exactly: the histogram's buckets round.
    pub wall_total: Duration,
    /// Whether every thread was pinned to its core.
    pub pinned: bool,
    /// Whether ranks outnumber cores.
    pub oversubscribed: bool,
    /// What a reader of the wall-clock should know.
    pub warnings: Vec<String>,
    /// What happened when in the last repetition, if [`RunOptions::trace`] asked for it: wall-clock, in nanoseconds since the first
    /// rank started. A message is combined while it arrives. Under a paced clock a step is shown until the model lets it end, however
    /// soon its bytes have moved.
    pub trace: Option<Trace>,
}

impl Team {
    /// A team of `ranks` threads with [`TeamOptions::default`].
    ///
    /// # Errors
    /// As [`Team::with`].
    pub fn new(ranks: usize) -> Result<Team> {
        Team::with(ranks, &TeamOptions::default())
    }

    /// A team of `ranks` threads, rank `r` pinned to core `r mod cores`.
    ///
    /// # Errors
    /// When there is no rank, there are more than [`Team::most_ranks`], a core does not exist, or the system refuses a thread.
    pub fn with(ranks: usize, options: &TeamOptions) -> Result<Team> {
        if ranks == 0 {
            return Err(Error::usage("a team needs at least one rank (-p 0)"));
        }
        let most = Team::most_ranks();
        if ranks > most {
            return Err(Error::usage(format!(
                "{ranks} ranks are more threads than the {most} that this system can hold"
            )));
        }
        let available = core_affinity::get_core_ids().unwrap_or_default();
        let cores = match &options.cores {
            None => available,
            Some(wanted) => {
                let find = |&id: &usize| {
                    let found = available.iter().find(|c| c.id == id).copied();
                    found.ok_or_else(|| {
                        let ids: Vec<_> = available.iter().map(|c| c.id.to_string()).collect();
                        Error::usage(format!(
                            "core {id} is not available: this process may use {}",
                            ids.join(", ")
                        ))
                    })
                };
                wanted.iter().map(find).collect::<Result<Vec<_>>>()?
            }
        };
        let count = if cores.is_empty() {
            std::thread::available_parallelism().map_or(1, usize::from)
        } else {
            cores.len()
        };
        let mut team = Team {
            errands: Vec::with_capacity(ranks),
            reports: bounded(0).1,
            threads: Vec::with_capacity(ranks),
            crowd: Crowd::new(ranks, ranks > count),
            deadline: options.deadline,
            share_copies: options.share_copies && ranks <= count,
            cores: count,
            pinned: false,
            runs: 0,
        };
        let (report, reports) = unbounded();
        let (ready, started) = unbounded();
        team.reports = reports;
        for rank in 0..ranks {
            let (sender, errands) = bounded::<Errand>(1);
            let (report, ready) = (report.clone(), ready.clone());
            let core = (!cores.is_empty()).then(|| cores[rank % cores.len()]);
            let thread = std::thread::Builder::new()
                .name(format!("rank {rank}"))
                .stack_size(options.stack_bytes)
                .spawn(move || {
                    // `set_for_current` says whether the kernel agreed.
                    let pinned = core.is_some_and(core_affinity::set_for_current);
                    ask_for_precise_timers();
                    let _ = ready.send(pinned);
                    for errand in errands {
                        // Errands catch what ranks throw; what they throw back (a panic's payload may panic when dropped) must not end
                        // the thread, for which the others would wait.
                        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| errand.run(rank))) {
                            std::mem::forget(payload);
                        }
                        let _ = report.send(());
                    }
                })
                .map_err(|e| {
                    Error::system(format!("cannot start thread {rank} of {ranks}: {e}"))
                })?;
            team.errands.push(sender);
            team.threads.push(thread);
        }
        team.pinned = started.iter().take(ranks).fold(true, |all, one| all & one);
        Ok(team)
    }

    /// The greatest team that this system can hold.
    ///
    /// Each thread takes four mappings of memory (a stack, a signal stack and their guard pages), and one that cannot get its own
    /// would abort the process; a fifth is left for everything else.
    pub fn most_ranks() -> usize {
        const MAPPINGS_A_THREAD: usize = 5;
        std::fs::read_to_string("/proc/sys/vm/max_map_count")
            .ok()
            .and_then(|text| text.trim().parse::<usize>().ok())
            .map_or(8192, |mappings| mappings / MAPPINGS_A_THREAD)
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.threads.len()
    }

    /// Cores that the ranks share.
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// Whether every thread is pinned to its core.
    pub fn pinned(&self) -> bool {
        self.pinned
    }

    /// Whether ranks outnumber cores.
    pub fn oversubscribed(&self) -> bool {
        self.crowd.oversubscribed()
    }

    /// Sets how long a rank waits for a partner before a run ends in an error.
    pub fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = deadline;
    }

    /// Runs `schedule` with real bytes: `inputs[rank]` goes into the rank's input spans before every repetition, and what its
    /// output spans hold after the last one comes back.
    ///
    /// The schedule need not be right: one that deadlocks, or whose steps do not match, ends in an error.
    ///
    /// # Errors
    /// When team, schedule, inputs and options do not fit together, or a rank fails: [`ErrorKind::Deadline`], [`ErrorKind::PartnerLeft`],
    /// [`ErrorKind::Length`], [`ErrorKind::PortBusy`], [`ErrorKind::Panicked`] (an operator of the user). The team can be used again.
    pub fn run<T: Element>(
        &mut self,
        schedule: &Schedule,
        inputs: &[Vec<T>],
        operator: &Operator<T>,
        options: &RunOptions,
    ) -> Result<Outcome<T>> {
        if options.trace {
            self.run_recorded::<T, Stopwatch>(schedule, inputs, operator, options)
        } else {
            self.run_recorded::<T, Off>(schedule, inputs, operator, options)
        }
    }

    fn run_recorded<T: Element, R: Recorder>(
        &mut self,
        schedule: &Schedule,
        inputs: &[Vec<T>],
        operator: &Operator<T>,
        options: &RunOptions,
    ) -> Result<Outcome<T>> {
        self.accepts(schedule, inputs, operator, options)?;
        let program = Program::new(schedule, options.cost.overlap)?;
        let paced = options.clock == Clock::Paced;
        let mut warnings = Vec::new();
        let mut deadline = self.deadline;
        if paced {
            // Ranks may rightly wait as long as the whole run takes.
            if let Ok(prepared) = Prepared::new(schedule, options.cost.overlap) {
                let time = prepared
                    .simulate(&options.cost, size_of::<T>() as u64)
                    .time();
                deadline = deadline.saturating_add(nanoseconds(time));
                warnings.extend(self.pace_warning(schedule, time));
            }
        } else if self.oversubscribed() {
            warnings.push(format!(
                "{} ranks on {} cores: wall-clock includes waiting for a core; try the paced clock",
                self.ranks(),
                self.cores
            ));
        }
        if !self.pinned {
            warnings
                .push("the system refused to pin some ranks: they may move between cores".into());
        }
        let setting = Setting {
            crowd: &self.crowd,
            wires: &program.wires,
            operator,
            cost: &options.cost,
            ports: schedule.ports(),
            enforced: options.ports.unwrap_or(schedule.ports()),
            deadline,
            paced,
            share_copies: self.share_copies,
        };
        let repetitions = options.warmup + options.repetitions;
        let first_run = self.runs + 1;
        self.runs += repetitions as u64;
        let epoch = Instant::now();
        let start_ns = AtomicU64::new(0);
        let reports: Vec<Mutex<Option<RankReport<T>>>> =
            (0..self.ranks()).map(|_| Mutex::new(None)).collect();
        let rank_main = |rank: usize| {
            let recorder = R::new(program.ranks[rank].steps.len(), epoch);
            let mut executor = Executor::new(rank, &program.ranks[rank], &setting, recorder);
            let work = AssertUnwindSafe(|| {
                let layout = &schedule.layout()[rank];
                // Allocated and first touched by the rank's own thread.
                let mut buffer = allocate(rank, layout.len).map_err(Failure::Own)?;
                let mut report = RankReport {
                    output: Vec::new(),
                    model_time: 0.0,
                    walls: Vec::with_capacity(repetitions),
                    recorded: Vec::new(),
                };
                for n in 0..repetitions {
                    fill(&mut buffer, layout, &inputs[rank]);
                    let mut memory =
                        RankMemory::new(rank, &mut buffer, program.ranks[rank].lists.len());
                    let start = start_together(&self.crowd, rank, epoch, &start_ns, paced)?;
                    let entry = Instant::now();
                    report.model_time = executor.run(&mut memory, start, first_run + n as u64)?;
                    let exit = Instant::now();
                    let since = |t: Instant| {
                        u64::try_from(t.saturating_duration_since(epoch).as_nanos())
                            .unwrap_or(u64::MAX)
                    };
                    report
                        .walls
                        .push((since(if paced { start } else { entry }), since(exit)));
                }
                report.output = packed(&buffer, &layout.output);
                report.recorded = executor.recorder().take();
                Ok(report)
            });
            match catch_unwind(work) {
                Ok(Ok(report)) => *reports[rank].lock() = Some(report),
                Ok(Err(Failure::Aborted)) => {}
                Ok(Err(Failure::Own(error))) => self.crowd.fail(error),
                Err(payload) => self.crowd.fail(
                    ErrorKind::Panicked {
                        rank,
                        step: executor.step(),
                        message: panic_message(&*payload),
                    }
                    .into(),
                ),
            }
        };
        lend(&self.errands, &self.reports, &rank_main);
        if let Some(failure) = self.crowd.take_failure() {
            return Err(failure);
        }
        let reports: Option<Vec<_>> = reports.into_iter().map(Mutex::into_inner).collect();
        let mut reports = reports.ok_or_else(|| Error::system("a rank's thread is gone"))?;
        let trace = if R::ON {
            let last = reports.iter().filter_map(|r| r.walls.last());
            let origin = last.map(|w| w.0).min().unwrap_or(0);
            let recorded: Vec<_> = reports
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
        for n in options.warmup..repetitions {
            let spans = reports.iter().map(|r| r.walls[n]);
            let time = if paced || self.oversubscribed() {
                let first = spans.clone().map(|w| w.0).min().unwrap_or(0);
                spans.map(|w| w.1).max().unwrap_or(0).saturating_sub(first)
            } else {
                spans.map(|(entry, exit)| exit - entry).max().unwrap_or(0)
            };
            total_ns = total_ns.saturating_add(time);
            wall.record(time)
                .map_err(|e| Error::system(e.to_string()))?;
        }
        let rank_times: Vec<f64> = reports.iter().map(|r| r.model_time).collect();
        Ok(Outcome {
            model_time: rank_times.iter().copied().fold(0.0, later),
            rank_times,
            outputs: reports.into_iter().map(|r| r.output).collect(),
            wall,
            wall_total: Duration::from_nanos(total_ns),
            pinned: self.pinned,
            oversubscribed: self.oversubscribed(),
            warnings,
            trace,
        })
    }

    fn accepts<T: Element>(
        &self,
        schedule: &Schedule,
        inputs: &[Vec<T>],
        operator: &Operator<T>,
        options: &RunOptions,
    ) -> Result<()> {
        options.cost.validate()?;
        options.cost.covers(schedule.ranks())?;
        options.cost.links_all(schedule)?;
        if schedule.ranks() != self.ranks() {
            return Err(Error::usage(format!(
                "a schedule of {} ranks for a team of {}",
                schedule.ranks(),
                self.ranks()
            )));
        }
        if options.repetitions == 0 {
            return Err(Error::usage("0 repetitions"));
        }
        if operator.name().is_empty() {
            return Err(Error::usage("an operator without a name"));
        }
        let given = inputs.len();
        if given != self.ranks() {
            return Err(Error::usage(format!(
                "inputs for {given} ranks, not {}",
                self.ranks()
            )));
        }
        for (rank, (layout, input)) in schedule.layout().iter().zip(inputs).enumerate() {
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

    /// Warns when waking this many ranks this often is more than the cores can do in the model time.
    fn pace_warning(&self, schedule: &Schedule, model_ns: f64) -> Option<String> {
        /// Time to wake a rank, do its part of a transfer and put it to sleep again.
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
                "{} ranks on {} cores cannot keep this pace: about {:.2} ms of switching for {:.2} ms of model time; use a larger alpha, fewer ranks or fewer segments",
                self.ranks(),
                self.cores,
                floor * 1e-6,
                model_ns * 1e-6
            )
        })
    }

    /// Lends `f` to all ranks' threads until all have returned from it. `f` must not unwind.
    pub(super) fn lend(&self, f: &(dyn Fn(usize) + Sync)) {
        lend(&self.errands, &self.reports, f);
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        // Closed channels end the threads' loops.
        self.errands.clear();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[derive(Debug)]
struct RankReport<T> {
    output: Vec<T>,
    model_time: f64,
    /// Start and end of each repetition, in nanoseconds since the run's epoch.
    walls: Vec<(u64, u64)>,
    /// Start and end of each step of the last repetition, likewise, if recorded.
    recorded: Vec<(u64, u64)>,
}

/// Waits for all ranks; for a paced clock, agrees on a start a little ahead and waits for it too.
fn start_together(
    crowd: &Crowd,
    rank: usize,
    epoch: Instant,
    start_ns: &AtomicU64,
    paced: bool,
) -> std::result::Result<Instant, Failure> {
    // Ranks wait for each other's set-up and for each other's last repetition here, not for a transfer: however long that takes, only a
    // failed rank never comes, and that aborts.
    let mut waiter = Waiter::new(crowd, rank, Duration::MAX, false);
    crowd.barrier(&mut waiter).map_err(|_| Failure::Aborted)?;
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
    crowd.barrier(&mut waiter).map_err(|_| Failure::Aborted)?;
    let start = epoch + Duration::from_nanos(start_ns.load(Ordering::Acquire));
    sleep_until(start, false);
    Ok(start)
}

/// A rank's buffer, or an error where there is not that much memory.
fn allocate<T: Element>(rank: usize, len: usize) -> Result<Vec<T>> {
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(len).map_err(|e| {
        Error::system(format!(
            "rank {rank}: no memory for a buffer of {len} elements: {e}"
        ))
    })?;
    buffer.resize(len, T::default());
    Ok(buffer)
}

/// Puts the input where it belongs, and default values everywhere else, so that nothing is left of an earlier repetition.
fn fill<T: Element>(buffer: &mut [T], layout: &Layout, input: &[T]) {
    buffer.fill(T::default());
    let mut rest = input;
    for span in &layout.input {
        let (now, later) = rest.split_at(span.len);
        buffer[span.offset..span.end()].copy_from_slice(now);
        rest = later;
    }
}

fn packed<T: Element>(buffer: &[T], spans: &[Span]) -> Vec<T> {
    spans
        .iter()
        .flat_map(|s| &buffer[s.offset..s.end()])
        .copied()
        .collect()
}

pub(super) fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "(no message)".to_owned())
}
