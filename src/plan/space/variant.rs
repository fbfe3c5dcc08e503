//! [`Variant`]: an algorithm for a request, with a use of the ports and a root, whose segments may
//! still be searched for; its time, and what bounds it.

use std::borrow::Cow;

use super::found::{LeftOut, Method};
use crate::budget::{quick, search, size};
use crate::error::{ErrorKind, Result};
use crate::machine::Ports;
use crate::plan::Request;
use crate::plan::refusal::{Reason, Refusal};
use crate::plan::registry::{Algorithm, ClosedForm, Planned, Planner};
use crate::plan::segments::{Published, SymbolValues, ceil_log2};
use crate::schedule::Schedule;
use crate::schedule::collective::Kind;

pub(super) const ANY_TIME: &str = "no time is larger than infinity";

/// An algorithm for a request, with the ports that it uses, the root and the segments. Those that
/// are still to be searched for are one for the whole vector until then.
#[derive(Debug, Clone)]
pub struct Variant {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The request, with root and segments. A root that is still free is taken by the planner.
    pub request: Request,
    /// The ports that it is planned for. Its schedule is one for the ports of the request.
    pub(in crate::plan) used: Ports,
    /// What the search for it did not compare, and the searches for the variants of the algorithm
    /// that it was compared with.
    pub left_out: Vec<LeftOut>,
    /// How its segments were found; `None` if they were given or are still to be searched for, or
    /// the algorithm does not split the vector.
    pub segments_found: Option<Method>,
}

impl Variant {
    /// The request with the preferred use of its ports; if its root is free, with root 0, which
    /// stays free.
    pub fn of(algorithm: &Algorithm, request: &Request) -> Variant {
        let mut request = request.clone();
        if request.root_free {
            request.root = 0;
        }
        Variant {
            algorithm: algorithm.clone(),
            used: algorithm
                .planning_row(&request)
                .ports
                .preferred(request.ports),
            request,
            left_out: Vec::new(),
            segments_found: None,
        }
    }

    /// Plans it and stores the schedule, under the name of the algorithm.
    ///
    /// # Errors
    /// As [`Algorithm::plan`].
    pub fn plan(&self) -> Result<Schedule> {
        let schedule = self.planned()?.materialize()?;
        schedule.with_name(self.algorithm.name())
    }

    /// As [`Variant::plan`], but does not store the schedule if the algorithm can stream it.
    #[doc(hidden)]
    pub fn planned(&self) -> Result<Planned> {
        self.planned_with(Ok)
    }

    /// As [`Variant::planned`], on a machine that adds something to each plan, such as ports that
    /// nodes share: of two plans it decides which is the faster one.
    #[doc(hidden)]
    pub fn planned_with(&self, machine: impl Fn(Planned) -> Result<Planned>) -> Result<Planned> {
        self.algorithm.accepts(&self.request)?;
        let request = self.on_used_ports();
        let planned = self.planned_for(&request).and_then(&machine);
        let cost = &self.request.cost;
        if cost.last_arrival() == 0.0 || !self.algorithm.planning_row(&request).for_arrivals {
            return planned;
        }
        let together = request.into_owned().cost(cost.clone().without_arrivals());
        let together = self.planned_for(&together).and_then(&machine);
        // What cannot be timed, as for want of a link, is no faster.
        let time = |plan: &Result<Planned>| {
            let plan = plan.as_ref().ok();
            let timed = plan.and_then(|plan| plan.timed(cost, |_| ()).ok());
            timed.map_or(f64::INFINITY, |timed| timed.time)
        };
        if time(&together) < time(&planned) {
            together
        } else {
            planned
        }
    }

    /// What is planned for the request for the used ports, on the ports of the request.
    fn planned_for(&self, request: &Request) -> Result<Planned> {
        let planned = self.algorithm.plan_on_ports(request)?;
        let ports = self.request.ports;
        if self.used == ports {
            Ok(planned)
        } else {
            planned.on_ports(ports)
        }
    }

    /// The request for the used ports alone.
    fn on_used_ports(&self) -> Cow<'_, Request> {
        if self.used == self.request.ports {
            return Cow::Borrowed(&self.request);
        }
        Cow::Owned(self.request.clone().ports(self.used))
    }

    /// Whether it takes the time that it takes on the used ports. If it uses both directions of a
    /// port one at a time, it may take less.
    #[doc(hidden)]
    pub fn times_as_used(&self) -> bool {
        self.request.ports.times_as(self.used)
    }

    /// Its time as executed by a closed form: see [`Algorithm::closed_form`].
    #[doc(hidden)]
    pub fn closed_form(&self) -> Option<f64> {
        let Variant {
            algorithm, request, ..
        } = self;
        let holds = request.ranks > 0 && request.closed_forms_hold();
        let holds = holds && !request.is_forwarded() && !algorithm.searches_root(request);
        let holds = holds && request.ports.waits_by_list();
        if !holds || !self.times_as_used() {
            return None;
        }
        let time = algorithm.closed_form_on_ports(&self.on_used_ports())?;
        // An empty sum is -0: no time has that sign.
        Some(time + 0.0)
    }

    /// What a published table prints for it: see [`Algorithm::published`].
    #[doc(hidden)]
    pub fn published(&self) -> Option<Published> {
        let Variant {
            algorithm, request, ..
        } = self;
        let covered = self.used == request.ports && algorithm.ports.allow(request.ports);
        let covered = covered && request.ports.waits_by_list();
        let covered = covered && request.ranks > 3 && request.elements() > 0;
        let covered = covered && !request.is_forwarded() && request.closed_forms_hold();
        let published = algorithm.published.filter(|_| covered)?;
        published(&SymbolValues::of(&algorithm.effective(request))?)
    }

    /// Its model time: by the closed form where there is one, else by simulation. `None` if a
    /// simulation shows that it is larger than `limit`, which takes only as long as simulating that
    /// much where each transfer waits for its lists alone. Planning has no limit, nor have the
    /// simulations that compare plans for late arrivals.
    #[doc(hidden)]
    pub fn time_within(&self, limit: f64) -> Result<Option<f64>> {
        self.algorithm.accepts(&self.request)?;
        if let Some(time) = self.closed_form() {
            return Ok(Some(time));
        }
        let planned = self.planned()?;
        let timed = planned.timed_within(&self.request.cost, limit, &mut |_| ())?;
        Ok(timed.map(|timed| timed.time))
    }

    /// As [`time_within`](Self::time_within), but infinite if a message has no link: another
    /// variant may do without.
    pub(super) fn time_or_infinity_within(&self, limit: f64) -> Result<Option<f64>> {
        match self.time_within(limit) {
            Err(error) if matches!(error.kind(), ErrorKind::NoLink { .. }) => {
                Ok(Some(f64::INFINITY))
            }
            time => time,
        }
    }

    /// Its model time, infinite if a message has no link.
    pub(in crate::plan) fn time_or_infinity(&self) -> Result<f64> {
        let time = self.time_or_infinity_within(f64::INFINITY)?;
        Ok(time.expect(ANY_TIME))
    }

    /// The refusal of it for `reason`.
    #[doc(hidden)]
    pub fn refusal(&self, reason: Reason) -> Refusal {
        self.algorithm.refusal(&self.request, reason)
    }

    /// Transfers of its schedule, at most.
    #[doc(hidden)]
    pub fn transfers(&self) -> usize {
        self.algorithm.transfers_for(&self.request)
    }

    /// Whether timing it simulates many transfers, plans them, or fills large tables.
    pub(super) fn takes_long(&self) -> bool {
        let planning_row = self.algorithm.planning_row(&self.request);
        let fills_tables = (planning_row.tables)(self.request.ranks) > quick::MAX_TABLE_BYTES;
        let is_long = self.transfers() > quick::MAX_TRANSFERS;
        let plans = matches!(planning_row.formula, ClosedForm::OfPlan(_));
        fills_tables || is_long && (plans || self.closed_form().is_none())
    }

    /// Whether simulating it takes longer than the search for its segments.
    pub(super) fn is_too_long_to_time(&self) -> bool {
        self.transfers() > search::MAX_SIMULATED_IN_ALL
    }

    /// The largest number of segments that a search tries: those of the longest schedule that can
    /// be planned, in a memory that holds schedules of at most `max_transfers` transfers.
    pub(in crate::plan) fn max_segments(&self, max_transfers: usize) -> usize {
        let planning_row = self.algorithm.planning_row(&self.request);
        let transfers = |count| (planning_row.transfers)(self.request.ranks, count);
        let (mut most, mut more) = (1, search::MAX_SEGMENTS + 1);
        while more - most > 1 {
            let count = most.midpoint(more);
            if transfers(count) <= size::MAX_TRANSFERS.min(max_transfers) {
                most = count;
            } else {
                more = count;
            }
        }
        most
    }

    /// How many unequal segments may be tried in place of its own.
    pub(in crate::plan) fn trials_of_unequal(&self) -> usize {
        let planning_row = self.algorithm.planning_row(&self.request);
        let work = planning_row.work(
            self.request.ranks,
            self.algorithm.segments_of(&self.request),
            1,
        );
        (search::MAX_UNEQUAL_STEPS / work.max(1)).min(search::MAX_UNEQUAL_TRIALS) as usize
    }

    /// A lower bound of its model time, and of that of the same algorithm on other ports, for other
    /// roots and with more segments; 0 where none is known.
    ///
    /// ```
    /// use oneport::plan::{choose::with_best_segments, registry};
    /// use oneport::{CostModel, Kind, Request};
    /// let request = Request::broadcast(9, 100).cost(CostModel::new(10.0, 1.0));
    /// let multi_tree = registry::find(Kind::Broadcast, "multi-tree")?;
    /// // On one port a chain of 8 messages of at least one element.
    /// assert!(with_best_segments(&multi_tree, &request)?.min_time() > 87.9);
    /// # Ok::<(), oneport::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn min_time(&self) -> f64 {
        let (algorithm, request) = (&self.algorithm, &self.request);
        let Some(line) = request.cost.linear() else {
            return 0.0;
        };
        if request.ranks < 2 || request.elements() == 0 {
            return 0.0;
        }
        if let Some(time) = self.only_time() {
            return time;
        }
        let rounds = (algorithm.min_rounds)(request.ranks, request.ports.k());
        let message = line.alpha + line.beta * request.element_bytes as f64;
        // The factor covers rounding errors of the sum.
        let by_rounds = rounds as f64 * message * (1.0 - 1e-6);
        by_rounds
            .max(self.min_time_of_tree())
            .max(self.min_time_busy())
    }

    /// The time of an algorithm without segments to choose, on the ports that suit it best, where a
    /// closed form holds. Those of gathers and scatters are the times of trees, which have to be
    /// planned.
    fn only_time(&self) -> Option<f64> {
        let (algorithm, request) = (&self.algorithm, &self.request);
        let is_tree = matches!(request.kind, Kind::Gather | Kind::Scatter);
        let (_, are_all) = algorithm.uses(request);
        let is_only = !is_tree && !algorithm.segmented && are_all;
        is_only.then(|| algorithm.closed_form(request)).flatten()
    }

    /// A lower bound for the trees that gather and scatter equal blocks: `ceil(log2 p) alpha +
    /// (p-1) beta b`. By induction: of a tree's last subtree and the others, the larger part has at
    /// least half of the ranks, and then the last message follows. 0 for other algorithms.
    fn min_time_of_tree(&self) -> f64 {
        let request = &self.request;
        let is_tree = matches!(request.kind, Kind::Gather | Kind::Scatter);
        if !is_tree || request.ports.k() != 1 {
            return 0.0;
        }
        let (p, sizes) = (request.ranks, request.block_sizes());
        match (request.cost.linear(), sizes.first()) {
            (Some(line), Some(&size)) if size > 0 && sizes.iter().all(|&s| s == size) => {
                let bytes = size as f64 * request.element_bytes as f64;
                f64::from(ceil_log2(p)) * line.alpha + (p - 1) as f64 * bytes * line.beta
            }
            _ => 0.0,
        }
    }

    /// A lower bound for what some rank receives or sends at least (`Row::min_received`), on all
    /// its ports; along trees each segment is a separate message.
    fn min_time_busy(&self) -> f64 {
        let (algorithm, request) = (&self.algorithm, &self.request);
        let received = [(algorithm.min_received)(request)];
        let messages = match algorithm.planner {
            Planner::Reduction(_) | Planner::BroadcastOf(_) | Planner::AllreduceOf(_)
                if algorithm.segmented =>
            {
                request.segments.sizes()
            }
            _ => &received[..],
        };
        let messages = messages.iter().filter(|&&n| n > 0);
        let busy: f64 = messages.map(|&n| request.transfer_time(n)).sum();
        // The factor covers rounding errors of the sum.
        busy / request.ports.k() as f64 * (1.0 - 1e-9)
    }
}

/// What formulas say of an algorithm, on the ports that suit it best.
impl Algorithm {
    /// The closed form of its time as executed (a formula, or an evaluator of the plan), the least
    /// of the uses of the request's ports that are compared, which a simulation equals up to
    /// rounding errors, if the request is [accepted](Self::accepts), which it does not check.
    /// `None` where none holds for one of them:
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
    /// computation overlaps communication, where costs differ from rank to rank or are not linear,
    /// and where ranks are late, messages have latency, or senders do not wait.
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
