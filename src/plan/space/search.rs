//! The search for the fastest variant: [`best_first`].
//!
//! Each algorithm of a [`Space`] is evaluated for the uses of its ports and the roots that it
//! leaves open, with the segments that are best for these. What takes long and has a lower bound,
//! or does not search for segments, is put off: it is evaluated after all others, in the order of
//! the bounds, and not at all where its bound shows that it does not win. What takes too long is
//! left out, or refused ([`Reason::is_of_size`]): a [`Choice`] says so, and commands note it. What
//! is not said stands at [`LeftOut`].
//!
//! A time is that of a closed form, where one holds, and else of a simulation. Commands search in
//! the same way, and then show the time of a simulation.
//!
//! How [`choose`] comes to a time. [`Request::plan_best`] asks it under the costs of a machine, and
//! plans what it chooses. Lines that begin with `?` are taken where they say, those with `*` for
//! each of several:
//!
//! ```text
//! choose                                                                      search.rs
//!   Space::of                           the candidates of the registry        open.rs
//!   best_first
//!   * offer                             each algorithm
//!     ? Evaluator::min_time             if Space::may_take_long: where this lower bound is not 0,
//!                                       or no segments are searched for, it is put off, and nothing
//!                                       follows yet
//!       settled_variant
//!         Evaluator::variants           Space::variants, or fewer: uses of    open.rs
//!                                       the ports, and roots
//!       ? settle                        if there is one
//!       ? fastest_within                if there are several
//!         * settle, with_time           each of them
//!       with_time                       what it comes to
//!   * Evaluator::variants               each that was put off, if its bound may win
//!     fastest_within
//!     * settle                          each of its variants
//!       with_time                       within the best time so far
//!     lower_bound_of                    each of which something was left out: whether it may win
//!   Ranking::fastest                    the first, and how many of these there are
//!
//! settle, an Evaluator's                                                      evaluate.rs
//!   SegmentChoice::settle               the segments of a variant
//!   ? Variant::best_segments            if they are searched for              segments/equal.rs
//!     ? BestSegment::Own                the search of a row, such as uni-greedy's, in place of the
//!                                       next three, unless it returns None
//!     ? TriedSegments::near             BestSegment::Formula: the neighbours of its optimum
//!     ? TriedSegments::search           else, or if that returns None
//!     ? TriedSegments::refine           after the last two: all of few elements, else numbers of
//!                                       segments nearby whose sizes differ by one
//!       * try_split                     each that these try: its closed form, or a simulation, or
//!                                       at most the closed form of a vector rounded up to whole
//!                                       segments, and of the next number of ranks that has one; else
//!                                       it is left out
//!     ? best_both_ways                  if finite and not times_as_used: those that are best on the ports
//!                                       that it is planned for, and a short search on its own
//!   ? Variant::best_unequal_segments    if commands ask: best_segments, then  segments/unequal.rs
//!                                       unequal ones
//!   Settled::time                       Model leaves out a bound (Time::AtMost), so that with_time
//!                                       finds the time, unless that takes too long to simulate
//!
//! with_time                             what no search has timed; what is infinite is refused
//!   Evaluator::time                     of Model: Variant::time_within, and   evaluate.rs
//!                                       infinity where a message has no link
//!
//! Variant::time_within                                                        variant.rs
//! ? Variant::closed_form                the formula of the row that plans it, if one holds; of
//!                                       gathers and out-of-order the time of a plan
//! ? Variant::planned                    else by the row's planner; where ranks are late, some rows
//!                                       are planned twice (for_arrivals)
//!     Algorithm::plan_on_ports          on the used ports, for the root   registry/algorithm.rs
//!       by_planner                      a schedule, or programs or transfers whose steps are not
//!                                       stored
//! ? Planned::timed_within               then: stored before if not times_as_used  registry/planner.rs
//!     simulate::stream_within           all steps, in the order of the lists  simulate/stream.rs
//!     ? Schedule::timed_by_graph        instead, on ports for calls or that ranks share
//! ```
//!
//! For example, a broadcast among 8 ranks of 1 byte with alpha 1000 and beta 0.1: `offer` takes
//! `binomial`, which has one use of its ports and one root, so that `settled_variant` settles one
//! variant. `settle` returns it as it is, since the row does not segment; nothing is known of its
//! time. `with_time` asks `time_within`, whose closed form says 3 rounds of 1000.1: 3000.3.
//!
//! Who else asks: [`with_best_segments`], and with it `segments::best_unequal`, is the same for one
//! algorithm (`fastest_variant`). Commands have an [`Evaluator`] of their own, `TaskEvaluator` in
//! `crates/app/src/task/evaluation.rs`, which says what differs. A native run on known cores may
//! ask the native estimate (`crates/measure/src/estimate/choice.rs`), which has ties of its own.
//! Planners that search for parts are listed at `Planner`. [`Request::time`] begins lower: see
//! `given.rs`.
//!
//! Ties: among times that are equal up to rounding, the first algorithm of the space wins (`wins`,
//! and [`fastest_first`] in `compare`, too), which is the first in the registry for its candidates;
//! of its uses of the ports and roots the first (`first_of_least`); of its segments those that were
//! found first, where one search follows another. Exceptions: the phases of `composed`, for the
//! sake of their bits; and what is compared without regard to rounding, which is equal segments
//! within a search, two plans for late ranks, trees of gathers, and the second phases of the
//! allreduces of split-binary and out-of-order.
//!
//! Limits: algorithms that were put off are evaluated one after another, so that each has the best
//! time before it as its limit. A limit ends a simulation in the order of the lists as soon as a
//! step ends later. One by the graph ends first, and is compared then. Where nodes share ports,
//! commands simulate without a limit. What is planned is accepted ([`Algorithm::accepts`]): the
//! request of the space, before anything is searched for; the searches keep to segments that can be
//! planned (`Variant::max_segments`); `time_within` and `planned` ask for what was chosen.
//!
//! What is timed:
//! - Of one element, or of one rank, the segment is the whole vector.
//! - Where all ranks do the same, links cost the same, the machine is ideal and nothing overlaps,
//!   two ranks stand for all.
//! - Gamma is 0 of what combines nothing: `Algorithm::effective` says so to formulas, and schedules
//!   of these have no steps that combine. Messages of a barrier cost no beta (`Kind::costs`).
//! - Rows that look at late arrivals (`Row::for_arrivals`) are planned with and without these by
//!   [`Variant::planned_with`], which simulates both and takes the faster schedule. Planners that
//!   take times themselves are listed at `Planner`.

use super::evaluate::{Choice, Evaluator, Model, Offer, Settled};
use super::found::{LeftOut, Time, is_better, with_rounding};
use super::open::{Space, Variants, first_of_least};
use super::variant::ANY_TIME;
use crate::error::{Error, Result};
use crate::machine::CostModel;
use crate::plan::Request;
use crate::plan::refusal::{Reason, Refusal};
use crate::plan::registry::Algorithm;
use crate::schedule::Schedule;
use crate::schedule::collective::Kind;

/// Algorithms with their times. Those that were put off and cannot win are not in it.
#[derive(Debug, Clone)]
pub struct Ranking {
    /// Those with a time, fastest first; among times that are equal up to rounding, in the order of
    /// the algorithms.
    pub choices: Vec<Choice>,
    /// Those that were refused, in the order of the algorithms.
    pub refusals: Vec<Refusal>,
    /// Those of which the search [left something out](LeftOut), or which it refused [for
    /// their size](Reason::is_of_size), unless a bound shows that they are not the fastest all the
    /// same.
    pub cut: Vec<Algorithm>,
}

/// Finds the fastest variant of a space, and with it the times of all algorithms that had to be
/// timed for that.
///
/// ```
/// use oneport::plan::space::{Model, Space, best_first};
/// use oneport::Request;
/// let request = Request::scan(8, 1000);
/// let ranking = best_first(&Space::of(&request), &Model);
/// let times: Vec<f64> = ranking.choices.iter().map(|choice| choice.time).collect();
/// let least = times.iter().copied().fold(f64::INFINITY, f64::min);
/// assert!(times[0] <= least * (1.0 + 1e-9));
/// ```
pub fn best_first<E: Evaluator>(space: &Space<'_>, evaluator: &E) -> Ranking {
    let offers = evaluator.each(space, &|algorithm, evaluator| {
        offer(space, algorithm, evaluator)
    });
    let (mut timed, mut put_off, mut refusals) = (Vec::new(), Vec::new(), Vec::new());
    let (mut best, mut cut) = ((f64::INFINITY, 0), Vec::new());
    let mut add = |i: usize, settled: Settled, best: &mut (f64, usize)| {
        if !settled.variant.left_out.is_empty() {
            cut.push(i);
        }
        if let Some(choice) = Choice::of(settled) {
            if wins((choice.time, i), *best) {
                *best = (choice.time, i);
            }
            timed.push((i, choice));
        }
    };
    for (i, offer) in offers.into_iter().enumerate() {
        match offer {
            Ok(Offer::Timed(settled)) => add(i, settled, &mut best),
            Ok(Offer::PutOff(min_time)) => put_off.push((i, min_time)),
            Err(refusal) => refusals.push((i, refusal)),
        }
    }
    put_off.sort_by(|(_, a), (_, b)| f64::total_cmp(a, b));
    for (i, min_time) in put_off {
        if !wins((min_time, i), best) {
            continue;
        }
        let variants = evaluator.variants(&space.algorithms[i], space);
        let limit = with_rounding(best.0);
        match variants.and_then(|all| fastest_within(all, evaluator, limit)) {
            Ok(settled) => add(i, settled, &mut best),
            Err(refusal) => refusals.push((i, refusal)),
        }
    }
    refusals.sort_by_key(|&(i, _)| i);
    let of_size = refusals.iter().filter(|(_, r)| r.reason.is_of_size());
    cut.extend(of_size.map(|&(i, _)| i));
    cut.retain(|&i| {
        wins(
            (lower_bound_of(space, &space.algorithms[i], evaluator), i),
            best,
        )
    });
    cut.sort_unstable();
    timed.sort_by_key(|&(i, _)| i);
    Ranking {
        choices: fastest_first(timed, |(_, choice)| choice.time)
            .into_iter()
            .map(|(_, choice)| choice)
            .collect(),
        refusals: refusals.into_iter().map(|(_, refusal)| refusal).collect(),
        cut: cut
            .into_iter()
            .map(|i| space.algorithms[i].clone())
            .collect(),
    }
}

/// Whether the time of an algorithm with this place is the smaller one of two, or of the earlier
/// algorithm if they are equal: formulas and simulations of the same time differ by rounding
/// errors.
fn wins(a: (f64, usize), b: (f64, usize)) -> bool {
    if a.1 < b.1 {
        !is_better(b.0, a.0)
    } else {
        is_better(a.0, b.0)
    }
}

/// Sorts by time; those whose times differ by no more than rounding errors remain in their order.
pub fn fastest_first<T>(items: Vec<T>, time: impl Fn(&T) -> f64) -> Vec<T> {
    let mut numbered: Vec<(usize, T)> = items.into_iter().enumerate().collect();
    numbered.sort_by(|(_, a), (_, b)| time(a).total_cmp(&time(b)));
    for equal in numbered.chunk_by_mut(|(_, a), (_, b)| !is_better(time(a), time(b))) {
        equal.sort_by_key(|&(i, _)| i);
    }
    numbered.into_iter().map(|(_, item)| item).collect()
}

/// A lower bound of the times of all variants of an algorithm.
fn lower_bound_of<E: Evaluator>(space: &Space<'_>, algorithm: &Algorithm, evaluator: &E) -> f64 {
    evaluator.min_time(&space.open_variant(algorithm))
}

/// The fastest variant of an algorithm, unless finding it takes long.
fn offer<E: Evaluator>(
    space: &Space<'_>,
    algorithm: &Algorithm,
    evaluator: &E,
) -> Result<Offer, Refusal> {
    if space.may_take_long(algorithm) {
        algorithm.accepts(&space.request)?;
        let min_time = lower_bound_of(space, algorithm, evaluator);
        // A search for segments has no limit that could end it.
        if min_time > 0.0 || !space.searches_segments(algorithm) {
            return Ok(Offer::PutOff(min_time));
        }
    }
    let settled = settled_variant(space, algorithm, evaluator)?;
    with_time(settled, evaluator, f64::INFINITY).map(Offer::Timed)
}

/// The fastest variant of an algorithm, with its time.
pub fn fastest_variant<E: Evaluator>(
    space: &Space<'_>,
    algorithm: &Algorithm,
    evaluator: &E,
) -> Result<Choice, Refusal> {
    let settled = settled_variant(space, algorithm, evaluator)?;
    let timed = with_time(settled, evaluator, f64::INFINITY)?;
    Ok(Choice::of(timed).expect(ANY_TIME))
}

/// The variant of an algorithm to plan: the fastest, or the only one, which need not be timed.
pub fn settled_variant<E: Evaluator>(
    space: &Space<'_>,
    algorithm: &Algorithm,
    evaluator: &E,
) -> Result<Settled, Refusal> {
    let mut variants = evaluator.variants(algorithm, space)?;
    match variants.only() {
        Some(only) => evaluator.settle(only, &variants.segments),
        None => fastest_within(variants, evaluator, f64::INFINITY),
    }
}

/// The first of the fastest variants, with what was left out of any; not one of those that are
/// refused. It has no time if all times turn out to be larger than `limit`.
///
/// # Errors
/// The refusal of the first variant if all are refused.
fn fastest_within<E: Evaluator>(
    variants: Variants,
    evaluator: &E,
    limit: f64,
) -> Result<Settled, Refusal> {
    let mut least = limit;
    let mut left_out = Vec::new();
    let timed = variants.each.map(|variant| {
        let settled = evaluator.settle(variant, &variants.segments);
        let settled = settled.and_then(|settled| with_time(settled, evaluator, least));
        let omitted = match &settled {
            Ok(settled) => &settled.variant.left_out[..],
            // For all roots it has the same size.
            Err(refusal) if refusal.reason.is_of_size() => &[LeftOut::Ports],
            Err(_) => &[],
        };
        for &one in omitted {
            if !left_out.contains(&one) {
                left_out.push(one);
            }
        }
        if let Ok(settled) = &settled {
            least = least.min(settled.known_time());
        }
        settled
    });
    let mut fastest = first_of_least(timed, Settled::known_time)?;
    fastest.variant.left_out = left_out;
    Ok(fastest)
}

/// The variant with its time, unless that is not known yet and larger than `limit`.
fn with_time<E: Evaluator>(
    mut settled: Settled,
    evaluator: &E,
    limit: f64,
) -> Result<Settled, Refusal> {
    if settled.time.is_none() {
        settled.time = evaluator.time(&settled.variant, limit)?.map(Time::Exact);
    }
    match settled.time {
        Some(time) if !time.value().is_finite() => {
            Err(settled.variant.refusal(Reason::NoFiniteTime))
        }
        _ => Ok(settled),
    }
}

impl Ranking {
    /// The fastest, with what the search left out of it and of others; `kind` is the collective if
    /// all its algorithms were candidates.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): none can be planned, with the reason for
    /// each.
    pub fn fastest(self, kind: Option<Kind>) -> Result<Choice> {
        if let Some(mut fastest) = self.choices.into_iter().next() {
            let others = self.cut.iter().filter(|cut| **cut != fastest.algorithm);
            let count = others.count();
            let others = (count > 0).then_some(LeftOut::Algorithms { count });
            fastest.variant.left_out.extend(others);
            return Ok(fastest);
        }
        let of = kind.map_or(String::new(), |kind| format!(" for {}", kind.name()));
        let reason = |r: &Refusal| format!("{}: {r}", r.algorithm);
        let mut reasons: Vec<_> = self.refusals.iter().map(reason).collect();
        if reasons.is_empty() {
            reasons.push("none is registered".into());
        }
        let reasons = reasons.join("; ");
        let message = format!("no algorithm{of} can be planned for this: {reasons}");
        Err(Error::usage(message))
    }
}

/// Returns the algorithm of the registry with the minimal model time for `request`. The request's
/// segments only give the size of the vector. Each [candidate](crate::plan::registry::candidates)
/// is timed as by [`with_best_segments`], if it may be the fastest.
///
/// ```
/// use oneport::plan::choose;
/// use oneport::{CostModel, Request};
/// let request = Request::broadcast(8, 1).cost(CostModel::new(1000.0, 0.1));
/// assert_eq!(choose::choose(&request)?.time, 3.0 * 1000.1);
/// # Ok::<(), oneport::Error>(())
/// ```
///
/// # Errors
/// Those of [`Request::validate`]. When no algorithm can be planned for the request; the message
/// contains the reason for each.
pub fn choose(request: &Request) -> Result<Choice> {
    request.validate()?;
    best_first(&Space::of(request), &Model).fastest(Some(request.kind))
}

impl Request {
    /// Plans it by the algorithm and with the segments of minimal model time under `machine`,
    /// which replaces the request's cost model. The request's segments only give the size of the
    /// vector. What the search left out is not said: [`choose`] says it, but for the parts of
    /// algorithms that search for these: see [`LeftOut`](crate::plan::choose::LeftOut).
    pub fn plan_best(&self, machine: &CostModel) -> Result<Schedule> {
        choose(&self.clone().cost(machine.clone()))?.plan()
    }
}

/// Times `algorithm` for `request`, in model time, with the segments that are best in the request's
/// cost model: those of one [size](crate::plan::Segments::of_size) or of a
/// [number](crate::plan::Segments::of_count). The request's own segments only give the size of the
/// vector.
///
/// - Few elements: all sizes and all numbers are compared, if their schedules have at most 2^16
///   transfers together.
/// - Closed form: the best of the integer neighbours of its optimum, and of two sizes more: the
///   smallest that makes as many segments as the larger one, and the smallest that makes at most as
///   many as there are whole ones of the smaller one.
/// - Uni-greedy's reduce and broadcast, where closed forms hold: its own evaluator times all sizes
///   of up to 2^17 elements and all numbers of up to 2^10, and some of longer vectors.
/// - Out-of-order: some are planned. A lower bound of their times selects them, and the best size
///   of uni-greedy is the first of them, unless it is too long to plan. The time of planning limits
///   the comparison of few elements.
/// - The allgatherv of circulant graphs, of unequal blocks and with linear costs: its own search.
/// - The pipelined ring, of equal blocks and with linear costs: one segment. The segmented ring:
///   one segment where a bound shows that parts gain nothing, and, as a limited search, among many
///   ranks.
/// - Other algorithms: a search over the number of segments.
///
/// After a closed form or a search, segments whose sizes differ by one, of the same number and of
/// one more and one less, are tried, in an eighth of the time, or by 2^16 transfers. More than 2^22
/// segments, or those of more than 2^30 transfers, are not considered. Other segments replace those
/// found first only where they are better by more than rounding errors.
/// [`Method`](crate::plan::segments::Method) says how they were found.
///
/// # Errors
/// When the algorithm does not accept the request, or no time in the model is finite.
///
/// # Complexity
/// A closed form takes a few evaluations. A search simulates at most 2^19 transfers at once and
/// `3 * 2^20` in all, beyond one schedule of a single segment; `p` transfers are counted for each
/// segment, of which an allreduce makes twice as many, and what sends a part of each segment from
/// each rank to each, such as a ring, `p` times as many. That holds for each use of the ports and
/// each root that are compared, and an eighth more where ports are used one direction at a time.
///
/// ```
/// use oneport::plan::{choose::with_best_segments, registry};
/// use oneport::{CostModel, Kind, Request};
/// let request = Request::reduce(10, 800).cost(CostModel::new(100.0, 1.0));
/// let chain = with_best_segments(&registry::find(Kind::Reduce, "chain")?, &request)?;
/// assert_eq!((chain.request.get_segments().count(), chain.time), (8, 16.0 * 200.0));
/// # Ok::<(), oneport::Error>(())
/// ```
pub fn with_best_segments(algorithm: &Algorithm, request: &Request) -> Result<Choice, Refusal> {
    fastest_variant(&Space::among([algorithm], request), algorithm, &Model)
}
