//! Recursive doubling exclusive scans: in every round each rank passes on the combination of the
//! ranks before it, in the first rounds with its own contribution.
//!
//! - Source: Träff, "Two efficient message-passing exclusive scan algorithms" (arXiv 2507.04785,
//!   2026).
//! - Symbols: `p` ranks, `m` elements, `q` rounds, the first `i` of them inclusive.
//! - Rounds, recursive-doubling: `q = ceil(log2 p)`, the least possible, and the least `i` for it:
//!   `2^q - 2^(q-i) >= p - 1`. Rounds, shifted-doubling: `q = 1 + ceil(log2 (p-1))` and `i = 1`: a
//!   shift by one rank, then an inclusive scan. Rounds, 123-doubling: `i = 2` and the least `q` for
//!   it, `ceil(log2 (p-1) + log2 (4/3))`; the last rank combines `q - 1` times.
//! - Time, bidirectional: `q (alpha + beta m) + (q + i - 2) gamma m`. Unidirectional: `alpha + beta
//!   m` more for each round but the last.
//! - Scratch: `m`.
//!
//! Let every rank hold the combination of the `n` ranks directly before it (or of all ranks before
//! it). In an inclusive round it sends that, combined with its own contribution, to the rank
//! `n + 1` higher, and then holds that of `2n + 1` ranks. In an exclusive round it sends it to the
//! rank `n` higher, and then holds that of `2n` ranks. Inclusive rounds reach farther, but after
//! each but the last one a rank combines twice, once for its output and once for what it sends. The
//! last rank needs `p - 1` contributions. With `i` inclusive rounds of `q`, these come first: no
//! other order collects more.
//!
//! Example, `p = 4`: 0→1, 1→2, 2→3 (own contributions); 0→2, 1→3 (two contributions, 0 has one).

use crate::plan::prelude::*;

pub(in crate::plan) const DOUBLING: Row = Row {
    source: "Träff 2026 (two exclusive scans)",
    rounds: "ceil(log2 p) (bi), 2 ceil(log2 p)-1 (uni)",
    volume: "(q (p-1) - 2^q + 2^(q-i) + i) m, q rounds, i inclusive",
    formula: ClosedForm::Of(|request| time(request, ExscanRounds::fewest(request.ranks))),
    ..row::new("recursive-doubling", Kind::Exscan, |request| {
        plan(request, ExscanRounds::fewest(request.ranks))
    })
};

pub(in crate::plan) const SHIFTED: Row = Row {
    source: "folklore",
    rounds: "1+ceil(log2(p-1)) (bi), 1+2 ceil(log2(p-1)) (uni)",
    volume: "(q (p-1) - 2^(q-1) + 1) m, q rounds",
    formula: ClosedForm::Of(|request| time(request, ExscanRounds::shifted(request.ranks))),
    ..row::new("shifted-doubling", Kind::Exscan, |request| {
        plan(request, ExscanRounds::shifted(request.ranks))
    })
};

pub(in crate::plan) const ONE_TWO_THREE: Row = Row {
    source: DOUBLING.source,
    rounds: "q = ceil(log2(p-1) + log2(4/3)) (bi), 2q-1 (uni)",
    volume: "(q (p-1) - 3 2^(q-2) + 2) m, q rounds",
    formula: ClosedForm::Of(|request| time(request, ExscanRounds::one_two_three(request.ranks))),
    ..row::new("123-doubling", Kind::Exscan, |request| {
        plan(request, ExscanRounds::one_two_three(request.ranks))
    })
};

#[derive(Debug, Clone, Copy)]
struct ExscanRounds {
    all: u32,
    /// The first ones.
    inclusive: u32,
}

impl ExscanRounds {
    /// As few rounds as possible, and as few of them inclusive as that allows.
    fn fewest(p: usize) -> ExscanRounds {
        let all = doublings(p);
        let reaches = |&inclusive: &u32| (1 << all) - (1 << (all - inclusive)) + 1 >= p;
        let inclusive = (0..=all).find(reaches).unwrap_or(all);
        ExscanRounds { all, inclusive }
    }

    /// A shift by one rank, then an inclusive scan of what has arrived.
    fn shifted(p: usize) -> ExscanRounds {
        match p {
            0 | 1 => ExscanRounds::fewest(p),
            _ => ExscanRounds {
                all: 1 + doublings(p - 1),
                inclusive: 1,
            },
        }
    }

    /// Distances of 1, 2, 3, and then twice as many each time.
    fn one_two_three(p: usize) -> ExscanRounds {
        let reaches = |&all: &u32| 3 << all >> 2 >= p - 1;
        match p {
            0..=3 => ExscanRounds::fewest(p),
            _ => ExscanRounds {
                all: (2..).find(reaches).unwrap_or(2),
                inclusive: 2,
            },
        }
    }

    /// The contributions that a rank has before round `k`, at most.
    fn before(self, k: u32) -> usize {
        let inclusive = k.min(self.inclusive);
        ((1 << inclusive) - 1) << (k - inclusive)
    }
}

fn plan(request: &Request, rounds: ExscanRounds) -> Result<Schedule> {
    let (p, m) = (request.ranks, request.elements());
    // What a rank sends in inclusive rounds, in the place of its input.
    let inclusive = Span::new(0, m);
    let output = Span::new(m, m);
    let scratch = Span::new(m.saturating_mul(2), m);
    let mut b = Schedule::builder(p, request.ports, Collective::Exscan);
    for r in 0..p {
        let (len, output) = match r {
            0 => (m, None),
            _ => (scratch.end(), Some(output)),
        };
        b.layout(r, len, [inclusive], output);
    }
    for k in 0..rounds.all {
        let n = rounds.before(k);
        let messages: Vec<_> = if k < rounds.inclusive {
            let senders = 0..p.saturating_sub(n + 1);
            senders
                .map(|r| message(r, r + n + 1, inclusive, output))
                .collect()
        } else {
            let senders = 1..p.saturating_sub(n);
            senders.map(|r| message(r, r + n, output, output)).collect()
        };
        let first = k == 0;
        let arrival = if first {
            Arrival::Stored
        } else {
            Arrival::CombinedAfter(scratch.offset)
        };
        round(&mut b, request, &messages, arrival);
        if k + 1 < rounds.inclusive && m > 0 {
            let arrived = if first { output } else { scratch };
            // Those that have received and send in the next inclusive round, or in a later one.
            for r in n + 1..p.saturating_sub(rounds.before(k + 1) + 1) {
                b.step(r, Step::combine(arrived, inclusive, Order::TheirsFirst));
            }
        }
    }
    b.build()
}

fn message(from: usize, to: usize, sent: Span, stored: Span) -> Message {
    Message {
        stored: stored.into(),
        ..Message::new(from, to, sent)
    }
}

fn time(request: &Request, rounds: ExscanRounds) -> Option<f64> {
    let m = request.elements();
    let messages = request.by_ports((2 * rounds.all).saturating_sub(1), rounds.all);
    let combinations = (rounds.all + rounds.inclusive).saturating_sub(2);
    let (transfer, combine) = (request.transfer_time(m), request.local_combine_time(m));
    Some(f64::from(messages) * transfer + f64::from(combinations) * combine)
}
