//! [`Algorithm`], a row of the registry or a composition: whether it can be planned, and its plan.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use super::multicast::multicast;
use super::of;
use super::planner::{Planned, Planner};
use super::ports::OnPorts;
use super::row::{Nodes, Row};
use crate::budget::size::MAX_TRANSFERS;
use crate::error::Result;
use crate::plan::Request;
use crate::plan::build::stream::{allreduce_of, broadcast_of, reduction_of};
use crate::plan::refusal::{Reason, Refusal};
use crate::plan::segments::{Published, SymbolValues};
use crate::schedule::Schedule;
use crate::schedule::collective::Kind;

/// One algorithm for one collective: a row of the registry, whose fields it has, or a composition
/// with algorithms for its phases.
///
/// Its `Display` is its name, as [`find`](super::find) reads it.
#[derive(Debug, Clone)]
pub struct Algorithm {
    pub(super) row: &'static Row,
    /// By phase of a composition: its algorithm; `None` for the one of the smallest model time.
    pub(super) parts: Option<Arc<[Option<Algorithm>]>>,
}

impl Algorithm {
    /// The algorithm of this row. That of a composition chooses those of its phases.
    pub(in crate::plan) const fn of(row: &'static Row) -> Algorithm {
        Algorithm { row, parts: None }
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
    /// Plans `request` and stores the schedule, under the name of the algorithm. The
    /// [planners](crate::plan) state the shapes of the buffers and the time of planning.
    ///
    /// # Errors
    /// As [`accepts`](Self::accepts), and where the planner itself fails: a buffer would overflow,
    /// there are too many ranks for its search, or the links do not connect all ranks.
    pub fn plan(&self, request: &Request) -> Result<Schedule> {
        let schedule = self.planned(request)?.materialize()?;
        schedule.with_name(self.name())
    }

    /// As [`Algorithm::plan`], but does not store the schedule if the algorithm can stream it.
    pub fn planned(&self, request: &Request) -> Result<Planned> {
        self.accepts(request)?;
        let request = &*self.with_best_ports(request)?;
        if let Some(used) = self.on_used_ports(request) {
            let (planned, ports) = (self.planned(&used)?, request.ports);
            return Ok(Planned::Streamed {
                programs: Box::new(OnPorts { planned, ports }),
                element_bytes: request.element_bytes,
            });
        }
        if let Some(same) = (self.same_as)(request) {
            return Algorithm::of(same).planned(request);
        }
        let request = &*self.with_best_root(request)?;
        let open = &*request.with_open_ports();
        let planned = self.by_planner(open)?;
        let cost = &request.cost;
        if !self.for_arrivals || cost.last_arrival() == 0.0 {
            return Ok(planned);
        }
        let together = open.clone().cost(cost.clone().without_arrivals());
        let together = self.by_planner(&together)?;
        // What has no time, for want of a link, is no faster.
        let time = |planned: &Planned| {
            planned
                .timed(cost, |_| ())
                .map_or(f64::INFINITY, |t| t.time)
        };
        let is_faster = time(&together) < time(&planned);
        Ok(if is_faster { together } else { planned })
    }

    /// What the planner makes of a request whose ports and root are chosen.
    fn by_planner(&self, open: &Request) -> Result<Planned> {
        let element_bytes = open.element_bytes;
        let streamed = |programs| Planned::Streamed {
            programs,
            element_bytes,
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
    #[doc(hidden)]
    pub fn planned_as(&self, request: &Request) -> &Row {
        (self.same_as)(request).unwrap_or(self.row)
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
        let covered = self.ports.allow(request.ports) && self.on_used_ports(request).is_none();
        let covered = covered && request.ranks > 3 && request.elements() > 0;
        let reduces = self.collective == Kind::Reduce;
        let forwarded = reduces && request.keep_order && request.root != 0;
        let covered = covered && !forwarded && request.closed_forms_hold();
        let published = self.published.filter(|_| covered)?;
        published(&SymbolValues::of(&self.effective(request))?)
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
            Reason::BlockSizes => !a.regular_only,
            Reason::PairSizes => !a.one_size_a_rank,
            Reason::Links => !a.uniform_links_only,
            Reason::Commutativity => !a.commutative_only,
            _ => true,
        };
        let alternatives = match reason.is_restriction() {
            true => of(self.collective)
                .filter(|a| lacks_restriction(a) && a.ports.allow(request.ports))
                .filter(|a| a.is_made_for(&request.cost))
                .map(|a| a.row.name)
                .collect(),
            false => Vec::new(),
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
        let segments = if self.segmented {
            request.segments.count()
        } else {
            1
        };
        if let Some(max) = self.max_ranks.filter(|&max| ranks > max) {
            return Err(Reason::TooManyRanks { ranks, max });
        }
        if (self.transfers)(ranks, segments) > MAX_TRANSFERS {
            return Err(Reason::TooManySteps { ranks, segments });
        }
        self.check_blocks(request)?;
        if self.uniform_links_only && request.cost.links().is_some() {
            return Err(Reason::Links);
        }
        if !self.ports.allow(request.ports) {
            return Err(Reason::Ports(request.ports));
        }
        if self.commutative_only && request.keep_order && self.collective.reduces() {
            return Err(Reason::Commutativity);
        }
        self.check_nodes(request)
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
            Some(blocks) if self.regular_only && blocks.iter().any(|&b| b != blocks[0]) => {
                Err(Reason::BlockSizes)
            }
            Some(blocks) if self.one_size_a_rank && blocks.len() > ranks => Err(Reason::PairSizes),
            Some(_) => Ok(()),
        }
    }
}
