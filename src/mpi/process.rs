//! One process of a run: how it meets the others, runs its rank's program, and waits.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::binding::{Communicator, Messages, OwnCollective, Requests};
use super::idle::Idle;
use super::watchdog::Watchdog;
use crate::error::Error;
use crate::run::engine::{
    Buffer, Failure, Peers, Precision, RankExecutor, RankMemory, Runner, RunnerJob, TransferAt,
    panic_message, panicked, sleep_until,
};
use crate::schedule::Step;

/// How much longer than a rank for its partner a process waits for all others.
const MEETING_PATIENCE: Duration = Duration::from_secs(2);

/// One process of a run.
#[derive(Debug)]
pub(super) struct Process<'w> {
    pub(super) communicator: &'w Communicator,
    pub(super) requests: RefCell<Requests>,
    pub(super) steps: &'w [Step],
    /// Whether processes outnumber cores.
    pub(super) oversubscribed: bool,
    pub(super) deadline: Duration,
}

/// MPI peers poll; no wake-up is needed.
struct PollingPeers;

impl Peers for PollingPeers {
    fn wake(&self, _: usize) {}

    fn has_left(&self, _: usize, _: u64) -> bool {
        false
    }
}

impl Runner for Process<'_> {
    type Carrier<'b, 'j>
        = Messages<'b>
    where
        Self: 'b;

    fn carrier<'b, 'j>(&'b self, _: &RunnerJob<'j>, _: usize, buffer: Buffer<'b>) -> Messages<'b> {
        Messages::new(buffer, self.requests.borrow_mut(), self.communicator, None)
    }

    fn meet(&self) -> Result<(), Failure> {
        let deadline = self.deadline.saturating_add(MEETING_PATIENCE);
        Ok(self.communicator.barrier(deadline)?)
    }

    fn start_together(&self, _: Instant, late: Option<Duration>) -> Result<Instant, Failure> {
        self.meet()?;
        Ok(enter(late))
    }

    fn run_once<'b, 'j>(
        &self,
        executors: &mut [impl RankExecutor<'j>],
        carriers: &mut [Messages<'b>],
        _: Instant,
        _: u64,
    ) -> Result<(), Failure> {
        for (executor, messages) in executors.iter_mut().zip(carriers) {
            let idle = Idle::new(self.oversubscribed, self.deadline);
            run_rank(self.communicator, self.steps, executor, messages, idle);
        }
        Ok(())
    }
}

/// Runs the program of one rank, until all its messages have left. A failure ends all processes.
pub(super) fn run_rank<'j>(
    communicator: &Communicator,
    steps: &[Step],
    executor: &mut impl RankExecutor<'j>,
    messages: &mut Messages<'_>,
    idle: Idle,
) {
    let run = AssertUnwindSafe(|| poll_rank(steps, executor, messages, idle));
    let failure = match catch_unwind(run) {
        Ok(Ok(())) => return,
        Ok(Err(failure)) => failure,
        Err(payload) => {
            let message = panic_message(&*payload);
            Failure::Own(panicked(executor.rank(), executor.step(), message))
        }
    };
    fail(communicator, failure);
}

fn poll_rank<'j>(
    steps: &[Step],
    executor: &mut impl RankExecutor<'j>,
    messages: &mut Messages<'_>,
    mut idle: Idle,
) -> Result<(), Failure> {
    let mut events = messages.events();
    loop {
        executor.poll(messages, &PollingPeers)?;
        let mut in_flight = None;
        if executor.is_done() {
            in_flight = messages.in_flight();
            if in_flight.is_none() {
                return Ok(());
            }
        }
        if events != messages.events() {
            // Whatever it waits for now takes longer than to see that short messages have left.
            messages.in_flight();
            events = messages.events();
            idle.ends();
        }
        if idle.has_lasted() {
            return Err(Failure::Own(match in_flight {
                None => executor.timeout_error(),
                Some(i) => TransferAt::of(executor.rank(), i, &steps[i]).timeout("send"),
            }));
        }
    }
}

/// Waits until the process is `late` past now, the end of the barrier: the common start.
fn enter(late: Option<Duration>) -> Instant {
    let start = Instant::now();
    if let Some(late) = late {
        sleep_until(start + late, Precision::Sharp);
    }
    start
}

/// Ends all processes: the others wait in the library, where nothing else reaches them.
pub(super) fn fail(communicator: &Communicator, failure: Failure) -> ! {
    let error = match failure {
        Failure::Own(error) => error,
        Failure::Aborted => Error::system("the run was aborted"),
    };
    communicator.fail(&error)
}

/// One process of a run of the library's own collective. It runs no steps.
#[derive(Debug)]
pub(super) struct OwnProcess<'w> {
    pub(super) communicator: &'w Communicator,
    pub(super) watchdog: &'w Watchdog,
    pub(super) own: &'w OwnCollective,
    pub(super) deadline: Duration,
}

impl Runner for OwnProcess<'_> {
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
        RankMemory::new(rank, buffer, 0, job.context.copying)
    }

    fn meet(&self) -> Result<(), Failure> {
        self.watchdog.disarm();
        Ok(self
            .communicator
            .barrier(self.deadline.saturating_add(MEETING_PATIENCE))?)
    }

    fn start_together(&self, _: Instant, late: Option<Duration>) -> Result<Instant, Failure> {
        // A blocking call cannot look at the clock. Waiting for the others, which prepare their
        // data, does not count; it has a deadline of its own.
        let meeting = self.deadline.saturating_add(MEETING_PATIENCE);
        let both = meeting.saturating_add(self.deadline);
        self.watchdog.arm(self.own.name, both);
        self.communicator.barrier(meeting)?;
        Ok(enter(late))
    }

    fn run_once<'b, 'j>(
        &self,
        _: &mut [impl RankExecutor<'j>],
        memories: &mut [RankMemory<'b, 'j>],
        _: Instant,
        _: u64,
    ) -> Result<(), Failure> {
        for memory in memories {
            self.communicator.collective(self.own, memory)?;
        }
        Ok(())
    }
}
