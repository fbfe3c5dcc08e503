//! Tests of cores that other processes keep busy.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::contention::{BLOCKS, Contention, YIELDS, nanoseconds};
use super::load::Load;
use super::tuning::WATCH;

const BEFORE: (&str, &str) = (
    "cpu  30 0 30 300 0 0 0 0 0 0\ncpu0 10 0 10 100 0 0 0 0 0 0\ncpu1 10 0 10 100 0 0 0 0 0 0\ncpu12 10 0 10 100 0 0 0 0 0 0\nintr 5\n",
    "7 (a (b) c) R 1 7 7 0 -1 4 0 0 0 0 3 4 0 0 20 0 1 0",
);

fn after(core: &str, own: &str) -> Option<u64> {
    let cores = BEFORE.0.replace("cpu1 10 0 10 100 0 0 0 0", core);
    let process = BEFORE.1.replace("3 4", own);
    let before = Load::read(&[1], BEFORE.0, BEFORE.1).unwrap();
    let after = Load::read(&[1], &cores, &process).unwrap();
    after.percent_by_others_since(&before, after.own_since(&before))
}

#[test]
fn others_had_the_busy_time_beyond_this_process() {
    // A hundred ticks: fifty idle, thirty of this process.
    assert_eq!(after("cpu1 40 0 20 150 0 0 0 10", "23 14"), Some(20));
    // All of this process, then hardly anything of others.
    assert_eq!(after("cpu1 100 0 20 100 0 0 0 0", "83 24"), None);
    assert_eq!(after("cpu1 100 0 20 100 0 0 0 0", "80 20"), None);
    // Too short to tell.
    assert_eq!(after("cpu1 13 0 10 100 0 0 0 0", "3 4"), None);
}

#[test]
fn unknown_loads_are_none() {
    assert_eq!(Load::read(&[2], BEFORE.0, BEFORE.1), None);
    assert_eq!(Load::read(&[1], "cpu1 1 2\n", BEFORE.1), None);
    assert_eq!(Load::read(&[1], BEFORE.0, "7 (x) R 1 2"), None);
}

#[test]
fn the_busy_time_of_several_cores_is_added() {
    let after = BEFORE.0.replace("cpu0 10 0 10 100", "cpu0 40 0 10 170");
    let after = after.replace("cpu12 10 0 10 100", "cpu12 20 0 10 190");
    let load = |cores| Load::read(&[0, 12], cores, BEFORE.1).unwrap();
    // 200 ticks, 40 of them busy.
    assert_eq!(
        load(&after).percent_by_others_since(&load(BEFORE.0), 0),
        Some(20)
    );
}

/// The mode of a core that has been watched until `now`, and that others had for `lost`.
fn watched(contention: &Contention, now: u64, lost: Duration) -> u32 {
    let core = &contention.cores[0];
    contention.watch(core, now - nanoseconds(WATCH));
    core.lost.store(nanoseconds(lost), Relaxed);
    contention.decide(core, now);
    core.mode.load(Relaxed)
}

#[test]
fn ranks_block_where_others_have_the_core() {
    // So long after the epoch that no mode ends while the test runs.
    const LONG_AFTER: u64 = 1 << 60;
    let contention = Contention::new([3].into_iter(), Vec::new(), Instant::now());
    let (core, yields) = (&contention.cores[0], AtomicU32::new(0));
    assert!(contention.try_yield(0, &yields));
    assert_eq!(watched(&contention, LONG_AFTER, WATCH / 4), YIELDS);
    assert!(contention.try_yield(0, &yields));
    assert!(!contention.noticed.load(Relaxed));
    // As long as nothing changes, each period is twice as long as the one before, within
    // limits.
    for block in [100, 200, 400, 800, 1000, 1000] {
        let block = Duration::from_millis(block);
        assert_eq!(watched(&contention, LONG_AFTER, WATCH), BLOCKS);
        assert_eq!(core.until.load(Relaxed), LONG_AFTER + nanoseconds(block));
        assert!(!contention.try_yield(0, &yields));
    }
    assert!(contention.noticed.load(Relaxed) && contention.any_blocks());
    // After a period of blocking, ranks yield again in order to measure.
    core.until.store(0, Relaxed);
    assert!(contention.try_yield(0, &yields));
    assert_eq!(watched(&contention, LONG_AFTER, Duration::ZERO), YIELDS);
    assert!(contention.try_yield(0, &yields));
}
