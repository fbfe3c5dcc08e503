//! Figures of single algorithms: the times and the schedules of their sources, and how far they are
//! from bounds.

mod circulant;
mod colouring;
mod exchange;
mod out_of_order;
mod published;
mod segments;
mod trees;
mod uni_greedy;

use oneport::plan::Request;
use oneport::plan::registry;

/// The model time of an algorithm's schedule by simulation.
fn executed(request: &Request, name: &str) -> f64 {
    let schedule = request.plan(name).unwrap();
    schedule.simulate(request.get_cost()).unwrap().makespan()
}

/// The closed form of an algorithm's model time.
fn closed_form(request: &Request, name: &str) -> Option<f64> {
    let row = registry::find(request.get_collective(), name).unwrap();
    row.closed_form(request)
}

/// Sizes for every pair of ranks: none, equal ones, those of a scatter, a gather, a permutation
/// and a few irregular ones.
fn pair_sizes(ranks: usize) -> impl Iterator<Item = Vec<usize>> {
    let pairs = move |size: &dyn Fn(usize, usize) -> usize| -> Vec<usize> {
        (0..ranks * ranks)
            .map(|i| size(i / ranks, i % ranks))
            .collect()
    };
    let regular = [
        pairs(&|_, _| 0),
        pairs(&|_, _| 2),
        pairs(&|from, to| 2 * usize::from(from != to)),
        pairs(&|from, to| if from == 0 { to % 3 } else { 0 }),
        pairs(&|from, to| if to == 0 { 1 + from % 3 } else { 0 }),
        pairs(&|from, to| 4 * usize::from((from + 2) % ranks == to)),
    ];
    let irregular =
        move |seed: usize| pairs(&|from, to| (from * to * seed + 3 * from + 5 * to + seed) % 7 / 2);
    regular.into_iter().chain((1..6).map(irregular))
}
