//! Benchmark of endpoints: latency and bandwidth of transfers between two pinned cores, and the
//! barrier of a team of 16.
//!
//! The same run measures two references: a bare handover of one cache line, and a memcpy of the
//! same size.
//!
//! `cargo bench --bench endpoints` writes criterion's figures and then tables of ratios. Short
//! messages are measured as ping-pongs, long messages as a stream in one direction. `-- --quick`
//! takes fewer samples.
#![allow(clippy::print_stdout, missing_docs)]

mod terminal;

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use oneport::internal::OnlineClock;
use oneport::run::{Bidirectional, Endpoint, Operator, ScopeOptions, Team, TeamOptions};
use oneport::{CostModel, Ports, Span};

const SHORT: [usize; 5] = [0, 8, 16, 64, 1 << 10];
const LONG: [usize; 6] = [16 << 10, 64 << 10, 512 << 10, 1 << 20, 4 << 20, 32 << 20];

fn main() {
    terminal::detailed("endpoints", measure);
}

fn measure() {
    let mut criterion = Criterion::default()
        .configure_from_args()
        .without_plots()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(500));
    let mut team = Team::new(2).expect("two threads");
    for (name, sizes, run) in [
        (
            "pingpong",
            &SHORT[..],
            ping_pong as fn(&mut Team, usize, u64) -> Duration,
        ),
        ("stream", &LONG[..], |team, bytes, n| {
            stream(team, bytes, n, false)
        }),
    ] {
        let mut group = criterion.benchmark_group(name);
        for &bytes in sizes {
            group.throughput(Throughput::Bytes(bytes as u64));
            group.bench_with_input(BenchmarkId::from_parameter(bytes), &bytes, |b, &bytes| {
                b.iter_custom(|n| run(&mut team, bytes, n));
            });
        }
        group.finish();
    }
    let two_cores = team.cores() >= 2;
    drop(team);
    let mut group = criterion.benchmark_group("barrier");
    for p in [2, 16] {
        let mut team = Team::new(p).expect("threads");
        group.bench_with_input(BenchmarkId::from_parameter(p), &p, |b, _| {
            b.iter_custom(|n| barriers(&mut team, n));
        });
    }
    group.finish();
    if std::env::args().any(|a| a == "--bench") && two_cores {
        latency_table();
        bandwidth_table();
        own_work();
        let mut team = Team::new(16).expect("16 threads");
        let barrier = median(|| barriers(&mut team, 500) / 500);
        println!(
            "\nbarrier of 16 ranks on {} cores: median {barrier:.0} ns",
            team.cores()
        );
    }
}

fn options() -> ScopeOptions<u8> {
    ScopeOptions::new(Operator::named("sum").expect("built in"))
}

/// `n` one-way transfers in alternating directions.
fn ping_pong(team: &mut Team, bytes: usize, n: u64) -> Duration {
    let trips = n.div_ceil(2);
    // A gap after each message keeps messages and ranks on separate cache lines.
    let stride = bytes.next_multiple_of(128) + 128;
    let mut buffers = vec![vec![1u8; 2 * stride]; 2];
    let outcome = team
        .scope(
            &mut buffers,
            &options(),
            |e: &mut Endpoint<u8, Bidirectional>| {
                let (rank, out, into) = (e.rank(), 0..bytes, stride..stride + bytes);
                e.barrier()?;
                let start = Instant::now();
                for _ in 0..trips {
                    if rank == 0 {
                        e.send(1, out.clone())?;
                        e.recv(1, into.clone())?;
                    } else {
                        e.recv(0, into.clone())?;
                        e.send(0, out.clone())?;
                    }
                }
                e.model_time()?;
                Ok(start.elapsed())
            },
        )
        .expect("a correct program");
    outcome.results[0].mul_f64(n as f64 / (2 * trips) as f64)
}

/// `n` transfers from rank 0 to rank 1, after a few uncounted ones. With `rewrite`, the sender
/// rewrites its message before each transfer, outside the timed part.
fn stream(team: &mut Team, bytes: usize, n: u64, rewrite: bool) -> Duration {
    let mut buffers = vec![vec![1u8; bytes]; 2];
    let outcome = team
        .scope(
            &mut buffers,
            &options(),
            |e: &mut Endpoint<u8, Bidirectional>| {
                e.barrier()?;
                const WARMUP: u64 = 3;
                let mut time = Duration::ZERO;
                for i in 0..n + WARMUP {
                    if rewrite {
                        if e.rank() == 0 {
                            e.data_mut()?.fill(i.to_le_bytes()[0]);
                        }
                        e.barrier()?;
                    }
                    let start = Instant::now();
                    if e.rank() == 0 {
                        e.send(1, 0..bytes)?;
                        e.model_time()?;
                    } else {
                        e.recv(0, 0..bytes)?;
                    }
                    if i >= WARMUP {
                        time += start.elapsed();
                    }
                    if rewrite {
                        e.barrier()?;
                        black_box(e.data());
                    }
                }
                Ok(time)
            },
        )
        .expect("a correct program");
    outcome.results.into_iter().max().unwrap_or_default()
}

fn barriers(team: &mut Team, n: u64) -> Duration {
    let mut buffers = vec![vec![0u8; 1]; team.ranks()];
    let outcome = team
        .scope(&mut buffers, &options(), |e: &mut Endpoint<u8>| {
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

/// Handover of one cache line between two pinned threads, time of one direction: the lower limit of
/// every transfer.
fn bare_handover(n: u32) -> Duration {
    #[repr(align(128))]
    struct Line(AtomicU32);
    let line = Line(AtomicU32::new(0));
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    let total = std::thread::scope(|s| {
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
    });
    total / (2 * n)
}

fn memcpy(bytes: usize, n: u64) -> Duration {
    let source = vec![1u8; bytes];
    let mut target = vec![1u8; bytes];
    target.copy_from_slice(&source);
    let start = Instant::now();
    for _ in 0..n {
        black_box(&mut target).copy_from_slice(black_box(&source));
    }
    start.elapsed()
}

/// Number of samples for each figure in the tables.
fn sample_count() -> usize {
    let quick = std::env::args().any(|a| a == "--quick");
    if quick { 5 } else { 21 }
}

/// Median of the samples, in nanoseconds.
fn median(mut f: impl FnMut() -> Duration) -> f64 {
    let mut times: Vec<Duration> = (0..sample_count()).map(|_| f()).collect();
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e9
}

fn latency_table() {
    println!(
        "\nshort messages, one way (goals: to 16 B within 1.5 times the bare handover, 64 B 3.5, 1 KiB 7)"
    );
    println!(
        "{:>9} {:>12} {:>12} {:>8}",
        "bytes", "handover ns", "transfer ns", "ratio"
    );
    let mut team = Team::new(2).expect("two threads");
    for bytes in SHORT {
        // The two are measured alternately, so that both see the same state of the machine.
        let mut bare = Vec::new();
        let transfer = median(|| {
            bare.push(bare_handover(10_000));
            ping_pong(&mut team, bytes, 20_000) / 20_000
        });
        let mut bare = bare.into_iter();
        let bare = median(|| bare.next().unwrap_or_default());
        println!(
            "{bytes:>9} {bare:>12.0} {transfer:>12.0} {:>8.2}",
            transfer / bare
        );
    }
}

/// Measures the time that an endpoint adds to the bare handover, relative to a long message.
fn own_work() {
    const LONG: usize = 64 << 10;
    let mut team = Team::new(2).expect("two threads");
    let mut bare = Vec::new();
    let mut long = Vec::new();
    let short = median(|| {
        bare.push(bare_handover(10_000));
        long.push(stream(&mut team, LONG, 500, false) / 500);
        ping_pong(&mut team, 8, 20_000) / 20_000
    });
    let [bare, long] = [bare, long].map(|samples| {
        let mut samples = samples.into_iter();
        median(|| samples.next().unwrap_or_default())
    });
    let own = (short - bare).max(0.0);
    let clock = median(|| clock_work(LONG, 100_000) / 1000) / 100.0;
    println!(
        "\nmodel clock, both ends together: {clock:.1} ns a message, {:.2}% of one of 64 KiB (goal: 2%)",
        100.0 * clock / long
    );
    println!(
        "model clock, port rules and checks: at most {own:.0} ns a message (8 bytes against a bare handover), {:.2}% of a message of 64 KiB ({long:.0} ns)",
        100.0 * own / long
    );
}

fn bandwidth_table() {
    println!(
        "\nlong messages, GB/s (goals: untouched 512 KiB and 1 MiB 1.5 times memcpy; rewritten 1.8 times the receiver alone; from 4 MiB 1.8 times memcpy)"
    );
    println!(
        "{:>9} | {:>9} {:>9} {:>7} | {:>9} {:>9} {:>7}",
        "bytes", "memcpy", "untouched", "ratio", "alone", "rewritten", "ratio"
    );
    let alone = TeamOptions {
        share_copies: false,
        ..TeamOptions::default()
    };
    for bytes in LONG {
        let n = (30_000_000 / bytes as u64).clamp(2, 500);
        let mut samples: [Vec<Duration>; 4] = Default::default();
        for _ in 0..sample_count() {
            samples[0].push(memcpy(bytes, n));
            let mut both = Team::new(2).expect("two threads");
            samples[1].push(stream(&mut both, bytes, n, false));
            samples[3].push(stream(&mut both, bytes, n, true));
            drop(both);
            let mut one = Team::with(2, &alone).expect("two threads");
            samples[2].push(stream(&mut one, bytes, n, true));
        }
        let [copy, untouched, one, rewritten] = samples.map(|s| {
            let mut s = s.into_iter();
            bytes as f64 * n as f64 / median(|| s.next().unwrap_or_default())
        });
        println!(
            "{bytes:>9} | {copy:>9.1} {untouched:>9.1} {:>7.2} | {one:>9.1} {rewritten:>9.1} {:>7.2}",
            untouched / copy,
            rewritten / one
        );
    }
}

/// Measures the wall-clock time that both ends together spend on the model clock for `messages`
/// messages of `bytes` bytes between two bidirectional ranks. Linear in `messages`, whatever
/// `bytes` is: nothing is sent.
///
/// It counts the arithmetic of both clocks only. The cache line on which the clock travels is not
/// included, since the message needs it anyway.
fn clock_work(bytes: usize, messages: u64) -> Duration {
    let cost = black_box(CostModel::new(1000.0, 0.1));
    let [mut sender, mut receiver] = [(); 2].map(|()| OnlineClock::new(Ports::BI, false, 0.0));
    let span = black_box(Span::new(0, bytes));
    let (sends, receives) = (true, false);
    let start = Instant::now();
    for _ in 0..messages {
        let theirs = black_box(sender.start(sends, &[span], &[]));
        let ready = receiver.start(receives, &[], &[span]);
        let duration = cost.transfer(0, 1, span.len as u64);
        let end = black_box(ready.max(theirs) + duration);
        receiver.transferred(receives, &[], &[span], end);
        sender.transferred(sends, &[span], &[], end);
    }
    let time = start.elapsed();
    black_box((sender.finish, receiver.finish));
    time
}
