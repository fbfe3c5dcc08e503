//! The loop of repetitions: what every thread of a run does, whether it runs one rank or several.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use super::eager::EagerExecutor;
use super::executor::RankExecutor;
use super::multiplexed::{Worker, WorkerSet};
use super::recorder::Recorder;
use super::rendezvous::RendezvousExecutor;
use super::runner::{AtStep, Job, Meeting, Runner};
use crate::error::{Error, Result};
use crate::run::element::Element;
use crate::run::failure::{Failure, panicked};
use crate::run::placement::Workers;
use crate::run::sync::{AtomicU64, Mutex};
use crate::run::team::{Team, panic_message};
use crate::run::testdata::{Wrong, packed};
use crate::run::transfer::RankMemory;
use crate::schedule::Layout;

/// Start and end of a repetition, in nanoseconds since the run's epoch.
pub(crate) type Wall = (u64, u64);

/// The reports of all ranks, and the times of all threads.
#[derive(Debug)]
pub(crate) struct Reports<T> {
    pub(crate) ranks: Vec<RankReport<T>>,
    /// By thread: the times of its repetitions.
    pub(crate) walls: Vec<Vec<Wall>>,
}

/// The report of a rank after its last repetition.
#[derive(Debug)]
pub(crate) struct RankReport<T> {
    pub(crate) output: Vec<T>,
    /// The rank's first wrong output.
    pub(crate) wrong: Option<Wrong<T>>,
    pub(crate) model_time: f64,
    /// Start and end of each step in the last repetition, in nanoseconds since the run's epoch, if
    /// recorded.
    pub(crate) recorded: Vec<(u64, u64)>,
}

/// The reports of a thread's ranks, and the times of its repetitions.
pub(crate) type ThreadReport<T> = (Vec<RankReport<T>>, Vec<Wall>);

/// A rank with a thread of its own.
struct OwnThread<'a> {
    meeting: Meeting<'a>,
    at: &'a AtStep,
}

impl<T: Element> Runner<T> for OwnThread<'_> {
    type Carrier<'b, 'j>
        = RankMemory<'b, 'j, T>
    where
        Self: 'b;

    fn carrier<'b, 'j>(
        &'b self,
        job: &Job<'j, T>,
        rank: usize,
        buffer: &'b mut [T],
    ) -> RankMemory<'b, 'j, T> {
        job.memory(rank, buffer)
    }

    fn meet(&self) -> Result<(), Failure> {
        self.meeting.meet()
    }

    fn start_together(&self, epoch: Instant, paced: bool) -> Result<Instant, Failure> {
        self.meeting.start_together(epoch, paced)
    }

    #[inline]
    fn run_once<'b, 'j>(
        &self,
        executors: &mut [impl RankExecutor<'j, T>],
        memories: &mut [RankMemory<'b, 'j, T>],
        start: Instant,
        run: u64,
    ) -> Result<(), Failure> {
        for (executor, memory) in executors.iter_mut().zip(memories) {
            let state = self.meeting.state;
            self.at
                .during(executor, |e| e.run(memory, state, start, run))?;
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
        let meeting = Meeting {
            me,
            state: &team.state,
            start_ns: &start_ns,
        };
        let work = AssertUnwindSafe(|| match &workers {
            None => repeat::<T, R>(job, own, &OwnThread { meeting, at: &at }),
            Some(workers) => {
                let worker = Worker::new(workers, meeting, job.context.deadline, &at);
                repeat::<T, R>(job, own, &worker)
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

/// Runs all repetitions of the ranks `own` of one thread or process.
pub(crate) fn repeat<T: Element, R: Recorder>(
    job: &Job<'_, T>,
    own: Range<usize>,
    runner: &impl Runner<T>,
) -> Result<ThreadReport<T>, Failure> {
    let Job {
        context, program, ..
    } = *job;
    let layout = job.schedule.layout();
    let own = || own.clone();
    let executor = |rank: usize| {
        let recorder = R::new(program.ranks[rank].steps.len(), job.epoch);
        RendezvousExecutor::new(rank, program, context, recorder)
    };
    let mut executors: Vec<RendezvousExecutor<'_, T, R>> = own().map(executor).collect();
    let eager_executor = |rank| Some(EagerExecutor::new(rank, job.eager?, program, context));
    let mut eager_executors: Vec<EagerExecutor<'_, T>> = own().filter_map(eager_executor).collect();
    // The ranks' own thread allocates and first touches their buffers.
    let mut buffers = own()
        .map(|rank| allocate(rank, layout[rank].len))
        .collect::<Result<Vec<Vec<T>>>>()?;
    let mut walls = job.walls()?;
    let mut wrong: Vec<Option<Wrong<T>>> = own().map(|_| None).collect();
    for n in 0..job.repetitions {
        let mut carriers = Vec::with_capacity(buffers.len());
        for (rank, buffer) in own().zip(&mut buffers) {
            job.data.fill(rank, n, buffer);
            carriers.push(runner.carrier(job, rank, buffer));
        }
        let eager = job.eager.is_some() && n >= job.clocked;
        if eager {
            eager_executors.iter_mut().for_each(EagerExecutor::begin);
        } else {
            executors.iter_mut().for_each(RendezvousExecutor::begin);
        }
        let run = job.first_run + n as u64;
        let start = runner.start_together(job.epoch, context.paced)?;
        if eager {
            runner.run_once(&mut eager_executors, &mut carriers, start, run)?;
        } else {
            runner.run_once(&mut executors, &mut carriers, start, run)?;
        }
        walls.push(job.wall(start, Instant::now()));
        // Peers may still read the buffers. Besides, comparing and refilling them now would slow
        // down ranks that are still running.
        runner.meet()?;
        drop(carriers);
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

impl<'j, T: Element> Job<'j, T> {
    /// The memory of `rank`, which other ranks of a team share.
    pub(super) fn memory<'b>(&self, rank: usize, buffer: &'b mut [T]) -> RankMemory<'b, 'j, T> {
        let lists = self.program.ranks[rank].lists.len();
        RankMemory::new(rank, buffer, lists, self.context.streams_from)
    }

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
    buffer.resize(len, T::test_value(0));
    Ok(buffer)
}
