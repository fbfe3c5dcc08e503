//! The groups of ranks that communicate in a phase, and where their ranks have its data.
//!
//! With `N` nodes of `n` ranks each, node `d` has ranks `(d, 0) .. (d, n)`. The buffer of a rank
//! holds the vector, or all blocks in rank order; that of an alltoall its blocks for all ranks,
//! then those of phases.

use super::embed::{Group, PhasePlace};
use crate::plan::prelude::*;
use crate::plan::registry::{Scope, Shape};

/// A request on a machine with nodes.
#[derive(Debug)]
pub(super) struct NodeRequest<'r> {
    request: &'r Request,
    shape: Shape,
    /// By node: its ranks.
    nodes: Vec<Vec<usize>>,
    /// The node of the root, and the root's number there.
    root: (usize, usize),
    /// By rank: its block among all blocks; none for collectives of one vector.
    blocks: Vec<Span>,
    /// The vector, or all blocks.
    whole: Span,
}

impl<'r> NodeRequest<'r> {
    pub(super) fn new(request: &'r Request, shape: Shape) -> Result<NodeRequest<'r>> {
        let nodes = request.cost.nodes(request.ranks);
        let nodes = nodes.ok_or_else(|| Error::usage("the costs show no nodes"))?;
        let number = |node: &Vec<usize>| node.iter().position(|&rank| rank == request.root);
        let root = nodes.iter().enumerate();
        let root = root.filter_map(|(d, node)| Some((d, number(node)?))).next();
        let blocks = if request.kind.has_blocks() {
            request.block_spans()
        } else {
            Vec::new()
        };
        let len = blocks.last().map_or(request.elements(), |b| b.end());
        Ok(NodeRequest {
            request,
            shape,
            nodes,
            root: root.unwrap_or_default(),
            blocks,
            whole: Span::new(0, len),
        })
    }

    /// The collective, and the buffers of all ranks without what phases need for themselves.
    pub(super) fn layout(&self) -> Result<(Collective, Vec<Layout>)> {
        let collective = self.request.kind.with_root(self.request.root);
        if self.request.kind.has_block_pairs() {
            return Ok((collective, self.alltoall()?.layout()));
        }
        let layout = |rank: usize| {
            let block = self.blocks.get(rank).copied().unwrap_or(self.whole);
            collective.layout(rank, self.whole.len, self.whole, block)
        };
        let layouts = (0..self.request.ranks).map(layout).collect();
        Ok((collective, layouts))
    }

    /// The groups of a phase.
    pub(super) fn groups(&self, scope: Scope, kind: Kind) -> Result<Vec<Group>> {
        if self.request.kind.has_block_pairs() {
            return Ok(self.alltoall()?.groups(scope, kind));
        }
        let of_root = |d: usize| d == self.root.0;
        let numbers = match scope {
            Scope::Within => 0..self.nodes.len(),
            Scope::Between if self.shape == Shape::Leaders => 0..1,
            Scope::Between => 0..self.nodes[0].len(),
        };
        let group = |number: usize| {
            let (members, root, blocks) = match scope {
                Scope::Within => {
                    let node = self.nodes[number].clone();
                    let blocks = (0..node.len()).map(|i| match self.shape {
                        Shape::Leaders => Spans::from(self.blocks.get(node[i]).copied()),
                        Shape::Lanes => self.share(i),
                    });
                    let blocks: Vec<Spans> = blocks.collect();
                    (node, self.leader(number), blocks)
                }
                Scope::Between => {
                    let number_in = |d: usize| match self.shape {
                        Shape::Leaders => self.leader(d),
                        Shape::Lanes => number,
                    };
                    let member = |d: usize| self.nodes[d][number_in(d)];
                    let block = |d: usize| match self.shape {
                        Shape::Leaders => self.blocks_of(self.nodes[d].iter().copied()),
                        Shape::Lanes => self.blocks_of([member(d)].into_iter()),
                    };
                    let all = 0..self.nodes.len();
                    let members = all.clone().map(member).collect();
                    (members, self.root.0, all.map(block).collect())
                }
            };
            // What the group has together. Leaders have everything unless they exchange blocks.
            let vector: Spans = match (scope, self.shape) {
                _ if kind.has_blocks() => concat(blocks.iter()),
                (Scope::Between, Shape::Lanes) => self.share(number),
                _ => self.whole.into(),
            };
            Group::new(kind, members, root, vector, &blocks)
        };
        // The data of a root is scattered or gathered in its node alone.
        let everywhere = self.shape == Shape::Leaders
            || scope == Scope::Between
            || !kind.has_blocks()
            || !kind.has_root();
        let numbers = numbers.filter(|&number| everywhere || of_root(number));
        Ok(numbers.map(group).collect())
    }

    /// The number of a node's leader: of the root's node, the root.
    fn leader(&self, node: usize) -> usize {
        let (of_root, number) = self.root;
        if node == of_root { number } else { 0 }
    }

    fn blocks_of(&self, ranks: impl Iterator<Item = usize>) -> Spans {
        ranks
            .filter_map(|rank| self.blocks.get(rank))
            .copied()
            .collect()
    }

    /// The data of lane `i`: the blocks of its ranks, or an equal part of the vector.
    fn share(&self, i: usize) -> Spans {
        if !self.blocks.is_empty() {
            return self.blocks_of(self.nodes.iter().map(|node| node[i]));
        }
        consecutive(&evenly(self.whole.len, self.nodes[0].len()))[i].into()
    }

    fn alltoall(&self) -> Result<Alltoall<'_>> {
        Alltoall::new(self)
    }
}

impl Group {
    /// A group whose members have their data at the same place: a vector, or the blocks of all
    /// members.
    fn new(kind: Kind, members: Vec<usize>, root: usize, vector: Spans, blocks: &[Spans]) -> Group {
        let sizes = if kind.has_blocks() {
            blocks.iter().map(len).collect()
        } else {
            vec![len(&vector)]
        };
        let collective = kind.with_root(root);
        let place = |i: usize| place(&collective, i, &vector, || blocks[i].clone());
        Group {
            places: (0..members.len()).map(place).collect(),
            members,
            root,
            sizes,
        }
    }
}

/// Where a rank has its input and wants its output, of everything or of its own block.
fn place(collective: &Collective, rank: usize, all: &Spans, own: impl Fn() -> Spans) -> PhasePlace {
    let [input, output] = collective.input_and_output(rank, all, own);
    PhasePlace {
        input: input.unwrap_or_default(),
        output: output.unwrap_or_default(),
    }
}

fn len(spans: &Spans) -> usize {
    crate::schedule::total_len(spans)
}

fn concat<'s>(all: impl Iterator<Item = &'s Spans>) -> Spans {
    all.flatten().copied().collect()
}

/// An alltoall: no two ranks have the same data.
///
/// A block from rank `(s, i)` to rank `(d, j)` takes two or three steps, and is at most once in
/// each buffer: where it was at first, if the rank is its source, or after all blocks of the rank,
/// in the order in which they arrive.
struct Alltoall<'m> {
    machine: &'m NodeRequest<'m>,
    /// Number of ranks of each node.
    n: usize,
}

impl<'m> Alltoall<'m> {
    fn new(machine: &'m NodeRequest<'m>) -> Result<Alltoall<'m>> {
        let n = machine.nodes[0].len();
        let areas = machine.request.ranks + n + 2;
        if machine.whole.len.checked_mul(areas).is_none() {
            return Err(Error::too_large(format!(
                "blocks of {} elements leave no room for {areas} times as many",
                machine.whole.len
            )));
        }
        Ok(Alltoall { machine, n })
    }

    fn rank(&self, (d, i): (usize, usize)) -> usize {
        self.machine.nodes[d][i]
    }

    /// The block for this rank in the input of every rank.
    fn block(&self, to: (usize, usize)) -> Span {
        self.machine.blocks[self.rank(to)]
    }

    /// Elements of the blocks from one rank to all ranks of node `d`.
    fn to_node(&self, d: usize) -> usize {
        (0..self.n).map(|j| self.block((d, j)).len).sum()
    }

    /// Elements of the blocks from one rank to all ranks of lane `j`.
    fn to_lane(&self, j: usize) -> usize {
        (0..self.machine.nodes.len())
            .map(|d| self.block((d, j)).len)
            .sum()
    }

    /// Where a rank of node `s` that is `mine` there has the block from one rank to another, once
    /// it has it: see [`Alltoall`].
    fn at(&self, s: usize, mine: usize, from: (usize, usize), to: (usize, usize)) -> Span {
        let own = self.block(to);
        if from == (s, mine) {
            return own;
        }
        let whole = self.machine.whole.len;
        let (d, i) = from;
        let offset = match self.machine.shape {
            // Of its own node, the leader has all blocks; of others, those for its node.
            Shape::Leaders if d == s => whole + i * whole + own.offset,
            Shape::Leaders => {
                let before: usize = (0..to.1).map(|j| self.block((s, j)).len).sum();
                let rows = d * self.n + i;
                (1 + self.n) * whole + rows * self.to_node(s) + before
            }
            // Of its own node, the rank has the blocks for its lane; of others, those for itself.
            Shape::Lanes if d == s => {
                let before: usize = (0..to.0).map(|d| self.block((d, mine)).len).sum();
                whole + i * self.to_lane(mine) + before
            }
            Shape::Lanes => whole + self.n * self.to_lane(mine) + (d * self.n + i) * own.len,
        };
        Span::new(offset, own.len)
    }

    /// All ranks of node `d`, or of all nodes, in rank order.
    fn ranks(&self) -> Vec<(usize, usize)> {
        let mut all: Vec<_> = (0..self.machine.nodes.len())
            .flat_map(|d| (0..self.n).map(move |i| (d, i)))
            .collect();
        all.sort_unstable_by_key(|&rank| self.rank(rank));
        all
    }

    /// The blocks from all ranks, at their destination.
    fn received(&self, all: &[(usize, usize)], (s, j): (usize, usize)) -> Spans {
        let blocks = all.iter().map(|&from| self.at(s, j, from, (s, j)));
        blocks.collect()
    }

    /// What leaders scatter to the other ranks of their nodes: after the rank's own blocks, those
    /// from all ranks in rank order.
    fn scattered(&self, (s, j): (usize, usize)) -> Spans {
        if j == self.machine.leader(s) {
            return self.received(&self.ranks(), (s, j));
        }
        let all = self.machine.nodes.len() * self.n;
        Span::new(self.machine.whole.len, all * self.block((s, j)).len).into()
    }

    fn layout(&self) -> Vec<Layout> {
        let whole = self.machine.whole;
        let mut layout = vec![Layout::default(); self.machine.request.ranks];
        let all = self.ranks();
        for &(s, j) in &all {
            let output = match self.machine.shape {
                Shape::Leaders => self.scattered((s, j)),
                Shape::Lanes => self.received(&all, (s, j)),
            };
            let others = match self.machine.shape {
                Shape::Leaders if j != self.machine.leader(s) => all.len() * self.block((s, j)).len,
                Shape::Leaders => self.n * whole.len + all.len() * self.to_node(s),
                Shape::Lanes => self.n * self.to_lane(j) + all.len() * self.block((s, j)).len,
            };
            layout[self.rank((s, j))] = Layout {
                len: whole.len + others,
                input: self.machine.blocks.clone().into(),
                output,
            };
        }
        layout
    }

    fn groups(&self, scope: Scope, kind: Kind) -> Vec<Group> {
        let nodes = 0..self.machine.nodes.len();
        match (scope, self.machine.shape) {
            (Scope::Within, Shape::Lanes) => nodes.map(|s| self.to_lanes(s)).collect(),
            (Scope::Within, Shape::Leaders) => nodes.map(|s| self.with_leader(s, kind)).collect(),
            (Scope::Between, Shape::Lanes) => {
                let lanes = 0..self.n;
                lanes.map(|i| self.between(|_| i, i..i + 1)).collect()
            }
            (Scope::Between, Shape::Leaders) => {
                vec![self.between(|d| self.machine.leader(d), 0..self.n)]
            }
        }
    }

    /// The alltoall among one rank of each node, of all blocks from these nodes to their ranks of
    /// the numbers `to`.
    fn between(&self, number_in: impl Fn(usize) -> usize, to: std::ops::Range<usize>) -> Group {
        let nodes = 0..self.machine.nodes.len();
        // At node `s`, the blocks from the ranks of a node to those of another.
        let blocks = |s: usize, from: usize, at: usize| -> Spans {
            let all = (0..self.n).flat_map(|i| to.clone().map(move |j| (i, j)));
            all.map(|(i, j)| self.at(s, number_in(s), (from, i), (at, j)))
                .collect()
        };
        let place = |s: usize| PhasePlace {
            input: nodes.clone().flat_map(|d| blocks(s, s, d)).collect(),
            output: nodes.clone().flat_map(|d| blocks(s, d, s)).collect(),
        };
        let size = |d: usize| -> usize { to.clone().map(|j| self.block((d, j)).len).sum() };
        let member = |d: usize| self.rank((d, number_in(d)));
        Group {
            members: nodes.clone().map(member).collect(),
            root: 0,
            sizes: nodes.clone().map(|d| self.n * size(d)).collect(),
            places: nodes.clone().map(place).collect(),
        }
    }

    /// The alltoall of node `s` that brings every block to the lane of its destination.
    fn to_lanes(&self, s: usize) -> Group {
        let nodes = 0..self.machine.nodes.len();
        let blocks = |mine: usize, from: usize, lane: usize| -> Spans {
            let at = |d| self.at(s, mine, (s, from), (d, lane));
            nodes.clone().map(at).collect()
        };
        let place = |i: usize| PhasePlace {
            input: (0..self.n).flat_map(|j| blocks(i, i, j)).collect(),
            output: (0..self.n).flat_map(|j| blocks(i, j, i)).collect(),
        };
        Group {
            members: self.machine.nodes[s].clone(),
            root: 0,
            sizes: (0..self.n).map(|j| self.to_lane(j)).collect(),
            places: (0..self.n).map(place).collect(),
        }
    }

    /// The gather of all blocks of node `s` at its leader, or the scatter of those for the node.
    fn with_leader(&self, s: usize, kind: Kind) -> Group {
        let (leader, all) = (self.machine.leader(s), self.ranks());
        let whole: Spans = self.machine.whole.into();
        // By member: its data there and at the leader.
        let data = |i: usize| -> (Spans, Spans) {
            match kind {
                Kind::Gather => {
                    let at = |&to: &(usize, usize)| self.at(s, leader, (s, i), to);
                    (whole.clone(), all.iter().map(at).collect())
                }
                _ => {
                    let at = |&from: &(usize, usize)| self.at(s, leader, from, (s, i));
                    (self.scattered((s, i)), all.iter().map(at).collect())
                }
            }
        };
        let data: Vec<_> = (0..self.n).map(data).collect();
        let at_leader = concat(data.iter().map(|(_, there)| there));
        let collective = kind.with_root(leader);
        let place = |i: usize| place(&collective, i, &at_leader, || data[i].0.clone());
        Group {
            members: self.machine.nodes[s].clone(),
            root: leader,
            sizes: data.iter().map(|(own, _)| len(own)).collect(),
            places: (0..self.n).map(place).collect(),
        }
    }
}
