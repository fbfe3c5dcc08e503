//! Tests of files of `src/run` that nothing outside uses directly. They are compiled here again,
//! with the primitives of the standard library in place of `src/run/sync.rs`.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "the tests use a part of each file"
)]

#[path = "../../../src/run/wait/barrier.rs"]
mod barrier;
#[path = "../../../src/run/wait/contention.rs"]
mod contention;
#[path = "../../../src/run/wait/load.rs"]
mod load;
#[path = "../../../src/run/overrides.rs"]
mod overrides;
#[path = "../../../src/run/placement.rs"]
mod placement;
#[path = "../../../src/run/processes.rs"]
mod processes;
#[path = "../../../src/run/system.rs"]
mod system;
#[path = "../../../src/run/topology.rs"]
mod topology;
#[path = "../../../src/run/tuning.rs"]
pub(crate) mod tuning;
#[path = "../../../src/run/wall.rs"]
mod wall;

mod cores;
mod foreign;
mod memory;

mod sync {
    pub(super) use parking_lot::Mutex;
    pub(super) use std::sync::atomic::*;
}

use std::time::Duration;

use barrier::{Barrier, Passage};
use overrides::Tuning;
use processes::{Host, Processes};
use wall::{WallTimes, median_tail};

#[test]
fn the_last_of_any_number_of_ranks_opens_the_barrier() {
    for (ranks, cores) in [
        (1, 1),
        (2, 2),
        (8, 8),
        (9, 9),
        (65, 65),
        (256, 256),
        (200, 67),
    ] {
        let core_of: Vec<_> = (0..ranks).map(|rank| rank % cores).collect();
        let barrier = Barrier::new(&core_of);
        for round in 0..3 {
            let mut arrived = vec![0; cores];
            // Each round in another order.
            for i in 0..ranks {
                let rank = (i * 7 + round) % ranks;
                let generation = barrier.generation();
                arrived[core_of[rank]] += 1;
                let all = core_of
                    .iter()
                    .filter(|&&core| core == core_of[rank])
                    .count();
                let last_here = arrived[core_of[rank]] == all;
                let expected = if i + 1 == ranks {
                    Passage::Opened
                } else {
                    Passage::Waits {
                        generation,
                        last_here,
                    }
                };
                assert_eq!(barrier.arrive(rank), expected, "{ranks} on {cores}");
                assert_eq!(barrier.is_open(generation), i + 1 == ranks);
            }
        }
    }
}

/// Where each rank has a core, another rank opens the barrier each time, when all have arrived.
#[test]
fn a_collector_opens_the_barrier_of_ranks_with_cores() {
    for ranks in [3, 4, 16] {
        let barrier = Barrier::collected(ranks);
        let mut collectors = Vec::new();
        for round in 0..64 {
            let generation = barrier.generation();
            let collector = barrier.collector(generation).unwrap();
            for i in 0..ranks {
                let rank = (i * 7 + round) % ranks;
                assert!(!barrier.collect(generation), "{i} of {ranks}");
                assert!(barrier.missing_rank(generation).is_some());
                assert!(matches!(barrier.arrive(rank), Passage::Waits { .. }));
            }
            assert!(!barrier.is_open(generation));
            assert!(barrier.collect(generation) && barrier.is_open(generation));
            collectors.push(collector);
        }
        for period in [1, 2, 4] {
            let of_period = collectors.iter().step_by(period);
            let most = (0..ranks).map(|rank| of_period.clone().filter(|c| **c == rank).count());
            // A root is favoured in fewer than half of the repetitions.
            assert!(
                2 * most.max().unwrap() < 64 / period,
                "{ranks}: {collectors:?}"
            );
        }
    }
    assert!(Barrier::collected(2).collector(0).is_none());
}

#[test]
fn ranks_with_cores_meet_at_every_barrier() {
    const RANKS: usize = 4;
    let (barrier, rounds) = (Barrier::collected(RANKS), 300);
    let reached = [const { std::sync::atomic::AtomicUsize::new(0) }; RANKS];
    std::thread::scope(|scope| {
        for rank in 0..RANKS {
            let (barrier, reached) = (&barrier, &reached);
            scope.spawn(move || {
                for round in 1..=rounds {
                    reached[rank].store(round, sync::Ordering::Relaxed);
                    let Passage::Waits { generation, .. } = barrier.arrive(rank) else {
                        panic!("only the collector opens it");
                    };
                    while !barrier.is_open(generation) {
                        if barrier.collector(generation) == Some(rank) {
                            barrier.collect(generation);
                        }
                        std::thread::yield_now();
                    }
                    let all = reached.iter().map(|r| r.load(sync::Ordering::Relaxed));
                    assert!(all.min().unwrap() >= round);
                }
            });
        }
    });
}

#[test]
fn intervals_are_those_of_the_sign_test() {
    // From tables of the sign test: the largest k for a two-sided 5%.
    for (n, k) in [
        (1, 0),
        (6, 0),
        (8, 0),
        (9, 1),
        (11, 1),
        (12, 2),
        (20, 5),
        (25, 7),
        (50, 17),
        (100, 39),
    ] {
        assert_eq!(median_tail(n), k, "{n}");
    }
    // The approximation agrees with the exact values where they meet.
    assert!(
        median_tail(301).abs_diff(median_tail(300)) <= 2,
        "{} {}",
        median_tail(300),
        median_tail(301)
    );
}

#[test]
fn times_are_summarised() {
    let mut times = WallTimes::new().unwrap();
    assert_eq!((times.count(), times.interval_ns()), (0, 0..=0));
    for ns in [5, 1, 9, 3, 7, 2, 8, 4, 6] {
        times.record(ns).unwrap();
    }
    assert_eq!(
        (times.min_ns(), times.median_ns(), times.max_ns()),
        (1, 5, 9)
    );
    assert_eq!((times.count(), times.interval_ns()), (9, 2..=8));
    assert_eq!(times.quantile_ns(1.0), 9);
    assert!(times.distribution().eq((1..10).map(|ns| (ns, 1))));
    assert_eq!(times.total(), Duration::from_nanos(45));
}

#[cfg(feature = "mpi")]
#[test]
fn processes_in_words() {
    let hosts = |counts: &[usize]| {
        let host = |&processes: &usize| Host {
            name: format!("node{processes}"),
            processes,
        };
        counts.iter().map(host).collect()
    };
    let of = |counts| Processes::new("libmpi.so", "X 1".into(), "MPICH".into(), hosts(counts));
    assert_eq!(of(&[1]).to_string(), "X 1, 1 process on 1 host");
    assert_eq!(of(&[2, 3]).to_string(), "X 1, 5 processes on 2 hosts");
    assert_ne!(of(&[4]).timing, of(&[2, 2]).timing);
}

#[test]
fn only_runs_that_exceed_the_cache_are_streamed() {
    let mut tuning = Tuning::default();
    assert_eq!(tuning.streams_from(0), usize::MAX);
    assert!(tuning.streams_from(usize::MAX) <= 1 << 20);
    tuning.cache_bytes = Some(100);
    tuning.min_stream_bytes = 7;
    assert_eq!(tuning.streams_from(99), usize::MAX);
    assert_eq!(tuning.streams_from(100), 7);
}
