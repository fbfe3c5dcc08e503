//! Benchmark of planners: the planning time of each registered algorithm, for 1024 ranks and a
//! vector of 64 segments.
//!
//! It also measures the construction of the schedules of 64 ranks of a circulant graph, in
//! `O(log p)` and by the paper's `O(log^3 p)` algorithm, and that of all ranks of 36 to 2^20.
//!
//! `cargo bench --bench planners -- reduce` measures a part, `-- --quick` all with fewer samples; a
//! bare `cargo bench` leaves it out, since it takes many minutes. The number of steps of each
//! schedule is printed below its time.
#![allow(clippy::print_stdout, missing_docs)]

mod paper;
#[path = "../terminal/mod.rs"]
#[allow(dead_code)]
mod terminal;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput};
use oneport::internal::circulant::schedule::Circulant;
use oneport::internal::circulant::tables::Tables;
use oneport::plan::registry;
use oneport::{CostModel, Kind, Ports, Request};

const RANKS: usize = 1024;
const SEGMENTS: usize = 64;

fn main() {
    if terminal::is_bare() {
        println!(
            "planners: not measured; it takes `cargo bench --bench planners -- --quick`, or a part such as reduce"
        );
        return;
    }
    measure();
}

fn measure() {
    let mut criterion = Criterion::default()
        .configure_from_args()
        .without_plots()
        .sample_size(10)
        .nresamples(2000)
        .warm_up_time(Duration::from_millis(50))
        .measurement_time(Duration::from_millis(150));
    for kind in Kind::ALL {
        if registry::of(kind).next().is_none() {
            continue;
        }
        let name = format!("plan {} p={RANKS} q={SEGMENTS}", kind.name());
        let mut group = criterion.benchmark_group(name);
        for algorithm in registry::of(kind) {
            let elements = SEGMENTS << 10;
            let mut request = Request::new(algorithm.collective, RANKS, elements)
                .segment_count(SEGMENTS)
                .cost(CostModel::new(1000.0, 0.5).gamma(0.25));
            if !algorithm.ports.allow(Ports::BI) {
                request = request.ports(Ports::UNI);
            }
            if algorithm.accepts(&request).is_err() {
                println!("{} refuses {RANKS} ranks", algorithm.name());
                continue;
            }
            // Those that a filter leaves out are not planned at all.
            let mut steps = None;
            group.bench_function(algorithm.name(), |b| {
                let plan = || algorithm.plan(black_box(&request));
                steps.get_or_insert_with(|| plan().map_or(0, |schedule| schedule.steps()));
                b.iter(|| plan().map(|s| s.ranks()));
            });
            if let Some(steps) = steps {
                println!("{:>28} {steps} steps", "");
            }
        }
        group.finish();
    }
    construction(&mut criterion);
    all_ranks(&mut criterion);
}

/// What a rank of an irregular allgather does before it starts, for the numbers of processes of the
/// paper: it computes the receive schedules of all ranks.
fn all_ranks(criterion: &mut Criterion) {
    for p in [36, 576, 1152, 1 << 20] {
        let graph = Circulant::new(p);
        let mut group = criterion.benchmark_group(format!("circulant p={p}, all ranks"));
        group.bench_function("computed", |b| {
            b.iter(|| Tables::new(black_box(&graph)).recv.len())
        });
        // Its own alone, which the others would send.
        let mut own = vec![0i8; graph.rounds()];
        group.bench_function("own", |b| {
            b.iter(|| {
                graph.recv_into(black_box(p / 2), &mut own);
                black_box(&own);
            });
        });
        group.finish();
    }
}

/// Constructs receive and send schedules of some ranks, for circulant graphs of several magnitudes.
fn construction(criterion: &mut Criterion) {
    const SAMPLED: usize = 64;
    for p in [1_000, (1 << 20) - 1, (1 << 40) - 1] {
        let graph = Circulant::new(p);
        let ranks = || (0..SAMPLED).map(|i| i * (p / SAMPLED) + i % 7);
        let mut group = criterion.benchmark_group(format!("circulant p={p}, {SAMPLED} ranks"));
        group.throughput(Throughput::Elements(SAMPLED as u64));
        let mut buffers = [vec![0i8; graph.rounds()], vec![0i8; graph.rounds()]];
        group.bench_function("log p", |b| {
            b.iter(|| {
                let [recv, send] = &mut buffers;
                for r in ranks() {
                    graph.recv_into(black_box(r), recv);
                    graph.send_into(black_box(r), send);
                }
                black_box(&buffers);
            });
        });
        group.bench_function("log^3 p", |b| {
            b.iter(|| {
                for r in ranks() {
                    let recv = paper::recv_schedule(&graph, black_box(r));
                    let send = paper::send_schedule(&graph, black_box(r));
                    black_box((recv, send));
                }
            });
        });
        for r in ranks() {
            let [recv, send] = &mut buffers;
            graph.recv_into(r, recv);
            graph.send_into(r, send);
            assert_eq!(*recv, paper::recv_schedule(&graph, r));
            assert_eq!(*send, paper::send_schedule(&graph, r));
        }
        group.finish();
    }
}
