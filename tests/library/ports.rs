//! Tests of all port models, also of those to come.

use oneport::plan::registry;
use oneport::run::Team;
use oneport::{CostModel, Kind, Ports, Request, Schedule};

use super::registry::assert_delivers;

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

fn request(kind: Kind, p: usize, ports: Ports) -> Request {
    let cost = CostModel::new(10.0, 1.0).gamma(0.5);
    Request::new(kind, p, 12).ports(ports).cost(cost)
}

/// Whatever the model, each collective is planned, and all that is planned is right.
#[test]
fn all_collectives_are_planned_for_all_port_models() {
    for kind in Kind::ALL {
        for (p, k) in (1..=5).flat_map(|p| [(p, 1), (p, 2), (p, 3)]) {
            for ports in Ports::KINDS.map(|ports| ports.with_k(k)) {
                let request = request(kind, p, ports);
                let mut planned = 0;
                for algorithm in registry::of(kind).filter(|a| a.accepts(&request).is_ok()) {
                    let what = format!("{kind} {algorithm}, {p} ranks, {}", ports.in_words());
                    let schedule = algorithm.plan(&request).unwrap();
                    assert_eq!(schedule.ports(), ports, "{what}");
                    let report = schedule.check();
                    assert!(report.is_correct(), "{what}: {report}");
                    planned += 1;
                }
                assert!(planned > 0, "{kind}, {p} ranks, {}", ports.in_words());
            }
        }
    }
}

fn time(schedule: &Schedule, request: &Request) -> f64 {
    schedule.simulate(request.get_cost()).unwrap().makespan()
}

/// A model where a transfer waits for more than its list, as for calls, has what is planned for one
/// direction at a time: it is right there, takes no longer, and the model clock of a run gives the
/// same time.
#[test]
fn what_does_not_wait_by_list_serves_one_direction_at_a_time() {
    let (mut planned, mut faster) = (0, 0);
    let models = Ports::KINDS
        .into_iter()
        .filter(|ports| !ports.waits_by_list());
    for (ports, kind) in models.flat_map(|ports| Kind::ALL.map(|kind| (ports, kind))) {
        for p in [2, 3, 4, 5, 7, 8, 12] {
            let mut team = Team::new(p).unwrap();
            for algorithm in registry::of(kind) {
                let one_way = request(kind, p, Ports::UNI);
                let own = one_way.clone().ports(ports);
                let name = &*algorithm.name();
                let what = format!("{kind} {name}, {p} ranks, {}", ports.in_words());
                let Ok(slow) = one_way.plan(name) else {
                    assert!(own.plan(name).is_err(), "{what}");
                    continue;
                };
                let schedule = own.plan(name).unwrap();
                let report = schedule.check();
                assert!(report.is_correct(), "{what}: {report}");
                let [slow, fast] = [time(&slow, &one_way), time(&schedule, &own)];
                assert!(fast <= slow, "{what}: {fast} > {slow}");
                assert_eq!(algorithm.time(&own).unwrap(), fast, "{what}");
                planned += 1;
                faster += usize::from(fast < slow);
                assert_delivers(&schedule, &own, &mut team, name);
            }
        }
    }
    assert!(planned > 500 && faster > 100, "{planned}, {faster} faster");
}
