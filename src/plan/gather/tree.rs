//! Gather trees: which rank sends to which, in which order, and when everything has arrived.

use crate::plan::prelude::*;

/// A child of a rank in a gather tree: the rank it receives from, and its port for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Child {
    /// The sending rank.
    pub rank: usize,
    /// The receiver's port; 0 if it has only one.
    pub port: usize,
}

pub(super) type Range = (usize, usize);

/// What the root of a range receives.
pub(super) struct Received {
    pub(super) root: usize,
    /// The other ranks of the range, in the order in which they are received, with a root where it
    /// is known.
    pub(super) parts: Vec<(Range, Option<usize>)>,
    /// Number of parts after which the root copies its own block.
    pub(super) copy_after: usize,
}

/// A gather tree. For every rank it lists the ranks it receives from, in order, and the number of
/// them after which it copies its own block.
///
/// Reversed, it is a scatter tree of the same cost. A leaf copies nothing: it sends its block from
/// its input span.
///
/// # Completion time
/// The time `t` of a rank starts at 0. A child `c` of size `s > 0` makes it
/// `t = max(t, Time(c)) + alpha + beta s`; an empty child changes nothing. The copy of the rank's
/// own block adds `gamma_copy m_r`. With several ports each has its own time; the copy starts after
/// all of them and delays all of them. These are the [rules of time](crate::rules): the schedules
/// of [`GatherTree::gather`] and [`GatherTree::scatter`] take the time [`GatherTree::time`].
///
/// # Panics
/// Methods that take a rank or sizes panic when the rank is not one of the tree, or when there is
/// not one size for each rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatherTree {
    root: usize,
    nodes: Vec<TreeNode>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct TreeNode {
    children: Vec<Child>,
    /// Number of children received from before the rank copies its own block.
    copy_after: usize,
}

impl GatherTree {
    /// `ranks` ranks without any children yet: the start of a tree that [`GatherTree::add_child`]
    /// completes.
    pub(in crate::plan) fn unconnected(ranks: usize, root: usize) -> GatherTree {
        GatherTree {
            root,
            nodes: vec![TreeNode::default(); ranks],
        }
    }

    /// The tree of these children, by rank, in the order in which it receives from them. Its root
    /// is the rank that is nobody's child. Each rank copies its own block after all children.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if that is no tree of all ranks.
    pub fn of_children(children: &[Vec<usize>]) -> Result<GatherTree> {
        let p = children.len();
        let mut is_child = vec![false; p];
        for &child in children.iter().flatten() {
            if child >= p || is_child[child] {
                return Err(Error::malformed(format!(
                    "tree: {child} is not one of {p} ranks, or a child twice"
                )));
            }
            is_child[child] = true;
        }
        let root = is_child.iter().position(|is_child| !is_child);
        let mut tree = GatherTree::unconnected(p, root.unwrap_or(0));
        let mut reached = Vec::from_iter(root);
        let mut next = 0;
        while let Some(&rank) = reached.get(next) {
            for &child in &children[rank] {
                tree.add_child(rank, child, 0);
                reached.push(child);
            }
            tree.copy_now(rank);
            next += 1;
        }
        if reached.len() == p && p > 0 {
            return Ok(tree);
        }
        Err(Error::malformed(format!(
            "tree: {} of {p} ranks hang together",
            reached.len()
        )))
    }

    /// The tree in which the root of every range of ranks receives what `received` says for the
    /// range and, if it is given, its root.
    pub(super) fn of_ranges(
        ranks: usize,
        root: Option<usize>,
        mut received: impl FnMut(Range, Option<usize>) -> Received,
    ) -> GatherTree {
        let mut tree = GatherTree::unconnected(ranks, 0);
        // Ranges and their given roots, each with the rank that receives it and its slot among that
        // rank's children.
        let mut work: Vec<(Range, _, Option<(usize, usize)>)> = vec![((0, ranks - 1), root, None)];
        while let Some((range, given, receiver)) = work.pop() {
            let of_root = received(range, given);
            let root = of_root.root;
            match receiver {
                None => tree.root = root,
                Some((parent, slot)) => tree.nodes[parent].children[slot].rank = root,
            }
            for (slot, &(part, given)) in of_root.parts.iter().enumerate() {
                // Its root is not known yet.
                tree.add_child(root, part.0, 0);
                work.push((part, given, Some((root, slot))));
            }
            tree.nodes[root].copy_after = of_root.copy_after;
        }
        tree
    }

    /// The rank at which all blocks are gathered.
    pub fn root(&self) -> usize {
        self.root
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.nodes.len()
    }

    /// The children of `rank`, in the order in which it receives from them.
    pub fn children(&self, rank: usize) -> &[Child] {
        &self.nodes[rank].children
    }

    /// Number of children that `rank` receives from before it copies its own block.
    pub fn copy_after(&self, rank: usize) -> usize {
        self.nodes[rank].copy_after
    }

    /// By rank: the rank that it sends to; `None` for the root. Takes `O(p)` time.
    pub fn parents(&self) -> Vec<Option<usize>> {
        let mut parents = vec![None; self.ranks()];
        for (r, node) in self.nodes.iter().enumerate() {
            for c in &node.children {
                parents[c.rank] = Some(r);
            }
        }
        parents
    }

    /// Number of ports that the tree needs at each rank. Takes `O(p)` time.
    pub fn ported(&self) -> usize {
        let ports = self.nodes.iter().flat_map(|n| &n.children).map(|c| c.port);
        ports.max().map_or(1, |port| port + 1)
    }

    /// Adds `from` as the last child of `to`, which receives from it through `port` after all
    /// earlier children.
    pub(in crate::plan) fn add_child(&mut self, to: usize, from: usize, port: usize) {
        self.nodes[to].children.push(Child { rank: from, port });
    }

    /// Makes `rank` copy its own block after all children added so far.
    pub(super) fn copy_now(&mut self, rank: usize) {
        self.nodes[rank].copy_after = self.nodes[rank].children.len();
    }

    pub(super) fn set_root(&mut self, root: usize) {
        self.root = root;
    }

    /// Replaces the children of `rank`, which then copies its own block first.
    pub(super) fn set_children(&mut self, rank: usize, children: Vec<Child>) {
        self.nodes[rank] = TreeNode {
            children,
            copy_after: 0,
        };
    }

    /// All ranks, parents before children, starting with the root.
    pub(super) fn top_down(&self) -> Vec<usize> {
        let mut order = vec![self.root];
        let mut next = 0;
        while let Some(&r) = order.get(next) {
            next += 1;
            order.extend(self.nodes[r].children.iter().map(|c| c.rank));
        }
        order
    }

    /// By rank: the bytes of all blocks in its subtree, at most `u64::MAX`, for blocks of `sizes`
    /// bytes. Takes `O(p)` time.
    pub fn subtree_sizes(&self, sizes: &[u64]) -> Vec<u64> {
        assert_eq!(sizes.len(), self.ranks(), "one size a rank");
        let mut sums = sizes.to_vec();
        for &r in self.top_down().iter().rev() {
            for c in &self.nodes[r].children {
                sums[r] = sums[r].saturating_add(sums[c.rank]);
            }
        }
        sums
    }

    /// By rank: the time at which it holds all blocks of its subtree, for blocks of `sizes` bytes,
    /// in the unit of `cost`. Takes `O(p k)` time for a tree that needs `k` ports.
    pub fn times(&self, sizes: &[u64], cost: &CostModel) -> Vec<f64> {
        let sums = self.subtree_sizes(sizes);
        let mut times = vec![0.0; self.ranks()];
        let mut ports = vec![0.0; self.ported()];
        for &r in self.top_down().iter().rev() {
            let node = &self.nodes[r];
            if node.children.is_empty() {
                continue;
            }
            ports.fill(0.0);
            let copy = |ports: &mut [f64]| {
                let all = ports.iter().copied().fold(0.0, max_time) + cost.copy(r, sizes[r]);
                ports.fill(all);
            };
            for (i, c) in node.children.iter().enumerate() {
                if i == node.copy_after {
                    copy(&mut ports);
                }
                if sums[c.rank] > 0 {
                    let t = &mut ports[c.port];
                    *t = max_time(*t, times[c.rank]) + cost.transfer(c.rank, r, sums[c.rank]);
                }
            }
            if node.copy_after == node.children.len() {
                copy(&mut ports);
            }
            times[r] = ports.iter().copied().fold(0.0, max_time);
        }
        times
    }

    /// The completion time of the gather: that of the root in [`times`](Self::times). It is that of
    /// the scatter, too, if links cost the same in both directions.
    pub fn time(&self, sizes: &[u64], cost: &CostModel) -> f64 {
        self.times(sizes, cost)[self.root]
    }

    /// The gather along this tree, of `blocks[r]` elements from each rank `r`.
    ///
    /// Every inner rank assembles the blocks it gathers in rank order, behind its own block, which
    /// it copies to its place among them. A leaf sends its block from its input span. A message has
    /// one span per run of ranks that are consecutive among those the receiver gathers: one span in
    /// ordered trees. Takes time linear in the number of runs that all ranks gather, apart from
    /// sorting: `O(p)` runs in ordered trees, at most `p` times the depth in others.
    pub fn gather(&self, blocks: &[usize], ports: Ports) -> Result<Schedule> {
        self.ensure_fits(blocks, ports)?;
        let p = self.ranks();
        let offsets = BlockOffsets::new(blocks);
        let mut layout = vec![Layout::default(); p];
        let mut programs = vec![Vec::new(); p];
        let parents = self.parents();
        // By rank: the ranks it has gathered, until its parent takes them.
        let mut gathered: Vec<Runs> = (0..p).map(Runs::one).collect();
        for &r in self.top_down().iter().rev() {
            let node = &self.nodes[r];
            let own = Span::new(0, blocks[r]);
            let leaf = node.children.is_empty();
            let mut take = |rank: usize| std::mem::take(&mut gathered[rank]);
            let parts: Vec<Runs> = node.children.iter().map(|c| take(c.rank)).collect();
            let mine = take(r);
            let held = Runs::merged(parts.iter().chain([&mine]));
            let whole = Span::new(if leaf { 0 } else { own.len }, offsets.elements(&held));
            let program: &mut Vec<Step> = &mut programs[r];
            let copy = |program: &mut Vec<Step>| {
                if !leaf && own.len > 0 {
                    let place = offsets.of(&mine, &held, whole.offset);
                    program.push(Step::copy(own, place));
                }
            };
            for (i, (c, part)) in node.children.iter().zip(&parts).enumerate() {
                if i == node.copy_after {
                    copy(program);
                }
                let spans = offsets.of(part, &held, whole.offset);
                if !spans.is_empty() {
                    program.push(Step::recv(c.rank, spans).on_port(c.port));
                }
            }
            if node.copy_after == node.children.len() {
                copy(program);
            }
            if let Some(parent) = parents[r]
                && whole.len > 0
            {
                program.push(Step::send(parent, whole));
            }
            let spans = |span: Span| (span.len > 0).then_some(span).into_iter().collect();
            layout[r] = Layout {
                len: whole.end(),
                input: spans(own),
                output: Spans::new(),
            };
            if r == self.root {
                layout[r].output = spans(whole);
            }
            gathered[r] = held;
        }
        let collective = Collective::Gather { root: self.root };
        Schedule::new(ports, collective, layout, programs)
    }

    fn ensure_fits(&self, blocks: &[usize], ports: Ports) -> Result<()> {
        let p = self.ranks();
        if blocks.len() != p {
            return Err(Error::usage(format!(
                "{} blocks for a tree of {p} ranks",
                blocks.len()
            )));
        }
        if self.ported() > ports.k() {
            return Err(Error::usage(format!(
                "the tree needs {} ports a rank, there are {}",
                self.ported(),
                ports.k()
            )));
        }
        let total = blocks.iter().try_fold(0usize, |sum, &b| {
            sum.checked_add(b)
                .filter(|&sum| sum <= usize::MAX / 4 && sum <= isize::MAX as usize)
        });
        if total.is_none() {
            return Err(Error::usage("the blocks add up to more than any memory"));
        }
        Ok(())
    }

    /// The scatter along this tree, of `blocks[r]` elements to each rank `r`: the gather reversed.
    pub fn scatter(&self, blocks: &[usize], ports: Ports) -> Result<Schedule> {
        self.gather(blocks, ports)?.into_reversed()
    }
}

/// A set of ranks as runs of consecutive ranks: first rank, one past the last.
#[derive(Debug, Clone, Default)]
struct Runs(Vec<(usize, usize)>);

impl Runs {
    fn one(rank: usize) -> Runs {
        Runs(vec![(rank, rank + 1)])
    }

    fn merged<'a>(parts: impl Iterator<Item = &'a Runs>) -> Runs {
        let mut all: Vec<_> = parts.flat_map(|b| b.0.iter().copied()).collect();
        all.sort_unstable();
        let mut runs: Vec<(usize, usize)> = Vec::with_capacity(all.len());
        for (first, end) in all {
            match runs.last_mut() {
                Some(last) if last.1 == first => last.1 = end,
                _ => runs.push((first, end)),
            }
        }
        Runs(runs)
    }
}

/// Offsets of blocks when those of some ranks are assembled in rank order.
struct BlockOffsets {
    /// Total size of the blocks of all lower ranks; the last entry is the size of all blocks.
    before: Vec<usize>,
}

impl BlockOffsets {
    fn new(blocks: &[usize]) -> BlockOffsets {
        let mut before = vec![0];
        let mut sum = 0;
        before.extend(blocks.iter().map(|b| {
            sum += b;
            sum
        }));
        BlockOffsets { before }
    }

    fn run(&self, (first, end): (usize, usize)) -> usize {
        self.before[end] - self.before[first]
    }

    fn elements(&self, held: &Runs) -> usize {
        held.0.iter().map(|&run| self.run(run)).sum()
    }

    /// The spans of the blocks of `part` when the blocks of `held`, which include them, are
    /// assembled from offset `base`.
    fn of(&self, part: &Runs, held: &Runs, base: usize) -> Spans {
        let mut spans = Spans::new();
        let mut offset = base;
        let mut parts = part.0.iter().peekable();
        for &run in &held.0 {
            while let Some(&&(first, end)) = parts.peek()
                && first < run.1
            {
                parts.next();
                let start = offset + self.run((run.0, first));
                spans.append(Span::new(start, self.run((first, end))));
            }
            offset += self.run(run);
        }
        spans
    }
}
