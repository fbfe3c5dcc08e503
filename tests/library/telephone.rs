//! Tests of ports for calls: one partner at a time, in both directions at once.

use oneport::check::FindingKind;
use oneport::plan::registry;
use oneport::run::Team;
use oneport::{CostModel, Kind, Ports, Request, Schedule};

use super::registry::assert_delivers;

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

/// Everything that is planned for one direction at a time is right for calls, takes no longer, and
/// the model clock of a run gives the same time.
#[test]
fn all_algorithms_for_one_direction_serve_calls() {
    let (mut planned, mut faster) = (0, 0);
    for kind in Kind::ALL {
        for p in [2, 3, 4, 5, 7, 8, 12] {
            let mut team = Team::new(p).unwrap();
            for algorithm in registry::of(kind) {
                let one_way = request(kind, p).ports(Ports::UNI);
                let calls = one_way.clone().ports(Ports::TELEPHONE);
                let name = &*algorithm.name();
                let Ok(slow) = one_way.plan(name) else {
                    assert!(calls.plan(name).is_err(), "{kind} {name}, {p} ranks");
                    continue;
                };
                let schedule = calls.plan(name).unwrap();
                let report = schedule.check();
                assert!(report.is_correct(), "{kind} {name}, {p} ranks: {report}");
                let [slow, fast] = [time(&slow, &one_way), time(&schedule, &calls)];
                assert!(fast <= slow, "{kind} {name}, {p} ranks: {fast} > {slow}");
                let stated = algorithm.time(&calls).unwrap();
                assert_eq!(stated, fast, "{kind} {name}, {p} ranks");
                planned += 1;
                faster += usize::from(fast < slow);
                assert_delivers(&schedule, &calls, &mut team, name);
            }
        }
    }
    assert!(planned > 500 && faster > 100, "{planned}, {faster} faster");
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

/// A new model does not compile here before it has a number, which is its place in `KINDS`.
#[test]
fn all_port_models_are_listed() {
    for (number, ports) in Ports::KINDS.into_iter().enumerate() {
        let expected = match ports {
            Ports::Unidirectional { .. } => 0,
            Ports::Bidirectional { .. } => 1,
            Ports::Telephone { .. } => 2,
        };
        assert_eq!(number, expected);
    }
    assert_eq!(Ports::KINDS.len(), 3);
    assert_eq!(Ports::USAGE, Ports::NAMES.join("|"));
}
