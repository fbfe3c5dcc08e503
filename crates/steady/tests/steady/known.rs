//! Known throughputs, and schedules within their time bounds.

use oneport::Ports;
use oneport_steady::{Operation, SolveMethod, best_single, generate, solve};

fn throughput(name: &str, operation: Operation, ports: Ports, method: SolveMethod) -> String {
    let platform = generate(name, 0).unwrap();
    let solution = solve(&platform, operation, ports, method).unwrap();
    solution.throughput.to_string()
}

#[test]
fn known_throughputs() {
    let of = |name: &str, operation, ports| throughput(name, operation, ports, SolveMethod::Ports);
    use Operation::{Broadcast, Reduce};
    assert_eq!(of("fig3", Broadcast, Ports::BI), "1");
    assert_eq!(of("fig3", Broadcast, Ports::UNI), "2/3");
    assert_eq!(of("ring:3", Broadcast, Ports::BI), "1");
    assert_eq!(of("ring:3", Broadcast, Ports::UNI), "1/2");
    let complete = [(3, "1/2"), (4, "2/3"), (5, "1/2"), (6, "3/5"), (8, "4/7")];
    for (n, expected) in complete {
        let name = format!("complete:{n}");
        assert_eq!(of(&name, Reduce, Ports::UNI), expected, "{name}");
    }
}

/// Schedules pass the checker and take no longer than their time bound.
#[test]
fn schedules() {
    let names = [
        "fig3",
        "ring:3",
        "complete:4",
        "grid:2x3",
        "star:4",
        "clustered:2x3",
        "random:6:12",
    ];
    for name in names {
        for ports in [Ports::BI, Ports::UNI] {
            for operation in Operation::ALL {
                let platform = generate(name, 3).unwrap();
                let Ok(solution) = solve(&platform, operation, ports, SolveMethod::Ports) else {
                    continue;
                };
                let periodic = solution.periodic(None, None).unwrap();
                assert!(periodic.throughput() <= solution.throughput);
                let case = format!("{name} {} {ports:?}", operation.name());
                for n in [1, periodic.operations(), 3 * periodic.operations() + 1] {
                    let schedule = periodic.schedule(n).unwrap();
                    let report = schedule.check();
                    assert!(report.is_correct(), "{case}: {:?}", report.errors);
                    let cost = periodic.cost(1.0).unwrap();
                    let time = schedule.simulate(&cost).unwrap().makespan();
                    let bound = periodic.time_bound(n).to_f64();
                    assert!(time <= bound * (1.0 + 1e-9), "{case}: {time} > {bound}");
                    assert!(
                        n as f64 / time <= solution.throughput.to_f64() * (1.0 + 1e-9),
                        "{case}"
                    );
                }
            }
        }
    }
}

/// On complete graphs a chain is the best tree, and a star from each root the best allgather. On a
/// ring each root's message goes both ways; each port then passes on as many.
#[test]
fn single_trees_of_complete_graphs_and_rings() {
    let best = |name: &str, operation, ports| {
        let platform = generate(name, 0).unwrap();
        let solution = solve(&platform, operation, ports, SolveMethod::Ports).unwrap();
        let best = best_single(&solution).unwrap();
        (best.throughput.to_string(), best.is_optimal)
    };
    for n in [3, 4, 9, 10, 12, 16, 20, 32] {
        let complete = format!("complete:{n}");
        let broadcast = |ports| best(&complete, Operation::Broadcast, ports);
        assert_eq!(broadcast(Ports::BI), ("1".into(), true), "{complete}");
        assert_eq!(broadcast(Ports::UNI), ("1/2".into(), true), "{complete}");
        let multicast = best(&complete, Operation::Multicast, Ports::BI);
        assert_eq!(multicast.0, "1", "{complete}");
    }
    for (graph, n) in [("complete", 4), ("complete", 6), ("complete", 12)]
        .into_iter()
        .chain([("ring", 3), ("ring", 4), ("ring", 6), ("ring", 8)])
    {
        let name = format!("{graph}:{n}");
        let allgather = best(&name, Operation::Allgather, Ports::BI);
        assert_eq!(allgather, (format!("1/{}", n - 1), true), "{name}");
    }
}

/// A period that one operation of the best tree fits into.
#[test]
fn an_operation_fits_into_a_short_period() {
    for (name, longest) in [("complete:12", 3), ("complete:16", 12)] {
        let platform = generate(name, 0).unwrap();
        let solve = solve(
            &platform,
            Operation::Broadcast,
            Ports::BI,
            SolveMethod::Ports,
        );
        let periodic = solve
            .unwrap()
            .periodic(Some(&longest.into()), None)
            .unwrap();
        assert_eq!(periodic.throughput().to_string(), "1", "{name}");
    }
}

#[test]
fn drift_and_single_trees() {
    let platform = generate("fig3", 0).unwrap();
    for (ports, single) in [(Ports::BI, "1"), (Ports::UNI, "2/3")] {
        let solution = solve(&platform, Operation::Broadcast, ports, SolveMethod::Ports).unwrap();
        let best = best_single(&solution).unwrap();
        assert_eq!(best.throughput.to_string(), single);
        assert!(best.is_optimal);
    }
}
