//! Measurements for a sweep, by running schedules.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::Measure;
use crate::interleave::Row;
use oneport::error::{Error, Result};
use oneport::plan::Request;
use oneport::plan::registry::Algorithm;
use oneport::run::{Clock, Element, Operator, Outcome, Place, Processes, Run, inputs};
use oneport::schedule::collective::Collective;
use oneport::schedule::{Layout, Schedule};

/// Measures by running schedules in one place with real data. The first measurement of each
/// schedule also verifies its result.
#[derive(Debug)]
pub struct Live<'p, T, P> {
    place: &'p mut P,
    operator: Operator<T>,
    clock: Clock,
    started: Instant,
    /// Time since then that all processes agree on.
    now: Duration,
    /// Whether the library's own functions are measured, too.
    library: bool,
    /// Short schedules for the current vector size, by algorithm and segments.
    schedules: HashMap<(Cow<'static, str>, Vec<usize>), Schedule>,
    /// Schedules whose results were correct, by algorithm, segment size and number of segments.
    verified: HashSet<(Cow<'static, str>, usize, usize)>,
    data: Option<Data<T>>,
}

/// The inputs of all schedules for one vector size.
#[derive(Debug)]
struct Data<T> {
    elements: usize,
    collective: Collective,
    layout: Vec<Layout>,
    inputs: Rc<Vec<Vec<T>>>,
}

impl<'p, T: Element, P: Place> Live<'p, T, P> {
    /// Measures in `place`, which must run schedules of as many ranks as the requests have.
    pub fn new(place: &'p mut P, operator: Operator<T>, clock: Clock) -> Live<'p, T, P> {
        Live {
            place,
            operator,
            clock,
            started: Instant::now(),
            now: Duration::ZERO,
            library: false,
            schedules: HashMap::new(),
            verified: HashSet::new(),
            data: None,
        }
    }

    /// Measures the library's own functions, too.
    #[must_use]
    pub fn with_library(mut self) -> Self {
        self.library = true;
        self
    }

    /// A run of `schedule`. Its buffers are new, so a native run needs a warm-up; a paced run hides
    /// that cost.
    fn run<'r>(&self, schedule: &'r Schedule, request: &Request, repetitions: usize) -> Run<'r, T> {
        Run::new(schedule)
            .op(&self.operator)
            .clock(self.clock)
            .cost(request.get_cost().clone())
            .repetitions(repetitions)
            .warmup(usize::from(self.clock == Clock::Native))
    }

    /// Carries out `run`, and then agrees on the time: all processes go on alike.
    fn carry_out(&mut self, run: &Run<'_, T>) -> Result<Outcome<T>> {
        let outcome = run.on(self.place)?;
        let elapsed = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.now = Duration::from_nanos(self.place.max(elapsed)?);
        Ok(outcome)
    }

    /// Creates the data for vectors of this size and discards data for other sizes.
    fn prepare(&mut self, request: &Request, schedule: &Schedule) -> Result<()> {
        let shape = |l: &Layout| (l.input.clone(), l.output.clone());
        let fits = |data: &Data<T>| {
            data.elements == request.elements()
                && data.collective == *schedule.collective()
                && data
                    .layout
                    .iter()
                    .map(shape)
                    .eq(schedule.layout().iter().map(shape))
        };
        if self.data.as_ref().is_some_and(fits) {
            return Ok(());
        }
        if self
            .data
            .as_ref()
            .is_some_and(|d| d.elements != request.elements())
        {
            self.schedules.clear();
            self.verified.clear();
        }
        let (collective, layout) = (schedule.collective(), schedule.layout());
        let inputs = Rc::new(inputs(collective, layout, &self.operator));
        self.data = Some(Data {
            elements: request.elements(),
            collective: collective.clone(),
            layout: layout.to_vec(),
            inputs,
        });
        Ok(())
    }
}

impl<T: Element, P: Place> Measure for Live<'_, T, P> {
    fn measure(
        &mut self,
        algorithm: &Algorithm,
        request: &Request,
        repetitions: usize,
    ) -> Result<Vec<u64>> {
        /// Number of steps up to which a schedule is kept; longer ones are planned again.
        const SHORT: usize = 1 << 14;
        let sizes = request.get_segments().sizes();
        let key = (algorithm.name(), sizes.to_vec());
        let schedule = match self.schedules.remove(&key) {
            Some(schedule) => schedule,
            None => algorithm.plan(request)?,
        };
        self.prepare(request, &schedule)?;
        let inputs = self.data.as_ref().map(|data| Rc::clone(&data.inputs));
        let Some(inputs) = inputs else {
            return Err(Error::system("no data to measure with"));
        };
        let run = self.run(&schedule, request, repetitions);
        let combination = (algorithm.name(), sizes[0], sizes.len());
        let outcome = if self.verified.contains(&combination) {
            self.carry_out(&run.inputs(&inputs))?
        } else {
            let outcome = self.carry_out(&run.verified())?;
            if let Some(mismatch) = outcome.mismatch {
                return Err(Error::wrong(format!(
                    "{} with {} segments gives a wrong result: {mismatch}",
                    algorithm.name(),
                    sizes.len()
                )));
            }
            self.verified.insert(combination);
            outcome
        };
        if schedule.programs().iter().map(Vec::len).sum::<usize>() <= SHORT {
            self.schedules.insert(key, schedule);
        }
        Ok(Row::from(outcome).times())
    }

    fn measure_library(
        &mut self,
        algorithm: &Algorithm,
        request: &Request,
        repetitions: usize,
    ) -> Result<Option<Row>> {
        if !self.library {
            return Ok(None);
        }
        let schedule = algorithm.plan(request)?;
        let run = self.run(&schedule, request, repetitions);
        match self.carry_out(&run.by_library().verified()) {
            // All processes find alike that there is no such function or operator.
            Err(error) if error.is_usage() => Ok(None),
            outcome => Ok(Some(Row::from(outcome?))),
        }
    }

    fn now(&self) -> Duration {
        self.now
    }

    fn processes(&self) -> Option<Processes> {
        self.place.processes()
    }
}
