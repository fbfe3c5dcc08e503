//! Constants of the machine: sizes of caches, thresholds in bytes, and how long ranks spin, yield
//! and sleep.
//!
//! Each constant says its unit and its effect, and what it was measured with where that is known.
//! None changes what a run computes. Those that differ most between machines are in `overrides`,
//! because a profile may override them. What a message costs on this machine is not here, because a
//! calibration measures it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

// Caches

/// Bytes of the last-level cache.
pub(crate) fn cache_bytes() -> usize {
    /// Assumed where the system does not report the size.
    const DEFAULT_CACHE_BYTES: usize = 32 << 20;
    /// 0 until it has been read. Threads that race to read it find the same value.
    static CACHE: AtomicUsize = AtomicUsize::new(0);
    match CACHE.load(Ordering::Relaxed) {
        0 => {
            let bytes = last_level_cache().unwrap_or(DEFAULT_CACHE_BYTES).max(1);
            CACHE.store(bytes, Ordering::Relaxed);
            bytes
        }
        known => known,
    }
}

/// Bytes of the last-level cache, if the system reports them.
fn last_level_cache() -> Option<usize> {
    (0..8)
        .map_while(|index| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
            let text = std::fs::read_to_string(path).ok()?;
            text.trim().strip_suffix('K')?.parse::<usize>().ok()
        })
        .max()
        .map(|kib| kib << 10)
}

// Copying

pub(crate) const CACHE_LINE_BYTES: usize = 64;

/// Bytes at the start of a message that are prefetched before it is read.
pub(crate) const MAX_PREFETCH_BYTES: usize = 1 << 10;

/// Bytes of the smallest piece of a message that both partners copy. A message shorter than two of
/// them is not worth a handshake.
pub(crate) const MIN_PIECE_BYTES: usize = 16 << 10;

/// Bytes of the shortest message that both partners copy, if both can. Calibrated costs of such
/// messages are those of a shared copy.
pub(crate) const MIN_LONG_BYTES: u64 = 2 * MIN_PIECE_BYTES as u64;

/// Bytes of the largest piece of a message that both partners copy.
pub(crate) const MAX_PIECE_BYTES: usize = 256 << 10;

/// Number of pieces of a message whose pieces are neither smallest nor largest.
pub(crate) const PIECES: usize = 16;

/// Number of pieces that a partner claims first, of the `pieces` of a message: most of its half.
/// Then it claims one at a time, so that the faster side copies more.
pub(crate) fn first_claim(pieces: usize) -> usize {
    (3 * pieces / 8).max(1)
}

/// Polls of a receiver that waits for its sender's pieces, after which it yields once. Between them
/// it spins: the sender is copying on another core, unless it has lost that core.
pub(crate) const SPINS_PER_PIECE_YIELD: u32 = 1024;

/// Pairs of spans of two messages up to which each pair is compared. With more pairs, the spans are
/// sorted first.
pub(crate) const MAX_COMPARED_SPANS: usize = 64;

/// Elements from which on the check for wide vectors pays.
pub(crate) const MIN_WIDE_ELEMENTS: usize = 64;

// Messages whose senders do not wait: see `exec::ahead`

/// Bytes of the longest message sent ahead that is copied, where every rank has a core. Partners
/// copy longer messages together, from where they are.
pub(crate) const MAX_AHEAD_BYTES: u64 = MIN_LONG_BYTES - 1;

/// Bytes of the longest message sent ahead that is copied, where a worker runs several ranks.
pub(crate) const MAX_WORKER_COPIED_BYTES: u64 = 1 << 10;

/// Bytes of the longest message sent ahead that is copied, where `ranks_per_core` threads share a
/// core: 1 KiB times the square of their number, within limits. Measured with 2, 4 and 8 ranks per
/// core.
pub(crate) fn max_copied_bytes(ranks_per_core: u64) -> u64 {
    const MIN_COPIED_BYTES: u64 = 8 << 10;
    /// The copies must stay in the caches.
    const MAX_COPIED_BYTES: u64 = 32 << 10;
    let square = ranks_per_core.saturating_mul(ranks_per_core);
    (square << 10).clamp(MIN_COPIED_BYTES, MAX_COPIED_BYTES)
}

/// Bytes of all copies of messages sent ahead of a run.
pub(crate) const MAX_SLOT_BYTES: usize = 64 << 20;

/// Transfers of a rank whose wires are prefetched before it comes to them.
pub(crate) const FETCHED_WIRES: usize = 4;

/// Spins of a rank whose only step is one receive: a fraction of the time that giving up the core
/// takes.
pub(crate) const AHEAD_SPINS: u32 = 15;

// Waiting: see `wait`

/// Polls for which a rank spins, if ranks do not outnumber cores, before it yields.
pub(crate) const SPINS: u32 = 20_000;

/// Spins for a known transfer between two polls of a rank's whole program.
pub(crate) const SPINS_PER_POLL: u32 = 64;

/// Spins of the last rank of a core at a barrier: about the time of a few switches between ranks.
pub(crate) const BARRIER_SPINS: u32 = 300;

/// Yields of a rank under a paced clock before it sleeps.
pub(crate) const PACED_YIELDS: u32 = 4;

/// Yields of a rank before it sleeps, in a team of `ranks` ranks.
///
/// One yield lets several other ranks run: with more ranks, each yield takes longer, and fewer of
/// them suffice.
pub(crate) fn yields(ranks: usize) -> u32 {
    const YIELDS_OF_ALL: u32 = 30_000;
    const MIN_YIELDS: u32 = 20;
    const MAX_YIELDS: u32 = 400;
    let ranks = u32::try_from(ranks).unwrap_or(u32::MAX);
    (YIELDS_OF_ALL / ranks.max(1)).clamp(MIN_YIELDS, MAX_YIELDS)
}

/// Polls after which a rank that no longer spins checks for partners that will never come, again
/// and again.
pub(crate) const POLLS_PER_CHECK: u32 = 16;

/// Polls without progress after which a worker of a multiplexed run checks its ranks for such
/// partners. It checks again whenever the number has doubled.
pub(crate) const WORKER_POLLS_BEFORE_CHECK: u32 = 1024;

/// The longest sleep where ranks outnumber cores: a sleeping rank polls this often without being
/// woken.
pub(crate) const NAP_OVERSUBSCRIBED: Duration = Duration::from_millis(100);

/// The longest sleep where every rank has a core. A wake-up may be missed there and then costs this
/// much, which is cheaper than a fence in every message.
pub(crate) const NAP_ALONE: Duration = Duration::from_millis(1);

// Pace

/// Interval at which a rank that keeps its pace checks whether the run is aborted.
pub(crate) const PACE_SLICE: Duration = Duration::from_millis(50);

/// How long before a precise time a rank wakes up, in order to yield for the rest.
pub(crate) const EARLY: Duration = Duration::from_micros(80);

/// Nanoseconds by which the kernel may delay a wake-up, instead of its usual 50,000.
#[cfg(target_os = "linux")]
pub(crate) const TIMER_SLACK_NS: u64 = 1_000;

/// The longest time of a cost model that a repetition waits for on the clock: that of the last
/// arrival, or of all steps under the paced clock. Longer ones are mistaken units.
pub(crate) const MAX_MODEL_WAIT: Duration = Duration::from_secs(24 * 3600);

/// Time between the agreement on the start of a paced repetition and that start, in
/// which all ranks learn of it.
pub(crate) const START_DELAY: Duration = Duration::from_millis(1);

/// Nanoseconds to wake a rank, perform its part of a transfer and put it to sleep again. Only a
/// warning depends on it.
pub(crate) const WAKE_NS: f64 = 5_000.0;

// Cores that other processes keep busy: see `wait::contention`

/// One yield in this many is timed. A yield takes 200 to 500 ns, timing it 50 ns.
pub(crate) const TIMED_YIELDS: u32 = 16;

/// Time that a yield may take in addition to the switches among the ranks of the core. It is less
/// than the shortest time slice of Linux.
pub(crate) const PATIENCE: Duration = Duration::from_micros(500);

/// Time that a switch from one rank to another may take.
pub(crate) const SWITCH: Duration = Duration::from_micros(4);

/// A period longer than this in which no rank had the core counts as another thread's.
pub(crate) const FOREIGN_PERIOD: Duration = Duration::from_micros(100);

/// How long a core is watched: more than two time slices of a thread that comes and goes.
pub(crate) const WATCH: Duration = Duration::from_millis(10);

/// How long ranks block the first time. Watching takes at most a tenth of that.
pub(crate) const MIN_BLOCK: Duration = Duration::from_millis(100);

/// How long ranks block at most before they try to yield again.
pub(crate) const MAX_BLOCK: Duration = Duration::from_secs(1);

/// Percentage of the cores' time from which on a run warns that other processes had it.
pub(crate) const MIN_FOREIGN_PERCENT: u64 = 5;

// Threads

/// Bytes of a thread's stack, unless [`TeamOptions`](crate::run::TeamOptions) say otherwise.
pub(crate) const STACK_BYTES: usize = 256 << 10;

/// The least stack that the system gives a thread, whatever is asked for, in bytes: that of Linux.
pub(crate) const MIN_STACK_BYTES: usize = 16 << 10;

/// Elements that a thread's stack must be able to hold. An operator takes two and returns one, and
/// code that is not optimized copies each of them several times; about 12 were counted.
pub(crate) const ELEMENTS_ON_STACK: usize = 16;

/// Bytes of memory that must remain besides a thread's stack: for its signal stack, its first
/// allocations, and the allocations of the thread that starts it.
pub(crate) const SPARE_BYTES: u64 = 2 << 20;

/// Memory mappings per thread. Each thread takes four (a stack, a signal stack and their guard
/// pages); a fifth is left for everything else.
pub(crate) const MAPPINGS_PER_THREAD: usize = 5;

/// The largest number of threads where the system does not report its limit of memory mappings.
pub(crate) const DEFAULT_MAX_THREADS: usize = 8192;

// Memory

/// Repetitions, summed over all threads, whose start and end are kept: 1.6 GB.
pub(crate) const MAX_RECORDS: usize = 100_000_000;

/// Elements in all sets of test data of a run together: preparing them takes about 0.1 s.
pub(crate) const MAX_TEST_ELEMENTS: usize = 1 << 25;

/// Digests of all sets of test data of a run together: 8 MiB.
pub(crate) const MAX_TEST_DIGESTS: usize = 1 << 20;

/// How long a rank waits for a partner, unless a run says otherwise: far longer than a transfer
/// takes on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// How often the thread that waits for a run looks whether somebody wants it to end: sooner than a
/// person notices, and too seldom to disturb the ranks.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Recent partners of an endpoint whose wires it remembers: enough for the neighbours in a tree or
/// a ring.
pub(crate) const CACHED_PARTNERS: usize = 4;
