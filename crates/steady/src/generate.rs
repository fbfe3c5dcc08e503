//! Generates example platforms by name.

use super::fraction::{Fraction, whole};
use super::platform::{Edge, Platform};
use oneport::error::{Error, Result};
use oneport::random::Generator;

/// Limit of the nodes of a generated platform.
const MAX_NODES: usize = 1000;
/// Limit of the edges of a generated platform.
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
    let (kind, size) = name.split_once(':').unwrap_or((name, ""));
    let count = |text: &str| text.parse::<usize>().map_err(|_| unknown());
    let pair = |by: char| {
        let (a, b) = size.split_once(by).ok_or_else(unknown)?;
        Ok::<_, Error>((count(a)?, count(b)?))
    };
    let small = |nodes: usize| ensure_small(name, nodes);
    let mut random = Generator::new(seed);
    let mut links = LinkList::default();
    let nodes = match kind {
        "complete" | "ring" | "tree" | "star" => {
            let n = small(count(size)?)?;
            match kind {
                "complete" => links.complete(0, n, || whole(1)),
                "ring" => links.ring(n),
                "tree" => (1..n).for_each(|v| links.both((v - 1) / 2, v, whole(1))),
                _ => (1..n).for_each(|v| links.both(0, v, whole(1))),
            }
            n
        }
        "grid" => {
            let (rows, columns) = pair('x')?;
            let n = small(rows.saturating_mul(columns))?;
            links.grid(n, columns);
            n
        }
        "random" => {
            let (n, edges) = pair(':')?;
            let n = small(n)?;
            ensure_possible(name, n, edges)?;
            links.random(n, edges, &mut random);
            n
        }
        "clustered" => {
            let (clusters, each) = pair('x')?;
            let n = small(clusters.saturating_mul(each))?;
            links.clustered(clusters, each, &mut random);
            n
        }
        "fig3" if size.is_empty() => {
            links.fig3();
            3
        }
        _ => return Err(unknown()),
    };
    if links.0.len() > MAX_EDGES {
        return Err(Error::usage(format!(
            "{name}: {} edges are more than the {MAX_EDGES} that are generated",
            links.0.len()
        )));
    }
    Platform::new(nodes, 0, None, links.0)
}

/// Returns `nodes` if a platform of that size can be generated.
fn ensure_small(name: &str, nodes: usize) -> Result<usize> {
    if (2..=MAX_NODES).contains(&nodes) {
        return Ok(nodes);
    }
    Err(Error::usage(format!(
        "{name}: a generated platform has 2 to {MAX_NODES} nodes, not {nodes}"
    )))
}

/// Checks that `edges` different edges can connect all nodes.
fn ensure_possible(name: &str, nodes: usize, edges: usize) -> Result<()> {
    let (min, max) = (nodes - 1, nodes * (nodes - 1));
    if (min..=max).contains(&edges) {
        return Ok(());
    }
    Err(Error::usage(format!(
        "{name}: {nodes} nodes have {min} to {max} edges"
    )))
}

/// The links of a platform.
#[derive(Debug, Default)]
struct LinkList(Vec<Edge>);

impl LinkList {
    fn add(&mut self, src: usize, dst: usize, cost: Fraction) {
        self.0.push(Edge::new(src, dst, cost));
    }

    fn both(&mut self, a: usize, b: usize, cost: Fraction) {
        self.add(a, b, cost.clone());
        self.add(b, a, cost);
    }

    fn complete(&mut self, first: usize, count: usize, mut cost: impl FnMut() -> Fraction) {
        for a in first..first + count {
            for b in first..a {
                self.both(a, b, cost());
            }
        }
    }

    fn ring(&mut self, nodes: usize) {
        (0..nodes - 1).for_each(|v| self.both(v, v + 1, whole(1)));
        if nodes > 2 {
            self.both(nodes - 1, 0, whole(1));
        }
    }

    fn grid(&mut self, nodes: usize, columns: usize) {
        for v in 0..nodes {
            if v % columns + 1 < columns {
                self.both(v, v + 1, whole(1));
            }
            if v + columns < nodes {
                self.both(v, v + columns, whole(1));
            }
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

    /// Adds clusters of `each` nodes, and links between their first nodes.
    fn clustered(&mut self, clusters: usize, each: usize, random: &mut Generator) {
        for c in 0..clusters {
            self.complete(c * each, each, || whole(1 + below(random, 3)));
        }
        for a in 0..clusters {
            for b in 0..a {
                self.both(a * each, b * each, whole(5 + below(random, 11)));
            }
        }
    }

    fn fig3(&mut self) {
        self.add(0, 1, whole(1));
        self.add(0, 2, whole(1));
        self.add(1, 2, whole(1) / whole(2));
    }
}

/// Returns a random number in `0..n`; 0 for `n = 0`. It is a remainder, unlike
/// [`Generator::below`]: platforms that were generated before must stay the same.
fn below(random: &mut Generator, n: usize) -> usize {
    (random.next_u64() % n.max(1) as u64) as usize
}
