//! Reversed circulant broadcast: reduction in the optimal number of rounds, any number of ranks.
//!
//! Source: Träff, "(Poly)logarithmic time construction of round-optimal n-block broadcast schedules", reversed. Ports: bidirectional, one-ported.
//! Symbols: `p` ranks, `L = ceil(log2 p)` (the `q` of [`schedule`](super::schedule)), `q` segments of `s` elements (the paper's `n`
//! blocks), `tc = alpha + beta s`, `tp = gamma s`.
//! Rounds: `L + q - 1`, optimal. Volume: `(p - 1) m`. Time: `(L + q - 1)(tc + tp)`. Best `s`: `sqrt(m alpha / ((L - 1)(beta + gamma)))`.
//! Restrictions: the operator must commute (a rank combines contributions from all over the ring); every root, by rotation.
//!
//! The broadcast's `L + q - 1` rounds are the last ones of as many phases of `L` rounds as hold them. From phase to phase the block numbers of the
//! schedule grow by `L`. Numbers of segments that are yet to come are no transfers; in the last phase every rank's base block is past the end or the
//! last segment: it stands for the last segment, which no rank has received before. The reduction goes through the rounds backwards, each rank
//! sending what the broadcast would have it receive.
//!
//! `p = 3`, `q = 2`: round 0: 1→2 segment 0, 2→0 segment 1; round 1: 1→0 segment 1; round 2: 2→0 segment 0.

use super::schedule::Circulant;
use crate::error::Result;
use crate::plan::{Request, Transfer, reduction};
use crate::schedule::Schedule;

/// Plans the reduction.
///
/// # Errors
/// When the request's parts do not fit together.
pub fn plan(request: &Request) -> Result<Schedule> {
    request.validate()?;
    reduction(request, rounds(request.ranks, request.segments.count()))
}

/// `(L + q - 1)(tc + tp)`.
pub fn time(request: &Request) -> Option<f64> {
    let (q, s) = request.equal_segments()?;
    if request.ranks < 2 {
        return Some(0.0);
    }
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    let rounds = (Circulant::new(request.ranks).rounds() + q - 1) as f64;
    Some(rounds * (request.t_comm(s) + request.t_comp(s)))
}

/// The transfers towards rank 0, round by round.
fn rounds(p: usize, segments: usize) -> impl Iterator<Item = Vec<Transfer>> {
    let graph = Circulant::new(p);
    let phase = graph.rounds();
    // One byte a rank and round: block numbers lie between -phase and phase.
    let narrow = |block: i64| i8::try_from(block).expect("phases are shorter than 128 rounds");
    let recv: Vec<i8> = (0..p)
        .flat_map(|r| graph.recv_schedule(r))
        .map(narrow)
        .collect();
    let count = if p == 1 { 0 } else { segments - 1 + phase };
    // Rounds left out at the start of the first phase.
    let skipped = if p == 1 {
        0
    } else {
        count.next_multiple_of(phase) - count
    };
    (0..count).rev().map(move |round| {
        let i = skipped + round;
        let (k, shift) = (i % phase, i / phase * phase);
        let segment = |block: i8| {
            // block + shift - skipped, where that is a segment.
            let place = shift.checked_add_signed(block.into())?;
            Some(place.checked_sub(skipped)?.min(segments - 1))
        };
        (1..p)
            .filter_map(|r| {
                let parent = (r + p - graph.skips()[k]) % p;
                Some(Transfer::new(segment(recv[r * phase + k])?, r, parent))
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_ranks_two_segments() {
        let transfers: Vec<Vec<_>> = rounds(3, 2)
            .map(|round| round.iter().map(|t| (t.from, t.to, t.segment)).collect())
            .collect();
        assert_eq!(
            transfers,
            [vec![(1, 2, 0), (2, 0, 1)], vec![(1, 0, 1)], vec![(2, 0, 0)]]
        );
    }

    #[test]
    fn every_rank_sends_each_segment_once_after_all_it_combines() {
        for p in 1..100 {
            for q in [1, 2, 3, 7, 20] {
                let mut sent = vec![vec![false; q]; p];
                let mut count = 0;
                for round in rounds(p, q) {
                    count += 1;
                    let mut senders = vec![false; p];
                    for t in &round {
                        let (s, from, to) = (t.segment as usize, t.from as usize, t.to as usize);
                        assert!(!sent[to][s], "p={p} q={q}: {to} has sent segment {s}");
                        assert!(!std::mem::replace(&mut sent[from][s], true));
                        assert!(!std::mem::replace(&mut senders[from], true));
                    }
                    let mut receivers: Vec<u32> = round.iter().map(|t| t.to).collect();
                    receivers.sort_unstable();
                    receivers.dedup();
                    assert_eq!(
                        receivers.len(),
                        round.len(),
                        "p={p} q={q}: one receive a round"
                    );
                    for t in &round {
                        let both = round
                            .iter()
                            .any(|u| u.from == t.to && u.segment == t.segment);
                        assert!(!both, "p={p} q={q}: a segment is sent while it is combined");
                    }
                }
                assert!(sent[1..].iter().flatten().all(|&s| s));
                let phase = Circulant::new(p).rounds();
                assert_eq!(count, if p == 1 { 0 } else { phase + q - 1 });
            }
        }
    }
}
