//! Broadcast, reduction, and allreduce (one after the other) of `n` blocks on circulant graphs, as
//! a stream of steps for each rank.
//!
//! - Source: Träff, "(Poly)logarithmic time construction of round-optimal n-block broadcast
//!   schedules", Algorithm 6, forwards and backwards.
//! - Ports: bidirectional, one-ported.
//! - Symbols: a block is a segment of the request; ranks are counted from the root.
//! - Cost of planning: a rank needs only its own two schedules, which take `O(log p)` time before
//!   its first step and `2 q` bytes. Each step takes constant time.

use super::phases::{Phases, Round};
use super::schedule::Circulant;
use crate::error::Result;
use crate::machine::Ports;
use crate::plan::Request;
use crate::schedule::collective::Collective;
use crate::schedule::{Layout, Order, ScheduleSource, Span, Step};

/// Maximum number of rounds in a phase: requests have at most 2^30 ranks.
const MAX_ROUNDS: usize = 30;

/// The programs of all ranks, as a [`ScheduleSource`]. Buffers have the elements of the vector, and
/// no scratch.
///
/// ```
/// use oneport::plan::circulant::broadcast;
/// use oneport::schedule::ScheduleSource;
/// use oneport::{Request, Span, Step};
/// let all = broadcast::plan(&Request::broadcast(5, 8))?;
/// let block = Span::new(0, 8);
/// let program: Vec<Step> = all.program_of(1).collect();
/// assert_eq!(program, [Step::recv(0, block), Step::send(4, block)]);
/// # Ok::<(), oneport::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct NBlocks {
    graph: Circulant,
    phases: Phases,
    ports: Ports,
    root: usize,
    operation: Operation,
    vector: Span,
    blocks: Vec<Span>,
}

/// The collective that the programs implement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Broadcast,
    Reduce,
    /// A reduction to the root, then a broadcast from there.
    Allreduce,
}

impl NBlocks {
    /// The programs for `request`, from or to its root.
    pub(super) fn new(request: &Request, operation: Operation) -> Result<NBlocks> {
        request.validate()?;
        let graph = Circulant::new(request.ranks);
        Ok(NBlocks {
            phases: Phases::new(graph.rounds(), request.segments.count()),
            graph,
            ports: request.ports,
            root: request.root,
            operation,
            vector: Span::new(0, request.elements()),
            blocks: request.segments.spans(),
        })
    }
}

impl ScheduleSource for NBlocks {
    type Program<'a> = Program<'a>;

    fn ranks(&self) -> usize {
        self.graph.ranks()
    }

    fn ports(&self) -> Ports {
        self.ports
    }

    fn collective(&self) -> Collective {
        let root = self.root;
        match self.operation {
            Operation::Broadcast => Collective::Broadcast { root },
            Operation::Reduce => Collective::Reduce { root },
            Operation::Allreduce => Collective::Allreduce,
        }
    }

    fn layout_of(&self, rank: usize) -> Layout {
        let whole = self.vector;
        self.collective().layout(rank, whole.len, whole, whole)
    }

    fn program_of(&self, rank: usize) -> Program<'_> {
        let (p, q) = (self.graph.ranks(), self.graph.rounds());
        let me = (rank + p - self.root) % p;
        let mut schedules = [[0; MAX_ROUNDS]; 2];
        self.graph.recv_into(me, &mut schedules[0][..q]);
        self.graph.send_into(me, &mut schedules[1][..q]);
        let left = self.phases.rounds();
        let reduces = self.operation != Operation::Broadcast;
        let first = if reduces { left.saturating_sub(1) } else { 0 };
        Program {
            all: self,
            me,
            schedules,
            round: (left > 0).then(|| self.phases.round(first)),
            left,
            sent: false,
            reduces,
        }
    }
}

/// The steps of one rank, generated in constant time each.
#[derive(Debug, Clone)]
pub struct Program<'a> {
    all: &'a NBlocks,
    /// The rank, counted from the root.
    me: usize,
    /// The receive schedule, then the send schedule.
    schedules: [[i8; MAX_ROUNDS]; 2],
    round: Option<Round>,
    /// Remaining rounds, the current one included.
    left: usize,
    /// Whether the send of the current round has been returned.
    sent: bool,
    /// Whether the rounds belong to a reduction. An allreduce clears it when its broadcast starts.
    reduces: bool,
}

impl Program<'_> {
    /// The message between this rank and the one `skip[k]` ahead: that rank, and the block. A
    /// broadcast sends it ahead; a reduction receives it from there.
    #[inline]
    fn ahead(&self, round: Round) -> Option<(usize, Span)> {
        let p = self.all.graph.ranks();
        let to = self.me + self.all.graph.skips()[round.k];
        // In a broadcast nothing is sent to the root.
        if to == p {
            return None;
        }
        let to = if to > p { to - p } else { to };
        let block = round.block(self.schedules[1][round.k])?;
        Some((self.rank(to), self.all.blocks[block]))
    }

    /// The message between this rank and the one `skip[k]` behind. A broadcast receives it from
    /// there; a reduction sends it back.
    #[inline]
    fn behind(&self, round: Round) -> Option<(usize, Span)> {
        if self.me == 0 {
            return None;
        }
        let skip = self.all.graph.skips()[round.k];
        let from = if self.me < skip {
            self.me + self.all.graph.ranks() - skip
        } else {
            self.me - skip
        };
        let block = round.block(self.schedules[0][round.k])?;
        Some((self.rank(from), self.all.blocks[block]))
    }

    #[inline]
    fn rank(&self, counted: usize) -> usize {
        let (rank, p) = (counted + self.all.root, self.all.graph.ranks());
        if rank >= p { rank - p } else { rank }
    }
}

impl Iterator for Program<'_> {
    type Item = Step;

    #[inline]
    fn next(&mut self) -> Option<Step> {
        loop {
            if self.left == 0 && self.reduces && self.all.operation == Operation::Allreduce {
                self.reduces = false;
                self.left = self.all.phases.rounds();
                self.round = (self.left > 0).then(|| self.all.phases.round(0));
            }
            let round = self.round.filter(|_| self.left > 0)?;
            if !self.sent {
                self.sent = true;
                let send = if self.reduces {
                    self.behind(round)
                } else {
                    self.ahead(round)
                };
                if let Some((peer, block)) = send {
                    return Some(Step::send(peer, block));
                }
            }
            self.sent = false;
            self.left -= 1;
            let q = self.all.graph.rounds();
            let step = if self.reduces {
                self.round = Some(round.previous(q));
                let order = |peer| Order::by_rank(self.rank(self.me), peer);
                self.ahead(round)
                    .map(|(peer, block)| Step::recv_combine(peer, block, order(peer)))
            } else {
                self.round = Some(round.next(q));
                self.behind(round)
                    .map(|(peer, block)| Step::recv(peer, block))
            };
            if step.is_some() {
                return step;
            }
        }
    }
}

/// Number of rounds, `L + q - 1`, or 0 for one rank.
pub(super) fn rounds(request: &Request) -> f64 {
    if request.ranks < 2 {
        return 0.0;
    }
    (Circulant::new(request.ranks).rounds() + request.segments.count() - 1) as f64
}

#[cfg(test)]
mod tests {
    use super::super::{allreduce, broadcast, reduce};
    use super::*;

    fn request(p: usize, n: usize, root: usize) -> Request {
        Request::broadcast(p, 3 * n - 1).segment_count(n).root(root)
    }

    /// Every rank except the root receives every block once, and ranks send only blocks they hold.
    #[test]
    fn every_block_arrives_once() {
        for p in 1..100 {
            for n in [1, 2, 3, 7, 20] {
                let root = p / 3;
                let all = broadcast::plan(&request(p, n, root)).unwrap();
                let mut steps = 0;
                for rank in 0..p {
                    let mut held: Vec<Span> = Vec::new();
                    for step in all.program_of(rank) {
                        steps += 1;
                        match step {
                            Step::Recv { spans, .. } => {
                                assert!(!held.contains(&spans[0]), "p={p} n={n} rank {rank}");
                                held.push(spans[0]);
                            }
                            Step::Send { spans, to, .. } => {
                                assert!(to != root && (rank == root || held.contains(&spans[0])));
                            }
                            _ => panic!("{step:?}"),
                        }
                    }
                    held.sort_unstable();
                    assert_eq!(
                        held,
                        if rank == root {
                            vec![]
                        } else {
                            all.blocks.clone()
                        }
                    );
                }
                assert_eq!(steps, 2 * (p - 1) * n);
            }
        }
    }

    #[test]
    fn reductions_are_broadcasts_reversed() {
        for p in 1..40 {
            for n in [1, 2, 5, 9] {
                let request = request(p, n, p / 2);
                let reduce = reduce::plan(&request).unwrap().materialize().unwrap();
                let broadcast = broadcast::plan(&request).unwrap().materialize().unwrap();
                assert_eq!(reduce.reversed().unwrap(), broadcast);
                // The order of the operands may differ.
                assert_eq!(broadcast.reversed().unwrap(), reduce);
            }
        }
    }

    /// An allreduce is the reduction to rank 0 followed by the broadcast, whatever the request's
    /// root.
    #[test]
    fn an_allreduce_is_a_reduction_then_a_broadcast() {
        for p in 1..40 {
            for n in [1, 2, 5, 9] {
                let [allreduce, reduce, broadcast] = [
                    allreduce::plan(&request(p, n, p / 2)).unwrap(),
                    reduce::plan(&request(p, n, 0)).unwrap(),
                    broadcast::plan(&request(p, n, 0)).unwrap(),
                ];
                for rank in 0..p {
                    let both = reduce.program_of(rank).chain(broadcast.program_of(rank));
                    assert!(
                        allreduce.program_of(rank).eq(both),
                        "p={p} n={n} rank {rank}"
                    );
                    assert_eq!(
                        allreduce.layout_of(rank).input,
                        reduce.layout_of(rank).input
                    );
                    assert_eq!(
                        allreduce.layout_of(rank).output,
                        broadcast.layout_of(rank).output
                    );
                }
            }
        }
    }
}
