//! Matches sends with receives (rule 4 of [`crate::rules`]).
//!
//! Checker and simulator share this matching. The checker collects every mismatch, not only the
//! first.

use crate::error::{Error, Result};
use crate::schedule::{Schedule, Step};

/// In place of a step or node number: there is none, because the step has no partner.
pub(crate) const NONE: u32 = u32::MAX;

/// The partner of every step; steps are numbered consecutively over all ranks.
#[derive(Debug)]
pub(crate) struct Matching {
    /// By step: the number of its partner; [`NONE`] for local steps and unmatched transfers.
    pub(crate) mates: Vec<u32>,
    /// By rank: the number of its first step.
    pub(crate) first_step: Vec<u32>,
}

/// A transfer that cannot take place, or whose ends disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mismatch {
    /// A send without a receive, or a receive without a send: the `nth` (from 0) of its rank with
    /// `peer`, which has only `partners` matching steps.
    Alone {
        rank: usize,
        step: usize,
        peer: usize,
        nth: usize,
        partners: usize,
    },
    /// The two ends disagree on the length.
    Length {
        from: usize,
        send_step: usize,
        sent: usize,
        to: usize,
        recv_step: usize,
        expected: usize,
    },
}

impl Matching {
    /// Matches the `n`-th send from `a` to `b` with the `n`-th receive at `b` from `a`, and calls
    /// `mismatch` for every mismatch.
    ///
    /// Complexity: linear in the number of steps, plus sorting each rank's receives by sender.
    ///
    /// # Errors
    /// When there are too many steps or ranks for 32-bit numbers.
    pub(crate) fn new(schedule: &Schedule, mut mismatch: impl FnMut(Mismatch)) -> Result<Matching> {
        let programs = schedule.programs();
        if u32::try_from(schedule.steps() * 2).is_err() {
            return Err(Error::usage(format!(
                "{} steps are more than the 2^31 that can be numbered",
                schedule.steps()
            )));
        }
        let mut mates = vec![NONE; schedule.steps()];
        let mut first_step = Vec::with_capacity(programs.len());
        let mut steps = 0u32;
        // Sends to each rank, ordered by sender, then program: one stable counting sort by
        // receiver.
        let mut sends: Vec<(u32, u32)> = Vec::new();
        for program in programs {
            first_step.push(steps);
            for step in program {
                if let Step::Send { to, .. } = step {
                    sends.push((rank_u32(*to)?, steps));
                }
                steps += 1;
            }
        }
        let (ends, sorted) = grouped(programs.len(), sends.iter().copied());
        // The last rank whose first step is not after `step`. Ranks without steps have the same
        // first step as their successor.
        let rank_of = |step: u32| first_step.partition_point(|&f| f <= step) - 1;
        let local = |rank: usize, number: u32| (number - first_step[rank]) as usize;
        let mut receives: Vec<(usize, u32)> = Vec::new();
        for (rank, program) in programs.iter().enumerate() {
            receives.clear();
            for (step, number) in program.iter().zip(first_step[rank]..) {
                if let Step::Recv { from, .. } | Step::RecvCombine { from, .. } = step {
                    receives.push((*from, number));
                }
            }
            receives.sort_by_key(|r| r.0);
            let start = if rank == 0 {
                0
            } else {
                ends[rank - 1] as usize
            };
            let sends = &sorted[start..ends[rank] as usize];
            let (mut s, mut r) = (0, 0);
            while s < sends.len() || r < receives.len() {
                let sender = sends.get(s).map(|&n| rank_of(n));
                let from = match (sender, receives.get(r)) {
                    (Some(a), Some(b)) => a.min(b.0),
                    (Some(a), None) => a,
                    (None, Some(b)) => b.0,
                    (None, None) => break,
                };
                let mut nth = 0;
                while let (Some(&send), Some(&(f, receive))) = (sends.get(s), receives.get(r)) {
                    if f != from || !belongs(&first_step, from, send) {
                        break;
                    }
                    mates[send as usize] = receive;
                    mates[receive as usize] = send;
                    let (send_step, recv_step) = (local(from, send), local(rank, receive));
                    let sent = programs[from][send_step].len();
                    let expected = program[recv_step].len();
                    if sent != expected {
                        mismatch(Mismatch::Length {
                            from,
                            send_step,
                            sent,
                            to: rank,
                            recv_step,
                            expected,
                        });
                    }
                    (s, r, nth) = (s + 1, r + 1, nth + 1);
                }
                let partners = nth;
                while let Some(&send) = sends.get(s).filter(|&&n| belongs(&first_step, from, n)) {
                    let step = local(from, send);
                    mismatch(Mismatch::Alone {
                        rank: from,
                        step,
                        peer: rank,
                        nth,
                        partners,
                    });
                    (s, nth) = (s + 1, nth + 1);
                }
                while let Some(&(_, receive)) = receives.get(r).filter(|&&(f, _)| f == from) {
                    let step = local(rank, receive);
                    mismatch(Mismatch::Alone {
                        rank,
                        step,
                        peer: from,
                        nth,
                        partners,
                    });
                    (r, nth) = (r + 1, nth + 1);
                }
            }
        }
        Ok(Matching { mates, first_step })
    }
}

/// Whether step number `number` belongs to `rank`.
fn belongs(first_step: &[u32], rank: usize, number: u32) -> bool {
    first_step[rank] <= number && first_step.get(rank + 1).is_none_or(|&f| number < f)
}

/// Narrows a rank to 32 bits, as used in the timing graph.
pub(crate) fn rank_u32(rank: usize) -> Result<u32> {
    u32::try_from(rank).map_err(|_| Error::usage("more than 2^32 ranks"))
}

/// Groups `(key, value)` pairs by key with a counting sort. Returns the end of each group and the
/// values.
pub(crate) fn grouped(
    keys: usize,
    pairs: impl Iterator<Item = (u32, u32)> + Clone,
) -> (Vec<u32>, Vec<u32>) {
    let mut ends = vec![0u32; keys];
    for (k, _) in pairs.clone() {
        ends[k as usize] += 1;
    }
    let mut sum = 0;
    for e in &mut ends {
        // Ends start as beginnings and advance as values are placed.
        let count = *e;
        *e = sum;
        sum += count;
    }
    let mut values = vec![0u32; sum as usize];
    for (k, v) in pairs {
        let at = &mut ends[k as usize];
        values[*at as usize] = v;
        *at += 1;
    }
    (ends, values)
}
