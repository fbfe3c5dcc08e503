//! Tests of ports for calls: one partner at a time, in both directions at once.

use oneport::check::FindingKind;
use oneport::{CostModel, Kind, Ports, Request, Schedule};

fn request(kind: Kind, p: usize) -> Request {
    let cost = CostModel::new(10.0, 1.0).gamma(0.5);
    Request::new(kind, p, 12).cost(cost)
}

fn time(schedule: &Schedule, request: &Request) -> f64 {
    schedule.simulate(request.get_cost()).unwrap().makespan()
}

/// Each round of these is made of calls.
#[test]
fn algorithms_of_exchanges_lose_nothing() {
    for (kind, name) in [
        (Kind::Allreduce, "recursive-doubling"),
        (Kind::Allreduce, "rabenseifner"),
        (Kind::Allreduce, "swing"),
        (Kind::Allgather, "recursive-doubling"),
        (Kind::Allgather, "neighbor-exchange"),
        (Kind::ReduceScatter, "recursive-halving"),
    ] {
        for p in [2, 4, 8, 16] {
            let own = request(kind, p).ports(Ports::TELEPHONE);
            let schedule = own.plan(name).unwrap();
            assert_eq!(schedule.ports(), Ports::TELEPHONE);
            let both = own.clone().ports(Ports::BI);
            let [calls, both] = [
                time(&schedule, &own),
                time(&both.plan(name).unwrap(), &both),
            ];
            assert_eq!(calls, both, "{name}, {p} ranks");
        }
    }
}

/// `log2 p` calls of all that is known so far, as in the telephone problem.
#[test]
fn recursive_doubling_takes_the_published_time() {
    for d in 1..=6u32 {
        let (p, m) = (1usize << d, 12.0);
        let own = request(Kind::Allreduce, p).ports(Ports::TELEPHONE);
        let own = own.cost(CostModel::new(10.0, 1.0));
        let schedule = own.plan("recursive-doubling").unwrap();
        assert_eq!(time(&schedule, &own), f64::from(d) * (10.0 + m));
        let own = Request::new(Kind::Allgather, p, 12).ports(Ports::TELEPHONE);
        let own = own.cost(CostModel::new(10.0, 1.0));
        let expected = f64::from(d) * 10.0 + (p - 1) as f64 * m;
        assert_eq!(
            time(&own.plan("recursive-doubling").unwrap(), &own),
            expected
        );
    }
}

/// In a ring each rank needs two partners at once.
#[test]
fn a_ring_for_both_directions_is_no_series_of_calls() {
    let ring = request(Kind::Allgather, 5).plan("ring").unwrap();
    assert!(ring.check().is_correct());
    let report = ring.with_ports(Ports::TELEPHONE).unwrap().check();
    assert!(!report.is_correct());
    let two = |f: &oneport::check::Finding| f.kind == FindingKind::TwoPorts;
    assert!(report.errors.iter().any(two), "{report}");
    let pair = request(Kind::Allgather, 2).plan("ring").unwrap();
    assert!(
        pair.with_ports(Ports::TELEPHONE)
            .unwrap()
            .check()
            .is_correct()
    );
}

#[test]
fn files_name_the_port_model() {
    let schedule = request(Kind::Allreduce, 4)
        .ports(Ports::TELEPHONE.with_k(2))
        .plan("recursive-doubling")
        .unwrap();
    let text = schedule.to_json();
    assert!(
        text.contains("\"ports\": \"telephone\", \"ported\": 2"),
        "{text}"
    );
    assert_eq!(Schedule::from_json(&text).unwrap(), schedule);
}
