//! A rank program: a ring allgather, in which every rank runs the same code on its own thread.

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use oneport::Schedule;
use oneport::run::{Bidirectional, Endpoint, ScopeOptions, Team};

/// Sends the block that came last to the right while receiving the next one from the left.
fn ring(e: &mut Endpoint<u64, Bidirectional>) -> oneport::Result<()> {
    let (rank, p) = (e.rank(), e.ranks());
    for k in 0..p - 1 {
        let (give, get) = ((rank + p - k) % p, (rank + 2 * p - k - 1) % p);
        e.exchange(
            (rank + 1) % p,
            give..give + 1,
            (rank + p - 1) % p,
            get..get + 1,
        )?;
    }
    Ok(())
}

pub(crate) fn main() -> oneport::Result<()> {
    let p = 4;
    let mut buffers: Vec<Vec<u64>> = (0..p as u64).map(|rank| vec![rank; p]).collect();
    let options = ScopeOptions {
        record: true,
        ..ScopeOptions::default()
    };
    let outcome = Team::new(p)?.scope(&mut buffers, &options, ring)?;
    assert!(buffers.iter().all(|b| b == &[0, 1, 2, 3]));

    // What the ranks did is a schedule.
    let shape = Schedule::allgather(p, 1).build()?;
    let recorded = outcome.schedule(shape.collective(), shape.layout())?;
    assert!(recorded.check().is_correct());
    println!("{} steps of {p} ranks, proved", recorded.steps());
    Ok(())
}
