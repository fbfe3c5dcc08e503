//! Checks the four conditions under which the schedules of circulant graphs are correct.
//!
//! The conditions, over one phase of `q` rounds and for ranks `r` in `0..p`:
//!
//! 1. `send[r][k] == recv[(r + skip[k]) mod p][k]`: every sent block is the block that its receiver
//!    expects.
//! 2. A rank other than the root receives its base block and `q - 1` different blocks of the
//!    previous phase: all of `-1..=-q` except `baseblock(r) - q`.
//! 3. A rank other than the root sends only blocks that it received in an earlier round of the
//!    phase, or its base block of the previous phase.
//! 4. The root, rank 0, sends block `k` in round `k`.
//!
//! [`violations`] checks all ranks of a graph, [`check_rank`] one rank, without tables.

use std::fmt;

use oneport::internal::circulant::schedule::Circulant;
use oneport::internal::circulant::tables::Tables;
use serde::Serialize;

/// The block that the root sends in round `k`.
fn block(k: usize) -> i8 {
    i8::try_from(k).expect("at most 64 rounds")
}

/// A violated condition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Violation {
    /// Number of ranks `p` of the graph.
    pub(crate) ranks: usize,
    /// The rank `r`.
    pub(crate) rank: usize,
    /// The number of the condition, 1 to 4.
    pub(crate) condition: u8,
    /// The round, except for condition 2.
    pub(crate) round: Option<usize>,
    /// Description of the violation.
    pub(crate) message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation {
            ranks,
            rank,
            condition,
            message,
            ..
        } = self;
        write!(
            f,
            "p = {ranks}, rank {rank}, condition {condition}: {message}"
        )
    }
}

/// Checks one rank of the graph and returns the first violated condition, if any. Constructs the
/// schedules of the rank's receivers for this purpose: `O(q^2)` time, no memory.
///
/// # Panics
/// When `r` is not a rank.
pub(crate) fn check_rank(graph: &Circulant, r: usize) -> Option<Violation> {
    let mut room = [[0i8; usize::BITS as usize]; 3];
    let q = graph.rounds();
    let [recv, send, theirs] = &mut room;
    graph.recv_into(r, &mut recv[..q]);
    graph.send_into(r, &mut send[..q]);
    for (k, place) in theirs[..q].iter_mut().enumerate() {
        let mut receiver = [0; usize::BITS as usize];
        graph.recv_into((r + graph.skips()[k]) % graph.ranks(), &mut receiver[..q]);
        *place = receiver[k];
    }
    violated(graph, r, &recv[..q], &send[..q], |_, k| theirs[k])
}

/// Returns the first violated condition of each rank that has one, in `O(q)` time per rank. The
/// tables may come from any source.
///
/// # Panics
/// When the tables do not have the length that `graph` needs.
pub(crate) fn violations(graph: &Circulant, tables: &Tables) -> impl Iterator<Item = Violation> {
    let (p, q) = (graph.ranks(), graph.rounds());
    let Tables { recv, send } = tables;
    assert_eq!(
        (recv.len(), send.len()),
        (p * q, p * q),
        "tables of {p} ranks"
    );
    (0..p).filter_map(move |r| {
        let rank = r * q..(r + 1) * q;
        violated(graph, r, &recv[rank.clone()], &send[rank], |receiver, k| {
            recv[receiver * q + k]
        })
    })
}

/// The first condition that rank `r` violates; `received(rank, round)` is the block that `rank`
/// receives in `round`.
fn violated(
    graph: &Circulant,
    r: usize,
    recv: &[i8],
    send: &[i8],
    received: impl Fn(usize, usize) -> i8,
) -> Option<Violation> {
    let (p, q) = (graph.ranks(), graph.rounds());
    let fail = |condition, round, message| {
        Some(Violation {
            ranks: p,
            rank: r,
            condition,
            round,
            message,
        })
    };
    for (k, (&sent, skip)) in send.iter().zip(graph.skips()).enumerate() {
        let receiver = if r + skip >= p {
            r + skip - p
        } else {
            r + skip
        };
        let arrives = received(receiver, k);
        if sent != arrives {
            return fail(
                1,
                Some(k),
                format!("sends block {sent} in round {k}, but rank {receiver} receives {arrives}"),
            );
        }
    }
    if r == 0 {
        let wrong = send.iter().enumerate().find(|&(k, &sent)| sent != block(k));
        return wrong.and_then(|(k, sent)| {
            fail(
                4,
                Some(k),
                format!("the root sends block {sent} in round {k}"),
            )
        });
    }
    // Bit `q + v` stands for block `v`. An invalid block number sets an unused bit or none.
    let q = block(q);
    let bit = |v: i8| 1u128.checked_shl(u32::try_from(v.checked_add(q)?).ok()?);
    let base = block(graph.baseblock(r));
    let old_base = bit(base - q).unwrap_or(0);
    let expected = (((1 << q) - 1) & !old_base) | bit(base).unwrap_or(0);
    let mut found = 0;
    for &v in recv {
        found |= bit(v).unwrap_or(0);
    }
    if found != expected {
        let message = format!(
            "receives blocks {recv:?}, not {base} and all of -1..=-{q} but {}",
            base - q
        );
        return fail(2, None, message);
    }
    let mut known = old_base;
    for (k, (&sent, &arrives)) in send.iter().zip(recv).enumerate() {
        if bit(sent).is_none_or(|sent| known & sent == 0) {
            let message = format!("sends block {sent} in round {k}, which it does not have");
            return fail(3, Some(k), message);
        }
        known |= bit(arrives).unwrap_or(0);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_condition_can_fail() {
        let graph = Circulant::new(9);
        let right = Tables::new(&graph);
        let first = |tables: &Tables| {
            let mut found: Vec<_> = violations(&graph, tables).collect();
            found.sort_unstable_by_key(|v| v.condition);
            found.first().map(|v| (v.condition, v.rank, v.round))
        };
        assert_eq!(first(&right), None);
        // Rank 2 sends another block to rank 5 in round 2.
        let mut tables = right.clone();
        tables.send[2 * 4 + 2] -= 1;
        assert_eq!(first(&tables), Some((1, 2, Some(2))));
        // The block that passes from 2 to 5 in round 2 is changed on both sides.
        tables.recv[5 * 4 + 2] -= 1;
        assert_eq!(first(&tables), Some((2, 5, None)));
        // The blocks that pass from 4 to 6 in round 1 and from 3 to 6 in round 2 are exchanged.
        let mut tables = right.clone();
        tables.recv.swap(6 * 4 + 1, 6 * 4 + 2);
        (tables.send[4 * 4 + 1], tables.send[3 * 4 + 2]) =
            (tables.recv[6 * 4 + 1], tables.recv[6 * 4 + 2]);
        assert_eq!(first(&tables).map(|f| f.0), Some(3));
        // The root exchanges the blocks of its last rounds, and all other ranks do so consistently.
        let mut tables = right.clone();
        for k in [2, 3] {
            tables.send[k] = 5 - block(k);
            tables.recv[graph.skips()[k] * 4 + k] = 5 - block(k);
        }
        let conditions: Vec<_> = violations(&graph, &tables)
            .map(|v| (v.rank, v.condition))
            .collect();
        assert!(conditions.contains(&(0, 4)), "{conditions:?}");
        for out_of_range in [i8::MIN, i8::MAX, 5] {
            tables.recv[4] = out_of_range;
            assert!(first(&tables).is_some());
        }
    }
}
