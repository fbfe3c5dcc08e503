//! Detects cores that other processes keep busy, so that the ranks there block instead of yielding.
//!
//! Among ranks that wait for each other, a yield is a switch of half a microsecond. If another
//! thread computes on the same core, a yield gives that thread the rest of the time slice: it then
//! has the core for some milliseconds, and a collective needs dozens of yields one after another. A
//! rank that blocks instead gives nothing away, and runs soon after it has been woken. But where
//! ranks have their cores to themselves, blocking takes several times as long as yielding.
//!
//! So each core is in one of three modes:
//!
//! - `YIELDS`: its ranks yield, and a few of all yields are timed. A slow yield starts `WATCHES`:
//!   either other threads have the core, or ranks that compute.
//! - `WATCHES`: its ranks yield, and measure the time from one rank's yield until the next rank
//!   returns from one, in which no rank had the core. After [`WATCH`], the core changes to `BLOCKS`
//!   if others had half of that time, otherwise back to `YIELDS`.
//! - `BLOCKS`: its ranks block as soon as they have to wait. When the period of blocking is over,
//!   the core changes to `WATCHES`. If that finds the same again, the next period is twice as long.

use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use super::load::Load;
use super::sync::{AtomicBool, AtomicU32, AtomicU64, Mutex, Ordering::Relaxed};
use crate::run::tuning::{
    FOREIGN_PERIOD, MAX_BLOCK, MIN_BLOCK, PATIENCE, SWITCH, TIMED_YIELDS, WATCH,
};

pub(super) const YIELDS: u32 = 0;
const WATCHES: u32 = 1;
pub(super) const BLOCKS: u32 = 2;

/// What is known about the cores of a team. All of it is a hint: if ranks of one core disagree,
/// only time is lost.
#[derive(Debug)]
pub(crate) struct Contention {
    pub(in crate::run) cores: Box<[CachePadded<CoreState>]>,
    /// The system's numbers of these cores.
    ids: Vec<usize>,
    epoch: Instant,
    /// Whether ranks of some core have begun to block in this run.
    pub(super) noticed: AtomicBool,
    /// The load at the beginning of this run, or when `noticed` was set.
    before: Mutex<Option<Load>>,
}

/// The state of one core. Times are in nanoseconds; points in time count from the epoch.
#[derive(Debug)]
pub(in crate::run) struct CoreState {
    pub(super) mode: AtomicU32,
    /// How long a yield may take before the core is watched.
    pub(in crate::run) patience: Duration,
    /// When the mode ends.
    pub(super) until: AtomicU64,
    /// While watching: the last time at which a rank is known to have had the core.
    given: AtomicU64,
    /// While watching: for how long others have had the core.
    pub(super) lost: AtomicU64,
    /// Length of the current period of blocking.
    block: AtomicU64,
}

impl Contention {
    /// Starts in `YIELDS`. `ranks` gives the number of ranks on each core, `ids` the system's
    /// numbers of the cores.
    pub(crate) fn new(ranks: impl Iterator<Item = u32>, ids: Vec<usize>, epoch: Instant) -> Self {
        let core = |ranks| {
            CachePadded::new(CoreState {
                mode: AtomicU32::new(YIELDS),
                patience: PATIENCE + SWITCH * ranks,
                until: AtomicU64::new(0),
                given: AtomicU64::new(0),
                lost: AtomicU64::new(0),
                block: AtomicU64::new(0),
            })
        };
        Contention {
            cores: ranks.map(core).collect(),
            ids,
            epoch,
            noticed: AtomicBool::new(false),
            before: Mutex::new(None),
        }
    }

    /// Yields, for a rank of core `core`. `yields` counts the rank's yields. False, without
    /// yielding, if the rank must block instead.
    #[inline]
    pub(crate) fn try_yield(&self, core: usize, yields: &AtomicU32) -> bool {
        let core = &self.cores[core];
        if core.mode.load(Relaxed) != YIELDS {
            return self.yield_watched(core);
        }
        let n = yields.load(Relaxed).wrapping_add(1);
        yields.store(n, Relaxed);
        if n.is_multiple_of(TIMED_YIELDS) {
            self.yield_timed(core);
        } else {
            std::thread::yield_now();
        }
        true
    }

    /// Notes that a rank of core `core` is about to block.
    pub(crate) fn before_block(&self, core: usize) {
        let core = &self.cores[core];
        if core.mode.load(Relaxed) == WATCHES {
            core.given.store(self.now(), Relaxed);
        }
    }

    /// Begins a run. Reading the load takes about 20 us, so it is read only in a team's first run
    /// and where ranks block.
    pub(crate) fn begin(&self, first_run: bool) {
        let read_load = first_run || self.any_blocks();
        self.noticed.store(false, Relaxed);
        *self.before.lock() = if read_load {
            Load::now(&self.ids)
        } else {
            None
        };
    }

    /// The percentage of the cores' time that others had in this run, if it is known and large
    /// enough to report.
    pub(crate) fn percent_by_others(&self) -> Option<u64> {
        let before = self.before.lock().take()?;
        if !self.noticed.load(Relaxed) && !self.any_blocks() {
            return None;
        }
        let now = Load::now(&self.ids)?;
        now.percent_by_others_since(&before, now.own_since(&before))
    }

    pub(super) fn any_blocks(&self) -> bool {
        let mut cores = self.cores.iter();
        cores.any(|core| core.mode.load(Relaxed) == BLOCKS)
    }

    #[cold]
    fn yield_timed(&self, core: &CoreState) {
        let start = Instant::now();
        std::thread::yield_now();
        if start.elapsed() > core.patience {
            core.block.store(0, Relaxed);
            self.watch(core, self.now());
        }
    }

    /// As [`Contention::try_yield`], on a core in mode `WATCHES` or `BLOCKS`.
    #[cold]
    fn yield_watched(&self, core: &CoreState) -> bool {
        let now = self.now();
        if core.mode.load(Relaxed) == BLOCKS {
            if now < core.until.load(Relaxed) {
                return false;
            }
            self.watch(core, now);
        }
        core.given.store(now, Relaxed);
        std::thread::yield_now();
        let now = self.now();
        let between = now.saturating_sub(core.given.load(Relaxed));
        if between > nanoseconds(FOREIGN_PERIOD) {
            core.lost.fetch_add(between, Relaxed);
        }
        core.given.store(now, Relaxed);
        if now >= core.until.load(Relaxed) && core.mode.load(Relaxed) == WATCHES {
            self.decide(core, now);
        }
        true
    }

    pub(super) fn watch(&self, core: &CoreState, now: u64) {
        core.lost.store(0, Relaxed);
        core.given.store(now, Relaxed);
        core.until.store(now + nanoseconds(WATCH), Relaxed);
        core.mode.store(WATCHES, Relaxed);
    }

    /// Chooses the mode that follows `WATCHES`.
    pub(super) fn decide(&self, core: &CoreState, now: u64) {
        let watched = nanoseconds(WATCH) + now.saturating_sub(core.until.load(Relaxed));
        if core.lost.load(Relaxed) < watched / 2 {
            core.mode.store(YIELDS, Relaxed);
            return;
        }
        let block =
            (2 * core.block.load(Relaxed)).clamp(nanoseconds(MIN_BLOCK), nanoseconds(MAX_BLOCK));
        core.block.store(block, Relaxed);
        core.until.store(now + block, Relaxed);
        core.mode.store(BLOCKS, Relaxed);
        if !self.noticed.swap(true, Relaxed) {
            let mut before = self.before.lock();
            if before.is_none() {
                *before = Load::now(&self.ids);
            }
        }
    }

    fn now(&self) -> u64 {
        nanoseconds(self.epoch.elapsed())
    }
}

pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
