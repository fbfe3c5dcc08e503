//! Hypercube exchanges: a power of two of member ranks exchange along the edges, and every other
//! rank is folded into a neighbour.

use super::rounds::{Arrival, Message, joined, round};
use crate::plan::Request;
use crate::schedule::{Builder, Order, Span, Spans};

/// The members, in rank order: the ranks that remain after neighbours `2i`, `2i + 1` are folded
/// into one for `i = 0, 1, ..` until a power of two is left. The lower neighbour stays, unless the
/// other one is `kept`.
pub(in crate::plan) fn members_of(p: usize, kept: usize) -> Vec<usize> {
    let pairs = folded(p);
    let stays = |i: usize| if 2 * i + 1 == kept { kept } else { 2 * i };
    (0..pairs).map(stays).chain(2 * pairs..p).collect()
}

/// The number of `rank` among [`members_of`] `(p, 0)` if there are so many [`folded`] pairs; `None`
/// if it leaves.
pub(in crate::plan) fn member_of(rank: usize, pairs: usize) -> Option<usize> {
    match rank.checked_sub(2 * pairs) {
        Some(i) => Some(pairs + i),
        None => rank.is_multiple_of(2).then_some(rank / 2),
    }
}

/// Number of pairs of neighbours that are folded into one member.
pub(in crate::plan) fn folded(p: usize) -> usize {
    p - (1 << p.ilog2())
}

/// Combines the vectors of the ranks that leave into those of their neighbours that stay: see
/// [`members_of`].
pub(in crate::plan) fn fold(b: &mut Builder, p: usize, kept: usize, vector: Span) {
    for stays in members_of(p, kept).into_iter().take(folded(p)) {
        let leaves = stays ^ 1;
        b.transfer_combine(leaves, stays, vector, Order::by_rank(stays, leaves));
    }
}

/// Sends the result to the ranks that left, if the fold kept the lower neighbours.
pub(in crate::plan) fn unfold(b: &mut Builder, p: usize, vector: Span) {
    for i in 0..folded(p) {
        b.transfer(2 * i, 2 * i + 1, vector);
    }
}

/// The time of the fold and, for 2 `messages`, of sending the result back.
pub(in crate::plan) fn time_of_fold(request: &Request, messages: f64) -> f64 {
    match (request.ranks.is_power_of_two(), request.elements()) {
        (true, _) => 0.0,
        (false, m) => messages * request.transfer_time(m) + request.combine_time(m),
    }
}

/// The rounds of an allgather of these blocks, by rank, for messages of few spans: ranks that leave
/// send their blocks to their neighbours, members exchange all that they have, and those that left
/// get all other blocks. In the exchange with number `s`, one of `numbers`, member `j` of `n` has
/// the partner `partner(j, s, n)`.
pub(in crate::plan) fn exchanges(
    blocks: &[Span],
    partner: fn(usize, u32, usize) -> usize,
    numbers: impl Iterator<Item = u32>,
) -> Vec<Vec<Message>> {
    let p = blocks.len();
    let members = members_of(p, 0);
    let (n, pairs) = (members.len(), folded(p));
    let into = (0..pairs).map(|i| Message::new(2 * i + 1, 2 * i, blocks[2 * i + 1]));
    let mut rounds = vec![into.collect::<Vec<_>>()];
    // By member: the blocks that it has.
    let of = |(j, &rank): (usize, &usize)| {
        let own = blocks[rank..].iter().take(if j < pairs { 2 } else { 1 });
        joined(own.copied())
    };
    let mut held: Vec<Spans> = members.iter().enumerate().map(of).collect();
    for s in numbers {
        let messages = (0..n).map(|j| {
            let to = members[partner(j, s, n)];
            Message::new(members[j], to, held[j].clone())
        });
        rounds.push(messages.collect());
        let both = |j: usize| joined(held[j].iter().chain(&held[partner(j, s, n)]).copied());
        held = (0..n).map(both).collect();
    }
    let end = blocks.iter().map(|block| block.end()).max().unwrap_or(0);
    let out = (0..pairs).map(|i| {
        let own = blocks[2 * i + 1];
        let others = [Span::from(0..own.offset), Span::from(own.end()..end)];
        Message::new(2 * i, 2 * i + 1, joined(others.into_iter()))
    });
    rounds.push(out.collect());
    rounds
}

/// A power of two of ranks that exchange along the edges of a hypercube, halving and doubling a
/// vector.
///
/// In round `k` of the halving, partners are `2^k` apart. Each holds contributions of `2^k`
/// consecutive members and its partner those of the members next to them, so operand order is kept.
/// The lower partner keeps the lower half of the elements. A member ends with the block whose
/// number is its own with the bits reversed.
pub(in crate::plan) struct Cube {
    pub(in crate::plan) members: Vec<usize>,
    elements: usize,
}

impl Cube {
    pub(in crate::plan) fn dimensions(&self) -> u32 {
        self.members.len().ilog2()
    }

    /// The elements that member `j` keeps after `rounds` rounds of halving.
    pub(in crate::plan) fn kept(&self, j: usize, rounds: u32) -> Span {
        // Block boundaries are those of equal parts, rounded down. The low bits of j, reversed, are
        // the number of the part.
        let parts = 1usize << rounds;
        let part = (0..rounds).fold(0, |part, k| 2 * part + ((j >> k) & 1));
        let start = |part: usize| {
            (part as u128 * self.elements as u128 / parts as u128)
                .try_into()
                .unwrap_or(usize::MAX)
        };
        Span::from(start(part)..start(part + 1))
    }

    /// The fold of the vectors of `elements` elements, and recursive halving: every member ends
    /// with its block of the result.
    pub(in crate::plan) fn reduce_scatter(
        b: &mut Builder,
        request: &Request,
        kept: usize,
        elements: usize,
    ) -> Cube {
        let members = members_of(request.ranks, kept);
        // See `rounds::needs_scratch`.
        let one_way = request.ports.can_relay() || !request.kind.reduces();
        let (arrival, scratch) = if one_way || members.len() < 2 {
            (Arrival::Combined, 0)
        } else {
            (Arrival::CombinedAfter(elements), elements.div_ceil(2))
        };
        for &r in &members {
            b.set_len(r, elements + scratch);
        }
        fold(b, request.ranks, kept, Span::new(0, elements));
        let cube = Cube { members, elements };
        for k in 0..cube.dimensions() {
            // A member receives into the half that it keeps and sends the other half, so both can
            // run at once.
            let messages = cube.exchange(k, |partner| cube.kept(partner, k + 1));
            round(b, request, &messages, arrival);
        }
        cube
    }

    /// Recursive doubling, the halving reversed: every member ends with the whole vector.
    pub(in crate::plan) fn allgather(&self, b: &mut Builder, request: &Request) {
        for k in (0..self.dimensions()).rev() {
            let messages = self.exchange(k, |partner| self.kept(partner ^ (1 << k), k + 1));
            round(b, request, &messages, Arrival::Stored);
        }
    }

    /// One message from each member to its partner in dimension `k`; `span(partner)` is its
    /// content.
    fn exchange(&self, k: u32, span: impl Fn(usize) -> Span) -> Vec<Message> {
        let message = |(j, &me): (usize, &usize)| {
            let partner = j ^ (1 << k);
            Message::new(me, self.members[partner], span(partner))
        };
        self.members.iter().enumerate().map(message).collect()
    }
}
