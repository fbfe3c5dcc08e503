//! Lower bounds where links differ: the shortest path to the farthest rank, and the least work of
//! each rank's ports.
//!
//! - Symbols: `w(u,v) = alpha_uv + beta_uv` for one element, `d(s,r)` the shortest path from `s` to
//!   `r` by these lengths, `k` ports a rank.
//! - *Path.* An element from `s` that `r` needs takes `d(s,r)` at least.
//! - *Port.* A rank that must receive `X` elements has a port that receives `X / k`, at least one,
//!   in messages over some of its links. With the link `u` of the least beta among them, they take
//!   `alpha_ur + beta_ur X / k` at least, so the minimum over all `u` is a bound. The same holds
//!   for what a rank must send. On unidirectional ports the two share the same ports.
//! - *Both.* Where all that `r` needs comes from one rank `s`, its first message starts at
//!   `min_u d(s,u)` over the ranks that `r` has a link from, and the port's work follows. By
//!   reversal the same holds where all that `r` has goes to one rank.
//!
//! Ranks that no link reaches have no path: a schedule for them is incorrect, whatever its time.

use super::number;
use crate::machine::{CostModel, Links, Ports};
use crate::schedule::collective::{Collective, Extent, Holders, Operands};
use crate::schedule::{Layout, total_len};

/// All pairs' paths are computed for at most this many ranks, in time `O(p^3)`.
const MAX_RANKS: usize = 512;

/// What ranks need from each other.
pub(super) struct Needs {
    /// By rank: elements that it must receive.
    received: Vec<f64>,
    /// By rank: elements that it must send.
    sent: Vec<f64>,
    path: Path,
    /// A rank, and the elements of its own block that it has elsewhere than in their place.
    displaced: (usize, f64),
}

/// Which ranks must exchange data.
enum Path {
    /// From one rank to those that receive.
    From(usize),
    /// From those that send to one rank.
    To(usize),
    /// From each rank that sends to each that receives.
    All,
    /// Not known.
    Unknown,
}

impl Needs {
    /// The needs of a collective with these layouts, one for each rank.
    pub(super) fn of(collective: &Collective, layouts: &[Layout]) -> Needs {
        let p = layouts.len();
        let inputs: Vec<f64> = layouts
            .iter()
            .map(|l| number(total_len(&l.input)))
            .collect();
        let outputs: Vec<f64> = layouts
            .iter()
            .map(|l| number(total_len(&l.output)))
            .collect();
        let but = |root: usize, sizes: &[f64]| -> Vec<f64> {
            let of = |(r, &n): (usize, &f64)| if r == root { 0.0 } else { n };
            sizes.iter().enumerate().map(of).collect()
        };
        let only = |root: usize, n: f64| -> Vec<f64> {
            (0..p).map(|r| if r == root { n } else { 0.0 }).collect()
        };
        let displaced = (0, 0.0);
        let row = collective.kind().row();
        let ((source, has), (target, gets)) = (row.input, row.output);
        if has == Extent::Pairs {
            return Needs::of_pairs(layouts);
        }
        // All that goes to or comes from others, and what the rank sends or receives for it.
        let between = |rank: usize, sizes: &[f64], extent: Extent| {
            let others = but(rank, sizes);
            let n = match extent {
                Extent::Whole => others.iter().copied().fold(0.0, f64::max),
                _ => others.iter().sum(),
            };
            (others, only(rank, n))
        };
        let root = collective.root();
        if let Some(root) = root.filter(|_| source == Holders::Root) {
            let (received, sent) = between(root, &outputs, gets);
            let path = Path::From(root);
            return Needs {
                received,
                sent,
                path,
                displaced,
            };
        }
        let last = match row.combines {
            // The last rank needs the contributions of all others.
            Some(Operands::UpToOwn | Operands::BeforeOwn) => Some(p - 1),
            _ => root.filter(|_| target == Holders::Root),
        };
        if let Some(last) = last {
            let (sent, received) = between(last, &inputs, has);
            let path = Path::To(last);
            return Needs {
                received,
                sent,
                path,
                displaced,
            };
        }
        Needs::of_all(inputs, outputs, (has, gets))
    }

    /// Every rank has something for others, and gets something of them.
    fn of_all(inputs: Vec<f64>, outputs: Vec<f64>, (has, gets): (Extent, Extent)) -> Needs {
        let of_others = |sizes: &[f64]| -> Vec<f64> {
            let all: f64 = sizes.iter().sum();
            sizes.iter().map(|n| all - n).collect()
        };
        let sent = match gets {
            Extent::Whole => inputs.clone(),
            _ => of_others(&outputs),
        };
        let received = match has {
            Extent::Whole => outputs,
            _ => of_others(&inputs),
        };
        // With a single target, that one need not send.
        let targets = received.iter().filter(|&&n| n > 0.0).count();
        let needed = |(r, n)| {
            if targets > usize::from(received[r] > 0.0) {
                n
            } else {
                0.0
            }
        };
        Needs {
            sent: sent.into_iter().enumerate().map(needed).collect(),
            received,
            path: Path::All,
            displaced: (0, 0.0),
        }
    }

    /// The same needs of a rank that has so many elements of its own block elsewhere than in their
    /// place.
    pub(super) fn displacing(self, rank: usize, elements: f64) -> Needs {
        let displaced = (rank, elements);
        Needs { displaced, ..self }
    }

    /// An alltoall, with one span a block, or equal blocks.
    fn of_pairs(layouts: &[Layout]) -> Needs {
        let p = layouts.len();
        let own = |(r, l): (usize, &Layout)| {
            if l.input.len() == p {
                l.input.get(r).map_or(0, |block| block.len)
            } else {
                total_len(&l.input) / p
            }
        };
        let own: Vec<usize> = layouts.iter().enumerate().map(own).collect();
        let others = |of: fn(&Layout) -> usize| {
            let others = layouts.iter().zip(&own);
            others
                .map(|(l, own)| number(of(l).saturating_sub(*own)))
                .collect()
        };
        Needs {
            received: others(|l| total_len(&l.output)),
            sent: others(|l| total_len(&l.input)),
            path: Path::Unknown,
            displaced: (0, 0.0),
        }
    }

    /// The bounds of path and port.
    pub(super) fn bounds(&self, ports: Ports, element_bytes: u64, cost: &CostModel) -> (f64, f64) {
        let Some(links) = cost.links() else {
            return (0.0, 0.0);
        };
        let graph = LinkGraph {
            links,
            ranks: self.sent.len(),
            bytes: element_bytes as f64,
        };
        let k = number(ports.k().max(1));
        // A rank without a link for its messages has no correct schedule.
        let of_ports = |r: usize, elements: f64, towards: Towards| {
            finite(graph.least(r, (elements / k).max(1.0), towards))
        };
        let work = |r: usize, elements: f64, towards: Towards| match elements {
            0.0 => 0.0,
            n if self.displaced.0 == r && !cost.overlaps() => {
                let own = self.displaced.1;
                let copied = cost.min_copy_rate(r) * graph.bytes * own;
                let alone = of_ports(r, n, towards) + copied;
                alone.min(of_ports(r, n + own, towards))
            }
            n => of_ports(r, n, towards),
        };
        let (mut path, mut port) = (0.0f64, 0.0f64);
        let single = match self.path {
            Path::From(root) => Some((graph.paths(root, Towards::Peers), Towards::This)),
            Path::To(root) => Some((graph.paths(root, Towards::This), Towards::Peers)),
            Path::All | Path::Unknown => None,
        };
        for r in 0..graph.ranks {
            let (received, sent) = (self.received[r], self.sent[r]);
            let each = [
                work(r, received, Towards::This),
                work(r, sent, Towards::Peers),
            ];
            // Of several ports, the start-up times of one need not be those of the one with most to
            // carry.
            let one_by_one = !ports.can_exchange() && ports.k() == 1;
            port = port.max(if one_by_one {
                each[0] + each[1]
            } else {
                each[0].max(each[1])
            });
            if let Some((paths, towards)) = &single {
                let (needs, work) = match towards {
                    Towards::This => (received > 0.0, each[0]),
                    Towards::Peers => (sent > 0.0, each[1]),
                };
                if needs {
                    let first = graph.nearest(r, paths, *towards);
                    path = path.max(finite(paths[r])).max(finite(first) + work);
                }
            }
        }
        if matches!(self.path, Path::All) && graph.ranks <= MAX_RANKS {
            for s in (0..graph.ranks).filter(|&s| self.sent[s] > 0.0) {
                let paths = graph.paths(s, Towards::Peers).into_iter().enumerate();
                let needed = paths.filter(|&(r, _)| self.received[r] > 0.0);
                path = needed.fold(path, |path, (_, d)| path.max(finite(d)));
            }
        }
        (path, port)
    }
}

/// The direction of messages, seen from a rank.
#[derive(Debug, Clone, Copy)]
enum Towards {
    This,
    Peers,
}

/// The links as a graph whose lengths are times.
struct LinkGraph<'a> {
    links: &'a Links,
    ranks: usize,
    bytes: f64,
}

impl LinkGraph<'_> {
    /// Time of a message of `elements` elements between `r` and `other`; infinite without a link.
    fn time(&self, r: usize, other: usize, elements: f64, towards: Towards) -> f64 {
        let (from, to) = match towards {
            Towards::This => (other, r),
            Towards::Peers => (r, other),
        };
        match (self.links.alpha[from][to], self.links.beta[from][to]) {
            (Some(alpha), Some(beta)) => alpha + beta * (elements * self.bytes),
            _ => f64::INFINITY,
        }
    }

    fn others(&self, r: usize) -> impl Iterator<Item = usize> {
        (0..self.ranks).filter(move |&other| other != r)
    }

    /// The least time of a message of `elements` elements to or from `r`.
    fn least(&self, r: usize, elements: f64, towards: Towards) -> f64 {
        let times = self.others(r).map(|o| self.time(r, o, elements, towards));
        times.fold(f64::INFINITY, f64::min)
    }

    /// The least of `paths` over the ranks with a link to or from `r`.
    fn nearest(&self, r: usize, paths: &[f64], towards: Towards) -> f64 {
        let linked = self
            .others(r)
            .filter(|&o| self.time(r, o, 0.0, towards).is_finite());
        linked.map(|o| paths[o]).fold(f64::INFINITY, f64::min)
    }

    /// The shortest paths of one element between `start` and all ranks, by Dijkstra's algorithm.
    fn paths(&self, start: usize, towards: Towards) -> Vec<f64> {
        let mut paths = vec![f64::INFINITY; self.ranks];
        let mut open: Vec<usize> = (0..self.ranks).collect();
        paths[start] = 0.0;
        while let Some(i) =
            (0..open.len()).min_by(|&i, &j| paths[open[i]].total_cmp(&paths[open[j]]))
        {
            let r = open.swap_remove(i);
            for &o in &open {
                paths[o] = paths[o].min(paths[r] + self.time(r, o, 1.0, towards));
            }
        }
        paths
    }
}

/// Lines `(alpha, beta)` that no message takes less than.
pub(super) fn lines_below(cost: &CostModel) -> Vec<(f64, f64)> {
    match cost.links() {
        Some(_) => vec![min_link(cost)],
        None => cost.lines_below(),
    }
}

/// The minima of alpha and of beta over all links between different ranks; 0 if there is no link.
pub(super) fn min_link(cost: &CostModel) -> (f64, f64) {
    let Some(links) = cost.links() else {
        let (alpha, beta, _) = cost.min_rates();
        return (alpha, beta);
    };
    let min = |matrix: &[Vec<Option<f64>>]| {
        let others = matrix.iter().enumerate().flat_map(|(i, row)| {
            let row = row.iter().enumerate();
            row.filter_map(move |(j, cost)| cost.filter(|_| i != j))
        });
        Some(others.fold(f64::INFINITY, f64::min))
            .filter(|c| c.is_finite())
            .unwrap_or(0.0)
    };
    (min(&links.alpha), min(&links.beta))
}

/// `time`, or 0 if it is infinite.
fn finite(time: f64) -> f64 {
    if time.is_finite() { time } else { 0.0 }
}
