//! What is asked for, and the answer.

use super::certificate::Certificate;
use super::flows::flow_bound;
use super::fraction::{Fraction, common_denominator, lcm, sum, whole};
use super::partial_results::PartialResults;
use super::platform::Platform;
use super::ports::Slot;
use super::route::{Combining, Demand, Route};
use super::scan::best_scan;
use super::solve::{Method, best_rates};
use crate::cost::Ports;
use crate::error::{Error, Result};
use dashu_int::UBig;

/// Contributions up to which reductions with an operator that commutes and takes time are priced
/// exactly.
const MAX_COMBINED: usize = 8;

/// A series of these operations is performed, as many a time unit as the platform allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The source's message to all nodes.
    Broadcast,
    /// The source's message to the targets; other nodes may pass it on.
    Multicast,
    /// A message of its own from the source to each target.
    Scatter,
    /// A message from each target to the source.
    Gather,
    /// All nodes' messages combined at the source, by an operator that commutes.
    Reduce,
    /// All nodes' messages combined at the source, in the order of the nodes: for operators that do
    /// not commute.
    ReduceOrdered,
    /// Every node's prefix: the messages of the nodes up to it combined, in their order. All
    /// operations are performed alike.
    Scan,
    /// Every node's message to all nodes: a broadcast from every node (the papers' total exchange).
    Allgather,
    /// A message of its own from every node to every other: a scatter from every node.
    Alltoall,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 9] = [
        Operation::Broadcast,
        Operation::Multicast,
        Operation::Scatter,
        Operation::Gather,
        Operation::Reduce,
        Operation::ReduceOrdered,
        Operation::Scan,
        Operation::Allgather,
        Operation::Alltoall,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Broadcast => "broadcast",
            Operation::Multicast => "multicast",
            Operation::Scatter => "scatter",
            Operation::Gather => "gather",
            Operation::Reduce => "reduce",
            Operation::ReduceOrdered => "reduce-ordered",
            Operation::Scan => "scan",
            Operation::Allgather => "allgather",
            Operation::Alltoall => "alltoall",
        }
    }

    /// Whether it is planned as another operation run backwards: on the platform with its edges
    /// turned round. Reductions are, where combining takes no time.
    pub(super) fn is_reversed(self, platform: &Platform) -> bool {
        match self {
            Operation::Gather => true,
            Operation::Reduce => !platform.computes(),
            _ => false,
        }
    }

    /// Whether every target has a message of its own.
    pub(super) fn is_personal(self) -> bool {
        matches!(
            self,
            Operation::Scatter | Operation::Gather | Operation::Alltoall
        )
    }

    /// How contributions are combined, where that matters.
    fn combining(self, platform: &Platform) -> Option<Combining> {
        let n = platform.nodes();
        let all = |ordered| {
            Combining::Partial(PartialResults {
                owners: (0..n).collect(),
                ordered,
            })
        };
        match self {
            Operation::ReduceOrdered | Operation::Scan => Some(all(true)),
            Operation::Reduce if !platform.computes() => None,
            Operation::Reduce if n <= MAX_COMBINED => Some(all(false)),
            Operation::Reduce => Some(Combining::Trees),
            _ => None,
        }
    }

    /// What one operation asks for, on the platform or its reverse.
    pub(super) fn demand(self, platform: &Platform) -> Result<Demand> {
        let n = platform.nodes();
        let others = |v: usize| (0..n).filter(|&u| u != v).collect::<Vec<usize>>();
        let source = platform.source();
        let (roots, targets): (Vec<usize>, Vec<Vec<usize>>) = match self {
            Operation::Broadcast
            | Operation::Reduce
            | Operation::ReduceOrdered
            | Operation::Scan => (vec![source], vec![others(source)]),
            Operation::Multicast | Operation::Scatter | Operation::Gather => {
                (vec![source], vec![platform.targets().to_vec()])
            }
            Operation::Allgather | Operation::Alltoall => {
                ((0..n).collect(), (0..n).map(others).collect())
            }
        };
        let combining = self.combining(platform);
        if self == Operation::Scan {
            // Every prefix is the one before, and one more contribution.
            for v in 1..n {
                platform.reaches(v - 1, &[v], false)?;
            }
            return Ok(Demand {
                roots,
                targets,
                personal: false,
                combining,
            });
        }
        for (&root, targets) in roots.iter().zip(&targets) {
            if combining.is_some() {
                platform.reversed().reaches(root, targets, true)?;
            } else {
                platform.reaches(root, targets, self.is_reversed(platform))?;
            }
        }
        Ok(Demand {
            roots,
            targets,
            personal: self.is_personal(),
            combining,
        })
    }
}

/// The optimal throughput of a series of operations, and how it is reached.
#[derive(Debug, Clone)]
pub struct Solution {
    /// What is performed.
    pub operation: Operation,
    /// What a node's ports allow.
    pub ports: Ports,
    /// Operations a time unit.
    pub throughput: Fraction,
    /// Routes and how many operations a time unit each has. For gathers, and reductions where
    /// combining takes no time, they are routes of the reversed platform: messages run from
    /// the end of each edge to its start, and towards the root.
    pub routes: Vec<(Route, Fraction)>,
    /// What takes place at the same time, and for what share of it. Every edge is busy just as
    /// long as the routes ask for.
    pub slots: Vec<Slot>,
    /// The proof that no schedule is faster; verified. Absent where routes are priced by a
    /// heuristic.
    pub certificate: Option<Certificate>,
    /// Whether the throughput is the best possible. It is not known to be for multicasts to many
    /// but not all nodes, for reductions of many contributions by an operator that commutes
    /// and takes time, and for scans; [`Solution::bounds`] are known then.
    pub is_optimal: bool,
    /// For scans, whether no other single way is better.
    pub(super) all_searched: bool,
    pub(super) platform: Platform,
}

/// The optimal throughput of a series of operations on `platform`.
///
/// # Errors
/// When a target cannot be reached, or the ports are not one-ported.
pub fn solve(
    platform: &Platform,
    operation: Operation,
    ports: Ports,
    method: Method,
) -> Result<Solution> {
    if ports.k() != 1 {
        return Err(Error::usage(format!(
            "steady-state throughput is for one port of each kind, not {}",
            ports.k()
        )));
    }
    let platform = if operation.is_reversed(platform) {
        platform.reversed()
    } else {
        platform.clone()
    };
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

/// The best single way for a series of scans.
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
        // Without a bound it is not known to be optimal.
        let bounds = solution.bounds().ok().flatten();
        solution.is_optimal = bounds.is_some_and(|(_, above)| above == solution.throughput);
    }
    Ok(solution)
}

/// Nodes up to which a scan is compared with its bound at once.
const MAX_BOUNDED: usize = 12;

/// Nodes up to which a throughput is computed by the polynomial program, too, unasked.
const MAX_CHECKED: usize = 40;

impl Solution {
    /// The platform that the edges of routes and slots are numbered by: for gathers and reductions
    /// the reversed one.
    pub fn platform(&self) -> &Platform {
        &self.platform
    }

    /// Whether [`Solution::platform`] is the reverse of the platform that was given.
    pub fn is_reversed(&self) -> bool {
        self.operation.is_reversed(&self.platform)
    }

    /// Whether combinations are planned as tasks of their own.
    pub(super) fn computing(&self) -> bool {
        self.operation.combining(&self.platform).is_some() && self.platform.computes()
    }

    /// Bounds of the throughput, from below and above, of operations for which the best is NP-hard
    /// to find; none for the others, whose throughput is exact.
    ///
    /// - Multicasts: a series of scatters of the same message from below, [`flow_bound`] from above
    ///   (the throughput itself, on more than 40 nodes, where it is proved).
    /// - Scans: what was found; the last rank's prefix alone, a reduction in rank order.
    /// - Reductions of many contributions, by an operator that commutes and takes time: what was
    ///   found; the same with free combinations, and all processors together being busy with
    ///   nothing else.
    ///
    /// # Errors
    /// When a bound cannot be computed.
    pub fn bounds(&self) -> Result<Option<(Fraction, Fraction)>> {
        let platform = &self.platform;
        let solve = |platform: &Platform, operation| {
            Ok::<_, Error>(solve(platform, operation, self.ports, Method::Ports)?.throughput)
        };
        Ok(match self.operation {
            Operation::Multicast => {
                let below = solve(platform, Operation::Scatter)?;
                // The program of flows takes long on large platforms, and is of no use where the
                // certificate says all.
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

    /// The throughput once more, by other programs, each with its name; all must be equal to
    /// [`Solution::throughput`]. None where that is not exact. A program that cannot be solved
    /// says nothing against the throughput, which has its own proof.
    ///
    /// - For broadcasts and free reductions with bidirectional ports, the polynomial program of
    ///   edge rates and flows ([`flow_bound`]).
    /// - The program of routes and matchings ([`Method::Matchings`]), which is slower: only if
    ///   `all` are asked for.
    pub fn recomputed(&self, all: bool) -> Vec<(&'static str, Result<Fraction>)> {
        let mut others = Vec::new();
        if self.certificate.is_none() {
            return others;
        }
        let is_flow = self.operation == Operation::Broadcast
            || self.operation == Operation::Reduce && self.is_reversed();
        if is_flow && self.ports.is_bidirectional() && (all || self.platform.nodes() <= MAX_CHECKED)
        {
            // Its demand is to all nodes, whatever the targets.
            let platform = self.platform.with_source(self.platform.source());
            let throughput = platform.and_then(|p| flow_bound(&p, self.ports));
            others.push(("the polynomial program", throughput));
        }
        if all {
            let demand = self.operation.demand(&self.platform);
            let rates =
                demand.and_then(|d| best_rates(&self.platform, self.ports, &d, Method::Matchings));
            others.push(("routes and matchings", rates.map(|r| r.throughput)));
        }
        others
    }

    /// Sender and receiver of an edge's messages; a node twice for the number that stands for its
    /// combining.
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

    /// The shortest period in which every route has whole operations and every slot whole messages:
    /// the least common multiple of the denominators of the routes' rates and of the slots'
    /// shares over the costs. It may be very long.
    pub fn period(&self) -> UBig {
        let routes = common_denominator(self.routes.iter().map(|(_, rate)| rate));
        let costs = self.platform.activity_costs(self.computing());
        let messages: Vec<Fraction> = (self.slots.iter())
            .flat_map(|s| s.edges.iter().map(|&e| &s.share / &costs[e]))
            .collect();
        lcm(&routes, &common_denominator(&messages))
    }
}
