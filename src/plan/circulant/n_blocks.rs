//! Broadcast, reduction, and allreduce (one after the other) of `n` blocks on circulant graphs: the
//! optimal number of rounds for any number of blocks and ranks.
//!
//! - Source: Träff, "(Poly)logarithmic time construction of round-optimal n-block broadcast
//!   schedules", Algorithm 6 and Theorem 2, forwards and backwards.
//! - Symbols: `p` ranks, `m` elements, `L = ceil(log2 p)` (the `q` of
//!   [`schedule`](super::schedule)), `q` segments of `s` elements (the paper's `n` blocks), `tc =
//!   alpha + beta s`, `tp = gamma s`.
//! - Rounds: `L + q - 1`, optimal; of the allreduce twice that.
//! - Time: `(L + q - 1) tc`; of the reduction `(L + q - 1)(tc + tp)`, of the allreduce
//!   `(L + q - 1)(2 tc + tp)`. Its broadcast starts with segment 0, with which its reduction ends.
//! - Best segment: `s = sqrt(m alpha / ((L - 1) beta))`, with time
//!   `(L - 1) alpha + 2 sqrt((L - 1) alpha beta m) + beta m`; for the reduction `beta + gamma` for
//!   `beta`, for the allreduce `beta + gamma/2`.
//! - Restrictions: operators must commute, because a rank combines contributions from all over the
//!   ring. Any root, by rotation: ranks are counted from it. An allreduce goes through rank 0.
//! - Cost of planning: a rank needs only its own two schedules, which take `O(log p)` time before
//!   its first step and `2 q` bytes. Each step takes constant time.
//!
//! The reduction runs the rounds of the broadcast backwards: each rank sends what it would receive.
//!
//! Example, broadcast, `p = 3`, `q = 2`:
//! - round 0: 0→2 segment 0;
//! - round 1: 0→1 segment 1;
//! - round 2: 0→2 segment 1, 2→1 segment 0.

use super::phases::{Phases, Round};
use super::reduce_scatter_gather;
use super::schedule::Circulant;
use crate::plan::prelude::*;

pub(in crate::plan) const REDUCE: Row = Row {
    name: "circulant",
    schedule_table: Some(super::table::Table::new),
    segmented: true,
    transfers: row::for_each_segment,
    source: "Träff, round-optimal n-block broadcast on circulant graphs",
    rounds: "ceil(log2 p)+q-1",
    volume: "(p-1) m",
    planner: Planner::Streamed(programs),
    formula: ClosedForm::Of(time),
    best_segment: BestSegment::Formula(|x| x.optimum(1.0, (x.l - 1.0) * (x.beta + x.gamma))),
    published: Some(|x| Some(x.rounds("Theorem 2, reversed; Träff 2022", x.l - 1.0, 1.0))),
    ..reduce_scatter_gather::REDUCE
};

pub(in crate::plan) const BROADCAST: Row = Row {
    published: Some(|x| Some(x.rounds("Theorem 2; Träff 2022", x.l - 1.0, 1.0))),
    ..REDUCE.also(Kind::Broadcast)
};

pub(in crate::plan) const ALLREDUCE: Row = Row {
    collective: Kind::Allreduce,
    transfers: row::for_each_segment_twice,
    rounds: "2(ceil(log2 p)+q-1)",
    volume: "2(p-1) m",
    ..REDUCE.for_another_collective()
};

/// Maximum number of rounds in a phase: requests have at most 2^30 ranks.
const MAX_ROUNDS: usize = 30;

/// The programs of all ranks; that of one takes `O(log p)` time.
#[derive(Debug, Clone)]
pub(crate) struct NBlocks {
    graph: Circulant,
    phases: Phases,
    ports: Ports,
    root: usize,
    kind: Kind,
    vector: Span,
    blocks: Vec<Span>,
}

fn programs(request: &Request) -> Result<Box<dyn DynScheduleSource>> {
    Ok(Box::new(NBlocks::new(request)))
}

impl NBlocks {
    /// For `request`, which is valid.
    pub(crate) fn new(request: &Request) -> NBlocks {
        let graph = Circulant::new(request.ranks);
        NBlocks {
            phases: Phases::new(graph.rounds(), request.segments.count()),
            graph,
            ports: request.ports,
            root: match request.kind {
                Kind::Allreduce => 0,
                _ => request.root,
            },
            kind: request.kind,
            vector: Span::new(0, request.elements()),
            blocks: request.segments.spans(),
        }
    }

    /// Number of rounds.
    pub(crate) fn rounds(&self) -> usize {
        let times = if self.kind == Kind::Allreduce { 2 } else { 1 };
        times * self.phases.rounds()
    }
}

impl ScheduleSource for NBlocks {
    type Program<'a> = NBlockSteps<'a>;

    fn ranks(&self) -> usize {
        self.graph.ranks()
    }

    fn ports(&self) -> Ports {
        self.ports
    }

    fn collective(&self) -> Collective {
        self.kind.with_root(self.root)
    }

    fn layout_of(&self, rank: usize) -> Layout {
        let whole = self.vector;
        let collective = self.kind.with_root(self.root);
        collective.layout(rank, whole.len, whole, whole)
    }

    fn program_of(&self, rank: usize) -> NBlockSteps<'_> {
        let (p, q) = (self.graph.ranks(), self.graph.rounds());
        let me = (rank + p - self.root) % p;
        let mut schedules = [[0; MAX_ROUNDS]; 2];
        self.graph.recv_into(me, &mut schedules[0][..q]);
        self.graph.send_into(me, &mut schedules[1][..q]);
        let left = self.phases.rounds();
        let reduces = self.kind != Kind::Broadcast;
        let first = if reduces { left.saturating_sub(1) } else { 0 };
        NBlockSteps {
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

#[derive(Debug, Clone)]
pub(crate) struct NBlockSteps<'a> {
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

impl NBlockSteps<'_> {
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

impl Iterator for NBlockSteps<'_> {
    type Item = Step;

    #[inline]
    fn next(&mut self) -> Option<Step> {
        loop {
            if self.left == 0 && self.reduces && self.all.kind == Kind::Allreduce {
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

fn time(request: &Request) -> Option<f64> {
    let (q, s) = request.equal_segments()?;
    let rounds = match request.ranks {
        0 | 1 => 0,
        p => Circulant::new(p).rounds() + q - 1,
    };
    let (messages, combined) = (request.transfer_time(s), request.combine_time(s));
    Some(rounds as f64 * there_and_back(request, messages, combined))
}
