//! Running rank programs written by hand: [`Team::scope`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::context::{RunContext, clock_fits, ensure_ends};
use super::element::Element;
use super::endpoint::{Endpoint, PortModel};
use super::exec::Clock;
use super::failure::{panic_message, panicked};
use super::operator::Operator;
use super::placement::Workers;
use super::rank::Rank;
use super::sync::Mutex;
use super::team::Team;
use super::transfer::{Buffer, Combiner, RankMemory};
use super::tuning::{DEADLINE, START_DELAY};
use super::wires::{ScopeContext, WireTable};
use crate::error::{Error, Result};
use crate::machine::{CostModel, Ports};
use crate::rules::max_time;
use crate::schedule::collective::Collective;
use crate::schedule::{Layout, Schedule, Step};

/// Options of [`Team::scope`], for elements of type `T`.
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

/// The result of [`Team::scope`] over `p` ranks.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ScopeOutcome<R> {
    /// By rank: what its program returned. `p` values.
    pub results: Vec<R>,
    /// By rank: the model time at which it finished its last operation, in the unit of the cost
    /// model. `p` times.
    pub rank_times: Vec<f64>,
    /// The steps of each rank, if they were recorded.
    programs: Option<Vec<Vec<Step>>>,
    ports: Ports,
    element_bytes: u64,
}

impl<R> ScopeOutcome<R> {
    /// The outcome that all ranks report; `record` says whether their steps were recorded.
    fn new(
        reports: impl ExactSizeIterator<Item = Option<ProgramReport<R>>>,
        record: bool,
        ports: Ports,
        element_bytes: u64,
    ) -> Result<Self> {
        let mut outcome = ScopeOutcome {
            results: Vec::with_capacity(reports.len()),
            rank_times: Vec::with_capacity(reports.len()),
            programs: record.then(Vec::new),
            ports,
            element_bytes,
        };
        for report in reports {
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
type ProgramReport<R> = (R, f64, Option<Vec<Step>>);

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
        let bytes = buffers.iter().map(|b| b.len()).sum::<usize>() * size_of::<T>();
        let (operator, cost) = (&options.operator, &options.cost);
        let context = ScopeContext {
            run: RunContext::new(
                Combiner::of(operator),
                cost,
                P::PORTS,
                options.clock,
                options.deadline,
                self.copying(bytes),
            ),
            state: &self.state,
            wires: WireTable::new(self.ranks()),
            line: cost.linear(),
            record: options.record,
            number: self.runs,
        };
        let start = Instant::now()
            + if context.run.paced {
                START_DELAY
            } else {
                Duration::ZERO
            };
        let slots: Vec<Mutex<ScopeSlot<'_, T, R>>> =
            buffers.iter_mut().map(|b| Mutex::new((b, None))).collect();
        self.run_on_all(&|rank| {
            let mut slot = slots[rank].lock();
            let (buffer, report) = &mut *slot;
            *report = run_rank(rank, buffer, operator, &context, start, &body);
        });
        if let Some(failure) = self.state.take_failure() {
            return Err(failure);
        }
        let reports = slots.into_iter().map(|slot| slot.into_inner().1);
        let element_bytes = size_of::<T>() as u64;
        ScopeOutcome::new(reports, options.record, P::PORTS, element_bytes)
    }

    /// Refuses what does not fit together.
    fn accepts_scope<T>(&self, buffers: usize, options: &ScopeOptions<T>) -> Result<()> {
        if self.workers() == Workers::Cores {
            return Err(Error::usage(
                "rank programs need a thread for each rank, this team has one for each core",
            ));
        }
        self.accepts_elements(size_of::<T>())?;
        options.cost.validate()?;
        options.cost.covers(self.ranks())?;
        clock_fits(options.clock, &options.cost)?;
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

/// Runs `body` as the program of `rank` from `start` on. Returns the rank's report; if it failed,
/// the team's state then has the failure.
fn run_rank<'t, T, P, R>(
    rank: usize,
    buffer: &'t mut [T],
    operator: &'t Operator<T>,
    context: &'t ScopeContext<'t>,
    start: Instant,
    body: &impl Fn(&mut Endpoint<'_, T, P>) -> Result<R>,
) -> Option<ProgramReport<R>>
where
    T: Element,
    P: PortModel,
{
    let memory = RankMemory::new(
        rank,
        Buffer::of(buffer),
        1,
        context.run.copying.streams_from,
    );
    let mut endpoint = Endpoint::<T, P>::new(Rank::new(rank, context, start), memory, operator);
    let result = catch_unwind(AssertUnwindSafe(|| body(&mut endpoint)));
    // Finishing may run the operator once more, which may panic too.
    let result = result.and_then(|value| {
        catch_unwind(AssertUnwindSafe(|| {
            let value = value?;
            let (time, record) = endpoint.finish()?;
            Ok((value, time, record))
        }))
    });
    let (follows, step) = (endpoint.follows(), endpoint.step_in_progress());
    // Open sends are retracted before any rank learns of a failure.
    drop(endpoint);
    let state = context.state;
    let report = match result {
        Ok(Ok(report)) => Some(report),
        Ok(Err(error)) => {
            if follows {
                state.fail_after(error);
            } else {
                state.fail(error);
            }
            None
        }
        Err(payload) => {
            state.fail(panicked(rank, step, panic_message(&*payload)));
            None
        }
    };
    state.depart(rank, context.number);
    report
}
