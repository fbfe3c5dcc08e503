//! Measurements for a sweep, by running schedules.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::{LibraryState, Measure};
use crate::interleave::{Inputs, MeasuredRun};
use oneport::error::{Error, Result};
use oneport::plan::Request;
use oneport::plan::registry::Algorithm;
use oneport::run::{Clock, Element, Operator, Outcome, Place, Processes, Run};
use oneport::schedule::Schedule;

/// Measures by running schedules in one place with real data. The first measurement of each
/// schedule also verifies its result.
#[derive(Debug)]
pub struct Live<'p, T, P> {
    place: &'p mut P,
    operator: Operator<T>,
    clock: Clock,
    keep_inputs: bool,
    rule_variables: Vec<String>,
    started: Instant,
    /// Time since then that all processes agree on.
    now: Duration,
    /// The largest part of the cores' time that others had in a measurement, in percent.
    percent_by_others: Option<u64>,
    /// Number of elements of the current vector.
    elements: usize,
    /// By algorithm and segments: its schedules whose results were right, `None` if they are so
    /// long that they are planned again.
    verified: HashMap<(Cow<'static, str>, Vec<usize>), Option<Schedule>>,
    inputs: Inputs<T>,
}

impl<'p, T: Element, P: Place> Live<'p, T, P> {
    /// Measures in `place`, which must run schedules of as many ranks as the requests have.
    pub fn new(place: &'p mut P, operator: Operator<T>, clock: Clock) -> Live<'p, T, P> {
        Live {
            place,
            operator,
            clock,
            keep_inputs: false,
            rule_variables: Vec::new(),
            started: Instant::now(),
            now: Duration::ZERO,
            percent_by_others: None,
            elements: 0,
            verified: HashMap::new(),
            inputs: Inputs::new(),
        }
    }

    /// As [`Run::keep_inputs`].
    pub fn keep_inputs(&mut self, keep: bool) {
        self.keep_inputs = keep;
    }

    /// The library's control variables that are 0 in the state [`LibraryState::ForRules`].
    pub fn rule_variables(&mut self, names: Vec<String>) {
        self.rule_variables = names;
    }

    /// Sets these variables, and returns what they were.
    fn set_variables(&mut self, values: &[i32]) -> Result<Vec<i32>> {
        let variables = self.rule_variables.iter().zip(values);
        let place = &mut self.place;
        let swap = |(name, &value): (&String, _)| place.swap_library_variable(name, value);
        variables.map(swap).collect()
    }

    /// A run of `schedule`. Its buffers are new, so a native run needs a warm-up; a paced run hides
    /// that cost.
    fn run<'r>(&self, schedule: &'r Schedule, request: &Request, repetitions: usize) -> Run<'r, T> {
        Run::new(schedule)
            .op(&self.operator)
            .clock(self.clock)
            .keep_inputs(self.keep_inputs)
            .cost(request.get_cost().clone())
            .repetitions(repetitions)
            .warmup(usize::from(self.clock == Clock::Native))
    }

    /// Carries out `run`, and then agrees on the time: all processes go on alike.
    fn carry_out(&mut self, run: &Run<'_, T>) -> Result<Outcome<T>> {
        let outcome = run.on(self.place)?;
        self.percent_by_others = self.percent_by_others.max(outcome.percent_by_others);
        let elapsed = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.now = Duration::from_nanos(self.place.max(elapsed)?);
        Ok(outcome)
    }
}

impl<T: Element, P: Place> Measure for Live<'_, T, P> {
    fn measure(
        &mut self,
        algorithm: &Algorithm,
        request: &Request,
        repetitions: usize,
    ) -> Result<Vec<u64>> {
        /// Number of steps up to which a schedule is kept.
        const MAX_KEPT_STEPS: usize = 1 << 14;
        if self.elements != request.elements() {
            self.elements = request.elements();
            self.verified.clear();
            self.inputs = Inputs::new();
        }
        let key = (algorithm.name(), request.get_segments().sizes().to_vec());
        let known = self.verified.remove(&key);
        let is_verified = known.is_some();
        let schedule = match known.flatten() {
            Some(schedule) => schedule,
            None => algorithm.plan(request)?,
        };
        let run = self.run(&schedule, request, repetitions);
        let outcome = if is_verified {
            let inputs = self.inputs.of(&schedule, &self.operator);
            self.carry_out(&run.inputs(&inputs))?
        } else {
            self.carry_out(&run.verified())?
        };
        if let Some(mismatch) = outcome.mismatch {
            return Err(Error::wrong(format!(
                "{} with {} segments gives a wrong result: {mismatch:#}",
                key.0,
                key.1.len()
            )));
        }
        let steps: usize = schedule.programs().iter().map(Vec::len).sum();
        self.verified
            .insert(key, (steps <= MAX_KEPT_STEPS).then_some(schedule));
        Ok(MeasuredRun::from(outcome).times())
    }

    fn measure_library(
        &mut self,
        algorithm: &Algorithm,
        request: &Request,
        repetitions: usize,
        state: LibraryState,
    ) -> Result<Option<MeasuredRun>> {
        if self.place.processes().is_none() {
            return Ok(None);
        }
        let mut before = None;
        if state == LibraryState::ForRules {
            // All processes find alike that there is nothing to set.
            match self.set_variables(&vec![0; self.rule_variables.len()]) {
                Ok(values) if !values.is_empty() => before = Some(values),
                _ => return Ok(None),
            }
        }
        let schedule = algorithm.plan(request)?;
        let run = self.run(&schedule, request, repetitions);
        let outcome = self.carry_out(&run.by_library().verified());
        if let Some(values) = before {
            self.set_variables(&values)?;
        }
        match outcome {
            // All processes find alike that there is no such function or operator.
            Err(error) if error.is_usage() => Ok(None),
            outcome => Ok(Some(MeasuredRun::from(outcome?))),
        }
    }

    fn now(&self) -> Duration {
        self.now
    }

    fn percent_by_others(&self) -> Option<u64> {
        self.percent_by_others
    }

    fn processes(&self) -> Option<Processes> {
        self.place.processes()
    }
}
