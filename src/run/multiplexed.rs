//! Folded runs: one pinned worker a core takes turns at its ranks' programs.
//!
//! A worker owns a contiguous part of the ranks. Each rank is an [`Executor`], the very interpreter
//! that otherwise has a thread to itself, so steps, checks, errors and the model clock are the
//! same. A rank is looked at when something has happened that it may be waiting for: a partner has
//! offered it a message, or taken one in. So a worker never asks a rank in vain, and the work is
//! linear in the number of steps, however many ranks there are. Workers tell each other by an
//! [`Inbox`] each.
//!
//! When a worker has nothing left to look at, it waits like a rank does, within the same deadline.
//! A lone worker knows then that no rank can ever go on.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use super::eager::EagerExecutor;
use super::element::Element;
use super::executor::{Executor, Failure, Peers, RankExecutor};
use super::inbox::{Inbox, QueueNode};
use super::perform::{Job, RankReport, Reports, Wall, allocate, meet, panicked};
use super::recorder::Recorder;
use super::team::Team;
use super::testdata::Wrong;
use super::transfer::RankMemory;
use super::wait::{Stop, TeamState, Waiter};

/// Runs `job` on the team's workers; nothing when one of them failed, which the crowd knows then.
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

/// Of each of a worker's ranks, and of all its repetitions.
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
        // Fewer workers than ranks, of which there are fewer than fit into memory: no overflow.
        worker * self.ranks / self.inboxes.len()
    }

    fn owner(&self, rank: usize) -> usize {
        // The last worker whose first rank is not beyond `rank`.
        ((rank + 1) * self.inboxes.len() - 1) / self.ranks
    }
}

/// One worker, between two ranks' turns.
#[derive(Debug)]
struct Worker<'f> {
    workers: &'f WorkerSet<'f>,
    me: usize,
    first: usize,
    last: usize,
    /// Own ranks to look at, the latest first: what they need is still in the cache.
    ready: RefCell<Vec<usize>>,
    /// By own rank: whether it is in `ready`.
    is_ready: Box<[Cell<bool>]>,
    /// The rank being looked at, and its step, for errors.
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

    /// All repetitions of this worker's ranks.
    fn work<'j, T: Element, R: Recorder>(
        &self,
        job: &Job<'j, T>,
    ) -> Result<WorkerReport<T>, Failure> {
        let own = self.first..self.last;
        let mut executors: Vec<Executor<'j, T, R>> = Vec::with_capacity(own.len());
        let mut courses: Vec<EagerExecutor<'j, 'j, T>> = Vec::new();
        let mut buffers = Vec::with_capacity(own.len());
        for rank in own.clone() {
            let program = &job.program.ranks[rank];
            let recorder = R::new(program.steps.len(), job.epoch);
            executors.push(Executor::new(rank, program, job.context, recorder));
            courses.extend(
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
            // Without clock, but for the first repetition.
            let eager = job.eager.is_some() && n > 0;
            if eager {
                courses.iter_mut().for_each(EagerExecutor::begin);
            } else {
                executors.iter_mut().for_each(|e| e.begin(job.epoch));
            }
            meet(self.workers.state, self.me)?;
            let entry = Instant::now();
            let waiter = Waiter::new(self.workers.state, self.me, job.context.deadline, false);
            let run = job.first_run + n as u64;
            if eager {
                self.run_once(&mut courses, &mut memories, waiter, run)?;
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

    /// One repetition.
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
        let mut in_vain = 0u32;
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
                if in_vain > 0 {
                    in_vain = 0;
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
            // Nothing to look at: somebody else's rank has to go on first, if there is anybody
            // else.
            let alone = self.workers.inboxes.len() == 1;
            // Whoever would share the copying of a message tells nobody; it is only done where each
            // worker has one rank.
            if let ([program], [memory]) = (&*programs, &*memories)
                && program.wants_help(memory)
            {
                self.must_poll(self.first);
                continue;
            }
            in_vain = in_vain.saturating_add(1);
            if alone || (in_vain >= 1024 && in_vain.is_power_of_two()) {
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

    /// Takes `rank` as far as it can go.
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

    /// Looks for ranks whose partners will never come.
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

    /// The error of the first rank that waits for ever.
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

/// Remembers where a rank was when it is dropped: also by a panic.
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
