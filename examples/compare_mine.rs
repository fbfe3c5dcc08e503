//! Algorithms of one's own beside all others, over ranks and sizes: a broadcast down a 3-ary tree
//! as a schedule, and one along the ranks as a rank program that is recorded.

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use oneport::run::{Bidirectional, Endpoint, ScopeOptions, Team};
use oneport::{CostModel, Request, Schedule};
use oneport_measure::{OwnPlanner, compare};
use oneport_pictures::shell::Heading;
use oneport_pictures::{Caption, Quantity, plot};

/// Rank `r` sends the vector to ranks `3 r + 1`, `3 r + 2` and `3 r + 3`.
fn ternary(ranks: usize, elements: usize) -> oneport::Result<Schedule> {
    let mut b = Schedule::broadcast(ranks, elements);
    for child in 1..ranks {
        b.transfer((child - 1) / 3, child, 0..elements);
    }
    b.build()
}

/// Each rank receives the vector from the one before it and sends it to the one after it.
fn relay(ranks: usize, elements: usize) -> oneport::Result<Schedule> {
    let program = |e: &mut Endpoint<u8, Bidirectional>| {
        if e.rank() > 0 {
            e.recv(e.rank() - 1, 0..elements)?;
        }
        if e.rank() + 1 < ranks {
            e.send(e.rank() + 1, 0..elements)?;
        }
        Ok(())
    };
    let options = ScopeOptions {
        record: true,
        ..ScopeOptions::default()
    };
    let mut buffers = vec![vec![0; elements]; ranks];
    let outcome = Team::new(ranks)?.scope(&mut buffers, &options, program)?;
    let shape = Schedule::broadcast(ranks, elements).build()?;
    outcome.schedule(shape.collective(), shape.layout())
}

pub(crate) fn main() -> oneport::Result<()> {
    let request = Request::broadcast(2, 1).cost(CostModel::new(10.0, 1.0));
    let own: [(&str, OwnPlanner<'_>); 2] = [("ternary", &ternary), ("relay", &relay)];
    let sweep = compare(&request, &[4, 13], &[1, 1000], &own)?;
    for point in sweep.points() {
        println!("{} ranks, {} elements", point.ranks, point.bytes);
        for row in sweep.at(point) {
            println!("  {:<18} {:>6}", row.algorithm, row.time);
        }
    }
    // The text of a page of plots, and of a picture for a paper, for `std::fs::write`.
    let heading = Heading {
        title: "Broadcasts of mine".to_string(),
        summary: vec![("costs", "alpha 10, beta 1".to_string())],
        warnings: Vec::new(),
    };
    let page = sweep.page(&heading);
    let caption = Caption::new(&*heading.title).line("alpha 10, beta 1");
    let picture = plot(&sweep, Quantity::Ratio, Some(5), &caption);
    assert!([page, picture].iter().all(|text| text.contains("ternary")));
    Ok(())
}
