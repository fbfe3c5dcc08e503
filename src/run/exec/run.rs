//! [`Run`]: what to run, on which data and how often, in fluent form.

use std::sync::Arc;
use std::time::Duration;

use super::any_run::{AnyRun, Described};
use super::options::{Clock, RunOptions, RunPerformer};
use super::outcome::Outcome;
use super::spec::RunSpec;
use crate::check::bits::OutputTrees;
use crate::error::{Error, Result};
use crate::machine::{CostModel, Ports};
use crate::run::element::Element;
use crate::run::operator::Operator;
use crate::run::processes::Processes;
use crate::run::sync::StopFlag;
use crate::run::testdata::{RunBuffers, RunData, RunResults, trees_to_evaluate};
use crate::schedule::Schedule;

/// A run of a schedule with real bytes: a description, which [`Run::on`] carries out.
///
/// By default: one native repetition on test data, whose outputs are returned but not compared. A
/// collective that combines needs an operator. Mistakes in the description are
/// errors of [`Run::on`]; the other methods never fail.
///
/// ```
/// use oneport::run::{Op, Run, Team};
/// use oneport::Request;
///
/// let schedule = Request::reduce(4, 1000).plan("binomial")?;
/// let mut team = Team::new(4)?;
/// let outcome = Run::<f64>::new(&schedule).op(Op::SUM).verified().repetitions(50).on(&mut team)?;
/// assert!(outcome.is_verified());
/// println!("median {} ns", outcome.wall.median_ns());
///
/// // On data of one's own: a broadcast needs no operator.
/// let schedule = Request::broadcast(4, 2).plan("binomial")?;
/// let inputs = [vec![1.5, 2.5], vec![], vec![], vec![]];
/// let outcome = Run::new(&schedule).inputs(&inputs).on(&mut team)?;
/// assert_eq!(outcome.outputs, vec![vec![1.5, 2.5]; 4]);
/// # Ok::<(), oneport::Error>(())
/// ```
///
/// Before every repetition the inputs are copied into the ranks' input spans. The rest of each
/// buffer starts with values that spoil whatever they are combined with, and that differ between
/// repetitions. [`Run::keep_inputs`] leaves the buffers as they are instead.
#[derive(Debug, Clone)]
#[must_use = "a run is carried out by `on`"]
pub struct Run<'r, T> {
    schedule: &'r Schedule,
    options: RunOptions,
    operator: Option<Result<Operator<T>>>,
    inputs: Option<Vec<&'r [T]>>,
    verified: bool,
    /// Whether a verified run is followed by one whose results show the order of combining.
    shows_order: bool,
    /// The trees of the schedule, if this is the run that follows.
    trees: Option<Arc<OutputTrees<'r>>>,
}

/// Where runs take place: a [`Team`](crate::run::Team) of threads, [`Teams`](crate::run::Teams) or,
/// with the feature `mpi`, the processes of an `mpi::World`. The trait is sealed.
pub trait Place: sealed::Place {
    /// The largest number of ranks that a schedule may have here.
    fn max_ranks(&self) -> usize;

    /// The processes, if ranks are processes. They have a library, which may do the work of a
    /// schedule: see [`Run::by_library`].
    fn processes(&self) -> Option<Processes> {
        None
    }

    /// The largest of the values of all processes, so that all decide alike. All call it. If ranks
    /// are threads of this process, it is `value`. The library's errors are returned.
    fn max(&mut self, value: u64) -> Result<u64> {
        Ok(value)
    }
}

/// Keeps other crates from defining places: only this one can read what a [`Run`] describes.
pub mod sealed {
    pub use super::super::any_run::AnyRun;
    pub use super::super::outcome::RunReport;
    use crate::error::{Error, Result};

    /// A place of this workspace.
    pub trait Place {
        /// Carries out `run`: see [`Run::on`](super::Run::on).
        fn run(&mut self, run: &AnyRun<'_>) -> Result<RunReport>;

        /// Sets a whole number among the control variables (MPI_T) of the library that connects the
        /// processes, in this process, and returns what it was. An error where there is no such
        /// variable.
        fn swap_library_variable(&mut self, name: &str, _value: i32) -> Result<i32> {
            Err(Error::usage(format!("no library has {name} here")))
        }
    }
}

/// Without a bound on the whole, so that a type that is no element type is told what it lacks.
impl<'r, T> Run<'r, T> {
    /// One native repetition of `schedule` on test data, with elements of type `T`, which must be
    /// an element type:
    ///
    /// ```compile_fail,E0277
    /// # fn run(schedule: &oneport::Schedule) {
    /// struct Money(i64);
    /// // `Money` is no element type: implement `oneport::run::Element` for it
    /// let run = oneport::run::Run::<Money>::new(schedule);
    /// # }
    /// ```
    pub fn new(schedule: &'r Schedule) -> Self
    where
        T: Element,
    {
        Run {
            schedule,
            options: RunOptions::default(),
            operator: None,
            inputs: None,
            verified: false,
            shows_order: true,
            trees: None,
        }
        .cost(RunOptions::default().cost)
    }
}

impl<'r, T: Element> Run<'r, T> {
    /// The operator that combines: a built-in one ([`Op`](crate::run::Op)) or an [`Operator`],
    /// whose name must not be empty; [`Operator::new`] makes one of a closure. Without one, a
    /// schedule that combines although its collective does not makes its data visibly wrong.
    pub fn op<O: TryInto<Operator<T>>>(mut self, operator: O) -> Self
    where
        Error: From<O::Error>,
    {
        self.operator = Some(operator.try_into().map_err(Error::from));
        self
    }

    /// The inputs: `inputs[rank]` has the elements of the rank's input spans in order, exactly as
    /// many as these have, for each of the `p` ranks. They are the same in each repetition.
    pub fn inputs(mut self, inputs: &'r [impl AsRef<[T]>]) -> Self {
        self.inputs = Some(inputs.iter().map(AsRef::as_ref).collect());
        self
    }

    /// Compares every rank's output spans after every repetition with a sequential computation,
    /// bit by bit: [`Outcome::is_verified`], [`Outcome::mismatch`].
    ///
    /// Unless inputs are given, each repetition then has other values, the first those of
    /// [`inputs`](crate::run::inputs). If vectors are so long or repetitions so many that preparing
    /// the data would take too long (more than 2^25 elements in all), at least four repetitions in
    /// a row have different data.
    ///
    /// The sequential computation combines in rank order, the run in the schedule's. Where that
    /// changes bits, right outputs are reported as wrong: with given inputs, sums and products of
    /// floats must be exact, and an operator of the user must be associative to the last bit.
    ///
    /// Float sums and products of test data are exact, so they do not depend on the order of
    /// combining. A run of these on test data is therefore followed by an untimed one on data whose
    /// results do: each output must have the bits of the schedule's own reduction tree, evaluated
    /// sequentially ([`Outcome::compared_bits`]). This is left out if the schedule is wrong, or has
    /// so many different trees that their evaluation takes much longer than the rest.
    ///
    /// Right data are no proof: the operators of minima, maxima and bits do not show a contribution
    /// that is counted twice. [`Schedule::check`] proves a schedule.
    pub fn verified(mut self) -> Self {
        self.verified = true;
        self
    }

    /// Leaves out the run on data that show the order of combining, which follows a verified one:
    /// for further batches of a run.
    #[doc(hidden)]
    pub fn exact_alone(mut self) -> Self {
        self.shows_order = false;
        self
    }

    /// Takes test data that show the order of combining: right outputs of a verified run have the
    /// bits of the reduction trees of `other`. The run itself is unchanged if that is no correct
    /// reduction, or has so many trees that their evaluation takes much longer than the run.
    #[doc(hidden)]
    pub fn in_trees_of(mut self, other: &'r Schedule) -> Self {
        self.trees = trees_to_evaluate(other).map(Arc::new);
        self
    }

    /// Number of timed repetitions, at least 1. Default: 1. For each thread, start and end of every
    /// repetition, including the warm-up, are kept: 16 bytes.
    pub fn repetitions(mut self, repetitions: usize) -> Self {
        self.options.repetitions = repetitions;
        self
    }

    /// The number of timed repetitions.
    #[doc(hidden)]
    pub fn get_repetitions(&self) -> usize {
        self.options.repetitions
    }

    /// Number of repetitions before the timed ones. Default: 0. On a team, a run whose senders need
    /// not wait ([`Run::eager`]) has at least one, which carries the model clock.
    pub fn warmup(mut self, repetitions: usize) -> Self {
        self.options.warmup = repetitions;
        self
    }

    /// Native or paced. Default: native.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.options.clock = clock;
        self
    }

    /// The cost model of the model clock. Default, in nanoseconds: an alpha of 1000, a beta of 0.1
    /// per byte, and computation is free. For a paced run its unit is the nanosecond. A
    /// heterogeneous model describes at least the ranks of the schedule, with a link for each
    /// message.
    ///
    /// An element has the bytes that the schedule says, as in
    /// [`Schedule::simulate`](crate::Schedule::simulate):
    /// [`Schedule::element_bytes`](crate::Schedule::element_bytes), which is 1 unless it was set.
    /// For costs per byte of `T`, set it to `size_of::<T>()` where the schedule is made.
    ///
    /// Late ranks really are late: each enters a repetition its arrival, in nanoseconds, after the
    /// common start (over MPI, the end of a barrier), and the wall-clock counts from the last
    /// arrival. Latency and eager sends count on the model clock; a paced run takes their time,
    /// too, and copies the messages whose senders do not wait.
    pub fn cost(mut self, cost: CostModel) -> Self {
        let kind = self.schedule.collective().kind();
        self.options.cost = kind.costs(&cost).into_owned();
        self
    }

    /// How long a rank waits for a partner before the run ends in an error. Default: 10 s. The time
    /// that a paced run takes is added.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.options.deadline = deadline;
        self
    }

    /// Ends a run on threads with [`ErrorKind::System`](crate::ErrorKind::System) soon after
    /// somebody has set the flag: as soon as no rank computes. For the command and its callers.
    #[doc(hidden)]
    pub fn stop(mut self, flag: StopFlag) -> Self {
        self.options.stop = Some(flag);
        self
    }

    /// Ports that the ranks really have, if they differ from those of the schedule, whose rules say
    /// when steps may start. A step that then opens a port that is in use, or that does not exist,
    /// ends the run with [`ErrorKind::PortBusy`](crate::ErrorKind::PortBusy).
    pub fn ports(mut self, ports: Ports) -> Self {
        self.options.ports = Some(ports);
        self
    }

    /// Whether to record when every transfer and computation takes place: [`Outcome::step_times`].
    /// Default: false. Recording reads the clock twice per step, which takes some time, and
    /// keeps 16 bytes per step. All transfers are then rendezvous. Not over MPI.
    pub fn trace(mut self, trace: bool) -> Self {
        self.options.trace = trace;
        self
    }

    /// Whether senders of a native run need not wait for their receivers. Default: true.
    /// [`Outcome::eager`] says whether they did not.
    ///
    /// It applies to schedules that are proved to complete when every transfer is a rendezvous: to
    /// all where ranks share cores or are processes, and to those without messages of more than 1
    /// KiB where every rank of a team has a core. A sender then waits only before it overwrites a
    /// message that has not been received, or sends to the same rank again. Messages that would
    /// soon be overwritten may be copied, in at most 64 MiB. This shortens the wall-clock time and
    /// changes nothing else: on a team, a repetition before the timed ones carries the model clock.
    /// With `false`, under the paced clock, when recording, with other [`ports`](Run::ports), or of
    /// a schedule with shared ports, every transfer is a rendezvous. Over MPI shared ports are not
    /// granted in an order.
    pub fn eager(mut self, eager: bool) -> Self {
        self.options.eager = eager;
        self
    }

    /// Whether nothing writes the buffers between timed repetitions. Default: false. Messages are
    /// then read from caches that earlier repetitions have warmed, as in benchmarks that send the
    /// same buffer again; otherwise each rank has just written what it sends.
    ///
    /// Inputs are written, and outputs of a verified run compared, in the first repetitions only:
    /// one, or two on a team whose senders need not wait. These are not timed, even if
    /// [`Run::warmup`] is less. Where a schedule combines into its inputs, the values of later
    /// repetitions pile up, which changes no work.
    pub fn keep_inputs(mut self, keep: bool) -> Self {
        self.options.keep_inputs = keep;
        self
    }

    /// Calls the MPI library's own collective instead of executing the schedule:
    /// [`Outcome::function`]. The steps of the schedule do not matter then, and the
    /// model time means nothing. Only processes have a library.
    pub fn by_library(mut self) -> Self {
        self.options.by = RunPerformer::Library;
        self
    }

    /// As [`Run::by_library`], by the function for blocks of different lengths, such as
    /// `MPI_Gatherv`, even if all are equal.
    #[doc(hidden)]
    pub fn by_irregular_library(mut self) -> Self {
        self.options.by = RunPerformer::IrregularLibrary;
        self
    }

    /// Has each rank perform its steps one after another, by the library's functions that send and
    /// receive one message and return when that is done, such as `MPI_Send` and `MPI_Recv`. This
    /// measures a ping-pong without oneport's overhead. Two ranks that send to each other
    /// before they receive may wait for each other until the deadline.
    ///
    /// As with [`Run::by_library`], the model time means nothing. The steps may only be sends and
    /// receives of one span each.
    #[doc(hidden)]
    pub fn by_blocking_messages(mut self) -> Self {
        self.options.by = RunPerformer::BlockingMessages;
        self
    }

    /// Runs it. [`Outcome::outputs`] are the contents of the output spans after the last
    /// repetition.
    ///
    /// The schedule need not be right: one that deadlocks, or whose steps do not match, ends in an
    /// error. Wrong data are not an error.
    ///
    /// # Complexity
    /// Before the first repetition the schedule is prepared, in time linear in its ranks, steps and
    /// spans (apart from sorting), and the outputs of a verified run are computed sequentially,
    /// once per set of data. A repetition also fills all buffers and reads all outputs, outside the
    /// measured time. Memory: every rank's buffer and output, and the dependences of all steps.
    ///
    /// # Errors
    /// Before anything runs:
    /// - [`ErrorKind::Usage`]: the team has another number of ranks than the schedule; the paced
    ///   clock on a team with a thread per core; [`by_library`](Run::by_library) where there is
    ///   none, or it has no counterpart or no such operator; steps that
    ///   [`by_blocking_messages`](Run::by_blocking_messages) does not perform; no operator for a
    ///   collective that combines, none of this name for the element type, or one without a name;
    ///   inputs that do not have the lengths of the input spans; costs that are no times or are for
    ///   fewer ranks; a program of more than 2^30 steps; no repetitions, or more than 100,000,000
    ///   with the warm-up, summed over all threads; [`ports`](Run::ports) that no rank can have;
    ///   elements too large for the stacks of a team.
    /// - [`ErrorKind::NoLink`]: a message between ranks without a link.
    /// - [`ErrorKind::Wrong`]: a step names a port that the schedule's ranks do not have or its own
    ///   rank as partner, or source and destination of a local step overlap or differ in length.
    /// - [`ErrorKind::Malformed`]: a verified run's layouts do not fit the collective.
    ///
    /// During the run: [`ErrorKind::Deadline`], [`ErrorKind::PartnerLeft`], [`ErrorKind::Length`],
    /// [`ErrorKind::PortBusy`], [`ErrorKind::Panicked`] (an operator of the user) or, for lack of
    /// memory, [`ErrorKind::System`], as in the [module documentation](crate::run). A team can be
    /// used again; over MPI such an error ends all processes.
    ///
    /// [`ErrorKind::Usage`]: crate::ErrorKind::Usage
    /// [`ErrorKind::NoLink`]: crate::ErrorKind::NoLink
    /// [`ErrorKind::Wrong`]: crate::ErrorKind::Wrong
    /// [`ErrorKind::Malformed`]: crate::ErrorKind::Malformed
    /// [`ErrorKind::Deadline`]: crate::ErrorKind::Deadline
    /// [`ErrorKind::PartnerLeft`]: crate::ErrorKind::PartnerLeft
    /// [`ErrorKind::Length`]: crate::ErrorKind::Length
    /// [`ErrorKind::PortBusy`]: crate::ErrorKind::PortBusy
    /// [`ErrorKind::Panicked`]: crate::ErrorKind::Panicked
    /// [`ErrorKind::System`]: crate::ErrorKind::System
    pub fn on(&self, place: &mut dyn Place) -> Result<Outcome<T>> {
        let rounds = || self.operator().is_ok_and(|operator| operator.rounds());
        let tests = self.verified && self.inputs.is_none() && self.trees.is_none();
        let by_schedule = self.options.by == RunPerformer::Schedule;
        if tests && self.shows_order && by_schedule && rounds() {
            self.on_twice(place)
        } else {
            self.on_once(place)
        }
    }

    fn on_once(&self, place: &mut dyn Place) -> Result<Outcome<T>> {
        let typed = TypedRun::new(self);
        let report = place.run(&AnyRun(&typed))?;
        let (outputs, mismatch) = typed.results.take();
        Ok(report.with_data(outputs, mismatch))
    }

    /// Runs it, and then once more on data whose results show the order of combining. A function of
    /// its own, because outcomes of long elements take much of the stack.
    #[inline(never)]
    fn on_twice(&self, place: &mut dyn Place) -> Result<Outcome<T>> {
        let mut outcome = self.on_once(place)?;
        if !outcome.is_verified() {
            return Ok(outcome);
        }
        let next = Run {
            options: RunOptions {
                clock: Clock::Native,
                repetitions: 1,
                warmup: 0,
                trace: false,
                keep_inputs: false,
                ..self.options.clone()
            },
            ..self.clone()
        };
        let next = next.in_trees_of(self.schedule);
        if next.trees.is_some() {
            let found = next.on_once(place)?;
            outcome.compared_bits = found.compared;
            outcome.mismatch = found.mismatch;
        }
        Ok(outcome)
    }

    /// The operator, or the one of collectives that combine nothing.
    fn operator(&self) -> Result<Operator<T>> {
        let kind = self.schedule.collective().kind();
        match &self.operator {
            Some(operator) => operator.clone(),
            None if kind.reduces() => Err(Error::usage(format!(
                "a run of {} needs an operator: choose one with Run::op",
                kind.name()
            ))),
            None => Ok(Operator::none()),
        }
    }
}

/// A run with its operator and the data that it leaves behind.
#[derive(Debug)]
struct TypedRun<'a, 'r, T> {
    run: &'a Run<'r, T>,
    operator: Result<Operator<T>>,
    results: RunResults<T>,
}

impl<'a, 'r, T: Element> TypedRun<'a, 'r, T> {
    fn new(run: &'a Run<'r, T>) -> Self {
        TypedRun {
            run,
            operator: run.operator(),
            results: RunResults::new(run.schedule.ranks()),
        }
    }

    fn operator(&self) -> Result<&Operator<T>> {
        self.operator.as_ref().map_err(Clone::clone)
    }
}

impl<T: Element> Described for TypedRun<'_, '_, T> {
    fn schedule(&self) -> &Schedule {
        self.run.schedule
    }

    #[cfg(feature = "mpi")]
    fn options(&self) -> &RunOptions {
        &self.run.options
    }

    fn spec<'s>(&'s self, schedule: &'s Schedule) -> Result<RunSpec<'s>> {
        let (options, verified) = (&self.run.options, self.run.verified);
        let operator = self.operator()?;
        Ok(RunSpec::new(schedule, options, operator, verified))
    }

    fn data<'s>(
        &'s self,
        schedule: &'s Schedule,
        verified: bool,
        repetitions: usize,
    ) -> Result<Box<dyn RunBuffers + 's>> {
        Ok(Box::new(RunData::new(
            schedule,
            self.operator()?,
            self.run.inputs.as_deref(),
            verified,
            repetitions,
            self.run.trees.as_deref(),
            &self.results,
        )?))
    }
}
