//! The loop of repetitions: what every thread of a run does, whether it runs one rank or several.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::ahead::AheadExecutor;
use super::executor::RankExecutor;
use super::multiplexed::{Worker, WorkerSet};
use super::recorder::{Stopwatch, since};
use super::rendezvous::RendezvousExecutor;
use super::runner::{AtStep, Runner, RunnerJob};
use crate::error::{Error, Result};
use crate::run::failure::{Failure, panic_message, panicked};
use crate::run::placement::Workers;
use crate::run::sync::{AtomicU64, Mutex, Ordering, StopFlag};
use crate::run::team::Team;
use crate::run::transfer::{Buffer, RankMemory};
use crate::run::tuning::START_DELAY;
use crate::run::wait::{Precision, TeamState};

/// Start and end of a repetition, in nanoseconds since the run's epoch.
pub(crate) type Wall = (u64, u64);

/// The reports of all ranks, and the times of all threads.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    pub(crate) ranks: Vec<RankReport>,
    /// By thread: the times of its repetitions.
    pub(crate) walls: Vec<Vec<Wall>>,
}

/// The report of a rank after its last repetition.
#[derive(Debug)]
pub(crate) struct RankReport {
    pub(crate) model_time: f64,
    /// Start and end of each step in the last repetition, in nanoseconds since the run's epoch, if
    /// recorded.
    pub(crate) recorded: Vec<(u64, u64)>,
}

/// The reports of a thread's ranks, and the times of its repetitions.
pub(crate) type ThreadReport = (Vec<RankReport>, Vec<Wall>);

/// A thread of a team, which meets the others.
struct TeamThread<'t> {
    /// The number by which the team's state knows the thread.
    me: usize,
    state: &'t TeamState,
    /// Where the threads agree on the start of a repetition, in nanoseconds since the epoch.
    start_ns: &'t AtomicU64,
    at: &'t AtStep,
    /// If it runs several ranks.
    worker: Option<Worker<'t>>,
}

impl Runner for TeamThread<'_> {
    type Carrier<'b, 'j>
        = RankMemory<'b, 'j>
    where
        Self: 'b;

    fn carrier<'b, 'j>(
        &'b self,
        job: &RunnerJob<'j>,
        rank: usize,
        buffer: Buffer<'b>,
    ) -> RankMemory<'b, 'j> {
        job.memory(rank, buffer)
    }

    fn meet(&self) -> Result<(), Failure> {
        self.state.meet(self.me).map_err(|_| Failure::Aborted)
    }

    fn start_together(&self, epoch: Instant, late: Option<Duration>) -> Result<Instant, Failure> {
        // A single rank never waits for another, and would not end.
        if self.state.is_aborted() {
            return Err(Failure::Aborted);
        }
        self.meet()?;
        let Some(late) = late else {
            return Ok(Instant::now());
        };
        if self.me == 0 {
            let start = epoch.elapsed() + START_DELAY;
            let start = u64::try_from(start.as_nanos()).unwrap_or(u64::MAX);
            self.start_ns.store(start, Ordering::Release);
        }
        self.meet()?;
        let start = epoch + Duration::from_nanos(self.start_ns.load(Ordering::Acquire));
        let precision = if late.is_zero() {
            Precision::Sleep
        } else {
            Precision::Sharp
        };
        self.state.pace(self.me, start + late, precision);
        Ok(start)
    }

    #[inline]
    fn run_once<'b, 'j>(
        &self,
        executors: &mut [impl RankExecutor<'j>],
        memories: &mut [RankMemory<'b, 'j>],
        start: Instant,
        run: u64,
    ) -> Result<(), Failure> {
        if let Some(worker) = &self.worker {
            return worker.run_once(executors, memories, run);
        }
        for (executor, memory) in executors.iter_mut().zip(memories) {
            self.at
                .during(executor, |e| e.run(memory, self.state, start, run))?;
        }
        Ok(())
    }
}

/// Runs `job` on the team's threads, until somebody sets `stop`. `None` if one of them failed; the
/// team's state then has the failure.
pub(super) fn repeat_on_all(
    team: &Team,
    job: &RunnerJob<'_>,
    stop: Option<&StopFlag>,
) -> Option<Reports> {
    let workers = (team.workers == Workers::Cores)
        .then(|| WorkerSet::new(&team.state, team.ranks(), team.threads()));
    let start_ns = AtomicU64::new(0);
    let reports: Vec<Mutex<Option<ThreadReport>>> =
        (0..team.threads()).map(|_| Mutex::new(None)).collect();
    let thread_main = |me: usize| {
        let own = workers.as_ref().map_or(me..me + 1, |w| w.ranks_of(me));
        let at = AtStep::new(own.start);
        let worker = |workers| Worker::new(workers, me, job.context.deadline, &at);
        let thread = TeamThread {
            me,
            state: &team.state,
            start_ns: &start_ns,
            at: &at,
            worker: workers.as_ref().map(worker),
        };
        let work = AssertUnwindSafe(|| repeat(job, own, &thread));
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
    team.run_until(stop.map(|flag| &**flag), &thread_main);
    let mut all = Reports::default();
    for report in reports {
        let (ranks, walls) = report.into_inner()?;
        all.ranks.extend(ranks);
        all.walls.push(walls);
    }
    Some(all)
}

/// Runs all repetitions of the ranks `own` of one thread or process.
pub(crate) fn repeat(
    job: &RunnerJob<'_>,
    own: Range<usize>,
    runner: &impl Runner,
) -> Result<ThreadReport, Failure> {
    let RunnerJob {
        context, program, ..
    } = *job;
    let own = || own.clone();
    let executor = |rank: usize| {
        let steps = program.ranks[rank].steps.len();
        let stopwatch = job.trace.then(|| Stopwatch::new(steps, job.epoch));
        RendezvousExecutor::new(rank, program, context, stopwatch)
    };
    let mut executors: Vec<RendezvousExecutor<'_>> = own().map(executor).collect();
    let ahead_executor = |rank| Some(AheadExecutor::new(rank, job.ahead?, program, context));
    let mut ahead_executors: Vec<AheadExecutor<'_>> = own().filter_map(ahead_executor).collect();
    let buffers = own().map(|rank| job.buffers.of_rank(rank));
    let mut buffers = buffers.collect::<Result<Vec<_>>>()?;
    let mut walls = job.walls()?;
    let late = context.late(own());
    for n in 0..job.repetitions {
        let mut carriers = Vec::with_capacity(buffers.len());
        for (rank, buffer) in own().zip(&mut buffers) {
            if n < job.filled {
                buffer.fill(n);
            }
            carriers.push(runner.carrier(job, rank, buffer.buffer()));
        }
        let ahead = job.ahead.is_some() && n >= job.clocked;
        if ahead {
            ahead_executors.iter_mut().for_each(AheadExecutor::begin);
        } else {
            executors.iter_mut().for_each(RendezvousExecutor::begin);
        }
        let run = job.first_run + n as u64;
        let start = runner.start_together(job.epoch, late)?;
        if ahead {
            runner.run_once(&mut ahead_executors, &mut carriers, start, run)?;
        } else {
            runner.run_once(&mut executors, &mut carriers, start, run)?;
        }
        walls.push((since(job.epoch, start), since(job.epoch, Instant::now())));
        // Peers may still read the buffers. Besides, comparing and refilling them now would slow
        // down ranks that are still running.
        runner.meet()?;
        drop(carriers);
        if n < job.filled {
            buffers.iter_mut().for_each(|buffer| buffer.compare(n));
        }
    }
    buffers.into_iter().for_each(|buffer| buffer.finish());
    let report = |executor: RendezvousExecutor<'_>| RankReport {
        model_time: executor.finish(),
        recorded: executor.recorded(),
    };
    Ok((executors.into_iter().map(report).collect(), walls))
}

impl RunnerJob<'_> {
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
}
