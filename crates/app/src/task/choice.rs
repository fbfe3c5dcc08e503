//! How a task chooses among its algorithms. What it compares them by stands in `evaluation.rs`.

use std::borrow::Cow;

use anyhow::Result;
use oneport::Error;
use oneport::internal::budget::{search, size};
use oneport::plan::choose::LeftOut;
use oneport::plan::refusal::{Reason, Refusal};
use oneport::plan::registry::Algorithm;
use oneport::plan::space::{Ranking, SegmentChoice, Space, Variant, best_first, is_better};
use oneport_measure::estimate::{self, CoreModel};

use super::evaluation::TaskEvaluator;
use super::{PlanTask, steps};
use crate::parallel;
use crate::progress::WorkBar;

impl PlanTask {
    /// The variant of `algorithm` to plan. A refusal if the algorithm does not accept the request,
    /// or its schedule is too large.
    pub(crate) fn variant_to_plan(&self, algorithm: &Algorithm) -> Result<Variant, Refusal> {
        self.evaluation(1, None).variant_to_plan(algorithm)
    }

    /// As [`choose`](Self::choose), and says what the search left out.
    pub(crate) fn choose_aloud(&self) -> Result<Variant> {
        let mut variant = self.choose()?;
        if self.auto {
            variant = self.in_common_order(variant);
        }
        self.note_left_out([&variant]);
        Ok(variant)
    }

    /// The form that gives all ranks the same bits of sums of floats, if it takes no more time, up
    /// to rounding. One that takes less is what [`settle`](TaskEvaluator::settle) has already,
    /// unless it is too long to be timed for each algorithm. A form that cannot be timed does not
    /// replace the chosen one, whose planning says what is wrong with it.
    fn in_common_order(&self, variant: Variant) -> Variant {
        let time = |variant: &Variant| self.model_time(variant).ok();
        let same = self.with_same_bits(&variant);
        let timed = same.and_then(|same| Some((!is_better(time(&variant)?, time(&same)?), same)));
        let Some((as_fast, same)) = timed else {
            return variant;
        };
        let mut chosen = if as_fast { same } else { variant };
        let space = self.space([&chosen.algorithm]);
        let all = space.variants(&chosen.algorithm);
        let is_only = all.is_ok_and(|all| all.each.len() == 1);
        // Other variants were timed in one order alone.
        if is_only {
            chosen.left_out.retain(|&one| one != LeftOut::Order);
        }
        chosen
    }

    /// The form of a variant that gives all ranks the same bits of sums of floats, if it is another
    /// one.
    pub(super) fn with_same_bits(&self, variant: &Variant) -> Option<Variant> {
        let agrees = self.sums_floats && variant.algorithm.agrees_if_asked(&variant.request);
        agrees.then(|| {
            let mut same = variant.clone();
            same.request = same.request.same_bits(true);
            same
        })
    }

    /// Returns the fastest variant by model time (for a native run on known cores, by estimate).
    pub(crate) fn choose(&self) -> Result<Variant> {
        if let Some(core_model) = self.on_cores() {
            let ranking =
                estimate::choose_native_among(&self.algorithms, &self.request, core_model);
            // On any error, the choice by model time reports it.
            let applies = |ranking: &Ranking| !self.named || ranking.refusals.is_empty();
            let ranking = ranking.ok().filter(applies);
            if let Some(choice) = ranking.and_then(|ranking| ranking.fastest(None).ok()) {
                return Ok(choice.variant);
            }
        }
        let candidates = self.candidates();
        if let [one] = candidates[..] {
            return Ok(self.variant_to_plan(one).map_err(Error::from)?);
        }
        let progress = WorkBar::new(&self.caller, 0, "choosing the fastest: timing {msg}");
        let ranking = best_first(
            &self.space(candidates),
            &self.evaluation(1, Some(&progress)),
        );
        progress.finish();
        if let Some(refusal) = ranking.refusals.first().filter(|_| self.named) {
            return Err(Error::from(refusal.clone()).into());
        }
        Ok(ranking.fastest(None)?.variant)
    }

    /// What it chooses from.
    pub(super) fn space<'a>(
        &self,
        algorithms: impl IntoIterator<Item = &'a Algorithm>,
    ) -> Space<'_> {
        Space {
            segments: self.segments.clone(),
            shares_ports: self.node_ports.is_some(),
            ..Space::among(algorithms, &self.request)
        }
    }

    /// The candidates: for several segments that options give those that segment, if there are any
    /// (named ones even if they do not apply, which is an error then).
    pub(super) fn candidates(&self) -> Vec<&Algorithm> {
        let given = self.segments.known();
        let several = given.is_some_and(|segments| segments.count() > 1);
        let applies = |a: &Algorithm| self.named || a.accepts(&self.request).is_ok();
        let segments = |a: &&Algorithm| a.segmented && applies(a);
        let all = || self.algorithms.iter();
        let segmented: Vec<_> = all().filter(|a| several && segments(a)).collect();
        if segmented.is_empty() {
            all().collect()
        } else {
            segmented
        }
    }

    /// Returns the core model if the choice is by estimated native time and quick enough.
    pub(crate) fn on_cores(&self) -> Option<&CoreModel> {
        let open = matches!(self.segments, SegmentChoice::Best)
            && estimate::is_for(&self.request)
            && self.node_ports.is_none();
        self.core_model.as_ref().filter(|_| open)
    }

    fn work(&self, algorithm: &Algorithm) -> u64 {
        let (segments, tries) = match self.segments.known() {
            Some(segments) => (segments.count(), 1),
            None if algorithm.segmented => (1, search::SCHEDULES),
            None => (1, 1),
        };
        let planning_row = algorithm.planning_row(&self.request);
        planning_row.work(self.request.ranks(), segments, tries)
    }

    /// Roughly how long timing all algorithms takes at most, in seconds, but for those refused as
    /// too long.
    pub(crate) fn seconds(&self) -> Option<f64> {
        let fits = |a: &&Algorithm| steps(&Variant::of(a, &self.request)) <= size::MAX_STEPS;
        let fit = self.algorithms.iter().filter(fits);
        let work = fit
            .map(|algorithm| self.work(algorithm) as f64)
            .sum::<f64>();
        (work > 0.0).then_some(work * search::STEP_SECONDS)
    }

    /// Evaluates all algorithms on all cores. What is refused, perhaps for want of memory, while
    /// others are planned, is evaluated again by itself.
    pub(crate) fn side_by_side<'t, 'a, R: Send>(
        &'t self,
        algorithms: &'a [Algorithm],
        progress: Option<&'t WorkBar>,
        each: impl Fn(&TaskEvaluator<'t>, &'a Algorithm) -> Result<R, Refusal> + Sync,
    ) -> Vec<Result<R, Refusal>> {
        let work = |algorithm: &Algorithm| self.work(algorithm);
        let evaluate = |algorithm: &'a Algorithm, at_once| {
            let share = self.evaluation(at_once, progress);
            each(&share, algorithm)
        };
        let again = |result: &Result<R, Refusal>| {
            let reason = result.as_ref().err().map(|refusal| &refusal.reason);
            matches!(reason, Some(Reason::Memory(_) | Reason::Planner(_)))
        };
        parallel::map(algorithms, work, evaluate, again)
    }

    /// Says what the search left out of these variants.
    pub(crate) fn note_left_out<'v>(&self, variants: impl IntoIterator<Item = &'v Variant>) {
        let all = variants.into_iter().flat_map(|variant| {
            let left_out = variant.left_out.iter();
            left_out.map(|&one| (variant.algorithm.name(), one))
        });
        self.caller.notes(left_out_texts(all));
    }
}

/// What searches left out, by the name of the algorithm: a text for each different thing, in order.
pub(crate) fn left_out_texts<'n>(
    all: impl IntoIterator<Item = (Cow<'n, str>, LeftOut)>,
) -> Vec<String> {
    let mut names: Vec<(LeftOut, Vec<Cow<'n, str>>)> = Vec::new();
    for (name, left_out) in all {
        match names.iter_mut().find(|(known, _)| *known == left_out) {
            Some((_, names)) => names.push(name),
            None => names.push((left_out, vec![name])),
        }
    }
    let texts = names.iter();
    let texts = texts.map(|(left_out, names)| format!("{} may have {left_out}", names.join(", ")));
    texts.collect()
}
