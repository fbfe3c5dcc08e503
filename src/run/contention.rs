//! Notices cores that something else keeps busy, so that the ranks there stop to yield.
//!
//! Among ranks that wait for each other a yield is a switch of half a microsecond. Beside a thread
//! that computes and is none of them, it gives away the rest of a turn: that thread then has the
//! core for some milliseconds, and a collective needs dozens of yields one after another. A rank
//! that blocks instead gives nothing away, and runs soon after it has been woken. But where ranks
//! have their cores for themselves, blocking takes several times as long as yielding.
//!
//! So a core is in one of three modes:
//!
//! | mode | its ranks | until |
//! |---|---|---|
//! | `YIELDS` | yield; a few of all yields are timed | one takes long: others have the core, or ranks that work |
//! | `WATCHES` | yield, and take the time from one rank's yield to the next rank's return from one: then no rank had the core | [`WATCH`] is over: if others had half of it, `BLOCKS`, otherwise `YIELDS` |
//! | `BLOCKS` | block as soon as they have to wait | its time is over: `WATCHES` again; if that finds the same, the next time is twice as long |

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::load::Load;

/// Timing one yield takes 50 ns, a yield 200 to 500: so one in this many is timed.
const TIMED: u32 = 16;
/// What a yield may take, besides what going round the ranks of the core takes: less than the
/// shortest time slice of Linux.
const PATIENCE: Duration = Duration::from_micros(500);
/// What a switch from one rank to another may take.
const SWITCH: Duration = Duration::from_micros(4);
/// Who had the core for longer than that between two ranks did something there.
const TURN: Duration = Duration::from_micros(100);
/// More than two time slices of one thread that comes and goes.
const WATCH: Duration = Duration::from_millis(10);
/// How long ranks block at first: watching costs a tenth at most.
const SHORTEST_BLOCK: Duration = Duration::from_millis(100);
const LONGEST_BLOCK: Duration = Duration::from_secs(1);

const YIELDS: u32 = 0;
const WATCHES: u32 = 1;
const BLOCKS: u32 = 2;

/// What is known of the cores of a team. All of it is a hint: nothing but time is lost when ranks
/// of one core disagree.
#[derive(Debug)]
pub(super) struct Contention {
    cores: Box<[Core]>,
    /// The same cores, as the system numbers them.
    ids: Vec<usize>,
    epoch: Instant,
    /// Whether ranks of some core have begun to block in this run.
    noticed: AtomicBool,
    /// The load at the beginning of this run, or when that was noticed.
    before: Mutex<Option<Load>>,
}

/// Times are in nanoseconds, instants since the epoch.
#[derive(Debug)]
#[repr(align(128))]
struct Core {
    mode: AtomicU32,
    patience: Duration,
    /// When the mode ends.
    until: AtomicU64,
    /// When a rank had the core last, as far as it is known, while it is watched.
    given: AtomicU64,
    /// For how long others have had it.
    lost: AtomicU64,
    /// How long its ranks block this time.
    block: AtomicU64,
}

impl Contention {
    /// For cores with so many ranks each; `ids` are those that the system knows them by.
    pub(super) fn new(ranks: impl Iterator<Item = u32>, ids: Vec<usize>, epoch: Instant) -> Self {
        let core = |ranks| Core {
            mode: AtomicU32::new(YIELDS),
            patience: PATIENCE + SWITCH * ranks,
            until: AtomicU64::new(0),
            given: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            block: AtomicU64::new(0),
        };
        Contention {
            cores: ranks.map(core).collect(),
            ids,
            epoch,
            noticed: AtomicBool::new(false),
            before: Mutex::new(None),
        }
    }

    /// Yields, by a rank of core `core` that has done so `yields` times before; false, at once,
    /// when it must block instead.
    #[inline]
    pub(super) fn yields(&self, core: usize, yields: &AtomicU32) -> bool {
        let core = &self.cores[core];
        if core.mode.load(Relaxed) != YIELDS {
            return self.yields_watched(core);
        }
        let n = yields.load(Relaxed).wrapping_add(1);
        yields.store(n, Relaxed);
        if n.is_multiple_of(TIMED) {
            self.yields_timed(core);
        } else {
            std::thread::yield_now();
        }
        true
    }

    /// A rank of core `core` is about to block.
    pub(super) fn gives(&self, core: usize) {
        let core = &self.cores[core];
        if core.mode.load(Relaxed) == WATCHES {
            core.given.store(self.now(), Relaxed);
        }
    }

    /// A run begins. Looking at the load takes some 20 us: in a team's first run, and where that is
    /// worth it.
    pub(super) fn begin(&self, first_run: bool) {
        let looks = first_run || self.any_blocks();
        self.noticed.store(false, Relaxed);
        *self.before.lock() = if looks { Load::now(&self.ids) } else { None };
    }

    /// The part of the cores' time that others had in this run, in percent, if it is known and
    /// worth a word.
    pub(super) fn by_others(&self) -> Option<u64> {
        let before = self.before.lock().take()?;
        if !self.noticed.load(Relaxed) && !self.any_blocks() {
            return None;
        }
        Load::now(&self.ids)?.by_others_since(&before)
    }

    fn any_blocks(&self) -> bool {
        let mut cores = self.cores.iter();
        cores.any(|core| core.mode.load(Relaxed) == BLOCKS)
    }

    #[cold]
    fn yields_timed(&self, core: &Core) {
        let start = Instant::now();
        std::thread::yield_now();
        if start.elapsed() > core.patience {
            core.block.store(0, Relaxed);
            self.watch(core, self.now());
        }
    }

    /// As [`Contention::yields`], on a core that is watched, or whose ranks block.
    #[cold]
    fn yields_watched(&self, core: &Core) -> bool {
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
        if between > nanoseconds(TURN) {
            core.lost.fetch_add(between, Relaxed);
        }
        core.given.store(now, Relaxed);
        if now >= core.until.load(Relaxed) && core.mode.load(Relaxed) == WATCHES {
            self.decide(core, now);
        }
        true
    }

    fn watch(&self, core: &Core, now: u64) {
        core.lost.store(0, Relaxed);
        core.given.store(now, Relaxed);
        core.until.store(now + nanoseconds(WATCH), Relaxed);
        core.mode.store(WATCHES, Relaxed);
    }

    /// What comes after watching.
    fn decide(&self, core: &Core, now: u64) {
        let watched = nanoseconds(WATCH) + now.saturating_sub(core.until.load(Relaxed));
        if core.lost.load(Relaxed) < watched / 2 {
            core.mode.store(YIELDS, Relaxed);
            return;
        }
        let block = (2 * core.block.load(Relaxed))
            .clamp(nanoseconds(SHORTEST_BLOCK), nanoseconds(LONGEST_BLOCK));
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

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A core that has been watched until `now`, of which others had the core for `lost`.
    fn watched(contention: &Contention, now: u64, lost: Duration) -> u32 {
        let core = &contention.cores[0];
        contention.watch(core, now - nanoseconds(WATCH));
        core.lost.store(nanoseconds(lost), Relaxed);
        contention.decide(core, now);
        core.mode.load(Relaxed)
    }

    #[test]
    fn ranks_block_where_others_have_the_core() {
        // Long after the epoch, so that nothing is over while the test runs.
        const LATER: u64 = 1 << 60;
        let contention = Contention::new([3].into_iter(), Vec::new(), Instant::now());
        let (core, yields) = (&contention.cores[0], AtomicU32::new(0));
        assert!(contention.yields(0, &yields));
        assert_eq!(watched(&contention, LATER, WATCH / 4), YIELDS);
        assert!(contention.yields(0, &yields));
        assert!(!contention.noticed.load(Relaxed));
        // As long as nothing changes, each time is twice as long as the one before, within limits.
        for block in [100, 200, 400, 800, 1000, 1000] {
            let block = Duration::from_millis(block);
            assert_eq!(watched(&contention, LATER, WATCH), BLOCKS);
            assert_eq!(core.until.load(Relaxed), LATER + nanoseconds(block));
            assert!(!contention.yields(0, &yields));
        }
        assert!(contention.noticed.load(Relaxed) && contention.any_blocks());
        // When the time is over, ranks yield again to find out.
        core.until.store(0, Relaxed);
        assert!(contention.yields(0, &yields));
        assert_eq!(watched(&contention, LATER, Duration::ZERO), YIELDS);
        assert!(contention.yields(0, &yields));
    }
}
