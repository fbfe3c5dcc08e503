//! The registry: one row an algorithm.
//!
//! `oneport list`, the README's table, the generic test-suite and the benches all read it, so an
//! algorithm added here is listed, checked, simulated, run and benched like all others.

pub(in crate::plan) mod row;

use self::row::broadcast;
use super::circulant::rows as circulant;
use super::exchange::rows as exchange;
use super::gather::rows as gather;
use super::pipeline::rows as pipeline;
pub use super::reduction::Reduction;
pub use super::stream::DynScheduleSource;
use super::stream::Stream;
use super::tree::rows as tree;
use super::{MAX_TRANSFERS, Request};
use crate::collective::{Collective, Kind};
use crate::cost::{CostModel, Ports};
use crate::error::{Error, Result};
use crate::schedule::{Layout, Schedule};
use crate::simulate::{self, Timed};

/// One algorithm for one collective.
#[derive(Debug, Clone, Copy)]
pub struct Algorithm {
    /// Its name, unique within the collective.
    pub name: &'static str,
    /// What it performs.
    pub collective: Kind,
    /// Port models it is planned for.
    pub ports: PortModels,
    /// Whether it needs an operator that commutes.
    pub commutative_only: bool,
    /// Whether it needs links that all cost the same.
    pub uniform_links_only: bool,
    /// Whether it needs blocks of one size.
    pub regular_only: bool,
    /// Whether it splits the vector, or every block, into the request's segments.
    pub segmented: bool,
    /// About how many transfers `p` ranks make with `q` segments: what a schedule takes to plan
    /// and hold.
    pub transfers: fn(usize, usize) -> usize,
    /// About how many bytes planning for `p` ranks takes besides the schedule: those of the tables
    /// in which the best tree is looked for.
    pub tables: fn(usize) -> u64,
    /// Where it comes from.
    pub source: &'static str,
    /// Communication rounds, in the field's symbols.
    pub rounds: &'static str,
    /// Elements moved by all ranks together.
    pub volume: &'static str,
    /// For whom it is not, or nothing.
    pub restrictions: &'static str,
    /// How it is planned.
    pub planner: Planner,
    /// The closed form of the time as executed, where there is one: `None` for requests it does
    /// not cover.
    pub time: Option<fn(&Request) -> Option<f64>>,
}

/// Port models an algorithm is planned for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum PortModels {
    Uni,
    Bi,
    Both,
}

/// How an algorithm gets its schedule.
#[derive(Debug, Clone, Copy)]
pub enum Planner {
    /// Planned as it stands.
    Direct(fn(&Request) -> Result<Schedule>),
    /// The reversal of what this plans for free computation.
    ReverseOf(fn(&Request) -> Result<Schedule>),
    /// ScheduleSource on demand, through the first port of each kind: stored as they stand, or timed
    /// without being stored.
    Streamed(fn(&Request) -> Result<Box<dyn DynScheduleSource>>),
    /// A reduction, whose transfers are stored in little memory, but not as steps where only times
    /// are wanted.
    Reduction(fn(&Request) -> Result<Reduction>),
    /// The broadcast that is what this plans for free computation, backwards.
    BroadcastOf(fn(&Request) -> Result<Reduction>),
    /// The allreduce that is what this plans, then what it plans for free computation, backwards.
    AllreduceOf(fn(&Request) -> Result<Reduction>),
}

/// What an algorithm plans for a request: see [`Algorithm::planned`].
#[allow(missing_debug_implementations, reason = "may be any programs")]
pub enum Planned {
    /// A schedule.
    Stored(Schedule),
    /// ScheduleSource that need not be stored.
    Streamed(Box<dyn DynScheduleSource>),
}

impl Planned {
    /// What it is for.
    pub fn collective(&self) -> Collective {
        self.programs().collective()
    }

    /// What a rank's ports allow.
    pub fn ports(&self) -> Ports {
        self.programs().ports()
    }

    /// The buffers of all ranks, in order.
    pub fn layouts(&self) -> Box<dyn Iterator<Item = Layout> + '_> {
        self.programs().layouts()
    }

    /// Whether some step names another port than the first of its kind.
    pub fn uses_several_ports(&self) -> bool {
        match self {
            Planned::Stored(schedule) => {
                let mut steps = schedule.programs().iter().flatten();
                steps.any(|step| step.port().is_some_and(|port| port > 0))
            }
            Planned::Streamed(_) => false,
        }
    }

    /// Times it under `cost`, with elements of `element_bytes` bytes. `watch` hears what
    /// [`simulate::stream_watched`] tells, if it is not stored.
    ///
    /// # Errors
    /// As [`simulate::timed`] for a schedule, otherwise as [`simulate::on_demand`].
    pub fn timed(
        &self,
        cost: &CostModel,
        element_bytes: u64,
        mut watch: impl FnMut(u64),
    ) -> Result<Timed> {
        match self {
            Planned::Stored(schedule) => simulate::timed(schedule, cost, element_bytes),
            Planned::Streamed(programs) => programs.timed(cost, element_bytes, &mut watch),
        }
    }

    /// The schedule.
    ///
    /// # Errors
    /// As [`Schedule::new`].
    pub fn materialize(self) -> Result<Schedule> {
        match self {
            Planned::Stored(schedule) => Ok(schedule),
            Planned::Streamed(programs) => programs.materialize(),
        }
    }

    fn programs(&self) -> &dyn DynScheduleSource {
        match self {
            Planned::Stored(schedule) => schedule,
            Planned::Streamed(programs) => programs.as_ref(),
        }
    }
}

impl PortModels {
    /// Whether `ports` is one of them.
    pub fn allow(self, ports: Ports) -> bool {
        match self {
            PortModels::Uni => !ports.is_bidirectional(),
            PortModels::Bi => ports.is_bidirectional(),
            PortModels::Both => true,
        }
    }

    /// `"uni"`, `"bi"` or `"uni, bi"`.
    pub fn name(self) -> &'static str {
        match self {
            PortModels::Uni => "uni",
            PortModels::Bi => "bi",
            PortModels::Both => "uni, bi",
        }
    }
}

impl Algorithm {
    /// Plans `request`.
    ///
    /// # Errors
    /// When there is no rank, the root is out of range, a cost is not a time or the costs describe
    /// fewer ranks, the schedule would be too long, or the algorithm is not for these ports or
    /// this operator (naming one that is).
    pub fn plan(&self, request: &Request) -> Result<Schedule> {
        self.accepts(request)?;
        match self.planner {
            Planner::Direct(plan) => plan(request),
            Planner::Streamed(_)
            | Planner::Reduction(_)
            | Planner::BroadcastOf(_)
            | Planner::AllreduceOf(_) => self.planned(request)?.materialize(),
            Planner::ReverseOf(plan) => {
                let mut request = request.clone();
                request.cost = request.cost.gamma(0.0);
                // Only what combines has operands to keep in order: a broadcast need not pass
                // through rank 0.
                request.keep_order &= self.collective.reduces();
                if self.collective == Kind::ReduceScatter && request.blocks.is_none() {
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

    /// As [`Algorithm::plan`], without storing the schedule where the algorithm gives programs on
    /// demand.
    ///
    /// # Errors
    /// As [`Algorithm::plan`].
    pub fn planned(&self, request: &Request) -> Result<Planned> {
        self.accepts(request)?;
        Ok(Planned::Streamed(match self.planner {
            Planner::Streamed(programs) => programs(request)?,
            Planner::Reduction(plan) => Box::new(Stream(plan(request)?)),
            Planner::BroadcastOf(plan) => Box::new(Reduction::backwards(request, plan)?),
            Planner::AllreduceOf(plan) => Box::new(Reduction::compose(request, plan)?),
            Planner::Direct(_) | Planner::ReverseOf(_) => {
                return Ok(Planned::Stored(self.plan(request)?));
            }
        }))
    }

    /// About how many bytes a transfer takes while [`Algorithm::planned`] holds it; `None` where
    /// that is a schedule.
    pub fn bytes_a_transfer(&self) -> Option<u64> {
        match self.planner {
            Planner::Streamed(_) => Some(0),
            // A transfer as it is planned, which takes up to twice its size while the list grows,
            // and its two halves.
            Planner::Reduction(_) | Planner::BroadcastOf(_) | Planner::AllreduceOf(_) => Some(64),
            Planner::Direct(_) | Planner::ReverseOf(_) => None,
        }
    }

    /// Whether [`Algorithm::timed`] can time requests whose schedules are too long to be stored.
    pub fn is_streamed(&self) -> bool {
        matches!(self.planner, Planner::Streamed(_))
    }

    /// Times `request` under its own costs: without storing the schedule, where the algorithm gives
    /// programs on demand.
    ///
    /// # Errors
    /// As [`Algorithm::plan`], and when a message has no link.
    pub fn timed(&self, request: &Request) -> Result<Timed> {
        self.timed_watched(request, |_| ())
    }

    /// As [`Algorithm::timed`]; `watch` hears what [`simulate::stream_watched`] tells.
    ///
    /// # Errors
    /// As [`Algorithm::timed`].
    pub fn timed_watched(&self, request: &Request, watch: impl FnMut(u64)) -> Result<Timed> {
        let (cost, element_bytes) = (&request.cost, request.element_bytes);
        match self.planned(request)? {
            Planned::Stored(schedule) => {
                simulate::stream_watched(&schedule, cost, element_bytes, watch)
            }
            programs @ Planned::Streamed(_) => programs.timed(cost, element_bytes, watch),
        }
    }

    /// Whether [`Algorithm::plan`] takes `request`.
    ///
    /// # Errors
    /// As [`Algorithm::plan`].
    pub fn accepts(&self, request: &Request) -> Result<()> {
        request.validate()?;
        let segments = if self.segmented {
            request.segments.count()
        } else {
            1
        };
        if (self.transfers)(request.ranks, segments) > MAX_TRANSFERS {
            return Err(Error::usage(format!(
                "{} ranks with {segments} segments need more than the 2^31 steps that can be numbered: take larger segments",
                request.ranks
            )));
        }
        self.accepts_blocks(request)?;
        if self.uniform_links_only && request.cost.links().is_some() {
            return Err(Error::usage(format!(
                "{} {} needs links that all cost the same: {}",
                self.name,
                self.collective.name(),
                self.others(|a| !a.uniform_links_only && a.ports.allow(request.ports))
            )));
        }
        if !self.ports.allow(request.ports) {
            return Err(Error::usage(format!(
                "{} {} is not planned for {} ports: {}",
                self.name,
                self.collective.name(),
                request.ports.name(),
                self.others(|a| a.ports.allow(request.ports))
            )));
        }
        if self.commutative_only && request.keep_order && self.collective.reduces() {
            return Err(Error::usage(format!(
                "{} {} needs an operator that commutes: {}",
                self.name,
                self.collective.name(),
                self.others(|a| !a.commutative_only && a.ports.allow(request.ports))
            )));
        }
        Ok(())
    }

    /// Block sizes are for collectives that have blocks, unequal ones for algorithms that take
    /// them.
    fn accepts_blocks(&self, request: &Request) -> Result<()> {
        let Some(blocks) = &request.blocks else {
            let vector_is_all =
                !self.collective.has_blocks() || self.collective == Kind::ReduceScatter;
            let all = request.elements().checked_mul(request.ranks);
            if !vector_is_all && all.is_none() {
                return Err(Error::usage(format!(
                    "{} blocks of {} elements overflow",
                    request.ranks,
                    request.elements()
                )));
            }
            return Ok(());
        };
        if !self.collective.has_blocks() {
            return Err(Error::usage(format!(
                "{} has one vector, not a block for each rank: give its size alone",
                self.collective.name()
            )));
        }
        if self.regular_only && blocks.iter().any(|&b| b != blocks[0]) {
            return Err(Error::usage(format!(
                "{} {} needs blocks of one size: {}",
                self.name,
                self.collective.name(),
                self.others(|a| !a.regular_only && a.ports.allow(request.ports))
            )));
        }
        Ok(())
    }

    /// What to choose instead: the algorithms for the same collective that are `good`.
    fn others(&self, good: impl Fn(&Algorithm) -> bool) -> String {
        let names: Vec<_> = of(self.collective)
            .filter(|a| good(a))
            .map(|a| a.name)
            .collect();
        if names.is_empty() {
            "no algorithm here does without".into()
        } else {
            format!("choose {}", names.join(", "))
        }
    }
}

/// All algorithms.
pub fn all() -> &'static [Algorithm] {
    ALGORITHMS
}

/// The algorithms for one collective.
pub fn of(collective: Kind) -> impl Iterator<Item = &'static Algorithm> {
    ALGORITHMS
        .iter()
        .filter(move |a| a.collective == collective)
}

/// The algorithm with this name.
///
/// # Errors
/// Lists the names when there is none.
pub fn find(collective: Kind, name: &str) -> Result<&'static Algorithm> {
    of(collective).find(|a| a.name == name).ok_or_else(|| {
        let names: Vec<_> = of(collective).map(|a| a.name).collect();
        Error::usage(if names.is_empty() {
            format!("no algorithm for {} is registered", collective.name())
        } else {
            format!(
                "unknown algorithm '{name}' for {}: choose one of {}",
                collective.name(),
                names.join(", ")
            )
        })
    })
}

const ALGORITHMS: &[Algorithm] = &[
    tree::BINOMIAL,
    tree::LINEAR,
    tree::ORDERED,
    tree::BINARY,
    tree::TWO_TREE,
    pipeline::CHAIN,
    pipeline::UNI_GREEDY,
    pipeline::OUT_OF_ORDER,
    pipeline::BI_GREEDY,
    exchange::BUTTERFLY,
    circulant::CIRCULANT,
    circulant::CIRCULANT_RSG,
    exchange::VAN_DE_GEIJN,
    exchange::VAN_DE_GEIJN_RING,
    broadcast(tree::BINOMIAL),
    broadcast(tree::LINEAR),
    tree::ORDERED_BROADCAST,
    broadcast(tree::BINARY),
    broadcast(tree::TWO_TREE),
    pipeline::CHAIN_BROADCAST,
    broadcast(pipeline::UNI_GREEDY),
    broadcast(pipeline::OUT_OF_ORDER),
    broadcast(pipeline::BI_GREEDY),
    exchange::BUTTERFLY_BROADCAST,
    circulant::CIRCULANT_BROADCAST,
    broadcast(circulant::CIRCULANT_RSG),
    exchange::VAN_DE_GEIJN_BROADCAST,
    exchange::VAN_DE_GEIJN_RING_BROADCAST,
    circulant::CENSUS,
    circulant::CIRCULANT_RSAG,
    circulant::CIRCULANT_ALLREDUCE,
    exchange::DOUBLING_ALLREDUCE,
    exchange::RABENSEIFNER,
    exchange::BRUCK_ALLREDUCE,
    exchange::RING_ALLREDUCE,
    tree::BINOMIAL_ALLREDUCE,
    tree::LINEAR_ALLREDUCE,
    tree::BINARY_ALLREDUCE,
    tree::TWO_TREE_ALLREDUCE,
    pipeline::CHAIN_ALLREDUCE,
    pipeline::UNI_GREEDY_ALLREDUCE,
    tree::DUAL_ROOT,
    circulant::CIRCULANT_ALLGATHER,
    circulant::CIRCULANT_BLOCKS,
    exchange::DOUBLING_ALLGATHER,
    exchange::BRUCK,
    exchange::RING,
    exchange::LINEAR,
    circulant::CIRCULANT_REDUCE_SCATTER,
    circulant::CIRCULANT_BLOCKS_REDUCE_SCATTER,
    exchange::HALVING,
    exchange::BRUCK_REDUCE_SCATTER,
    exchange::RING_REDUCE_SCATTER,
    exchange::LINEAR_REDUCE_SCATTER,
    exchange::PAIRWISE,
    exchange::BRUCK_ALLTOALL,
    exchange::DOUBLING_SCAN,
    pipeline::SCAN_CHAIN,
    gather::LINEAR,
    gather::OBLIVIOUS,
    gather::OBLIVIOUS_BEST_ROOT,
    gather::ADAPTIVE,
    gather::BINARY,
    gather::OPTIMAL,
    gather::RANK_ORDERED,
    gather::WEAKLY_ORDERED,
    gather::TWO,
    gather::DEGRADING,
    gather::PORTED_ADAPTIVE,
    gather::PORTED,
    gather::UNORDERED,
    gather::SCATTER_LINEAR,
    gather::SCATTER_OBLIVIOUS,
    gather::SCATTER_OBLIVIOUS_BEST_ROOT,
    gather::SCATTER_ADAPTIVE,
    gather::SCATTER_BINARY,
    gather::SCATTER_OPTIMAL,
    gather::SCATTER_RANK_ORDERED,
    gather::SCATTER_WEAKLY_ORDERED,
    gather::SCATTER_TWO,
    gather::SCATTER_DEGRADING,
    gather::SCATTER_PORTED_ADAPTIVE,
    gather::SCATTER_PORTED,
    gather::SCATTER_UNORDERED,
];
