//! Multiplexed runs: one pinned worker per core interleaves the programs of several ranks.
//!
//! A worker owns a contiguous range of ranks. Each rank has the same executor that otherwise has a
//! thread of its own, so steps, checks, errors and the model clock are the same. A rank is polled
//! only when something has happened that it may be waiting for: a partner has offered it a message,
//! or received one from it. So the work is linear in the number of steps, however many
//! ranks there are. Workers notify each other through one [`Inbox`] each.
//!
//! A worker that has no rank to poll waits like a rank does, with the same deadline. If there is
//! only one worker, it then knows at once that no rank can ever make progress.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::time::Duration;

use super::executor::{Peers, RankExecutor};
use super::runner::AtStep;
use crate::run::failure::Failure;
use crate::run::placement::{first_rank, worker_of};
use crate::run::sync::{AtomicU64, Ordering};
use crate::run::transfer::RankMemory;
use crate::run::tuning::WORKER_POLLS_BEFORE_CHECK;
use crate::run::wait::{Inbox, QueueNode, TeamState, Waiter};

/// What all workers share.
#[derive(Debug)]
pub(super) struct WorkerSet<'f> {
    state: &'f TeamState,
    ranks: usize,
    inboxes: Box<[Inbox]>,
    nodes: Box<[QueueNode]>,
    /// By rank: the last run that it has finished.
    left: Box<[AtomicU64]>,
}

impl<'f> WorkerSet<'f> {
    pub(super) fn new(state: &'f TeamState, ranks: usize, workers: usize) -> Self {
        WorkerSet {
            state,
            ranks,
            inboxes: (0..workers).map(|_| Inbox::new()).collect(),
            nodes: (0..ranks).map(|_| QueueNode::new()).collect(),
            left: (0..ranks).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn first(&self, worker: usize) -> usize {
        first_rank(worker, self.inboxes.len(), self.ranks)
    }

    pub(super) fn ranks_of(&self, worker: usize) -> Range<usize> {
        self.first(worker)..self.first(worker + 1)
    }

    fn owner(&self, rank: usize) -> usize {
        worker_of(rank, self.inboxes.len(), self.ranks)
    }
}

/// One worker.
#[derive(Debug)]
pub(super) struct Worker<'f> {
    workers: &'f WorkerSet<'f>,
    me: usize,
    first: usize,
    last: usize,
    /// Own ranks to poll, as a stack: the data of the last one is still in the cache.
    ready: RefCell<Vec<usize>>,
    /// By own rank: whether it is in `ready`.
    is_ready: Box<[Cell<bool>]>,
    /// How long it waits for the ranks of other workers.
    deadline: Duration,
    at: &'f AtStep,
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
    pub(super) fn new(
        workers: &'f WorkerSet<'f>,
        me: usize,
        deadline: Duration,
        at: &'f AtStep,
    ) -> Self {
        let (first, last) = (workers.first(me), workers.first(me + 1));
        Worker {
            workers,
            me,
            first,
            last,
            ready: RefCell::new(Vec::with_capacity(last - first)),
            is_ready: (first..last).map(|_| Cell::new(false)).collect(),
            deadline,
            at,
        }
    }

    /// Checks all ranks for partners that will never come.
    fn check<'j>(
        &self,
        programs: &mut [impl RankExecutor<'j>],
        memories: &mut [RankMemory<'_, 'j>],
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

    /// Waits a little for the ranks of other workers, one of which has to make progress first: this
    /// worker has polled `idle_polls` times without progress. Fails if no rank can make progress.
    fn wait<'j>(
        &self,
        idle_polls: u32,
        waiter: &mut Waiter<'_>,
        programs: &mut [impl RankExecutor<'j>],
        memories: &mut [RankMemory<'_, 'j>],
        run: u64,
    ) -> Result<(), Failure> {
        let alone = self.workers.inboxes.len() == 1;
        if alone || (idle_polls >= WORKER_POLLS_BEFORE_CHECK && idle_polls.is_power_of_two()) {
            self.check(programs, memories, run)?;
        }
        if alone && self.ready.borrow().is_empty() {
            return Err(self.timeout_error(programs));
        }
        waiter.pause(None).map_err(|stop| {
            let mut waiting = programs.iter().filter(|p| !p.is_done());
            match waiting.next() {
                Some(first) => waiter.failure(stop, || first.timeout_error()),
                None => Failure::Aborted,
            }
        })
    }

    /// The error of the first unfinished rank.
    fn timeout_error<'j>(&self, programs: &[impl RankExecutor<'j>]) -> Failure {
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

impl Worker<'_> {
    /// Runs the programs of its ranks once.
    pub(super) fn run_once<'b, 'j>(
        &self,
        programs: &mut [impl RankExecutor<'j>],
        memories: &mut [RankMemory<'b, 'j>],
        run: u64,
    ) -> Result<(), Failure> {
        let mut waiter = Waiter::new(self.workers.state, self.me, self.deadline, false);
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
                self.at.during(program, |p| p.poll(memory, self))?;
                if program.is_done() {
                    self.workers.left[rank].store(run, Ordering::Release);
                    unfinished -= 1;
                }
                continue;
            }
            if unfinished == 0 {
                return Ok(());
            }
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
            self.wait(idle_polls, &mut waiter, programs, memories, run)?;
        }
    }
}
