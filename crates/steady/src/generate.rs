//! Generates example platforms by name.

use super::fraction::{Fraction, whole};
use super::platform::{Edge, Platform};
use oneport::error::{Error, Result};
use oneport::internal::numbers::index;
use oneport::random::Generator;

const MAX_NODES: usize = 1000;
const MAX_EDGES: usize = 100_000;

/// Generates a platform by name, with source 0 and all other nodes as targets. Links go both ways
/// unless stated otherwise, and cost 1 unless stated otherwise.
///
/// - `complete:N`: every node is linked with every other.
/// - `ring:N`: node `v` is linked with `v + 1`, and the last node with the first.
/// - `grid:AxB`: `A` rows of `B` nodes.
/// - `tree:N`: node `v > 0` is linked with `(v - 1) / 2`.
/// - `star:N`: node 0 is linked with every other.
/// - `random:N:M`: a random tree and random edges, each one way, `M` edges in all. Every node can
///   be reached. Costs are 1 to 10.
/// - `clustered:AxB`: `A` clusters of `B` nodes. Within a cluster every node is linked with every
///   other at costs 1 to 3. The first nodes of the clusters are linked at costs 5 to 15.
/// - `fig3`: the example of the paper, with one-way links 0 to 1 and 0 to 2 at cost 1, and 1 to 2
///   at cost 1/2.
///
/// `seed` determines the random choices.
///
/// ```
/// use oneport_steady::generate;
/// assert_eq!(generate("ring:6", 0)?.edges().len(), 12);
/// assert_eq!(generate("random:30:150", 1)?.edges().len(), 150);
/// assert!(generate("ring:1", 0).is_err());
/// # Ok::<(), oneport::Error>(())
/// ```
///
/// # Errors
/// When the name is none of these, or the platform would be too small or too large.
pub fn generate(name: &str, seed: u64) -> Result<Platform> {
    let unknown = || {
        Error::usage(format!(
            "'{name}' is not a platform: write complete:N, ring:N, grid:AxB, tree:N, star:N, random:N:M, clustered:AxB or fig3"
        ))
    };
    let refuse = |why: String| Err(Error::usage(format!("{name}: {why}")));
    let (kind, size) = name.split_once(':').unwrap_or((name, ""));
    let count = |text: &str| text.parse::<usize>().map_err(|_| unknown());
    let pair = |by: char| {
        let (a, b) = size.split_once(by).ok_or_else(unknown)?;
        Ok::<_, Error>((count(a)?, count(b)?))
    };
    let (a, b) = match kind {
        "complete" | "ring" | "tree" | "star" => (count(size)?, 1),
        "grid" | "clustered" => pair('x')?,
        "random" => pair(':')?,
        "fig3" if size.is_empty() => (3, 1),
        _ => return Err(unknown()),
    };
    let n = if kind == "random" {
        a
    } else {
        a.saturating_mul(b)
    };
    if !(2..=MAX_NODES).contains(&n) {
        return refuse(format!(
            "a generated platform has 2 to {MAX_NODES} nodes, not {n}"
        ));
    }
    let mut random = Generator::new(seed);
    let mut links = LinkList::default();
    match kind {
        "complete" => links.complete(0, n, || 1),
        "ring" => (usize::from(n == 2)..n).for_each(|v| links.both(v, (v + 1) % n, 1)),
        "tree" => (1..n).for_each(|v| links.both((v - 1) / 2, v, 1)),
        "star" => (1..n).for_each(|v| links.both(0, v, 1)),
        "grid" => {
            (0..n)
                .filter(|v| v % b + 1 < b)
                .for_each(|v| links.both(v, v + 1, 1));
            (0..n - b).for_each(|v| links.both(v, v + b, 1));
        }
        "random" => {
            let (min, max) = (n - 1, n * (n - 1));
            if !(min..=max).contains(&b) {
                return refuse(format!("{n} nodes have {min} to {max} edges"));
            }
            links.random(n, b, &mut random);
        }
        "clustered" => {
            (0..a).for_each(|c| links.complete(c * b, b, || 1 + below(&mut random, 3)));
            for (c, d) in (0..a).flat_map(|c| (0..c).map(move |d| (c, d))) {
                links.both(c * b, d * b, 5 + below(&mut random, 11));
            }
        }
        _ => {
            links.add(0, 1, whole(1));
            links.add(0, 2, whole(1));
            links.add(1, 2, whole(1) / whole(2));
        }
    }
    if links.0.len() > MAX_EDGES {
        let edges = links.0.len();
        return refuse(format!(
            "{edges} edges are more than the {MAX_EDGES} that are generated"
        ));
    }
    Platform::new(n, 0, None, links.0)
}

#[derive(Debug, Default)]
struct LinkList(Vec<Edge>);

impl LinkList {
    fn add(&mut self, src: usize, dst: usize, cost: Fraction) {
        self.0.push(Edge::new(src, dst, cost));
    }

    fn both(&mut self, a: usize, b: usize, cost: usize) {
        self.add(a, b, whole(cost));
        self.add(b, a, whole(cost));
    }

    fn complete(&mut self, first: usize, count: usize, mut cost: impl FnMut() -> usize) {
        for a in first..first + count {
            (first..a).for_each(|b| self.both(a, b, cost()));
        }
    }

    /// Adds a random tree from node 0, then edges between random nodes.
    fn random(&mut self, nodes: usize, edges: usize, random: &mut Generator) {
        let mut taken = vec![false; nodes * nodes];
        for v in 0..nodes {
            taken[v * nodes + v] = true;
        }
        for v in 1..nodes {
            let parent = below(random, v);
            taken[parent * nodes + v] = true;
            self.add(parent, v, whole(1 + below(random, 10)));
        }
        let mut free: Vec<usize> = (0..nodes * nodes).filter(|&i| !taken[i]).collect();
        for _ in nodes - 1..edges {
            let i = free.swap_remove(below(random, free.len()));
            self.add(i / nodes, i % nodes, whole(1 + below(random, 10)));
        }
    }
}

/// Returns a random number in `0..n`; 0 for `n = 0`. It is a remainder, unlike
/// [`Generator::below`]: platforms that were generated before must stay the same.
fn below(random: &mut Generator, n: usize) -> usize {
    index(random.next_u64() % n.max(1) as u64)
}
