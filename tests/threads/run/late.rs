//! Ranks that arrive late, and senders that do not wait, on real threads.

use std::time::{Duration, Instant};

use oneport::machine::Eager;
use oneport::run::{Clock, Run, Team};
use oneport::{CostModel, Ports, Request, Span, Step};

use super::{multiplexed, two_ranks};
use crate::support::alone::shared;

/// Both ranks send before they receive, which only senders that do not wait survive; the second
/// message follows before the first has been received.
#[test]
fn paced_senders_need_not_wait() {
    let _shared = shared();
    let quarter = |i: usize| Span::new(10 * i, 10);
    let program = |own: usize, theirs: usize, peer: usize| {
        let sends = [0, 1].map(|i| Step::send(peer, quarter(own + i)));
        let receives = [0, 1].map(|i| Step::recv(peer, quarter(theirs + i)));
        sends.into_iter().chain(receives).collect()
    };
    let schedule = two_ranks(Ports::UNI, [program(0, 2, 1), program(2, 0, 0)]);
    let cost = CostModel::new(1e6, 0.0).latency(5e6).eager(Eager::All);
    let outcome = Run::<u16>::new(&schedule)
        .verified()
        .clock(Clock::Paced)
        .cost(cost.arrivals(vec![0.0, 2e6]))
        .repetitions(3)
        .on(&mut Team::new(2).unwrap())
        .unwrap();
    assert!(outcome.is_verified());
    // Rank 1 sends from 2 to 4 ms; its messages start at rank 0 5 ms later.
    assert_eq!(outcome.rank_times, vec![9e6, 7e6]);
}

#[test]
fn ranks_arrive_late() {
    let _shared = shared();
    let schedule = Request::broadcast(3, 10).plan("binomial").unwrap();
    let cost = CostModel::new(1000.0, 0.0).arrivals(vec![0.0, 20e6, 3e6]);
    let run = Run::<u8>::new(&schedule)
        .verified()
        .repetitions(2)
        .cost(cost);
    let start = Instant::now();
    let outcome = run.on(&mut Team::new(3).unwrap()).unwrap();
    let all = start.elapsed() - outcome.wall.total();
    assert!(outcome.is_verified());
    assert!(all >= Duration::from_millis(40), "{all:?} besides");
    let error = run.on(&mut multiplexed(3, 1)).unwrap_err().to_string();
    assert!(
        error.contains("arrive late need a thread for each"),
        "{error}"
    );
}

/// An arrival or a paced run of days is a mistaken unit, which would look like a hang.
#[test]
fn times_that_nobody_waits_for_are_refused() {
    let _shared = shared();
    let mut team = Team::new(2).unwrap();
    let schedule = Request::broadcast(2, 4).plan("binomial").unwrap();
    let late = CostModel::new(1.0, 0.0).arrivals(vec![0.0, 1e15]);
    let slow = CostModel::new(1e15, 0.0);
    for (cost, clock, why) in [
        (&late, Clock::Native, "the last rank arrives 1e15 ns"),
        (&late, Clock::Paced, "the last rank arrives 1e15 ns"),
        (&slow, Clock::Paced, "the paced run ends 1e15 ns"),
    ] {
        let run = Run::<u8>::new(&schedule).cost(cost.clone()).clock(clock);
        let error = run.on(&mut team).unwrap_err();
        assert!(
            error.is_usage() && error.to_string().contains(why),
            "{error}"
        );
    }
    // Native runs do not wait for the times of messages.
    Run::<u8>::new(&schedule).cost(slow).on(&mut team).unwrap();
}
