//! Measurement of one plan on a live team, turn by turn.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::machine::CostModel;
use crate::plan::Request;
use crate::plan::registry::Algorithm;
use crate::run::{Clock, Operator, Run, Team, inputs};
use crate::schedule::collective::Kind;
use crate::schedule::{Schedule, total_len};

/// Inputs of all ranks, by collective and input lengths. Algorithms with the same layout share
/// them.
pub(super) type Data = HashMap<(Kind, Vec<usize>), Rc<Vec<Vec<u8>>>>;

/// Repetitions before the timed ones of a turn.
const WARMUP: usize = 1;

/// A plan to measure, and its turns so far.
#[derive(Debug)]
pub(super) struct Probe {
    schedule: Schedule,
    data: Rc<Vec<Vec<u8>>>,
    sum: Operator<u8>,
    clock: Clock,
    cost: CostModel,
    deadline: Duration,
    repetitions: usize,
    turn: Duration,
    /// Whether the result was compared with a sequential computation.
    verified: bool,
    /// Median of each turn, in nanoseconds.
    pub(super) times: Vec<f64>,
}

impl Probe {
    pub(super) fn new(
        algorithm: &Algorithm,
        request: &Request,
        clock: Clock,
        deadline: Duration,
        data: &mut Data,
    ) -> Result<Probe> {
        const MIN: usize = 3;
        let schedule = algorithm.plan(request)?;
        let sum = Operator::named("sum")?;
        let lengths = schedule.layout().iter().map(|l| total_len(&l.input));
        let data = data
            .entry((request.kind(), lengths.collect()))
            .or_insert_with(|| Rc::new(inputs(schedule.collective(), schedule.layout(), &sum)));
        Ok(Probe {
            data: Rc::clone(data),
            schedule,
            sum,
            clock,
            cost: request.get_cost().clone(),
            deadline,
            repetitions: MIN,
            turn: Duration::from_millis(match clock {
                Clock::Native => 2,
                Clock::Paced => 20,
            }),
            verified: false,
            times: Vec::new(),
        })
    }

    fn run(&self) -> Run<'_, u8> {
        Run::new(&self.schedule)
            .op(&self.sum)
            .clock(self.clock)
            .cost(self.cost.clone())
            .deadline(self.deadline)
            .repetitions(self.repetitions)
            .warmup(WARMUP)
    }

    pub(super) fn turn(&mut self, team: &mut Team, warnings: &mut Vec<String>) -> Result<()> {
        if !self.verified {
            self.first_turn(team, warnings)?;
        }
        let outcome = self.run().inputs(&self.data).on(team)?;
        self.times.push(outcome.wall.median_ns() as f64);
        Ok(())
    }

    /// Verifies the result and determines how many repetitions fit into a turn.
    fn first_turn(&mut self, team: &mut Team, warnings: &mut Vec<String>) -> Result<()> {
        const MAX: usize = 500;
        let start = Instant::now();
        let outcome = self.run().verified().on(team)?;
        let runs = self.repetitions + WARMUP;
        let one = start.elapsed().as_nanos() / runs as u128;
        let fit = usize::try_from(self.turn.as_nanos() / one.max(1)).unwrap_or(MAX);
        self.repetitions = fit.clamp(self.repetitions, MAX);
        if let Some(mismatch) = outcome.mismatch {
            return Err(Error::wrong(format!(
                "{} over {} ranks gave a wrong result: {mismatch}",
                self.schedule.collective().kind().name(),
                team.ranks()
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
