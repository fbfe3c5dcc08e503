//! Measurements for a sweep on a live team.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use super::Measure;
use crate::error::{Error, Result};
use crate::plan::Request;
use crate::plan::registry::Algorithm;
use crate::run::{Clock, Element, Operator, Run, Team, inputs};
use crate::schedule::collective::Collective;
use crate::schedule::{Layout, Schedule};

/// Measures by running schedules on one team with real data. The first measurement of each schedule
/// also verifies its result.
#[derive(Debug)]
pub struct Live<T> {
    team: Team,
    operator: Operator<T>,
    clock: Clock,
    started: Instant,
    /// Short schedules for the current vector size, by algorithm and segments.
    schedules: HashMap<(&'static str, Vec<usize>), Schedule>,
    /// Schedules whose results were correct, by algorithm, segment size and number of segments.
    verified: HashSet<(&'static str, usize, usize)>,
    data: Option<Data<T>>,
}

/// The inputs of all schedules for one vector size.
#[derive(Debug)]
struct Data<T> {
    elements: usize,
    collective: Collective,
    layout: Vec<Layout>,
    inputs: Vec<Vec<T>>,
}

impl<T: Element> Live<T> {
    /// Measures with `team`, which must have as many ranks as the requests.
    pub fn new(team: Team, operator: Operator<T>, clock: Clock) -> Live<T> {
        Live {
            team,
            operator,
            clock,
            started: Instant::now(),
            schedules: HashMap::new(),
            verified: HashSet::new(),
            data: None,
        }
    }

    /// Returns the team.
    pub fn team(&self) -> &Team {
        &self.team
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
        let inputs = inputs(collective, layout, &self.operator);
        self.data = Some(Data {
            elements: request.elements(),
            collective: collective.clone(),
            layout: layout.to_vec(),
            inputs,
        });
        Ok(())
    }
}

impl<T: Element> Measure for Live<T> {
    fn measure(
        &mut self,
        algorithm: &Algorithm,
        request: &Request,
        repetitions: usize,
    ) -> Result<Vec<u64>> {
        /// Number of steps up to which a schedule is kept; longer ones are planned again.
        const SHORT: usize = 1 << 14;
        let sizes = request.get_segments().sizes();
        let key = (algorithm.name, sizes.to_vec());
        let schedule = match self.schedules.remove(&key) {
            Some(schedule) => schedule,
            None => algorithm.plan(request)?,
        };
        self.prepare(request, &schedule)?;
        let Some(data) = &self.data else {
            return Err(Error::system("no data to measure with"));
        };
        let paced = self.clock == Clock::Paced;
        let run = Run::new(&schedule)
            .op(&self.operator)
            .clock(self.clock)
            .cost(request.get_cost().clone())
            .repetitions(repetitions)
            // The buffers of a run are new, so a native run needs a warm-up. A paced run hides that
            // cost.
            .warmup(usize::from(!paced));
        let combination = (algorithm.name, sizes[0], sizes.len());
        let outcome = if self.verified.contains(&combination) {
            run.inputs(&data.inputs).on(&mut self.team)?
        } else {
            let outcome = run.verified().on(&mut self.team)?;
            if let Some(mismatch) = outcome.mismatch {
                return Err(Error::wrong(format!(
                    "{} with {} segments gives a wrong result: {mismatch}",
                    algorithm.name,
                    sizes.len()
                )));
            }
            self.verified.insert(combination);
            outcome
        };
        if schedule.programs().iter().map(Vec::len).sum::<usize>() <= SHORT {
            self.schedules.insert(key, schedule);
        }
        let mut times = Vec::with_capacity(repetitions);
        for value in outcome.wall.histogram().iter_recorded() {
            let count = usize::try_from(value.count_at_value()).unwrap_or(repetitions);
            // The histogram's buckets are 0.1% wide; its extremes are exact.
            times.extend(std::iter::repeat_n(value.value_iterated_to(), count));
        }
        Ok(times)
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }
}
