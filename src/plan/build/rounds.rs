//! Rounds in which every rank sends at most one message and receives at most one through each of
//! its ports, and their translation into steps.
//!
//! On bidirectional ports a rank lists its send before its receive. On unidirectional ports some
//! rank must receive first. The messages of a round form paths and cycles over the ranks, and along
//! each of them ranks alternate between sending first and receiving first (in a pair, the lower
//! rank sends first). A round then takes the time of two messages, or of three if a cycle is odd.
//! This holds for each port by itself, where messages lead from port to port.

use crate::machine::Ports;
use crate::plan::Request;
use crate::schedule::collective::Kind;
use crate::schedule::{Builder, Order, Span, Spans, Step, total_len};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) sent: Spans,
    pub(crate) stored: Spans,
    /// The numbers of its ports at the sender and at the receiver.
    pub(crate) ports: [usize; 2],
}

impl Message {
    /// A message with the same spans at the sender and at the receiver, through the first port.
    pub(crate) fn new(from: usize, to: usize, spans: impl Into<Spans>) -> Message {
        let sent: Spans = spans.into();
        let stored = sent.clone();
        Message {
            from,
            to,
            sent,
            stored,
            ports: [0, 0],
        }
    }

    pub(in crate::plan) fn on_port(self, port: usize) -> Message {
        self.on_ports([port, port])
    }

    pub(in crate::plan) fn on_ports(self, ports: [usize; 2]) -> Message {
        Message { ports, ..self }
    }

    pub(in crate::plan) fn backwards(self) -> Message {
        Message {
            from: self.to,
            to: self.from,
            sent: self.stored,
            stored: self.sent,
            ports: [self.ports[1], self.ports[0]],
        }
    }
}

/// What a receiver does with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    Stored,
    /// Combine it directly on arrival, into elements that the rank does not send in this round.
    Combined,
    /// Store it at this offset, behind what other ports receive, and combine it after the rank has
    /// sent, too. The rank may combine into elements that it sends; and no port has to wait for a
    /// combination in the middle of a round.
    CombinedAfter(usize),
}

/// Appends a round to the programs. Empty messages are omitted.
pub(crate) fn round(b: &mut Builder, request: &Request, messages: &[Message], arrival: Arrival) {
    let messages: Vec<&Message> = messages.iter().filter(|m| total_len(&m.sent) > 0).collect();
    let ports = messages.iter().flat_map(|m| m.ports).max().unwrap_or(0) + 1;
    let ends = |m: &Message| (m.from * ports + m.ports[0], m.to * ports + m.ports[1]);
    // A rank that sends and receives takes part in two messages.
    let receives_first = if request.ports.can_relay() || messages.len() < 2 {
        Vec::new()
    } else {
        receive_first_flags(request.ranks * ports, messages.iter().map(|m| ends(m)))
    };
    let first = |m: &Message| receives_first.get(ends(m).0) == Some(&true);
    let send = |b: &mut Builder, m: &Message| {
        let step = Step::send(m.to, m.sent.clone());
        b.step(m.from, step.on_port(m.ports[0]));
    };
    for m in messages.iter().filter(|m| !first(m)) {
        send(b, m);
    }
    let mut stored = vec![
        0;
        if let Arrival::CombinedAfter(_) = arrival {
            request.ranks
        } else {
            0
        }
    ];
    let mut combinations = Vec::new();
    for m in &messages {
        let order = Order::by_rank(m.to, m.from);
        let step = match arrival {
            Arrival::Stored => Step::recv(m.from, m.stored.clone()),
            Arrival::Combined => Step::recv_combine(m.from, m.stored.clone(), order),
            Arrival::CombinedAfter(at) => {
                let scratch = Span::new(at + stored[m.to], total_len(&m.stored));
                stored[m.to] += scratch.len;
                combinations.push((m.to, Step::combine(scratch, m.stored.clone(), order)));
                Step::recv(m.from, scratch)
            }
        };
        b.step(m.to, step.on_port(m.ports[1]));
    }
    for m in messages.iter().filter(|m| first(m)) {
        send(b, m);
    }
    for (rank, combination) in combinations {
        b.step(rank, combination);
    }
}

/// Rounds in which each rank's part follows from the rank and the round number, so that they need
/// not be stored.
pub(crate) trait Rounds {
    fn count(&self) -> usize;

    /// The destination and the spans of what `rank` sends in round `k`; `None` if it sends nothing.
    fn sent(&self, k: usize, rank: usize) -> Option<(usize, Spans)>;

    /// The source and the spans of what `rank` receives in round `k`; `None` if it receives
    /// nothing.
    fn received(&self, k: usize, rank: usize) -> Option<(usize, Spans)>;

    /// On unidirectional ports: whether `rank`, which sends and receives in round `k`, receives
    /// first. It must agree with `receive_first_flags` for the messages of the round, or for the
    /// opposite messages if `backwards`. This is for rounds of pairs.
    fn receives_first(&self, k: usize, rank: usize, _backwards: bool) -> bool {
        self.received(k, rank).is_some_and(|(peer, _)| peer < rank)
    }

    /// Whether all ranks send and receive in every round, as much as each other and with no other
    /// order among what they read and write; on unidirectional ports, of which there is one, also
    /// whether every cycle of messages has an even number of ranks. See
    /// [`ScheduleSource::is_uniform`](crate::schedule::ScheduleSource::is_uniform).
    fn is_uniform(&self, _ports: Ports) -> bool {
        false
    }

    /// Whether no rank both sends and receives in round `k`. What is combined is so on arrival
    /// then, without scratch.
    fn is_one_way(&self, _k: usize) -> bool {
        false
    }

    /// The number of the port for the messages of round `k`, of as many as `ports`. Rounds through
    /// different ports run concurrently if they do not wait for each other's data.
    fn port(&self, _k: usize, _ports: usize) -> usize {
        0
    }
}

/// Generates the steps of rounds one by one, the same as [`round`].
#[derive(Debug, Clone)]
pub(crate) struct Exchange<R> {
    pub(crate) rounds: R,
    /// Whether the rounds run from the last to the first, each message in the opposite direction.
    pub(crate) backwards: bool,
    pub(crate) arrival: Arrival,
    pub(crate) ports: Ports,
}

/// Places in each round: a send, a receive, the send of a rank that receives first, and a
/// combination.
const SLOTS: usize = 4;

impl<R: Rounds> Exchange<R> {
    /// The rounds in order; every message is stored.
    pub(crate) fn forwards(rounds: R, ports: Ports) -> Exchange<R> {
        Exchange {
            rounds,
            backwards: false,
            arrival: Arrival::Stored,
            ports,
        }
    }

    pub(crate) fn slots(&self) -> usize {
        SLOTS * self.rounds.count()
    }

    pub(crate) fn is_uniform(&self) -> bool {
        let in_lock_step = self.ports.can_relay() || self.ports.k() == 1;
        in_lock_step && self.rounds.is_uniform(self.ports)
    }

    #[inline]
    pub(crate) fn step_at(&self, rank: usize, slot: usize) -> Option<Step> {
        let (round, slot) = (slot / SLOTS, slot % SLOTS);
        let (k, relays) = (round, self.ports.can_relay());
        let k = if self.backwards {
            self.rounds.count() - 1 - k
        } else {
            k
        };
        let sent = || {
            if self.backwards {
                self.rounds.received(k, rank)
            } else {
                self.rounds.sent(k, rank)
            }
        };
        let received = || {
            if self.backwards {
                self.rounds.sent(k, rank)
            } else {
                self.rounds.received(k, rank)
            }
        };
        // A rank that receives nothing may send at either of the two slots.
        let first = || !relays && self.rounds.receives_first(k, rank, self.backwards);
        let arrival = match self.arrival {
            Arrival::CombinedAfter(_) if self.rounds.is_one_way(k) => Arrival::Combined,
            arrival => arrival,
        };
        let step = match (slot, arrival) {
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
        };
        step.map(|step| step.on_port(self.rounds.port(k, self.ports.k())))
    }
}

/// By rank: whether it receives before it sends, in a round of these messages, given as (from, to).
/// The same for ports, where messages lead from port to port.
pub(in crate::plan) fn receive_first_flags(
    ranks: usize,
    messages: impl Iterator<Item = (usize, usize)>,
) -> Vec<bool> {
    let mut next = vec![None; ranks];
    let mut has_source = vec![false; ranks];
    for (from, to) in messages {
        next[from] = Some(to);
        has_source[to] = true;
    }
    let mut receives_first = vec![false; ranks];
    // Walk the paths from their first ranks, then the cycles from their lowest ranks. A rank that
    // has been visited has no `next` any more.
    let ends = (0..ranks).filter(|&r| !has_source[r]);
    for start in ends.chain(0..ranks) {
        let (mut at, mut flag) = (start, false);
        while let Some(to) = next[at].take() {
            receives_first[at] = flag;
            (at, flag) = (to, !flag);
        }
    }
    receives_first
}

/// Appends a round whose messages are combined: on arrival, or from `scratch` where
/// [`needs_scratch`] says so.
pub(in crate::plan) fn combining_round(
    b: &mut Builder,
    request: &Request,
    messages: &[Message],
    scratch: usize,
) {
    let arrival = if needs_scratch(request, messages) {
        Arrival::CombinedAfter(scratch)
    } else {
        Arrival::Combined
    };
    round(b, request, messages, arrival);
}

/// Appends the rounds in order. Every message is stored.
pub(crate) fn forwards(
    b: &mut Builder,
    request: &Request,
    rounds: impl Iterator<Item = Vec<Message>>,
) {
    for messages in rounds {
        round(b, request, &messages, Arrival::Stored);
    }
}

/// Appends the rounds from the last to the first. Each message goes in the opposite direction and
/// is combined, as by [`combining_round`]. If the rounds copy each block to all ranks, this gives a
/// reduce-scatter. `scratch` is the offset of [`scratch_of`] free elements.
pub(crate) fn backwards(
    b: &mut Builder,
    request: &Request,
    rounds: impl DoubleEndedIterator<Item = Vec<Message>>,
    scratch: usize,
) {
    for messages in rounds.rev() {
        let messages: Vec<_> = messages.into_iter().map(Message::backwards).collect();
        combining_round(b, request, &messages, scratch);
    }
}

pub(crate) fn scratch_of(request: &Request, rounds: impl Iterator<Item = Vec<Message>>) -> usize {
    let stored = rounds.filter(|messages| needs_scratch(request, messages));
    let longest = stored.map(|messages| {
        let mut received = vec![0; request.ranks];
        for m in &messages {
            received[m.from] += total_len(&m.stored);
        }
        received.into_iter().max().unwrap_or(0)
    });
    longest.max().unwrap_or(0)
}

/// Whether a round whose messages are combined needs scratch: a rank receives through several
/// ports, or sends and receives through one port for both directions. A combination on arrival
/// would delay the other transfers. The same holds for the opposite messages. A broadcast is
/// planned as a reduction without scratch, which would become an extra copy in the reversal.
pub(in crate::plan) fn needs_scratch(request: &Request, messages: &[Message]) -> bool {
    if !request.kind.reduces() {
        return false;
    }
    let relays = request.ports.can_relay();
    let used = |rank: usize, sends: bool| (rank, sends && relays);
    let both = |m: &Message| [used(m.from, true), used(m.to, false)];
    // Sorted instead of counted by rank: there may be as many rounds of few messages as ranks.
    let mut all: Vec<_> = messages.iter().flat_map(both).collect();
    all.sort_unstable();
    all.windows(2).any(|pair| pair[0] == pair[1])
}

/// The time of a round in which every rank of a pair or of an even cycle sends and receives
/// `elements`.
pub(crate) fn time_of_round(request: &Request, elements: usize) -> f64 {
    request.by_ports(2.0, 1.0) * request.transfer_time(elements)
}

/// The time to combine what each rank receives in a round in which it sends as much: `elements`
/// through each port.
pub(in crate::plan) fn time_of_combining_all(request: &Request, elements: &[usize]) -> f64 {
    let local = elements.iter().map(|&n| request.local_combine_time(n));
    match *elements {
        [one] => time_of_combining(request, one),
        _ => local.sum(),
    }
}

/// The time to combine `elements` received in a round: directly on arrival, or on unidirectional
/// ports from scratch.
pub(crate) fn time_of_combining(request: &Request, elements: usize) -> f64 {
    if request.ports.can_relay() {
        request.combine_time(elements)
    } else {
        request.local_combine_time(elements)
    }
}

/// The size of the request's blocks, or of the blocks of its vector; `None` if they differ or
/// closed forms do not hold.
pub(crate) fn equal_block(request: &Request) -> Option<usize> {
    let (p, m) = (request.ranks, request.elements());
    match request.kind {
        Kind::Allgather | Kind::ReduceScatter => equal_size(request, &request.block_spans()),
        _ => (request.closed_forms_hold() && p > 0 && m % p == 0).then(|| m / p),
    }
}

/// The time of a round of an allgather or broadcast whose messages take `messages`; of the
/// reduce-scatter or reduction that runs it backwards, whose combinations take `combined`; or of
/// both, in an allreduce.
pub(crate) fn there_and_back(request: &Request, messages: f64, combined: f64) -> f64 {
    match request.kind {
        Kind::Allgather | Kind::Broadcast => messages,
        Kind::ReduceScatter | Kind::Reduce => messages + combined,
        _ => 2.0 * messages + combined,
    }
}

/// The common size of all blocks; `None` if they differ or closed forms do not hold.
pub(crate) fn equal_size(request: &Request, blocks: &[Span]) -> Option<usize> {
    let size = blocks.first()?.len;
    (are_equal(blocks) && request.closed_forms_hold()).then_some(size)
}

pub(in crate::plan) fn are_equal(blocks: &[Span]) -> bool {
    blocks.iter().all(|b| b.len == blocks[0].len)
}

/// `ceil(log2 p)`.
pub(crate) fn doublings(p: usize) -> u32 {
    p.next_power_of_two().trailing_zeros()
}

/// The powers of `k + 1` below `p`.
pub(in crate::plan) fn powers(p: usize, k: usize) -> impl Iterator<Item = usize> {
    let radix = k.saturating_add(1);
    let next = move |power: &usize| power.checked_mul(radix);
    std::iter::successors(Some(1), next).take_while(move |&power| power < p)
}

/// Blocks `first .. first + count`, modulo their number, as at most two spans. No span is empty.
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

/// The blocks in ascending order, adjacent ones as one span. No span is empty.
pub(in crate::plan) fn joined(blocks: impl Iterator<Item = Span>) -> Spans {
    let mut blocks: Vec<Span> = blocks.collect();
    blocks.sort_unstable();
    let mut spans = Spans::new();
    blocks.into_iter().for_each(|block| spans.append(block));
    spans
}
