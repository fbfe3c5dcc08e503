//! How much room there is for gathering irregular blocks better: classes of trees against each
//! other, and guidelines.
//!
//! `cargo run --release --example gather_classes` prints Markdown tables:
//!
//! - random small instances: how often, and by how much, rank-ordered, weakly ordered, non-ordered
//!   and two-ported trees beat adjacent ones;
//! - the instance by which the best non-ordered tree is shown to be hard to find;
//! - every distribution: model times of all trees, and whether guideline (2) holds: not slower than
//!   agreeing on the largest block and gathering as if all had its size.
#![allow(clippy::print_stdout)]

use indicatif::{ProgressBar, ProgressStyle};
use oneport::distribution::{Distribution, Generator};
use oneport::plan::gather::{
    GatherTree, Problem, binomial, degrading, linear, noncontiguous, optimal, ported, rank_ordered,
    two_groups, weakly_ordered,
};
use oneport::{CostModel, Result};

type Plan = fn(&Problem) -> Result<GatherTree>;

fn main() -> Result<()> {
    small_instances(60)?;
    hard_instance()?;
    distributions(256, 1000)
}

fn time(problem: &Problem, plan: Plan) -> Result<f64> {
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
                let problem = Problem::new(sizes, cost, None)?;
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
    let problem = Problem::new(sizes, cost, None)?;
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
        let problem = Problem::new(sizes, cost.clone(), Some(root))?;
        let equal = Problem::new(vec![largest; p], cost.clone(), Some(root))?;
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
