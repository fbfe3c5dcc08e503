//! Rounds in which every rank sends at most one message and receives at most one: how they become
//! steps.
//!
//! On bidirectional ports a rank lists its send before its receive. On one port somebody must
//! receive first: messages of a round form paths and cycles over the ranks, and along each of them
//! ranks send first and receive first in turns (in a pair, the lower rank sends first). Then a
//! round takes the time of two messages, or of three where a cycle is odd.

use crate::cost::Ports;
use crate::plan::Request;
use crate::schedule::{Builder, Order, Span, Spans, Step, total_len};

/// One message of a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Where it stands at the sender.
    pub(crate) sent: Spans,
    /// Where it goes at the receiver.
    pub(crate) stored: Spans,
}

impl Message {
    /// From the same spans as to.
    pub(crate) fn new(from: usize, to: usize, spans: impl Into<Spans>) -> Message {
        let sent: Spans = spans.into();
        let stored = sent.clone();
        Message {
            from,
            to,
            sent,
            stored,
        }
    }

    pub(super) fn backwards(self) -> Message {
        Message {
            from: self.to,
            to: self.from,
            sent: self.stored,
            stored: self.sent,
        }
    }
}

/// What a receiver does with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Stores it.
    Stored,
    /// Combines it in passing, into what it does not send in this round.
    Combined,
    /// Stores it from this element of its buffer on, and combines it when it has sent, too: what it
    /// sends may be what it combines into, and on one port nobody waits for a combination in
    /// the middle of a round.
    CombinedAfter(usize),
}

/// Appends a round to the programs; empty messages are left out.
pub(crate) fn round(b: &mut Builder, request: &Request, messages: &[Message], arrival: Arrival) {
    let messages: Vec<&Message> = messages.iter().filter(|m| total_len(&m.sent) > 0).collect();
    let receives_first = if request.ports.is_bidirectional() {
        Vec::new()
    } else {
        turns(request.ranks, messages.iter().map(|m| (m.from, m.to)))
    };
    let first = |rank: usize| receives_first.get(rank) == Some(&true);
    let send = |b: &mut Builder, m: &Message| {
        b.step(m.from, Step::send(m.to, m.sent.clone()));
    };
    for m in messages.iter().filter(|m| !first(m.from)) {
        send(b, m);
    }
    for m in &messages {
        let order = Order::by_rank(m.to, m.from);
        let step = match arrival {
            Arrival::Stored => Step::recv(m.from, m.stored.clone()),
            Arrival::Combined => Step::recv_combine(m.from, m.stored.clone(), order),
            Arrival::CombinedAfter(at) => Step::recv(m.from, Span::new(at, total_len(&m.stored))),
        };
        b.step(m.to, step);
    }
    for m in messages.iter().filter(|m| first(m.from)) {
        send(b, m);
    }
    if let Arrival::CombinedAfter(at) = arrival {
        for m in &messages {
            let order = Order::by_rank(m.to, m.from);
            let scratch = Span::new(at, total_len(&m.stored));
            b.step(m.to, Step::combine(scratch, m.stored.clone(), order));
        }
    }
}

/// Rounds of which each rank's part follows from the rank and the round, so that they need not be
/// stored.
pub(crate) trait Rounds {
    /// Number of rounds.
    fn count(&self) -> usize;

    /// To whom `rank` sends in round `k`, and where that stands; `None` for nothing.
    fn sent(&self, k: usize, rank: usize) -> Option<(usize, Spans)>;

    /// From whom `rank` receives in round `k`, and where that goes; `None` for nothing.
    fn received(&self, k: usize, rank: usize) -> Option<(usize, Spans)>;

    /// On one port: whether `rank`, which sends and receives in round `k`, receives first: what
    /// `turns` says about the messages of the round, or where they go `backwards` about those.
    fn receives_first(&self, k: usize, rank: usize, backwards: bool) -> bool;
}

/// The steps of rounds, as [`round`] makes them, one by one.
#[derive(Debug, Clone)]
pub(crate) struct Exchange<R> {
    pub(crate) rounds: R,
    /// Whether the rounds come from the last to the first, each message going back.
    pub(crate) backwards: bool,
    pub(crate) arrival: Arrival,
    pub(crate) ports: Ports,
}

/// Places that each round has: a send, a receive, the send of who receives first, and a
/// combination.
const PLACES: usize = 4;

impl<R: Rounds> Exchange<R> {
    pub(crate) fn places(&self) -> usize {
        PLACES * self.rounds.count()
    }

    #[inline]
    pub(crate) fn step_at(&self, rank: usize, place: usize) -> Option<Step> {
        let (round, place) = (place / PLACES, place % PLACES);
        let (k, both) = (round, self.ports.is_bidirectional());
        let k = if self.backwards {
            self.rounds.count() - 1 - k
        } else {
            k
        };
        let sent = || match self.backwards {
            false => self.rounds.sent(k, rank),
            true => self.rounds.received(k, rank),
        };
        let received = || match self.backwards {
            false => self.rounds.received(k, rank),
            true => self.rounds.sent(k, rank),
        };
        // Who does not receive sends at the first of the two places as well as at the second.
        let first = || !both && self.rounds.receives_first(k, rank, self.backwards);
        match (place, self.arrival) {
            (0, _) if !first() => sent().map(|(to, spans)| Step::send(to, spans)),
            (2, _) if first() => sent().map(|(to, spans)| Step::send(to, spans)),
            (1, arrival) => received().map(|(from, spans)| match arrival {
                Arrival::Stored => Step::recv(from, spans),
                Arrival::Combined => Step::recv_combine(from, spans, Order::by_rank(rank, from)),
                Arrival::CombinedAfter(at) => Step::recv(from, Span::new(at, total_len(&spans))),
            }),
            (3, Arrival::CombinedAfter(at)) => received().map(|(from, spans)| {
                let scratch = Span::new(at, total_len(&spans));
                Step::combine(scratch, spans, Order::by_rank(rank, from))
            }),
            _ => None,
        }
    }
}

/// By rank: whether it receives before it sends, in a round of these messages, from whom to whom.
pub(super) fn turns(ranks: usize, messages: impl Iterator<Item = (usize, usize)>) -> Vec<bool> {
    let mut next = vec![None; ranks];
    let mut has_source = vec![false; ranks];
    for (from, to) in messages {
        next[from] = Some(to);
        has_source[to] = true;
    }
    let mut receives_first = vec![false; ranks];
    // Paths from their ends, then cycles from their lowest ranks; what has been walked has no next
    // any more.
    let ends = (0..ranks).filter(|&r| !has_source[r]);
    for start in ends.chain(0..ranks) {
        let (mut at, mut turn) = (start, false);
        while let Some(to) = next[at].take() {
            receives_first[at] = turn;
            (at, turn) = (to, !turn);
        }
    }
    receives_first
}

/// Appends rounds that store what they bring.
pub(crate) fn forwards(
    b: &mut Builder,
    request: &Request,
    rounds: impl Iterator<Item = Vec<Message>>,
) {
    for messages in rounds {
        round(b, request, &messages, Arrival::Stored);
    }
}

/// Appends the rounds from the last to the first, each message going back and being combined: of
/// rounds that copy each block to all ranks this makes a reduce-scatter. `scratch` is where
/// [`scratch_of`] elements can be stored.
pub(crate) fn backwards(
    b: &mut Builder,
    request: &Request,
    rounds: impl DoubleEndedIterator<Item = Vec<Message>>,
    scratch: usize,
) {
    let arrival = if request.ports.is_bidirectional() {
        Arrival::Combined
    } else {
        Arrival::CombinedAfter(scratch)
    };
    for messages in rounds.rev() {
        let messages: Vec<_> = messages.into_iter().map(Message::backwards).collect();
        round(b, request, &messages, arrival);
    }
}

/// Elements of scratch that [`backwards`] needs for these rounds.
pub(crate) fn scratch_of(request: &Request, rounds: impl Iterator<Item = Vec<Message>>) -> usize {
    if request.ports.is_bidirectional() {
        return 0;
    }
    let lengths = rounds.flatten().map(|m| total_len(&m.sent));
    lengths.max().unwrap_or(0)
}

/// The time of a round in which every rank of a pair or of an even cycle sends and receives
/// `elements`.
pub(crate) fn time_of_round(request: &Request, elements: usize) -> f64 {
    let time = request.transfer_time(elements);
    if request.ports.is_bidirectional() {
        time
    } else {
        2.0 * time
    }
}

/// The time of combining `elements` that a round has brought: in passing, or on one port from
/// scratch.
pub(crate) fn time_of_combining(request: &Request, elements: usize) -> f64 {
    if request.ports.is_bidirectional() {
        request.combine_time(elements)
    } else {
        request.t_comp_local(elements)
    }
}

/// The size of every block, where they are equal and closed forms hold.
pub(crate) fn equal_size(request: &Request, blocks: &[Span]) -> Option<usize> {
    let size = blocks.first()?.len;
    let equal = blocks.iter().all(|b| b.len == size);
    (equal && request.closed_forms_hold()).then_some(size)
}

/// `ceil(log2 p)`.
pub(crate) fn doublings(p: usize) -> u32 {
    p.next_power_of_two().trailing_zeros()
}

/// Consecutive spans `first .. first + count` of `blocks`, modulo their number: at most two spans,
/// none that is empty.
pub(crate) fn cyclic(blocks: &[Span], first: usize, count: usize) -> Spans {
    let p = blocks.len();
    let (first, end) = (first % p, first % p + count);
    let run = |from: usize, to: usize| {
        let end = blocks[..to].last().map_or(0, |b| b.end());
        Span::from(blocks[from].offset..end)
    };
    let mut spans = Spans::new();
    if count > 0 {
        spans.push(run(first, end.min(p)));
        if end > p {
            spans.push(run(0, end - p));
        }
    }
    spans.retain(|s| s.len > 0);
    spans
}

/// Both ends of every message agree about it, and who receives first is who the messages of the
/// round say, those that go `backwards`, too.
#[cfg(test)]
pub(super) fn assert_consistent(rounds: &impl Rounds, ranks: usize, backwards: bool, name: &str) {
    for k in 0..rounds.count() {
        let mut messages = Vec::new();
        for from in 0..ranks {
            if let Some((to, sent)) = rounds.sent(k, from) {
                let (back, stored) = rounds.received(k, to).expect("what is sent is received");
                assert_eq!(back, from, "{name}, round {k}, rank {from}");
                assert_eq!(total_len(&sent), total_len(&stored), "{name}, round {k}");
                assert!(total_len(&sent) > 0, "{name}, round {k}");
                messages.push((from, to));
            }
        }
        let received = (0..ranks).filter_map(|r| rounds.received(k, r));
        assert_eq!(received.count(), messages.len(), "{name}, round {k}");
        for backwards in [false, backwards] {
            let way =
                |&(from, to): &(usize, usize)| if backwards { (to, from) } else { (from, to) };
            let first = turns(ranks, messages.iter().map(way));
            for (rank, &first) in first.iter().enumerate() {
                if rounds.sent(k, rank).is_some() && rounds.received(k, rank).is_some() {
                    assert_eq!(
                        rounds.receives_first(k, rank, backwards),
                        first,
                        "{name}, round {k}, rank {rank}, backwards {backwards}"
                    );
                }
            }
        }
    }
}

/// Sizes of blocks, equal ones and such that some are empty.
#[cfg(test)]
pub(super) fn block_sizes(ranks: usize) -> impl Iterator<Item = Vec<usize>> {
    let irregular = move |seed: usize| -> Vec<usize> {
        (0..ranks)
            .map(|r| (r * r * seed + 3 * r + seed) % 5 / 2)
            .collect()
    };
    let zero = std::iter::once(vec![0; ranks]);
    let equal = std::iter::once(vec![2; ranks]);
    zero.chain(equal).chain((1..8).map(irregular))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns_of(ranks: usize, pairs: &[(usize, usize)]) -> Vec<bool> {
        turns(ranks, pairs.iter().copied())
    }

    #[test]
    fn ranks_take_turns_along_paths_and_cycles() {
        let ring: Vec<_> = (0..4).map(|r| (r, (r + 1) % 4)).collect();
        assert_eq!(turns_of(4, &ring), [false, true, false, true]);
        let odd: Vec<_> = (0..3).map(|r| (r, (r + 1) % 3)).collect();
        assert_eq!(turns_of(3, &odd), [false, true, false]);
        assert_eq!(turns_of(4, &[(3, 1), (1, 3)]), [false, false, false, true]);
        // 4 -> 2 -> 0 -> 1
        let path = [(0, 1), (4, 2), (2, 0)];
        assert_eq!(turns_of(5, &path), [false, false, true, false, false]);
    }

    #[test]
    fn cyclic_runs_of_blocks() {
        let blocks = crate::plan::consecutive(&[2, 0, 3, 1]);
        let runs = |first, count| cyclic(&blocks, first, count).to_vec();
        assert_eq!(runs(0, 4), [Span::new(0, 6)]);
        assert_eq!(runs(2, 3), [Span::new(2, 4), Span::new(0, 2)]);
        assert_eq!(runs(1, 1), []);
        assert_eq!(runs(3, 0), []);
        assert_eq!(runs(5, 2), [Span::new(2, 3)]);
    }
}
