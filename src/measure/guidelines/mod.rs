//! Performance guidelines: what must hold between collectives, because one can be done by means of
//! others.
//!
//! Source: Träff, Gropp, Thakur, *Self-consistent MPI performance guidelines*, 2010. A library in
//! which a broadcast takes longer than a scatter followed by an allgather would better do just
//! that; a violation shows what to mend (an algorithm, or the choice among algorithms)
//! without a comparison with anything else.
//!
//! [`all`] is the table. A [`Guideline`] has two sides, each a list of calls that are made one
//! after another; for `p` ranks and `m` bytes the left side must not take longer than the right
//! one. A call is performed by the algorithm that is the fastest in the model among those
//! registered, with its best segments. So a guideline whose collectives nobody has registered yet
//! is reported as not available, and is checked as soon as they are.
//!
//! [`evaluate`] compares times in the model, exactly, with local copies for free (some collectives
//! have their blocks in place, others not); and, if asked to, times measured on a live team: the
//! two sides' calls take turns, so that a disturbance meets both, and each call counts with the
//! median over its turns of a turn's median.

mod plans;
mod probe;
mod table;

use std::time::Duration;

use self::plans::{Compared, Plans};
pub use self::table::all;

use crate::collective::Kind;
use crate::cost::{CostModel, Ports};
use crate::error::{Error, Result};
use crate::run::Clock;

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

/// The size of a call: of the vector, or of each rank's block where every rank contributes or gets
/// one of its own.
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
    /// The cost model of model times, by which algorithms and segments are chosen; in nanoseconds
    /// for measured times.
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

/// Checks all guidelines for all these numbers of ranks and sizes in bytes.
///
/// `progress` is told how much is done, of how much, of the plans and then of the measurements.
/// Elements are single bytes, combined by sums; roots are rank `p / 2`.
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
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for 0 ranks or costs that are none; when a team
/// cannot be had, a run fails, or its data is wrong.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::registry;

    fn model(ports: Ports, cost: CostModel, ranks: &[usize], sizes: &[u64]) -> Report {
        evaluate(&Setting::new(ports, cost), ranks, sizes, |_, _| {}).unwrap()
    }

    #[test]
    fn hold_in_the_model() {
        for (ports, most) in [(Ports::BI, 4096), (Ports::UNI, 64)] {
            for (alpha, gamma) in [(1000.0, 0.0), (1000.0, 0.1), (0.0, 0.5), (10.0, 1.0)] {
                let cost = CostModel::new(alpha, 0.1).gamma(gamma);
                let report = model(ports, cost, &[1, 2, 5, 6], &[0, 1, 33, most]);
                // On one port, the parts of two algorithms may do better together than any one
                // allreduce.
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
