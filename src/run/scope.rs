//! Running rank programs written by hand: [`Team::scope`], and what it has in common with
//! processes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::context::{RunContext, clock_fits, ensure_ends};
use super::element::Element;
use super::endpoint::{Endpoint, PortModel};
use super::exec::Clock;
use super::failure::{panic_message, panicked};
use super::link::{AnyLink, TeamLink, WireTable};
use super::operator::Operator;
use super::placement::Workers;
use super::rank::{Rank, ScopeContext};
use super::sync::Mutex;
use super::team::Team;
use super::transfer::{Buffer, Combiner, Copying, RankMemory};
use super::tuning::{DEADLINE, START_DELAY};
use crate::error::{Error, Result};
use crate::machine::{CostModel, Ports};
use crate::rules::max_time;
use crate::schedule::collective::Collective;
use crate::schedule::{Layout, Schedule, Step};

/// Options of a rank program on elements of type `T`: of [`Team::scope`] and, over MPI, of
/// `World::scope`.
///
/// ```
/// use oneport::CostModel;
/// use oneport::run::{Operator, ScopeOptions};
/// let options = ScopeOptions {
///     cost: CostModel::new(10.0, 1.0),
///     record: true,
///     ..ScopeOptions::new(Operator::<f32>::named("sum")?)
/// };
/// # Ok::<(), oneport::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ScopeOptions<T> {
    /// The operator of [`Endpoint::recv_combine`] and [`Endpoint::combine`].
    pub operator: Operator<T>,
    /// The cost model of the model clock. Under a paced clock its unit is the nanosecond.
    pub cost: CostModel,
    /// Native or paced.
    pub clock: Clock,
    /// How long a rank waits for a partner before the run ends in an error. The time for which
    /// ranks sleep to keep the pace does not count.
    pub deadline: Duration,
    /// Whether to record the steps of every rank, for [`ScopeOutcome::schedule`].
    pub record: bool,
}

impl<T: Element> Default for ScopeOptions<T> {
    /// [`ScopeOptions::new`] without an operator: ranks that combine make their data visibly wrong.
    fn default() -> Self {
        ScopeOptions::new(Operator::none())
    }
}

impl<T: Element> ScopeOptions<T> {
    /// Native clock, a deadline of 10 s, no record, and costs in nanoseconds: `alpha` of 1000,
    /// `beta` of 0.1 per byte, and computation is free.
    pub fn new(operator: Operator<T>) -> Self {
        ScopeOptions {
            operator,
            cost: CostModel::new(1000.0, 0.1),
            clock: Clock::Native,
            deadline: DEADLINE,
            record: false,
        }
    }
}

impl<T: Element> ScopeOptions<T> {
    /// Refuses options that do not fit together, or not `ranks` ranks.
    pub(crate) fn validate(&self, ranks: usize) -> Result<()> {
        self.cost.validate()?;
        self.cost.covers(ranks)?;
        clock_fits(self.clock, &self.cost)
    }

    /// What all of `ranks` ranks with such `ports` have in common.
    pub(crate) fn context(&self, ranks: usize, ports: Ports, copying: Copying) -> ScopeContext<'_> {
        let combiner = Combiner::of(&self.operator);
        let (cost, clock, deadline) = (&self.cost, self.clock, self.deadline);
        let run = RunContext::new(combiner, cost, ports, clock, deadline, copying);
        ScopeContext::new(run, ranks, self.record)
    }
}

/// The result of a rank program over `p` ranks.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ScopeOutcome<R> {
    /// By rank: what its program returned. `p` values; over MPI one, that of the process's own
    /// rank.
    pub results: Vec<R>,
    /// By rank: the model time at which it finished its last operation, in the unit of the cost
    /// model. `p` times.
    pub rank_times: Vec<f64>,
    /// The steps of each rank, if they were recorded.
    pub(crate) programs: Option<Vec<Vec<Step>>>,
    pub(crate) ports: Ports,
    pub(crate) element_bytes: u64,
}

impl<R> ScopeOutcome<R> {
    /// Of rank programs on such `ports`, before any report.
    pub(crate) fn empty<T: Element>(options: &ScopeOptions<T>, ports: Ports) -> Self {
        ScopeOutcome {
            results: Vec::new(),
            rank_times: Vec::new(),
            programs: options.record.then(Vec::new),
            ports,
            element_bytes: size_of::<T>() as u64,
        }
    }

    /// Model time at which the last rank finished, in `O(p)` time.
    pub fn model_time(&self) -> f64 {
        self.rank_times.iter().copied().fold(0.0, max_time)
    }

    /// The recorded steps as a schedule for `collective`. `layout[rank]` says where input and
    /// output are in the buffer of the rank.
    ///
    /// Linear in the number of ranks and steps, which are copied.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if nothing was recorded; otherwise as
    /// [`Schedule::new`].
    pub fn schedule(&self, collective: &Collective, layout: &[Layout]) -> Result<Schedule> {
        let programs = self
            .programs
            .clone()
            .ok_or_else(|| Error::usage("nothing was recorded: set ScopeOptions::record"))?;
        let (collective, layout) = (collective.clone(), layout.to_vec());
        let schedule = Schedule::new(self.ports, collective, layout, programs)?;
        Ok(schedule.with_element_bytes(self.element_bytes))
    }
}

/// The value that a rank's program returned, its model time, and its recorded steps.
pub(crate) type ProgramReport<R> = (R, f64, Option<Vec<Step>>);

/// A rank's buffer, and its report once it has finished.
type ScopeSlot<'b, T, R> = (&'b mut Vec<T>, Option<ProgramReport<R>>);

impl Team {
    /// Runs `body` on every rank, on the rank's own thread, with an endpoint on that rank's buffer:
    /// `buffers[rank]`, of any length. It returns when all ranks have returned; each waits for its
    /// open send first.
    ///
    /// The type of the endpoint determines the port model. With [`ScopeOptions::record`] the steps
    /// become a [`Schedule`] that can be checked, simulated and drawn; its simulation takes exactly
    /// the model time of the run.
    ///
    /// Memory besides the buffers: that of the recorded steps, a wire for each pair of ranks that
    /// communicate, and at most one pointer for each other pair.
    ///
    /// # Example
    /// ```
    /// use oneport::run::{Endpoint, Operator, ScopeOptions, Team, Unidirectional};
    /// let mut team = Team::new(3)?;
    /// let mut buffers = vec![vec![1.0f32, 2.0]; 3];
    /// let options = ScopeOptions::new(Operator::named("sum")?);
    /// // A chain: each rank adds its right neighbour's sum to its own.
    /// team.scope(&mut buffers, &options, |e: &mut Endpoint<f32, Unidirectional>| {
    ///     let rank = e.rank();
    ///     if rank + 1 < e.ranks() {
    ///         e.recv_combine(rank + 1, 0..2, oneport::Order::MineFirst)?;
    ///     }
    ///     if rank > 0 {
    ///         e.send(rank - 1, 0..2)?;
    ///     }
    ///     Ok(())
    /// })?;
    /// assert_eq!(buffers[0], [3.0, 6.0]);
    /// # Ok::<(), oneport::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if the team has a thread per core, a cost is
    /// not a time, the cost model is for fewer ranks, or there is not one buffer per rank: nothing
    /// has run then.
    ///
    /// Otherwise the first error that a rank's program returns, or its panic as
    /// [`ErrorKind::Panicked`](crate::ErrorKind::Panicked). An error that only follows from another
    /// rank's failure gives way to that rank's own. The buffers then hold whatever the ranks have
    /// written. The team can be used again.
    pub fn scope<T, P, R, F>(
        &mut self,
        buffers: &mut [Vec<T>],
        options: &ScopeOptions<T>,
        body: F,
    ) -> Result<ScopeOutcome<R>>
    where
        T: Element,
        P: PortModel,
        R: Send,
        F: Fn(&mut Endpoint<'_, T, P>) -> Result<R> + Sync,
    {
        self.accepts_scope(buffers.len(), options)?;
        self.runs += 1;
        let (run, ranks) = (self.runs, self.ranks());
        let bytes = buffers.iter().map(|b| b.len()).sum::<usize>() * size_of::<T>();
        let context = options.context(ranks, P::PORTS, self.copying(bytes));
        let (state, wires) = (&self.state, WireTable::new(ranks));
        let delay = match options.clock {
            Clock::Paced => START_DELAY,
            Clock::Native => Duration::ZERO,
        };
        let start = Instant::now() + delay;
        let slots: Vec<Mutex<ScopeSlot<'_, T, R>>> =
            buffers.iter_mut().map(|b| Mutex::new((b, None))).collect();
        self.run_on_all(&|rank| {
            let mut slot = slots[rank].lock();
            let (buffer, report) = &mut *slot;
            let link = TeamLink::new(context.run.waiter(state, rank), state, &wires, (rank, run));
            let link = AnyLink::Team(link);
            let mut endpoint = endpoint(rank, buffer, &options.operator, &context, link, start);
            let result = run_program(&mut endpoint, &body);
            // Open sends are retracted before any rank learns of a failure.
            drop(endpoint);
            match result {
                Ok(found) => *report = Some(found),
                Err((error, false)) => state.fail(error),
                Err((error, true)) => state.fail_after(error),
            }
            state.depart(rank, run);
        });
        if let Some(failure) = self.state.take_failure() {
            return Err(failure);
        }
        let mut outcome = ScopeOutcome::empty(options, P::PORTS);
        for slot in slots {
            let report = slot.into_inner().1;
            let (result, time, steps) =
                report.ok_or_else(|| Error::system("a rank's thread is gone"))?;
            outcome.results.push(result);
            outcome.rank_times.push(time);
            if let (Some(all), Some(steps)) = (&mut outcome.programs, steps) {
                all.push(steps);
            }
        }
        Ok(outcome)
    }

    /// Refuses what does not fit together.
    fn accepts_scope<T: Element>(&self, buffers: usize, options: &ScopeOptions<T>) -> Result<()> {
        if self.workers() == Workers::Cores {
            return Err(Error::usage(
                "rank programs need a thread for each rank, this team has one for each core",
            ));
        }
        self.accepts_elements(size_of::<T>())?;
        options.validate(self.ranks())?;
        if options.clock == Clock::Paced {
            ensure_ends("the last rank arrives", options.cost.last_arrival())?;
        }
        if buffers != self.ranks() {
            return Err(Error::usage(format!(
                "{} buffers for a team of {} ranks",
                buffers,
                self.ranks()
            )));
        }
        Ok(())
    }
}

/// The endpoint of `rank` on its buffer, in a program that starts at `start`.
pub(crate) fn endpoint<'t, T: Element, P: PortModel>(
    rank: usize,
    buffer: &'t mut [T],
    operator: &'t Operator<T>,
    context: &'t ScopeContext<'t>,
    link: AnyLink<'t>,
    start: Instant,
) -> Endpoint<'t, T, P> {
    let memory = RankMemory::new(rank, Buffer::of(buffer), 1, context.run.copying);
    let rank = Rank::new(rank, context, link, start);
    Endpoint::new(rank, memory, operator)
}

/// Runs `body` as the program of the endpoint's rank. An error says whether it only follows from
/// another rank's failure.
pub(crate) fn run_program<'t, T: Element, P: PortModel, R>(
    endpoint: &mut Endpoint<'t, T, P>,
    body: impl FnOnce(&mut Endpoint<'t, T, P>) -> Result<R>,
) -> Result<ProgramReport<R>, (Error, bool)> {
    let result = catch_unwind(AssertUnwindSafe(|| body(endpoint)));
    // Finishing may run the operator once more, which may panic too.
    let result = result.and_then(|value| {
        catch_unwind(AssertUnwindSafe(|| {
            let value = value?;
            let (time, record) = endpoint.finish()?;
            Ok((value, time, record))
        }))
    });
    match result {
        Ok(Ok(report)) => Ok(report),
        Ok(Err(error)) => Err((error, endpoint.follows())),
        Err(payload) => {
            let (rank, step) = (endpoint.rank(), endpoint.step_in_progress());
            let error = panicked(rank, step, panic_message(&*payload));
            // Dropping the payload may panic again, before the others learn of the failure.
            if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
                std::mem::forget(again);
            }
            Err((error, false))
        }
    }
}
