//! A first program: plan a broadcast, prove it, time it in the model, and run it with real bytes.

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use oneport::run::{Clock, Run, Team};
use oneport::{CostModel, Request};

pub(crate) fn main() -> oneport::Result<()> {
    // 8 ranks, 1000 elements of 8 bytes; a message of n bytes takes 100 us + n * 10 ns.
    let machine = CostModel::new(100_000.0, 10.0);
    let request = Request::broadcast(8, 1000).element_bytes(8);
    let schedule = request.plan_best(&machine)?;

    let report = schedule.check();
    assert!(report.is_correct(), "{report}");
    let simulation = schedule.simulate(&machine)?;
    println!("model time   {:>9} ns", simulation.makespan());

    // As fast as this machine can, then at the pace of the model.
    let mut team = Team::new(8)?;
    let run = Run::<f64>::new(&schedule).verified().cost(machine);
    for (what, clock) in [("native", Clock::Native), ("paced", Clock::Paced)] {
        let outcome = run.clone().clock(clock).repetitions(10).on(&mut team)?;
        assert!(outcome.is_verified());
        println!("{what:<6} run   {:>9} ns", outcome.wall.median_ns());
    }
    Ok(())
}
