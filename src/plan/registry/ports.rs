//! Which of a rank's ports an algorithm uses: those with which it takes the least time.
//!
//! A schedule that leaves ports idle is one for all of them, so what fewer ports can do, more can
//! do, too. Unidirectional ports can also be used in pairs: one port of a pair sends and the other
//! receives, as the two of a bidirectional port do. A schedule for `k` bidirectional ports is thus
//! one for `2k` unidirectional ports, and takes the same time: a port list becomes a port of the
//! same number. So algorithms for bidirectional ports are planned for several unidirectional ones,
//! too.
//!
//! The other way round, a schedule for `k` unidirectional ports is one for `k` bidirectional ports,
//! each of which takes the place of one, and takes at most the same time there: what it sends no
//! longer waits for what it receives. So algorithms for unidirectional ports are planned for
//! several bidirectional ones, too. Among ranks with one port of each kind none of them is faster
//! than all that are made for these.

use std::borrow::Cow;

use super::{Algorithm, DynScheduleSource, Planned, PortModels};
use crate::budget::search;
use crate::error::Result;
use crate::machine::{CostModel, Ports};
use crate::plan::Request;
use crate::schedule::collective::Collective;
use crate::schedule::{Layout, Schedule, Step};
use crate::simulate::bounds::LowerBounds;
use crate::simulate::{self, Timed};

impl PortModels {
    /// Whether algorithms are planned for these very ports.
    fn has(self, ports: Ports) -> bool {
        match self {
            PortModels::Uni => !ports.is_bidirectional(),
            PortModels::Bi => ports.is_bidirectional(),
            PortModels::Both | PortModels::Each => true,
        }
    }

    /// The uses of `ports` as they are, in pairs, and for one direction at a time, the preferred
    /// one first.
    pub(super) fn uses(self, ports: Ports) -> impl Iterator<Item = Ports> {
        let others = match ports {
            Ports::Unidirectional { k } if k > 1 => Some(Ports::Bidirectional { k: k / 2 }),
            // For algorithms for both see `one_way`.
            Ports::Bidirectional { k } if k > 1 && self == PortModels::Uni => {
                Some(Ports::Unidirectional { k })
            }
            _ => None,
        };
        // An odd port is in no pair.
        let prefers_pairs = self == PortModels::Both && ports.k().is_multiple_of(2);
        let uses = match prefers_pairs {
            true => [others, Some(ports)],
            false => [Some(ports), others],
        };
        let uses = uses.into_iter().flatten();
        uses.filter(move |&used| self.has(used))
    }
}

impl Request {
    /// The same request, for an algorithm that uses the ports so.
    fn using(&self, used: Ports) -> Request {
        let mut request = self.clone();
        request.used = Some(used);
        request
    }

    /// The same request, for any algorithm: that of a phase may use the ports in another way.
    pub(in crate::plan) fn with_open_ports(&self) -> Cow<'_, Request> {
        match self.used {
            Some(_) => Cow::Owned(self.clone().ports(self.ports)),
            None => Cow::Borrowed(self),
        }
    }
}

impl Algorithm {
    /// The uses of the request's ports to compare, the preferred one first; none if there is
    /// nothing to compare.
    fn uses(&self, request: &Request) -> Vec<Ports> {
        let (ports, mut uses) = (request.ports, Vec::new());
        if ports.k() <= 1 || request.used.is_some() || ports.validate().is_err() {
            return uses;
        }
        let max = self.max_uses(request);
        let fewest = if self.k_ported { 1 } else { ports.k() };
        for k in (fewest..=ports.k()).rev() {
            if uses.len() >= max {
                break;
            }
            let all = self.ports.uses(ports.with_k(k));
            for used in all.chain(self.one_way(request, k)) {
                if !uses.contains(&used) {
                    uses.push(used);
                }
            }
        }
        uses.truncate(max);
        if uses.len() == 1 {
            uses.clear();
        }
        uses
    }

    /// `k` bidirectional ports, each for one direction at a time. An algorithm for both models may
    /// be faster so where links differ, computation overlaps communication, or there are delays.
    fn one_way(&self, request: &Request, k: usize) -> Option<Ports> {
        let used = Ports::Unidirectional { k };
        let may_be_faster = request.ports.is_bidirectional() && !request.closed_forms_hold();
        (may_be_faster && self.ports.has(used)).then_some(used)
    }

    /// How many uses are compared: only one where that takes long.
    fn max_uses(&self, request: &Request) -> usize {
        let ranks = request.ranks;
        let (segments, schedules) = match self.segmented {
            true => (request.segments.count(), search::SCHEDULES),
            false => (1, 1),
        };
        let roots = if self.searches_root(request) {
            ranks
        } else {
            1
        };
        let steps = ((self.transfers)(ranks, segments) as u64).saturating_mul(2);
        let work = steps.saturating_mul(self.planning_work * schedules);
        let work = work.saturating_add((self.tables)(ranks));
        let work = work.saturating_mul(roots as u64).max(1);
        (search::MAX_WORK_OF_USES / work).clamp(1, search::MAX_USES) as usize
    }

    /// Evaluates the request for each use of its ports and returns the first of the results with
    /// the smallest `time`; uses that are refused are left out. `None` if there is nothing to
    /// compare.
    ///
    /// Takes the time of at most `2k` evaluations for `k` ports, and of one for long schedules.
    ///
    /// # Errors
    /// The refusal of the preferred use if all are refused.
    #[doc(hidden)]
    pub fn at_best_ports<T, E>(
        &self,
        request: &Request,
        evaluate: impl Fn(Request) -> Result<T, E>,
        time: impl Fn(&T) -> f64,
    ) -> Result<Option<T>, E> {
        let uses = self.uses(request).into_iter();
        first_best(uses.map(|used| evaluate(request.using(used))), time).transpose()
    }

    pub(super) fn with_best_ports<'r>(&self, request: &'r Request) -> Result<Cow<'r, Request>> {
        let timed = |request: Request| -> Result<_> {
            let time = self.time(&request)?;
            Ok((time, request))
        };
        let best = self.at_best_ports(request, timed, |(time, _)| *time)?;
        Ok(best.map_or(Cow::Borrowed(request), |(_, best)| Cow::Owned(best)))
    }

    /// The smallest closed form of all uses of the ports that are compared, `None` if one has none.
    pub(super) fn closed_form_of_uses(&self, request: &Request) -> Option<Option<f64>> {
        let mut uses = self.uses(request).into_iter().peekable();
        uses.peek()?;
        let closed = |used| self.closed_form(&request.using(used));
        Some(uses.try_fold(f64::INFINITY, |least, used| Some(least.min(closed(used)?))))
    }

    /// Whether both directions of a port are used one at a time: the schedule may take less time
    /// than on unidirectional ports.
    pub(in crate::plan) fn leaves_directions_idle(&self, request: &Request) -> bool {
        let used = self.on_used_ports(request).map(|used| used.ports);
        used.is_some_and(|used| !used.is_bidirectional() && request.ports.is_bidirectional())
    }

    /// The request for the ports that are used alone, if the request has others.
    pub(in crate::plan) fn on_used_ports(&self, request: &Request) -> Option<Request> {
        let used = request.used.filter(|&used| self.ports.has(used));
        let used = used.or_else(|| self.ports.uses(request.ports).next())?;
        (used != request.ports).then(|| {
            let mut alone = request.using(used);
            alone.ports = used;
            alone
        })
    }
}

/// The first of the results with the smallest `time`, or the first refusal if all are refused.
pub(super) fn first_best<T, E>(
    results: impl Iterator<Item = Result<T, E>>,
    time: impl Fn(&T) -> f64,
) -> Option<Result<T, E>> {
    results.reduce(|best, next| match (&best, &next) {
        (Err(_), Ok(_)) => next,
        (Ok(least), Ok(other)) if time(other) < time(least) => next,
        _ => best,
    })
}

/// Programs for some of the ports, for pairs of them, or for one direction of each at a time.
pub(super) struct OnPorts {
    pub(super) planned: Planned,
    pub(super) ports: Ports,
}

impl DynScheduleSource for OnPorts {
    fn collective(&self) -> Collective {
        self.planned.collective()
    }

    fn ports(&self) -> Ports {
        self.ports
    }

    fn layouts(&self) -> Box<dyn Iterator<Item = Layout> + '_> {
        self.planned.layouts()
    }

    fn any_transfer(&self, holds: &dyn Fn(bool, usize) -> bool) -> bool {
        let own = self.planned.ports();
        let holds = |sends, port| holds(sends, number(self.ports, own, sends, port));
        self.planned.programs().any_transfer(&holds)
    }

    fn timed_within(
        &self,
        cost: &CostModel,
        element_bytes: u64,
        limit: f64,
        watch: &mut dyn FnMut(u64),
    ) -> Result<Option<Timed>> {
        let own = self.planned.ports();
        if self.ports.is_bidirectional() && !own.is_bidirectional() {
            // Both directions of a port run at once where the programs let them.
            let schedule = self.materialize()?;
            return simulate::stream_within(&schedule, cost, element_bytes, limit, watch);
        }
        self.planned.timed_within(cost, limit, watch)
    }

    fn lower_bound(&self, ports: Ports, cost: &CostModel, element_bytes: u64) -> LowerBounds {
        self.planned
            .programs()
            .lower_bound(ports, cost, element_bytes)
    }

    fn materialize(&self) -> Result<Schedule> {
        on_ports(self.planned.store()?, self.ports)
    }
}

/// The schedule with its ports as some of these, or with a pair of these for each of its ports.
pub(super) fn on_ports(schedule: Schedule, ports: Ports) -> Result<Schedule> {
    let (own, collective) = (schedule.ports(), schedule.collective().clone());
    let layout = schedule.layout().to_vec();
    let on_port = |step: Step| match step.port() {
        Some(port) => {
            let port = number(ports, own, step.is_send(), port);
            step.on_port(port)
        }
        None => step,
    };
    let programs = schedule.into_programs().into_iter();
    let programs = programs.map(|steps| steps.into_iter().map(on_port).collect());
    Schedule::new(ports, collective, layout, programs.collect())
}

/// The port among `ports` that takes the place of number `port` of a schedule's `own` ones.
fn number(ports: Ports, own: Ports, sends: bool, port: usize) -> usize {
    match own.is_bidirectional() && !ports.is_bidirectional() {
        true => own.list(sends, port),
        false => port,
    }
}
