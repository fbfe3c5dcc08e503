//! Endpoints: ping-pong latency and bandwidth between two pinned cores, beside a bare handover of one cache line and a plain
//! memcpy of the same size in the same run; the barrier of a team of 16.
//!
//! `cargo bench --bench endpoints` prints criterion's figures and then one table of ratios.

#![allow(clippy::print_stdout, missing_docs)]

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use oneport::run::{Bidirectional, Endpoint, Operator, ScopeOptions, Team};

const SIZES: [usize; 10] = [
    0,
    8,
    16,
    64,
    1 << 10,
    16 << 10,
    64 << 10,
    512 << 10,
    1 << 20,
    4 << 20,
];

fn main() {
    let mut criterion = Criterion::default().configure_from_args().without_plots();
    let mut team = Team::new(2).expect("two threads");
    let cores = team.cores();
    let mut group = criterion.benchmark_group("pingpong");
    group
        .sample_size(20)
        .measurement_time(Duration::from_millis(500))
        .warm_up_time(Duration::from_millis(100));
    for bytes in SIZES {
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_with_input(BenchmarkId::from_parameter(bytes), &bytes, |b, &bytes| {
            b.iter_custom(|n| one_way(&mut team, bytes, n, false));
        });
    }
    group.finish();
    drop(team);
    let mut group = criterion.benchmark_group("barrier");
    group
        .sample_size(20)
        .measurement_time(Duration::from_millis(500))
        .warm_up_time(Duration::from_millis(100));
    for p in [2, 16] {
        let mut team = Team::new(p).expect("threads");
        group.bench_with_input(BenchmarkId::from_parameter(p), &p, |b, _| {
            b.iter_custom(|n| barriers(&mut team, n));
        });
    }
    group.finish();
    if std::env::args().any(|a| a == "--bench") && cores >= 2 {
        summary();
    }
}

/// `n` one-way transfers of `bytes` bytes, there and back, between separate places for what is sent and what is received; with
/// `rewrite`, the sender writes its message anew before each.
fn one_way(team: &mut Team, bytes: usize, n: u64, rewrite: bool) -> Duration {
    let mut buffers = vec![vec![1u8; 2 * bytes]; 2];
    let options = ScopeOptions::new(Operator::named("sum").expect("built in"));
    let trips = n.div_ceil(2);
    let outcome = team
        .scope(
            &mut buffers,
            &options,
            |e: &mut Endpoint<u8, Bidirectional>| {
                let (rank, out, into) = (e.rank(), 0..bytes, bytes..2 * bytes);
                e.barrier()?;
                let start = Instant::now();
                let mut writing = Duration::ZERO;
                for i in 0..trips {
                    if rewrite {
                        let before = Instant::now();
                        e.data_mut()?[out.clone()].fill(i.to_le_bytes()[0]);
                        black_box(e.data());
                        writing += before.elapsed();
                    }
                    if rank == 0 {
                        e.send(1, out.clone())?;
                        e.recv(1, into.clone())?;
                    } else {
                        e.recv(0, into.clone())?;
                        e.send(0, out.clone())?;
                    }
                }
                e.model_time()?;
                Ok(start.elapsed().saturating_sub(writing))
            },
        )
        .expect("a correct program");
    outcome.results[0].mul_f64(n as f64 / (2 * trips) as f64)
}

fn barriers(team: &mut Team, n: u64) -> Duration {
    let mut buffers = vec![vec![0u8; 1]; team.ranks()];
    let options = ScopeOptions::new(Operator::named("sum").expect("built in"));
    let outcome = team
        .scope(&mut buffers, &options, |e: &mut Endpoint<u8>| {
            e.barrier()?;
            let start = Instant::now();
            for _ in 0..n {
                e.barrier()?;
            }
            Ok(start.elapsed())
        })
        .expect("a correct program");
    outcome.results.into_iter().max().unwrap_or_default()
}

/// One line handed to and fro between two pinned threads: the floor under every transfer.
fn bare_handover(n: u32) -> Duration {
    #[repr(align(128))]
    struct Line(AtomicU32);
    let line = Line(AtomicU32::new(0));
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    std::thread::scope(|s| {
        let line = &line;
        let (a, b) = (cores[0], cores[1]);
        s.spawn(move || {
            core_affinity::set_for_current(b);
            for i in 0..n {
                while line.0.load(Ordering::Acquire) != 2 * i + 1 {
                    spin_loop();
                }
                line.0.store(2 * i + 2, Ordering::Release);
            }
        });
        let timed = s.spawn(move || {
            core_affinity::set_for_current(a);
            let start = Instant::now();
            for i in 0..n {
                line.0.store(2 * i + 1, Ordering::Release);
                while line.0.load(Ordering::Acquire) != 2 * i + 2 {
                    spin_loop();
                }
            }
            start.elapsed()
        });
        timed.join().expect("no panic")
    }) / (2 * n)
}

fn memcpy(bytes: usize, n: u32) -> Duration {
    let source = vec![1u8; bytes];
    let mut target = vec![0u8; bytes];
    let start = Instant::now();
    for _ in 0..n {
        black_box(&mut target).copy_from_slice(black_box(&source));
    }
    start.elapsed() / n
}

fn median(mut f: impl FnMut() -> Duration) -> f64 {
    let mut times: Vec<Duration> = (0..15).map(|_| f()).collect();
    times.sort_unstable();
    times[7].as_secs_f64() * 1e9
}

/// All figures of one run, side by side.
fn summary() {
    let bare = median(|| bare_handover(20_000));
    println!("\nbare one-line handover, one way: {bare:.0} ns");
    println!(
        "{:>9} {:>12} {:>14} {:>12} {:>10} {:>12} {:>12}",
        "bytes", "transfer ns", "rewritten ns", "memcpy ns", "/handover", "memcpy/this", "GB/s"
    );
    let mut team = Team::new(2).expect("two threads");
    for bytes in SIZES.into_iter().chain([32 << 20]) {
        let n = (20_000_000 / (bytes as u64 + 1000)).clamp(4, 20_000);
        let transfer = median(|| one_way(&mut team, bytes, n, false)) / n as f64;
        let rewritten = median(|| one_way(&mut team, bytes, n, true)) / n as f64;
        let copy = median(|| memcpy(bytes, n as u32));
        println!(
            "{bytes:>9} {transfer:>12.0} {rewritten:>14.0} {copy:>12.0} {:>10.2} {:>12.2} {:>12.2}",
            transfer / bare,
            copy / transfer,
            bytes as f64 / transfer
        );
    }
    drop(team);
    let mut team = Team::new(16).expect("16 threads");
    let barrier = median(|| barriers(&mut team, 500)) / 500.0;
    println!(
        "barrier of 16 ranks on {} cores: {barrier:.0} ns",
        team.cores()
    );
}
