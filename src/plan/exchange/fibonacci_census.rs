//! Fibonacci census: an allreduce of short vectors on unidirectional ranks, in fewer rounds than a
//! reduction and a broadcast.
//!
//! - Source: oneport. The pattern is that of the [gossip](super::fibonacci) (Even, Monien 1989),
//!   the two sums of a rank are those of the [circulant census](crate::plan::circulant::census).
//! - Symbols: `p` ranks in `n = floor(p/2)` pairs, `m` elements, `F_1 = F_2 = 1, 2, 3, 5, ..` the
//!   Fibonacci numbers, `tc = alpha + beta m`, `tp = gamma m`. A round is *exclusive* if its
//!   messages lack the sender's own pair.
//! - Rounds for even `p`: the smallest `k` with `F_(k-1) >= n`, about `1.44 log2 p + 1`; two more
//!   for odd `p`. At most one more than any schedule needs for even `p`.
//! - Time for even `p`: `k tc + (k - 2 + d) tp` for `n > 1`, where `d` is the number of rounds
//!   after which both sums of the receiver are needed, except the first on each side; `2 tc + tp`
//!   for `n = 1`. For odd `p`: `2 tc + tp` more, where received and local operands cost the same.
//! - Volume: `n k m`; `2 m` more for odd `p`.
//! - Scratch: `m` elements, or `2m` if there is an exclusive round.
//!
//! Pair `i` is `X_i = 2i` and `Y_i = 2i + 1`. In the first two rounds they exchange their vectors.
//! Then `X` and `Y` receive alternately. Let a receiver hold the sum over the pairs `i .. i + s`
//! and the senders hold sums over `t` pairs: it receives that of the pairs `i + s .. i + s + t`,
//! and holds `s + t` pairs. That would lead to Fibonacci numbers only. So a round may be exclusive:
//! the sender's sum lacks its own pair, and the receiver then holds `s + t - 1`. An exclusive round
//! `j` lessens the final sum by `F_(k-j)`, and the difference `F_(k-1) - n < F_(k-3)` is a sum of
//! different Fibonacci numbers no two of which are neighbours (Zeckendorf), so that each `n` can be
//! reached. In the last two rounds the partners, who hold `n` pairs together, exchange their sums.
//!
//! For odd `p` the vector of the last rank is first combined into that of the last `Y`, and the
//! last rank receives the result at the end.
//!
//! Example, `p = 6`: 0→1, 2→3, 4→5; back; 2→1, 4→3, 0→5, so that odd ranks hold two pairs; 3→0,
//! 5→2, 1→4; back.

use crate::plan::prelude::*;

pub(in crate::plan) const ALLREDUCE: Row = Row {
    ports: PortModels::Uni,
    commutative_only: true,
    ranks_agree: |p, _| p <= 5,
    source: "oneport; gossip of Even, Monien 1989 with the sums of a census",
    rounds: "the least k with F_(k-1) >= floor(p/2), about 1.44 log2 p + 1; p odd: 2 more",
    volume: "about 0.72 p log2 p m",
    ..row::new("fibonacci-census", Kind::Allreduce, plan).with_formula(time)
};

pub(crate) fn plan(request: &Request) -> Result<Schedule> {
    let (p, m) = (request.ranks, request.elements());
    let rounds = CensusRounds::new(p / 2);
    let areas = match rounds.middle.iter().any(|r| r.is_exclusive) {
        _ if p < 2 || m == 0 => 1,
        false => 2,
        true => 3,
    };
    let scratch = elements_of(areas, m)? - m;
    let (mut b, vector) = over_vector(request, Collective::Allreduce, scratch);
    if areas > 1 {
        let is_odd = !p.is_multiple_of(2);
        if is_odd {
            b.transfer_combine(p - 1, p - 2, vector, Order::TheirsFirst);
        }
        let sums = Sums {
            with: vector,
            without: Span::new(m, m),
            arrived: Span::new((areas - 1) * m, m),
        };
        sums.run(&mut b, &rounds);
        if is_odd {
            b.transfer(rounds.last_informed(), p - 1, vector);
        }
    }
    b.build()
}

struct CensusRounds {
    pairs: usize,
    /// The rounds between the first exchange and the last one.
    middle: Vec<CensusRound>,
    /// The exchange of the last two rounds; `None` for a single pair.
    last: Option<CensusRound>,
}

/// A round in which each `X_j` sends to a `Y_i`, or each `Y_j` to an `X_i`.
#[derive(Clone, Copy)]
struct CensusRound {
    /// 0 if `X` receives, 1 if `Y` receives.
    receives: usize,
    distance: usize,
    /// Whether the sum that is sent lacks the sender's pair.
    is_exclusive: bool,
    /// Whether this is the first sum that the receiver gets from another pair.
    is_first: bool,
    /// Whether the receiver needs its sum without its own pair later.
    keeps: bool,
}

impl CensusRounds {
    fn new(pairs: usize) -> CensusRounds {
        // `F_0`, `F_1`, .. up to the first that is at least the number of pairs: `F_(k-1)`.
        let mut fibonacci = vec![0, 1];
        while let [.., a, b] = fibonacci[..]
            && b < pairs
        {
            fibonacci.push(a + b);
        }
        let k = fibonacci.len();
        let mut excess = fibonacci[k - 1].saturating_sub(pairs);
        // `F_(k-j)` is what an exclusive round `j` takes away.
        let is_exclusive = |j: usize| {
            let takes = j >= 4 && j + 2 <= k && fibonacci[k - j] <= excess;
            if takes {
                excess -= fibonacci[k - j];
            }
            takes
        };
        let exclusive: Vec<bool> = (0..=k).map(is_exclusive).collect();
        // The numbers of pairs in the sums of who receives next, and of who sends.
        let (mut receiver, mut sender) = (1, 1);
        let round = |j: usize| {
            let less = usize::from(exclusive[j]);
            let distance = receiver - less;
            (receiver, sender) = (sender, receiver + sender - less);
            CensusRound {
                receives: j % 2,
                distance,
                is_exclusive: exclusive[j],
                is_first: j <= 4,
                keeps: (j + 1..=k).step_by(2).any(|later| exclusive[later]),
            }
        };
        let mut middle: Vec<CensusRound> = (3..k).map(round).collect();
        let last = middle.pop();
        CensusRounds {
            pairs,
            middle,
            last,
        }
    }

    /// The `Y` or `X` that receives in the last round but one what has come from the last pair in
    /// each round before: no rank ends later.
    fn last_informed(&self) -> usize {
        let rounds = self.middle.iter().chain(&self.last);
        let (mut i, mut receives) = (self.pairs - 1, 1);
        for round in rounds {
            i = (i + self.pairs - round.distance % self.pairs) % self.pairs;
            receives = round.receives;
        }
        2 * i + receives
    }
}

/// The areas of a rank's buffer.
struct Sums {
    with: Span,
    without: Span,
    arrived: Span,
}

impl Sums {
    fn run(&self, b: &mut Builder, rounds: &CensusRounds) {
        let n = rounds.pairs;
        for i in 0..n {
            self.exchange(b, 2 * i, 2 * i + 1);
        }
        for round in &rounds.middle {
            for i in 0..n {
                let (from, to) = round.ends(i, n);
                self.message(b, round, from, to);
            }
        }
        if let Some(round) = &rounds.last {
            for i in 0..n {
                let (from, to) = round.ends(i, n);
                self.exchange(b, from, to);
            }
        }
    }

    fn message(&self, b: &mut Builder, round: &CensusRound, from: usize, to: usize) {
        let sent = if round.is_exclusive {
            self.without
        } else {
            self.with
        };
        b.step(from, Step::send(to, sent));
        if !round.keeps {
            let step = Step::recv_combine(from, self.with, Order::MineFirst);
            b.step(to, step);
            return;
        }
        let stored = if round.is_first {
            self.without
        } else {
            self.arrived
        };
        b.step(to, Step::recv(from, stored));
        b.step(to, Step::combine(stored, self.with, Order::MineFirst));
        if !round.is_first {
            b.step(to, Step::combine(stored, self.without, Order::MineFirst));
        }
    }

    /// Both ranks send their sums; `second` keeps its own as it is until it has sent it.
    fn exchange(&self, b: &mut Builder, first: usize, second: usize) {
        b.step(first, Step::send(second, self.with));
        b.step(second, Step::recv(first, self.arrived));
        b.step(second, Step::send(first, self.with));
        let step = Step::recv_combine(second, self.with, Order::MineFirst);
        b.step(first, step);
        let step = Step::combine(self.arrived, self.with, Order::MineFirst);
        b.step(second, step);
    }
}

impl CensusRound {
    /// The ranks that send to and receive at number `i`.
    fn ends(&self, i: usize, pairs: usize) -> (usize, usize) {
        let from = (i + self.distance) % pairs;
        (2 * from + 1 - self.receives, 2 * i + self.receives)
    }
}

pub(crate) fn time(request: &Request) -> Option<f64> {
    let (p, m) = (request.ranks, request.elements());
    if p < 2 || m == 0 {
        return Some(0.0);
    }
    let rounds = CensusRounds::new(p / 2);
    let message = request.transfer_time(m);
    let (received, local) = (request.combine_time(m), request.local_combine_time(m));
    let combined = |round: &CensusRound| match (round.keeps, round.is_first) {
        (false, _) => received,
        (true, true) => local,
        (true, false) => 2.0 * local,
    };
    let middle: f64 = rounds.middle.iter().map(|r| message + combined(r)).sum();
    let exchange = 2.0 * message + max_time(received, local);
    let (before, end) = if p.is_multiple_of(2) {
        (0.0, exchange)
    } else if received != local {
        // Ranks that the last one does not delay may catch up.
        return None;
    } else {
        // The last rank receives what the second rank of an exchange has combined.
        (message + received, exchange + message)
    };
    Some(match rounds.last {
        None => before + end,
        Some(_) => before + exchange + middle + end,
    })
}
