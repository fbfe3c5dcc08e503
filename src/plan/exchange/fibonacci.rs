//! Fibonacci allgather, reduce-scatter (its rounds backwards) and allreduce (one after the other):
//! gossip on unidirectional ranks, in fewer rounds than doubling.
//!
//! - Source: Entringer, Slater, "Gossips and telegraphs" (1979); Even, Monien, "On the number of
//!   rounds necessary to disseminate information" (1989). The intervals, and odd `p`, are our own.
//! - Symbols: `p` ranks in `n = floor(p/2)` pairs, `m` elements in all blocks together, `b = m/p`
//!   if they are equal, `F_1 = F_2 = 1, 2, 3, 5, ..` the Fibonacci numbers.
//! - Rounds for even `p`: the smallest `k` with `F_(k-1) >= n`, about `1.44 log2 p + 1`; two more
//!   for odd `p`, but in the allgather one more for 5 and none for 9. At most one more than any
//!   schedule needs for even `p`: see [`bounds`](crate::simulate::bounds).
//! - Time for even `p` and equal blocks: `k alpha + 2(p-1) beta b`, for the reduce-scatter
//!   `2(p-1) gamma b` more, because half of the ranks combine while the others wait. For odd `p` a
//!   message of `(p-1) b` ends it, in all at most `(k+2)(alpha + beta b) + 2.62 p beta b`.
//! - Volume: `(p-1) m`, allreduce `2(p-1) m`. The time of the transfers is optimal for even `p`.
//! - Scratch: none. A rank never sends and receives in the same round, so it combines on arrival.
//!
//! Pair `i` is `X_i = 2i` and `Y_i = 2i + 1`. They exchange their blocks in two rounds. Then each
//! `X_i` knows the pairs `i .. i + x` and each `Y_i` the pairs `i .. i + y`, modulo `n`, for
//! `x = y = 1`. Alternately, `Y_i` receives what `X_(i+y)` knows, so that `y` becomes `x + y`, and
//! `X_i` receives what `Y_(i+x)` knows, so that `x` becomes `x + y`: Fibonacci numbers. If `n` is
//! none of them, some messages have fewer blocks, early ones if possible. Blocks arrive at their
//! final position.
//!
//! For odd `p` the last rank first sends its block to the last `Y`, which passes it on with its
//! own. In the last round it receives all other blocks from a rank that has them; the partner which
//! that rank leaves alone receives what it misses from another one. The allgather of five and of
//! nine ranks has [rounds of its own](super::synthesized); backwards they would take one
//! combination longer.
//!
//! Example, `p = 6`, pairs 01, 23, 45: 0→1, 2→3, 4→5 (one block); back; 2→1, 4→3, 0→5 (their pair);
//! 3→0, 5→2, 1→4 (two pairs); now each even rank has all, and 0→3, 2→5, 4→1 (a pair).

use super::few_odd;
use crate::plan::prelude::*;

pub(in crate::plan) const ALLGATHER: Row = Row {
    ports: PortModels::Uni,
    source: "Entringer, Slater 1979; Even, Monien 1989",
    rounds: "the least k with F_(k-1) >= floor(p/2), about 1.44 log2 p + 1; p odd: at most 2 more",
    ..row::new("fibonacci", Kind::Allgather, plan).with_formula(time)
};

pub(in crate::plan) const REDUCE_SCATTER: Row = ALLGATHER.also(Kind::ReduceScatter);

pub(in crate::plan) const ALLREDUCE: Row = Row {
    transfers: row::logarithmic_twice,
    rounds: "twice the least k with F_(k-1) >= floor(p/2), about 2.88 log2 p + 2; p odd: 4 more",
    volume: "2(p-1) m",
    ..ALLGATHER.also(Kind::Allreduce)
};

pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    match request.kind {
        Kind::Allgather => compose::plan(request, rounds),
        _ => compose::plan(request, rounds_of_pairs),
    }
}

fn rounds(blocks: Vec<Span>) -> std::vec::IntoIter<Vec<Message>> {
    // More than 9 ranks take longer messages than in pairs.
    let known = (blocks.len() <= 9).then(|| few_odd::known(&blocks));
    known.flatten().unwrap_or_else(|| rounds_of_pairs(blocks))
}

fn rounds_of_pairs(blocks: Vec<Span>) -> std::vec::IntoIter<Vec<Message>> {
    let p = blocks.len();
    let n = p / 2;
    if n == 0 {
        return Vec::new().into_iter();
    }
    let is_odd = p > 2 * n;
    // The last pair has the block of an odd rank, too.
    let end_of = |i: usize| blocks[if i + 1 == n { p - 1 } else { 2 * i + 1 }].end();
    let of_y = |i: usize| Span::from(blocks[2 * i + 1].offset..end_of(i));
    let of_pair = |i: usize| Span::from(blocks[2 * i].offset..end_of(i));
    let pairs: Vec<Span> = (0..n).map(of_pair).collect();
    let mut rounds: Vec<Vec<Message>> = Vec::new();
    if is_odd {
        rounds.push(vec![Message::new(p - 1, p - 2, blocks[p - 1])]);
    }
    let there = (0..n).map(|i| Message::new(2 * i, 2 * i + 1, blocks[2 * i]));
    let back = (0..n).map(|i| Message::new(2 * i + 1, 2 * i, of_y(i)));
    rounds.extend([there.collect(), back.collect()]);
    for (k, Growth { known, learnt }) in growth(n).enumerate() {
        // `Y`, then `X`, and so on.
        let (receives, sends) = if k % 2 == 0 { (1, 0) } else { (0, 1) };
        let message = |i: usize| {
            let from = 2 * ((i + known) % n) + sends;
            Message::new(from, 2 * i + receives, cyclic(&pairs, i + known, learnt))
        };
        rounds.push((0..n).map(message).collect());
    }
    if is_odd && let Some(last) = rounds.last_mut() {
        let others = Span::from(0..blocks[p - 1].offset);
        let from = last[1 % n].from;
        let to_last = Message::new(last[0].from, p - 1, others);
        let left_alone = std::mem::replace(&mut last[0], to_last);
        rounds.push(vec![Message { from, ..left_alone }]);
    }
    rounds.into_iter()
}

/// A round after those within pairs.
struct Growth {
    /// Number of pairs that a receiver knows before the round.
    known: usize,
    learnt: usize,
}

/// The rounds after those within pairs, for `n` pairs: as few as possible, and with the short
/// messages first, because a last rank is served beside the last messages.
fn growth(n: usize) -> impl Iterator<Item = Growth> {
    let mut state = Known {
        receiver: n.min(1),
        sender: n.min(1),
    };
    let rounds = (0..).find(|&rounds| state.can_complete(n, rounds));
    (0..rounds.unwrap_or(0)).rev().map(move |left| {
        let known = state.receiver;
        let most = state.sender.min(n - known);
        // The more a rank learns, the sooner all is known: a binary search.
        let (mut low, mut high) = (0, most);
        while low < high {
            let middle = low.midpoint(high);
            if state.after(middle).can_complete(n, left) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        state = state.after(low);
        Growth { known, learnt: low }
    })
}

/// How many pairs the next receivers, and the next senders, know.
#[derive(Clone, Copy)]
struct Known {
    receiver: usize,
    sender: usize,
}

impl Known {
    /// After a round in which receivers learn `learnt` pairs.
    fn after(self, learnt: usize) -> Known {
        Known {
            receiver: self.sender,
            sender: self.receiver + learnt,
        }
    }

    /// Whether all know `n` pairs after `rounds` rounds.
    fn can_complete(mut self, n: usize, rounds: usize) -> bool {
        for _ in 0..rounds {
            self = self.after(self.sender.min(n - self.receiver));
        }
        self.receiver == n && self.sender == n
    }
}

/// The sum over all rounds of `time(blocks in a message)`; `None` if messages of a round differ.
fn sum_of_rounds(p: usize, time: impl Fn(usize) -> f64) -> Option<f64> {
    if p == 1 {
        return Some(0.0);
    }
    let blocks = [1, 1]
        .into_iter()
        .chain(growth(p / 2).map(|g| 2 * g.learnt));
    p.is_multiple_of(2).then(|| blocks.map(time).sum())
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    let b = equal_block(request)?;
    sum_of_rounds(request.ranks, |count| {
        let [messages, combined] = [
            request.transfer_time(count * b),
            request.combine_time(count * b),
        ];
        there_and_back(request, messages, combined)
    })
}
