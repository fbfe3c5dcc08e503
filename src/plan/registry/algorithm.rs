//! [`Algorithm`], a row of the registry or a composition: whether it can be planned, and its plan
//! on given ports. In `plan/space` stand the uses of ports and the roots that it leaves open
//! (`open.rs`), the best of these and by it `plan` and `time` (`given.rs`), and `closed_form`
//! (`variant.rs`).

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use super::multicast::multicast;
use super::of;
use super::planner::{Planned, Planner};
use super::row::{ClosedForm, Nodes, Row};
use crate::budget::size::MAX_TRANSFERS;
use crate::error::Result;
use crate::plan::Request;
use crate::plan::build::stream::{allreduce_of, broadcast_of, reduction_of};
use crate::plan::refusal::{Reason, Refusal};
use crate::schedule::Schedule;

/// One algorithm for one collective: a row of the registry, whose fields it has, or a composition
/// with algorithms for its phases.
///
/// Its `Display` is its name, as [`find`](super::find) reads it.
#[derive(Debug, Clone)]
pub struct Algorithm {
    pub(super) row: &'static Row,
    /// By phase of a composition: its algorithm; `None` for the one of the smallest model time.
    pub(super) parts: Option<Arc<[Option<Algorithm>]>>,
    /// Whether it was [found](super::find) by its name. It is then planned also for a port that
    /// others use better.
    pub(super) is_named: bool,
}

impl Algorithm {
    /// The algorithm of this row. That of a composition chooses those of its phases.
    pub(in crate::plan) const fn of(row: &'static Row) -> Algorithm {
        Algorithm {
            row,
            parts: None,
            is_named: false,
        }
    }
}

impl Deref for Algorithm {
    type Target = Row;

    fn deref(&self) -> &Row {
        self.row
    }
}

/// Names are unique within a collective.
impl PartialEq for Algorithm {
    fn eq(&self, other: &Algorithm) -> bool {
        let key = |a: &Algorithm| (a.row.collective, a.row.name);
        key(self) == key(other) && self.parts == other.parts
    }
}

impl Eq for Algorithm {}

impl Algorithm {
    /// Plans the request on its ports as they are, for its root or one that the planner takes.
    pub(in crate::plan) fn plan_on_ports(&self, request: &Request) -> Result<Planned> {
        let algorithm = self.planning_algorithm(request);
        algorithm.accepts(request)?;
        algorithm.by_planner(request)
    }

    /// The closed form of the time on the request's ports as they are, for costs that closed forms
    /// are stated for.
    pub(in crate::plan) fn closed_form_on_ports(&self, request: &Request) -> Option<f64> {
        let algorithm = self.planning_algorithm(request);
        match algorithm.formula {
            ClosedForm::None => None,
            ClosedForm::Of(time) | ClosedForm::OfPlan(time) => time(&algorithm.effective(request)),
            ClosedForm::ReduceThenBroadcast(time) => {
                let request = request.clone().root(0);
                Some(time(&request)? + time(&request.without_computation())?)
            }
        }
    }

    /// Whether it has a closed form of its time, for some requests at least.
    #[doc(hidden)]
    pub fn has_closed_form(&self) -> bool {
        !matches!(self.formula, ClosedForm::None)
    }

    /// What the planner makes of a request whose ports and root are chosen.
    fn by_planner(&self, open: &Request) -> Result<Planned> {
        let element_bytes = open.element_bytes;
        let streamed = |programs| Planned::Streamed {
            programs,
            element_bytes,
            ports: open.ports,
        };
        let schedule = match self.planner {
            Planner::Streamed(programs) => return programs(open).map(streamed),
            Planner::Reduction(plan) => return Ok(streamed(reduction_of(open, plan))),
            Planner::BroadcastOf(plan) => return Ok(streamed(broadcast_of(open, plan))),
            Planner::AllreduceOf(plans) => return Ok(streamed(allreduce_of(open, plans))),
            Planner::Direct(plan) => plan(open),
            Planner::ReverseOf(plan) => self.reverse_of(open, plan),
            Planner::MulticastBy(broadcast) => multicast(open, broadcast),
            Planner::Composed(composition) => (composition.plan)(self, &composition, open),
        };
        Ok(Planned::Stored(schedule?.with_element_bytes(element_bytes)))
    }

    fn reverse_of(
        &self,
        request: &Request,
        plan: fn(&Request) -> Result<Schedule>,
    ) -> Result<Schedule> {
        let mut request = request.without_computation();
        // Only reductions have operands to keep in order: a broadcast need not pass through rank 0.
        request.keep_order &= self.collective.reduces();
        let splits = self.collective.has_blocks() && !self.collective.is_sized_by_block();
        if splits && request.blocks.is_none() {
            let sizes = request.block_spans().iter().map(|s| s.len).collect();
            request.blocks = Some(sizes);
        }
        plan(&request)?.into_reversed()
    }

    /// The algorithm that plans `request`: this one, or another one with the same schedule.
    pub(in crate::plan) fn planning_algorithm(&self, request: &Request) -> Algorithm {
        match (self.same_as)(request) {
            Some(same) => Algorithm::of(same).planning_algorithm(request),
            None => self.clone(),
        }
    }

    /// The row of the algorithm that plans `request`.
    #[doc(hidden)]
    pub fn planning_row(&self, request: &Request) -> &'static Row {
        self.planning_algorithm(request).row
    }

    /// Transfers of its schedule for `request`, at most: those of the row that plans it.
    #[doc(hidden)]
    pub fn transfers_for(&self, request: &Request) -> usize {
        (self.planning_row(request).transfers)(request.ranks, self.segments_of(request))
    }

    /// Number of segments that it splits the vector of `request` into.
    pub(in crate::plan) fn segments_of(&self, request: &Request) -> usize {
        if self.segmented {
            request.segments.count()
        } else {
            1
        }
    }

    /// The request with the costs that count: a collective that does not combine has no
    /// computation.
    pub(in crate::plan) fn effective<'r>(&self, request: &'r Request) -> Cow<'r, Request> {
        if self.collective.reduces() {
            Cow::Borrowed(request)
        } else {
            Cow::Owned(request.without_computation())
        }
    }

    /// Checks whether [`Algorithm::plan`] accepts `request`, without planning it, in `O(p + q)`
    /// time for `q` segments.
    ///
    /// # Errors
    /// Why it does not, and the algorithms that may. The request is not valid
    /// ([`Request::validate`]) or for another collective; it has block sizes where there is one
    /// vector; the schedule would have more steps, or the blocks more elements, than can be
    /// counted; or the algorithm has a restriction: on ports, operators, block sizes or links.
    pub fn accepts(&self, request: &Request) -> Result<(), Refusal> {
        self.check(request)
            .map_err(|reason| self.refusal(request, reason))
    }

    /// The refusal of `request` for `reason`, with the alternatives of the registry.
    pub fn refusal(&self, request: &Request, reason: Reason) -> Refusal {
        let lacks_restriction = |a: &Algorithm| match reason {
            Reason::PairSizes => !a.one_size_a_rank,
            Reason::Links => !a.uniform_links_only,
            Reason::Commutativity => !a.commutative_only,
            Reason::Bits => a.gives_same_bits(request),
            _ => true,
        };
        let alternatives = if reason.is_restriction() {
            of(self.collective)
                .filter(|a| lacks_restriction(a) && a.ports.allow(request.ports))
                .filter(|a| a.is_made_for(&request.cost))
                .map(|a| a.row.name)
                .collect()
        } else {
            Vec::new()
        };
        Refusal {
            algorithm: self.name(),
            collective: self.collective,
            reason,
            alternatives,
        }
    }

    fn check(&self, request: &Request) -> Result<(), Reason> {
        request.validate().map_err(Reason::Invalid)?;
        if request.kind != self.collective {
            return Err(Reason::Collective(request.kind));
        }
        let ranks = request.ranks;
        let links_differ = request.cost.links().is_some();
        let with_links = self.max_ranks_with_links.filter(|_| links_differ);
        for (most, links_differ) in [(self.max_ranks, false), (with_links, true)] {
            if let Some(max) = most.filter(|&max| ranks > max) {
                return Err(Reason::TooManyRanks {
                    ranks,
                    max,
                    links_differ,
                });
            }
        }
        if self.transfers_for(request) > MAX_TRANSFERS {
            let segments = self.segments_of(request);
            return Err(Reason::TooManySteps { ranks, segments });
        }
        self.check_blocks(request)?;
        if self.uniform_links_only && links_differ {
            return Err(Reason::Links);
        }
        let ports = request.ports;
        // On an ideal machine, algorithms for one direction at a time lead on several ports alone.
        let may_lead = self.is_named || !request.closed_forms_hold();
        if !(self.ports.allow(ports) || may_lead && self.ports.can_use(ports)) {
            return Err(Reason::Ports(ports));
        }
        if self.commutative_only && request.keep_order && self.collective.reduces() {
            return Err(Reason::Commutativity);
        }
        if request.same_bits && !self.gives_same_bits(request) {
            return Err(Reason::Bits);
        }
        self.check_nodes(request)
    }

    /// Whether each element of a sum of floats has the same bits on all ranks that get it.
    fn gives_same_bits(&self, request: &Request) -> bool {
        let mut parts = self.parts.iter().flat_map(|parts| parts.iter().flatten());
        let agree = (self.ranks_agree)(request.ranks, request.ports.k());
        (agree || (self.has_common_order)(request.ranks))
            && parts.all(|part| part.gives_same_bits(request))
    }

    /// Whether each element of a sum of floats has the same bits on all ranks, but only where the
    /// request asks for that: the schedule is then another one, which may take more time.
    #[doc(hidden)]
    pub fn agrees_if_asked(&self, request: &Request) -> bool {
        let asked = request.clone().same_bits(true);
        let agrees = (self.ranks_agree)(request.ranks, request.ports.k());
        !agrees && !request.same_bits && self.gives_same_bits(&asked)
    }

    /// Checks the nodes. Phases within them and between them combine contributions in rank order
    /// only if each node has consecutive ranks.
    fn check_nodes(&self, request: &Request) -> Result<(), Reason> {
        if self.nodes == Nodes::Any {
            return Ok(());
        }
        let nodes = request.cost.nodes(request.ranks).ok_or(Reason::NoNodes)?;
        let sizes = || nodes.iter().map(Vec::len);
        let (smallest, largest) = (sizes().min(), sizes().max());
        if let (Some(smallest), Some(largest), Nodes::Equal) = (smallest, largest, self.nodes)
            && smallest < largest
        {
            return Err(Reason::NodeSizes { smallest, largest });
        }
        if request.keep_order && self.collective.reduces() && !nodes.concat().is_sorted() {
            return Err(Reason::NodeOrder);
        }
        Ok(())
    }

    /// Checks the block sizes: only collectives with blocks may have them, and only some algorithms
    /// support unequal ones.
    fn check_blocks(&self, request: &Request) -> Result<(), Reason> {
        let (ranks, elements) = (request.ranks, request.elements());
        match &request.blocks {
            None => {
                if self.collective.is_sized_by_block() && elements.checked_mul(ranks).is_none() {
                    return Err(Reason::BlocksOverflow { ranks, elements });
                }
                Ok(())
            }
            Some(_) if !self.collective.has_blocks() => Err(Reason::OneVector),
            Some(blocks) if self.one_size_a_rank && blocks.len() > ranks => Err(Reason::PairSizes),
            Some(_) => Ok(()),
        }
    }
}
