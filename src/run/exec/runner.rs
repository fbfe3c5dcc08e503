//! What a thread or process of a run is to its executors: the job, how the threads meet, and the
//! step that an error names.

use std::cell::Cell;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

use super::ahead::RunAhead;
use super::carrier::Carrier;
use super::executor::RankExecutor;
use super::program::Program;
use crate::run::context::RunContext;
use crate::run::failure::Failure;
use crate::run::testdata::RunBuffers;
use crate::run::transfer::{Buffer, RankMemory};

/// What the threads or processes of a run need.
#[derive(Debug)]
pub(crate) struct RunnerJob<'j> {
    pub(crate) program: &'j Program<'j>,
    pub(crate) buffers: &'j dyn RunBuffers,
    pub(crate) context: &'j RunContext<'j>,
    /// For messages sent ahead in all repetitions but the first [`RunnerJob::clocked`].
    pub(crate) ahead: Option<&'j RunAhead>,
    /// Number of repetitions that carry the model clock, before those that run ahead.
    pub(crate) clocked: usize,
    pub(crate) repetitions: usize,
    /// Number of repetitions before which buffers are filled, and after which outputs are compared.
    pub(crate) filled: usize,
    /// The number of the first repetition; repetitions are numbered throughout the team's life.
    pub(crate) first_run: u64,
    pub(crate) epoch: Instant,
    /// Whether to record when each step takes place.
    pub(crate) trace: bool,
}

impl<'j> RunnerJob<'j> {
    /// The memory of `rank`, which other ranks of a team share.
    pub(super) fn memory<'b>(&self, rank: usize, buffer: Buffer<'b>) -> RankMemory<'b, 'j> {
        let lists = self.program.ranks[rank].lists.len();
        RankMemory::new(rank, buffer, lists, self.context.copying)
    }
}

/// One thread or process of a run: how it meets the others, and runs its ranks' programs once.
pub(crate) trait Runner {
    /// What carries the messages of its ranks.
    type Carrier<'b, 'j>: Carrier<'j>
    where
        Self: 'b;

    /// The carrier of `rank` for one repetition of `job`.
    fn carrier<'b, 'j>(
        &'b self,
        job: &RunnerJob<'j>,
        rank: usize,
        buffer: Buffer<'b>,
    ) -> Self::Carrier<'b, 'j>;

    /// Waits for all others, without a deadline: they are setting up or finishing a repetition, not
    /// waiting for a transfer.
    fn meet(&self) -> Result<(), Failure>;

    /// Waits for all others, and returns the common start. If that is to be a point of time, as for
    /// a paced clock and late ranks, threads agree on one slightly in the future, and each waits
    /// until it is `late` past it.
    fn start_together(&self, epoch: Instant, late: Option<Duration>) -> Result<Instant, Failure>;

    /// Runs `executors` with their carriers, from the beginning of their programs. `start` is model
    /// time 0 of a paced clock; `run` numbers the repetitions of the team's life.
    fn run_once<'b, 'j>(
        &self,
        executors: &mut [impl RankExecutor<'j>],
        carriers: &mut [Self::Carrier<'b, 'j>],
        start: Instant,
        run: u64,
    ) -> Result<(), Failure>;
}

/// The rank that a thread runs, and its step, for the error of a panic.
#[derive(Debug)]
pub(super) struct AtStep(pub(super) Cell<(usize, usize)>);

impl AtStep {
    pub(super) fn new(rank: usize) -> Self {
        AtStep(Cell::new((rank, 0)))
    }

    /// Calls `f`. Afterwards, also after a panic, notes at which step `executor` is.
    #[inline]
    pub(super) fn during<'j, E: RankExecutor<'j>, R>(
        &self,
        executor: &mut E,
        f: impl FnOnce(&mut E) -> R,
    ) -> R {
        let noting = Noting {
            at: self,
            executor,
            run: PhantomData,
        };
        f(noting.executor)
    }
}

/// On drop, notes the step of its executor.
struct Noting<'a, 'j, E: RankExecutor<'j>> {
    at: &'a AtStep,
    executor: &'a mut E,
    run: PhantomData<&'j ()>,
}

impl<'j, E: RankExecutor<'j>> Drop for Noting<'_, 'j, E> {
    fn drop(&mut self) {
        self.at.0.set((self.executor.rank(), self.executor.step()));
    }
}
