//! [`Algorithm`], a row of the registry: what an algorithm can do, and how it is planned and timed.

use std::borrow::Cow;

use super::planner::{Planned, Planner};
use super::ports::{OnPorts, on_ports};
use super::root::BestRoot;
use super::{Reduction, of};
use crate::error::Result;
use crate::machine::Ports;
use crate::plan::Request;
use crate::plan::build::stream::Stream;
use crate::plan::circulant::table::Table;
use crate::plan::refusal::{Reason, Refusal};
use crate::plan::request::MAX_TRANSFERS;
use crate::plan::segments::{Best, Published, Symbols};
use crate::plan::tree::reduce_broadcast;
use crate::schedule::Schedule;
use crate::schedule::collective::Kind;

/// One algorithm for one collective.
#[derive(Debug, Clone, Copy)]
pub struct Algorithm {
    /// Name, unique within the collective.
    pub name: &'static str,
    /// The collective that the algorithm performs.
    pub collective: Kind,
    /// Port models it can be planned for.
    pub ports: PortModels,
    /// Whether it requires an operator that commutes.
    pub commutative_only: bool,
    /// Whether its schedules depend on the number of ports of each kind, unless only because it
    /// takes the best algorithm for them as a part.
    pub k_ported: bool,
    /// Whether it requires links with equal costs.
    pub uniform_links_only: bool,
    /// Whether it requires blocks of equal size.
    pub regular_only: bool,
    /// Whether it requires that all blocks of an alltoall for a rank have one size.
    pub one_size_a_rank: bool,
    /// What it requires of the machine's nodes.
    pub nodes: Nodes,
    /// Whether it splits the vector, or every block, into the request's segments.
    pub segmented: bool,
    /// Approximate number of transfers, for `(p, q)`: `p` ranks with `q` segments. It determines
    /// the time and memory of a schedule.
    pub transfers: fn(usize, usize) -> usize,
    /// Approximate time of planning a schedule, as a multiple of that of simulating it: more than 1
    /// where planning is a search.
    pub planning_work: u64,
    /// Approximate memory, in bytes, for planning with `p` ranks in addition to the schedule: the
    /// tables of the search for the best tree.
    pub tables: fn(usize) -> u64,
    /// The publication it comes from.
    pub source: &'static str,
    /// Number of communication rounds, in the field's symbols.
    pub rounds: &'static str,
    /// Number of elements moved by all ranks together.
    pub volume: &'static str,
    /// The largest number of ranks it is planned for.
    pub max_ranks: Option<usize>,
    /// The largest number of ranks it is planned for where links differ.
    pub max_ranks_with_links: Option<usize>,
    /// The table of the circulant schedules that it follows, for a number of ranks.
    pub schedule_table: Option<fn(usize) -> Result<Table>>,
    /// For `(p, k)`, `p` ranks with `k` ports each: the number of messages on a chain that each of
    /// its schedules has, of any number of segments. 0 says nothing.
    pub(in crate::plan) min_rounds: fn(usize, usize) -> usize,
    /// How a free root is chosen.
    pub(in crate::plan) best_root: BestRoot,
    /// How it is planned.
    pub planner: Planner,
    /// The algorithm that has the same schedule for a request, if one does: that one plans it.
    pub(in crate::plan) same_as: fn(&Request) -> Option<&'static Algorithm>,
    /// The closed form of the time as executed.
    pub(in crate::plan) closed_form: ClosedForm,
    /// The smallest number of ranks, at least this one, that the closed form covers.
    pub(in crate::plan) covered_ranks: fn(usize) -> usize,
    /// How the best size of equal segments is found, where the vector is split.
    pub(in crate::plan) best_segment: BestSegment,
    /// What a published table prints for it.
    pub(in crate::plan) published: Option<fn(&Symbols) -> Option<Published>>,
}

/// A function of the request, `None` for requests that it does not cover.
pub(in crate::plan) type Formula = fn(&Request) -> Option<f64>;

/// The closed form of an algorithm's time.
#[derive(Debug, Clone, Copy)]
pub(in crate::plan) enum ClosedForm {
    /// There is none.
    None,
    /// The formula.
    Of(Formula),
    /// The formula of a reduction to rank 0, then again without computation: a broadcast.
    ReduceThenBroadcast(Formula),
}

/// How the best size of equal segments is found.
#[derive(Debug, Clone, Copy)]
pub(in crate::plan) enum BestSegment {
    /// By a search over the number of segments.
    Search,
    /// The real number that minimizes the closed form.
    Formula(fn(&Symbols) -> f64),
    /// By a search of its own, `None` for requests that it does not cover.
    Own(fn(&Algorithm, &Request) -> Result<Option<Best>>),
}

/// The [nodes](crate::CostModel::nodes) of the machines that an algorithm is planned for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nodes {
    /// Any machine, also without nodes.
    Any,
    /// Machines whose costs show nodes.
    Some,
    /// Machines whose costs show nodes with the same number of ranks.
    Equal,
}

/// Port models an algorithm is planned for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortModels {
    /// Unidirectional ports.
    Uni,
    /// Bidirectional ports, or several unidirectional ones, which it uses in pairs: one of a pair
    /// sends, the other receives.
    Bi,
    /// Bidirectional ports and unidirectional ones; an even number of these rather in pairs.
    Both,
    /// Bidirectional ports and unidirectional ones, these rather each by itself: most ranks send
    /// much more than they receive, or the reverse.
    Each,
}

impl PortModels {
    /// Whether the port model of `ports` is included.
    pub fn allow(self, ports: Ports) -> bool {
        self.uses(ports).next().is_some()
    }

    /// `"uni"`, `"bi"` or `"uni, bi"`.
    pub fn name(self) -> &'static str {
        match self {
            PortModels::Uni => "uni",
            PortModels::Bi => "bi",
            PortModels::Both | PortModels::Each => "uni, bi",
        }
    }
}

impl Algorithm {
    /// Plans `request` and stores the schedule. The [planners](crate::plan) state the shapes of the
    /// buffers and the time of planning.
    ///
    /// # Errors
    /// As [`accepts`](Self::accepts), and where the planner itself fails: a buffer would overflow,
    /// there are too many ranks for its search, or the links do not connect all ranks.
    pub fn plan(&self, request: &Request) -> Result<Schedule> {
        let schedule = self.stored(request)?;
        Ok(schedule.with_element_bytes(request.element_bytes))
    }

    fn stored(&self, request: &Request) -> Result<Schedule> {
        self.accepts(request)?;
        let request = &*self.with_best_ports(request)?;
        if let Some(used) = self.on_used_ports(request) {
            return on_ports(self.plan(&used)?, request.ports);
        }
        if let Some(same) = (self.same_as)(request) {
            return same.plan(request);
        }
        let request = &*self.with_best_root(request)?;
        let open = &*request.with_open_ports();
        match self.planner {
            Planner::Direct(plan) => plan(open),
            Planner::ReduceBroadcast(plan) => reduce_broadcast::plan(open, plan),
            Planner::Streamed(_)
            | Planner::Reduction(_)
            | Planner::BroadcastOf(_)
            | Planner::AllreduceOf(_) => self.planned(request)?.materialize(),
            Planner::Composed(composition) => (composition.plan)(&composition, open),
            Planner::ReverseOf(plan) => {
                let mut request = open.without_computation();
                // Only reductions have operands to keep in order: a broadcast need not pass through
                // rank 0.
                request.keep_order &= self.collective.reduces();
                let splits = self.collective.has_blocks() && !self.collective.is_sized_by_block();
                if splits && request.blocks.is_none() {
                    let sizes = request
                        .reduce_scatter_spans()
                        .iter()
                        .map(|s| s.len)
                        .collect();
                    request.blocks = Some(sizes);
                }
                plan(&request)?.into_reversed()
            }
        }
    }

    /// As [`Algorithm::plan`], but does not store the schedule if the algorithm can stream it.
    ///
    /// # Errors
    /// As [`Algorithm::plan`].
    pub fn planned(&self, request: &Request) -> Result<Planned> {
        self.accepts(request)?;
        let streamed = |programs| Planned::Streamed {
            programs,
            element_bytes: request.element_bytes,
        };
        let request = &*self.with_best_ports(request)?;
        if let Some(used) = self.on_used_ports(request) {
            let (planned, ports) = (self.planned(&used)?, request.ports);
            let programs = Box::new(OnPorts { planned, ports });
            return Ok(streamed(programs));
        }
        if let Some(same) = (self.same_as)(request) {
            return same.planned(request);
        }
        let request = &*self.with_best_root(request)?;
        let open = &*request.with_open_ports();
        Ok(streamed(match self.planner {
            Planner::Streamed(programs) => programs(open)?,
            Planner::Reduction(plan) => Box::new(Stream(plan(open)?)),
            Planner::BroadcastOf(plan) => Box::new(Reduction::reversed(open, plan)?),
            Planner::AllreduceOf(plan) => Box::new(Reduction::allreduce(open, plan)?),
            Planner::Direct(_)
            | Planner::ReverseOf(_)
            | Planner::ReduceBroadcast(_)
            | Planner::Composed(_) => {
                return Ok(Planned::Stored(self.plan(request)?));
            }
        }))
    }

    /// The algorithm that plans `request`: this one, or another one with the same schedule.
    pub fn planned_as(&self, request: &Request) -> &Algorithm {
        (self.same_as)(request).unwrap_or(self)
    }

    /// Approximate memory per transfer, in bytes, while the result of [`Algorithm::planned`]
    /// exists; `None` if that is a stored schedule.
    pub fn bytes_per_transfer(&self) -> Option<u64> {
        match self.planner {
            Planner::Streamed(_) => Some(0),
            // A planned transfer, which takes up to twice its size while the list grows, and its
            // two halves.
            Planner::Reduction(_) | Planner::BroadcastOf(_) | Planner::AllreduceOf(_) => Some(64),
            Planner::Direct(_)
            | Planner::ReverseOf(_)
            | Planner::ReduceBroadcast(_)
            | Planner::Composed(_) => None,
        }
    }

    /// Whether [`Algorithm::planned`] gives a source that times requests whose schedules are too
    /// long to store.
    pub fn is_streamed(&self) -> bool {
        matches!(self.planner, Planner::Streamed(_))
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
        published(&Symbols::of(&self.effective(request))?)
    }

    /// The requests that it does not support, besides those that its ports and its operator
    /// exclude, in words; empty if there are none.
    pub fn restrictions(&self) -> String {
        let mut all = Vec::new();
        if self.uniform_links_only {
            all.push("links that cost the same".to_string());
        }
        if self.regular_only {
            all.push("blocks of one size".to_string());
        }
        if self.one_size_a_rank {
            all.push("one size for all blocks of a rank".to_string());
        }
        match self.nodes {
            Nodes::Any => {}
            Nodes::Some => all.push("costs with levels".to_string()),
            Nodes::Equal => all.push("costs with levels, nodes of one size".to_string()),
        }
        if let Some(max) = self.max_ranks {
            all.push(format!("at most {max} ranks"));
        }
        if let Some(max) = self.max_ranks_with_links {
            all.push(format!("at most {max} ranks where links differ"));
        }
        all.join("; ")
    }

    /// The row as a base for another collective: without best segment and published table.
    pub(in crate::plan) const fn for_another_collective(self) -> Algorithm {
        Algorithm {
            best_segment: BestSegment::Search,
            published: None,
            ..self
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
            Reason::BlockSizes => !a.regular_only,
            Reason::PairSizes => !a.one_size_a_rank,
            Reason::Links => !a.uniform_links_only,
            Reason::Commutativity => !a.commutative_only,
            _ => true,
        };
        let alternatives = match reason.is_restriction() {
            true => of(self.collective)
                .filter(|a| lacks_restriction(a) && a.ports.allow(request.ports))
                .map(|a| a.name)
                .collect(),
            false => Vec::new(),
        };
        Refusal {
            algorithm: self.name,
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
