//! Benchmark of the paced clock: how close wall-clock times are to model times.
//!
//! `cargo bench --bench pace` runs reductions of 64 KiB in 8 segments with `alpha = 200 us` and
//! `beta = 1 ns/byte`, and writes the median ratio of wall-clock to model time. `-- --quick` runs
//! fewer repetitions.
#![allow(clippy::print_stdout, missing_docs)]

mod selected;
mod terminal;

use oneport::plan::registry;
use oneport::run::{Clock, Operator, Run, Team, inputs, oracle};
use oneport::{CostModel, Kind, Ports, Request};

fn main() {
    if !selected::selected("pace/reduce") {
        return;
    }
    terminal::detailed("pace", measure);
}

fn measure() {
    println!(
        "{:>4} {:<14} {:<5} {:>10} {:>10} {:>8} {:>8}",
        "p", "algorithm", "ports", "model us", "median us", "ratio", "p99"
    );
    let quick = std::env::args().any(|a| a == "--quick");
    let elements = (64 << 10) / size_of::<f32>();
    let sum = Operator::<f32>::named("sum").expect("built in");
    for p in [4, 16, 64] {
        let mut team = Team::new(p).expect("threads");
        for algorithm in registry::of(Kind::Reduce) {
            for ports in [Ports::BI, Ports::UNI] {
                let request = Request::new(algorithm.collective, p, elements)
                    .segment_count(8)
                    .ports(ports)
                    .element_bytes(size_of::<f32>() as u64)
                    .cost(CostModel::new(200_000.0, 1.0));
                if !algorithm.ports.allow(ports) {
                    continue;
                }
                let schedule = algorithm.plan(&request).expect("a valid request");
                let data = inputs(schedule.collective(), schedule.layout(), &sum);
                let outcome = Run::new(&schedule)
                    .op(&sum)
                    .inputs(&data)
                    .clock(Clock::Paced)
                    .cost(request.get_cost().clone())
                    .repetitions(if quick { 9 } else { 51 })
                    .warmup(3)
                    .on(&mut team)
                    .expect("a valid schedule");
                let expected = oracle(schedule.collective(), schedule.layout(), &sum, &data);
                assert_eq!(Ok(outcome.outputs), expected);
                let [median, p99] = [0.5, 0.99].map(|q| outcome.wall.quantile_ns(q) as f64);
                println!(
                    "{p:>4} {:<14} {:<5} {:>10.1} {:>10.1} {:>8.4} {:>8.3} {}",
                    algorithm.name(),
                    ports.name(),
                    outcome.model_time * 1e-3,
                    median * 1e-3,
                    median / outcome.model_time,
                    p99 / outcome.model_time,
                    if outcome.warnings.is_empty() {
                        ""
                    } else {
                        "(warned)"
                    }
                );
            }
        }
    }
}
