//! Lower bounds on the time of a collective: no schedule that obeys the rules of
//! [`crate::rules`] is faster.
//!
//! - Symbols: `p` ranks with `k` ports each, alpha per message, beta per byte, gamma per byte
//!   combined. On heterogeneous platforms alpha and beta are the minima over all links.
//! - Each bound is valid alone; their sum need not be a bound.
//!
//! **Latency.** In time alpha a rank with `k` ports can pass data on to `k` other ranks, so after
//! `j` alpha at most `(k + 1)^j` ranks have it. Reaching `n` ranks therefore takes
//! `ceil(log_{k+1} n)` alpha. By reversal, collecting from `n` ranks takes as long.
//!
//! **Gossip.** Where many ranks need data of each other, unidirectional ports take longer: at least
//! `2 + log_g ceil(p/2)` alpha on one port, `g` the golden ratio. `bounds/rounds.rs` has the proof.
//!
//! **Bandwidth.** A rank's `k` ports must carry everything the rank receives and sends: receives
//! and sends separately on bidirectional ports, together on unidirectional ones. All ranks together
//! carry at most `p k` messages at once, or `floor(p k / 2)` on unidirectional ports. The required
//! volume: a broadcast delivers every element to `p - 1` ranks; in a reduction every rank but the
//! root sends every element once. An allreduce needs `2 (p - 1)` messages for each element: no rank
//! knows all contributions before `p - 1` messages have been sent, the last of these informs one
//! rank, and each other rank must receive one more message. Unidirectional reductions thus need
//! `(p - 1) / floor(p / 2) beta m`, which is `2 beta m` for odd `p` but less for even.
//!
//! **Path.** No message has less than one element, so `j` messages that follow each other take
//! `j (alpha + beta)`, with beta per element. Of `n` ranks that each need `m` elements from one
//! rank, some rank starts to receive after `ceil(log_{k+1} n) - 1` such messages at the earliest:
//! before, at most `(k + 1)^j` ranks have data or are receiving their first. Its busiest port then
//! carries at least `m / k` elements, in one message at least: `alpha + beta m / k`. By reversal
//! the same holds for `n` ranks whose `m` elements one rank needs.
//!
//! **Port.** What a port carries, it carries in at least one message, and all ports together carry
//! at least one message for each rank that needs or sends data: the bandwidth bound, with the
//! start-up times of these messages.
//!
//! **Blocks.** The ports of a root carry all blocks but its own. If the ranks send, or receive, a
//! single message each, no block is split, so the blocks of a port add up: the busiest one carries
//! at least what it does in the best partition of all blocks: `P = alpha + beta s` for the load `s`
//! of the port. A root that has its own block of `b` elsewhere than in its place copies `c` of it,
//! and nothing overlaps that; the rest goes to another rank and comes back, on any port. So with
//! `r` elements of others a gather, or a scatter, takes at least the least of
//! `gamma_copy c + max(P, alpha + beta (r + b - c) / k)` over `c` from 0 to `b`.
//!
//! **Whole blocks.** Let a vector of `m` elements go from one rank to `n` others, or back, in
//! messages of at most `s` and at least `l` elements each: in `q = ceil(m / s)` blocks at least. Of
//! the elements that the root sends last for the first time, no other rank has any before, so they
//! take `ceil(log_{k+1} (n + 1))` messages of at least `l` from then on. Before, the root has sent
//! all others, in at least `q - 1` messages: `q - 1 + ceil(log2 (n + 1))` rounds on one port
//! (Träff, "(Poly)logarithmic time construction of round-optimal n-block broadcast schedules",
//! section 1), and `(q - 1) alpha + beta (m - s)` before the others. On `k` ports up to `k - 1` of
//! the messages may not have ended when the last one starts. This judges schedules that cut the
//! vector alike; it is no bound for others.
//!
//! **Links.** Where links differ, `bounds/links.rs` has the shortest path to the farthest rank and
//! the least work of each rank's ports; they count as path and port.
//!
//! **Delays.** A rank that data reach gets the latency `L` later what was sent, so with `j`
//! start-ups at most `(k + 1)^j` ranks have it at `L + j alpha`: latency and path grow by the least
//! `L`. If all ranks take part, the last one to arrive takes part in a message after that. If
//! senders do not wait, the two ends of a message may be in different windows: there is no gossip
//! bound, and a port that no pair of ranks would use may carry half of a message.
//!
//! **Computation.** Every element is combined `p - 1` times, and a rank performs one combination at
//! a time, so `p` ranks that share the work evenly need `(p - 1) / p gamma m`. If computation may
//! overlap, a rank can perform several combinations at once, and only the depth of the tree of
//! combinations remains: `ceil(log2 p)` for one element.

use std::borrow::Borrow;

use self::demand::Demand;
use self::links::{lines_below, min_link};
use self::rounds::{gossip, steps};
pub(crate) use self::shares::shares;
use crate::budget::quick;
use crate::machine::numbers::truncated;
use crate::machine::{CostModel, Eager, Ports};
use crate::schedule::collective::{Collective, Extent, Holders, Kind};
use crate::schedule::{DynScheduleSource, Layout, Schedule, total_len};

/// Lower bounds on the time of a schedule, in the unit of the costs, and on what it sends; each is
/// valid alone.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct LowerBounds {
    /// Start-up times of messages that must follow each other.
    pub latency: f64,
    /// Time of transfers that must share ports.
    pub bandwidth: f64,
    /// Time of combinations that must share ranks.
    pub computation: f64,
    /// Time of the messages that reach the last rank, and of those that it needs.
    pub path: f64,
    /// Time of the messages that the busiest port carries.
    pub port: f64,
    /// The largest of all times above.
    pub largest: f64,
    /// Blocks into which the messages of these programs cut the vector of a broadcast, reduction or
    /// multicast, at least; 0 if that is not known, or senders do not wait. The next two are for
    /// all schedules with messages of such sizes, not for others.
    pub blocks: usize,
    /// Time for so many blocks, whatever combining takes.
    pub block_time: f64,
    /// Messages that follow each other for so many blocks.
    pub block_rounds: usize,
    /// Messages that follow each other.
    pub rounds: usize,
    /// Messages of all ranks together.
    pub messages: usize,
    /// Elements that all ranks together send.
    pub elements: usize,
}

/// Lower bounds of a collective with blocks of equal size.
///
/// `elements` is the length of the vector of a broadcast, reduce, allreduce, reduce_scatter,
/// scan or exscan, and of one rank's block of a gather, scatter, allgather or alltoall; that of a
/// barrier has no effect. All bounds of a multicast are 0, because its targets are not known here:
/// see [`Schedule::lower_bound`]. Takes constant time, or `O(p^2)` where links differ.
///
/// ```
/// use oneport::simulate::bounds::lower_bound;
/// use oneport::{CostModel, Kind, Ports};
/// let bounds = lower_bound(Kind::Reduce, Ports::UNI, 6, 100, 1, &CostModel::new(10.0, 3.0).gamma(6.0));
/// assert_eq!(bounds.latency, 3.0 * 10.0);
/// assert_eq!(bounds.bandwidth, 5.0 / 3.0 * 3.0 * 100.0);
/// assert_eq!(bounds.computation, 5.0 / 6.0 * 6.0 * 100.0);
/// assert_eq!(bounds.path, 2.0 * (10.0 + 3.0) + 10.0 + 3.0 * 100.0);
/// assert_eq!(bounds.port, (5.0 * 10.0 + 3.0 * 500.0) / 3.0);
/// assert_eq!(bounds.largest, bounds.port);
/// ```
pub fn lower_bound(
    kind: Kind,
    ports: Ports,
    p: usize,
    elements: usize,
    element_bytes: u64,
    cost: &CostModel,
) -> LowerBounds {
    let cost = &*kind.costs(cost);
    let demand = if p < 2 || (elements == 0 && kind.has_data()) {
        Demand::default()
    } else {
        Demand::regular(kind, p, number(elements))
    };
    demand.bounds(0, p, ports, element_bytes, cost)
}

impl Schedule {
    /// Lower bounds of the schedule's collective, with the block sizes of its layouts. Takes time
    /// linear in the steps and the spans of the layouts. Where links differ, it takes `O(p^2)` for
    /// `p` ranks, or `O(p^3)` for up to 512 ranks that all need data of each other.
    pub fn lower_bound(&self, cost: &CostModel) -> LowerBounds {
        lower_bound_of_programs(self, self.ports(), cost, self.element_bytes())
    }
}

/// The largest lower bound of a schedule as a function of `alpha` and `beta`, where all links cost
/// that and computation nothing: pairs `(a, b)`, of whose `a alpha + b beta` it is the maximum.
#[doc(hidden)]
pub fn lower_bound_lines(schedule: &Schedule) -> Vec<(f64, f64)> {
    let (p, ports) = (schedule.ranks(), schedule.ports());
    if p < 2 {
        return Vec::new();
    }
    let demand = Demand::of(schedule.collective(), p, schedule.layout().iter(), None);
    let bytes = schedule.element_bytes() as f64;
    let [a, b] = [(1.0, 0.0), (0.0, 1.0)].map(|line| demand.terms(p, (ports, true), bytes, line));
    let has_data = schedule.collective().kind().has_data();
    let lines = a.into_iter().zip(b.map(|b| if has_data { b } else { 0.0 }));
    lines.filter(|&line| line != (0.0, 0.0)).collect()
}

/// As [`Schedule::lower_bound`], for programs on these ports.
pub(crate) fn lower_bound_of_programs(
    programs: &dyn DynScheduleSource,
    ports: Ports,
    cost: &CostModel,
    element_bytes: u64,
) -> LowerBounds {
    let (collective, ranks) = (programs.collective(), programs.ranks());
    let unsplit_on = Some(ports.k()).filter(|&k| k > 1 && splits_no_block(programs, &collective));
    let layouts = (0..ranks).map(|rank| programs.layout_of(rank));
    let bounds = bounds_of(
        &collective,
        ports,
        layouts,
        (ranks, unsplit_on),
        cost,
        element_bytes,
    );
    match message_sizes(programs, &collective) {
        Some((m, sizes)) if bounds.rounds > 0 && matches!(cost.sends_eagerly(), Eager::None) => {
            bounds.of_blocks(number(m), sizes, ports, element_bytes, cost)
        }
        _ => bounds,
    }
}

/// The elements of the vector that goes from one rank to others, or back, and the most and the
/// fewest elements of a message; `None` for other collectives and too many steps.
fn message_sizes(
    programs: &dyn DynScheduleSource,
    collective: &Collective,
) -> Option<(usize, (usize, usize))> {
    let row = collective.kind().row();
    let root = collective.root()?;
    let all = programs.layout_of(root);
    let m = if row.input.0 == Holders::Root {
        total_len(&all.input)
    } else {
        total_len(&all.output)
    };
    let (mut most, mut fewest, mut steps) = (0, usize::MAX, 0);
    if (row.input.1, row.output.1) != (Extent::Whole, Extent::Whole) {
        return None;
    }
    for rank in 0..programs.ranks() {
        for step in programs.program_of(rank) {
            steps += 1;
            if steps > quick::MAX_SCANNED_STEPS {
                return None;
            }
            if step.is_send() && !step.is_empty() {
                most = most.max(step.len());
                fewest = fewest.min(step.len());
            }
        }
    }
    (most > 0 && m > 0).then_some((m, (most, fewest.min(most))))
}

/// Whether each rank but the root sends one message, if blocks go to a root, or receives one, if
/// they come from it. Then the message has all of the rank's block.
fn splits_no_block(programs: &dyn DynScheduleSource, collective: &Collective) -> bool {
    let row = collective.kind().row();
    let (Some(root), sends) = (collective.root(), row.input.1 == Extent::Block) else {
        return false;
    };
    let messages = |rank: usize| {
        let steps = programs.program_of(rank);
        let messages = steps.filter(|step| step.port().is_some() && step.is_send() == sends);
        messages.take(2).count()
    };
    (sends || row.output.1 == Extent::Block)
        && (0..programs.ranks()).all(|rank| rank == root || messages(rank) < 2)
}

fn bounds_of(
    collective: &Collective,
    ports: Ports,
    layouts: impl Iterator<Item = impl Borrow<Layout>>,
    (ranks, unsplit_on): (usize, Option<usize>),
    cost: &CostModel,
    element_bytes: u64,
) -> LowerBounds {
    if ranks < 2 {
        return LowerBounds::default();
    }
    let cost = &*collective.kind().costs(cost);
    let root = collective.root().unwrap_or(0);
    if cost.links().is_none() {
        let demand = Demand::of(collective, ranks, layouts, unsplit_on);
        return demand.bounds(root, ranks, ports, element_bytes, cost);
    }
    let layouts: Vec<Layout> = layouts.map(|l| l.borrow().clone()).collect();
    let demand = Demand::of(collective, ranks, layouts.iter(), unsplit_on);
    let bounds = demand.bounds(root, ranks, ports, element_bytes, cost);
    let needs = links::Needs::of(collective, &layouts).displacing(root, demand.displaced);
    let (path, port) = needs.bounds(ports, element_bytes, cost);
    LowerBounds {
        path: bounds.path.max(path),
        port: bounds.port.max(port),
        ..bounds
    }
    .with_largest()
}

impl LowerBounds {
    /// The bounds with those of the blocks of `m` elements that messages of these sizes make.
    fn of_blocks(
        self,
        m: f64,
        (most, fewest): (usize, usize),
        ports: Ports,
        element_bytes: u64,
        cost: &CostModel,
    ) -> LowerBounds {
        let ((alpha, beta), k) = (min_link(cost), number(ports.k().max(1)));
        let message = |elements: f64| alpha + beta * (elements * element_bytes as f64);
        let most = number(most).min(m);
        let before = (m / most).ceil() - 1.0;
        let sent = before * alpha + message(m - most) - alpha;
        let on_port = ((sent - (k - 1.0) * message(most)) / k).max(0.0);
        let last = steps(self.messages + 1, ports.k().max(1));
        LowerBounds {
            blocks: truncated(before) + 1,
            block_rounds: truncated(before / k) + last as usize,
            block_time: on_port + f64::from(last) * message(number(fewest)),
            ..self
        }
    }

    fn with_largest(self) -> LowerBounds {
        let all = [self.bandwidth, self.computation, self.path, self.port];
        let largest = all.into_iter().fold(self.latency, f64::max);
        LowerBounds { largest, ..self }
    }
}

impl Demand {
    fn bounds(
        &self,
        root: usize,
        p: usize,
        ports: Ports,
        element_bytes: u64,
        cost: &CostModel,
    ) -> LowerBounds {
        let bytes = element_bytes as f64;
        let (alpha, beta) = min_link(cost);
        let waits = matches!(cost.sends_eagerly(), Eager::None);
        let (_, share) = self.share(p, ports, waits);
        let (steps, gossip) = self.rounds(p, ports, waits);
        let (mut path, mut port) = (0.0f64, 0.0f64);
        for line in lines_below(cost) {
            let terms = self.terms(p, (ports, waits), bytes, line);
            path = path.max(terms[0]).max(terms[1]);
            port = port.max(terms[2]).max(terms[3]);
            if self.displaced > 0.0 && terms[2] > 0.0 && !cost.overlaps() {
                let rates = (line, cost.min_copy_rate(root));
                port = port.max(self.with_own_block(terms[2], ports, bytes, rates));
            }
        }
        let mut latency = 0.0;
        if steps > 0 {
            latency = least_latency(cost, p);
            path += latency;
        }
        if steps > 0 && self.reach == p {
            // The rank that comes last sends or receives what it has or needs, on all its ports.
            let (alpha, beta) = min_link(cost);
            let on_port = (self.each / number(ports.k())).max(1.0);
            path = path.max(cost.last_arrival() + alpha + beta * bytes * on_port);
        }
        LowerBounds {
            latency: f64::from(steps.max(gossip)) * alpha + latency,
            bandwidth: share * (beta * bytes),
            computation: self.computation(p, bytes, cost),
            path,
            port,
            largest: 0.0,
            rounds: steps.max(gossip) as usize,
            messages: self.messages,
            elements: truncated(self.total),
            ..LowerBounds::default()
        }
        .with_largest()
    }

    /// How long a root takes that has its own block elsewhere than in its place, and whose busiest
    /// port has others' blocks for the time `on_port`.
    fn with_own_block(
        &self,
        on_port: f64,
        ports: Ports,
        bytes: f64,
        ((alpha, beta), gamma_copy): ((f64, f64), f64),
    ) -> f64 {
        let (k, own) = (number(ports.k().max(1)), self.displaced);
        let others = if ports.can_exchange() {
            self.received.max(self.sent)
        } else {
            self.both
        };
        let time = |copied: f64| {
            let spread = alpha + beta * bytes * (others + own - copied) / k;
            gamma_copy * bytes * copied + on_port.max(spread)
        };
        // The time is convex in what is copied, with a kink where the rest fills the other ports.
        let kink = others + own - k * (on_port - alpha) / (beta * bytes);
        let kink = if kink > 0.0 && kink < own { kink } else { own };
        time(0.0).min(time(kink)).min(time(own))
    }

    /// The messages that all ranks can send at once, and the elements that the busiest port
    /// carries, where senders wait for their receivers or not.
    fn share(&self, p: usize, ports: Ports, waits: bool) -> (f64, f64) {
        let k = number(ports.k().max(1));
        let (at_once, one) = if ports.can_exchange() {
            (number(p) * k, self.received.max(self.sent) / k)
        } else {
            let pairs = number(p) * k / 2.0;
            (if waits { pairs.floor() } else { pairs }, self.both / k)
        };
        let one = one.max(self.load);
        let share = if at_once > 0.0 {
            one.max(self.total / at_once)
        } else {
            one
        };
        (at_once, share)
    }

    /// Messages that follow each other: to the last rank, and where many need data of each other.
    fn rounds(&self, p: usize, ports: Ports, waits: bool) -> (u32, u32) {
        let to_last = steps(self.reach, ports.k().max(1));
        // The proof has both ends of a message in one window.
        let among_many = if waits {
            gossip(self.mutual, p, ports)
        } else {
            0
        };
        (to_last, among_many)
    }

    /// The bounds of the path (to the last rank, among many) and of the port (its own messages, all
    /// messages), where a message takes `alpha + beta` times its bytes. Each is linear in both.
    fn terms(
        &self,
        p: usize,
        (ports, waits): (Ports, bool),
        bytes: f64,
        (alpha, beta): (f64, f64),
    ) -> [f64; 4] {
        let k = number(ports.k().max(1));
        let (at_once, share) = self.share(p, ports, waits);
        let (steps, gossip) = self.rounds(p, ports, waits);
        let message = |elements: f64| alpha + beta * (elements * bytes);
        let mut terms = [0.0; 4];
        if steps > 0 {
            let last = message((self.each / k).max(1.0));
            terms[0] = f64::from(steps - 1) * message(1.0) + last;
            terms[1] = f64::from(gossip) * message(1.0);
        }
        if share > 0.0 {
            let all = number(self.messages) * alpha + self.total * (beta * bytes);
            [terms[2], terms[3]] = [message(share), all / at_once.max(1.0)];
        }
        terms
    }

    fn computation(&self, p: usize, bytes: f64, cost: &CostModel) -> f64 {
        if self.combined == 0.0 {
            return 0.0;
        }
        let gamma_of = |rank: usize| match cost.links() {
            None => cost.min_rates().2,
            Some(l) => l.gamma.get(rank).copied().unwrap_or(0.0),
        };
        if cost.overlaps() {
            let min_gamma = (0..p).map(gamma_of).fold(f64::INFINITY, f64::min);
            return f64::from(steps(self.operands, 1)) * min_gamma * bytes;
        }
        if cost.links().is_none() {
            return self.combined * (cost.min_rates().2 * bytes) / number(p);
        }
        // The work is shared so that all ranks finish together.
        let speed: f64 = (0..p).map(|r| 1.0 / gamma_of(r)).sum();
        self.combined * bytes / speed
    }
}

/// The least latency of a message between two of `p` ranks.
fn least_latency(cost: &CostModel, p: usize) -> f64 {
    match cost.links() {
        None => cost.latency_between(0, 1),
        Some(_) => {
            let others = (0..p).flat_map(|a| (0..p).filter(move |&b| b != a).map(move |b| (a, b)));
            let latencies = others.map(|(a, b)| cost.latency_between(a, b));
            latencies.fold(f64::INFINITY, f64::min)
        }
    }
}

fn number(n: usize) -> f64 {
    n as f64
}

mod demand;
mod links;
mod rounds;
mod shares;
