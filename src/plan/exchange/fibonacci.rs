//! Fibonacci allgather, reduce-scatter (its rounds backwards) and allreduce (one after the other):
//! gossip on unidirectional ranks, in fewer rounds than doubling.
//!
//! - Source: Entringer, Slater, "Gossips and telegraphs" (1979); Even, Monien, "On the number of
//!   rounds necessary to disseminate information" (1989). The intervals, and odd `p`, are our own.
//! - Ports: unidirectional.
//! - Symbols: `p` ranks in `n = floor(p/2)` pairs, `m` elements in all blocks together, `b = m/p`
//!   if they are equal, `F_1 = F_2 = 1, 2, 3, 5, ..` the Fibonacci numbers.
//! - Rounds for even `p`: the smallest `k` with `F_(k-1) >= n`, about `1.44 log2 p + 1`; two more
//!   for odd `p`, but in the allgather one more for 5 and none for 9. At most one more than any
//!   schedule needs for even `p`: see [`bounds`](crate::simulate::bounds).
//! - Time for even `p` and equal blocks: `k alpha + 2(p-1) beta b`, for the reduce-scatter
//!   `2(p-1) gamma b` more, because half of the ranks combine while the others wait. For odd `p` a
//!   message of `(p-1) b` ends it, in all at most `(k+2)(alpha + beta b) + 2.62 p beta b`.
//! - Volume: `(p-1) m`, allreduce `2(p-1) m`. The time of the transfers is optimal for even `p`.
//! - Restrictions: operators must commute.
//! - Scratch: none. A rank never sends and receives in the same round, so it combines on arrival.
//!
//! Pair `i` is `X_i = 2i` and `Y_i = 2i + 1`. They exchange their blocks in two rounds. Then each
//! `X_i` knows the pairs `i .. i + x` and each `Y_i` the pairs `i .. i + y`, modulo `n`, for
//! `x = y = 1`. In turns, `Y_i` receives what `X_(i+y)` knows, so that `y` becomes `x + y`, and
//! `X_i` receives what `Y_(i+x)` knows, so that `x` becomes `x + y`: Fibonacci numbers. If `n` is
//! none of them, some messages have fewer blocks, early ones if possible. Blocks arrive at their
//! final position.
//!
//! For odd `p` the last rank first sends its block to the last `Y`, which passes it on with its
//! own. In the last round it receives all other blocks from a rank that has them; the partner which
//! that rank leaves alone receives what it misses from another one. The allgather of five and of
//! nine ranks has rounds of its own, found by a SAT solver, in which a message carries what its
//! receiver lacks; backwards they would take one combination longer.
//!
//! Example, `p = 6`, pairs 01, 23, 45: 0→1, 2→3, 4→5 (one block); back; 2→1, 4→3, 0→5 (their pair);
//! 3→0, 5→2, 1→4 (two pairs); now each even rank has all, and 0→3, 2→5, 4→1 (a pair).

use crate::error::Result;
use crate::plan::Request;
use crate::plan::build::compose;
use crate::plan::build::rounds::{Message, cyclic, equal_size, joined};
use crate::plan::registry::row;
use crate::plan::registry::{Algorithm, ClosedForm, Planner, PortModels};
use crate::schedule::collective::Kind;
use crate::schedule::{Schedule, Span};

pub(in crate::plan) const ALLGATHER: Algorithm = Algorithm {
    ports: PortModels::Uni,
    source: "Entringer, Slater 1979; Even, Monien 1989",
    rounds: "the least k with F_(k-1) >= floor(p/2), about 1.44 log2 p + 1; p odd: at most 2 more",
    volume: "(p-1) m",
    closed_form: ClosedForm::Of(time),
    ..row::new("fibonacci", Kind::Allgather, plan)
};

pub(in crate::plan) const REDUCE_SCATTER: Algorithm = Algorithm {
    planner: Planner::Direct(reduce_scatter),
    ..row::reduce_scatter(ALLGATHER, reduce_scatter_time)
};

pub(in crate::plan) const ALLREDUCE: Algorithm = Algorithm {
    collective: Kind::Allreduce,
    commutative_only: true,
    transfers: row::logarithmic_twice,
    rounds: "twice the least k with F_(k-1) >= floor(p/2), about 2.88 log2 p + 2; p odd: 4 more",
    volume: "2(p-1) m",
    planner: Planner::Direct(allreduce),
    closed_form: ClosedForm::Of(allreduce_time),
    ..ALLGATHER
};

/// Plans the allgather.
pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    compose::allgather(request, rounds)
}

/// Plans the reduce-scatter.
pub(crate) fn reduce_scatter(request: &Request) -> Result<Schedule> {
    compose::reduce_scatter(request, rounds_of_pairs)
}

/// Plans the allreduce; only the sum of the request's segments matters.
pub(crate) fn allreduce(request: &Request) -> Result<Schedule> {
    compose::allreduce(request, rounds_of_pairs)
}

/// The sender and the receiver of each message of a round.
type Pairs = &'static [(usize, usize)];

/// The rounds for few odd ranks.
const FEW_ODD: [(usize, &[Pairs]); 2] = [
    (
        5,
        &[
            &[(0, 1), (2, 3)],
            &[(3, 1), (4, 0)],
            &[(1, 0), (4, 3)],
            &[(0, 3), (4, 1)],
            &[(1, 2), (3, 4)],
        ],
    ),
    (
        9,
        &[
            &[(0, 1), (2, 3), (4, 5), (6, 7)],
            &[(1, 4), (3, 5), (7, 2), (8, 0)],
            &[(4, 0), (5, 2), (7, 6), (8, 1)],
            &[(1, 7), (2, 0), (5, 6), (8, 4)],
            &[(0, 3), (2, 1), (4, 6), (5, 7)],
            &[(0, 4), (1, 5), (3, 2), (7, 8)],
        ],
    ),
];

/// The messages between these ranks, each with all that its receiver lacks.
fn lacking(blocks: &[Span], rounds: &[Pairs]) -> Vec<Vec<Message>> {
    let mut known: Vec<u16> = (0..blocks.len()).map(|rank| 1 << rank).collect();
    let mut message = |&(from, to): &(usize, usize)| {
        let new = known[from] & !known[to];
        known[to] |= new;
        let sent = (0..blocks.len()).filter(|i| new >> i & 1 == 1);
        Message::new(from, to, joined(sent.map(|i| blocks[i])))
    };
    let round = |round: &Pairs| round.iter().map(&mut message).collect();
    rounds.iter().map(round).collect()
}

/// The rounds of the allgather.
fn rounds(blocks: Vec<Span>) -> std::vec::IntoIter<Vec<Message>> {
    let p = blocks.len();
    match FEW_ODD.iter().find(|few| few.0 == p) {
        Some((_, rounds)) => lacking(&blocks, rounds).into_iter(),
        None => rounds_of_pairs(blocks),
    }
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
    /// Number of pairs that it learns.
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

/// The numbers of pairs that the ranks know which receive next, and those which send.
#[derive(Clone, Copy)]
struct Known {
    receiver: usize,
    sender: usize,
}

impl Known {
    /// After a round in which receivers learn so many pairs.
    fn after(self, learnt: usize) -> Known {
        Known {
            receiver: self.sender,
            sender: self.receiver + learnt,
        }
    }

    /// Whether so many rounds suffice until all know `n` pairs.
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

/// Time of the allgather for equal blocks and even `p`; `None` otherwise.
pub(crate) fn time(request: &Request) -> Option<f64> {
    let b = equal_size(request, &request.block_spans())?;
    sum_of_rounds(request.ranks, |count| request.transfer_time(count * b))
}

/// Time of the reduce-scatter under the same conditions.
pub(crate) fn reduce_scatter_time(request: &Request) -> Option<f64> {
    let b = equal_size(request, &request.reduce_scatter_spans())?;
    sum_of_rounds(request.ranks, |count| {
        request.transfer_time(count * b) + request.combine_time(count * b)
    })
}

/// Time of the allreduce under the same conditions.
pub(crate) fn allreduce_time(request: &Request) -> Option<f64> {
    let (p, m) = (request.ranks, request.elements());
    if !request.closed_forms_hold() || p == 0 || !m.is_multiple_of(p) {
        return None;
    }
    let b = m / p;
    sum_of_rounds(p, |count| {
        2.0 * request.transfer_time(count * b) + request.combine_time(count * b)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{CostModel, Ports};
    use crate::simulate::bounds::lower_bound;

    /// The times for `p` ranks with blocks of one element, if a message costs only `alpha`, and if
    /// it costs only `beta`.
    fn times(p: usize) -> [f64; 2] {
        let request = Request::allgather(p, 1).ports(Ports::UNI);
        let schedule = plan(&request).unwrap();
        [(1.0, 0.0), (0.0, 1.0)].map(|(alpha, beta)| {
            let cost = CostModel::new(alpha, beta);
            schedule.simulate(&cost).unwrap().makespan()
        })
    }

    #[test]
    fn rounds_are_fibonacci_numbers_and_the_volume_is_optimal() {
        let ranks = [6, 8, 10, 16, 26, 32, 34, 64, 100, 128, 256, 1024];
        let rounds = ranks.map(|p| times(p)[0]);
        let expected = [5, 6, 6, 7, 8, 9, 9, 10, 11, 12, 13, 16];
        assert_eq!(rounds, expected.map(f64::from));
        for p in (2..=300).step_by(2) {
            let [rounds, volume] = times(p);
            assert_eq!(volume, 2.0 * (p as f64 - 1.0), "p={p}");
            let one = CostModel::new(1.0, 0.0);
            let bound = lower_bound(Kind::Allgather, Ports::UNI, p, 1, 1, &one).latency;
            assert!(
                (bound..=bound + 1.0).contains(&rounds),
                "p={p}: {rounds}, {bound}"
            );
        }
    }

    #[test]
    fn an_odd_rank_costs_at_most_two_rounds() {
        for p in (3..=301).step_by(2) {
            let [rounds, volume] = times(p);
            let expected = match p {
                5 => 5.0,
                9 => 6.0,
                _ => times(p - 1)[0] + 2.0,
            };
            assert_eq!(rounds, expected, "p={p}");
            // A message with the last pair has a block more.
            let bound = 2.62 * p as f64 + rounds;
            assert!(volume < bound, "p={p}: {volume}");
        }
    }
}
