//! Scans of few ranks on unidirectional ports, in rounds that a SAT solver found. Each message
//! carries one partial result: the combination of consecutive ranks.
//!
//! - Source: oneport; found by a SAT solver (CaDiCaL).
//! - Symbols: `p` ranks, `m` elements.
//! - Rounds: 3, 4, 4, 4 for `p` = 5 to 8, which is optimal, 5 for 9 to 12 and 6 for 13 to 16: one
//!   or two fewer than [recursive doubling](super::doubling_scan) takes, which plans other numbers
//!   of ranks. Whether 9 to 12 ranks have 4 rounds and 13 to 16 have 5 is open.
//! - Time: that of the rounds, `alpha + beta m` each, and at most `gamma m` for each combination.
//! - Scratch: `m` for each partial result that a rank receives or combines.
//!
//! The messages of a number of ranks are those of the next larger one that is known, without those
//! of the higher ranks: these send nothing to lower ones. A rank combines what a message carries
//! from as few partial results as it can, just before it is sent, and at the end its output. What
//! is received never contains the own contribution, so the same messages do for both scans.
//!
//! Example, `p = 5`: 0→1 and 2→3 (own contributions); 1→3 (those of 0 and 1); 1→2 (of 0 and 1), 3→4
//! (of 0 to 3).

use super::{doubling_exscan, doubling_scan};
use crate::plan::prelude::*;

pub(in crate::plan) const SCAN: Row = Row {
    ports: PortModels::Uni,
    source: "oneport",
    rounds: "3, 4, 5, 6 for p = 5, 6 to 8, 9 to 12, 13 to 16; else those of recursive-doubling",
    volume: "5, 11, 15, 20, 26, 39 m for p = 5, 7, 8, 11, 12, 16",
    same_as: |request| of(request.ranks).is_none().then_some(&doubling_scan::SCAN),
    ..row::new("synthesized", Kind::Scan, |request| {
        plan(request, Collective::Scan)
    })
};

pub(in crate::plan) const EXSCAN: Row = Row {
    collective: Kind::Exscan,
    planner: Planner::Direct(|request| plan(request, Collective::Exscan)),
    same_as: |request| {
        let other = of(request.ranks).is_none();
        other.then_some(&doubling_exscan::DOUBLING)
    },
    ..SCAN
};

/// The least and the largest number of ranks, and the messages of all rounds: sender>receiver:ranks
/// whose contributions they carry, rounds between bars.
const ROUNDS: [(usize, usize, &str); 6] = [
    (5, 5, "0>1:0 2>3:2 | 1>3:0-1 | 1>2:0-1 3>4:0-3"),
    (
        6,
        7,
        "0>1:0 2>5:2 3>4:3 | 1>2:0-1 4>5:3-4 | 1>3:0-1 2>4:0-2 5>6:5 | 1>5:0-1 2>3:2 4>6:0-4",
    ),
    (
        8,
        8,
        "0>6:0 1>7:1 2>3:2 4>5:4 | 0>1:0 3>5:2-3 7>6:1 | 1>2:0-1 3>4:2-3 5>6:2-5 7>0:1 | 0>3:0-1 \
         1>5:0-1 2>4:0-1 6>7:0-6",
    ),
    (
        9,
        11,
        "0>1:0 2>9:2 3>8:3 4>5:4 6>7:6 | 1>6:0-1 2>3:2 5>8:4-5 | 1>2:0-1 3>5:2-3 6>9:0-1 7>8:6-7 \
         | 1>3:0-1 5>6:2-5 8>9:3-8 | 1>5:0-1 2>8:0-2 3>4:0-3 6>7:0-6 9>10:0-9",
    ),
    (
        12,
        12,
        "0>9:0 1>2:1 3>8:3 4>5:4 6>7:6 10>11:10 | 0>4:0 2>3:1-2 5>7:4-5 8>11:8 9>10:9 | 0>1:0 \
         2>9:1-2 3>4:1-3 5>6:4-5 7>8:4-7 | 0>2:0 1>3:0 4>7:0-3 8>9:3-8 10>11:9 | 2>8:0-2 3>5:0-3 \
         4>6:0-3 7>11:0-7 9>10:0-9",
    ),
    (
        13,
        16,
        "0>1:0 2>3:2 4>5:4 6>7:6 9>14:9 10>11:10 12>13:12 | 1>2:0-1 3>4:2-3 5>6:4-5 7>10:6-7 8>9:8 \
         11>13:10-11 14>15:14 | 1>4:0-1 2>3:0-2 5>8:5 6>7:4-5 9>10:8-9 11>12:10-11 13>14:10-13 | \
         3>6:0-3 4>9:0-3 5>13:5 7>8:6-7 10>12:6-9 14>15:10-13 | 3>5:0-3 4>8:0-4 6>10:0-5 7>9:4-7 \
         12>13:6-9 14>15:9 | 4>13:0-4 5>12:0-5 6>7:0-5 8>15:0-8 9>11:0-9 10>14:0-9",
    ),
];

fn of(p: usize) -> Option<&'static str> {
    let known = ROUNDS
        .iter()
        .find(|(least, most, _)| (*least..=*most).contains(&p))?;
    Some(known.2)
}

fn plan(request: &Request, collective: Collective) -> Result<Schedule> {
    let (p, m) = (request.ranks, request.elements());
    let before = usize::from(collective == Collective::Exscan);
    let mut b = Schedule::builder(p, request.ports, collective);
    let mut ranks: Vec<Held> = (0..p).map(|rank| Held::new(rank, m)).collect();
    for message in of(p).unwrap_or_default().split_whitespace() {
        let Some((from, to, carried)) = parse(message).filter(|m| m.0 < p && m.1 < p) else {
            continue;
        };
        let sent = ranks[from].combined(&mut b, carried);
        b.step(from, Step::send(to, sent));
        let arrived = ranks[to].place(carried);
        b.step(to, Step::recv(from, arrived));
    }
    for (rank, mut held) in ranks.into_iter().enumerate() {
        let last = rank.checked_sub(before);
        let output = last.map(|last| held.combined(&mut b, (0, last)));
        b.layout(rank, held.len, [Span::new(0, m)], output);
    }
    b.build()
}

/// Sender, receiver, and the first and the last rank whose contributions are carried; `None` for a
/// bar.
fn parse(message: &str) -> Option<(usize, usize, (usize, usize))> {
    let (ends, carried) = message.split_once(':')?;
    let (from, to) = ends.split_once('>')?;
    let (first, last) = carried.split_once('-').unwrap_or((carried, carried));
    let number = |text: &str| text.parse().ok();
    Some((number(from)?, number(to)?, (number(first)?, number(last)?)))
}

/// The partial results that a rank holds, and where they are in its buffer.
struct Held {
    rank: usize,
    m: usize,
    len: usize,
    results: Vec<((usize, usize), Span)>,
}

impl Held {
    fn new(rank: usize, m: usize) -> Held {
        Held {
            rank,
            m,
            len: m,
            results: vec![((rank, rank), Span::new(0, m))],
        }
    }

    /// A new place for these ranks' partial result.
    fn place(&mut self, ranks: (usize, usize)) -> Span {
        let place = Span::new(self.len, self.m);
        self.len += self.m;
        self.results.push((ranks, place));
        place
    }

    /// Where these ranks' partial result is; if it is nowhere yet, it is combined.
    fn combined(&mut self, b: &mut Builder, (first, last): (usize, usize)) -> Span {
        let mut parts = Vec::new();
        let mut at = first;
        while at <= last {
            let fits = |held: &&((usize, usize), Span)| held.0.0 == at && held.0.1 <= last;
            let longest = self.results.iter().filter(fits).max_by_key(|held| held.0.1);
            let Some(&((_, end), place)) = longest else {
                break;
            };
            parts.push(place);
            at = end + 1;
        }
        if let [place] = parts[..] {
            return place;
        }
        let place = self.place((first, last));
        for (i, part) in parts.into_iter().enumerate().filter(|_| self.m > 0) {
            let step = match i {
                0 => Step::copy(part, place),
                _ => Step::combine(part, place, Order::MineFirst),
            };
            b.step(self.rank, step);
        }
        place
    }
}
