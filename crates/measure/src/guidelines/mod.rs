//! Performance guidelines: a collective must not be slower than a combination of other collectives
//! that does the same.
//!
//! Source: Träff, Gropp, Thakur, *Self-consistent MPI performance guidelines*, 2010. For example,
//! if a broadcast takes longer than a scatter followed by an allgather, the library should use the
//! latter. A violation shows what to improve (an algorithm, or the choice among algorithms) without
//! a comparison with any other library.
//!
//! [`all`] is the table of guidelines. A [`Guideline`] has two sides, each a list of calls that are
//! made one after another. For `p` ranks and `m` bytes the left side must not take longer than the
//! right side. Each call uses the registered algorithm that is fastest in the model, with its best
//! segments. A guideline with a collective that has no registered algorithm is reported as
//! unavailable.
//!
//! [`evaluate`] compares model times exactly. Local copies are free there, because some collectives
//! have their blocks in place and others do not. On request it also compares measured times, on
//! threads or in another place ([`evaluate_on`]). The measurements of both sides are interleaved,
//! so that a disturbance affects both. The time of a call is the median over its batches of each
//! batch's median, with an interval that contains it with 95% confidence.
//!
//! Over an MPI library the same table judges the library itself: its own functions perform the
//! calls, but for those of a certain algorithm, which remain schedules.

mod plans;
mod table;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use self::plans::{CallTime, Compared, Plans};
pub use self::table::all;

use oneport::Distribution;
use oneport::error::{Error, Result};
use oneport::machine::{CostModel, Ports};
use oneport::plan::choose::LeftOut;
use oneport::run::{Clock, Place, Teams};
use oneport::schedule::collective::Kind;

/// A guideline: two sides and the reason why the left one must not be slower.
#[derive(Debug)]
pub struct Guideline {
    /// Its name: the two sides in short form.
    pub name: &'static str,
    /// The calls that must not take longer ...
    pub left: &'static [Call],
    /// ... than these calls.
    pub right: &'static [Call],
    /// The reason.
    pub statement: &'static str,
}

/// A collective operation in a guideline for `p` ranks and `m` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Call {
    /// The collective.
    pub kind: Kind,
    /// The algorithm that performs it.
    pub by: By,
    /// The size it is performed for.
    pub size: Size,
    /// The part or multiple of that size.
    pub scaling: Scaling,
    /// The number of ranks, as a multiple of `p`.
    pub times_ranks: usize,
    /// Whether it is made once for each rank: the time is that of `p` calls to one root.
    pub for_each_rank: bool,
    /// Whether combining costs nothing. Such calls exist in the model only.
    pub free_computation: bool,
}

/// The algorithm that performs a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum By {
    /// The algorithm that is fastest in the model, with the segments that are best there.
    Best,
    /// This algorithm, with the whole vector as one segment.
    Whole(&'static str),
    /// The best algorithm for blocks of different sizes.
    Irregular,
}

/// The size of a call: of the vector, or of each rank's block if every rank has a block of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Size {
    /// `m`.
    All,
    /// The `p`-th part of `m`, rounded up.
    Share,
    /// `p` times the `p`-th part of `m`, rounded up.
    Shares,
    /// One byte: in the model, the cost of agreeing on a number.
    One,
}

/// A part or multiple of a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scaling {
    /// The size itself.
    Once,
    /// Twice the size.
    Twice,
    /// One half, rounded up.
    FirstHalf,
    /// The other half.
    SecondHalf,
}

/// Options of an evaluation.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The ports of a rank; algorithms for other ports are left out.
    pub ports: Ports,
    /// The cost model that determines model times and the choice of algorithms and segments. In
    /// nanoseconds if times are measured.
    pub cost: CostModel,
    /// Also measure, with this clock.
    pub clock: Option<Clock>,
    /// By how much a left side may be slower in the model: 0.01 means 1%.
    pub tolerance: f64,
    /// The same for measured times.
    pub measured_tolerance: f64,
    /// How long a rank waits for a partner in a measurement.
    pub deadline: Duration,
    /// Whether nothing writes the inputs between timed repetitions: see `Run::keep_inputs`.
    pub keep_inputs: bool,
    /// When the ranks arrive, by their number; calls of other numbers of ranks are not available.
    /// The model time of a call is that after its last arrival.
    pub arrivals: Option<BTreeMap<usize, Vec<f64>>>,
    /// Whether to measure the library's own collectives, too, where ranks are processes.
    pub library: bool,
    /// The collectives to judge, all if there are none: those on left sides.
    pub kinds: Vec<Kind>,
    /// How long each call is measured.
    pub effort: Effort,
    /// The sizes of the blocks of calls for blocks of different sizes, whose average is that of the
    /// guideline; equal ones if there is none. Guidelines that need equal blocks are then
    /// unavailable, and what pads blocks pads them to the largest one.
    pub blocks: Option<BlockSizes>,
}

/// A distribution of block sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockSizes {
    /// The distribution.
    pub distribution: Distribution,
    /// How uneven it is.
    pub rho: usize,
    /// Where its random sizes start from.
    pub seed: u64,
}

/// How long the calls of guidelines are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Some milliseconds each.
    Short,
    /// This number of repetitions each.
    Repetitions(usize),
    /// About this time for all together.
    Budget(Duration),
}

/// The result of an evaluation.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Evaluation {
    /// One row for each guideline, number of ranks and size: first the model times, then the
    /// measured times.
    pub rows: Vec<Comparison>,
    /// Guidelines that could not be evaluated, with the reasons.
    pub unavailable: Vec<Unavailable>,
    /// What the searches for the calls left out, by the algorithm that was chosen: with it a call
    /// might take less time.
    pub left_out: Vec<(Cow<'static, str>, LeftOut)>,
    /// Warnings about the quality of the measured times.
    pub warnings: Vec<String>,
}

/// A guideline that could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, schemars::JsonSchema, serde::Serialize)]
pub struct Unavailable {
    /// Its name.
    pub guideline: &'static str,
    /// The reason.
    pub reason: String,
}

/// Who performs the calls of a guideline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Performer {
    /// Schedules.
    Schedules,
    /// The functions of the library that connects the processes. Calls of a certain algorithm
    /// ([`By::Whole`]) are schedules nevertheless.
    Library,
}

impl Performer {
    /// `schedules` or `library`.
    pub fn name(self) -> &'static str {
        match self {
            Performer::Schedules => "schedules",
            Performer::Library => "library",
        }
    }
}

/// One comparison of the two sides of a guideline. Model times are in the unit of the costs,
/// measured times in nanoseconds.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The guideline.
    pub guideline: &'static Guideline,
    /// The clock of measured times; `None` for model times.
    pub clock: Option<Clock>,
    /// Who performs the calls.
    pub by: Performer,
    /// Number of ranks `p`.
    pub ranks: usize,
    /// Size `m`, in bytes.
    pub bytes: u64,
    /// Time of the left side.
    pub left: f64,
    /// Time of the right side.
    pub right: f64,
    /// The algorithms, or functions of the library, of the left side's calls.
    pub left_by: Vec<Cow<'static, str>>,
    /// Those of the right side's calls.
    pub right_by: Vec<Cow<'static, str>>,
    /// Whether the left side is at most as slow as the right side, within the tolerance.
    pub holds: bool,
    /// The 95% confidence intervals of both sides, if they are measured often enough for one.
    pub intervals: Option<[[f64; 2]; 2]>,
    /// Whether the measurements establish that it holds, or that it does not: it is the same
    /// wherever in their intervals the times are. `None` for model times, which are exact.
    pub settled: Option<bool>,
}

impl Comparison {
    /// By how much the left side is slower: 0.1 means 10%; negative if it is faster.
    pub fn excess(&self) -> f64 {
        if self.left == self.right {
            0.0
        } else {
            self.left / self.right - 1.0
        }
    }
}

impl Evaluation {
    /// Whether every guideline that could be evaluated holds.
    pub fn holds(&self) -> bool {
        self.rows.iter().all(|row| row.holds)
    }

    /// Adds a guideline that could not be evaluated, once for each reason.
    pub fn add_unavailable(&mut self, guideline: &'static str, reason: String) {
        let entry = Unavailable { guideline, reason };
        if !self.unavailable.contains(&entry) {
            self.unavailable.push(entry);
        }
    }

    /// Adds what the search for a call left out, once for each algorithm.
    pub fn add_left_out(&mut self, algorithm: Cow<'static, str>, left_out: LeftOut) {
        let entry = (algorithm, left_out);
        if !self.left_out.contains(&entry) {
            self.left_out.push(entry);
        }
    }
}

impl Setting {
    /// Model times only, without tolerance. The tolerance for measured times is 10%.
    pub fn new(ports: Ports, cost: CostModel) -> Setting {
        Setting {
            ports,
            cost,
            clock: None,
            tolerance: 0.0,
            measured_tolerance: 0.1,
            deadline: Duration::from_secs(10),
            keep_inputs: false,
            arrivals: None,
            library: false,
            kinds: Vec::new(),
            effort: Effort::Short,
            blocks: None,
        }
    }

    /// The guidelines that judge the wanted collectives.
    pub fn guidelines(&self) -> impl Iterator<Item = &'static Guideline> {
        let is_wanted = |call: &Call| self.kinds.is_empty() || self.kinds.contains(&call.kind);
        all().filter(move |guideline| guideline.left.iter().any(is_wanted))
    }
}

impl Guideline {
    /// Whether it is the same for all sizes.
    pub fn has_no_size(&self) -> bool {
        let mut calls = self.left.iter().chain(self.right);
        calls.all(|call| call.size == Size::One)
    }
}

/// Evaluates the guidelines for all these numbers of ranks and sizes in bytes; those that are the
/// same for all sizes for the first one only.
///
/// `progress` is called with the number of finished steps and their total, first for planning and
/// then for measuring. Elements are single bytes, combined by exclusive or. The root is rank
/// `p / 2`. Each different call is planned once, by timing all algorithms that may perform it.
///
/// ```
/// use oneport_measure::guidelines::{Setting, evaluate};
/// use oneport::{CostModel, Ports};
/// let setting = Setting::new(Ports::BI, CostModel::new(1000.0, 0.1));
/// let report = evaluate(&setting, &[4, 8], &[1 << 10, 1 << 20], |_, _| {})?;
/// assert!(report.holds());
/// # Ok::<(), oneport::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Usage`](oneport::ErrorKind::Usage) for 0 ranks or costs that are not valid. If
/// times are measured, also when a team cannot be created, a run fails, or a result is wrong.
pub fn evaluate(
    setting: &Setting,
    ranks: &[usize],
    sizes: &[u64],
    progress: impl FnMut(usize, usize),
) -> Result<Evaluation> {
    evaluate_on(&mut Teams::default(), setting, ranks, sizes, progress)
}

/// As [`evaluate`], measured in a place of one's own, such as the processes of an MPI world.
/// Guidelines for more ranks than that has are unavailable. All processes must call it alike; all
/// get the same evaluation, but for warnings about their own hosts. It fails, too, if the library
/// lacks a function.
pub fn evaluate_on(
    place: &mut impl Place,
    setting: &Setting,
    ranks: &[usize],
    sizes: &[u64],
    mut progress: impl FnMut(usize, usize),
) -> Result<Evaluation> {
    setting.cost.validate()?;
    if ranks.contains(&0) {
        return Err(Error::usage("a collective needs at least one rank"));
    }
    let mut report = Evaluation::default();
    let mut plans = Plans::new(setting);
    let mut compared = Vec::new();
    let of = setting.guidelines().count() * ranks.len() * sizes.len();
    for (i, guideline) in setting.guidelines().enumerate() {
        let different = if guideline.has_no_size() {
            1
        } else {
            sizes.len()
        };
        for (j, &p) in ranks.iter().enumerate() {
            for (k, &m) in sizes.iter().enumerate().take(different) {
                progress((i * ranks.len() + j) * sizes.len() + k, of);
                match plans.sides(guideline, p, m) {
                    Ok(sides) => compared.push(Compared {
                        guideline,
                        ranks: p,
                        bytes: m,
                        sides,
                    }),
                    Err(reason) => report.add_unavailable(guideline.name, reason),
                }
            }
        }
    }
    plans.add_left_out(&mut report);
    let model: Vec<f64> = plans.planned.iter().map(|plan| plan.time).collect();
    for one in &compared {
        let time = |plan: usize| CallTime {
            time: model[plan],
            interval: None,
            by: plans.planned[plan].variant.algorithm.name(),
        };
        let row = plans.row(one, None, Performer::Schedules, time);
        report.rows.push(row);
    }
    let Some(clock) = setting.clock else {
        return Ok(report);
    };
    let max = place.max_ranks();
    compared.retain(|one| {
        let reason = plans.not_measured(one, max);
        let measured = reason.is_none();
        if let Some(reason) = reason {
            report.add_unavailable(one.guideline.name, reason);
        }
        measured
    });
    let sides = compared.iter().flat_map(|one| one.sides.iter().flatten());
    let mut selected: Vec<usize> = sides.map(|&(plan, _)| plan).collect();
    selected.sort_unstable();
    selected.dedup();
    let warnings = &mut report.warnings;
    let times = plans.measured(place, &selected, clock, warnings, &mut progress)?;
    for by in plans.performers() {
        for one in &compared {
            let row = plans.row(one, Some(clock), by, |plan| {
                times[&plans.measure_of(plan, by)].clone()
            });
            report.rows.push(row);
        }
    }
    Ok(report)
}
