//! The loop of repetitions: what every thread of a run does, whether it runs one rank or several.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::eager::{Eager, EagerExecutor};
use super::executor::RankExecutor;
use super::multiplexed::{Worker, WorkerSet};
use super::program::Program;
use super::recorder::Recorder;
use super::rendezvous::RendezvousExecutor;
use crate::error::{Error, Result};
use crate::run::context::RunContext;
use crate::run::element::Element;
use crate::run::failure::{Failure, panicked};
use crate::run::placement::Workers;
use crate::run::team::{Team, panic_message};
use crate::run::testdata::{RunData, Wrong, packed};
use crate::run::transfer::RankMemory;
use crate::run::tuning::START_DELAY;
use crate::run::wait::{TeamState, sleep_until};
use crate::schedule::{Layout, Schedule};

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

/// Start and end of a repetition, in nanoseconds since the run's epoch.
pub(super) type Wall = (u64, u64);

/// The reports of all ranks, and the times of all threads.
#[derive(Debug)]
pub(super) struct Reports<T> {
    pub(super) ranks: Vec<RankReport<T>>,
    /// By thread: the times of its repetitions.
    pub(super) walls: Vec<Vec<Wall>>,
}

/// The report of a rank after its last repetition.
#[derive(Debug)]
pub(super) struct RankReport<T> {
    pub(super) output: Vec<T>,
    /// The rank's first wrong output.
    pub(super) wrong: Option<Wrong<T>>,
    pub(super) model_time: f64,
    /// Start and end of each step in the last repetition, in nanoseconds since the run's epoch, if
    /// recorded.
    pub(super) recorded: Vec<(u64, u64)>,
}

/// The reports of a thread's ranks, and the times of its repetitions.
type ThreadReport<T> = (Vec<RankReport<T>>, Vec<Wall>);

/// How a thread runs the programs of its ranks once.
pub(super) trait RunOnce {
    /// Runs `executors` on `memories`, from the beginning of their programs. `start` is model time
    /// 0 of a paced clock; `run` numbers the repetitions of the team's life.
    fn run_once<'j, T: Element>(
        &self,
        executors: &mut [impl RankExecutor<'j, T>],
        memories: &mut [RankMemory<'_, 'j, T>],
        start: Instant,
        run: u64,
    ) -> Result<(), Failure>;
}

/// A rank with a thread of its own.
struct OwnThread<'a> {
    at: &'a AtStep,
}

impl RunOnce for OwnThread<'_> {
    #[inline]
    fn run_once<'j, T: Element>(
        &self,
        executors: &mut [impl RankExecutor<'j, T>],
        memories: &mut [RankMemory<'_, 'j, T>],
        start: Instant,
        run: u64,
    ) -> Result<(), Failure> {
        for (executor, memory) in executors.iter_mut().zip(memories) {
            self.at.during(executor, |e| e.run(memory, start, run))?;
        }
        Ok(())
    }
}

/// Runs `job` on the team's threads. `None` if one of them failed; the team's state then has the
/// failure.
pub(super) fn repeat_on_all<T: Element, R: Recorder>(
    team: &Team,
    job: &Job<'_, T>,
) -> Option<Reports<T>> {
    let workers = (team.workers == Workers::Cores)
        .then(|| WorkerSet::new(&team.state, team.ranks(), team.threads()));
    let start_ns = AtomicU64::new(0);
    let reports: Vec<Mutex<Option<ThreadReport<T>>>> =
        (0..team.threads()).map(|_| Mutex::new(None)).collect();
    let thread_main = |me: usize| {
        let own = workers.as_ref().map_or(me..me + 1, |w| w.ranks_of(me));
        let at = AtStep::new(own.start);
        let thread = Thread {
            me,
            own,
            start_ns: &start_ns,
        };
        let work = AssertUnwindSafe(|| match &workers {
            None => thread.repeat::<T, R>(job, &OwnThread { at: &at }),
            Some(workers) => {
                let worker = Worker::new(workers, me, job.context.deadline, &at);
                thread.repeat::<T, R>(job, &worker)
            }
        });
        match catch_unwind(work) {
            Ok(Ok(report)) => *reports[me].lock() = Some(report),
            Ok(Err(Failure::Aborted)) => {}
            Ok(Err(Failure::Own(error))) => team.state.fail(error),
            Err(payload) => {
                let (rank, step) = at.0.get();
                team.state
                    .fail(panicked(rank, step, panic_message(&*payload)));
            }
        }
    };
    team.run_on_all(&thread_main);
    let mut all = Reports {
        ranks: Vec::with_capacity(team.ranks()),
        walls: Vec::with_capacity(team.threads()),
    };
    for report in reports {
        let (ranks, walls) = report.into_inner()?;
        all.ranks.extend(ranks);
        all.walls.push(walls);
    }
    Some(all)
}

/// One thread of a run.
struct Thread<'t> {
    /// The number by which the team's state knows it.
    me: usize,
    /// The ranks that it runs.
    own: Range<usize>,
    /// Where the threads agree on the start of a paced repetition, in nanoseconds since the epoch.
    start_ns: &'t AtomicU64,
}

impl Thread<'_> {
    /// Runs all repetitions of this thread's ranks.
    fn repeat<'j, T: Element, R: Recorder>(
        &self,
        job: &Job<'j, T>,
        runner: &impl RunOnce,
    ) -> Result<ThreadReport<T>, Failure> {
        let Job {
            context, program, ..
        } = *job;
        let layout = job.schedule.layout();
        let own = || self.own.clone();
        let executor = |rank: usize| {
            let recorder = R::new(program.ranks[rank].steps.len(), job.epoch);
            RendezvousExecutor::new(rank, program, context, recorder)
        };
        let mut executors: Vec<RendezvousExecutor<'j, T, R>> = own().map(executor).collect();
        let eager_executor = |rank| Some(EagerExecutor::new(rank, job.eager?, program, context));
        let mut eager_executors: Vec<EagerExecutor<'j, T>> =
            own().filter_map(eager_executor).collect();
        // The ranks' own thread allocates and first touches their buffers.
        let mut buffers = own()
            .map(|rank| allocate(rank, layout[rank].len))
            .collect::<Result<Vec<Vec<T>>>>()?;
        let mut walls = job.walls()?;
        let mut wrong: Vec<Option<Wrong<T>>> = own().map(|_| None).collect();
        for n in 0..job.repetitions {
            let mut memories = self.fill(job, n, &mut buffers);
            // Only the first repetition carries the model clock.
            let eager = job.eager.is_some() && n > 0;
            if eager {
                eager_executors.iter_mut().for_each(EagerExecutor::begin);
            } else {
                executors.iter_mut().for_each(RendezvousExecutor::begin);
            }
            let run = job.first_run + n as u64;
            let start = self.start_together(context.state, job.epoch, context.paced)?;
            if eager {
                runner.run_once(&mut eager_executors, &mut memories, start, run)?;
            } else {
                runner.run_once(&mut executors, &mut memories, start, run)?;
            }
            walls.push(job.wall(start, Instant::now()));
            // Peers may still read the buffers. Besides, comparing and refilling them now would
            // slow down ranks that are still running.
            self.meet(context.state)?;
            drop(memories);
            for ((rank, buffer), wrong) in own().zip(&buffers).zip(&mut wrong) {
                *wrong = wrong.take().or_else(|| job.data.wrong(rank, n, buffer));
            }
        }
        let outputs = own().zip(buffers).zip(wrong);
        let reports = executors.iter_mut().zip(outputs);
        let reports = reports.map(|(executor, ((rank, buffer), wrong))| {
            RankReport::new(executor, &buffer, &layout[rank], wrong)
        });
        Ok((reports.collect(), walls))
    }

    /// Fills the ranks' buffers for repetition `n`.
    fn fill<'b, 'j, T: Element>(
        &self,
        job: &Job<'j, T>,
        n: usize,
        buffers: &'b mut [Vec<T>],
    ) -> Vec<RankMemory<'b, 'j, T>> {
        let streams_from = job.context.streams_from;
        let mut memories = Vec::with_capacity(self.own.len());
        for (rank, buffer) in self.own.clone().zip(buffers) {
            job.data.fill(rank, n, buffer);
            let lists = job.program.ranks[rank].lists.len();
            memories.push(RankMemory::new(rank, buffer, lists, streams_from));
        }
        memories
    }

    /// Waits for all threads, without a deadline: they are setting up or finishing a repetition,
    /// not waiting for a transfer.
    fn meet(&self, state: &TeamState) -> Result<(), Failure> {
        state.meet(self.me).map_err(|_| Failure::Aborted)
    }

    /// Waits for all threads. For a paced clock, agrees on a start time slightly in the future and
    /// waits for it too.
    fn start_together(
        &self,
        state: &TeamState,
        epoch: Instant,
        paced: bool,
    ) -> Result<Instant, Failure> {
        self.meet(state)?;
        if !paced {
            return Ok(Instant::now());
        }
        if self.me == 0 {
            let start = epoch.elapsed() + START_DELAY;
            let start = u64::try_from(start.as_nanos()).unwrap_or(u64::MAX);
            self.start_ns.store(start, Ordering::Release);
        }
        self.meet(state)?;
        let start = epoch + Duration::from_nanos(self.start_ns.load(Ordering::Acquire));
        sleep_until(start, false);
        Ok(start)
    }
}

impl<T> Job<'_, T> {
    /// Allocates memory for the start and end of every repetition of a thread, or fails if there is
    /// not enough.
    fn walls(&self) -> Result<Vec<Wall>> {
        let mut walls = Vec::new();
        walls.try_reserve_exact(self.repetitions).map_err(|e| {
            let n = self.repetitions;
            Error::system(format!("no memory for the times of {n} repetitions: {e}"))
        })?;
        Ok(walls)
    }

    fn wall(&self, entry: Instant, exit: Instant) -> Wall {
        let since = |t: Instant| {
            let since = t.saturating_duration_since(self.epoch);
            u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
        };
        (since(entry), since(exit))
    }
}

impl<T: Element> RankReport<T> {
    fn new<R: Recorder>(
        executor: &mut RendezvousExecutor<'_, T, R>,
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

/// Allocates a rank's buffer, or fails if there is not enough memory.
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

/// The rank that a thread runs, and its step, for the error of a panic.
#[derive(Debug)]
pub(super) struct AtStep(Cell<(usize, usize)>);

impl AtStep {
    fn new(rank: usize) -> Self {
        AtStep(Cell::new((rank, 0)))
    }

    /// Calls `f`. Afterwards, also after a panic, notes at which step `executor` is.
    #[inline]
    pub(super) fn during<'j, T: Element, E: RankExecutor<'j, T>, R>(
        &self,
        executor: &mut E,
        f: impl FnOnce(&mut E) -> R,
    ) -> R {
        let noting = Noting {
            at: self,
            executor,
            element: PhantomData,
        };
        f(noting.executor)
    }
}

/// On drop, notes the step of its executor.
struct Noting<'a, 'j, T: Element, E: RankExecutor<'j, T>> {
    at: &'a AtStep,
    executor: &'a mut E,
    element: PhantomData<&'j T>,
}

impl<'j, T: Element, E: RankExecutor<'j, T>> Drop for Noting<'_, 'j, T, E> {
    fn drop(&mut self) {
        self.at.0.set((self.executor.rank(), self.executor.step()));
    }
}
