//! Recursive halving reduce-scatter: in every round partners exchange halves of the elements that
//! are still to be combined.
//!
//! - Symbols: `p` ranks, `m` elements, `b = m/p` if blocks are equal, `n = 2^d` the largest power
//!   of two up to `p`.
//! - Time for equal blocks and `p = n`: `d alpha + (p-1)(beta + gamma) b` bidirectional,
//!   `2d alpha + (p-1)(2 beta + gamma) b` unidirectional. For `p != n`, bidirectional and linear
//!   costs: `(d + 2) alpha + (p+1) beta b + p gamma b`, and `(beta + gamma) h_k b` for each round
//!   `k < d`, with `h_k = n/2^(k+1) + ceil((p-n)/2^(k+1))`.
//! - Scratch: half of the vector on unidirectional ranks.
//! - Spans: a message has up to `p/2` of them.
//!
//! In round `k` partners are `2^k` apart, as in the [butterfly](super::butterfly). Here, however, a
//! member keeps the blocks of those members whose numbers have the same bits as its own up to bit
//! `k`, so that it ends with its own block. For `p != n` the first `p - n` even ranks combine their
//! right neighbours' vectors before the rounds and send them their blocks after the rounds.
//!
//! Example, `p = 4`. Blocks kept after round 0: 02, 13, 02, 13; after round 1: 0, 1, 2, 3.

use crate::machine::numbers::id;
use crate::plan::prelude::*;

pub(in crate::plan) const REDUCE_SCATTER: Row = Row {
    transfers: row::parts_of_halves,
    source: "folklore; blocks chosen so that operands stay in order",
    rounds: "floor(log2 p), if p is not a power of two 2 more (bi); about twice that (uni)",
    volume: "(n-1) m + (p-n)(1+1/p) m, n = 2^floor(log2 p)",
    // Each rank remembers when the blocks of its messages were last used.
    tables: |p| (p as u64).saturating_mul(p as u64).saturating_mul(32),
    formula: ClosedForm::Of(time),
    ..row::planned_by(
        "recursive-halving",
        Kind::ReduceScatter,
        Planner::Streamed(programs),
    )
};

pub(super) fn programs(request: &Request) -> Result<Box<dyn DynScheduleSource>> {
    Ok(streamed(
        request,
        Collective::ReduceScatter,
        Halving::new(request),
    ))
}

#[derive(Debug)]
struct Halving {
    blocks: Vec<Span>,
    vector: Span,
    /// Number of scratch elements at each member.
    scratch: usize,
    exchange: Exchange<Halves>,
}

/// The rounds among the members.
#[derive(Debug)]
struct Halves {
    members: Vec<usize>,
    /// Number of pairs: a member and the rank that is folded into it.
    pairs: usize,
    kept: Kept,
}

impl Halving {
    fn new(request: &Request) -> Halving {
        let p = request.ranks;
        let blocks = request.block_spans();
        let vector = Span::from(0..blocks.last().map_or(0, |b| b.end()));
        let members = members_of(p, 0);
        let kept = Kept::new(&members, &blocks, vector.len);
        let relays = request.ports.can_relay();
        let scratch = if relays || p < 2 {
            0
        } else {
            let halves = (0..2).map(|class| total_len(&kept.spans(class, 1)));
            halves.max().unwrap_or(0)
        };
        Halving {
            blocks,
            vector,
            scratch,
            exchange: Exchange {
                rounds: Halves {
                    members,
                    pairs: folded(p),
                    kept,
                },
                backwards: false,
                arrival: request.by_ports(Arrival::CombinedAfter(vector.len), Arrival::Combined),
                ports: request.ports,
            },
        }
    }
}

impl StepAt for Halving {
    fn layout_of(&self, rank: usize) -> Layout {
        let member = member_of(rank, self.exchange.rounds.pairs).is_some();
        let len = self.vector.len + if member { self.scratch } else { 0 };
        Collective::ReduceScatter.layout(rank, len, self.vector, self.blocks[rank])
    }

    /// One slot before the rounds and one after them, for the folded pairs.
    fn slots(&self, _rank: usize) -> usize {
        self.exchange.slots() + 2
    }

    fn step_at(&self, rank: usize, slot: usize) -> Option<Step> {
        let last = self.exchange.slots() + 1;
        if (1..last).contains(&slot) {
            return self.exchange.step_at(rank, slot - 1);
        }
        if rank >= 2 * self.exchange.rounds.pairs {
            return None;
        }
        let (stays, leaves) = (rank & !1, rank | 1);
        let block = self.blocks[leaves];
        match (slot == last, rank == stays) {
            (false, true) => {
                let order = Order::by_rank(stays, leaves);
                Some(Step::recv_combine(leaves, self.vector, order))
            }
            (false, false) => Some(Step::send(stays, self.vector)),
            (true, _) if block.len == 0 => None,
            (true, true) => Some(Step::send(leaves, block)),
            (true, false) => Some(Step::recv(stays, block)),
        }
    }
}

impl Halves {
    /// The partner of `rank` in round `k`, and the spans that the partner keeps or, if `mine`, that
    /// `rank` keeps.
    fn half(&self, k: usize, rank: usize, mine: bool) -> Option<(usize, Spans)> {
        let j = member_of(rank, self.pairs)?;
        let partner = j ^ (1 << k);
        let spans = self.kept.spans(if mine { j } else { partner }, id(k) + 1);
        (!spans.is_empty()).then(|| (self.members[partner], spans))
    }
}

impl Rounds for Halves {
    fn count(&self) -> usize {
        self.members.len().ilog2() as usize
    }

    fn sent(&self, k: usize, rank: usize) -> Option<(usize, Spans)> {
        self.half(k, rank, false)
    }

    fn received(&self, k: usize, rank: usize) -> Option<(usize, Spans)> {
        self.half(k, rank, true)
    }
}

/// The blocks that members keep.
#[derive(Debug)]
struct Kept {
    /// By member: its span, up to where that of the next member starts.
    members: Vec<Span>,
}

impl Kept {
    fn new(members: &[usize], blocks: &[Span], elements: usize) -> Kept {
        let start = |j: usize| members.get(j).map_or(elements, |&r| blocks[r].offset);
        Kept {
            members: (0..members.len())
                .map(|j| Span::from(start(j)..start(j + 1)))
                .collect(),
        }
    }

    /// The blocks of all members whose numbers have the same last `bits` bits as `j`. Adjacent
    /// spans are merged; none is empty.
    fn spans(&self, j: usize, bits: u32) -> Spans {
        let class = j & ((1 << bits) - 1);
        let mut spans = Spans::new();
        for &span in self.members.iter().skip(class).step_by(1 << bits) {
            spans.append(span);
        }
        spans
    }
}

/// Time of the schedule for equal blocks of size `b`; for `p != n` only if costs are linear.
///
/// In every round the first member keeps the most blocks, `n/2^(k+1) + ceil((p-n)/2^(k+1))`, and
/// waits for no other member.
pub(crate) fn time(request: &Request) -> Option<f64> {
    let b = equal_size(request, &request.block_spans())?;
    let p = request.ranks;
    let (n, pairs) = (1usize << p.ilog2(), folded(p));
    if pairs > 0 && request.cost.linear().is_none() {
        return None;
    }
    let before_and_after = if pairs > 0 {
        request.transfer_time(p * b) + request.combine_time(p * b) + request.transfer_time(b)
    } else {
        0.0
    };
    let rounds = (0..p.ilog2()).map(|k| {
        let apart = 2usize << k;
        let kept = |class: usize| {
            let folded = pairs.saturating_sub(class).div_ceil(apart);
            (n / apart + folded) * b
        };
        let both = request.transfer_time(kept(0)) + time_of_combining(request, kept(0));
        both + request.by_ports(request.transfer_time(kept(apart / 2)), 0.0)
    });
    Some(before_and_after + rounds.sum::<f64>())
}
