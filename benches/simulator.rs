//! Benchmark of the simulator: steps per second of one pass over a prepared schedule on one core,
//! and the times of planning and preparing.
//!
//! A transfer counts as two steps, its send and its receive; the combination of a combining receive
//! does not count separately. `cargo bench --bench simulator` writes criterion's figures and then
//! one line for each case: medians, and the peak memory of the process so far. `-- --quick` takes
//! fewer passes. On a busy machine, run it with a higher priority.

#![allow(clippy::print_stdout, missing_docs)]

mod terminal;

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use oneport::machine::Links;
use oneport::plan::registry;
use oneport::simulate::Prepared;
use oneport::{CostModel, Kind, Ports, Request, Schedule};

struct Case {
    name: &'static str,
    kind: Kind,
    algorithm: &'static str,
    ranks: usize,
    ports: Ports,
    heterogeneous: bool,
}

const SEGMENTS: usize = 64;

const fn case(name: &'static str, kind: Kind, algorithm: &'static str, ranks: usize) -> Case {
    let ports = Ports::BI;
    Case {
        name,
        kind,
        algorithm,
        ranks,
        ports,
        heterogeneous: false,
    }
}

/// Smallest first, because the peak memory of the process never decreases.
const CASES: [Case; 6] = [
    case("broadcast", Kind::Broadcast, "circulant", 1 << 10),
    case("reduce", Kind::Reduce, "circulant", 1 << 10),
    Case {
        ports: Ports::UNI,
        ..case("chain reduce, uni", Kind::Reduce, "chain", 1 << 10)
    },
    Case {
        heterogeneous: true,
        ..case("broadcast, links", Kind::Broadcast, "circulant", 1 << 10)
    },
    case("broadcast", Kind::Broadcast, "circulant", 1 << 16),
    case("reduce", Kind::Reduce, "circulant", 1 << 16),
];

impl Case {
    fn plan(&self) -> Schedule {
        // Segments of 1 KiB, elements of one byte.
        let elements = SEGMENTS << 10;
        let request = Request::new(self.kind, self.ranks, elements)
            .segment_count(SEGMENTS)
            .ports(self.ports)
            .cost(cost());
        registry::find(self.kind, self.algorithm)
            .and_then(|a| a.plan(&request))
            .expect("a registered algorithm")
    }

    /// Cost model of the simulation. In the heterogeneous case all links have the same costs.
    fn cost(&self) -> CostModel {
        if !self.heterogeneous {
            return cost();
        }
        let square = |time| vec![vec![Some(time); self.ranks]; self.ranks];
        CostModel::heterogeneous(Links {
            alpha: square(cost().rates().alpha),
            beta: square(cost().rates().beta),
            gamma: vec![cost().rates().gamma; self.ranks],
            ..Links::default()
        })
        .expect("finite costs")
    }
}

fn cost() -> CostModel {
    CostModel::new(1000.0, 0.5).gamma(0.25)
}

fn main() {
    terminal::detailed("simulator", measure);
}

fn measure() {
    let mut criterion = Criterion::default().configure_from_args().without_plots();
    let mut lines = Vec::new();
    for case in &CASES {
        let (schedule, planning) = timed(|| case.plan());
        let steps = schedule.steps();
        let (prepared, preparing) = timed(|| Prepared::new(&schedule, false).expect("completes"));
        let mut finish = vec![0.0; prepared.nodes().len()];
        let cost = case.cost();
        let makespan = prepared.simulate_into(&cost, &mut finish);
        assert!(makespan > 0.0, "a schedule that takes time");
        let mut group = criterion.benchmark_group("simulate");
        group
            .sample_size(10)
            .measurement_time(Duration::from_millis(500))
            .warm_up_time(Duration::from_millis(200))
            .throughput(Throughput::Elements(steps as u64));
        let id = BenchmarkId::new(format!("{} {}", case.algorithm, case.name), case.ranks);
        group.bench_function(id, |b| {
            b.iter(|| prepared.simulate_into(black_box(&cost), &mut finish));
        });
        group.finish();
        if std::env::args().any(|a| a == "--bench") {
            let passes = (20_000_000 / steps).clamp(1, 200);
            let quick = std::env::args().any(|a| a == "--quick");
            let mut times: Vec<f64> = (0..if quick { 3 } else { 15 })
                .map(|_| {
                    let start = Instant::now();
                    for _ in 0..passes {
                        let time = prepared.simulate_into(black_box(&cost), &mut finish);
                        assert_eq!(time, makespan, "the same time again");
                    }
                    start.elapsed().as_secs_f64() / passes as f64
                })
                .collect();
            times.sort_unstable_by(f64::total_cmp);
            lines.push(format!(
                "{:<18} {:>7} {:>10} {:>12.1} {:>10.0} {:>11.0} {:>9}",
                case.name,
                case.ranks,
                steps,
                steps as f64 / times[times.len() / 2] * 1e-6,
                planning.as_secs_f64() * 1e3,
                preparing.as_secs_f64() * 1e3,
                peak_memory().map_or("-".to_string(), |mib| mib.to_string())
            ));
        }
    }
    if !lines.is_empty() {
        println!(
            "\n{:<18} {:>7} {:>10} {:>12} {:>10} {:>11} {:>9}",
            "case", "ranks", "steps", "M steps/s", "plan ms", "prepare ms", "peak MiB"
        );
        for line in lines {
            println!("{line}");
        }
    }
}

fn timed<R>(f: impl FnOnce() -> R) -> (R, Duration) {
    let start = Instant::now();
    let result = f();
    (result, start.elapsed())
}

/// Peak resident size of this process in MiB, if the system reports it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib >> 10)
}
