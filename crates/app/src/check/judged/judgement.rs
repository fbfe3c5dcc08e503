//! A right schedule beside the fastest algorithm and the lower bounds.

use std::borrow::Cow;

use oneport::internal::budget::memory::STEP_BYTES;
use oneport::simulate::bounds::LowerBounds;

use crate::prelude::*;
use crate::units::cut_into;

/// A right schedule beside the fastest algorithm and the lower bounds.
#[derive(JsonSchema, Serialize)]
pub(super) struct Judgement {
    #[serde(flatten)]
    pub(super) own: Totals,
    pub(super) ratio: Option<f64>,
    pub(super) lower_bounds: Totals,
    /// Beside the least of all schedules that cut the vector alike, where that is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    whole_blocks: Option<WholeBlocks>,
    /// The fastest algorithm, if the problem is one that algorithms plan.
    pub(super) best: Option<Best>,
    #[serde(skip)]
    pub(super) unit: Unit,
    /// At what size, such as ` at 4 B`.
    #[serde(skip)]
    at: String,
}

/// A schedule beside the lower bound of schedules in so many blocks.
#[derive(JsonSchema, Serialize)]
struct WholeBlocks {
    blocks: usize,
    rounds: usize,
    ratio: Number,
}

#[derive(Debug, Clone, JsonSchema, Serialize)]
pub(super) struct Best {
    pub(super) algorithm: Cow<'static, str>,
    #[serde(flatten)]
    pub(super) totals: Totals,
}

/// The fastest algorithms of the problems that have been met, so that none is looked for twice.
pub(super) struct Known<'a> {
    caller: &'a Caller,
    met: Vec<(Request, Option<Best>)>,
}

impl Known<'_> {
    pub(super) fn new(caller: &Caller) -> Known<'_> {
        let met = Vec::new();
        Known { caller, met }
    }
}

#[derive(Debug, Clone, Copy, JsonSchema, Serialize)]
pub(super) struct Totals {
    pub(super) time: Number,
    pub(super) rounds: usize,
    pub(super) messages: usize,
    pub(super) bytes: u64,
}

impl Judgement {
    /// `None` if the schedule has no model time here, or the memory does not hold its times.
    pub(super) fn of(input: &Input, keep_order: bool, known: &mut Known) -> Option<Judgement> {
        let (schedule, cost) = (&input.schedule, &input.cost);
        // It and the fastest algorithm's are timed.
        let bytes = 2 * schedule.steps() as u128 * u128::from(STEP_BYTES);
        ensure_memory("its times", bytes, "").ok()?;
        let own = Totals::of(schedule, cost)?;
        let bounds = schedule.lower_bound(cost);
        let shares = !schedule.shared_ports().is_empty();
        let like = || Request::like(schedule).ok().filter(|_| !shares);
        let best = like().and_then(|request| {
            let request = request.cost(cost.clone()).keep_order(keep_order);
            if let Some((_, best)) = known.met.iter().find(|(met, _)| *met == request) {
                return best.clone();
            }
            let best = Best::of(&request, input.unit, known.caller);
            known.met.push((request, best.clone()));
            best
        });
        Some(Judgement {
            ratio: (bounds.largest > 0.0).then_some(own.time.0 / bounds.largest),
            whole_blocks: (bounds.block_time > bounds.largest).then(|| WholeBlocks {
                blocks: bounds.blocks,
                rounds: bounds.block_rounds,
                ratio: Number(own.time.0 / bounds.block_time),
            }),
            lower_bounds: Totals::bounds(&bounds, schedule.element_bytes()),
            own,
            best,
            unit: input.unit,
            at: input.info.vector_bytes.map_or_else(String::new, |bytes| {
                let blocks = if input.info.kind.is_sized_by_block() {
                    "blocks of "
                } else {
                    ""
                };
                format!(" at {blocks}{}", show_bytes(bytes))
            }),
        })
    }

    /// What is more than needed, such as `its time is 2 times the lower bound at 4 B; binomial
    /// takes 4 us`.
    pub(super) fn sentence(&self) -> String {
        let (own, least) = (&self.own, &self.lower_bounds);
        let mut parts = Vec::new();
        if least.messages > 0 && own.messages > least.messages && own.bytes > least.bytes {
            parts.push(format!(
                "{} carry {}, and {} with {} are needed at least",
                counted(own.messages, "message"),
                show_bytes(own.bytes),
                least.messages,
                show_bytes(least.bytes)
            ));
        }
        let is_optimal = self.ratio.is_some_and(|ratio| ratio <= 1.0 + 1e-9);
        parts.push(match self.ratio.map(|ratio| number(ratio, 3)) {
            Some(_) if is_optimal => format!("its time is the lower bound{}", self.at),
            Some(ratio) if ratio == "1" => {
                format!("its time is within 0.1% of the lower bound{}", self.at)
            }
            Some(ratio) => format!("its time is {ratio} times the lower bound{}", self.at),
            None => format!("it takes {}{}", self.unit.show(own.time.0), self.at),
        });
        match &self.best {
            Some(best) if best.totals.time.0 < own.time.0 * (1.0 - 1e-9) => {
                let time = self.unit.show(best.totals.time.0);
                parts.push(format!("{} takes {time}", best.algorithm));
            }
            Some(_) if !is_optimal => parts.push("no algorithm here is faster".into()),
            _ => {}
        }
        if let Some(of) = self.whole_blocks.as_ref() {
            let (ratio, cut) = (number(of.ratio.0, 3), cut_into(of.blocks));
            parts.push(format!("{ratio} times the least of schedules that {cut}"));
        }
        parts.join("; ")
    }

    pub(super) fn print(&self, out: &mut Lines) -> Result<()> {
        let best = self.best.as_ref();
        let all = [
            Some(("this", &self.own)),
            best.map(|best| (&*best.algorithm, &best.totals)),
            Some(("at least", &self.lower_bounds)),
        ];
        let names = ["time", "rounds", "messages", "volume"];
        let mut columns = Columns::<usize>::default().add("", |&i| names[i]);
        for (title, totals) in all.into_iter().flatten() {
            let cells = totals.cells(self.unit);
            columns = columns.add(format!(">{title}"), move |&i| cells[i].clone());
        }
        writeln!(out)?;
        output::table(out, &columns, 0..names.len())
    }
}

impl Best {
    /// The fastest algorithm for `request`, unless looking for it takes long, or none can be
    /// planned or timed: a judgement of a schedule is worth having without a rival.
    fn of(request: &Request, unit: Unit, caller: &Caller) -> Option<Best> {
        /// By an estimate that is mostly too large.
        const MAX_SECONDS: f64 = 5.0;
        let task = PlanTask::of_candidates(request.clone(), unit, caller).ok()?;
        if task.seconds().is_some_and(|seconds| seconds > MAX_SECONDS) {
            return None;
        }
        let variant = task.choose_aloud().ok()?;
        let schedule = variant.plan().ok()?;
        Some(Best {
            algorithm: variant.algorithm.name(),
            totals: Totals::of(&schedule, variant.request.get_cost())?,
        })
    }
}

impl Totals {
    fn of(schedule: &Schedule, cost: &CostModel) -> Option<Totals> {
        let timed = schedule.timed(cost, |_| ()).ok()?;
        Some(Totals {
            time: Number(timed.time),
            rounds: timed.rounds,
            messages: timed.messages,
            bytes: timed.elements as u64 * schedule.element_bytes(),
        })
    }

    fn bounds(bounds: &LowerBounds, element_bytes: u64) -> Totals {
        Totals {
            time: Number(bounds.largest),
            rounds: bounds.rounds,
            messages: bounds.messages,
            bytes: (bounds.elements as u64).saturating_mul(element_bytes),
        }
    }

    fn cells(&self, unit: Unit) -> [String; 4] {
        [
            unit.show(self.time.0),
            self.rounds.to_string(),
            self.messages.to_string(),
            show_bytes(self.bytes),
        ]
    }
}
