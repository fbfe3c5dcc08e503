//! Benchmark of exact throughputs for series of broadcasts: 20 random platforms of 30 nodes and 150
//! edges under both port models, and one of 100 nodes and 500 edges with bidirectional ports.
//!
//! ```text
//! cargo bench -p oneport-steady         all of it
//! cargo bench -p oneport-steady -- 5      only 5 of the 20
//! ```

#![allow(clippy::print_stdout, reason = "a bench prints its measurements")]

#[path = "../../../benches/selected/mod.rs"]
mod selected;

use std::time::Instant;

use oneport::Ports;
use oneport_steady::{Operation, SolveMethod, generate, show_short, solve};

fn main() {
    if !selected::selected("steady/throughput") {
        return;
    }
    let platforms: u64 = std::env::args().find_map(|a| a.parse().ok()).unwrap_or(20);
    let mut all = 0.0;
    for (ports, name) in [(Ports::BI, "bi"), (Ports::UNI, "uni")] {
        let mut sum = 0.0;
        for seed in 0..platforms {
            let (time, text) = timed("random:30:150", seed, ports);
            println!("random:30:150, seed {seed:2}, {name:3}: {time:6.2} s, {text}");
            sum += time;
        }
        println!("{platforms} platforms of 30 nodes, {name}: {sum:.2} s");
        all += sum;
    }
    println!("both port models together: {all:.2} s (to be less than 60)");
    let (time, text) = timed("random:100:500", 0, Ports::BI);
    println!("random:100:500, bi: {time:.2} s, {text} (to be less than 60)");
}

/// Returns the time in seconds and a description of the solution.
fn timed(name: &str, seed: u64, ports: Ports) -> (f64, String) {
    let platform = generate(name, seed).expect("the name is right");
    let start = Instant::now();
    let solution = solve(&platform, Operation::Broadcast, ports, SolveMethod::Ports);
    let time = start.elapsed().as_secs_f64();
    let solution = solution.expect("every node can be reached");
    assert!(solution.certificate.is_some() && solution.is_optimal);
    let text = format!(
        "throughput {}, {} trees, {} matchings",
        show_short(&solution.throughput),
        solution.routes.len(),
        solution.slots.len()
    );
    (time, text)
}
