//! Counts the different circulant schedules for each number of ranks, within a time budget.
//!
//! `cargo run --release --example circulant_count -- [UP_TO] [SECONDS_EACH]` (by default 128 and
//! 10).
#![allow(clippy::print_stdout)]

mod count;

use std::time::{Duration, Instant};

use count::{MAX_RANKS, count};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<usize>());
    let mut number = |default: usize| arguments.next().unwrap_or(Ok(default));
    let (Ok(max_ranks), Ok(seconds)) = (number(MAX_RANKS), number(10)) else {
        eprintln!("usage: circulant_count [UP_TO] [SECONDS_EACH]");
        std::process::exit(2);
    };
    println!("{:>4} {:>24} {:>10}", "p", "schedules", "seconds");
    for p in 2..=max_ranks.min(MAX_RANKS) {
        let start = Instant::now();
        let found = count(p, Some(start + Duration::from_secs(seconds as u64)));
        let shown = found.map_or("?".to_string(), |n| n.to_string());
        println!("{p:>4} {shown:>24} {:>10.2}", start.elapsed().as_secs_f64());
    }
}
