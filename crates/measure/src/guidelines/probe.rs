//! Measurement of one plan, turn by turn.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use super::{By, Call, Performer};
use oneport::error::{Error, Result};
use oneport::machine::CostModel;
use oneport::plan::Request;
use oneport::plan::registry::Algorithm;
use oneport::run::{Clock, Op, Operator, Outcome, Place, Run, inputs};
use oneport::schedule::collective::Kind;
use oneport::schedule::{Schedule, total_len};

/// Inputs of all ranks, by collective and input lengths. Algorithms with the same layout share
/// them.
pub(super) type Data = HashMap<(Kind, Vec<usize>), Rc<Vec<Vec<u8>>>>;

/// Repetitions before the timed ones of a turn.
const WARMUP: usize = 1;

/// How bytes are combined: libraries agree on it, which they do not on sums of short integers.
const OP: Op = Op::BXOR;

/// A call, and the algorithm that performs it.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) call: Call,
    pub(super) algorithm: &'static Algorithm,
    pub(super) request: Request,
    /// Model time.
    pub(super) time: f64,
}

/// A plan to measure, and its turns so far.
#[derive(Debug)]
pub(super) struct Probe {
    schedule: Schedule,
    data: Rc<Vec<Vec<u8>>>,
    by: (Performer, By),
    clock: Clock,
    cost: CostModel,
    deadline: Duration,
    repetitions: usize,
    turn: Duration,
    /// Whether the result was compared with a sequential computation.
    verified: bool,
    /// The algorithm, or the function of the library.
    pub(super) name: &'static str,
    /// Median of each turn, in nanoseconds.
    pub(super) times: Vec<f64>,
}

impl Probe {
    pub(super) fn new(
        planned: &Planned,
        by: Performer,
        clock: Clock,
        deadline: Duration,
        data: &mut Data,
    ) -> Result<Probe> {
        const MIN: usize = 3;
        let (algorithm, request) = (planned.algorithm, &planned.request);
        let schedule = algorithm.plan(request)?;
        let combines = Operator::try_from(OP)?;
        let lengths = schedule.layout().iter().map(|l| total_len(&l.input));
        let data = data
            .entry((request.kind(), lengths.collect()))
            .or_insert_with(|| {
                let (collective, layout) = (schedule.collective(), schedule.layout());
                Rc::new(inputs(collective, layout, &combines))
            });
        Ok(Probe {
            data: Rc::clone(data),
            schedule,
            by: (by, planned.call.by),
            clock,
            cost: request.get_cost().clone(),
            deadline,
            repetitions: MIN,
            turn: Duration::from_millis(match clock {
                Clock::Paced => 20,
                _ => 2,
            }),
            verified: false,
            name: algorithm.name,
            times: Vec::new(),
        })
    }

    fn run(&self) -> Run<'_, u8> {
        let run = Run::new(&self.schedule)
            .op(OP)
            .clock(self.clock)
            .cost(self.cost.clone())
            .deadline(self.deadline)
            .repetitions(self.repetitions)
            .warmup(WARMUP);
        match self.by {
            (Performer::Schedules, _) => run,
            (Performer::Library, By::Irregular) => run.by_irregular_library(),
            (Performer::Library, _) => run.by_library(),
        }
    }

    pub(super) fn turn(
        &mut self,
        place: &mut impl Place,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        if !self.verified {
            let first = self.run().verified().on(place)?;
            self.after_first(first, warnings)?;
        }
        let outcome = self.run().inputs(&self.data).on(place)?;
        self.times.push(outcome.wall.median_ns() as f64);
        Ok(())
    }

    /// Judges the result, and determines how many repetitions fit into a turn: from the run's own
    /// times, which are the same for all processes. The preparation of a repetition takes about as
    /// long.
    fn after_first(&mut self, outcome: Outcome<u8>, warnings: &mut Vec<String>) -> Result<()> {
        const MAX: usize = 500;
        let one = 2 * outcome.wall.median_ns();
        let fit = self.turn.as_nanos() / u128::from(one.max(1));
        let fit = usize::try_from(fit).unwrap_or(MAX);
        self.repetitions = fit.clamp(self.repetitions, MAX);
        self.name = outcome.function.unwrap_or(self.name);
        if let Some(mismatch) = outcome.mismatch {
            return Err(Error::wrong(format!(
                "{} by {} over {} ranks gave a wrong result: {mismatch}",
                self.schedule.collective().kind().name(),
                self.name,
                self.schedule.ranks()
            )));
        }
        for warning in outcome.warnings {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        self.verified = true;
        Ok(())
    }
}
