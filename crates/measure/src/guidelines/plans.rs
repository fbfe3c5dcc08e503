//! Plans for the calls of guidelines: the chosen algorithms and their times.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::time::Duration;

use super::{
    BlockSizes, By, Call, Comparison, Effort, Evaluation, Guideline, Performer, Scaling, Setting,
    Size,
};
use crate::fit::median;
use crate::interleave::{Batches, Inputs, MIN_FITTING_REPETITIONS, interleaved};
use crate::tune::MIN_FOR_CONFIDENCE;
use oneport::error::{Error, Result};
use oneport::internal::median_tail;
use oneport::plan::Request;
use oneport::plan::registry::{self, Algorithm};
use oneport::plan::space::{Model, SegmentChoice, Space, Variant, best_first};
use oneport::run::{Clock, Op, Operator, Place, Run};
use oneport::schedule::Schedule;
use oneport::schedule::collective::Kind;

/// How bytes are combined: libraries agree on it, which they do not on sums of short integers.
const OP: Op = Op::BXOR;

/// A call, and the algorithm that performs it.
#[derive(Debug)]
pub(super) struct PlannedCall {
    pub(super) call: Call,
    pub(super) variant: Variant,
    pub(super) time: f64,
}

/// A guideline for one number of ranks and one size, and the plans of its sides.
#[derive(Debug)]
pub(super) struct Compared {
    pub(super) guideline: &'static Guideline,
    pub(super) ranks: usize,
    pub(super) bytes: u64,
    /// The plans of both sides, and how often each is made.
    pub(super) sides: [Vec<(usize, usize)>; 2],
}

/// All planned calls, each once.
#[derive(Debug)]
pub(super) struct Plans<'a> {
    setting: &'a Setting,
    pub(super) planned: Vec<PlannedCall>,
    /// The index of a plan, or the reason why there is none, by call, ranks and elements.
    known: HashMap<(Call, usize, usize), Result<usize, String>>,
}

/// A plan, and who performs it.
pub(super) type Measurement = (usize, Performer);

/// How long a call takes, and the name of what took it.
#[derive(Debug, Clone)]
pub(super) struct CallTime {
    pub(super) time: f64,
    /// The 95% confidence interval, if it is measured often enough for one.
    pub(super) interval: Option<[f64; 2]>,
    pub(super) by: Cow<'static, str>,
}

impl CallTime {
    /// Of the medians of batches.
    fn of(mut medians: Vec<f64>, by: Cow<'static, str>) -> CallTime {
        let time = median(&mut medians);
        medians.sort_unstable_by(f64::total_cmp);
        let n = medians.len();
        let tail = median_tail(n);
        let interval = (n >= MIN_FOR_CONFIDENCE).then(|| [medians[tail], medians[n - 1 - tail]]);
        CallTime { time, interval, by }
    }
}

impl<'a> Plans<'a> {
    /// Why the sides of a guideline cannot be measured, where there are at most `max` ranks.
    pub(super) fn not_measured(&self, one: &Compared, max: usize) -> Option<String> {
        let sides = one.sides.iter().flatten();
        let plans = sides.map(|&(plan, _)| &self.planned[plan]);
        if plans.clone().any(|plan| plan.call.free_computation) {
            return Some("combining without cost exists in the model only".to_string());
        }
        let most = plans.map(|plan| plan.variant.request.ranks()).max();
        most.filter(|&most| most > max)
            .map(|most| format!("{most} ranks are more than the {max} that can be measured here"))
    }

    pub(super) fn new(setting: &'a Setting) -> Plans<'a> {
        Plans {
            setting,
            planned: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// Returns the plans of both sides, or the reason why one of them cannot be planned.
    pub(super) fn sides(
        &mut self,
        guideline: &Guideline,
        p: usize,
        m: u64,
    ) -> Result<[Vec<(usize, usize)>; 2], String> {
        // With unidirectional ports more ranks can be faster: an odd number of ranks leaves a port
        // idle in every round.
        let calls = guideline.left.iter().chain(guideline.right);
        if !self.setting.ports.can_relay() && calls.clone().any(|c| c.times_ranks > 1) {
            return Err("holds for bidirectional ports only".to_string());
        }
        let is_irregular = |calls: &[Call]| calls.iter().any(|call| call.by == By::Irregular);
        if self.setting.blocks.is_some() && is_irregular(guideline.right) {
            return Err("holds for equal blocks only".to_string());
        }
        let pads = is_irregular(guideline.left);
        let mut side = |calls: &[Call]| -> Result<Vec<(usize, usize)>, String> {
            let times = |call: &Call| if call.for_each_rank { p } else { 1 };
            let plan = |call| Ok((self.plan(call, p, m, pads)?, times(call)));
            calls.iter().map(plan).collect()
        };
        Ok([side(guideline.left)?, side(guideline.right)?])
    }

    /// The plan of a call. Where the guideline `pads` blocks, equal ones have the size of the
    /// largest.
    fn plan(&mut self, call: &Call, p: usize, m: u64, pads: bool) -> Result<usize, String> {
        let ranks = p.saturating_mul(call.times_ranks);
        let mut elements = call.elements(p, m)?;
        if pads && call.by != By::Irregular && call.size == Size::Share {
            let blocks = self.blocks(call.kind, ranks, elements)?;
            elements = blocks.into_iter().max().unwrap_or(elements);
        }
        // The same call gets one plan, whatever guideline it comes from and however its size is
        // written.
        let same = Call {
            size: Size::All,
            scaling: Scaling::Once,
            times_ranks: 1,
            for_each_rank: false,
            ..*call
        };
        let key = (same, ranks, elements);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let found = self.fastest(call, ranks, elements).map(|planned| {
            self.planned.push(planned);
            self.planned.len() - 1
        });
        self.known.insert(key, found.clone());
        found
    }

    /// Returns the plan with the least model time among the algorithms that may perform `call`.
    fn fastest(&self, call: &Call, ranks: usize, elements: usize) -> Result<PlannedCall, String> {
        let kind = call.kind;
        let suit = |a: &&Algorithm| a.is_made_for(&self.setting.cost);
        let mut candidates: Vec<_> = registry::of(kind).filter(suit).collect();
        if candidates.is_empty() {
            return Err(format!("no algorithm for {} is registered", kind.name()));
        }
        match call.by {
            By::Best | By::Irregular => {}
            By::Whole(name) => {
                let whole = registry::find(kind, name).map_err(|error| error.to_string())?;
                candidates.retain(|a| **a == whole);
            }
        }
        let mut request = Request::new(kind, ranks, elements)
            .root(ranks / 2)
            .ports(self.setting.ports);
        // The root of a gather copies its own block, while ranks of an allgather have it in place.
        // Free copies make the two comparable.
        let mut cost = self.setting.cost.clone().gamma_copy(0.0);
        if let Some(by_ranks) = &self.setting.arrivals {
            let arrivals = by_ranks.get(&ranks);
            let arrivals = arrivals.ok_or_else(|| format!("no arrivals of {ranks} ranks"))?;
            cost = cost.arrivals(arrivals.clone());
        }
        let last_arrival = cost.last_arrival();
        if call.by == By::Irregular {
            request = request.blocks(self.blocks(kind, ranks, elements)?);
        }
        if call.free_computation {
            cost = cost.gamma(0.0);
        }
        let request = request.cost(cost);
        let mut space = Space::among(candidates, &request);
        if let By::Whole(_) = call.by {
            space.segments = SegmentChoice::Given(request.get_segments().clone());
        }
        let ranking = best_first(&space, &Model);
        let refusal = ranking.refusals.first().map(ToString::to_string);
        match ranking.fastest(None) {
            Ok(choice) => Ok(PlannedCall {
                call: *call,
                variant: choice.variant,
                time: choice.time - last_arrival,
            }),
            Err(_) => {
                Err(refusal.unwrap_or_else(|| format!("no such algorithm for {}", kind.name())))
            }
        }
    }

    /// Adds what the searches left out to a report.
    pub(super) fn add_left_out(&self, report: &mut Evaluation) {
        for variant in self.planned.iter().map(|plan| &plan.variant) {
            for &left_out in &variant.left_out {
                report.add_left_out(variant.algorithm.name(), left_out);
            }
        }
    }

    /// The blocks of a call for blocks of different sizes, of this size on average.
    fn blocks(&self, kind: Kind, ranks: usize, elements: usize) -> Result<Vec<usize>, String> {
        let pairs = kind.has_block_pairs();
        let sizes = match self.setting.blocks {
            None => {
                let count = if pairs {
                    ranks.checked_mul(ranks)
                } else {
                    Some(ranks)
                };
                return Ok(vec![elements; count.ok_or("too many ranks")?]);
            }
            Some(BlockSizes {
                distribution,
                rho,
                seed,
            }) if pairs => distribution.pair_sizes(ranks, elements, rho, seed),
            Some(BlockSizes {
                distribution,
                rho,
                seed,
            }) => distribution.sizes(ranks, elements, rho, seed),
        };
        sizes.map_err(|error| error.to_string())
    }

    /// The comparison `one`, from the time of each plan.
    pub(super) fn row(
        &self,
        one: &Compared,
        clock: Option<Clock>,
        by: Performer,
        time: impl Fn(usize) -> CallTime,
    ) -> Comparison {
        let sides = one.sides.each_ref();
        let [left, right] = sides.map(|side| {
            let times = side.iter().map(|&(plan, n)| time(plan).time * n as f64);
            times.sum::<f64>()
        });
        let [left_by, right_by] =
            sides.map(|side| side.iter().map(|&(plan, _)| time(plan).by).collect());
        // The sum of intervals contains the sum of the times at least as often.
        let [left_interval, right_interval] = sides.map(|side| {
            side.iter().try_fold([0.0, 0.0], |[low, high], &(plan, n)| {
                let [least, most] = time(plan).interval?;
                Some([low + least * n as f64, high + most * n as f64])
            })
        });
        let intervals = left_interval.zip(right_interval);
        let tolerance = match clock {
            None => self.setting.tolerance,
            Some(_) => self.setting.measured_tolerance,
        };
        // Sums of the same times in different orders may differ in the last bits.
        const ROUNDING: f64 = 1e-9;
        let holds = |left: f64, right: f64| left <= right * (1.0 + tolerance.max(ROUNDING));
        let settled = intervals
            .is_some_and(|(left, right)| holds(left[0], right[1]) == holds(left[1], right[0]));
        Comparison {
            guideline: one.guideline,
            clock,
            by,
            ranks: one.ranks,
            bytes: one.bytes,
            left,
            right,
            left_by,
            right_by,
            holds: holds(left, right),
            intervals: intervals.map(|(left, right)| [left, right]),
            settled: clock.map(|_| settled),
        }
    }

    /// Who is measured.
    pub(super) fn performers(&self) -> impl Iterator<Item = Performer> + use<> {
        let library = self.setting.library.then_some(Performer::Library);
        [Performer::Schedules].into_iter().chain(library)
    }

    /// Which measurement tells how long `by` takes for a plan.
    pub(super) fn measure_of(&self, plan: usize, by: Performer) -> Measurement {
        match self.planned[plan].call.by {
            By::Whole(_) => (plan, Performer::Schedules),
            By::Best | By::Irregular => (plan, by),
        }
    }

    /// Measures the `selected` plans, all of one number of ranks interleaved: their times, and the
    /// names of the algorithms or functions.
    pub(super) fn measured(
        &self,
        place: &mut impl Place,
        selected: &[usize],
        clock: Clock,
        warnings: &mut Vec<String>,
        progress: &mut impl FnMut(usize, usize),
    ) -> Result<BTreeMap<Measurement, CallTime>> {
        let performers = || self.performers();
        let measures = selected
            .iter()
            .flat_map(|&plan| performers().map(move |by| self.measure_of(plan, by)));
        let mut by_ranks: BTreeMap<usize, BTreeSet<Measurement>> = BTreeMap::new();
        for measure in measures {
            let ranks = self.planned[measure.0].variant.request.ranks();
            by_ranks.entry(ranks).or_default().insert(measure);
        }
        let calls = by_ranks.values().map(BTreeSet::len).sum::<usize>();
        let each = batches(self.setting.effort, clock, calls);
        let all = each.count() * calls;
        let mut done = 0;
        let mut times = BTreeMap::new();
        for measures in by_ranks.into_values() {
            let plan_of = |&(plan, _): &Measurement| self.planned[plan].variant.plan();
            let schedules = measures.iter().map(plan_of).collect::<Result<Vec<_>>>()?;
            let operator = Operator::try_from(OP)?;
            let mut shared = Inputs::new();
            let inputs = schedules.iter().map(|s| shared.of(s, &operator));
            let inputs: Vec<_> = inputs.collect();
            let mut runs = Vec::with_capacity(measures.len());
            let mut names = Vec::with_capacity(measures.len());
            let of_schedules = schedules.iter().zip(&inputs);
            for (&(plan, by), (schedule, inputs)) in measures.iter().zip(of_schedules) {
                let planned = &self.planned[plan];
                let run = self.run(schedule, planned, by, clock);
                names.push(verify(place, &run, planned, warnings)?);
                runs.push(run.inputs(inputs));
            }
            let one_batch = |i: usize, repetitions: usize| {
                let outcome = runs[i].clone().repetitions(repetitions).on(place)?;
                Ok(ControlFlow::Continue(outcome.wall.median_ns()))
            };
            let each_run = vec![each; runs.len()];
            let medians = interleaved(&each_run, one_batch, |part, _| progress(done + part, all))?;
            done += each.count() * runs.len();
            for ((measure, medians), name) in measures.into_iter().zip(medians).zip(names) {
                times.insert(measure, CallTime::of(medians, name));
            }
        }
        progress(all, all);
        Ok(times)
    }

    /// The run of a plan, by its schedule or by a function of the library.
    fn run<'s>(
        &self,
        schedule: &'s Schedule,
        planned: &PlannedCall,
        by: Performer,
        clock: Clock,
    ) -> Run<'s, u8> {
        let run = Run::new(schedule)
            .op(OP)
            .clock(clock)
            .cost(planned.variant.request.get_cost().clone())
            .deadline(self.setting.deadline)
            .keep_inputs(self.setting.keep_inputs)
            .warmup(1);
        match (by, planned.call.by) {
            (Performer::Schedules, _) => run,
            (Performer::Library, By::Irregular) => run.by_irregular_library(),
            (Performer::Library, _) => run.by_library(),
        }
    }
}

/// The batches of each of so many calls. Every process finds the same.
fn batches(effort: Effort, clock: Clock, calls: usize) -> Batches {
    /// Enough for an interval.
    const MEASURED: usize = 7;
    const MAX: u128 = 1000;
    let (count, length) = match clock {
        Clock::Paced => (3, Duration::from_millis(20)),
        _ => (MEASURED, Duration::from_millis(2)),
    };
    match effort {
        Effort::Short => Batches::Fitting(count, length),
        Effort::Repetitions(n) => Batches::Sharing(n.clamp(1, MEASURED), n.max(1)),
        Effort::Budget(time) => {
            let round = length.as_nanos() * calls.max(1) as u128;
            let rounds = (time.as_nanos() / round).clamp(1, MAX);
            Batches::Fitting(rounds as usize, length)
        }
    }
}

/// Compares the result of a few repetitions with a sequential computation. Returns the name of the
/// algorithm, or of the function of the library.
fn verify(
    place: &mut impl Place,
    run: &Run<'_, u8>,
    planned: &PlannedCall,
    warnings: &mut Vec<String>,
) -> Result<Cow<'static, str>> {
    let few = run.clone().repetitions(MIN_FITTING_REPETITIONS);
    let outcome = few.verified().on(place)?;
    let function = outcome.function.map(Cow::Borrowed);
    let name = function.unwrap_or_else(|| planned.variant.algorithm.name());
    if let Some(mismatch) = outcome.mismatch {
        return Err(Error::wrong(format!(
            "{} by {name} over {} ranks gave a wrong result: {mismatch:#}",
            planned.call.kind.name(),
            planned.variant.request.ranks()
        )));
    }
    for warning in outcome.warnings {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    Ok(name)
}

impl Call {
    /// Returns the size of the vector or block in elements of one byte.
    fn elements(&self, p: usize, m: u64) -> Result<usize, String> {
        let too_large = || format!("{m} bytes are too large for {}", self.kind.name());
        let m = usize::try_from(m).map_err(|_| too_large())?;
        let share = m.div_ceil(p.max(1));
        let size = match self.size {
            Size::All => Some(m),
            Size::Share => Some(share),
            Size::Shares => share.checked_mul(p),
            Size::One => Some(1),
        };
        let scaled = size.and_then(|n| match self.scaling {
            Scaling::Once => Some(n),
            Scaling::Twice => n.checked_mul(2),
            Scaling::FirstHalf => Some(n.div_ceil(2)),
            Scaling::SecondHalf => Some(n / 2),
        });
        scaled.ok_or_else(too_large)
    }
}
