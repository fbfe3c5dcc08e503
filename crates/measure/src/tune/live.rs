//! Measurements for a sweep, by running schedules.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use super::{LibraryState, Measure};
use crate::interleave::{Inputs, MeasuredRun};
use oneport::error::{Error, Result};
use oneport::plan::Request;
use oneport::plan::registry::Algorithm;
use oneport::run::{Clock, Element, Operator, Place, Processes, Run};
use oneport::schedule::Schedule;

/// Measures by running schedules in one place with real data. The first measurement of each
/// schedule also verifies its result.
pub struct Live<'p> {
    place: &'p mut dyn Place,
    run: RunLive,
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
}

/// What a run is for.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    /// The first times of a schedule, whose result is verified.
    First,
    /// More times, of inputs that such runs share.
    More,
    /// The times of the library's own function.
    Library,
}

/// A run of elements of a type that only [`RunLive`] knows.
struct LiveRun<'r> {
    schedule: &'r Schedule,
    request: &'r Request,
    repetitions: usize,
    keep_inputs: bool,
    purpose: Purpose,
}

/// Carries out a run.
type RunLive = Box<dyn FnMut(&mut dyn Place, &LiveRun<'_>) -> Result<MeasuredRun>>;

fn run_live<T: Element>(operator: Operator<T>, clock: Clock) -> RunLive {
    // For the last number of elements.
    let (mut inputs, mut elements) = (Inputs::new(), 0);
    Box::new(move |place, live| {
        if elements != live.request.elements() {
            elements = live.request.elements();
            inputs = Inputs::new();
        }
        // Its buffers are new, so a native run needs a warm-up; a paced run hides that cost.
        let run = Run::new(live.schedule)
            .op(&operator)
            .clock(clock)
            .keep_inputs(live.keep_inputs)
            .cost(live.request.get_cost().clone())
            .repetitions(live.repetitions)
            .warmup(usize::from(clock == Clock::Native));
        let outcome = match live.purpose {
            Purpose::First => run.verified().on(place)?,
            Purpose::More => {
                let inputs = inputs.of(live.schedule, &operator);
                run.inputs(&inputs).on(place)?
            }
            Purpose::Library => run.by_library().verified().on(place)?,
        };
        Ok(outcome.into())
    })
}

impl<'p> Live<'p> {
    /// Measures in `place`, which must run schedules of as many ranks as the requests have.
    pub fn new<T: Element>(
        place: &'p mut dyn Place,
        operator: Operator<T>,
        clock: Clock,
    ) -> Live<'p> {
        Live {
            place,
            run: run_live(operator, clock),
            keep_inputs: false,
            rule_variables: Vec::new(),
            started: Instant::now(),
            now: Duration::ZERO,
            percent_by_others: None,
            elements: 0,
            verified: HashMap::new(),
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

    /// Runs `schedule`, and then agrees on the time: all processes go on alike.
    fn carry_out(
        &mut self,
        schedule: &Schedule,
        request: &Request,
        repetitions: usize,
        purpose: Purpose,
    ) -> Result<MeasuredRun> {
        let live = LiveRun {
            schedule,
            request,
            repetitions,
            keep_inputs: self.keep_inputs,
            purpose,
        };
        let run = (self.run)(self.place, &live)?;
        self.percent_by_others = self.percent_by_others.max(run.percent_by_others);
        let elapsed = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.now = Duration::from_nanos(self.place.max(elapsed)?);
        Ok(run)
    }
}

impl fmt::Debug for Live<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Live");
        fields.field("now", &self.now).finish_non_exhaustive()
    }
}

impl Measure for Live<'_> {
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
        }
        let key = (algorithm.name(), request.get_segments().sizes().to_vec());
        let known = self.verified.remove(&key);
        let purpose = match known {
            Some(_) => Purpose::More,
            None => Purpose::First,
        };
        let schedule = match known.flatten() {
            Some(schedule) => schedule,
            None => algorithm.plan(request)?,
        };
        let run = self.carry_out(&schedule, request, repetitions, purpose)?;
        if let Some(error) = &run.error {
            return Err(Error::wrong(format!(
                "{} with {} segments gives a wrong result: {error}",
                key.0,
                key.1.len()
            )));
        }
        let steps: usize = schedule.programs().iter().map(Vec::len).sum();
        self.verified
            .insert(key, (steps <= MAX_KEPT_STEPS).then_some(schedule));
        Ok(run.times())
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
        let run = self.carry_out(&schedule, request, repetitions, Purpose::Library);
        if let Some(values) = before {
            self.set_variables(&values)?;
        }
        match run {
            // All processes find alike that there is no such function or operator.
            Err(error) if error.is_usage() => Ok(None),
            run => run.map(Some),
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
