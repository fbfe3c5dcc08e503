//! [`Row`], what the registry says about an algorithm, and functions that build rows: defaults,
//! derived collectives and numbers of transfers.

use super::Planner;
use crate::error::Result;
use crate::machine::{CostModel, Ports};
use crate::plan::Request;
use crate::plan::circulant::table::MakeTable;
use crate::plan::segments::{Best, Published, SymbolValues};
use crate::plan::space::Variant;
use crate::schedule::Schedule;
use crate::schedule::collective::Kind;

/// What the registry says about one algorithm for one collective. A tree states its source, rounds
/// and time, and of the other fields what differs from `planned_by`.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Name, unique within the collective; without the parts of a composition.
    pub(in crate::plan) name: &'static str,
    /// The collective that the algorithm performs.
    pub collective: Kind,
    /// Port models it can be planned for.
    pub ports: PortModels,
    /// Whether it requires an operator that commutes.
    pub commutative_only: bool,
    /// For `(p, k)`: whether all of `p` ranks with `k` ports each get the same bits of a sum of
    /// floats, of any length.
    pub(in crate::plan) ranks_agree: fn(usize, usize) -> bool,
    /// Where they do not: for which numbers of ranks there is a form of it, for requests of the
    /// same bits, in which they do. A rank then stores what arrives until it can combine in the
    /// order of all.
    pub(in crate::plan) has_common_order: fn(usize) -> bool,
    /// Whether its own rounds depend on the number of ports of each kind, not only those of a part.
    pub k_ported: bool,
    /// Whether it requires links with equal costs.
    pub uniform_links_only: bool,
    /// Whether it requires that all blocks of an alltoall for a rank have one size.
    pub one_size_a_rank: bool,
    /// What it requires of the machine's nodes.
    pub nodes: Nodes,
    /// The machines that it is made for: it is no [candidate](super::candidates) for others.
    pub made_for: MadeFor,
    /// Whether its schedules depend on when ranks arrive: it plans for the arrivals, or takes parts
    /// by their times. It has the schedule for ranks that arrive together where that is faster.
    #[doc(hidden)]
    pub for_arrivals: bool,
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
    /// The table of the circulant schedules that it follows, for a number of ranks: of all, or of
    /// one.
    pub schedule_table: Option<MakeTable>,
    /// For `(p, k)`, `p` ranks with `k` ports each: the number of messages on a chain that each of
    /// its schedules has, of any number of segments. 0 says nothing.
    pub(in crate::plan) min_rounds: fn(usize, usize) -> usize,
    /// The number of elements that some rank receives at least, or sends. 0 says nothing.
    pub(in crate::plan) min_received: fn(&Request) -> usize,
    pub(in crate::plan) best_root: BestRoot,
    pub(in crate::plan) planner: Planner,
    /// The algorithm that has the same schedule for a request, if one does: that one plans it.
    pub(in crate::plan) same_as: fn(&Request) -> Option<&'static Row>,
    /// The closed form of the time as executed.
    pub(in crate::plan) formula: ClosedForm,
    /// The smallest number of ranks, at least this one, that the closed form covers.
    pub(in crate::plan) covered_ranks: fn(usize) -> usize,
    /// How the best size of equal segments is found, where the vector is split.
    pub(in crate::plan) best_segment: BestSegment,
    /// What a published table prints for it.
    pub(in crate::plan) published: Option<fn(&SymbolValues<'_>) -> Option<Published>>,
}

/// A function of the request, `None` for requests that it does not cover.
pub(in crate::plan) type Formula = fn(&Request) -> Option<f64>;

#[derive(Debug, Clone, Copy)]
pub(in crate::plan) enum ClosedForm {
    /// There is none.
    None,
    Of(Formula),
    /// The time of the plan, which is made for that: it takes as long as planning.
    OfPlan(Formula),
    /// The formula of a reduction to rank 0, then again without computation: a broadcast.
    ReduceThenBroadcast(Formula),
}

#[derive(Debug, Clone, Copy)]
pub(in crate::plan) enum BestSegment {
    /// By a search over the number of segments.
    Search,
    /// The real number that minimizes the closed form.
    Formula(fn(&SymbolValues) -> f64),
    /// By a search of its own, `None` for requests that it does not cover. No schedule of several
    /// segments may have more transfers than this number: the memory does not hold it.
    Own(fn(&Variant, usize) -> Result<Option<Best>>),
}

/// How an algorithm finds a root that no other is better than, for a request with a free root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plan) enum BestRoot {
    /// Root 0 is one, where all links cost the same, computation overlaps nothing, all ranks arrive
    /// together, and messages have no latency and wait for their receivers. Elsewhere as `Search`;
    /// where all links cost the same, root 0 where that would take too long.
    First,
    /// The planner chooses it. Where computation overlaps communication, ranks arrive late, or
    /// messages have latency or do not wait, which planners do not count on, as `Search`, or the
    /// planner's choice where that would take too long.
    Own,
    /// As `Own`, but where links differ, the planner tries only some of the roots among more ranks
    /// than this.
    OwnAmong(usize),
    /// By planning for every root.
    Search,
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

/// The machines that an algorithm is made for. It can be planned for others, too, for which an
/// earlier row is as good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MadeFor {
    /// Any machine.
    AnyMachine,
    /// Machines whose messages have latency.
    Latency,
    /// Ranks that arrive late: schedules depend on the arrivals.
    LateRanks,
    /// Machines whose links differ in cost, or connect some ranks only.
    UnevenLinks,
}

/// Port models an algorithm is planned for. Others, as for calls, take what is planned for
/// unidirectional ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortModels {
    /// Unidirectional ports, or several bidirectional ones, each of which it uses for one direction
    /// at a time. On one bidirectional port it is planned only where it is asked for by name.
    Uni,
    /// Bidirectional ports, or several unidirectional ones, which it uses in pairs: one of a pair
    /// sends, the other receives.
    Bi,
    /// Either model; an even number of unidirectional ports in pairs first. For rounds in which
    /// most ranks send and receive.
    Both,
    /// Either model; unidirectional ports each by itself first. For trees, in which most ranks send
    /// much more than they receive, or the reverse.
    Each,
}

impl PortModels {
    /// Whether the port model of `ports` is included.
    pub fn allow(self, ports: Ports) -> bool {
        let relays = ports.can_relay() && ports.waits_by_list() && ports.k() == 1;
        self.has(ports) || !relays && self.can_use(ports)
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

impl Row {
    /// Approximate memory per transfer, in bytes, while the result of [`Algorithm::planned`]
    /// exists; `None` if that is a stored schedule.
    #[doc(hidden)]
    pub fn bytes_per_transfer(&self) -> Option<u64> {
        match self.planner {
            Planner::Streamed(_) => Some(0),
            // A planned transfer, which takes up to twice its size while the list grows, and its
            // two halves.
            Planner::Reduction(_) | Planner::BroadcastOf(_) | Planner::AllreduceOf(_) => Some(64),
            Planner::Direct(_)
            | Planner::ReverseOf(_)
            | Planner::MulticastBy(_)
            | Planner::Composed(_) => None,
        }
    }

    /// Steps of so many schedules, or of as many as take as long as planning them.
    #[doc(hidden)]
    pub fn work(&self, ranks: usize, segments: usize, schedules: u64) -> u64 {
        let steps = ((self.transfers)(ranks, segments) as u64).saturating_mul(2 * schedules);
        steps.saturating_mul(self.planning_work)
    }

    /// Whether [`Algorithm::planned`] gives a source that times requests whose schedules are too
    /// long to store.
    #[doc(hidden)]
    pub fn is_streamed(&self) -> bool {
        matches!(self.planner, Planner::Streamed(_))
    }

    /// Whether it is made for machines with these costs.
    pub fn is_made_for(&self, cost: &CostModel) -> bool {
        match self.made_for {
            MadeFor::AnyMachine => true,
            MadeFor::Latency => cost.latency_between(0, 1) > 0.0,
            MadeFor::LateRanks => cost.last_arrival() > 0.0,
            MadeFor::UnevenLinks => cost.links().is_some(),
        }
    }

    /// The requests that it does not support, besides those that its ports and its operator
    /// exclude, in words; empty if there are none.
    pub fn restrictions(&self) -> String {
        let mut all = Vec::new();
        if self.uniform_links_only {
            all.push("links that cost the same".to_string());
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
        /// An algorithm whose ranks do not always agree has some that differ among so few.
        const MANY: usize = 64;
        for (k, on) in [(1, ""), (2, " on several ports")] {
            let differs = |p: &usize| !(self.ranks_agree)(*p, k);
            if let Some(p) = (1..=MANY).find(differs) {
                let agree = p - 1;
                all.push(if (self.has_common_order)(p) {
                    "same bits on all ranks if asked for".to_string()
                } else {
                    format!("same bits on all ranks to {agree} ranks{on}")
                });
                break;
            }
        }
        all.join("; ")
    }

    /// The row of an algorithm that splits the vector: each rank sends each segment once.
    pub(in crate::plan) const fn segmented(self) -> Row {
        Row {
            segmented: true,
            transfers: for_each_segment,
            ..self
        }
    }

    /// The row with this closed form of the time.
    pub(in crate::plan) const fn with_formula(self, time: Formula) -> Row {
        Row {
            formula: ClosedForm::Of(time),
            ..self
        }
    }

    /// The row of the same planner for another collective, whose operator commutes if it has one.
    pub(in crate::plan) const fn also(self, collective: Kind) -> Row {
        Row {
            collective,
            commutative_only: collective.reduces(),
            ..self
        }
    }

    /// The row as a base for another collective: without best segment and published table.
    pub(in crate::plan) const fn for_another_collective(self) -> Row {
        Row {
            best_segment: BestSegment::Search,
            published: None,
            ..self
        }
    }
}

/// A row with the most common properties: any ports, operator, links and blocks, no segments, a
/// logarithmic number of rounds, and the volume of a tree.
///
/// The caller adds source, rounds and, if there is a closed form, the time.
pub(in crate::plan) const fn new(
    name: &'static str,
    collective: Kind,
    plan: fn(&Request) -> Result<Schedule>,
) -> Row {
    planned_by(name, collective, Planner::Direct(plan))
}

/// As [`new`], with a planner of any form.
pub(in crate::plan) const fn planned_by(
    name: &'static str,
    collective: Kind,
    planner: Planner,
) -> Row {
    Row {
        name,
        collective,
        ports: PortModels::Both,
        commutative_only: false,
        ranks_agree: |_, _| true,
        has_common_order: |_| false,
        k_ported: false,
        uniform_links_only: false,
        one_size_a_rank: false,
        nodes: Nodes::Any,
        made_for: MadeFor::AnyMachine,
        for_arrivals: false,
        segmented: false,
        planning_work: 1,
        transfers: logarithmic,
        tables: |_| 0,
        source: "",
        rounds: "",
        volume: "(p-1) m",
        max_ranks: None,
        max_ranks_with_links: None,
        min_rounds: |_, _| 0,
        min_received: whole_vector,
        schedule_table: None,
        best_root: BestRoot::First,
        planner,
        same_as: |_| None,
        formula: ClosedForm::None,
        covered_ranks: |p| p,
        best_segment: BestSegment::Search,
        published: None,
    }
}

/// What each rank except the root receives of a vector that all ranks get or give (in a reduction
/// it sends it).
fn whole_vector(request: &Request) -> usize {
    match request.kind {
        Kind::Broadcast | Kind::Reduce | Kind::Allreduce => request.elements(),
        _ => 0,
    }
}

/// The planner of the reversal. Streamed programs have separate functions for their reversal.
const fn reversed(planner: Planner) -> Planner {
    match planner {
        Planner::Direct(plan) | Planner::ReverseOf(plan) => Planner::ReverseOf(plan),
        Planner::Reduction(plan) => Planner::BroadcastOf(plan),
        _ => panic!("streamed programs are not reversed"),
    }
}

/// A broadcast: the reversal of a reduction. Its closed form is that of the reduction for gamma 0:
/// see `Algorithm::effective`.
pub(in crate::plan) const fn broadcast(reduce: Row) -> Row {
    Row {
        collective: Kind::Broadcast,
        commutative_only: false,
        planner: reversed(reduce.planner),
        ..reduce
    }
}

/// A multicast: the broadcast among the root and the targets, which are the `p` ranks of its
/// rounds and volume.
pub(in crate::plan) const fn multicast(broadcast: &'static Row) -> Row {
    Row {
        collective: Kind::Multicast,
        planner: Planner::MulticastBy(broadcast),
        formula: ClosedForm::None,
        same_as: |_| None,
        min_rounds: |_, _| 0,
        schedule_table: None,
        // A root that is no target is one rank more.
        best_root: BestRoot::Search,
        ..broadcast.for_another_collective()
    }
}

/// An allreduce: a reduction to rank 0, then a broadcast. Where the reduction is streamed, the row
/// of the allreduce gives a planner of its own.
pub(in crate::plan) const fn allreduce(reduce: Row, rounds: &'static str) -> Row {
    Row {
        collective: Kind::Allreduce,
        transfers: if reduce.segmented {
            for_each_segment_twice
        } else {
            logarithmic_twice
        },
        rounds,
        volume: "2(p-1) m",
        planner: match reduce.planner {
            Planner::Reduction(plan) => Planner::AllreduceOf([plan, plan]),
            streamed => streamed,
        },
        formula: match reduce.formula {
            ClosedForm::Of(time) => ClosedForm::ReduceThenBroadcast(time),
            _ => ClosedForm::None,
        },
        ..reduce.for_another_collective()
    }
}

/// A reduce-scatter: the reversal of an allgather.
pub(in crate::plan) const fn reduce_scatter(allgather: Row, time: Formula) -> Row {
    Row {
        collective: Kind::ReduceScatter,
        commutative_only: true,
        planner: reversed(allgather.planner),
        formula: ClosedForm::Of(time),
        ..allgather
    }
}

/// One or two transfers per rank and round, with as many rounds as `p` has binary digits.
pub(in crate::plan) fn logarithmic(p: usize, _segments: usize) -> usize {
    p.saturating_mul(1 + p.max(1).ilog2() as usize)
}

/// Each rank sends each segment once.
pub(in crate::plan) fn for_each_segment(p: usize, segments: usize) -> usize {
    p.saturating_mul(segments)
}

/// Each rank sends messages with a part of almost every rank's block; a message of many spans
/// counts as several steps.
pub(in crate::plan) fn parts_of_all(p: usize, segments: usize) -> usize {
    let messages = p.saturating_mul(segments.saturating_add(p.max(1).ilog2() as usize));
    messages.saturating_mul(1 + p / 8)
}

/// Each rank sends one message per round, with as many rounds as `p` has binary digits. The first
/// message has a span for every second rank, the next one for every fourth, and so on.
pub(in crate::plan) fn parts_of_halves(p: usize, segments: usize) -> usize {
    logarithmic(p, segments).saturating_add(p.saturating_mul(p / 4))
}

/// Each rank sends one message to each other rank.
pub(in crate::plan) fn for_each_pair(p: usize, _segments: usize) -> usize {
    p.saturating_mul(p)
}

/// As [`for_each_pair`], for two phases.
pub(in crate::plan) fn for_each_pair_twice(p: usize, segments: usize) -> usize {
    for_each_pair(p, segments).saturating_mul(2)
}

/// Each rank sends each segment twice.
pub(in crate::plan) fn for_each_segment_twice(p: usize, segments: usize) -> usize {
    for_each_segment(p, segments).saturating_mul(2)
}

/// As [`logarithmic`], for two phases.
pub(in crate::plan) fn logarithmic_twice(p: usize, segments: usize) -> usize {
    logarithmic(p, segments).saturating_mul(2)
}
