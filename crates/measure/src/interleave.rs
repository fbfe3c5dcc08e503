//! Interleaved measurements: a batch of repetitions of each, then the next batch of each, so that a
//! disturbance affects all of them. Everything that is measured here beside something else is
//! measured by this loop.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Duration;

use oneport::error::Result;
use oneport::run::{self, Element, Operator, Outcome, Place, Run, WallTimes};
use oneport::schedule::collective::Kind;
use oneport::schedule::{Schedule, total_len};

/// How the repetitions of one of several interleaved measurements are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Batches {
    /// This number of batches, which share a number of repetitions that is not less.
    Sharing(usize, usize),
    /// This number of batches, each of as many repetitions as fit into a time, at least
    /// [`MIN_FITTING_REPETITIONS`]. A first batch, which does not count, warms up the caches and
    /// shows how long a repetition takes.
    Fitting(usize, Duration),
}

/// Repetitions of a batch whose number follows from the time.
pub(crate) const MIN_FITTING_REPETITIONS: usize = 3;
const MAX_FITTING_REPETITIONS: usize = 500;

impl Batches {
    pub(crate) fn count(self) -> usize {
        match self {
            Batches::Sharing(count, _) | Batches::Fitting(count, _) => count,
        }
    }
}

/// Carries out `batch`, which takes the index of a measurement and a number of repetitions and
/// returns their median in nanoseconds, for each of `measurements` in every round; those with fewer
/// batches than others take part in some rounds. Returns the medians of the batches of each, fewer
/// if `batch` breaks.
///
/// `progress` is called with the number of finished batches and their total.
pub(crate) fn interleaved(
    measurements: &[Batches],
    mut batch: impl FnMut(usize, usize) -> Result<ControlFlow<(), u64>>,
    mut progress: impl FnMut(usize, usize),
) -> Result<Vec<Vec<f64>>> {
    let rounds = measurements.iter().map(|batches| batches.count()).max();
    let rounds = rounds.unwrap_or(0);
    let all = rounds * measurements.len();
    let mut medians = vec![Vec::new(); measurements.len()];
    let mut fitting = vec![None; measurements.len()];
    for round in 0..rounds {
        let part_of = |all: usize| all * (round + 1) / rounds - all * round / rounds;
        for (i, &batches) in measurements.iter().enumerate() {
            progress(round * measurements.len() + i, all);
            let repetitions = match batches {
                Batches::Sharing(_, repetitions) => part_of(repetitions),
                Batches::Fitting(count, _) if part_of(count) == 0 => 0,
                Batches::Fitting(_, time) => match fitting[i] {
                    Some(fitting) => fitting,
                    None => {
                        let ControlFlow::Continue(one) = batch(i, MIN_FITTING_REPETITIONS)? else {
                            return Ok(medians);
                        };
                        // The preparation of a repetition takes about as long. All processes find
                        // the same.
                        let fit = time.as_nanos() / u128::from(2 * one.max(1));
                        let fit = usize::try_from(fit).unwrap_or(MAX_FITTING_REPETITIONS);
                        *fitting[i]
                            .insert(fit.clamp(MIN_FITTING_REPETITIONS, MAX_FITTING_REPETITIONS))
                    }
                },
            };
            if repetitions > 0 {
                match batch(i, repetitions)? {
                    ControlFlow::Continue(median) => medians[i].push(median as f64),
                    ControlFlow::Break(()) => return Ok(medians),
                }
            }
        }
    }
    progress(all, all);
    Ok(medians)
}

/// Test inputs. Schedules of one collective whose inputs have the same lengths share them.
#[derive(Debug)]
pub(crate) struct Inputs<T>(HashMap<Lengths, Rc<Vec<Vec<T>>>>);

/// A collective, and by rank the number of elements of its input.
type Lengths = (Kind, Vec<usize>);

impl<T: Element> Inputs<T> {
    pub(crate) fn new() -> Self {
        Inputs(HashMap::new())
    }

    pub(crate) fn of(&mut self, schedule: &Schedule, operator: &Operator<T>) -> Rc<Vec<Vec<T>>> {
        let (collective, layout) = (schedule.collective(), schedule.layout());
        let lengths = layout.iter().map(|l| total_len(&l.input)).collect();
        let known = self.0.entry((collective.kind(), lengths));
        let inputs = known.or_insert_with(|| Rc::new(run::inputs(collective, layout, operator)));
        Rc::clone(inputs)
    }
}

/// What was measured of a schedule, or of the library's own function in its place: an
/// [`Outcome`] without data.
#[derive(Debug, Clone)]
pub struct MeasuredRun {
    /// The library's function, if it did the work.
    pub function: Option<&'static str>,
    /// Wall-clock times of all repetitions.
    pub wall: WallTimes,
    /// The first wrong element, if there was one and the run was verified.
    pub error: Option<String>,
    /// What a reader of the times should know.
    pub warnings: Vec<String>,
    /// As [`Outcome::model_time`].
    pub model_time: f64,
    /// As [`Outcome::pinned`].
    pub pinned: bool,
    /// As [`Outcome::oversubscribed`].
    pub oversubscribed: bool,
    /// As [`Outcome::eager`].
    pub eager: bool,
    /// As [`Outcome::percent_by_others`], the most of all batches.
    pub percent_by_others: Option<u64>,
    /// As [`Outcome::compared_bits`], of the first batch.
    pub compared_bits: usize,
    /// As [`Outcome::step_times`], of the first batch.
    pub step_times: Option<Vec<Vec<(u64, u64)>>>,
}

impl<T: Element> From<Outcome<T>> for MeasuredRun {
    fn from(outcome: Outcome<T>) -> MeasuredRun {
        MeasuredRun {
            function: outcome.function,
            wall: outcome.wall,
            error: outcome.mismatch.map(|mismatch| format!("{mismatch:#}")),
            warnings: outcome.warnings,
            model_time: outcome.model_time,
            pinned: outcome.pinned,
            oversubscribed: outcome.oversubscribed,
            eager: outcome.eager,
            percent_by_others: outcome.percent_by_others,
            compared_bits: outcome.compared_bits,
            step_times: outcome.step_times,
        }
    }
}

impl MeasuredRun {
    /// Adds the repetitions of a later batch.
    pub fn add(&mut self, later: MeasuredRun) -> Result<()> {
        self.wall.add(&later.wall)?;
        self.error = self.error.take().or(later.error);
        self.percent_by_others = self.percent_by_others.max(later.percent_by_others);
        // Warnings of one run differ in figures at most.
        if self.warnings.len() < later.warnings.len() {
            self.warnings = later.warnings;
        }
        Ok(())
    }

    /// The time of each repetition in nanoseconds, ascending: 0.1% wide, but for the extremes.
    pub fn times(&self) -> Vec<u64> {
        let repeated = self.wall.distribution().map(|(ns, count)| {
            let count = usize::try_from(count).unwrap_or(1);
            std::iter::repeat_n(ns, count)
        });
        repeated.flatten().collect()
    }
}

/// Something whose repetitions are timed: a [`Run`] of any element type.
pub trait Measurable {
    /// The number of timed repetitions.
    fn get_repetitions(&self) -> usize;

    /// Carries out `repetitions` of them. After a first batch, `again` leaves out the data that
    /// show the order of combining.
    ///
    /// # Errors
    /// As [`Run::on`].
    fn batch(&self, place: &mut dyn Place, repetitions: usize, again: bool) -> Result<MeasuredRun>;
}

impl<T: Element> Measurable for Run<'_, T> {
    fn get_repetitions(&self) -> usize {
        self.get_repetitions()
    }

    fn batch(&self, place: &mut dyn Place, repetitions: usize, again: bool) -> Result<MeasuredRun> {
        let run = self.clone().repetitions(repetitions);
        let run = if again { run.exact_alone() } else { run };
        Ok(run.on(place)?.into())
    }
}

impl<M: Measurable + ?Sized> Measurable for Box<M> {
    fn get_repetitions(&self) -> usize {
        (**self).get_repetitions()
    }

    fn batch(&self, place: &mut dyn Place, repetitions: usize, again: bool) -> Result<MeasuredRun> {
        (**self).batch(place, repetitions, again)
    }
}

/// Carries out several runs interleaved: a batch of the repetitions of each, then the next batch of
/// each. Returns the row of each, with the times of all its batches.
///
/// `progress` is called with the number of finished batches and their total. The repetitions that
/// are not timed ([`Run::warmup`]) precede every batch.
///
/// ```
/// use oneport_measure::interleave;
/// use oneport::run::{Op, Run, Teams};
/// use oneport::Request;
///
/// let (binomial, chain) = (
///     Request::reduce(2, 1000).plan("binomial")?,
///     Request::reduce(2, 1000).plan("chain")?,
/// );
/// let run = |schedule| Run::<f32>::new(schedule).op(Op::SUM).verified().repetitions(25);
/// let runs = [run(&binomial), run(&chain)];
/// let rows = interleave(&mut Teams::default(), &runs, |_, _| {})?;
/// assert!(rows.iter().all(|row| row.error.is_none() && row.wall.count() == 25));
/// # Ok::<(), oneport::Error>(())
/// ```
///
/// # Errors
/// As [`Run::on`], of the first run that fails.
pub fn interleave(
    place: &mut dyn Place,
    runs: &[impl Measurable],
    progress: impl FnMut(usize, usize),
) -> Result<Vec<MeasuredRun>> {
    /// Number of batches that share the repetitions of a run, unless these are fewer.
    const MAX_BATCHES: usize = 10;
    let given = runs.iter().map(|run| {
        // A run without repetitions is carried out, and refused there.
        let repetitions = run.get_repetitions().max(1);
        Batches::Sharing(repetitions.min(MAX_BATCHES), repetitions)
    });
    let mut rows: Vec<Option<MeasuredRun>> = runs.iter().map(|_| None).collect();
    let one_batch = |i: usize, repetitions: usize| {
        let repetitions = repetitions.min(runs[i].get_repetitions());
        let batch = runs[i].batch(place, repetitions, rows[i].is_some())?;
        let median = batch.wall.median_ns();
        match &mut rows[i] {
            None => rows[i] = Some(batch),
            Some(row) => row.add(batch)?,
        }
        Ok(ControlFlow::Continue(median))
    };
    interleaved(&given.collect::<Vec<_>>(), one_batch, progress)?;
    Ok(rows.into_iter().flatten().collect())
}

/// Tries `library`, a run [by a library](Run::by_library), with one repetition. Returns why the
/// place has no such function or operator; `None` if it has.
///
/// # Errors
/// As [`Run::on`], but where there is no such function.
pub fn without_library(place: &mut dyn Place, library: &dyn Measurable) -> Result<Option<String>> {
    match library.batch(place, 1, false) {
        Ok(_) => Ok(None),
        // All processes find it alike.
        Err(error) if error.is_usage() => Ok(Some(error.to_string())),
        Err(error) => Err(error),
    }
}
