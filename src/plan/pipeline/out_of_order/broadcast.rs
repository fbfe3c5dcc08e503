//! Plans one broadcast on unidirectional ports, instant by instant; the search reverses it into a
//! reduction.

use std::collections::BTreeSet;

use crate::plan::Transfer;
use crate::random::Generator;

/// A broadcast under construction. Time runs from the end of the reduction to its start.
///
/// A sender prepares for `combine_time` before each transfer, and the transfer is decided at the
/// instant at which it starts: free ranks are assumed to have been preparing. So all busy ranks are
/// in transfers.
#[derive(Debug)]
pub(super) struct Broadcast<'a> {
    transfer_time: &'a [f64],
    /// The different preparation times, sorted.
    waits: Vec<f64>,
    /// Set `k` holds the segments for which a sender is prepared once the first `k` entries of
    /// `waits` have passed. Each set takes `words` words.
    prepared: Vec<u64>,
    /// By rank: the set of segments that it has, `words` words each.
    have: Vec<u64>,
    words: usize,
    /// By rank: how many segments it lacks.
    missing: Vec<usize>,
    /// By segment: how many ranks have it.
    holders: Vec<u32>,
    /// By rank: the end of its last transfer.
    free_at: Vec<f64>,
}

impl<'a> Broadcast<'a> {
    pub(super) fn new(p: usize, transfer_time: &'a [f64], combine_time: &'a [f64]) -> Self {
        /// If there are more different preparation times, this many stand for all of them, rounded
        /// up.
        const MAX_WAITS: usize = 64;
        let q = transfer_time.len();
        let words = q.div_ceil(64);
        let mut have = vec![0; p * words];
        (0..q).for_each(|segment| have[segment / 64] |= 1 << (segment % 64));
        let mut missing = vec![q; p];
        missing[0] = 0;
        let mut waits = combine_time.to_vec();
        waits.sort_by(f64::total_cmp);
        waits.dedup();
        let last = waits.len() - 1;
        if last > MAX_WAITS {
            waits = (0..=MAX_WAITS)
                .map(|i| waits[i * last / MAX_WAITS])
                .collect();
        }
        let mut prepared = vec![0; (waits.len() + 1) * words];
        for (segment, wait) in combine_time.iter().enumerate() {
            let longer = waits.partition_point(|w| w < wait);
            (longer + 1..=waits.len())
                .for_each(|k| prepared[k * words + segment / 64] |= 1 << (segment % 64));
        }
        Broadcast {
            transfer_time,
            waits,
            prepared,
            have,
            words,
            missing,
            holders: vec![1; q],
            free_at: vec![0.0; p],
        }
    }

    /// The minimum that [`Broadcast::plan`] subtracts from its budget.
    pub(super) fn min_steps(p: usize, q: usize) -> u64 {
        let transfers = (q as u64).saturating_mul(p as u64 - 1);
        transfers.saturating_mul(2 * Self::FREE_RANK + Self::choice(0, q))
    }

    /// Steps that one instant costs for each free rank.
    const FREE_RANK: u64 = 80;

    /// Steps that one transfer costs, if there are `free` free ranks.
    fn choice(free: usize, q: usize) -> u64 {
        (free / 4 + q / 8) as u64
    }

    /// Plans the whole broadcast with at most `cap` concurrent transfers. Returns `None` if
    /// `budget` is used up; its unit is a step of one or two nanoseconds.
    ///
    /// It always ends: at the last registered instant no rank is busy and every preparation is
    /// over. The root can then serve any rank that lacks a segment, and that registers a later
    /// instant.
    pub(super) fn plan(
        mut self,
        cap: usize,
        noise: f64,
        seed: u64,
        budget: &mut u64,
    ) -> Option<Vec<Transfer>> {
        let (p, q) = (self.missing.len(), self.transfer_time.len());
        let total = q * (p - 1);
        // A free rank can receive at once, and send after a preparation. Between the shortest and
        // the longest preparation time, other ranks become free often enough to provide instants.
        let mut waits = vec![0.0, self.waits[0], self.waits[self.waits.len() - 1]];
        waits.dedup();
        let mut random = Generator::new(seed);
        let mut plan = Vec::with_capacity(total);
        let mut informed = 1;
        // The instants at which a transfer may start, as bits: those have the same order as the
        // times.
        let mut instants: BTreeSet<u64> = waits.iter().map(|wait| wait.to_bits()).collect();
        while plan.len() < total
            && let Some(instant) = instants.pop_first()
        {
            let now = f64::from_bits(instant);
            let busy = self.free_at.iter().filter(|&&t| t > now).count();
            let room = cap.saturating_sub(busy / 2);
            let free = if room > 0 { p - busy } else { 0 };
            *budget = budget.checked_sub(p as u64 + Self::FREE_RANK * free as u64)?;
            // With very many ranks a single instant may cost more than the remaining budget.
            let pairs = room.min(free / 2).min(informed) as u64;
            budget.checked_sub(pairs.saturating_mul(Self::choice(free, q)))?;
            for (from, to) in self.pair(now, room, noise, &mut random) {
                *budget = budget.checked_sub(Self::choice(free, q))?;
                let Some(segment) = self.rarest(from, to, now) else {
                    continue;
                };
                self.have[to * self.words + segment / 64] |= 1 << (segment % 64);
                informed += usize::from(self.missing[to] == q);
                self.missing[to] -= 1;
                self.holders[segment] += 1;
                let end = now + self.transfer_time[segment];
                self.free_at[from] = end;
                self.free_at[to] = end;
                instants.extend(waits.iter().map(|wait| (end + wait).to_bits()));
                plan.push(Transfer::new(segment, from, to));
            }
        }
        Some(plan)
    }

    /// Up to `cap` pairs (sender, receiver) of ranks that are free at `now`.
    fn pair(
        &self,
        now: f64,
        cap: usize,
        noise: f64,
        random: &mut Generator,
    ) -> Vec<(usize, usize)> {
        /// The penalty for a receiver that loses a whole preparation, in segments.
        const LOSS: f64 = 2.0;
        let (mut senders, mut receivers) = (Vec::new(), Vec::new());
        let ranks = self.free_at.iter().enumerate();
        for (rank, &free_at) in ranks.filter(|&(_, &t)| cap > 0 && t <= now) {
            let noise = noise * random.unit();
            let missing = self.missing[rank] as f64;
            if free_at + self.waits[0] <= now && self.missing[rank] < self.transfer_time.len() {
                // The root sends first: a delay there delays all ranks later.
                let first = if rank == 0 { f64::INFINITY } else { 0.0 };
                senders.push((missing + noise - first, rank));
            }
            if self.missing[rank] > 0 {
                let idle = now - free_at;
                let lost = if idle < self.waits[0] {
                    idle / self.waits[0]
                } else {
                    f64::from(self.waits[0] > 0.0)
                };
                receivers.push((LOSS * lost - missing + noise, rank));
            }
        }
        senders.sort_by(|a, b| a.0.total_cmp(&b.0));
        receivers.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut receivers: Vec<usize> = receivers.into_iter().map(|(_, rank)| rank).collect();

        let mut paired = vec![false; self.missing.len()];
        let mut pairs = Vec::new();
        let mut common = self.common(&receivers);
        for &(_, from) in &senders {
            if pairs.len() == cap
                || paired[from]
                || !self.offers(from, &common, now).any(|word| word != 0)
            {
                continue;
            }
            if let Some(i) = receivers
                .iter()
                .position(|&to| !paired[to] && self.can_send(from, to, now))
            {
                let to = receivers.remove(i);
                (paired[from], paired[to]) = (true, true);
                pairs.push((from, to));
            } else {
                receivers.retain(|&rank| !paired[rank]);
                common = self.common(&receivers);
            }
        }
        let mut idle: Vec<usize> = receivers;
        if senders.first().is_some_and(|&(_, rank)| rank == 0) {
            idle.push(0);
        }
        idle.retain(|&rank| !paired[rank]);
        self.augment(&mut pairs, idle, cap, now);
        pairs
    }

    /// Splits pairs so that both ranks of a pair serve one idle rank each (augmenting paths of
    /// length three).
    ///
    /// With `combine_time = 0` this makes the matching as large as possible. Two ranks cannot be
    /// paired only if they have the same segments, so all ranks left over by a maximal matching
    /// have the same set. If no pair can be split, every pair contains one more rank with that set.
    fn augment(&self, pairs: &mut Vec<(usize, usize)>, mut idle: Vec<usize>, cap: usize, now: f64) {
        /// With `combine_time = 0` the first miss is final: see above.
        const MISSES: usize = 8;
        let mut misses = 0;
        while pairs.len() < cap
            && misses < MISSES
            && let Some(a) = idle.pop()
            && let Some(&b) = idle.last()
        {
            let split = pairs.iter().enumerate().find_map(|(i, &(c, d))| {
                let straight = self.orient(a, c, now).zip(self.orient(b, d, now));
                let pairs = straight.or_else(|| self.orient(a, d, now).zip(self.orient(b, c, now)));
                pairs.map(|(first, second)| (i, first, second))
            });
            if let Some((i, first, second)) = split {
                pairs[i] = first;
                pairs.push(second);
                idle.pop();
            } else {
                misses += 1;
            }
        }
    }

    /// The pair as (sender, receiver): the rank with more segments sends if it can.
    fn orient(&self, a: usize, b: usize, now: f64) -> Option<(usize, usize)> {
        let mut directions = [(a, b), (b, a)];
        directions.sort_by_key(|&(from, _)| self.missing[from]);
        directions
            .into_iter()
            .find(|&(from, to)| self.can_send(from, to, now))
    }

    /// Whether `from` has a segment that `to` lacks and that it is prepared to send at `now`.
    fn can_send(&self, from: usize, to: usize, now: f64) -> bool {
        self.offers(from, self.set(to), now).any(|word| word != 0)
    }

    fn set(&self, rank: usize) -> &[u64] {
        &self.have[rank * self.words..][..self.words]
    }

    /// The segments that all of these ranks have. A rank with no other segment can send to none of
    /// them.
    fn common(&self, ranks: &[usize]) -> Vec<u64> {
        let mut common = vec![u64::MAX; self.words];
        for &rank in ranks {
            for (common, word) in common.iter_mut().zip(self.set(rank)) {
                *common &= word;
            }
        }
        common
    }

    /// The segments that `from` has and is prepared for, except those in the set `to`, word by
    /// word.
    fn offers(&self, from: usize, to: &[u64], now: f64) -> impl Iterator<Item = u64> {
        let is_over = |wait: &f64| self.free_at[from] + wait <= now;
        let prepared = self.waits.partition_point(is_over) * self.words;
        let words = self.set(from).iter().zip(to);
        let words = words.zip(&self.prepared[prepared..][..self.words]);
        words.map(|((from, to), prepared)| from & !to & prepared)
    }

    /// The rarest segment that `from` can send to `to` now.
    fn rarest(&self, from: usize, to: usize, now: f64) -> Option<usize> {
        let mut rarest: Option<usize> = None;
        for (i, mut word) in self.offers(from, self.set(to), now).enumerate() {
            while word != 0 {
                let segment = 64 * i + word.trailing_zeros() as usize;
                word &= word - 1;
                if rarest.is_none_or(|r| self.holders[segment] < self.holders[r]) {
                    rarest = Some(segment);
                }
            }
        }
        rarest
    }
}

/// The half-duplex broadcast among four ranks in `floor(3q/2) + 1` rounds, which is its lower
/// bound.
///
/// Each pair of segments A, B takes three rounds, with ranks x, y, z in rotating roles: `0->x A`
/// and the late transfer of the previous pair; `0->y B, x->z A`; `0->z B, x->y A`. Then all ranks
/// have both segments, except that x lacks B and receives it late, from z.
pub(super) fn four_rank_broadcast(q: usize) -> Vec<Transfer> {
    let mut plan = Vec::with_capacity(3 * q);
    let mut late = None;
    let [mut x, mut y, mut z] = [1, 2, 3];
    for a in (0..q).step_by(2) {
        plan.push(Transfer::new(a, 0, x));
        plan.extend(late.take());
        if a + 1 < q {
            let b = a + 1;
            plan.extend([Transfer::new(b, 0, y), Transfer::new(a, x, z)]);
            plan.extend([Transfer::new(b, 0, z), Transfer::new(a, x, y)]);
            late = Some(Transfer::new(b, z, x));
            [x, y, z] = [y, z, x];
        } else {
            plan.extend([Transfer::new(a, 0, y), Transfer::new(a, x, z)]);
        }
    }
    plan.extend(late);
    plan
}

/// The transfer in the opposite direction, as it is seen backwards in time.
pub(super) fn reversed(t: Transfer) -> Transfer {
    Transfer {
        from: t.to,
        to: t.from,
        ..t
    }
}
