//! The registry: one row an algorithm.
//!
//! `oneport list`, the README's table, the generic test-suite and the benches all read it, so an algorithm added here is
//! listed, checked, simulated, run and benched like all others.

use super::gather::rows as gather;
use super::{MOST_TRANSFERS, Request, circulant, exchange, pipeline, tree};
use crate::collective::Kind;
use crate::cost::Ports;
use crate::error::{Error, Result};
use crate::schedule::Schedule;
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
    /// About how many transfers `p` ranks make with `q` segments: what a schedule takes to plan and hold.
    pub transfers: fn(usize, usize) -> usize,
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
    /// The closed form of the time as executed, where there is one: `None` for requests it does not cover.
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
    /// Programs on demand: planned as it stands, or timed without being stored.
    OnDemand {
        /// Plans.
        plan: fn(&Request) -> Result<Schedule>,
        /// Times the same.
        time: fn(&Request) -> Result<Timed>,
    },
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
    /// When there is no rank, the root is out of range, a cost is not a time or the costs describe fewer ranks, the schedule would
    /// be too long, or the algorithm is not for these ports or this operator (naming one that is).
    pub fn plan(&self, request: &Request) -> Result<Schedule> {
        self.accepts(request)?;
        match self.planner {
            Planner::Direct(plan) | Planner::OnDemand { plan, .. } => plan(request),
            Planner::ReverseOf(plan) => {
                let mut request = request.clone();
                request.cost = request.cost.gamma(0.0);
                // Only what combines has operands to keep in order: a broadcast need not pass through rank 0.
                request.keep_order &= self.collective.reduces();
                if self.collective == Kind::ReduceScatter && request.blocks.is_none() {
                    let sizes = request.scattered().iter().map(|s| s.len).collect();
                    request.blocks = Some(sizes);
                }
                plan(&request)?.into_reversed()
            }
        }
    }

    /// Whether [`Algorithm::timed`] can time requests whose schedules are too long to be stored.
    pub fn is_on_demand(&self) -> bool {
        matches!(self.planner, Planner::OnDemand { .. })
    }

    /// Times `request` under its own costs: without storing the schedule, where the algorithm gives programs on demand.
    ///
    /// # Errors
    /// As [`Algorithm::plan`], and when a message has no link.
    pub fn timed(&self, request: &Request) -> Result<Timed> {
        match self.planner {
            Planner::OnDemand { time, .. } => {
                self.accepts(request)?;
                time(request)
            }
            _ => simulate::on_demand(&self.plan(request)?, &request.cost, request.element_bytes),
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
        if (self.transfers)(request.ranks, segments) > MOST_TRANSFERS {
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

    /// Block sizes are for collectives that have blocks, unequal ones for algorithms that take them.
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

/// One or two transfers of each rank in each round, and as many rounds as `p` has binary digits.
fn logarithmic(p: usize, _segments: usize) -> usize {
    p.saturating_mul(1 + p.max(1).ilog2() as usize)
}

/// Each rank sends each segment once.
fn for_each_segment(p: usize, segments: usize) -> usize {
    p.saturating_mul(segments)
}

/// Each rank sends messages with a part of almost every rank's block, many spans together as heavy as a step.
fn parts_of_all(p: usize, segments: usize) -> usize {
    let messages = p.saturating_mul(segments.saturating_add(p.max(1).ilog2() as usize));
    messages.saturating_mul(1 + p / 8)
}

/// Each rank sends a message for each other rank.
fn for_each_pair(p: usize, _segments: usize) -> usize {
    p.saturating_mul(p)
}

/// The same, there and back.
fn for_each_pair_twice(p: usize, segments: usize) -> usize {
    for_each_pair(p, segments).saturating_mul(2)
}

/// Each rank sends each segment twice.
fn for_each_segment_twice(p: usize, segments: usize) -> usize {
    for_each_segment(p, segments).saturating_mul(2)
}

/// In each of two phases of as many rounds as `p` has binary digits, one or two transfers of each rank.
fn logarithmic_twice(p: usize, segments: usize) -> usize {
    logarithmic(p, segments).saturating_mul(2)
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

const BINOMIAL: Algorithm = Algorithm {
    name: "binomial",
    collective: Kind::Reduce,
    ports: PortModels::Both,
    commutative_only: false,
    uniform_links_only: false,
    regular_only: false,
    segmented: false,
    transfers: logarithmic,
    source: "folklore; Lowery & Langou, section IV",
    rounds: "ceil(log2 p)",
    volume: "(p-1) m",
    restrictions: "",
    planner: Planner::Direct(tree::binomial::plan),
    time: Some(tree::binomial::time),
};

const CHAIN: Algorithm = Algorithm {
    name: "chain",
    collective: Kind::Reduce,
    ports: PortModels::Both,
    commutative_only: false,
    uniform_links_only: false,
    regular_only: false,
    segmented: true,
    transfers: for_each_segment,
    source: "Lowery & Langou, section IV (pipeline)",
    rounds: "p+q-2 (bi), p-1+2(q-1) (uni)",
    volume: "(p-1) m",
    restrictions: "",
    planner: Planner::Direct(pipeline::chain::plan),
    time: Some(pipeline::chain::time),
};

const BINARY: Algorithm = Algorithm {
    name: "binary",
    collective: Kind::Reduce,
    ports: PortModels::Both,
    commutative_only: false,
    uniform_links_only: false,
    regular_only: false,
    segmented: true,
    transfers: for_each_segment,
    source: "folklore; Lowery & Langou, section IV",
    rounds: "2(N+q-2) (bi), 2(N-1)+3(q-1) (uni), N = ceil(log2(p+1)); at most, if p is not 2^N-1",
    volume: "(p-1) m",
    restrictions: "",
    planner: Planner::Direct(tree::binary::plan),
    time: Some(tree::binary::time),
};

const BUTTERFLY: Algorithm = Algorithm {
    name: "butterfly",
    collective: Kind::Reduce,
    ports: PortModels::Both,
    commutative_only: false,
    uniform_links_only: false,
    regular_only: false,
    segmented: false,
    transfers: logarithmic,
    source: "Rabenseifner 2004",
    rounds: "2 floor(log2 p), if p is not a power of two 1 more (bi); about 3 floor(log2 p) (uni)",
    volume: "(p-1) m + floor(log2 p)/2 m",
    restrictions: "",
    planner: Planner::Direct(exchange::butterfly::plan),
    time: Some(exchange::butterfly::time),
};

const CIRCULANT: Algorithm = Algorithm {
    name: "circulant",
    collective: Kind::Reduce,
    ports: PortModels::Bi,
    commutative_only: true,
    uniform_links_only: false,
    regular_only: false,
    segmented: true,
    transfers: for_each_segment,
    source: "Träff, round-optimal n-block broadcast on circulant graphs",
    rounds: "ceil(log2 p)+q-1",
    volume: "(p-1) m",
    restrictions: "",
    planner: Planner::OnDemand {
        plan: circulant::reduce::plan,
        time: circulant::reduce::timed,
    },
    time: Some(circulant::reduce::time),
};

const CIRCULANT_BROADCAST: Algorithm = Algorithm {
    collective: Kind::Broadcast,
    commutative_only: false,
    planner: Planner::OnDemand {
        plan: circulant::broadcast::plan,
        time: circulant::broadcast::timed,
    },
    time: Some(circulant::broadcast::time),
    ..CIRCULANT
};

const CIRCULANT_ALLREDUCE: Algorithm = Algorithm {
    collective: Kind::Allreduce,
    transfers: for_each_segment_twice,
    rounds: "2(ceil(log2 p)+q-1)",
    volume: "2(p-1) m",
    planner: Planner::Direct(circulant::allreduce::plan),
    time: Some(circulant::allreduce::time),
    ..CIRCULANT
};

const CENSUS: Algorithm = Algorithm {
    name: "census",
    collective: Kind::Allreduce,
    segmented: false,
    transfers: logarithmic,
    source: "Träff, circulant census; Bar-Noy, Kipnis, Schieber 1993",
    rounds: "ceil(log2 p)",
    volume: "p ceil(log2 p) m",
    planner: Planner::Direct(circulant::census::plan),
    time: Some(circulant::census::time),
    ..CIRCULANT
};

const CIRCULANT_RSAG: Algorithm = Algorithm {
    name: "circulant-rsag",
    collective: Kind::Allreduce,
    segmented: false,
    transfers: logarithmic_twice,
    source: "Träff, circulant reduce-scatter and allgather",
    rounds: "2 ceil(log2 p)",
    volume: "2(p-1) m",
    planner: Planner::Direct(circulant::allgather::allreduce),
    time: Some(circulant::allgather::allreduce_time),
    ..CIRCULANT
};

const CIRCULANT_ALLGATHER: Algorithm = Algorithm {
    collective: Kind::Allgather,
    commutative_only: false,
    segmented: false,
    transfers: logarithmic,
    source: "Träff, circulant allgather",
    rounds: "ceil(log2 p)",
    planner: Planner::Direct(circulant::allgather::plan),
    time: Some(circulant::allgather::time),
    ..CIRCULANT
};

const CIRCULANT_BLOCKS: Algorithm = Algorithm {
    name: "circulant-blocks",
    collective: Kind::Allgather,
    commutative_only: false,
    transfers: parts_of_all,
    source: "Träff, irregular n-block allgather on circulant graphs",
    planner: Planner::Direct(circulant::allgatherv::plan),
    time: Some(circulant::allgatherv::time),
    ..CIRCULANT
};

const CIRCULANT_RSG: Algorithm = Algorithm {
    name: "circulant-rsg",
    collective: Kind::Reduce,
    ports: PortModels::Bi,
    commutative_only: true,
    uniform_links_only: false,
    regular_only: false,
    segmented: false,
    transfers: logarithmic,
    source: "Träff, circulant reduce-scatter and gather",
    rounds: "2 ceil(log2 p)",
    volume: "(p-1) m + at most ceil(log2 p)/2 m",
    restrictions: "",
    planner: Planner::Direct(circulant::reduce_scatter_gather::plan),
    time: Some(circulant::reduce_scatter_gather::time),
};

const RING: Algorithm = Algorithm {
    name: "ring",
    collective: Kind::Allgather,
    ports: PortModels::Both,
    commutative_only: false,
    uniform_links_only: false,
    regular_only: false,
    segmented: false,
    transfers: for_each_pair,
    source: "folklore",
    rounds: "p-1 (bi), 2(p-1) (uni, p even)",
    volume: "(p-1) m",
    restrictions: "",
    planner: Planner::Direct(exchange::ring::plan),
    time: Some(exchange::ring::time),
};

const RING_ALLREDUCE: Algorithm = Algorithm {
    collective: Kind::Allreduce,
    commutative_only: true,
    transfers: for_each_pair_twice,
    rounds: "2(p-1) (bi), 4(p-1) (uni; p odd: more)",
    volume: "2(p-1) m",
    planner: Planner::Direct(exchange::ring::allreduce),
    time: Some(exchange::ring::allreduce_time),
    ..RING
};

const DOUBLING_ALLGATHER: Algorithm = Algorithm {
    name: "recursive-doubling",
    collective: Kind::Allgather,
    ports: PortModels::Both,
    commutative_only: false,
    uniform_links_only: false,
    regular_only: false,
    segmented: false,
    transfers: logarithmic,
    source: "folklore",
    rounds: "floor(log2 p), if p is not a power of two 2 more (bi); twice that (uni)",
    volume: "(p-1) m",
    restrictions: "",
    planner: Planner::Direct(exchange::doubling_allgather::plan),
    time: Some(exchange::doubling_allgather::time),
};

const DOUBLING_ALLREDUCE: Algorithm = Algorithm {
    collective: Kind::Allreduce,
    volume: "n floor(log2 p) m + 2(p-n) m, n = 2^floor(log2 p)",
    planner: Planner::Direct(exchange::doubling_allreduce::plan),
    time: Some(exchange::doubling_allreduce::time),
    ..DOUBLING_ALLGATHER
};

const RABENSEIFNER: Algorithm = Algorithm {
    name: "rabenseifner",
    collective: Kind::Allreduce,
    ports: PortModels::Both,
    commutative_only: false,
    uniform_links_only: false,
    regular_only: false,
    segmented: false,
    transfers: logarithmic_twice,
    source: "Rabenseifner 2004",
    rounds: "2 floor(log2 p), if p is not a power of two 2 more (bi); about twice that (uni)",
    volume: "2(p-1) m",
    restrictions: "",
    planner: Planner::Direct(exchange::rabenseifner::plan),
    time: Some(exchange::rabenseifner::time),
};

const HALVING: Algorithm = Algorithm {
    name: "recursive-halving",
    collective: Kind::ReduceScatter,
    ports: PortModels::Both,
    commutative_only: false,
    uniform_links_only: false,
    regular_only: false,
    segmented: false,
    transfers: logarithmic,
    source: "folklore; blocks chosen so that operands stay in order",
    rounds: "floor(log2 p), if p is not a power of two 2 more (bi); about twice that (uni)",
    volume: "(n-1) m + (p-n)(1+1/p) m, n = 2^floor(log2 p)",
    restrictions: "",
    planner: Planner::Direct(exchange::halving::plan),
    time: Some(exchange::halving::time),
};

const BRUCK: Algorithm = Algorithm {
    name: "bruck",
    collective: Kind::Allgather,
    ports: PortModels::Both,
    commutative_only: false,
    uniform_links_only: false,
    regular_only: false,
    segmented: false,
    transfers: logarithmic,
    source: "Bruck, Ho, Kipnis, Upfal, Weathersby 1997",
    rounds: "ceil(log2 p) (bi), 2 ceil(log2 p) (uni; p not a power of two: more)",
    volume: "(p-1) m",
    restrictions: "",
    planner: Planner::Direct(exchange::bruck::plan),
    time: Some(exchange::bruck::time),
};

const BRUCK_ALLREDUCE: Algorithm = Algorithm {
    collective: Kind::Allreduce,
    commutative_only: true,
    transfers: logarithmic_twice,
    source: "Bruck et al. 1997, there and back",
    rounds: "2 ceil(log2 p) (bi), 4 ceil(log2 p) (uni; p not a power of two: more)",
    volume: "2(p-1) m",
    planner: Planner::Direct(exchange::bruck::allreduce),
    time: Some(exchange::bruck::allreduce_time),
    ..BRUCK
};

const BRUCK_ALLTOALL: Algorithm = Algorithm {
    collective: Kind::Alltoall,
    // Each message has many spans: what they take to hold counts.
    transfers: for_each_pair,
    volume: "about p ceil(log2 p)/2 m",
    planner: Planner::Direct(exchange::bruck_alltoall::plan),
    time: Some(exchange::bruck_alltoall::time),
    ..BRUCK
};

const PAIRWISE: Algorithm = Algorithm {
    name: "pairwise",
    collective: Kind::Alltoall,
    ports: PortModels::Both,
    commutative_only: false,
    uniform_links_only: false,
    regular_only: false,
    segmented: false,
    transfers: for_each_pair,
    source: "folklore; on one port, a 1-factorisation (Lucas 1883)",
    rounds: "p-1 (bi), 2(p-1) (uni; p odd: 2p)",
    volume: "(p-1) m",
    restrictions: "",
    planner: Planner::Direct(exchange::pairwise::plan),
    time: Some(exchange::pairwise::time),
};

const VAN_DE_GEIJN: Algorithm = Algorithm {
    name: "van-de-geijn",
    collective: Kind::Reduce,
    ports: PortModels::Both,
    commutative_only: true,
    uniform_links_only: false,
    regular_only: false,
    segmented: false,
    transfers: logarithmic_twice,
    source: "van de Geijn et al. 1994 (scatter, allgather; Bruck's here), backwards for reduce",
    rounds: "2 ceil(log2 p) (bi), about 3 ceil(log2 p) (uni)",
    volume: "(p-1) m + about ceil(log2 p)/2 m",
    restrictions: "",
    planner: Planner::Direct(exchange::van_de_geijn::plan),
    time: Some(exchange::van_de_geijn::time),
};

const VAN_DE_GEIJN_RING: Algorithm = Algorithm {
    name: "van-de-geijn-ring",
    transfers: for_each_pair_twice,
    source: "van de Geijn et al. 1994 (scatter, ring allgather), backwards for reduce",
    rounds: "p-1+ceil(log2 p) (bi), about 2(p-1)+ceil(log2 p) (uni)",
    planner: Planner::Direct(exchange::van_de_geijn::plan_ring),
    time: Some(exchange::van_de_geijn::time_ring),
    ..VAN_DE_GEIJN
};

const DUAL_ROOT: Algorithm = Algorithm {
    name: "dual-root",
    collective: Kind::Allreduce,
    ports: PortModels::Bi,
    commutative_only: false,
    uniform_links_only: false,
    regular_only: false,
    segmented: true,
    transfers: for_each_segment_twice,
    source: "Träff 2021",
    rounds: "4 ceil(log2(p+2))-7+3(q-1) for p = 2^h-2; at most, for others",
    volume: "2(p-1) m",
    restrictions: "",
    planner: Planner::Direct(tree::dual_root::plan),
    time: Some(tree::dual_root::time),
};

const DOUBLING_SCAN: Algorithm = Algorithm {
    collective: Kind::Scan,
    source: "Hillis, Steele 1986",
    rounds: "ceil(log2 p) (bi), 2 ceil(log2 p)-1 (uni)",
    volume: "(ceil(log2 p) p - 2^ceil(log2 p) + 1) m",
    planner: Planner::Direct(exchange::doubling_scan::plan),
    time: Some(exchange::doubling_scan::time),
    ..DOUBLING_ALLGATHER
};

const SCAN_CHAIN: Algorithm = Algorithm {
    collective: Kind::Scan,
    source: "folklore",
    planner: Planner::Direct(pipeline::scan::plan),
    ..CHAIN
};

const BI_GREEDY: Algorithm = Algorithm {
    name: "bi-greedy",
    collective: Kind::Reduce,
    ports: PortModels::Bi,
    commutative_only: true,
    uniform_links_only: false,
    regular_only: false,
    segmented: true,
    transfers: for_each_segment,
    source: "Lowery & Langou, Algorithm 2",
    rounds: "ceil(log2 p)+q-1",
    volume: "(p-1) m",
    restrictions: "",
    planner: Planner::Direct(pipeline::bi_greedy::plan),
    time: Some(pipeline::bi_greedy::time),
};

const TWO_TREE: Algorithm = Algorithm {
    name: "two-tree",
    collective: Kind::Reduce,
    ports: PortModels::Bi,
    commutative_only: false,
    uniform_links_only: false,
    regular_only: false,
    segmented: true,
    transfers: for_each_segment,
    source: "Sanders, Speck, Träff 2009",
    rounds: "at most 2 ceil(log2 p)+q-2",
    volume: "(p-1) m",
    restrictions: "",
    planner: Planner::Direct(tree::two_tree::plan),
    time: Some(tree::two_tree::time),
};

const UNI_GREEDY: Algorithm = Algorithm {
    name: "uni-greedy",
    collective: Kind::Reduce,
    ports: PortModels::Uni,
    commutative_only: true,
    uniform_links_only: false,
    regular_only: false,
    segmented: true,
    transfers: for_each_segment,
    source: "Lowery & Langou, algorithm 1",
    rounds: "no closed form; the fewest of all that reduce segments in order",
    volume: "(p-1) m",
    restrictions: "",
    planner: Planner::Direct(pipeline::uni_greedy::plan),
    time: Some(pipeline::uni_greedy::time),
};

const OUT_OF_ORDER: Algorithm = Algorithm {
    name: "out-of-order",
    collective: Kind::Reduce,
    ports: PortModels::Uni,
    commutative_only: true,
    uniform_links_only: false,
    regular_only: false,
    segmented: true,
    transfers: for_each_segment,
    source: "oneport; goes beyond Lowery & Langou",
    rounds: "floor(log2 p)+2q-1 for odd p, fewer for even (gamma = 0, as measured); never more than uni-greedy where all links cost the same",
    volume: "(p-1) m",
    restrictions: "",
    planner: Planner::Direct(pipeline::out_of_order::plan),
    time: Some(pipeline::out_of_order::time),
};

const ORDERED: Algorithm = Algorithm {
    name: "ordered",
    collective: Kind::Reduce,
    ports: PortModels::Both,
    commutative_only: false,
    uniform_links_only: false,
    regular_only: false,
    segmented: false,
    transfers: logarithmic,
    source: "Träff, optimal gather trees, Theorem 4",
    rounds: "ceil(log2 p); on a heterogeneous platform those of the best ordered tree",
    volume: "(p-1) m",
    restrictions: "at most 256 ranks where links differ",
    planner: Planner::Direct(tree::ordered::plan),
    time: Some(tree::ordered::time),
};

const ORDERED_BROADCAST: Algorithm = Algorithm {
    collective: Kind::Broadcast,
    planner: Planner::Direct(tree::ordered::broadcast),
    ..ORDERED
};

/// A broadcast that is the reversal of a reduction.
const fn broadcast(reduce: Algorithm) -> Algorithm {
    Algorithm {
        collective: Kind::Broadcast,
        commutative_only: false,
        planner: match reduce.planner {
            Planner::Direct(plan) | Planner::ReverseOf(plan) | Planner::OnDemand { plan, .. } => {
                Planner::ReverseOf(plan)
            }
        },
        ..reduce
    }
}

/// An allreduce that is a reduction to rank 0, then a broadcast.
const fn allreduce(
    reduce: Algorithm,
    rounds: &'static str,
    plan: fn(&Request) -> Result<Schedule>,
    time: fn(&Request) -> Option<f64>,
) -> Algorithm {
    Algorithm {
        collective: Kind::Allreduce,
        transfers: if reduce.segmented {
            for_each_segment_twice
        } else {
            logarithmic_twice
        },
        rounds,
        volume: "2(p-1) m",
        planner: Planner::Direct(plan),
        time: Some(time),
        ..reduce
    }
}

/// A reduce-scatter that is the reversal of an allgather.
const fn reduce_scatter(allgather: Algorithm, time: fn(&Request) -> Option<f64>) -> Algorithm {
    Algorithm {
        collective: Kind::ReduceScatter,
        commutative_only: true,
        planner: match allgather.planner {
            Planner::Direct(plan) | Planner::ReverseOf(plan) | Planner::OnDemand { plan, .. } => {
                Planner::ReverseOf(plan)
            }
        },
        time: Some(time),
        ..allgather
    }
}

const ALGORITHMS: &[Algorithm] = &[
    BINOMIAL,
    ORDERED,
    BINARY,
    TWO_TREE,
    CHAIN,
    UNI_GREEDY,
    OUT_OF_ORDER,
    BI_GREEDY,
    BUTTERFLY,
    CIRCULANT,
    CIRCULANT_RSG,
    VAN_DE_GEIJN,
    VAN_DE_GEIJN_RING,
    broadcast(BINOMIAL),
    ORDERED_BROADCAST,
    broadcast(BINARY),
    broadcast(TWO_TREE),
    broadcast(CHAIN),
    broadcast(UNI_GREEDY),
    broadcast(OUT_OF_ORDER),
    broadcast(BI_GREEDY),
    Algorithm {
        planner: Planner::ReverseOf(exchange::butterfly::plan_for_broadcast),
        ..broadcast(BUTTERFLY)
    },
    CIRCULANT_BROADCAST,
    broadcast(CIRCULANT_RSG),
    Algorithm {
        planner: Planner::ReverseOf(exchange::van_de_geijn::plan_for_broadcast),
        ..broadcast(VAN_DE_GEIJN)
    },
    Algorithm {
        planner: Planner::ReverseOf(exchange::van_de_geijn::plan_ring_for_broadcast),
        ..broadcast(VAN_DE_GEIJN_RING)
    },
    CENSUS,
    CIRCULANT_RSAG,
    CIRCULANT_ALLREDUCE,
    DOUBLING_ALLREDUCE,
    RABENSEIFNER,
    BRUCK_ALLREDUCE,
    RING_ALLREDUCE,
    allreduce(
        BINOMIAL,
        "2 ceil(log2 p)",
        tree::reduce_broadcast::over_binomial,
        tree::reduce_broadcast::over_binomial_time,
    ),
    allreduce(
        BINARY,
        "twice those of the reduction",
        tree::reduce_broadcast::over_binary,
        tree::reduce_broadcast::over_binary_time,
    ),
    allreduce(
        TWO_TREE,
        "at most 4 ceil(log2 p)+2q-4",
        tree::reduce_broadcast::over_two_trees,
        tree::reduce_broadcast::over_two_trees_time,
    ),
    allreduce(
        CHAIN,
        "2(p+q-2) (bi), 2(p-1)+4(q-1) (uni)",
        tree::reduce_broadcast::over_chain,
        tree::reduce_broadcast::over_chain_time,
    ),
    allreduce(
        UNI_GREEDY,
        "twice those of the reduction",
        tree::reduce_broadcast::over_uni_greedy,
        tree::reduce_broadcast::over_uni_greedy_time,
    ),
    DUAL_ROOT,
    CIRCULANT_ALLGATHER,
    CIRCULANT_BLOCKS,
    DOUBLING_ALLGATHER,
    BRUCK,
    RING,
    reduce_scatter(
        CIRCULANT_ALLGATHER,
        circulant::allgather::reduce_scatter_time,
    ),
    reduce_scatter(CIRCULANT_BLOCKS, circulant::allgatherv::reduce_scatter_time),
    HALVING,
    // Not reversed allgathers: on one port, combining can wait until a rank has sent, too.
    Algorithm {
        planner: Planner::Direct(exchange::bruck::reduce_scatter),
        ..reduce_scatter(BRUCK, exchange::bruck::reduce_scatter_time)
    },
    Algorithm {
        planner: Planner::Direct(exchange::ring::reduce_scatter),
        ..reduce_scatter(RING, exchange::ring::reduce_scatter_time)
    },
    PAIRWISE,
    BRUCK_ALLTOALL,
    DOUBLING_SCAN,
    SCAN_CHAIN,
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
