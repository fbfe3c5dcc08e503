//! The candidates of a choice: evaluated side by side, the expensive ones only if they may win.

use oneport::internal::budget::size::MAX_STEPS;
use oneport::internal::budget::{quick, search};
use oneport::plan::choose::{Choice, Offer};
use oneport::plan::refusal::{Reason, Refusal};
use oneport::plan::registry::Algorithm;
use oneport::plan::{Segments, segments};
use oneport::{Kind, Request};
use oneport_measure::estimate::{self, CoreModel};

use super::{PlanTask, SegmentChoice, finite, model_time, steps};
use crate::parallel;
use crate::progress::WorkBar;

impl PlanTask {
    /// The candidates for several segments that options give: those that segment, if there are any.
    pub(super) fn segmenting(&self) -> Vec<Algorithm> {
        let several = match &self.segments {
            SegmentChoice::Given(segments) => segments.count() > 1,
            SegmentChoice::BestUnequal => true,
            SegmentChoice::Best | SegmentChoice::Rule(_) => false,
        };
        let segments = |a: &&Algorithm| a.segmented && a.accepts(&self.request).is_ok();
        let all = self.algorithms.iter().filter(|a| several && segments(a));
        let segmented: Vec<_> = all.cloned().collect();
        match segmented.is_empty() {
            true => self.algorithms.clone(),
            false => segmented,
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
            None => (
                1,
                if algorithm.segmented {
                    search::SCHEDULES
                } else {
                    1
                },
            ),
        };
        let steps = steps(algorithm, self.request.ranks(), segments);
        let planned_as = algorithm.planned_as(&self.request);
        steps.saturating_mul(planned_as.planning_work * tries)
    }

    /// Roughly how long timing all algorithms takes at most, in seconds, but for those refused as
    /// too long.
    pub(crate) fn seconds(&self) -> Option<f64> {
        let ranks = self.request.ranks();
        let fit = self
            .algorithms
            .iter()
            .filter(|a| steps(a, ranks, 1) <= MAX_STEPS);
        let work = fit
            .map(|algorithm| self.work(algorithm) as f64)
            .sum::<f64>();
        (work > 0.0).then_some(work * search::STEP_SECONDS)
    }

    /// Evaluates all algorithms on all cores. What is refused, perhaps for want of memory, while
    /// others are planned, is evaluated again by itself.
    pub(crate) fn side_by_side<'t, R: Send>(
        &'t self,
        each: impl Fn(&PlanTask, &'t Algorithm) -> Result<R, Refusal> + Sync,
    ) -> Vec<Result<R, Refusal>> {
        let work = |algorithm: &Algorithm| self.work(algorithm);
        let share = |at_once| PlanTask {
            at_once,
            ..self.clone()
        };
        let evaluate = |algorithm: &'t Algorithm, at_once| each(&share(at_once), algorithm);
        let again = |result: &Result<R, Refusal>| {
            let reason = result.as_ref().err().map(|refusal| &refusal.reason);
            matches!(reason, Some(Reason::Memory(_) | Reason::Planner(_)))
        };
        parallel::map(&self.algorithms, work, evaluate, again)
    }

    /// Evaluates a candidate by model time, with the memory of `share`. What takes long is deferred
    /// and has all memory then. There is no request yet where the search for its segments takes
    /// long, too.
    pub(super) fn offer<'t>(
        &'t self,
        share: &PlanTask,
        algorithm: &'t Algorithm,
        progress: &'t WorkBar,
    ) -> Result<Offer<'t>, Refusal> {
        let deferred = |min_time, request| Offer::Deferred {
            min_time,
            evaluate: Box::new(move |limit| {
                progress.name(&algorithm.name());
                self.evaluate(algorithm, request, limit)
            }),
        };
        let open = self.segments.known().is_none() && self.node_ports.is_none();
        if open && algorithm.segmented && algorithm.takes_long(&self.request) {
            algorithm.accepts(&self.request)?;
            return Ok(deferred(algorithm.min_time(&self.request), None));
        }
        let request = share.request_to_time(algorithm)?;
        if self.is_expensive(algorithm, &request) {
            return Ok(deferred(min_time(algorithm, &request), Some(request)));
        }
        self.timed(algorithm, request).map(Offer::Timed)
    }

    /// As [`request_for`](Self::request_for); a refusal if its schedule takes too long to time.
    fn request_to_time(&self, algorithm: &Algorithm) -> Result<Request, Refusal> {
        let request = self.request_for(algorithm)?;
        if self.is_too_long(algorithm, &request) {
            let steps = steps(algorithm, request.ranks(), request.get_segments().count());
            return Err(algorithm.refusal(&request, Reason::TooLongToTime { steps }));
        }
        Ok(request)
    }

    /// Evaluates an expensive candidate, with its `request` if that is known; `None` if its time is
    /// larger than `limit`.
    fn evaluate(
        &self,
        algorithm: &Algorithm,
        request: Option<Request>,
        limit: f64,
    ) -> Result<Option<Choice>, Refusal> {
        let request = match request {
            Some(request) => request,
            None => self.request_to_time(algorithm)?,
        };
        if self.node_ports.is_none() {
            match algorithm.time_within(&request, limit) {
                Ok(None) => return Ok(None),
                Ok(Some(time)) if time.is_finite() => {
                    return Ok(Some(Choice {
                        algorithm: algorithm.clone(),
                        request,
                        time,
                    }));
                }
                // An error, or a time that is not finite, is reported below.
                _ => {}
            }
        }
        self.timed(algorithm, request).map(Some)
    }

    pub(super) fn timed(&self, algorithm: &Algorithm, request: Request) -> Result<Choice, Refusal> {
        let time = match self.node_ports {
            None => model_time(algorithm, &request),
            Some(_) => self
                .plan(algorithm, &request)
                .and_then(|schedule| finite(schedule.timed(request.get_cost(), |_| ())?.time)),
        };
        match time {
            Ok(time) => Ok(Choice {
                algorithm: algorithm.clone(),
                request,
                time,
            }),
            Err(error) => Err(algorithm.refusal(&request, Reason::Planner(error))),
        }
    }

    /// Whether timing `algorithm` needs a simulation of many steps. Where the best segments have
    /// been searched for, their time is known.
    fn is_expensive(&self, algorithm: &Algorithm, request: &Request) -> bool {
        let searched = algorithm.segmented && self.segments.known().is_none();
        let steps = steps(algorithm, request.ranks(), request.get_segments().count());
        !searched
            && (algorithm.fills_tables(request)
                || steps > quick::MAX_STEPS && algorithm.closed_form(request).is_none())
    }

    /// Whether timing `algorithm` needs a simulation of more steps than can be stored.
    fn is_too_long(&self, algorithm: &Algorithm, request: &Request) -> bool {
        self.streams(algorithm)
            && steps(algorithm, request.ranks(), request.get_segments().count()) > MAX_STEPS
            && algorithm.closed_form(request).is_none()
    }
}

/// Returns the best segments found, of unequal sizes, too. The request has the best equal ones.
pub(super) fn best_unequal(algorithm: &Algorithm, request: &Request) -> Result<Segments, Refusal> {
    let steps = steps(algorithm, request.ranks(), request.get_segments().count());
    let work = steps.saturating_mul(algorithm.planning_work).max(1);
    let trials = (search::MAX_UNEQUAL_STEPS / work).min(search::MAX_UNEQUAL_TRIALS) as usize;
    segments::best_unequal(algorithm, request, trials)
        .and_then(|best| Segments::of_sizes(best.sizes))
        .map_err(|error| algorithm.refusal(request, Reason::Planner(error)))
}

/// Lower bound for the time of a segmented broadcast, reduction or allreduce. Each rank except the
/// root receives every segment as a separate message (in a reduction it sends them), on all its
/// ports.
fn min_time(algorithm: &Algorithm, request: &Request) -> f64 {
    let kinds = [Kind::Broadcast, Kind::Reduce, Kind::Allreduce];
    let covered = algorithm.segmented && kinds.contains(&algorithm.collective);
    if !covered || request.ranks() < 2 || request.get_cost().links().is_some() {
        return algorithm.min_time(request);
    }
    let sizes = request.get_segments().sizes().iter();
    let busy: f64 = sizes.map(|&s| request.transfer_time(s)).sum();
    // The factor covers rounding errors of the sum.
    let busy = busy / request.get_ports().k() as f64 * (1.0 - 1e-9);
    busy.max(algorithm.min_time(request))
}
