//! Constants of the machine: sizes of caches, thresholds in bytes, and how long ranks spin, yield
//! and sleep.
//!
//! Each constant says its unit and its effect, and what it was measured with where that is known.
//! None changes what a run computes. What a message costs on this machine is not here, because a
//! calibration measures it; here is only what an estimate of a native run adds to that.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

// Copying

/// Bytes of a cache line.
pub(crate) const CACHE_LINE_BYTES: usize = 64;

/// Bytes at the start of a message that are prefetched before it is read.
pub(crate) const MAX_PREFETCH_BYTES: usize = 1 << 10;

/// Bytes of a message from which on it is copied with streaming stores, if the buffers of the run
/// do not fit into the last-level cache.
const MIN_STREAM_BYTES: usize = 128 << 10;

/// Bytes of the last-level cache where the system does not report them.
const DEFAULT_CACHE_BYTES: usize = 32 << 20;

/// Bytes of the smallest piece of a message that both partners copy. A message shorter than two of
/// them is not worth a handshake.
pub(crate) const MIN_PIECE_BYTES: usize = 16 << 10;

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

/// Length in bytes from which on messages are copied with streaming stores, which bypass the
/// caches, in a run whose ranks' buffers hold `total` bytes together.
///
/// If the buffers do not fit into the last-level cache, a long message would only evict other
/// lines, and reading the lines that it overwrites would be wasted. If they fit, no message is
/// streamed (`usize::MAX`).
pub(crate) fn streams_from(total: usize) -> usize {
    /// Bytes of the last-level cache; 0 until it has been read. Threads that race to read it find
    /// the same value.
    static CACHE: AtomicUsize = AtomicUsize::new(0);
    let cache = match CACHE.load(Ordering::Relaxed) {
        0 => {
            let bytes = last_level_cache().unwrap_or(DEFAULT_CACHE_BYTES).max(1);
            CACHE.store(bytes, Ordering::Relaxed);
            bytes
        }
        known => known,
    };
    if total < cache {
        usize::MAX
    } else {
        MIN_STREAM_BYTES
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

// Messages whose senders do not wait: see `exec::eager`

/// Bytes of the longest eager message where every rank has a core or a place on a worker. Partners
/// that wait copy longer messages together.
pub(crate) const MAX_EAGER_BYTES: u64 = 1 << 10;

/// Bytes of the longest eager message that is copied, where `ranks_per_core` threads share a core:
/// 1 KiB times the square of their number, within limits. Measured with 2, 4 and 8 ranks per core.
pub(crate) fn max_copied_bytes(ranks_per_core: u64) -> u64 {
    const MIN_COPIED_BYTES: u64 = 8 << 10;
    /// The copies must stay in the caches.
    const MAX_COPIED_BYTES: u64 = 32 << 10;
    let square = ranks_per_core.saturating_mul(ranks_per_core);
    (square << 10).clamp(MIN_COPIED_BYTES, MAX_COPIED_BYTES)
}

/// Bytes of all copies of eager messages of a run.
pub(crate) const MAX_SLOT_BYTES: usize = 64 << 20;

/// Spins of a rank whose only step is one receive: a fraction of the time that giving up the core
/// takes.
pub(crate) const EAGER_SPINS: u32 = 15;

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

// Estimates: see `measure::Profile::core_model` and `measure::estimate`

/// Nanoseconds of a rank's own work for a message, excluding the wait for a cache line: the time of
/// a short message between two nearby cores, without the handover.
pub(crate) const OWN_WORK_NS: f64 = 60.0;

/// Time that a worker takes to switch between two of its ranks, as a part of their own work for a
/// message. It switches without the operating system.
pub(crate) const WORKER_SWITCH_SHARE: f64 = 0.5;

/// Bytes of the shortest message that both partners copy, if both can. Calibrated costs of such
/// messages are those of a shared copy.
pub(crate) const MIN_LONG_BYTES: u64 = 2 * MIN_PIECE_BYTES as u64;

/// Time of a long message that one partner copies alone, in that of a shared copy.
pub(crate) const LONE_COPY_FACTOR: f64 = 2.0;

/// Time of a long copy into memory that is no longer cached, because other messages have been
/// copied since, in that of a calibrated copy.
pub(crate) const COLD_COPY_FACTOR: f64 = 2.0;

/// Time per byte of data that the sender itself has just received or combined and that is still in
/// the caches of the sender's core, in that of other data. The lines have to be fetched from there,
/// and the lines they overwrite are cached there, too. Measured with caches of a megabyte. When
/// ranks share cores, the other ranks evict this data.
pub(crate) const FRESH_FACTOR: f64 = 4.0;

/// Bytes of the longest message for which [`FRESH_FACTOR`] counts.
pub(crate) const MAX_FRESH_BYTES: u64 = 1 << 20;

// Threads

/// Bytes of a thread's stack, unless [`TeamOptions`](crate::run::TeamOptions) say otherwise.
pub(crate) const STACK_BYTES: usize = 256 << 10;

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

/// Recent partners of an endpoint whose wires it remembers: enough for the neighbours in a tree or
/// a ring.
pub(crate) const CACHED_PARTNERS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_runs_that_exceed_the_cache_are_streamed() {
        assert_eq!(streams_from(0), usize::MAX);
        assert!(streams_from(usize::MAX) <= 1 << 20);
    }
}
