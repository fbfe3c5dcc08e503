//! Late ranks, latency and eager sends against published figures and closed forms.
//! `rules.rs` compares them with an evaluator of its own.

use oneport::machine::Eager;
use oneport::run::{Clock, Endpoint, Op, Run, ScopeOptions, Team};
use oneport::simulate::stream;
use oneport::{CostModel, Ports, Request, Schedule};

/// The broadcast in which each rank that has the message sends it as soon and as often as it can,
/// and the times at which ranks have it: a message keeps the sender for `port` and arrives after
/// `latency + port`.
fn greedy_broadcast(p: usize, port: f64, latency: f64) -> (Schedule, Vec<f64>) {
    let (mut informed, mut free) = (vec![0.0], vec![0.0]);
    let mut b = Schedule::broadcast(p, 1);
    b.ports(Ports::BI);
    while informed.len() < p {
        let ranks = 0..informed.len();
        let sender = ranks
            .min_by(|&a, &b| f64::total_cmp(&free[a], &free[b]))
            .unwrap();
        b.transfer(sender, informed.len(), 0..1);
        free[sender] += port;
        let arrived = free[sender] + latency;
        informed.push(arrived);
        free.push(arrived);
    }
    (b.build().unwrap(), informed)
}

/// LogP (Culler et al. 1993), P = 8, L = 6, o = 2, g = 4: ranks are informed at these times.
#[test]
fn logp_broadcast() {
    // alpha = max(o, g), and the latency is what is left of L + 2 o.
    let (alpha, latency) = (4.0, 6.0);
    let (schedule, _) = greedy_broadcast(8, alpha, latency);
    let cost = CostModel::new(alpha, 0.0)
        .latency(latency)
        .eager(Eager::All);
    let mut times = Vec::new();
    for rank in 0..8 {
        let last = schedule.programs()[rank]
            .iter()
            .position(|step| !step.is_send());
        let simulation = schedule.simulate(&cost).unwrap();
        times.push(last.map_or(0.0, |i| {
            let event = oneport::rules::Event::transferred(i);
            let node = simulation.prepared().node(rank, event).unwrap();
            simulation.finish(node)
        }));
    }
    times.sort_by(f64::total_cmp);
    assert_eq!(times, [0.0, 10.0, 14.0, 18.0, 20.0, 22.0, 24.0, 24.0]);
}

/// The postal model (Bar-Noy, Kipnis 1994): the least time of a broadcast to n ranks.
#[test]
fn postal_broadcast() {
    let cases = [
        (2.5, [6.0, 7.5, 8.0, 9.5, 12.5, 18.0]),
        (2.0, [5.0, 7.0, 7.0, 8.0, 11.0, 16.0]),
        (3.0, [7.0, 9.0, 9.0, 11.0, 14.0, 20.0]),
        (4.0, [9.0, 10.0, 11.0, 13.0, 17.0, 24.0]),
        (1.0, [3.0, 4.0, 4.0, 5.0, 7.0, 10.0]),
    ];
    for (lambda, times) in cases {
        for (p, time) in [8, 14, 16, 32, 100, 1024].into_iter().zip(times) {
            let (schedule, informed) = greedy_broadcast(p, 1.0, lambda - 1.0);
            let cost = CostModel::new(1.0, 0.0)
                .latency(lambda - 1.0)
                .eager(Eager::All);
            let makespan = schedule.simulate(&cost).unwrap().makespan();
            assert_eq!(makespan, time, "lambda {lambda}, {p} ranks");
            assert_eq!(informed.iter().copied().fold(0.0, f64::max), time);
        }
    }
}

/// A binomial reduction whose late rank is its deepest takes `max a + log2 p`.
#[test]
fn binomial_reduction_with_a_late_rank() {
    for (p, rounds) in [(2, 1.0), (8, 3.0), (32, 5.0)] {
        let schedule = Request::reduce(p, 1).plan("binomial").unwrap();
        for late in [1.0, 2.5, 40.0] {
            let mut arrivals = vec![0.0; p];
            arrivals[p - 1] = late;
            let cost = CostModel::new(1.0, 0.0).arrivals(arrivals);
            assert_eq!(schedule.simulate(&cost).unwrap().makespan(), late + rounds);
        }
    }
}

/// Ranks that all arrive at the same time take the time of today and that; one rank, too.
#[test]
fn equal_arrivals_shift_time() {
    let cost = CostModel::new(3.0, 1.0).gamma(2.0);
    for p in [1, 2, 5, 8] {
        let schedule = Request::allreduce(p, 16).plan("ring").unwrap();
        let ideal = schedule.simulate(&cost).unwrap().makespan();
        let late = cost.clone().arrivals(vec![7.0; p]);
        assert_eq!(schedule.simulate(&late).unwrap().makespan(), ideal + 7.0);
        let streamed = stream(&schedule, &late, 1, |_| ()).unwrap();
        assert_eq!(streamed.time, ideal + 7.0);
        let outcome = Run::<u64>::new(&schedule).op(Op::SUM).cost(late.clone());
        let outcome = outcome.on(&mut Team::new(p).unwrap()).unwrap();
        let eight = schedule.clone().with_element_bytes(8);
        assert_eq!(
            outcome.model_time,
            eight.simulate(&late).unwrap().makespan()
        );
    }
}

#[test]
fn bad_delays_are_named() {
    let schedule = Request::reduce(4, 1).plan("binomial").unwrap();
    let eager = CostModel::new(1.0, 1.0).eager(Eager::All);
    let paced = ScopeOptions {
        clock: Clock::Paced,
        cost: eager,
        ..ScopeOptions::default()
    };
    let mut buffers = vec![vec![0u64]; 4];
    let program = |_: &mut Endpoint<u64>| Ok(());
    let refused = Team::new(4).unwrap().scope(&mut buffers, &paced, program);
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("leave eager sends out"), "{refused}");
    let error = |cost: CostModel| schedule.simulate(&cost).unwrap_err().to_string();
    let cost = || CostModel::new(1.0, 1.0);
    for (cost, what) in [
        (cost().latency(-1.0), "latency is -1.0"),
        (cost().latency(f64::NAN), "latency is NaN"),
        (
            cost().arrivals(vec![0.0, f64::INFINITY, 0.0, 0.0]),
            "arrival of rank 1 is inf",
        ),
        (
            cost().arrivals(vec![1.0; 3]),
            "arrivals are those of 3 ranks, but there are 4",
        ),
    ] {
        let error = error(cost);
        assert!(error.contains(what), "{error}");
    }
}
