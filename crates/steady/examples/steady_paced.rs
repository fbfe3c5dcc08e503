//! Measured throughput against the optimum: series of operations on threads with real data, at the
//! platforms' pace.
//!
//! ```text
//! cargo run --release -p oneport-steady --example steady_paced              all platforms
//! cargo run --release -p oneport-steady --example steady_paced -- fig3      by part of a name
//! ```
//!
//! Each schedule is run for `N` and for `2N` operations. The steady throughput is `N` divided by
//! the difference of the times, which excludes start-up and clean-up. The throughput of the whole
//! run of `2N` operations includes them. A time unit lasts long enough for two cores to keep pace
//! with all ranks. Every run is verified. The times are wall-clock: run it on an idle machine.

#![allow(clippy::print_stdout, reason = "it prints its measurements")]

use oneport::Ports;
use oneport::internal::numbers::truncated;
use oneport::run::{Clock, Operator, Run, Team, inputs, oracle};
use oneport_steady::{Operation, Periodic, Platform, SolveMethod, generate, parse_fraction, solve};

/// Nanoseconds of a time unit.
const UNIT_NS: f64 = 2e6;
/// Approximate duration of a run in time units.
const RUN_UNITS: f64 = 500.0;

fn main() -> oneport::Result<()> {
    let filter = std::env::args().nth(1).unwrap_or_default();
    println!(
        "platform            operation       ports  optimum  steady (of it)      whole run (of it)"
    );
    let mut cases: Vec<(String, Platform, Operation)> = Vec::new();
    for name in ["fig3", "ring:3"] {
        cases.push((name.into(), generate(name, 0)?, Operation::Broadcast));
    }
    for n in 3..=8 {
        let name = format!("complete:{n}");
        cases.push((name.clone(), generate(&name, 0)?, Operation::Reduce));
    }
    let half = parse_fraction("1/2").unwrap_or_default();
    let computing = generate("complete:4", 0)?.with_compute(vec![half; 4])?;
    for operation in [Operation::ReduceOrdered, Operation::Scan] {
        cases.push(("complete:4, 1/2".into(), computing.clone(), operation));
    }
    for (name, platform, operation) in cases {
        if !name.contains(&filter) {
            continue;
        }
        for ports in [Ports::BI, Ports::UNI] {
            let solution = solve(&platform, operation, ports, SolveMethod::Ports)?;
            let periodic = solution.periodic(None, None)?;
            let rho = solution.throughput.to_f64();
            let periods = (RUN_UNITS * rho / 2.0 / periodic.operations() as f64).ceil();
            let n = periodic.operations() * truncated(periods).max(1);
            let (short, long) = (seconds(&periodic, n)?, seconds(&periodic, 2 * n)?);
            let units = |seconds: f64| seconds / (UNIT_NS * 1e-9);
            let steady = n as f64 / units(long - short);
            let whole = 2.0 * n as f64 / units(long);
            println!(
                "{name:19} {:15} {:5}  {:>7}  {steady:.4} ({:6.2}%)    {whole:.4} ({:6.2}%)",
                operation.name(),
                ports.name(),
                solution.throughput.to_string(),
                100.0 * steady / rho,
                100.0 * whole / rho,
            );
        }
    }
    Ok(())
}

/// Wall-clock time in seconds of a verified run of `operations` operations.
fn seconds(periodic: &Periodic, operations: usize) -> oneport::Result<f64> {
    let schedule = periodic.schedule(operations)?;
    let operator = Operator::<u64>::named("affine")?;
    let commuting = Operator::<u64>::named("sum")?;
    let ordered = matches!(
        periodic.solution().operation,
        Operation::ReduceOrdered | Operation::Scan
    );
    let operator = if ordered { operator } else { commuting };
    let data = inputs(schedule.collective(), schedule.layout(), &operator);
    let mut team = Team::new(schedule.ranks())?;
    let outcome = Run::new(&schedule)
        .op(&operator)
        .inputs(&data)
        .clock(Clock::Paced)
        .cost(periodic.cost(UNIT_NS / size_of::<u64>() as f64)?)
        .on(&mut team)?;
    let expected = oracle(schedule.collective(), schedule.layout(), &operator, &data)?;
    assert!(outcome.outputs == expected, "the run's result is wrong");
    Ok(outcome.wall.max_ns() as f64 * 1e-9)
}
