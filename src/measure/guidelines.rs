//! Performance guidelines: what must hold between collectives, because one can be done by means of others.
//!
//! Source: Träff, Gropp, Thakur, *Self-consistent MPI performance guidelines*, 2010. A library in which a broadcast takes longer than a scatter
//! followed by an allgather would better do just that; a violation shows what to mend (an algorithm, or the choice among algorithms)
//! without a comparison with anything else.
//!
//! [`all`] is the table. A [`Guideline`] has two sides, each a list of calls that are made one after another; for `p` ranks and
//! `m` bytes the left side must not take longer than the right one. A call is performed by the algorithm that is the fastest in the
//! model among those registered, with its best segments. So a guideline whose collectives nobody has registered yet is reported as not
//! available, and is checked as soon as they are.
//!
//! [`evaluate`] compares times in the model, exactly, with local copies for free (some collectives have their blocks in place, others not); and, if asked to, times measured on a live team: the two sides' calls take turns,
//! so that a disturbance meets both, and each call counts with the median over its turns of a turn's median.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::fit::median;
use crate::collective::Kind;
use crate::cost::{CostModel, Ports};
use crate::error::{Error, Result};
use crate::plan::registry::{self, Algorithm};
use crate::plan::{Request, auto};
use crate::run::{Clock, Operator, RunOptions, Team, inputs, oracle};
use crate::schedule::{Schedule, total_len};

/// One guideline.
#[derive(Debug)]
pub struct Guideline {
    /// Its name: the two sides, shortly.
    pub name: &'static str,
    /// What must not take longer ...
    pub left: &'static [Call],
    /// ... than these calls, one after another.
    pub right: &'static [Call],
    /// Why.
    pub statement: &'static str,
}

/// A collective operation as it appears in a guideline for `p` ranks and `m` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Call {
    /// What is performed.
    pub kind: Kind,
    /// By what.
    pub by: By,
    /// Of what size.
    pub size: Size,
    /// How much of that.
    pub part: Part,
    /// Over how many times `p` ranks.
    pub times_ranks: usize,
    /// Whether combining costs nothing; such calls exist in the model only.
    pub free_computation: bool,
}

/// What performs a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum By {
    /// The algorithm that is the fastest in the model, with the segments that are best there.
    Best,
    /// This algorithm, with the vector in one segment.
    Whole(&'static str),
    /// The best algorithm for blocks of different sizes.
    Irregular,
}

/// The size of a call: of the vector, or of each rank's block where every rank contributes or gets one of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Size {
    /// `m`.
    All,
    /// The `p`-th part of `m`, rounded up.
    Share,
    /// `p` times the `p`-th part of `m`, rounded up.
    Shares,
    /// One byte: what an agreement on a number takes, in the model.
    One,
}

/// How much of a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// It as it stands.
    Once,
    /// Twice as much.
    Twice,
    /// One half, rounded up.
    FirstHalf,
    /// The other half.
    SecondHalf,
}

/// How to evaluate.
#[derive(Debug, Clone)]
pub struct Setting {
    /// What a rank's ports allow; algorithms for other ports are left out.
    pub ports: Ports,
    /// The cost model of model times, by which algorithms and segments are chosen; in nanoseconds for measured times.
    pub cost: CostModel,
    /// Measure, with this clock, besides computing model times.
    pub clock: Option<Clock>,
    /// By how much a left side may be slower in the model: 0.01 is 1%.
    pub tolerance: f64,
    /// The same for measured times.
    pub measured_tolerance: f64,
    /// How long a rank waits for a partner when measured.
    pub deadline: Duration,
}

/// What came out.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Every guideline for every number of ranks and size: first in the model, then as measured.
    pub rows: Vec<Row>,
    /// Guidelines that could not be evaluated, and why.
    pub unavailable: Vec<Unavailable>,
    /// What a reader of the measured times should know.
    pub warnings: Vec<String>,
}

/// A guideline that could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// Its name.
    pub guideline: &'static str,
    /// Why not.
    pub reason: String,
}

/// One comparison.
#[derive(Debug, Clone)]
pub struct Row {
    /// The guideline.
    pub guideline: &'static Guideline,
    /// `None` for model times.
    pub clock: Option<Clock>,
    /// Number of ranks `p`.
    pub ranks: usize,
    /// Size `m`.
    pub bytes: u64,
    /// Time of the left side.
    pub left: f64,
    /// Time of the right side.
    pub right: f64,
    /// The algorithms of the left side's calls.
    pub left_by: Vec<&'static str>,
    /// The algorithms of the right side's calls.
    pub right_by: Vec<&'static str>,
    /// Whether the left side is not slower, within the tolerance.
    pub holds: bool,
}

impl Row {
    /// By how much the left side is slower: 0.1 is 10%; negative where it is faster.
    pub fn excess(&self) -> f64 {
        if self.left == self.right {
            0.0
        } else {
            self.left / self.right - 1.0
        }
    }
}

impl Report {
    /// Whether every guideline that could be evaluated holds.
    pub fn holds(&self) -> bool {
        self.rows.iter().all(|row| row.holds)
    }

    fn lacks(&mut self, guideline: &'static str, reason: String) {
        let lack = Unavailable { guideline, reason };
        if !self.unavailable.contains(&lack) {
            self.unavailable.push(lack);
        }
    }
}

impl Setting {
    /// Model times alone, without tolerance; 10% for measured times.
    pub fn new(ports: Ports, cost: CostModel) -> Setting {
        Setting {
            ports,
            cost,
            clock: None,
            tolerance: 0.0,
            measured_tolerance: 0.1,
            deadline: Duration::from_secs(10),
        }
    }
}

/// All guidelines: those within each collective, then those between different ones.
pub fn all() -> impl Iterator<Item = &'static Guideline> {
    WITHIN.iter().flatten().chain(BETWEEN)
}

/// Checks all guidelines for all these numbers of ranks and sizes in bytes.
///
/// `progress` is told how much is done, of how much, of the plans and then of the measurements. Elements are single bytes, combined by
/// sums; roots are rank `p / 2`.
///
/// ```
/// use oneport::measure::guidelines::{Setting, evaluate};
/// use oneport::{CostModel, Ports};
/// let setting = Setting::new(Ports::BI, CostModel::new(1000.0, 0.1));
/// let report = evaluate(&setting, &[4, 8], &[1 << 10, 1 << 20], |_, _| {})?;
/// assert!(report.holds());
/// # Ok::<(), oneport::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for 0 ranks or costs that are none; when a team cannot be had, a run fails, or its data is wrong.
pub fn evaluate(
    setting: &Setting,
    ranks: &[usize],
    sizes: &[u64],
    mut progress: impl FnMut(usize, usize),
) -> Result<Report> {
    setting.cost.validate()?;
    if ranks.contains(&0) {
        return Err(Error::usage("a collective needs at least one rank (-p 0)"));
    }
    let mut report = Report::default();
    let mut plans = Plans::new(setting);
    let mut compared = Vec::new();
    let guidelines = all().count();
    let of = guidelines * ranks.len() * sizes.len();
    for (i, guideline) in all().enumerate() {
        for (j, &p) in ranks.iter().enumerate() {
            for (k, &m) in sizes.iter().enumerate() {
                progress((i * ranks.len() + j) * sizes.len() + k, of);
                match plans.sides(guideline, p, m) {
                    Ok(sides) => compared.push(Compared {
                        guideline,
                        ranks: p,
                        bytes: m,
                        sides,
                    }),
                    Err(reason) => report.lacks(guideline.name, reason),
                }
            }
        }
    }
    let model: Vec<f64> = plans.planned.iter().map(|plan| plan.time).collect();
    for one in &compared {
        report.rows.push(plans.row(one, None, |plan| model[plan]));
    }
    let Some(clock) = setting.clock else {
        return Ok(report);
    };
    compared.retain(|one| {
        let plans = one.sides.iter().flatten().map(|&i| &plans.planned[i]);
        let measurable = !plans.clone().any(|plan| plan.call.free_computation);
        if !measurable {
            let reason = "free combining can be had in the model only".to_string();
            report.lacks(one.guideline.name, reason);
        }
        measurable
    });
    let mut wanted: Vec<usize> = compared
        .iter()
        .flat_map(|one| one.sides.iter().flatten().copied())
        .collect();
    wanted.sort_unstable();
    wanted.dedup();
    let times = plans.measured(&wanted, clock, &mut report.warnings, &mut progress)?;
    for one in &compared {
        let row = plans.row(one, Some(clock), |plan| times[&plan]);
        report.rows.push(row);
    }
    Ok(report)
}

/// A guideline for one number of ranks and one size, and the plans of its sides.
#[derive(Debug)]
struct Compared {
    guideline: &'static Guideline,
    ranks: usize,
    bytes: u64,
    sides: [Vec<usize>; 2],
}

/// Every call that was planned, once.
#[derive(Debug)]
struct Plans<'a> {
    setting: &'a Setting,
    planned: Vec<Planned>,
    /// By call, ranks and elements: the plan, or why there is none.
    known: HashMap<(Call, usize, usize), Result<usize, String>>,
}

#[derive(Debug)]
struct Planned {
    call: Call,
    algorithm: &'static Algorithm,
    request: Request,
    /// In the model.
    time: f64,
}

impl<'a> Plans<'a> {
    fn new(setting: &'a Setting) -> Plans<'a> {
        Plans {
            setting,
            planned: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// The plans of both sides, or why one of them cannot be planned.
    fn sides(
        &mut self,
        guideline: &Guideline,
        p: usize,
        m: u64,
    ) -> Result<[Vec<usize>; 2], String> {
        // More ranks can be faster there: an odd number of them leaves a port idle in every round.
        let calls = guideline.left.iter().chain(guideline.right);
        if !self.setting.ports.is_bidirectional() && calls.clone().any(|c| c.times_ranks > 1) {
            return Err("holds for bidirectional ports only".to_string());
        }
        let mut side = |calls: &[Call]| -> Result<Vec<usize>, String> {
            calls.iter().map(|call| self.plan(call, p, m)).collect()
        };
        Ok([side(guideline.left)?, side(guideline.right)?])
    }

    fn plan(&mut self, call: &Call, p: usize, m: u64) -> Result<usize, String> {
        let ranks = p.saturating_mul(call.times_ranks);
        let elements = call.elements(p, m)?;
        // The same call whatever guideline it comes from, and however its size is written there.
        let same = Call {
            size: Size::All,
            part: Part::Once,
            times_ranks: 1,
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

    /// The fastest in the model of those that may perform `call`.
    fn fastest(&self, call: &Call, ranks: usize, elements: usize) -> Result<Planned, String> {
        let kind = call.kind;
        let mut candidates: Vec<_> = registry::of(kind).collect();
        if candidates.is_empty() {
            return Err(format!("no algorithm for {} is registered", kind.name()));
        }
        match call.by {
            By::Best => {}
            By::Whole(name) => candidates.retain(|a| a.name == name),
            By::Irregular => candidates.retain(|a| !a.regular_only),
        }
        let mut request = Request::new(ranks, elements);
        request.root = ranks / 2;
        request.ports = self.setting.ports;
        // The root of a gather copies its own block, ranks of an allgather have it in place already: alike without that copy.
        request.cost = self.setting.cost.clone().gamma_copy(0.0);
        if call.by == By::Irregular {
            request.blocks = Some(vec![elements; ranks]);
        }
        if call.free_computation {
            request.cost = request.cost.gamma(0.0);
        }
        let mut best: Option<Planned> = None;
        let mut refusal = None;
        for algorithm in candidates {
            let choice = match call.by {
                By::Best | By::Irregular => auto::with_best_segments(algorithm, &request),
                By::Whole(_) => auto::as_requested(algorithm, &request),
            };
            match choice {
                Ok(choice) if best.as_ref().is_none_or(|b| choice.time < b.time) => {
                    best = Some(Planned {
                        call: *call,
                        algorithm,
                        request: choice.request,
                        time: choice.time,
                    });
                }
                Ok(_) => {}
                Err(error) => {
                    refusal.get_or_insert(error.to_string());
                }
            }
        }
        best.ok_or_else(|| {
            refusal.unwrap_or_else(|| format!("no such algorithm for {}", kind.name()))
        })
    }

    fn row(&self, one: &Compared, clock: Option<Clock>, time: impl Fn(usize) -> f64) -> Row {
        let [left, right] = one
            .sides
            .each_ref()
            .map(|side| side.iter().map(|&plan| time(plan)).sum::<f64>());
        let [left_by, right_by] = one.sides.each_ref().map(|side| {
            let names = side.iter().map(|&plan| self.planned[plan].algorithm.name);
            names.collect()
        });
        let tolerance = match clock {
            None => self.setting.tolerance,
            Some(_) => self.setting.measured_tolerance,
        };
        // Sums of the same times in another order may differ in the last bits.
        const ROUNDING: f64 = 1e-9;
        Row {
            guideline: one.guideline,
            clock,
            ranks: one.ranks,
            bytes: one.bytes,
            left,
            right,
            left_by,
            right_by,
            holds: left <= right * (1.0 + tolerance.max(ROUNDING)),
        }
    }

    /// Times of the `wanted` plans on live teams, one team for each number of ranks.
    fn measured(
        &self,
        wanted: &[usize],
        clock: Clock,
        warnings: &mut Vec<String>,
        progress: &mut impl FnMut(usize, usize),
    ) -> Result<BTreeMap<usize, f64>> {
        let turns = match clock {
            Clock::Native => 7,
            Clock::Paced => 3,
        };
        let of = wanted.len() * turns;
        let mut done = 0;
        let mut by_ranks: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &plan in wanted {
            let ranks = self.planned[plan].request.ranks;
            by_ranks.entry(ranks).or_default().push(plan);
        }
        let mut times = BTreeMap::new();
        for (ranks, plans) in by_ranks {
            let mut team = Team::new(ranks)?;
            team.set_deadline(self.setting.deadline);
            let mut data = Data::default();
            let mut probes = Vec::with_capacity(plans.len());
            for &plan in &plans {
                probes.push(Probe::new(&self.planned[plan], clock, &mut data)?);
            }
            drop(data);
            for _ in 0..turns {
                for probe in &mut probes {
                    progress(done, of);
                    probe.turn(&mut team, warnings)?;
                    done += 1;
                }
            }
            for (plan, mut probe) in plans.into_iter().zip(probes) {
                times.insert(plan, median(&mut probe.times));
            }
        }
        progress(of, of);
        Ok(times)
    }
}

impl Call {
    /// Elements of one byte, of the vector or of a block.
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
        let part = size.and_then(|n| match self.part {
            Part::Once => Some(n),
            Part::Twice => n.checked_mul(2),
            Part::FirstHalf => Some(n.div_ceil(2)),
            Part::SecondHalf => Some(n / 2),
        });
        part.ok_or_else(too_large)
    }
}

/// Inputs of all ranks, by kind and their lengths: algorithms for the same share them.
type Data = HashMap<(Kind, Vec<usize>), Rc<Vec<Vec<u8>>>>;

/// A plan that is measured, and its turns so far.
#[derive(Debug)]
struct Probe {
    schedule: Schedule,
    data: Rc<Vec<Vec<u8>>>,
    sum: Operator<u8>,
    options: RunOptions,
    turn: Duration,
    /// Whether the result was compared with a sequential computation.
    verified: bool,
    /// Median of each turn, in nanoseconds.
    times: Vec<f64>,
}

impl Probe {
    fn new(plan: &Planned, clock: Clock, data: &mut Data) -> Result<Probe> {
        const FEWEST: usize = 3;
        let schedule = plan.algorithm.plan(&plan.request)?;
        let sum = Operator::named("sum")?;
        let lengths = schedule.layout().iter().map(|l| total_len(&l.input));
        let data = data
            .entry((plan.call.kind, lengths.collect()))
            .or_insert_with(|| Rc::new(inputs(schedule.collective(), schedule.layout(), &sum)));
        Ok(Probe {
            data: Rc::clone(data),
            schedule,
            sum,
            options: RunOptions {
                clock,
                cost: plan.request.cost.clone(),
                repetitions: FEWEST,
                warmup: 1,
                ..RunOptions::default()
            },
            turn: Duration::from_millis(match clock {
                Clock::Native => 2,
                Clock::Paced => 20,
            }),
            verified: false,
            times: Vec::new(),
        })
    }

    fn turn(&mut self, team: &mut Team, warnings: &mut Vec<String>) -> Result<()> {
        if !self.verified {
            self.first_turn(team, warnings)?;
        }
        let outcome = team.run(&self.schedule, &self.data, &self.sum, &self.options)?;
        #[expect(clippy::cast_precision_loss, reason = "a time below 2^53 ns")]
        self.times.push(outcome.wall.value_at_quantile(0.5) as f64);
        Ok(())
    }

    /// Verifies, and finds out how many repetitions fit a turn.
    fn first_turn(&mut self, team: &mut Team, warnings: &mut Vec<String>) -> Result<()> {
        const MOST: usize = 500;
        let start = Instant::now();
        let outcome = team.run(&self.schedule, &self.data, &self.sum, &self.options)?;
        let runs = self.options.repetitions + self.options.warmup;
        let one = start.elapsed().as_nanos() / runs as u128;
        let fit = usize::try_from(self.turn.as_nanos() / one.max(1)).unwrap_or(MOST);
        self.options.repetitions = fit.clamp(self.options.repetitions, MOST);
        let (collective, layout) = (self.schedule.collective(), self.schedule.layout());
        if outcome.outputs != oracle(collective, layout, &self.sum, &self.data)? {
            return Err(Error::wrong(format!(
                "{} over {} ranks gave a wrong result",
                collective.kind().name(),
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

const fn best(kind: Kind, size: Size) -> Call {
    Call {
        kind,
        by: By::Best,
        size,
        part: Part::Once,
        times_ranks: 1,
        free_computation: false,
    }
}

const fn part(part: Part, call: Call) -> Call {
    Call { part, ..call }
}

const fn twice_the_ranks(call: Call) -> Call {
    Call {
        times_ranks: 2,
        ..call
    }
}

const fn by(by: By, call: Call) -> Call {
    Call { by, ..call }
}

const fn free(call: Call) -> Call {
    Call {
        free_computation: true,
        ..call
    }
}

/// What must hold within one collective.
macro_rules! within {
    ($kind:ident, $name:literal, $size:ident) => {
        [
            Guideline {
                name: concat!($name, "(m) <= ", $name, "(2m)"),
                left: &[best(Kind::$kind, Size::$size)],
                right: &[part(Part::Twice, best(Kind::$kind, Size::$size))],
                statement: "less data does not take longer: it could be padded",
            },
            Guideline {
                name: concat!($name, "(m) <= 2 ", $name, "(m/2)"),
                left: &[best(Kind::$kind, Size::$size)],
                right: &[
                    part(Part::FirstHalf, best(Kind::$kind, Size::$size)),
                    part(Part::SecondHalf, best(Kind::$kind, Size::$size)),
                ],
                statement: "one call does not take longer than one call for each half of the data",
            },
            Guideline {
                name: concat!($name, "(p) <= ", $name, "(2p)"),
                left: &[best(Kind::$kind, Size::$size)],
                right: &[twice_the_ranks(best(Kind::$kind, Size::$size))],
                statement: "fewer ranks do not take longer for vectors or blocks of the same size",
            },
        ]
    };
}

static WITHIN: [[Guideline; 3]; 9] = [
    within!(Broadcast, "broadcast", All),
    within!(Reduce, "reduce", All),
    within!(Allreduce, "allreduce", All),
    within!(Gather, "gather", Share),
    within!(Scatter, "scatter", Share),
    within!(Allgather, "allgather", Share),
    within!(ReduceScatter, "reduce_scatter", Shares),
    within!(Alltoall, "alltoall", Share),
    within!(Scan, "scan", All),
];

const BROADCAST: Call = best(Kind::Broadcast, Size::All);
const REDUCE: Call = best(Kind::Reduce, Size::All);
const ALLREDUCE: Call = best(Kind::Allreduce, Size::All);
const GATHER: Call = best(Kind::Gather, Size::Share);
const SCATTER: Call = best(Kind::Scatter, Size::Share);
const ALLGATHER: Call = best(Kind::Allgather, Size::Share);
const REDUCE_SCATTER: Call = best(Kind::ReduceScatter, Size::Shares);
const ALLTOALL: Call = best(Kind::Alltoall, Size::Share);

static BETWEEN: &[Guideline] = &[
    Guideline {
        name: "broadcast <= binomial",
        left: &[BROADCAST],
        right: &[by(By::Whole("binomial"), BROADCAST)],
        statement: "what is chosen does not take longer than the plain tree",
    },
    Guideline {
        name: "broadcast <= unsegmented chain",
        left: &[BROADCAST],
        right: &[by(By::Whole("chain"), BROADCAST)],
        statement: "what is chosen does not take longer than passing the whole vector on",
    },
    Guideline {
        name: "reduce <= binomial",
        left: &[REDUCE],
        right: &[by(By::Whole("binomial"), REDUCE)],
        statement: "what is chosen does not take longer than the plain tree",
    },
    Guideline {
        name: "reduce <= unsegmented chain",
        left: &[REDUCE],
        right: &[by(By::Whole("chain"), REDUCE)],
        statement: "what is chosen does not take longer than passing the whole vector on",
    },
    Guideline {
        name: "broadcast <= reduce",
        left: &[BROADCAST],
        right: &[REDUCE],
        statement: "a reduction run backwards is a broadcast, and combines nothing",
    },
    Guideline {
        name: "reduce, gamma = 0 <= broadcast",
        left: &[free(REDUCE)],
        right: &[BROADCAST],
        statement: "a broadcast run backwards is a reduction, which takes no longer if combining is free",
    },
    Guideline {
        name: "broadcast <= scatter + allgather",
        left: &[BROADCAST],
        right: &[SCATTER, ALLGATHER],
        statement: "the root can deal out the vector, and all ranks gather it",
    },
    Guideline {
        name: "broadcast <= allreduce",
        left: &[BROADCAST],
        right: &[ALLREDUCE],
        statement: "all ranks but the root can contribute zeros",
    },
    Guideline {
        name: "reduce <= allreduce",
        left: &[REDUCE],
        right: &[ALLREDUCE],
        statement: "all ranks but the root can drop the result",
    },
    Guideline {
        name: "reduce <= reduce_scatter + gather",
        left: &[best(Kind::Reduce, Size::Shares)],
        right: &[REDUCE_SCATTER, GATHER],
        statement: "the root can gather the blocks of the result",
    },
    Guideline {
        name: "allreduce <= reduce + broadcast",
        left: &[ALLREDUCE],
        right: &[REDUCE, BROADCAST],
        statement: "the root can send the result to all ranks",
    },
    Guideline {
        name: "allreduce <= reduce_scatter + allgather",
        left: &[best(Kind::Allreduce, Size::Shares)],
        right: &[REDUCE_SCATTER, ALLGATHER],
        statement: "all ranks can gather the blocks of the result",
    },
    Guideline {
        name: "reduce_scatter <= reduce + scatter",
        left: &[REDUCE_SCATTER],
        right: &[best(Kind::Reduce, Size::Shares), SCATTER],
        statement: "the root can deal out the result",
    },
    Guideline {
        name: "reduce_scatter <= allreduce",
        left: &[REDUCE_SCATTER],
        right: &[best(Kind::Allreduce, Size::Shares)],
        statement: "every rank can keep its block of the result alone",
    },
    Guideline {
        name: "gather <= allgather",
        left: &[GATHER],
        right: &[ALLGATHER],
        statement: "all ranks but the root can drop the blocks",
    },
    Guideline {
        name: "gather <= reduce",
        left: &[GATHER],
        right: &[best(Kind::Reduce, Size::Shares)],
        statement: "every rank can contribute its block among zeros",
    },
    Guideline {
        name: "scatter <= broadcast",
        left: &[SCATTER],
        right: &[best(Kind::Broadcast, Size::Shares)],
        statement: "every rank can keep its block alone",
    },
    Guideline {
        name: "allgather <= gather + broadcast",
        left: &[ALLGATHER],
        right: &[GATHER, best(Kind::Broadcast, Size::Shares)],
        statement: "the root can send all blocks to all ranks",
    },
    Guideline {
        name: "allgather <= alltoall",
        left: &[ALLGATHER],
        right: &[ALLTOALL],
        statement: "every rank can send the same block to all ranks",
    },
    Guideline {
        name: "allgather <= allreduce",
        left: &[ALLGATHER],
        right: &[best(Kind::Allreduce, Size::Shares)],
        statement: "every rank can contribute its block among zeros",
    },
    Guideline {
        name: "gather <= gatherv",
        left: &[GATHER],
        right: &[by(By::Irregular, GATHER)],
        statement: "equal blocks can be gathered as if they were not",
    },
    Guideline {
        name: "gatherv <= allreduce(1) + gather(max)",
        left: &[by(By::Irregular, GATHER)],
        right: &[best(Kind::Allreduce, Size::One), GATHER],
        statement: "ranks can agree on the largest block and pad all others to its size",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn model(ports: Ports, cost: CostModel, ranks: &[usize], sizes: &[u64]) -> Report {
        evaluate(&Setting::new(ports, cost), ranks, sizes, |_, _| {}).unwrap()
    }

    #[test]
    fn hold_in_the_model() {
        for (ports, most) in [(Ports::BI, 4096), (Ports::UNI, 64)] {
            for (alpha, gamma) in [(1000.0, 0.0), (1000.0, 0.1), (0.0, 0.5), (10.0, 1.0)] {
                let cost = CostModel::new(alpha, 0.1).gamma(gamma);
                let report = model(ports, cost, &[1, 2, 5, 6], &[0, 1, 33, most]);
                // On one port, the parts of two algorithms may do better together than any one allreduce.
                let mixed = |r: &Row| {
                    ports == Ports::UNI
                        && r.guideline.name.starts_with("allreduce <= ")
                        && r.guideline.right.len() == 2
                        && r.excess() < 0.1
                };
                let violated = report.rows.iter().filter(|r| !r.holds && !mixed(r));
                let violated: Vec<_> = violated.collect();
                assert!(
                    violated.is_empty(),
                    "{ports:?} alpha {alpha}: {violated:#?}"
                );
                assert!(report.rows.len() >= 10 * 16);
            }
        }
    }

    #[test]
    fn every_guideline_is_evaluated_or_says_why_not() {
        let report = model(Ports::BI, CostModel::new(10.0, 1.0), &[4], &[100]);
        for guideline in all() {
            let rows = report.rows.iter();
            let rows = rows.filter(|r| r.guideline.name == guideline.name).count();
            let lacks = report.unavailable.iter();
            let lacks = lacks.filter(|u| u.guideline == guideline.name).count();
            assert_eq!((rows, lacks), (1 - lacks, lacks), "{}", guideline.name);
            let calls = guideline.left.iter().chain(guideline.right);
            let registered = calls.clone().all(|c| registry::of(c.kind).next().is_some());
            assert_eq!(rows == 1, registered, "{}", guideline.name);
        }
        let names: std::collections::HashSet<_> = all().map(|g| g.name).collect();
        assert_eq!(names.len(), all().count());
    }

    #[test]
    fn times_are_those_of_the_calls() {
        // Two ranks exchange one message: alpha + beta m, and gamma m where it is combined.
        let cost = CostModel::new(10.0, 1.0).gamma(0.5);
        let report = model(Ports::UNI, cost, &[2], &[100]);
        let row = |name| {
            report
                .rows
                .iter()
                .find(|r| r.guideline.name == name)
                .unwrap()
        };
        for (name, left, right) in [
            ("broadcast(m) <= broadcast(2m)", 110.0, 210.0),
            ("broadcast(m) <= 2 broadcast(m/2)", 110.0, 120.0),
            ("reduce <= binomial", 160.0, 160.0),
            ("broadcast <= reduce", 110.0, 160.0),
            ("reduce, gamma = 0 <= broadcast", 110.0, 110.0),
        ] {
            let row = row(name);
            assert_eq!((row.left, row.right), (left, right), "{name}: {row:?}");
            assert!(row.holds);
        }
        assert_eq!(row("broadcast <= reduce").excess(), 110.0 / 160.0 - 1.0);
    }

    #[test]
    fn a_violation_is_one_beyond_the_tolerance() {
        let setting = Setting::new(Ports::BI, CostModel::new(10.0, 1.0));
        let mut plans = Plans::new(&setting);
        let guideline = all().find(|g| g.name == "reduce <= binomial").unwrap();
        let one = Compared {
            guideline,
            ranks: 6,
            bytes: 100,
            sides: plans.sides(guideline, 6, 100).unwrap(),
        };
        let left = one.sides[0][0];
        for (excess, model, measured) in [
            (-0.5, true, true),
            (0.0, true, true),
            (0.05, false, true),
            (0.2, false, false),
        ] {
            let time = |plan| if plan == left { 1.0 + excess } else { 1.0 };
            let rows = [None, Some(Clock::Native)].map(|clock| plans.row(&one, clock, time));
            assert_eq!(rows.each_ref().map(|r| r.holds), [model, measured]);
            assert!((rows[0].excess() - excess).abs() < 1e-12);
        }
    }

    #[test]
    fn measured_times_too() {
        let setting = Setting {
            clock: Some(Clock::Native),
            measured_tolerance: 1e9,
            ..Setting::new(Ports::BI, CostModel::new(200.0, 0.05))
        };
        let mut last = (0, 0);
        let report = evaluate(&setting, &[2], &[4096], |done, of| last = (done, of)).unwrap();
        assert!(last.1 > 0 && last.0 == last.1);
        assert!(report.holds());
        let measured: Vec<_> = report.rows.iter().filter(|r| r.clock.is_some()).collect();
        assert_eq!(2 * measured.len() + 1, report.rows.len());
        assert!(measured.iter().all(|r| r.left > 0.0 && r.right > 0.0));
    }
}
