//! How a task evaluates variants: side by side, within its share of the memory, on the ports that
//! nodes share. How a command comes to a time, in the notation of `src/plan/space/search.rs`, which
//! says how that of a variant is found:
//!
//! ```text
//! Simulated::of                         simulate                              simulate.rs
//!   Common::input_to_time               in place of it, others call input     input.rs
//!   ? Common::read                      a file
//!   ? PlanTask::new                     else: the options as a request        task.rs
//!     PlanTask::choose_aloud            then                                  choice.rs
//!       PlanTask::choose
//!       ? choose_native_among           on_cores: a run on threads whose cores are known
//!       ? PlanTask::variant_to_plan     else, or if that finds none: of one algorithm
//!       ? best_first                    of several, with TaskEvaluator
//!     ? in_common_order                 of several algorithms, or of the one that rules select
//!       note_left_out
//!     PlanTask::to_time                 the schedule, streamed or stored; input: PlanTask::plan
//!   Planned::timed                      the time that is shown
//!
//! CompareJob::new                       compare                               compare.rs
//!   CompareArgs::task
//!     PlanTask::new                     the options as a request              task.rs
//!   CompareJob::of
//!     time_all                                                                compare/timed.rs
//!       own::rows                       files                                 compare/own.rs
//!       PlanTask::side_by_side
//!       * TaskEvaluator::variant_to_plan
//!                                       each algorithm: one that has no other variant need not be
//!                                       timed yet
//!         row_of
//!           PlanTask::to_time           the schedule, streamed or stored
//!           Planned::timed
//!       fastest_first
//! ```
//!
//! `TaskEvaluator` differs from the library's `Model` in this:
//!
//! - It looks at memory and progress, and times schedules of any length, or refuses them, where
//!   `Model` may have an upper bound.
//! - Where nodes share ports it times stored schedules, tries all roots where that is quick enough,
//!   whatever root the planner takes, and searches for segments as if they shared none, once for
//!   all roots and uses of ports where it can (`has_same_segments_for_all_roots`).
//! - Sums of floats may have two forms. The one with the same bits on all ranks is taken where it
//!   takes less time, of each variant if computation overlaps communication and it is quick to tell
//!   (`in_faster_order`). Where one of several algorithms is chosen, as `compare` does not, it is
//!   also taken where it takes as much model time (`PlanTask::in_common_order`).
//! - A message without a link is an error that names it, where `Model` says that no time is finite.
//! - The parts of a composition are chosen once, for the request (`selection.rs`), not for each
//!   variant, where one algorithm serves all groups of ranks.
//!
//! `simulate` and `compare` show a time that is simulated, also where the search took a closed
//! form, which `simulate` shows as `formula`, too.
//!
//! Commands differ among each other in this:
//!
//! - Those that plan one schedule (`PlanTask::choose`) consider only algorithms that split the
//!   vector where several segments are given, if any of these is named or applies (`candidates`).
//! - A native run whose options give no costs chooses under those of a built-in profile, and shows
//!   the model time of those that `simulate` has (`Common::input_for_run`).
//! - Under many arrivals `compare` times as `compare/late.rs` says.
//! - A family of one tree (`--same-bits=tree`) is made in `family.rs`; `--rules` replaces the
//!   algorithms by the one that a file of rules selects (`selection.rs`).
//! - `check` of several algorithms takes the variant of each, as `compare`; beside a schedule it
//!   shows the fastest (`choose_aloud`). Guidelines search the rows that are made for the costs, or
//!   one that they name, with free copies, by `best_first` and the library's `Model`. `tune` and
//!   `bits` ask which algorithms have a variant; `tune`, synthesis, profiles and
//!   `oneport_measure::compare` ask the library for times.

use oneport::internal::budget::memory::{STEP_BYTES, STREAMED_RANK_BYTES};
use oneport::internal::budget::{quick, size};
use oneport::plan::choose::LeftOut;
use oneport::plan::refusal::{Reason, Refusal, describe};
use oneport::plan::registry::Algorithm;
use oneport::plan::space::{
    Evaluator, Offer, SegmentChoice, Settled, Space, Time, Variant, Variants, is_better,
    settled_variant,
};

use super::{PlanTask, Timing, steps};
use crate::memory::{LARGE_SCHEDULE, available_memory, fits_memory};
use crate::progress::WorkBar;

impl PlanTask {
    /// The evaluation of `at_once` variants at the same time.
    pub(super) fn evaluation<'t>(
        &'t self,
        at_once: usize,
        progress: Option<&'t WorkBar>,
    ) -> TaskEvaluator<'t> {
        TaskEvaluator {
            task: self,
            at_once,
            progress,
        }
    }

    /// The model time of a variant.
    ///
    /// # Errors
    /// It cannot be planned or timed, as for want of a link.
    pub(super) fn model_time(&self, variant: &Variant) -> oneport::Result<f64> {
        let evaluation = self.evaluation(1, None);
        let time = evaluation.time_on_nodes(variant, f64::INFINITY)?;
        Ok(time.unwrap_or(f64::INFINITY))
    }
}

/// The evaluation of the variants of a task by model time.
pub(crate) struct TaskEvaluator<'t> {
    task: &'t PlanTask,
    /// How many schedules share the memory, because they are planned at the same time.
    at_once: usize,
    progress: Option<&'t WorkBar>,
}

impl Evaluator for TaskEvaluator<'_> {
    fn variants(&self, algorithm: &Algorithm, space: &Space<'_>) -> Result<Variants, Refusal> {
        self.shows(algorithm);
        if !self.has_same_segments_for_all_roots() {
            return space.variants(algorithm);
        }
        algorithm.accepts(&space.request)?;
        let open = Variant::of(algorithm, &space.request);
        let known = self.settle_in_memory(open, &space.segments)?.variant;
        let space = Space {
            segments: SegmentChoice::Given(known.request.get_segments().clone()),
            ..space.clone()
        };
        let Variants { each, segments } = space.variants(algorithm)?;
        let each = Box::new(each.map(move |mut one| {
            one.left_out.extend(&known.left_out);
            one.segments_found = known.segments_found;
            one
        }));
        Ok(Variants { each, segments })
    }

    fn settle(&self, variant: Variant, segments: &SegmentChoice) -> Result<Settled, Refusal> {
        let settled = self.settle_in_memory(variant, segments)?;
        Ok(self.in_faster_order(settled))
    }

    fn time(&self, variant: &Variant, limit: f64) -> Result<Option<f64>, Refusal> {
        self.shows(&variant.algorithm);
        let steps = steps(variant);
        if self.task.streams(variant) && steps > size::MAX_STEPS && variant.closed_form().is_none()
        {
            return Err(variant.refusal(Reason::TooLongToTime { steps }));
        }
        self.time_on_nodes(variant, limit)
            .map_err(|error| variant.refusal(Reason::Planner(error)))
    }

    fn min_time(&self, variant: &Variant) -> f64 {
        variant.min_time()
    }

    fn each(
        &self,
        space: &Space<'_>,
        offer: &(dyn Fn(&Algorithm, &Self) -> Result<Offer, Refusal> + Sync),
    ) -> Vec<Result<Offer, Refusal>> {
        let task = self.task;
        task.side_by_side(&space.algorithms, self.progress, |share, algorithm| {
            offer(algorithm, share)
        })
    }
}

impl TaskEvaluator<'_> {
    /// As [`PlanTask::variant_to_plan`].
    pub(crate) fn variant_to_plan(&self, algorithm: &Algorithm) -> Result<Variant, Refusal> {
        let space = self.task.space([algorithm]);
        Ok(settled_variant(&space, algorithm, self)?.variant)
    }

    /// Whether segments are searched for once, and taken for all roots and uses of the ports: links
    /// cost the same, all ranks arrive together, and each has one port of a kind.
    fn has_same_segments_for_all_roots(&self) -> bool {
        let (request, cost) = (&self.task.request, self.task.request.get_cost());
        let alike = cost.links().is_none() && cost.last_arrival() == 0.0;
        let is_single = request.get_free_root() && request.get_ports().k() == 1;
        self.task.node_ports.is_some() && alike && is_single
    }

    /// The variant with its segments, if its schedule fits into the share of the memory. Of several
    /// segments a search tries what fits into it, so that a small memory may give others.
    fn settle_in_memory(
        &self,
        variant: Variant,
        segments: &SegmentChoice,
    ) -> Result<Settled, Refusal> {
        let mut max = usize::MAX;
        if variant.algorithm.segmented && segments.known().is_none() {
            // The search needs at least the memory of one segment.
            self.ensure_fits_memory(&variant)?;
            max = self.max_transfers(&variant);
        }
        let mut settled = segments.settle(variant, max)?;
        self.ensure_fits_memory(&settled.variant)?;
        let is_exact = |time: &Time| !time.is_upper_bound() && time.value().is_finite();
        let shares = self.task.node_ports.is_some();
        settled.time = settled.time.filter(|time| is_exact(time) && !shares);
        Ok(settled)
    }

    /// The form that gives all ranks the same bits of sums of floats, if it takes less time. It has
    /// as many combinations, so only those that overlap communication may begin earlier. What takes
    /// long to simulate keeps its form: a bound may show that it need not be timed.
    fn in_faster_order(&self, mut settled: Settled) -> Settled {
        let overlaps = settled.variant.request.get_cost().overlaps();
        let same = self.task.with_same_bits(&settled.variant);
        let Some(same) = same.filter(|_| overlaps) else {
            return settled;
        };
        if settled.variant.transfers() > quick::MAX_TRANSFERS {
            settled.variant.left_out.push(LeftOut::Order);
            return settled;
        }
        // What cannot be timed is not taken, or refused when the search asks for its time.
        let time_of = |variant| self.task.model_time(variant).ok();
        let known = settled.time.map(Time::value);
        let time = known.or_else(|| time_of(&settled.variant));
        match time_of(&same) {
            Some(faster) if time.is_some_and(|time| is_better(faster, time)) => {
                Settled::new(same, Some(faster))
            }
            _ => Settled::new(settled.variant, time),
        }
    }

    fn shows(&self, algorithm: &Algorithm) {
        if let Some(progress) = self.progress {
            progress.name(&algorithm.name());
        }
    }

    /// As [`Variant::time_within`], but on the ports that nodes share, if they do, without a limit.
    fn time_on_nodes(&self, variant: &Variant, limit: f64) -> oneport::Result<Option<f64>> {
        let cost = variant.request.get_cost();
        if self.task.node_ports.is_some() {
            let schedule = self.task.plan(variant)?;
            return Ok(Some(schedule.timed(cost, |_| ())?.time));
        }
        variant.time_within(limit)
    }

    /// Transfers of the longest schedule that a search for its segments may come to.
    fn max_transfers(&self, variant: &Variant) -> usize {
        let streams = self.task.streams_if_long(variant);
        let share = available_memory().map(|bytes| u128::from(bytes) / self.at_once as u128);
        let rest = share.map(|bytes| bytes.saturating_sub(bytes_of(variant, streams)));
        // A quarter is for what segments take, and for what is allocated meanwhile. What is not
        // stored at all, 0 bytes a step, has no limit.
        let bytes_per_step = u128::from(bytes_per_step(variant, streams));
        let fit = rest.and_then(|bytes| (bytes / 4 * 3).checked_div(bytes_per_step));
        let max_steps = u128::from(self.max_steps(streams));
        let steps = fit.map_or(max_steps, |steps| steps.min(max_steps));
        (steps / 2).try_into().unwrap_or(usize::MAX)
    }

    fn max_steps(&self, streams: bool) -> u64 {
        match self.task.timed_only {
            Some(Timing::Chosen) if streams => u64::MAX,
            _ => size::MAX_STEPS,
        }
    }

    fn ensure_fits_memory(&self, variant: &Variant) -> Result<(), Refusal> {
        let (algorithm, request) = (&variant.algorithm, &variant.request);
        let (ranks, segments) = (request.ranks(), request.get_segments().count());
        let steps = steps(variant);
        let streams = self.task.streams(variant);
        let max_steps = self.max_steps(streams);
        if steps > max_steps {
            let reason = Reason::TooLong {
                ranks,
                segments,
                steps,
                max_steps,
            };
            return Err(variant.refusal(reason));
        }
        let what = describe(&algorithm.name(), ranks, segments, steps);
        let bytes = bytes_of(variant, streams) * self.at_once as u128;
        fits_memory(&what, bytes, LARGE_SCHEDULE)
            .map_err(|message| variant.refusal(Reason::Memory(message)))
    }
}

/// Memory while the schedule of a variant is timed, which `streams` or is stored.
fn bytes_of(variant: &Variant, streams: bool) -> u128 {
    let request = &variant.request;
    let [ranks, segments] = [request.ranks(), request.get_segments().count()].map(|n| n as u128);
    let mut bytes = ranks * u128::from(STREAMED_RANK_BYTES) + segments * 64;
    bytes += u128::from(steps(variant)) * u128::from(bytes_per_step(variant, streams));
    let planning_row = variant.algorithm.planning_row(request);
    bytes + u128::from((planning_row.tables)(request.ranks()))
}

fn bytes_per_step(variant: &Variant, streams: bool) -> u64 {
    let planning_row = variant.algorithm.planning_row(&variant.request);
    match planning_row.bytes_per_transfer() {
        Some(bytes_per_transfer) if streams => bytes_per_transfer / 2,
        _ => STEP_BYTES,
    }
}
