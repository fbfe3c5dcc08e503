//! Compares classes of trees for gathering irregular blocks, and checks a performance guideline.
//!
//! `cargo run --release --example gather_classes` prints Markdown tables (in seconds):
//!
//! - random small instances: how often, and by how much, rank-ordered, weakly ordered, non-ordered
//!   and two-ported trees beat adjacent ones;
//! - the instance that shows that the best non-ordered tree is hard to find;
//! - every distribution: model times of all trees, and whether guideline (2) holds: an irregular
//!   gather is not slower than agreeing on the largest block and gathering as if all had its size.
//!
//! # Classes of trees
//!
//! Random blocks of 0 to 100, `beta = 1`, root free; 60, 30, 15, 7 and 7 instances for `p` from 8
//! to 12. An entry gives the share of instances in which a class beats the best adjacent tree, and
//! its gain in these: mean, maximum. (2-ported trees: free copies only.)
//!
//! | p | alpha | gamma_copy | rank-ordered | weakly ordered | non-ordered | 2-ported, non-ordered |
//! |---|---|---|---|---|---|---|
//! | 8 | 1 | 0 | 13%: 0.35%, 0.52% | 22%: 0.37%, 0.58% | 38%: 0.38%, 0.84% | 100%: 49.48%, 50.00% |
//! | 8 | 20 | 0 | 7%: 3.45%, 6.06% | 23%: 3.36%, 6.34% | 37%: 3.62%, 10.82% | 100%: 47.18%, 49.86% |
//! | 8 | 20 | 1 | 0% | 8%: 3.06%, 6.78% | 20%: 3.86%, 6.92% | - |
//! | 9 | 1 | 0 | 17%: 0.30%, 0.44% | 27%: 0.39%, 0.59% | 67%: 0.40%, 1.09% | 100%: 49.65%, 50.15% |
//! | 9 | 20 | 0 | 13%: 1.73%, 3.23% | 33%: 2.81%, 6.85% | 70%: 3.76%, 6.85% | 100%: 48.50%, 50.00% |
//! | 9 | 20 | 1 | 0% | 13%: 2.52%, 3.81% | 23%: 2.96%, 5.57% | - |
//! | 10 | 1 | 0 | 13%: 0.32%, 0.38% | 33%: 0.28%, 0.38% | 60%: 0.25%, 0.38% | 100%: 49.80%, 50.00% |
//! | 10 | 20 | 0 | 0% | 33%: 2.99%, 5.63% | 80%: 3.39%, 5.63% | 100%: 48.96%, 50.00% |
//! | 10 | 20 | 1 | 0% | 33%: 2.47%, 3.81% | 47%: 2.55%, 3.81% | - |
//! | 11 | 1 | 0 | 0% | 29%: 0.21%, 0.22% | 57%: 0.27%, 0.43% | 100%: 49.83%, 50.11% |
//! | 11 | 20 | 0 | 14%: 1.61%, 1.61% | 29%: 1.62%, 1.93% | 57%: 3.00%, 4.25% | 100%: 48.79%, 49.92% |
//! | 11 | 20 | 1 | 0% | 14%: 0.43%, 0.43% | 57%: 1.88%, 3.24% | - |
//! | 12 | 1 | 0 | 0% | 29%: 0.22%, 0.26% | 100%: 0.23%, 0.38% | 100%: 49.98%, 50.09% |
//! | 12 | 20 | 0 | 14%: 2.90%, 2.90% | 29%: 3.07%, 3.24% | 100%: 3.92%, 6.77% | 100%: 49.93%, 51.45% |
//! | 12 | 20 | 1 | 0% | 29%: 2.08%, 2.98% | 86%: 2.40%, 3.35% | - |
//!
//! # Against padding
//!
//! An irregular gather must not lose to padding: agreeing on the largest block (an allreduce of one
//! number) and gathering as if all blocks had its size. `p = 256`, `b = 1000`, `rho = 5`, root 128,
//! `alpha = 100`, `beta = gamma_copy = 1`: model times divided by those of padding. Only `linear`
//! loses, where all blocks are equal and latency counts. `oneport guidelines` checks the same in
//! the model and measured.
//!
//! | distribution | padded | linear | oblivious | adaptive | degrading | two | optimal | weakly-ordered | unordered |
//! |---|---|---|---|---|---|---|---|---|---|
//! | same | 257608 | 1.093 | 0.997 | 0.997 | 0.997 | 0.997 | 0.997 | 0.997 | 0.997 |
//! | random | 512584 | 0.538 | 0.539 | 0.525 | 0.497 | 0.504 | 0.490 | 0.490 | 0.490 |
//! | random-decreasing | 512584 | 0.538 | 0.826 | 0.739 | 0.490 | 0.494 | 0.490 | 0.490 | 0.490 |
//! | random-increasing | 512584 | 0.538 | 0.555 | 0.555 | 0.494 | 0.496 | 0.490 | 0.490 | 0.490 |
//! | bucket | 385096 | 0.724 | 0.692 | 0.683 | 0.665 | 0.669 | 0.660 | 0.660 | 0.660 |
//! | spikes | 1281608 | 0.235 | 0.247 | 0.227 | 0.219 | 0.430 | 0.215 | 0.215 | 0.215 |
//! | decreasing | 513864 | 0.550 | 0.834 | 0.751 | 0.503 | 0.507 | 0.502 | 0.502 | 0.502 |
//! | increasing | 513864 | 0.550 | 0.564 | 0.564 | 0.506 | 0.507 | 0.502 | 0.502 | 0.502 |
//! | alternating | 385608 | 0.730 | 0.666 | 0.666 | 0.666 | 0.666 | 0.666 | 0.666 | 0.666 |
//! | skewed | 13108808 | 0.021 | 0.129 | 0.039 | 0.020 | 0.039 | 0.020 | 0.020 | 0.020 |
//! | two-blocks | 32769608 | 0.008 | 0.031 | 0.012 | 0.008 | 0.016 | 0.008 | 0.008 | 0.008 |
#![allow(clippy::print_stdout)]

use indicatif::{ProgressBar, ProgressStyle};
use oneport::internal::gather::{
    GatherProblem, GatherTree, binomial, degrading, linear, noncontiguous, optimal, ported,
    rank_ordered, two_groups, weakly_ordered,
};
use oneport::plan::distribution::Distribution;
use oneport::random::Generator;
use oneport::{CostModel, Result};

type Plan = fn(&GatherProblem) -> Result<GatherTree>;

fn main() -> Result<()> {
    small_instances(60)?;
    hard_instance()?;
    distributions(256, 1000)
}

fn time(problem: &GatherProblem, plan: Plan) -> Result<f64> {
    Ok(problem.time(&plan(problem)?))
}

/// Compares classes of trees on random instances, for each number of ranks and each latency.
fn small_instances(rounds: usize) -> Result<()> {
    println!(
        "Random blocks of 0 to 100, beta = 1, root free: classes that beat the best adjacent tree.\n"
    );
    println!("| p | alpha | gamma_copy | class | better in | by (mean of these) | by (most) |");
    println!("|---|---|---|---|---|---|---|");
    let classes: [(&str, Plan, usize); 4] = [
        ("rank-ordered", rank_ordered::tree, 1),
        ("weakly ordered", weakly_ordered::exact, 1),
        ("non-ordered", noncontiguous::exact, 1),
        ("2-ported, non-ordered", ported::exact, 2),
    ];
    let mut random = Generator::new(1);
    // The larger instances take max of the time.
    let bar = ProgressBar::new(
        (8..=12)
            .map(|p| 3 * (rounds_of(p, rounds) << p) as u64)
            .sum(),
    );
    let style = ProgressStyle::with_template("{bar:40} {percent}%, {eta} left");
    bar.set_style(style.unwrap_or(ProgressStyle::default_bar()));
    for p in 8..=12 {
        for (alpha, gamma) in [(1.0, 0.0), (20.0, 0.0), (20.0, 1.0)] {
            let mut gains = vec![Vec::new(); classes.len()];
            let rounds = rounds_of(p, rounds);
            for _ in 0..rounds {
                bar.inc(1 << p);
                let sizes = (0..p).map(|_| random.below(101) as u64).collect();
                let cost = CostModel::new(alpha, 1.0).gamma_copy(gamma);
                let problem = GatherProblem::new(sizes, cost, None)?;
                let adjacent = time(&problem, optimal::tree)?;
                for (gains, &(_, plan, ports)) in gains.iter_mut().zip(&classes) {
                    if ports > 1 && gamma > 0.0 {
                        continue;
                    }
                    let other = time(&problem.clone().with_ports(ports)?, plan)?;
                    if other < adjacent {
                        gains.push(1.0 - other / adjacent);
                    }
                }
            }
            for (gains, (name, _, ports)) in gains.iter().zip(classes) {
                if ports > 1 && gamma > 0.0 {
                    continue;
                }
                let mean = gains.iter().fold(0.0, |a, b| a + b) / gains.len().max(1) as f64;
                let max = gains.iter().copied().fold(0.0, f64::max);
                let line = format!(
                    "| {p} | {alpha} | {gamma} | {name} | {:.0}% | {:.2}% | {:.2}% |",
                    100.0 * gains.len() as f64 / rounds as f64,
                    100.0 * mean,
                    100.0 * max
                );
                bar.suspend(|| println!("{line}"));
            }
        }
    }
    bar.finish_and_clear();
    Ok(())
}

/// Number of instances of `p` ranks: fewer of the largest, which take longest.
fn rounds_of(p: usize, rounds: usize) -> usize {
    rounds >> (p - 8).min(3)
}

fn hard_instance() -> Result<()> {
    let sizes = vec![21, 31, 31, 31, 41, 41, 41, 61, 61, 131, 240, 250];
    let cost = CostModel::new(1.0, 1.0).gamma_copy(1.0);
    let problem = GatherProblem::new(sizes, cost, None)?;
    println!(
        "\nThe PARTITION instance: adjacent {}, rank-ordered {}, weakly ordered {}, non-ordered {}.",
        time(&problem, optimal::tree)?,
        time(&problem, rank_ordered::tree)?,
        time(&problem, weakly_ordered::exact)?,
        time(&problem, noncontiguous::exact)?
    );
    Ok(())
}

/// Prints model times over each distribution, relative to those of padding.
fn distributions(p: usize, b: usize) -> Result<()> {
    let plans: [(&str, Plan); 8] = [
        ("linear", linear::tree),
        ("oblivious", binomial::oblivious),
        ("adaptive", binomial::adaptive),
        ("degrading", degrading::tree),
        ("two", two_groups::tree),
        ("optimal", optimal::tree),
        ("weakly-ordered", weakly_ordered::tree),
        ("unordered", noncontiguous::tree),
    ];
    let root = p / 2;
    let cost = CostModel::new(100.0, 1.0).gamma_copy(1.0);
    println!(
        "\np = {p}, b = {b}, rho = 5, root {root}, alpha = 100, beta = gamma_copy = 1: model times over those of padding.\n"
    );
    let names: Vec<_> = plans.iter().map(|p| p.0).collect();
    println!("| distribution | padded | {} |", names.join(" | "));
    println!("|---|---|{}", "---|".repeat(plans.len()));
    for distribution in Distribution::ALL {
        let sizes = distribution.sizes(p, b, 5, 1)?;
        let largest = sizes.iter().copied().max().unwrap_or(0) as u64;
        let sizes = sizes.iter().map(|&s| s as u64).collect();
        let problem = GatherProblem::new(sizes, cost.clone(), Some(root))?;
        let equal = GatherProblem::new(vec![largest; p], cost.clone(), Some(root))?;
        // An allreduce of one number takes one message of one unit for each doubling.
        let rounds = f64::from(p.next_power_of_two().trailing_zeros());
        let padded = rounds * cost.transfer(0, 1, 1) + time(&equal, binomial::adaptive)?;
        let mut line = format!("| {} | {padded} |", distribution.name());
        for (_, plan) in plans {
            line += &format!(" {:.3} |", time(&problem, plan)? / padded);
        }
        println!("{line}");
    }
    Ok(())
}
