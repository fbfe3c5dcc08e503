//! Multiplexed runs: one pinned worker per core runs the programs of several ranks in turn.
//!
//! A worker owns a contiguous range of ranks. Each rank has the same [`Executor`] that otherwise
//! has a thread of its own, so steps, checks, errors and the model clock are the same. A rank is
//! polled only when something has happened that it may be waiting for: a partner has offered it a
//! message, or received one from it. So the work is linear in the number of steps, however many
//! ranks there are. Workers notify each other through one [`Inbox`] each.
//!
//! A worker that has no rank to poll waits like a rank does, with the same deadline. If there is
//! only one worker, it then knows at once that no rank can ever make progress.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use super::eager::EagerExecutor;
use super::executor::{Executor, Failure, Peers, RankExecutor};
use super::perform::{Job, RankReport, Reports, Wall, allocate, meet, panicked};
use super::recorder::Recorder;
use crate::run::element::Element;
use crate::run::team::Team;
use crate::run::testdata::Wrong;
use crate::run::transfer::RankMemory;
use crate::run::wait::{Inbox, QueueNode, Stop, TeamState, Waiter};

/// Runs `job` on the team's workers. `None` if one of them failed; the team's state then has the
/// failure.
pub(super) fn run<T: Element, R: Recorder>(team: &Team, job: &Job<'_, T>) -> Option<Reports<T>> {
    let workers = WorkerSet::new(&team.state, team.ranks(), team.threads());
    let reports: Vec<Mutex<Option<WorkerReport<T>>>> =
        (0..team.threads()).map(|_| Mutex::new(None)).collect();
    let worker_main = |me: usize| {
        let worker = Worker::new(&workers, me);
        let result = catch_unwind(AssertUnwindSafe(|| worker.work::<T, R>(job)));
        match result {
            Ok(Ok(report)) => *reports[me].lock() = Some(report),
            Ok(Err(Failure::Aborted)) => {}
            Ok(Err(Failure::Own(error))) => team.state.fail(error),
            Err(payload) => {
                let (rank, step) = worker.at.get();
                team.state.fail(panicked(rank, step, &*payload));
            }
        }
    };
    team.run_on_all(&worker_main);
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

/// The reports of a worker's ranks, and the times of its repetitions.
type WorkerReport<T> = (Vec<RankReport<T>>, Vec<Wall>);

/// What all workers share.
#[derive(Debug)]
struct WorkerSet<'f> {
    state: &'f TeamState,
    ranks: usize,
    inboxes: Box<[Inbox]>,
    nodes: Box<[QueueNode]>,
    /// By rank: the last run that it has finished.
    left: Box<[AtomicU64]>,
}

impl<'f> WorkerSet<'f> {
    fn new(state: &'f TeamState, ranks: usize, workers: usize) -> Self {
        WorkerSet {
            state,
            ranks,
            inboxes: (0..workers).map(|_| Inbox::new()).collect(),
            nodes: (0..ranks).map(|_| QueueNode::new()).collect(),
            left: (0..ranks).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// First rank of worker `worker`.
    fn first(&self, worker: usize) -> usize {
        // This cannot overflow: there are fewer workers than ranks, and fewer ranks than fit into
        // memory.
        worker * self.ranks / self.inboxes.len()
    }

    fn owner(&self, rank: usize) -> usize {
        // The last worker whose first rank is at most `rank`.
        ((rank + 1) * self.inboxes.len() - 1) / self.ranks
    }
}

/// One worker.
#[derive(Debug)]
struct Worker<'f> {
    workers: &'f WorkerSet<'f>,
    me: usize,
    first: usize,
    last: usize,
    /// Own ranks to poll, as a stack: the data of the last one is still in the cache.
    ready: RefCell<Vec<usize>>,
    /// By own rank: whether it is in `ready`.
    is_ready: Box<[Cell<bool>]>,
    /// The rank being polled, and its step, for errors.
    at: Cell<(usize, usize)>,
}

impl Peers for Worker<'_> {
    #[inline]
    fn wake(&self, rank: usize) {
        if (self.first..self.last).contains(&rank) {
            self.must_poll(rank);
        } else if rank < self.workers.ranks {
            let owner = self.workers.owner(rank);
            if self.workers.inboxes[owner].push(&self.workers.nodes, rank) {
                self.workers.state.wake(owner);
            }
        }
    }

    fn has_left(&self, rank: usize, run: u64) -> bool {
        self.workers.left[rank].load(Ordering::Acquire) >= run
    }
}

impl<'f> Worker<'f> {
    fn new(workers: &'f WorkerSet<'f>, me: usize) -> Self {
        let (first, last) = (workers.first(me), workers.first(me + 1));
        Worker {
            workers,
            me,
            first,
            last,
            ready: RefCell::new(Vec::with_capacity(last - first)),
            is_ready: (first..last).map(|_| Cell::new(false)).collect(),
            at: Cell::new((first, 0)),
        }
    }

    /// Runs all repetitions of this worker's ranks.
    fn work<'j, T: Element, R: Recorder>(
        &self,
        job: &Job<'j, T>,
    ) -> Result<WorkerReport<T>, Failure> {
        let own = self.first..self.last;
        let mut executors: Vec<Executor<'j, T, R>> = Vec::with_capacity(own.len());
        let mut eager_executors: Vec<EagerExecutor<'j, 'j, T>> = Vec::new();
        let mut buffers = Vec::with_capacity(own.len());
        for rank in own.clone() {
            let program = &job.program.ranks[rank];
            let recorder = R::new(program.steps.len(), job.epoch);
            executors.push(Executor::new(rank, program, job.context, recorder));
            eager_executors.extend(
                job.eager
                    .map(|e| EagerExecutor::new(rank, e, program, job.context)),
            );
            let len = job.schedule.layout()[rank].len;
            buffers.push(allocate(rank, len).map_err(Failure::Own)?);
        }
        let mut walls = job.walls()?;
        let mut wrong: Vec<Option<Wrong<T>>> = own.clone().map(|_| None).collect();
        for n in 0..job.repetitions {
            let mut memories: Vec<RankMemory<'_, 'j, T>> = Vec::with_capacity(own.len());
            for (rank, buffer) in own.clone().zip(&mut buffers) {
                job.data.fill(rank, n, buffer);
                let lists = job.program.ranks[rank].lists.len();
                let streams_from = job.context.streams_from;
                memories.push(RankMemory::new(rank, buffer, lists, streams_from));
            }
            // Only the first repetition carries the model clock.
            let eager = job.eager.is_some() && n > 0;
            if eager {
                eager_executors.iter_mut().for_each(EagerExecutor::begin);
            } else {
                executors.iter_mut().for_each(|e| e.begin(job.epoch));
            }
            meet(self.workers.state, self.me)?;
            let entry = Instant::now();
            let waiter = Waiter::new(self.workers.state, self.me, job.context.deadline, false);
            let run = job.first_run + n as u64;
            if eager {
                self.run_once(&mut eager_executors, &mut memories, waiter, run)?;
            } else {
                self.run_once(&mut executors, &mut memories, waiter, run)?;
            }
            walls.push(job.wall(entry, Instant::now()));
            meet(self.workers.state, self.me)?;
            drop(memories);
            for ((rank, buffer), wrong) in own.clone().zip(&buffers).zip(&mut wrong) {
                *wrong = wrong.take().or_else(|| job.data.wrong(rank, n, buffer));
            }
        }
        let outputs = buffers.iter().zip(wrong);
        let reports = own
            .zip(&mut executors)
            .zip(outputs)
            .map(|((rank, e), (buffer, wrong))| {
                RankReport::new(e, buffer, &job.schedule.layout()[rank], wrong)
            })
            .collect();
        Ok((reports, walls))
    }

    /// Runs one repetition.
    fn run_once<'j, T: Element>(
        &self,
        programs: &mut [impl RankExecutor<'j, T>],
        memories: &mut [RankMemory<'_, 'j, T>],
        mut waiter: Waiter<'_>,
        run: u64,
    ) -> Result<(), Failure> {
        let inbox = &self.workers.inboxes[self.me];
        let mut unfinished = programs.len();
        (self.first..self.last)
            .rev()
            .for_each(|rank| self.must_poll(rank));
        let mut idle_polls = 0u32;
        loop {
            if !inbox.is_empty() {
                inbox.take(&self.workers.nodes, |rank| self.must_poll(rank));
            }
            if let Some(rank) = self.next() {
                let own = rank - self.first;
                let (program, memory) = (&mut programs[own], &mut memories[own]);
                if self.has_left(rank, run) {
                    continue;
                }
                if idle_polls > 0 {
                    idle_polls = 0;
                    waiter.progressed();
                }
                self.poll(rank, program, memory)?;
                if program.is_done() {
                    self.workers.left[rank].store(run, Ordering::Release);
                    unfinished -= 1;
                }
                continue;
            }
            if unfinished == 0 {
                return Ok(());
            }
            // No rank to poll: a rank of another worker, if there is one, has to make progress
            // first.
            let alone = self.workers.inboxes.len() == 1;
            // A receiver that asks its sender to copy pieces does not notify it. Messages are
            // shared only where each worker has one rank, so this worker polls its one rank for
            // that.
            if let ([program], [memory]) = (&*programs, &*memories)
                && program.wants_help(memory)
            {
                self.must_poll(self.first);
                continue;
            }
            idle_polls = idle_polls.saturating_add(1);
            if alone || (idle_polls >= 1024 && idle_polls.is_power_of_two()) {
                self.check(programs, memories, run)?;
            }
            if alone && self.ready.borrow().is_empty() {
                return Err(self.timeout_error(programs));
            }
            match waiter.pause(None) {
                Ok(()) => {}
                Err(Stop::Aborted) => return Err(Failure::Aborted),
                Err(Stop::Deadline) => return Err(self.timeout_error(programs)),
            }
        }
    }

    /// Polls `rank`, which makes as much progress as possible.
    fn poll<'j, T: Element>(
        &self,
        rank: usize,
        program: &mut impl RankExecutor<'j, T>,
        memory: &mut RankMemory<'_, 'j, T>,
    ) -> Result<(), Failure> {
        let at = At {
            worker: self,
            rank,
            program,
            element: PhantomData,
        };
        at.program.poll(memory, self)
    }

    /// Checks all ranks for partners that will never come.
    fn check<'j, T: Element>(
        &self,
        programs: &mut [impl RankExecutor<'j, T>],
        memories: &mut [RankMemory<'_, 'j, T>],
        run: u64,
    ) -> Result<(), Failure> {
        for (i, (program, memory)) in programs.iter_mut().zip(memories).enumerate() {
            let rank = self.first + i;
            if !program.is_done() && program.check_partners(memory, self, run)? {
                self.must_poll(rank);
            }
        }
        Ok(())
    }

    /// The error of the first unfinished rank.
    fn timeout_error<'j, T: Element>(&self, programs: &[impl RankExecutor<'j, T>]) -> Failure {
        match programs.iter().find(|p| !p.is_done()) {
            Some(program) => Failure::Own(program.timeout_error()),
            None => Failure::Aborted,
        }
    }

    fn must_poll(&self, rank: usize) {
        if !self.is_ready[rank - self.first].replace(true) {
            self.ready.borrow_mut().push(rank);
        }
    }

    fn next(&self) -> Option<usize> {
        let rank = self.ready.borrow_mut().pop()?;
        self.is_ready[rank - self.first].set(false);
        Some(rank)
    }
}

/// On drop, also by a panic, records the step at which the rank was.
struct At<'a, 'f, 'j, T: Element, I: RankExecutor<'j, T>> {
    worker: &'a Worker<'f>,
    rank: usize,
    program: &'a mut I,
    element: PhantomData<&'j T>,
}

impl<'j, T: Element, I: RankExecutor<'j, T>> Drop for At<'_, '_, 'j, T, I> {
    fn drop(&mut self) {
        self.worker.at.set((self.rank, self.program.step()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_has_one_owner() {
        let state = TeamState::new(&[0], 1, Vec::new());
        for workers in 1..9 {
            for ranks in workers..60 {
                let set = WorkerSet::new(&state, ranks, workers);
                for worker in 0..workers {
                    let own = set.first(worker)..set.first(worker + 1);
                    assert!(!own.is_empty());
                    assert!(own.into_iter().all(|rank| set.owner(rank) == worker));
                }
                assert_eq!(set.first(workers), ranks);
            }
        }
    }
}
