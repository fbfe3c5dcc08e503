//! Checks the results of `oneport tune`: its search against a full sweep and against the closed
//! form.
//!
//! Eight ranks with bidirectional ports, at the pace of `alpha = 2 ms` and `beta = 20 ns/byte`,
//! reduce vectors of 64 KiB to 1 MiB. A pipeline over `q` segments takes
//! `(r + q) (alpha + beta m / q)`, with `r = p - 2` for the chain and `r = ceil(log2 p) - 1` for
//! bi-greedy. The minimum is at `q = sqrt(r beta m / alpha)`, where it is
//! `(sqrt(r alpha) + sqrt(beta m))^2`.
//!
//! `cargo run --release --example tune_check` takes about two minutes, and fails if a time found by
//! the search is more than 5% above either reference.

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::ops::ControlFlow;
use std::time::Duration;

use oneport::plan::{Segments, registry};
use oneport::run::{Clock, Operator, Team};
use oneport::{CostModel, Kind, Request, Result};
use oneport_measure::tune::{Live, Measure, Summary, Sweep, tune};

const RANKS: usize = 8;
const ALPHA: f64 = 2e6;
const BETA: f64 = 20.0;
/// Largest number of segments in the full sweep, and repetitions of each.
const SEGMENTS: usize = 20;
const REPETITIONS: usize = 5;
const TOLERANCE: f64 = 1.05;

fn main() -> Result<()> {
    let request = Request::reduce(RANKS, 0).cost(CostModel::new(ALPHA, BETA));
    let sweep = Sweep {
        request,
        algorithms: vec![
            registry::find(Kind::Reduce, "chain")?,
            registry::find(Kind::Reduce, "bi-greedy")?,
        ],
        bytes: (16..=20).map(|e| 1 << e).collect(),
        budget: Duration::from_secs(60),
        tolerance: 0.02,
        powers: false,
    };
    let sum = Operator::<u8>::named("sum")?;
    let mut team = Team::new(RANKS)?;
    let mut live = Live::new(&mut team, sum, Clock::Paced);
    let tuning = tune(&sweep, &[], &mut live, &mut |_| ControlFlow::Continue(()))?;
    println!(
        "search: {} combinations in {:.1} s",
        tuning.rows.len(),
        tuning.elapsed.as_secs_f64()
    );
    println!(
        "   bytes  algorithm   found: segment  time ms   full sweep: segment  time ms   ratio   formula ms   ratio"
    );
    let start = live.now();
    let mut worst: f64 = 0.0;
    for row in tuning.rows.iter().filter(|row| row.best_segment) {
        let (best, segment) = full_sweep(&sweep, row.bytes, &row.algorithm, &mut live)?;
        let (found, best, bytes) = (row.wall.median as f64, best as f64, row.bytes as f64);
        let rest = if row.algorithm == "chain" { 6.0 } else { 2.0 };
        let formula = (f64::sqrt(rest * ALPHA) + f64::sqrt(BETA * bytes)).powi(2);
        println!(
            "{:>8}  {:<9} {:>16} {:>8.3} {:>21} {:>8.3} {:>7.4} {:>12.3} {:>7.4}",
            row.bytes,
            row.algorithm,
            row.segment,
            found * 1e-6,
            segment,
            best * 1e-6,
            found / best,
            formula * 1e-6,
            found / formula
        );
        worst = worst.max(found / best).max(found / formula);
    }
    println!("full sweep: {:.1} s", (live.now() - start).as_secs_f64());
    println!("worst ratio {worst:.4}, allowed {TOLERANCE}");
    if worst > TOLERANCE {
        std::process::exit(1);
    }
    Ok(())
}

/// Returns the smallest median over all numbers of segments, and its segment size.
fn full_sweep(
    sweep: &Sweep,
    bytes: u64,
    algorithm: &str,
    live: &mut dyn Measure,
) -> Result<(u64, usize)> {
    let algorithm = registry::find(Kind::Reduce, algorithm)?;
    let elements = usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut best = (u64::MAX, 0);
    for count in 1..=SEGMENTS {
        let mut request = sweep.request.clone();
        let segment = elements.div_ceil(count);
        request = request.segments(Segments::of_size(elements, segment)?);
        let times = live.measure(&algorithm, &request, REPETITIONS)?;
        let median = Summary::of(&times).map_or(u64::MAX, |s| s.median);
        best = best.min((median, segment));
    }
    Ok(best)
}
