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
