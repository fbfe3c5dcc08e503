//! The layout of the buffers: the places of messages and partial results.

use super::platform::Platform;
use super::problem::{Operation, Solution};
use super::route::{Arborescence, Task, TaskGraph};
use Operation::{
    Allgather, Alltoall, Broadcast, Gather, Multicast, Reduce, ReduceOrdered, Scan, Scatter,
};
use oneport::schedule::Span;
use oneport::schedule::collective::Collective;

/// Returns, by value, how many tasks and results use it.
pub(super) fn uses(task_graph: &TaskGraph) -> Vec<usize> {
    let mut uses = vec![0; task_graph.owners.len() + task_graph.tasks.len()];
    let taken = task_graph.tasks.iter().flat_map(Task::operands);
    for value in taken.chain(task_graph.results.iter().copied()) {
        uses[value] += 1;
    }
    uses
}

/// Returns, by value, its place in the buffer of its node; contributions are at place 0.
pub(super) fn placed(task_graph: &TaskGraph, platform: &Platform) -> Vec<usize> {
    let uses = uses(task_graph);
    let nodes = task_graph.nodes(platform);
    let mut next = vec![1; platform.nodes()];
    let mut at = vec![0; task_graph.owners.len()];
    for (i, task) in task_graph.tasks.iter().enumerate() {
        let place = match *task {
            Task::Combine { left, .. } if uses[left] == 1 => at[left],
            Task::Combine { right, .. } if uses[right] == 1 => at[right],
            _ => {
                let next = &mut next[nodes[task_graph.owners.len() + i]];
                *next += 1;
                *next - 1
            }
        };
        at.push(place);
    }
    at
}

pub(super) struct BufferLayout<'a> {
    operation: Operation,
    pub(super) personal: bool,
    ranks: usize,
    source: usize,
    targets: &'a [usize],
    sources: &'a [usize],
    /// By rank, the number of places in its buffer.
    counts: Vec<usize>,
    /// The number of elements of a block.
    len: usize,
}

impl<'a> BufferLayout<'a> {
    pub(super) fn new(solution: &'a Solution, len: usize) -> BufferLayout<'a> {
        let (operation, ranks) = (solution.operation, solution.platform.nodes());
        let targets = solution.platform.targets();
        let same = match operation {
            Broadcast | Multicast | Reduce | ReduceOrdered | Scan => 1,
            Scatter | Gather => targets.len(),
            Allgather => solution.platform.sources().len(),
            Alltoall => ranks * ranks,
        };
        let mut counts = vec![same; ranks];
        for (route, _) in &solution.routes {
            let nodes = route.task_graph.nodes(&solution.platform);
            let places = placed(&route.task_graph, &solution.platform);
            for (place, node) in places.into_iter().zip(nodes) {
                counts[node] = counts[node].max(place + 1);
            }
        }
        BufferLayout {
            operation,
            personal: operation.is_personal(),
            ranks,
            source: solution.platform.source(),
            targets,
            sources: solution.platform.sources(),
            counts,
            len,
        }
    }

    pub(super) fn buffer(&self, rank: usize) -> usize {
        self.counts[rank].saturating_mul(self.len)
    }

    pub(super) fn total(&self) -> usize {
        let buffers = (0..self.ranks).map(|rank| self.buffer(rank));
        buffers.fold(0, usize::saturating_add)
    }

    pub(super) fn offset(&self, block: usize) -> usize {
        block * self.len
    }

    pub(super) fn span(&self, block: usize) -> Span {
        Span::new(self.offset(block), self.len)
    }

    /// Returns, by edge of a tree, the blocks that it carries (block 0 where messages are not
    /// personal).
    pub(super) fn blocks(&self, tree: &Arborescence, platform: &Platform) -> Vec<Vec<usize>> {
        if !self.personal {
            return vec![vec![0]; tree.edges.len()];
        }
        let mut entering = vec![None; self.ranks];
        for (i, &e) in tree.edges.iter().enumerate() {
            entering[platform.edges()[e].dst] = Some((i, platform.edges()[e].src));
        }
        let mut blocks = vec![Vec::new(); tree.edges.len()];
        let mut deliver = |block: usize, target: usize| {
            let mut v = target;
            while let Some((i, from)) = entering[v] {
                blocks[i].push(block);
                v = from;
            }
        };
        if self.operation == Alltoall {
            for t in (0..self.ranks).filter(|&t| t != tree.root) {
                deliver(tree.root * self.ranks + t, t);
            }
        } else {
            for (i, &t) in self.targets.iter().enumerate() {
                deliver(i, t);
            }
        }
        blocks
    }

    /// Returns the collective of the schedule as it is built. Reversed gathers and reductions are
    /// built as scatters and broadcasts.
    pub(super) fn collective(&self, reversed: bool) -> Collective {
        let root = self.source;
        match self.operation {
            Reduce | ReduceOrdered if !reversed => Collective::Reduce { root },
            Broadcast | Reduce | ReduceOrdered => Collective::Broadcast { root },
            Scan => Collective::Scan,
            Multicast => Collective::Multicast {
                root,
                targets: self.targets.to_vec(),
            },
            Scatter | Gather => Collective::Scatter { root },
            Allgather => Collective::Allgather,
            Alltoall => Collective::Alltoall,
        }
    }

    /// Returns the input and output of a rank, where operations have no tasks.
    pub(super) fn input_and_output(&self, rank: usize) -> (Vec<Span>, Vec<Span>) {
        let is_source = rank == self.source;
        let all = vec![Span::new(0, self.buffer(rank))];
        match self.operation {
            ReduceOrdered | Scan => (Vec::new(), Vec::new()),
            Broadcast | Reduce if is_source => (all.clone(), all),
            Broadcast | Reduce => (Vec::new(), all),
            Multicast | Scatter | Gather if is_source => (all, Vec::new()),
            Multicast if self.targets.contains(&rank) => (Vec::new(), all),
            Multicast => (Vec::new(), Vec::new()),
            Scatter | Gather => {
                let block = self.targets.binary_search(&rank).ok();
                (
                    Vec::new(),
                    block.map(|b| self.span(b)).into_iter().collect(),
                )
            }
            Allgather => {
                let own = self.sources.binary_search(&rank).ok();
                (own.map(|b| self.span(b)).into_iter().collect(), all)
            }
            Alltoall => {
                let (p, peers) = (self.ranks, 0..self.ranks);
                // Others have empty blocks for all ranks.
                let block = |from: usize, to: usize| {
                    if self.sources.contains(&from) {
                        self.span(from * p + to)
                    } else {
                        Span::new(self.offset(from * p + to), 0)
                    }
                };
                let input = peers.clone().map(|t| block(rank, t));
                (input.collect(), peers.map(|s| block(s, rank)).collect())
            }
        }
    }
}
