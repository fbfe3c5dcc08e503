//! Figures of single algorithms: the times and the schedules of their sources, and how far they are
//! from bounds.

mod circulant;
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
    let times = schedule.simulate_bytes(request.get_cost(), request.get_element_bytes());
    times.unwrap().makespan()
}

/// The closed form of an algorithm's model time.
fn closed_form(request: &Request, name: &str) -> Option<f64> {
    let row = registry::find(request.kind(), name).unwrap();
    row.closed_form(request)
}
