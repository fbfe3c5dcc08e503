//! Data races: steps in different thread blocks of a rank that access the same chunk, at least one
//! of which writes it, while nothing says which comes first.
//!
//! What comes first follows from the order in thread blocks, the steps that steps wait for, and
//! messages: what comes before a send comes before everything after its receive. A step reads and
//! writes while it runs, and is done when its message is under way: `s` and `rrs` read
//! `src`, `r` and `rcs` write `dst`, `rrc`, `rrcs`, `cpy` and `re` do both. `hasdep` adds no order:
//! it tells the executor which steps to announce, and a wait for a step that is not announced lasts
//! longer, never shorter. Room in a channel adds none, either: a send may never have to wait for
//! it.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::BufferStarts;
use super::file::at;
use super::order::{LineGraph, LineNode, LinePart, longest_paths};
use oneport::error::{Error, Result};
use oneport::internal::Grouped;

/// In place of a node: none.
const NONE: u32 = u32::MAX;
/// Nodes that a search for one pair visits before the pair is left for [`RaceSearch::far_pairs`].
/// Other tools and oneport let steps wait for the last access itself, or for one a few steps later.
const NEAR: usize = 256;
/// Pairs that one pass decides together, in words of 64.
const WORDS: usize = 4;
/// Visits of nodes and parts of buffers, beyond 256 a step, after which the search is given up:
/// some ten seconds.
const MAX_VISITS: usize = 1 << 28;

/// Refuses a file with a race. `memory` says where the buffers of a rank lie.
///
/// Steps are swept in an order in which each comes after those before it. As long as no race was
/// found, it is enough that a read comes after the last write, and a write after all reads since:
/// linear in the number of steps, where steps wait for those before them more or less directly. It
/// refuses steps that overlap in so many pairs that it takes too long to tell.
pub(super) fn ensure_none(
    graph: &LineGraph,
    memory: impl Fn(usize) -> Result<BufferStarts>,
) -> Result<()> {
    let mut search = RaceSearch::new(graph);
    let mut order: Vec<u32> = Vec::new();
    let (mut first, mut before) = (0, Vec::new());
    for (rank, gpu) in graph.file.gpus.iter().enumerate() {
        let nodes = &graph.nodes[first..];
        let count = nodes.partition_point(|node| node.rank == rank);
        order.clear();
        order.extend(first as u32..(first + count) as u32);
        first += count;
        if gpu.blocks.len() < 2 {
            continue;
        }
        order.sort_by_key(|&node| search.depth[node as usize]);
        let memory = memory(rank)?;
        let mut chunks = Chunks::default();
        for &node in &order {
            let LineNode { part, line, .. } = graph.nodes[node as usize];
            if part == LinePart::Send {
                continue;
            }
            let (reads, writes) = line.kind.uses();
            let accesses = [(reads, line.src, false), (writes, line.dst, true)];
            for (_, (buffer, offset), write) in accesses.into_iter().filter(|access| access.0) {
                let start = memory.starts[buffer] + offset;
                let range = start..start + line.count;
                chunks.access(range, write, node, &mut search, &mut before);
                before.sort_unstable();
                before.dedup();
                for earlier in before.drain(..) {
                    search.require(earlier, node)?;
                }
            }
        }
    }
    search.far_pairs()
}

/// A part of a rank's buffer.
#[derive(Default, Clone)]
struct RankRegion {
    end: usize,
    /// The last node that wrote it, and those that have read it since.
    write: Option<u32>,
    reads: SmallVec<[u32; 2]>,
}

/// Disjoint parts of a rank's buffer by their start. What is between them was not accessed.
#[derive(Default)]
struct Chunks(BTreeMap<usize, RankRegion>);

impl Chunks {
    /// Records that `node` accesses `range`, and adds to `before` the nodes that must come before.
    fn access(
        &mut self,
        range: std::ops::Range<usize>,
        writes: bool,
        node: u32,
        search: &mut RaceSearch,
        before: &mut Vec<u32>,
    ) {
        self.cut(range.start);
        self.cut(range.end);
        if writes {
            let old: SmallVec<[usize; 4]> =
                self.0.range(range.clone()).map(|(&at, _)| at).collect();
            for region in old.iter().filter_map(|at| self.0.remove(at)) {
                search.visits += 1 + region.reads.len();
                if region.reads.is_empty() {
                    before.extend(region.write)
                } else {
                    before.extend(region.reads)
                }
            }
            let (end, write) = (range.end, Some(node));
            let reads = SmallVec::new();
            self.0.insert(range.start, RankRegion { end, write, reads });
            return;
        }
        let (mut from, mut gaps) = (range.start, SmallVec::<[(usize, usize); 4]>::new());
        for (&start, region) in self.0.range_mut(range.clone()) {
            if from < start {
                gaps.push((from, start));
            }
            from = region.end;
            search.visits += 1;
            before.extend(region.write);
            // Of reads in a known order the last is enough.
            match region.reads.last_mut() {
                Some(last) if search.near(*last, node) == Some(true) => *last = node,
                _ => region.reads.push(node),
            }
        }
        if from < range.end {
            gaps.push((from, range.end));
        }
        for (start, end) in gaps {
            let reads = SmallVec::from_slice(&[node]);
            let write = None;
            self.0.insert(start, RankRegion { end, write, reads });
        }
    }

    /// Makes a part that extends across `offset` two.
    fn cut(&mut self, offset: usize) {
        if let Some((_, region)) = self.0.range_mut(..offset).next_back()
            && region.end > offset
        {
            let upper = region.clone();
            region.end = offset;
            self.0.insert(offset, upper);
        }
    }
}

struct RaceSearch<'g, 'f> {
    graph: &'g LineGraph<'f>,
    predecessors: Grouped,
    /// By node: the number of nodes on the longest path to it.
    depth: Vec<u32>,
    /// By node: the last step up to it, in its thread block, that waits for a step of another one.
    last_wait: Vec<u32>,
    /// By node: the last search that visited it.
    visited: Vec<u32>,
    searches: u32,
    visits: usize,
    /// Pairs that a short search did not decide.
    far: Vec<(u32, u32)>,
}

impl<'g, 'f> RaceSearch<'g, 'f> {
    fn new(graph: &'g LineGraph<'f>) -> Self {
        let (n, edges) = (graph.nodes.len(), graph.all_edges(&[]));
        let paths = longest_paths(n, &edges, |_| 0).unwrap_or_default();
        let mut last_wait: Vec<u32> = Vec::with_capacity(n);
        for (node, i) in graph.nodes.iter().zip(0..) {
            last_wait.push(match last_wait.last() {
                _ if node.line.waits.is_some() && node.part != LinePart::Send => i,
                Some(&last) if node.step > 0 || node.part == LinePart::Send => last,
                _ => NONE,
            });
        }
        RaceSearch {
            graph,
            predecessors: Grouped::new(n, edges.into_iter()),
            depth: paths.into_iter().map(|(_, depth)| depth as u32).collect(),
            last_wait,
            visited: vec![0; n],
            searches: 0,
            visits: 0,
            far: Vec::new(),
        }
    }

    fn predecessors(&self, node: u32) -> &[u32] {
        self.predecessors.of(node as usize)
    }

    fn same_block(&self, a: u32, b: u32) -> bool {
        let [a, b] = [a, b].map(|i| &self.graph.nodes[i as usize]);
        (a.rank, a.block) == (b.rank, b.block)
    }

    /// Demands that `a`, which the sweep met first, comes before `b`.
    fn require(&mut self, a: u32, b: u32) -> Result<()> {
        match self.near(a, b) {
            Some(true) => {}
            Some(false) => return Err(self.race(a, b)),
            None => self.far.push((a, b)),
        }
        self.ensure_time()
    }

    fn ensure_time(&self) -> Result<()> {
        if self.visits > MAX_VISITS + 256 * self.graph.nodes.len() {
            Err(Error::malformed(
                "too many pairs of steps access the same chunks without waiting for each other directly: whether \
                 all are ordered would take too long to tell",
            ))
        } else {
            Ok(())
        }
    }

    /// Whether `a` comes before `b`, if that is found close to `b`: first by what the steps of the
    /// rank wait for, then through messages.
    fn near(&mut self, a: u32, b: u32) -> Option<bool> {
        if self.same_block(a, b) || self.search(a, b, true) == Some(true) {
            return Some(true);
        }
        self.search(a, b, false)
    }

    /// Searches backwards from `b` for `a`, through all predecessors or, `in_rank`, only from steps
    /// of the rank to what they wait for. `None` if it is not found close to `b`.
    fn search(&mut self, a: u32, b: u32, in_rank: bool) -> Option<bool> {
        let least = self.depth[a as usize];
        let rank = self.graph.nodes[b as usize].rank;
        self.searches += 1;
        let mut open = SmallVec::<[u32; 32]>::from_slice(&[b]);
        for _ in 0..NEAR {
            let Some(mut node) = open.pop() else {
                return Some(false);
            };
            self.visits += 1;
            if in_rank {
                node = self.last_wait[node as usize];
                if node == NONE {
                    continue;
                }
            }
            for i in 0..self.predecessors(node).len() {
                let before = self.predecessors(node)[i];
                if before >= a && self.same_block(before, a) {
                    return Some(true);
                }
                if !in_rank || self.graph.nodes[before as usize].rank == rank {
                    self.visit(before, least, &mut open);
                }
            }
        }
        open.is_empty().then_some(false)
    }

    /// Adds a node to those that a search has still to look at, if a node of depth `least` may come
    /// before it.
    fn visit(&mut self, node: u32, least: u32, open: &mut SmallVec<[u32; 32]>) {
        let i = node as usize;
        if self.depth[i] > least && self.visited[i] != self.searches {
            self.visited[i] = self.searches;
            open.push(node);
        }
    }

    /// Decides the pairs that are left, many in one pass over the nodes between them.
    fn far_pairs(mut self) -> Result<()> {
        if self.far.is_empty() {
            return Ok(());
        }
        let mut far = std::mem::take(&mut self.far);
        let depth_of = |node: u32| self.depth[node as usize];
        far.sort_unstable_by_key(|&(a, _)| depth_of(a));
        let mut order: Vec<u32> = (0..self.depth.len() as u32).collect();
        order.sort_unstable_by_key(|&node| depth_of(node));
        // By node: the pairs whose first step it is or comes after.
        let mut after = vec![[0u64; WORDS]; self.depth.len()];
        for pairs in far.chunks(64 * WORDS) {
            let least = depth_of(pairs[0].0);
            let most = pairs.iter().map(|&(_, b)| depth_of(b)).max().unwrap_or(0);
            let start = order.partition_point(|&node| depth_of(node) < least);
            let end = order.partition_point(|&node| depth_of(node) <= most);
            for &node in &order[start..end] {
                after[node as usize] = [0; WORDS];
            }
            for (i, &(a, _)) in pairs.iter().enumerate() {
                after[a as usize][i / 64] |= 1 << (i % 64);
            }
            for &node in &order[start..end] {
                let mut set = after[node as usize];
                for &before in self.predecessors(node) {
                    if depth_of(before) >= least {
                        for (word, more) in set.iter_mut().zip(after[before as usize]) {
                            *word |= more;
                        }
                    }
                }
                after[node as usize] = set;
            }
            for (i, &(a, b)) in pairs.iter().enumerate() {
                if after[b as usize][i / 64] >> (i % 64) & 1 == 0 {
                    return Err(self.race(a, b));
                }
            }
            self.visits += end - start;
            self.ensure_time()?;
        }
        Ok(())
    }

    fn race(&self, a: u32, b: u32) -> Error {
        let [a, b] = [a, b].map(|i| &self.graph.nodes[i as usize]);
        let what = format!(
            "rank {}: step {} of thread block {} and step {} of thread block {} access the same chunk, at least one \
             writes it, and neither comes after the other: let one wait for the other (depid and deps)",
            b.rank, a.step, a.block, b.step, b.block
        );
        at(self.graph.file.text, b.line.pos, what)
    }
}
