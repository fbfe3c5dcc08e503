//! Matches sends with receives (rule 4 of [`crate::rules`]).
//!
//! Checker and simulator share this matching. The checker collects every mismatch, not only the
//! first.

use crate::error::{Error, Result};
use crate::machine::numbers::id;
use crate::schedule::{Schedule, Step};

/// In place of a step or node number: there is none, because the step has no partner.
pub(crate) const NONE: u32 = u32::MAX;

/// The partner of every step; steps are numbered consecutively over all ranks.
#[derive(Debug)]
pub struct Matching {
    /// By step: the number of its partner; [`NONE`] for local steps and unmatched transfers.
    pub(super) mates: Vec<u32>,
    /// By rank: the number of its first step.
    pub first_step: Vec<u32>,
}

/// A transfer that cannot take place, or whose ends disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say what they are")]
pub enum Mismatched {
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
    pub fn new(schedule: &Schedule, mut mismatch: impl FnMut(Mismatched)) -> Result<Matching> {
        let programs = schedule.programs();
        if u32::try_from(schedule.steps() * 2).is_err() {
            return Err(Error::usage(format!(
                "{} steps are more than the 2^31 that can be numbered",
                schedule.steps()
            )));
        }
        let mut steps = 0;
        let first_step = programs.iter().map(|program| {
            let first = steps;
            steps += id(program.len());
            first
        });
        // A stable sort by receiver keeps the order by sender and program.
        let sends = Grouped::new(programs.len(), numbered_sends(programs)?.iter().copied());
        let mut matching = Matching {
            mates: vec![NONE; schedule.steps()],
            first_step: first_step.collect(),
        };
        let mut receives: Vec<(usize, u32)> = Vec::new();
        for (rank, program) in programs.iter().enumerate() {
            receives.clear();
            for (step, number) in program.iter().zip(matching.first_step[rank]..) {
                if let Step::Recv { from, .. } | Step::RecvCombine { from, .. } = step {
                    receives.push((*from, number));
                }
            }
            receives.sort_by_key(|r| r.0);
            matching.match_rank(programs, rank, sends.of(rank), &receives, &mut mismatch);
        }
        Ok(matching)
    }

    /// The partner of step `number`, if it has one.
    pub fn mate(&self, number: usize) -> Option<usize> {
        let mate = self.mates[number];
        (mate != NONE).then_some(mate as usize)
    }

    /// The step of `peer` that a step of a rank, a transfer with `peer`, meets, if there is one.
    pub fn partner(&self, (rank, step): (usize, usize), peer: usize) -> Option<usize> {
        let mate = self.mate(self.first_step[rank] as usize + step)?;
        Some(mate - self.first_step[peer] as usize)
    }

    /// Matches the sends to rank `to` with its receives; both are sorted by sender, then program.
    fn match_rank(
        &mut self,
        programs: &[Vec<Step>],
        to: usize,
        mut sends: &[u32],
        mut receives: &[(usize, u32)],
        mismatch: &mut impl FnMut(Mismatched),
    ) {
        loop {
            let sender = sends.first().map(|&send| self.rank_of(send));
            let from = match (sender, receives.first()) {
                (Some(a), Some(b)) => a.min(b.0),
                (Some(a), None) => a,
                (None, Some(b)) => b.0,
                (None, None) => return,
            };
            let sent = sends.iter().take_while(|&&n| self.belongs(from, n)).count();
            let received = receives.iter().take_while(|r| r.0 == from).count();
            let (sends_from, later_sends) = sends.split_at(sent);
            let (receives_from, later_receives) = receives.split_at(received);
            self.match_pair(programs, (from, to), sends_from, receives_from, mismatch);
            (sends, receives) = (later_sends, later_receives);
        }
    }

    /// Matches the `n`-th of these sends, all from `from` to `to`, with the `n`-th of the receives.
    fn match_pair(
        &mut self,
        programs: &[Vec<Step>],
        (from, to): (usize, usize),
        sends: &[u32],
        receives: &[(usize, u32)],
        mismatch: &mut impl FnMut(Mismatched),
    ) {
        for (&send, &(_, receive)) in sends.iter().zip(receives) {
            self.mates[send as usize] = receive;
            self.mates[receive as usize] = send;
            let (send_step, recv_step) = (self.local(from, send), self.local(to, receive));
            let sent = programs[from][send_step].len();
            let expected = programs[to][recv_step].len();
            if sent != expected {
                mismatch(Mismatched::Length {
                    from,
                    send_step,
                    sent,
                    to,
                    recv_step,
                    expected,
                });
            }
        }
        let partners = sends.len().min(receives.len());
        for (nth, &send) in sends.iter().enumerate().skip(partners) {
            mismatch(Mismatched::Alone {
                rank: from,
                step: self.local(from, send),
                peer: to,
                nth,
                partners,
            });
        }
        for (nth, &(_, receive)) in receives.iter().enumerate().skip(partners) {
            mismatch(Mismatched::Alone {
                rank: to,
                step: self.local(to, receive),
                peer: from,
                nth,
                partners,
            });
        }
    }

    /// The rank of a step: the last one whose first step is not after it. Ranks without steps have
    /// the same first step as their successor.
    fn rank_of(&self, number: u32) -> usize {
        self.first_step.partition_point(|&f| f <= number) - 1
    }

    /// The index in the program of `rank` of its step `number`.
    fn local(&self, rank: usize, number: u32) -> usize {
        (number - self.first_step[rank]) as usize
    }

    /// Whether step `number` belongs to `rank`.
    fn belongs(&self, rank: usize, number: u32) -> bool {
        let next = self.first_step.get(rank + 1);
        self.first_step[rank] <= number && next.is_none_or(|&f| number < f)
    }
}

/// The receiver and the number of every send, ordered by sender, then program.
fn numbered_sends(programs: &[Vec<Step>]) -> Result<Vec<(u32, u32)>> {
    let mut sends = Vec::new();
    for (step, number) in programs.iter().flatten().zip(0..) {
        if let Step::Send { to, .. } = step {
            sends.push((rank_u32(*to)?, number));
        }
    }
    Ok(sends)
}

/// Narrows a rank to 32 bits, as used in the timing graph.
pub(crate) fn rank_u32(rank: usize) -> Result<u32> {
    u32::try_from(rank).map_err(|_| Error::usage("more than 2^32 ranks"))
}

/// Lists of values, one for each key from 0, stored one after the other.
#[derive(Debug, Clone, Default)]
pub struct Grouped<T = u32> {
    /// By key: where its list ends, and the next one begins.
    ends: Vec<u32>,
    values: Vec<T>,
}

impl<T: Copy + Default> Grouped<T> {
    /// Groups `(key, value)` pairs by key with a counting sort, which keeps the order of values.
    pub fn new(keys: usize, pairs: impl Iterator<Item = (u32, T)> + Clone) -> Self {
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
        let mut values = vec![T::default(); sum as usize];
        for (k, v) in pairs {
            let at = &mut ends[k as usize];
            values[*at as usize] = v;
            *at += 1;
        }
        Grouped { ends, values }
    }

    /// The values of `key`.
    ///
    /// # Panics
    /// When there is no such key.
    pub fn of(&self, key: usize) -> &[T] {
        &self.values[self.range(key)]
    }

    /// Where the values of `key` lie among those of all keys.
    pub(crate) fn range(&self, key: usize) -> std::ops::Range<usize> {
        let start = if key == 0 { 0 } else { self.ends[key - 1] };
        start as usize..self.ends[key] as usize
    }

    pub(crate) fn into_values(self) -> Vec<T> {
        self.values
    }

    /// The values of every key, in order.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[T]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let values = &self.values[start..end as usize];
            start = end as usize;
            values
        })
    }

    /// Appends the values of the next key.
    pub(crate) fn push(&mut self, values: impl Iterator<Item = T>) {
        self.values.extend(values);
        self.ends.push(id(self.values.len()));
    }

    /// No keys, with room for as many as `other` has.
    pub(crate) fn with_capacity_of(other: &Grouped<T>) -> Self {
        Grouped {
            ends: Vec::with_capacity(other.ends.len()),
            values: Vec::with_capacity(other.values.len()),
        }
    }
}
