//! The search for the fastest variant: [`best_first`].
//!
//! Each algorithm of a [`Space`] is evaluated for all uses of its ports and all roots, with the
//! segments that are best for these. What takes long and has a lower bound, or does not search for
//! segments, is put off: it is evaluated after all others, in the order of the bounds, and not at
//! all where its bound shows that it does not win. What takes too long is left out, or refused
//! ([`Reason::is_of_size`]): a [`Choice`] says so, and commands note it. What is not said stands at
//! [`LeftOut`].
//!
//! How [`Request::plan_best`] comes to a time; what is in brackets is asked where it is needed:
//!
//! ```text
//! choose
//!   Space::of                           the candidates of the registry        space.rs
//!   best_first
//!     offer                             each algorithm
//!       Space::puts_off                 then Evaluator::min_time is its offer space.rs
//!       variant_to_plan                 its only variant, or the fastest
//!         Evaluator::variants           uses of the ports, and roots          space.rs
//!         EVALUATE                      [of each variant, fastest_within]
//!     fastest_within                    [each that was put off and may win: of each variant]
//!       EVALUATE                        within the best time so far
//!   Ranking::best                       the fastest, and what was left out
//!
//! EVALUATE
//!   Evaluator::settle                   the segments of a variant             evaluate.rs
//!     SegmentChoice::choose_for
//!       Variant::best_segments          [a search for them]                   segments/equal.rs
//!         TriedSegments::try_split      by the closed form, else TIME, else at most that of a
//!                                       vector rounded up to whole segments
//!         BestSegment::Own              [or a search of the row's own]        registry/row.rs
//!   with_time                           [no search has found its time]
//!     Evaluator::time                   TIME                                  evaluate.rs
//!
//! TIME, Variant::time_within                                                  variant.rs
//!   Variant::closed_form                the formula of the row that plans it
//!   Variant::planned                    [no formula holds] a stored schedule,
//!                                       or programs, made as they are timed   registry/planner.rs
//!   Planned::timed_within                                                     registry/planner.rs
//!     simulate::stream_within           in the order of the lists, or by the graph of the steps
//!                                       where transfers wait for other ranks' simulate/stream.rs
//! ```
//!
//! - A limit ends a simulation in the order of the lists as soon as the time is larger. One by the
//!   graph ends first, and is compared then; so does that of ports that nodes share, a command's.
//! - Where a variant takes another time on its ports than on those that it is planned for
//!   (`takes_time_of_used`), the best segments for these are timed on its own ports, and a short
//!   search follows (`improved`).
//! - Where all ranks do the same, links and machine are ideal and nothing overlaps, two ranks are
//!   simulated for all.
//! - A closed form's messages cost what `CostModel::slowest_transfer` says, and gamma is 0 of what
//!   combines nothing (`Algorithm::effective`).
//! - Rows that look at late arrivals (`Row::for_arrivals`) are planned with and without these by
//!   [`Variant::planned_on`], which simulates both and takes the faster schedule. Planners that
//!   take times themselves are listed at `Planner`.
//!
//! Commands have an [`Evaluator`] of their own: `Evaluation` in `crates/app/src/task/evaluation.rs`
//! says what differs. A native run on known cores may ask the native estimate
//! (`crates/measure/src/estimate/choice.rs`). [`Request::time`] begins lower, with the segments of
//! the request: [`Algorithm::time`] takes the best of the row's [`variants`], a use of the ports
//! and a root each, by TIME.
//!
//! Among times that are equal up to rounding, the first in the order of the registry wins (`wins`,
//! and [`fastest_first`] in `compare`, too), of its uses of the ports and roots the first
//! (`first_of_least`). The phases of `composed` are an exception, for the sake of their bits.

use super::evaluate::{Choice, Evaluator, Known, Model, Offer, Settled, Variants};
use super::space::{ONE_AT_LEAST, SegmentChoice, Space, TimesOf, first_of_least, variants};
use super::variant::{LeftOut, Variant};
use crate::error::{Error, Result};
use crate::machine::CostModel;
use crate::plan::Request;
use crate::plan::refusal::{Reason, Refusal};
use crate::plan::registry::{self, Algorithm, Planned};
use crate::plan::segments::{Published, is_better, with_rounding};
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
    /// Those of which the search [left something out](Variant::left_out), or which it refused [for
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
    let (mut timed, mut deferred, mut refusals) = (Vec::new(), Vec::new(), Vec::new());
    let (mut best, mut cut) = ((f64::INFINITY, 0), Vec::new());
    let mut add = |i: usize, settled: Settled, best: &mut (f64, usize)| {
        if !settled.0.left_out.is_empty() {
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
            Ok(Offer::Deferred(min_time)) => deferred.push((i, min_time)),
            Err(refusal) => refusals.push((i, refusal)),
        }
    }
    deferred.sort_by(|(_, a), (_, b)| f64::total_cmp(a, b));
    for (i, min_time) in deferred {
        if !wins((min_time, i), best) {
            continue;
        }
        let variants = evaluator.variants(&space.algorithms[i], space);
        let limit = with_rounding(best.0);
        match variants.and_then(|all| fastest_within(all, space, evaluator, limit)) {
            Ok(settled) => add(i, settled, &mut best),
            Err(refusal) => refusals.push((i, refusal)),
        }
    }
    refusals.sort_by_key(|&(i, _)| i);
    let of_size = refusals.iter().filter(|(_, r)| r.reason.is_of_size());
    cut.extend(of_size.map(|&(i, _)| i));
    cut.retain(|&i| wins((min_time(space, &space.algorithms[i], evaluator), i), best));
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
fn min_time<E: Evaluator>(space: &Space<'_>, algorithm: &Algorithm, evaluator: &E) -> f64 {
    evaluator.min_time(&space.open_variant(algorithm))
}

/// The fastest variant of an algorithm, unless finding it takes long.
fn offer<E: Evaluator>(
    space: &Space<'_>,
    algorithm: &Algorithm,
    evaluator: &E,
) -> Result<Offer, Refusal> {
    if space.puts_off(algorithm) {
        algorithm.accepts(&space.request)?;
        let min_time = min_time(space, algorithm, evaluator);
        // A search for segments has no limit that could end it.
        if min_time > 0.0 || !space.searches_segments(algorithm) {
            return Ok(Offer::Deferred(min_time));
        }
    }
    let settled = variant_to_plan(space, algorithm, evaluator)?;
    with_time(settled, evaluator, f64::INFINITY).map(Offer::Timed)
}

/// The variant of an algorithm to plan: the fastest, or the only one, which need not be timed.
pub fn variant_to_plan<E: Evaluator>(
    space: &Space<'_>,
    algorithm: &Algorithm,
    evaluator: &E,
) -> Result<Settled, Refusal> {
    let mut variants = evaluator.variants(algorithm, space)?;
    if variants.len() > 1 {
        return fastest_within(variants, space, evaluator, f64::INFINITY);
    }
    evaluator.settle(variants.next().expect(ONE_AT_LEAST), &space.segments)
}

/// The first of the fastest variants, with what was left out of any; not one of those that are
/// refused. It has no time if all times turn out to be larger than `limit`.
///
/// # Errors
/// The refusal of the first variant if all are refused.
fn fastest_within<E: Evaluator>(
    variants: Variants<'_>,
    space: &Space<'_>,
    evaluator: &E,
    limit: f64,
) -> Result<Settled, Refusal> {
    let time_of = |settled: &Settled| settled.1.value().unwrap_or(f64::INFINITY);
    let mut least = limit;
    let mut left_out = Vec::new();
    let timed = variants.map(|variant| {
        let settled = evaluator.settle(variant, &space.segments);
        let settled = settled.and_then(|settled| with_time(settled, evaluator, least));
        let omitted = match &settled {
            Ok((variant, _)) => &variant.left_out[..],
            // For all roots it has the same size.
            Err(refusal) if refusal.reason.is_of_size() => &[LeftOut::Ports],
            Err(_) => &[],
        };
        for &one in omitted {
            if !left_out.contains(&one) {
                left_out.push(one);
            }
        }
        least = settled.as_ref().map_or(least, |s| least.min(time_of(s)));
        settled
    });
    let (fastest, known) = first_of_least(timed, time_of)?;
    Ok((
        Variant {
            left_out,
            ..fastest
        },
        known,
    ))
}

/// The variant with its time, unless that is not known yet and larger than `limit`.
fn with_time<E: Evaluator>(
    (variant, known): Settled,
    evaluator: &E,
    limit: f64,
) -> Result<Settled, Refusal> {
    let known = match known {
        Known::Nothing => evaluator.time(&variant, limit)?.into(),
        known => known,
    };
    if known.value().is_some_and(|time| !time.is_finite()) {
        return Err(variant.refusal(Reason::NoFiniteTime));
    }
    Ok((variant, known))
}

impl Ranking {
    /// The fastest, with what the search left out of it and of others; `kind` is the collective if
    /// all its algorithms were candidates.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): none can be planned, with the reason for
    /// each.
    pub fn best(self, kind: Option<Kind>) -> Result<Choice> {
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

    /// The only algorithm, or its refusal.
    ///
    /// # Panics
    /// When no algorithm was a candidate.
    pub fn only(mut self) -> Result<Choice, Refusal> {
        let choice = self.choices.pop();
        choice.ok_or_else(|| self.refusals.pop().expect("it is timed or refused"))
    }
}

/// Returns the algorithm of the registry with the minimal model time for `request`. The request's
/// segments only give the size of the vector. Each algorithm of the collective is timed as by
/// [`with_best_segments`], as far as it may be the fastest.
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
    best_first(&Space::of(request), &Model).best(Some(request.kind))
}

/// Times `algorithm` for `request`, in model time, with the segments that are best in the request's
/// cost model: see [`best_segment`](crate::plan::segments::best_segment) for what that takes.
///
/// # Errors
/// When the algorithm does not accept the request, or no time in the model is finite.
pub fn with_best_segments(algorithm: &Algorithm, request: &Request) -> Result<Choice, Refusal> {
    best_first(&Space::among([algorithm], request), &Model).only()
}

impl Request {
    /// Plans it by the algorithm with this name, one of those of [`registry::of`] its collective.
    /// The [planners](crate::plan) state the shapes of the buffers and the time of planning. Errors
    /// are those of [`registry::find`] and [`Algorithm::plan`].
    pub fn plan(&self, algorithm: &str) -> Result<Schedule> {
        registry::find(self.kind, algorithm)?.plan(self)
    }

    /// Plans it by the algorithm and with the segments of minimal model time under `machine`,
    /// which replaces the request's cost model. The request's segments only give the size of the
    /// vector. What the search left out is not said: [`choose`] says it, but for the parts of
    /// algorithms that search for these: see [`LeftOut`].
    pub fn plan_best(&self, machine: &CostModel) -> Result<Schedule> {
        choose(&self.clone().cost(machine.clone()))?.plan()
    }

    /// Model time of the algorithm with this name in the request's cost model, with the segments of
    /// the request, where [`Request::plan_best`] searches for them: [`registry::find`], then
    /// [`Algorithm::time`], which see. Up to rounding errors it is the time in a simulation of the
    /// schedule that [`Request::plan`] gives, with its root if that is free.
    ///
    /// ```
    /// use oneport::{CostModel, Request};
    /// let request = Request::broadcast(8, 1).cost(CostModel::new(1000.0, 0.1));
    /// assert_eq!(request.time("binomial")?, 3.0 * 1000.1);
    /// # Ok::<(), oneport::Error>(())
    /// ```
    pub fn time(&self, algorithm: &str) -> Result<f64> {
        registry::find(self.kind, algorithm)?.time(self)
    }
}

/// An algorithm for a request with its own segments: the use of the ports and, if it is free, the
/// root are those of the smallest model time, among those that are compared: see [`LeftOut`].
impl Algorithm {
    /// Plans `request` and stores the schedule, under the name of the algorithm. The
    /// [planners](crate::plan) state the shapes of the buffers and the time of planning.
    ///
    /// # Errors
    /// As [`accepts`](Self::accepts), if the root is free and the search for the best takes too
    /// long ([`Reason::FreeRoot`]), and where the planner itself fails: a buffer would overflow,
    /// there are too many ranks for its search, or the links do not connect all ranks.
    pub fn plan(&self, request: &Request) -> Result<Schedule> {
        self.fastest_variant(request)?.plan()
    }

    /// As [`Algorithm::plan`], but does not store the schedule if the algorithm can stream it.
    pub fn planned(&self, request: &Request) -> Result<Planned> {
        self.fastest_variant(request)?.planned()
    }

    /// For each use of the ports, for each root. Of these an infinite time is no error here.
    fn variants_as_given(
        &self,
        request: &Request,
    ) -> Result<impl ExactSizeIterator<Item = Variant> + use<'_>, Refusal> {
        let segments = SegmentChoice::Given(request.segments.clone());
        variants(self, request.clone(), &segments, TimesOf::Request)
    }

    fn fastest_variant(&self, request: &Request) -> Result<Variant> {
        let mut variants = self.variants_as_given(request)?;
        if variants.len() == 1 {
            return Ok(variants.next().expect(ONE_AT_LEAST));
        }
        let timed = variants.map(|variant| Ok::<_, Error>((variant.time()?, variant)));
        Ok(first_of_least(timed, |(time, _)| *time)?.1)
    }

    /// Model time of `request`, with its own segments: by the closed form where there is one for
    /// this request, which equals the simulated time up to rounding errors, by planning and
    /// simulation otherwise. A simulation is linear in the number of steps, planning may take
    /// longer: the [planners](crate::plan) state it. It is infinite if a message has no link.
    ///
    /// # Errors
    /// As [`Algorithm::plan`], but where there is a closed form the planner is not asked.
    pub fn time(&self, request: &Request) -> Result<f64> {
        let timed = self.variants_as_given(request)?;
        first_of_least(timed.map(|variant| variant.time()), |time| *time)
    }

    /// The closed form of its time as executed, which a simulation equals up to rounding errors, if
    /// the request is [accepted](Self::accepts), which it does not check. `None` where none holds:
    /// - the costs are not those that it is stated for,
    /// - links differ, or computation overlaps communication,
    /// - the root is to be searched for,
    /// - it uses one direction of ports that have both,
    /// - a transfer waits for more than its list, as on ports for calls,
    /// - rank 0 forwards the result to the root.
    pub fn closed_form(&self, request: &Request) -> Option<f64> {
        let mut variant = Variant::of(self, request);
        let mut uses = self.uses(request).0.into_iter();
        uses.try_fold(f64::INFINITY, |least, used| {
            variant.used = used;
            Some(least.min(variant.closed_form()?))
        })
    }

    /// What a published table prints for it: `None` where none covers it, for other ports, for
    /// `p <= 3`, for an empty vector, where rank 0 forwards the result to another root, where
    /// computation overlaps communication, and where costs differ from rank to rank or are not
    /// linear.
    ///
    /// ```
    /// use oneport::plan::registry;
    /// use oneport::{CostModel, Kind, Ports, Request};
    /// let request = Request::reduce(64, 1000).ports(Ports::UNI).cost(CostModel::new(10.0, 1.0));
    /// let chain = registry::find(Kind::Reduce, "chain")?.published(&request).unwrap();
    /// assert_eq!(chain.table, "Table I; Lowery & Langou 2014");
    /// assert_eq!(chain.time, 63.0 * 1010.0);
    /// assert_eq!(chain.best_segment, Some((20_000.0f64 / 61.0).sqrt()));
    /// # Ok::<(), oneport::Error>(())
    /// ```
    pub fn published(&self, request: &Request) -> Option<Published> {
        Variant::of(self, request).published()
    }
}
