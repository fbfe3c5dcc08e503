//! Benchmark of irregular gather trees: how long the search for the best trees takes, and how it
//! scales.
//!
//! `cargo bench --bench gather` writes a table; `-- --quick` leaves out the largest sizes. Times
//! are CPU times of one thread. The benchmark fails if the `O(p^2)` program and the published
//! `O(p^3)` program disagree.
#![allow(clippy::print_stdout, missing_docs)]

mod selected;
mod terminal;

use std::hint::black_box;
use std::time::Duration;

use oneport::CostModel;
use oneport::internal::gather::optimal::DynamicProgram;
use oneport::internal::gather::{GatherProblem, binary, heterogeneous, optimal, rank_ordered};
use oneport::machine::Links;
use oneport::plan::distribution::Distribution;
use oneport::random::Generator;

fn main() {
    if !selected::selected("gather/trees") {
        return;
    }
    terminal::detailed("gather", measure);
}

fn measure() {
    let quick = std::env::args().any(|a| a == "--quick" || a == "--test");
    trees(quick);
    programs(quick);
    platforms(quick);
}

/// The times of the planners for several numbers of ranks.
fn trees(quick: bool) {
    let sizes: &[usize] = if quick {
        &[1000, 2000]
    } else {
        &[1000, 2000, 4000, 8000, 16_000]
    };
    println!(
        "{:>6} {:>18} {:>18} {:>18} {:>18} {:>18} {:>18}",
        "p",
        "optimal, free",
        "optimal, root p/2",
        "free, empty blocks",
        "binary, free",
        "rank-ordered, free",
        "peak MiB"
    );
    let mut previous: Option<[f64; 5]> = None;
    for &p in sizes {
        let free = problem(p, 1, None);
        let given = problem(p, 1, Some(p / 2));
        let empty = problem(p, 0, None);
        let repetitions = (4000 / p).clamp(1, 5);
        let by = |problem: &GatherProblem| {
            fastest(repetitions, || {
                optimal::time_by(problem, DynamicProgram::Quadratic).unwrap()
            })
        };
        let times = [
            by(&free),
            by(&given),
            if p > 8000 { f64::NAN } else { by(&empty) },
            fastest(repetitions, || free.time(&binary::tree(&free).unwrap())),
            fastest(repetitions, || {
                free.time(&rank_ordered::tree(&free).unwrap())
            }),
        ];
        print!("{p:>6}");
        for (i, &t) in times.iter().enumerate() {
            let growth = previous.map_or(String::new(), |b| format!(" ({:.1}x)", t / b[i]));
            let shown = if t.is_nan() {
                "-".into()
            } else {
                format!("{:.1} ms{growth}", 1e3 * t)
            };
            print!(" {shown:>18}");
        }
        println!(" {:>18}", peak_mib().map_or("-".into(), |m| m.to_string()));
        previous = Some(times);
    }
}

/// Both dynamic programs, which agree.
fn programs(quick: bool) {
    let p = if quick { 300 } else { 1000 };
    for root in [None, Some(p / 2)] {
        let one = problem(p, 1, root);
        let mut results = [0.0; 2];
        let quadratic = fastest(3, || {
            results[0] = optimal::time_by(&one, DynamicProgram::Quadratic).unwrap();
            results[0]
        });
        let cubic = fastest(1, || {
            results[1] = optimal::time_by(&one, DynamicProgram::Cubic).unwrap();
            results[1]
        });
        assert_eq!(results[0], results[1], "the two programs disagree");
        println!(
            "p = {p}, root {root:?}: O(p^2) {:.1} ms, O(p^3) {:.0} ms, ratio {:.0}",
            1e3 * quadratic,
            1e3 * cubic,
            cubic / quadratic
        );
    }
}

/// Trees where links differ.
fn platforms(quick: bool) {
    let ranks: &[usize] = if quick { &[32, 64] } else { &[32, 64, 128] };
    for &p in ranks {
        let problem = platform(p);
        let general = fastest(1, || problem.time(&heterogeneous::tree(&problem).unwrap()));
        let binary = fastest(1, || {
            problem.time(&heterogeneous::binary(&problem).unwrap())
        });
        println!(
            "heterogeneous, p = {p}: best tree {:.1} ms, best binary tree {:.1} ms",
            1e3 * general,
            1e3 * binary
        );
    }
}

/// A problem with random block sizes. With `min` = 0 a third of the blocks is empty.
fn problem(p: usize, min: usize, root: Option<usize>) -> GatherProblem {
    let sizes = Distribution::Random
        .sizes(p, 1000, 5, 1)
        .expect("small sizes");
    let size = |(r, &s): (usize, &usize)| {
        if min == 0 && r % 3 == 1 { 0 } else { s as u64 }
    };
    let sizes = sizes.iter().enumerate().map(size).collect();
    let cost = CostModel::new(100.0, 1.0).gamma_copy(1.0);
    GatherProblem::new(sizes, cost, root).expect("a good problem")
}

fn platform(p: usize) -> GatherProblem {
    let mut random = Generator::new(5);
    let mut matrix = |top: usize| -> Vec<Vec<Option<f64>>> {
        let mut row = || (0..p).map(|_| Some(random.below(top) as f64)).collect();
        (0..p).map(|_| row()).collect()
    };
    let cost = CostModel::heterogeneous(Links {
        alpha: matrix(1000),
        beta: matrix(10),
        gamma_copy: vec![1.0; p],
        ..Links::default()
    });
    let sizes = (0..p as u64).map(|r| 1 + r * 7919 % 1000).collect();
    GatherProblem::new(sizes, cost.expect("good links"), None).expect("a good problem")
}

/// CPU time in seconds of the fastest of several runs.
fn fastest(repetitions: usize, mut run: impl FnMut() -> f64) -> f64 {
    let runs = (0..repetitions).map(|_| {
        let start = cpu_time();
        black_box(run());
        cpu_time().saturating_sub(start)
    });
    runs.min().unwrap_or(Duration::ZERO).as_secs_f64()
}

/// CPU time of this thread, which other load on the machine hardly affects.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Peak memory of this process in MiB, if the system reports it.
fn peak_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024)
}
