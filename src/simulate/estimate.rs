//! What a native run takes on so many cores: an estimate that no model time is.
//!
//! Ranks are dealt to the cores in turn, and each core goes round its ranks. A rank that has its
//! turn goes as far as it can, and what it does takes its core's time: messages that it offers or
//! takes, copies, combinations. Then the core switches to the next rank, whether that can go on
//! or not, as yielding ranks do. The order in which a core goes round is the system's: the estimate
//! is the mean over a few orders.
//!
//! The one worker of a core in a folded run takes turns at its ranks by itself: at those that can
//! go on, and almost for nothing.

mod copy_costs;
mod eager;
mod rendezvous;

use super::{Prepared, max_time};
use crate::cost::{CostModel, bytes};
use crate::error::Result;
use crate::schedule::{LocalOrder, OrderScratch, Schedule, Step};
use copy_costs::CopyCosts;
use eager::Eager;
use rendezvous::Rendezvous;

/// The cores of a native run, and what they take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CoreModel {
    /// Number of cores.
    pub cores: usize,
    /// What a message costs a rank that need not wait.
    pub overhead: f64,
    /// Until another rank of the same core has its turn.
    pub switch: f64,
    /// Longest message, in bytes, whose sender goes on without waiting for its receiver. A
    /// schedule with a longer one has everybody wait.
    pub eager: u64,
    /// Longest of these, in bytes, that is copied where its sender overwrites it later, so that it
    /// need not wait for its receiver there.
    pub copied: u64,
    /// Whether one worker a core takes turns at a contiguous part of the ranks, and only at those
    /// that can go on (a folded run). Otherwise ranks are dealt to the cores in turn, and each
    /// core goes round all of its own.
    pub multiplexed: bool,
}

impl CoreModel {
    /// The core of `rank`, one of `ranks`.
    fn core(&self, rank: usize, ranks: usize) -> usize {
        if self.multiplexed {
            // The last of them whose first rank is not beyond this one.
            ((rank + 1) * self.cores.min(ranks) - 1) / ranks
        } else {
            rank % self.cores
        }
    }
}

/// How long `schedule` takes, in the unit of `cost`; infinite where that would be long to find out.
///
/// Time: `O(s)` for each time that a core goes round, for `s` ranks, at most a few dozen times the
/// number of steps in all.
///
/// # Errors
/// As [`Prepared::new`].
pub(crate) fn estimate_best(
    schedule: &Schedule,
    cost: &CostModel,
    element_bytes: u64,
    core_model: &CoreModel,
) -> Result<f64> {
    let prepared = Prepared::new(schedule, cost.overlap)?;
    let mut scratch = OrderScratch::default();
    let mut programs = Vec::with_capacity(schedule.ranks());
    for steps in schedule.programs() {
        let mut order = LocalOrder::default();
        order.analyse(steps, schedule.ports(), cost.overlap, &mut scratch)?;
        programs.push((steps, order));
    }
    let copy_costs = CopyCosts::new(schedule, &prepared, cost, element_bytes, core_model);
    let steps: usize = schedule.programs().iter().map(Vec::len).sum();
    let max_turns = 64 * (steps + schedule.ranks());
    let sends = schedule.programs().iter().flatten().filter(|s| s.is_send());
    let longest = sends.map(|s| bytes(s.len(), element_bytes)).max();
    let eager = longest.is_none_or(|n| n <= core_model.eager);
    // Who begins matters the more the fewer there are.
    let orders = if schedule.ranks() <= 16 { 12 } else { 6 };
    let mut sum = 0.0;
    for order in 0..orders {
        let mut cores = Core::all(schedule.ranks(), core_model, order);
        // The second repetition begins where the first has ended.
        for repetition in 0..2 {
            let time = if eager {
                let ranks = Eager::new(&prepared, &programs, &copy_costs, schedule.ports())?;
                rounds(ranks, &mut cores, core_model, max_turns)
            } else {
                let ranks = Rendezvous::new(&prepared, &programs, &copy_costs, schedule.ports());
                rounds(ranks, &mut cores, core_model, max_turns)
            };
            if repetition > 0 {
                sum += time;
            }
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a few")]
    let mean = sum / orders as f64;
    Ok(mean)
}

type Programs<'a> = [(&'a Vec<Step>, LocalOrder)];

/// A number like any other for each rank in each order.
fn shuffled(rank: usize, order: usize) -> u64 {
    // The finishing steps of SplitMix64: each a permutation, so no two ranks get the same.
    let mut word =
        (rank as u64).wrapping_add((order as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Ranks that can be given turns.
trait Ranks {
    /// `rank` goes on from `now` as far as it can, and says when it stops; whether it did anything.
    fn turn(&mut self, rank: usize, now: &mut f64) -> bool;

    fn is_done(&self, rank: usize) -> bool;
}

/// The ranks of a core, in the order in which it goes round.
struct Core {
    ranks: Vec<usize>,
    /// When it begins, in parts of a turn, of which it is a small one: the cores have met.
    late: f64,
    /// Whose turn is next.
    next: usize,
    /// Who was the last to be done.
    last: usize,
    now: f64,
    left: usize,
    /// Turns in which nothing was done, one after another.
    idle: usize,
}

impl Core {
    fn all(ranks: usize, core_model: &CoreModel, order: usize) -> Vec<Core> {
        #[expect(clippy::cast_precision_loss, reason = "an arbitrary part")]
        let part = |word: u64| word as f64 / u64::MAX as f64;
        let core = |core| {
            let mut mine: Vec<usize> = (0..ranks)
                .filter(|&r| core_model.core(r, ranks) == core)
                .collect();
            if !core_model.multiplexed {
                mine.sort_by_key(|&r| shuffled(r, order));
            }
            Core {
                ranks: mine,
                late: 0.3 * part(shuffled(core, order)),
                next: 0,
                last: 0,
                now: 0.0,
                left: 0,
                idle: 0,
            }
        };
        (0..core_model.cores.min(ranks)).map(core).collect()
    }

    /// Until it looks at a rank again.
    fn turn(&self, core_model: &CoreModel) -> f64 {
        if self.ranks.len() > 1 {
            core_model.switch
        } else {
            core_model.overhead
        }
    }
}

/// Goes round until all ranks are done: when the last one is. All meet before: who was done last is
/// the first on its core to go on from there, gives the core up to all others in turn, and the last
/// of these need not give it up when everybody has come.
fn rounds(
    mut ranks: impl Ranks,
    cores: &mut [Core],
    core_model: &CoreModel,
    max_turns: usize,
) -> f64 {
    for core in &mut *cores {
        core.left = core.ranks.iter().filter(|&&r| !ranks.is_done(r)).count();
        let n = core.ranks.len();
        (core.now, core.idle) = (core.late * core.turn(core_model), 0);
        core.next = (core.last + n - 1) % n;
    }
    let mut makespan = 0.0;
    for _ in 0..max_turns {
        let unfinished = cores.iter_mut().filter(|c| c.left > 0);
        let Some(core) = unfinished.min_by(|a, b| a.now.total_cmp(&b.now)) else {
            return makespan;
        };
        let rank = core.ranks[core.next];
        let moved = !ranks.is_done(rank) && ranks.turn(rank, &mut core.now);
        if moved {
            core.idle = 0;
            makespan = max_time(makespan, core.now);
            if ranks.is_done(rank) {
                core.left -= 1;
                core.last = core.next;
            }
        } else {
            core.idle += 1;
        }
        core.next = (core.next + 1) % core.ranks.len();
        // A worker takes no turns at ranks that cannot go on, but looks out for others that can.
        if moved || !core_model.multiplexed || core.idle > core.ranks.len() {
            core.now += core.turn(core_model);
        }
        if core.idle > core.ranks.len() {
            // Nothing changes here until another core does something.
            let at = core.now;
            let others = cores.iter().filter(|c| c.now > at);
            let next = others.map(|c| c.now).fold(f64::INFINITY, f64::min);
            if let Some(core) = cores.iter_mut().find(|c| c.left > 0 && c.now == at)
                && next.is_finite()
            {
                core.now = next;
            }
        }
    }
    f64::INFINITY
}
