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

use self::links::{lines_below, min_link};
use self::rounds::{gossip, steps};
use crate::machine::{CostModel, Eager, Ports};
use crate::schedule::collective::{Collective, Extent, Holders, Kind, Operands};
use crate::schedule::{Layout, Schedule, total_len};

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
    /// The largest of all times.
    pub largest: f64,
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
    demand.bounds(p, ports, element_bytes, cost)
}

impl Schedule {
    /// Lower bounds of the schedule's collective, with the block sizes of its layouts. Takes time
    /// linear in the spans of the layouts. Where links differ, it takes `O(p^2)` for `p` ranks, or
    /// `O(p^3)` for up to 512 ranks that all need data of each other.
    pub fn lower_bound(&self, cost: &CostModel) -> LowerBounds {
        lower_bound_of_layouts(
            self.collective(),
            self.ports(),
            self.ranks(),
            self.layout().iter(),
            cost,
            self.element_bytes(),
        )
    }
}

/// As [`Schedule::lower_bound`], for an iterator over the layouts of all ranks in rank order.
pub fn lower_bound_of_layouts(
    collective: &Collective,
    ports: Ports,
    ranks: usize,
    layouts: impl Iterator<Item = impl Borrow<Layout>>,
    cost: &CostModel,
    element_bytes: u64,
) -> LowerBounds {
    if ranks < 2 {
        return LowerBounds::default();
    }
    let cost = &*collective.kind().costs(cost);
    if cost.links().is_none() {
        let demand = Demand::of(collective, ranks, layouts);
        return demand.bounds(ranks, ports, element_bytes, cost);
    }
    let layouts: Vec<Layout> = layouts.map(|l| l.borrow().clone()).collect();
    let demand = Demand::of(collective, ranks, layouts.iter());
    let bounds = demand.bounds(ranks, ports, element_bytes, cost);
    let (path, port) = links::Needs::of(collective, &layouts).bounds(ports, element_bytes, cost);
    LowerBounds {
        path: bounds.path.max(path),
        port: bounds.port.max(port),
        ..bounds
    }
    .with_largest()
}

impl LowerBounds {
    fn with_largest(self) -> LowerBounds {
        let all = [self.bandwidth, self.computation, self.path, self.port];
        let largest = all.into_iter().fold(self.latency, f64::max);
        LowerBounds { largest, ..self }
    }
}

/// What a collective requires of ranks and ports, in elements.
#[derive(Debug, Clone, Copy, Default)]
struct Demand {
    /// Number of ranks that one rank's data must reach, or whose data one rank needs, including
    /// itself.
    reach: usize,
    /// Elements that each of these ranks needs or has; 1 if not known to be more.
    each: f64,
    /// Number of messages that all ranks together send at least.
    messages: usize,
    /// Maximum over the ranks of the elements that a rank must receive.
    received: f64,
    /// Maximum over the ranks of the elements that a rank must send.
    sent: f64,
    /// Maximum over the ranks of the elements that a rank must receive or send.
    both: f64,
    /// Elements that all ranks together must send.
    total: f64,
    /// Number of combinations of two elements, over all ranks.
    combined: f64,
    /// Number of contributions to one result.
    operands: usize,
    /// Number of ranks that each need data of all the others among them.
    mutual: usize,
}

impl Demand {
    /// The demand of a collective with equal blocks, for `p > 1` ranks and `m > 0` elements: see
    /// [`lower_bound`].
    fn regular(kind: Kind, p: usize, m: f64) -> Demand {
        let others = number(p - 1);
        let row = kind.row();
        if !row.has_data {
            return Demand {
                reach: p,
                mutual: p,
                ..Demand::default()
            };
        }
        let demand = match (row.input, row.output) {
            (_, (Holders::Targets, _)) => return Demand::default(),
            ((_, Extent::Pairs), _) | (_, (_, Extent::Pairs)) => Demand {
                reach: p,
                each: m,
                messages: p,
                received: others * m,
                sent: others * m,
                both: 2.0 * others * m,
                total: number(p) * others * m,
                mutual: p,
                ..Demand::default()
            },
            ((Holders::Every, Extent::Whole), (Holders::Every, Extent::Whole))
                if row.combines == Some(Operands::All) =>
            {
                Demand {
                    messages: 2 * (p - 1),
                    both: 2.0 * m,
                    total: 2.0 * others * m,
                    mutual: p,
                    ..Demand::one_to(p, m)
                }
            }
            ((_, Extent::Whole), (_, Extent::Whole)) => {
                // Of three ranks, one receives from those before it and sends to those after it.
                let is_prefix = !matches!(row.combines, None | Some(Operands::All));
                let both = if is_prefix && p > 2 { 2.0 * m } else { m };
                let one_way = Demand::one_to(p, m);
                Demand { both, ..one_way }
            }
            ((Holders::Root, _), _) | (_, (Holders::Root, _)) => {
                Demand::rooted(p, others * m, (m, m))
            }
            ((_, Extent::Block), _) => Demand {
                mutual: p,
                ..Demand::all_to_all_blocks(p, others * m, m, number(p) * m)
            },
            // The smallest block is at most m / p, the largest at least that.
            ((_, Extent::Whole), (_, Extent::Block)) => Demand {
                each: m / number(p),
                mutual: if m < number(p) { 0 } else { p },
                ..Demand::all_to_all_blocks(p, others * m / number(p), 0.0, m)
            },
        };
        match row.combines {
            None => demand,
            Some(Operands::BeforeOwn) => demand.combining(p - 1, (others - 1.0) * m),
            Some(_) => demand.combining(p, others * m),
        }
    }

    /// The demand of a collective with the block sizes of `layouts`.
    fn of(
        collective: &Collective,
        p: usize,
        layouts: impl Iterator<Item = impl Borrow<Layout>>,
    ) -> Demand {
        let (kind, root) = (collective.kind(), collective.root());
        let row = kind.row();
        if kind.has_block_pairs() {
            return Demand::blocks_of_pairs(p, layouts);
        }
        let (mut inputs, mut outputs) = (Vec::with_capacity(p), Vec::with_capacity(p));
        for layout in layouts {
            let layout = layout.borrow();
            inputs.push(total_len(&layout.input));
            outputs.push(total_len(&layout.output));
        }
        let input = |root: usize| inputs.get(root).copied().unwrap_or(0);
        match (row.input.1, row.output.1, root) {
            (Extent::Whole, Extent::Whole, Some(root)) if row.input.0 == Holders::Root => {
                let targets = outputs.iter().enumerate();
                let targets = targets.filter(|&(r, &n)| r != root && n > 0);
                Demand::one_to(targets.count() + 1, number(input(root)))
            }
            (Extent::Block, _, Some(root)) => Demand::blocks_of_root(root, inputs.into_iter()),
            (_, Extent::Block, Some(root)) => Demand::blocks_of_root(root, outputs.into_iter()),
            (Extent::Block, _, None) if row.has_data => {
                Demand::blocks_of_all(p, inputs.into_iter())
            }
            (_, Extent::Block, None) => {
                let demand = Demand::blocks_of_all(p, outputs.into_iter());
                demand.combining(p, demand.total)
            }
            _ => match input(0) {
                0 => Demand::default(),
                m => Demand::regular(kind, p, number(m)),
            },
        }
    }

    /// `m` elements go from one rank to `reach - 1` others.
    fn one_to(reach: usize, m: f64) -> Demand {
        if reach < 2 || m == 0.0 {
            return Demand::default();
        }
        Demand {
            reach,
            each: m,
            messages: reach - 1,
            received: m,
            sent: m,
            both: m,
            total: number(reach - 1) * m,
            ..Demand::default()
        }
    }

    /// `total` elements go between a root and `reach - 1` others; `smallest` and `largest` are the
    /// smallest and the largest of their blocks.
    fn rooted(reach: usize, total: f64, (smallest, largest): (f64, f64)) -> Demand {
        Demand {
            reach,
            each: smallest,
            messages: reach - 1,
            received: total,
            sent: largest,
            both: total,
            total,
            ..Demand::default()
        }
    }

    /// `total` elements in blocks, one per rank, each of which goes to (or comes from) all ranks. A
    /// rank receives (or sends) at most `max_other_blocks` elements and sends (or receives) its own
    /// block of at most `own` elements.
    fn all_to_all_blocks(p: usize, max_other_blocks: f64, own: f64, total: f64) -> Demand {
        Demand {
            reach: p,
            each: own,
            messages: p - 1,
            received: max_other_blocks,
            sent: own,
            both: total,
            total: number(p - 1) * total,
            ..Demand::default()
        }
    }

    fn blocks_of_root(root: usize, blocks: impl Iterator<Item = usize>) -> Demand {
        let (mut reach, mut total) = (1, 0.0);
        let (mut smallest, mut largest) = (f64::INFINITY, 0.0f64);
        for (_, n) in blocks.enumerate().filter(|&(r, n)| r != root && n > 0) {
            reach += 1;
            total += number(n);
            smallest = smallest.min(number(n));
            largest = largest.max(number(n));
        }
        Demand::rooted(reach, total, (smallest, largest))
    }

    fn blocks_of_all(p: usize, blocks: impl Iterator<Item = usize>) -> Demand {
        let (mut total, mut smallest, mut largest) = (0.0, f64::INFINITY, 0.0f64);
        let mut mutual = 0;
        for n in blocks.map(number) {
            mutual += usize::from(n > 0.0);
            total += n;
            smallest = smallest.min(n);
            largest = largest.max(n);
        }
        if total == 0.0 {
            return Demand::default();
        }
        Demand {
            mutual,
            ..Demand::all_to_all_blocks(p, total - smallest, largest, total)
        }
    }

    fn blocks_of_pairs(p: usize, layouts: impl Iterator<Item = impl Borrow<Layout>>) -> Demand {
        let mut demand = Demand::default();
        // By rank: the number of other ranks it receives a block from, and whether its input lists
        // one span per block.
        let (mut heard, mut listed) = (vec![0; p], vec![false; p]);
        let mut all_need_all = true;
        for (rank, l) in layouts.enumerate() {
            let l = l.borrow();
            let input = total_len(&l.input);
            for (to, block) in l.input.iter().enumerate().take(p) {
                heard[to] += usize::from(to != rank && block.len > 0);
            }
            // One span per block if there are p spans, equal blocks otherwise.
            let (own, reach) = if l.input.len() == p {
                let others = l
                    .input
                    .iter()
                    .enumerate()
                    .filter(|(r, s)| *r != rank && s.len > 0);
                (l.input[rank].len, others.count() + 1)
            } else {
                (input / p, if input < p { 1 } else { p })
            };
            let sent = number(input - own);
            let received = number(total_len(&l.output).saturating_sub(own));
            listed[rank] = l.input.len() == p;
            demand.reach = demand.reach.max(reach);
            all_need_all &= reach == p;
            demand.sent = demand.sent.max(sent);
            demand.received = demand.received.max(received);
            demand.both = demand.both.max(sent + received);
            demand.total += sent;
        }
        let heard = heard.iter().zip(&listed).filter(|(_, listed)| **listed);
        let heard = heard.map(|(heard, _)| heard + 1).max();
        demand.reach = demand.reach.max(heard.unwrap_or(0));
        demand.mutual = if all_need_all { p } else { 0 };
        demand
    }

    /// The same demand, with `combined` combinations of elements and `operands` contributions per
    /// result.
    fn combining(self, operands: usize, combined: f64) -> Demand {
        Demand {
            operands,
            combined,
            ..self
        }
    }

    fn bounds(&self, p: usize, ports: Ports, element_bytes: u64, cost: &CostModel) -> LowerBounds {
        let bytes = element_bytes as f64;
        let (alpha, beta) = min_link(cost);
        let k = number(ports.k().max(1));
        let (at_once, one) = if ports.is_bidirectional() {
            (number(p) * k, self.received.max(self.sent) / k)
        } else {
            let pairs = number(p) * k / 2.0;
            match cost.sends_eagerly() {
                Eager::None => (pairs.floor(), self.both / k),
                _ => (pairs, self.both / k),
            }
        };
        let share = if at_once > 0.0 {
            one.max(self.total / at_once)
        } else {
            one
        };
        let steps = steps(self.reach, ports.k().max(1));
        // The proof has both ends of a message in one window.
        let gossip = match cost.sends_eagerly() {
            Eager::None => gossip(self.mutual, p, ports),
            _ => 0,
        };
        let (mut path, mut port) = (0.0f64, 0.0f64);
        for (alpha, beta) in lines_below(cost) {
            let message = |elements: f64| alpha + beta * (elements * bytes);
            if steps > 0 {
                let last = message((self.each / k).max(1.0));
                path = path.max(f64::from(steps - 1) * message(1.0) + last);
                path = path.max(f64::from(gossip) * message(1.0));
            }
            if share > 0.0 {
                let all = number(self.messages) * alpha + self.total * (beta * bytes);
                port = port.max(message(share)).max(all / at_once.max(1.0));
            }
        }
        let latency = if steps > 0 {
            least_latency(cost, p)
        } else {
            0.0
        };
        if path > 0.0 {
            path += latency;
            if self.reach == p {
                // The rank that comes last sends or receives.
                let (alpha, beta) = min_link(cost);
                path = path.max(cost.last_arrival() + alpha + beta * bytes);
            }
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
            elements: self.total as usize,
        }
        .with_largest()
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

mod links;
mod rounds;
