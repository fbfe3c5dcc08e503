//! The operations of a series, and the solution: the best throughput and how it is reached.

use super::certificate::Certificate;
use super::demand::{Combining, Wanted};
use super::flows::flow_bound;
use super::fraction::{Fraction, common_denominator, lcm, sum, whole};
use super::partial_results::PartialResults;
use super::platform::{Edge, Platform};
use super::ports::{PortGraph, Slot};
use super::route::Route;
use super::scan::best_scan;
use super::solve::{SolveMethod, best_rates};
use Operation::{
    Allgather, Alltoall, Broadcast, Gather, Multicast, Reduce, ReduceOrdered, Scan, Scatter,
};
use oneport::error::{Error, Result};
use oneport::machine::Ports;

/// Reductions with a commutative operator that takes time are priced exactly for up to this many
/// contributions.
const MAX_COMBINED: usize = 8;

/// The operation of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The source sends its message to all nodes.
    Broadcast,
    /// The source sends its message to the targets; other nodes may forward it.
    Multicast,
    /// The source sends every target a message of its own.
    Scatter,
    /// Every target sends a message to the source.
    Gather,
    /// The messages of all nodes are combined at the source by a commutative operator.
    Reduce,
    /// The messages of all nodes are combined at the source in the order of the nodes, for
    /// operators that do not commute.
    ReduceOrdered,
    /// Every node gets its prefix: the messages of the nodes up to itself, combined in order. All
    /// operations of the series follow the same route.
    Scan,
    /// Every node sends its message to all nodes: a broadcast from every node (the papers' total
    /// exchange).
    Allgather,
    /// Every node sends every other node a message of its own: a scatter from every node.
    Alltoall,
}

impl Operation {
    /// All operations.
    pub const ALL: [Operation; 9] = [
        Broadcast,
        Multicast,
        Scatter,
        Gather,
        Reduce,
        ReduceOrdered,
        Scan,
        Allgather,
        Alltoall,
    ];

    /// The name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Broadcast => "broadcast",
            Multicast => "multicast",
            Scatter => "scatter",
            Gather => "gather",
            Reduce => "reduce",
            ReduceOrdered => "reduce-ordered",
            Scan => "scan",
            Allgather => "allgather",
            Alltoall => "alltoall",
        }
    }

    /// Whether the operation is planned on the reversed platform, as another operation run
    /// backwards. Reductions are where combining takes no time.
    pub(super) fn is_reversed(self, platform: &Platform) -> bool {
        match self {
            Gather => true,
            Reduce => !platform.computes(),
            _ => false,
        }
    }

    /// Whether every target gets a message of its own.
    pub(super) fn is_personal(self) -> bool {
        matches!(self, Scatter | Gather | Alltoall)
    }

    fn combining(self, platform: &Platform) -> Option<Combining> {
        let n = platform.nodes();
        let all = |ordered| {
            Combining::Partial(PartialResults {
                owners: (0..n).collect(),
                ordered,
            })
        };
        match self {
            ReduceOrdered | Scan => Some(all(true)),
            Reduce if !platform.computes() => None,
            Reduce if n <= MAX_COMBINED => Some(all(false)),
            Reduce => Some(Combining::Trees),
            _ => None,
        }
    }

    /// Returns the demand of one operation on `platform`, which is the reversed one for reversed
    /// operations.
    pub(super) fn demand(self, platform: &Platform) -> Result<Wanted> {
        let n = platform.nodes();
        let others = |v: usize| (0..n).filter(|&u| u != v).collect::<Vec<usize>>();
        let source = platform.source();
        let (roots, targets): (Vec<usize>, Vec<Vec<usize>>) = match self {
            Broadcast | Reduce | ReduceOrdered | Scan => (vec![source], vec![others(source)]),
            Multicast | Scatter | Gather => (vec![source], vec![platform.targets().to_vec()]),
            Allgather | Alltoall => {
                let sources = platform.sources().iter().copied();
                (sources.clone().collect(), sources.map(others).collect())
            }
        };
        let wanted = Wanted {
            roots,
            targets,
            personal: self.is_personal(),
            combining: self.combining(platform),
        };
        if self == Scan {
            // Each prefix combines the previous one with one more contribution.
            (1..n).try_for_each(|v| platform.reaches(v - 1, &[v], false))?;
            return Ok(wanted);
        }
        for (&root, targets) in wanted.roots.iter().zip(&wanted.targets) {
            match wanted.combining {
                Some(_) => platform.reversed().reaches(root, targets, true)?,
                None => platform.reaches(root, targets, self.is_reversed(platform))?,
            }
        }
        Ok(wanted)
    }
}

/// The best throughput of a series of operations, with the rates and slots that reach it.
#[derive(Debug, Clone)]
pub struct Solution {
    /// The operation of the series.
    pub operation: Operation,
    /// The port model.
    pub ports: Ports,
    /// Operations per time unit.
    pub throughput: Fraction,
    /// The routes, each with its operations per time unit. For gathers, and for reductions where
    /// combining takes no time, these are routes of the reversed platform: messages run from the
    /// end of each edge to its start, towards the root.
    pub routes: Vec<(Route, Fraction)>,
    /// Sets of activities that take place at the same time, with their shares of the time. Every
    /// edge is busy exactly as long as the routes need it.
    pub slots: Vec<Slot>,
    /// The verified proof that no schedule is faster. Absent where a heuristic prices the routes.
    pub certificate: Option<Certificate>,
    /// Whether the throughput is proved to be the best possible; [`Solution::bounds`] bounds it
    /// where that is open.
    pub is_optimal: bool,
    /// For scans: whether all single routes were searched, so that none is better.
    pub(super) all_searched: bool,
    pub(super) platform: Platform,
}

/// Computes the optimal throughput of a series of operations on `platform`.
///
/// # Source
/// The linear programs of O. Beaumont, L. Marchal, Y. Robert (broadcasts, multicasts) and A.
/// Legrand, L. Marchal, Y. Robert (scatters, reductions); see the documentation of the
/// [module](super).
///
/// # Complexity
/// With [`SolveMethod::Ports`], the program has a row for each port and violated odd set, with
/// [`SolveMethod::Matchings`] one for each edge. Its columns are routes, generated on demand. One
/// takes `O(nodes * edges)` for an arborescence, `O(nodes^2 + edges)` for paths from one root,
/// `O(3^k nodes + 2^k nodes^2)` for a tree to `k` targets, and `O(nodes^4)` for a reduction in rank
/// order.
///
/// # Errors
/// When a target cannot be reached, or the ports are not one-ported.
pub fn solve(
    platform: &Platform,
    operation: Operation,
    ports: Ports,
    method: SolveMethod,
) -> Result<Solution> {
    if !ports.waits_by_list() {
        let models = Ports::KINDS
            .into_iter()
            .filter(|ports| ports.waits_by_list());
        let models = models.map(Ports::name).collect::<Vec<_>>().join(" or ");
        return Err(Error::usage(format!(
            "steady-state throughput is for {models} ports, not for {}",
            ports.in_words()
        )));
    }
    if ports.k() != 1 {
        return Err(Error::usage(format!(
            "steady-state throughput is for one port of each kind, not {}",
            ports.k()
        )));
    }
    let platform = platform.turned_if(operation.is_reversed(platform));
    if operation == Operation::Scan {
        return scans(platform, ports);
    }
    let demand = operation.demand(&platform)?;
    let rates = best_rates(&platform, ports, &demand, method)?;
    Ok(Solution {
        operation,
        ports,
        throughput: rates.throughput,
        routes: rates.routes,
        slots: rates.slots,
        certificate: rates.certificate,
        is_optimal: demand.is_exact(platform.nodes()),
        all_searched: false,
        platform,
    })
}

/// Solves a series of scans: the best single route.
fn scans(platform: Platform, ports: Ports) -> Result<Solution> {
    Operation::Scan.demand(&platform)?;
    let best = best_scan(&platform, ports)?;
    let throughput = whole(1) / &best.time;
    let mut solution = Solution {
        operation: Operation::Scan,
        ports,
        routes: vec![(best.route, throughput.clone())],
        throughput,
        slots: best.slots,
        certificate: None,
        is_optimal: false,
        all_searched: best.is_optimal,
        platform,
    };
    if solution.platform.nodes() <= MAX_BOUNDED {
        // Where the bound cannot be computed, optimality stays unproved.
        let bounds = solution.bounds().ok().flatten();
        solution.is_optimal = bounds.is_some_and(|(_, above)| above == solution.throughput);
    }
    Ok(solution)
}

/// A scan is compared with its bound at once on platforms of up to this many nodes.
const MAX_BOUNDED: usize = 12;

/// Up to this many nodes, the throughput is always recomputed by the polynomial program.
const MAX_CHECKED: usize = 40;

impl Solution {
    /// The platform whose edge numbers the routes and slots use: the reversed one for gathers and
    /// for reductions with free combining.
    pub fn platform(&self) -> &Platform {
        &self.platform
    }

    /// Whether [`Solution::platform`] is the reverse of the given platform.
    pub fn is_reversed(&self) -> bool {
        self.operation.is_reversed(&self.platform)
    }

    pub(super) fn port_graph(&self) -> PortGraph {
        PortGraph::new(&self.platform, self.ports, self.computing())
    }

    /// Whether combinations are planned as tasks of their own.
    pub(super) fn computing(&self) -> bool {
        self.operation.combining(&self.platform).is_some() && self.platform.computes()
    }

    /// Returns a lower and an upper bound of the throughput for operations whose optimum is NP-hard
    /// to find. Returns `None` for the others, whose throughput is exact.
    ///
    /// - Multicasts: a series of scatters of the same message from below, [`flow_bound`] from
    ///   above. On more than 40 nodes, a throughput that is proved is its own upper bound.
    /// - Scans: the throughput found from below. From above, the smaller of the throughput of the
    ///   last rank's prefix alone, which is a reduction in rank order, and of what each rank has to
    ///   send and receive: all but the last send their contribution, all but the first receive.
    /// - Reductions of many contributions by a commutative operator that takes time: the throughput
    ///   found from below. From above, the smaller of the throughput with free combining and the
    ///   rate of all processors together when they do nothing but combine.
    ///
    /// # Errors
    /// Those of [`solve`] and [`flow_bound`].
    pub fn bounds(&self) -> Result<Option<(Fraction, Fraction)>> {
        let platform = &self.platform;
        let solve = |platform: &Platform, operation| {
            Ok::<_, Error>(solve(platform, operation, self.ports, SolveMethod::Ports)?.throughput)
        };
        Ok(match self.operation {
            Operation::Multicast => {
                let below = solve(platform, Operation::Scatter)?;
                // The flow program takes long on large platforms, and adds nothing where the
                // certificate proves the optimum.
                let above = if self.is_optimal && platform.nodes() > MAX_CHECKED {
                    self.throughput.clone()
                } else {
                    flow_bound(platform, self.ports)?
                };
                Some((below, above))
            }
            Operation::Scan => {
                let last = platform.with_source(platform.nodes() - 1)?;
                let above = solve(&last, Operation::ReduceOrdered)?;
                let above = above.min(whole(1) / self.min_busy_of_scan());
                Some((self.throughput.clone(), above))
            }
            Operation::Reduce if !self.is_optimal => {
                let free = platform.clone().with_compute(Vec::new())?;
                let mut above = solve(&free, Operation::Reduce)?;
                if platform.compute().iter().all(|c| !c.is_zero()) {
                    let speed = sum(platform.compute().iter().map(|c| whole(1) / c));
                    above = above.min(speed / whole(platform.nodes() - 1));
                }
                Some((self.throughput.clone(), above))
            }
            _ => None,
        })
    }

    /// The longest time, over the ranks, that one message in and one out take at least.
    fn min_busy_of_scan(&self) -> Fraction {
        let n = self.platform.nodes();
        let cheapest = |is_own: &dyn Fn(&Edge) -> bool| {
            let own = self.platform.edges().iter().filter(|e| is_own(e));
            own.map(|e| e.cost.clone()).min().unwrap_or_default()
        };
        let busy = |v: usize| {
            let sent = |e: &Edge| v + 1 < n && e.src == v;
            let received = |e: &Edge| v > 0 && e.dst == v;
            let [out, into] = [cheapest(&sent), cheapest(&received)];
            if self.ports.can_relay() {
                out.max(into)
            } else {
                out + into
            }
        };
        (0..n).map(busy).max().unwrap_or_default()
    }

    /// Computes the throughput again by other programs, each with its name: by none where it is not
    /// exact. A program that cannot be solved does not contradict it: it has its own proof.
    ///
    /// - For broadcasts and free reductions with bidirectional ports: the polynomial program of
    ///   edge rates and flows ([`flow_bound`]).
    /// - The program of routes and matchings ([`SolveMethod::Matchings`]), only if `all` is set, as
    ///   it is slower.
    pub fn recomputed(&self, all: bool) -> Vec<(&'static str, Result<Fraction>)> {
        let mut others = Vec::new();
        if self.certificate.is_none() {
            return others;
        }
        let is_flow = self.operation == Operation::Broadcast
            || self.operation == Operation::Reduce && self.is_reversed();
        if is_flow && self.ports.can_relay() && (all || self.platform.nodes() <= MAX_CHECKED) {
            // Broadcasts and reductions involve all nodes, whatever the platform's targets.
            let platform = self.platform.with_source(self.platform.source());
            let throughput = platform.and_then(|p| flow_bound(&p, self.ports));
            others.push(("the polynomial program", throughput));
        }
        if all {
            let demand = self.operation.demand(&self.platform);
            let rates = demand
                .and_then(|d| best_rates(&self.platform, self.ports, &d, SolveMethod::Matchings));
            others.push(("routes and matchings", rates.map(|r| r.throughput)));
        }
        others
    }

    /// Returns sender and receiver of the messages of an edge, or twice the node that combines.
    ///
    /// # Panics
    /// When there is no such edge.
    pub fn link(&self, edge: usize) -> (usize, usize) {
        let edges = self.platform.edges();
        let Some(e) = edges.get(edge) else {
            let node = edge - edges.len();
            assert!(node < self.platform.nodes(), "no edge {edge}");
            return (node, node);
        };
        if self.is_reversed() {
            (e.dst, e.src)
        } else {
            (e.src, e.dst)
        }
    }

    /// Returns the shortest period in which every route has a whole number of operations and every
    /// slot whole messages. It may be very long.
    pub fn period(&self) -> Fraction {
        let routes = common_denominator(self.routes.iter().map(|(_, rate)| rate));
        let costs = self.platform.activity_costs(self.computing());
        let messages: Vec<Fraction> = (self.slots.iter())
            .flat_map(|s| s.edges.iter().map(|&e| &s.share / &costs[e]))
            .collect();
        Fraction::from(lcm(&routes, &common_denominator(&messages)))
    }
}
