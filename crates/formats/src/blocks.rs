//! What formats with thread blocks share: the buffers of a rank, which step comes before which, and
//! data races.
//!
//! A race is two accesses of one place of a rank's buffers, at least one of which writes it, while
//! nothing says which comes first. A format says what does: the order in thread blocks, steps that
//! wait for others, messages.

use std::collections::BTreeMap;
use std::ops::Range;

use smallvec::SmallVec;

use crate::sum;
use oneport::error::{Error, Result};
use oneport::internal::Grouped;
use oneport::internal::numbers::id;
use oneport::schedule::collective::{Extent, Holders, Kind};
use oneport::schedule::{Layout, Span, Spans, Step};

/// The input, output and scratch of all ranks of a collective, in chunks.
pub(crate) struct Buffers {
    pub(crate) kind: Kind,
    pub(crate) in_place: bool,
    /// Chunks of a vector, or of all blocks together.
    pub(crate) chunks: usize,
    pub(crate) ranks: usize,
}

/// Where the buffers of a rank lie in one buffer, in chunks.
pub(crate) struct BufferStarts {
    /// First chunk of input, output, scratch.
    pub(crate) starts: [usize; 3],
    /// Chunks that there may be: those of the collective, and the scratch.
    pub(crate) sizes: [usize; 3],
    pub(crate) len: usize,
}

impl BufferStarts {
    /// Buffers of these sizes, one after the other.
    pub(crate) fn in_turn(sizes: [usize; 3]) -> Result<BufferStarts> {
        let [i, o, s] = sizes;
        let what = "the buffer of a rank";
        let end = sum(i, o, what)?;
        Ok(BufferStarts {
            starts: [0, i, end],
            sizes,
            len: sum(end, s, what)?,
        })
    }
}

impl Buffers {
    /// Chunks of the input and output of a rank.
    pub(crate) fn regions(&self, rank: usize, root: Option<usize>) -> [usize; 2] {
        let row = self.kind.row();
        [row.input, row.output].map(|part| match part {
            (Holders::Root, _) if root != Some(rank) => 0,
            (Holders::Root, _) => self.chunks,
            (_, Extent::Block) => self.chunks / self.ranks,
            _ => self.chunks,
        })
    }

    /// The buffers of a rank that has `sizes` chunks of input, output and scratch: one after the
    /// other or, in place, input and output in the same memory as in NCCL.
    pub(crate) fn of_rank(
        &self,
        rank: usize,
        root: Option<usize>,
        sizes: [usize; 3],
    ) -> Result<BufferStarts> {
        let [input, output] = self.regions(rank, root);
        for (what, has, may) in [("i", sizes[0], input), ("o", sizes[1], output)] {
            // Buffers that a rank lacks are scratch of its own in some algorithms in place.
            if has > may && !self.in_place {
                let (kind, chunks) = (self.kind.name(), self.chunks);
                return Err(Error::malformed(format!(
                    "rank {rank} has {what}_chunks=\"{has}\", but {kind} of {chunks} chunks leaves it {may}"
                )));
            }
        }
        let (size_i, size_o) = (input.max(sizes[0]), output.max(sizes[1]));
        let what = "the buffer of a rank";
        let own = (self.chunks / self.ranks).checked_mul(rank);
        let own = own.ok_or_else(|| Error::malformed(what))?;
        let row = self.kind.row();
        let (start_i, start_o, end) = match (row.input.1, row.output.1) {
            _ if !self.in_place => return BufferStarts::in_turn([size_i, size_o, sizes[2]]),
            (Extent::Block, _) if output > 0 => (own, 0, size_o.max(sum(own, size_i, what)?)),
            (_, Extent::Block) if input > 0 => (0, own, size_i.max(sum(own, size_o, what)?)),
            _ => (0, 0, size_i.max(size_o)),
        };
        Ok(BufferStarts {
            starts: [start_i, start_o, end],
            sizes: [size_i, size_o, sizes[2]],
            len: sum(end, sizes[2], what)?,
        })
    }

    /// The layout of a rank with these buffers, in a buffer of `len` elements.
    pub(crate) fn layout(
        &self,
        rank: usize,
        root: Option<usize>,
        memory: &BufferStarts,
        len: usize,
        chunk: usize,
    ) -> Result<Layout> {
        let [input, output] = self.regions(rank, root);
        let span = |start: usize, n: usize| -> Result<Spans> {
            let span = Span::new(times(start, chunk)?, times(n, chunk)?);
            Ok(Some(span).filter(|s| s.len > 0).into())
        };
        Ok(Layout {
            len,
            input: span(memory.starts[0], input)?,
            output: span(memory.starts[1], output)?,
        })
    }
}

/// The elements of so many chunks.
pub(crate) fn times(chunks: usize, chunk: usize) -> Result<usize> {
    chunks
        .checked_mul(chunk)
        .ok_or_else(|| Error::malformed("the buffer of a rank exceeds 2^64 elements"))
}

/// Adds the spans of another part of a step to it. Whether both are parts of one step.
pub(crate) fn extend(step: &mut Step, more: &Step) -> bool {
    let ends = |step: &Step| (step.name(), step.peer(), step.port());
    if ends(step) != ends(more) {
        return false;
    }
    let append = |spans: &mut Spans, more: &[Span]| {
        more.iter().for_each(|&span| spans.append(span));
    };
    match step {
        Step::Send { spans, .. } => append(spans, more.reads()),
        Step::Recv { spans, .. } | Step::RecvCombine { spans, .. } => append(spans, more.writes()),
        Step::Copy { src, dst } | Step::Combine { src, dst, .. } => {
            append(src, more.reads());
            append(dst, more.writes());
        }
    }
    true
}

/// A node, and a predecessor of it.
pub(crate) type Edge = (u32, u32);

/// An access of a rank's buffers.
pub(crate) struct Access {
    pub(crate) node: u32,
    pub(crate) range: Range<usize>,
    pub(crate) writes: bool,
    /// Its place among the accesses of the rank, if the file has an order of these.
    pub(crate) number: Option<u32>,
}

/// Nodes that a search for one pair visits before the pair is left for [`RaceSearch::far_pairs`].
/// Other tools and oneport let steps wait for the last access itself, or for one a few steps later.
const NEAR: usize = 256;
/// Pairs that one pass decides together, in words of 64.
const WORDS: usize = 4;
/// Visits of nodes and parts of buffers, beyond 256 a step, after which the search is given up:
/// some ten seconds.
const MAX_VISITS: usize = 1 << 28;

/// Which nodes come before which. A node is a step, or a part of one.
pub(crate) struct HappensBefore {
    predecessors: Grouped,
    /// By node: the number of nodes on the longest path to it.
    depth: Vec<u32>,
    /// By node: a number that it shares with the nodes of its thread block, if these run in the
    /// order of their numbers.
    chain: Vec<u32>,
    /// By node: the first node of a chain that comes after it, or itself if it is in one: who comes
    /// after a later one of that chain comes after the node.
    joined: Vec<u32>,
}

impl HappensBefore {
    /// `edges` have no cycle.
    pub(crate) fn new(edges: &[Edge], chain: Vec<u32>, joined: Vec<u32>) -> HappensBefore {
        let paths = longest_paths(chain.len(), edges, |_| 0).unwrap_or_default();
        HappensBefore {
            predecessors: Grouped::new(chain.len(), edges.iter().copied()),
            depth: paths.into_iter().map(|(_, depth)| id(depth)).collect(),
            chain,
            joined,
        }
    }

    /// Fails if two accesses of a rank's buffers race. `accesses` adds those of a rank to a list.
    ///
    /// Nodes are swept in an order in which each comes after those before it: that of the file, or
    /// one of the graph. As long as no race was
    /// found, it is enough that a read comes after the last write, and a write after all reads
    /// since: linear in the number of accesses, where nodes wait for those before them more or less
    /// directly. It fails for nodes that overlap in so many pairs that it takes too long to tell.
    /// `race` is the error for two nodes.
    pub(crate) fn ensure_ordered(
        &self,
        ranks: usize,
        mut accesses: impl FnMut(usize, &mut Vec<Access>),
        race: impl Fn(u32, u32) -> Error,
    ) -> Result<()> {
        let mut search = RaceSearch::new(self, &race);
        let (mut of_rank, mut before) = (Vec::new(), Vec::new());
        for rank in 0..ranks {
            accesses(rank, &mut of_rank);
            // A node reads before it writes.
            of_rank.sort_by_key(|a| {
                let depth = self.depth[a.node as usize];
                (a.number.unwrap_or(depth), a.node, a.writes)
            });
            let mut chunks = Chunks::default();
            for Access {
                node,
                range,
                writes,
                ..
            } in of_rank.drain(..)
            {
                let mut covers = |a: u32, b: u32| search.near(a, b) == Some(true);
                let parts = chunks.access(range, writes, node, &mut covers, &mut before);
                search.visits += parts + before.len();
                before.sort_unstable();
                before.dedup();
                for earlier in before.drain(..) {
                    search.require(earlier, node)?;
                }
            }
        }
        search.far_pairs()
    }

    fn predecessors(&self, node: u32) -> &[u32] {
        self.predecessors.of(node as usize)
    }

    fn same_chain(&self, a: u32, b: u32) -> bool {
        self.chain[a as usize] == self.chain[b as usize]
    }
}

/// By node, over the paths to it: the largest sum of weights, and the depth, which is the largest
/// number of nodes. Kahn's algorithm. With a cycle, the error has the in-degrees that are left.
pub(crate) fn longest_paths(
    nodes: usize,
    edges: &[Edge],
    weight: impl Fn(usize) -> usize,
) -> Result<Vec<(usize, usize)>, Vec<u32>> {
    let mut in_degree = vec![0u32; nodes];
    edges.iter().for_each(|&(a, _)| in_degree[a as usize] += 1);
    let successors = Grouped::new(nodes, edges.iter().map(|&(a, b)| (b, a)));
    let mut paths = vec![(0, 0); nodes];
    let mut ready: Vec<usize> = (0..nodes).filter(|&i| in_degree[i] == 0).collect();
    let mut visited = 0;
    while let Some(node) = ready.pop() {
        visited += 1;
        let (sum, depth) = (paths[node].0 + weight(node), paths[node].1 + 1);
        for next in successors.of(node).iter().map(|&next| next as usize) {
            paths[next] = (paths[next].0.max(sum), paths[next].1.max(depth));
            in_degree[next] -= 1;
            if in_degree[next] == 0 {
                ready.push(next);
            }
        }
    }
    (visited == nodes).then_some(paths).ok_or(in_degree)
}

/// A node of a cycle of `edges`, among `nodes` of which `in_degree` is what [`longest_paths`] left.
pub(crate) fn in_cycle(edges: &[Edge], in_degree: &[u32]) -> usize {
    let mut predecessor: Vec<Option<usize>> = vec![None; in_degree.len()];
    for &(a, b) in edges {
        if in_degree[b as usize] > 0 {
            predecessor[a as usize] = Some(b as usize);
        }
    }
    // A walk backwards from any node that never gets ready ends in the cycle.
    let mut node = in_degree.iter().position(|&m| m > 0).unwrap_or(0);
    for _ in 0..in_degree.len() {
        node = predecessor[node].unwrap_or(node);
    }
    node
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
pub(crate) struct Chunks(BTreeMap<usize, RankRegion>);

impl Chunks {
    /// Records that `node` accesses `range`, and adds to `before` the nodes that must come before.
    /// Of reads the last is enough that `covers` the one before it: who comes after the one comes
    /// after the other. Returns the number of parts that were looked at.
    pub(crate) fn access(
        &mut self,
        range: Range<usize>,
        writes: bool,
        node: u32,
        covers: &mut impl FnMut(u32, u32) -> bool,
        before: &mut Vec<u32>,
    ) -> usize {
        let mut visited = 0;
        self.cut(range.start);
        self.cut(range.end);
        if writes {
            let old: SmallVec<[usize; 4]> =
                self.0.range(range.clone()).map(|(&at, _)| at).collect();
            for region in old.iter().filter_map(|at| self.0.remove(at)) {
                visited += 1;
                if region.reads.is_empty() {
                    before.extend(region.write)
                } else {
                    before.extend(region.reads)
                }
            }
            let (end, write) = (range.end, Some(node));
            let reads = SmallVec::new();
            self.0.insert(range.start, RankRegion { end, write, reads });
            return visited;
        }
        let (mut from, mut gaps) = (range.start, SmallVec::<[(usize, usize); 4]>::new());
        for (&start, region) in self.0.range_mut(range.clone()) {
            if from < start {
                gaps.push((from, start));
            }
            from = region.end;
            visited += 1;
            before.extend(region.write);
            match region.reads.last_mut() {
                Some(last) if covers(*last, node) => *last = node,
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
        visited
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

struct RaceSearch<'g> {
    graph: &'g HappensBefore,
    /// The error for two nodes.
    race: &'g dyn Fn(u32, u32) -> Error,
    /// By node: the last search that visited it.
    visited: Vec<u32>,
    searches: u32,
    visits: usize,
    /// Pairs that a short search did not decide.
    far: Vec<(u32, u32)>,
}

impl<'g> RaceSearch<'g> {
    fn new(graph: &'g HappensBefore, race: &'g dyn Fn(u32, u32) -> Error) -> Self {
        RaceSearch {
            graph,
            race,
            visited: vec![0; graph.chain.len()],
            searches: 0,
            visits: 0,
            far: Vec::new(),
        }
    }

    /// Demands that `a`, which the sweep met first, comes before `b`.
    fn require(&mut self, a: u32, b: u32) -> Result<()> {
        match self.near(a, b) {
            Some(true) => {}
            Some(false) => return Err((self.race)(a, b)),
            None => self.far.push((a, b)),
        }
        self.ensure_time()
    }

    fn ensure_time(&self) -> Result<()> {
        if self.visits <= MAX_VISITS + 256 * self.visited.len() {
            return Ok(());
        }
        Err(Error::malformed(
            "too many pairs of steps access the same chunks without waiting for each other directly: whether \
             all are ordered would take too long to tell",
        ))
    }

    /// Whether `a` comes before `b`, if that is found close to `b` in a search backwards.
    fn near(&mut self, a: u32, b: u32) -> Option<bool> {
        if self.graph.same_chain(a, b) {
            return Some(true);
        }
        let least = self.graph.depth[a as usize];
        let joined = self.graph.joined[a as usize];
        self.searches += 1;
        let mut open = SmallVec::<[u32; 32]>::from_slice(&[b]);
        for at in 0..NEAR {
            let Some(&node) = open.get(at) else {
                return Some(false);
            };
            self.visits += 1;
            for i in 0..self.graph.predecessors(node).len() {
                let before = self.graph.predecessors(node)[i];
                if before == a || before >= joined && self.graph.same_chain(before, joined) {
                    return Some(true);
                }
                self.visit(before, least, &mut open);
            }
        }
        None
    }

    /// Adds a node to those that a search has still to look at, if a node of depth `least` may come
    /// before it.
    fn visit(&mut self, node: u32, least: u32, open: &mut SmallVec<[u32; 32]>) {
        let i = node as usize;
        if self.graph.depth[i] > least && self.visited[i] != self.searches {
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
        let depth_of = |node: u32| self.graph.depth[node as usize];
        far.sort_unstable_by_key(|&(a, _)| depth_of(a));
        let mut order: Vec<u32> = (0..id(self.visited.len())).collect();
        order.sort_unstable_by_key(|&node| depth_of(node));
        // By node: the pairs whose first step it is or comes after.
        let mut after = vec![[0u64; WORDS]; self.visited.len()];
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
                for &before in self.graph.predecessors(node) {
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
                    return Err((self.race)(a, b));
                }
            }
            self.visits += end - start;
            self.ensure_time()?;
        }
        Ok(())
    }
}
