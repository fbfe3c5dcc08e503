//! An algorithm of one's own: a broadcast down a 3-ary tree, proved, compared and run.

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use oneport::run::{Run, Team};
use oneport::{CostModel, Request, Schedule};

/// Rank `r` sends the vector to ranks `3 r + 1`, `3 r + 2` and `3 r + 3`.
fn ternary(ranks: usize, elements: usize) -> oneport::Result<Schedule> {
    let mut b = Schedule::broadcast(ranks, elements);
    for child in 1..ranks {
        b.transfer((child - 1) / 3, child, 0..elements);
    }
    b.build()
}

pub(crate) fn main() -> oneport::Result<()> {
    let (ranks, elements, cost) = (13, 100, CostModel::new(10.0, 1.0));
    let mine = ternary(ranks, elements)?;
    let report = mine.check();
    assert!(report.is_correct(), "{report}");

    let binomial = Request::broadcast(ranks, elements).plan("binomial")?;
    for (name, schedule) in [("ternary", &mine), ("binomial", &binomial)] {
        println!("{name:<8} {:>4}", schedule.simulate(&cost)?.makespan());
    }

    let outcome = Run::<u64>::new(&mine)
        .verified()
        .on(&mut Team::new(ranks)?)?;
    assert!(outcome.is_verified());
    Ok(())
}
