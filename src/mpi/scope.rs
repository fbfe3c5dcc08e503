//! Running rank programs written by hand on the processes of a launch: [`World::scope`].

use std::time::Instant;

use super::binding::{Communicator, ProgramMessages};
use super::process::fail;
use super::summary::program_summary;
use super::world::World;
use crate::error::{Error, Result};
use crate::machine::numbers::index;
use crate::run::engine::{
    AnyLink, Copying, ElementSpec, Failure, ProgramReport, endpoint, run_program,
};
use crate::run::{Clock, Element, ElementType, Endpoint, PortModel, ScopeOptions, ScopeOutcome};
use crate::schedule::Step;
use crate::schedule::json::{json_line, steps_from_json};

/// Runs `body` as the program of this process's rank. A failure ends all processes.
pub(super) fn run_body<T: Element, P: PortModel, R>(
    all: &Communicator,
    crowded: bool,
    element: ElementType,
    buffer: &mut [T],
    options: &ScopeOptions<T>,
    body: impl FnOnce(&mut Endpoint<'_, T, P>) -> Result<R>,
) -> ProgramReport<R> {
    let context = options.context(all.size(), P::PORTS, Copying::PLAIN);
    let link = ProgramMessages::new(all, element, crowded, options.deadline);
    let (rank, link, start) = (all.rank(), AnyLink::Other(Box::new(link)), Instant::now());
    let mut endpoint = endpoint(rank, buffer, &options.operator, &context, link, start);
    // A failure ends the process before the endpoint, with open messages, is dropped.
    let report = run_program(&mut endpoint, body);
    report.unwrap_or_else(|(error, _)| fail(all, Failure::Own(error)))
}

impl World {
    /// Runs `body` as the program of this process's rank, with an endpoint on its `buffer`. It is
    /// [`Team::scope`](crate::run::Team::scope) for processes: all call it with the same program
    /// and options, each with its own buffer, and it returns when all have finished.
    ///
    /// Model times are those of threads, because messages carry the model clock. With
    /// [`ScopeOptions::record`] every process gets the steps of all ranks.
    ///
    /// # Example
    /// The program that [`Team::scope`](crate::run::Team::scope) shows:
    /// ```no_run
    /// use oneport::mpi::World;
    /// use oneport::run::{Endpoint, Operator, ScopeOptions, Unidirectional};
    /// let mut world = World::join()?;
    /// let mut buffer = vec![1.0f32, 2.0];
    /// let options = ScopeOptions::new(Operator::named("sum")?);
    /// let outcome = world.scope(&mut buffer, &options, |e: &mut Endpoint<f32, Unidirectional>| {
    ///     let rank = e.rank();
    ///     if rank + 1 < e.ranks() {
    ///         e.recv_combine(rank + 1, 0..2, oneport::Order::MineFirst)?;
    ///     }
    ///     if rank > 0 {
    ///         e.send(rank - 1, 0..2)?;
    ///     }
    ///     Ok(())
    /// })?;
    /// println!("{}", outcome.model_time());
    /// # Ok::<(), oneport::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage), on all processes, if the options are not the
    /// same everywhere, the clock is paced, a cost is not a time, the cost model is for fewer
    /// ranks, or the element type is not one of this crate: nothing has run then.
    ///
    /// An error that the program returns, or its panic, ends all processes with one line, because
    /// the others may be waiting in the library. A partner that has finished its program is noticed
    /// when the deadline passes.
    pub fn scope<T, P, R, F>(
        &mut self,
        buffer: &mut [T],
        options: &ScopeOptions<T>,
        body: F,
    ) -> Result<ScopeOutcome<R>>
    where
        T: Element,
        P: PortModel,
        F: FnOnce(&mut Endpoint<'_, T, P>) -> Result<R>,
    {
        let accepted = self.accept_scope(options);
        self.all.set_deadline(options.deadline);
        let element = self.agree(accepted)?;
        self.ensure_same(&program_summary(options, P::PORTS, element))?;
        let crowded = self.oversubscribed();
        let (result, time, steps) = run_body(&self.all, crowded, element, buffer, options, body);
        let mut outcome = ScopeOutcome::empty(options, P::PORTS);
        outcome.results.push(result);
        outcome.rank_times = self.all.gather_to_all(&[time])?;
        outcome.programs = steps.map(|steps| self.all_programs(&steps)).transpose()?;
        Ok(outcome)
    }

    /// Refuses what does not fit together.
    fn accept_scope<T: Element>(&self, options: &ScopeOptions<T>) -> Result<ElementType> {
        options.validate(self.size())?;
        if options.clock == Clock::Paced {
            return Err(Error::usage(
                "the paced clock is for ranks that are threads: over MPI the network sets the pace",
            ));
        }
        ElementSpec::of::<T>().own()
    }

    /// The steps of all ranks; `mine` are those of this process's.
    fn all_programs(&mut self, mine: &[Step]) -> Result<Vec<Vec<Step>>> {
        let mut text = json_line(&mine).into_bytes();
        let lengths = self.all.gather_to_all(&[text.len() as u64])?;
        let longest = lengths.iter().max().map_or(0, |&longest| index(longest));
        text.resize(longest, b' ');
        let all = self.all.gather_to_all(&text)?;
        all.chunks(longest.max(1)).map(steps_from_json).collect()
    }
}
