//! [`Reduction`]: a reduction given as transfers round by round, turned into steps on demand.

use super::stream::StepAt;
use crate::plan::Request;
use crate::schedule::collective::Collective;
use crate::schedule::{Layout, Order, Span, Step};

/// A reduction to virtual rank 0, stored as a list of transfers. Each rank combines in place.
///
/// It takes 8 bytes for each step, and it can be simulated without storing the steps themselves.
/// Buffers have the `m` elements of the vector.
///
/// Rounds only define the order of each rank's steps: the sends of a round come before its
/// receives. If operand order does not matter, virtual rank `v` is rank `(v + root) mod p`.
/// Otherwise virtual ranks are the ranks themselves, and rank 0 forwards the result to the root;
/// what a rank receives in a round is then listed by ascending sender, and each sender holds the
/// ranks directly behind those that the receiver holds by then.
#[derive(Debug, Clone)]
pub(crate) struct Reduction {
    ranks: usize,
    root: usize,
    /// The rank that plays virtual rank 0.
    shift: usize,
    vector: Span,
    segments: Vec<Span>,
    /// `halves[first[v]..first[v + 1]]` belong to virtual rank `v`.
    first: Vec<usize>,
    halves: Vec<Half>,
}

/// One end of a transfer: the send at the sender or the receive at the receiver.
#[derive(Debug, Clone, Copy)]
struct Half {
    peer: u32,
    /// `2 * segment` for a send, `2 * segment + 1` for a receive.
    segment: u32,
}

impl Reduction {
    pub(crate) fn new<R: AsRef<[Transfer]>>(
        request: &Request,
        rounds: impl IntoIterator<Item = R>,
    ) -> Reduction {
        let ranks = request.ranks;
        let mut transfers: Vec<Transfer> = Vec::new();
        let mut ends = Vec::new();
        let mut first = vec![0; ranks + 1];
        for round in rounds {
            for t in round.as_ref() {
                first[t.from as usize + 1] += 1;
                first[t.to as usize + 1] += 1;
            }
            transfers.extend_from_slice(round.as_ref());
            ends.push(transfers.len());
        }
        for v in 0..ranks {
            first[v + 1] += first[v];
        }
        // `next[v]` is where the next half of virtual rank `v` goes. When all are placed, it has
        // become the start of the next rank's halves.
        let mut next = first.clone();
        let nothing = Half {
            peer: 0,
            segment: 0,
        };
        let mut halves = vec![nothing; 2 * transfers.len()];
        let mut place = |at: u32, half: Half| {
            let next = &mut next[at as usize];
            halves[*next] = half;
            *next += 1;
        };
        let mut start = 0;
        for end in ends {
            let round = &transfers[start..end];
            for t in round {
                let (peer, segment) = (t.to, 2 * t.segment);
                place(t.from, Half { peer, segment });
            }
            for t in round {
                let (peer, segment) = (t.from, 2 * t.segment + 1);
                place(t.to, Half { peer, segment });
            }
            start = end;
        }
        Reduction {
            ranks,
            root: request.root,
            shift: if request.keep_order { 0 } else { request.root },
            vector: Span::new(0, request.elements()),
            segments: request.reduced_segments(),
            first,
            halves,
        }
    }

    #[inline]
    fn number(&self, rank: usize) -> usize {
        match rank.checked_sub(self.shift) {
            Some(v) => v,
            None => rank + self.ranks - self.shift,
        }
    }

    #[inline]
    fn rank(&self, v: u32) -> usize {
        let rank = v as usize + self.shift;
        if rank >= self.ranks {
            rank - self.ranks
        } else {
            rank
        }
    }
}

impl StepAt for Reduction {
    fn layout_of(&self, rank: usize) -> Layout {
        let whole = self.vector;
        let reduce = Collective::Reduce { root: self.root };
        reduce.layout(rank, whole.len, whole, whole)
    }

    /// The rank's halves, and one slot for forwarding the result to the root.
    fn slots(&self, rank: usize) -> usize {
        let v = self.number(rank);
        self.first[v + 1] - self.first[v] + 1
    }

    #[inline]
    fn step_at(&self, rank: usize, slot: usize) -> Option<Step> {
        let v = self.number(rank);
        let half = self.first[v] + slot;
        if half == self.first[v + 1] {
            return match rank {
                _ if self.shift == self.root => None,
                _ if rank == self.shift => Some(Step::send(self.root, self.vector)),
                _ if rank == self.root => Some(Step::recv(self.shift, self.vector)),
                _ => None,
            };
        }
        let half = self.halves[half];
        let peer = self.rank(half.peer);
        let segment = self.segments[half.segment as usize / 2];
        Some(if half.segment.is_multiple_of(2) {
            Step::send(peer, segment)
        } else {
            Step::recv_combine(peer, segment, Order::by_rank(rank, peer))
        })
    }
}

/// A transfer of one segment from one virtual rank to another, which combines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Number of the segment, from 0.
    pub segment: u32,
    /// Virtual rank that sends.
    pub from: u32,
    /// Virtual rank that receives.
    pub to: u32,
}

impl Transfer {
    pub(crate) fn new(segment: usize, from: usize, to: usize) -> Transfer {
        let narrow = |n: usize| u32::try_from(n).expect("ranks and segments fit 32 bits");
        Transfer {
            segment: narrow(segment),
            from: narrow(from),
            to: narrow(to),
        }
    }
}
