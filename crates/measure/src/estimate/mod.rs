//! Estimates the wall-clock time of a native run on a given number of cores: a heuristic, unlike
//! model time.
//!
//! Ranks are assigned to the cores round-robin, and each core polls its ranks cyclically. A polled
//! rank progresses as far as it can: the executors of a team's runs execute its program
//! (`VirtualRun`). Nothing is moved: offering and taking messages, copies and combinations use the
//! core's time (`VirtualMessages`). The core then switches to the next rank, whether or not
//! that rank can progress, as yielding ranks do. The order in which a core polls its ranks is up to
//! the operating system, so the estimate is the mean over a few orders.
//!
//! In a multiplexed run the single worker of a core schedules its ranks itself: it polls only ranks
//! that can progress, at almost no cost.

mod choice;
mod copy_costs;
mod messages;

pub use choice::{choose_native, choose_native_among, is_for};

use copy_costs::CopyCosts;
use messages::VirtualMessages;
use oneport::error::Result;
use oneport::internal::numbers::bytes;
use oneport::internal::{VirtualRanks, VirtualRun, worker_of};
use oneport::machine::CostModel;
use oneport::run::Tuning;
use oneport::schedule::Schedule;

/// The cores of a native run and their overheads, in the time unit of the costs (nanoseconds for a
/// profile's).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CoreModel {
    /// Number of cores.
    pub cores: usize,
    /// Overhead of a message for a rank that does not wait.
    pub overhead: f64,
    /// Time until another rank of the same core runs.
    pub switch: f64,
    /// Longest message, in bytes, whose sender continues without waiting for its receiver. If a
    /// schedule has a longer one, all its transfers are rendezvous.
    pub eager: u64,
    /// Longest of these messages, in bytes, that is copied if its sender overwrites it later, so
    /// that the sender need not wait for the receiver then.
    pub copied: u64,
    /// Whether one worker per core polls a contiguous range of ranks, and only those that can
    /// progress (a multiplexed run). Otherwise ranks are assigned to the cores round-robin, and
    /// each core polls all of its ranks.
    pub multiplexed: bool,
    /// Constants of the machine.
    pub tuning: Tuning,
}

impl CoreModel {
    /// The core of `rank`, for `ranks` ranks in total.
    fn core(&self, rank: usize, ranks: usize) -> usize {
        if self.multiplexed {
            worker_of(rank, self.cores.min(ranks), ranks)
        } else {
            rank % self.cores
        }
    }
}

/// Estimates the time of `schedule`, in the unit of `cost`; infinite if computing the estimate
/// would take too long.
///
/// Time: `O(s)` for each pass over the ranks of a core, for `s` ranks; in total at most a few dozen
/// times the number of steps.
fn estimate_best(schedule: &Schedule, cost: &CostModel, core_model: &CoreModel) -> Result<f64> {
    let mut sends = schedule.programs().iter().flatten().filter(|s| s.is_send());
    let is_eager = sends.all(|s| bytes(s.len(), schedule.element_bytes()) <= core_model.eager);
    let copied = is_eager.then_some(core_model.copied);
    let run = VirtualRun::new(schedule, cost, copied, core_model.cores)?;
    let mut ranks = run.executors();
    let copy_costs = CopyCosts::new(schedule, cost, core_model);
    let steps: usize = schedule.programs().iter().map(Vec::len).sum();
    let max_polls = 64 * (steps + schedule.ranks());
    // The fewer ranks there are, the more the order matters.
    let orders = if schedule.ranks() <= 16 { 12 } else { 6 };
    let mut sum = 0.0;
    for order in 0..orders {
        let mut cores = VirtualCore::all(schedule.ranks(), core_model, order);
        // The second repetition starts where the first one has ended.
        for repetition in 0..2 {
            ranks.begin();
            let mut messages = VirtualMessages::new(&run, &copy_costs);
            let time =
                poll_until_done(&mut ranks, &mut messages, &mut cores, core_model, max_polls)?;
            if repetition > 0 {
                sum += time;
            }
        }
    }
    let mean = sum / orders as f64;
    Ok(mean)
}

/// A pseudo-random number for each rank in each order.
fn shuffled(rank: usize, order: usize) -> u64 {
    // The final steps of SplitMix64. Each is a permutation, so no two ranks get the same number.
    let mut word =
        (rank as u64).wrapping_add((order as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// A core with its ranks, in the order in which it polls them.
struct VirtualCore {
    ranks: Vec<usize>,
    /// Delay of its start as a fraction of a poll; small, because the cores have just synchronised.
    start_delay: f64,
    /// Index of the rank that is polled next.
    next: usize,
    /// Index of the rank that finished last.
    last: usize,
    now: f64,
    unfinished_ranks: usize,
    /// Number of consecutive polls without progress.
    idle: usize,
}

impl VirtualCore {
    fn all(ranks: usize, core_model: &CoreModel, order: usize) -> Vec<VirtualCore> {
        let part = |word: u64| word as f64 / u64::MAX as f64;
        let core = |core| {
            let mut mine: Vec<usize> = (0..ranks)
                .filter(|&r| core_model.core(r, ranks) == core)
                .collect();
            if !core_model.multiplexed {
                mine.sort_by_key(|&r| shuffled(r, order));
            }
            VirtualCore {
                ranks: mine,
                start_delay: 0.3 * part(shuffled(core, order)),
                next: 0,
                last: 0,
                now: 0.0,
                unfinished_ranks: 0,
                idle: 0,
            }
        };
        (0..core_model.cores.min(ranks)).map(core).collect()
    }

    /// Time until the core polls a rank again. A rank with a core of its own spins.
    fn poll_time(&self, core_model: &CoreModel) -> f64 {
        /// Polls that take as long as the overhead of a message.
        const SPINS: f64 = 4.0;
        if self.ranks.len() > 1 {
            core_model.switch
        } else {
            core_model.overhead / SPINS
        }
    }
}

/// Polls cyclically until all ranks have finished, and returns the time when the last one does.
///
/// A barrier precedes the run. On each core, the rank that finished last is the first to leave it;
/// it then yields to all other ranks in turn, and the last of these need not yield once all have
/// arrived.
fn poll_until_done(
    ranks: &mut VirtualRanks<'_>,
    messages: &mut VirtualMessages<'_>,
    cores: &mut [VirtualCore],
    core_model: &CoreModel,
    max_polls: usize,
) -> Result<f64> {
    for core in &mut *cores {
        core.unfinished_ranks = core.ranks.iter().filter(|&&r| !ranks.is_done(r)).count();
        let n = core.ranks.len();
        (core.now, core.idle) = (core.start_delay * core.poll_time(core_model), 0);
        core.next = (core.last + n - 1) % n;
    }
    let mut makespan = 0.0;
    for _ in 0..max_polls {
        let unfinished = cores.iter_mut().filter(|c| c.unfinished_ranks > 0);
        let Some(core) = unfinished.min_by(|a, b| a.now.total_cmp(&b.now)) else {
            return Ok(makespan);
        };
        let rank = core.ranks[core.next];
        let free = core.now.max(messages.busy[rank]);
        (messages.rank, messages.now) = (rank, free);
        let progressed = !ranks.is_done(rank) && ranks.poll(rank, messages)?;
        core.now = messages.now;
        if progressed {
            core.idle = 0;
            makespan = makespan.max(core.now);
            if ranks.is_done(rank) {
                core.unfinished_ranks -= 1;
                core.last = core.next;
            }
        } else {
            core.idle += 1;
        }
        core.next = (core.next + 1) % core.ranks.len();
        // A worker does not poll ranks that cannot progress, but checks whether others can.
        if progressed || !core_model.multiplexed || core.idle > core.ranks.len() {
            core.now += core.poll_time(core_model);
        }
        if core.idle > core.ranks.len() {
            // Nothing changes on this core until another core progresses.
            let at = core.now;
            let others = cores.iter().filter(|c| c.now > at);
            let next = others.map(|c| c.now).fold(f64::INFINITY, f64::min);
            if let Some(core) = cores
                .iter_mut()
                .find(|c| c.unfinished_ranks > 0 && c.now == at)
                && next.is_finite()
            {
                core.now = next;
            }
        }
    }
    Ok(f64::INFINITY)
}
